"""Complex arrays in memory, taken apart and put together by kernels."""

from __future__ import annotations

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import Map, Tensor
from functrans.lowering.rules.bits import bits_of_number, number_of_bits
from functrans.lowering.rules.graph import CallRule
from functrans.primitives.arithmetic import complex_p, imag_p, real_p

__all__ = ["PAIRS"]


def _part(number: int) -> CallRule:
    def rule(eqn: Equation, xs: list[Tensor]) -> Tensor:
        z, shape = xs[0], eqn.outvars[0].aval.shape

        def narrow(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
            bits = s.read(z, index)
            if number:
                bits = s.op("shift_right_logical", bits, s.const(np.int64(32), "i64"))
            return s.op("bitcast", s.op("convert", bits, dtype="i32"), dtype="f32")

        def half(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
            bits = s.op("convert", s.read(z, index), dtype="u32")
            if number:
                bits = s.op("shift_right_logical", bits, s.const(np.uint32(16), "u32"))
            return number_of_bits(s, s.op("convert", bits, dtype="u16"), "f16")

        if z.dtype == "i32":
            return Map(shape, "f16", [z], half, source=eqn.source)
        if z.dtype == "i64":
            return Map(shape, "f32", [z], narrow, source=eqn.source)
        return Map(shape, "f64", [z], lambda s, i: s.read(z, (*i, Index.of(number))), weight=0,
                   source=eqn.source)

    return rule


def _complex(eqn: Equation, xs: list[Tensor]) -> Tensor | None:
    if any(x.dtype not in ("f16", "f32", "f64") for x in xs):
        return None
    shape = eqn.outvars[0].aval.shape

    def bits(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        real, imag = s.elements(xs, index)
        low, high = s.op("bitcast", real, dtype="u32"), s.op("bitcast", imag, dtype="i32")
        high = s.op("shift_left", s.op("convert", high, dtype="i64"), s.const(np.int64(32), "i64"))
        return s.op("or", s.op("convert", low, dtype="i64"), high)

    def either(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        *place, part = index
        real, imag = s.elements(xs, tuple(place))
        return s.when([(part, 0, 1)], lambda: real, lambda: imag)

    def halves(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        low, high = [s.op("convert", bits_of_number(s, x, "f16"), dtype="u32")
                     for x in s.elements(xs, index)]
        both = s.op("or", low, s.op("shift_left", high, s.const(np.uint32(16), "u32")))
        return s.op("convert", both, dtype="i32")

    if xs[0].dtype == "f16":
        return Map(shape, "i32", xs, halves, source=eqn.source)
    if xs[0].dtype == "f32":
        return Map(shape, "i64", xs, bits, source=eqn.source)
    return Map((*shape, 2), "f64", xs, either, source=eqn.source)


PAIRS: dict[Primitive, CallRule] = {real_p: _part(0), imag_p: _part(1), complex_p: _complex}
