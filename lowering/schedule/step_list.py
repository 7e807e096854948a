"""The steps of a schedule while passes replace some of them: who reads a value is known at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Reads

__all__ = ["StepList"]


class StepList:
    """Steps in order; each place has what a step became: none, itself, or several.

    Asking every step anew for each of 2,700 products took 23 of 31 s of a compilation.
    """

    def __init__(self, steps: Sequence[Step], reads: Reads,
                 is_stored: Callable[[Tensor], bool]) -> None:
        self._reads, self._is_stored = reads, is_stored
        self._places: list[list[Step]] = [[step] for step in steps]
        self._readers: dict[Tensor, set[int]] = {}  # or those that were
        self._place = {id(step): k for k, step in enumerate(steps)}
        for k, step in enumerate(steps):
            self._note(k, step)

    def readers(self, t: Tensor) -> list[Step]:
        """The steps that read a value, in order."""
        return [step for k in sorted(self._readers.get(t, ())) for step in self._places[k]
                if t in self._reads.of(step, self._is_stored)]

    def replace(self, step: Step, by: Iterable[Step] = ()) -> None:
        """Put steps in the place of one."""
        k = self._place.pop(id(step))
        at = next(n for n, s in enumerate(self._places[k]) if s is step)
        new = list(by)
        self._places[k][at:at + 1] = new
        for s in new:
            self._place[id(s)] = k
            self._note(k, s)

    def steps(self) -> list[Step]:
        return [step for place in self._places for step in place]

    def _note(self, k: int, step: Step) -> None:
        for t in self._reads.of(step, self._is_stored):
            self._readers.setdefault(t, set()).add(k)
