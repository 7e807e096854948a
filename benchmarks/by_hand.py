"""Programs over lanes that were written by hand: C++ with vectors on a CPU, CUDA on a GPU."""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HEADER = Path(__file__).parent / "by_hand.h"
TYPES = {"float32": "float", "int32": "int", "uint32": "unsigned int"}
FLAGS = ("-x", "c++", "-std=c++17", "-O3", "-march=native", "-fopenmp", "-fno-math-errno",
         "-fno-trapping-math", "-fPIC", "-shared", "-Wno-psabi")  # fmt: skip
CUDA_FLAGS = ("-std=c++17", "--prec-div=false", "--prec-sqrt=false")  # 2 ULP, as in Triton
BLOCK = 128
"""Threads of a block on a GPU, unless the program says otherwise."""
CHUNK = 4
"""Turns of the loop over lanes that a thread of a CPU takes at a time."""

CPU_ENTRY = """
extern "C" void run({parameters}) {{
#pragma omp parallel for schedule(dynamic, {chunk})
    for (int i = 0; i < LANES; i += WIDTH * UNROLL) lane(i, {names});
}}
"""
GPU_ENTRY = """
extern "C" __global__ void __launch_bounds__({block}) run({parameters}) {{
    int i = blockIdx.x * {block} + threadIdx.x;
    if (i < LANES) lane(i, {names});
}}
"""


class NoLibrary:
    """Stands for a library where only the arguments of a program are made."""

    def __getattr__(self, name: str) -> NoLibrary:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoLibrary:
        return self


def lanes_of(program: ModuleType, sizes: Mapping[str, int]) -> int:
    """How many lanes a program has."""
    return int(np.prod(program.outputs(**sizes)[0][0][: getattr(program, "AXES", 1)]))


def source(program: ModuleType, sizes: Mapping[str, int], arguments: Sequence[np.ndarray],
           gpu: bool) -> str:  # fmt: skip
    """The text of a program for arguments of these dtypes, the entry `run` last."""
    results = program.outputs(**sizes)
    parameters = [f"const {TYPES[np.asarray(x).dtype.name]} *__restrict__ a{k}"
                  for k, x in enumerate(arguments)]  # fmt: skip
    parameters += [f"{TYPES[np.dtype(dtype).name]} *__restrict__ r{k}"
                   for k, (_, dtype) in enumerate(results)]  # fmt: skip
    macros = {name.upper(): size for name, size in sizes.items()}
    macros |= {"LANES": lanes_of(program, sizes), "UNROLL": getattr(program, "UNROLL", 1)}
    entry = (GPU_ENTRY if gpu else CPU_ENTRY).format(
        parameters=", ".join(parameters), block=getattr(program, "BLOCK", BLOCK), chunk=CHUNK,
        names=", ".join(text.split()[-1] for text in parameters))  # fmt: skip
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    return "\n".join([*lines, HEADER.read_text(), program.BY_HAND, entry])


def compiler() -> str:
    """The C++ compiler, which has to know gcc's vectors."""
    return os.environ.get("CXX", "g++")


def entry_of(text: str, folder: Path) -> Callable[..., None]:
    """The entry of a text for a CPU."""
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        libraries = ["-lmvec", "-lm"] if platform.machine() == "x86_64" else ["-lm"]
        done = subprocess.run([compiler(), *FLAGS, "-", "-o", path, *libraries], input=text,
                              text=True, capture_output=True)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{compiler()}: {done.stderr}")
    entry: Callable[..., None] = ctypes.CDLL(str(path)).run
    return entry


def on_cpu(program: ModuleType, sizes: Mapping[str, int], arguments: Sequence[np.ndarray],
           folder: Path) -> Callable[[], list[np.ndarray]]:  # fmt: skip
    """A call of the program, which writes to the same arrays each time."""
    entry = entry_of(source(program, sizes, arguments, gpu=False), folder)
    kept = [np.ascontiguousarray(x) for x in arguments]
    results = [np.zeros(shape, dtype) for shape, dtype in program.outputs(**sizes)]

    def run() -> list[np.ndarray]:
        entry(*[ctypes.c_void_p(x.ctypes.data) for x in (*kept, *results)])
        return results

    return run


def on_gpu(program: ModuleType, sizes: Mapping[str, int],
           arguments: Sequence[np.ndarray]) -> Callable[[], list[Any]]:  # fmt: skip
    """A launch of the program, which writes to the same arrays each time."""
    cupy = importlib.import_module("cupy")
    text = source(program, sizes, arguments, gpu=True)
    kernel = cupy.RawModule(code=text, options=CUDA_FLAGS).get_function("run")
    results = [cupy.zeros(shape, dtype) for shape, dtype in program.outputs(**sizes)]
    pointers = (*(cupy.asarray(x) for x in arguments), *results)
    block = getattr(program, "BLOCK", BLOCK)
    grid = -(-lanes_of(program, sizes) // block)

    def run() -> list[Any]:
        kernel((grid,), (block,), pointers)
        return results

    return run


def compiled(program: ModuleType, sizes: Mapping[str, int], arguments: Sequence[np.ndarray],
             folder: Path, gpu: bool) -> Callable[[], list[Any]]:  # fmt: skip
    """A call of the program on a GPU or CPU."""
    if gpu:
        return on_gpu(program, sizes, arguments)
    return on_cpu(program, sizes, arguments, folder)


def gpu_name() -> str:
    """The kind of the GPU that CuPy has; empty without one."""
    try:
        cupy = importlib.import_module("cupy")
        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:  # no CuPy, no driver, no GPU
        return ""


def synchronize() -> None:
    """Wait for the GPU."""
    importlib.import_module("cupy").cuda.runtime.deviceSynchronize()


def compilers() -> dict[str, str]:
    """The version of the C++ compiler."""
    try:
        done = subprocess.run([compiler(), "--version"], text=True, capture_output=True)
    except FileNotFoundError:
        return {}
    return {"compiler": done.stdout.splitlines()[0]} if done.returncode == 0 else {}
