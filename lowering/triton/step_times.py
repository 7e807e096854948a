"""How long the steps of a program on a GPU take, by events of the device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.lowering.memory.aliasing import InputOutputAliases
from functrans.lowering.schedule.target import Target
from functrans.lowering.timing import StepTimes
from functrans.lowering.triton.loops.iterations import relocated
from functrans.lowering.triton.machine.device import binaries, device_program
from functrans.lowering.triton.machine.measure import Timer
from functrans.lowering.triton.records import launch_groups
from functrans.lowering.triton.steps.spec import (
    GPUProgram,
    HostStep,
    LibraryStep,
    Pointer,
    Step,
    launch_key,
    launches_in,
)

__all__ = ["in_a_row", "leaving_memory", "on_memory", "seconds_of_one", "step_times"]

LEAST, MOST = 4, 256
"""How often a step is repeated: a graph of 256 launches is built in a millisecond."""
SECONDS = 1e-3
"""What a replay takes, of which what lies between two of them is a hundredth."""
NOTE = "Each step was repeated by itself: what fits the cache is read from there."


def step_times(program: GPUProgram, target: Target, arrays: Sequence[Any],
               gpu: int) -> StepTimes:
    """Seconds of the kernels and calls in the order of the report, and of a whole run.

    A step is given to the device many times in a row, as a graph where it is a kernel, on the
    memory that the program left when it came there for the first time: so it works on what it is
    for (indices of other kernels, say), which is in the caches where they hold it.
    """
    code = binaries(program, target)

    def run_of(part: GPUProgram) -> Any:
        keys = dict.fromkeys(map(launch_key, launches_in(part.steps)))
        return device_program(part, gpu, target, machine_code={key: code[key] for key in keys})

    def seconds(step: Step) -> float:
        memory = [*arrays, *run_of(leaving_memory(program, up_to(program, step)))(arrays)]
        return seconds_of_one(
            lambda count: Timer(run_of(in_a_row(program, step, count)), memory, gpu)(),
            least=1 if on_host(step) else LEAST)

    def on_host(step: Step) -> bool:
        return isinstance(step, HostStep) and not isinstance(step, LibraryStep)

    groups = launch_groups(program, turns_of_a_run(run_of(program), arrays))
    times = [group.runs * seconds(group.launches[0]) for group in groups]
    known: dict[Any, float] = {}  # a program may have hundreds of equal calls of a library
    for step in program.steps:
        if isinstance(step, HostStep):
            equal = (step.function, step.numbers) if isinstance(step, LibraryStep) else step
            if equal not in known:
                known[equal] = seconds(step)
            times.append(known[equal])
    return StepTimes(times, Timer(run_of(program), arrays, gpu)(), NOTE,
                     [group.runs for group in groups])


def turns_of_a_run(run: Any, arrays: Sequence[Any]) -> list[int]:
    """The turns of loops with predicates: the host drives those of a first call, and counts."""
    run(arrays)
    return list(run.stats["turns"])


def seconds_of_one(seconds: Callable[[int], float], least: int = LEAST) -> float:
    """Seconds of one step, by those of so many in a row."""
    rough = max(seconds(least) / least, 1e-9)
    count = min(math.ceil(SECONDS / rough), MOST)
    return rough if count <= least else seconds(count) / count


def up_to(program: GPUProgram, step: Step) -> list[Step]:
    """The steps of a program before one of them; for a launch of a loop, with that loop.

    What a round reads of the rounds and launches before is there then.
    """
    for k, one in enumerate(program.steps):
        if one is step:
            return program.steps[:k]
        if any(launch is step for launch in launches_in([one])):
            return program.steps[:k + 1]
    raise ValueError("the step is of another program")


def leaving_memory(program: GPUProgram, steps: Sequence[Step]) -> GPUProgram:
    """Some steps of a program, whose last result is the arena."""
    ins, outs = _places("input", program.inputs), _places("output", program.outputs)
    arena = Pointer("output", len(outs))
    return replace(program, steps=_at(steps, ins, outs, arena), arena_bytes=0,
                   outputs=[*program.outputs, _arena(program)])


def on_memory(program: GPUProgram, steps: Sequence[Step]) -> GPUProgram:
    """Some steps of a program, for its inputs and what `leaving_memory` gives; without results."""
    avals = [*program.inputs, *program.outputs, _arena(program)]
    *places, arena = _places("input", avals)
    n = len(program.inputs)
    return replace(program, steps=_at(steps, places[:n], places[n:], arena), arena_bytes=0,
                   inputs=avals, outputs=[], aliases=InputOutputAliases())


def in_a_row(program: GPUProgram, step: Step, count: int) -> GPUProgram:
    """A step so many times, on the memory of the program.

    They follow each other, instead of being a loop, because only so a graph has them: launches
    from the host take 2 to 4 us each, where small kernels of a graph take 1.3 us. What is
    in a loop works at the places of the first round.
    """
    one = on_memory(program, [step])
    return replace(one, steps=one.steps * count)


def _at(steps: Sequence[Step], ins: list[Pointer], outs: list[Pointer],
        arena: Pointer) -> list[Step]:
    return [made for step in steps for made in relocated(step, ins, outs, arena)]


def _places(kind: Any, avals: Sequence[ShapedArray]) -> list[Pointer]:
    return [Pointer(kind, k) for k in range(len(avals))]


def _arena(program: GPUProgram) -> ShapedArray:
    return ShapedArray((program.arena_bytes,), np.dtype(np.uint8))
