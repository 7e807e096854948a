"""A loop over lanes gives for each lane what the lane gives alone."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.c.functions import graph_with_lanes
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.lanes import LaneLoop
from tests.lowering.programs_of_lanes import LANES, PROGRAMS


def kernels(fun, *args):
    """How many kernels of lanes a program has at its top."""
    jaxpr = simplify(ft.jit(fun).lower(*args).jaxpr)
    return sum(isinstance(item, LaneLoop) for item in graph_with_lanes(jaxpr).items)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_are_what_they_are_alone(name):
    fun, args, tolerance = PROGRAMS[name]
    assert kernels(ft.vmap(fun), *args)
    found = ft.tree.leaves(ft.jit(ft.vmap(fun))(*args))
    one = ft.jit(fun)
    for lane in (0, 1, 2, 3, 17, LANES - 1):
        alone = ft.tree.leaves(one(*[a[lane] for a in args]))
        for a, b in zip(found, alone, strict=True):
            if tolerance:
                np.testing.assert_allclose(np.asarray(a)[lane], b, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(np.asarray(a)[lane], b)


@pytest.mark.parametrize("name", ["around", "own_length", "branches"])
def test_what_is_around_a_loop_is_in_its_kernel(name):
    """Nothing but the kernel reads the arguments and writes the results."""
    fun, args, _ = PROGRAMS[name]
    graph = graph_with_lanes(simplify(ft.jit(ft.vmap(fun)).lower(*args).jaxpr))
    assert [type(item) for item in graph.items if item.operands] == [LaneLoop]


def test_lanes_of_two_axes():
    """A map over rows, of which blocks of lanes walk their loops, is lanes of rows and columns."""
    def pixel(y, x):
        def walk(n):
            return lax.while_loop(lambda s: (s[0] < n) & (s[1] < 4),
                                  lambda s: (s[0] + 1, s[1] * s[1] + x), (0, y))
        first, z = walk(30)
        again, w = walk(first + 2)
        return first + again, jnp.where(z > 1, w, z)

    x, y = np.linspace(-1, 1, 48, dtype=np.float32), np.linspace(0, 1, 20, dtype=np.float32)
    image = ft.vmap(ft.vmap(pixel, in_axes=(None, 0)), in_axes=(0, None))
    assert kernels(image, y, x) == 1
    found = ft.jit(image)(y, x)
    for i, k in ((0, 0), (3, 17), (19, 47), (11, 30)):
        for a, b in zip(found, ft.jit(pixel)(y[i], x[k]), strict=True):
            np.testing.assert_array_equal(a[i, k], b)


def test_blocks_of_lanes_with_vectors():
    """A vector of a lane goes into its kernel, and comes out of it, as it is."""
    def walk(y, n):
        y, k = lax.while_loop(lambda s: s[1] < n, lambda s: (
            jnp.stack([s[0][1], 0.5 * s[0][0], s[0][2] + s[0][0]]), s[1] + 1), (y * 2, 0))
        return jnp.concatenate([y, y[:1]]), k

    y = np.linspace(-1, 1, 3 * 8192, dtype=np.float32).reshape(8192, 3)
    n = np.arange(8192, dtype=np.int32) % 30
    graph = graph_with_lanes(simplify(ft.jit(ft.vmap(walk)).lower(y, n).jaxpr))
    assert [type(item) for item in graph.items if item.operands] == [LaneLoop]
    found = ft.jit(ft.vmap(walk))(y, n)
    for lane in (0, 1, 29, 8191):
        for a, b in zip(found, walk(y[lane], n[lane]), strict=True):
            np.testing.assert_array_equal(a[lane], b)


def test_what_is_stacked_is_read_where_lanes_are_an_axis_of_the_program():
    """No `vmap`: of each lane the stack keeps an axis of one element, which memory has in front."""
    def walk(x, w):
        def step(state, _):
            y, alive = state
            y = y * 1.5
            return (y, alive * (jnp.abs(y) < 2.4)), (y, alive)

        _, (path, alive) = lax.scan(step, (x, jnp.ones(8)), None, length=6)
        path, alive = path.T, alive.T
        error = 1 - path * w
        return jnp.sum(alive * error * error), alive * error * (2 / jnp.sum(alive)), path, alive

    x = np.linspace(0.5, 2, 8, dtype=np.float32)
    assert kernels(walk, x, np.float32(0.3)) == 1
    for a, b in zip(ft.jit(walk)(x, np.float32(0.3)), walk(x, np.float32(0.3)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, 3, 5, 16, 17, 70])
def test_any_number_of_lanes(lanes):
    def walk(x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (0, x))

    n = np.arange(lanes, dtype=np.int32) * 3
    x = np.linspace(-1, 1, lanes, dtype=np.float32)
    steps, found = ft.jit(ft.vmap(walk))(x, n)
    np.testing.assert_array_equal(steps, n)
    expected = [functools.reduce(lambda y, _: y * np.float32(0.5) + 1, range(k), y)
                for k, y in zip(n, x)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_a_loop_that_starts_again_is_none_of_lanes():
    """Lanes that are done run again where others do: that is no loop of a lane alone."""
    def body(state):
        running, x, n = state
        return x < 5, jnp.where(running, x + 1, x), n + 1

    def loop(running, x):
        return lax.while_loop(lambda s: jnp.any(s[0]), body, (running, x, 0))

    running, x = np.arange(64) < 40, np.zeros(64, np.float32)
    assert not kernels(loop, running, x)
    for a, b in zip(ft.jit(loop)(running, x), loop(running, x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_lanes_that_look_at_each_other_are_none():
    def step(x, _):
        return x + jnp.sum(x), None

    assert not kernels(lambda x: lax.scan(step, x, None, length=9)[0], np.ones(64, np.float32))


def test_records_stay_with_the_lane():
    """Forwards and backwards are one kernel."""
    def loss(p, x):
        return jnp.sum(lax.fori_loop(0, 200, lambda _, y: y + 0.01 * jnp.sin(p * y), x) ** 2)

    x = np.linspace(0.1, 1, 3 * LANES, dtype=np.float32).reshape(LANES, 3)
    p = np.linspace(1, 2, LANES, dtype=np.float32)
    assert kernels(ft.vmap(ft.grad(loss)), p, x) == 1
    found = ft.jit(ft.vmap(ft.grad(loss)))(p, x)
    alone = [ft.grad(loss)(p[k], x[k]) for k in range(3)]
    np.testing.assert_allclose(found[:3], alone, rtol=1e-5)


def test_weights_of_lanes_are_vectors_before_the_loop_that_reads_them():
    """A loop copies them; written out, 368 weights that live through the loop were 2.7 s of gcc."""
    def fitness(w, start):
        first, second = w[:32].reshape(4, 8), w[32:].reshape(8, 4)

        def step(s, _):
            s = jnp.tanh(jnp.tanh(s @ first) @ second)
            return s, s[0]
        return lax.scan(step, start, None, length=20)

    w = np.random.default_rng(0).uniform(-0.6, 0.6, (128, 64)).astype(np.float32)
    start = np.array([0.1, 0.2, -0.3, 0.4], np.float32)
    compiled = ft.lower(ft.vmap(fitness, in_axes=(0, None)), w, start).compile()
    state, seen = map(np.asarray, compiled(w, start))
    s = np.tile(start, (128, 1))
    for k in range(20):
        s = np.tanh(np.einsum("li,lij->lj", s, w[:, :32].reshape(-1, 4, 8)))
        s = np.tanh(np.einsum("li,lij->lj", s, w[:, 32:].reshape(-1, 8, 4)))
        np.testing.assert_allclose(seen[:, k], s[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state, s, rtol=1e-5, atol=1e-6)
    text = compiled.as_text()
    assert '__asm__ volatile("" : "+r"(q' in text
    assert text.count("strided_") + text.count("load_f32x") < 40


def test_a_step_of_many_gathers_is_of_one_vector():
    """Eight walks through tables at once: four vectors of them were 1.8 s of gcc."""
    table = np.random.default_rng(0).integers(0, 64, (8, 64)).astype(np.int32)

    def walk(x, table):
        def step(_, at):
            for _ in range(3):
                at = table[jnp.arange(8), (at + jnp.sum(at) + x) % 64]
            return at

        return lax.fori_loop(0, 5, step, jnp.zeros(8, "int32"))

    walks = ft.vmap(walk, in_axes=(0, None))
    x = np.arange(256, dtype=np.int32)
    at = np.zeros((256, 8), np.int32)
    for _ in range(15):
        at = table[np.arange(8), (at + at.sum(1, keepdims=True) + x[:, None]) % 64]
    np.testing.assert_array_equal(ft.jit(walks)(x, table), at)
    said = str(ft.explain(walks, x, table, target="cpu"))
    assert "a vector of" in said and "vectors of 16 lanes" not in said


def test_loops_of_many_random_numbers_are_of_fewer_vectors():
    """All bodies of a kernel are its text: four vectors of a sampler were 425 KiB of C."""
    def within(carry):
        i, x, key = carry
        key, *keys = ft.random.split(key, 4)
        return i + 1, x + sum(ft.random.normal(k) for k in keys), key

    def around(carry):
        i, x, key = carry
        key, *keys = ft.random.split(key, 4)
        x = lax.while_loop(lambda c: c[0] < 3, within, (0, x, keys[0]))[1]
        return i + 1, x * sum(ft.random.uniform(k) for k in keys), key

    def chain(key, x):
        return lax.while_loop(lambda c: (c[0] < 4) & (c[1] < 100), around, (0, x, key))[1]

    lanes = ft.random.split(ft.random.key(0), 64), jnp.linspace(0.0, 4.0, 64)
    text = ft.jit(ft.vmap(chain)).lower(*lanes).compile().as_text()
    assert "i_0" in text and "i_2" not in text


@pytest.mark.parametrize("width", [20, 100, 256])
def test_results_spread_over_rows_add_no_lanes(width):
    """A bisection in each row is one lane a row, also where its result meets the row again."""
    def entmax(z):
        def halve(_, bounds):
            low, high = bounds
            middle = 0.5 * (low + high)
            is_low = jnp.sum(jnp.maximum(z - middle, 0) ** 2) > 1
            return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

        low, _ = lax.fori_loop(0, 25, halve, (jnp.max(z) - 1, jnp.max(z)))
        return jnp.maximum(z - low, 0) ** 2

    rows = 40
    z = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)
    graph = graph_with_lanes(simplify(ft.jit(ft.vmap(entmax)).lower(z).jaxpr))
    (loop,) = [item for item in graph.items if isinstance(item, LaneLoop)]
    assert loop.program.sizes == (rows,)
    if width > 32:  # what is read outside alone is not written by the lanes
        assert {y.shape for y in loop.results} == {(rows,)}
    found = np.asarray(ft.jit(ft.vmap(entmax))(z))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found, np.stack([entmax(row) for row in z]), rtol=1e-5, atol=1e-6)
