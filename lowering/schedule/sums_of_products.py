"""Sums of several products of matrices as one call, which adds them up in one accumulator.

Where a weight is used several times its gradient is a sum of many products of the same shape: by
higher derivatives, in unrolled recurrences, as tied embeddings. Each of them would be a launch with
a sum that programs share, and a launch that combines it. A recurrent cell has sums of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from functrans.lowering.loops.tensor import Gemm, Map, Stored, Tensor, item_size
from functrans.lowering.passes.sums_of_products import MOST_TERMS, SHORTEST
from functrans.lowering.rules.graph import Graph, live_items
from functrans.lowering.schedule.chains import tensors_of
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, Reads
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.schedule.tile_costs import rate_of
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues
from functrans.primitives.arithmetic import add_p
from functrans.primitives.precision import resolved_precision

__all__ = ["sum_products"]

SMALL, MANY = 64, 256
"""Sizes of matrices of a stack that has kernels of its own, and how many it has at least."""
LEAST_GAIN = 0.05
"""Of the time of the products: what launches of their own cost. Large products gain nothing."""
MOST_KEPT = 1 << 28
"""Bytes of operands that stay in memory until the last product of a sum is computed."""


def sum_products(schedule: Schedule, graph: Graph, reads: Reads, target: Target = HOPPER,
                 unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule with sums of products as calls of their own where they are estimated to pay."""
    products = {s.results[0]: s for s in schedule.steps if type(s) is Gemm and _is_known(s)}
    for total, (terms, inner) in _sums(graph, products).items():
        calls = [products[t] for t in terms]
        if total not in unfused.apart and _pays(calls, schedule.steps, reads, schedule,
                                                      target):
            schedule = _with_sum(schedule, total, calls, {*terms, *inner}, reads)
    return schedule


def _is_known(gemm: Gemm) -> bool:
    f = gemm.fields
    return all(isinstance(n, int) for n in (*f.values(), gemm.a_offset, gemm.b_offset)) \
        and f["k"] >= SHORTEST and len({t.dtype for t in gemm.operands}) == 1 \
        and not (max(f["m"], f["n"]) <= SMALL and f["batch0"] * f["batch1"] >= MANY)


def _sums(graph: Graph, products: Mapping[Tensor, Gemm]
          ) -> dict[Tensor, tuple[list[Tensor], list[Tensor]]]:
    """The largest sums of products that nothing else reads: their terms, and sums of some terms."""
    items = live_items(graph.items, graph.outputs)
    uses = Counter(x for item in items for x in item.operands)
    uses.update(graph.outputs)
    found: dict[Tensor, tuple[list[Tensor], list[Tensor]]] = {}
    for item in items:
        if not isinstance(item, Map) or not _is_addition(item, graph):
            continue
        parts = [found.get(x, ([x], [])) for x in item.operands]
        terms = [t for part, _ in parts for t in part]
        if all(uses[x] == 1 for x in item.operands) and len(terms) <= MOST_TERMS \
                and all(t in products for t in terms) \
                and len({_key(products[t]) for t in terms}) == 1:
            inner = [x for x in item.operands if x in found]
            found[item] = terms, [*inner, *[t for _, made in parts for t in made]]
            for x in inner:
                del found[x]
    return found


def _is_addition(item: Map, graph: Graph) -> bool:
    origin = graph.origins.get(item)
    return origin is not None and origin.primitive is add_p and len(item.operands) == 2 \
        and all(x.shape == item.shape and x.dtype == item.dtype for x in item.operands)


def _key(gemm: Gemm) -> object:
    """What products of one sum have in common: all but the contracted size and some strides."""
    f = gemm.fields
    same = tuple([f[name] for name in ("batch0", "batch1", "m", "n", "c_batch0", "c_batch1",
                                       "c_row", "c_col")])
    near = tuple([f[name] == 1 for name in ("a_row", "a_col", "b_row", "b_col")])
    return (same, near, gemm.operands[0].dtype, resolved_precision(gemm.precision))


# --------------------------------------------------------------------------- what is gained


def _pays(calls: Sequence[Gemm], steps: Sequence[Step], reads: Reads, schedule: Schedule,
          target: Target) -> bool:
    """Whether launches are worth what is kept in memory for the last one."""
    figures = target.measured
    saved = (len(calls) - 1) * figures.launch
    alone = sum(_nanoseconds(c, target) for c in calls)
    return saved >= LEAST_GAIN * alone and _kept(calls, steps, reads, schedule) <= MOST_KEPT


def _nanoseconds(call: Gemm, target: Target) -> float:
    figures, work = target.measured, call.multiplications
    assert isinstance(work, int)
    rate = figures.rates[rate_of(call)] * target.multiprocessors
    return figures.launch + max(2 * work / rate, figures.byte * sum(
        map(_nbytes, (*call.operands, *call.results))))


def _kept(calls: Sequence[Gemm], steps: Sequence[Step], reads: Reads, schedule: Schedule) -> int:
    """The bytes of operands that nothing would read after the products as they are."""
    places = [steps.index(c) for c in calls]
    operands = {t for c in calls for t in c.operands}
    after = {t for s in steps[max(places) + 1:] for t in reads.of(s, schedule.is_stored)}
    made = {t for s in steps for t in tensors_of(s)}
    last = steps[max(places)]
    assert isinstance(last, Gemm)
    return sum(_nbytes(t) for t in operands - after - {*last.operands} if t in made)


def _nbytes(t: Tensor) -> int:
    return t.size * item_size(t.dtype) if isinstance(t.size, int) else 0


# --------------------------------------------------------------------------- the schedule


def _with_sum(schedule: Schedule, total: Tensor, calls: Sequence[Gemm], gone: set[Tensor],
              reads: Reads) -> Schedule:
    """The schedule with one call for products and their sum; as it is where that cannot be.

    The call comes in the place of the last product. Of kernels that add products up what is left
    reads the sum.
    """
    stored = {*schedule.stored - gone, total}

    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored

    last = max(calls, key=schedule.steps.index)
    first, *others = calls
    steps: list[Step] = []
    for step in schedule.steps:
        if step is last:
            steps.append(first.plus(others, total))
        if step in calls:
            continue
        made = {total, *gone}.intersection(tensors_of(step))
        if not made and gone.isdisjoint(reads.of(step, schedule.is_stored)):
            steps.append(step)
            continue
        if not isinstance(step, Kernel):
            return schedule
        rest = [m for m in step.members if m.tensor not in made]
        if rest:
            kernel = Kernel(step.domain, rest)
            if not gone.isdisjoint(kernel.loads(kernel.builder(is_stored))):
                return schedule
            steps.append(kernel)
    return replace(schedule, steps=steps, stored=stored)
