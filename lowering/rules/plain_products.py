"""Contractions as sums of products: of dtypes that neither libraries nor tensor cores take."""

from __future__ import annotations

from typing import Any

from functrans.core.dims import Shape
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index
from functrans.lowering.loops.tensor import Define, Reduce, Tensor, dtype_name
from functrans.lowering.rules.elementwise import convert
from functrans.lowering.rules.movement import padded
from functrans.lowering.rules.reduce import empty_reduction, identity_element
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p

__all__ = ["RULES"]

Place = tuple[Index, ...]


def _dot_general(eqn: Equation, xs: list[Tensor]) -> Tensor:
    x, y = xs
    aval = eqn.outvars[0].aval
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    fx = [d for d in range(len(x.shape)) if d not in (*cx, *bx)]
    fy = [d for d in range(len(y.shape)) if d not in (*cy, *by)]
    of_x = {d: k for k, d in enumerate((*bx, *fx))}
    of_y = {d: k for k, d in enumerate((*by, *[None] * len(fx), *fy)) if d is not None}
    rank = len(aval.shape)
    of_x |= {d: rank + k for k, d in enumerate(cx)}
    of_y |= {d: rank + k for k, d in enumerate(cy)}

    def element(s: ExprBuilder, i: Place) -> Expr:
        return _product(s, x.at(s, tuple([i[of_x[d]] for d in range(len(x.shape))])),
                        y.at(s, tuple([i[of_y[d]] for d in range(len(y.shape))])), eqn)

    return _sum(eqn, tuple([x.shape[d] for d in cx]), xs, element)


def _conv(eqn: Equation, xs: list[Tensor]) -> Tensor:
    x, w = xs
    p = eqn.params
    xd, wd, od = p["dimension_numbers"]
    groups = p.get("group_axes")
    rank = len(eqn.outvars[0].aval.shape)
    config = [(0, 0, 0)] * len(x.shape)
    for d, (low, high), holes in zip(xd[2:], p["padding"], p["lhs_dilation"]):
        config[d] = (low, high, holes - 1)

    def element(s: ExprBuilder, i: Place) -> Expr:
        at_x, at_w = [ZERO] * len(x.shape), [ZERO] * len(w.shape)
        feature, *window = i[rank:]
        at_x[xd[0]], at_x[xd[1]] = i[od[0]], feature
        at_w[wd[0]], at_w[wd[1]] = i[od[1]], feature
        for k, (stride, spread) in enumerate(zip(p["window_strides"], p["rhs_dilation"])):
            at_x[xd[2 + k]] = i[od[2 + k]] * stride + window[k] * spread
            at_w[wd[2 + k]] = window[k]
        if groups is not None:
            at_x[groups[0]] = at_w[groups[1]] = i[groups[2]]
        zero = identity_element("add", x.compute)
        return _product(s, padded(s, x, lambda: s.const(zero, x.compute), tuple(at_x), config),
                        w.at(s, tuple(at_w)), eqn)

    return _sum(eqn, (w.shape[wd[1]], *[w.shape[d] for d in wd[2:]]), xs, element)


def _product(s: ExprBuilder, a: Expr, b: Expr, eqn: Equation) -> Expr:
    dtype = dtype_name(eqn.outvars[0].aval.dtype) or ""
    a, b = convert(s, a, dtype), convert(s, b, dtype)
    return s.op("and" if dtype == "bool" else "mul", a, b)


def _sum(eqn: Equation, sizes: Shape, xs: list[Tensor], element: Define) -> Tensor:
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype) or ""
    op = "or" if dtype == "bool" else "add"
    nothing = empty_reduction(eqn, op, aval.shape, sizes, dtype)
    return nothing or Reduce(op, aval.shape, sizes, dtype, xs, element, source=eqn.source)


RULES: dict[Primitive, Any] = {dot_general_p: _dot_general, conv_general_dilated_p: _conv}
