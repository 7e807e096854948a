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
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.templates import attention as attention_template
from functrans.lowering.triton.templates import convolution as convolution_template
from functrans.lowering.triton.templates.attention import AttentionProblem, Heads
from functrans.lowering.triton.templates.attention_gradient import (
    AttentionGradientProblem,
    backward,
    backward_in_one,
    dk_dv_configs,
    dq_configs,
)
from functrans.lowering.triton.templates.convolution import ConvolutionProblem, Filter, Image
from functrans.lowering.triton.templates.convolution_boxes import boxes
from functrans.lowering.triton.templates.kernel import EpilogueSource, TemplateKernel, pointer
from functrans.lowering.triton.templates.matmul import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    kernels,
)
from functrans.lowering.triton.templates.matmul_configs import configs, side_by_side

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

THREE = replace(HOPPER, multiprocessors=3)


def aligned(array: NDArray) -> NDArray:
    """A copy that starts at a multiple of 16 bytes, as memory of a GPU does."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _interpret(launches: list[TemplateKernel], tensors: dict[str, NDArray]) -> dict[str, NDArray]:
    from functrans.lowering.triton.templates.kernel import function  # noqa: PLC0415

    memory = {name: aligned(x) for name, x in tensors.items()}
    for kernel in launches:
        arguments = []
        for a in kernel.arguments:
            if a.name == "workspace":
                memory.setdefault("workspace", aligned(np.full(
                    kernel.workspace // 4, np.nan, np.float32)))
            if a.name == "arrivals":
                memory.setdefault("arrivals", aligned(np.zeros(kernel.arrivals, np.int32)))
            arguments.append(Buffer(memory[a.name]) if a.value is None else a.value)
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            function(kernel, folder)[kernel.grid](*arguments)
    assert not memory.get("arrivals", np.zeros(1)).any()
    return memory


def _compile(kernel: TemplateKernel) -> dict[str, int]:
    import triton  # noqa: PLC0415

    from functrans.lowering.triton.templates.kernel import compiled  # noqa: PLC0415

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
                   "copies": binary.asm["ptx"].count("cp.async.bulk.tensor"),
            "register loads": binary.asm["ptx"].count("ldmatrix")}


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


def operand(x: NDArray) -> MatmulOperand:
    strides = [s // x.itemsize for s in x.strides]
    return MatmulOperand(NAMES[x.dtype], *strides[-2:], tuple([0, 0, *strides[:-2]][-2:]))


def turned(x: NDArray) -> NDArray:
    """The same matrices, stored by columns."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def packed(x: NDArray) -> NDArray:
    """The elements in the order of memory."""
    return x if x.flags.c_contiguous else x.swapaxes(-1, -2)


def multiply(run: Run, a: NDArray, b: NDArray, config: MatmulConfig, **fields: Any) -> NDArray:
    tensors = fields.pop("tensors", {})
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*batch, a.shape[-2], b.shape[-1]), np.nan, fields.pop("dtype", a.dtype))
    p = MatmulProblem(a.shape[-2], b.shape[-1], a.shape[-1], operand(a), operand(b), operand(out),
                      tuple([1, 1, *batch][-2:]), **fields)
    memory = run(kernels(p, config, target=THREE),
                 {"a": packed(a), "b": packed(b), "c": out, **tensors})
    return np.asarray(memory["c"])


