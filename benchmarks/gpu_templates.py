"""Templates of GPU kernels on this machine's GPU: right first, then timed in every configuration.

    python benchmarks/gpu_templates.py [--json FILE] [--only WORDS] [--most N] [--compile-only]

Needs PyTorch. Every configuration is compared with PyTorch
in float32 or float64 on random data, in outputs that were NaN before, and timed by events. The
table has the best one beside PyTorch, the file all.
`--compile-only` needs no GPU: registers, shared memory and spills.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import triton

from functrans.lowering.triton.templates import attention as attention_template
from functrans.lowering.triton.templates import convolution as convolution_template
from functrans.lowering.triton.templates import matmul as matmul_template
from functrans.lowering.triton.templates import matmul_configs
from functrans.lowering.triton.templates.attention import (
    AttentionConfig,
    AttentionProblem,
    Heads,
)
from functrans.lowering.triton.templates.attention_gradient import (
    AttentionGradientProblem,
    backward,
    backward_in_one,
    dk_dv_configs,
    dq_configs,
    in_one_configs,
)
from functrans.lowering.triton.templates.convolution import ConvolutionProblem, Filter, Image
from functrans.lowering.triton.templates.kernel import (
    EpilogueSource,
    TemplateKernel,
    compiled,
    pointer,
)
from functrans.lowering.triton.templates.matmul import MatmulConfig, MatmulOperand, MatmulProblem

FOLDER = Path(tempfile.gettempdir()) / "functrans_gpu_templates"
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32,
         "fp64": torch.float64, "fp8e4nv": torch.float8_e4m3fn}
# the greatest relative error, by the type of the operands or the precision of float32
ERROR = {"bf16": 6e-3, "fp16": 1e-3, "fp8e4nv": 2e-2, "tf32": 2e-3, "ieee": 6e-6, "tf32x3": 1e-5,
         "bf16x6": 1e-5, "fp64": 1e-14}
Tensors = dict[str, torch.Tensor]


@dataclass
class Case:
    """`work` in FLOP or bytes; `tensors` makes inputs and outputs, `expected` what outputs are."""

    title: str
    candidates: dict[str, list[TemplateKernel]]
    tensors: Callable[[], Tensors]
    outputs: tuple[str, ...]
    expected: Callable[[Tensors], Tensors]
    peer: Callable[[Tensors], Callable[[], Any]] | None
    work: float
    unit: str
    error: float
    goal: float = 0
    results: list[dict[str, Any]] = field(default_factory=list)


def random(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def shown(config: Any) -> str:
    """The fields of a configuration in short."""
    if isinstance(config, tuple):
        return " | ".join(map(shown, config))
    fields = {k: v for k, v in vars(config).items() if k.startswith("block")}
    rest = {"warps": "w", "stages": "s", "group": "g", "splits": "split", "parts": "parts",
            "persistent": "persistent", "together": "together", "is_packed": "packed",
            "packed": "packed", "flat": "flat"}
    text = "x".join(str(v) for v in fields.values())
    for key, short in rest.items():
        plain = {"group": 8, "splits": 1, "parts": 1}.get(key, 0)
        if key == "flat" and isinstance(config, MatmulConfig):
            continue
        value = int(getattr(config, key, plain))
        if value != plain:
            text += f" {short}{value}" if len(short) == 1 else f" {short} {value}"
    if isinstance(config, MatmulConfig) and config.persistent and not config.flat:
        text += " nested"
    text += " one loop" * getattr(config, "one_loop", False)
    return text + (" copied" if getattr(config, "descriptors", False) else "")


GELU = EpilogueSource((
    "acc = acc + tl.load(bias + cols, mask=inside).to(tl.float32)",
    "cubic = 0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)",
    "acc = acc / (1 + tl.exp(-2 * cubic))"), (pointer("bias", "bf16"),))


def matmul_case(title: str, dtype: str, m: int, n: int, k: int, batch: int = 1, order: str = "",
                precision: str = "ieee", out: str = "", extra: tuple[MatmulConfig, ...] = (),
                gelu: bool = False, goal: float = 0, bytes_moved: bool = False,
                peer: bool = True, exact_after: int = 0) -> Case:
    out = out or dtype
    a = MatmulOperand(dtype, *((1, m) if "a" in order else (k, 1)), (0, m * k if batch > 1 else 0))
    b = MatmulOperand(dtype, *((1, k) if "b" in order else (n, 1)), (0, k * n if batch > 1 else 0))
    c = MatmulOperand(out, n, 1, (0, m * n if batch > 1 else 0))
    p = MatmulProblem(m, n, k, a, b, c, (1, batch), precision=precision, exact_after=exact_after)
    if gelu:
        p = replace(p, epilogue=GELU)
    found = list(dict.fromkeys([*matmul_configs.configs(p), *extra]))
    shape_a = (batch, k, m) if "a" in order else (batch, m, k)
    shape_b = (batch, n, k) if "b" in order else (batch, k, n)

    def tensors() -> Tensors:
        made = {"a": random(*shape_a, dtype=TORCH[dtype]),
                "b": random(*shape_b, dtype=TORCH[dtype]),
                "c": torch.empty(batch, m, n, device="cuda", dtype=TORCH[out])}
        if gelu:
            made["bias"] = random(n, dtype=torch.bfloat16)
        return made

    def views(t: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = t["a"], t["b"]
        return (x.mT if "a" in order else x), (y.mT if "b" in order else y)

    def expected(t: Tensors) -> Tensors:
        torch.backends.cuda.matmul.allow_tf32 = False
        wide = torch.float64 if dtype in ("fp32", "fp64") else torch.float32
        x, y = views(t)
        result = x.to(wide) @ y.to(wide)
        if gelu:
            result = torch.nn.functional.gelu(result + t["bias"].float(), approximate="tanh")
        return {"c": result}

    def torch_call(t: Tensors) -> Callable[[], Any]:
        x, y = (v.squeeze(0) if batch == 1 else v for v in views(t))
        if gelu:
            return lambda: torch.nn.functional.gelu(torch.addmm(t["bias"], x, y),
                                                    approximate="tanh")
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return lambda: torch.matmul(x, y)

    work = 2.0 * batch * m * n * k
    if bytes_moved:
        work = batch * ((m * k + k * n) * TORCH[dtype].itemsize + m * n * TORCH[out].itemsize)
    return Case(title, {shown(c): matmul_template.kernels(p, c) for c in found}, tensors, ("c",),
                expected, torch_call if peer else None, work, "GB/s" if bytes_moved else "TFLOP/s",
                ERROR[precision if dtype == "fp32" else dtype], goal)


def scores(t: Tensors, causal: bool, scale: float) -> torch.Tensor:
    s = t["q"].float() @ t["k"].float().mT * scale
    if causal:
        s.masked_fill_(~torch.ones(s.shape[-2:], dtype=torch.bool, device="cuda").tril(),
                       -torch.inf)
    return s


def attention_parts(dtype: str, batch: int, heads: int, length: int, size: int, causal: bool,
                    precision: str) -> tuple[AttentionProblem, float]:
    h = Heads(dtype, heads * length * size, length * size, size)
    p = AttentionProblem(batch, heads, heads, length, length, size, size, h, h, h, h, size ** -0.5,
                         causal,
                         precision=precision)
    return p, 4.0 * batch * heads * length * length * size * (0.5 if causal else 1)


def with_one_loop(configs: list[AttentionConfig], causal: bool) -> list[AttentionConfig]:
    """Configurations, and those of causal scores with all blocks in one loop."""
    more = [replace(c, one_loop=True) for c in configs] if causal else []
    return list(dict.fromkeys([*configs, *more]))


def attention_case(title: str, dtype: str, batch: int, heads: int, length: int, size: int,
                   causal: bool = False, precision: str = "ieee", goal: float = 0) -> Case:
    p, work = attention_parts(dtype, batch, heads, length, size, causal, precision)
    shape = (batch, heads, length, size)

    def tensors() -> Tensors:
        made = {n: random(*shape, dtype=TORCH[dtype]) for n in ("q", "k", "v")}
        return made | {"out": torch.empty_like(made["q"]),
                       "sums": torch.empty(*shape[:3], device="cuda")}

    def expected(t: Tensors) -> Tensors:
        torch.backends.cuda.matmul.allow_tf32 = False
        out, sums = [], []
        for b in range(batch):
            s = scores({n: t[n][b] for n in ("q", "k")}, causal, p.scale)
            sums.append(torch.logsumexp(s, -1) / math.log(2))
            out.append(torch.softmax(s, -1) @ t["v"][b].float())
        return {"out": torch.stack(out), "sums": torch.stack(sums)}

    def sdpa(t: Tensors) -> Callable[[], Any]:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            t["q"], t["k"], t["v"], is_causal=causal)

    tried = with_one_loop(attention_template.configs(p, 20), causal)
    return Case(title, {shown(c): attention_template.forward(p, c) for c in tried}, tensors,
                ("out", "sums"), expected, sdpa, work, "TFLOP/s",
                ERROR[precision if dtype == "fp32" else dtype], goal)


def gradient_cases(title: str, dtype: str, batch: int, heads: int, length: int, size: int,
                   causal: bool = False, goal: float = 0) -> list[Case]:
    """The launches of the gradient apart (dq, then dk and dv), each in its configurations.

    Rates count 2 of the 5 products of a gradient for dq and 3 for dk and dv, so that the time of
    both together is that of the rate of the gradient.
    """
    p, work = attention_parts(dtype, batch, heads, length, size, causal, "ieee")
    g = AttentionGradientProblem(p, p.q, p.q, p.q, p.q)
    shape = (batch, heads, length, size)

    def tensors() -> Tensors:
        made = {n: random(*shape, dtype=TORCH[dtype]) for n in ("q", "k", "v", "dout")}
        out, sums = [], []
        for b in range(batch):
            s = scores({n: made[n][b] for n in ("q", "k")}, causal, p.scale)
            sums.append(torch.logsumexp(s, -1) / math.log(2))
            out.append(torch.softmax(s, -1) @ made["v"][b].float())
        made |= {"out": torch.stack(out).to(TORCH[dtype]), "sums": torch.stack(sums)}
        made["products"] = (made["out"].float() * made["dout"].float()).sum(-1)
        return made | {n: torch.empty_like(made["q"]) for n in ("dq", "dk", "dv")}

    def expected(t: Tensors) -> Tensors:
        torch.backends.cuda.matmul.allow_tf32 = False
        made: dict[str, list[torch.Tensor]] = {"dq": [], "dk": [], "dv": []}
        for b in range(batch):
            q, k, v, dout = (t[n][b].float() for n in ("q", "k", "v", "dout"))
            weights = torch.softmax(scores({"q": q, "k": k}, causal, p.scale), -1)
            product = (weights @ v * dout).sum(-1, keepdim=True)
            ds = weights * (dout @ v.mT - product) * p.scale
            made["dv"].append(weights.mT @ dout)
            made["dq"].append(ds @ k)
            made["dk"].append(ds.mT @ q)
        return {n: torch.stack(parts) for n, parts in made.items()}

    def torch_gradient(t: Tensors) -> Callable[[], Any]:
        q, k, v = (t[n].detach().requires_grad_() for n in ("q", "k", "v"))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return lambda: torch.autograd.grad(out, (q, k, v), t["dout"], retain_graph=True)

    one, other = dq_configs(g, 20)[0], dk_dv_configs(g, 20)[0]
    error = 3 * ERROR[dtype]
    return [
        Case(f"{title}: dq", {shown(c): backward(g, c, other)[:1]
                              for c in with_one_loop(dq_configs(g, 20), causal)},
             tensors, ("dq",), lambda t: {"dq": expected(t)["dq"]}, None, work, "TFLOP/s", error),
        Case(f"{title}: dk, dv", {shown(c): backward(g, one, c)[1:]
                                  for c in with_one_loop(dk_dv_configs(g, 20), causal)},
             tensors, ("dk", "dv"), lambda t: {n: expected(t)[n] for n in ("dk", "dv")}, None,
             1.5 * work, "TFLOP/s", error),
        Case(f"{title}: all", {f"{shown(a)} | {shown(b)}": backward(g, a, b) for a, b in zip(
            dq_configs(g, 3), dk_dv_configs(g, 3))}, tensors, ("dq", "dk", "dv"), expected,
            torch_gradient, 2.5 * work, "TFLOP/s", error, goal),
        Case(f"{title}: in one", {shown(c): backward_in_one(g, c) for c in in_one_configs(g)},
             lambda: tensors() | {"dq_sums": torch.empty(shape, device="cuda")},
             ("dq", "dk", "dv"), expected, None, 2.5 * work, "TFLOP/s", error, goal)]


def convolution_cases(title: str, n: int, size: int, features: int, outs: int, window: int,
                      stride: int, dtype: str = "bf16") -> list[Case]:
    """Images (n, size, size, features), filters (window, window, features, outs); those of float32
    at the precision of TensorFloat-32."""
    precision, stored = "tf32" if dtype == "fp32" else "ieee", TORCH[dtype]
    pad = (window - 1) // 2
    low = (size + 2 * pad - window) // stride + 1

    def pixels(length: int, width: int) -> Image:
        return Image(dtype, 0, length * length * width, 1, (length * width, width))

    row = features * outs
    x, y = pixels(size, features), pixels(low, outs)
    forward = ConvolutionProblem(n, features, outs, (size,) * 2, (window,) * 2, (low,) * 2,
                                 (stride,) * 2,
                                 (pad,) * 2, x, Filter(dtype, 0, 1, outs, (window * row, row)), y,
                                 precision=precision)
    flipped = Filter(dtype, 0, outs, 1, (-window * row, -row), (window * window - 1) * row)
    dx = ConvolutionProblem(n, outs, features, (low,) * 2, (window,) * 2, (size,) * 2, (1, 1),
                            (window - 1 - pad,) * 2, y, flipped, x, in_dilation=(stride,) * 2,
                            precision=precision)
    dw = ConvolutionProblem(
        features, n, outs, (size,) * 2, (low,) * 2, (window,) * 2, (1, 1), (pad,) * 2,
        replace(x, batch=1, feature=x.batch), Filter(dtype, 0, 1, y.batch, y.space),
        Image(dtype, 0, outs, 1, (window * row, row)), window_dilation=(stride,) * 2,
        precision=precision)
    shapes = {"image": (n, size, size, features), "filter": (window, window, features, outs),
              "result": (n, low, low, outs)}
    names = {"forward": ("image", "filter", "result"), "dx": ("result", "filter", "image"),
             "dw": ("image", "result", "filter")}

    def as_torch(name: str, t: torch.Tensor) -> torch.Tensor:
        return t.permute(3, 2, 0, 1) if name == "filter" else t.permute(0, 3, 1, 2)

    def compute(kind: str, t: Tensors, wide: bool) -> torch.Tensor:
        given = {name: as_torch(name, t[key]) for name, key in zip(names[kind], "xw")}
        given = {k: v.float() if wide else v for k, v in given.items()}
        if kind == "forward":
            return torch.nn.functional.conv2d(given["image"], given["filter"], None, stride, pad)
        first = {k: v if k in given else None for k, v in given.items()}
        image = first.get("image", torch.empty(n, features, size, size, device="cuda",
                                               dtype=given["result"].dtype))
        weight = first.get("filter", torch.empty(outs, features, window, window, device="cuda",
                                                 dtype=given["result"].dtype))
        both = torch.ops.aten.convolution_backward(
            given["result"], image, weight, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1,
            [kind == "dx", kind == "dw", False])
        return both[0] if kind == "dx" else both[1]

    def case(kind: str, p: ConvolutionProblem) -> Case:
        def tensors() -> Tensors:
            one, two, three = names[kind]
            made = {"x": random(*shapes[one], dtype=stored),
                    "w": random(*shapes[two], dtype=stored)}
            return made | {"out": torch.empty(*shapes[three], device="cuda", dtype=stored)}

        def expected(t: Tensors) -> Tensors:
            torch.backends.cudnn.allow_tf32 = False
            result = compute(kind, t, True)
            back = (2, 3, 1, 0) if kind == "dw" else (0, 2, 3, 1)
            return {"out": result.permute(*back)}

        def peer(t: Tensors) -> Callable[[], Any]:
            torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = True
            return lambda: compute(kind, t, False)

        return Case(f"{title}, {kind}", {shown(c): convolution_template.kernels(p, c)
                                         for c in convolution_template.configs(p, count=6)},
                    tensors,
                    ("out",), expected, peer, 2.0 * n * low * low * window * window * row,
                    "TFLOP/s", ERROR["tf32" if dtype == "fp32" else dtype])

    return [case("forward", forward), case("dx", dx), case("dw", dw)]


BIG = (MatmulConfig(128, 256, 64, 8, 4, persistent=True, parts=2, group=16),
       MatmulConfig(128, 256, 64, 8, 3, persistent=True),
       MatmulConfig(128, 256, 64, 8, 4, persistent=True, parts=2, flat=False),
       MatmulConfig(128, 256, 64, 8, 4, group=16), MatmulConfig(128, 256, 64, 8, 3),
       MatmulConfig(128, 256, 64, 8, 3, descriptors=False),
       MatmulConfig(128, 256, 64, 8, 4, descriptors=False),
       MatmulConfig(128, 128, 64, 4, 4), MatmulConfig(128, 128, 64, 8, 5),
       MatmulConfig(128, 256, 32, 8, 4),
       MatmulConfig(256, 128, 64, 8, 4, group=4))


def cases() -> list[Case]:
    small = 16384
    return [
        matmul_case("8192^3 bf16", "bf16", 8192, 8192, 8192, extra=BIG, goal=750),
        matmul_case("8192^3 bf16, b by columns", "bf16", 8192, 8192, 8192, order="b"),
        matmul_case("8192^3 bf16, a by columns", "bf16", 8192, 8192, 8192, order="a"),
        matmul_case("8192^3 bf16, bias and gelu", "bf16", 8192, 8192, 8192, gelu=True,
                    extra=BIG[:6], goal=690),
        matmul_case("4096^3 bf16", "bf16", 4096, 4096, 4096),
        matmul_case("1024^3 bf16", "bf16", 1024, 1024, 1024),
        *[matmul_case(f"8192^3 fp8, sums of {n or 'all'}", "fp8e4nv", 8192, 8192, 8192, order="b",
                      out="bf16", peer=False, exact_after=n) for n in (0, 128)],
        matmul_case("512 x 512 x 16384 bf16", "bf16", 512, 512, 16384),
        matmul_case("16 x 8192 x 8192 bf16", "bf16", 16, 8192, 8192),
        matmul_case("4001 x 4003 x 4005 fp16", "fp16", 4001, 4003, 4005),
        matmul_case("64 of 1024^3 bf16", "bf16", 1024, 1024, 1024, batch=64),
        *[matmul_case(f"4096^3 fp32 {p}", "fp32", 4096, 4096, 4096, precision=p)
          for p in ("ieee", "tf32", "tf32x3", "bf16x6")],
        matmul_case("2048^3 fp64", "fp64", 2048, 2048, 2048),
        matmul_case("16384 of 32^3 bf16", "bf16", 32, 32, 32, small, bytes_moved=True, goal=2750),
        matmul_case("16384 of 32^3 fp32", "fp32", 32, 32, 32, small, bytes_moved=True, goal=2750),
        matmul_case("16384 of 32^3 fp32 tf32", "fp32", 32, 32, 32, small, bytes_moved=True,
                    precision="tf32"),
        matmul_case("16384 of 64^3 bf16", "bf16", 64, 64, 64, small, bytes_moved=True),
        attention_case("attention 4096 x 64 bf16", "bf16", 4, 16, 4096, 64, goal=460),
        attention_case("attention 4096 x 64 bf16, causal", "bf16", 4, 16, 4096, 64, causal=True),
        attention_case("attention 1024 x 64 bf16, causal", "bf16", 8, 16, 1024, 64, causal=True),
        attention_case("attention 4096 x 128 bf16", "bf16", 4, 16, 4096, 128),
        attention_case("attention 2048 x 64 fp32 tf32", "fp32", 4, 16, 2048, 64, precision="tf32"),
        attention_case("attention 2048 x 64 fp32", "fp32", 4, 16, 2048, 64),
        *gradient_cases("gradient 2048 x 64 bf16", "bf16", 4, 16, 2048, 64, goal=380),
        *gradient_cases("gradient 2048 x 64 bf16, causal", "bf16", 4, 16, 2048, 64, causal=True),
        *gradient_cases("gradient 1024 x 64 bf16, causal", "bf16", 8, 16, 1024, 64, causal=True),
        *gradient_cases("gradient 2048 x 128 bf16", "bf16", 4, 16, 2048, 128),
        *convolution_cases("3x3, 56 x 56 x 64", 128, 56, 64, 64, 3, 1),
        *convolution_cases("3x3, 56 x 56 x 256", 64, 56, 256, 256, 3, 1),
        *convolution_cases("3x3, 28 x 28 x 128 by 2", 128, 56, 128, 128, 3, 2),
        *convolution_cases("3x3, 14 x 14 x 256", 128, 14, 256, 256, 3, 1),
        *convolution_cases("1x1, 28 x 28 x 256 to 512", 128, 28, 256, 512, 1, 1),
        *program_convolutions()]


def program_convolutions() -> list[Case]:
    """Those of float32 in programs/residual_network.py and programs/denoising_diffusion.py."""
    found = [(128, 32, 3, 64, 3, 1), (128, 32, 64, 64, 3, 1), (128, 32, 64, 128, 3, 2),
             (128, 32, 64, 128, 1, 2), (128, 16, 128, 128, 3, 1), (128, 16, 128, 256, 3, 2),
             (128, 8, 256, 256, 3, 1), (32, 32, 64, 64, 3, 1), (32, 32, 128, 64, 3, 1),
             (32, 32, 128, 64, 1, 1), (32, 32, 64, 64, 1, 1), (32, 32, 64, 128, 3, 2),
             (32, 16, 128, 128, 3, 1), (32, 16, 128, 128, 1, 1), (32, 32, 64, 128, 4, 2),
             (32, 32, 64, 3, 3, 1)]
    return [case for n, size, features, outs, window, stride in found for case in convolution_cases(
        f"tf32 {n} x {size}^2 x {features}, {window}x{window} to {outs}{' by 2' * (stride > 1)}",
        n, size, features, outs, window, stride, "fp32")]


def identity(kernel: TemplateKernel) -> str:
    return f"{kernel.text} {kernel.signature} {kernel.attributes} {kernel.options}"


def compile_one(kernel: TemplateKernel) -> str:
    """What the machine code of a kernel uses; empty text where it does not compile."""
    try:
        binary = compiled(kernel, FOLDER)
    except Exception as e:
        return f"does not compile: {str(e)[-200:]}"
    path = FOLDER / f"{binary.hash}.cubin"
    path.write_bytes(binary.asm["cubin"])
    tool = Path(triton.__path__[0]) / "backends" / "nvidia" / "bin" / "cuobjdump"
    usage = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True).stdout
    used = dict(re.findall(r"(REG|STACK):(\d+)", usage))
    return (f"{used.get('REG', '?')} registers, {used.get('STACK', '?')} bytes of stack, "
            f"{binary.metadata.shared} shared")


def time_of(call: Callable[[], Any]) -> float:
    """Seconds of a call: the median of rounds of several, in a graph where they are short."""
    call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    call()
    end.record()
    torch.cuda.synchronize()
    estimate = start.elapsed_time(end) / 2
    count = max(1, min(20, int(8 / max(estimate, 1e-3))))

    def several() -> None:
        for _ in range(count):
            call()

    run = several
    if estimate < 0.4:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            several()
        run = graph.replay
    times = []
    run()
    for _ in range(9):
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / count)
    return statistics.median(times) * 1e-3


def launcher(kernels: list[TemplateKernel], tensors: Tensors) -> Callable[[], None]:
    made = []
    scratch, counters = (max(n) for n in zip(*[(k.workspace, k.arrivals) for k in kernels]))
    memory = dict(tensors)
    if scratch:
        memory["workspace"] = torch.empty(scratch, dtype=torch.uint8, device="cuda")
    if counters:
        memory["arrivals"] = torch.zeros(counters, dtype=torch.int32, device="cuda")
    for kernel in kernels:
        binary = compiled(kernel, FOLDER)
        arguments = [memory[a.name] if a.value is None else a.value for a in kernel.arguments]
        made.append((binary[kernel.grid], arguments))

    def launch() -> None:
        stream = torch.cuda.current_stream().cuda_stream
        for run, arguments in made:
            run(*arguments, stream=stream)

    return launch


def allocated(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory of descriptors, which Triton asks for at each launch."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def measure(case: Case, usage: dict[str, str]) -> None:
    torch.manual_seed(0)
    triton.set_allocator(allocated)
    tensors = case.tensors()
    expected = case.expected(tensors)
    for name, kernels in case.candidates.items():
        row: dict[str, Any] = {"config": name, "uses": [usage[identity(k)] for k in kernels]}
        case.results.append(row)
        try:
            launch = launcher(kernels, tensors)
            for n in case.outputs:
                tensors[n].fill_(math.nan)
            launch()
            torch.cuda.synchronize()
            row["error"] = max(((tensors[n].to(e.dtype) - e).norm() / e.norm()).item()
                               for n, e in expected.items())
            row["right"] = row["error"] <= case.error
            row["seconds"] = time_of(launch)
            row["rate"] = case.work / row["seconds"] * (1e-9 if case.unit == "GB/s" else 1e-12)
        except Exception as e:
            row["failed"] = f"{type(e).__name__}: {str(e)[:200]}"
            print(f"{case.title}, {name}: {row['failed']}", flush=True)
            torch.cuda.synchronize()  # after a wrong access nothing runs any more: stop here
    del expected
    torch.cuda.empty_cache()
    if case.peer is not None:
        row = {"config": "torch"}
        case.results.append(row)
        try:
            row["seconds"] = time_of(case.peer(tensors))
            row["rate"] = case.work / row["seconds"] * (1e-9 if case.unit == "GB/s" else 1e-12)
        except Exception as e:
            row["failed"] = f"{type(e).__name__}: {str(e)[:200]}"


def report(case: Case) -> str:
    ours = [r for r in case.results if r["config"] != "torch"]
    right = [r for r in ours if r.get("right")]
    best = max(right, key=lambda r: r["rate"]) if right else None
    peer = next((r.get("rate") for r in case.results if r["config"] == "torch"), None)
    wrong = [r["config"] for r in ours if not r.get("right", True)]
    failed = [f"{r['config']}: {r['failed'][:80]}" for r in ours if "failed" in r]
    line = f"{case.title:38s}"
    line += f"{best['rate']:8.1f}" if best else "       -"
    line += f"{peer:8.1f}" if peer else "       -"
    line += f"{case.goal:7.0f}" if case.goal else "      -"
    line += f" {case.unit:8s} {best['error']:.0e}  {best['config']}" if best else " nothing right"
    if right and right[0] is not best:
        line += f" (first: {right[0]['rate']:.1f})"
    if wrong:
        line += f"\n    WRONG: {', '.join(wrong)}: " + ", ".join(
            f"{r['error']:.1e}" for r in ours if not r.get("right", True))
    return line + "".join(f"\n    failed: {text}" for text in failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="cases whose title contains this")
    parser.add_argument("--most", type=int, default=99, help="configurations of a case")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--seconds", type=float, default=330, help="start no case after them")
    options = parser.parse_args()
    begin = time.perf_counter()
    chosen = [c for c in cases() if options.only in c.title]
    for case in chosen:
        case.candidates = dict(list(case.candidates.items())[:options.most])
    kernels = {identity(k): k for c in chosen for ks in c.candidates.values() for k in ks}
    FOLDER.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        usage = dict(zip(kernels, pool.map(compile_one, kernels.values())))
    print(f"{len(kernels)} kernels compiled in {time.perf_counter() - begin:.0f} s")
    if options.compile_only:
        for case in chosen:
            for name, ks in case.candidates.items():
                for k in ks:
                    print(f"{case.title:36s} {name:36s} {k.name}: {usage[identity(k)]}")
        return 0
    triton.set_allocator(lambda size, align, stream: torch.empty(
        size, dtype=torch.int8, device="cuda"))
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, torch {torch.__version__}")
    print(f"{'':38s}    best   torch   goal          error")
    for case in chosen:
        if time.perf_counter() - begin > options.seconds:
            print(f"{case.title}: left out, {options.seconds:.0f} s are over")
            continue
        measure(case, usage)
        print(report(case), flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps([
                {"title": c.title, "unit": c.unit, "goal": c.goal, "results": c.results}
                for c in chosen if c.results], indent=1))
    print(f"{time.perf_counter() - begin:.0f} s")
    wrong = [c.title for c in chosen for r in c.results if not r.get("right", True)]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
