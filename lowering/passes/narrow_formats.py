"""The bits of narrow numbers, computed: their values in wider ones, and wider ones rounded to them.

A float of few bits is a sign, an exponent with a bias and a fraction, as those of IEEE 754 are. Its
codes for infinities and for what is no number, and what becomes of numbers that are too large,
differ from one to the next (OCP 8-bit floating point, rev. 1.0; OCP microscaling formats, v1.0).
ml_dtypes, whose dtypes these are, is asked once for each.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import ml_dtypes
import numpy as np

from functrans.core import dtypes
from functrans.core.record import Record
from functrans.primitives.arithmetic import abs, add, max, min, mul, sub
from functrans.primitives.base import full
from functrans.primitives.compare import (
    bitwise_and,
    bitwise_or,
    eq,
    ge,
    gt,
    lt,
    ne,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    where,
)
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.primitives.rounding import odd_float32

__all__ = ["NARROW", "narrowed", "widened"]

FLOATS: Final = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
                 "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                 "float8_e5m2fnuz", "float8_e8m0fnu")
INTEGERS: Final = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
NARROW: Final = frozenset((*FLOATS, *INTEGERS))
"""The names of the dtypes of less than 16 bits that are no bytes."""

F32, U32, BYTE, SIGNED = map(np.dtype, (np.float32, np.uint32, np.uint8, np.int8))


def widened(x: Any, dtype: np.dtype[Any], unsigned: bool = False) -> Any:
    """The numbers that bytes of a dtype stand for: in float32, int8 or uint8.

    Of `unsigned` integers the bits are wanted, without a sign.
    """
    if dtypes.kind(dtype) == "f":
        return _float_of(x, _format(dtype.name))
    if unsigned or dtypes.kind(dtype) == "u":
        return bitwise_and(x, _like(x, _mask(dtype)))
    unused = _like(x, 8 - dtypes.iinfo(dtype).bits, SIGNED)
    return shift_right_arithmetic(shift_left(bitcast_convert_type(x, SIGNED), unused), unused)


def narrowed(x: Any, dtype: np.dtype[Any]) -> Any:
    """The bytes of numbers rounded to a dtype; integers wrap, but floats to integers saturate.

    Integers of 32 bits and more are rounded to float32 first, as NumPy does.
    """
    if dtypes.kind(dtype) == "f":
        wide = odd_float32(x) if x.dtype == np.float64 else convert_element_type(x, F32)
        return _rounded(wide, _format(dtype.name))
    if dtypes.kind(x.dtype) in "fc":
        info = dtypes.iinfo(dtype)
        x = convert_element_type(x, np.dtype(np.int32))
        x = max(min(x, _like(x, int(info.max))), _like(x, int(info.min)))
    return bitwise_and(_byte(x), _like(x, _mask(dtype), BYTE))


def _byte(x: Any) -> Any:
    return bitcast_convert_type(x, BYTE) if x.dtype == SIGNED else convert_element_type(x, BYTE)


def _mask(dtype: np.dtype[Any]) -> int:
    return (1 << int(dtypes.iinfo(dtype).bits)) - 1


def _like(x: Any, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    return full(x.shape, value, x.dtype if dtype is None else dtype)


# --- Floats


class _Format(Record):
    """A float of `bits`: a sign, where `signed`, an exponent, and `fraction` bits of a fraction.

    Pairs of codes are for positive and for negative numbers.
    """

    bits: int
    fraction: int
    bias: int
    signed: bool
    zero: tuple[int, int]
    infinite: tuple[int, int]
    nan: tuple[int, int]
    too_large: tuple[int, int]
    largest: int
    limit: float
    """Half a step above the largest number: what is larger is too large."""
    limit_is_too_large: bool
    infinity: int | None
    """The code of an infinity that is a value."""
    first_nan: int | None
    """The least code without a sign that is no number."""
    lone_nan: int | None
    """The one that has the place of the negative zero."""


@functools.cache
def _format(name: str) -> _Format:
    dtype = np.dtype(getattr(ml_dtypes, name))
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    bits, fraction = int(info.bits), int(info.nmant)
    values = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    signed = bool((values < 0).any())
    sign = 1 << bits - 1 if signed else len(values)
    finite = np.unique(values[np.isfinite(values)])
    limit = float(finite[-1] + (finite[-1] - finite[-2]) / 2)

    def codes(x: float) -> tuple[int, int]:
        with np.errstate(all="ignore"):
            both = np.array([x, -x]).astype(dtype).view(np.uint8)
        return int(both[0]), int(both[1])

    def first(where: np.ndarray[Any, Any]) -> int | None:
        found = np.flatnonzero(where)
        return int(found[0]) if found.size else None

    one = first(values == 1)
    assert one is not None
    return _Format(
        bits, fraction, one >> fraction, signed, codes(0.0), codes(np.inf), codes(np.nan),
        codes(1e300), codes(float(finite[-1]))[0], limit, codes(limit) != codes(float(finite[-1])),
        first(np.isposinf(values)), first(np.isnan(values[:sign])),
        sign if signed and np.isnan(values[sign]) else None)


def _float_of(x: Any, f: _Format) -> Any:
    code = convert_element_type(x, U32)
    size = bitwise_and(code, _like(code, (1 << f.bits - f.signed) - 1))
    normal = bitcast_convert_type(
        add(shift_left(size, _like(size, 23 - f.fraction)), _like(size, (127 - f.bias) << 23)), F32)
    if f.signed:
        small = mul(convert_element_type(size, F32),
                    _like(x, 2.0 ** (1 - f.bias - f.fraction), F32))
        out = where(lt(size, _like(size, 1 << f.fraction)), small, normal)
    else:  # of an exponent alone
        out = where(eq(size, _like(size, 0)), _like(x, 2.0**-f.bias, F32), normal)
    if f.first_nan is not None:
        out = where(ge(size, _like(size, f.first_nan)), _like(x, np.nan, F32), out)
    if f.infinity is not None:
        out = where(eq(size, _like(size, f.infinity)), _like(x, np.inf, F32), out)
    if f.signed:
        sign = shift_left(shift_right_logical(code, _like(code, f.bits - 1)), _like(code, 31))
        out = bitcast_convert_type(bitwise_or(bitcast_convert_type(out, U32), sign), F32)
    if f.lone_nan is not None:
        out = where(eq(code, _like(code, f.lone_nan)), _like(x, np.nan, F32), out)
    return out


def _rounded(x: Any, f: _Format) -> Any:
    bits = bitcast_convert_type(x, U32)
    negative = ne(shift_right_logical(bits, _like(bits, 31)), _like(bits, 0))
    size = bitwise_and(bits, _like(bits, 0x7FFFFFFF))
    infinite = _like(bits, _bits_of(np.inf))

    def either(codes: tuple[int, int]) -> Any:
        positive, other = _like(bits, codes[0]), _like(bits, codes[1])
        return positive if codes[0] == codes[1] else where(negative, other, positive)

    if f.signed:
        code = _nearest(x, size, f)
        code = where(eq(code, _like(bits, 0)), either(f.zero), _with_sign(code, negative, f))
        beyond = ge if f.limit_is_too_large else gt
        code = where(beyond(size, _like(bits, _bits_of(f.limit))), either(f.too_large), code)
    else:
        code = _nearest_power(size, f)
        code = where(eq(size, _like(bits, 0)), _like(bits, f.zero[0]), code)
        code = where(negative, _like(bits, f.nan[1]), code)
    if f.infinite != f.too_large:
        code = where(eq(size, infinite), either(f.infinite), code)
    code = where(gt(size, infinite), either(f.nan), code)
    return convert_element_type(code, BYTE)


def _bits_of(number: float) -> int:
    return int(np.array(number, F32).view(U32))


def _with_sign(code: Any, negative: Any, f: _Format) -> Any:
    return bitwise_or(code, where(negative, _like(code, 1 << f.bits - 1), _like(code, 0)))


def _nearest(x: Any, size: Any, f: _Format) -> Any:
    """The code of a magnitude, to the nearest even one. Below the least number with an exponent
    codes are multiples of a power of two, and the sum with a large one is rounded to these."""
    shift = 23 - f.fraction
    odd = bitwise_and(shift_right_logical(size, _like(size, shift)), _like(size, 1))
    up = add(add(size, odd), _like(size, (1 << shift - 1) - 1))
    normal = sub(shift_right_logical(up, _like(size, shift)),
                 _like(size, (127 - f.bias) << f.fraction))
    scaled = mul(abs(x), _like(x, 2.0 ** (f.bias - 1 + f.fraction)))
    rounded = bitcast_convert_type(add(scaled, _like(x, 2.0**23)), U32)
    small = bitwise_and(rounded, _like(size, (1 << 23) - 1))
    code = where(lt(size, _like(size, _bits_of(2.0 ** (1 - f.bias)))), small, normal)
    return min(code, _like(code, f.largest))


def _nearest_power(size: Any, f: _Format) -> Any:
    """The exponent alone, halves rounded up; what is between the least two powers is the second."""
    code = shift_right_logical(add(size, _like(size, 1 << 22)), _like(size, 23))
    code = where(lt(size, _like(size, _bits_of(2.0 ** (1 - f.bias)))), _like(size, 1), code)
    return where(gt(size, _like(size, _bits_of(2.0**-f.bias))), code, _like(size, 0))
