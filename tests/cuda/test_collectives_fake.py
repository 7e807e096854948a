"""Collectives of programs of several GPUs: order, overlap, graphs, failures, with a fake NCCL."""

import subprocess
import textwrap
from pathlib import Path

import pytest

HEAD = """
import ctypes, itertools, warnings
from functrans.core.communicator import OPS, TYPES, key_of
from functrans.core import cuda_libraries
from functrans.distributed.gpus import NcclEngine, NcclGroup
from functrans.sharding import NamedSharding, PartitionSpec as P
nccl = ctypes.CDLL({path!r})
def read(name): return ctypes.c_int.in_dll(nccl, "fake_nccl_" + name).value
def fail_with(status): ctypes.c_int.in_dll(nccl, "fake_nccl_fail").value = status
assert rt.cuda_load_library("nccl", {path!r}) is None
import functrans.distributed.gpus as gpus
gpus.loaded = lambda name: rt.cuda_load_library(name, {path!r})
def mesh_of(*shape):
    names = ("a", "b", "c")[:len(shape)]
    return ft.make_mesh(shape, names, devices=ft.devices("gpu"))
F32 = TYPES[np.dtype("float32")]
KIND = dict(all_reduce=0, all_gather=1, reduce_scatter=2, all_to_all=3, permute=4)
def numbers(kind, axes, count, op="sum", type=F32, rest=()):
    return (KIND[kind], key_of(axes), OPS[op], type, count, *rest)
def on(rank, values, dtype=np.float32):
    return ft.device_put(np.asarray(values, dtype), f"gpu:{{rank}}")
def programs(count, make):
    return [make(rank) for rank in range(count)]
def run(mesh, made, leaves, axes):
    connection = NcclEngine().connect(mesh) if mesh not in connections else connections[mesh]
    connections[mesh] = connection
    return connection.run_compiled(made, leaves, {{key_of(a): a for a in axes}})
connections = {{}}
spec = lambda n: ("float32", (n,))
"""


@pytest.fixture(scope="session")
def nccl(library):
    path = Path(library).with_name("libfake_nccl.so")
    source = Path(__file__).parent / "fake_nccl.c"
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", str(path), str(source), library],
                   check=True)
    return str(path)


@pytest.fixture
def on_gpus(on_fake, nccl):
    def run(code, count=2):
        head = f"fake.fake_devices = {count}\n" + textwrap.dedent(HEAD.format(path=nccl))
        on_fake(f"fake.fake_devices = {count}\nassert rt.cuda_open(fake.path)\n" + head
                + textwrap.dedent(code), opened=False)
    return run


def test_collectives_of_groups(on_gpus):
    on_gpus("""
        mesh = mesh_of(4)
        connection = NcclEngine().connect(mesh)
        rng = np.random.default_rng(0)
        for dtype in ("bool", "int8", "int16", "int32", "uint64", "float16", "bfloat16",
                      "float32", "float64", "complex64", "float8_e5m2"):
            dtype = np.dtype(getattr(ft.numpy, dtype, dtype)) if dtype != "bool" else np.dtype(bool)
            x = rng.integers(0, 3, (4, 4, 3)).astype(dtype)
            ops = ("sum",) if dtype.kind == "c" else ("sum", "max", "min", "product")
            for op in ops:
                fold = {"sum": np.add, "max": np.maximum, "min": np.minimum,
                        "product": np.multiply}[op]
                expected = x[0].astype(object)
                for part in x[1:]:
                    expected = fold(expected, part.astype(object))
                expected = expected.astype(dtype)

                def program(member):
                    group = member.group(("a",))
                    out, part = np.empty_like(x[0]), np.empty_like(x[0, 0])
                    group.all_reduce(x[member.rank], out, op)
                    group.reduce_scatter(x[member.rank], part, op)
                    return out, part
                for rank, (out, part) in enumerate(connection.run(program)):
                    assert np.array_equal(out.astype(object), expected.astype(object)), (dtype, op)
                    assert np.array_equal(part.astype(object), expected[rank].astype(object))

            def moves(member):
                group, mine = member.group(("a",)), x[member.rank]
                found = [np.empty_like(x), np.empty_like(mine), np.empty_like(mine),
                         np.empty_like(mine)]
                group.all_gather(mine, found[0])
                group.all_to_all(mine, found[1])
                group.permute(mine, found[2], [(0, 2), (1, 1), (3, 0)])
                group.broadcast(mine, found[3], 2)
                group.barrier()
                return found
            for rank, found in enumerate(connection.run(moves)):
                permuted = {2: x[0], 1: x[1], 0: x[3]}.get(rank, np.zeros_like(x[0]))
                for a, b in zip(found, (x, x[:, rank], permuted, x[2])):
                    assert np.array_equal(a.astype(object), b.astype(object)), dtype
        """, count=4)


