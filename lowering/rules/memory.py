"""What values of a type are in memory.

A complex64 is read and written as one integer of 64 bits, a complex32 as one of 32: every access is
as wide as the number, and its halves are registers. A complex128 is two elements along a last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.lowering.loops.tensor import FLOAT8, Stored, memory_dtype

__all__ = ["in_memory", "memory", "stored"]


def stored(aval: ShapedArray, source: Any = None) -> Stored:
    """A value that kernels read as its dtype says; they read no complex and no short float."""
    dtype = memory_dtype(aval.dtype)
    return Stored(aval.shape, "raw1" if dtype in FLOAT8 else dtype, (), source)


def memory(aval: ShapedArray, source: Any = None) -> Stored:
    """A value that kernels of a GPU read."""
    return _complex(aval, source) or Stored(aval.shape, memory_dtype(aval.dtype), (), source)


def in_memory(aval: ShapedArray, source: Any = None) -> Stored:
    """A value that kernels of a CPU read."""
    return _complex(aval, source) or stored(aval, source)


def _complex(aval: ShapedArray, source: Any) -> Stored | None:
    if aval.dtype == dtypes.complex32:
        return Stored(aval.shape, "i32", (), source)
    if aval.dtype == np.complex64:
        return Stored(aval.shape, "i64", (), source)
    if aval.dtype == np.complex128:
        return Stored((*aval.shape, 2), "f64", (), source)
    return None
