"""Every public name has an example in its docstring, which tests/test_doctests.py runs."""

import importlib
import inspect
import re
from functools import cached_property

import numpy
import pytest

import functrans.errors  # noqa: F401  # which gives the exceptions their examples
from functrans.core.example_text import parsed, with_example
from tests.docs.pages import reference_modules

MODULES = reference_modules()
TREES = {"tree_flatten", "tree_flatten_with_keys", "tree_unflatten"}
ASKED_BY_THE_PACKAGE = {
    "Dim": {"array_operator", "fresh", "sqrt"},
    "Jaxpr": {"hoist_consts"},
    "Lowered": {"compiled_by", "compiler_ir", "executable", "in_fewer", "inputs",
                "without_donation"},
    "UserPrimitive": {"batch", "batch_over", "compiled", "cost", "decided_sizes",
                      "def_effectful_abstract_eval", "def_lowering", "evaluate",
                      "evaluate_eagerly", "get_bind_params", "jvp", "linearize", "program", "rule",
                      "run", "samples", "transpose", "type"},
    "Compiled": {"runtime_executable"},
}
"""Methods without an underscore that transforms and compilers call, and no user."""

UNSEEN = {"JetTrace", "JetTracer", "JitFunction"}
"""Classes whose instances do their work unasked: what they have is that of traces and functions."""


def has_example(value):
    return ">>> " in (inspect.getdoc(value) or "")


def own(value):
    """Whether a name is of the package: no alias of a type, and no dtype of NumPy's."""
    return (getattr(inspect.unwrap(value), "__module__", "") or "").startswith("functrans")


def classes_of(module):
    found = importlib.import_module(module)
    values = {name: getattr(found, name) for name in found.__all__}
    return {name: value for name, value in values.items() if inspect.isclass(value) and own(value)}


def without_example(module):
    """Public functions and classes whose docstring shows no use."""
    found = importlib.import_module(module)
    values = {name: getattr(found, name) for name in found.__all__}
    return [name for name, value in values.items()
            if callable(value) and not inspect.ismodule(value) and own(value)
            # the runtime's own class: `jit`, which makes it, has the example
            and value.__module__ != "functrans._runtime" and not has_example(value)]


def methods(cls):
    """Public methods with a docstring, each with the class that defines it."""
    for name, value in inspect.getmembers(cls, inspect.isroutine):
        home = next((c for c in cls.__mro__ if name in vars(c)), object)
        if not name.startswith("_") and (home.__module__ or "").startswith("functrans") \
                and not isinstance(value, cached_property) and inspect.getdoc(value):
            yield name, value, home


def methods_without_example(cls):
    """Methods that neither their own docstring nor that of a class that has them shows."""
    if cls.__name__ in UNSEEN:
        return []
    asked = TREES | ASKED_BY_THE_PACKAGE.get(cls.__name__, set())
    return [name for name, value, home in methods(cls)
            if name not in asked and not has_example(value)
            and not any(re.search(rf"\.{name}\b", inspect.getdoc(c) or "")
                    for c in cls.__mro__)]


@pytest.mark.parametrize("module", MODULES)
def test_every_name_has_an_example(module):
    assert without_example(module) == []


@pytest.mark.parametrize("module", MODULES)
def test_every_method_is_shown(module):
    missing = {name: methods_without_example(cls) for name, cls in classes_of(module).items()}
    assert {name: found for name, found in missing.items() if found} == {}


def test_a_name_without_an_example_is_found():
    class Bare:
        """Nothing is shown."""

        def method(self):
            """Neither is this."""

    Bare.__module__ = Bare.method.__module__ = "functrans.bare"
    assert not has_example(Bare) and methods_without_example(Bare) == ["method"]
    assert own(Bare) and not own(numpy.float32)


def test_examples_of_tables():
    examples = parsed("one\n>>> 1\n1\n\ntwo\n>>> a = 1\n>>> a + 1\n2\n")
    assert dict(examples) == {"one": ">>> 1\n1", "two": ">>> a = 1\n>>> a + 1\n2"}
    assert with_example("Two.", examples["two"]) == \
        "Two.\n\n    >>> a = 1\n    >>> a + 1\n    2\n    "
    assert with_example("One.\n\n    >>> 1\n    1\n", "x") == "One.\n\n    >>> 1\n    1\n"
    assert with_example("Nothing.", None) == "Nothing." and with_example(None, "x") is None
