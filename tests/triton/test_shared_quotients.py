"""Sums of columns write quotients that a tile shares once, and load neighbours beside them."""

import re

import numpy as np

import functrans as ft
from functrans import lax
from functrans import numpy as xp
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import check


def draw(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def sums_of_columns(program):
    return [text for text in program.sources if "column = pid" in text]


def test_group_norms_read_a_number_for_each_group():
    def norm(x, groups=2):
        n, h, w, c = x.shape
        x = x.reshape(n, h, w, groups, c // groups)
        mean = xp.mean(x, axis=(1, 2, 4), keepdims=True)
        var = xp.var(x, axis=(1, 2, 4), keepdims=True)
        return ((x - mean) * lax.rsqrt(var + 1e-5)).reshape(n, h, w, c)

    def gradient(x, b, ct):
        return ft.vjp(lambda x, b: norm(x + b), x, b)[1](ct)

    program = check(gradient, draw(4, 32, 32, 64), draw(64), draw(4, 32, 32, 64), tolerance=2e-3)
    compile_kernels(program)
    (text,) = [t for t in sums_of_columns(program) if "// 1024" in t]
    (image,) = re.findall(r"(v\d+) = \(part \* \d+ \+ t \* \d+\) // 1024\n", text)
    (group,) = re.findall(r"(v\d+) = \(column \* 32\) // 32\n", text)
    assert len(re.findall(rf"tl\.load\(p\d \+ {image} \* 2 \+ {group}\)", text)) >= 3


def test_parts_that_are_joined_are_read_where_a_tile_is():
    """A tile of columns has one of them, and one head of it."""
    def gradient(x, b, q, k, v):
        def split(x, b):
            return tuple((x + b).reshape(-1, 49, 3, 3, 128).transpose(2, 0, 3, 1, 4))

        return ft.vjp(split, x, b)[1]((q, k, v))

    parts = [draw(16, 3, 49, 128) + k for k in range(3)]
    program = check(gradient, draw(16 * 49, 1152), draw(1152), *parts, tolerance=1e-3)
    compile_kernels(program)
    (text,) = [t for t in sums_of_columns(program) if "% 49" in t]
    assert "by_lanes" not in text and re.search(r"v\d+ = \(column \* \d+\) // 384\n", text)
