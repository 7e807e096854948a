"""What is known of a program in C."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import Source
from functrans.lowering.c.isa import COMMON_FLAGS
from functrans.lowering.c.lower import LoweredToC
from functrans.lowering.c.program import FunctionWriter, ProgramText
from functrans.lowering.c.toolchain import compiled_isa, compiler
from functrans.lowering.loops.tensor import Call, FunctionCall, Gemm, Tensor
from functrans.lowering.report import KernelReport, Line, Peak, Report, TracedProgram, line_of
from functrans.lowering.report_parts import (
    decision_texts,
    kept_text,
    laws_of,
    note_text,
    numbers_of_steps,
    peak_of,
    residual_texts,
    sources_of,
)
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel as Loops
from functrans.lowering.schedule.show import (
    domain_text,
    equations_of_steps,
    flops_of,
    members_of,
    moved_bytes,
    nbytes_of,
    tensor_text,
)

__all__ = ["report_of", "step_names"]


def report_of(program: LoweredToC, traced: TracedProgram) -> Report:
    """What the compiler did with a program that is C."""
    text, shown = program.text, program.simplified
    if text.main.graph.residuals:  # with what is computed again
        shown = text.main.graph.jaxpr or shown
    return Report(
        traced.name, f"C for {text.main.module.isa.name}", traced.jaxpr, shown,
        traced.inputs, laws_of(traced.jaxpr), kernels_of(shown, text),
        [*filter(None, [program.plan]), *decision_texts(program.decisions)], notes_of(text),
        memory_notes(text, traced.donated, traced.inputs), program.memory_analysis(),
        peak(text), text.text)


def kernels_of(jaxpr: Jaxpr, program: ProgramText) -> list[KernelReport]:
    """The steps of a program in order, then those of the bodies of its loops and branches."""
    main = program.main
    numbers = numbers_of_steps(jaxpr, equations_of_steps(main.graph, main.schedule))
    found = [_kernel(main, k, name, program.text, numbers[k], jaxpr)
             for k, name in enumerate(step_names(main))]
    for place, writer in _bodies(main):
        found += [_kernel(writer, k, f"{name} in {place}", program.text, (), jaxpr)
                  for k, name in enumerate(step_names(writer))]
    return found


def _bodies(main: FunctionWriter) -> Iterator[tuple[str, FunctionWriter]]:
    for call, writers in main.bodies.items():
        for writer in writers:
            yield call.name, writer
            yield from _bodies(writer)


def step_names(main: FunctionWriter) -> list[str]:
    """The names of the steps of a function: those of their C functions, or what they call.

    Equal kernels are one C function: the second step that runs it is `k3 #2`.
    """
    seen: Counter[str] = Counter()
    found = []
    for k, step in enumerate(main.schedule.steps):
        name = _name(main, k, step)
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


def _name(w: FunctionWriter, number: int, step: Step) -> str:
    function = _function(w, number, step)
    call = step.name if isinstance(step, Call) else ""
    call = getattr(step, "function", call)  # of a library
    return f"{call} {function}".strip() if function else f"{call} {number}"


def _function(w: FunctionWriter, number: int, step: Step) -> str:
    if isinstance(step, Chain):
        return w.chains[step].name
    if isinstance(step, LaneLoop):
        return w.module.functions.get(w.lanes[step].text, "")
    text = w.epilogues.get(step) if isinstance(step, Call) else w.texts[number]
    return w.module.functions.get(text.text, "") if text is not None else ""


def _kernel(w: FunctionWriter, number: int, name: str, text: str, equations: tuple[int, ...],
            jaxpr: Jaxpr) -> KernelReport:
    step, is_stored = w.schedule.steps[number], w.schedule.is_stored
    function = _function(w, number, step)
    sources: Sequence[Source | None] = sources_of(jaxpr, equations) or [
        *[t.source for t in members_of(step)], *_source(step)]
    lines = dict.fromkeys([line for s in sources if (line := line_of(s)) is not None])
    parts = moved_bytes([step], is_stored) if isinstance(step, Loops) else {}
    moved: Size = sum([parts.get(t, nbytes_of(t)) for t in _touched(w, number, step)], start=0)
    kind = step.name if isinstance(step, Call) else "kernel"
    return KernelReport(name, kind, equations, tuple(lines),
                        _about(w, number, step), flops_of(step, is_stored), moved,
                        "C" if function else "", function, _definition(text, function),
                        instructions=partial(assembly_of, text, function) if function else None)


def _source(step: Step) -> list[Source]:
    return [step.source] if isinstance(step, Call) and step.source is not None else []


def _touched(w: FunctionWriter, number: int, step: Step) -> list[Tensor]:
    if isinstance(step, Call):
        return list(dict.fromkeys((*step.operands, *step.results)))
    text = w.texts[number]
    assert text is not None
    return [t for t in text.operands if isinstance(t, Tensor)]


def _about(w: FunctionWriter, number: int, step: Step) -> str:
    isa = w.module.isa
    parts = []
    text = None
    if isinstance(step, Loops):
        text = w.texts[number]
        parts.append(domain_text(step))
    elif isinstance(step, Gemm):
        f = step.fields
        batch = f["batch0"] * f["batch1"]
        many = "" if isinstance(batch, int) and batch == 1 else f"{batch} times "
        parts.append(f"{many}[{f['m']}, {f['k']}] @ [{f['k']}, {f['n']}]")
        text = w.epilogues.get(step)
    elif isinstance(step, Chain):
        inside = ", ".join(getattr(s, "name", "kernel") for s in step.steps)
        parts.append(f"{step.count} blocks of rows, each through {inside}")
    else:
        parts.append(", ".join(map(tensor_text, step.results)) or "no results")
        if isinstance(step, LaneLoop):
            parts.append(f"{w.lanes[step].about} ({isa.name}, {isa.vector_bytes}-byte vectors)")
        elif isinstance(step, FunctionCall):
            parts.append(f"one of {step.times} calls of a function of {len(step.body.eqns)} "
                         "equations, which the program has so many times")
        elif step.not_of_lanes:
            parts.append(f"no kernel of lanes: {step.not_of_lanes}")
    if text is not None:
        wide = f"{text.lanes} elements at once" if text.lanes > 1 else "one element at a time"
        parts.append(f"{wide} ({isa.name}, {isa.vector_bytes}-byte vectors)")
        parts += ["in one thread"] if text.serial else []
    return "; ".join(parts)


def _definition(program: str, function: str) -> str:
    """The text of a function of a program."""
    if not function:
        return ""
    found = re.search(rf"^static [^\n]*\b{function}\(.*?^}}$", program, re.DOTALL | re.MULTILINE)
    return found.group() if found else ""


def assembly_of(program: str, function: str) -> str:
    """The instructions of one function of a program, by the compiler that `jit` uses."""
    flags = [*COMMON_FLAGS, *compiled_isa().flags, "-w", "-fno-inline", "-g0",
             "-fno-asynchronous-unwind-tables"]
    done = subprocess.run([*compiler(), *flags, "-S", "-x", "c", "-", "-o", "-"], input=program,
                          capture_output=True, text=True, check=True)
    body = done.stdout.partition(f"\n{function}:\n")[2]
    body = body.partition(f"\t.size\t{function},")[0]
    return f"{function}:\n{body}".rstrip()


def notes_of(program: ProgramText) -> list[str]:
    """What was not computed in the kernel of something else, and why; equal ones once."""
    found = [note_text(n) for schedule in program.schedules for n in schedule.notes]
    found += residual_texts(program.main.graph.residuals)
    return list(dict.fromkeys([*found, *_kept(program.main)]))


def _kept(main: FunctionWriter) -> list[str]:
    """The temporaries that no note is about, and the steps that read them from memory."""
    noted = {n.tensor for n in main.schedule.notes}
    names = step_names(main)
    found = []
    for block in main.blocks:
        t = block.key
        if not isinstance(t, Tensor) or t in noted:
            continue
        readers = [name for k, (name, step) in enumerate(zip(names, main.schedule.steps))
                   if block.first < k and t in _touched(main, k, step)]
        if readers:
            found.append(kept_text(t, readers))
    return found


def memory_notes(program: ProgramText, donated: frozenset[int],
                 inputs: Sequence[str]) -> list[str]:
    """What was updated in place, given away and copied."""
    main = program.main
    found = []
    for t in main.aliases.in_place:
        found.append(f"{_at(t)}updates a {tensor_text(t)} in place")
    for k, alias in enumerate(program.aliases):
        if alias >= 0:
            found.append(f"result {k} is in the memory of {inputs[alias]}, which was donated")
    unused = donated - {*program.aliases}
    if unused:
        which = ", ".join(inputs[k] for k in sorted(unused))
        found.append(f"donated, and not used for a result: {which}")
    for t, reason in program.copied:
        found.append(f"{_at(t)}the {tensor_text(t)} is copied before its update: {reason}")
    for k, t in enumerate(main.graph.outputs):
        if main.where[t] != f"w[{k}]" and not (program.aliases[k] >= 0):
            found.append(f"result {k} is a copy: {_origin(main.where[t], inputs)}")
    return found


def _origin(place: str, inputs: Sequence[str]) -> str:
    number = int(place[2:-1])
    if place.startswith("b["):
        return f"it is {inputs[number]}, which belongs to the caller"
    return f"it equals result {number}" if place.startswith("w[") else "it is a constant"


def _at(t: Tensor) -> str:
    line = line_of(t.source)
    return f"{line}: " if line else ""


def peak(program: ProgramText) -> Peak | None:
    """When most temporaries of a program are alive."""
    main = program.main
    lines: list[Line | None] = []
    for step in main.schedule.steps:
        sources = [*_source(step), *[t.source for t in reversed(members_of(step))]]
        lines.append(next((line for s in sources if (line := line_of(s))), None))
    return peak_of(main.blocks, step_names(main), lines)
