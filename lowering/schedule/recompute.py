"""Values that their readers can compute from what they read anyway are not stored.

Of `y = tanh(x)` that a gradient reads again, beside x, only x is kept. A GPU computes tens of
operations in the time in which it moves a number, and thousands in that of a launch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.expr import IterationSpaceMismatch, reachable_expressions
from functrans.lowering.loops.tensor import Gemm, Map, ScatterTensor, Stored, Tensor, item_size
from functrans.lowering.schedule.group import MOST_EXPRESSIONS, Schedule, Step, has_constant_stride
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

    def run(self) -> Schedule:
        products: set[Tensor] = {s.results[0] for s in self.steps if type(s) is Gemm}
        for t, k in list(self._candidates()):
            readers = [j for j, s in enumerate(self.steps) if t in self._loads(s)]
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

    def _try(self, t: Map, k: int, readers: list[int], products: set[Tensor]) -> None:
        uses = sum(self._uses(t, j) for j in readers)
        self.stored.remove(t)
        weight = self._weight(t)
        needs = None if weight is None else self._needs(t)
        if weight is None or needs is None \
                or not self._pays(t, weight * uses, needs, k, readers, products) \
                or not all(self._fits(j) for j in readers):
            self.stored.add(t)
            return
        for j in readers:  # new objects: what was known of the old ones is no longer true
            step = self.steps[j]
            assert isinstance(step, Kernel)
            self.steps[j] = Kernel(step.domain, step.members)
        maker = self.steps[k]
        assert isinstance(maker, Kernel)
        self.steps[k] = self._without_unread(maker)

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
        row: Size = t.shape[-1] if t.shape else 1
        alone = Kernel(Domain(t.size // row if row else 0, row), [Member(t, "full")])
        try:
            return alone.loads(alone.builder(self.is_stored))
        except IterationSpaceMismatch:
            return None

    def _uses(self, t: Map, j: int) -> Any:
        """How many elements of a value a step reads, where it reads each at several places."""
        step = self.steps[j]
        assert isinstance(step, Kernel)
        exprs = step.all_expressions(step.builder(self.is_stored))
        return t.size * len({index for x, index in accesses(exprs) if x is t})

    def _pays(self, t: Map, additions: Any, needs: Collection[Tensor], k: int, readers: list[int],
              products: set[Tensor]) -> bool:
        moved: float = -_nbytes(t) * (1 + len(readers))
        for j in readers:
            moved += sum(_nbytes(x) for x in needs if x not in self._loads(self.steps[j]))
        for x in needs:  # products that an epilogue would keep from memory
            if x in products and x not in self.kept and all(
                    j == k for j, s in enumerate(self.steps) if x in self._loads(s)):
                moved += _nbytes(x)
        maker, known = self.steps[k], self.target.measured
        assert isinstance(maker, Kernel)
        if not self._without_unread(maker).members:
            moved -= known.launch / known.byte
        return bool(moved + known.addition * additions < 0)

    def _fits(self, j: int) -> bool:
        """Whether a reader may compute the value by itself."""
        step = self.steps[j]
        assert isinstance(step, Kernel)
        s = step.builder(self.is_stored)
        try:
            exprs = step.all_expressions(s)
        except IterationSpaceMismatch:
            return False
        return s.count <= MOST_EXPRESSIONS and all(
            has_constant_stride(index, step.i) for _, index in accesses(exprs))

    def _without_unread(self, kernel: Kernel) -> Kernel:
        """A kernel without members that nobody reads."""
        s = kernel.builder(self.is_stored)
        needed: set[Tensor] = set()
        members: list[Member] = []
        for m in reversed(kernel.members):
            if m.tensor in needed or self.is_stored(m.tensor) or m.role == "scatter":
                members.append(m)
                needed |= {e.aux for e in reachable_expressions([kernel.element(s, m)])
                           if e.op == "local"}
        return Kernel(kernel.domain, members[::-1])


def _update_bases(steps: Collection[Step]) -> Iterator[Tensor]:
    """What updates start from, which no expression loads."""
    for step in steps:
        for m in step.members if isinstance(step, Kernel) else ():
            if isinstance(m.tensor, ScatterTensor):
                yield m.tensor.base


def _nbytes(t: Tensor) -> int:
    return t.size * item_size(t.dtype) if isinstance(t.size, int) else 0
