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

__all__ = ["RULES", "bits_of_number", "number_of_bits"]

KNOWN = ITEM_SIZES.keys() - {"bool", *FLOAT8}
"""The dtypes whose bits kernels have. A float16 is a float32 in registers: one that is NaN may
become another, as a signalling one does when it is read."""


def bits_of_number(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    """An element of a dtype in memory as an unsigned integer of its width."""
    if dtype == "bf16":  # the upper half of a float32
        wide = s.op("bitcast", x, dtype="u32")
        upper = s.op("shift_right_logical", wide, s.const(np.uint32(16), "u32"))
        return s.op("convert", upper, dtype="u16")
    if dtype == "f16":
        return s.op("bits_of_half", x, dtype="u16")
    unsigned = f"u{8 * ITEM_SIZES[dtype]}"
    return x if dtype == unsigned else s.op("bitcast", x, dtype=unsigned)


def number_of_bits(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    if dtype == "bf16":
        wide = s.op("shift_left", s.op("convert", x, dtype="u32"), s.const(np.uint32(16), "u32"))
        return s.op("bitcast", wide, dtype="f32")
    if dtype == "f16":
        return s.op("half_of_bits", x, dtype="f32")
    return x if x.dtype == dtype else s.op("bitcast", x, dtype=dtype)


def _bitcast(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, aval = xs[0], eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    if dtype is None or dtype not in KNOWN or x.dtype not in KNOWN:
        return None
    old, new = ITEM_SIZES[x.dtype], ITEM_SIZES[dtype]

    def same(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        e = s.read(x, i)
        return e if x.dtype == dtype else number_of_bits(s, bits_of_number(s, e, x.dtype), dtype)

    def narrower(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        """Bytes of an element, the least first."""
        whole = bits_of_number(s, s.read(x, i[:-1]), x.dtype)
        place = s.index(i[-1] * (8 * new), whole.dtype)
        part = s.op("shift_right_logical", whole, place)
        return number_of_bits(s, s.op("convert", part, dtype=f"u{8 * new}"), dtype)

    def wider(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        whole: Expr | None = None
        unsigned = f"u{8 * new}"
        for k in range(new // old):
            part = bits_of_number(s, s.read(x, (*i, Index.of(k))), x.dtype)
            part = s.op("convert", part, dtype=unsigned)
            if k:
                place = s.index(Index.of(8 * old * k), unsigned)
                part = s.op("shift_left", part, place)
            whole = part if whole is None else s.op("or", whole, part)
        assert whole is not None
        return number_of_bits(s, whole, dtype)

    define = same if old == new else narrower if old > new else wider
    return [Map(aval.shape, dtype, xs, define, weight=int(old != new), repeats=old > new,
                source=eqn.source)]


RULES: dict[Primitive, Rule] = {bitcast_convert_type_p: _bitcast}
