"""The whole schedule of a graph: kernels, then epilogues of products, then chains."""

from __future__ import annotations

from functrans.lowering.graph import Graph
from functrans.lowering.schedule.chains import form_chains
from functrans.lowering.schedule.epilogues import fuse_epilogues
from functrans.lowering.schedule.group import Schedule, schedule_of

__all__ = ["plan_of"]


def plan_of(graph: Graph) -> Schedule:
    """Decide which values are stored, which are computed together, and in what order."""
    schedule = fuse_epilogues(schedule_of(graph), graph.outputs)
    return form_chains(schedule, graph.outputs)
