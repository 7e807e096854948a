"""Products with rows of a table: one product for each row of the table, where more rows are read.

Messages along the edges of a graph are functions of few nodes, each read for many edges. Rows are
summed before a product instead of after it in the same way. What is exchanged are products and
sums, as in `contractions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation
from functrans.core.record import Record
from functrans.lowering.passes.contractions import Axes, Dims, dot, is_narrow
from functrans.lowering.passes.movement import transpose
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.arithmetic import add_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from functrans.primitives.shape import concatenate_p, slice_p

__all__ = ["GATHERED_ROWS"]

GATHERED_ROWS = RewriteTable("gathered rows")
rule = GATHERED_ROWS.rule

LEAST_SAVED: Final = 1 << 20
"""Multiplications with additions, below which one product is better than two and a gather."""


class _Rows(Record):
    """Rows of a table along its first axis, at `indices` of `lead` axes, which come first."""

    table: Atom
    gather: Equation
    lead: int

    @staticmethod
    def of(r: Rewriter, x: Atom) -> _Rows | None:
        """What a gather reads, if it is whole rows of an array of known sizes."""
        eqn = r.made(x, gather_p)
        if eqn is None or dtypes.kind(x.aval.dtype) != "f":
            return None
        table, indices = eqn.invars
        shape, lead = table.aval.shape, len(indices.aval.shape) - 1
        axes = tuple(range(lead, len(x.aval.shape)))
        whole = GatherDimensionNumbers(axes, (0,), (0,))
        if eqn.params["dimension_numbers"] != whole or indices.aval.shape[-1] != 1 \
                or tuple(eqn.params["slice_sizes"][1:]) != shape[1:] \
                or not all(isinstance(n, int) for n in (*shape, *x.aval.shape)):
            return None
        return _Rows(table, eqn, lead)

    @property
    def count(self) -> int:
        sizes: Any = self.gather.outvars[0].aval.shape[:self.lead]
        return math.prod(sizes)

    @property
    def saved(self) -> int:
        """How many rows fewer the table has; 0 where that are less than half."""
        rows = self.table.aval.shape[0]
        assert isinstance(rows, int)
        return self.count - rows if 2 * rows <= self.count else 0

    def are_filled_with(self, *values: object) -> bool:
        """Whether rows that are not there are clipped to others, or have one of these values."""
        p = self.gather.params
        return p["mode"] is not GatherScatterMode.FILL_OR_DROP or p["fill_value"] in values

    def of_products(self, r: Rewriter, product: Atom, axis: int) -> Atom:
        """The same rows of a product that has those of the table along an axis."""
        shape = product.aval.shape
        count = len(shape) - 1 + self.lead
        offsets = tuple([d for d in range(count) if not axis <= d < axis + self.lead])
        return r(gather_p, product, self.gather.invars[1], **{
            **self.gather.params, "dimension_numbers": GatherDimensionNumbers(
                offsets, (axis,), (axis,)),
            "slice_sizes": tuple([1 if d == axis else n for d, n in enumerate(shape)])})

    def added(self, r: Rewriter, x: Atom) -> Atom:
        """Rows of x, as many as are read, added up for each row of the table."""
        aval = x.aval.with_shape((self.table.aval.shape[0], *x.aval.shape[self.lead:]))
        axes = tuple(range(self.lead, len(x.aval.shape)))
        p = self.gather.params
        return r(scatter_add_p, r.full(0, aval), self.gather.invars[1], x,
                 dimension_numbers=ScatterDimensionNumbers(axes, (0,), (0,)), mode=p["mode"],
                 unique_indices=p["unique_indices"], indices_are_sorted=p["indices_are_sorted"])

    def without_lead(self, axes: Sequence[int]) -> list[int]:
        """Axes of the table, by those of the rows."""
        return [a - self.lead + 1 for a in axes]


class _Side(Record):
    """One operand of a product, and which of its axes are contracted, shared and free."""

    x: Atom
    contracted: Axes
    shared: Axes
    free: Axes
    other: Axes
    """Axes of the other operand, in the order of the contracted ones."""
    is_left: bool

    @staticmethod
    def both(x: Atom, y: Atom, d: Dims) -> tuple[_Side, _Side]:
        return (_Side(x, d.cx, d.bx, d.fx, d.cy, True), _Side(y, d.cy, d.by, d.fy, d.cx, False))

    def product(self, r: Rewriter, eqn: Equation, x: Atom, other: Atom) -> Atom:
        """The product with others in place of both operands, along these axes."""
        d = Dims.of(eqn)
        if self.is_left:
            return dot(r, eqn, x, other, self.contracted, self.other, self.shared, d.by)
        return dot(r, eqn, other, x, self.other, self.contracted, d.bx, self.shared)

    def work(self, eqn: Equation) -> int:
        """Multiplications of each element of the free axes of this operand."""
        size = math.prod(eqn.outvars[0].aval.shape) * math.prod(
            [self.x.aval.shape[a] for a in self.contracted])
        return int(size // max(1, math.prod([self.x.aval.shape[a] for a in self.free])))


def _is_static(eqn: Equation) -> bool:
    return all(isinstance(n, int) for x in (*eqn.invars, *eqn.outvars) for n in x.aval.shape)


# ----------------------------------------------------------------------- rows that are read


def _multiplied(side: _Side, rows: _Rows, eqn: Equation) -> bool:
    """Whether each row is multiplied by the same, and one product for each of the table is less."""
    if not rows.are_filled_with(None, 0) or any(
            a < rows.lead for a in (*side.contracted, *side.shared)):
        return False
    others = math.prod([side.x.aval.shape[a] for a in side.free if a >= rows.lead])
    return rows.saved > 0 and rows.saved * others * side.work(eqn) >= LEAST_SAVED


@rule(dot_general_p, of=gather_p, law="x[i] . y = (x . y)[i] where x has fewer rows")
def product_of_rows(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if not _is_static(eqn):
        return None
    d = Dims.of(eqn)
    for side, other in zip(_Side.both(x, y, d), (y, x), strict=True):
        rows = _Rows.of(r, side.x)
        if rows is not None and _multiplied(side, rows, eqn):
            of_table = replace(side, contracted=tuple(rows.without_lead(side.contracted)),
                               shared=tuple(rows.without_lead(side.shared)))
            axis = len(d.bx) + (0 if side.is_left else len(d.fx))
            return rows.of_products(r, of_table.product(r, eqn, rows.table, other), axis)
    return None


@rule(dot_general_p, of=gather_p, law="x[i]^T . y = x^T . (y added up by i)")
def product_over_rows(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if not _is_static(eqn) or is_narrow(y):
        return None
    for side, other in zip(_Side.both(x, y, Dims.of(eqn)), (y, x), strict=True):
        rows = _Rows.of(r, side.x)
        if rows is None or not _summed(side, rows, eqn):
            continue
        pairs = dict(zip(side.contracted, side.other, strict=True))
        first = [pairs[a] for a in range(rows.lead)]
        moved = transpose(r, other, first + [a for a in range(len(other.aval.shape))
                                             if a not in first])
        of_table = replace(side, contracted=(0,), other=(0,))
        return of_table.product(r, eqn, rows.table, rows.added(r, moved))
    return None


def _summed(side: _Side, rows: _Rows, eqn: Equation) -> bool:
    """Whether a product is summed over all rows, and summing before it is less."""
    if not rows.are_filled_with(0) or side.shared \
            or sorted(side.contracted) != list(range(rows.lead)):
        return False
    return rows.saved > 0 \
        and rows.saved * math.prod(eqn.outvars[0].aval.shape) >= LEAST_SAVED


# ----------------------------------------------------------------------- rows beside others


@rule(dot_general_p, of=concatenate_p, law="[x[i], z] . y = x[i] . y1 + z . y2")
def product_of_joined_rows(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if not _is_static(eqn):
        return None
    d = Dims.of(eqn)
    for side, other in zip(_Side.both(x, y, d), (y, x), strict=True):
        joined = r.made(side.x, concatenate_p)
        if joined is None or is_narrow(side.x):
            continue
        axis = joined.params["dimension"]
        if axis in side.contracted:
            parts = _parts(r, joined, axis, partial(_pays, _multiplied, side, eqn))
            if parts is not None:
                return _added_products(r, eqn, side, other, axis, parts)
        elif axis in side.free:
            parts = _parts(r, joined, axis, partial(_pays, _summed, side, eqn))
            if parts is not None:
                place = len(d.bx) + side.free.index(axis) + (0 if side.is_left else len(d.fx))
                return r(concatenate_p, *[side.product(r, eqn, z, other) for z in parts],
                         dimension=place)
    return None


def _pays(law: Callable[[_Side, _Rows, Equation], bool], side: _Side, eqn: Equation, part: Atom,
          rows: _Rows) -> bool:
    """Whether a law applies to a part of an operand by itself."""
    return law(replace(side, x=part), rows, eqn)


def _parts(r: Rewriter, joined: Equation, axis: int,
           pays: Callable[[Atom, _Rows], bool]) -> list[Atom] | None:
    """What is joined: rows that pay apart, neighbours of others together."""
    found: list[tuple[list[Atom], bool]] = []
    for z in joined.invars:
        rows = _Rows.of(r, z)
        apart = rows is not None and pays(z, rows)
        if found and not apart and not found[-1][1]:
            found[-1][0].append(z)
        else:
            found.append(([z], apart))
    if not any(apart for _, apart in found):
        return None
    return [zs[0] if len(zs) == 1 else r(concatenate_p, *zs, dimension=axis) for zs, _ in found]


def _added_products(r: Rewriter, eqn: Equation, side: _Side, other: Atom, axis: int,
                    parts: list[Atom]) -> Atom:
    along = side.other[side.contracted.index(axis)]
    total: Atom | None = None
    start = 0
    for z in parts:
        stop = start + z.aval.shape[axis]
        part = side.product(r, eqn, z, _sliced(r, other, {along: (start, stop)}))
        total = part if total is None else r(add_p, total, part)
        start = stop
    assert total is not None
    return total


def _sliced(r: Rewriter, x: Atom, ranges: dict[int, tuple[int, int]]) -> Atom:
    shape = x.aval.shape
    bounds = [ranges.get(d, (0, n)) for d, n in enumerate(shape)]
    if all(b == (0, n) for b, n in zip(bounds, shape, strict=True)):
        return x
    return r(slice_p, x, start_indices=tuple([a for a, _ in bounds]),
             limit_indices=tuple([b for _, b in bounds]), strides=(1,) * len(shape))


# ----------------------------------------------------------------------- rows that are added


@rule(scatter_add_p, of=(dot_general_p, slice_p),
      law="(x . y) added up by i = (x added up by i) . y where there are fewer rows")
def added_products(r: Rewriter, eqn: Equation, base: Atom, indices: Atom,
                   updates: Atom) -> Results:
    cut = r.made(updates, slice_p)
    product = r.made(updates if cut is None else cut.invars[0], dot_general_p)
    if product is None or not r.once(updates) or not _is_static(product) or not _is_static(eqn) \
            or (cut is not None and set(cut.params["strides"]) != {1}):
        return None
    lead = len(indices.aval.shape) - 1
    shape, rows = updates.aval.shape, base.aval.shape[0] if base.aval.shape else 0
    d, (x, y) = Dims.of(product), product.invars
    numbers = ScatterDimensionNumbers(tuple(range(lead, len(shape))), (0,), (0,))
    if eqn.params["dimension_numbers"] != numbers or indices.aval.shape[-1] != 1 \
            or tuple(shape[lead:]) != tuple(base.aval.shape[1:]) or d.bx or is_narrow(x) \
            or d.fx[:lead] != tuple(range(lead)) or dtypes.kind(x.aval.dtype) != "f" \
            or x.aval.dtype != base.aval.dtype:
        return None
    if cut is not None:
        ranges = list(zip(cut.params["start_indices"], cut.params["limit_indices"], strict=True))
        x = _sliced(r, x, {d.fx[k]: ranges[k] for k in range(len(d.fx))})
        y = _sliced(r, y, {d.fy[k]: ranges[len(d.fx) + k] for k in range(len(d.fy))})
    count = math.prod(shape[:lead])
    before, after = math.prod(shape[lead:]), math.prod(x.aval.shape[lead:])
    if 2 * rows > count or after > before or \
            (count - rows) * before * math.prod([x.aval.shape[a] for a in d.cx]) < LEAST_SAVED:
        return None
    aval = x.aval.with_shape((rows, *x.aval.shape[lead:]))
    added = r(scatter_add_p, r.full(0, aval), indices, x, **{
        **eqn.params, "dimension_numbers": ScatterDimensionNumbers(
            tuple(range(lead, len(x.aval.shape))), (0,), (0,))})
    total = dot(r, product, added, y, [a - lead + 1 for a in d.cx], d.cy, (), ())
    return total if r.constant(base) == 0 else r(add_p, base, total)
