"""Collectives over an axis of a mesh are those over an axis of vmap, under every transform."""

from itertools import pairwise

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.sharding import P
from tests.sharding.meshes import mesh_of

N = 4
PAIRS = [[0, 3], [2, 1]]
UNEQUAL = [[2], [3, 0, 1]]

COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "a"),
    "pmean": lambda x: lax.pmean(x, "a"),
    "pmax": lambda x: lax.pmax(x, "a"),
    "pmin": lambda x: lax.pmin(x, "a"),
    "all_gather": lambda x: lax.all_gather(x, "a", axis=1),
    "all_gather tiled": lambda x: lax.all_gather(x, "a", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "a"),
    "psum_scatter tiled": lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "a", 0, 1),
    "all_to_all tiled": lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "a", [(0, 2), (2, 3)]),
    "pshuffle": lambda x: lax.pshuffle(x, "a", [3, 0, 1, 2]),
    "pswapaxes": lambda x: lax.pswapaxes(x, "a", 0),
    "pbroadcast": lambda x: lax.pbroadcast(x, "a", 2),
    "psum in groups": lambda x: lax.psum(x, "a", axis_index_groups=PAIRS),
    "pmax in groups": lambda x: lax.pmax(x, "a", axis_index_groups=UNEQUAL),
    "all_gather in groups": lambda x: lax.all_gather(x, "a", axis_index_groups=PAIRS, axis=1),
    "psum_scatter in groups": lambda x: lax.psum_scatter(
        x, "a", scatter_dimension=1, axis_index_groups=PAIRS, tiled=True),
    "all_to_all in groups": lambda x: lax.all_to_all(
        x, "a", 0, 1, axis_index_groups=PAIRS, tiled=True),
    "axis_index": lambda x: x * lax.axis_index("a"),
    "axis_size": lambda x: x / lax.axis_size("a"),
    "scan": lambda x: lax.scan(lambda c, r: (lax.ppermute(
        c, "a", [(i, (i + 1) % N) for i in range(N)]) + r, lax.psum(c * r, "a")),
        x[0] * 0, x)[1],
    "cond": lambda x: lax.cond(lax.axis_index("a") > 1, lambda v: jnp.sin(v), lambda v: v * 3, x)
    + lax.cond(lax.psum(x.sum(), "a") > 0, lambda v: lax.psum(v, "a"), lambda v: v * 2, x),
    "while": lambda x: lax.fori_loop(0, lax.axis_size("a") - 1, lambda i, c: c + lax.ppermute(
        c, "a", [(k, k + 1) for k in range(N - 1)]) * 0.5, x),
    "custom": lambda x: lax.psum(ft.nn.relu(x) + ft.nn.softplus(x), "a"),
}
each_collective = pytest.mark.parametrize("f", COLLECTIVES.values(), ids=COLLECTIVES.keys())