CONFIGS = {"pointers": MatmulConfig(16, 32, 16, 4, 3, descriptors=False),
           "descriptors": MatmulConfig(16, 32, 16, 4, 3),
           "persistent": MatmulConfig(16, 32, 32, 4, 3, persistent=True, group=2),
           "parts": MatmulConfig(16, 32, 16, 4, 3, persistent=True, parts=2),
           "split": MatmulConfig(16, 32, 16, 4, 3, splits=3),
           "combined by the last": MatmulConfig(16, 32, 16, 4, 3, splits=3, last_combines=True),
           "turned": MatmulConfig(16, 32, 16, 4, 3, is_packed=True),
           "by warps": MatmulConfig(16, 32, 16, 4, 3, descriptors=False, by_warps=True)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("order", ["", "a", "b", "ab"])
def test_matmul(interpret: Run, name: str, order: str) -> None:
    a, b = normal(0, 40, 72), normal(1, 72, 56)
    x, y = (turned(v) if q in order else v for q, v in zip("ab", (a, b)))
    np.testing.assert_allclose(multiply(interpret, x, y, CONFIGS[name]), a @ b, atol=3e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_matmul_of_odd_sizes_in_a_batch_has_an_epilogue(interpret: Run, name: str) -> None:
    a, b, bias = normal(0, 2, 3, 21, 37), normal(1, 3, 37, 45), normal(2, 45)
    epilogue = EpilogueSource(("acc = acc + tl.load(bias + cols, mask=inside)",
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
    out = multiply(interpret, a, b, MatmulConfig(16, 16, 16, 1, 1, together=together))
    np.testing.assert_allclose(out, a @ b, atol=1e-5)


def in_memory(dtype: str, m: int, n: int, k: int, **fields: Any) -> MatmulProblem:
    b = fields.pop("b", MatmulOperand(dtype, n, 1))
    c = MatmulOperand(fields.pop("out", dtype), n, 1)
    return MatmulProblem(m, n, k, MatmulOperand(dtype, k, 1), b, c, **fields)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("p, uses", [
    (in_memory("bf16", 4096, 4096, 4096), {"wgmma", "copies"}),
    (in_memory("fp8e4nv", 1024, 1024, 1024, out="bf16", exact_after=64), {"copies"}),
    (in_memory("fp32", 1024, 1024, 1024, precision="tf32", b=MatmulOperand("fp32", 1, 1024)),
     {"copies", "wgmma"}),
    (in_memory("fp32", 1024, 1024, 1024), set()),
    (in_memory("fp16", 1000, 1000, 1001), set()),
    (in_memory("bf16", 64, 64, 8192), set()),
], ids=["bf16", "fp8", "tf32", "fp32", "odd", "tall"])
def test_matmul_compiles(compile_kernel: Run, p: MatmulProblem, uses: set[str]) -> None:
    for kernel in kernels(p, configs(p)[0]):
        used = compile_kernel(kernel)
        assert used["STACK"] == used["LOCAL"] == 0
        assert used["shared"] <= 227 * 1024
        assert used["REG"] * 32 * used["warps"] <= 65536
        if kernel.name == "matmul":
            assert uses <= {key for key, n in used.items() if n}


def test_long_epilogues_have_tiles_beside_each_other() -> None:
    p = in_memory("fp32", 131072, 256, 256, precision="tf32")
    for c in side_by_side(p):
        assert 3 * 4 * (c.block_m + c.block_n) * c.block_k * c.stages <= HOPPER.shared
        assert c.block_m * c.block_n <= 64 * 32 * c.warps and not c.persistent
    assert side_by_side(p) and not side_by_side(replace(p, m=1024))


def test_large_products_in_tf32_and_float8_read_along_the_sum() -> None:
    large = in_memory("fp32", 4096, 4096, 4096, precision="tf32")
    assert configs(large)[0].is_packed
    assert configs(in_memory("fp8e4nv", 4096, 4096, 4096, out="bf16"))[0].is_packed
    assert not any(c.is_packed for c in configs(replace(large, precision="ieee")))
    assert not configs(in_memory("fp32", 64, 64, 64, precision="tf32"))[0].is_packed
    # rows that start anywhere are copied, too: 1,233 us from registers, whose operands were cut off
    odd = in_memory("fp32", 4095, 4095, 4095, precision="tf32")
    assert configs(odd)[0].is_packed
    assert configs(replace(odd, b=MatmulOperand("fp32", 1, 4095)))[0].is_packed


def test_products_that_use_few_programs_are_split() -> None:
    assert configs(in_memory("bf16", 64, 64, 8192))[0].splits > 1
    assert configs(in_memory("bf16", 8192, 8192, 8192))[0].splits == 1


def test_large_partial_sums_are_added_by_a_second_launch() -> None:
    """One multiprocessor reads all of a tile in the time of some launches."""
    few, many = (in_memory("fp32", *s, precision="tf32") for s in ((16, 32, 16384),
                                                                   (512, 512, 8192)))
    assert [len(kernels(p, configs(p)[0])) for p in (few, many)] == [1, 2]


def heads(x: NDArray) -> Heads:
    """The strides of a tensor (batch, head, row, column): 0 along dimensions that are broadcast."""
    return Heads(NAMES[x.dtype], *[s // x.itemsize if n > 1 else 0 for n, s in
                                   zip(x.shape, x.strides)][:3],
                 x.strides[3] // x.itemsize if x.shape[3] > 1 else 0)


class Case:
    """A problem of attention: its tensors, and what float64 says of them."""

    def __init__(self, queries: int, keys: int, size: int = 16, value_size: int = 16,
                 shared: int = 1, causal: bool = False, offset: int = 0,
                 bias: tuple[int, ...] = (), mask: tuple[int, ...] = (), scale: float = 0.3,
                 steps: int = 1) -> None:
        batch, count = 2, 2
        # (batch, row, head, column) in memory, and a step between columns if asked for
        def tensor(seed: int, rows: int, number: int, width: int) -> NDArray:
            x = normal(seed, batch, rows, number, width * steps)
            return x[..., ::steps].swapaxes(1, 2)

        self.q = tensor(0, queries, count * shared, size)
        self.k, self.v = tensor(1, keys, count, size), tensor(2, keys, count, value_size)
        self.dout = tensor(3, queries, count * shared, value_size)
        self.bias = normal(4, *bias) if bias else None
        self.mask = (normal(5, *mask) > 0).astype(np.uint8) if mask else None
        if self.mask is not None:
            self.mask[..., 1, :] = 0
        self.seen = np.ones((queries, keys), bool)
        if causal:
            self.seen = np.arange(keys) <= np.arange(queries)[:, None] + offset
        self.out = np.full_like(self.dout, np.nan)
        self.problem = AttentionProblem(
            batch, count * shared, count, queries, keys, size, value_size, heads(self.q),
            heads(self.k), heads(self.v), heads(self.out), scale, causal, offset,
            None if self.bias is None else heads(self.bias),
            None if self.mask is None else heads(self.mask))
        q, k, v, g = (x.astype(np.float64) for x in (self.q, self.k, self.v, self.dout))
        k, v = k.repeat(shared, 1), v.repeat(shared, 1)
        scores = scale * q @ k.swapaxes(-1, -2) + (0 if self.bias is None else self.bias)
        seen = self.seen if self.mask is None else self.seen & (self.mask != 0)
        scores = np.where(seen, scores, -np.inf)
        with np.errstate(all="ignore"):
            self.sums = np.log2(np.exp(scores).sum(-1))
            p = np.where(np.isfinite(self.sums)[..., None],
                         np.exp(scores - self.sums[..., None] * np.log(2)), 0)
        self.expected = p @ v
        dp = g @ v.swapaxes(-1, -2)
        ds = p * (dp - (g * self.expected).sum(-1, keepdims=True))
        folded = (batch, count, shared, keys)
        self.gradients = {
            "dq": scale * ds @ k, "dbias": ds,
            "dk": (scale * ds.swapaxes(-1, -2) @ q).reshape(*folded, size).sum(2),
            "dv": (p.swapaxes(-1, -2) @ g).reshape(*folded, value_size).sum(2)}

    def tensors(self) -> dict[str, NDArray]:
        """In the order of memory; all elements that steps leave out are there."""
        def whole(x: NDArray) -> NDArray:
            return x if x.base is None else x.base

        return {n: whole(x) for n, x in (
            ("q", self.q), ("k", self.k), ("v", self.v), ("dout", self.dout), ("bias", self.bias),
            ("mask", self.mask)) if x is not None} | {
                "out": np.full(self.dout.shape, np.nan, np.float32),
                "sums": np.full(self.q.shape[:3], np.nan, np.float32)}


CASES = {
    "even": Case(32, 32), "odd": Case(37, 45, 20, 9), "causal": Case(40, 40, causal=True),
    "causal, few keys": Case(40, 19, causal=True, offset=-5, shared=2),
    "causal, many keys": Case(21, 50, causal=True, offset=29),
    "shared": Case(16, 33, shared=3), "bias": Case(33, 21, bias=(1, 2, 33, 21)),
    "mask": Case(33, 21, mask=(2, 1, 33, 21), causal=True),
    "bias and mask": Case(20, 36, bias=(2, 2, 20, 36), mask=(1, 1, 20, 36)),
    "negative scale": Case(17, 20, scale=-0.5), "steps": Case(18, 34, steps=2),
}
SHAPES = {"": attention_template.AttentionConfig(16, 16, 4, 2),
          "persistent": attention_template.AttentionConfig(32, 16, 4, 2, True, 1),
          "one loop": attention_template.AttentionConfig(16, 16, 8, 2, one_loop=True)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_attention(interpret: Run, name: str, shape: str) -> None:
    case, config = CASES[name], SHAPES[shape]
    out = heads(case.tensors()["out"])
    problem = replace(case.problem, out=out, precision="tf32" if config.persistent else "ieee")
    memory = interpret(attention_template.forward(problem, config, target=THREE), case.tensors())
    np.testing.assert_allclose(memory["out"], case.expected, atol=2e-5)
    np.testing.assert_allclose(memory["sums"], case.sums, atol=2e-5)


@pytest.mark.one_in(9)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_gradient_of_attention(interpret: Run, name: str, shape: str) -> None:
    case, config = CASES[name], SHAPES[shape]
    tensors = case.tensors() | {
        "sums": case.sums.astype(np.float32), "out": case.expected.astype(np.float32),
        "products": np.full(case.sums.shape, np.nan, np.float32),
        **{n: np.full(x.shape, np.nan, np.float32) for n, x in case.gradients.items()}}
    gradient = AttentionGradientProblem(replace(case.problem, out=heads(tensors["out"])),
                                        heads(case.dout),
                                        *[heads(tensors[n]) for n in ("dq", "dk", "dv")],
                                        heads(tensors["dbias"]) if case.bias is not None else None)
    memory = interpret(backward(gradient, config, config, target=THREE), tensors)
    for n, expected in case.gradients.items():
        if n != "dbias":
            np.testing.assert_allclose(memory[n], expected, atol=5e-5, err_msg=n)
    if not config.descriptors:  # the interpreter does not add through descriptors
        tensors["dq_sums"] = np.full(case.q.shape, np.nan, np.float32)
        one = interpret(backward_in_one(replace(gradient, dbias=None), config, target=THREE),
                        tensors)
        for n in ("dq", "dk", "dv"):
            np.testing.assert_allclose(one[n], case.gradients[n], atol=5e-5, err_msg=n)
    if case.bias is not None:
        inside = np.where(case.seen, memory["dbias"], case.gradients["dbias"])
        np.testing.assert_allclose(inside, case.gradients["dbias"], atol=5e-5)


def attend(dtype: str, length: int, size: int, **fields: Any) -> AttentionProblem:
    h = Heads(dtype, 4 * length * size, length * size, size)
    return AttentionProblem(2, 4, 4, length, length, size, size, h, h, h, h, size ** -0.5, **fields)


@pytest.mark.parametrize("precision, longest", [("ieee", 2048), ("tf32x3", 5120)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [16, 48, 64, 96, 168, 256])
def test_products_of_attention_that_are_written_out_are_few(size: int, causal: bool,
                                                            precision: str, longest: int) -> None:
    p = attend("fp32", 500, size, causal=causal, precision=precision)
    g = AttentionGradientProblem(p, p.q, p.q, p.q, p.q)
    width = attention_template.power_of_two(size)
    for products, found in ((2, attention_template.configs(p)), (3, dq_configs(g)),
                            (4, dk_dv_configs(g))):
        assert found
        for c in found:
            is_twice = not c.one_loop and (causal or products < 4)
            each = products * c.block_m * c.block_n * width / (32 * c.warps)
            assert (1 + is_twice) * each <= longest


@pytest.mark.one_in(2)
@pytest.mark.parametrize("p, wgmma", [
    (attend("bf16", 1024, 64), True), (attend("bf16", 1024, 64, causal=True), True),
    (attend("fp16", 1000, 128), True), (attend("fp32", 512, 64, precision="tf32"), True)],
    ids=["even", "causal", "odd", "tf32"])
def test_attention_compiles(compile_kernel: Run, p: AttentionProblem, wgmma: bool) -> None:
    g = AttentionGradientProblem(p, p.q, p.q, p.q, p.q)
    kernels = attention_template.forward(p, attention_template.configs(p)[0])
    kernels += backward(g, dq_configs(g)[0], dk_dv_configs(g)[0])
    for kernel in kernels:
        used = compile_kernel(kernel)
        assert used["STACK"] == used["LOCAL"] == 0
        assert used["shared"] <= 227 * 1024
        assert used["REG"] * 32 * used["warps"] <= 65536
    assert (used["wgmma"] > 0) == wgmma


def image(x: NDArray) -> Image:
    """Strides of an image (group, batch, feature, *space)."""
    group, batch, feature, *space = (s // x.itemsize for s in x.strides)
    return Image(NAMES[x.dtype], group, batch, feature, tuple(space))


def convolve(x: NDArray, w: NDArray, p: ConvolutionProblem) -> NDArray:
    """The sum over taps, of places that are there, in float64: (group, batch, feature, *space)."""
    out = np.zeros((p.groups, p.batch, p.out_features, *p.out_size))
    for tap in np.ndindex(*p.window):
        for place in np.ndindex(*p.out_size):
            at = [o * s - low + t * d for o, s, low, t, d in zip(
                place, p.stride, p.pad_low, tap, p.window_dilation)]
            if all(a % d == 0 and 0 <= a // d < n for a, d, n in zip(
                    at, p.in_dilation, p.in_size)):
                pixel = x[(..., *[a // d for a, d in zip(at, p.in_dilation)])]
                taps = w[(..., *tap)]
                out[(..., *place)] += np.einsum("gbi,goi->gbo", pixel.astype(np.float64), taps)
    return out


def stored_in_order(x: NDArray, axes: tuple[int, ...]) -> NDArray:
    """The same array, whose axes follow each other in memory in another order."""
    return np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes))


CUTS: list[dict[str, int]] = [{}, {"splits": 3}, {"splits": 3, "last_combines": True},
                              {"persistent": True, "parts": 2}]
CHANNELS_LAST, BATCH_LAST, FIRST = (1, 3, 4, 0, 2), (2, 3, 4, 0, 1), (0, 1, 2, 3, 4)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("cut", CUTS[:3])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("order, groups, stride, low, dilation, window_dilation", [
    (CHANNELS_LAST, 1, (1, 1), (1, 1), (1, 1), (1, 1)),
    (CHANNELS_LAST, 2, (2, 1), (2, 0), (1, 1), (1, 2)),
    (CHANNELS_LAST, 1, (1, 1), (2, 1), (2, 3), (1, 1)),  # the gradient of the image
    (FIRST, 2, (2, 1), (1, 1), (2, 1), (1, 1)),
    (BATCH_LAST, 1, (1, 1), (1, 1), (1, 1), (2, 1)),     # that of the filter
])
def test_convolution(interpret: Run, order: tuple[int, ...], groups: int, stride: tuple[int, ...],
                     low: tuple[int, ...], dilation: tuple[int, ...],
                     window_dilation: tuple[int, ...], flat: bool, cut: dict[str, int]) -> None:
    batch, features, outs, size, window, out_size = 3, 5, 7, (6, 5), (3, 2), (5, 6)
    x = stored_in_order(normal(0, groups, batch, features, *size), order)
    w = stored_in_order(normal(1, groups, outs, features, *window), BATCH_LAST)
    out = stored_in_order(np.full((groups, batch, outs, *out_size), np.nan, np.float32), order)
    like_x, like_w, like_out = image(x), image(w), image(out)
    bias = normal(2, outs)
    p = ConvolutionProblem(batch, features, outs, size, window, out_size, stride, low, like_x,
                           Filter("fp32", like_w.group, like_w.batch, like_w.feature, like_w.space),
                           like_out, dilation, window_dilation, groups, epilogue=EpilogueSource(
                               ("acc = acc + tl.load(bias + cols, mask=inside)",),
                               (pointer("bias", "fp32"),)))
    config = convolution_template.ConvolutionConfig(16, 16, 16, 4, 2, flat=flat, **cut)
    tensors = {"x": x.base, "w": w.base, "out": out.base, "bias": bias}
    if order == FIRST:
        tensors |= {"x": x, "out": out}
    memory = interpret(convolution_template.kernels(p, config), tensors)
    found = memory["out"].transpose(np.argsort(order))
    expected = convolve(x, w, p) + bias[:, None, None]
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("order, stride, low, dilation, window_dilation, flipped, rows", [
    (CHANNELS_LAST, (1, 1), (1, 1), (1, 1), (1, 1), False, (4, 1, 4)),
    (CHANNELS_LAST, (2, 1), (2, 0), (1, 1), (1, 2), False, (4, 1, 4)),
    (CHANNELS_LAST, (1, 1), (2, 1), (2, 1), (1, 1), True, (4, 1, 4)),
    (BATCH_LAST, (1, 1), (1, 1), (1, 1), (2, 1), False, (16, 1, 1)),
])
def test_convolution_of_boxes(
        interpret: Run, order: tuple[int, ...], stride: tuple[int, ...], low: tuple[int, ...],
        dilation: tuple[int, ...], window_dilation: tuple[int, ...], flipped: bool,
        rows: tuple[int, ...], cut: dict[str, int]) -> None:
    """Tiles are boxes of images and places."""
    batch, features, outs, size, window, out_size = 4, 20, 24, (6, 5), (4, 2), (5, 4)
    x = stored_in_order(normal(0, 1, batch, features, *size), order)
    w = stored_in_order(normal(1, 1, outs, features, *window), BATCH_LAST)
    out = stored_in_order(np.full((1, batch, outs, *out_size), np.nan, np.float32), CHANNELS_LAST)
    like_x, like_w, like_out = image(x), image(w[..., ::-1, ::-1] if flipped else w), image(out)
    at = sum(s * (n - 1) for s, n in zip(image(w).space, window)) if flipped else 0
    p = ConvolutionProblem(batch, features, outs, size, window, out_size, stride, low, like_x,
                           Filter("fp32", like_w.group, like_w.batch, like_w.feature, like_w.space,
                                  at),
                           like_out, dilation, window_dilation)
    config = convolution_template.ConvolutionConfig(16, 16, 16, 4, 2, descriptors=True, **cut)
    cuts = boxes(replace(p, in_dilation=(1, 1)), config)
    assert cuts is not None and cuts.rows == rows
    memory = interpret(convolution_template.kernels(p, config, target=THREE),
                       {"x": x.base, "w": w.base, "out": out.base})
    found = memory["out"].transpose(np.argsort(CHANNELS_LAST))
    expected = convolve(x, w[..., ::-1, ::-1] if flipped else w, p)
    np.testing.assert_allclose(found, expected, atol=5e-5)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("order", [CHANNELS_LAST, BATCH_LAST, FIRST])
@pytest.mark.parametrize("features, stride, dilation, flipped", [
    (20, (1, 1), (1, 1), False), (19, (2, 1), (1, 1), True), (19, (1, 1), (2, 1), True)])
def test_convolution_of_packed_operands(
        interpret: Run, features: int, order: tuple[int, ...], stride: tuple[int, ...],
        dilation: tuple[int, ...], flipped: bool, cut: dict[str, int]) -> None:
    """Images with their features last, and filters along the sum, in memory of the call."""
    batch, outs, size, window, out_size, low = 4, 24, (6, 5), (4, 2), (5, 4), (1, 1)
    x = stored_in_order(normal(0, 1, batch, features, *size), order)
    w = stored_in_order(normal(1, 1, outs, features, *window),
                        FIRST if order == FIRST else BATCH_LAST)
    out = stored_in_order(np.full((1, batch, outs, *out_size), np.nan, np.float32), order)
    like_x, like_w, like_out = image(x), image(w[..., ::-1, ::-1] if flipped else w), image(out)
    at = sum(s * (n - 1) for s, n in zip(image(w).space, window)) if flipped else 0
    p = ConvolutionProblem(batch, features, outs, size, window, out_size, stride, low, like_x,
                           Filter("fp32", like_w.group, like_w.batch, like_w.feature, like_w.space,
                                  at),
                           like_out, dilation, (1, 1), precision="tf32")
    config = convolution_template.ConvolutionConfig(16, 16, 16, 4, 2, descriptors=True, packed=True,
                                                    **cut)
    launches = convolution_template.kernels(p, config, target=THREE)
    assert any("_packed_" in kernel.name for kernel in launches)
    assert all("make_tensor_descriptor" in k.text for k in launches if k.name == "convolution")
    tensors = {name: v if order == FIRST else v.base
               for name, v in (("x", x), ("w", w), ("out", out))}
    memory = interpret(launches, tensors)
    expected = convolve(x, w[..., ::-1, ::-1] if flipped else w, p)
    np.testing.assert_allclose(memory["out"].transpose(np.argsort(order)), expected, atol=5e-5)


def test_large_convolutions_of_float32_are_packed() -> None:
    for step, far in ((1, 28 * 28 * 128), (28 * 28, 128 * 28 * 28)):  # features last, and first
        space = (28 * 128, 128) if step == 1 else (28, 1)
        x = Image("fp32", 0, far, step, space)
        p = ConvolutionProblem(64, 128, 128, (28, 28), (3, 3), (28, 28), (1, 1), (1, 1), x,
                               Filter("fp32", 0, 1, 128, (3 * 128 * 128, 128 * 128)), x,
                               precision="tf32")
        assert convolution_template.configs(p)[0].packed
        assert not any(c.packed for c in convolution_template.configs(replace(
            p, precision="ieee")))


@pytest.mark.parametrize("of_filter", [False, True])
def test_convolution_compiles(compile_kernel: Run, of_filter: bool) -> None:
    batch, size, features = 64, 28, 128
    x = Image("bf16", 0, size * size * features, 1, (size * features, features))
    w = Filter("bf16", 0, 1, features, (3 * features * features, features * features))
    p = ConvolutionProblem(batch, features, features, (size, size), (3, 3), (size, size), (1, 1),
                           (1, 1),
                           x, w, x)
    if of_filter:
        p = ConvolutionProblem(
            features, batch, features, (size, size), (size, size), (3, 3), (1, 1), (1, 1),
            replace(x, batch=1, feature=x.batch), Filter("bf16", 0, 1, x.batch, x.space),
            Image("bf16", 0, features, 1, w.space))
    found = convolution_template.configs(p)
    assert found[0].descriptors
    for config in found[:3]:
        for kernel in convolution_template.kernels(p, config):
            used = compile_kernel(kernel)
            assert used["STACK"] == used["LOCAL"] == 0
            if kernel.name == "convolution":
                assert used["wgmma"]
                if config.descriptors:
                    assert used["copies"] and not used["register loads"]
