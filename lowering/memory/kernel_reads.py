"""What the kernels of a program read where they write: looked up once for each kernel.

A step of an optimiser writes hundreds of tensors in one kernel, and each may be in the memory of
each tensor of its shape that ends there: to write the expressions of the kernel for each such pair
took 30 of the 70 s of a conformer's first call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, reachable_expressions
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import Reduce, Tensor
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel, accesses, stages_of

__all__ = ["ReadsOfSteps"]


ELEMENTWISE = frozenset({"full"})
"""Roles in kernels that may compute elements in any order, and in those that compute row by row."""
IN_ROWS = frozenset({"full", "row", "reduce_row", "reduce_column"})


class ReadsOfSteps(Record, frozen=False, eq=False):
    """What the steps of a schedule read, some of which compute several kernels `together`.

    Kernels are known by their identity: those of the schedule stay as long as it does. With
    `by_rows` one thread computes all of a row, loop by loop, before it begins another one.
    """

    schedule: Schedule
    together: Mapping[int, Sequence[Kernel]]
    by_rows: bool = False
    _in_place: dict[int, _ReadsInPlace | None] = field(default_factory=dict)
    _loads: dict[int, Collection[Tensor]] = field(default_factory=dict)

    def is_read_in_place(self, step: int, x: Tensor, t: Tensor) -> bool:
        """Whether a step that writes t reads x at the place where it writes, and not after that.

        Where t does not depend on an element, other threads may still read it, and so may other
        kernels of the same step.
        """
        found = self.schedule.steps[step]
        if step in self.together:
            writers = [k for k in self.together[step] if any(m.tensor is t for m in k.members)]
            if not writers or any(x in self._loads_of(k) for k in self.together[step]
                                  if k not in writers):
                return False
            (found,) = writers
        if isinstance(found, WithEpilogue) and x in found.multiplied:
            return False
        kernel = found.kernel if isinstance(found, WithEpilogue) else found
        if not isinstance(kernel, Kernel):
            return False
        if id(kernel) not in self._in_place:
            self._in_place[id(kernel)] = _reads_in_place(
                kernel, self.schedule,
                IN_ROWS if self.by_rows and kernel is found else ELEMENTWISE)
        reads = self._in_place[id(kernel)]
        return reads is not None and reads.ends_with(x, t)

    def _loads_of(self, kernel: Kernel) -> Collection[Tensor]:
        if id(kernel) not in self._loads:
            self._loads[id(kernel)] = kernel.loads(kernel.builder(self.schedule.is_stored))
        return self._loads[id(kernel)]


class _ReadsInPlace(Record, frozen=False, eq=False):
    """The expressions of a kernel, by the tensors that it writes, and what each of them reads."""

    kernel: Kernel
    elements: Mapping[Tensor, Expr]
    _reached: dict[Tensor, Collection[Tensor]] = field(default_factory=dict)

    def ends_with(self, x: Tensor, t: Tensor) -> bool:
        """Whether t depends on x at its place, and nothing reads x elsewhere or afterwards."""
        if t not in self.elements or x not in self._readers or x in self._elsewhere:
            return False
        return max(self._order[m] for m in self._readers[x]) <= self._order[t] \
            and x in self._reached_from(t)

    @cached_property
    def _accesses(self) -> dict[Tensor, list[tuple[Tensor | None, Index]]]:
        return {m: accesses([e]) for m, e in self.elements.items()}

    @cached_property
    def _readers(self) -> dict[Tensor, list[Tensor]]:
        """The tensors whose expressions read a tensor."""
        found: dict[Tensor, list[Tensor]] = {}
        for m, read in self._accesses.items():
            for x in dict.fromkeys([x for x, _ in read if x is not None]):
                found.setdefault(x, []).append(m)
        return found

    @cached_property
    def _elsewhere(self) -> Collection[Tensor]:
        """The tensors that are read at other places than where the kernel writes."""
        here = self.kernel.places["full"]
        return {x for read in self._accesses.values() for x, index in read
                if x is not None and index != here}

    @cached_property
    def _order(self) -> dict[Tensor, tuple[int, int]]:
        """When each tensor is written: the loop over the row, and the place in it."""
        stages = stages_of(self.kernel, self.elements)
        return {m.tensor: (stages[m.tensor], n) for n, m in enumerate(self.kernel.members)}

    def _reached_from(self, t: Tensor) -> Collection[Tensor]:
        """The tensors that an expression reads, also in other members of the kernel."""
        if t not in self._reached:
            found: set[Tensor] = set()
            members, todo = {t}, [t]
            while todo:
                for e in reachable_expressions([self.elements[todo.pop()]]):
                    if e.op == "load":
                        found.add(e.aux[0])
                    elif e.op == "local" and e.aux not in members:
                        members.add(e.aux)
                        todo.append(e.aux)
            self._reached[t] = found
        return self._reached[t]


def _is_searched(t: Tensor) -> bool:
    """Whether a loop after the others may read again what a value is made of."""
    return isinstance(t, Reduce) and t.op.startswith("arg")


def _reads_in_place(kernel: Kernel, schedule: Schedule,
                    roles: Collection[str]) -> _ReadsInPlace | None:
    """None for kernels that do not compute each element from those at its place alone, and from
    what has these roles."""
    if any(m.role not in roles or _is_searched(m.tensor) for m in kernel.members):
        return None
    s = kernel.builder(schedule.is_stored)
    return _ReadsInPlace(kernel, {m.tensor: kernel.element(s, m) for m in kernel.members})
