"""Matrices of compressed rows times columns, on a GPU: a program takes some rows, side by side.

Rows are read a few elements at a time, so one that has most of the elements would keep the others
waiting. A long row is left to the last launch: the one before it lists pieces of it, whose places
in the list come from a counter, and programs of the last take some pieces side by side, as if they
were rows. Of a row of several pieces each leaves its sum, and the program that comes last adds
these up in order. So the same numbers give the same bits, wherever pieces are in the list.

A pointer that is less than one before it counts as if it were as large. Matrices seldom have such
pointers: the first launch looks for them, and only then the last one computes all rows once more.

Of the transpose the same programs add what they have to the result by atomic operations;
deterministic programs add in order (`passes/compositions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.graph import results_of
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    REGISTER,
    KernelOperand,
    Launches,
    PartialResults,
    power_of_two,
)
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.primitives.sparse import csr_dot_p

__all__ = ["RULES", "RowProductCall", "TransposedRowProductCall"]

COLUMNS = 32  # of a program
TILE = 512  # elements that a program of rows reads at a time
WIDE_TILE = 2048  # elements times columns
MOST_AT_ONCE, WIDE_AT_ONCE = 16, 2  # elements of a row that are read at a time
PROGRAMS = 4  # of a multiprocessor at least, before a program takes more rows
LONG = 8  # a row is long of which a program of one column would read elements more often

PIECE, WIDE_PIECE = 512, 256  # elements of a long row, at least
PIECE_TILE, WIDE_PIECE_TILE = 1024, 2048  # elements times columns of a program of pieces, at a time
PIECE_AT_ONCE = 128  # elements of a piece times columns that are read at a time
MOST_PIECES = 4096  # of a row: of more elements, pieces are longer
WALKERS = 2048  # programs that take pieces in turn
LISTED = 8  # pieces of a row that are listed at a time
CHECKERS = 512  # programs that look at pointers
CHECKED = 2048  # pointers that a program looks at at a time: more than its lanes


class RowProductCall(AxisCall):
    """`csr_dot` of rows as they stand: data, indices, pointers and x."""

    name = "product of compressed rows"
    reads_memory = True

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(xs, results_of(eqn), eqn.source)
        self.data, self.indices, self.indptr, self.x = xs
        self.count, self.rows = int(self.data.size), int(self.indptr.size) - 1
        self.columns, self.width = int(eqn.params["columns"]), int(self.x.shape[1])
        self.dtype, self.index = self.data.dtype, self.indices.dtype
        largest = max(self.count, self.width * max(self.rows, self.columns))
        self.place = "tl.int64" if largest >= 2**31 - 2**16 else "tl.int32"
        self.block_c = min(power_of_two(self.width), COLUMNS)
        self.across = -(-self.width // self.block_c)
        usual = min(power_of_two(self.count // (2 * self.rows)), MOST_AT_ONCE)  # half a row
        self.most = LONG * max(usual, 4)  # elements of a row that is not long
        self.block_e = usual if self.width == 1 else min(usual, WIDE_AT_ONCE)
        self.most_r = max(1, (TILE if self.width == 1 else WIDE_TILE)
                          // (self.block_c * self.block_e))
        self.piece_e = max(1, PIECE_AT_ONCE // self.block_c)
        self.block_p = max(1, (PIECE_TILE if self.width == 1 else WIDE_PIECE_TILE)
                           // (self.block_c * self.piece_e))
        self.piece = PIECE if self.width == 1 else WIDE_PIECE
        # at most: of all long rows, and of those that have several
        self.pieces = self.count // self.piece + self.count // (self.most + 1)
        self.sums = 2 * self.count // self.piece
        self.checkers = min(power_of_two(-(-self.rows // CHECKED)), CHECKERS)

    def read_instead(self, others: Mapping[Tensor, Tensor]) -> None:
        self.operands = tuple([others.get(x, x) for x in self.operands])
        self.data, self.indices, self.indptr, self.x = self.operands

    def launches(self) -> Launches:
        wide = "i64" if self.place == "tl.int64" else "i32"
        lists = [(name, wide if name in ("begin_of", "end_of") else "i32")
                 for name in self._lists()]
        return Launches([self._checked(), self._rows(), self._pieces()], {
            "out": (self.results[0], 0), "data": (self.data, 0), "indices": (self.indices, 0),
            "indptr": (self.indptr, 0), "x": (self.x, 0),
            "decreases": (PartialResults(self.checkers, 1, "i32"), 0),
            "counters": (PartialResults(1, 2, "i32"), 0),
            **{name: (PartialResults(max(self.pieces, 1), 1, kind), 0) for name, kind in lists},
            **self._of_sums()})

    def _lists(self) -> list[str]:
        """Of each piece its row and elements, and where the row's sums begin, its own, how many."""
        return ["row_of", "begin_of", "end_of", "first_of", "own_of", "count_of"]

    def _of_sums(self) -> dict[str, tuple[KernelOperand, int]]:
        """The sums of pieces, and how many of a row's pieces are done."""
        sums = max(self.sums, 1)
        return {"sums": (PartialResults(sums, self.width, self.dtype), 0),
                "done_of": (PartialResults(sums, self.across, "i32"), 0)}

    # ------------------------------------------------------------------------------ the kernels

    def _checked(self) -> TemplateKernel:
        """Whether pointers decrease, for each program; nothing is listed yet."""
        lines = [
            "pid = tl.program_id(0)", f"i = tl.arange(0, {CHECKED})", "found = i * 0",
            f"for t in range(pid * {CHECKED}, {self.rows}, {self.checkers * CHECKED}):",
            f"    has = t + i < {self.rows}",
            "    begin = tl.load(indptr + t + i, mask=has, other=0)",
            "    stop = tl.load(indptr + t + i + 1, mask=has, other=0)",
            "    found += (stop < begin).to(tl.int32)",
            "tl.store(decreases + pid, tl.max(found))",
            "if pid == 0:", "    tl.store(counters + tl.arange(0, 2), 0)", *self._cleared()]
        return self._kernel("checked", ["out", "decreases", "counters"], lines, self.checkers, 4)

    def _cleared(self) -> list[str]:
        return []

    def _rows(self) -> TemplateKernel:
        """Rows that are not long; the others are listed, once for all columns."""
        enough = self.rows * self.across // (PROGRAMS * self.target.multiprocessors)
        count = max(1, min(self.most_r, power_of_two(enough + 1) // 2))
        first = f"(pid // {self.across}) * {count}"
        lines = [
            *self._columns(), *self._lanes(self.block_e, count),
            *self._bounds_of_rows(f"{first} + lane // {self.block_e}"),
            *self._walk(count, self.block_e),
            *self._bounds_of_rows(f"{first} + tl.arange(0, {count})"),
            *self._stored("out", "has & ~is_long")]
        if self.pieces:
            lines += [
                f"size = tl.maximum(tl.cdiv(stop - begin, {MOST_PIECES}), {self.piece})",
                f"count = tl.where(is_long & (pid % {self.across} == 0), "
                "tl.cdiv(stop - begin, size), 0).to(tl.int32)",
                "listed = tl.sum(count)", "if listed > 0:",
                "    piece = tl.atomic_add(counters, listed, sem='relaxed') + tl.cumsum(count) "
                "- count",
                *[f"    {line}" for line in self._places_of_sums()],
                f"    for t in range(0, tl.max(count), {LISTED}):",
                f"        k = t + tl.arange(0, {LISTED})[None, :]",
                "        to = piece[:, None] + k",
                f"        among = (k < count[:, None]) & (to < {self.pieces})",
                "        start = begin[:, None] + k * size[:, None]",
                *[f"        tl.store({name} + to, {value}, mask=among)" for name, value in zip(
                    self._lists(), ("row[:, None]", "start", "tl.minimum(start + size[:, None], "
                                    "stop[:, None])", "first[:, None]", "first[:, None] + k",
                                    "count[:, None]"), strict=False)]]
        size = count * self.block_e * self.block_c
        return self._kernel("rows", ["out", "decreases", "counters", *self._lists(),
                                      *self._of_sums()], lines,
                            -(-self.rows // count) * self.across, max(1, min(4, size // 64)))

    def _places_of_sums(self) -> list[str]:
        """Where the sums of rows of several pieces begin; none of these is done."""
        first = f"first * {self.across}"
        return ["several = tl.where(count > 1, count, 0)",
                "first = tl.atomic_add(counters + 1, tl.sum(several), sem='relaxed') + "
                "tl.cumsum(several) - several",
                *[f"tl.store(done_of + {first} + {k}, 0, mask={self._has_sums('count > 1')})"
                  for k in range(self.across)]]

    def _has_sums(self, several: str) -> str:
        return f"({several}) & (first + count <= {self.sums})"

    def _pieces(self) -> TemplateKernel:
        """Pieces that are listed, or all rows if pointers decrease."""
        programs = min(-(-max(self.pieces, 1) // self.block_p), WALKERS)
        lanes = self.block_p * self.piece_e
        lines = [
            *self._columns(), *self._lanes(self.piece_e, self.block_p), *self._decreasing(),
            f"listed = tl.where(is_wrong, 0, tl.minimum(tl.load(counters), {self.pieces}))",
            f"for group in range(pid // {self.across} * {self.block_p}, listed, "
            f"{programs * self.block_p}):",
            *[f"    {line}" for line in [
                *self._listed(f"lane // {self.piece_e}", "row", "begin", "end"),
                *self._walk(self.block_p, self.piece_e), *self._stored_pieces()]],
            "if is_wrong:",
            *[f"    {line}" for line in [
                f"share = {-(-self.rows // programs)}", f"first = pid // {self.across} * share",
                f"before = tl.full((), 0, {self.place})", f"i = tl.arange(0, {CHECKED})",
                f"for t in range(0, first + 1, {CHECKED}):",
                f"    bound = {self._bound('t + i', 't + i <= first')}",
                "    before = tl.maximum(before, tl.max(bound))",
                "e = lane", f"for r in range(first, tl.minimum(first + share, {self.rows})):",
                *[f"    {line}" for line in [
                    "row = r + lane * 0", "has = row >= 0", "begin = lane * 0 + before",
                    f"end = tl.maximum(begin, lane * 0 + {self._bound('r + 1', 'r >= 0')})",
                    *self._walk(1, lanes), "before = tl.max(end)", "row = r + tl.arange(0, 1)",
                    "has = row >= 0", *self._stored("out", "has")]]]]]
        return self._kernel("pieces", ["out", "decreases", "counters", *self._lists(),
                                      *self._of_sums()], lines,
                            programs * self.across, 4)

    def _decreasing(self) -> list[str]:
        return [f"is_wrong = tl.max(tl.load(decreases + tl.arange(0, {self.checkers}))) > 0"]

    def _stored_pieces(self) -> list[str]:
        """Store rows of one piece; of others the program that is last adds up the sums."""
        return [
            *self._listed(f"tl.arange(0, {self.block_p})", "row", "first", "own", "count"),
            *self._stored("out", "has & (count == 1)"),
            "if tl.max(count) > 1:",
            *[f"    {line}" for line in [
                f"several = {self._has_sums('has & (count > 1)')}",
                *self._stored("sums", "several", "own"),
                "tl.debug_barrier()",
                f"done = tl.atomic_add(done_of + first * {self.across} + pid % {self.across}, 1, "
                "mask=several, sem='acq_rel')",
                "left = tl.where(several & (done == count - 1), count, 0)", "if tl.max(left) > 0:",
                "    tl.debug_barrier()",
                *[f"    {line}" for line in [
                    *[f"{name}_of_lane = tl.reshape(tl.broadcast_to({name}[:, None], "
                      f"({self.block_p}, {self.piece_e})), ({self.block_p * self.piece_e},))"
                      for name in ("first", "left")],
                    self._accumulator(self.block_p * self.piece_e),
                    f"for k in range(0, tl.max(left), {self.piece_e}):",
                    f"    among = {self._masked('k + e < left_of_lane')}",
                    f"    of_sums = {self._in_row('(first_of_lane + k + e)')}",
                    "    acc += tl.load(sums + of_sums, mask=among, other=0, "
                    "cache_modifier='.cg')",
                    *self._summed(self.block_p, self.piece_e),
                    *self._stored("out", "left > 0")]]]]]

    # ----------------------------------------------------------------------------- parts of both

    def _kernel(self, name: str, names: Sequence[str], lines: Sequence[str], grid: int,
                warps: int) -> TemplateKernel:
        kind, index = MEMORY[self.dtype], MEMORY[self.index]
        wide = "i64" if self.place == "tl.int64" else "i32"
        kinds = {"out": kind, "sums": kind, "begin_of": wide, "end_of": wide}
        pointers = {**{n: kinds.get(n, "i32") for n in names}, "data": kind, "indices": index,
                    "indptr": index, "x": kind}
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        # four flags of a thread would make other lanes of its threads neighbours as well
        arguments = tuple([pointer(n, t, n != "decreases") for n, t in pointers.items()])
        return TemplateKernel(name, module_text(text), arguments, (grid, 1, 1), warps, 3)

    def _listed(self, piece: str, *names: str) -> list[str]:
        """What the list has of some pieces."""
        return [f"piece = group + {piece}", "has = piece < listed",
                *[f"{name} = tl.load({name}_of + piece, mask=has, other=0)" for name in names]]

    def _columns(self) -> list[str]:
        """The program's columns, behind lanes; one column has no axis."""
        return ["pid = tl.program_id(0)", *[
            f"c = (pid % {self.across}) * {self.block_c} + tl.arange(0, {self.block_c})[None, :]",
            f"has_c = c < {self.width}"] * (self.width > 1)]

    def _lanes(self, elements: int, rows: int) -> list[str]:
        """A lane for so many elements of each row at a time, those of a row side by side."""
        return [f"lane = tl.arange(0, {rows * elements})", f"e = lane % {elements}"]

    def _bound(self, row: str, mask: str) -> str:
        """A pointer: it is not trusted to be one."""
        read = f"tl.load(indptr + {row}, mask={mask}, other=0)"
        return f"tl.minimum(tl.maximum({read}, 0), {self.count}).to({self.place})"

    def _bounds_of_rows(self, row: str) -> list[str]:
        return [f"row = {row}", f"has = row < {self.rows}", f"begin = {self._bound('row', 'has')}",
                f"stop = {self._bound('row + 1', 'has')}", f"is_long = stop - begin > {self.most}",
                "end = tl.where(is_long, begin, stop)"]

    def _in_row(self, row: str) -> str:
        """Places in rows of x, of the result or of sums."""
        row = f"{row}.to({self.place})"
        return row if self.width == 1 else f"{row}[:, None] * {self.width} + c"

    def _across(self, numbers: str) -> str:
        """Numbers of lanes, for all columns."""
        return numbers if self.width == 1 else f"({numbers})[:, None]"

    def _masked(self, lanes: str) -> str:
        return lanes if self.width == 1 else f"{self._across(lanes)} & has_c"

    def _accumulator(self, lanes: int) -> str:
        columns = "" if self.width == 1 else f", {self.block_c}"
        return f"acc = tl.zeros(({lanes}{columns},), {REGISTER[self.dtype]})"

    def _elements(self) -> list[str]:
        """The columns and values of elements."""
        return ["p = begin + t + e", "inside = p < end",
                "column = tl.load(indices + p, mask=inside, other=-1)",
                f"value = {self._across('tl.load(data + p, mask=inside, other=0)')}",
                f"inside = column.to({'tl.uint64' if self.index == 'i64' else 'tl.uint32'}) < "
                f"{self.columns}",
                f"mask = {self._masked('inside')}"]

    def _walk(self, rows: int, elements: int) -> list[str]:
        """Add up elements from `begin` to before `end`, so many of each row at a time."""
        return [self._accumulator(rows * elements),
                f"for t in range(0, tl.max(end - begin), {elements}):",
                *[f"    {line}" for line in [
                    *self._elements(),
                    f"factor = tl.load(x + {self._in_row('column')}, mask=mask, other=0)",
                    # what is not there is not multiplied: infinity times zero is no zero
                    "acc += tl.where(mask, value * factor, 0)"]],
                *self._summed(rows, elements)]

    def _summed(self, rows: int, elements: int) -> list[str]:
        columns = "" if self.width == 1 else f", {self.block_c}"
        return [f"total = tl.sum(tl.reshape(acc, ({rows}, {elements}{columns})), axis=1)"]

    def _stored(self, to: str, mask: str, row: str = "row") -> list[str]:
        return [f"tl.store({to} + {self._in_row(row)}, total, mask={self._masked(f'{mask}')})"]


class TransposedRowProductCall(RowProductCall):
    """The same for the transpose of the rows: each element adds to the row of its column."""

    name = "product of transposed compressed rows"

    def _cleared(self) -> list[str]:
        size = self.columns * self.width
        return [f"for t in range(pid.to(tl.int64) * {CHECKED}, {size}, "
                f"{self.checkers * CHECKED}):",
                f"    tl.store(out + t + i, 0, mask=t + i < {size})"]

    def _bounds_of_rows(self, row: str) -> list[str]:
        return [*super()._bounds_of_rows(row), *self._decreasing(),
                "end = tl.where(is_wrong, begin, end)"]

    def _lists(self) -> list[str]:
        return super()._lists()[:3]

    def _of_sums(self) -> dict[str, tuple[KernelOperand, int]]:
        return {}

    def _places_of_sums(self) -> list[str]:
        return []

    def _walk(self, rows: int, elements: int) -> list[str]:
        return [f"factor = tl.load(x + {self._in_row('row')}, mask={self._masked('has')}, other=0)",
                f"for t in range(0, tl.max(end - begin), {elements}):",
                *[f"    {line}" for line in [
                    *self._elements(),
                    f"tl.atomic_add(out + {self._in_row('column')}, value * factor, "
                    "mask=mask, sem='relaxed')"]]]

    def _stored(self, to: str, mask: str, row: str = "row") -> list[str]:
        return []

    def _stored_pieces(self) -> list[str]:
        return []


def _product(eqn: Equation, xs: Sequence[Tensor]) -> AxisCall:
    return (TransposedRowProductCall if eqn.params["transpose"] else RowProductCall)(eqn, xs)


RULES: dict[Primitive, Any] = {csr_dot_p: _product}
