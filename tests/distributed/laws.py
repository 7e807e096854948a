"""What each of several processes runs: collectives and programs beside NumPy on the whole.

    mpiexec -n 2 python -m tests.distributed.laws
"""

import sys

import numpy as np

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.communicator import acting_as
from functrans.distributed.engines import engine_for
from functrans.errors import BackendError
from functrans.sharding import NamedSharding, P

DTYPES = ("bool", "int8", "int32", "int64", "uint16", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128", "float8_e4m3fn")


def pieces(x):
    """The parts of x that this process has, and what NumPy says that they are."""
    return [(s.index, np.asarray(s.data)) for s in x.addressable_shards]


def same(x, whole, tolerance=1e-5):
    """That the parts here are those of the whole array."""
    whole = np.asarray(whole)
    assert x.shape == whole.shape, (x.shape, whole.shape)
    for index, part in pieces(x):
        np.testing.assert_allclose(part.astype("complex128"), whole[index].astype("complex128"),
                                   rtol=tolerance, atol=tolerance)


def collectives(mesh, n):
    """Every collective of the protocol in every dtype, large and small, against NumPy."""
    rng = np.random.default_rng(0)

    def program(member):
        with acting_as(member):
            group = member.group(("x",))
            k = group.index
            for dtype in DTYPES:
                for size in (1, 5, 3000):
                    x = rng.integers(0, 2, (n, n, size)).astype(np.dtype(jnp.dtype(dtype)))
                    everything(group, k, x)
            group.barrier()
            return True

    def everything(group, k, x):
        exact = np.asarray(x, "complex128")
        out = np.empty_like(x[0])
        group.all_reduce(x[k], out, "sum")
        expected = exact.any(0) if x.dtype == bool else exact.sum(0)
        np.testing.assert_array_equal(out.astype("complex128"), expected)
        group.all_reduce(x[k], out, "product")
        np.testing.assert_array_equal(out.astype("complex128"), exact.prod(0))
        if x.dtype.kind != "c":
            group.all_reduce(x[k], out, "max")
            np.testing.assert_array_equal(out.astype("complex128"), exact.real.max(0))
            group.all_reduce(x[k], out, "min")
            np.testing.assert_array_equal(out.astype("complex128"), exact.real.min(0))
        part = np.empty_like(x[0, 0])
        group.reduce_scatter(x[k], part, "sum")
        np.testing.assert_array_equal(part.astype("complex128"), expected[k])
        everyone = np.empty_like(x)
        group.all_gather(x[k], everyone)
        np.testing.assert_array_equal(everyone, x)
        group.all_to_all(x[k], out)
        np.testing.assert_array_equal(out, x[:, k])
        group.permute(x[k], out, [(0, n - 1)])
        np.testing.assert_array_equal(out, x[0] if k == n - 1 else np.zeros_like(x[0]))
        group.permute(x[k], out, [(i, (i + 1) % n) for i in range(n)])
        np.testing.assert_array_equal(out, x[k - 1])
        group.broadcast(x[k], out, n - 1)
        np.testing.assert_array_equal(out, x[n - 1])

    assert engine_for(mesh).connect(mesh).run(program) == [True]


def steps(mesh, n):
    """Compiled programs call the library without Python, also in loops; NaN comes through."""
    def everything(x):
        total = lax.psum(x, "x")
        largest = lax.pmax(x, "x") - lax.pmin(x, "x")
        parts = lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)
        everyone = lax.all_gather(parts, "x", axis=1, tiled=True)
        swapped = lax.all_to_all(x, "x", 1, 0, tiled=True).reshape(x.shape)
        looped = lax.fori_loop(0, 3, lambda i, c: lax.ppermute(
            c, "x", [(k, (k + 1) % n) for k in range(n)]) + x, x)
        return jnp.stack([total, largest, everyone, swapped, looped])

    x = jnp.asarray(np.random.default_rng(0).integers(-3, 4, (n, 2, 4 * n))).astype("float32")
    f = ft.jit(ft.shard_map(lambda v: everything(v[0])[None], mesh, P("x"), P("x")))
    for _ in range(2):
        same(f(x), ft.vmap(everything, axis_name="x")(x))
    assert "host call" not in str(ft.explain(f, x))
    with_nan = np.ones(n, np.float32)
    with_nan[0] = np.nan
    largest = ft.jit(ft.shard_map(lambda v: lax.pmax(v, "x"), mesh, P("x"), P()))
    assert np.isnan(np.asarray(largest(with_nan))).all()


