"""The CUDA runtime on a real GPU: `pytest -m gpu tests/cuda`.

Kernels are PTX text, which the driver compiles itself.
"""

import subprocess
import sys
import textwrap
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
from functrans import _runtime as rt
from functrans.core.errors import BackendError, DeviceMemoryError, DonatedArrayError

pytestmark = pytest.mark.gpu

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
INDEX = """
  .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %d<8>;
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %n;
  @%p1 bra END;
  mul.wide.s32 %d4, %r5, 4;
"""
PTX = HEAD + """
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n) {
  .reg .b32 %n; ld.param.u32 %n, [n];
""" + INDEX + """
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u64 %d3, [z];
  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;
  ld.f32 %f1, [%d5]; ld.f32 %f2, [%d6]; add.f32 %f3, %f1, %f2; st.f32 [%d7], %f3;
END:
  ret;
}
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 s, .param .u32 n) {
  .reg .b32 %n; ld.param.u32 %n, [n];
""" + INDEX + """
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.f32 %f2, [s];
  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4;
  ld.f32 %f1, [%d5]; mul.f32 %f3, %f1, %f2; st.f32 [%d6], %f3;
END:
  ret;
}
.visible .entry spin(.param .u64 cycles) {
  .reg .pred %p<2>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [cycles];
  mov.u64 %d2, %clock64;
LOOP:
  mov.u64 %d3, %clock64;
  sub.s64 %d4, %d3, %d2;
  setp.lt.s64 %p1, %d4, %d1;
  @%p1 bra LOOP;
  ret;
}
.visible .entry fault(.param .u64 x) {
  .reg .b64 %d<2>; .reg .b32 %r<2>;
  mov.u64 %d1, 64; mov.u32 %r1, 1; st.global.u32 [%d1], %r1;
  ret;
}
.extern .shared .align 16 .b8 dynamic[];
.visible .entry shared(.param .u64 y, .param .u32 last) {
  .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [y]; ld.param.u32 %r1, [last];
  mov.u32 %r2, dynamic; add.s32 %r3, %r2, %r1;
  st.shared.f32 [%r3], 0f40A00000;
  ld.shared.f32 %f1, [%r3]; st.f32 [%d1], %f1;
  ret;
}
"""
F32 = "float32"


def kernel(name, shared=0):
    kinds = {"add": "pppi", "scale": "ppfi", "spin": "l", "fault": "p", "shared": "pi"}
    return (name, PTX, shared, 4, kinds[name], 0)


