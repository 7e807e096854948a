"""The collector of cyclic garbage waits while programs are lowered.

Graphs and expressions grow until a program is written, and few of them are garbage: looking through
all of them again and again took 0.4 of the time to lower a circuit of 27,000 equations, and once at
the end another tenth, before any kernel was compiled: they count as old then, and wait for the next
full collection.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["collector_paused"]


class _Pauses:
    """How many threads want the collector to wait, and whether it ran before the first one."""

    def __init__(self) -> None:
        self.lock, self.count, self.ran = Lock(), 0, False
        os.register_at_fork(after_in_child=self._forget)

    def begin(self) -> None:
        with self.lock:
            if not self.count:
                self.ran = gc.isenabled()
                gc.disable()
            self.count += 1

    def end(self) -> None:
        with self.lock:
            self.count -= 1
            if not self.count and self.ran:
                if not gc.get_freeze_count():  # all that is young is old: no time passes
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    def _forget(self) -> None:
        """The threads that lowered are not in a fork."""
        if self.count and self.ran:
            gc.enable()
        self.lock, self.count = Lock(), 0


_pauses = _Pauses()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cycles are collected within, in any thread; where they were, they are afterwards."""
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
