"""The error of a sum of positive float32 numbers does not grow with how many there are.

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


LIMIT = 4 * EPS  # of blocks of at most 16 numbers in sequence, and of one rounding
LONG_LIMIT = 1e-7  # where four in sequence are added to totals in double

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
        assert worst(run(jnp.asarray(x)), expected) <= LIMIT


def test_sums_of_columns_keep_what_is_not_finite():
    x = np.ones((5000, 3), "f")
    x[777, 0], x[4000, 1] = np.inf, np.nan
    for run in (ft.jit(lambda x: x.sum(0)), lambda x: x.sum(0)):
        np.testing.assert_array_equal(np.asarray(run(jnp.asarray(x))), [np.inf, np.nan, 5000])


LONG = {"a vector": ((3_000_017,), None), "rows": ((3, 700_000), 1), "one row": ((1, 500_011), 1)}


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("case", LONG)
def test_errors_of_long_sums_of_adjacent_numbers(case, how):
    shape, axis = LONG[case]
    for x in arrays(shape):
        run = RUNS[how](lambda x: x.sum(axis), x.ndim)
        assert worst(run(jnp.asarray(x)), x.sum(axis, dtype="d")) <= LONG_LIMIT


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_errors_of_products_with_long_vectors(how):
    for x in arrays((300_000,)):
        run = RUNS[how](jnp.vdot, 1)
        found = run(jnp.asarray(x), jnp.asarray(x))
        assert worst(found, x.astype("d") @ x) <= 1.5 * EPS  # products round
    for x in arrays((8, 200_000)):
        v, matrix = jnp.asarray(x[0]), jnp.asarray(x)
        for fun, of in ((lambda v, m: m @ v, x @ x[0].astype("d")),
                        (lambda v, m: v @ m.T, x @ x[0].astype("d"))):
            assert worst(ft.jit(fun)(v, matrix), of) <= 6 * EPS
    for x in arrays((5_000, 700)):
        found = ft.jit(lambda v, m: v @ m)(jnp.asarray(x[:, 0]), jnp.asarray(x))
        assert worst(found, x[:, 0].astype("d") @ x) <= 8 * EPS


def test_sums_have_the_same_bits_with_any_number_of_threads():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((300, 3_001), dtype="f"))
    run = ft.jit(lambda x: (x.sum(), x.sum(0), x.sum(1), (x * x).mean()))
    found = []
    for count in (1, 2):
        with ft.config.threads(count=count):
            found.append([np.asarray(y).tobytes() for y in run(x)])
    assert found[0] == found[1]


def test_long_sums_keep_what_is_not_finite():
    for special in (np.inf, -np.inf, np.nan):
        x = np.ones(100_000, "f")
        x[54_321] = special
        for run in (ft.jit(jnp.sum), jnp.sum):
            np.testing.assert_array_equal(np.asarray(run(jnp.asarray(x))), special)


@pytest.mark.thorough
@pytest.mark.parametrize("shape, axis", [((10**8,), None), ((2, 5 * 10**7), 1),
                                         ((5 * 10**7, 2), 0)])
def test_errors_of_long_sums(shape, axis):
    x = np.full(shape, 0.1, "f")
    expected = x.sum(axis, dtype="d")
    for run in (ft.jit(lambda x: x.sum(axis)), lambda x: x.sum(axis)):
        assert worst(run(jnp.asarray(x)), expected) <= LIMIT
