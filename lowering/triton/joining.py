"""Small kernels of a program that share a launch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from functrans.core.record import Record
from functrans.lowering.loops.tensor import Call, ScatterTensor
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import ANY_FLAG_ROLES, Kernel
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.schedule.side_by_side import (
    MOST_TOGETHER,
    StepAccess,
    levels_of_small_steps,
    worth_compiling,
)
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.joined import joined, kernel_key
from functrans.lowering.triton.kernels.kernel_source import KernelSource
from functrans.lowering.triton.kernels.source import RejectedKernels, TritonModule

__all__ = ["Joined", "changed_by", "join_small_kernels"]

MOST_PROGRAMS = 1024
"""Of a kernel that shares a launch."""

FEW_OPERANDS = 12
"""What a kernel reads is in registers at a time. All programs of a launch have as many registers as
the kernel that takes most: one with more operands than these is not beside others with less, unless
all programs run at once. Adam of 10 arrays of 256 numbers, in one kernel, takes 224 registers."""

LONGEST_TEXT = 1200
"""Lines of the kernels of a launch, and their operands. 1,800 lines with 480 operands, casts and
the updates of Adam, took 5.3 s to compile, of 20 arrays by AdamW (1,070) 0.9 on an idle machine;
several texts are compiled side by side."""

Written = list[KernelSource] | Call


class Joined(Record, eq=False):
    """A schedule with kernels that share launches next to each other, and its launches.

    The first of the kernels has the launch, the others have none; `together` are all of them, by
    the number of the first.
    """

    schedule: Schedule
    written: list[Written]
    together: dict[int, list[Kernel]] = field(default_factory=dict)


def join_small_kernels(schedule: Schedule, written: Sequence[Written],
                       accessed: Sequence[Collection[Any]], nbytes: Sequence[int], target: Target,
                       rejected: RejectedKernels, module: TritonModule) -> Joined:
    """A schedule and its launches, with small kernels side by side in one launch.

    `accessed` are the buffers of each step, and `nbytes` what it moves.
    """
    written = [w if isinstance(w, Call) else _with_ends_together(w, rejected, module)
               for w in written]
    steps = [_access(*step, target, schedule) for step in zip(
        schedule.steps, written, accessed, nbytes, strict=True)]
    launches = [_launches(w) for w in written]
    groups = [part for group in levels_of_small_steps(steps, target.measured.waiting_bytes)
              for alike in _alike(group, launches, target)
              for part in _short_enough(alike, launches)]
    keys = [[kernel_key(w) for k in group for w in launches[k]] for group in groups]
    alone = [[key] for group, of in zip(groups, keys, strict=True) if len(group) == 1
             for key in of]
    several = iter(worth_compiling([*[of for group, of in zip(groups, keys, strict=True)
                                      if len(group) > 1], *alone]))
    taken = [len(group) > 1 and next(several) for group in groups]
    found = Joined(replace(schedule, steps=[]), [])
    for group, is_taken in zip(groups, taken, strict=True):
        first = len(found.written)
        found.schedule.steps.extend([schedule.steps[k] for k in group])
        if is_taken:
            kernel, functions = joined([w for k in group for w in launches[k]])
            if rejected.of([kernel]) is None:
                module.functions |= functions
                found.written.extend([[kernel], *[[] for _ in group[1:]]])
                found.together[first] = [s for k in group
                                         if isinstance(s := schedule.steps[k], Kernel)]
                continue
        found.written.extend([written[k] for k in group])
    return found if found.together else Joined(schedule, list(written))


def _alike(group: list[int], launches: Sequence[list[KernelSource]],
           target: Target) -> list[list[int]]:
    """The parts of a group that take about as many registers."""
    if len(group) == 1 or sum(w.grid for k in group for w in launches[k]) <= target.walkers:
        return [group]
    few = [k for k in group if len(launches[k][0].operands) <= FEW_OPERANDS]
    return [part for part in (few, [k for k in group if k not in few]) if part]


def _short_enough(group: list[int], launches: Sequence[list[KernelSource]]) -> list[list[int]]:
    """The parts of a group whose texts a compiler reads in a moment; equal ones are read once."""
    if _text_length(group, launches) <= LONGEST_TEXT:
        return [group]
    parts: list[list[int]] = [[]]
    for k in sorted(group, key=lambda k: [w.text for w in launches[k]]):
        if parts[-1] and _text_length([*parts[-1], k], launches) > LONGEST_TEXT:
            parts.append([])
        parts[-1].append(k)
    return [sorted(part) for part in parts]


def _text_length(group: Sequence[int], launches: Sequence[list[KernelSource]]) -> int:
    kernels = [w for k in group for w in launches[k]]
    return sum(text.count("\n") for text in {w.text for w in kernels}) \
        + sum(len(w.operands) for w in kernels)


def _with_ends_together(kernels: list[KernelSource], rejected: RejectedKernels,
                        module: TritonModule) -> list[KernelSource]:
    """The launches of a step, of which those after the first are one where they are independent.

    A kernel of several sums over columns has a launch for the parts of each: that of the gradients
    of a depthwise filter and of the batch norm before it, 13.
    """
    first, ends = kernels[:1], kernels[1:]
    operands = [t for w in ends for t in w.operands]
    if not 1 < len(ends) <= MOST_TOGETHER or len({*operands}) < len(operands) or any(
            w.numbers for w in ends) or sum(w.grid for w in ends) > MOST_PROGRAMS:
        return kernels
    kernel, functions = joined(ends)
    if rejected.of([kernel]) is not None:
        return kernels
    module.functions |= functions
    return [*first, kernel]


def _launches(written: Written) -> list[KernelSource]:
    return [] if isinstance(written, Call) else written


def _access(step: Step, written: Written, touched: Collection[Any], nbytes: int, target: Target,
            schedule: Schedule) -> StepAccess:
    # several kernels may set one flag: they store the same
    flags = [m.tensor for m in step.members if m.role in ANY_FLAG_ROLES] \
        if isinstance(step, Kernel) else []
    return StepAccess([t for t in touched if t not in flags], frozenset(changed_by(step)),
                      _is_small(step, written, nbytes, target, schedule), nbytes)


def changed_by(step: Step) -> Iterable[Any]:
    """What a step writes."""
    if isinstance(step, Kernel):
        for m in step.members:
            yield m.tensor
            if isinstance(m.tensor, ScatterTensor):
                yield m.tensor.base
    else:
        yield from step.results
        if step.updated is not None:
            yield step.updated


def _is_small(step: Step, written: Written, nbytes: int, target: Target,
              schedule: Schedule) -> bool:
    """Whether a step is one launch of few programs that takes less than some microseconds."""
    if not isinstance(step, Kernel) or isinstance(written, Call) or len(written) != 1:
        return False
    if any(m.role == "scatter" for m in step.members):
        return False
    figures, (kernel,) = target.measured, written
    flops = flops_of(step, schedule.is_stored)
    return 0 < kernel.grid <= MOST_PROGRAMS and not kernel.numbers and isinstance(flops, int) \
        and max(nbytes * figures.byte, flops / figures.all_rate) <= figures.small_kernel
