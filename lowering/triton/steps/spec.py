"""What a program on a GPU is made of: kernels, and steps over memory that is planned ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.loops.tensor import HostCall, Tensor
from functrans.lowering.memory.aliasing import InputOutputAliases
from functrans.lowering.memory.arena import Block
from functrans.lowering.schedule.group import FusionNote, Schedule
from functrans.lowering.triton.templates.notes import NOTHING_NOTED, KernelNotes

__all__ = [
    "LANES",
    "BufferSide",
    "CollectiveSteps",
    "CopyStep",
    "DoubleBufferedSteps",
    "GPUProgram",
    "HostStep",
    "Launch",
    "LibraryStep",
    "Pointer",
    "RepeatedSteps",
    "Step",
    "WaitStep",
    "launch_key",
    "launches_in",
    "runs_in",
    "turning_loops",
]


LANES: Final = "lanes"
"""The name of kernels of a thread for each lane. They want a large first-level cache: tables that
lanes walk through, 320 KB of a graph, are read in 1.9 ms so, and in 3.2 where a kernel before left
a part of it to shared memory."""


class Pointer(Record):
    """A place: an input, an output or a constant by number, or `offset` bytes into the arena.

    Arrival counters are 0 before and after each launch; a program has one buffer of them.
    Inside a loop it is `stride` bytes further in each round.
    """

    kind: Literal["input", "output", "constant", "arena", "tickets"]
    index: int = 0
    offset: int = 0
    stride: int = 0


class Launch(Record):
    """A function of a module over a grid.

    `types` are those of its arguments, as `*fp32` or `i32`; `divisible` says which are multiples of
    16. `fuses`: products and sums round once, as in products of matrices. `sources`: of
    what it computes in the user's code, and `equations`; `flops` is how much that is, `moved` the
    bytes of what it reads and writes.
    """

    module: int
    kernel: str
    grid: tuple[int, int, int]
    arguments: tuple[Pointer | int | float, ...]
    types: tuple[str, ...]
    divisible: tuple[bool, ...]
    warps: int
    stages: int = 3
    fuses: bool = False
    sources: tuple[Source, ...] = field(default=(), compare=False)
    equations: tuple[Equation, ...] = field(default=(), compare=False)
    flops: int = field(default=0, compare=False)
    moved: int = field(default=0, compare=False)
    walkers: int = field(default=0, compare=False)
    """Programs of each multiprocessor, where they walk over the work: then there may be fewer."""
    notes: KernelNotes = field(default=NOTHING_NOTED, compare=False, repr=False)


def launch_key(step: Launch) -> tuple[Any, ...]:
    """What tells the machine code of a launch from that of others in its program."""
    return (step.module, step.kernel, step.types, step.divisible, step.warps, step.stages)


class CopyStep(Record):
    """Bytes moved from one place to another."""

    target: Pointer
    source: Pointer
    nbytes: int


class HostStep(Record):
    """An equation that the host evaluates on copies."""

    call: HostCall
    inputs: tuple[Pointer, ...]
    outputs: tuple[Pointer, ...]


class LibraryStep(HostStep):
    """A function of a library; the host evaluates its equation where there is no GPU.

    A program from the disk, which is for a GPU, does not have the equation.
    """

    call: HostCall | None = field(compare=False)  # type: ignore[assignment]
    function: str
    numbers: tuple[int, ...]


class CollectiveSteps(Record):
    """Collectives that are given to the devices' links together, beside the steps that follow."""

    number: int
    parts: tuple[LibraryStep, ...]


class WaitStep(Record):
    """What follows comes after the collectives of a number, and of those before."""

    number: int


class RepeatedSteps(Record):
    """Launches and copies, `count` times."""

    steps: tuple[Step, ...]
    count: int


class BufferSide(Record):
    """One of the two buffers of the carry of a loop, and the steps that read it.

    They ask whether the loop goes on, compute an iteration, which writes to the other side, and
    give the results.
    """

    flag: Pointer
    holds: tuple[Step, ...]
    body: tuple[Step, ...]
    ends: tuple[Step, ...]


class DoubleBufferedSteps(Record):
    """A loop with a predicate; with `ahead` an iteration may begin before its flag is known."""

    sides: tuple[BufferSide, BufferSide]
    ahead: bool


Step = (Launch | CopyStep | HostStep | CollectiveSteps | WaitStep | RepeatedSteps
        | DoubleBufferedSteps)


def runs_in(steps: Iterable[Step], times: int = 1,
            turns: Iterator[int] | None = None) -> Iterator[tuple[Launch, int]]:
    """All launches of some steps, also inside of loops, and how often each runs.

    Of a loop with a predicate a turn of each side counts, or those that `turns` tells of each such
    loop: of it, then of those inside, in order.
    """
    for step in steps:
        if isinstance(step, Launch):
            yield step, times
        elif isinstance(step, RepeatedSteps):
            yield from runs_in(step.steps, times * step.count, turns)
        elif isinstance(step, DoubleBufferedSteps):
            known = None if turns is None else next(turns)
            for k, side in enumerate(step.sides):
                here = (times,) * 3 if known is None else (
                    (known - k) // 2 + 1, (known - k + 1) // 2, int(known % 2 == k))
                for part, count in zip((side.holds, side.body, side.ends), here, strict=True):
                    yield from runs_in(part, count, turns)


def turning_loops(steps: Iterable[Step]) -> Iterator[DoubleBufferedSteps]:
    """The loops with predicates, each before those inside of it: the order of their turns."""
    for step in steps:
        if isinstance(step, DoubleBufferedSteps):
            yield step
            for side in step.sides:
                yield from turning_loops((*side.holds, *side.body, *side.ends))


def launches_in(steps: Iterable[Step]) -> Iterator[Launch]:
    """All launches of some steps, also inside of loops."""
    return (launch for launch, _ in runs_in(steps))


class GPUProgram(Record, frozen=False, eq=False):
    """Steps in order, the source of the modules of their kernels, and the memory that they need.

    `aliases` says which outputs begin as which inputs, and are in their memory where the caller
    gave that away, and which updates need copies.
    """

    sources: list[str]
    steps: list[Step]
    inputs: list[ShapedArray]
    outputs: list[ShapedArray]
    constants: list[np.ndarray[Any, Any]]
    arena_bytes: int
    notes: list[str] = field(default_factory=list)
    aliases: InputOutputAliases = field(default_factory=InputOutputAliases)
    blocks: list[Block[Any]] = field(default_factory=list)
    """The temporaries of the arena, and when they are needed."""
    specialized: str = ""
    """Why kernels for its sizes alone are faster than kernels of all sizes; nothing else."""
    arrival_counters: int = 0
    apart: list[FusionNote] = field(default_factory=list)
    """Why some values are not computed in the kernels that read them."""
    kept: list[tuple[Tensor, list[Step]]] = field(default_factory=list)
    """What kernels leave in memory for others, and the steps that read it."""
    arguments: Sequence[Tensor] = ()
    """Its inputs as values, for who looks at it."""
    again: Callable[[Any], Schedule] | None = None
    """Makes its schedule once more, for a log."""
    places: Mapping[Tensor, Pointer] = field(default_factory=dict)
    """Where values are."""
