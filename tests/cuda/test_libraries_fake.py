"""Steps that libraries do: order, plans, workspaces, failures, with libraries of no device."""

import subprocess
import textwrap
from pathlib import Path

import pytest

HEAD = """
import ctypes
from functrans.core import cuda_libraries as files
library = ctypes.CDLL({path!r})
def read(name): return ctypes.c_int.in_dll(library, "fake_" + name).value
def fail_with(status): ctypes.c_int.in_dll(library, "fake_fail").value = status
def load(*names):
    for name in names: assert rt.cuda_load_library(name, {path!r}) is None
def place(kind, index=0): return (kind, index, 0)
def program(function, numbers, ins, outs, **options):
    specs = lambda arrays: [(x.dtype.name, x.shape) for x in arrays]
    step = ("library", function, numbers, [*[place("input", k) for k in range(len(ins))],
                                           *[place("output", k) for k in range(len(outs))]])
    made = rt.CudaProgram([], [step], specs(ins), specs(outs), [], 0, **options)
    return lambda: [np.asarray(x) for x in made([ft.device_put(x, "gpu") for x in ins])]
rng = np.random.default_rng(0)
def numbers(*shape, dtype="complex64"):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
"""


@pytest.fixture(scope="session")
def libraries(library):
    path = Path(library).with_name("libfake_libraries.so")
    source = Path(__file__).parent / "fake_libraries.c"
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", str(path), str(source), library,
                    "-lm"], check=True)
    return str(path)


@pytest.fixture
def on_libraries(on_fake, libraries):
    return lambda code: on_fake(HEAD.format(path=libraries) + textwrap.dedent(code))


def test_transforms(on_libraries):
    on_libraries("""
        load("cufft")
        for wide in (0, 1):
            z, x = numbers(2, 3, 4, 5, dtype=("complex64", "complex128")[wide]), None
            x = z.real.copy()
            for rank in (1, 2, 3):
                axes, lengths = tuple(range(-rank, 0)), z.shape[-rank:]
                batch = int(np.prod(z.shape[:-rank]))
                for kind, ins, f in ((0, z, np.fft.fftn), (1, z, np.fft.ifftn),
                                     (2, x, np.fft.rfftn)):
                    expected = f(ins, axes=axes).astype(z.dtype)
                    expected *= np.prod(lengths) if kind == 1 else 1
                    out, = program("fft", (kind, wide, batch, *lengths), [ins], [expected])()
                    assert np.allclose(out, expected, atol=1e-4)
            half = z[..., :3].copy()
            expected = np.fft.irfft(half, 5).astype(x.dtype) * 5
            out, = program("fft", (3, wide, 24, 5), [half], [expected])()
            assert np.allclose(out, expected, atol=1e-4)
        """)


