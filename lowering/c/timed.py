"""Programs that measure how long each of their steps takes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from functrans.core.convert import to_array
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.interface import runtime_program
from functrans.lowering.c.lower import compiled, lower
from functrans.lowering.store.cache import program_cache
from functrans.lowering.timing import StepTimes, repeated

__all__ = ["TimedProgram", "time_steps"]


class TimedProgram:
    """A program of the CPU with a clock that is read between its steps (20 ns each).

    Arguments keep their memory: it runs more than once. Raises BackendError for what is not
    compiled to C.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        lowered = lower(jaxpr, frozenset(), timed=True)
        if lowered is None:
            raise BackendError("the steps of this program cannot be timed.",
                               why="NumPy evaluates it: nothing of it is compiled.",
                               fix="a function in it that is compiled: functrans.explain says "
                                   "what of a function is")
        self.lowered = lowered
        path = compiled(lowered, False, program_cache())
        text = lowered.text
        arena = text.arena_bytes if isinstance(text.arena_bytes, int) else 0
        self._run = runtime_program(jaxpr, path, text.constants, text.aliases, arena,
                                    lowered.sizes, text.libs, lowered.hosts, text.heavy)
        count = len(text.main.schedule.steps) + 2
        self._library = ctypes.CDLL(str(path))  # the same object: it is loaded once
        self._ticks = (ctypes.c_int64 * count).in_dll(self._library, "ft_ticks")

    def run(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[float]:
        """Seconds of each step in order, and last of what copies results."""
        self._run(list(arrays))
        return [1e-9 * (b - a) for a, b in pairwise(self._ticks)]


def time_steps(jaxpr: Jaxpr, inputs: Sequence[Any]) -> StepTimes:
    """The medians of the times of steps, and of whole runs."""
    program, arrays = TimedProgram(jaxpr), [np.asarray(x, x.dtype) for x in map(to_array, inputs)]
    steps, whole = repeated(lambda: program.run(arrays))
    return StepTimes([median(t) for t in zip(*steps, strict=True)][:-1], whole)
