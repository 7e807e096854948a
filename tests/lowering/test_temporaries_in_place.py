"""Temporaries in the memory of others that a step reads last: the same values in less memory."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.memory import aliasing

rng = np.random.default_rng(0)
SIZE = 40  # whole vectors and a part of one


def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def searched(at, p, x, y):
    """x is read again by the loop that searches its largest element."""
    return jnp.sin(x), jnp.where(jnp.arange(SIZE) > at[:, None], y, jnp.cos(p))


KINDS = [
    lambda p, x, y: (jnp.tanh(p) + x, y * jnp.cos(p)),
    lambda p, x, y: (ft.nn.softmax(x) - jnp.tanh(p), norm(y)),
    lambda p, x, y: (x - p.mean(0), jnp.tanh(y + x.sum(1, keepdims=True))),
    lambda p, x, y: searched(x.argmax(1), x, x, y),
    lambda p, x, y: searched(y.argmin(1), p, y, x),
    lambda p, x, y: (jnp.sin(x), ft.nn.softmax(x) * y),  # x is read after the sine is written
    lambda p, x, y: (norm(x), x - (jnp.sin(x) * y).sum(1, keepdims=True)),
    lambda p, x, y: (x + y.T, jnp.tanh(0.5 * y + p)),
    lambda p, x, y: (x + jnp.sin(p)[::-1], jnp.cos(p) * y),
    lambda p, x, y: (norm(x) + jnp.sin(p), norm(x + y) * jnp.cos(p)),
    lambda p, x, y: (x - y.max(1, keepdims=True), jnp.exp(-p * p) + jnp.tanh(x.sum(0))),
    lambda p, x, y: (jnp.exp(-jnp.tanh(jnp.sin(x) * jnp.exp(-abs(y)))) + jnp.tanh(y), jnp.sin(p)),
    lambda p, x, y: (jnp.concatenate([x[:, 3:], y[:, :3]], 1), jnp.sin(p) + x),
]


def program(seed):
    def f(x, y):
        x, y = jnp.sin(x @ y), jnp.cos(y @ x)
        for k in np.random.default_rng(seed).integers(len(KINDS), size=6):
            x, y = KINDS[k](x @ y, x, y)  # products read what is in memory
        return x @ y
    return f


def compiled(f, args, monkeypatch, folder):
    """Results and bytes of temporaries of a program with shared memory, and of one without."""
    found = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(aliasing, "LEAST_SHARED", least)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / str(least)))
        made = ft.lower(f, *args).compile()
        found.append((made(*args), made.memory_analysis()["temporaries"]))
    return found


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(64))
def test_random_programs(seed, monkeypatch, tmp_path):
    args = [rng.normal(size=(SIZE, SIZE)) for _ in range(2)]
    (got, less), (want, more) = compiled(program(seed), args, monkeypatch, tmp_path)
    np.testing.assert_array_equal(got, want)
    assert less <= more + SIZE * SIZE * 8  # one place for several values may divide the arena


def loss(ws, x):
    for w in ws:
        x = x + jnp.tanh(norm(x) @ w)
    return (x * x).mean()


def test_a_gradient_of_normalisations_needs_less(monkeypatch, tmp_path):
    ws, x = [rng.normal(size=(64, 64)) / 8] * 4, rng.normal(size=(256, 64))
    (one, less), (other, more) = compiled(ft.grad(loss), (ws, x), monkeypatch, tmp_path)
    assert less <= more - x.nbytes
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
