"""The whole schedule of a graph: kernels, products where they go, their epilogues, chains."""

from __future__ import annotations

from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.chains import form_chains
from functrans.lowering.schedule.epilogues import fuse_epilogues
from functrans.lowering.schedule.group import Schedule, schedule_of
from functrans.lowering.schedule.product_layouts import absorb_product_transposes
from functrans.lowering.schedule.reads import Reads
from functrans.lowering.schedule.transposed_reads import split_row_sums
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["plan_of"]


def plan_of(graph: Graph, plain: UnfusedValues = ALL_FUSED) -> Schedule:
    """Decide which values are stored, which are computed together, and in what order.

    Some are to be `plain`: each apart from others.
    """
    reads = Reads()
    schedule = schedule_of(graph, reads, plain)
    if plain.whole:
        return schedule
    schedule = absorb_product_transposes(split_row_sums(schedule), graph.outputs, reads, plain)
    schedule = fuse_epilogues(schedule, graph.outputs, reads, plain=plain)
    return form_chains(schedule, graph.outputs, reads, plain)
