"""The plan of each target: what is done with a program on its way to kernels, pass by pass.

All programs are simplified first (`passes/pipeline.py`). A plan then has passes over programs, for
what its kernels compute in another way; the rules of primitives make a graph of what is left, and
passes over graphs and over schedules follow. A schedule says which values are in memory, and which
are computed together: a backend only writes its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.passes.attention.recognize import recognize_attention
from functrans.lowering.passes.few_features import few_features_as_products
from functrans.lowering.passes.if_conversion import convert_conds_to_selects, merge_small_conditions
from functrans.lowering.passes.indexing import (
    rewrite_row_gather_as_one_hot,
    sort_combining_scatters,
    sum_scatters_to_few_rows,
)
from functrans.lowering.passes.known_dtypes import with_known_dtypes
from functrans.lowering.passes.lane_results import take_lanes_together_after_loops
from functrans.lowering.passes.lane_sums import sum_lanes_after_loops
from functrans.lowering.passes.pipeline import ALL_RULES, simplify_with
from functrans.lowering.passes.sums_of_products import group_products
from functrans.lowering.passes.triangular_products import is_faster_by_products, solve_by_products
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.attention_layouts import absorb_attention_transposes
from functrans.lowering.schedule.chains import form_chains
from functrans.lowering.schedule.contiguous_operands import copy_operands_contiguous
from functrans.lowering.schedule.epilogue_costs import slower_on_cpus, slower_on_gpus
from functrans.lowering.schedule.epilogues import absorb_product_transposes, fuse_epilogues
from functrans.lowering.schedule.group import Schedule, schedule_of
from functrans.lowering.schedule.kernel import Kernel, Reads
from functrans.lowering.schedule.marked_rows import mark_rows
from functrans.lowering.schedule.recompute import recompute
from functrans.lowering.schedule.split_reductions import (
    fuse_transposed_column_sums,
    split_row_sums,
    split_scattered_reads,
    split_small_reductions,
    split_transposed_reads,
)
from functrans.lowering.schedule.sums_of_products import sum_products
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.schedule.tile_programs import form_tile_programs
from functrans.lowering.schedule.unfused import (
    ALL_FUSED,
    UnfusedValues,
    schedule_without_fusion,
    separate_unfused,
)

if TYPE_CHECKING:
    from functrans.lowering.schedule.schedule_log import ScheduleLog

__all__ = ["CPU", "GPU", "GPU_OF_ALL_SIZES", "Plan", "SchedulePass", "Scope"]


class Scope(Record, eq=False):
    """What a pass over schedules knows besides the schedule."""

    graph: Graph
    unfused: UnfusedValues = ALL_FUSED
    target: Target = HOPPER
    """Of programs for GPUs."""
    reads: Reads = field(default_factory=Reads)
    """What steps read, as long as they are not changed."""


ProgramPass = Callable[[Jaxpr, Target], Jaxpr]
GraphPass = Callable[[Graph, Target], Graph]
SchedulePass = Callable[[Schedule, Scope], Schedule]


class Plan(Record):
    """Passes by name, in order. Those of `programs` are made once, the others for every graph.

    Those of `algebra` come first, before operations are left to libraries.
    """

    programs: Mapping[str, ProgramPass]
    graphs: Mapping[str, GraphPass]
    schedules: Mapping[str, SchedulePass]
    algebra: Mapping[str, ProgramPass] = field(default_factory=dict)
    in_any_order: bool = False
    """Whether kernels of several values read memory in any order, see `schedule_of`."""

    def simplified(self, jaxpr: Jaxpr, target: Target = HOPPER) -> Jaxpr:
        """A simplified program in the operations that are fastest on the target."""
        for change in self.algebra.values():
            changed = change(jaxpr, target)
            jaxpr = jaxpr if changed is jaxpr else simplify_with(ALL_RULES, changed)
        return jaxpr

    def program(self, jaxpr: Jaxpr, target: Target = HOPPER) -> Jaxpr:
        """A simplified program as the rules of the target take it."""
        for change in self.programs.values():
            jaxpr = change(jaxpr, target)
        return jaxpr

    def schedule(self, graph: Graph, unfused: UnfusedValues = ALL_FUSED,
                 target: Target = HOPPER, log: ScheduleLog | None = None) -> tuple[Graph, Schedule]:
        """The graph after its passes, and what of it is stored and computed together.

        A `log` gets each decision.
        """
        for name, transform in self.graphs.items():
            before, graph = graph, transform(graph, target)
            if log is not None:
                log.changed_graph(name, before, graph)
        if unfused.whole:
            return graph, schedule_without_fusion(graph)
        scope = Scope(graph, unfused, target)
        schedule = schedule_of(graph, scope.reads, self.in_any_order, log)
        for name, change in self.schedules.items():
            old, schedule = schedule, change(schedule, scope)
            if schedule.stored != old.stored:
                scope = replace(scope, reads=Reads())
            if log is not None:
                log.changed_schedule(name, old, schedule)
        _check_order(schedule, scope.reads)
        return graph, schedule

    def without(self, name: str) -> Plan:
        """The plan without a pass over graphs."""
        return replace(self, graphs={n: run for n, run in self.graphs.items() if n != name})

    def with_attention_in_place(self) -> Plan:
        """The plan with attention only where kernels write its results as the program has them."""
        return replace(self, graphs={**self.graphs, "attention": _attention_in_place})


def _check_order(schedule: Schedule, reads: Reads) -> None:
    """Raise AssertionError, a defect, where a step reads what a later one computes."""
    made: dict[Tensor, int] = {}
    for k, step in enumerate(schedule.steps):
        results = [m.tensor for m in step.members] if isinstance(step, Kernel) else step.results
        made.update(dict.fromkeys(results, k))
    for k, step in enumerate(schedule.steps):
        for t in reads.of(step, schedule.is_stored):
            if made.get(t, k) > k:
                raise AssertionError(f"{t} is computed by step {made[t]} and read by step {k}")


def _attention(graph: Graph, target: Target) -> Graph:
    return recognize_attention(graph, placed=False)


def _attention_in_place(graph: Graph, target: Target) -> Graph:
    return recognize_attention(graph, placed=True)


def _by_products(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    known = target.measured
    return solve_by_products(jaxpr, partial(
        is_faster_by_products, row=known.triangular_row, rate=known.triangular_rate,
        launch=known.launch, product_rate=known.triangular_product_rate, byte=known.byte))


def _unfused(schedule: Schedule, scope: Scope) -> Schedule:
    return separate_unfused(schedule, scope.graph.items, scope.unfused)


def _absorbed_by_attention(schedule: Schedule, scope: Scope) -> Schedule:
    return absorb_attention_transposes(schedule, scope.graph.outputs)


def _absorbed(schedule: Schedule, scope: Scope) -> Schedule:
    return absorb_product_transposes(schedule, scope.graph.outputs, scope.reads, scope.unfused)


def _recomputed(schedule: Schedule, scope: Scope) -> Schedule:
    return recompute(schedule, scope.graph.outputs, scope.reads, scope.target)


def _in_tiles(schedule: Schedule, scope: Scope) -> Schedule:
    return form_tile_programs(schedule, scope.graph.outputs, scope.reads, scope.target,
                              scope.unfused)


def _summed(schedule: Schedule, scope: Scope) -> Schedule:
    return sum_products(schedule, scope.graph, scope.reads, scope.target, scope.unfused)


def _with_epilogues(schedule: Schedule, scope: Scope) -> Schedule:
    return fuse_epilogues(schedule, scope.graph.outputs, scope.reads,
                          partial(slower_on_gpus, target=scope.target), scope.unfused,
                          of_convolutions=True)


CPU: Final = Plan(programs={}, graphs={}, schedules={
    "sums along rows apart from transposed reads": lambda s, scope: split_row_sums(s),
    "what failed apart": _unfused,
    "transposes absorbed by products": _absorbed,
    "epilogues of products": lambda s, scope: fuse_epilogues(
        s, scope.graph.outputs, scope.reads, slower_on_cpus, scope.unfused),
    "chains of steps over blocks of rows": lambda s, scope: form_chains(
        s, scope.graph.outputs, scope.reads, scope.unfused),
    "rows that scatters do not write": lambda s, scope: mark_rows(
        s, scope.graph.outputs, scope.reads),
})

GPU: Final = Plan(
    in_any_order=True,
    algebra={"triangular systems as products with an inverse": _by_products},
    programs={
        "dtypes that kernels have": lambda p, _: with_known_dtypes(p),
        "cheap conds to selects": lambda p, target: convert_conds_to_selects(
            p, target.measured.host_step_flops, target.measured.host_step_bytes),
        "gathers of rows to one-hot products": lambda p, _: rewrite_row_gather_as_one_hot(p),
        "convolutions of few features to products": lambda p, target: few_features_as_products(
            p, target.measured.bandwidth, target.measured.again, target.measured.launch),
        "scatters to few rows to sums": lambda p, target: sum_scatters_to_few_rows(
            p, target.measured.atomic, target.measured.compared_addition, target.measured.launch),
        "combining scatters to sorted ones": lambda p, _: sort_combining_scatters(p),
        "conditions on small results merged": lambda p, _: merge_small_conditions(p),
        "sums over lanes after loops": lambda p, _: sum_lanes_after_loops(p),
        "lanes taken together after loops": lambda p, _: take_lanes_together_after_loops(p),
        "products that are added up next to each other": lambda p, _: group_products(p),
    },
    graphs={
        "attention": _attention,
        "operands of products contiguous along the sum": copy_operands_contiguous,
    },
    schedules={
        "values recomputed by their readers": _recomputed,
        "reductions apart from transposed reads": lambda s, scope: split_transposed_reads(s),
        "members that read across memory apart": lambda s, scope: split_scattered_reads(
            s, scope.target.measured.small),
        "small reductions apart": lambda s, scope: split_small_reductions(s, scope.target),
        "what failed apart": _unfused,
        "small steps over one axis as tile programs": _in_tiles,
        "sums of products as one": _summed,
        "transposes absorbed by attention": _absorbed_by_attention,
        "transposes absorbed by products": _absorbed,
        "epilogues of products": _with_epilogues,
        "sums of columns with transposed reads": lambda s, scope: s if scope.unfused.apart
        else fuse_transposed_column_sums(s, scope.reads),
    })

GPU_OF_ALL_SIZES: Final = Plan(
    in_any_order=True,
    programs=GPU.programs, graphs=GPU.graphs,
    schedules={
        "values recomputed by their readers": _recomputed,
        "reductions apart from transposed reads": lambda s, scope: split_transposed_reads(
            s, in_tiles=False),
        "what failed apart": _unfused,
        "transposes absorbed by attention": _absorbed_by_attention,
        "transposes absorbed by products": _absorbed,
        "epilogues of products": _with_epilogues,
    })
"""Of kernels that all sizes share, and of phases of a kernel that walks a loop."""
