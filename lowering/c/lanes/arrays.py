"""Values of a lane of many elements: arrays that loops fill, and what loops read in each iteration.

Written out, each element is a line of the text, and a variable that lives as long as a loop: gcc
took 2.7 s for a loop over 368 weights of a network, now 0.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from functrans.core.dims import Shape
from functrans.lowering.c.lanes.expressions import LaneExprWriter
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_values import (
    LONG,
    Defined,
    InMemory,
    LaneBuilder,
    LaneValue,
    OnStack,
    PlaceInMemory,
    ReadInLoop,
)
from functrans.lowering.loops.tensor import ITEM_SIZES, Map, Tensor

__all__ = ["LaneArrays"]

STACK_BYTES: Final = 1 << 14  # of an array on the stack; larger ones are allocated
MOST_PACKED: Final = 1024  # elements of a value that is copied for the loop that reads it


class LaneArrays:
    """The arrays of a kernel of lanes, which is written to `out`."""

    out: LaneExprWriter
    s: LaneBuilder
    lanes: int
    trips: int
    head: list[str]
    frees: list[str]

    def _varies(self, value: LaneValue) -> bool:
        raise NotImplementedError

    def _weigh(self, exprs: Sequence[Expr]) -> None:
        raise NotImplementedError


    def _array(self, shape: Shape, dtype: str, varies: bool) -> OnStack:
        """An array of the elements of a value, at the depth of the innermost loop."""
        count = math.prod([int(n) for n in shape])
        name = self.out.name("s", varies)
        kind = self.out.type(dtype, varies)
        nbytes = count * ITEM_SIZES[dtype] * (self.lanes if varies else 1)
        if nbytes <= STACK_BYTES:
            self.out.line(f"{kind} {name}[{count}];")
        else:
            self.head.append(f"  {kind} *{name} = ft->allocate({nbytes}); "
                             f"if (!{name}) {{ *failed = 2; return; }}\n")
            self.frees.append(f"  ft->release((char *){name});\n")
        return OnStack(name, shape, dtype, varies, self.out.level)

    def _each(self, shape: Shape, write: Callable[[tuple[Index, ...]], None]) -> None:
        """Write loops over the elements of a value."""
        out = self.out
        counters = [LoopVar(out.name("e"), int(n)) for n in shape]
        trips, self.trips = self.trips, self.trips * math.prod([int(n) for n in shape])
        for counter in counters:
            out.push()
            out.levels[counter] = out.level
        write(tuple(map(Index.of, counters)))
        for counter in reversed(counters):
            name = counter.name
            out.pop(f"for (i64 {name} = 0; {name} < {counter.high}; {name}++) {{")
        self.trips = trips

    def _packed(self, value: LaneValue, shape: Shape, dtype: str) -> OnStack:
        """A value as an array that loops fill."""
        varies = self._varies(value)
        array = self._array(shape, dtype, varies)

        def write(index: tuple[Index, ...]) -> None:
            e = value.element(self.s, index)
            self._weigh([e])
            place = self.out.index(self.s.flatten(index, shape))
            self.out.line(f"{array.name}[{place}] = {self.out.value(e, varies)};")

        self._each(shape, write)
        return array

    def _read_in_loop(self, value: LaneValue) -> LaneValue:
        """What a loop, whose scope is the innermost, reads in each iteration.

        Many elements at known places are loaded there, from memory or from an array of vectors;
        the pointer to it is another one in each iteration, for all that the compiler knows.
        """
        if isinstance(value, ReadInLoop):
            value = value.of
        if isinstance(value, InMemory):
            t, shape = value.tensor, value.shape
        elif isinstance(value, Defined) and self._varies(value) \
                and self._is_view_of_memory(value.tensor):
            t = value.tensor
            shape = t.shape
        else:
            return value
        if not all(isinstance(n, int) for n in shape) or t.dtype != t.compute \
                or t.dtype == "bool" or not LONG <= math.prod(map(int, shape)) <= MOST_PACKED:
            return value
        level = self.out.level
        known: list[LaneValue] = []

        def kept() -> LaneValue:
            if not known:
                known.append(self._opaque(value, shape, level))
            return known[0]

        return ReadInLoop(value, kept)

    def _is_view_of_memory(self, t: Tensor) -> bool:
        """Whether the elements of a value are those of one in memory, in another order."""
        while isinstance(t, Map) and t.weight == 0 and len(t.operands) == 1:
            t = t.operands[0]
        return isinstance(self.s.values.get(t), InMemory)

    def _opaque(self, value: InMemory | Defined, shape: Shape, level: int) -> LaneValue:
        """What loads the elements of a value in each iteration of the loop at a level."""
        out, varies, dtype = self.out, self._varies(value), value.tensor.compute
        scopes = out.scopes
        if varies:
            out.scopes = scopes[:level]
            place = self._packed(value, shape, dtype).name
        else:
            place = out.pointer(value.tensor)
        out.scopes = scopes[:level + 1]
        name = out.name("q", varies)
        out.line(f"const {out.type(dtype, varies)} *{name} = {place}; "
                 f"__asm__ volatile(\"\" : \"+r\"({name}));")
        out.scopes = scopes
        if isinstance(value, InMemory) and not varies:
            return PlaceInMemory(value, name, level)
        return OnStack(name, shape, dtype, True, level)
