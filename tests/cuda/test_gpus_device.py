"""On two GPUs: collectives, programs in parts, overlap, failures, a process for each GPU."""

import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import CollectiveError
from functrans.distributed.engines import engine_for
from functrans.sharding import NamedSharding, P
from tests.distributed.launch import mpiexec, run_by_environment, run_by_mpiexec

pytestmark = pytest.mark.gpus
RNG = np.random.default_rng(0)
N = 2


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((N,), ("a",), devices=ft.devices("gpu"))


def on_mesh(f, mesh, check=True):
    def part(x):
        return ft.tree.map(lambda y: y[None], f(x[0]))

    return ft.jit(ft.shard_map(part, mesh, P("a"), P("a"), check_vma=check))


def drawn(dtype, *shape):
    x = RNG.integers(0, 5, shape)
    return (x > 2) if dtype == "bool" else x.astype(getattr(ft.numpy, dtype, dtype))


COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "a"),
    "pmax": lambda x: lax.pmax(x, "a"),
    "pmin": lambda x: lax.pmin(x, "a"),
    "all_gather": lambda x: lax.all_gather(x, "a", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "a", [(0, 1)]),
    "pshuffle": lambda x: lax.pshuffle(x, "a", [1, 0]),
    "pbroadcast": lambda x: lax.pbroadcast(x, "a", 1),
}
DTYPES = ("float32", "bfloat16", "float16", "float64", "int32", "int64", "uint8", "int16",
          "complex64", "complex128", "float8_e5m2", "bool")
MOVES = ("all_gather", "all_to_all", "ppermute", "pshuffle", "pbroadcast")


CASES = [(name, dtype) for name in COLLECTIVES for dtype in DTYPES if name in MOVES or not (
    dtype == "bool" or (dtype.startswith("complex") and name in ("pmax", "pmin")))]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_collectives_are_those_of_vmap(mesh, name, dtype):
    f, x = COLLECTIVES[name], drawn(dtype, N, 4, 6)
    with ft.config.default_device("cpu"):
        expected = ft.vmap(f, axis_name="a")(x)
    program = on_mesh(f, mesh)
    for _ in range(3):  # launched, as a graph, as a graph again
        found = program(x)
        assert found.dtype == expected.dtype
        assert [s.data.device for s in found.addressable_shards] == ft.devices("gpu")[:N]
        np.testing.assert_array_equal(np.asarray(found).astype(object),
                                      np.asarray(expected).astype(object))


def test_large_sums(mesh):
    for n in (1, 1000, 1 << 20, 1 << 24):
        x = RNG.normal(size=(N, n)).astype(np.float32)
        program = on_mesh(lambda x: lax.psum(x * 2, "a") + 1, mesh)
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(program(x))[0], 2 * x.sum(0) + 1, rtol=1e-5,
                                       atol=1e-5)


def test_large_sums_of_what_was_narrow(mesh):
    """They are gathered and added up; a step that needs them gets the same bits on both."""
    x = RNG.normal(size=(N, 3, 1 << 20)).astype(jnp.bfloat16)

    def f(x):
        return 0.5 * lax.psum((x * 2).astype("float32"), "a") + lax.psum(x[:, :5], "a").sum()

    program = on_mesh(f, mesh)
    few = x[:, :, :5].astype(np.float32).sum()
    for _ in range(3):
        found = program(x)
        np.testing.assert_allclose(np.asarray(found)[0], x.astype(np.float32).sum(0) + few,
                                   rtol=2e-2, atol=0.2)
        first, second = (np.asarray(s.data) for s in found.addressable_shards)
        np.testing.assert_array_equal(first, second)


def layers(count, width):
    return [{"w": RNG.normal(size=(width, width)).astype(np.float32) / width ** 0.5,
             "b": np.zeros(width, np.float32)} for _ in range(count)]


def loss(params, x):
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"]) + x
    return (x ** 2).mean()


def update(params, gradients):
    return ft.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def steps_of_one(params, x, count):
    step = ft.jit(lambda p, x: update(p, ft.grad(loss)(p, x)))
    with ft.config.default_device("gpu:0"):
        for _ in range(count):
            params = step(params, x)
    return ft.device_get(params)


def assert_trained(found, expected):
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-2, atol=2e-3)


STEPS = 12


@pytest.mark.parametrize("donate", [False, True])
def test_data_parallel_training(mesh, donate):
    params, x = layers(6, 256), RNG.normal(size=(64, 256)).astype(np.float32)

    def step(params, x):
        return update(params, ft.tree.map(lambda g: lax.pmean(g, "a"), ft.grad(loss)(params, x)))

    program = ft.jit(ft.shard_map(step, mesh, (P(), P("a")), P(), check_vma=False),
                     donate_argnums=(0,) if donate else ())
    placed = ft.device_put(params, NamedSharding(mesh, P()))
    parts = ft.device_put(x, NamedSharding(mesh, P("a")))
    for _ in range(STEPS):
        placed = program(placed, parts)
    assert_trained(placed, steps_of_one(params, x, STEPS))
    for leaf in ft.tree.leaves(placed):  # the same bits on both
        first, second = (np.asarray(s.data) for s in leaf.addressable_shards)
        np.testing.assert_array_equal(first, second)


