"""Loops over lanes as programs over tiles of them: every lane computes what it computes alone."""


import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.schedule.forms import preferring
from functrans.lowering.triton.loops.lane_tiles import TILES
from functrans.lowering.triton.steps.spec import Launch
from tests.triton.emulated import check
from tests.triton.small_networks import layers, network, normal

RNG = np.random.default_rng(0)


def flow(params, x):
    """Stacked inputs and results, and a number that all lanes share."""
    def step(x, t):
        x = x + 0.1 * t * network(params, x)
        return x, (x, t)
    return lax.scan(step, x, jnp.arange(1.0, 5.0))


def driven(params, x, xs):
    """Inputs of every lane and step, backwards."""
    def step(x, e):
        y = network(params, x + e)
        return y, (y * e).sum(-1)
    return lax.scan(step, x, xs, reverse=True)


def gates(w, u, h, xs):
    """A recurrent cell: parts of a product are read by themselves."""
    def step(s, x):
        i, f, g, o = jnp.split(x @ u + s[0] @ w, 4, -1)
        c = ft.nn.sigmoid(f) * s[1] + ft.nn.sigmoid(i) * jnp.tanh(g)
        h = ft.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(step, (h, h), xs)


def energies(data, q):
    """A sum over more points than registers hold, and its gradient."""
    def energy(q):
        return jnp.sum(jnp.logaddexp(0.0, data @ q)) / 300 + jnp.sum(q ** 2)

    def leapfrog(_, s):
        q, p = s
        p = p - 0.1 * ft.grad(energy)(q)
        return q + 0.1 * p, p
    q, p = ft.vmap(lambda q: lax.fori_loop(0, 3, leapfrog, (q, q)))(q)
    return q, p


def normalised(w, x):
    """Softmax and layer norm of rows."""
    def step(i, x):
        x = ft.nn.softmax(x @ w, axis=-1)
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-3)
    return lax.fori_loop(0, 4, step, x)


def until(w, x, ends):
    """Lanes of different lengths."""
    def alone(x, end):
        return lax.while_loop(lambda s: s[1] < end, lambda s: (jnp.tanh(s[0] @ w) + 0.1, s[1] + 1),
                              (x, 0))
    return ft.vmap(alone)(x, ends)


def noisy(w, x, seed):
    """Random numbers inside."""
    def step(x, key):
        return jnp.tanh(x @ w) + 0.1 * ft.random.normal(key, x.shape), x.max(-1)
    return ft.vmap(lambda x, key: lax.scan(step, x, ft.random.split(key, 3)))(
        x, ft.random.split(ft.random.key(seed), x.shape[0]))


def pieces(params, x):
    """Few numbers of a lane, put together in other ways."""
    def step(s, _):
        a = network(params, s)
        s = jnp.concatenate([s[:, 1:3] + 0.1 * a[:, :2], s[:, :1] * a[:, 1:2], s[:, 3:] + 1.0], 1)
        return jnp.where(s[:, 3:] > 2.0, jnp.array([1.0, 0.5, 0.0, 0.0]), s), s[:, 0]
    return lax.scan(step, x, None, length=5)


def turned(w, x):
    """Functions that threads compute in ways of their own."""
    def step(i, x):
        x = jnp.sin(x @ w) * jnp.cos(x) + 200000.0 / (x + 3.0 * x * x + 90000.0)
        return jnp.where(x > 0.5, jnp.sqrt(jnp.abs(x)), x)
    return lax.fori_loop(0, 3, step, x)


def in_each_other(w, x):
    def step(x, t):
        x = lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ w) + i * 0.1, x)
        return x * t, x.sum(-1)
    return lax.scan(step, x, jnp.arange(3.0))


def either(w, x):
    """A branch that a lane takes, with a loop in it."""
    def step(x):
        return lax.cond(x.sum() > 0.3, lambda x: lax.fori_loop(
            0, 3, lambda i, x: jnp.tanh(x @ w), x), lambda x: x * 0.5 + 0.1, x)
    return ft.vmap(lambda x: lax.fori_loop(0, 3, lambda i, x: step(x), x))(x)


def mapped(w, x):
    return lax.map(lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(w @ x), x).sum(), x)


def moments(w, x):
    """What is told of all lanes together in each iteration."""
    def step(x, t):
        x = jnp.tanh(x @ w) + t
        return x, (x.mean(0), (x[:, :, None] * x[:, None, :]).mean(0), x.max(), x[:, 0])
    return lax.scan(step, x, jnp.arange(3.0))


def slope(params, x):
    """Gradients of parameters are sums over lanes."""
    def loss(params, x):
        x, (path, _) = flow(params, x)
        return (x ** 2).sum() + (path[1] ** 3).sum()
    return ft.grad(loss, (0, 1))(params, x)


def collected_inside(w, x):
    """What a loop inside collects is read by another one, and collected again."""
    def outer(x, t):
        x, ys = lax.scan(lambda x, e: (jnp.tanh(x @ w) * e, x * t), x, jnp.arange(3.0))
        back, _ = lax.scan(lambda s, y: (jnp.tanh(s @ w + y), None), x, ys, reverse=True)
        return x + 0.1 * back + ys[1], (ys, back[:, 0])
    return lax.scan(outer, x, jnp.arange(1.0, 3.0))


def slope_of_both(w, x):
    return ft.grad(lambda w, x: (in_each_other(w, x)[0] ** 2).sum(), (0, 1))(w, x)


PROGRAMS = {
    "flow": (flow, layers(6, 20, 6), normal(37, 6)),
    "flow of whole tiles": (flow, layers(16, 32, 16), normal(48, 16)),
    "flow of long sums": (flow, layers(6, 130, 40, 6), normal(37, 6)),
    "driven": (driven, layers(9, 33, 9), normal(35, 9), normal(4, 35, 9)),
    "gates": (gates, normal(20, 80), normal(7, 80), normal(40, 20), normal(3, 40, 7)),
    "energies": (energies, normal(300, 5), normal(33, 5)),
    "normalised": (normalised, normal(20, 20), normal(50, 20)),
    "until": (until, normal(18, 18), normal(43, 18), RNG.integers(0, 7, 43)),
    "noisy": (noisy, normal(12, 12), normal(34, 12), np.uint32(3)),
    "pieces": (pieces, layers(4, 20, 2), normal(39, 4)),
    "either": (either, normal(17, 17), normal(300, 17)),
    "until, in blocks": (until, normal(18, 18), normal(300, 18), RNG.integers(0, 7, 300)),
    "mapped": (mapped, normal(17, 17), normal(40, 17)),
    "moments": (moments, normal(17, 17), normal(70, 17)),
    "slope": (slope, layers(6, 20, 6), normal(70, 6)),
    "turned": (turned, normal(17, 17), normal(37, 17)),
    "collected inside": (collected_inside, normal(17, 17), normal(37, 17)),
    "slope of both": (slope_of_both, normal(17, 17), normal(70, 17)),
    "in each other": (in_each_other, normal(17, 17), normal(37, 17)),
}


def tiles_of(program):
    return [s for s in program.steps if isinstance(s, Launch) and s.kernel == "lane_tiles"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_of_a_tile_compute_what_they_compute_alone(name):
    fun, *args = PROGRAMS[name]
    with preferring(TILES):
        assert tiles_of(check(fun, *args)), name
