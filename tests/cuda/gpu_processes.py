"""What each of several processes with a GPU runs: collectives and training beside one process.

    mpiexec -n 2 python -m tests.cuda.gpu_processes

With a rank as its argument the process of this rank raises before a collective.
"""

import sys

import numpy as np

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

RNG = np.random.default_rng(0)  # the same numbers in all processes
DTYPES = ("float32", "bfloat16", "int64", "complex64", "bool")


def same(x, whole, tolerance=1e-5):
    """That the parts here are those of the whole array, and on the GPU of this process."""
    whole = np.asarray(whole)
    assert x.shape == whole.shape, (x.shape, whole.shape)
    assert x.addressable_shards
    for shard in x.addressable_shards:
        assert shard.data.device.process_index == ft.process_index()
        np.testing.assert_allclose(np.asarray(shard.data).astype("complex128"),
                                   whole[shard.index].astype("complex128"), tolerance, tolerance)


def collectives(mesh, n):
    """Every collective, against those of `vmap` on this process's CPU."""
    def sums(x):
        return (lax.psum(x, "x"), lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True))

    def moves(x):
        return (lax.all_gather(x, "x", axis=1, tiled=True),
                lax.all_to_all(x, "x", 1, 0, tiled=True),
                lax.ppermute(x, "x", [(k, (k + 1) % n) for k in range(n)]),
                lax.pbroadcast(x, "x", n - 1))

    for dtype in DTYPES:
        x = RNG.integers(0, 5, (n, 3, 2 * n)).astype(np.dtype(jnp.dtype(dtype)))
        for f in (moves,) if dtype == "bool" else (sums, moves):
            with ft.config.default_device("cpu"):
                expected = ft.vmap(f, axis_name="x")(x)
            program = ft.jit(ft.shard_map(
                lambda v, f=f: ft.tree.map(lambda y: y[None], f(v[0])), mesh, P("x"), P("x")))
            for _ in range(3):  # launched, as a graph, as a graph again
                for a, b in zip(program(x), expected, strict=True):
                    same(a, b)


def loops(mesh, n):
    x = RNG.normal(size=(n, 8)).astype(np.float32)

    def f(x):
        return lax.fori_loop(0, 5, lambda i, c: c + 0.1 * lax.psum(c, "x"), x)

    with ft.config.default_device("cpu"):
        expected = ft.vmap(f, axis_name="x")(x)
    same(ft.jit(ft.shard_map(f, mesh, P("x"), P("x")))(x), expected, 1e-4)


def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w) + x
    return (x ** 2).mean()


def training(mesh, n):
    """Data parallel and fully sharded by the compiler, beside one GPU of this process."""
    params = [RNG.normal(size=(64, 64)).astype(np.float32) / 8 for _ in range(4)]
    x = RNG.normal(size=(16 * n, 64)).astype(np.float32)
    step = ft.jit(lambda p, x: ft.tree.map(lambda w, g: w - 0.1 * g, p, ft.grad(loss)(p, x)))
    mine = next(d for d in ft.devices("gpu") if d.process_index == ft.process_index())
    expected = ft.device_put(params, mine)
    here = ft.device_put(x, mine)
    for _ in range(6):
        expected = step(expected, here)
    rows = ft.device_put(x, NamedSharding(mesh, P("x")))
    for spec in (P(), P("x")):
        placed = ft.device_put(params, NamedSharding(mesh, spec))
        for _ in range(6):
            placed = step(placed, rows)
        for a, b in zip(placed, expected, strict=True):
            same(a, b, 5e-3)


def main():
    ft.distributed.initialize(collective_timeout_seconds=60)
    n, me = ft.process_count(), ft.process_index()
    gpus = ft.devices("gpu")
    assert [d.process_index for d in gpus] == list(range(n)), gpus
    mesh = ft.make_mesh((n,), ("x",), devices=gpus)
    if len(sys.argv) > 1:
        if me == int(sys.argv[1]):
            raise ValueError("a bad batch")
        f = ft.jit(ft.shard_map(lambda v: lax.psum(v, "x"), mesh, P("x"), P()))
        print(f(np.ones(2 * n, np.float32)))
        return
    collectives(mesh, n)
    loops(mesh, n)
    training(mesh, n)
    print(f"process {me} of {n} is well")


if __name__ == "__main__":
    main()
