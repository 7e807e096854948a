"""Searching, taking and putting, histograms, interpolation against NumPy."""

import itertools

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp

X = integers(3, 4, low=-1, high=2)


def test_nonzero():
    for name in ("nonzero", "argwhere", "flatnonzero", "where"):
        for x in (X, normal(3), X > 0, np.zeros((2, 2), np.float32)):
            compare(name, x)
    compare("argwhere", np.float32(3))
    compare("argwhere", np.float32(0))
    with pytest.raises(ValueError, match="at least one dimension"):
        jnp.nonzero(jnp.asarray(3))


@pytest.mark.parametrize("size", [0, 2, 30])
def test_nonzero_with_size(size):
    rows, columns = np.nonzero(X)
    n = min(size, len(rows))
    for f in (jnp.nonzero, ft.jit(jnp.nonzero, static_argnames="size"), jnp.where):
        i, j = f(X, size=size)
        assert np.asarray(i).tolist() == rows[:n].tolist() + [0] * (size - n)
        assert np.asarray(j).tolist() == columns[:n].tolist() + [0] * (size - n)
    i, j = jnp.nonzero(X, size=30, fill_value=(-1, 7))
    assert i[-1] == -1 and j[-1] == 7
    with pytest.raises(TypeError, match="size="):
        ft.jit(jnp.nonzero)(X)
    with pytest.raises(TypeError, match="size="):
        ft.jit(lambda m: jnp.where(m))(X)


def test_extract_and_compress():
    x = normal(3, 4)
    compare("extract", x > 0, x)
    compare("compress", [True, False, True], x, 0)
    compare("compress", [True, False, True, True], x, 1)
    compare("compress", x.ravel() > 0, x)
    f = ft.jit(lambda m: jnp.compress(m, x, 0, size=2, fill_value=5))
    check(f(np.array([False, True, False])), np.stack([x[1], np.full(4, 5, np.float32)]))
    check(ft.jit(lambda v: jnp.extract(v > 0, v, size=12))(x),
          np.pad(x[x > 0], (0, 12 - (x > 0).sum())))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("index", [0, [1, 0], [[0, 1, 2]], [-1]])
def test_take(axis, index):
    compare("take", normal(3, 4, 3), np.asarray(index, np.int32), axis)
    compare("take", normal(3, 4, 2), np.asarray(index, np.int32) * 9, axis, mode="clip")
    compare("take", normal(3, 4, 2), np.asarray(index, np.int32) * 9 - 4, axis, mode="wrap")


def test_take_out_of_bounds():
    x = jnp.arange(3.0)
    assert np.isnan(np.asarray(jnp.take(x, np.array([3, -4]))))[...].all()
    assert jnp.take(x, np.array([5]), fill_value=7).tolist() == [7.0]
    assert jnp.take(jnp.arange(3), np.array([5])).tolist() == [-2**31]
    with pytest.raises(TypeError, match="indices are integers"):
        jnp.take(x, x)
    with pytest.raises(ValueError, match="mode='raise' is not possible"):
        jnp.take(x, 0, mode="raise")


def test_along_axis():
    x = normal(3, 4)
    for axis in (0, 1, -1):
        order = np.argsort(x, axis=axis).astype(np.int32)
        compare("take_along_axis", x, order, axis)
    compare("take_along_axis", x, integers(1, 4, low=0, high=3), 0)
    compare("take_along_axis", x, integers(5, low=0, high=12), None)
    compare("take_along_axis", x, np.array([[0]], np.int32), 1)
    index = np.argmax(x, axis=1, keepdims=True)
    expected = x.copy()
    np.put_along_axis(expected, index, 9, 1)
    check(jnp.put_along_axis(x, index, 9, 1, inplace=False), expected)
    check(ft.vmap(lambda r, i: jnp.take_along_axis(r, i, 0))(x, index), np.take_along_axis(
        x, index, 1))


def test_put_and_place():
    x, expected = normal(3, 4), normal(3, 4)
    np.put(expected, [0, 5, -1], [1, 2])
    check(jnp.put(x, np.array([0, 5, -1]), np.array([1, 2]), inplace=False), expected)
    expected = x.copy()
    np.place(expected, x > 0, [7, 8])
    check(jnp.place(x, x > 0, np.array([7, 8]), inplace=False), expected)
    for call in (lambda: jnp.put(x, 0, 1), lambda: jnp.place(x, x > 0, 1),
                 lambda: jnp.fill_diagonal(x, 1), lambda: jnp.put_along_axis(x, X[:, :1], 1, 1)):
        with pytest.raises(TypeError, match="inplace=False"):
            call()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("method", ["scan", "compare_all"])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 33])
def test_searchsorted(side, method, size):
    row = np.sort(integers(size, low=0, high=9))
    values = integers(4, 6, low=-1, high=11)
    check(jnp.searchsorted(row, values, side, method=method), np.searchsorted(row, values, side))
    floats = np.append(row.astype(np.float32), [np.inf, np.nan]).astype(np.float32)
    probe = np.array([0, 3, np.inf, -np.inf, np.nan], np.float32)
    check(jnp.searchsorted(floats, probe, side, method=method),
          np.searchsorted(floats, probe, side))