def test_fully_sharded_training(mesh):
    params, x = layers(6, 256), RNG.normal(size=(64, 256)).astype(np.float32)

    def local(params, x):
        whole = ft.tree.map(lambda p: lax.all_gather(p, "a", axis=0, tiled=True), params)
        return loss(whole, x) / N

    def step(params, x):
        return update(params, ft.grad(local)(params, x))

    program = ft.jit(ft.shard_map(step, mesh, (P("a"), P("a")), P("a"), check_vma=False))
    placed = ft.device_put(params, NamedSharding(mesh, P("a")))
    parts = ft.device_put(x, NamedSharding(mesh, P("a")))
    for _ in range(STEPS):
        placed = program(placed, parts)
    assert_trained(placed, steps_of_one(params, x, STEPS))
    assert placed[0]["w"].addressable_shards[0].data.shape == (128, 256)


def test_the_compiler_divides_programs(mesh):
    params, x = layers(3, 128), RNG.normal(size=(64, 128)).astype(np.float32)
    step = ft.jit(lambda p, x: update(p, ft.grad(loss)(p, x)))
    placed = ft.device_put(params, NamedSharding(mesh, P()))
    parts = ft.device_put(x, NamedSharding(mesh, P("a")))
    for _ in range(4):
        placed = step(placed, parts)
    assert_trained(placed, steps_of_one(params, x, 4))
    assert float((parts + 1).sum()) == pytest.approx(float((x + 1).sum()), rel=1e-4)


def test_collectives_in_loops(mesh):
    x = RNG.normal(size=(N, 5, 8)).astype(np.float32)
    cases = [
        lambda x: lax.scan(lambda c, r: (lax.psum(c + r, "a") * 0.5, lax.ppermute(
            r, "a", [(0, 1), (1, 0)])), x[0] * 0, x),
        lambda x: lax.fori_loop(0, 7, lambda i, c: c + 0.1 * lax.psum(c, "a"), x),
        lambda x: lax.while_loop(lambda c: lax.pmax(jnp.abs(c).max(), "a") < 50,
                                 lambda c: c * 1.5 + lax.pmean(c, "a"), x)]
    for f in cases:
        with ft.config.default_device("cpu"):
            expected = ft.vmap(f, axis_name="a")(x)
        program = on_mesh(f, mesh)
        for _ in range(3):
            for a, b in zip(ft.tree.leaves(program(x)), ft.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_callbacks_and_what_they_raise(mesh):
    x = RNG.normal(size=(N, 8)).astype(np.float32)
    fails = [False]

    def twice(x):
        if fails[0]:
            raise ValueError("no luck")
        return np.asarray(x) * 2

    def f(x):
        y = lax.psum(x, "a")
        z = ft.pure_callback(twice, ft.ShapeDtypeStruct(x.shape, x.dtype), y + x)
        return lax.psum(z, "a")

    program = on_mesh(f, mesh, check=False)
    expected = 2 * (N + 1) * x.sum(0)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(program(x))[0], expected, rtol=1e-4, atol=1e-4)
    fails[0] = True
    with pytest.raises(Exception, match="no luck"):
        program(x)
    fails[0] = False
    np.testing.assert_allclose(np.asarray(program(x))[1], expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(CollectiveError, match="one program at a time"):
        engine_for(mesh).connect(mesh).run(lambda member: np.asarray(program(x)))


PROCESS = """
import sys, time, pathlib
import numpy as np
import functrans as ft
from functrans import lax
from functrans.core.communicator import set_processes
from functrans.device import Device
from functrans.distributed.engines import register_engine
from functrans.distributed.gpus import NcclEngine
from functrans.sharding import NamedSharding, P
me, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
set_processes(me, 2)
def broadcast(data, source, processes):
    place = folder / "identity"
    if me == source:
        (folder / "part").write_bytes(data)
        (folder / "part").rename(place)
    while not place.exists():
        time.sleep(0.01)
    return place.read_bytes()
register_engine(NcclEngine(broadcast))
mesh = ft.make_mesh((2,), ("a",), devices=[Device("gpu", k, k) for k in range(2)])
f = ft.jit(ft.shard_map(lambda x: lax.psum(x * 2, "a"), mesh, P("a"), P()))
x = np.arange(64, dtype=np.float32)
for _ in range(4):
    y = f(x)
assert np.array_equal(y.addressable_shards[0].data, 2 * (x[:32] + x[32:])), y
assert y.addressable_shards[0].data.device.id == me
print("done")
"""


def test_a_process_for_each_gpu(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROCESS), str(k),
                                 str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True) for k in range(2)]
    for process in running:
        out, error = process.communicate(timeout=100)
        assert out.strip() == "done", error
    assert Path(tmp_path / "identity").exists()


def test_processes_by_environment_variables():
    for rank, one in enumerate(run_by_environment(N, "-m", "tests.cuda.gpu_processes")):
        assert one.code == 0, one.output
        assert f"process {rank} of {N} is well" in one.output


@pytest.mark.skipif(mpiexec() is None or find_spec("mpi4py") is None, reason="needs MPI")
def test_processes_by_mpiexec():
    output = run_by_mpiexec(N, "-m", "tests.cuda.gpu_processes")
    assert all(f"process {rank} of {N} is well" in output for rank in range(N))


def test_a_process_that_raises_is_named_by_the_others():
    first, second = run_by_environment(N, "-m", "tests.cuda.gpu_processes", "1")
    assert second.code != 0
    assert "ValueError: a bad batch" in second.output
    assert first.code != 0
    assert "CollectiveError" in first.output, first.output
    assert "process 1" in first.output
    assert "a bad batch" in first.output
