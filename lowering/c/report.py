"""What is known of a program in C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import Source
from functrans.lowering.c.assembly import assembly_of
from functrans.lowering.c.bodies_of import BodyOf, bodies_of
from functrans.lowering.c.lower import LoweredToC
from functrans.lowering.c.program import FunctionWriter, ProgramText
from functrans.lowering.c.schedule_steps import schedule_runs
from functrans.lowering.c.step_code import code_of_step
from functrans.lowering.equation_places import EquationPlaces
from functrans.lowering.loops.tensor import Call, FunctionCall, Gemm, HostCall, Tensor
from functrans.lowering.passes.pass_log import PassLog
from functrans.lowering.report import (
    KernelReport,
    Line,
    Reason,
    Report,
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
    sources_of,
    timeline_of,
)
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel as Loops
from functrans.lowering.schedule.loop_work import LoopWork, work_of_call
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


def report_of(program: LoweredToC, traced: TracedProgram, log: PassLog) -> Report:
    """What the compiler did with a program that is C, by passes that were logged."""
    text, shown = program.text, program.simplified
    main = text.main
    if main.graph.residuals:  # with what is computed again
        shown = main.graph.jaxpr or shown
        log.ran("values computed again, repeated parts as functions", program.simplified, shown)
    lines = lines_of_steps(main)
    timeline = timeline_of(main.blocks, step_names(main), lines)
    return Report(
        traced.name, f"C for {main.module.isa.name}", traced.jaxpr, shown,
        traced.inputs, laws_in(log), kernels_of(shown, text),
        [*filter(None, [program.plan]), *decision_texts(program.decisions)], reasons_of(text),
        memory_notes(text, traced.donated, traced.inputs), program.memory_analysis(),
        peak_of(timeline, lines), text.text, results=traced.results,
        passes=passes_of(log), contracted=contracted_of(program.decisions),
        timeline=timeline, make_schedule=partial(schedule_runs, text))


def kernels_of(jaxpr: Jaxpr, program: ProgramText) -> list[KernelReport]:
    """The steps of a program in order, then those of the bodies of its loops and branches."""
    main = program.main
    numbers = numbers_of_steps(jaxpr, equations_of_steps(main.graph, main.schedule))
    places = EquationPlaces(jaxpr)
    found = [_kernel(main, k, name, program.text, numbers[k], places)
             for k, name in enumerate(step_names(main))]
    for body in bodies_of(main):
        found += [_of_body(_kernel(body.writer, k, f"{name} in {body.place}", program.text, (),
                                   places), body)
                  for k, name in enumerate(step_names(body.writer))]
    return found


def _of_body(kernel: KernelReport, body: BodyOf) -> KernelReport:
    """What a step of a body does in all its runs, as far as these are known."""
    return replace(kernel, place=body.place, runs=body.runs, per=body.per,
                   flops=body.runs * kernel.flops, moved=body.runs * kernel.moved)


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
            places: EquationPlaces) -> KernelReport:
    step, is_stored = w.schedule.steps[number], w.schedule.is_stored
    code = code_of_step(w, number, text, places, equations)
    function, source = code.function, code.source
    sources: Sequence[Source | None] = sources_of(places.jaxpr, equations) or [
        *[t.source for t in members_of(step)], *_source(step)]
    lines = dict.fromkeys([line for s in sources if (line := line_of(s)) is not None])
    parts = moved_bytes([step], is_stored) if isinstance(step, Loops) else {}
    moved: Size = sum([parts.get(t, nbytes_of(t)) for t in _touched(w, number, step)], start=0)
    kind = step.name if isinstance(step, Call) else "kernel"
    inside = work_of_call(step) if isinstance(step, LaneLoop) else LoopWork()
    return KernelReport(name, kind, equations, tuple(lines),
                        _about(w, number, step), flops_of(step, is_stored) + inside.flops, moved,
                        "C" if function else "", function, source,
                        instructions=partial(assembly_of, text, function) if function else None,
                        instruction_lines=code.instructions if source else None,
                        on_host=_why_on_host(step), operands=code.operands,
                        values_by_line=code.by_line if source else None, make_loops=code.loops,
                        flops_per="iteration" if inside.per_iteration else "")


def _why_on_host(step: Step) -> str:
    if not isinstance(step, HostCall):
        return ""
    name = step.eqn.primitive.name
    return step.why or (f"{name} is a call of Python" if "callback" in step.eqn.params
                        else f"{name} has no C: NumPy computes it")


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


def reasons_of(program: ProgramText) -> list[Reason]:
    """What was not computed in the kernel of something else, and why; equal ones once."""
    found = [note_reason(n) for schedule in program.schedules for n in schedule.notes]
    found += residual_reasons(program.main.graph.residuals)
    return list(dict.fromkeys([*found, *_kept(program.main)]))


def _kept(main: FunctionWriter) -> list[Reason]:
    """The temporaries that no note is about, and the steps that read them from memory."""
    noted = {n.tensor for n in main.schedule.notes}
    names = step_names(main)
    touched: dict[Tensor, list[int]] = {}
    for k, step in enumerate(main.schedule.steps):
        for t in dict.fromkeys(_touched(main, k, step)):
            touched.setdefault(t, []).append(k)
    found = []
    for block in main.blocks:
        t = block.key
        if not isinstance(t, Tensor) or t in noted:
            continue
        readers = [k for k in touched.get(t, ()) if k > block.first]
        if readers:
            found.append(kept_reason(
                t, [names[k] for k in readers],
                any(isinstance(s := main.schedule.steps[k], Call) and t in s.operands
                    for k in readers), isinstance(main.schedule.steps[block.first], Call)))
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


def lines_of_steps(main: FunctionWriter) -> list[Line | None]:
    """The lines that the steps of a function are for, the last operation of each."""
    lines: list[Line | None] = []
    for step in main.schedule.steps:
        sources = [*_source(step), *[t.source for t in reversed(members_of(step))]]
        lines.append(next((line for s in sources if (line := line_of(s))), None))
    return lines
