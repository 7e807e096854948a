"""How long programs take, by running them again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, Final, TypeVar

import numpy as np

from functrans.core.convert import to_array
from functrans.core.record import Record

__all__ = ["StepTimes", "repeated", "time_as_a_whole", "timed_runs", "typical"]

SECONDS: Final = 0.3
"""How long a program is run again and again."""
LEAST: Final = 5
MOST: Final = 1000
"""Runs of a program."""

T = TypeVar("T")


class StepTimes(Record):
    """Seconds of the steps of a program in the order of its report, and of a whole run.

    `steps` is None where only the whole is known; `note` says how they were timed, where that has
    to be known; `runs` how often each of them ran, where loops decide that.
    """

    steps: Sequence[float] | None
    whole: float
    note: str = ""
    runs: Sequence[int] = ()


def repeated(run: Callable[[], T]) -> tuple[list[T], float]:
    """What runs give, and the median of their times; one before them warms up."""
    found, whole = timed_runs(run)
    return found, median(whole)


def timed_runs(run: Callable[[], T]) -> tuple[list[T], list[float]]:
    """What runs give, and their times; one before them warms up."""
    run()
    found: list[T] = []
    whole: list[float] = []
    begin = time.perf_counter()
    while len(whole) < LEAST or (len(whole) < MOST and time.perf_counter() - begin < SECONDS):
        start = time.perf_counter()
        found.append(run())
        whole.append(time.perf_counter() - start)
    return found, whole


def typical(runs: Sequence[Sequence[float]], whole: Sequence[float]
            ) -> tuple[list[float], float]:
    """The mean times of steps and of whole runs, over the half of the runs that are faster.

    Means add up as the times of a run do; medians of the steps would not.
    """
    middle = median(whole)
    taken = [k for k, t in enumerate(whole) if t <= middle]
    return ([fmean(t) for t in zip(*[runs[k] for k in taken], strict=True)],
            fmean([whole[k] for k in taken]))


def time_as_a_whole(run: Callable[[Sequence[Any]], Any], inputs: Sequence[Any]) -> StepTimes:
    """The median of the times of whole runs on the host."""
    arrays = [np.asarray(x, x.dtype) for x in map(to_array, inputs)]

    def once() -> None:
        run(arrays)  # whose results are not kept

    return StepTimes(None, repeated(once)[1])
