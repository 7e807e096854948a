"""The whole schedule of a graph: kernels, products where they go, their epilogues, chains."""

from __future__ import annotations

from functrans.lowering.graph import Graph
from functrans.lowering.schedule.across import split_sums
from functrans.lowering.schedule.chains import form_chains
from functrans.lowering.schedule.epilogues import fuse_epilogues
from functrans.lowering.schedule.group import Schedule, schedule_of
from functrans.lowering.schedule.placed import place_products
from functrans.lowering.schedule.plain import AS_PLANNED, Plain
from functrans.lowering.schedule.reads import Reads

__all__ = ["plan_of"]


def plan_of(graph: Graph, plain: Plain = AS_PLANNED) -> Schedule:
    """Decide which values are stored, which are computed together, and in what order.

    Some are to be `plain`: each apart from others.
    """
    reads = Reads()
    schedule = schedule_of(graph, reads, plain)
    if plain.whole:
        return schedule
    schedule = place_products(split_sums(schedule), graph.outputs, reads, plain)
    schedule = fuse_epilogues(schedule, graph.outputs, reads, plain=plain)
    return form_chains(schedule, graph.outputs, reads, plain)
