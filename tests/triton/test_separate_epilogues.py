"""Which epilogues of large products are kernels of their own."""

import functrans as ft
import functrans.numpy as xp
from functrans import nn
from tests.triton.emulated import kernels_of, program_of


def half(*shape):
    return ft.ShapeDtypeStruct(shape, "bfloat16")


def launches(fun, *args):
    return len(kernels_of(program_of(fun, *args)[1]))


def test_arithmetic_beside_loads_is_apart():
    def gradient(g, w, z):
        return ft.vjp(nn.gelu, z)[1](g @ w)[0]

    assert launches(gradient, half(8192, 1024), half(1024, 4096), half(8192, 4096)) == 2
    assert launches(gradient, half(512, 1024), half(1024, 512), half(512, 512)) == 1


def test_little_arithmetic_and_sums_of_two_are_epilogues():
    assert launches(lambda x, w: nn.gelu(x @ w), half(8192, 1024), half(1024, 4096)) == 1
    assert launches(lambda x, w, y: x @ w + y, half(8192, 1024), half(1024, 4096),
                    half(8192, 4096)) == 1


def test_what_is_long_of_rows_is_apart():
    """All lanes of a tile would compute it, and the kernel takes seconds to compile."""
    def scaled(x, w, r, count):
        for k in range(count):
            r = xp.sin(r) * r + k
        return xp.tanh(x @ w * r[:, None]) * r[:, None] + xp.exp(r)[:, None]

    args = [ft.ShapeDtypeStruct(shape, "float32") for shape in ((2048, 64), (64, 256), (2048,))]
    for count, behind in ((8, 8), (60, 0)):
        _, program, _ = program_of(lambda *xs, n=count: scaled(*xs, n), *args)
        (product,) = [text for text in program.sources if "tl.dot" in text]
        assert product.count("fm.sin") == behind
