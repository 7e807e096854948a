"""The values of a lane that is a thread: numbers that it keeps, and memory of its own.

What loops inside collect goes where a result of the kernel is, or to a workspace in which
neighbours are other lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from functrans.core.dims import Shape
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_values import InMemory, LaneBuilder
from functrans.lowering.loops.tensor import Tensor

__all__ = ["InPlaces", "Place", "Same", "ThreadBuilder", "Written", "in_workspace"]

MOST_CHOICES: Final = 32  # elements of which one is read at a place that is computed
Place = tuple[Index, ...]


class ThreadBuilder(LaneBuilder):
    """Makes the expressions of a lane whose values are scalars of a thread."""

    def __init__(self) -> None:
        super().__init__(LoopVar("lane", 1))
        self._changing: dict[Any, Expr] = {}

    def on_stack(self, elements: tuple[Expr, ...], place: Index) -> Expr:
        """By comparisons: a stack is memory, far from a thread."""
        if len(elements) > MOST_CHOICES:
            raise UnsupportedKernel(f"a lane reads one of {len(elements)} elements")
        return self.chosen(elements, place)

    def number(self, key: object, dtype: str, variable: LoopVar | None) -> Expr:
        """A number that the lane keeps, known while a variable of its loop has its value."""
        return self._make("local", (), dtype, key,
                          frozenset() if variable is None else frozenset((variable,)))

    def changing(self, tensor: Tensor, place: Index, loop: LoopVar | None) -> Expr:
        """An element of memory that changes with a loop."""
        e = self.leaf("load", tensor.compute, (tensor, place))
        if loop is None:
            return e
        key = (tensor, place, loop)
        if key not in self._changing:
            self._changing[key] = Expr("load", (), e.dtype, e.aux, e.variables | {loop})
        return self._changing[key]


class Same:
    """Another value."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def element(self, s: LaneBuilder, index: Place) -> Expr:
        return s.read(self.tensor, index)


class InPlaces(InMemory):
    """An operand in memory, or a movement of one, of which the lane has some places."""

    def element(self, s: LaneBuilder, index: Place) -> Expr:
        rest = iter(index)
        full = []
        for k, axis in enumerate(self.axes):
            if axis is None:
                full.append(next(rest))
            else:
                full.append(axis)
                if k in self.kept:
                    next(rest)
        return s.read(self.tensor, tuple(full))


class Written:
    """A value that the lane writes to memory, which changes with a loop; or a part of one.

    `place` is where an element is.
    """

    def __init__(self, tensor: Tensor, place: Callable[[Place], Index],
                 loop: LoopVar | None) -> None:
        self.tensor = tensor
        self.place = place
        self.loop = loop

    def part(self, at: Index) -> Written:
        """What stands at a place along the first axis."""
        return Written(self.tensor, lambda index: self.place((at, *index)), self.loop)

    def element(self, s: LaneBuilder, index: Place) -> Expr:
        assert isinstance(s, ThreadBuilder)
        return s.changing(self.tensor, self.place(index), self.loop)


def in_workspace(memory: Tensor, shape: Shape, lane: LoopVar, loop: LoopVar | None) -> Written:
    """A value in memory of the lanes' own, where each element is next to that of other lanes."""
    def place(index: Place) -> Index:
        total, step = Index.of(lane), lane.high
        for i, n in zip(reversed(index), reversed(shape), strict=True):
            total = i * step + total
            step = step * n
        return total

    return Written(memory, place, loop)
