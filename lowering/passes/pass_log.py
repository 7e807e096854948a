"""What passes did with a program: each rewrite, and the program before and after each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.rewrite import Change

__all__ = ["PassLog", "PassRun", "in_body", "recorded"]


class PassRun(Record, eq=False, repr=False):
    """One run of a pass that changed something: the program before and after, and its rewrites.

    `depth` is 0 for the whole program; the passes of a body of a loop, one deeper, run within the
    rewrite that changes the loop, and stand before it.
    """

    name: str
    before: Jaxpr
    after: Jaxpr
    changes: tuple[Change, ...]
    depth: int = 0


class PassLog(list[Change]):
    """The rewrites in order, as any list of them, and the `runs` of passes that they are of."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[PassRun] = []
        self.depth = 0
        self._taken = 0
        self._mine: list[list[Change]] = [[]]  # of each depth, those of no run yet

    def ran(self, name: str, before: Jaxpr, after: Jaxpr) -> None:
        """Note a run of a pass; what was logged since the last one at this depth is its work."""
        self._collect()
        changes, self._mine[self.depth] = tuple(self._mine[self.depth]), []
        if after is not before:
            self.runs.append(PassRun(name, before, after, changes, self.depth))

    @contextmanager
    def body(self) -> Iterator[None]:
        """Passes of a body run within."""
        self._collect()
        self.depth += 1
        self._mine.append([])
        try:
            yield
        finally:
            self._collect()
            left = self._mine.pop()
            self.depth -= 1
            self._mine[self.depth] += left

    def _collect(self) -> None:
        self._mine[self.depth] += self[self._taken:]
        self._taken = len(self)


def recorded(log: list[Change] | None, name: str, before: Jaxpr,
             run: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program after a pass, which is noted where the log keeps programs."""
    after = run(before)
    if isinstance(log, PassLog):
        log.ran(name, before, after)
    return after


@contextmanager
def in_body(log: list[Change] | None) -> Iterator[None]:
    """`PassLog.body` for any log."""
    if isinstance(log, PassLog):
        with log.body():
            yield
    else:
        yield
