"""Reductions: a fold over some axes of one operand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from functrans.core.dims import is_static
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import (
    Map,
    Reduce,
    Stored,
    Tensor,
    compute_dtype,
    dtype_name,
)
from functrans.lowering.rules.elementwise import Rule, rounded
from functrans.primitives.broadcast import reduce_sum_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)

__all__ = ["RULES", "UNROLL", "empty_reduction", "identity_element"]

UNROLL = 32
"""Reductions over at most so many elements are written out where they are not along rows."""

_SPACE = tuple([Index.of(LoopVar(f"i{k}", 2)) for k in range(32)])
LIMITS = {"max": ("-inf", "min"), "min": ("inf", "max")}


def identity_element(op: str, dtype: str) -> Any:
    """What `op` leaves any value of `dtype` unchanged with."""
    if op in ("add", "or", "xor"):
        return 0
    if op == "mul":
        return 1
    if op == "and":
        return -1 if dtype != "bool" else 1
    infinity, name = LIMITS[op.removeprefix("arg")]
    if dtype == "bool":
        return int(name == "max")
    if dtype[0] == "f":
        return float(infinity)
    return getattr(np.iinfo({"i": "int", "u": "uint"}[dtype[0]] + dtype[1:]), name)


def _reduction(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        axes = eqn.params["axes"]
        dtype = dtype_name(aval.dtype)
        assert dtype is not None
        name = op
        if x.dtype == "bool":
            name = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
        order = [d for d in range(len(x.shape)) if d not in axes] + sorted(axes)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        sizes = tuple(x.shape[d] for d in sorted(axes))
        if not axes:
            return [x]

        def element(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            return x.at(s, tuple([i[k] for k in inverse]))

        return [reduce_elements(eqn, name, aval.shape, sizes, dtype, xs, element)]

    return rule


def empty_reduction(eqn: Equation, op: str, shape: Any, sizes: Any, dtype: str) -> Tensor | None:
    """What a reduction without elements gives everywhere; None of one that has some."""
    if not any(isinstance(n, int) and n == 0 for n in sizes):
        return None
    compute = compute_dtype(dtype)
    start = np.asarray(identity_element(op, compute))
    return Map(shape, dtype, (), lambda s, i: s.const(start, compute), weight=0, source=eqn.source)


def reduce_elements(eqn: Equation, op: str, shape: Any, sizes: Any, dtype: str, xs: list[Tensor],
                    element: Any) -> Tensor:
    """A reduction, written out when it is over very few elements of a large space."""
    nothing = empty_reduction(eqn, op, shape, sizes, dtype)
    if nothing is not None:
        return nothing
    if op == "add" and dtype in ("i32", "i64") and not is_static(sizes):
        one = element(ExprBuilder(lambda t: isinstance(t, Stored)),
                      _SPACE[:len(shape) + len(sizes)])
        if one.op == "const" and one.aux == 1:  # how a size becomes a value
            return Map(shape, dtype, (), lambda s, i: s.index(Index.of(math.prod(sizes)), dtype),
                       weight=0, source=eqn.source)
    if all(isinstance(n, int) for n in sizes) and math.prod(sizes) <= 4:
        def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            terms = [element(s, (*i, *map(Index.of, r)))
                     for r in itertools.product(*map(range, sizes))]
            while len(terms) > 1:  # pairwise
                terms = [s.op(op, *terms[k:k + 2]) if k + 1 < len(terms) else terms[k]
                         for k in range(0, len(terms), 2)]
            compute = out.compute
            return terms[0] if terms else s.const(np.asarray(identity_element(op, compute)),
                                                  compute)

        out = Map(shape, dtype, xs, define, weight=math.prod(sizes), repeats=True,
                  source=eqn.source)
        return out
    return Reduce(op, shape, sizes, dtype, xs, element, source=eqn.source)


def _arg_extremum(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        (axis,) = eqn.params["axes"]
        dtype = dtype_name(aval.dtype)
        if dtype not in ("i32", "i64", "u32", "u64") or x.dtype not in ("f32", "f64", "bf16", "f16",
                                                                     "i32", "i64"):
            return None

        def element(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            return rounded(s, x.at(s, (*i[:axis], i[-1], *i[axis:-1])), x.dtype)

        return [Reduce(op, aval.shape, (x.shape[axis],), dtype, xs, element, value_dtype=x.dtype,
                       source=eqn.source)]

    return rule


RULES: dict[Primitive, Rule] = {
    reduce_sum_p: _reduction("add"),
    reduce_prod_p: _reduction("mul"),
    reduce_max_p: _reduction("max"),
    reduce_min_p: _reduction("min"),
    reduce_and_p: _reduction("and"),
    reduce_or_p: _reduction("or"),
    reduce_xor_p: _reduction("xor"),
    argmax_p: _arg_extremum("argmax"),
    argmin_p: _arg_extremum("argmin"),
}
