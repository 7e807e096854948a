"""How long the steps of a program on a GPU take, by events of the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from functrans.core.errors import BackendError
from functrans.inspect.triton_report import groups_of
from functrans.lowering.triton.backend import TritonExecutable
from functrans.lowering.triton.device import device_program
from functrans.lowering.triton.machine.measure import Timer
from functrans.lowering.triton.spec import Launch, Pointer, Program, Rounds, launches_in
from functrans.placement import device_put

__all__ = ["step_times", "with_launch_again"]

FIRST, LEAST, MOST = 16, 4, 4096
"""How often a launch is repeated, at first and then so often that it is told from the rest."""
SECONDS = 1e-3


def step_times(executable: Any, inputs: Sequence[Any], gpu: int) -> tuple[list[float], float]:
    """Seconds of the kernels in the order of the report, and of a whole run.

    A kernel's time is what the program up to it takes longer when its launch is repeated: so it
    works on what it is for (indices of other kernels, say), which is in the caches where they hold
    it. Loops with a predicate and calls of the host are in the whole only. Raises BackendError for
    a program that is not compiled for GPUs.
    """
    if not isinstance(executable, TritonExecutable):
        raise BackendError("the steps of this program cannot be timed.",
                           why="it is not compiled for GPUs.")
    arrays = [device_put(x, f"gpu:{gpu}") for x in inputs]
    program = executable.lowered.program

    def seconds(program: Program) -> float:
        return Timer(device_program(program, gpu, executable.target), arrays, gpu)()

    times = [len(steps) * launch_seconds(program, steps[0], seconds)
             for steps in groups_of(program)]
    return times, seconds(program)


def launch_seconds(program: Program, launch: Launch, seconds: Callable[[Program], float]) -> float:
    """Seconds of one launch of a program, by the seconds of programs."""
    without = seconds(with_launch_again(program, launch, 0))

    def longer(count: int) -> float:
        return max((seconds(with_launch_again(program, launch, count)) - without) / count, 1e-9)

    # as long as what is before it, of which a hundredth is noise
    count = round(max(SECONDS, without) / longer(FIRST))
    return longer(min(max(count, LEAST), MOST))


def with_launch_again(program: Program, launch: Launch, count: int) -> Program:
    """A program up to the step with a launch, and `count` times the launch by itself.

    What a loop moves from round to round stays where its first round has it.
    """
    end = next(k for k, step in enumerate(program.steps, 1)
               if any(one is launch for one in launches_in([step])))
    still = replace(launch, arguments=tuple([replace(x, stride=0) if isinstance(x, Pointer) else x
                                             for x in launch.arguments]))
    again = [Rounds((still,), count)] if count else []
    return replace(program, steps=[*program.steps[:end], *again])
