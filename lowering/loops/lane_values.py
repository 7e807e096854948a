"""The values of one lane as expressions of single elements: in registers, on the stack, in memory.

Elements are known by their number: reading a value of nine numbers at a constant index is one of
nine expressions, whatever reshapes and slices are between. A place that the lane computes chooses
among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from functrans.core.dims import Shape
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.flat_numbers import FlatNumbers
from functrans.lowering.loops.index import Computed, Index, LoopVar, flatten, strides_of, unflatten
from functrans.lowering.loops.ranges import KnownRanges
from functrans.lowering.loops.tensor import Map, Reduce, ScatterTensor, Stored, Tensor

__all__ = ["LONG", "MOST_CHOICES", "Defined", "Element", "InMemory", "InOtherShape",
           "LaneBuilder", "LaneValue", "OnStack", "PlaceInMemory", "ReadInLoop", "Registers",
           "elements_of", "is_long"]

MOST_CHOICES = 16
"""Elements among which a lane chooses by comparisons; more are read from the stack."""


class LaneValue(Protocol):
    """A value of a lane, by its elements."""

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr: ...


class Registers:
    """A value of which each element is an expression."""

    def __init__(self, elements: Sequence[Expr], shape: Shape) -> None:
        self.elements = list(elements)
        self.shape = shape

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        place = s.flatten(index, self.shape)
        if place.is_const:
            return self.elements[int(place.const)]
        if len(self.elements) == 1:
            return self.elements[0]
        if not place.depends_on(s.lane) or (
                len(self.elements) > MOST_CHOICES and self.elements[0].dtype != "bool"):
            return s.on_stack(tuple(self.elements), place)
        return s.chosen(self.elements, place)


class InMemory:
    """A value in memory: `axes` are the places along its dimensions that are axes of lanes."""

    def __init__(self, tensor: Tensor, axes: Sequence[Index | None],
                 kept: frozenset[int]) -> None:
        self.tensor = tensor
        self.axes = tuple(axes)
        self.kept = kept
        self.shape: Shape = tuple([n if a is None else 1 for k, (n, a) in enumerate(zip(
            tensor.shape, self.axes, strict=True)) if a is None or k in kept])
        """That of the lane's part."""

    def place(self, index: tuple[Index, ...]) -> Index:
        """Where an element is."""
        rest = iter(index)
        total = Index({})
        for k, (axis, stride) in enumerate(zip(self.axes, strides_of(self.tensor.shape),
                                               strict=True)):
            if axis is None:
                total = total + next(rest) * stride
            else:
                total = total + axis * stride
                if k in self.kept:
                    next(rest)
        return total

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        place = self.place(index)
        return s.of_known(self.tensor, place) or \
            s.leaf("load", self.tensor.compute, (self.tensor, place))


class InOtherShape(InMemory):
    """A value of which memory has the elements one after another in another shape."""

    def __init__(self, there: InMemory, shape: Shape) -> None:
        super().__init__(there.tensor, there.axes, there.kept)
        self.shape = shape
        self.there = there

    def place(self, index: tuple[Index, ...]) -> Index:
        return self.there.place(unflatten(flatten(index, self.shape), self.there.shape))


class OnStack:
    """A value of each iteration of a loop, on the stack of the thread: an array of vectors."""

    def __init__(self, name: str, shape: Shape, dtype: str, varies: bool, level: int) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.varies = varies
        self.level = level

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        return s.leaf("slot", self.dtype, (self, s.flatten(index, self.shape)), self.varies)


class ReadInLoop:
    """A value that a loop reads in each iteration: `kept` is the one to read at known places.

    Each would have a variable otherwise, more than there are registers.
    """

    def __init__(self, of: LaneValue, kept: Callable[[], LaneValue]) -> None:
        self.of = of
        self._kept = kept

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        is_known = all(i.is_const for i in index)
        return (self._kept() if is_known else self.of).element(s, index)


class PlaceInMemory(OnStack):
    """A value in memory, the same for all lanes, by a pointer of its own."""

    def __init__(self, of: InMemory, name: str, level: int) -> None:
        super().__init__(name, of.tensor.shape, of.tensor.compute, False, level)
        self.of = of

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        return s.leaf("slot", self.dtype, (self, self.of.place(index)))


class Element:
    """An element along the first axis of a value."""

    def __init__(self, of: LaneValue, number: Index) -> None:
        self.of = of
        self.number = number

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        return self.of.element(s, (self.number, *index))


