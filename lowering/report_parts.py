"""What reports of several backends have in common: laws, equations by step, temporaries, peaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.source import Source
from functrans.lowering.analysis import memory_of
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.memory.arena import Block
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rematerialize import Residual
from functrans.lowering.passes.rewrite import Change
from functrans.lowering.report import (
    KernelReport,
    Law,
    Line,
    Peak,
    Report,
    TracedProgram,
    Value,
    line_of,
)
from functrans.lowering.schedule.group import FusionNote
from functrans.lowering.schedule.show import tensor_text

if TYPE_CHECKING:
    from functrans.lowering.executable import Executable

__all__ = ["computes_nothing", "decision_texts", "kept_text", "laws_of", "note_text",
           "numbers_of_steps", "peak_of", "report_as_a_whole", "report_without_code", "sources_of"]


def report_as_a_whole(traced: TracedProgram, executable: Executable) -> Report:
    """What every executable tells: one step, with its text and its cost."""
    jaxpr = traced.jaxpr
    lines = tuple(dict.fromkeys(x for e in jaxpr.eqns if (x := line_of(e.source)) is not None))
    cost, text = executable.cost_analysis(), executable.as_text()
    step = KernelReport(jaxpr.name, "program", tuple(range(len(jaxpr.eqns))), lines, "",
                        cost.get("flops", 0), cost.get("bytes accessed", 0), traced.backend,
                        jaxpr.name, text)
    return Report(traced.name, traced.backend, jaxpr, jaxpr, traced.inputs, [], [step], [], [], [],
                  executable.memory_analysis(), None, text)


def report_without_code(traced: TracedProgram, is_sized: bool) -> Report:
    """A program without code of its own: it has no equations, or NumPy evaluates it.

    One that `is_sized` is compiled for each set of its sizes.
    """
    decisions: list[Decision] = []
    simplified = simplify(traced.jaxpr, decisions=decisions)
    target = "nothing to compute" if not simplified.eqns else \
        "compiled once its sizes are known" if is_sized and simplified.size_names else "NumPy"
    return Report(traced.name, target, traced.jaxpr, simplified, traced.inputs,
                  laws_of(traced.jaxpr), [], decision_texts(decisions), [], [],
                  memory_of(simplified), None)


def computes_nothing(jaxpr: Jaxpr) -> bool:
    """Whether the results of a program are its inputs, or constants."""
    return not simplify(jaxpr).eqns


def laws_of(jaxpr: Jaxpr) -> list[Law]:
    """The laws that the passes applied, in the order of their first use."""
    log: list[Change] = []
    simplify(jaxpr, log=log)
    found: dict[tuple[str, str], list[Line | None]] = {}
    for change in log:
        found.setdefault((change.table, change.law), []).append(line_of(change.source))
    return [Law(table, law, len(lines), tuple(dict.fromkeys([x for x in lines if x])))
            for (table, law), lines in found.items()]


def decision_texts(decisions: Sequence[Decision]) -> list[str]:
    """What was decided on the values of networks, with the lines that asked for them."""
    found = []
    for d in decisions:
        line = line_of(d.source)
        place = f"{line}: " if line else ""
        found.append(place + str(d._replace(source=None)))
    return found


def residual_texts(residuals: Sequence[Residual]) -> list[str]:
    """What was decided on values that are needed late, equal ones once."""
    lines = [(line_of(r.source), r) for r in residuals]
    return list(dict.fromkeys(f"{line}: {r}" if line else str(r) for line, r in lines))


def numbers_of_steps(jaxpr: Jaxpr, steps: Sequence[Iterable[Equation]]) -> list[tuple[int, ...]]:
    """The numbers of the equations of each step.

    Equations of no step, movements that became index arithmetic, go to the steps of their readers.
    """
    numbers = {eqn: k for k, eqn in enumerate(jaxpr.eqns)}
    owners: dict[int, set[int]] = {}
    for k, equations in enumerate(steps):
        for eqn in equations:
            if eqn in numbers:
                owners.setdefault(numbers[eqn], set()).add(k)
    readers: dict[Var, set[int]] = {}
    for number in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[number]
        if number not in owners:
            owners[number] = set().union(*[readers.get(v, set()) for v in eqn.outvars])
        for v in eqn.invars:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(owners[number])
    return [tuple(sorted(e for e, at in owners.items() if k in at)) for k in range(len(steps))]


def sources_of(jaxpr: Jaxpr, equations: Iterable[int]) -> list[Source]:
    """Where the user asked for some equations, in order, each once."""
    found = [jaxpr.eqns[e].source for e in equations]
    return list(dict.fromkeys([s for s in found if s is not None]))


def peak_of(blocks: Sequence[Block[Any]], names: Sequence[str],
            lines: Sequence[Line | None]) -> Peak | None:
    """The peak of an arena; `names` and `lines` are those of the steps, where they are known.

    None where nothing is needed, or not known before sizes are.
    """
    if not blocks or not all(isinstance(b.nbytes, int) for b in blocks):
        return None
    steps = range(1 + max(b.last for b in blocks))
    live = [sum(int(b.nbytes) for b in blocks if b.first <= k <= b.last)
            for k in steps]
    k = max(steps, key=live.__getitem__)
    values = [Value(_type(b.key), int(b.nbytes), _line(b.key) or _get(lines, b.first))
              for b in blocks if b.first <= k <= b.last]
    values.sort(key=lambda v: -v.nbytes)
    # what the step at the peak makes is what brings the memory there
    made = [_line(b.key) for b in blocks if b.first == k]
    line = next(filter(None, made), None) or _get(lines, k) or values[0].line
    name = names[k] if k < len(names) else ""
    return Peak(name, live[k], line, tuple(values))


def note_text(note: FusionNote) -> str:
    """Why a value is not computed in the kernel of another."""
    line = line_of(note.source)
    place = f"{line}: " if line else ""
    return f"{place}{tensor_text(note.tensor)} is computed apart: {note.reason}"


def kept_text(t: Tensor, readers: Sequence[str]) -> str:
    """That a value goes through memory, since these steps read it."""
    line = line_of(t.source)
    place = f"{line}: " if line else ""
    return (f"{place}{tensor_text(t)} is in memory, where {' and '.join(readers)} "
            f"find{'s' * (len(readers) == 1)} it")


def _type(key: object) -> str:
    return tensor_text(key) if isinstance(key, Tensor) else "room of a kernel"


def _line(key: object) -> Line | None:
    return line_of(key.source) if isinstance(key, Tensor) else None


def _get(lines: Sequence[Line | None], k: int) -> Line | None:
    return lines[k] if k < len(lines) else None
