"""Batches of small matrix products are unrolled code, not calls of the library."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from tests.lowering.test_epilogues import array, check


def calls_the_library(f, *args):
    return "ft_gemm" in ft.jit(f).lower(*args).compile().as_text()


def product(x, y):
    return x @ y


def turned(x, y):
    return x @ y.swapaxes(-1, -2)


def test_what_is_unrolled():
    assert not calls_the_library(product, array(256, 8, 8), array(256, 8, 8))
    assert not calls_the_library(turned, array(4, 64, 3, 4), array(4, 64, 3, 4))
    assert calls_the_library(product, array(8, 8, 8), array(8, 8, 8))  # few
    assert calls_the_library(product, array(256, 16, 16), array(256, 16, 16))  # large
    assert calls_the_library(product, array(256, 8, 8, dtype="int32"),
                             array(256, 8, 8, dtype="int32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(st.integers(1, 16), st.integers(1, 16), st.integers(1, 16), st.booleans())
@settings(max_examples=25, deadline=None)
def test_shapes(dtype, m, k, n, is_turned):
    x, y = array(3, 50, m, k, dtype=dtype), array(50, *((n, k) if is_turned else (k, n)),
                                                 dtype=dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    check(turned if is_turned else product, x, y, tolerance=tolerance)


def test_gradients_of_many():
    def loss(w, x):
        return (ft.numpy.tanh(x @ w) ** 2).sum()

    w, x = array(100, 8, 8), array(100, 8, 8)
    check(ft.vmap(ft.value_and_grad(loss, argnums=(0, 1))), w, x)
