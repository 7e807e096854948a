"""What long sparse arrays take other ways for: products from memory, merges by vectors."""

import numpy as np
import pytest
import scipy.sparse

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse
from functrans.primitives.row_coordinates import coordinates_of_lanes, row_coordinates_p
from functrans.primitives.sparse_sums import sum_places_p

ROWS, COLUMNS = 30_000, 20_000


def rows_of(kind, rng):
    """Numbers of elements of rows: alike, of any length, and one that has most."""
    if kind == "alike":
        return np.full(ROWS, 10)
    counts = rng.poisson(8, ROWS) * rng.integers(0, 2, ROWS) * 2
    if kind == "one long":
        counts[ROWS // 2] = 40_000
    counts[-1] = max(0, 270_000 - counts[:-1].sum())
    return counts


@pytest.mark.parametrize("kind", ["alike", "any", "one long"])
@pytest.mark.parametrize("dtype, index", [("float64", "int32"), ("float32", "int64")])
@pytest.mark.parametrize("outside", [False, True])
def test_products_from_memory(kind, dtype, index, outside):
    """Each row by itself, whichever rows stand beside it and however many threads there are."""
    rng = np.random.default_rng(len(kind))
    pointers = np.concatenate([[0], np.cumsum(rows_of(kind, rng))])
    nse = int(pointers[-1])
    assert nse >= 1 << 18
    columns, data = rng.integers(0, COLUMNS, nse), rng.normal(size=nse).astype(dtype)
    wrong = np.zeros(nse, bool)
    if outside:
        wrong = rng.random(nse) < 1e-3
        columns[wrong] = rng.choice([-1, COLUMNS, COLUMNS + 7, np.iinfo(np.int32).max],
                                    wrong.sum())
        data[wrong] = np.nan
    x, y = (rng.normal(size=n).astype(dtype) for n in (COLUMNS, ROWS))
    row = np.repeat(np.arange(ROWS), np.diff(pointers))
    kept = scipy.sparse.coo_array((data[~wrong].astype("float64"), (row[~wrong], columns[~wrong])),
                                  shape=(ROWS, COLUMNS)).tocsr()
    rtol = 1e-4 if dtype == "float32" else 1e-12
    m = sparse.BCSR((data, columns.astype(index), pointers.astype(index)), shape=(ROWS, COLUMNS))
    first, second = ft.jit(lambda m, x: m @ x), ft.jit(lambda m, y: y @ m)
    found = []
    for count in (1, 2):
        with ft.config.threads(count=count):
            found.append([np.asarray(p) for p in (first(m, x), m @ x, first(m.to_bcoo(), x),
                                                  second(m, y), second(m.to_bcoo(), y))])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    for got, expected in zip(found[0], [kept @ x] * 3 + [y @ kept] * 2, strict=True):
        np.testing.assert_allclose(got, expected, rtol, rtol * 10)


def compressed(rng, kind, columns, rows=60):
    """Rows with columns in order, but for what the kind says."""
    counts = rng.choice([0, 1, 3, 15, 16, 17, 40, 70], rows)
    found = [np.sort(rng.choice(columns, n, replace=False)) for n in counts]
    if kind == "same distances":
        pattern = np.sort(rng.choice(columns - rows, 12, replace=False))
        counts, found = np.full(rows, 12), [pattern + i for i in range(rows)]
    for i in rng.choice(rows, 9, replace=False):
        if kind == "not in order":
            found[i] = rng.permutation(found[i])
        elif kind == "twice" and counts[i] > 1:
            found[i][rng.integers(1, counts[i]):][:1] = found[i][0]
            found[i].sort()
        elif kind == "outside" and counts[i]:
            found[i][-1] = rng.choice([columns, columns + 5, -1])
    return np.concatenate(found), np.concatenate([[0], np.cumsum(counts)])


@pytest.mark.parametrize("kind", ["plain", "same distances", "not in order", "twice", "outside"])
@pytest.mark.parametrize("dtype, index", [("float64", "int32"), ("float32", "int64")])
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_merges_are_those_of_numpy(kind, dtype, index, parts):
    """Sums of whole numbers are exact: the primitive's own evaluation of integers says them."""
    rng = np.random.default_rng(parts)
    columns, rows = 200, 60
    operands, whole = [], []
    for _ in range(parts):
        at, pointers = compressed(rng, kind, columns, rows)
        data = rng.integers(-9, 9, len(at))
        operands += [data[None].astype(dtype), at[None].astype(index),
                     pointers[None].astype(index)]
        whole += [data[None], *operands[-2:]]
    total = sum(x.shape[1] for x in operands[::3])
    for room in (total + 64, total, total // 2):
        for to_rows in (False, True):
            params = {"sizes": (rows, columns), "room": room, "compressed": True,
                      "to_rows": to_rows, "numbered": False}
            expected = sum_places_p.evaluate(*whole, **params)
            got = sum_places_p.evaluate(*operands, **params)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    run = ft.jit(lambda *xs: sum_places_p.bind(*xs, **params))
    for a, b in zip(run(*operands), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_wide_column_is_not_taken_for_a_narrow_one():
    """Columns of 64 bits whose lower half is in order and inside."""
    at = np.array([[3, 5 + (1 << 32), 7]])
    data, pointers = np.ones((1, 3)), np.array([[0, 3]])
    sums, columns, ends = sum_places_p.evaluate(
        data, at, pointers, data, np.array([[1, 3, 9]]), pointers, sizes=(1, 10), room=40,
        compressed=True, to_rows=True, numbered=False)
    assert columns[0, :4].tolist() == [1, 3, 7, 9] and sums[0, :5].tolist() == [1, 2, 1, 1, 0]
    assert ends.tolist() == [[0, 4]]


def test_sums_of_many_rows_on_threads():
    rng = np.random.default_rng(0)
    mats = [scipy.sparse.random_array((2000, 500), density=0.02, rng=rng).tocsr()
            for _ in range(3)]
    expected = (mats[0] + mats[1] + mats[2]).tocsr()
    expected.sort_indices()
    of = [sparse.BCSR.from_scipy_sparse(m) for m in mats]

    def added(a, b, c):
        return sparse.BCSR.from_bcoo((a.to_bcoo() + b.to_bcoo() + c.to_bcoo()).sum_duplicates(
            nse=expected.nnz + 9, remove_zeros=False))

    for count in (1, 2):
        with ft.config.threads(count=count):
            got = ft.jit(added)(*of)
        np.testing.assert_array_equal(got.indptr[:-1], expected.indptr[:-1])
        np.testing.assert_array_equal(got.indices[:expected.nnz], expected.indices)
        np.testing.assert_allclose(got.data[:expected.nnz], expected.data, 1e-14)


@pytest.mark.parametrize("index", ["int32", "int64", "uint8"])
def test_coordinates_of_rows(index):
    """Of several matrices in turn, with pointers that fall and elements of no row, and of lanes."""
    rng = np.random.default_rng(1)
    parts = []
    for nse in (40, 0, 17):
        pointers = rng.integers(0, 45, (3, 6))
        parts += [rng.integers(0, 9, (3, nse)).astype(index), pointers.astype(index)]
    signed = [x.astype("int64") for x in parts]
    expected = row_coordinates_p.evaluate(*signed).astype(index)
    for lane in range(3):
        for k, (columns, pointers) in enumerate(zip(signed[::2], signed[1::2], strict=True)):
            e = np.arange(columns.shape[1])
            most = np.maximum.accumulate(pointers[lane])
            row = np.searchsorted(most, e, "right") - 1
            begin = sum(x.shape[1] for x in signed[:2 * k:2])
            got = expected[lane, begin:begin + len(e)]
            np.testing.assert_array_equal(got[:, 0], row.astype(index))
            np.testing.assert_array_equal(got[:, 1], columns[lane].astype(index))
    arrays = [jnp.asarray(x) for x in parts]
    np.testing.assert_array_equal(row_coordinates_p.evaluate(*parts), expected)
    np.testing.assert_array_equal(ft.jit(row_coordinates_p.bind)(*arrays), expected)
    np.testing.assert_array_equal(ft.jit(lambda *x: coordinates_of_lanes(*x)[0])(*arrays), expected)


def test_coordinates_of_many_rows_on_threads():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 20, 5000)
    pointers = (7 + np.concatenate([[0], np.cumsum(counts)])).astype("int32")
    columns = rng.integers(0, 100, pointers[-1] + 11).astype("int32")
    expected = np.concatenate([np.full(7, -1), np.repeat(np.arange(5000), counts),
                               np.full(11, 5000)])
    run = ft.jit(row_coordinates_p.bind)
    for count in (1, 2):
        with ft.config.threads(count=count):
            got = np.asarray(run(columns[None], pointers[None]))[0]
        np.testing.assert_array_equal(got, np.stack([expected, columns], 1))
