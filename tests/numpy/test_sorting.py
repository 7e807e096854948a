"""Sorting, order statistics and sets against NumPy."""

import numpy as np
import pytest
from reference import check, compare, integers, normal, with_nan

import functrans as ft
import functrans.numpy as jnp

X = integers(4, 5)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sort(axis):
    for x in (X, normal(4, 5), with_nan(4, 5), X > 0, normal(4, 5, dtype=np.complex64)):
        compare("sort", x, axis)
    compare("argsort", X, axis, kind="stable")
    compare("argsort", with_nan(4, 5), axis, kind="stable")
    expected = np.flip(np.sort(X, axis), -1 if axis is None else axis)
    check(jnp.sort(X, axis, descending=True), expected)
    order = np.argsort(-X.astype(np.int64), axis=axis, kind="stable")
    check(jnp.argsort(X, axis, descending=True), order)


def test_lexsort_partition_and_complex():
    compare("lexsort", (X[0], X[1]))
    compare("lexsort", (X, X[::-1].copy()), axis=0)
    compare("sort_complex", normal(5))
    for k in (0, 2, -1):
        ours = np.asarray(jnp.partition(X, k, axis=1))
        assert (ours[:, k] == np.partition(X, k, axis=1)[:, k]).all()
        index = np.asarray(jnp.argpartition(X, k, axis=1))
        assert (np.take_along_axis(X, index, 1)[:, k] == ours[:, k]).all()
    with pytest.raises(ValueError, match="kth=5 is out of bounds"):
        jnp.partition(X, 5)


METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
def test_quantile(method, axis):
    x = normal(3, 4, 2)
    compare("quantile", x, 0.3, axis, method=method)
    compare("percentile", x, [0, 15.5, 50, 100], axis, method=method, keepdims=True, dtype=False)
    compare("quantile", X, np.array([0.1, 0.9], np.float32), method=method, dtype=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantile_without_nan(axis):
    x = with_nan(6, 5)
    x[:, 1] = np.nan
    compare("nanquantile", x, 0.3, axis)
    compare("nanpercentile", x, [25, 75], axis, dtype=False)
    compare("nanmedian", x, axis, keepdims=True)
    compare("quantile", x, 0.3, axis)
    compare("median", x, axis)


def test_quantile_of_traced_q_and_halves():
    x = normal(9)
    check(ft.jit(lambda q: jnp.quantile(x, q))(np.float32(0.7)), np.quantile(x, 0.7), dtype=False)
    assert jnp.median(jnp.ones(3, "float16")).dtype == np.float16
    with pytest.raises(ValueError, match="must lie in"):
        jnp.quantile(x, 1.5)
    with pytest.raises(ValueError, match="unknown method"):
        jnp.quantile(x, 0.5, method="inverse")


@pytest.mark.parametrize("x", [X, X[0], normal(3), with_nan(8), X > 0, np.zeros((0,), np.float32)],
                         ids=range(6))
def test_unique(x):
    flags = {"return_index": True, "return_inverse": True, "return_counts": True}
    compare("unique", x)
    compare("unique", x, **flags)
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        if name != "unique_values":
            compare(name, x)


def test_unique_rows():
    x = integers(6, 2, low=0, high=2)
    compare("unique", x, True, True, True, axis=0)
    compare("unique", x.T, True, True, True, axis=1)
    compare("unique", integers(5, 2, 2, low=0, high=2), axis=0)


def test_unique_with_size():
    x = np.array([3, 1, 3, 7], np.int32)
    f = ft.jit(lambda v: jnp.unique(v, return_index=True, return_inverse=True, return_counts=True,
                                    size=5))
    values, index, inverse, counts = f(x)
    assert np.asarray(values).tolist() == [1, 3, 7, 1, 1]
    assert np.asarray(index).tolist() == [1, 0, 3, 1, 1]
    assert np.asarray(inverse).tolist() == [1, 0, 1, 2]
    assert np.asarray(counts).tolist() == [1, 2, 1, 0, 0]
    assert jnp.unique(x, size=2).tolist() == [1, 3]
    assert jnp.unique(x, size=5, fill_value=-1).tolist() == [1, 3, 7, -1, -1]
    places = jnp.unique(x, size=5, fill_value=-1, return_index=True)[1]
    assert places[3:].tolist() == [int(x.argmin())] * 2  # as without fill_value
    with pytest.raises(TypeError, match=r"size="):
        ft.jit(jnp.unique)(x)


def test_set_operations():
    a, b = integers(7), integers(5, seed=1)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        compare(name, a, b)
        compare(name, a, b[:0])
        compare(name, normal(4), normal(4))
    compare("intersect1d", np.array([5, 1, 3, 3], np.int32), np.array([3, 9, 5], np.int32),
            return_indices=True)
    u = np.array([1, 4, 6], np.int32)
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        compare(name, u, np.array([6, 2, 1], np.int32), assume_unique=True)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_set_operations_with_size(name):
    a, b = integers(7), integers(5, seed=1)
    expected = getattr(np, name)(a, b)
    f = ft.jit(lambda x, y: getattr(jnp, name)(x, y, size=12, fill_value=99))
    assert np.asarray(f(a, b)).tolist() == expected.tolist() + [99] * (12 - len(expected))
    with pytest.raises(TypeError, match="size="):
        ft.jit(getattr(jnp, name))(a, b)
