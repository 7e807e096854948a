"""What is known of a program of Triton kernels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from functrans.core.jaxpr import Jaxpr
from functrans.lowering.equation_places import EquationPlaces
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.report import (
    KernelReport,
    Reason,
    Report,
    ScheduleRun,
    TracedProgram,
    line_of,
)
from functrans.lowering.report_parts import (
    contracted_of,
    decision_texts,
    kept_reason,
    laws_in,
    note_reason,
    numbers_of_steps,
    passes_of,
    peak_of,
    residual_reasons,
    timeline_of,
)
from functrans.lowering.schedule.advice import advice_on
from functrans.lowering.schedule.schedule_log import ScheduleLog
from functrans.lowering.schedule.show import tensor_text
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.host_steps import host_uses, steps_of_host
from functrans.lowering.triton.kernel_code import LaunchCode
from functrans.lowering.triton.lower import LoweredToTriton, passes_log
from functrans.lowering.triton.machine.line_info import ptx_lines
from functrans.lowering.triton.records import (
    KernelRecord,
    LaunchGroup,
    launch_groups,
    launch_seconds,
)
from functrans.lowering.triton.steps.spec import (
    CollectiveSteps,
    CopyStep,
    DoubleBufferedSteps,
    GPUProgram,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    WaitStep,
    launches_in,
)

__all__ = ["report_of"]

_FOLDERS: Final = re.compile(r"^\S*/(?=\S+:\d+, in )")
"""Of the file that a note begins with."""


def report_of(known: LoweredToTriton, target: Target, traced: TracedProgram) -> Report:
    """What the compiler did with a program of kernels for a target."""
    program = known.program
    timeline = timeline_of(program.blocks, [], [])
    log = passes_log(traced.jaxpr, target)
    kernels = kernels_of(known.simplified, program, known.kernels(target), target)
    return Report(
        traced.name, f"Triton for {target.name}", traced.jaxpr, known.simplified, traced.inputs,
        laws_in(log), kernels,
        [*filter(None, [known.plan.said]), *decision_texts(known.decisions)],
        [*apart_of(program, kernels), *residual_reasons(known.plan.residuals)],
        memory_notes(program, traced.donated, traced.inputs),
        known.memory_analysis(), peak_of(timeline, []), "\n".join(program.sources),
        target.multiprocessors, results=traced.results, passes=passes_of(log),
        contracted=contracted_of(known.decisions),
        timeline=timeline, make_schedule=partial(schedule_runs, program))


def kernels_of(jaxpr: Jaxpr, program: GPUProgram, records: Sequence[KernelRecord],
               target: Target) -> list[KernelReport]:
    """The kernels of a program in the order of their first launches, then what is none."""
    launched = list(zip(records, launch_groups(program), strict=True))
    launches = [step for _, group in launched for step in group.launches]
    numbers = iter(numbers_of_steps(jaxpr, [step.equations for step in launches],
                                    [step.sources for step in launches]))
    places = EquationPlaces(jaxpr)
    arguments = {t: k for k, t in enumerate(program.arguments)}
    seen: Counter[str] = Counter()
    found = []
    for record, group in launched:
        seen[record.name] += 1
        number = seen[record.name]
        name = record.name if number == 1 else f"{record.name} #{number}"
        parts = [next(numbers) for _ in group.launches]
        for launch in group.launches:
            places.learn(launch.notes.origins)
        code = LaunchCode(record.text, group.launches, places,
                          tuple(sorted({e for part in parts for e in part})), arguments)
        found.append(_kernel(name, record, group, parts, code, target))
    libraries = [part for s in program.steps for part in (
        s.parts if isinstance(s, CollectiveSteps) else [s]) if isinstance(part, LibraryStep)]
    return found + [_call(s, places) for s in (*libraries, *steps_of_host(program.steps))]


def schedule_runs(program: GPUProgram) -> list[ScheduleRun]:
    """The steps from the graph of a program to its kernels and their memory."""
    if program.again is None:
        return []
    log = ScheduleLog()
    schedule = program.again(log)
    steps = {b.key: f", steps {b.first}-{b.last}" for b in program.blocks
             if isinstance(b.key, Tensor)}
    places = {t: f"{_place(at)}{steps.get(t, '')}" for t, at in program.places.items()
              if at.kind in ("arena", "output")}
    log.placed(schedule, places, [(t, f"what it updates is copied before: {reason}")
                                  for t, reason in program.aliases.copied])
    return log.runs


def _place(at: Pointer) -> str:
    return f"arena + {at.offset}" if at.kind == "arena" else f"result {at.index}"


def _call(step: HostStep, places: EquationPlaces) -> KernelReport:
    """A library's function, or what the host computes: why, and for which line."""
    use = next(iter(host_uses([step])), None)
    line = line_of(step.call.eqn.source)
    path = places.path(step.call.eqn)
    return KernelReport(step_name(step), "call", () if path is None else path[:1],
                        () if line is None else (line,),
                        "" if use is None else use.why, 0, 0,
                        on_host="" if use is None else use.why)


