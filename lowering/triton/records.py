"""What is known of the kernels of a program, to look at: sources, machine code, resources."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.source import alone
from functrans.lowering.triton.machine.line_info import sass_lines
from functrans.lowering.triton.machine.unit import Binary
from functrans.lowering.triton.steps.spec import GPUProgram, Launch, launch_key, runs_in
from functrans.primitives.control_flow.scan import scan_p

__all__ = ["KernelRecord", "LaunchGroup", "launch_groups", "launch_seconds", "program_seconds",
           "records", "sources_of"]


class KernelRecord(Record):
    """A kernel of a program, as it is launched so many times for one work over a `grid`.

    `lines` are those of the user that it computes; `text` is Triton's language; a program has
    `warps` of 32 threads and `shared` bytes of shared memory, a thread `registers` and `spills`,
    numbers of 4 bytes that did not fit them.
    """

    name: str
    lines: tuple[str, ...]
    grid: tuple[int, int, int]
    launches: int
    warps: int
    stages: int
    shared: int
    registers: int
    spills: int
    text: str = field(repr=False)
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)

    @property
    def sass(self) -> str:
        """The instructions of the machine code, by Triton's copy of `nvdisasm`."""
        return "\n".join([text for text, _ in self.sass_lines()])

    def sass_lines(self) -> list[tuple[str, int]]:
        """The instructions, each with the line of `text` that it is for."""
        from triton import knobs  # noqa: PLC0415  imported by who asks

        return sass_lines(self.cubin, knobs.nvidia.nvdisasm.path)

    def __str__(self) -> str:
        times = f", {self.launches} times" if self.launches > 1 else ""
        spills = f", {self.spills} spilled" if self.spills else ""
        head = (f"{self.name}: {' x '.join(map(str, self.grid))} programs of {self.warps} warps"
                f"{times}; {self.registers} registers{spills}, {self.shared} bytes shared")
        return "\n".join([head, *[f"    {line}" for line in self.lines]])


class LaunchGroup(Record):
    """Launches of one kernel that do the same work, and how often they run in all."""

    launches: list[Launch]
    runs: int


def launch_groups(program: GPUProgram, turns: Iterable[int] | None = None) -> list[LaunchGroup]:
    """The launches of a program by kernel, grid and work, in the order of the first ones.

    A kernel that takes sizes as arguments may be launched for several. `turns` are those of loops
    with predicates, where they are known.
    """
    found: dict[Any, list[tuple[Launch, int]]] = {}
    for step, runs in runs_in(program.steps, turns=None if turns is None else iter(turns)):
        key = (launch_key(step), step.grid, step.flops, step.moved)
        found.setdefault(key, []).append((step, runs))
    return [LaunchGroup([step for step, _ in group], sum(runs for _, runs in group))
            for group in found.values()]


def launch_seconds(launch: Launch, target: Target) -> float:
    """A launch by estimate, where its programs share what the multiprocessors that they fill do."""
    known, programs = target.measured, math.prod(launch.grid)
    bandwidth = min(1 / known.byte, programs * known.one_bandwidth)
    if launch.fuses:  # a product, on tensor cores
        sixteen = any(kind in t for t in launch.types for kind in ("bf16", "fp16"))
        rate = known.rates["bf16" if sixteen else "tf32"] * min(programs, target.multiprocessors)
    else:
        rate = min(known.all_rate, programs * known.one_rate)
    iterations = [e.params["length"] for e in launch.equations if e.primitive is scan_p]
    return 1e-9 * max(known.launch, launch.moved / bandwidth, launch.flops / rate,
                      known.phase * max([n for n in iterations if isinstance(n, int)], default=0))


def program_seconds(program: GPUProgram, target: Target) -> float:
    """The kernels of a program by estimate, one after the other."""
    return sum([runs * launch_seconds(step, target) for step, runs in runs_in(program.steps)])


def records(program: GPUProgram, binaries: Mapping[Any, Binary]) -> tuple[KernelRecord, ...]:
    """The kernels of a program, one for each group of launches."""
    return tuple([_record(program, group, binaries[launch_key(group.launches[0])])
                  for group in launch_groups(program)])


def _record(program: GPUProgram, group: LaunchGroup, binary: Binary) -> KernelRecord:
    first = group.launches[0]
    lines = tuple(dict.fromkeys(str(source) for step in group.launches for source in step.sources))
    return KernelRecord(first.kernel, lines, first.grid, group.runs, binary.warps, binary.stages,
                        binary.shared, binary.registers, binary.spills,
                        alone(program.sources[first.module], first.kernel), binary.ptx,
                        binary.cubin)


def sources_of(step: Kernel | Call, is_stored: Callable[[Tensor], bool]) -> tuple[Source, ...]:
    """Where the user asked for what a step of a schedule computes; what it inlines comes first."""
    if isinstance(step, Kernel):
        return tuple(dict.fromkeys(_sources([m.tensor for m in step.members], is_stored)))
    kernel = getattr(step, "kernel", None)  # what a product is fused with
    own = [] if step.source is None else [step.source]
    more = sources_of(kernel, is_stored) if isinstance(kernel, Kernel) else ()
    return tuple(dict.fromkeys([*own, *more]))


def _sources(tensors: Iterable[Tensor], is_stored: Callable[[Tensor], bool]) -> list[Source]:
    found: list[Source] = []
    seen: set[Tensor] = set()
    waiting = [(t, False) for t in reversed(list(tensors))]
    while waiting:
        t, operands_done = waiting.pop()
        if operands_done:
            if t.source is not None:
                found.append(t.source)
        elif t not in seen:
            seen.add(t)
            waiting.append((t, True))
            waiting += [(x, False) for x in reversed(t.operands) if not is_stored(x)]
    return found
