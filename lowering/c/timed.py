"""Programs that measure how long each of their steps takes, those of loops included."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from functrans.core.convert import to_array
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.bodies_of import BodyOf, bodies_of, called_by
from functrans.lowering.c.interface import runtime_program
from functrans.lowering.c.lower import compiled, lower
from functrans.lowering.c.program import FunctionWriter
from functrans.lowering.loops.tensor import Call
from functrans.lowering.store.cache import program_cache
from functrans.lowering.timing import StepTimes, timed_runs, typical

__all__ = ["TimedProgram", "time_steps"]

CLOCKED_RUNS: Final = 5
"""Of a program whose bodies have clocks, to see which part of a loop each step is."""


NOTE: Final = "Steps in loops: by clocks in their bodies (20 ns each), in proportion to a run " \
              "without these."


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
        self.slots = text.main.module.slots

    def run(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[float]:
        """Seconds of each step in order, and last of what copies results."""
        self._run(list(arrays))
        return [1e-9 * (b - a) for a, b in pairwise(self._ticks)]

    def run_with_clocks(self, arrays: Sequence[np.ndarray[Any, Any]]
                        ) -> tuple[list[float], list[float], list[int]]:
        """The same, with the seconds of each step of a body and how often it ran."""
        spent = (ctypes.c_int64 * max(self.slots, 1)).in_dll(self._library, "ft_spent")
        counts = (ctypes.c_int64 * max(self.slots, 1)).in_dll(self._library, "ft_counts")
        unclocked = ctypes.c_int64.in_dll(self._library, "ft_unclocked")
        ctypes.memset(spent, 0, ctypes.sizeof(spent))
        ctypes.memset(counts, 0, ctypes.sizeof(counts))
        unclocked.value = 0
        try:
            steps = self.run(arrays)
        finally:
            unclocked.value = 1
        return steps, [1e-9 * t for t in spent], list(counts)


def time_steps(jaxpr: Jaxpr, inputs: Sequence[Any]) -> StepTimes:
    """The times of steps, those of loops included, and of whole runs, which add up.

    A step is a row with what it takes by itself: a loop without the steps of its body.
    """
    program, arrays = TimedProgram(jaxpr), [np.asarray(x, x.dtype) for x in map(to_array, inputs)]
    steps, whole = typical(*timed_runs(lambda: program.run(arrays)))
    del steps[-1]  # what copies results is between steps
    main = program.lowered.text.main
    bodies = bodies_of(main)
    if not bodies:
        return StepTimes(steps, whole)
    clocked = [program.run_with_clocks(arrays) for _ in range(CLOCKED_RUNS)]
    with_clocks, spent, counts = min(clocked, key=lambda run: sum(run[0]))
    split = _Split(main, bodies, steps, with_clocks, spent)
    times = [split.of_main(k) for k in range(len(steps))]
    times += [split.own(b.writer, k) * split.scale(b.writer) for b in bodies
              for k in range(len(b.writer.schedule.steps))]
    often = [1] * len(steps) + [counts[b.writer.slot + k] for b in bodies
                                for k in range(len(b.writer.schedule.steps))]
    return StepTimes(times, whole, NOTE, often)


class _Split:
    """The time of steps with bodies, divided among these: clocks in bodies tell the parts."""

    def __init__(self, main: FunctionWriter, bodies: Sequence[BodyOf], steps: Sequence[float],
                 with_clocks: Sequence[float], spent: Sequence[float]) -> None:
        self.main = main
        self.bodies = {b.writer: b for b in bodies}
        self.steps, self.clocked, self.spent = steps, with_clocks, spent
        self.roots: dict[FunctionWriter, set[int]] = {}
        for b in bodies:  # those that call a body come before it
            self.roots[b.writer] = {k for writer, number in b.callers for k in (
                {number} if writer is main else self.roots[writer])}

    def scale(self, body: FunctionWriter) -> float:
        """Seconds without clocks for one with clocks, of the steps of the main function that call
        a body."""
        clocked = sum(self.clocked[k] for k in self.roots[body])
        return sum(self.steps[k] for k in self.roots[body]) / clocked if clocked > 0 else 0.0

    def seconds(self, writer: FunctionWriter, number: int) -> float:
        """Of a step with clocks, its bodies included."""
        return self.clocked[number] if writer is self.main else self.spent[writer.slot + number]

    def inside(self, writer: FunctionWriter, number: int) -> float:
        """Of the bodies that a step calls, its part of them."""
        step = writer.schedule.steps[number]
        total = 0.0
        for body in called_by(writer, step) if isinstance(step, Call) else ():
            callers = sum(self.seconds(*c) for c in self.bodies[body].callers)
            all_of_it = sum(self.spent[body.slot:body.slot + len(body.schedule.steps)])
            if callers > 0:
                total += all_of_it * self.seconds(writer, number) / callers
        return total

    def own(self, writer: FunctionWriter, number: int) -> float:
        """Of a step without its bodies."""
        return max(self.seconds(writer, number) - self.inside(writer, number), 0.0)

    def of_main(self, number: int) -> float:
        """Of a step of the main function without its bodies, as it is without clocks."""
        inside = self.inside(self.main, number)
        part = inside / self.clocked[number] if inside else 0.0
        return self.steps[number] * max(1 - part, 0.0)
