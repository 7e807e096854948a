"""ft.ops: reductions by segments are loops over the rows."""

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import ConcretizationError, ShapeError

IDS = np.array([2, 0, 7, 2, -1, 0, 4, 2], np.int32)
ROWS = np.random.default_rng(0).integers(1, 5, (8, 3))
KINDS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "max": (np.maximum, None),
         "min": (np.minimum, None)}  # fmt: skip


def by_rows(kind, rows, ids, count):
    ufunc, start = KINDS[kind]
    if start is None:
        info = np.finfo(rows.dtype) if rows.dtype.kind == "f" else np.iinfo(rows.dtype)
        low, high = (-np.inf, np.inf) if rows.dtype.kind == "f" else (info.min, info.max)
        start = low if kind == "max" else high
    out = np.full((count, *rows.shape[ids.ndim:]), start, rows.dtype)
    for place in np.ndindex(ids.shape):
        if 0 <= ids[place] < count:
            out[ids[place]] = ufunc(out[ids[place]], rows[place])
    return out


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_segments(kind, dtype):
    reduce = getattr(ft.ops, f"segment_{kind}")
    rows = np.asarray(ft.numpy.asarray(ROWS, dtype))
    wide = np.float32 if dtype == "bfloat16" else dtype
    expected = by_rows(kind, rows.astype(wide), IDS, 6)
    for options in ({}, {"bucket_size": 3}):
        found = reduce(rows, IDS, 6, **options)
        assert found.dtype == rows.dtype
        np.testing.assert_array_equal(np.asarray(found).astype(wide), expected)
    staged = ft.jit(lambda rows, ids: reduce(rows, ids, 6))(rows, IDS)
    np.testing.assert_array_equal(np.asarray(staged).astype(wide), expected)
    many = ft.vmap(lambda rows: reduce(rows, IDS, 6))(np.stack([rows, rows[::-1]]))
    np.testing.assert_array_equal(np.asarray(many[0]).astype(wide), expected)


def test_options():
    sums = ft.ops.segment_sum(ROWS, np.abs(IDS))
    assert sums.shape == (8, 3)
    np.testing.assert_array_equal(sums, by_rows("sum", ROWS, np.abs(IDS), 8))
    sorted_ids = np.sort(np.abs(IDS))
    np.testing.assert_array_equal(
        ft.ops.segment_sum(ROWS, sorted_ids, 8, indices_are_sorted=True),
        by_rows("sum", ROWS, sorted_ids, 8))  # fmt: skip
    grid = np.array([[0, 2, 0], [1, 1, 5]])
    np.testing.assert_array_equal(ft.ops.segment_sum(np.arange(6.0).reshape(2, 3), grid, 3),
                                  [2.0, 7.0, 1.0])  # fmt: skip
    assert ft.ops.segment_sum(np.zeros((0, 2)), np.zeros(0, int)).shape == (0, 2)


def test_gradients():
    x = np.array([1.0, 3.0, 3.0, 5.0])
    ids = np.array([0, 0, 0, 9])
    assert ft.grad(lambda x: ft.ops.segment_sum(x, ids, 2)[0] ** 2)(x).tolist() == [14, 14, 14, 0]
    assert ft.grad(lambda x: ft.ops.segment_max(x, ids, 2)[0])(x).tolist() == [0, 0.5, 0.5, 0]
    assert ft.grad(lambda x: ft.ops.segment_prod(x, ids, 2)[0])(x).tolist() == [9, 3, 3, 0]


def test_mistakes_are_told():
    with pytest.raises(ShapeError, match="segment_ids has shape"):
        ft.ops.segment_sum(np.ones(3), np.zeros(4, int), 2)
    with pytest.raises(ConcretizationError, match="segment_ids"):
        ft.jit(ft.ops.segment_sum)(np.ones(3), np.zeros(3, int))