def test_groups_along_axes(on_gpus):
    on_gpus("""
        mesh = mesh_of(2, 2)
        connection = NcclEngine().connect(mesh)
        for axes in (("a",), ("b",), ("a", "b"), ("b", "a")):
            def program(member):
                group = member.group(axes)
                out = np.empty((group.size, 1), np.int32)
                group.all_gather(np.array([member.rank], np.int32), out)
                return out.ravel().tolist()
            assert connection.run(program) == [list(mesh.group(r, axes)) for r in range(4)], axes
        """, count=4)


STEPS = """
        def made(rank, n=8, graphs=True, **options):
            # x -> 2x, its sum over devices, beside it x -> 3x, then both together
            steps = [("launch", 0, (1, 1, 1), (("input", 0, 0), ("arena", 0, 0), 2.0, n)),
                     ("collective", 0, [(numbers("all_reduce", ("a",), n), ("arena", 0, 0),
                                         ("arena", 0, 512))]),
                     ("launch", 0, (1, 1, 1), (("input", 0, 0), ("arena", 0, 1024), 3.0, n)),
                     ("wait", 0),
                     ("launch", 1, (1, 1, 1), (("arena", 0, 512), ("arena", 0, 1024),
                                               ("output", 0, 0), n))]
            return rt.CudaProgram([kernel("scale"), kernel("add")], steps, [spec(n)], [spec(n)],
                                  [], 2048, rank, graphs=graphs, **options)
"""


def test_steps_and_graphs(on_gpus):
    on_gpus(STEPS + """
        mesh = mesh_of(2)
        for graphs in (True, False):
            both = [made(r, graphs=graphs) for r in range(2)]
            for k in range(6):
                xs = [np.arange(8) + 10 * r + k for r in range(2)]
                outs = run(mesh, both, [[on(r, x)] for r, x in enumerate(xs)], [("a",)])
                for (out,), x, r in zip(outs, xs, range(2)):
                    assert out.device == ft.devices("gpu")[r]
                    assert np.array_equal(out, 2 * (xs[0] + xs[1]) + 3 * x)
            assert [p.stats["replays"] for p in both] == [5 * graphs] * 2
        assert fake.fake_captures >= 2 and both[0].only_enqueues
        """)


def test_replays_with_other_buffers(on_gpus):
    on_gpus(STEPS + """
        mesh, both, kept = mesh_of(2), [made(r) for r in range(2)], []
        for k in range(12):  # all results stay alive: every call has addresses of its own
            xs = [np.arange(8) + 10 * r + k for r in range(2)]
            kept.append((xs, run(mesh, both, [[on(r, x)] for r, x in enumerate(xs)], [("a",)])))
        for xs, outs in kept:
            for (out,), x in zip(outs, xs):
                assert np.array_equal(out, 2 * (xs[0] + xs[1]) + 3 * x)
        assert both[0].stats["graphs_changed"] > 0
        """)


def test_collectives_are_beside_the_kernels(on_gpus):
    on_gpus("""
        # without the wait the sum is read before it is there: the fake runs it as late as it may
        def made(rank, waits):
            steps = [("collective", 0, [(numbers("all_reduce", ("a",), 8), ("input", 0, 0),
                                         ("arena", 0, 0))]),
                     ("fill", ("arena", 0, 512), 32, 0), *[("wait", 0)] * waits,
                     ("launch", 0, (1, 1, 1), (("arena", 0, 0), ("output", 0, 0), 1.0, 8)),
                     ("fill", ("arena", 0, 512), 32, 1)]
            return rt.CudaProgram([kernel("scale")], steps, [spec(8)], [spec(8)], [], 1024, rank)
        mesh = mesh_of(2)
        for waits in (1, 0):
            both = [made(r, waits) for r in range(2)]
            for k in range(3):
                run_of = run(mesh, both, [[on(r, np.full(8, r + 1 + k))] for r in range(2)],
                             [("a",)])
                right = all(np.array_equal(o[0], np.full(8, 3 + 2 * k)) for o in run_of)
                assert right == bool(waits) or (waits == 0 and k == 0)
        """)


