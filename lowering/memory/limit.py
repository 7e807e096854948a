"""Programs within a limit of memory: what is computed again, and batches a few lanes at a time.

Plans are tried in the order of what they cost in time, and each is lowered to know what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from functrans.core.dims import Size
from functrans.core.errors import MemoryLimitError
from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.batch_chunks import ChunkedAxis, batches_of, chunk_sizes, in_chunks
from functrans.lowering.passes.rematerialize import Prices
from functrans.lowering.report import Value, bytes_text, line_of

__all__ = ["LimitedPlan", "LoweredProgram", "within_limit"]

T = TypeVar("T")

LEAST_GAIN: Final = 0.97
"""Of the bytes of a program, what half of the lanes at a time needs at most where that gains."""
MOST_WITHOUT_GAIN: Final = 2
"""Halvings after which a batch is left alone: a loop over two chunks may need as much as before."""


class LimitedPlan(Record, eq=False):
    """A program and the prices of what it keeps; where it takes a batch in chunks, which."""

    program: Jaxpr
    prices: Prices
    batch: ChunkedAxis | None = None
    chunk: int = 0

    def said(self, whole: Size, peak: Size, limit: int) -> str:
        """What was chosen and why; nothing where all is as it would be without a limit."""
        why = (f"as it was it needs {bytes_text(whole)}, now {bytes_text(peak)} of "
               f"{bytes_text(limit)}")
        if self.batch is not None:
            line = line_of(self.batch.source)
            place = f"{line}: " if line else ""
            count = -(-self.batch.size // self.chunk)
            return (f"{place}{self.batch.size} lanes are computed {self.chunk} at a time, in "
                    f"{count} chunks: {why}")
        if self.prices.then is not None:
            return (f"values are computed again in {self.prices.then.segments + 1} segments: "
                    f"{why}")
        return f"more values are computed again: {why}" if whole != peak else ""


class LoweredProgram(Record, Generic[T], eq=False):
    """What a plan was lowered to, and what is known of its memory."""

    program: T
    memory: dict[str, Size]
    largest: Callable[[], Value | None]
    """The largest temporary at the fullest step."""


def within_limit(jaxpr: Jaxpr, limit: int, prices: Sequence[Prices],
                 lowered: Callable[[LimitedPlan], LoweredProgram[T]],
                 prefers_chunks: bool = False) -> tuple[T, str]:
    """The first plan whose arguments, results and temporaries fit, lowered, and what it is.

    `prices` are in the order of time. Batches are taken in chunks where these do not fit; where
    that is preferred, before products are computed again. Raises MemoryLimitError where nothing
    fits, and where the sizes are not known.
    """
    return _LimitSearch(jaxpr, limit, prices, lowered, prefers_chunks).run()


class _LimitSearch(Generic[T]):
    def __init__(self, jaxpr: Jaxpr, limit: int, prices: Sequence[Prices],
                 lowered: Callable[[LimitedPlan], LoweredProgram[T]], prefers_chunks: bool) -> None:
        self.jaxpr, self.limit, self.lower = jaxpr, limit, lowered
        self.prices, self.prefers_chunks = prices, prefers_chunks
        self.whole: Size = 0
        self.best: LoweredProgram[T] | None = None
        self.least = 0
        self.smallest: list[LimitedPlan] = []
        self.found: tuple[T, str] | None = None

    def run(self) -> tuple[T, str]:
        again = [p for p in self.prices if p.then is not None]
        light = [p for p in self.prices if p.then is None]
        first, second = (light, again) if self.prefers_chunks else ([*light, *again], [])
        found = self._kept(self.jaxpr, first) or (self._chunked() if self._can_fit() else None) \
            or self._kept(self.jaxpr, second)
        for plan in self.smallest if found is None else ():
            found = found or self._kept(plan.program, again, plan)
        if found is not None:
            return found
        assert self.best is not None
        raise _exceeded(self.limit, self.best, self.least)

    def _can_fit(self) -> bool:
        """Whether there is room for more than arguments and results."""
        known = self.best.memory if self.best is not None else {"arguments": 0, "outputs": 0}
        given = known["arguments"] + known["outputs"] - known.get("donated", 0)
        return not isinstance(given, int) or given < self.limit

    def _kept(self, jaxpr: Jaxpr, prices: Sequence[Prices],
              of: LimitedPlan | None = None) -> tuple[T, str] | None:
        """What fits of a program as it is, by some prices."""
        for one in prices:
            plan = LimitedPlan(jaxpr, one) if of is None else LimitedPlan(
                jaxpr, one, of.batch, of.chunk)
            if self._try(plan) <= self.limit:
                return self.found
        return None

    def _chunked(self) -> tuple[T, str] | None:
        """What fits with a batch in chunks, as large ones as can be."""
        light = [p for p in self.prices if p.then is None][-1]
        before = self._try(LimitedPlan(self.jaxpr, self.prices[0]))
        for batch in batches_of(self.jaxpr):
            least, smallest = before, None
            without_gain = 0
            for chunk in chunk_sizes(batch.size):
                program = in_chunks(batch, chunk)
                if program is None:
                    break
                plan = LimitedPlan(program, light, batch, chunk)
                peak = self._try(plan)
                if peak <= self.limit:
                    return self.found
                without_gain = without_gain + 1 if peak > LEAST_GAIN * least else 0
                if without_gain == MOST_WITHOUT_GAIN:
                    break
                if peak < least:
                    least, smallest = peak, plan
            if smallest is not None:
                self.smallest.append(smallest)
        return None

    def _try(self, plan: LimitedPlan) -> int:
        """The bytes that a plan needs."""
        found = self.lower(plan)
        peak = found.memory["peak"]
        if not isinstance(peak, int):
            raise MemoryLimitError(
                "a limit of memory needs sizes that are known.", why=f"it needs {peak} bytes.",
                fix="jit without `dynamic_shapes`, or ft.config.dynamic_shapes('off')")
        if self.best is None:
            self.whole = peak
        if self.best is None or peak < self.least:
            self.best, self.least = found, peak
        if peak <= self.limit:
            self.found = found.program, plan.said(self.whole, peak, self.limit)
        return peak


def _exceeded(limit: int, found: LoweredProgram[T], least: int) -> MemoryLimitError:
    known = found.memory
    parts = ", ".join([f"{name} {bytes_text(known[name])}"
                       for name in ("arguments", "outputs", "temporaries")])
    at = found.largest()
    largest = f" At its fullest step {at.type} takes {bytes_text(at.nbytes)}." if at else ""
    return MemoryLimitError(
        f"the program needs {bytes_text(least)}, and may need {bytes_text(limit)}.",
        where=at.line if at else None,
        why=f"{parts}.{largest} What can be computed again is, and batches whose lanes do not mix "
            "are taken in chunks; no loop is made of layers.",
        fix=f"vmap(f, chunk_size=...), a scan over layers, a smaller batch, or "
            f"memory_limit={least}")
