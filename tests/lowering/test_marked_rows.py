"""Scatters of rows into a constant: what nobody wrote is never read from memory."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.c.program import FunctionWriter

TABLE = 800
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch, tmp_path):
    """Programs whose temporaries are all NaN, or -1, when they begin."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tick = FunctionWriter._tick

    def poisoning(self, number):
        if number == 0 and self.key is None:
            self.line(f"memset(arena, 0xff, {self.size(self.arena_bytes)});")
        tick(self, number)

    monkeypatch.setattr(FunctionWriter, "_tick", poisoning)


def fills(f, *args):
    """Whether a program has rows with marks, and so no step that fills."""
    return "is_written" not in ft.lower(f, *args).compile().as_text()


def rows(width, count=300, dtype="float32", low=0, high=60):
    u = (rng.integers(-4, 5, (count, width)) / 2).astype(dtype)  # sums are exact
    return rng.integers(low, high, count).astype(np.int32) % TABLE, u


def added(fill, ids, u, op="add", size=TABLE):
    full = np.full((size, *u.shape[1:]), fill, u.dtype)
    kept = (ids >= -size) & (ids < size)
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum, "multiply": np.multiply}[op]
    ufunc.at(full, ids[kept], u[kept])
    return full


READERS = {
    "elements": (lambda g, p: p - 0.5 * g, True),
    "square": (lambda g, p: jnp.tanh(g * g), True),
    "total": (lambda g, p: (g * g).sum(), True),
    "rows": (lambda g, p: (g * p).sum(1), True),
    "rows, twice": (lambda g, p: g - g.max(1, keepdims=True), True),
    "part of the columns": (lambda g, p: g[:, 16:32] * 2, True),
    "some rows": (lambda g, p: 3 * g[37:90], True),
    "columns": (lambda g, p: (g * p).sum(0), None),
    "reversed": (lambda g, p: g[:, ::-1] * 2, False),
    "transposed": (lambda g, p: g.T * 2, False),
    "shifted": (lambda g, p: 2 * g[:, 1:] + p[:, 1:], False),
    "padded": (lambda g, p: 1 + jnp.pad(g, ((1, 2), (3, 4))), False),
    "joined": (lambda g, p: 2 * jnp.concatenate([p[:3], g, p], 0), None),
    "gathered": (lambda g, p: 2 * g[jnp.arange(5) * 7], True),
    "a product": (lambda g, p: g @ p[:g.shape[1]], False),
    "sorted": (lambda g, p: jnp.sort(g, 1), False),
    "a result as well": (lambda g, p: (g, g * 2), False),
    "written again": (lambda g, p: g.at[3].set(1.0) * 2, False),
}


@pytest.mark.parametrize("width", [64, 80])
@pytest.mark.parametrize("reader", READERS)
def test_readers(reader, width):
    read, is_marked = READERS[reader]
    ids, u = rows(width)
    p = rng.integers(-3, 4, (TABLE, width)).astype(np.float32)

    def f(ids, u, p):
        return read(jnp.zeros((TABLE, width)).at[ids].add(u), p)

    if is_marked is not None:
        assert fills(f, ids, u, p) != is_marked
    want = read(jnp.asarray(added(0, ids, u)), jnp.asarray(p))
    for got, of in zip(ft.tree.leaves(ft.jit(f)(ids, u, p)), ft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(got, of, 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "uint8", "float16"])
def test_dtypes(dtype):
    ids, u = rows(256, dtype=dtype)
    got = ft.jit(lambda ids, u: 3 + jnp.zeros((TABLE, 256), dtype).at[ids].add(u) * 2)(ids, u)
    want = 3 + added(0, ids, u) * 2
    assert got.dtype == want.dtype == dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("op", "fill"), [
    ("add", 1.5), ("add", -0.0), ("max", -np.inf), ("min", 7.0), ("multiply", 1.0),
    ("add", np.nan)])
def test_constants_and_operations(op, fill):
    ids, u = rows(64)
    f = lambda ids, u: abs(getattr(jnp.full((TABLE, 64), fill, "float32").at[ids], op)(u))
    assert not fills(f, ids, u)
    np.testing.assert_array_equal(ft.jit(f)(ids, u), abs(added(fill, ids, u, op)))
    signs = ft.jit(lambda ids, u: jnp.signbit(
        getattr(jnp.full((TABLE, 64), fill, "float32").at[ids], op)(u)))(ids, u)
    if not np.isnan(fill):
        np.testing.assert_array_equal(signs, np.signbit(added(fill, ids, u, op)))


