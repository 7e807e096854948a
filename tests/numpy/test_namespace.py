"""The namespace: names, docstrings, signatures, doctests, dtypes as objects."""

import doctest
import inspect
import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

FUNCTIONS = [n for n in jnp.__all__ if callable(getattr(jnp, n)) and not isinstance(
    getattr(jnp, n), type) and n not in ("finfo", "iinfo", "issubdtype")]


def test_at_least_300_names():
    assert len(set(jnp.__all__)) == len(jnp.__all__) >= 300
    assert all(hasattr(jnp, n) for n in jnp.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_documented(name):
    function = getattr(jnp, name)
    if hasattr(function, "dtype"):  # a dtype
        return
    assert function.__doc__ and function.__doc__.strip().split("\n\n")[0].endswith(".")
    assert function.__name__
    inspect.signature(function)


def doctests():
    parser = doctest.DocTestParser()
    for name in jnp.__all__:
        text = getattr(getattr(jnp, name), "__doc__", None)
        if isinstance(text, str) and ">>> import functrans.numpy" in text:
            yield parser.get_doctest(text, {}, name, None, None)


@pytest.mark.parametrize("example", list(doctests()), ids=lambda e: e.name)
def test_examples(example):
    runner = doctest.DocTestRunner(verbose=False)
    output: list[str] = []
    runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


def test_dtype_objects():
    assert np.dtype(jnp.float32) == np.float32 and np.float32 == np.dtype(jnp.float32)
    assert jnp.ones(2).dtype == jnp.float32 and jnp.float32 == np.dtype("float32")
    assert jnp.zeros(2, jnp.bfloat16).dtype == jnp.bfloat16
    assert jnp.int8([1, 2]).dtype == np.int8
    assert ft.jit(jnp.float16)(1.0).dtype == np.float16
    assert jnp.issubdtype(jnp.float32, jnp.floating) and jnp.issubdtype(jnp.int8, jnp.integer)
    assert not jnp.issubdtype(jnp.int8, jnp.floating)
    assert jnp.finfo(jnp.bfloat16).bits == 16 and jnp.iinfo("int8").max == 127
    assert {jnp.float32: 1}[jnp.float32] == 1 and repr(jnp.int8) == "functrans.numpy.int8"


def test_questions_about_types():
    assert jnp.result_type(1, 2.0) == np.float32
    assert jnp.promote_types("int8", "uint8") == np.int16
    assert jnp.can_cast("int8", "int16") and not jnp.can_cast(jnp.ones(2), "int32")
    assert jnp.isdtype("float32", ("integral", "real floating"))
    assert not jnp.isdtype("bool", "numeric") and jnp.isdtype("int8", np.int8)
    assert jnp.iscomplexobj(1j) and jnp.isrealobj(jnp.ones(2)) and not jnp.iscomplexobj([1, 2])
    assert jnp.isscalar(3) and jnp.isscalar(jnp.asarray(1.0)) and not jnp.isscalar(jnp.ones(2))
    assert jnp.iterable(jnp.ones(2)) and not jnp.iterable(jnp.asarray(1.0))
    assert jnp.size(jnp.ones((2, 3))) == 6 and jnp.size([[1, 2]], 1) == 2
    assert (jnp.pi, jnp.e, jnp.inf, jnp.newaxis) == (math.pi, math.e, math.inf, None)


def test_default_dtypes_in_scope():
    with ft.default_dtypes("float64", "int64"):
        assert jnp.zeros(2).dtype == np.float64 and jnp.arange(2).dtype == np.int64
        assert jnp.asarray([1.5]).dtype == np.float64 and jnp.asarray(1).dtype == np.int64
        assert jnp.sin(1.0).dtype == np.float64 and jnp.argmax(jnp.ones(2)).dtype == np.int64
        assert jnp.linspace(0, 1, 3).dtype == np.float64
    assert jnp.zeros(2).dtype == np.float32


@pytest.mark.parametrize("name", ["sin", "exp", "add", "multiply", "where", "sum", "matmul"])
def test_functions_keep_name_and_signature(name):
    function = getattr(jnp, name)
    assert function.__name__ == name
    parameters = list(inspect.signature(function).parameters)
    assert parameters[0] in ("x", "a", "condition")
