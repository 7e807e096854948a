"""Rows shorter than a vector: narrower vectors, and accumulators of columns in registers."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

WIDTHS = (2, 3, 4, 5, 7, 8, 10, 16, 17)
COLUMNS = {  # of functions over the first axis
    "sum": (lambda xp, x: x.sum(0), 1e-6), "max": (lambda xp, x: x.max(0), 0),
    "argmax": (lambda xp, x: x.argmax(0), 0), "any": (lambda xp, x: (x > 2).any(0), 0),
    "product": (lambda xp, x: (1 + x / 64).prod(0), 1e-4),
    "variance": (lambda xp, x: x.var(0), 1e-5),
    "joined": (lambda xp, x: xp.concatenate([x, 2 * x[:, :1]], 1).sum(0), 1e-6),
    "of squares and rows": (lambda xp, x: (x * x).sum(0) + x.sum(1).max(), 1e-5),
}
ROWS = {
    "softmax": lambda xp, x: xp.exp(x) / xp.exp(x).sum(1, keepdims=True),
    "sum": lambda xp, x: x.sum(1), "argmin": lambda xp, x: x.argmin(1),
    "scaled": lambda xp, x: x * x[0] + x[:, :1], "turned": lambda xp, x: x[:, ::-1] - x,
}


def numbers(rows, width, dtype="f"):
    x = np.random.default_rng(width).standard_normal((rows, width))
    return x.astype(dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_of_narrow_rows(width, name):
    fun, tolerance = COLUMNS[name]
    run = ft.jit(lambda x: fun(jnp, x))
    for rows in (1, 5, 2_000):
        x = numbers(rows, width)
        expected = fun(np, x.astype("d"))
        np.testing.assert_allclose(np.asarray(run(x)), expected, rtol=tolerance,
                                   atol=2e-4 if tolerance else 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("width", WIDTHS)
def test_narrow_rows(width, name):
    run = ft.jit(lambda x: ROWS[name](jnp, x))
    for dtype in ("f", "d", "e"):
        x = numbers(40, width, dtype)
        np.testing.assert_allclose(np.asarray(run(x)), ROWS[name](np, x.astype("d")),
                                   rtol={"f": 1e-5, "d": 1e-12, "e": 1e-2}[dtype],
                                   atol={"f": 1e-5, "d": 1e-12, "e": 1e-2}[dtype])


@pytest.mark.parametrize("width", (3, 8, 10))
def test_parts_of_narrow_rows(width):
    x = numbers(2_100, width).reshape(7, 300, width)
    np.testing.assert_allclose(np.asarray(ft.jit(lambda x: x.sum(1))(x)), x.sum(1, dtype="d"),
                               rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", (3, 8, 10))
def test_narrow_rows_that_are_gathered_and_scattered(width):
    table, x = numbers(50, width), numbers(500, width)
    places = np.random.default_rng(0).integers(0, 50, 500).astype("i")
    run = ft.jit(lambda t, x, i: ft.ops.segment_sum(t[i] * x, i, num_segments=50))
    expected = np.zeros((50, width))
    np.add.at(expected, places, table[places].astype("d") * x)
    np.testing.assert_allclose(np.asarray(run(table, x, places)), expected, rtol=1e-5, atol=1e-5)


def test_bits_of_narrow_columns_do_not_depend_on_threads():
    x, found = numbers(30_000, 10), []
    run = ft.jit(lambda x: x.sum(0))
    for count in (1, 2):
        with ft.config.threads(count=count):
            found.append(np.asarray(run(x)).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("widths", [(4, 4, 4), (1, 2), (7, 1, 5)])
def test_sums_of_columns_of_rows_in_pieces(widths):
    """A row that tests on its index split into loops, as concatenation does."""
    parts = [numbers(480, n) for n in widths]

    @ft.jit
    def f(*parts):
        rows = jnp.concatenate([p * (k + 1) for k, p in enumerate(parts)], 1)
        return rows, rows.sum(0), jnp.tanh(rows).max(0)

    rows, total, largest = f(*parts)
    wanted = np.concatenate([p * (k + 1) for k, p in enumerate(parts)], 1)
    np.testing.assert_allclose(rows, wanted, rtol=1e-6)
    np.testing.assert_allclose(total, wanted.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(largest, np.tanh(wanted).max(0), rtol=1e-5)


SPREAD = {
    "one of each column": lambda xp, x, y, b: xp.sin(x + b),
    "one of each row": lambda xp, x, y, b: xp.sin(x * y[:, None]),
    "both": lambda xp, x, y, b: xp.exp(xp.tanh(x + b) * y[:, None] - b),
    "places": lambda xp, x, y, b: xp.where(xp.arange(len(b)) == (y[:, None] > 0), xp.sin(x), b),
    "a column": lambda xp, x, y, b: xp.cos(x + x[:, 1:2]),
}


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("width", (2, 4, 8))
def test_rows_that_divide_vectors_fill_them(width, name):
    """Numbers of rows and of columns are repeated in a vector; no vector is of one row."""
    fun = SPREAD[name]
    run = ft.jit(lambda x, y, b: fun(jnp, x, y, b))
    for dtype in ("f", "d", "e"):
        for rows in (7, 40, 1_001):
            args = [numbers(rows, width, dtype), numbers(rows, 1, dtype)[:, 0],
                    numbers(1, width, dtype)[0]]
            np.testing.assert_allclose(
                np.asarray(run(*args)), fun(np, *[a.astype("d") for a in args]),
                rtol={"f": 1e-5, "d": 1e-12, "e": 2e-2}[dtype],
                atol={"f": 1e-5, "d": 1e-12, "e": 2e-2}[dtype])
    kernel, = ft.explain(run, *[a.astype("f") for a in args], target="cpu").kernels
    assert kernel.about.startswith((f"{1_001 * width} elements", f"1 row of {1_001 * width}"))


@pytest.mark.parametrize("sizes", [(63, 512), (7, 1_030), (300, 17)])
def test_short_rows_that_lie_apart_are_not_gathered(sizes):
    """Rows become one line only if each vector of its pieces is a load and a shuffle."""
    x, w = numbers(sizes[0] * sizes[1], 16).reshape(*sizes, 4, 4), numbers(1, 4)[0]
    run = ft.jit(lambda w, x: w[:, None, None, None] * x[:, :, 1] + w)
    np.testing.assert_allclose(run(w, x), w[:, None, None, None] * x[:, :, 1] + w, rtol=1e-6)
    explained = ft.explain(run, w, x, target="cpu")
    assert all("gather" not in explained.source(k.name) for k in explained.kernels)
