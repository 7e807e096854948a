"""What reports of several backends have in common: laws, equations by step, temporaries, peaks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs
from functrans.core.source import Source
from functrans.lowering.analysis import memory_of
from functrans.lowering.loops.tensor import Tensor, item_size
from functrans.lowering.memory.arena import Block
from functrans.lowering.passes.networks.cost_estimate import CostEstimate
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pass_log import PassLog
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rematerialize import Residual
from functrans.lowering.passes.rewrite import Change
from functrans.lowering.report import (
    Contracted,
    KernelReport,
    Law,
    Line,
    MemoryStep,
    Peak,
    Reason,
    Report,
    Rewrite,
    RewritePass,
    TracedProgram,
    Value,
    line_of,
)
from functrans.lowering.schedule.advice import advice_on, advice_on_kept
from functrans.lowering.schedule.group import FusionNote
from functrans.lowering.schedule.show import tensor_text

if TYPE_CHECKING:
    from functrans.lowering.executable import Executable

__all__ = ["computes_nothing", "contracted_of", "decision_texts", "kept_reason", "laws_in",
           "laws_of", "note_reason", "numbers_of_steps", "passes_of", "peak_of",
           "report_as_a_whole", "report_without_code", "residual_reasons", "sources_of",
           "timeline_of"]


def report_as_a_whole(traced: TracedProgram, executable: Executable) -> Report:
    """What every executable tells: one step, with its text and its cost."""
    jaxpr = traced.jaxpr
    lines = tuple(dict.fromkeys(x for e in jaxpr.eqns if (x := line_of(e.source)) is not None))
    cost, text = executable.cost_analysis(), executable.as_text()
    step = KernelReport(jaxpr.name, "program", tuple(range(len(jaxpr.eqns))), lines, "",
                        cost.get("flops", 0), cost.get("bytes accessed", 0), traced.backend,
                        jaxpr.name, text)
    return Report(traced.name, traced.backend, jaxpr, jaxpr, traced.inputs, [], [step], [], [], [],
                  executable.memory_analysis(), None, text, results=traced.results)


def report_without_code(traced: TracedProgram, is_sized: bool) -> Report:
    """A program without code of its own: it has no equations, or NumPy evaluates it.

    One that `is_sized` is compiled for each set of its sizes.
    """
    decisions: list[Decision] = []
    log = PassLog()
    simplified = simplify(traced.jaxpr, log, decisions=decisions)
    target = "nothing to compute" if not simplified.eqns else \
        "compiled once its sizes are known" if is_sized and simplified.size_names else "NumPy"
    return Report(traced.name, target, traced.jaxpr, simplified, traced.inputs,
                  laws_in(log), [], decision_texts(decisions), [], [],
                  memory_of(simplified), None, results=traced.results, passes=passes_of(log),
                  contracted=contracted_of(decisions))


def computes_nothing(jaxpr: Jaxpr) -> bool:
    """Whether the results of a program are its inputs, or constants."""
    return not simplify(jaxpr).eqns


def laws_of(jaxpr: Jaxpr) -> list[Law]:
    """The laws that the passes apply to a program, in the order of their first use."""
    log = PassLog()
    simplify(jaxpr, log)
    return laws_in(log)


def laws_in(log: Sequence[Change]) -> list[Law]:
    """The laws that were applied, in the order of their first use."""
    found: dict[tuple[str, str], list[Line | None]] = {}
    for change in log:
        found.setdefault((change.table, change.law), []).append(line_of(change.source))
    return [Law(table, law, len(lines), tuple(dict.fromkeys([x for x in lines if x])))
            for (table, law), lines in found.items()]


def passes_of(log: PassLog) -> list[RewritePass]:
    """The passes that changed the program, with its text before and after."""
    return [RewritePass(run.name, run.before, run.after, tuple([
        Rewrite(c.table, c.law, line_of(c.source), c.before, c.after, c.of, c.by)
        for c in run.changes]), run.depth) for run in log.runs]


def contracted_of(decisions: Sequence[Decision]) -> list[Contracted]:
    """What was decided on the values of networks, as data."""
    def of(cost: CostEstimate | None) -> tuple[int | None, int | None]:
        return (None, None) if cost is None else (round(cost.flops + cost.elements),
                                                  round(cost.memory))

    return [Contracted(d.values, d.reductions, line_of(d.source), d.is_contracted,
                       *of(d.materialised), *of(d.contracted)) for d in decisions]


def decision_texts(decisions: Sequence[Decision]) -> list[str]:
    """What was decided on the values of networks, with the lines that asked for them."""
    found = []
    for d in decisions:
        line = line_of(d.source)
        place = f"{line}: " if line else ""
        found.append(place + str(d._replace(source=None)))
    return found


def residual_reasons(residuals: Sequence[Residual]) -> list[Reason]:
    """What was decided on values that are needed late, equal ones once."""
    return list(dict.fromkeys(
        Reason(line_of(r.source), "", r.aval.nbytes, str(r), advice_on(str(r)))
        for r in residuals))


def numbers_of_steps(jaxpr: Jaxpr, steps: Sequence[Iterable[Equation]],
                     sources: Sequence[Iterable[Source]] = ()) -> list[tuple[int, ...]]:
    """The numbers of the equations of each step.

    Equations of no step, movements that became index arithmetic, go to the steps of their readers.
    Those of steps that passes of a target have written anew are known by their results, or by the
    user's line, of steps that have no other equation; `sources` are those of steps, besides.
    """
    numbers = {eqn: k for k, eqn in enumerate(jaxpr.eqns)}
    makers = {v: k for k, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
    owners: dict[int, set[int]] = {}
    for k, equations in enumerate(steps):
        for eqn in equations:
            made = [numbers[eqn]] if eqn in numbers else [
                makers[v] for v in eqn.outvars if v in makers]
            for number in made:
                owners.setdefault(number, set()).add(k)
    _own_by_line(jaxpr, [
        {*map(line_of, sources[k] if sources else ()),
         *[line_of(e.source) for e in _with_bodies(equations)]} - {None}
        for k, equations in enumerate(steps)], owners)
    readers: dict[Var, set[int]] = {}
    for number in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[number]
        if number not in owners:
            owners[number] = set().union(*[readers.get(v, set()) for v in eqn.outvars])
        for v in eqn.invars:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(owners[number])
    return [tuple(sorted(e for e, at in owners.items() if k in at)) for k in range(len(steps))]


def _own_by_line(jaxpr: Jaxpr, lines: Sequence[Container[Line | None]],
                 owners: dict[int, set[int]]) -> None:
    """Give steps whose equations are not those of the program what is left of their lines."""
    known = set().union(*owners.values()) if owners else set()
    left = {number: [line_of(e.source) for e in _with_bodies([eqn])]
            for number, eqn in enumerate(jaxpr.eqns) if number not in owners}
    for k, own in enumerate(lines):
        if k not in known:
            for number, of in left.items():
                if any(line in own for line in of):
                    owners.setdefault(number, set()).add(k)


def _with_bodies(equations: Iterable[Equation]) -> Iterator[Equation]:
    for eqn in equations:
        yield eqn
        for body in subjaxprs(eqn):
            yield from _with_bodies(body.eqns)


def sources_of(jaxpr: Jaxpr, equations: Iterable[int]) -> list[Source]:
    """Where the user asked for some equations, in order, each once."""
    found = [jaxpr.eqns[e].source for e in equations]
    return list(dict.fromkeys([s for s in found if s is not None]))


def timeline_of(blocks: Sequence[Block[Any]], names: Sequence[str],
                lines: Sequence[Line | None]) -> list[MemoryStep]:
    """The temporaries of an arena step by step; nothing where sizes are not known."""
    if not blocks or not all(isinstance(b.nbytes, int) for b in blocks):
        return []
    count = max(len(names), 1 + max(b.last for b in blocks))
    held = [(b.first, b.last, Value(_type(b.key), int(b.nbytes),
                                    _line(b.key) or _get(lines, b.first))) for b in blocks]
    change = [0] * (count + 1)
    for first, last, v in held:
        change[first] += v.nbytes
        change[last + 1] -= v.nbytes
    return [MemoryStep(names[k] if k < len(names) else "", nbytes, k, held)
            for k, nbytes in enumerate(accumulate(change[:count]))]


def peak_of(timeline: Sequence[MemoryStep], lines: Sequence[Line | None]) -> Peak | None:
    """The step of a program that needs most; `lines` are those of the steps, where they are known.

    None where nothing is needed, or not known before sizes are.
    """
    if not timeline:
        return None
    step = max(timeline, key=lambda s: s.nbytes)
    # what the step at the peak makes is what brings the memory there
    made = [v.line for first, _, v in step.held if first == step.number]
    values = step.values
    line = next(filter(None, made), None) or _get(lines, step.number) or values[0].line
    return Peak(step.step, step.nbytes, line, values)


def note_reason(note: FusionNote) -> Reason:
    """Why a value is not computed in the kernel of another."""
    return Reason(line_of(note.source), tensor_text(note.tensor), _nbytes(note.tensor),
                  f"is computed apart: {note.reason}", advice_on(note.reason))


def kept_reason(t: Tensor, readers: Sequence[str], is_operand: bool = False,
                is_result: bool = False) -> Reason:
    """That a value goes through memory, since these steps read it.

    It is an operand of a call, or the result of one, where that is known.
    """
    why = (f"is in memory, where {' and '.join(readers)} "
           f"find{'s' * (len(readers) == 1)} it")
    return Reason(line_of(t.source), tensor_text(t), _nbytes(t), why,
                  advice_on_kept(len(readers), is_operand, is_result), tuple(readers))


def _nbytes(t: Tensor) -> Size:
    return t.size * item_size(t.dtype)


def _type(key: object) -> str:
    return tensor_text(key) if isinstance(key, Tensor) else "room of a kernel"


def _line(key: object) -> Line | None:
    return line_of(key.source) if isinstance(key, Tensor) else None


def _get(lines: Sequence[Line | None], k: int) -> Line | None:
    return lines[k] if k < len(lines) else None