def programs(mesh, n):
    """Programs that follow the data, and their gradients."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(4 * n, 6)), rng.normal(size=(6, 2 * n))
    xs = ft.device_put(x, NamedSharding(mesh, P("x")))
    ws = ft.device_put(w, NamedSharding(mesh, P(None, "x")))

    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).sum()

    step = ft.jit(lambda w, x: (loss(w, x), w - 0.1 * ft.grad(loss)(w, x)))
    value, new = step(ws, xs)
    expected, whole = step(w, x)
    np.testing.assert_allclose(float(value), float(expected))
    same(new, whole)
    assert new.sharding.spec == P(None, "x")
    with ft.config.use_backend("reference"):
        same(ft.grad(loss)(ws, xs), ft.grad(loss)(w, x))
    # the same parts by another spec, and by a mesh whose axis has another name
    renamed = ft.make_mesh((n,), ("r",), devices=ft.devices("cpu"))
    for sharding in (NamedSharding(mesh, P("x", None)), NamedSharding(renamed, P("r"))):
        again, _ = step(ws, ft.device_put(x, sharding))
        np.testing.assert_allclose(float(again), float(expected))
    norms = ft.per_sample.norms(lambda w, x: loss(w, x[None]))(ws, xs)
    same(norms, ft.per_sample.norms(lambda w, x: loss(w, x[None]))(w, x))
    assert norms.sharding.spec == P("x")


def placement(mesh, n):
    """Arrays that this process has a part of."""
    x = np.arange(4.0 * n).reshape(2 * n, 2)
    y = ft.make_array_from_process_local_data(NamedSharding(mesh, P("x")),
                                              x[2 * ft.process_index():][:2])
    same(y, x)
    assert len(ft.local_devices()) == 1
    assert len(ft.devices("cpu")) == n
    assert ft.devices("cpu")[-1].process_index == n - 1
    if n == 1:
        return
    assert not y.is_fully_addressable
    assert "float64" in repr(y)
    try:
        np.asarray(y)
    except BackendError as error:
        assert "other processes" in str(error)
    else:
        raise AssertionError("parts of other processes were read")
    rank = ft.process_index()
    assert ft.distributed.broadcast_bytes(b"id of %d" % rank, n - 1) == b"id of %d" % (n - 1)
    alone = ft.device_put(np.ones(3), ft.local_devices()[0])
    np.testing.assert_array_equal(np.asarray(ft.jit(jnp.sin)(alone)), np.sin(np.ones(3)))
    assert alone.device.process_index == rank
    whole = ft.jit(lambda v: v, out_shardings=NamedSharding(mesh, P()))(y)
    np.testing.assert_array_equal(np.asarray(whole), x)


def grids(n):
    """Groups along each axis of a mesh of two axes."""
    mesh = ft.make_mesh((n // 2, 2), ("x", "y"))
    x = np.random.default_rng(2).normal(size=(n, 4))
    f = ft.jit(ft.shard_map(lambda v: lax.psum(v, "x") * lax.pmean(v, "y") + lax.axis_index("y"),
                            mesh, P(("x", "y")), P(("x", "y"))))
    blocks = x.reshape(n // 2, 2, 1, 4)
    expected = blocks.sum(0, keepdims=True) * blocks.mean(1, keepdims=True) + np.arange(2).reshape(
        1, 2, 1, 1)
    same(f(x), expected.reshape(n, 4))
    part = ft.make_mesh((n // 2,), ("z",), devices=ft.devices("cpu")[:n // 2])
    if ft.process_index() < n // 2:
        same(ft.shard_map(lambda v: lax.psum(v, "z"), part, P("z"), P())(np.ones((n // 2, 2))),
             np.full((1, 2), n // 2))


def checkpoint(mesh):
    """What is saved: in shards along each axis, whole, and not divided."""
    x = np.arange(24.0).reshape(6, 4)
    return {"rows": ft.device_put(x[:4], NamedSharding(mesh, P("x"))),
            "columns": ft.device_put(x, NamedSharding(mesh, P(None, "x"))),
            "whole": ft.device_put(x[0], NamedSharding(mesh, P())), "step": jnp.int32(7)}


def main():
    ft.distributed.initialize()
    n = ft.process_count()
    mesh = ft.make_mesh((n,), ("x",), devices=ft.devices("cpu"))
    placement(mesh, n)
    if n > 1:
        collectives(mesh, n)
    steps(mesh, n)
    programs(mesh, n)
    if n >= 2:
        grids(n)
    if len(sys.argv) > 1:
        ft.weights.save_parts(sys.argv[1], checkpoint(mesh))
    print(f"process {ft.process_index()} of {n} is well")


if __name__ == "__main__":
    main()
