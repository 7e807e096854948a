"""Gradients of depthwise filters: a sum over the places of the pictures for each tap."""

from __future__ import annotations

import itertools
import math
from functools import partial

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index
from functrans.lowering.loops.tensor import Map, Tensor, dtype_name
from functrans.lowering.rules.movement import padded
from functrans.lowering.rules.reduce import identity_element, product_of, reduce_elements

__all__ = ["sums_of_taps"]

Place = tuple[Index, ...]


def sums_of_taps(eqn: Equation, xs: list[Tensor], most_taps: int, least_terms: int
                 ) -> Tensor | None:
    """A convolution with few results in each group and long sums, as a sum for each of them.

    The sums run over the same places, so that one kernel computes all of them and reads both
    operands once; as one array of sums it would read them once for each tap. Where neither operand
    is dilated the places are those of x, which may be computed on the way: once then, beside the
    elements of the other operand that are `most_taps` at most. None where that does not apply.
    """
    x, w = xs
    p, aval = eqn.params, eqn.outvars[0].aval
    xd, wd, od = p["dimension_numbers"]
    groups = p.get("group_axes")
    sizes = (*x.shape, *w.shape, *aval.shape)
    if groups is None or not all(isinstance(n, int) and n > 0 for n in sizes):
        return None
    taps = math.prod(aval.shape) // x.shape[groups[0]]
    spatial = range(len(xd) - 2)
    by_x = all(n == 1 for n in (*p["rhs_dilation"], *p["lhs_dilation"]))
    walked = [(x.shape[xd[2 + k]] if by_x else w.shape[wd[2 + k]]) for k in spatial]
    summed = (w.shape[wd[1]], *walked)
    if not 1 < taps <= most_taps or math.prod(summed) < least_terms:
        return None

    def element(tap: tuple[int, ...], s: ExprBuilder, i: Place) -> Expr:
        """A term of the sum of a tap: its batch, its feature, its place."""
        group, feature, *at = i
        batch, out, *to = tap
        at_x, at_w = [ZERO] * len(x.shape), [ZERO] * len(w.shape)
        at_x[groups[0]] = at_w[groups[1]] = group
        at_x[xd[1]] = at_w[wd[1]] = feature
        at_x[xd[0]], at_w[wd[0]] = Index.of(batch), Index.of(out)
        moved, other = (w, wd) if by_x else (x, xd)
        config = [(0, 0, 0)] * len(moved.shape)
        for k, stride, spread, holes, (low, high) in zip(
                spatial, p["window_strides"], p["rhs_dilation"], p["lhs_dilation"], p["padding"]):
            d = other[2 + k]
            if by_x:
                first = to[k] * stride - low
                at_x[xd[2 + k]] = at_w[d] = at[k]
                config[d] = (first, x.shape[xd[2 + k]] - first - w.shape[d], 0)
            else:
                at_x[d], at_w[wd[2 + k]] = at[k] * spread + to[k] * stride, at[k]
                config[d] = (low, high, holes - 1)
        zero = identity_element("add", moved.compute)
        there = padded(s, moved, lambda: s.const(zero, moved.compute),
                       tuple(at_w if by_x else at_x), config)
        here = s.read(x, tuple(at_x)) if by_x else s.read(w, tuple(at_w))
        return product_of(s, *((here, there) if by_x else (there, here)), eqn)

    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    extents = [aval.shape[d] for d in od]
    places = list(itertools.product(*map(range, extents)))
    sums = [reduce_elements(eqn, "add", (x.shape[groups[0]],), summed, dtype, xs,
                            partial(element, tap)) for tap in places]

    def define(s: ExprBuilder, i: Place) -> Expr:
        number = Index.of(0)
        for d, n in zip(od, extents):
            number = number * n + i[d]

        def read(k: int) -> Expr:
            return s.read(sums[k], (i[groups[2]],))

        def tap(k: int) -> Expr:
            if k == len(sums) - 1:
                return read(k)
            return s.when([(number, k, k + 1)], partial(read, k), partial(tap, k + 1))

        return tap(0)

    return Map(aval.shape, dtype, sums, define, weight=0, source=eqn.source)
