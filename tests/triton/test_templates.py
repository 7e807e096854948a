"""The templates of GPU kernels: run by Triton's interpreter on NumPy buffers, compiled for sm_90.

Triton decides when it is imported whether kernels are interpreted, so cases run in processes of
their own: one that interprets, one that compiles.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

from functrans.lowering.triton.templates.kernel import Epilogue, Kernel, pointer
from functrans.lowering.triton.templates.matmul import (
    Config,
    Matmul,
    Operand,
    configs,
    kernels,
)

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
NDArray = np.ndarray[Any, Any]
Run = Callable[..., Any]
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "fp64": np.dtype(np.float64),
          "bf16": np.dtype(ml_dtypes.bfloat16), "i8": np.dtype(np.int8), "i1": np.dtype(bool),
          "i32": np.dtype(np.int32), "u8": np.dtype(np.uint8)}
NAMES = {v: k for k, v in DTYPES.items()}


class Buffer:
    """What the interpreter asks of a tensor, for memory of NumPy: no copy of it is made."""

    def __init__(self, array: NDArray) -> None:
        self.array = array
        self.dtype = NAMES[array.dtype]

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> Buffer:
        return self

    def cpu(self) -> Buffer:
        return self

    def new_empty(self, *_: Any, **__: Any) -> Buffer:
        return Buffer(self.array)

    def set_(self, storage: Buffer, *_: Any) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def copy_(self, other: Buffer) -> None:
        assert other.array is self.array


def aligned(array: NDArray) -> NDArray:
    """A copy that starts at a multiple of 16 bytes, as memory of a GPU does."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _interpret(launches: list[Kernel], tensors: dict[str, NDArray]) -> dict[str, NDArray]:
    from functrans.lowering.triton.templates.load import function  # noqa: PLC0415

    memory = {name: aligned(x) for name, x in tensors.items()}
    for kernel in launches:
        arguments = []
        for a in kernel.arguments:
            if a.name == "workspace":
                memory.setdefault("workspace", aligned(np.full(
                    kernel.workspace // 4, np.nan, np.float32)))
            arguments.append(Buffer(memory[a.name]) if a.value is None else a.value)
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            function(kernel, folder)[kernel.grid](*arguments)
    return memory


def _compile(kernel: Kernel) -> dict[str, int]:
    import triton  # noqa: PLC0415

    from functrans.lowering.triton.templates.load import compiled  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        binary = compiled(kernel, folder)
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(binary.asm["cubin"])
        tool = Path(triton.__path__[0]) / "backends" / "nvidia" / "bin" / "cuobjdump"
        usage = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True).stdout
    used = {key: int(n) for key, n in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    return used | {"shared": binary.metadata.shared, "scratch": binary.metadata.global_scratch_size,
                   "warps": binary.metadata.num_warps,
                   "wgmma": binary.asm["ptx"].count("wgmma.mma_async"),
                   "copies": binary.asm["ptx"].count("cp.async.bulk.tensor")}


@contextmanager
def _elsewhere(run: Run, interpret: str) -> Iterator[Run]:
    """A function run in a process of its own."""
    with mock.patch.dict(os.environ, TRITON_INTERPRET=interpret), ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")) as pool:
        yield lambda *arguments: pool.submit(run, *arguments).result()


@pytest.fixture(scope="module")
def interpret() -> Iterator[Run]:
    with _elsewhere(_interpret, "1") as run:
        yield run


@pytest.fixture(scope="module")
def compile_kernel() -> Iterator[Run]:
    with _elsewhere(_compile, "0") as run:
        yield run


def normal(seed: int, *shape: int) -> NDArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def operand(x: NDArray) -> Operand:
    strides = [s // x.itemsize for s in x.strides]
    return Operand(NAMES[x.dtype], *strides[-2:], tuple([0, 0, *strides[:-2]][-2:]))


def turned(x: NDArray) -> NDArray:
    """The same matrices, stored by columns."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def packed(x: NDArray) -> NDArray:
    """The elements in the order of memory."""
    return x if x.flags.c_contiguous else x.swapaxes(-1, -2)


def multiply(run: Run, a: NDArray, b: NDArray, config: Config, **fields: Any) -> NDArray:
    tensors = fields.pop("tensors", {})
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*batch, a.shape[-2], b.shape[-1]), np.nan, fields.pop("dtype", a.dtype))
    p = Matmul(a.shape[-2], b.shape[-1], a.shape[-1], operand(a), operand(b), operand(out),
               tuple([1, 1, *batch][-2:]), **fields)
    memory = run(kernels(p, config, sms=3), {"a": packed(a), "b": packed(b), "c": out, **tensors})
    return np.asarray(memory["c"])


CONFIGS = {"pointers": Config(16, 32, 16, 4, 3, descriptors=False),
           "descriptors": Config(16, 32, 16, 4, 3),
           "persistent": Config(16, 32, 32, 4, 3, persistent=True, group=2),
           "parts": Config(16, 32, 16, 4, 3, persistent=True, parts=2),
           "split": Config(16, 32, 16, 4, 3, splits=3)}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("order", ["", "a", "b", "ab"])
def test_matmul(interpret: Run, name: str, order: str) -> None:
    a, b = normal(0, 40, 72), normal(1, 72, 56)
    x, y = (turned(v) if q in order else v for q, v in zip("ab", (a, b)))
    np.testing.assert_allclose(multiply(interpret, x, y, CONFIGS[name]), a @ b, atol=3e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_matmul_of_odd_sizes_in_a_batch_has_an_epilogue(interpret: Run, name: str) -> None:
    a, b, bias = normal(0, 2, 3, 21, 37), normal(1, 3, 37, 45), normal(2, 45)
    epilogue = Epilogue(("acc = acc + tl.load(bias + cols, mask=inside)",
                         "acc = tl.maximum(acc, 0) + b0 * 10 + b1"),
                        (pointer("bias", "fp32"),), "acc * 2")
    out = multiply(interpret, a, b, CONFIGS[name], alpha=0.5, epilogue=epilogue,
                   tensors={"bias": bias})
    expected = np.maximum(0.5 * (a @ b) + bias, 0)
    expected += (10 * np.arange(2)[:, None] + np.arange(3))[..., None, None]
    np.testing.assert_allclose(out, 2 * expected, atol=3e-5)


@pytest.mark.parametrize("size, batch, together", [(16, 8, 4), (9, 5, 2), (16, 3, 1)])
def test_small_matmuls(interpret: Run, size: int, batch: int, together: int) -> None:
    a, b = normal(0, batch, size, size), normal(1, batch, size, size)
    out = multiply(interpret, a, b, Config(16, 16, 16, 1, 1, together=together))
    np.testing.assert_allclose(out, a @ b, atol=1e-5)


def in_memory(dtype: str, m: int, n: int, k: int, **fields: Any) -> Matmul:
    return Matmul(m, n, k, Operand(dtype, k, 1), Operand(dtype, n, 1),
                  Operand(fields.pop("out", dtype), n, 1), **fields)


@pytest.mark.parametrize("p, uses", [
    (in_memory("bf16", 4096, 4096, 4096), {"wgmma", "copies"}),
    (in_memory("fp8e4nv", 1024, 1024, 1024, out="bf16"), {"copies"}),
    (in_memory("fp32", 1024, 1024, 1024, precision="tf32"), {"copies"}),
    (in_memory("fp32", 1024, 1024, 1024), set()),
    (in_memory("fp16", 1000, 1000, 1001), set()),
    (in_memory("bf16", 64, 64, 8192), {"wgmma"}),
], ids=["bf16", "fp8", "tf32", "fp32", "odd", "tall"])
def test_matmul_compiles(compile_kernel: Run, p: Matmul, uses: set[str]) -> None:
    for kernel in kernels(p, configs(p)[0]):
        used = compile_kernel(kernel)
        assert used["STACK"] == used["LOCAL"] == 0
        assert used["shared"] <= 227 * 1024
        assert used["REG"] * 32 * used["warps"] <= 65536
        if kernel.name == "matmul":
            assert uses <= {key for key, n in used.items() if n}


def test_products_that_use_few_programs_are_split() -> None:
    assert configs(in_memory("bf16", 64, 64, 8192))[0].splits > 1
    assert configs(in_memory("bf16", 8192, 8192, 8192))[0].splits == 1
