"""Bits read as another dtype: every pair of dtypes, of the same width or not."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
from functrans import lax

DTYPES = ("int8", "uint8", "int16", "uint16", "bfloat16", "float16", "int32", "uint32", "float32",
          "int64", "uint64", "float64")


def named(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("old", "new"), list(itertools.product(DTYPES, DTYPES)))
def test_bits(old, new):
    source, target = named(old), named(new)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 37, 8)).astype(np.float64).view(np.uint8).reshape(3, -1)
    x = x.view(source)
    if "float" in new:  # no NaN, which has many forms
        x = (np.arange(3 * 64) % 100).astype(source).reshape(3, 64)
    if old == "float16":  # registers have it in float32, where no NaN is a signalling one
        bits = x.view(np.uint16)
        x = np.where(np.isnan(x), bits | 0x200, bits).view(source)
    if source.itemsize < target.itemsize:
        x = x.reshape(3, -1, target.itemsize // source.itemsize)
    fun = lambda a: lax.bitcast_convert_type(a, target)
    with ft.config.use_backend("c"):
        actual = np.asarray(ft.jit(fun)(x))
    expected = np.asarray(fun(ft.numpy.asarray(x)))
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()