def operand(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def on_mesh(f, mesh, check=True):
    """The function of a stack of operands that f is on each device, and on each lane of vmap."""
    def part(x):
        out = f(x[0])
        return ft.tree.map(lambda y: y[None], out)

    return ft.shard_map(part, mesh, P("a"), P("a"), check_vma=check)


def assert_close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def mixed(f, over):
    """A scalar function whose derivatives of two orders depend on its operand."""
    weights = operand(N ** 4, seed=3)

    def total(x):
        y = over(f)(jnp.sin(x))
        return (jnp.tanh(y) * weights[:y.size].reshape(y.shape)).sum()

    return total


@each_collective
@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
def test_values_and_derivatives_are_those_of_vmap(f, check):
    x, t = operand(N, N, N), operand(N, N, N, seed=1)
    mesh = mesh_of(N)
    with ft.config.use_backend("reference"):
        def lanes(f):
            return ft.vmap(f, axis_name="a")

        def devices(f):
            return on_mesh(f, mesh, check)

        assert_close(devices(f)(x), lanes(f)(x))
        ours, theirs = mixed(f, devices), mixed(f, lanes)
        assert_close(ft.jvp(ours, (x,), (t,))[1], ft.jvp(theirs, (x,), (t,))[1])
        assert_close(ft.grad(ours)(x), ft.grad(theirs)(x))
        assert_close(ft.jit(ft.grad(ours))(x), ft.grad(theirs)(x))
        y, pullback = ft.vjp(devices(f), x)
        ct = operand(*y.shape, seed=2)
        tangent = ft.linearize(devices(f), x)[1](t)
        assert_close(np.vdot(ct, tangent), np.vdot(pullback(jnp.asarray(ct))[0], t), 1e-3)


@pytest.mark.one_in(3)
@each_collective
def test_second_derivatives_and_vmap(f):
    x, t = operand(N, N, N), operand(N, N, N, seed=1)
    mesh = mesh_of(N)
    xs = jnp.stack([x, 2 * x])
    with ft.config.use_backend("reference"):
        def lanes(f):
            return ft.vmap(f, axis_name="a")

        def devices(f):
            return on_mesh(f, mesh)

        ours, theirs = mixed(f, devices), mixed(f, lanes)
        assert_close(ft.jvp(ft.grad(ours), (x,), (t,))[1],
                     ft.jvp(ft.grad(theirs), (x,), (t,))[1], 1e-4)
        assert_close(ft.vmap(devices(f))(xs), ft.vmap(lanes(f))(xs))
        assert_close(ft.vmap(ft.grad(ours))(xs), ft.vmap(ft.grad(theirs))(xs))
        inside = ft.vmap(f, in_axes=-1, out_axes=-1)
        assert_close(devices(inside)(xs.transpose(1, 2, 3, 0)),
                     lanes(inside)(xs.transpose(1, 2, 3, 0)))
        named = ft.vmap(lambda v: lax.psum(f(v), "lane") + lax.psum(v, ("a", "lane")).sum(),
                        axis_name="lane")
        assert_close(devices(named)(xs.swapaxes(0, 1)), lanes(named)(xs.swapaxes(0, 1)), 1e-4)


DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
          "float8_e4m3fn", "int4")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 2, (N, 8))).astype(dtype)
    mesh = mesh_of(N)
    with ft.config.use_backend("reference"):
        total = ft.shard_map(lambda v: lax.psum(v[0], "a"), mesh, P("a"), P())(x)
        assert total.dtype == x.dtype
        wide = np.asarray(x.astype("complex64"))
        expected = wide.sum(0) if dtype != "bool" else wide.max(0)
        assert_close(np.asarray(total.astype("complex64")), expected)
        for f in (lambda v: lax.all_gather(v, "a", axis=1, tiled=True),
                  lambda v: lax.ppermute(v, "a", [(0, 1)]),
                  lambda v: lax.all_to_all(v, "a", 1, 0, tiled=True)):
            ours = ft.shard_map(f, mesh, P("a"), P("a"))(x)
            theirs = ft.vmap(f, axis_name="a")(x[:, None])
            assert np.array_equal(np.asarray(ours.astype("complex64")),
                                  np.asarray(theirs.astype("complex64")).reshape(ours.shape))


@pytest.mark.parametrize("size", [3, 20_000])
@pytest.mark.parametrize("op", ["psum", "pmax", "pmin"])
def test_large_and_small_reductions_have_the_same_bits_everywhere(op, size):
    x = operand(N, size)
    x[1, 0] = np.nan
    f = ft.shard_map(lambda v: getattr(lax, op)(v, "a"), mesh_of(N), P("a"), P(),
                     check_vma=False)
    with ft.config.use_backend("reference"):
        y = f(x)
    parts = [np.asarray(s.data) for s in y.addressable_shards]
    assert all(a.tobytes() == b.tobytes() for a, b in pairwise(parts))
    reduce = {"psum": np.sum, "pmax": np.max, "pmin": np.min}[op]
    assert_close(parts[0][0], reduce(x, axis=0))


def test_several_axes_go_together():
    mesh = mesh_of(2, 2)
    x = operand(4, 4)
    with ft.config.use_backend("reference"):
        whole = ft.shard_map(lambda v: lax.psum(v, ("a", "b")), mesh, P(("a", "b")), P())(x)
        assert_close(whole[0], x.sum(0))
        index = ft.shard_map(lambda: lax.axis_index(("a", "b"))[None], mesh, (), P(("a", "b")))()
        assert index.tolist() == [0, 1, 2, 3]
        gathered = ft.shard_map(lambda v: lax.all_gather(v, ("b", "a"), tiled=True)[None], mesh,
                                P(("a", "b")), P(("a", "b")))(x)
        assert_close(gathered[0], x[[0, 2, 1, 3]])
        one = ft.shard_map(lambda v: lax.psum(v, "b"), mesh, P(("a", "b")), P("a"))(x)
        assert_close(one, x.reshape(2, 2, 4).sum(1))
        scattered = ft.shard_map(lambda v: lax.psum_scatter(v, ("a", "b"), tiled=True), mesh,
                                 P(), P(("a", "b")))(x)
        assert_close(scattered, 4 * x)
