"""Values that their readers can compute from what they read anyway are not stored.

Of `y = tanh(x)` that a gradient reads again, beside x, only x is kept. A GPU computes tens of
operations in the time in which it moves a number, and thousands in that of a launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.expr import (
    IterationSpaceMismatch,
    TooManyExpressions,
    reachable_expressions,
)
from functrans.lowering.loops.tensor import Gemm, Map, ScatterTensor, Stored, Tensor, item_size
from functrans.lowering.schedule.group import (
    MOST_EXPRESSIONS,
    MOST_NESTED,
    Schedule,
    Step,
    has_constant_stride,
    nested_reads,
)
from functrans.lowering.schedule.kernel import Domain, Kernel, Member, Reads, accesses
from functrans.lowering.schedule.target import HOPPER, Target

__all__ = ["recompute"]


def recompute(schedule: Schedule, outputs: Collection[Tensor],
              reads: Reads | None = None, target: Target = HOPPER) -> Schedule:
    """The schedule with values computed where they are read, if that moves fewer bytes."""
    return _Recomputing(schedule, outputs, Reads() if reads is None else reads, target).run()


class _Recomputing:
    def __init__(self, schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                 target: Target) -> None:
        self.schedule, self.target = schedule, target
        self.steps: list[Step] = list(schedule.steps)
        self.stored = set(schedule.stored)
        self.kept = {*outputs, *_update_bases(schedule.steps)}
        self.reads = reads
        self.readers: dict[Tensor, set[int]] = {}
        # of steps, as long as they are not changed: how often each reads what, and which members
        self.places: dict[int, Counter[Tensor]] = {}
        self.locals: dict[int, list[set[Tensor]]] = {}
        self.refused: set[int] = set()  # the readers that could not compute a value
        for j, step in enumerate(self.steps):
            for x in self._loads(step):
                self.readers.setdefault(x, set()).add(j)

    def run(self) -> Schedule:
        products: set[Tensor] = {s.results[0] for s in self.steps if type(s) is Gemm}
        for t, k in list(self._candidates()):
            readers = sorted(self.readers.get(t, ()))
            if readers and all(j > k and isinstance(self.steps[j], Kernel) for j in readers):
                self._try(t, k, readers, products)
        steps = [s for s in self.steps if not isinstance(s, Kernel) or s.members]
        return replace(self.schedule, steps=steps, stored=self.stored)

    def _candidates(self) -> Iterator[tuple[Map, int]]:
        """Stored values of kernels, the last first, and the kernels."""
        for k in reversed(range(len(self.steps))):
            step = self.steps[k]
            for m in reversed(step.members) if isinstance(step, Kernel) else ():
                if m.role == "full" and isinstance(m.tensor, Map) and m.tensor in self.stored \
                        and m.tensor not in self.kept and isinstance(m.tensor.size, int):
                    yield m.tensor, k

    def is_stored(self, t: Tensor) -> bool:
        return isinstance(t, Stored) or t in self.stored

    def _loads(self, step: Step) -> Collection[Tensor]:
        return self.reads.of(step, self.is_stored)

    def _change(self, j: int, step: Step) -> None:
        for x in self._loads(self.steps[j]):
            self.readers[x].discard(j)
        self.steps[j] = step
        self.places.pop(j, None)
        self.locals.pop(j, None)
        for x in self._loads(step):
            self.readers.setdefault(x, set()).add(j)

    def _try(self, t: Map, k: int, readers: list[int], products: set[Tensor]) -> None:
        weight = self._weight(t)
        if weight is None:
            return
        additions = weight * sum(self._uses(t, j) for j in readers)
        if not self._pays(t, additions, (), k, readers, products):  # whatever it needs
            return
        needs = self._needs(t)
        if needs is None or not self._pays(t, additions, needs, k, readers, products):
            return
        self.stored.remove(t)
        changed = self._computing(readers)
        if changed is None:
            self.stored.add(t)
            return
        for j, step in zip(readers, changed, strict=True):
            self._change(j, step)
        self._change(k, self._without_unread(k))

    def _weight(self, t: Map) -> int | None:
        """What computing t from memory costs, in additions; None if it cannot be."""
        seen: set[Tensor] = {t}
        waiting, total = [(t, 1)], 0
        while waiting:
            x, times = waiting.pop()
            total += x.weight * times
            for y in x.operands:
                if y in seen or self.is_stored(y):
                    continue
                if not isinstance(y, Map):
                    return None
                seen.add(y)
                waiting.append((y, times * x.terms))
        return total

    def _needs(self, t: Map) -> Collection[Tensor] | None:
        if nested_reads([t], self.is_stored) > MOST_NESTED:
            return None
        row: Size = t.shape[-1] if t.shape else 1
        alone = Kernel(Domain(t.size // row if row else 0, row), [Member(t, "full")])
        try:
            return alone.loads(alone.builder(lambda x: x is not t and self.is_stored(x)))
        except IterationSpaceMismatch:
            return None

    def _uses(self, t: Map, j: int) -> Any:
        """How many elements of a value a step reads, where it reads each at several places."""
        if j not in self.places:
            step = self.steps[j]
            assert isinstance(step, Kernel)
            read = accesses(step.all_expressions(step.shared(self.is_stored)))
            self.places[j] = Counter(x for x, _ in dict.fromkeys(read) if x is not None)
        return t.size * self.places[j][t]

    def _pays(self, t: Map, additions: Any, needs: Collection[Tensor], k: int, readers: list[int],
              products: set[Tensor]) -> bool:
        moved: float = -_nbytes(t) * (1 + len(readers))
        for j in readers:
            moved += sum(_nbytes(x) for x in needs if x not in self._loads(self.steps[j]))
        for x in needs:  # products that an epilogue would keep from memory
            if x in products and x not in self.kept and self.readers.get(x, set()) <= {k}:
                moved += _nbytes(x)
        known = self.target.measured
        if not self._needed_members(k, t):
            moved -= known.launch / known.byte
        return bool(moved + known.addition * additions < 0)

    def _computing(self, readers: list[int]) -> list[Kernel] | None:
        """Readers that compute what is no longer stored; None where one may not."""
        found: dict[int, Kernel] = {}
        # first those that are likely to refuse: once more, or as the first to have too many
        for j in sorted(readers, key=lambda j: (j in self.refused, self._size(j)), reverse=True):
            step = self.steps[j]
            assert isinstance(step, Kernel)
            kernel = step.anew()
            s = kernel.shared(self.is_stored)
            if self._nested_reads(step) > MOST_NESTED:
                return None
            try:
                with s.at_most(MOST_EXPRESSIONS):
                    exprs = kernel.all_expressions(s)
                may = all(has_constant_stride(index, kernel.i) for _, index in accesses(exprs))
            except (IterationSpaceMismatch, TooManyExpressions):
                may = False
            if not may:
                self.refused.add(j)
                return None
            found[j] = kernel
        return [found[j] for j in readers]

    def _nested_reads(self, kernel: Kernel) -> int:
        """How many operations the members of a kernel read within one another."""
        own = {m.tensor for m in kernel.members}
        return nested_reads(own, lambda x: x in own or self.is_stored(x))

    def _size(self, j: int) -> int:
        """How many expressions a reader has."""
        step = self.steps[j]
        assert isinstance(step, Kernel)
        return step.shared(self.is_stored).count

    def _without_unread(self, k: int) -> Kernel:
        """A kernel without members that nobody reads."""
        kernel = self.steps[k]
        assert isinstance(kernel, Kernel)
        return Kernel(kernel.domain, self._needed_members(k))

    def _needed_members(self, k: int, but: Tensor | None = None) -> list[Member]:
        """The members of a kernel that it stores, `but` one, or that these read."""
        kernel = self.steps[k]
        assert isinstance(kernel, Kernel)
        if k not in self.locals:
            s = kernel.shared(self.is_stored)
            self.locals[k] = [{e.aux for e in reachable_expressions([kernel.element(s, m)])
                               if e.op == "local"} for m in kernel.members]
        needed: set[Tensor] = set()
        members: list[Member] = []
        for m, read in zip(reversed(kernel.members), reversed(self.locals[k]), strict=True):
            is_stored = m.tensor is not but and self.is_stored(m.tensor)
            if m.tensor in needed or is_stored or m.role == "scatter":
                members.append(m)
                needed |= read
        return members[::-1]


def _update_bases(steps: Collection[Step]) -> Iterator[Tensor]:
    """What updates start from, which no expression loads."""
    for step in steps:
        for m in step.members if isinstance(step, Kernel) else ():
            if isinstance(m.tensor, ScatterTensor):
                yield m.tensor.base


def _nbytes(t: Tensor) -> int:
    return t.size * item_size(t.dtype) if isinstance(t.size, int) else 0
