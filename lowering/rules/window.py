"""Windows that slide over an array: pooling, and the places that its derivative needs.

A small window is written out, place by place, so that the kernel runs along the innermost dimension
of the result; a large one is a reduction over its places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder, Range
from functrans.lowering.loops.index import Index, flatten, unflatten
from functrans.lowering.loops.tensor import Map, Reduce, Tensor, dtype_name
from functrans.lowering.passes.compositions import MOST_COVERING, windows_over
from functrans.lowering.rules.elementwise import Rule
from functrans.lowering.rules.movement import padded
from functrans.lowering.rules.reduce import (
    compared_dtype,
    first_extreme,
    identity_element,
    in_order,
)
from functrans.primitives.window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_argmax_p,
    window_argmin_p,
    window_put_p,
    window_take_p,
)

__all__ = ["RULES"]

WRITTEN_OUT = 32
"""Windows of at most so many places are written out."""

Place = tuple[Index, ...]


class _Windows:
    """Windows over x, whose padding holds `start`."""

    def __init__(self, eqn: Equation, x: Tensor, start: Any) -> None:
        p = eqn.params
        self.x = x
        self.start = start
        self.sizes: tuple[int, ...] = p["window_dimensions"]
        self.count = math.prod(self.sizes)
        self._strides = p["window_strides"]
        self._dilation = p["window_dilation"]
        self._config = [(low, high, holes - 1)
                        for (low, high), holes in zip(p["padding"], p["base_dilation"])]

    def at(self, s: ExprBuilder, window: Place, place: Place) -> Expr:
        """The element at a place of a window."""
        x = self.x
        at = tuple([w * stride + k * spread for w, k, stride, spread
                    in zip(window, place, self._strides, self._dilation)])
        return padded(s, x, lambda: s.const(np.asarray(self.start), x.compute), at, self._config)

    def places(self) -> Iterator[Place]:
        for place in itertools.product(*map(range, self.sizes)):
            yield tuple(map(Index.of, place))


def _reduction(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        name = {"max": "or", "min": "and"}.get(op, op) if x.dtype == "bool" else op
        windows = _Windows(eqn, x, identity_element(name, x.compute))
        n = len(aval.shape)
        if windows.count > WRITTEN_OUT:
            return [Reduce(name, aval.shape, windows.sizes, x.dtype, xs,
                           lambda s, i: windows.at(s, i[:n], i[n:]), source=eqn.source)]

        def define(s: ExprBuilder, i: Place) -> Expr:
            total, *rest = [windows.at(s, i, place) for place in windows.places()]
            for term in rest:
                total = s.op(name, total, term)
            return total

        return [_written_out(eqn, xs, x.dtype, define, windows.count)]

    return rule


def _place(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        compared = compared_dtype(x.dtype)
        if compared is None:
            return None
        windows = _Windows(eqn, x, identity_element(op, x.compute))

        def value_at(s: ExprBuilder, i: Place, place: Place) -> Expr:
            value = windows.at(s, i, place)
            return value if x.dtype == compared else in_order(s, value, x.dtype)

        if windows.count > WRITTEN_OUT:
            return [Reduce(f"arg{op}", aval.shape, (windows.count,), "i32", xs,
                           lambda s, i: value_at(s, i[:-1], unflatten(i[-1], windows.sizes)),
                           value_dtype=compared, source=eqn.source)]

        def define(s: ExprBuilder, i: Place) -> Expr:
            return first_extreme(s, f"arg{op}", [value_at(s, i, place)
                                                 for place in windows.places()], "i32")

        return [_written_out(eqn, xs, "i32", define, 4 * windows.count)]

    return rule


def _take(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, numbers = xs
    aval = eqn.outvars[0].aval
    zero = identity_element("add", x.compute)
    windows = _Windows(eqn, x, zero)
    n = len(aval.shape)

    def chosen(s: ExprBuilder, i: Place, place: Place, other: Expr) -> Expr:
        number = s.index(flatten(place, windows.sizes), "i32")
        here = s.op("eq", s.read(numbers, i), number, dtype="bool")
        return s.op("select", here, windows.at(s, i, place), other, dtype=other.dtype)

    if windows.count > WRITTEN_OUT:
        return [Reduce("add", aval.shape, windows.sizes, x.dtype, xs, lambda s, i: chosen(
            s, i[:n], i[n:], s.const(np.asarray(zero), x.compute)), source=eqn.source)]

    def define(s: ExprBuilder, i: Place) -> Expr:
        out = s.const(np.asarray(zero), x.compute)
        for place in windows.places():
            out = chosen(s, i, place, out)
        return out

    return [_written_out(eqn, xs, x.dtype, define, 2 * windows.count)]


def _put(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    """For every element the sum over the windows that cover it and have chosen it."""
    x, numbers = xs
    p, shape = eqn.params, eqn.outvars[0].aval.shape
    sizes: tuple[int, ...] = p["window_dimensions"]
    covering = [_covering(*of_axis) for of_axis in zip(
        x.shape, sizes, p["window_strides"], p["padding"], p["base_dilation"],
        p["window_dilation"])]

    def define(s: ExprBuilder, i: Place) -> Expr:
        zero = s.const(np.asarray(identity_element("add", x.compute)), x.compute)
        total: Expr | None = None
        for parts in itertools.product(*[c(s, k) for c, k in zip(covering, i)]):
            term = s.when([test for _, _, tests, _ in parts for test in tests],
                          partial(inside, s, parts, zero), lambda: zero)
            total = term if total is None else s.op("add", total, term)
        return zero if total is None else total

    def inside(s: ExprBuilder, parts: Any, zero: Expr) -> Expr:
        window = tuple([w for w, _, _, _ in parts])
        number = s.index(flatten([place for _, place, _, _ in parts], sizes), "i32")
        here = s.op("eq", s.read(numbers, window), number, dtype="bool")
        for _, _, _, divides in parts:
            here = here if divides is None else s.op("and", here, divides)
        return s.op("select", here, s.read(x, window), zero, dtype=x.compute)

    overlaps = windows_over(eqn)
    if overlaps > MOST_COVERING or any(isinstance(n, int) and n == 0 for n in x.shape):
        return None
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    assert dtype is not None
    return [Map(shape, dtype, xs, define, weight=4 * overlaps, repeats=True, source=eqn.source)]


Part = tuple[Index, Index, list[Range], "Expr | None"]
"""A window along one axis, the place in it, when that is one, and whether it really is."""


def _covering(windows: Size, size: int, stride: int, pad: tuple[int, int], holes: int,
              spread: int) -> Callable[[ExprBuilder, Index], list[Part]]:
    """The windows along one axis that cover an element, by its index."""
    low = pad[0]
    end = (windows - 1) * stride + (size - 1) * spread + 1

    def parts(s: ExprBuilder, k: Index) -> list[Part]:
        at = k * holes + low
        outer: list[Range] = [(at, 0, end)]
        at = s.clamped(at, end)
        found: list[Part] = []
        if spread == 1:
            for j in range(-(-size // stride)):
                window, place = at // stride - j, at % stride + j * stride
                found.append((s.clamped(window, windows), s.clamped(place, size),
                              [*outer, (window, 0, windows), (place, 0, size)], None))
            return found
        for j in range(size):
            first = at - j * spread
            whole = (windows - 1) * stride + 1
            inside = s.clamped(first, whole)
            divides = None if stride == 1 else s.op(
                "eq", s.index(inside % stride, "i64"), s.const(np.int64(0), "i64"), dtype="bool")
            found.append((inside // stride, Index.of(j), [*outer, (first, 0, whole)], divides))
        return found

    return parts


def _written_out(eqn: Equation, xs: list[Tensor], dtype: str,
                 define: Callable[[ExprBuilder, Place], Expr], weight: int) -> Map:
    return Map(eqn.outvars[0].aval.shape, dtype, xs, define, weight=weight, repeats=True,
               source=eqn.source)


RULES: dict[Primitive, Rule] = {
    reduce_window_sum_p: _reduction("add"),
    reduce_window_max_p: _reduction("max"),
    reduce_window_min_p: _reduction("min"),
    window_argmax_p: _place("max"),
    window_argmin_p: _place("min"),
    window_take_p: _take,
    window_put_p: _put,
}