def test_plans_are_kept_and_memory_goes_back(on_libraries):
    on_libraries("""
        load("cufft")
        z = numbers(4, 8)
        for _ in range(3):
            for kind in (0, 1):  # one plan for both directions
                program("fft", (kind, 0, 4, 8), [z], [z])()
        assert (read("plans_made"), read("transforms")) == (1, 6)
        for n in range(1, 100):
            z = numbers(n)
            for _ in range(2):
                out, = program("fft", (0, 0, 1, n), [z], [z])()
            assert np.allclose(out, np.fft.fft(z), atol=1e-3)
        assert read("plans_made") == 100 and read("plans_alive") == 64
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)


def test_a_spectrum_keeps_what_it_is(on_libraries):
    on_libraries("""
        load("cufft")
        half = numbers(3, 5)
        x = gpu(half, np.complex64)
        out = np.fft.irfft(half, 8).astype("f") * 8
        step = ("library", "fft", (3, 0, 3, 8), [place("input"), place("output")])
        spec, result = ("complex64", (3, 5)), ("float32", (3, 8))
        made = rt.CudaProgram([], [step, step], [spec], [result], [], 0)
        for _ in range(3):
            assert np.allclose(made([x])[0], out, atol=1e-4)
        assert np.array_equal(x, half)
        """)


def test_order_among_kernels(on_libraries):
    on_libraries("""
        load("cufft")
        z = numbers(16)
        arena = ("arena", 0, 0)
        steps = [("launch", 0, (1, 1, 1), (place("input"), arena, 2.0, 32)),
                 ("library", "fft", (0, 0, 1, 16), [arena, place("output")]),
                 ("launch", 0, (1, 1, 1), (place("output"), arena, 3.0, 32)),
                 ("library", "fft", (1, 0, 1, 16), [arena, place("output")])]
        spec = ("complex64", (16,))
        made = rt.CudaProgram([kernel("scale")], steps, [spec], [spec], [], 128)
        waits = fake.fake_waits
        outs = [made([ft.device_put(z, "gpu")])[0] for _ in range(5)]
        assert fake.fake_launches == 0  # nothing has run: nothing was waited for
        assert all(np.allclose(out, 6 * 16 * z, atol=1e-3) for out in outs)
        assert made.stats["replays"] == 0 and made.stats["launches"] == 10
        """)


def test_graphs_end_at_a_library_and_begin_after_it(on_libraries):
    on_libraries("""
        load("cufft")
        z = numbers(16)
        arena = [("arena", 0, 128 * k) for k in range(3)]
        scale = lambda source, target: ("launch", 0, (1, 1, 1), (source, target, 2.0, 32))
        steps = [scale(place("input"), arena[0]), scale(arena[0], arena[1]),
                 ("library", "fft", (0, 0, 1, 16), [arena[1], arena[2]]),
                 scale(arena[2], arena[0]), scale(arena[0], arena[1]),
                 ("copy", place("output"), arena[1], 128)]
        spec = ("complex64", (16,))
        made = rt.CudaProgram([kernel("scale")], steps, [spec], [spec], [], 384)
        arrays = [ft.device_put(k * z, "gpu") for k in range(4)]
        for _ in range(3):
            outs = [made([x])[0] for x in arrays]
            for k, out in enumerate(outs):
                assert np.allclose(out, 16 * k * np.fft.fft(z), atol=1e-2)
        stats = made.stats
        assert stats["launches"] + 2 * stats["replays"] == 4 * 12
        assert stats["replays"] >= 2 and stats["graphs_built"] >= 2
        plain = rt.CudaProgram([kernel("scale")], steps, [spec], [spec], [], 384, graphs=False)
        for _ in range(3):
            assert np.allclose(plain([arrays[1]])[0], 16 * np.fft.fft(z), atol=1e-2)
        assert plain.stats["replays"] == 0
        """)


def test_loops(on_libraries):
    on_libraries("""
        load("cufft")
        z = numbers(5, 16)
        spec = ("complex64", (5, 16))
        row = lambda kind: (kind, 0, 0, 128)  # each round is in the next row
        step = ("library", "fft", (0, 0, 1, 16), [row("input"), row("output")])
        made = rt.CudaProgram([], [("rounds", 5, [step])], [spec], [spec], [], 0)
        for _ in range(3):
            assert np.allclose(made([ft.device_put(z, "gpu")])[0], np.fft.fft(z), atol=1e-3)
        """)


def test_threads_share_plans(on_libraries):
    on_libraries("""
        load("cufft")
        wrong = []
        def work(seed):
            for n in (8, 12, 8, 16):
                z = np.random.default_rng(seed).normal(size=n).astype("complex64")
                for _ in range(10):
                    out, = program("fft", (0, 0, 1, n), [z], [z])()
                    if not np.allclose(out, np.fft.fft(z), atol=1e-3): wrong.append(n)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong and read("plans_made") == 3 and read("transforms") == 160
        """)


def test_factors_and_solves(on_libraries):
    on_libraries("""
        load("cusolver", "cublas")
        for count in (1, 3):
            a = rng.normal(size=(count, 4, 4)).astype("f")
            a = a @ a.mT + 4 * np.eye(4, dtype="f")
            a[-1, 2, 2] = -1 if count > 1 else a[-1, 2, 2]
            info = np.zeros(count, np.int32)
            out, info = program("potrf", (0, count, 4), [a], [a, info])()
            for k in range(count):
                assert info[k] == (3 if count > 1 and k == count - 1 else 0)
                if not info[k]:
                    assert np.allclose(np.tril(out[k]), np.linalg.cholesky(a[k]), atol=1e-4)
            b = rng.normal(size=(count, 4, 3)).astype("f")
            x, = program("trsm", (0, count, 1, 1, 0, 0, 3, 4), [a, b], [b])()  # lower
            assert np.allclose(np.tril(a) @ x, b, atol=1e-3)
            x, = program("trsm", (0, count, 1, 0, 1, 1, 3, 4), [a, b], [b])()  # upper, transposed
            unit = np.triu(a, 1) + np.eye(4)
            assert np.allclose(unit.mT @ x, b, atol=1e-3)
            c = b.mT.copy()
            x, = program("trsm", (0, count, 0, 1, 0, 0, 4, 3), [a, c], [c])()  # from the right
            assert np.allclose(x @ np.tril(a), c, atol=1e-3)
        assert (read("single"), read("batched"), read("handles")) == (4, 4, 2)
        a = np.stack([np.eye(4, dtype="f") * 4] * 2)
        step = lambda x: ("library", "potrf", (0, 2, 4), [x, x, place("output", 1)])
        copy = ("copy", place("output"), place("input"), a.nbytes)
        specs = [("float32", a.shape), ("int32", (2,))]
        made = rt.CudaProgram([], [copy, step(place("output"))], specs[:1], specs, [], 0)
        assert np.array_equal(made([gpu(a)])[0], a / 2)  # where the matrices are
        del made
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)


