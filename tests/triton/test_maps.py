"""Loops whose iterations know nothing of each other: a program an iteration; merged maps."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.compiling import for_compiler
from functrans.core.evaluate import interpret
from functrans.lowering.passes.maps import merge_maps
from functrans.lowering.triton.loops import resident
from functrans.lowering.triton.steps.spec import DoubleBufferedSteps, Launch, RepeatedSteps
from tests.triton.emulated import check, program_of

RNG = np.random.default_rng(0)


def collatz(n):
    return lax.while_loop(lambda c: c[0] != 1, lambda c: (
        jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0))[1]


def march(direction):
    """The way of a ray to a ball: the state of a lane is a number, its direction a vector."""
    def distance(t):
        at = t * direction - jnp.array([0.0, 0.0, 3.0])
        return jnp.sqrt((at * at).sum()) - 1.0

    def step(state):
        t, n = state
        return t + distance(t), n + 1
    return lax.while_loop(lambda s: (distance(s[0]) > 1e-3) & (s[1] < 20), step, (0.5, 0))[0]


def powers(x):
    """A lane of 40 elements, which fill vectors by themselves."""
    return lax.while_loop(lambda v: (v * v).sum() > 1.0, lambda v: v * 0.7, x)


def branch(x):
    return lax.cond(x > 0, lambda x: lax.fori_loop(0, 100, lambda i, y: jnp.sin(y) + x, x),
                    lambda x: x, x)


def positive(*shape):
    return np.abs(RNG.normal(size=shape)).astype("f") + np.float32(0.1)


N = np.arange(1, 201, dtype=np.int32)
PROGRAMS = {
    "lanes in blocks": (ft.vmap(collatz), [N], [7]),
    "two maps": (ft.vmap(ft.vmap(collatz)), [np.stack([N, N + 7])], [13]),
    "what the lanes of one map share": (
        ft.vmap(lambda a: ft.vmap(lambda n: collatz(n + a))(N)), [N[:2]], [13]),
    "vectors of a lane": (ft.vmap(march), [positive(256, 3) * [0.1, 0.1, 1.0]], [8]),
    "lanes one by one": (ft.vmap(powers), [positive(5, 40)], [5]),
    "branches": (ft.vmap(branch), [RNG.normal(size=256).astype("f")], [8]),
    "a map by name": (lambda x: lax.map(lambda r: jnp.cumsum(jnp.sort(r)) / r.sum(), x),
                      [positive(7, 33)], [7]),
    "a map with constants": (lambda x, w: lax.map(lambda r: jnp.tanh(r @ w), x),
                             [positive(6, 3, 16), positive(16, 16)], [9]),
    "three maps": (lambda x: lax.map(lambda a: lax.map(lambda b: lax.map(jnp.cumsum, b), a), x),
                   [positive(2, 3, 4, 33)], [24]),
}


def staged(fun, args):
    with for_compiler(True):
        return ft.make_jaxpr(fun)(*args)


def grids(program):
    return [s.grid[0] for s in program.steps
            if isinstance(s, Launch) and s.kernel in ("loop", "lanes")]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_iterations_that_know_nothing_of_each_other_are_programs(name):
    fun, args, expected = PROGRAMS[name]
    with for_compiler(True):
        program = check(fun, *args, tolerance=2e-3)
    assert not any(isinstance(s, (DoubleBufferedSteps, RepeatedSteps)) for s in program.steps)
    assert grids(program) == expected


@pytest.mark.parametrize("name", ["a map by name"])
def test_programs_take_turns_where_their_memory_is_large(name, monkeypatch):
    monkeypatch.setattr(resident, "MAP_BYTES", 1)
    fun, args, _ = PROGRAMS[name]
    with for_compiler(True):
        assert grids(check(fun, *args, tolerance=2e-3)) == [1]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_merged_maps_compute_the_same(name):
    fun, args, _ = PROGRAMS[name]
    jaxpr = staged(fun, args).jaxpr.hoist_consts()
    given = [np.asarray(c) for c in staged(fun, args).consts] + [*map(np.asarray, args)]
    for a, b in zip(interpret(jaxpr, given), interpret(merge_maps(jaxpr), given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_map_of_large_products_is_launched():
    """One multiprocessor would take as long as the GPU for all of them."""
    _, program, _ = program_of(lambda x, w: lax.map(lambda r: r @ w, x),
                               np.ones((3, 1024, 1024), "f"), np.ones((1024, 1024), "f"))
    assert not grids(program)