def test_several_are_given_together(on_gpus):
    on_gpus("""
        n = 8
        def made(rank):
            parts = [(numbers("all_reduce", ("a",), n), ("input", k, 0), ("output", k, 0))
                     for k in range(3)]
            return rt.CudaProgram([], [("collective", 0, parts)], [spec(n)] * 3, [spec(n)] * 3, [],
                                  0, rank)
        mesh, both = mesh_of(2), [made(r) for r in range(2)]
        leaves = [[on(r, np.full(n, 10 * k + r)) for k in range(3)] for r in range(2)]
        for outs in run(mesh, both, leaves, [("a",)]):
            assert [float(o[0]) for o in outs] == [1, 21, 41]
        assert (read("launches"), read("most_together"), read("calls")) == (2, 3, 6)
        """)


def test_collectives_of_every_kind_as_steps(on_gpus):
    on_gpus("""
        mesh = mesh_of(2, 2)
        x = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
        cases = {
            ("all_gather", ("b",), 8, (), 16): lambda r, g: np.concatenate([x[q] for q in g]),
            ("reduce_scatter", ("a",), 4, (), 4): lambda r, g: sum(x[q] for q in g)[
                4 * g.index(r):][:4],
            ("all_to_all", ("b", "a"), 2, (), 8): lambda r, g: np.concatenate(
                [x[q, 2 * g.index(r):][:2] for q in g]),
            ("permute", ("a", "b"), 8, (0, 1, 1, 3), 8): lambda r, g: {1: x[0], 3: x[1]}.get(
                r, 0 * x[0])}
        for (kind, axes, count, rest, n), expected in cases.items():
            for step in (lambda at: ("collective", 0, [(numbers(kind, axes, count, rest=rest),
                                                        *at)]),
                         lambda at: ("library", "collective",
                                     numbers(kind, axes, count, rest=rest), at)):
                made = [rt.CudaProgram([], [step((("input", 0, 0), ("output", 0, 0)))], [spec(8)],
                                       [spec(n)], [], 0, r) for r in range(4)]
                for _ in range(2):
                    outs = run(mesh, made, [[on(r, x[r])] for r in range(4)], [axes])
                    for r, (out,) in enumerate(outs):
                        assert np.array_equal(out, expected(r, mesh.group(r, axes))), kind
        """, count=4)


def test_failures(on_gpus):
    on_gpus(STEPS + """
        mesh, both = mesh_of(2), [made(r) for r in range(2)]
        xs = [[on(r, np.ones(8))] for r in range(2)]
        run(mesh, both, xs, [("a",)])
        fail_with(5)
        with raises(errors.DeviceError) as error:
            run(mesh, [made(r) for r in range(2)], xs, [("a",)])
        assert "invalid usage" in str(error) and "a cable is loose" in str(error), str(error)
        fail_with(0)
        for _ in range(3):  # the groups are connected anew, and graphs of the old ones forgotten
            outs = run(mesh, both, xs, [("a",)])
            assert all(np.array_equal(o[0], np.full(8, 7)) for o in outs)

        connection = connections[mesh]
        before = connection.communicators(("a",))
        with raises(TypeError):  # before anything is given to the devices: the groups stay
            run(mesh, both, [[on(r, np.ones(9))] for r in range(2)], [("a",)])
        assert connection.communicators(("a",)) is before
        def one_fails(member):
            if member.rank == 1:
                raise ValueError("no luck")
            out = np.empty(3, np.float32)
            member.group(("a",)).all_reduce(np.ones(3, np.float32), out, "sum")
        with raises(ValueError) as error:
            connection.run(one_fails)
        assert "no luck" in str(error) and "gpu:1" in error.error.__notes__[0]
        assert connection.run(lambda m: m.rank) == [0, 1]

        def nested(member):
            connection.run(lambda m: None)
        with raises(errors.CollectiveError) as error:
            connection.run(nested)
        assert "one program at a time" in str(error)
        """)


