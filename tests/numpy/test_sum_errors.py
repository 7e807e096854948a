"""The error of a sum of positive float32 numbers grows with the logarithm of how many there are.

Tenths are the worst: each addition of an equal number rounds the same way for a long time.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

EPS = float(np.finfo("f").eps)
SHAPES = {  # of arrays, and axes
    "a few": ((7,), None), "a vector": ((3_000_000,), None), "a matrix": ((1500, 1501), None),
    "rows": ((3, 700_000), 1), "short rows": ((30_000, 65), 1), "columns": ((300_000, 8), 0),
    "one column": ((1_000_000, 1), 0), "wide columns": ((20_000, 130), 0),
    "columns of parts": ((40, 20_000, 3), 1), "of both ends": ((300, 40, 500), (0, 2)),
    "of leading axes": ((700, 800, 3), (0, 1)), "long rows": ((40, 100_100), 1),
    "a length of few vectors": ((40, 1000), 1), "a matrix of odd rows": ((1000, 3001), None),
}
FUNCTIONS = {"sum": (lambda x, axis: x.sum(axis), lambda x: x),
             "mean": (lambda x, axis: x.mean(axis), lambda x: x),
             "squares": (lambda x, axis: (x * x).sum(axis), lambda x: x * x)}


def arrays(shape):
    yield np.full(shape, 0.1, "f")
    yield np.random.default_rng(0).random(shape, dtype="f")


def worst(found, expected):
    return float(np.max(np.abs(np.asarray(found, "d") / expected - 1)))


def limit(x, expected):
    return EPS * (8 + 2 * np.log2(x.size / np.size(expected)))


NAMES = "ABC"  # of sizes
RUNS = {"eager": lambda fun, ndim: fun, "compiled": lambda fun, ndim: ft.jit(fun),
        "named sizes": lambda fun, ndim: ft.jit(fun, dynamic_shapes={
            0: dict(enumerate(NAMES[:ndim]))})}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", SHAPES)
def test_errors_of_sums(case, name, how):
    (shape, axis), (fun, of) = SHAPES[case], FUNCTIONS[name]
    for x in arrays(shape):
        wide = of(x)  # products round once
        expected = wide.mean(axis, "d") if name == "mean" else wide.sum(axis, dtype="d")
        run = RUNS[how](lambda x: fun(x, axis), x.ndim)
        assert worst(run(jnp.asarray(x)), expected) <= limit(x, expected)


def test_sums_of_columns_keep_what_is_not_finite():
    x = np.ones((5000, 3), "f")
    x[777, 0], x[4000, 1] = np.inf, np.nan
    for run in (ft.jit(lambda x: x.sum(0)), lambda x: x.sum(0)):
        np.testing.assert_array_equal(np.asarray(run(jnp.asarray(x))), [np.inf, np.nan, 5000])


@pytest.mark.thorough
@pytest.mark.parametrize("shape, axis", [((10**8,), None), ((2, 5 * 10**7), 1),
                                         ((5 * 10**7, 2), 0)])
def test_errors_of_long_sums(shape, axis):
    x = np.full(shape, 0.1, "f")
    expected = x.sum(axis, dtype="d")
    for run in (ft.jit(lambda x: x.sum(axis)), lambda x: x.sum(axis)):
        assert worst(run(jnp.asarray(x)), expected) <= limit(x, expected)
