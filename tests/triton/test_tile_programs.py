"""Small steps over one axis are tile programs: right in every form, chosen where they pay."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.schedule import tile_costs, tile_programs
from functrans.lowering.triton.kernels.source import RejectedKernels
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import launches_in
from tests.triton.emulated import check, program_of

RNG = np.random.default_rng(7)


def array(*shape):
    return RNG.normal(size=shape).astype("f")


def network(*sizes, of=()):
    return [(array(*of, m, n) / np.float32(np.sqrt(m)), array(*of, n))
            for m, n in itertools.pairwise(sizes)]


def mlp(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return x


def loss(params, x):
    return (mlp(params, x) ** 2).sum()


SHARED = network(5, 20, 20, 3)
OWN = network(5, 20, 20, 3, of=(9,))
WIDE = network(9, 20, 33, 3, of=(9,))

PROGRAMS = {
    "rows": (mlp, SHARED, array(41, 5)),
    "rows of an index": (mlp, SHARED, array(9, 7, 5)),
    "weights of an index": (ft.vmap(mlp), OWN, array(9, 7, 5)),
    "vectors and weights of an index": (ft.vmap(mlp), WIDE, array(9, 9)),
    "gradients of samples": (ft.vmap(ft.grad(loss), in_axes=(None, 0)), SHARED, array(9, 7, 5)),
    "gradients of weights of an index": (ft.vmap(ft.grad(loss)), OWN, array(9, 7, 5)),
    "a gradient": (ft.grad(loss), SHARED, array(41, 5)),
    "sums over the axis": (
        lambda p, x: (lambda y: (y.sum(0), (y * y).sum(), y.sum((0, 2)), y.max((0, 1))))(mlp(p, x)),
        SHARED, array(9, 7, 5)),
    "gradients of sums of both kinds": (
        ft.grad(lambda p, x: loss(p, x) + (ft.vmap(ft.grad(loss, argnums=1), in_axes=(None, 0))(
            p, x) ** 2).sum()), SHARED, array(41, 5)),
    "a scatter of what is computed": (
        lambda p, x, k: mlp(p, x).at[jnp.arange(41), k].add(1.0) @ p[2][0].T, SHARED, array(41, 5),
        RNG.integers(0, 3, 41)),
    "hessians": (lambda p, x: ft.vmap(ft.hessian(lambda x: mlp(p, x)[0]))(x), SHARED,
                 array(9, 5)),
    "tangents": (lambda p, x, v: ft.vmap(
        lambda x, v: ft.jvp(lambda x: mlp(p, x), (x,), (v,)))(x, v), SHARED, array(41, 5),
        array(41, 5)),
    "reductions": (lambda p, x: (mlp(p, x).sum(1), mlp(p, x).sum((1, 2)), mlp(p, x).max(2),
                                 mlp(p, x)[:, 2], mlp(p, x).sum(0)), SHARED, array(9, 7, 5)),
    "softmax of rows": (lambda p, x: ft.nn.softmax(mlp(p, x), axis=-1) @ p[1][0][:3], SHARED,
                        array(41, 5)),
    "a residual that is read outside": (
        lambda p, x: (x @ p[1][0] @ p[1][0], (x @ p[1][0]).sum(0), x[::-1]), SHARED,
        array(41, 20)),
}


@pytest.fixture
def everywhere(monkeypatch):
    """Tile programs wherever they can be written."""
    monkeypatch.setattr(tile_programs, "LEAST_INDICES", 4)
    monkeypatch.setattr(tile_programs._TileFormer, "_pays", lambda *_: True)


def tiles_of(program):
    return [s for s in launches_in(program.steps) if s.kernel == "tile_program"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tile_programs_are_right(everywhere, name):
    f, *args = PROGRAMS[name]
    with ft.config.matmul_precision("highest"):
        assert tiles_of(check(f, *args))


@pytest.mark.parametrize("name", ["gradients of weights of an index", "a gradient", "hessians"])
def test_a_long_run_is_cut(everywhere, monkeypatch, name):
    f, *args = PROGRAMS[name]
    with ft.config.matmul_precision("highest"):
        few = len(tiles_of(check(f, *args)))
        monkeypatch.setattr(tile_costs, "MOST_INSTRUCTIONS", 300)
        assert len(tiles_of(check(f, *args))) > few


@pytest.mark.parametrize("precision", ["default", "high", "highest"])
def test_products_have_the_precision_of_the_program(everywhere, precision):
    limit = {"default": 5e-3, "high": 2e-5, "highest": 2e-6}[precision]
    x, (w, _) = array(9, 17, 40), network(40, 40)[0]
    with ft.config.matmul_precision(precision):
        assert tiles_of(check(lambda x, w: jnp.sin(x @ w) @ w, x, w, tolerance=limit))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves(everywhere, dtype):
    def cast(tree):
        return ft.tree.map(lambda a: jnp.asarray(a).astype(dtype), tree)

    for name in ("rows", "gradients of weights of an index"):
        f, *args = PROGRAMS[name]
        assert tiles_of(check(f, *cast(args)))


def test_nan_and_infinity_stay_in_their_rows(everywhere):
    x = array(41, 20)
    x[3, 4], x[7, 1] = np.nan, np.inf
    w = array(20, 20)
    y, z = ft.jit(lambda x, w: ((x @ w) @ w, jnp.max(x @ w, 1)))(x, w)
    with ft.config.use_backend("triton"):
        got = ft.jit(lambda x, w: ((x @ w) @ w, jnp.max(x @ w, 1)))(x, w)
    for a, e in zip(got, (y, z), strict=True):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(e))


def test_a_program_that_spills_is_cut_and_then_given_up(everywhere):
    f, *args = PROGRAMS["gradients of weights of an index"]
    jaxpr, program, _ = program_of(f, *args)
    rejected = RejectedKernels()
    counts = []
    while tiles := tiles_of(program):
        counts.append(len(tiles))
        for launch in tiles:
            rejected.add_spilling(program, launch, 1000)
        program = write_program(jaxpr, choose=Chooser(rejected=rejected))
    assert 1 <= len(counts) <= 12


def scheduled(f, *args):
    _, program, _ = program_of(f, *args)
    return tiles_of(program), list(launches_in(program.steps))


def test_values_that_are_not_tiles_stay_apart():
    tiles, launches = scheduled(lambda x, w: jnp.cumsum(jnp.sort(jnp.tanh(x @ w)) @ w, 0),
                                array(256, 40), array(40, 40))
    assert not tiles and launches


def test_a_map_over_tasks_is_few_launches():
    def adapted(p, x, y):
        for _ in range(2):
            g = ft.grad(lambda p: ((mlp(p, x) - y) ** 2).mean())(p)
            p = ft.tree.map(lambda a, b: a - 0.1 * b, p, g)
        return ((mlp(p, x) - y) ** 2).mean()

    def step(p, x, y):
        return ft.grad(lambda p: ft.vmap(lambda x, y: adapted(p, x, y))(x, y).mean())(p)

    tiles, launches = scheduled(step, network(3, 40, 40, 1), array(256, 10, 3), array(256, 10, 1))
    assert tiles and len(launches) < 40


def test_large_products_have_templates():
    tiles, _ = scheduled(lambda x, w, v: jnp.tanh(jnp.tanh(x @ w) @ v) @ w, array(512, 1024),
                         array(1024, 1024), array(1024, 1024))
    assert not tiles
