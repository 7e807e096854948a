"""Names of primitives: those of their variables, as jaxprs print them and files keep them."""

import importlib

from functrans.core.primitive import Primitive
from tests.test_imports import MODULES

OTHERS = {"checkpoint_name_p": "name",  # as in JAX
          # JAX's names, in the modules that are there for them, of what has another name here
          "add_jaxvals_p": "add_any", "remat_p": "checkpoint"}


def test_a_primitive_has_the_name_of_its_variable():
    """So that a class may have another name without a word to files and to who reads a jaxpr."""
    found = {}
    for module in MODULES:
        for variable, value in vars(importlib.import_module(module)).items():
            if isinstance(value, Primitive) and variable.endswith("_p"):
                found[variable] = value.name
    assert len(found) > 100
    assert found == {v: OTHERS.get(v, v.strip("_").removesuffix("_p")) for v in found}
