"""The number after another one in dtypes of one and two bytes, by arithmetic on their bits.

Kernels compute such numbers in float32, whose next number is much closer and rounds back.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.primitives.arithmetic import add, mul, sub
from functrans.primitives.compare import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    eq,
    gt,
    lt,
    ne,
    select_n,
)
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.primitives.index import index_take
from functrans.primitives.shape import reshape
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array

__all__ = ["next_number"]

_SIGN, _INT = np.uint16(1 << 15), np.dtype(np.int32)


@custom_jvp
def next_number(x: Array, y: Array) -> Array:
    """The next number after x towards y, arrays of one shape and of a dtype of 1 or 2 bytes."""
    found = (_by_bits if x.dtype.itemsize == 2 else _by_table)(x, y)
    return select_n(bitwise_or(ne(x, x), ne(y, y)), found, add(x, y))


@next_number.defjvp
def _jvp(primals: Any, tangents: Any) -> Any:
    return next_number(*primals), tangents[0]


def _by_bits(x: Array, y: Array) -> Array:
    """One step of the integer that the bits are, which is ordered as the numbers of a sign are."""
    bits, towards = (bitcast_convert_type(v, np.dtype(np.uint16)) for v in (x, y))
    zero = x.dtype.type(0)
    smaller = bitwise_xor(lt(x, y), gt(x, zero))
    whole = convert_element_type(bits, _INT)
    moved = sub(add(whole, np.int32(1)), mul(convert_element_type(smaller, _INT), np.int32(2)))
    first = bitwise_or(bitwise_and(towards, _SIGN), np.uint16(1))
    found = select_n(eq(x, zero), convert_element_type(moved, bits.dtype), first)
    return bitcast_convert_type(select_n(eq(x, y), found, towards), x.dtype)


def _by_table(x: Array, y: Array) -> Array:
    up, down = _tables(x.dtype)
    codes = reshape(convert_element_type(bitcast_convert_type(x, np.dtype(np.uint8)), _INT),
                    (x.size,))
    above, below = (
        bitcast_convert_type(reshape(index_take(to_array(table), (codes,), (0,)), x.shape), x.dtype)
        for table in (up, down))
    return select_n(lt(x, y), select_n(gt(x, y), y, below), above)


@cache
def _tables(dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The codes of the next numbers up and down, by the code of a number."""
    bits = int(dtypes.finfo(dtype).bits)
    codes = (np.arange(256) & ((1 << bits) - 1)).astype(np.uint8).view(dtype)
    finite = codes[~np.isnan(codes.astype(np.float32))]
    order = np.argsort(finite.astype(np.float32))
    with np.errstate(all="ignore"):
        ends = [np.full(256, finite[order[i]], dtype) for i in (-1, 0)]
        up, down = (np.nextafter(codes, end).view(np.uint8) for end in ends)
    return up, down
