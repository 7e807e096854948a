"""Vectors are as wide as what changes along a row, and what is stored is rounded by the store."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.isa import host_isa

X = np.linspace(-2, 2, 4096, dtype=np.float32)
WORDS = {  # of one number of 64 bits and a row of 32
    "key": (lambda k, x: x + ft.random.uniform(k, (4096,), "float32"), ft.random.key(0)),
    "double": (lambda s, x: x * s.astype("float32"), np.float64(0.5)),
    "long": (lambda s, x: x * s.astype("float32"), np.int64(3)),
    "element": (lambda s, x: x * s[1].astype("float32"), np.arange(3.0)),
}


def text_of(fun, *args):
    return ft.jit(fun).lower(*args).compile().as_text()


@pytest.mark.parametrize("name", WORDS)
def test_a_wide_number_makes_no_narrow_vectors(name):
    fun, wide = WORDS[name]
    with ft.default_dtypes("float64", "int64"):
        text = text_of(fun, wide, X)
        found = np.asarray(ft.jit(fun)(wide, X))
    lanes = host_isa().vector_bytes // 4
    assert f"const f32x{lanes} " in text and f"const f32x{lanes // 2} " not in text
    np.testing.assert_array_equal(found, np.asarray(fun(wide, jnp.asarray(X))))


def test_a_wide_row_makes_them():
    with ft.default_dtypes("float64", "int64"):
        text = text_of(lambda d, x: x * d.astype("float32"), X.astype("d"), X)
    assert f"const f32x{host_isa().vector_bytes // 8} " in text


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_half_that_is_only_stored_is_rounded_once(dtype):
    x = jnp.asarray(X).astype(dtype)
    short = {"bfloat16": "bf16", "float16": "f16"}[dtype]

    def rounds(fun):
        body = text_of(fun, x).partition("static void k0")[2]
        return len(re.findall(rf"round_{short}", body))

    assert rounds(lambda x: x * 2 + 1) == 0
    # what is compared is what is stored
    assert rounds(lambda x: (y := x * 3, y > x * 2)) > 0
    y, larger = ft.jit(lambda x: (y := x * 3, y > 1))(x)
    np.testing.assert_array_equal(np.asarray(larger), np.asarray(y).astype("f") > 1)