@pytest.mark.parametrize("unique", [False, True])
def test_rows_that_are_set(unique):
    ids = rng.permutation(TABLE)[:90].astype(np.int32)
    u = rng.normal(size=(90, 64)).astype(np.float32)
    f = lambda ids, u: 2 * jnp.ones((TABLE, 64)).at[ids].set(u, unique_indices=unique)
    want = np.ones((TABLE, 64), np.float32)
    want[ids] = u
    assert not fills(f, ids, u)
    np.testing.assert_array_equal(ft.jit(f)(ids, u), 2 * want)


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_indices_out_of_bounds_on_threads(mode, count):
    size = 18_000
    ids = rng.integers(-size - 50, size + 50, size).astype(np.int32) // 7 * 7
    u = rng.integers(-4, 5, (size, 64)).astype(np.float32)
    f = lambda ids, u: 1 + jnp.zeros((size, 64)).at[ids].add(u, mode=mode)
    assert not fills(f, ids, u)
    at = ids if mode == "drop" else np.clip(np.where(ids < 0, ids + size, ids), 0, size - 1)
    jitted = ft.jit(f)
    with ft.config.threads(count=count):
        for _ in range(3):  # how a loop runs is learned
            np.testing.assert_array_equal(jitted(ids, u), 1 + added(0, at, u, size=size))


def test_parts_of_rows_and_of_pages():
    ids, u = rows(64)
    f = lambda ids, u: 2 * jnp.zeros((TABLE, 96)).at[ids, 16:80].add(u)
    want = np.zeros((TABLE, 96), np.float32)
    np.add.at(want[:, 16:80], ids, u)
    np.testing.assert_array_equal(ft.jit(f)(ids, u), 2 * want)
    g = lambda ids, u: 2 * jnp.zeros((40, TABLE, 64)).at[3, ids].add(u)
    assert not fills(g, ids, u)
    assert np.array_equal(ft.jit(g)(ids, u)[3], 2 * added(0, ids, u))
    assert not np.any(np.delete(np.asarray(ft.jit(g)(ids, u)), 3, 0))


def test_two_sums_share_a_constant_in_loops_and_lanes():
    ids, u = rows(64)

    def step(c, v):
        zeros = jnp.zeros((TABLE, 64))
        mean, square = zeros.at[ids].add(v), zeros.at[ids].add(v * v)
        return c + square - mean * mean, mean.sum()

    assert not fills(lambda u: step(0.0, u)[0], u)
    mean, square = added(0, ids, u), added(0, ids, u * u)
    got = ft.jit(lambda u: lax.scan(step, jnp.zeros((TABLE, 64)), jnp.stack([u, u])))(u)
    np.testing.assert_array_equal(got[0], 2 * (square - mean * mean))
    np.testing.assert_array_equal(got[1], [mean.sum()] * 2)
    both = ft.jit(ft.vmap(lambda v: step(0.0, v)[0]))(np.stack([u, 2 * u]))
    np.testing.assert_array_equal(both[0], square - mean * mean)
    np.testing.assert_array_equal(both[1], 4 * (square - mean * mean))


def test_a_step_of_an_optimizer_on_embeddings():
    ids = rng.integers(0, 50, (8, 20)).astype(np.int32)
    w = rng.normal(size=(64,)).astype(np.float64)
    table = rng.normal(size=(TABLE, 64))

    def loss(table, ids):
        return jnp.tanh(table[ids].mean(1) @ w).sum()

    def step(table, moment, ids):
        g = ft.grad(loss)(table, ids)
        moment = 0.9 * moment + 0.1 * g * g
        return table - 0.1 * g / jnp.sqrt(moment + 1e-8), moment

    args = table, np.ones_like(table), ids
    assert not fills(step, *args)
    out = ft.jit(step)(*args)
    y = np.tanh(table[ids].mean(1) @ w)
    g = added(0, ids.ravel(), np.repeat((1 - y * y)[:, None] * w / 20, 20, 0))
    moment = 0.9 + 0.1 * g * g
    np.testing.assert_allclose(out[1], moment, 1e-12)
    np.testing.assert_allclose(out[0], table - 0.1 * g / np.sqrt(moment + 1e-8), 1e-12)
    donated = ft.jit(step, donate_argnums=(0, 1))(*map(jnp.array, args))
    np.testing.assert_array_equal(donated[0], out[0])


def test_memory_is_that_of_the_rows_and_a_byte_for_each():
    ids, u = rows(64)
    f = lambda ids, u: (jnp.zeros((TABLE, 64)).at[ids].add(u) ** 2).sum()
    temporaries = ft.jit(f).lower(ids, u).compile().memory_analysis()["temporaries"]
    assert TABLE * 64 * 4 + TABLE <= temporaries <= TABLE * 64 * 4 + TABLE + 4096
