"""The memory of a program: what is in one place, and from which step to which it is needed."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

from functrans.core.record import Record
from functrans.lowering.memory.aliasing import NONE_TOGETHER, Aliases, Donated, aliases_of
from functrans.lowering.memory.liveness import updates_of, uses_of
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["MemoryPlan", "plan_memory"]


class MemoryPlan(Record, eq=False):
    """The aliases of a program, and the live ranges of its temporaries.

    `ranges` are the first and last step that access a buffer, both included, in order of first
    access; `uses` all steps that do.
    """

    aliases: Aliases
    ranges: dict[Any, tuple[int, int]]
    uses: dict[Any, list[int]]


def plan_memory(graph: Graph, schedule: Schedule, operands: Sequence[Collection[Any]],
                donated: Donated, placed: Container[Any],
                together: Mapping[int, Sequence[Kernel]] = NONE_TOGETHER,
                by_rows: bool = False) -> MemoryPlan:
    """The memory of a program whose steps access `operands`.

    Those that are `placed` have memory already. Temporaries in one place have one range, that of
    what they become; outputs among the others live until the end. Some steps compute several
    kernels `together`, at one time; `by_rows`, see `aliases_of`.
    """
    updates = updates_of(schedule.steps, operands)
    uses = uses_of(operands, updates)
    aliases = aliases_of(graph, schedule, updates, uses, donated, together, by_rows)
    ranges: dict[Any, tuple[int, int]] = {}
    for t, steps in uses.items():
        place = aliases.place_of(t)
        if place not in placed:
            first, last = ranges.get(place, (steps[0], steps[-1]))
            ranges[place] = min(first, steps[0]), max(last, steps[-1])
    for t in graph.outputs:
        if t in ranges:
            ranges[t] = ranges[t][0], len(operands)
    return MemoryPlan(aliases, ranges, uses)
