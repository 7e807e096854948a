"""float64 to float32 rounded to odd, so that rounding once more is as if it was done once.

To nearest, twice, is wrong half way between two narrow numbers: what is a little above is half way
once it is a float32, and goes to the even one. Rounded to odd, what is no float32 has a last bit of
1, which says that it is on this side of half way. It needs two bits more than the narrow number.
Source: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums: proved algorithms using
rounding to odd, IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.primitives.arithmetic import abs, sub
from functrans.primitives.base import full
from functrans.primitives.compare import bitwise_or, gt, ne, where
from functrans.primitives.convert import bitcast_convert_type, convert_element_type

__all__ = ["odd_float32"]

F32, F64, I32 = map(np.dtype, (np.float32, np.float64, np.int32))


def odd_float32(x: Any) -> Any:
    """A float64 as float32, by operations."""
    near = convert_element_type(x, F32)
    again = convert_element_type(near, F64)
    bits = bitcast_convert_type(near, I32)
    one = full(bits.shape, 1, I32)
    bits = where(gt(abs(again), abs(x)), sub(bits, one), bits)  # towards zero
    return bitcast_convert_type(where(ne(again, x), bitwise_or(bits, one), bits), F32)
