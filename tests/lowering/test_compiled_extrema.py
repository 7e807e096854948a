"""Places of extreme values along every axis: the first one wins, NaN before all."""

import itertools

import numpy as np
import pytest

import functrans as ft
from functrans import lax

SHAPES = [(5, 37), (700, 3), (3, 700, 5), (64, 64), (1, 9), (2000, 33), (2, 3, 4, 40)]


def some(shape, dtype, seed=0):
    """Few different values, so that many are the first of several; some rows of -inf and NaN."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[rng.random(shape) < 0.01] = np.nan
        x[..., 0] = -np.inf
        x[0] = np.inf
    else:
        x[..., 0] = np.iinfo(dtype).min
    return x


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_axis(shape, dtype):
    x = some(shape, dtype)

    def fun(a):
        return [op(a, axis, index) for op, axis, index in itertools.product(
            (lax.argmax, lax.argmin), range(a.ndim), ("int32", "int64"))]

    with ft.config.use_backend("c"):
        compiled = ft.jit(fun)(x)
    for actual, expected in zip(compiled, fun(ft.numpy.asarray(x)), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


def test_beside_other_reductions():
    x = some((300, 70), "float32")

    def fun(a):
        return lax.argmax(a * 2, 0, "int32"), lax.reduce_max(a, (0,)), lax.argmin(a, 1, "int32")

    with ft.config.use_backend("c"):
        compiled = ft.jit(fun)(x)
    for actual, expected in zip(compiled, fun(ft.numpy.asarray(x)), strict=True):
        np.testing.assert_array_equal(actual, expected)
