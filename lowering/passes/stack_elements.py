"""Elements of stacks that follow a loop, computed within the loop as it goes.

What follows a loop computes from the stacks that it collects, elementwise or by moving other axes,
an iteration can compute of its own element: so another loop over such a stack can join the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.record import Record
from functrans.primitives.broadcast import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    reduce_sum_p,
    transpose,
    transpose_p,
)
from functrans.primitives.compare import select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import reduce_max_p, reduce_min_p
from functrans.primitives.shape import concatenate_p, reshape, reshape_p, slice_p

__all__ = ["Element", "StackElements", "broadcast_element", "is_of_elements", "results_of"]

ELEMENTS: Final = frozenset({select_n_p, convert_element_type_p, add_any_p})
"""What has an element of its result from one of each operand, besides elementwise operations."""

REDUCTIONS: Final = (reduce_sum_p, reduce_max_p, reduce_min_p)
OTHER_AXES: Final = (*REDUCTIONS, concatenate_p, slice_p)
"""What has an element along an axis that it leaves as it is."""

Element = Callable[[dict[Any, Any]], Any]
"""What an iteration reads, as a function of what it has.

That is: results of the body by number, constants by variable, elements of other stacks by variable
and axis.
"""


def is_of_elements(eqn: Equation) -> bool:
    """Whether elements of a result may follow from those of operands."""
    return isinstance(eqn.primitive, Elementwise) or eqn.primitive in ELEMENTS \
        or eqn.primitive in (broadcast_in_dim_p, transpose_p, reshape_p, *OTHER_AXES)


def results_of(jaxpr: Jaxpr, loop: Equation) -> set[Atom]:
    """The values that depend on the results of a loop."""
    later: set[Atom] = set(loop.outvars)
    for eqn in jaxpr.eqns:
        if not later.isdisjoint(eqn.invars):
            later.update(eqn.outvars)
    return later


def _without(aval: ShapedArray, axis: int) -> ShapedArray:
    return aval.strong().with_shape((*aval.shape[:axis], *aval.shape[axis + 1:]))


class StackElements(Record, frozen=False):
    """The elements of stacks of a program in the iterations of a loop, and what these need."""

    loop: Equation
    later: set[Atom]
    makers: Mapping[Atom, Equation]
    consts: dict[Var, Var] = field(default_factory=dict)
    """Values that were there before the loop, and their names in its body."""
    xs: dict[tuple[Var, int], Var] = field(default_factory=dict)
    """Stacks that were there, by the axis along which they are walked over."""
    _found: dict[tuple[Var, int], Element | None] = field(default_factory=dict)

    def const(self, x: Atom) -> Element:
        if isinstance(x, Literal):
            return lambda values: x.operand
        self.consts.setdefault(x, Var(x.aval.strong()))
        return lambda values: values[x]

    def element(self, x: Atom, axis: int = 0) -> Element | None:
        """The element of a stack along an axis, which is computed from those of others."""
        if isinstance(x, Literal) or x.aval.shape[axis] != self.loop.params["length"]:
            return None
        eqn = self.makers.get(x)
        if x not in self.later:
            if eqn is not None and eqn.primitive is broadcast_in_dim_p \
                    and axis not in eqn.params["broadcast_dimensions"]:
                return self._repeated(eqn, axis, self.const(eqn.invars[0]))
            self.xs.setdefault((x, axis), Var(_without(x.aval, axis)))
            return lambda values: values[x, axis]
        if eqn is self.loop:
            number = self.loop.outvars.index(x)
            return None if axis or number < self.loop.params["num_carry"] \
                else lambda values: values[number]
        assert eqn is not None
        if (x, axis) not in self._found:
            self._found[x, axis] = _once((x, axis), self._computed(eqn, x, axis))
        return self._found[x, axis]

    def _computed(self, eqn: Equation, x: Var, axis: int) -> Element | None:
        """The element of what depends on the loop."""
        y, p = eqn.invars[0], eqn.params
        if isinstance(eqn.primitive, Elementwise) or eqn.primitive in ELEMENTS:
            operands = [a for a in (self._operand(a, axis) for a in eqn.invars) if a is not None]
            if len(operands) < len(eqn.invars):
                return None
            return lambda values: eqn.primitive.bind(*[a(values) for a in operands], **p)
        if eqn.primitive is broadcast_in_dim_p:
            if axis not in p["broadcast_dimensions"]:
                return None
            own = self.element(y, p["broadcast_dimensions"].index(axis))
            return None if own is None else self._repeated(eqn, axis, own)
        if eqn.primitive is transpose_p:
            order = p["permutation"]
            moved = self.element(y, order[axis])
            left = sorted(set(order) - {order[axis]})
            kept = tuple([left.index(k) for i, k in enumerate(order) if i != axis])
            return None if moved is None else lambda values: transpose(moved(values), kept)
        if eqn.primitive is reshape_p:
            before = math.prod(x.aval.shape[:axis])
            at = [k for k, n in enumerate(y.aval.shape) if n == x.aval.shape[axis]
                  and math.prod(y.aval.shape[:k]) == before]
            inner = self.element(y, at[0]) if at else None
            shape = _without(x.aval, axis).shape
            return None if inner is None else lambda values: reshape(inner(values), shape)
        if eqn.primitive in OTHER_AXES:
            return self._along_other_axes(eqn, axis)
        return None

    def _along_other_axes(self, eqn: Equation, axis: int) -> Element | None:
        """The element of parts side by side, a part, or a reduction along other axes."""
        primitive, p = eqn.primitive, eqn.params
        if primitive in REDUCTIONS:
            axes = p["axes"]
            kept = [k for k in range(eqn.invars[0].aval.ndim) if k not in axes]
            at = kept[axis]
            params = {"axes": tuple([k - (k > at) for k in axes])}
        elif primitive is concatenate_p:
            if p["dimension"] == axis:
                return None
            at, params = axis, {"dimension": p["dimension"] - (p["dimension"] > axis)}
        else:
            at, params = axis, {k: (*v[:axis], *v[axis + 1:]) for k, v in p.items()}
            if eqn.outvars[0].aval.shape[axis] != eqn.invars[0].aval.shape[axis]:
                return None
        parts = [a for a in (self.element(x, at) for x in eqn.invars) if a is not None]
        if len(parts) < len(eqn.invars):
            return None
        return lambda values: primitive.bind(*[a(values) for a in parts], **params)

    def _operand(self, a: Atom, axis: int) -> Element | None:
        if a.aval.ndim:
            return self.element(a, axis)
        return None if a in self.later else self.const(a)

    def _repeated(self, eqn: Equation, axis: int, inner: Element) -> Element:
        """An iteration's part of a value that is repeated along some axes."""
        return lambda values: broadcast_element(eqn, axis, inner(values))


def _once(key: Any, element: Element | None) -> Element | None:
    """An element that is computed once in a body, whatever reads it."""
    if element is None:
        return None

    def known(values: dict[Any, Any]) -> Any:
        if key not in values:
            values[key] = element(values)
        return values[key]

    return known


def broadcast_element(eqn: Equation, axis: int, x: Any) -> Any:
    """What a broadcast makes of an element of its operand, without an axis of its result."""
    kept = tuple([d - (d > axis) for d in eqn.params["broadcast_dimensions"] if d != axis])
    return broadcast_in_dim(x, _without(eqn.outvars[0].aval, axis).shape, kept)
