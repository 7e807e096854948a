"""Bits of values read as another dtype, of the same width or not."""

from __future__ import annotations

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import FLOAT8, ITEM_SIZES, Map, Tensor, dtype_name
from functrans.lowering.rules.elementwise import Rule
from functrans.primitives.convert import bitcast_convert_type_p

__all__ = ["RULES"]

KNOWN = ITEM_SIZES.keys() - {"bool", *FLOAT8}
"""The dtypes whose bits kernels have. A float16 is a float32 in registers: one that is NaN may
become another, as a signalling one does when it is read."""


def _bits(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    """An element of a dtype in memory as an unsigned integer of its width."""
    if dtype == "bf16":  # the upper half of a float32
        wide = s.op("bitcast", x, dtype="u32")
        upper = s.op("shift_right_logical", wide, s.const(np.uint32(16), "u32"))
        return s.op("convert", upper, dtype="u16")
    if dtype == "f16":
        return _bits_of_half(s, x)
    unsigned = f"u{8 * ITEM_SIZES[dtype]}"
    return x if dtype == unsigned else s.op("bitcast", x, dtype=unsigned)


def _from_bits(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    if dtype == "bf16":
        wide = s.op("shift_left", s.op("convert", x, dtype="u32"), s.const(np.uint32(16), "u32"))
        return s.op("bitcast", wide, dtype="f32")
    if dtype == "f16":
        return _half_of_bits(s, x)
    return x if x.dtype == dtype else s.op("bitcast", x, dtype=dtype)


def _bits_of_half(s: ExprBuilder, x: Expr) -> Expr:
    """The bits of a float16, of which registers have the value in float32."""
    def u32(n: int) -> Expr:
        return s.const(np.uint32(n), "u32")

    x = s.op("round_to", x, aux="f16")
    wide = s.op("bitcast", x, dtype="u32")
    size = s.op("and", wide, u32(0x7FFFFFFF))
    # 2^-24 is the least number; below 2^-14 there is no exponent, and from 2^16 on no number
    small = s.op("convert", s.op("mul", s.op("abs", x), s.const(np.float32(2.0**24), "f32")),
                 dtype="u32")
    normal = s.op("sub", s.op("shift_right_logical", size, u32(13)), u32((127 - 15) << 10))
    beyond = s.op("or", s.op("and", s.op("shift_right_logical", size, u32(13)), u32(0x3FF)),
                  u32(0x7C00))
    found = s.op("select", s.op("lt", size, u32(113 << 23), dtype="bool"), small, normal,
                 dtype="u32")
    found = s.op("select", s.op("ge", size, u32(0x7F800000), dtype="bool"), beyond, found,
                 dtype="u32")
    sign = s.op("and", s.op("shift_right_logical", wide, u32(16)), u32(0x8000))
    return s.op("convert", s.op("or", found, sign), dtype="u16")


def _half_of_bits(s: ExprBuilder, x: Expr) -> Expr:
    def u32(n: int) -> Expr:
        return s.const(np.uint32(n), "u32")

    bits = s.op("convert", x, dtype="u32")
    size = s.op("and", bits, u32(0x7FFF))
    fraction = s.op("and", bits, u32(0x3FF))
    small = s.op("mul", s.op("convert", fraction, dtype="f32"),
                 s.const(np.float32(2.0**-24), "f32"))
    moved = s.op("shift_left", size, u32(13))
    normal = s.op("add", moved, u32((127 - 15) << 23))
    beyond = s.op("or", moved, u32(0x7F800000))
    found = s.op("select", s.op("ge", size, u32(0x7C00), dtype="bool"), beyond, normal,
                 dtype="u32")
    found = s.op("select", s.op("lt", size, u32(0x400), dtype="bool"),
                 s.op("bitcast", small, dtype="u32"), found, dtype="u32")
    sign = s.op("shift_left", s.op("and", bits, u32(0x8000)), u32(16))
    return s.op("bitcast", s.op("or", found, sign), dtype="f32")


def _bitcast(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, aval = xs[0], eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    if dtype is None or dtype not in KNOWN or x.dtype not in KNOWN:
        return None
    old, new = ITEM_SIZES[x.dtype], ITEM_SIZES[dtype]

    def same(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        e = s.read(x, i)
        return e if x.dtype == dtype else _from_bits(s, _bits(s, e, x.dtype), dtype)

    def narrower(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        """Bytes of an element, the least first."""
        whole = _bits(s, s.read(x, i[:-1]), x.dtype)
        place = s.index(i[-1] * (8 * new), whole.dtype)
        part = s.op("shift_right_logical", whole, place)
        return _from_bits(s, s.op("convert", part, dtype=f"u{8 * new}"), dtype)

    def wider(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        whole: Expr | None = None
        unsigned = f"u{8 * new}"
        for k in range(new // old):
            part = _bits(s, s.read(x, (*i, Index.of(k))), x.dtype)
            part = s.op("convert", part, dtype=unsigned)
            if k:
                place = s.index(Index.of(8 * old * k), unsigned)
                part = s.op("shift_left", part, place)
            whole = part if whole is None else s.op("or", whole, part)
        assert whole is not None
        return _from_bits(s, whole, dtype)

    define = same if old == new else narrower if old > new else wider
    return [Map(aval.shape, dtype, xs, define, weight=int(old != new), repeats=old > new,
                source=eqn.source)]


RULES: dict[Primitive, Rule] = {bitcast_convert_type_p: _bitcast}
