"""Values that are not computed together with others, where that has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from functrans.core.record import Record
from functrans.lowering.loops.tensor import Call, Stored, Tensor
from functrans.lowering.rules.graph import Graph, live_items
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Domain, Kernel, Member, preferred_loop_nest

__all__ = ["ALL_FUSED", "UnfusedValues", "schedule_without_fusion", "separate_unfused"]


class UnfusedValues(Record):
    """Values that have kernels of their own, products without an epilogue, and why.

    Those that are `stored` are in memory for a kernel that would compute them on the way. Tile
    programs of those that are `tiled` failed so often. Where the `whole` graph is unfused, every
    value has a kernel of its own.
    """

    apart: Mapping[Tensor, str] = field(default_factory=dict)
    products: Mapping[Tensor, str] = field(default_factory=dict)
    stored: Mapping[Tensor, str] = field(default_factory=dict)
    tiled: Mapping[Tensor, int] = field(default_factory=dict)
    whole: bool = False

    def __bool__(self) -> bool:
        return bool(self.apart or self.products or self.stored or self.whole)

    def why(self, tensors: Iterable[Tensor]) -> str:
        """Why some of the tensors are computed apart; nothing where none is."""
        return next((why for t in tensors for known in (self.products, self.apart, self.stored)
                     if (why := known.get(t))), "") if self else ""


ALL_FUSED = UnfusedValues()


def separate_unfused(schedule: Schedule, items: Sequence[Tensor | Call],
                     unfused: UnfusedValues) -> Schedule:
    """The schedule with unfused values in kernels of their own; `items` are those of the graph."""
    if not unfused.apart and not unfused.stored:
        return schedule
    notes = list(schedule.notes)
    stored = {*schedule.stored, *unfused.stored}
    split = [s for s in schedule.steps if isinstance(s, Kernel)
             and any(m.tensor in unfused.apart for m in s.members)]
    for kernel in split:
        stored |= {m.tensor for m in kernel.members}
        notes += [FusionNote(m.tensor, m.tensor.source, f"its kernel cannot be had: {why}")
                  for m in kernel.members if (why := unfused.apart.get(m.tensor))]

    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored

    steps: list[Step] = []
    for step in schedule.steps:
        if not isinstance(step, Kernel):
            steps.append(step)
        elif step in split:
            steps += [_alone(m.tensor, is_stored) for m in step.members]
        else:  # what is known of its expressions may no longer be true
            steps.append(Kernel(step.domain, step.members))
    for t in [x for x in reversed(items) if isinstance(x, Tensor) and x in unfused.stored]:
        readers = [k for k, s in enumerate(steps) if t in _reads(s, is_stored)]
        if readers:
            why = f"a kernel that computes it cannot be had: {unfused.stored[t]}"
            notes.append(FusionNote(t, t.source, why))
            steps.insert(readers[0], _alone(t, is_stored))
    return replace(schedule, steps=steps, stored=stored, notes=notes)


def schedule_without_fusion(graph: Graph) -> Schedule:
    """A kernel for each value of a graph, and all of them in memory."""
    items = [x for x in live_items(graph.items, graph.outputs) if isinstance(x, Call)
             or not isinstance(x.size, int) or x.size]
    read = {x for item in items if isinstance(item, Call) for x in item.operands}
    stored = {t for t in items if isinstance(t, Tensor)
              and (t.shape or t.operands or t in read or t in graph.outputs)}

    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored  # numbers stay in the text

    steps = [x if isinstance(x, Call) else _alone(x, is_stored) for x in items
             if isinstance(x, Call) or x in stored]
    return Schedule(steps, stored)


def _alone(t: Tensor, is_stored: Callable[[Tensor], bool]) -> Kernel:
    """A kernel of one value, over the matrix that suits it; a long line is not in pieces."""
    nest = preferred_loop_nest(t, is_stored)
    domain = nest.domain
    if domain.total is not None and nest.role in ("full", "any_flag"):
        domain = Domain(1, domain.total)
    return Kernel(domain, [Member(t, nest.role)])


def _reads(step: Step, is_stored: Callable[[Tensor], bool]) -> Iterable[Tensor]:
    if isinstance(step, Call):
        return step.operands
    return step.loads(step.builder(is_stored))