def grid(n):
    return ((n + 127) // 128, 1, 1)


def gpu(values, dtype=np.float32):
    return ft.device_put(np.asarray(values, dtype), "gpu")


def add_program(n, **options):
    return rt.CudaProgram(
        [kernel("add")], [("launch", 0, grid(n), (("input", 0, 0), ("input", 1, 0),
                                                  ("output", 0, 0), n))],
        [(F32, (n,))] * 2, [(F32, (n,))], [], 0, **options)


def spin_and_scale(n, cycles, **options):
    """2 x, after so many cycles."""
    return rt.CudaProgram(
        [kernel("spin"), kernel("scale")],
        [("launch", 0, (1, 1, 1), (cycles,)),
         ("launch", 1, grid(n), (("input", 0, 0), ("output", 0, 0), 2.0, n))],
        [(F32, (n,))], [(F32, (n,))], [], 0, **options)


def chain(n, length):
    """x * 2 ** length through an arena of two places, then a fill and a copy into its half."""
    steps, place = [], ("input", 0, 0)
    stride = -(-4 * n // 256) * 256
    for i in range(length):
        target = ("arena", 0, stride * (i % 2)) if i + 1 < length else ("output", 0, 0)
        steps.append(("launch", 0, grid(n), (place, target, 2.0, n)))
        place = target
    steps += [("fill", ("output", 1, 0), 4 * n, 255),
              ("copy", ("output", 1, 0), ("output", 0, 0), 4 * (n // 2))]
    return rt.CudaProgram([kernel("scale")], steps, [(F32, (n,))], [(F32, (n,))] * 2, [],
                          2 * stride)


def test_the_device_is_described():
    device = ft.devices("gpu")[0]
    print(device.device_kind, device.compute_capability)
    assert device.device_kind and device.compute_capability >= (7, 0)
    name, major, _, multiprocessors, total, shared = rt.cuda_devices()[0]
    assert name == device.device_kind and major >= 7 and multiprocessors > 10
    assert total > 1 << 30 and shared >= 48 << 10
    stats = device.memory_stats()
    assert 0 < stats["bytes_free_on_device"] <= stats["bytes_limit"] <= total


def test_copies_of_all_sizes():
    rng = np.random.default_rng(0)
    chunk = 4 << 20
    for n in (0, 1, 3, 255, 65_535, 65_536, 65_537, chunk - 1, chunk, chunk + 1, 5 * chunk + 7):
        x = rng.integers(0, 255, n, dtype=np.uint8)
        y = ft.device_put(x, "gpu")
        x_before = x.copy()
        x[:] = 0  # the array does not see what is written after the call
        assert np.array_equal(np.asarray(y), x_before), n


@pytest.mark.parametrize("dtype", [
    np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64,
    np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_copies_of_all_dtypes(dtype):
    x = np.random.default_rng(1).integers(0, 2, (3, 5, 7)).astype(dtype)
    y = ft.device_put(x, "gpu")
    assert y.dtype == x.dtype and y.shape == x.shape and y.device == ft.devices("gpu")[0]
    assert np.array_equal(np.asarray(y), x)


def test_copies_are_fast():
    x = np.ones(64 << 20, np.float32)
    for _ in range(2):
        start = time.perf_counter()
        y = ft.device_put(x, "gpu").block_until_ready()
        put = time.perf_counter() - start
        start = time.perf_counter()
        back = np.asarray(y)
        got = time.perf_counter() - start
    print(f"host to device {x.nbytes / put / 1e9:.1f} GB/s, back {x.nbytes / got / 1e9:.1f} GB/s")
    assert back[-1] == 1 and put < 1 and got < 1


def test_a_kernel_computes():
    for n in (1, 127, 128, 100_003):
        x = np.random.default_rng(n).random(n).astype(np.float32)
        y, = add_program(n)([gpu(x), x])
        assert np.array_equal(np.asarray(y), x + x)


def test_a_kernel_with_much_shared_memory():
    size = rt.cuda_devices()[0][5]
    program = rt.CudaProgram([kernel("shared", shared=size)],
                             [("launch", 0, (1, 1, 1), (("output", 0, 0), size - 16))], [],
                             [(F32, ())], [], 0)
    assert float(program([])[0]) == 5
    too_much = rt.CudaProgram([kernel("shared", shared=size + 1024)], [], [], [], [], 0)
    with pytest.raises(RuntimeError, match="bytes of shared memory"):
        too_much([])


def test_calls_return_before_the_device_is_done():
    n = 1000
    program = spin_and_scale(n, 200_000_000)  # a tenth of a second or so
    x = gpu(np.arange(n))
    program([x])[0].block_until_ready()
    begin, end = rt.CudaEvent().record(), rt.CudaEvent()
    start = time.perf_counter()
    y, = program([x])
    end.record()
    enqueued = time.perf_counter() - start
    assert not end.query()
    assert np.array_equal(np.asarray(y), 2 * np.arange(n))
    elapsed = begin.elapsed_ms(end)
    print(f"enqueued in {enqueued * 1e6:.0f} us, ran for {elapsed:.1f} ms")
    assert elapsed > 20 and enqueued < elapsed / 1000 / 4


def test_uploads_overlap_with_kernels_and_stay_in_order():
    n = 1 << 22
    program = spin_and_scale(n, 100_000_000)
    x = gpu(np.ones(n))
    x.block_until_ready()
    for k in range(5):
        y, = program([x])
        x = gpu(np.full(n, k + 1))  # often where the old x was, which the kernel still reads
        z, = add_program(n)([x, x])
        assert (np.asarray(y) == 2 * max(k, 1)).all(), k
        assert (np.asarray(z) == 2 * (k + 1)).all()


def test_arrays_may_die_while_kernels_wait():
    n = 1 << 16
    add, slow = add_program(n), spin_and_scale(n, 50_000_000)
    total, = slow([np.zeros(n, np.float32)])
    for k in range(300):
        total, = add([total, gpu(np.full(n, k % 7))])
    assert (np.asarray(total) == sum(k % 7 for k in range(300))).all()


def test_graphs_replay_with_other_buffers():
    n = 1003
    program = chain(n, 9)
    kept = []
    for k in range(50):
        x = gpu(np.arange(n) + k)
        kept.append((k, *program([x])))
    for k, out, half in kept:
        assert np.array_equal(np.asarray(out), (np.arange(n) + k) * 512.0)
        assert np.array_equal(np.asarray(half)[:n // 2], (np.arange(n // 2) + k) * 512.0)
        assert np.isnan(np.asarray(half)[n // 2:]).all()
    print(program.stats)
    assert program.stats["replays"] == 49
    x = gpu(np.arange(n))
    for _ in range(100):
        out, half = program([x])
        del half
    assert np.array_equal(np.asarray(out), np.arange(n) * 512.0)


def test_overheads():
    n = 8
    x = gpu(np.ones(n))
    for name, program, leaves, bound in (("one launch", add_program(n), [x, x], 30),
                                         ("graph of 22 steps", chain(n, 20), [x], 60)):
        for _ in range(50):
            program(leaves)
        rt.cuda_synchronize(0)
        start = time.perf_counter()
        for _ in range(300):
            program(leaves)
        enqueued = (time.perf_counter() - start) / 300 * 1e6
        rt.cuda_synchronize(0)
        whole = (time.perf_counter() - start) / 300 * 1e6
        print(f"{name}: {enqueued:.1f} us to enqueue, {whole:.1f} us in all")
        assert enqueued < bound
    for size in (1000, 3 << 20):
        cost = rt.cuda_time_pool(0, size, 10_000)
        print(f"{size} bytes from the pool and back: {cost:.0f} ns")
        assert cost < 1000


def test_host_steps():
    n = 50_000
    program = rt.CudaProgram(
        [kernel("scale")],
        [("launch", 0, grid(n), (("input", 0, 0), ("arena", 0, 0), 2.0, n)),
         ("host", lambda a: [a + 1], [(("arena", 0, 0), F32, (n,))],
          [(("arena", 0, 0), F32, (n,))]),
         ("launch", 0, grid(n), (("arena", 0, 0), ("output", 0, 0), 10.0, n))],
        [(F32, (n,))], [(F32, (n,))], [], 4 * n)
    x = np.arange(n, dtype=np.float32)
    for _ in range(3):
        assert np.array_equal(np.asarray(program([gpu(x)])[0]), (2 * x + 1) * 10)


def test_donation_in_place():
    n = 1000
    program = rt.CudaProgram(
        [kernel("add")], [("launch", 0, grid(n), (("output", 0, 0), ("output", 0, 0),
                                                  ("output", 0, 0), n))],
        [(F32, (n,))], [(F32, (n,), 0)], [], 0, donated=[0])
    x = gpu(np.ones(n))
    place = rt.cuda_pointer(x)[0]
    y, = program([x])
    assert rt.cuda_pointer(y)[0] == place and (np.asarray(y) == 2).all()
    with pytest.raises(DonatedArrayError):
        np.asarray(x)


def test_memory_stats_and_out_of_memory():
    device = ft.devices("gpu")[0]
    before = device.memory_stats()
    x = rt.cuda_empty((100 << 20,), np.uint8)
    after = device.memory_stats()
    assert after["bytes_in_use"] - before["bytes_in_use"] == 100 << 20
    assert after["bytes_reserved"] >= after["bytes_in_use"]
    with pytest.raises(DeviceMemoryError, match="out of memory on gpu:0") as caught:
        rt.cuda_empty((after["bytes_limit"],), np.uint8)
    print(caught.value)
    del x
    device.release_cached()
    assert device.memory_stats()["bytes_reserved"] <= before["bytes_reserved"] + (32 << 20)
    half = int(device.memory_stats()["bytes_free_on_device"] * 0.6)
    for _ in range(3):  # each fits only when the one before has been given back
        y = rt.cuda_empty((half,), np.uint8)
        y = rt.cuda_empty((1,), np.uint8)
        z = rt.cuda_empty((half + (64 << 20),), np.uint8)
        del y, z
    device.release_cached()
    assert (np.asarray(gpu(np.ones(10))) == 1).all()


def test_threads():
    n, wrong = 1000, []
    program = chain(n, 5)

    def work(k):
        for i in range(100):
            out, _ = program([gpu(np.arange(n) + k + i)])
            if not np.array_equal(np.asarray(out), (np.arange(n) + k + i) * 32.0):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_dlpack_round_trip():
    for dtype in (np.float32, np.bool_, ml_dtypes.bfloat16):
        x = ft.device_put(np.arange(6).reshape(2, 3).astype(dtype), "gpu")
        for options in ({}, {"max_version": (1, 0)}, {"stream": 2}, {"stream": -1}):
            y = rt.cuda_import_dlpack(x.__dlpack__(**options))
            assert rt.cuda_pointer(y)[0] == rt.cuda_pointer(x)[0]
            assert np.array_equal(np.asarray(y), np.asarray(x))


def test_the_cuda_array_interface():
    x = gpu(np.arange(12).reshape(3, 4))

    class Other:
        __cuda_array_interface__ = x.__cuda_array_interface__

    y = ft.dlpack.from_dlpack(Other())
    assert rt.cuda_pointer(y)[0] == rt.cuda_pointer(x)[0] and np.array_equal(y, x)


def run_python(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


PREAMBLE = f"""
import os, sys
import numpy as np
import functrans as ft
from functrans import _runtime as rt
from functrans.core import errors
PTX = {PTX!r}
def fault(name):
    return rt.CudaProgram([("fault", PTX, 0, 4, "p", 0)],
                          [("launch", 0, (1, 1, 1), (("output", 0, 0),))], [], [("float32", ())],
                          [], 0, name=name)
"""


def test_a_kernel_that_fails_is_fatal_and_named():
    out = run_python(PREAMBLE + """
x = ft.device_put(np.ones(3), "gpu").block_until_ready()
try:
    np.asarray(fault("jit of loss")([])[0])
except errors.KernelFaultError as error:
    print(error)
for use in (lambda: np.asarray(x), lambda: ft.device_put(np.ones(3), "gpu")):
    try:
        use()
    except errors.KernelFaultError:
        print("again")
""")
    print(out)
    assert "a kernel failed on the GPU" in out and "jit of loss" in out and out.count("again") == 2


def test_a_fork_cannot_use_it():
    out = run_python(PREAMBLE + """
x = ft.device_put(np.ones(3), "gpu").block_until_ready()
if os.fork() == 0:
    try:
        np.asarray(x)
    except errors.ForkedDeviceError:
        print("refused")
    del x
    sys.stdout.flush()
    sys.exit(0)
os.wait()
print(np.asarray(x).sum())
""")
    assert out.split() == ["refused", "3.0"]


def test_a_cubin_of_nothing_is_refused():
    broken = rt.CudaProgram([("add", b"no cubin", 0, 4, "pppi", 0)], [], [], [], [], 0)
    with pytest.raises(BackendError, match="kernel add"):
        broken([])
