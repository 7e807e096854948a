"""Elementwise primitives: each element from the elements of the operands at the same index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.elementwise import ELEMENTWISE
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import Map, Tensor, compute_dtype, dtype_name
from functrans.primitives.arithmetic import conj_p, integer_pow_p, real_p
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.random import threefry2x32_p
from functrans.primitives.shape import copy_p

__all__ = ["RULES", "Rule", "element", "pointwise", "rounded", "rule_of"]

Rule = Callable[[Equation, list[Tensor]], "list[Tensor] | None"]
"""The tensors of an equation's results, or None where compiled code does not know how."""

def element(s: ExprBuilder, x: Tensor, index: tuple[Index, ...]) -> Expr:
    """The element of an operand that stands for any shape when it is a scalar."""
    return x.at(s, index if x.shape else ())


def pointwise(eqn: Equation, xs: list[Tensor], weight: int,
              define: Callable[..., Expr]) -> list[Tensor]:
    """The result of an equation as `define(builder, *elements of the operands)`."""
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    # a scalar operand is read again for every element, but that stands outside of the loops
    return [Map(aval.shape, dtype, xs, lambda s, i: define(s, *[element(s, x, i) for x in xs]),
                weight=weight, source=eqn.source)]


def rule_of(primitive: Primitive) -> Rule:
    """The rule of a primitive that has an entry in `ELEMENTWISE`."""
    lowering = ELEMENTWISE[primitive]
    op = lowering.op or primitive.name
    dtype = "bool" if lowering.is_test else None

    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        if lowering.expression is not None:
            return pointwise(eqn, xs, lowering.weight, lowering.expression)
        if dtype and any(x.compute != x.dtype for x in xs):
            return pointwise(eqn, xs, lowering.weight, lambda s, *e: s.op(
                op, *[rounded(s, v, x.dtype) for v, x in zip(e, xs)], dtype=dtype))
        return pointwise(eqn, xs, lowering.weight, lambda s, *e: s.op(op, *e, dtype=dtype))

    return rule


def rounded(s: ExprBuilder, x: Expr, dtype: str, depth: int = 3) -> Expr:
    """A value as memory has it: of a half it is not that of registers, which has more digits.

    What is compared is rounded first. Whether x is the maximum that another kernel has stored, or
    one of two equal values, is else decided by digits that memory does not have.
    """
    return x if compute_dtype(dtype) == dtype or _is_rounded(x, dtype, depth) else \
        s.op("round_to", x, aux=dtype)


def _is_rounded(x: Expr, dtype: str, depth: int) -> bool:
    if x.op in ("const", "round_to"):
        return x.op == "const" or x.aux == dtype
    if x.op == "load":
        return bool(x.aux[0].dtype == dtype)
    if depth and x.op in ("max", "min", "neg", "abs", "select"):
        return all(_is_rounded(a, dtype, depth - 1) for a in x.args[x.op == "select":])
    return False


def _integer_pow(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    exponent = eqn.params["y"]
    if (xs[0].dtype[0] != "f" and xs[0].dtype != "bf16" and exponent < 0) or abs(exponent) > 64:
        return None

    def define(s: ExprBuilder, x: Expr) -> Expr:
        one = s.const(np.ones((), np.int64), x.dtype)
        power, square, n = one, x, abs(exponent)
        while n:
            if n & 1:
                power = square if power is one else s.op("mul", power, square)
            n >>= 1
            if n:
                square = s.op("mul", square, square)
        return s.op("div", one, power) if exponent < 0 else power

    return pointwise(eqn, xs, 2, define)


def convert(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    """An element converted to `dtype` (of memory: halves are rounded)."""
    target = compute_dtype(dtype)
    if x.dtype != target:
        x = s.op("convert", x, dtype=target)
    return s.op("round_to", x, aux=dtype) if target != dtype else x


def _convert(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    assert dtype is not None
    return pointwise(eqn, xs, 1, lambda s, x: convert(s, x, dtype))


def _select_n(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    which, *cases = xs
    if len(cases) == 1:
        return [cases[0]]
    if len(cases) == 2 and which.dtype == "bool":
        return pointwise(eqn, xs, 1, lambda s, w, a, b: s.op("select", w, b, a, dtype=a.dtype))

    def define(s: ExprBuilder, w: Expr, *values: Expr) -> Expr:
        out = values[-1]
        for k in range(len(values) - 2, -1, -1):  # numbers out of range choose the nearest case
            here = s.op("le", w, s.const(np.int32(k), w.dtype), dtype="bool")
            out = s.op("select", here, values[k], out, dtype=out.dtype)
        return out

    return pointwise(eqn, xs, len(cases), define)


def _clamp(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    return pointwise(eqn, xs, 2, lambda s, lo, x, hi: s.op("min", s.op("max", x, lo), hi))


def _same(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    return list(xs)


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _threefry2x32(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    def pair(s: ExprBuilder, index: tuple[Index, ...]) -> tuple[Expr, Expr]:
        k0, k1, x0, x1 = [element(s, x, index) for x in xs]

        def number(n: int) -> Expr:
            return s.const(np.uint32(n), "u32")

        keys = (k0, k1, s.op("xor", s.op("xor", k0, k1), number(PARITY)))
        x0, x1 = s.op("add", x0, k0), s.op("add", x1, k1)
        for i in range(5):
            for r in ROTATIONS[i % 2]:
                x0 = s.op("add", x0, x1)
                x1 = s.op("xor", s.op("rotate_left", x1, aux=r), x0)
            x0 = s.op("add", x0, keys[(i + 1) % 3])
            x1 = s.op("add", s.op("add", x1, keys[(i + 2) % 3]), number(i + 1))
        return x0, x1

    shape = eqn.outvars[0].aval.shape
    repeats = bool(shape)
    return [Map(shape, "u32", xs, lambda s, i: pair(s, i)[0], weight=80, repeats=repeats,
                source=eqn.source),
            Map(shape, "u32", xs, lambda s, i: pair(s, i)[1], weight=80, repeats=repeats,
                source=eqn.source)]


def _real_only(eqn: Equation, xs: list[Tensor]) -> Any:
    return [xs[0]]  # of a real operand: complex ones go to the host


RULES: dict[Primitive, Rule] = {
    **{p: rule_of(p) for p in ELEMENTWISE},
    integer_pow_p: _integer_pow,
    convert_element_type_p: _convert,
    select_n_p: _select_n,
    clamp_p: _clamp,
    copy_p: _same,
    stop_gradient_p: _same,
    checkpoint_name_p: _same,
    optimization_barrier_p: _same,
    real_p: _real_only,
    conj_p: _real_only,
    threefry2x32_p: _threefry2x32,
}
