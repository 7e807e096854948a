"""How long the steps of a program on a GPU take, by events of the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from functrans.core.errors import BackendError
from functrans.inspect.triton_report import groups_of
from functrans.lowering.triton.backend import TritonExecutable
from functrans.lowering.triton.device import device_program
from functrans.lowering.triton.donation import Given
from functrans.lowering.triton.machine.measure import Timer
from functrans.placement import device_put

__all__ = ["step_times"]


def step_times(executable: Any, inputs: Sequence[Any], gpu: int) -> tuple[list[float], float]:
    """Seconds of the kernels in the order of the report, and of a whole run.

    Each kernel runs by itself again and again; loops with a predicate and calls of the host are in
    the whole only. Raises BackendError for a program that is not compiled for GPUs.
    """
    if not isinstance(executable, TritonExecutable):
        raise BackendError("the steps of this program cannot be timed.",
                           why="it is not compiled for GPUs.")
    arrays = [device_put(x, f"gpu:{gpu}") for x in inputs]
    program = replace(executable.lowered.program, given=Given())
    target = executable.target
    whole = Timer(device_program(program, gpu, target), arrays, gpu)()
    times = []
    for steps in groups_of(program):
        alone = replace(program, steps=[steps[0]])
        run = device_program(alone, gpu, target, name=steps[0].kernel)
        times.append(len(steps) * Timer(run, arrays, gpu)())
    return times, whole
