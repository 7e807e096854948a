"""What a program does and when, while somebody asks: spans of time by thread.

There is one recorder for the process, as calls of all threads share a machine. Where there is none
a call asks once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from functrans.core.record import Record

__all__ = ["Recorder", "Span", "recorded", "recorder", "set_recorder"]


class Span(Record):
    """A piece of work, in nanoseconds of `time.perf_counter_ns`, and what is to be said of it."""

    name: str
    kind: str
    start: int
    end: int
    thread: int
    details: Mapping[str, Any]


class Recorder(Record, frozen=False):
    """The spans that ended since it was made."""

    started: int = field(default_factory=time.perf_counter_ns)
    spans: list[Span] = field(default_factory=list)

    @contextmanager
    def span(self, name: str, kind: str, **details: Any) -> Iterator[None]:
        """Context manager: record the time of what is inside, also where it raises."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            # appending to a list needs no lock
            self.spans.append(Span(name, kind, start, time.perf_counter_ns(),
                                   threading.get_ident(), details))


_recorders: Final[list[Recorder]] = []


def recorder() -> Recorder | None:
    """What records now; None where nobody asked."""
    return _recorders[0] if _recorders else None


def set_recorder(new: Recorder | None) -> None:
    _recorders[:] = [] if new is None else [new]


@contextmanager
def recorded(name: str, kind: str, **details: Any) -> Iterator[None]:
    """Context manager: record what is inside if anybody asks."""
    now = recorder()
    if now is None:
        yield
        return
    with now.span(name, kind, **details):
        yield