def test_arrays_over_gpus(on_gpus):
    on_gpus("""
        mesh = mesh_of(2, 2)
        x = np.arange(32, dtype=np.float32).reshape(8, 4)
        for spec_ in (P("a", "b"), P("b"), P(None, ("a", "b")), P()):
            y = ft.device_put(x, NamedSharding(mesh, spec_))
            assert [s.data.device for s in y.addressable_shards] == ft.devices("gpu")
            assert np.array_equal(y, x)
        there = ft.device_put(x, "gpu:2")
        y = ft.device_put(there, NamedSharding(mesh, P()))
        assert [s.data.device for s in y.addressable_shards] == ft.devices("gpu")
        assert all(np.array_equal(s.data, x) for s in y.addressable_shards)
        """, count=4)


def test_a_callback_that_exchanges_the_id(on_gpus):
    on_gpus("""
        told, stops = [], []
        def broadcast(data, source, processes):
            told.append((len(data), source, processes))
            return data
        from functrans.device import Device
        mesh = ft.make_mesh((2,), ("a",), devices=[*ft.devices("gpu")[:1], Device("gpu", 0, 1)])
        with raises(errors.BackendError) as error:
            NcclEngine().connect(mesh).run(lambda m: m.group(("a",)))
        assert "initialize" in str(error)
        connection = NcclEngine(broadcast, stops.append).connect(mesh)
        found, = connection.run(lambda m: m.group(("a",)))
        assert (found.index, found.size, told) == (0, 2, [(128, 0, [0, 1])])
        stops[0]()
        assert found.communicator.aborted
        """)


def test_jitted_programs_of_collectives(on_gpus):
    on_gpus("""
        from functrans import lax
        mesh = mesh_of(2)
        x = np.arange(8, dtype=np.float32)
        y = ft.device_put(x, NamedSharding(mesh, P("a")))
        f = ft.jit(ft.shard_map(lambda x: (lax.psum(x, "a"), lax.ppermute(x, "a", [(0, 1)])), mesh,
                                P("a"), (P(), P("a"))))
        for _ in range(4):
            total, moved = f(y)
            assert np.array_equal(np.asarray(total), x[:4] + x[4:])
            assert np.array_equal(np.asarray(moved), np.r_[np.zeros(4), x[:4]])
            assert [s.data.device for s in moved.addressable_shards] == ft.devices("gpu")
        assert fake.fake_graph_launches > 0

        fails = []
        def callback(x):
            if fails:
                raise ValueError("no luck")
            return np.asarray(x) * 2
        def g(x):
            z = ft.pure_callback(callback, ft.ShapeDtypeStruct((4,), "float32"), lax.psum(x, "a"))
            return lax.psum(z, "a")
        g = ft.jit(ft.shard_map(g, mesh, P("a"), P(), check_vma=False))
        for _ in range(2):
            assert np.array_equal(np.asarray(g(y)), 4 * (x[:4] + x[4:]))
        fails.append(1)
        with raises(Exception) as error:
            g(y)
        assert "no luck" in str(error)
        fails.clear()
        for _ in range(2):
            assert np.array_equal(np.asarray(g(y)), 4 * (x[:4] + x[4:]))
            assert np.array_equal(np.asarray(f(y)[0]), x[:4] + x[4:])
        """)


def test_collectives_beside_kernels_take_few_programs(on_gpus):
    on_gpus("""
        from functrans.distributed.gpus import FEW_PROGRAMS, PROGRAMS_BESIDE
        few = lambda n: (0, key_of(("a",)) + FEW_PROGRAMS, 0, F32, n)
        def made(rank):
            part = (few(8), ("input", 0, 0), ("output", 0, 0))
            return rt.CudaProgram([], [("collective", 0, [part])], [spec(8)], [spec(8)], [], 0,
                                  rank)
        mesh, both = mesh_of(2), [made(r) for r in range(2)]
        assert both[0].collective_keys == [key_of(("a",)) + FEW_PROGRAMS]
        for outs in run(mesh, both, [[on(r, np.full(8, r + 1))] for r in range(2)], [("a",)]):
            assert np.array_equal(outs[0], np.full(8, 3))
        assert read("most_programs") == PROGRAMS_BESIDE
        """)
