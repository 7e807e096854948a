"""Library functions of compiled programs, called by ctypes."""

import ctypes

import ml_dtypes
import numpy as np

from functrans import _runtime as rt

I64, POINTER = ctypes.c_longlong, ctypes.c_void_p
NAMES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
         "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]
REAL = NAMES[:13]


def code(dtype):
    return NAMES.index(np.dtype(dtype).name)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def library(name, *args):
    """The function of that name; `args` are I64 and POINTER. It must return 0."""
    address = rt.library_address(name)
    assert address, name
    function = ctypes.CFUNCTYPE(ctypes.c_int, *args)(address)

    def call(*values):
        status = function(*(v.ctypes.data if isinstance(v, np.ndarray) else v for v in values))
        assert status == 0

    return call


def pointers(arrays):
    return (POINTER * len(arrays))(*[None if x is None else x.ctypes.data for x in arrays])


def sample(rng, name, shape, few=False):
    """Random values; floats with zeros of both signs, NaN and infinities; `few` repeat often."""
    dtype = dtype_of(name)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "float" not in name:
        limits = np.iinfo(dtype)
        low, high = (0, 4) if few else (limits.min, limits.max)
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    x = rng.standard_normal(shape) * (1 if few else 1000)
    x = (np.round(x) if few else x).astype(dtype)
    flat = x.reshape(-1)
    if flat.size > 8:
        for value in (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf):
            flat[rng.integers(0, flat.size, flat.size // 12)] = value
    return x


def assert_same(got, expected):
    """Equal values, signs of zeros too; any NaN equals any other."""
    assert got.dtype == expected.dtype
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(got)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
