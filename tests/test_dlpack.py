"""DLPack with the dtypes that NumPy's own export and import do not know."""

import ctypes
import gc

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


class Library:
    """Another library's array on our memory, whose protocol is old or new."""

    def __init__(self, x, versioned):
        self.x, self.versioned = x, versioned

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def described(capsule, name, offset):
    """(code, bits, lanes) of a capsule, read from memory as DLPack lays it out."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    raw = (ctypes.c_uint8 * 4).from_address(get(capsule, name) + offset)
    return raw[0], raw[1], raw[2] + 256 * raw[3]


def test_bfloat16_says_so():
    x = jnp.arange(6, dtype="bfloat16")
    # the dtype follows pointer, device and number of dimensions: 8 + 8 + 4 bytes; a versioned
    # struct has version, context, deleter and flags before: 8 + 8 + 8 + 8
    assert described(x.__dlpack__(), b"dltensor", 20) == (4, 16, 1)
    assert described(x.__dlpack__(max_version=(1, 0)), b"dltensor_versioned", 52) == (4, 16, 1)
    assert described(jnp.ones(2).__dlpack__(), b"dltensor", 20) == (2, 32, 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", NARROW)
def test_both_ways_without_a_copy(dtype, versioned):
    x = jnp.asarray(np.arange(6.0).reshape(2, 3), dtype)
    y = ft.dlpack.from_dlpack(Library(x, versioned))
    assert y.dtype == getattr(ml_dtypes, dtype) and y.shape == (2, 3)
    assert np.shares_memory(np.asarray(x).view(np.uint8), np.asarray(y).view(np.uint8))
    expected = np.asarray(x).tobytes()
    del x
    gc.collect()
    assert y.tobytes() == expected
    assert ft.jit(lambda v: v.astype("float32") + 1)(y).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("versioned", [True, False])
def test_complex32_is_a_complex_number_of_32_bits(versioned):
    x = jnp.array([1 + 2j, -3j], "complex32")
    assert described(x.__dlpack__(), b"dltensor", 20) == (5, 32, 1)
    y = ft.dlpack.from_dlpack(Library(x, versioned))
    assert y.dtype == x.dtype and y.tolist() == [1 + 2j, -3j]
    assert np.shares_memory(*[np.asarray(v, v.dtype).view(np.uint8) for v in (x, y)])


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32",
                                   "complex64", "complex128"])
def test_dtypes_of_numpy(dtype, versioned):
    x = jnp.asarray(np.arange(4)).astype(dtype)
    y = ft.dlpack.from_dlpack(Library(x, versioned))
    assert y.dtype == x.dtype and y.tolist() == x.tolist()
    if versioned:
        assert np.from_dlpack(x).tolist() == x.tolist()
    parts = ft.dlpack.from_dlpack(np.arange(8).astype(dtype)[::2])
    assert parts.tolist() == np.arange(8).astype(dtype)[::2].tolist()


def test_copies_and_many_exports():
    x = jnp.arange(4, dtype="bfloat16")
    own = ft.dlpack.from_dlpack(Library(x, True), copy=True)
    assert not np.shares_memory(np.asarray(own).view("u2"), np.asarray(x).view("u2"))
    capsules = [x.__dlpack__() for _ in range(100)]  # not consumed: each frees its own struct
    del capsules
    gc.collect()
    assert x.tolist() == [0, 1, 2, 3]


def test_every_floating_dtype_prints_as_numbers():
    for dtype in (*NARROW, "float8_e4m3fnuz", "float8_e5m2fnuz"):
        assert "1.5" in repr(jnp.asarray([1.5, 2.0, 0.25], dtype)), dtype
