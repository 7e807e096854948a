"""Sums over nothing and results of no elements: zeros are written, and nothing is read.

Memory of the interpreter that nobody wrote is no number, and a GPU may take what a loop would
divide by as a promise that the loop runs.
"""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as xp
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import check, program_of


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def agrees(fun, *args):
    """The values of the interpreter, and of no program; and Triton takes the kernels."""
    compile_kernels(check(fun, *args))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("m, k, n", [(64, 0, 5), (1, 0, 1), (0, 0, 3), (64, 0, 64), (5, 3, 0),
                                     (0, 4, 4)])
def test_products(m, k, n, dtype):
    x, y = ones(m, k, dtype=dtype), ones(k, n, dtype=dtype)
    agrees(lambda x, y: (x @ y, xp.abs(x @ y) + 1), x, y)
    agrees(lambda x, y: xp.einsum("bij,bjk->bik", x, y), ones(3, m, k, dtype=dtype),
           ones(3, k, n, dtype=dtype))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("options", [{}, {"lhs_dilation": (2, 2)}, {"rhs_dilation": (2, 1)}])
@pytest.mark.parametrize("batch, features, size, outs, window", [
    (2, 0, 8, 4, 3), (0, 3, 8, 4, 3), (2, 3, 8, 0, 3), (2, 3, 8, 4, 0), (2, 3, 8, 4, 1)])
def test_convolutions(batch, features, size, outs, window, options):
    x, w = ones(batch, features, size, size), ones(outs, features, window, window)

    def convolved(x, w, stride):
        return lax.conv_general_dilated(x, w, (stride, stride), [(1, 1), (1, 1)], **options)

    agrees(lambda x, w: convolved(x, w, 1), x, w)
    agrees(ft.grad(lambda x, w: xp.sum(convolved(x, w, 2) ** 2), (0, 1)), x, w)


def test_taps_of_no_window_read_nothing():
    """A dilated input and a window of one tap: three of four places of the output are zeros."""
    def convolved(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", lhs_dilation=(2, 2))

    x, w = ft.ShapeDtypeStruct((2, 16, 8, 8), "float32"), ft.ShapeDtypeStruct((4, 16, 1, 1),
                                                                             "float32")
    _, program, _ = program_of(convolved, x, w)
    texts = [text for text in program.sources if "def convolution(" in text]
    assert sorted({"tl.dot" in text for text in texts}) == [False, True]


@pytest.mark.parametrize("queries, keys, size, value_size", [
    (0, 4, 4, 4), (4, 4, 0, 4), (4, 4, 4, 0), (0, 0, 4, 4)])
def test_attention(queries, keys, size, value_size):
    def attention(q, k, v):
        weights = xp.einsum("bqhd,bkhd->bhqk", q, k)
        return xp.einsum("bhqk,bkhd->bqhd", nn.softmax(weights, -1) if keys else weights, v)

    args = (ones(2, queries, 3, size), ones(2, keys, 3, size), ones(2, keys, 3, value_size))
    agrees(attention, *args)
    agrees(ft.grad(lambda *args: xp.sum(attention(*args)), (0, 1, 2)), *args)


@pytest.mark.parametrize("shape, axis", [((0, 5), 0), ((0, 5), 1), ((5, 0), 1), ((3, 0, 4), 1),
                                         ((3, 0, 4), 2)])
def test_folds_orders_and_loops(shape, axis):
    x = ones(*shape)
    agrees(lambda x: (x.sum(axis), x.prod(axis), (x > 0).all(axis), (x > 0).any(axis)), x)
    agrees(lambda x: (xp.cumsum(x, axis), lax.cummax(x, axis=axis), xp.sort(x, axis),
                      xp.argsort(x, axis)), x)
    agrees(lambda x: lax.scan(lambda c, y: (c + xp.sum(y), c), 0.0, xp.moveaxis(x, axis, 0)), x)
    if shape[axis]:
        agrees(lambda x: (x.max(axis), x.argmax(axis), nn.softmax(x, axis)), x)


@pytest.mark.parametrize("count", [100, 3000])
def test_one_largest(count):
    agrees(lambda x: lax.top_k(x, 1), np.random.default_rng(0).normal(size=(5, count)).astype("f4"))
