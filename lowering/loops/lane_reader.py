"""Values of one lane as scalar expressions: what each element is, from those of the same lane.

Coordinates, a loop variable each, say which lane it is. A carry or the result of a loop is known by
its components, an expression for each of its elements in the lane. Reductions over them, and
updates of them, are written out. What reads another lane's component raises `CrossesLanes`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.flat_numbers import FlatNumbers
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import Reduce, ScatterTensor, Stored, Tensor

__all__ = [
    "CrossesLanes",
    "InOwnLane",
    "LaneArray",
    "LaneComponents",
    "LaneReader",
    "LaneView",
    "Place",
    "TensorInLane",
]

MOST_TERMS: Final = 128  # of a reduction that is written out
MOST_CHOICES: Final = 32  # elements of which one is read or updated at a place that is computed
Place = tuple[Index, ...]


class CrossesLanes(UnsupportedKernel):
    """A value of another lane is read."""


class TensorInLane(Protocol):
    """What a tensor is to a lane."""

    def element(self, reader: LaneReader, index: Place) -> Expr:
        """The expression of an element."""


class LaneView(Record, eq=False):
    """A part of a tensor: what stands behind some first indices."""

    tensor: Tensor
    before: Place = ()

    def element(self, reader: LaneReader, index: Place) -> Expr:
        return reader.read(self.tensor, (*self.before, *index))


class InOwnLane(Record, eq=False):
    """Parts of lanes side by side: the part of this one is a tensor."""

    tensor: Tensor
    coordinate: LoopVar

    def element(self, reader: LaneReader, index: Place) -> Expr:
        if index[0] != Index.of(self.coordinate):
            raise CrossesLanes(f"a lane reads what lane {index[0]} computes")
        return reader.read(self.tensor, index[1:])


class LaneArray(Record, eq=False):
    """A value that the lane writes to memory, which changes with a loop; or a part of one.

    `lanes` are the axes with coordinates. In memory of the lanes' own they are `last`, so that
    neighbours are other lanes.
    """

    memory: Tensor
    lanes: Mapping[int, LoopVar]
    loop: LoopVar | None
    last: bool = False
    before: Place = ()

    def part(self, at: Index) -> LaneArray:
        """What stands at a place along the first axis."""
        return replace(self, before=(*self.before, at))

    def place(self, index: Place) -> Place:
        """Where an element is."""
        index = (*self.before, *index)
        for k, lane in self.lanes.items():
            if index[k] != Index.of(lane):
                raise CrossesLanes(f"a lane reads what lane {index[k]} computes")
        if not self.last:
            return index
        own = [i for k, i in enumerate(index) if k not in self.lanes]
        return (*own, *map(Index.of, self.lanes.values()))

    def element(self, reader: LaneReader, index: Place) -> Expr:
        return reader.load(self.memory, self.place(index), self.loop)


class LaneComponents:
    """The elements of a value in a lane. `lanes` are the axes with coordinates."""

    def __init__(self, tensor: Tensor, lanes: Mapping[int, LoopVar]) -> None:
        self.shape = tensor.shape
        self.lanes = lanes
        self.parts: dict[tuple[int, ...], Expr] = {}

    def places(self) -> Iterator[tuple[tuple[int, ...], Place]]:
        """The numbers of each component, and its place in the value."""
        sizes = [1 if k in self.lanes else n for k, n in enumerate(self.shape)]
        if not all(isinstance(n, int) for n in sizes):
            raise UnsupportedKernel("a size that is not known")
        if math.prod(sizes) > MOST_TERMS:
            raise UnsupportedKernel(f"a lane has {math.prod(sizes)} elements of a value")
        for numbers in itertools.product(*map(range, sizes)):
            yield numbers, tuple([Index.of(self.lanes[k]) if k in self.lanes else Index.of(n)
                                  for k, n in enumerate(numbers)])

    def element(self, reader: LaneReader, index: Place) -> Expr:
        return self._element(reader, index, ())

    def _element(self, reader: LaneReader, index: Place, numbers: tuple[int, ...]) -> Expr:
        axis = len(numbers)
        if axis == len(index):
            return self.parts[numbers]
        at = index[axis]
        if axis in self.lanes:
            if at != Index.of(self.lanes[axis]):
                raise CrossesLanes(f"a lane reads what lane {at} computes")
            return self._element(reader, index, (*numbers, 0))
        if at.is_const:
            return self._element(reader, index, (*numbers, int(at.const)))
        n = self.shape[axis]
        if not isinstance(n, int) or n > MOST_CHOICES:
            raise UnsupportedKernel(f"a lane reads one of {n} elements")
        found = self._element(reader, index, (*numbers, n - 1))
        for k in reversed(range(n - 1)):
            here = reader.op("eq", reader.index(at, "i64"), reader.const(np.int64(k), "i64"),
                             dtype="bool")
            one = self._element(reader, index, (*numbers, k))
            found = reader.op("select", here, one, found, dtype=one.dtype)
        return found


class LaneReader(FlatNumbers):
    """Makes the expressions of a lane; `values` are what is not defined by other tensors.

    Operands of the kernel are in memory, whatever they are in the program around it.
    """

    def __init__(self, operands: Iterable[Tensor]) -> None:
        self._operands = frozenset(operands)
        super().__init__(lambda t: isinstance(t, Stored) or t in self._operands)
        self.values: dict[Tensor, TensorInLane] = {}

    def is_operand(self, tensor: Tensor) -> bool:
        """Whether a tensor is in memory that the kernel only reads."""
        return tensor in self._operands

    def _element(self, tensor: Tensor, index: Place) -> Expr | None:
        value = self.values.get(tensor)
        if value is not None:
            return value.element(self, index)
        if self._is_stored(tensor):
            return super()._element(tensor, index)
        if isinstance(tensor, Reduce):
            return self._reduced(tensor, index)
        if isinstance(tensor, ScatterTensor):
            return self._updated(tensor, index)
        return super()._element(tensor, index)

    def load(self, tensor: Tensor, index: Place, loop: LoopVar | None) -> Expr:
        """An element of memory that changes with a loop."""
        e = super()._element(tensor, index)
        assert e is not None
        if loop is None:
            return e
        return Expr("load", (), e.dtype, e.aux, e.variables | {loop})

    def leaf(self, key: object, dtype: str, variable: LoopVar | None) -> Expr:
        """A number that the lane keeps, known while a variable of its loop has its value."""
        return self._make("local", (), dtype, key,
                          frozenset() if variable is None else frozenset((variable,)))

    # --------------------------------------------------------------------------- written out

    def _reduced(self, t: Reduce, index: Place) -> Expr:
        terms = [(at, t.element(self, (*index, *at))) for at in _places(t.sizes)]
        if t.op in ("argmax", "argmin"):
            return self._extreme(t, terms)
        values = [e for _, e in terms]
        while len(values) > 1:  # pairwise
            values = [self.op(t.op, *values[k:k + 2]) if k + 1 < len(values) else values[k]
                      for k in range(0, len(values), 2)]
        return values[0]

    def _extreme(self, t: Reduce, terms: Sequence[tuple[Place, Expr]]) -> Expr:
        """The first place of the extreme value, of which NaN is one."""
        (_, best), *others = terms
        place = self.const(np.int64(0), "i64")
        for number, (_, e) in enumerate(others, 1):
            better = self.op("gt" if t.op == "argmax" else "lt", e, best, dtype="bool")
            if e.dtype[0] == "f":
                is_first_nan = self.op("and", self.op("ne", e, e, dtype="bool"),
                                       self.op("eq", best, best, dtype="bool"))
                better = self.op("or", better, is_first_nan)
            best = self.op("select", better, e, best, dtype=e.dtype)
            place = self.op("select", better, self.const(np.int64(number), "i64"), place,
                            dtype="i64")
        return place if t.compute == "i64" else self.op("convert", place, dtype=t.compute)

    def _updated(self, t: ScatterTensor, index: Place) -> Expr:
        """An element of an updated value: each update compares its place with that of the element.

        Where an axis of the updates goes to an axis of the value as it is, that is no question.
        """
        variables = [LoopVar(f"u{k}", n) for k, n in enumerate(t.sizes)]
        free, _ = t.place(ExprBuilder(lambda _: True), tuple(map(Index.of, variables)))
        known = {k: at for k, v in enumerate(variables) for to, at in zip(free, index, strict=True)
                 if to == Index.of(v)}
        found = self.read(t.base, index)
        for at in _places([1 if k in known else n for k, n in enumerate(t.sizes)]):
            here = tuple([known.get(k, i) for k, i in enumerate(at)])
            place, condition = t.place(self, here)
            for to, wanted, n in zip(place, index, t.base.shape, strict=True):
                apart = to - wanted
                if apart.is_const and apart.const == 0:
                    continue
                if not isinstance(n, int) or n > MOST_CHOICES:
                    raise UnsupportedKernel(f"a lane updates one of {n} elements")
                same = self.op("eq", self.index(to, "i64"), self.index(wanted, "i64"),
                               dtype="bool")
                condition = same if condition is None else self.op("and", condition, same)
            value = t.element(self, here)
            if t.op != "set":
                value = self.op(t.op, found, value)
            found = value if condition is None else self.op("select", condition, value, found,
                                                            dtype=value.dtype)
        return found


def _places(sizes: Sequence[Any]) -> list[Place]:
    if not all(isinstance(n, int) for n in sizes) or math.prod(sizes) > MOST_TERMS:
        raise UnsupportedKernel(f"a lane takes together {'x'.join(map(str, sizes))} elements")
    return [tuple(map(Index.of, at)) for at in itertools.product(*map(range, sizes))]
