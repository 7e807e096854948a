"""Every public function has an example in its docstring, which tests/test_doctests.py runs."""

import importlib
import inspect

import pytest

from functrans.core.example_text import parsed, with_example

MODULES = [
    "functrans", "functrans.numpy", "functrans.numpy.linalg", "functrans.numpy.fft",
    "functrans.lax", "functrans.lax.linalg", "functrans.nn", "functrans.nn.initializers",
    "functrans.random", "functrans.tree", "functrans.tree_util", "functrans.optim",
    "functrans.checkpoint_policies", "functrans.debug",
    "functrans.per_sample", "functrans.image", "functrans.custom_batching", "functrans.test_util",
    "functrans.sharding", "functrans.weights", "functrans.quantize", "functrans.mixed_precision",
    "functrans.experimental.sparse", "functrans.experimental.checkify",
    "functrans.experimental.ode", "functrans.custom_derivatives", "functrans.dlpack",
    "functrans.scipy.special", "functrans.scipy.stats", "functrans.scipy.linalg",
    "functrans.scipy.signal", "functrans.scipy.fft", "functrans.scipy.optimize",
    "functrans.scipy.integrate", "functrans.scipy.interpolate", "functrans.scipy.ndimage",
]
WHOLE = {"functrans.numpy", "functrans.lax"}
"""Modules of which classes have an example, too."""


def without_example(module):
    """Public functions, and of some modules classes, whose docstring shows no use."""
    found = importlib.import_module(module)
    values = {name: getattr(found, name) for name in found.__all__}
    return [name for name, value in values.items()
            if callable(value) and not inspect.ismodule(value)
            and (not inspect.isclass(value) or module in WHOLE)
            # types that are aliases, and NumPy's dtypes
            and getattr(inspect.unwrap(value), "__module__", "").startswith("functrans")
            and ">>> " not in (inspect.getdoc(value) or "")]


@pytest.mark.parametrize("module", MODULES)
def test_every_function_has_an_example(module):
    assert without_example(module) == []


def test_examples_of_tables():
    examples = parsed("one\n>>> 1\n1\n\ntwo\n>>> a = 1\n>>> a + 1\n2\n")
    assert dict(examples) == {"one": ">>> 1\n1", "two": ">>> a = 1\n>>> a + 1\n2"}
    assert with_example("Two.", examples["two"]) == \
        "Two.\n\n    >>> a = 1\n    >>> a + 1\n    2\n    "
    assert with_example("One.\n\n    >>> 1\n    1\n", "x") == "One.\n\n    >>> 1\n    1\n"
    assert with_example("Nothing.", None) == "Nothing." and with_example(None, "x") is None
