"""The fake CUDA driver: compiled once, opened in a fresh process for each test."""

import ctypes
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parent / "fake_driver.c"
KERNELS = b"FAKE\nadd pppi\nscale ppfi\nincrement pi\nscratch ppipp\nmany pldp\nbelow ppfi\n"

HEAD = """
import gc, sys, threading
sys.path.insert(0, {folder!r})
import numpy as np
import functrans as ft
from functrans import _runtime as rt
from functrans.core import eager, errors
from fake import Fake, KERNELS, add_program, chain_program, kernel, raises
fake = Fake({library!r})
def gpu(values, dtype=np.float32):
    return ft.device_put(np.asarray(values, dtype), "gpu")
# the fake runs no kernels: operations outside of jit are computed by the host
eager.set_gpu_evaluator(lambda primitive, args, params: primitive.evaluate_eagerly(args, params))
def wait_eagerly():
    fake.fake_eager = 1
"""


def build(folder):
    library = Path(folder) / "libcuda_fake.so"
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", str(library),
                    str(SOURCE), "-lpthread"], check=True)
    return str(library)


def run(library, code, opened=True):
    """Run code in a fresh interpreter where the fake is the driver; its output."""
    head = HEAD.format(folder=str(SOURCE.parent), library=library)
    script = head + ("assert rt.cuda_open(fake.path)\n" if opened else "") + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


class Fake:
    """The fake's counters and switches as attributes."""

    LONGS = ("limit", "allocated", "allocations", "launches", "graph_launches", "instantiations",
             "node_updates", "fail_updates", "loads", "unloads", "waits", "launch_sleep_us",
             "calls", "captures")

    def __init__(self, path):
        self.__dict__.update(path=path, library=ctypes.CDLL(path))

    def _variable(self, name):
        kind = ctypes.c_long if name.removeprefix("fake_") in self.LONGS else ctypes.c_int
        if name in ("fake_last_grid", "fake_last_block"):
            kind = ctypes.c_uint * 3
        if name == "fake_last_kernel":
            kind = ctypes.c_char * 64
        if name == "fake_conditions_ptx":
            kind = ctypes.c_char * 8192
        return kind.in_dll(self.library, name)

    def __getattr__(self, name):
        variable = self._variable(name)
        return getattr(variable, "value", None) if hasattr(variable, "value") else list(variable)

    def __setattr__(self, name, value):
        self._variable(name).value = value


class raises:
    """`with raises(cls) as error`; str(error) is the message."""

    def __init__(self, cls):
        self.cls, self.error = cls, None

    def __enter__(self):
        return self

    def __exit__(self, cls, error, traceback):
        assert error is not None, f"{self.cls.__name__} was not raised"
        self.error = error
        return isinstance(error, self.cls)

    def __str__(self):
        return str(self.error)


def kernel(name, shared=0, warps=4, scratch=0, waits=False):
    """One of the fake's kernels as a CudaProgram takes it."""
    kinds = {"add": "pppi", "scale": "ppfi", "increment": "pi", "scratch": "ppi", "many": "pldp",
             "below": "ppfi"}
    return (name, KERNELS, shared, warps, kinds[name], scratch, *[True] * waits)


def add_program(program, n=8, **options):
    """x + y of float32[n]."""
    launch = ("launch", 0, (2, 1, 1),
              (("input", 0, 0), ("input", 1, 0), ("output", 0, 0), n))
    spec = ("float32", (n,))
    return program([kernel("add")], [launch], [spec, spec], [spec], [], 0, **options)


def chain_program(program, n=8, length=3, waits=False, **options):
    """(x * 2 ** length) through the arena, float32[n], and its first half again."""
    steps = []
    place = ("input", 0, 0)
    for i in range(length):
        target = ("arena", 0, 512 * (i % 2)) if i + 1 < length else ("output", 0, 0)
        steps.append(("launch", 0, (1, 1, 1), (place, target, 2.0, n)))
        place = target
    steps.append(("fill", ("output", 1, 0), 4 * n, 0))
    steps.append(("copy", ("output", 1, 0), ("output", 0, 0), 2 * n))
    spec = ("float32", (n,))
    kernels = [kernel("scale", waits=waits)]
    return program(kernels, steps, [spec], [spec, spec], [], 1024, **options)
