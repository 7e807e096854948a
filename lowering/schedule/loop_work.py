"""The arithmetic of loops: that of an iteration, counted as kernels count theirs, times iterations.

What decides itself when it ends is counted for one iteration.
"""

from __future__ import annotations

from functools import lru_cache

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.record import Record
from functrans.lowering.loops.tensor import Branch, Call, ScanLoop, WhileLoop
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule.group import schedule_of
from functrans.lowering.schedule.show import flops_of

__all__ = ["LoopWork", "work_of_call", "work_of_jaxpr"]


class LoopWork(Record):
    """Operations, and whether they are those of one iteration of a loop of unknown length."""

    flops: Size = 0
    per_iteration: bool = False

    def __add__(self, other: LoopWork) -> LoopWork:
        return LoopWork(self.flops + other.flops, self.per_iteration or other.per_iteration)

    def __mul__(self, count: Size) -> LoopWork:
        return LoopWork(self.flops * count, self.per_iteration)


def work_of_call(call: Call) -> LoopWork:
    """The arithmetic of a loop, a branch or a region of loops; nothing of other calls.

    Of the branches of a choice it is that of the one that has most.
    """
    if isinstance(call, ScanLoop):
        return work_of_jaxpr(call.body) * call.length
    if isinstance(call, WhileLoop):
        once = work_of_jaxpr(call.predicate) + work_of_jaxpr(call.body)
        return LoopWork(once.flops, True)
    if isinstance(call, Branch):
        return max(map(work_of_jaxpr, call.branches), key=_count)
    eqn = getattr(call, "eqn", None)
    return _work_of_loop(eqn) if call.over_lanes and eqn is not None else LoopWork()


@lru_cache(maxsize=256)
def work_of_jaxpr(jaxpr: Jaxpr) -> LoopWork:
    """The arithmetic of a program, loops in it included."""
    graph = graph_of(jaxpr)
    schedule = schedule_of(graph)
    found = LoopWork()
    for step in schedule.steps:
        found = found + LoopWork(flops_of(step, schedule.is_stored))
        if isinstance(step, Call):
            found = found + work_of_call(step)
    return found


def _work_of_loop(eqn: Equation) -> LoopWork:
    """The arithmetic of an equation that is a loop over lanes, or a region of such."""
    bodies = eqn.params.get("branches")
    if bodies is not None:
        return max(map(work_of_jaxpr, bodies), key=_count)
    if "length" in eqn.params:
        length: Size = eqn.params["length"]
        return work_of_jaxpr(eqn.params["jaxpr"]) * length
    once = work_of_jaxpr(eqn.params["cond_jaxpr"]) + work_of_jaxpr(eqn.params["body_jaxpr"])
    return LoopWork(once.flops, True)


def _count(work: LoopWork) -> float:
    return float(work.flops) if isinstance(work.flops, int) else 0.0
