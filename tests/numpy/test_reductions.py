"""Reductions, positions and running sums against NumPy."""

import numpy as np
import pytest
from reference import check, compare, integers, normal, with_nan

import functrans.numpy as jnp

AXES = [None, 0, -1, (0, 2), (), (2, 1)]
REDUCTIONS = [
    "sum", "prod", "max", "min", "amax", "amin", "all", "any", "mean", "var", "std",
    "count_nonzero", "ptp", "median"]
NAN = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(name, axis, keepdims):
    if name == "median" and axis == ():  # NumPy takes it as all axes
        axis = (0, 1, 2)
    compare(name, normal(3, 4, 2), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, bool, np.float64, np.complex64])
def test_reduction_of_dtypes(name, dtype):
    if ((np.dtype(dtype).kind == "c" and name in ("ptp", "median", "max", "min", "amax", "amin"))
            or (dtype is bool and name == "ptp")):
        return
    x = np.abs(integers(3, 4)).astype(dtype)
    same = dtype in (np.int32, np.float64, np.complex64) or name in ("max", "min", "all")
    compare(name, x, axis=1, dtype=same)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
def test_where(name):
    x = normal(3, 4)
    mask = x > -0.5
    mask[:, 0] = True
    extra = {"initial": np.float32(-3)} if name in ("max", "min") else {}
    compare(name, x, axis=0, where=mask, **extra)
    compare(name, x, where=np.array([True, False, True, True]), **extra)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax"])
def test_initial(name):
    compare(name, normal(3, 4), axis=1, initial=2.5)
    if name[:3] != "nan":
        compare(name, np.zeros((0, 2), np.float32), axis=0, initial=2.5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAN)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_without_nan(name, axis):
    x = with_nan(4, 5)
    compare(name, x, axis=axis)
    x[:, 0] = np.nan
    x[0] = np.nan
    compare(name, x, axis=axis, keepdims=True)
    compare(name, integers(4, 5), axis=axis)


@pytest.mark.parametrize("name", ["max", "min", "median", "sum", "mean", "argmax", "argmin"])
def test_nan_propagates(name):
    compare(name, with_nan(4, 5), axis=1)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(name, axis, keepdims):
    x = with_nan(6, 5) if "nan" in name else normal(6, 5)
    x[0, 0], x[1, 1] = 1, 2
    if "nan" in name:
        x[:, 2] = 4.0
        x[2, :] = 4.0
        x[3:] = np.where(np.isnan(x[3:]), 4, x[3:])
    compare(name, x, axis=axis, keepdims=keepdims)
    compare(name, integers(6, 5), axis=axis, keepdims=keepdims)


def test_ddof_and_dtype():
    x = normal(5, 3)
    for name in ("var", "std", "nanvar", "nanstd"):
        compare(name, x, axis=0, ddof=1)
    compare("var", x, correction=2)
    compare("sum", integers(4), dtype=np.float32)
    compare("mean", integers(4), dtype=np.float32)
    assert jnp.sum(jnp.ones(2, "int8"), promote_integers=False).dtype == np.int8
    assert jnp.sum(jnp.ones(2, "float16")).dtype == np.float16
    assert float(jnp.mean(jnp.full(70000, 2, "float16"))) == 2.0
    check(jnp.var(x, 0, mean=jnp.mean(x, 0, keepdims=True)), np.var(x, 0))


def test_average():
    x, w = normal(3, 4), np.abs(normal(4)) + 1
    compare("average", x)
    compare("average", x, axis=1, weights=w)
    compare("average", x, axis=(0, 1), weights=np.abs(x), returned=True)
    compare("average", x, axis=0, weights=w[:3], keepdims=True)
    with pytest.raises(ValueError, match="weights of shape"):
        jnp.average(jnp.ones((2, 3)), 0, jnp.ones(3))


def test_refusals():
    with pytest.raises(ValueError, match="axis 2 is out of bounds for an array of 2"):
        jnp.sum(jnp.ones((2, 2)), axis=2)
    with pytest.raises(ValueError, match="names one axis twice"):
        jnp.sum(jnp.ones((2, 2)), axis=(0, -2))
    with pytest.raises(ValueError, match="max of no elements"):
        jnp.max(jnp.zeros((0, 2)), axis=0)
    with pytest.raises(TypeError, match="does not take out="):
        jnp.sum(jnp.ones(2), out=np.zeros(()))
    with pytest.raises(ValueError, match="needs initial="):
        jnp.max(jnp.ones(2), where=jnp.asarray([True, False]))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_cumulative(name, axis):
    compare(name, with_nan(3, 4) if "nan" in name else normal(3, 4), axis=axis)
    compare(name, integers(3, 4), axis=axis)
    compare(name, integers(3, 4) > 0, axis=axis)
    compare(name, integers(3), dtype=np.float32)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("initial", [False, True])
def test_cumulative_of_the_array_standard(name, initial):
    compare(name, normal(5), include_initial=initial)
    compare(name, normal(3, 4), axis=1, include_initial=initial)


def test_diff():
    x = normal(4, 5)
    for n in range(3):
        compare("diff", x, n)
        compare("diff", x, n, 0)
    compare("diff", x, prepend=0, append=x[:, :2])
    compare("diff", x > 0)
    compare("ediff1d", x)
    compare("ediff1d", x, to_end=np.float32(9), to_begin=x[0])


def test_gradient():
    x = normal(5, 6)
    compare("gradient", x)
    compare("gradient", x, axis=0)
    compare("gradient", x, 2.0, axis=(1,))
    compare("gradient", x, 2.0, 0.5)
    compare("gradient", x, 2.0, 0.5, edge_order=2)
    points = np.cumsum(np.abs(normal(6)) + 0.5).astype(np.float32)
    compare("gradient", x, points, axis=1, tol=1e-4)
    compare("gradient", x, points, axis=1, edge_order=2, tol=1e-4)
    compare("gradient", integers(7))


def test_trapezoid():
    x = normal(5, 6)
    compare("trapezoid", x)
    compare("trapezoid", x, dx=0.5, axis=0)
    compare("trapezoid", x, np.sort(normal(6)))
    compare("trapezoid", x, np.sort(normal(5)), axis=0)
    compare("trapezoid", x, np.sort(normal(5, 6), axis=0), axis=0)
