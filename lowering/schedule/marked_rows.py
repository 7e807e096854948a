"""Scatters into a constant that write rows: their results are never filled, rows are marked.

The gradient of a table of embeddings is zeros to which a few rows are added. To fill it and to read
the zeros again costs more than the rows do. So each row of the result has a mark, which the scatter
sets where it writes, and who reads a row without a mark reads the constant instead. The step that
fills the memory is gone, and what was not written is not read.

The variances of an embedding bag's per-sample gradients, 2,560 rows of 64 that go to 419 of 5,000
places, took 2.5 times as long as the gradient of the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import ITEM_SIZES, Call, ScatterTensor, Tensor
from functrans.lowering.schedule.group import MarkedRows, Schedule, Step
from functrans.lowering.schedule.kernel import Domain, Kernel, Reads, accesses

__all__ = ["mark_rows"]

VECTOR = 16
"""Elements of the longest vector: those of one are in one row."""
LEAST_BYTES = 1 << 15
"""Smaller results are filled and read in the first cache."""
LEAST_ROW = 256
"""Bytes of rows that cost as much to fill and to read as a branch that is foreseen wrongly.

p - 0.1 * g of 5,000 rows of 64 float32 takes 24 us for 35 with 100 rows in g, 53 for 63 with 5,000
at random places; of 50,000 rows of 16 with as many, 450 for 216. Where more rows are added than
there are, nearly all are written: 310 for 315 with 40,000."""


def mark_rows(schedule: Schedule, outputs: Collection[Tensor], reads: Reads) -> Schedule:
    """The schedule without the steps that fill what scatters of rows begin with."""
    steps = schedule.steps
    scatters = {m.tensor: step for step in steps if isinstance(step, Kernel)
                for m in step.members if isinstance(m.tensor, ScatterTensor)}
    if not scatters:
        return schedule
    fills = _fills(schedule, {t.base for t in scatters} - {*outputs})
    readers = _readers(steps, schedule, reads, {*fills, *scatters})
    updated = {t.base for t in scatters} | {
        s.updated for s in steps if isinstance(s, Call) and s.updated is not None}
    marked: dict[ScatterTensor, MarkedRows] = {}
    for t, step in scatters.items():
        if t.base not in fills or t in outputs or t in updated or not readers[t]:
            continue
        rows = _rows_of(step, t, schedule, fills[t.base])
        if rows is not None and all(_reads_in_vectors(r, t, schedule) for r in readers[t]):
            marked[t] = rows
    bases = {t.base for t in scatters if t not in marked}
    gone = {base for base in fills if not readers[base] and base not in bases}
    kept: dict[Tensor, MarkedRows] = {t: rows for t, rows in marked.items() if t.base in gone}
    if not kept:
        return schedule
    by_rows = {id(step): kept[t].row for t in kept for step in readers[t]}
    steps = [_by_rows(step, by_rows[id(step)], schedule) if id(step) in by_rows else step
             for step in steps]
    return replace(schedule, steps=list(_without(steps, gone)), marked=kept)


def _fills(schedule: Schedule, bases: Collection[Tensor]) -> dict[Tensor, Any]:
    """The bases that kernels fill with one number, and the number."""
    found = {}
    for step in schedule.steps:
        if not isinstance(step, Kernel):
            continue
        for m in step.members:
            if m.tensor in bases and m.role == "full":
                e = step.element(step.shared(schedule.is_stored), m)
                if e.op == "const":
                    found[m.tensor] = e.aux
    return found


def _readers(steps: Sequence[Step], schedule: Schedule, reads: Reads,
             values: Collection[Tensor]) -> Mapping[Tensor, list[Step]]:
    found: dict[Tensor, list[Step]] = {t: [] for t in values}
    for step in steps:
        for t in reads.of(step, schedule.is_stored):
            if t in found:
                found[t].append(step)
    return found


def _rows_of(kernel: Kernel, t: ScatterTensor, schedule: Schedule, fill: Any) -> MarkedRows | None:
    """The rows of a scatter's result that each row of its kernel writes one of; None if not."""
    (member, *others), d = kernel.members, kernel.domain
    if others or d.total is not None or t.dtype != t.compute or not isinstance(d.row, int) \
            or d.row % VECTOR or not isinstance(t.size, int) or t.size % d.row \
            or t.size * ITEM_SIZES[t.dtype] < LEAST_BYTES \
            or d.row * ITEM_SIZES[t.dtype] < LEAST_ROW \
            or not isinstance(d.rows, int) or d.rows > t.size // d.row:
        return None
    s = kernel.builder(schedule.is_stored)
    place, condition = kernel.target(s, member)
    i = kernel.i
    if place.coefficient(i) != 1 or (condition is not None and condition.depends_on(i)):
        return None
    rest = _without_variable(place, i)
    if rest.depends_on(i) or not _is_multiple(rest, d.row):
        return None
    return MarkedRows(d.row, t.size // d.row, fill)


def _reads_in_vectors(step: Step, t: Tensor, schedule: Schedule) -> bool:
    """Whether a step reads a value by vectors that begin at multiples of their length."""
    if not isinstance(step, Kernel) or any(m.role == "scatter" for m in step.members):
        return False
    row, i = step.domain.row, step.i
    if row != 1 and (not isinstance(row, int) or row % VECTOR):
        return False
    s = step.builder(schedule.is_stored)
    exprs = s.reachable(step.all_expressions(s))
    if s.undecided:  # the loop over a row may be cut anywhere
        return False
    for e in exprs:
        if e.op != "load":
            continue
        of, place = e.aux
        rest = _without_variable(place, i)
        if rest.depends_on(i) or place.coefficient(i) not in (0, 1):
            return False  # gathers, and tiles that are turned round
        if of is t and place.depends_on(i) and not _is_multiple(rest, VECTOR):
            return False
    return True


def _by_rows(step: Step, row: int, schedule: Schedule) -> Step:
    """A kernel over a line of elements as one over rows, whose marks are looked at once."""
    assert isinstance(step, Kernel)
    size = step.domain.size
    if step.domain.total is None or not isinstance(size, int) or size % row or any(
            m.role != "full" for m in step.members):
        return step
    s = step.shared(schedule.is_stored)
    places = {place for of, place in accesses(step.all_expressions(s)) if place.terms}
    return Kernel(Domain(size // row, row), step.members) \
        if places <= {step.places["full"]} else step


def _without_variable(index: Index, i: LoopVar) -> Index:
    return Index({a: c for a, c in index.terms.items() if a is not i}, index.const)


def _is_multiple(index: Index, n: int) -> bool:
    return all(isinstance(c, int) and c % n == 0 for c in (*index.terms.values(), index.const))


def _without(steps: Iterable[Step], gone: Collection[Tensor]) -> Iterable[Step]:
    """The steps without members that nobody reads any more."""
    for step in steps:
        if not isinstance(step, Kernel) or not any(m.tensor in gone for m in step.members):
            yield step
        elif kept := [m for m in step.members if m.tensor not in gone]:
            yield Kernel(step.domain, kept)
