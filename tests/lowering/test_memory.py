"""Aliasing and the arena: whatever memory values share, programs compute the same."""

import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import BackendError

ROWS = 12
ARGUMENTS = 3


def step(rng, values):
    """One more value of a square matrix, from those before it."""
    x, y = (values[k] for k in rng.integers(len(values), size=2))
    row, kind = int(rng.integers(ROWS)), rng.integers(11)
    match kind:
        case 0:
            return x.at[row].set(y[ROWS - 1 - row] + 1)
        case 1:
            rows = np.asarray(rng.choice(ROWS, 4, replace=False), np.int32)
            return x.at[rows].add(0.5 * y[:4])
        case 2:
            return x.at[row].set(x[(row + 1) % ROWS])  # reads what it updates
        case 3:
            return 0.5 * x + y
        case 4:
            return jnp.where(x > 0, jnp.exp(-x * x), y)
        case 5:
            return x + y.T
        case 6:
            return x[::-1] * 0.5
        case 7:
            return jnp.tanh(x @ y)
        case 8:
            return jnp.tanh(x @ y) - 0.1 * x
        case 9:
            return x - y.mean(axis=1, keepdims=True)
        case _:
            # longer than the chain of operations that a kernel computes in one loop
            return jnp.exp(-jnp.tanh(jnp.sin(x) * jnp.exp(-jnp.abs(y)))) + jnp.tanh(y)


def body(seed, length):
    """A random function of three matrices that returns three."""
    def fun(*args):
        rng = np.random.default_rng(seed)
        values = list(args)
        for _ in range(length):
            values.append(step(rng, values))
        return tuple(values[-k] for k in rng.choice(range(1, length + 2), 3, replace=False))
    return fun


def program(seed):
    return body(seed, 4 + seed % 5)


def loop(seed):
    inner = body(seed, 2 + seed % 4)

    def fun(*args):
        def iteration(carry, x):
            outs = inner(*carry)
            return outs, outs[0][x]
        (a, b, c), ys = lax.scan(iteration, args, jnp.arange(3))
        return a, b, c + ys.sum()
    return fun


def arguments(seed):
    rng = np.random.default_rng(1000 + seed)
    return [jnp.asarray(rng.normal(size=(ROWS, ROWS)).astype(np.float32) / 4)
            for _ in range(ARGUMENTS)]


def check(fun, seed, backend):
    with ft.config.use_backend("reference"):
        expected = [np.asarray(x) for x in ft.jit(fun)(*arguments(seed))]
    donated = tuple(k for k in range(ARGUMENTS) if (seed >> k) & 1 or seed % 4 == 0)
    kept = arguments(seed)
    copies = [np.array(x) for x in kept]
    with ft.config.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ft.jit(fun, donate_argnums=donated)(*kept)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=2e-4, atol=2e-4)
    for k, (x, y) in enumerate(zip(kept, copies, strict=True)):
        if k not in donated:
            np.testing.assert_array_equal(np.asarray(x), y)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(60))
def test_donation_changes_no_result(seed):
    check(program(seed), seed, "c")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_carries_that_share_memory_change_no_result(seed):
    check(loop(seed), seed, "c")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_donation_changes_no_result_on_gpus(seed):
    check(program(seed), seed, "triton")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(16))
def test_carries_that_share_memory_change_no_result_on_gpus(seed):
    check(loop(seed), seed, "triton")


def twice(x, i, y):
    """Two results that each replace other elements of one argument."""
    return x.at[i].add(jnp.tanh(y)), x.at[3].set(1.0)


@pytest.mark.parametrize("backend", ["c", "triton"])
def test_an_argument_that_is_updated_twice_is_copied_once(backend):
    x, i = jnp.asarray(np.ones((8, 4), np.float32)), np.array([1, 2], np.int32)
    y = np.full((2, 4), 0.5, np.float32)
    expected = [np.asarray(a) for a in ft.jit(twice)(x, i, y)]
    with ft.config.use_backend(backend):
        with pytest.raises(BackendError, match="read afterwards"):
            ft.jit(twice, donate_argnums=0, require_inplace=True)(x, i, y)
        for a, b in zip(ft.jit(twice, donate_argnums=0)(x, i, y), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


def test_what_is_computed_element_by_element_takes_donated_memory():
    def adam(p, m, v, g):
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        return p - 0.01 * m / (jnp.sqrt(v) + 1e-8), m, v

    x = np.ones((64, 32), np.float32)
    compiled = ft.jit(adam, donate_argnums=(0, 1, 2)).lower(x, x, x, x).compile()
    known = compiled.memory_analysis()
    assert known["donated"] == 3 * x.nbytes
    assert known["peak"] == 4 * x.nbytes
