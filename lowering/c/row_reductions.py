"""Reductions along a row: accumulators in registers, combined at the end of the row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from functrans.core.dims import Size
from functrans.core.record import Record
from functrans.lowering.c.expressions import CodeScope, ExprWriter, Scratch, ctype, is_number
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.tensor import ITEM_SIZES, Reduce, Tensor
from functrans.lowering.rules.reduce import identity_element
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Domain, Member

__all__ = ["RowReduction", "RowReductions", "cascades", "place_dtype", "total_dtype"]

LEAST_PEELED = 8  # whole vectors in a loop that has another one for what is left
UNROLL_BELOW = 8  # weight of what is reduced, from which the loop has enough else to do
# Vectors that are added between two additions to a total, and how many of these in sequence. Four
# times a number is exact, as pairs are: equal numbers leave no error. 1e8 tenths are 4e-6 off
# with 64 in sequence, 2e-8 so; sums in the cache take up to 1.13 times as long, others no longer.
# Of float64 the totals are no wider, and blocks are as long as there are of them.
BLOCK_VECTORS, BLOCK_STEPS, WIDE_BLOCK_STEPS = 32, 8, 128


class RowReduction(Record, frozen=False, eq=False, repr=False):
    """A reduction along the rows while its loop is written."""

    member: Member
    value: Expr
    dtype: str
    name: str
    top: str = ""
    searched: bool = False  # of a place: by a loop of its own
    cascaded: bool = False  # a sum of the sums of blocks


class RowReductions(ABC):
    """The part of a kernel's writer that reduces along rows."""

    domain: Domain
    prelude: Prelude
    schedule: Schedule
    lanes: int
    writer: ExprWriter
    accumulators: dict[Tensor, str]
    vectors: set[Tensor]
    """Those whose accumulators are one vector."""

    @abstractmethod
    def operand(self, t: Tensor | Scratch) -> str:
        """The name of a pointer to a tensor."""

    @abstractmethod
    def size(self, n: Size) -> str:
        """A size in C."""

    def _reduction_dtype_of(self, t: Reduce) -> str:
        return "i32" if t.value_dtype == "bool" else t.value_dtype

    def _reduction_dtype(self, m: Member) -> str:
        assert isinstance(m.tensor, Reduce)
        return self._reduction_dtype_of(m.tensor)

    def peels(self, lengths: list[Size]) -> bool:
        """Whether a loop of these lengths has one for whole vectors, and one for what is left."""
        return any(not isinstance(n, int) for n in lengths) or (
            any(n % self.lanes for n in lengths) and min(lengths) >= LEAST_PEELED * self.lanes)

    def _unroll(self, members: list[Member], folds: list[RowReduction], weight: int) -> int:
        """How many accumulators a loop has: its one reduction of `weight` waits for itself."""
        row, lanes = self.domain.row, self.lanes
        if lanes == 1 or not folds or weight > UNROLL_BELOW or len(members) > 1:
            return 1
        tensor = folds[0].member.tensor
        assert isinstance(tensor, Reduce)
        if tensor.op.startswith("arg") and not folds[0].searched:
            return 1
        lengths = [row] if self.domain.total is None else [row, self.domain.total]
        if self.peels(lengths) or min(lengths) >= LEAST_PEELED * lanes:
            return 8 if self.is_long_sum(folds[0], 8 * lanes) and weight <= 2 else 4
        return next((u for u in (4, 2) if all(n % (u * lanes) == 0 for n in lengths)), 1)

    def is_long_sum(self, f: RowReduction, step: int) -> bool:
        """Whether a row is so long that its sum is that of blocks, for the sake of the error.

        The sum of 300,100 tenths in float32 is 9e-5 off in sequence.
        """
        op, row = f.member.tensor.op, self.domain.row  # type: ignore[attr-defined]
        steps = 2 * BLOCK_STEPS if total_dtype(f.dtype) != f.dtype else 4 * WIDE_BLOCK_STEPS
        return cascades(op, f.dtype) and (not isinstance(row, int) or row > steps * step)

    def steps_in_block(self, unroll: int, wide: bool) -> int:
        """Steps of the loop along a row whose values are added in sequence."""
        row = self.domain.row
        if not wide:
            return max(4, min(BLOCK_STEPS, BLOCK_VECTORS // unroll))
        steps = math.isqrt(row // (unroll * self.lanes)) if isinstance(row, int) else 0
        return max(WIDE_BLOCK_STEPS, steps)

    def _begin_reduction(self, f: RowReduction, out: CodeScope, unroll: int) -> None:
        t, p, lanes = f.member.tensor, self.prelude, self.lanes
        assert isinstance(t, Reduce)
        start = p.literal(identity_element(t.op, t.value_dtype), f.dtype)
        vtype = p.vtype(f.dtype, lanes)
        for u in range(unroll):
            out.line(f"{vtype} {f.name}_{u} = {p.broadcast(f.dtype, lanes, start)};")
        if f.cascaded:
            wide = total_dtype(f.dtype)
            zero = p.broadcast(wide, lanes, p.literal(0, wide))
            out.line(f"{p.vtype(wide, lanes)} {f.name}_total = {zero};")
        if t.op.startswith("arg") and not f.searched:
            places = place_dtype(f.dtype)
            none = p.broadcast(places, lanes, "-1")
            out.line(f"{p.vtype(places, lanes)} {f.name}_at = {none};")

    def _reduce_vector(self, f: RowReduction, name: str, loop: CodeScope, u: int) -> None:
        t, p, lanes, count = f.member.tensor, self.prelude, self.lanes, self.writer.count
        assert isinstance(t, Reduce)
        if t.value_dtype == "bool":
            name = self.writer.as_int(name)
        if t.op.startswith("arg") and not f.searched:
            self._reduce_place(f, t, name, loop)
            return
        if count is not None:
            start = p.literal(identity_element(t.op, t.value_dtype), f.dtype)
            name = p.select_tail(f.dtype, lanes, name, count, start)
        acc = f"{f.name}_{u}"
        op = t.op.removeprefix("arg")
        loop.line(f"{acc} = {p.op(op, (f.dtype, f.dtype), (acc, name), lanes)};")

    def _begin_search(self, f: RowReduction, out: CodeScope, unroll: int) -> None:
        """The extreme value of the row, in all lanes, and no place yet."""
        t, p, lanes = f.member.tensor, self.prelude, self.lanes
        assert isinstance(t, Reduce)
        op = t.op.removeprefix("arg")
        top = p.reduce(op, f.dtype, lanes, self._combine_accumulators(f, op, unroll))
        name = self.writer.fresh(out, ctype(f.dtype), top)
        out.line(f"const {p.vtype(f.dtype, lanes)} {f.name}_top = "
                 f"{p.broadcast(f.dtype, lanes, name)};")
        places = place_dtype(f.dtype)
        out.line(f"{p.vtype(places, lanes)} {f.name}_at = {self._far(places)};")
        f.top = name

    def _end_block(self, f: RowReduction, out: CodeScope, unroll: int) -> None:
        """Add the sums of a block to the total, and start again."""
        start = self.prelude.literal(identity_element("add", f.dtype), f.dtype)
        out.line(f"{f.name}_total = {self._with_total(f, unroll)};")
        for u in range(unroll):
            out.line(f"{f.name}_{u} = {self.prelude.broadcast(f.dtype, self.lanes, start)};")

    def _with_total(self, f: RowReduction, unroll: int) -> str:
        """The total of a cascaded sum and its accumulators."""
        wide = total_dtype(f.dtype)
        block = self.prelude.convert(f.dtype, wide, self._combine_accumulators(f, "add", unroll),
                                     self.lanes)
        return self.prelude.op("add", (wide, wide), (f"{f.name}_total", block), self.lanes)

    def _combine_accumulators(self, f: RowReduction, op: str, unroll: int) -> str:
        """All accumulators of a reduction as one, pairwise."""
        names = [f"{f.name}_{u}" for u in range(unroll)]
        while len(names) > 1:
            names = [self.prelude.op(op, (f.dtype, f.dtype), (a, b), self.lanes)
                     for a, b in zip(names[::2], names[1::2])]
        return names[0]

    def _far(self, places: str) -> str:
        """Beyond every place, in all lanes."""
        p = self.prelude
        limit = np.iinfo(places.replace("i", "int")).max
        return p.broadcast(places, self.lanes, p.literal(limit, places))

    def _search_step(self, f: RowReduction, value: str, loop: CodeScope) -> None:
        p, lanes, count = self.prelude, self.lanes, self.writer.count
        places, two, at = place_dtype(f.dtype), (f.dtype, f.dtype), f"{f.name}_at"
        found = p.op("eq", two, (value, f"{f.name}_top"), lanes)
        if f.dtype[0] == "f":  # there is a NaN only if it is the extreme value
            found = p.op("or", ("bool", "bool"), (found, p.op("ne", two, (value, value), lanes)),
                         lanes)
        if count is not None:
            found = p.op("and", ("bool", "bool"), (found, self.writer.tail_mask(count)), lanes)
        m = self.writer.fresh(loop, p.vtype("bool", lanes), found)
        here = p.op("select", ("bool", places, places),
                    (m, p.iota(places, lanes, self.writer.i_text), self._far(places)), lanes)
        loop.line(f"{at} = {p.op('min', (places, places), (at, here), lanes)};")

    def _reduce_place(self, f: RowReduction, t: Reduce, name: str, loop: CodeScope) -> None:
        p, lanes, count = self.prelude, self.lanes, self.writer.count
        places, best = place_dtype(f.dtype), f"{f.name}_0"
        two = (f.dtype, f.dtype)
        if count is not None:  # lanes beyond the end repeat what is best so far
            mask = self.writer.tail_mask(count)
            name = p.op("select", ("bool", *two), (mask, name, best), lanes)
        value = self.writer.fresh(loop, p.vtype(f.dtype, lanes), name)
        mask_type = p.vtype("bool", lanes)
        better = self._beats(t.op, f.dtype, value, best)
        none = p.op("lt", (places, places),
                    (f"{f.name}_at", p.broadcast(places, lanes, "0")), lanes)
        if count is not None:
            none = p.op("and", ("bool", "bool"), (none, mask), lanes)
        better = p.op("or", ("bool", "bool"), (better, none), lanes)
        m = self.writer.fresh(loop, mask_type, better)
        iota = p.iota(places, lanes, self.writer.i_text)
        loop.line(f"{best} = {p.op('select', ('bool', *two), (m, value, best), lanes)};")
        chosen = p.op("select", ("bool", places, places), (m, iota, f"{f.name}_at"), lanes)
        loop.line(f"{f.name}_at = {chosen};")

    def _beats(self, op: str, dtype: str, value: str, best: str) -> str:
        """The mask of the lanes in which a value is more extreme; NaN is, the first one wins."""
        p, lanes, two = self.prelude, self.lanes, (dtype, dtype)
        better = p.op("gt" if op == "argmax" else "lt", two, (value, best), lanes)
        if dtype[0] != "f":
            return better
        nan_first = p.op("and", ("bool", "bool"), (p.op("ne", two, (value, value), lanes),
                                                   p.op("eq", two, (best, best), lanes)), lanes)
        return p.op("or", ("bool", "bool"), (better, nan_first), lanes)

    def _end_reduction(self, f: RowReduction, out: CodeScope, unroll: int) -> None:
        t, p, lanes = f.member.tensor, self.prelude, self.lanes
        assert isinstance(t, Reduce)
        if t.op.startswith("arg"):
            self._end_place(f, t, out)
            return
        if f.member.role == "reduce_all" and t in self.vectors:
            acc = self.accumulators[t]
            added = self._combine_accumulators(f, t.op, unroll)
            out.line(f"{acc} = {p.op(t.op, (f.dtype, f.dtype), (acc, added), lanes)};")
            return
        dtype = total_dtype(f.dtype) if f.cascaded else f.dtype
        together = self._with_total(f, unroll) if f.cascaded \
            else self._combine_accumulators(f, t.op, unroll)
        total = p.reduce(t.op, dtype, lanes, together) if lanes > 1 else together
        if f.member.role == "reduce_all":
            acc = self.accumulators[t]
            wide = total_dtype(f.dtype) if cascades(t.op, f.dtype) else f.dtype
            name = self.writer.fresh(out, ctype(wide), p.convert(dtype, wide, total, 1))
            out.line(f"{acc} = {self._combined(t.op, wide, acc, name)};")
            return
        name = self.writer.fresh(out, ctype(f.dtype), p.convert(dtype, f.dtype, total, 1))
        self.writer.locals[t] = self._rounded(t, name, f.dtype, out)
        if t in self.schedule.stored:
            self._store_reduction(t, name, f.dtype, out)

    def _rounded(self, t: Reduce, name: str, dtype: str, out: CodeScope) -> str:
        if t.compute == "bool":
            return self.writer.fresh(out, "int", f"{name} != 0")
        if t.compute != dtype:
            name = self.writer.fresh(out, ctype(t.compute),
                                     self.prelude.convert(dtype, t.compute, name, 1))
        if t.compute == t.dtype or t not in self.schedule.stored:
            return name
        # a half that is stored is rounded for its readers here, too
        return self.writer.fresh(out, ctype(t.compute),
                                 self.prelude.convert(t.compute, t.dtype, name, 1))

    def _store_reduction(self, t: Reduce, name: str, dtype: str, out: CodeScope) -> None:
        out.line(self._stored(t, f"{self.operand(t)} + o", name, dtype) + ";")

    def _end_place(self, f: RowReduction, t: Reduce, out: CodeScope) -> None:
        p, lanes = self.prelude, self.lanes
        places = place_dtype(f.dtype)
        best, at = f"{f.name}_0", f"{f.name}_at"
        kind = "max" if t.op == "argmax" else "min"
        if f.searched:
            best, at = f.top, p.reduce("min", places, lanes, at)
        elif lanes > 1:
            two = (f.dtype, f.dtype)
            top = self.writer.fresh(out, ctype(f.dtype), p.reduce(kind, f.dtype, lanes, best))
            equal = p.op("eq", two, (best, p.broadcast(f.dtype, lanes, top)), lanes)
            if f.dtype[0] == "f":  # the extreme is NaN: lanes that hold it
                is_nan = p.op("ne", two, (best, best), lanes)
                equal = p.op("or", ("bool", "bool"), (equal, is_nan), lanes)
            seen = p.op("ge", (places, places), (at, p.broadcast(places, lanes, "0")), lanes)
            equal = p.op("and", ("bool", "bool"), (equal, seen), lanes)
            far = p.broadcast(places, lanes, p.literal(np.iinfo(places.replace("i", "int")).max,
                                                       places))
            lane = p.op("select", ("bool", places, places), (equal, at, far), lanes)
            best, at = top, p.reduce("min", places, lanes, lane)
        at = self.writer.fresh(out, "i64", at)
        if f.member.role == "reduce_all":
            acc = self.accumulators[t]
            number = acc.removeprefix("acc")
            d = self.domain
            per_part = self.size(d.rows // d.parts if not is_number(d.parts, 1) else d.rows)
            better = self._is_better(t.op, f.dtype, best, acc)
            out.line(f"if (at{number} < 0 || {better}) {{ {acc} = {best}; at{number} = "
                     f"(o % {per_part}) * {self.size(d.row)} + {at}; }}")
            return
        self.writer.locals[t] = self.writer.fresh(out, ctype(t.compute), at)
        if t in self.schedule.stored:
            self._store_reduction(t, at, "i64", out)

    def _combined(self, op: str, dtype: str, a: str, b: str) -> str:
        return self.prelude.op(op, (dtype, dtype), (a, b), 1)

    def _stored(self, t: Tensor, pointer: str, value: str, dtype: str) -> str:
        if t.compute == "bool":
            value = f"({value} != 0)"
        elif dtype != t.compute:
            value = self.prelude.convert(dtype, t.compute, value, 1)
        return self.prelude.store_scalar(t.dtype, pointer, value)

    def _is_better(self, op: str, dtype: str, a: str, b: str) -> str:
        sign = ">" if op == "argmax" else "<"
        if dtype[0] == "f":  # NaN is extreme, the first one wins
            return f"({a} {sign} {b} || ({a} != {a} && {b} == {b}))"
        return f"({a} {sign} {b})"


def cascades(op: str, dtype: str) -> bool:
    """Whether the order of a reduction decides its error."""
    return op == "add" and dtype[0] == "f"


def total_dtype(dtype: str) -> str:
    """What sums of blocks of a dtype are added in."""
    return "f64" if dtype == "f32" else dtype


def place_dtype(dtype: str) -> str:
    """The integers of the width of a dtype, in which places beside its values are kept."""
    return "i64" if ITEM_SIZES[dtype] == 8 else "i32"
