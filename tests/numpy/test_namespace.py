"""The namespace: names, docstrings, signatures, doctests, dtypes as objects."""

import doctest
import inspect
import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

FUNCTIONS = [n for n in fnp.__all__ if callable(getattr(fnp, n)) and not isinstance(
    getattr(fnp, n), type) and n not in ("finfo", "iinfo", "issubdtype")]


def test_at_least_300_names():
    assert len(set(fnp.__all__)) == len(fnp.__all__) >= 300
    assert all(hasattr(fnp, n) for n in fnp.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_documented(name):
    function = getattr(fnp, name)
    if hasattr(function, "dtype"):  # a dtype
        return
    assert function.__doc__ and function.__doc__.strip().split("\n\n")[0].endswith(".")
    assert function.__name__
    inspect.signature(function)


def doctests():
    parser = doctest.DocTestParser()
    for name in fnp.__all__:
        text = getattr(getattr(fnp, name), "__doc__", None)
        if isinstance(text, str) and ">>> import functrans.numpy" in text:
            yield parser.get_doctest(text, {}, name, None, None)


@pytest.mark.parametrize("example", list(doctests()), ids=lambda e: e.name)
def test_examples(example):
    runner = doctest.DocTestRunner(verbose=False)
    output: list[str] = []
    runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


def test_dtype_objects():
    assert np.dtype(fnp.float32) == np.float32 and np.float32 == np.dtype(fnp.float32)
    assert fnp.ones(2).dtype == fnp.float32 and fnp.float32 == np.dtype("float32")
    assert fnp.zeros(2, fnp.bfloat16).dtype == fnp.bfloat16
    assert fnp.int8([1, 2]).dtype == np.int8
    assert ft.jit(fnp.float16)(1.0).dtype == np.float16
    assert fnp.issubdtype(fnp.float32, fnp.floating) and fnp.issubdtype(fnp.int8, fnp.integer)
    assert not fnp.issubdtype(fnp.int8, fnp.floating)
    assert fnp.finfo(fnp.bfloat16).bits == 16 and fnp.iinfo("int8").max == 127
    assert {fnp.float32: 1}[fnp.float32] == 1 and repr(fnp.int8) == "functrans.numpy.int8"


def test_questions_about_types():
    assert fnp.result_type(1, 2.0) == np.float32
    assert fnp.promote_types("int8", "uint8") == np.int16
    assert fnp.can_cast("int8", "int16") and not fnp.can_cast(fnp.ones(2), "int32")
    assert fnp.isdtype("float32", ("integral", "real floating"))
    assert not fnp.isdtype("bool", "numeric") and fnp.isdtype("int8", np.int8)
    assert fnp.iscomplexobj(1j) and fnp.isrealobj(fnp.ones(2)) and not fnp.iscomplexobj([1, 2])
    assert fnp.isscalar(3) and fnp.isscalar(fnp.asarray(1.0)) and not fnp.isscalar(fnp.ones(2))
    assert fnp.iterable(fnp.ones(2)) and not fnp.iterable(fnp.asarray(1.0))
    assert fnp.size(fnp.ones((2, 3))) == 6 and fnp.size([[1, 2]], 1) == 2
    assert (fnp.pi, fnp.e, fnp.inf, fnp.newaxis) == (math.pi, math.e, math.inf, None)


def test_default_dtypes_in_scope():
    with ft.default_dtypes("float64", "int64"):
        assert fnp.zeros(2).dtype == np.float64 and fnp.arange(2).dtype == np.int64
        assert fnp.asarray([1.5]).dtype == np.float64 and fnp.asarray(1).dtype == np.int64
        assert fnp.sin(1.0).dtype == np.float64 and fnp.argmax(fnp.ones(2)).dtype == np.int64
        assert fnp.linspace(0, 1, 3).dtype == np.float64
    assert fnp.zeros(2).dtype == np.float32


@pytest.mark.parametrize("name", ["sin", "exp", "add", "multiply", "where", "sum", "matmul"])
def test_functions_keep_name_and_signature(name):
    function = getattr(fnp, name)
    assert function.__name__ == name
    parameters = list(inspect.signature(function).parameters)
    assert parameters[0] in ("x", "a", "condition")
