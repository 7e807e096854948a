"""Programs that arithmetic limits: matrix products, convolution, attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from bounds import Best

from cpu_workloads.entries import Entries, gigaflops, normal, workload

ONE = ".block_until_ready()"
SIDE = 1024


def add_matmul(add: Entries, x: np.ndarray, y: np.ndarray) -> None:
    add.traced(lambda lib: lambda x, y: x @ y, x, y, wait=ONE)
    add.torch(lambda x, y: x @ y, x, y)
    if x.dtype == np.float32:
        add.numpy(lambda x, y: x @ y, x, y)


@workload("matmul 1024^3", Best(), gigaflops(2 * SIDE**3))
def matmul(add):
    add_matmul(add, normal(SIDE, SIDE), normal(SIDE, SIDE, seed=1))


@workload("matmul 1024^3, bfloat16", Best(speed=0.9), gigaflops(2 * SIDE**3), tolerance=2e-2)
def matmul_bfloat16(add):
    kind = ml_dtypes.bfloat16
    add_matmul(add, normal(SIDE, SIDE, dtype=kind), normal(SIDE, SIDE, seed=1, dtype=kind))


@workload("batched matmul, 1024 x 32^3", Best(speed=1.5), gigaflops(2 * 1024 * 32**3))
def batched_32(add):
    add_matmul(add, normal(1024, 32, 32), normal(1024, 32, 32, seed=1))


@workload("batched matmul, 4096 x 8^3", Best(speed=3), gigaflops(2 * 4096 * 8**3))
def batched_8(add):
    add_matmul(add, normal(4096, 8, 8), normal(4096, 8, 8, seed=1))


@workload("matmul + bias + gelu, 1024^3", Best(speed=1.1), gigaflops(2 * SIDE**3))
def matmul_gelu(add):
    arguments = normal(SIDE, SIDE), normal(SIDE, SIDE, seed=1, scale=1 / 32), normal(SIDE, seed=2)
    add.traced(lambda lib: lambda x, w, b: lib.nn.gelu(x @ w + b), *arguments, wait=ONE)
    if torch := add.lib.torch:
        call = torch.nn.functional
        # addmm is what nn.Linear calls, without its transpose
        add.torch(
            lambda x, w, b: call.gelu(torch.addmm(b, x, w), approximate="tanh"), *arguments
        )


@workload("matmul + bias + gelu, 1024^3, bfloat16", Best(speed=0.95), gigaflops(2 * SIDE**3),
          tolerance=2e-2)  # fmt: skip
def matmul_gelu_bfloat16(add):
    floats = normal(SIDE, SIDE), normal(SIDE, SIDE, seed=1, scale=1 / 32), normal(SIDE, seed=2)
    arguments = [x.astype(ml_dtypes.bfloat16) for x in floats]
    add.traced(lambda lib: lambda x, w, b: lib.nn.gelu(x @ w + b), *arguments, wait=ONE)
    if torch := add.lib.torch:
        call = torch.nn.functional
        add.torch(
            lambda x, w, b: call.gelu(torch.addmm(b, x, w), approximate="tanh"), *arguments
        )


IMAGES, EDGE, CHANNELS = 16, 32, 64
CONV_FLOPS = 3 * 2 * IMAGES * EDGE * EDGE * CHANNELS * CHANNELS * 9


@workload("3x3 conv + bias + relu, forward + backward", Best(), gigaflops(CONV_FLOPS))
def conv_block(add):
    x = normal(IMAGES, EDGE, EDGE, CHANNELS)
    w = normal(3, 3, CHANNELS, CHANNELS, seed=1, scale=1 / 24)
    b = normal(CHANNELS, seed=2)
    cotangent = normal(IMAGES, EDGE, EDGE, CHANNELS, seed=3)

    def make(lib):
        def block(x, w, b):
            y = lib.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return lib.nn.relu(y + b)

        def run(cotangent, *arguments):
            out, pull = lib.vjp(block, *arguments)
            return out, *pull(cotangent)

        return run

    add.traced(make, cotangent, x, w, b)
    if torch := add.lib.torch:
        # torch's own layout; its results are JAX's transposed
        add.torch_pullback(
            lambda x, w, b: torch.relu(torch.nn.functional.conv2d(x, w, b, padding=1)),
            cotangent.transpose(0, 3, 1, 2),
            x.transpose(0, 3, 1, 2),
            w.transpose(3, 2, 0, 1),
            b,
            restore=lambda out, dx, dw, db: (
                out.permute(0, 2, 3, 1), dx.permute(0, 2, 3, 1), dw.permute(2, 3, 1, 0), db
            ),
        )  # fmt: skip


BATCH, HEADS, LENGTH, DEPTH = 4, 8, 512, 64
ATTENTION_FLOPS = 4 * BATCH * HEADS * LENGTH * LENGTH * DEPTH


def attention(lib):
    """Softmax attention on (batch, heads, length, depth)."""

    def run(q, k, v):
        scores = q @ k.swapaxes(-1, -2) / DEPTH**0.5
        return lib.nn.softmax(scores, axis=-1) @ v

    return run


def attention_arrays() -> list[np.ndarray]:
    return [normal(BATCH, HEADS, LENGTH, DEPTH, seed=seed) for seed in range(3)]


@workload("attention B4 H8 S512 D64", Best(speed=1.3), gigaflops(ATTENTION_FLOPS))
def attention_forward(add):
    add.traced(attention, *attention_arrays(), wait=ONE)
    if torch := add.lib.torch:
        add.torch(torch.nn.functional.scaled_dot_product_attention, *attention_arrays())


@workload(
    "attention B4 H8 S512 D64, forward + backward", Best(speed=1.3), gigaflops(3 * ATTENTION_FLOPS)
)
def attention_backward(add):
    cotangent = normal(BATCH, HEADS, LENGTH, DEPTH, seed=3)

    def make(lib):
        def run(cotangent, *arguments):
            out, pull = lib.vjp(attention(lib), *arguments)
            return out, *pull(cotangent)

        return run

    add.traced(make, cotangent, *attention_arrays())
    if torch := add.lib.torch:
        call = torch.nn.functional.scaled_dot_product_attention
        add.torch_pullback(call, cotangent, *attention_arrays())
