"""Programs with their machine code, which run on GPUs of a capability without compiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.cuda_libraries import has_function
from functrans.core.dims import is_static
from functrans.core.record import Record
from functrans.lowering.portable import PortableKernel, PortableProgram
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.source import alone
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.machine.unit import Binary
from functrans.lowering.triton.steps.serialize import (
    Plain,
    deserialize_steps,
    library_functions,
    serialize_steps,
)
from functrans.lowering.triton.steps.spec import (
    CopyStep,
    DoubleBufferedSteps,
    GPUProgram,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    launch_key,
    launches_in,
)

__all__ = ["PortableTritonProgram", "portable"]

RESOURCES: Final = {
    "kinds": str, **dict.fromkeys(("warps", "stages", "shared", "scratch", "scratch_alignment",
                                   "registers", "spills"), int)}
"""What is told of a kernel for GPUs besides its texts: fields of `Binary`."""
MOST_GRID: Final = (2**31 - 1, 65535, 65535)
MOST_WARPS: Final = 32
MOST_ARENA: Final = 1 << 46


class PortableTritonProgram(Record, PortableProgram, eq=False):
    """A program whose module k is kernel k, and the machine code of each for a target."""

    program: GPUProgram
    kernels: tuple[Binary, ...]
    target: Target

    def to_plain(self) -> Plain:
        """Its steps and memory as plain values, without arrays and kernels; None where a step is a
        Python function."""
        steps = serialize_steps(self.program.steps)
        return None if steps is None else [steps, self.program.arena_bytes,
                                           self.program.arrival_counters]

    def arrays(self) -> Sequence[np.ndarray[Any, Any]]:
        return self.program.constants

    @property
    def exported(self) -> tuple[PortableKernel, ...]:
        """Its kernels as they are shown and written to files."""
        return tuple([PortableKernel(k.name, source, k.ptx, k.cubin,
                                     tuple([getattr(k, n) for n in RESOURCES]))
                      for k, source in zip(self.kernels, self.program.sources, strict=True)])

    @classmethod
    def read(cls, plain: Plain, exported: Sequence[PortableKernel],
                   constants: Sequence[np.ndarray[Any, Any]], inputs: Sequence[ShapedArray],
                   outputs: Sequence[ShapedArray], target: Target) -> PortableTritonProgram:
        """The program that `to_plain` wrote. Raises ValueError where its parts do not fit."""
        if not isinstance(plain, list) or len(plain) != 3:
            raise ValueError("a program is no list of steps and the sizes of its memory")
        steps, arena, arrival_counters = plain
        if any(type(n) is not int or not 0 <= n < MOST_ARENA for n in (arena, arrival_counters)):
            raise ValueError("the memory of a program is no size")
        if not all(is_static(a.shape) for a in (*inputs, *outputs)):
            raise ValueError("a program for GPUs has symbolic sizes")
        kernels = [_binary(k) for k in exported]
        sources = [k.source for k in exported]
        program = GPUProgram(sources, deserialize_steps(steps), list(inputs), list(outputs),
                             list(constants), arena, arrival_counters=arrival_counters)
        _Checker(program, kernels, target).steps(program.steps)
        return cls(program, tuple(kernels), target)

    @property
    def has_libraries(self) -> bool:
        """Whether the libraries that it calls can be used here."""
        return all(map(has_function, library_functions(self.program.steps)))

    def machine_code(self, program: GPUProgram, target: Target) -> dict[tuple[Any, ...], Binary]:
        """That of its kernels, by launch."""
        keys = dict.fromkeys(map(launch_key, launches_in(self.program.steps)))
        return {key: self.kernels[key[0]] for key in keys}


def _binary(kernel: PortableKernel) -> Binary:
    """A kernel as the runtime takes it. Raises ValueError where its resources are not whole."""
    given = kernel.resources
    if given is None:
        raise ValueError("a kernel for GPUs is without its numbers")
    if [*map(type, given)] != [*RESOURCES.values()]:
        raise ValueError("the numbers of a kernel are not whole")
    numbers: dict[str, Any] = dict(zip(RESOURCES, given, strict=True))
    return Binary(name=kernel.name, ptx=kernel.ptx, cubin=kernel.code, **numbers)


def portable(program: GPUProgram, target: Target) -> PortableTritonProgram:
    """A program with its machine code for a target."""
    compiled = binaries(program, target)
    numbers = {key: k for k, key in enumerate(compiled)}
    steps = [_renumbered(step, numbers) for step in program.steps]
    sources = [alone(program.sources[key[0]], key[1]) for key in compiled]
    own = GPUProgram(sources, steps, program.inputs, program.outputs, program.constants,
                     program.arena_bytes, arrival_counters=program.arrival_counters)
    return PortableTritonProgram(own, tuple(compiled.values()), target)


def _renumbered(step: Step, numbers: dict[Any, int]) -> Step:
    """A step whose launches name kernels by number as their modules."""
    def all_of(steps: Iterable[Step]) -> tuple[Step, ...]:
        return tuple([_renumbered(s, numbers) for s in steps])

    if isinstance(step, Launch):
        return replace(step, module=numbers[launch_key(step)], sources=(), equations=())
    if isinstance(step, RepeatedSteps):
        return RepeatedSteps(all_of(step.steps), step.count)
    if isinstance(step, DoubleBufferedSteps):
        first, second = [replace(s, holds=all_of(s.holds), body=all_of(s.body),
                                 ends=all_of(s.ends)) for s in step.sides]
        return DoubleBufferedSteps((first, second), step.ahead)
    return step


class _Checker:
    """Raises ValueError where a step reaches for what the program does not have.

    What kernels do with a place is theirs: their machine code is trusted or not run.
    """

    def __init__(self, program: GPUProgram, kernels: Sequence[Binary], target: Target) -> None:
        self.kernels = kernels
        self.sizes = {"input": [int(a.nbytes) for a in program.inputs],
                      "output": [int(a.nbytes) for a in program.outputs],
                      "constant": [c.nbytes for c in program.constants],
                      "arena": [program.arena_bytes], "tickets": [4 * program.arrival_counters]}
        for kernel in kernels:
            self._need(1 <= kernel.warps <= MOST_WARPS and 0 <= kernel.shared <= target.shared
                       and 0 <= kernel.scratch < MOST_ARENA and kernel.scratch_alignment >= 0
                       and not set(kernel.kinds) - set("pilfd"),
                       f"the kernel {kernel.name!r:.50} asks for what no GPU has")

    def steps(self, steps: Iterable[Step], rounds: int = 1) -> None:
        for step in steps:
            if isinstance(step, Launch):
                self._launch(step, rounds)
            elif isinstance(step, CopyStep):
                self._place(step.target, rounds, step.nbytes)
                self._place(step.source, rounds, step.nbytes)
            elif isinstance(step, LibraryStep):
                for at in (*step.inputs, *step.outputs):
                    self._place(at, rounds)
            elif isinstance(step, RepeatedSteps):
                self._need(rounds == 1, "a loop stands in a loop")
                self.steps(step.steps, step.count)
            elif isinstance(step, DoubleBufferedSteps):
                self._need(rounds == 1, "a loop stands in a loop")
                for side in step.sides:
                    self._place(side.flag, 1, 1)
                    self.steps((*side.holds, *side.body, *side.ends))

    def _launch(self, step: Launch, rounds: int) -> None:
        self._need(step.module < len(self.kernels), "a launch of a kernel that is not there")
        kernel = self.kernels[step.module]
        self._need(step.kernel == kernel.name and len(step.arguments) == len(kernel.kinds),
                   f"a launch does not fit the kernel {kernel.name!r:.50}")
        self._need(all(n <= most for n, most in zip(step.grid, MOST_GRID, strict=True)),
                   "the grid of a launch is larger than any")
        for kind, given in zip(kernel.kinds, step.arguments, strict=True):
            if kind == "p":
                self._need(isinstance(given, Pointer), "a number stands where a place must be")
            if isinstance(given, Pointer):
                self._need(kind == "p", "a place stands where a number must be")
                self._place(given, rounds)
            elif kind in "il":
                bits = 31 if kind == "i" else 63
                self._need(isinstance(given, int) and -2**bits <= given < 2**bits,
                           "an argument of a launch is out of range")

    def _place(self, at: Pointer, rounds: int, nbytes: int = 0) -> None:
        sizes = self.sizes[at.kind]
        ends = (at.offset, at.offset + max(rounds - 1, 0) * at.stride)
        self._need(at.index < len(sizes) and min(ends) >= 0
                   and max(ends) + nbytes <= sizes[at.index],
                   "a step reaches for memory that the program does not have")

    @staticmethod
    def _need(holds: bool, why: str) -> None:
        if not holds:
            raise ValueError(why)

