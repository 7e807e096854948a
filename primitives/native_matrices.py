"""Functions of csrc/lib_schur.cpp on NumPy arrays: stacks of matrices, computed in double."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from functrans._runtime import library_address
from functrans.core.errors import OutOfMemoryError

__all__ = ["CODES", "call", "library_function"]

CODES = {"float32": 0, "float64": 1, "complex64": 13, "complex128": 14}
"""The dtypes of matrices that the runtime's functions take, and their numbers there."""


@cache
def library_function(name: str, numbers: int, arrays: int) -> Any:
    """A function of numbers and of addresses, which is called without the interpreter's lock."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * numbers,
                                 *[ctypes.c_void_p] * arrays)
    return prototype(library_address(name))


def call(name: str, operands: Sequence[Any], outs: Sequence[tuple[tuple[int, ...], Any]],
         *flags: int, missing: int = 0, sizes: Sequence[int] = ()) -> list[np.ndarray[Any, Any]]:
    """Results of shapes and dtypes `outs` for stacks of matrices of one dtype.

    The function takes the dtype, how many matrices, their sizes (by default the columns of the
    first two operands), the flags, and the arrays; `missing` results are not asked for.
    """
    arrays = [np.ascontiguousarray(x) for x in operands]
    results = [np.empty(shape, dtype) for shape, dtype in outs]
    batch = math.prod(arrays[0].shape[:-2])
    sizes = sizes or [x.shape[-1] for x in arrays[:2]]
    numbers = [CODES[arrays[0].dtype.name], batch, *sizes, *flags]
    addresses = [x.ctypes.data for x in (*arrays, *results)] + [None] * missing
    if batch and all(sizes):
        status = library_function(name, len(numbers), len(addresses))(*numbers, *addresses)
        if status:
            raise OutOfMemoryError(f"{name} of {batch} matrices of shape {arrays[0].shape[-2:]}: "
                                   "there is not enough memory.")
    return results