class Defined:
    """A value that is computed where it is read."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def element(self, s: LaneBuilder, index: tuple[Index, ...]) -> Expr:
        return self.tensor.define(s, index)


class LaneBuilder(FlatNumbers, KnownRanges):
    """Makes the expressions of a lane, whose number is the variable `lane`.

    `values` are those that are in registers, on the stack or in memory, by their tensors.
    """

    def __init__(self, lane: LoopVar) -> None:
        super().__init__(lambda t: isinstance(t, (Stored, Reduce, ScatterTensor)))
        self.lane = lane
        self.values: dict[Tensor, LaneValue] = {}
        self._extremes: dict[Expr, tuple[tuple[Expr, ...], Expr]] = {}
        """The places of extreme values: among which, and what is there."""

    def leaf(self, op: str, dtype: str, aux: Any, varies: bool = False) -> Expr:
        """What is read at a place, the same expression each time."""
        own = frozenset((self.lane,)) if varies else frozenset()
        index = self.index(aux[1], "i64").variables if isinstance(aux, tuple) else frozenset()
        return self._make(op, (), dtype, aux, own | index)

    def on_stack(self, elements: tuple[Expr, ...], place: Index) -> Expr:
        """One of some values at a place that is known when the program runs."""
        varies = any(e.depends_on(self.lane) for e in elements)
        return self.leaf("slot", elements[0].dtype, (elements, place), varies)

    def chosen(self, elements: Sequence[Expr], place: Index) -> Expr:
        """One of some values at a place that each lane computes, by comparisons."""
        number, at = self._number(place)
        extreme = self._extremes.get(number)
        if extreme is not None and list(at(elements)) == list(enumerate(extreme[0])):
            return extreme[1]
        found: Expr | None = None
        for k, e in reversed(list(at(elements))):
            here = self.op("eq", number, self.const(_of(k, number.dtype), number.dtype),
                           dtype="bool")
            found = e if found is None else self.op("select", here, e, found, dtype=e.dtype)
        assert found is not None
        return found

    def _number(self, place: Index) -> tuple[Expr, Callable[..., Any]]:
        """What decides a place, and the elements by its values."""
        if len(place.terms) == 1:
            (atom, c), = place.terms.items()
            if isinstance(atom, Computed) and isinstance(atom.high, int) and isinstance(c, int):
                first, count = int(place.const), atom.high
                return _narrowed(self, atom.value), lambda elements: [
                    (j, elements[first + c * j]) for j in range(count)
                    if 0 <= first + c * j < len(elements)]
        return self.index(place, "i32"), lambda elements: enumerate(elements)

    def op(self, name: str, *args: Expr, dtype: str | None = None, aux: Any = None) -> Expr:
        """An operation; bounds of places are computed in the 32 bits that the program has."""
        if name == "convert" and args[0].dtype == dtype:
            return args[0]
        if name == "convert" and args[0].op == "convert" and dtype == "i32" \
                and args[0].dtype == "i64" and args[0].args[0].dtype == "i32":
            return args[0].args[0]
        if name in ("max", "min") and args[0].dtype == "i64" and args[0].op == "convert" \
                and args[1].op in ("const",) and args[0].args[0].dtype in ("i32", "u32"):
            inner, limit = args[0].args[0], int(args[1].aux)
            if inner.dtype == "u32" and limit <= 0:
                return args[0] if name == "max" else self.const(np.int64(limit), "i64")
            if abs(limit) < 2**31:
                small = super().op(name, inner, self.const(_of(limit, inner.dtype), inner.dtype))
                return super().op("convert", small, dtype="i64")
        return super().op(name, *args, dtype=dtype, aux=aux)

    def _is_inlined(self, tensor: Tensor, index: tuple[Index, ...]) -> bool:
        return tensor not in self.values and isinstance(tensor, Map) \
            and all(i.is_const for i in index)

    def _element(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr | None:
        value = self.values.get(tensor)
        if value is not None:
            return value.element(self, index)
        if not all(i.is_const for i in index) and self._is_small(tensor) and not (
                is_long(tensor) and not any(i.has_computed for i in index)):
            value = self.values[tensor] = Registers(elements_of(self, tensor), tensor.shape)
            return value.element(self, index)
        if isinstance(tensor, Reduce):
            return self._reduced(tensor, index)
        if isinstance(tensor, ScatterTensor):
            return self._scattered(tensor, index)
        return None

    def _is_small(self, t: Tensor) -> bool:
        return not isinstance(t, Stored) and isinstance(t.size, int) and t.size <= 256

    def _reduced(self, t: Reduce, index: tuple[Index, ...]) -> Expr:
        numbers = list(itertools.product(*[range(int(n)) for n in t.sizes]))
        terms = [t.element(self, (*index, *map(Index.of, r))) for r in numbers]
        terms = [e if e.dtype == t.value_dtype else self.op("convert", e, dtype=t.value_dtype)
                 for e in terms]
        if t.op.startswith("arg"):
            return self._extreme(t, terms)
        while len(terms) > 1:  # pairwise
            terms = [self.op(t.op, *terms[k:k + 2]) if k + 1 < len(terms) else terms[k]
                     for k in range(0, len(terms), 2)]
        return terms[0] if terms[0].dtype == t.compute else \
            self.op("convert", terms[0], dtype=t.compute)

    def _extreme(self, t: Reduce, terms: Sequence[Expr]) -> Expr:
        """The first place of the extreme value; NaN is extreme."""
        best, at = terms[0], self.const(_of(0, t.compute), t.compute)
        for k, e in enumerate(terms[1:], 1):
            if e.dtype[0] == "f":  # better or NaN, and the best one is no NaN
                worse = self.op("le" if t.op == "argmax" else "ge", e, best, dtype="bool")
                better = self.op("and", self.op("not", worse), self.op(
                    "eq", best, best, dtype="bool"))
            else:
                better = self.op("gt" if t.op == "argmax" else "lt", e, best, dtype="bool")
            best = self.op("select", better, e, best, dtype=e.dtype)
            at = self.op("select", better, self.const(_of(k, t.compute), t.compute), at,
                         dtype=t.compute)
        self._extremes[at] = tuple(terms), best
        return at

    def _scattered(self, t: ScatterTensor, index: tuple[Index, ...]) -> Expr:
        """An element of the base after all that is combined into it, in order."""
        found, here = self.read(t.base, index), self.flatten(index, t.shape)
        for r in itertools.product(*[range(int(n)) for n in t.sizes]):
            at = tuple(map(Index.of, r))
            place, condition = t.place(self, at)
            target = self.flatten(place, t.shape)
            if target.is_const and target != here:
                continue
            new = t.element(self, at)
            new = new if t.op == "set" else self.op(t.op, found, new)
            if not target.is_const:
                number, _ = self._number(target)
                wanted = self._number_of(target, int(here.const))
                if wanted is None:
                    continue
                hit = self.op("eq", number, self.const(_of(wanted, number.dtype), number.dtype),
                              dtype="bool")
                condition = hit if condition is None else self.op("and", hit, condition)
            found = new if condition is None else self.op("select", condition, new, found,
                                                          dtype=new.dtype)
        return found

    def _number_of(self, place: Index, wanted: int) -> int | None:
        """What decides a place where that is `wanted`; None where it never is."""
        if len(place.terms) == 1:
            (atom, c), = place.terms.items()
            if isinstance(atom, Computed) and isinstance(atom.high, int) and isinstance(c, int):
                j, rest = divmod(wanted - int(place.const), c)
                return j if rest == 0 and 0 <= j < atom.high else None
        return wanted


LONG = 32
"""Elements of a value from which on loops compute and load them: each takes gcc 0.1 to 2 ms."""


def is_long(t: Tensor) -> bool:
    """Whether the elements of a value are many, and each may be computed by itself."""
    return isinstance(t, Map) and isinstance(t.size, int) and t.size >= LONG


def elements_of(s: LaneBuilder, t: Tensor) -> list[Expr]:
    """All elements of a value, in order."""
    if t in s.values and isinstance(found := s.values[t], Registers):
        return found.elements
    count = math.prod([int(n) for n in t.shape])
    return [s.read(t, tuple([Index.of(int(i)) for i in np.unravel_index(k, t.shape)])
                   if t.shape else ()) for k in range(count)]


def _narrowed(s: LaneBuilder, e: Expr) -> Expr:
    return s.op("convert", e, dtype="i32") if e.dtype == "i64" else e


def _of(value: int, dtype: str) -> Any:
    kind = {"f": "float", "i": "int", "u": "uint"}[dtype[0]]
    return np.asarray(value).astype(f"{kind}{dtype[1:]}")
