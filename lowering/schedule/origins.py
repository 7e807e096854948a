"""Which equations the steps of a schedule compute."""

from __future__ import annotations

from collections.abc import Iterable

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["equations_of_steps", "members_of"]


def equations_of_steps(graph: Graph, schedule: Schedule) -> list[tuple[Equation, ...]]:
    """The equations of each step; some are computed in several, movements often in none."""
    made: set[Tensor] = {*schedule.stored, *graph.inputs}
    for step in schedule.steps:
        if isinstance(step, Call):
            made.update(step.results)
    found = []
    for step in schedule.steps:
        computed: list[Tensor | Call] = [*_calls(step), *_computed(_roots(step), made)]
        origins = [graph.origins.get(x) for x in computed]
        found.append(tuple(dict.fromkeys([e for e in origins if e is not None])))
    return found


def members_of(step: Step) -> list[Tensor]:
    """The values that the kernels of a step compute."""
    if isinstance(step, Kernel):
        return [m.tensor for m in step.members]
    if isinstance(step, Chain):
        return [t for s in step.steps for t in members_of(s)]
    return members_of(step.kernel) if isinstance(step, FusedGemm) else []


def _calls(step: Step) -> list[Call]:
    if isinstance(step, Chain):
        return [call for s in step.steps for call in _calls(s)]
    return [step] if isinstance(step, Call) else []


def _roots(step: Step) -> list[Tensor]:
    if isinstance(step, Chain):
        return [t for s in step.steps for t in _roots(s)]
    results = list(step.results) if isinstance(step, Call) else []
    product = [step.product] if isinstance(step, FusedGemm) else []
    return [*product, *results, *members_of(step)]


def _computed(roots: Iterable[Tensor], made: set[Tensor]) -> set[Tensor]:
    """Some tensors, and what is computed on the way to them from what is in memory."""
    seen: set[Tensor] = set()
    waiting = list(roots)
    while waiting:
        t = waiting.pop()
        if t not in seen:
            seen.add(t)
            waiting += [x for x in t.operands if x not in made]
    return seen