def _kernel(name: str, r: KernelRecord, group: LaunchGroup, parts: list[tuple[int, ...]],
            code: LaunchCode, target: Target) -> KernelReport:
    first, work = group.launches[0], code.work
    if isinstance(work.flops, int):
        first = replace(first, flops=first.flops + work.flops)
    sources = dict.fromkeys(s for step in group.launches for s in step.sources)
    lines = dict.fromkeys([line for s in sources if (line := line_of(s)) is not None])
    grid = " x ".join(map(str, r.grid))
    about = [f"{grid} programs of {r.warps} warp{'s' * (r.warps > 1)}", f"{r.registers} registers",
             *([f"{r.spills} spilled"] if r.spills else []), f"{r.shared} bytes of shared memory",
             *([f"launched {r.launches} times"] if r.launches > 1 else [])]
    about += [] if code.equations else ["lays out memory for other kernels"]
    return KernelReport(name, "kernel", code.equations, tuple(lines), "; ".join(about),
                        group.runs * first.flops, group.runs * first.moved, "Triton", r.name,
                        r.text,
                        r.ptx, tuple(parts), group.runs, programs=math.prod(r.grid),
                        spills=r.spills, estimate=group.runs * launch_seconds(first, target),
                        instruction_lines=r.sass_lines, operands=code.operands,
                        values_by_line=code.by_line, make_loops=code.loops,
                        flops_per="iteration" if work.per_iteration else "",
                        ptx_lines=partial(ptx_lines, r.ptx))


def apart_of(program: GPUProgram, kernels: Sequence[KernelReport]) -> list[Reason]:
    """What was not computed in the kernel of something else, and why, or where it is read."""
    names = {id(step): kernel.name for kernel, group in zip(kernels, launch_groups(program))
             for step in group.launches}
    found = [*map(note_reason, program.apart),
             *[Reason(None, "", 0, _FOLDERS.sub("", note), advice_on(note))
               for note in program.notes]]
    for t, steps in program.kept:
        readers = dict.fromkeys(names.get(id(one), step_name(one)) for step in steps
                                for one in [next(iter(launches_in([step])), step)])
        is_operand = any(isinstance(one, HostStep) or (isinstance(one, Launch) and one.fuses)
                         for one in steps)
        found.append(kept_reason(t, tuple(readers), is_operand))
    return list(dict.fromkeys(found))


def step_name(step: Step) -> str:
    """What a step of a program is called."""
    if isinstance(step, Launch):
        return step.kernel
    if isinstance(step, LibraryStep):
        return step.function
    if isinstance(step, HostStep):
        return f"{step.call.eqn.primitive.name} on the host"
    return {CopyStep: "copy", CollectiveSteps: "collectives", WaitStep: "wait",
            RepeatedSteps: "loop", DoubleBufferedSteps: "loop in turns"}[type(step)]


def memory_notes(program: GPUProgram, donated: frozenset[int],
                 inputs: Sequence[str]) -> list[str]:
    """What was given away and copied."""
    given = program.aliases
    found = [f"result {j} is in the memory of {inputs[k]}, which was donated"
             for j, k in sorted(given.inputs.items())]
    unused = donated - {*given.inputs.values()}
    if unused:
        which = ", ".join(inputs[k] for k in sorted(unused))
        found.append(f"donated, and not used for a result: {which}")
    for t, reason in given.copied:
        line = line_of(t.source)
        where = f"{line}: " if line else ""
        found.append(f"{where}the {tensor_text(t)} is copied before its update: {reason}")
    for step in program.steps:
        if isinstance(step,
                      CopyStep) and step.target.kind == "output" and step.source.kind == "input":
            found.append(f"result {step.target.index} is a copy of {inputs[step.source.index]}, "
                         "which belongs to the caller")
    return found