def test_failures(on_libraries):
    on_libraries("""
        z = numbers(8)
        run = program("fft", (0, 0, 1, 8), [z], [z], name="jit of spectrum")
        with raises(errors.DeviceError) as error:
            run()
        assert "cuFFT: it is not open in jit of spectrum" in str(error)
        load("cufft", "cusolver", "cublas")
        fail_with(5)
        with raises(errors.DeviceError) as error:
            run()
        assert "cuFFT: MakePlanMany: status 5 in jit of spectrum" in str(error)
        assert "functrans[gpu-libraries]" in str(error) and read("plans_alive") == 0
        fail_with(2)
        with raises(errors.DeviceMemoryError) as error:
            run()
        assert "out of memory on gpu:0: cuFFT: MakePlanMany has none" in str(error)
        assert np.allclose(run()[0], np.fft.fft(z), atol=1e-3)
        a = gpu(np.zeros(1 << 24))
        del a
        reserved = rt.cuda_memory_stats(0)["bytes_reserved"]
        fail_with(2)  # what the pool keeps goes back, and the library has room
        z = numbers(9)
        assert np.allclose(program("fft", (0, 0, 1, 9), [z], [z])()[0], np.fft.fft(z), atol=1e-3)
        assert rt.cuda_memory_stats(0)["bytes_reserved"] < reserved
        a = np.eye(3, dtype=np.float32)
        with raises(errors.DeviceError) as error:
            program("getrf", (0, 1, 3, 3), [a], [a, np.zeros(3, np.int32)])()
        assert "cuSOLVER: getrf_size: status 7" in str(error)
        del error
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)


def test_descriptions_and_files_that_are_wrong(on_libraries, libraries, tmp_path):
    bare = tmp_path / "libbare.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(bare)], check=True)
    on_libraries(f"""
        z = numbers(8)
        for function, numbers_, outs in (("no", (0, 0, 1, 8), 1), ("fft", (0, 0, 1), 1),
                                         ("fft", (0, 0, 1, 8), 2)):
            with raises(ValueError):
                program(function, numbers_, [z], [z] * outs)
        with raises(TypeError):
            program("fft", (0, 0, 1, "8"), [z], [z])
        assert "no library" in rt.cuda_load_library("curand", {str(bare)!r})
        assert "has no cufftCreate" in rt.cuda_load_library("cufft", {str(bare)!r})
        assert "absent.so" in rt.cuda_load_library("cufft", "/absent.so")
        """)


def test_jitted_functions(on_libraries, libraries):
    on_libraries(f"""
        import functrans.numpy as jnp
        files._candidates = lambda name: [{libraries!r}]
        z = ft.device_put(numbers(3, 8), "gpu")
        spectrum = ft.jit(jnp.fft.fft)
        for _ in range(3):
            out = spectrum(z)
            assert out.device == z.device
            assert np.allclose(out, np.fft.fft(np.asarray(z)), atol=1e-3)
        assert read("transforms") == 3 and read("plans_made") == 1
        """)
