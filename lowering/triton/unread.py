"""Kernels whose results nobody reads: a loop reads what they would have moved where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from functrans.lowering.loops.tensor import Call, Map, ScatterTensor, Stored, Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.triton.kernels.kernel_source import KernelOperand, KernelSource, Launches
from functrans.lowering.triton.loops.iterations import ScanCall, WhileCall
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.shape import reshape_p, slice_p

__all__ = ["accessed_by", "is_read_through", "without_unread"]

Written = list[list[KernelSource] | Call]
IN_ORDER = frozenset({reshape_p, broadcast_in_dim_p, full_p, slice_p})
"""Movements whose elements are read in the order in which they are."""


def is_read_through(t: Tensor, graph: Graph, schedule: Schedule) -> bool:
    """Whether the elements of a value are those of values in memory, or of none."""
    if isinstance(t, Stored) or not isinstance(t, Map) or t.weight:
        return False
    eqn = graph.origins.get(t)
    if (eqn is None and t.operands) or (eqn is not None and eqn.primitive not in IN_ORDER):
        return False
    return all(schedule.is_stored(x) or is_read_through(x, graph, schedule) for x in t.operands)


def accessed_by(call: Call, calls: Mapping[Call, Launches]) -> list[KernelOperand]:
    """The buffers that a call accesses; a loop that is one kernel those that this reads."""
    known = calls.get(call)
    if known is not None and isinstance(call, (ScanCall, WhileCall, LaneLoop)):
        return [*known.touched, *call.results]
    return [*call.operands, *call.results, *(() if known is None else known.touched)]


def without_unread(schedule: Schedule, written: Written, calls: Mapping[Call, Launches],
                   outputs: Sequence[Tensor]) -> tuple[Schedule, Written]:
    """The steps, and what was written of each, without kernels whose results nobody reads."""
    steps = list(zip(schedule.steps, written, strict=True))
    if not any(isinstance(call, (ScanCall, WhileCall, LaneLoop)) for call in calls):
        return schedule, written
    while True:
        read: dict[KernelOperand, int] = dict.fromkeys(outputs, 2)
        for step, launches in steps:
            accessed = accessed_by(launches, calls) if isinstance(launches, Call) \
                else dict.fromkeys(t for w in launches for t in w.operands)
            for t in (*accessed, *_updated_by(step)):
                read[t] = read.get(t, 0) + 1
        kept = [(step, launches) for step, launches in steps if not isinstance(step, Kernel) or any(
            read.get(m.tensor, 0) > 1 for m in step.members if schedule.is_stored(m.tensor))]
        if len(kept) == len(steps):
            break
        steps = kept
    return replace(schedule, steps=[step for step, _ in steps]), [w for _, w in steps]


def _updated_by(step: Step) -> list[Tensor]:
    """What a kernel replaces elements of, in place: it does not say that it reads the others."""
    members = step.members if isinstance(step, Kernel) else []
    return [m.tensor.base for m in members if isinstance(m.tensor, ScatterTensor)]
