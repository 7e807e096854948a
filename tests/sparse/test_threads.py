"""Products and sums of sparse arrays on several threads: the same bits on any number of them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ft.config.default_device("cpu"):
        yield


THREADS = (1, 2, 3, 5, 16)
ROWS, NSE = 7_000, 70_000  # several pieces of 8,192 elements; chunks of 512


def index_vectors(kind):
    """Rows and columns of NSE elements; duplicates, and rows that are empty, are in each."""
    rng = np.random.default_rng(len(kind))
    row, column = rng.integers(0, ROWS, NSE), rng.integers(0, ROWS, NSE)
    row[row % 5 == 0] = 1
    if kind == "long rows":  # one over many pieces, others over the borders of chunks
        row[:40_000], row[40_000:42_000] = 17, 4_000
    if kind == "short rows":
        row = np.where(rng.random(NSE) < 0.5, row, ROWS - 1 - np.arange(NSE) % 3)
    if kind != "in no order":
        row = np.sort(row)
        again = np.flatnonzero(np.diff(row) == 0)
        again = again[(again % 512 == 511) | (rng.random(len(again)) < 0.2)]
        column[again + 1] = column[again]  # duplicates, those on both sides of a border among them
    if kind == "one element astray":
        row[60_001] = 3
    if kind == "out of bounds":
        row[rng.random(NSE) < 0.01] = -1
        column[rng.random(NSE) < 0.01] = ROWS
    if kind == "padded":
        row[-20_000:] = column[-20_000:] = ROWS
    return np.stack([row, column], 1)


def on_threads(f, *args):
    """The results of f on each number of threads, several times: what is tried differs."""
    for count in THREADS:
        with ft.config.threads(count=count):
            for _ in range(4):
                yield np.asarray(f(*args))


KINDS = ("in order", "long rows", "short rows", "in no order", "one element astray",
         "out of bounds", "padded")


@pytest.mark.parametrize(("dtype", "index"), [("float64", "int32"), ("float32", "int64"),
                                              ("float32", "int32"), ("complex128", "int32"),
                                              ("int32", "int32")])
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_times_vectors(kind, dtype, index):
    rng = np.random.default_rng(1)
    at = index_vectors(kind)
    data, x = (10 * rng.normal(size=n) for n in (NSE, ROWS))
    if dtype == "complex128":
        data, x = data + 1j * data[::-1], x - 2j * x[::-1]
    data, x = data.astype(dtype), x.astype(dtype)
    inside = ((at >= 0) & (at < ROWS)).all(1)
    expected = np.zeros(ROWS, dtype)
    np.add.at(expected, at[inside, 0], data[inside] * x[at[inside, 1]])
    m = sparse.BCOO((data, at.astype(index)), shape=(ROWS, ROWS))
    f = ft.jit(lambda m, x: m @ x)
    first, *others = on_threads(f, m, jnp.asarray(x))
    tolerance = {"float32": 1e-4, "int32": 0}.get(dtype, 1e-11)
    assert np.abs(first - expected).max() <= tolerance * np.abs(expected).max()
    assert all(first.tobytes() == other.tobytes() for other in others)
    assert not first[np.setdiff1d(np.arange(ROWS), at[inside, 0])].any()


@pytest.mark.parametrize("to_rows", [True, False])
@pytest.mark.parametrize("kind", ["in order", "short rows", "out of bounds", "many"])
def test_sums_of_rows(kind, to_rows):
    """Blocks of rows are added up by threads; those that are not in order are sorted by them."""
    rng = np.random.default_rng(2)
    mats = []
    for k in range(3 if kind == "many" else 2):
        at = index_vectors("long rows" if kind == "many" else kind)
        at[:, 1] = (at[:, 1] + 7 * k) % (ROWS + (kind == "out of bounds"))
        if kind != "short rows":
            at = at[np.lexsort(at.T[::-1])]
        pointers = np.searchsorted(np.sort(at[:, 0]), np.arange(ROWS + 1)).astype("int32")
        mats.append(sparse.BCSR((rng.normal(size=NSE), at[:, 1].astype("int32"), pointers),
                                shape=(ROWS, ROWS)))
    room = NSE * len(mats)

    def total(*mats):
        if to_rows:
            m = sum(mats[2:], mats[0] + mats[1])
            return m.data, m.indices, m.indptr
        m = sum([m.to_bcoo() for m in mats[1:]], mats[0].to_bcoo())
        m = m.sum_duplicates(nse=room, remove_zeros=False)
        return m.data, m.indices

    f = ft.jit(total)
    found = [on_threads(lambda *mats, k=k: f(*mats)[k], *mats) for k in range(3 if to_rows else 2)]
    for first, *others in found:
        assert all(first.tobytes() == other.tobytes() for other in others)
    one = [np.asarray(x) for x in f(*mats)]
    dense = [{} for _ in range(2)]
    for m in mats:
        at = np.asarray(m.to_bcoo().indices)
        for (i, j), v in zip(at.tolist(), np.asarray(m.data).tolist(), strict=True):
            if 0 <= i < ROWS and 0 <= j < ROWS:
                dense[0][i, j] = dense[0].get((i, j), 0.0) + v
    rows = np.repeat(np.arange(ROWS), np.diff(one[2])) if to_rows else None
    kept = len(rows) if to_rows else int((one[1] < ROWS).all(1).sum())
    places = zip(rows, one[1][:kept]) if to_rows else one[1][:kept]
    dense[1] = {(int(i), int(j)): v for (i, j), v in zip(places, one[0][:kept].tolist())}
    assert list(dense[1]) == sorted(dense[0])
    assert all(abs(v - dense[0][k]) < 1e-10 for k, v in dense[1].items())
    assert not one[0][kept:].any()