def test_searchsorted_with_sorter_and_digitize():
    row = normal(9)
    order = np.argsort(row)
    check(jnp.searchsorted(row, row[:3], sorter=order), np.searchsorted(row, row[:3], sorter=order))
    bins = np.sort(normal(5))
    for right in (False, True):
        compare("digitize", normal(3, 4), bins, right)
        compare("digitize", normal(3, 4), bins[::-1].copy(), right)
        compare("digitize", bins, bins, right)


def test_bincount():
    x = integers(20, low=0, high=6)
    compare("bincount", x)
    compare("bincount", x, minlength=9)
    compare("bincount", x, normal(20), dtype=False)
    check(ft.jit(lambda v: jnp.bincount(v, length=4))(x), np.bincount(x, minlength=6)[:4])
    with pytest.raises(TypeError, match="length=n"):
        ft.jit(jnp.bincount)(x)


def test_index_arithmetic():
    compare("unravel_index", integers(5, low=0, high=24), (2, 3, 4))
    compare("unravel_index", np.int32(7), (2, 3, 4))
    index = (integers(5, low=0, high=2), integers(5, low=0, high=3))
    compare("ravel_multi_index", index, (2, 3))
    compare("ravel_multi_index", index, (2, 3), order="F")
    for mode in ("clip", "wrap"):
        compare("ravel_multi_index", (index[0] + 3, index[1] - 2), (2, 3), mode=mode)
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.ravel_multi_index((jnp.asarray([5]), jnp.asarray([0])), (2, 3))


@pytest.mark.parametrize("kwargs", [
    {}, {"bins": 5}, {"bins": 4, "range": (-1, 1)}, {"density": True},
    {"bins": np.array([-2, 0, 0.5, 3], np.float32)}])
def test_histogram(kwargs):
    x = normal(50)
    compare("histogram", x, dtype=False, **kwargs)
    compare("histogram", x, weights=np.abs(x), dtype=False, **kwargs)
    compare("histogram", integers(30), dtype=False, **kwargs)


def test_histograms_of_points_and_rules():
    points = normal(40, 2)
    compare("histogramdd", points, 4, dtype=False)
    compare("histogramdd", points, (3, 4), density=True, dtype=False)
    compare("histogram2d", points[:, 0], points[:, 1], 5, dtype=False)
    compare("histogram2d", points[:, 0], points[:, 1], [3, 4], weights=np.abs(points[:, 0]),
            dtype=False)
    compare("histogram_bin_edges", points, "sturges", dtype=False)
    compare("histogram", np.full(3, 2, np.float32), 4, dtype=False)
    assert ft.jit(lambda v: jnp.histogram(v, 3)[0])(points).shape == (3,)


def test_cov_and_corrcoef():
    x, y = normal(3, 20), normal(3, 20, seed=5)
    compare("cov", x)
    compare("cov", x, y)
    compare("cov", x[0])
    compare("cov", x, rowvar=False)
    compare("cov", x, bias=True)
    compare("cov", x, ddof=0, fweights=integers(20, low=1, high=4))
    compare("cov", x, aweights=np.abs(y[0]))
    compare("cov", x, aweights=np.abs(y[0]), fweights=integers(20, low=1, high=4))
    compare("cov", x + 1j * y)
    compare("corrcoef", x)
    compare("corrcoef", x, y)
    compare("corrcoef", x, rowvar=False)
    compare("corrcoef", x[0], y[0])


def test_interp():
    xp = np.sort(normal(8))
    fp = normal(8, seed=1)
    x = np.concatenate([normal(20) * 3, xp])
    compare("interp", x, xp, fp, dtype=False)
    compare("interp", x, xp, fp, left=-7.0, right=8.0, dtype=False)
    compare("interp", x.reshape(4, 7), xp, fp, period=3.0, tol=1e-4, dtype=False)
    compare("interp", 0.3, xp, fp, dtype=False)
    slope = (fp[-1] - fp[-2]) / (xp[-1] - xp[-2])
    value = jnp.interp(xp[-1] + 2, xp, fp, right="extrapolate")
    np.testing.assert_allclose(np.asarray(value), fp[-1] + 2 * slope, rtol=1e-4)
    gradient = ft.grad(lambda v: jnp.interp(v, xp, fp))(np.float32((xp[-1] + xp[-2]) / 2))
    np.testing.assert_allclose(np.asarray(gradient), slope, rtol=1e-4)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_conditions_and_cases_of_every_kind(shape):
    """Python's numbers, NumPy's arrays and ours, in each of the three places."""
    kinds = (lambda v: v, lambda v: np.full(shape, v), lambda v: jnp.asarray(np.full(shape, v)))
    for c, x, y in itertools.product(kinds, repeat=3):
        for truth in (True, False):
            found = jnp.where(c(truth), x(1.5), y(2.5))
            assert (np.asarray(found) == (1.5 if truth else 2.5)).all()
