"""Matrices of compressed rows times few columns, on a GPU.

Rows of few elements are read as `RowProductCall` does: a program takes some rows side by side.
Those of more would keep the others waiting, so of these a program takes tiles of elements, whatever
their rows: what follows one another in a row is added up by a segmented scan (G. Blelloch, Prefix
sums and their applications, 1990). A row that lies in one tile is stored at once; of others
each tile keeps what it has, and a last kernel adds that up in order. Nothing is atomic, so the
same numbers give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.axis_calls import AxisCall
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    REGISTER,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.sort_scan.compressed_rows import (
    RowProductCall,
    TransposedRowProductCall,
)
from functrans.lowering.triton.templates.kernel import TemplateKernel
from functrans.primitives.sparse import csr_dot_p

__all__ = ["RULES", "SegmentedRowProductCall"]

FEW_COLUMNS = 4
ELEMENTS = 1024  # times columns of a tile
MOST_ELEMENTS = 1 << 30  # places are numbers of 32 bits
READS = 4  # a row is long of which a program of rows would have to read elements more often
SEARCHES, SEARCHED = 32, 32  # tiles whose rows are looked for, of so many places at a time
# A program takes a tile more for so many tiles, up to the most: 9,400 programs that see that they
# have no long row take 12 us, and 16 tiles with parts of rows, one after the other, 30.
TILES_EACH, MOST_TILES = 1024, 4
PARTS = 128  # of a row that are added up at a time, times columns

SAME_ROW = """\
@triton.jit
def same_row(a, row, b, next_row):
    return tl.where(row == next_row, a + b, b), next_row
"""


class SegmentedRowProductCall(RowProductCall):
    """`csr_dot` of few columns: data, indices, pointers that do not decrease, and x."""

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(eqn, xs)
        self.size = ELEMENTS // self.block_c
        self.most = READS * self.block_e  # elements of a row that is not long
        self.tiles = -(-self.count // self.size)
        self.group = max(1, min(MOST_TILES, self.tiles // TILES_EACH))

    def launches(self) -> Launches:
        parts = PartialResults(2 * (-(-self.tiles // 4) * 4), self.width, self.dtype)
        of_tiles = {name: (PartialResults(self.tiles + 1, 1, "i32"), 0)
                    for name in ("begun", "has_long", "of_row")}
        places: dict[str, tuple[KernelOperand, int]] = {
            "out": (self.results[0], 0), "data": (self.data, 0), "indices": (self.indices, 0),
            "indptr": (self.indptr, 0), "x": (self.x, 0), "carry_in": (parts, 0),
            "carry_out": (parts, parts.nbytes // 2), **of_tiles}
        if self.count <= self.most:  # no row is long
            return Launches([self._rows_of_few()], places)
        return Launches([self._searched(), self._rows_of_few(), self._long_rows(), self._parts()],
                        places)

    def _results(self, *of_tiles: str) -> dict[str, str]:
        kind = MEMORY[self.dtype]
        return {"out": kind, "carry_in": kind, "carry_out": kind, **dict.fromkeys(of_tiles, "i32")}

    def _head(self) -> list[str]:
        return [f"c = tl.arange(0, {self.block_c})[None, :]",
                f"has_c = c < {self.width}"]

    def _searched(self) -> TemplateKernel:
        """How many pointers are before the elements of each program: many are read at a time, as
        each step of a search waits for memory."""
        reach, steps = 1, list[int]()
        while reach < self.rows + 1:
            steps.insert(0, reach)
            reach *= SEARCHED
        lines = [f"tile = tl.program_id(0) * {SEARCHES} + tl.arange(0, {SEARCHES})",
                 f"first = (tile * {self.size})[:, None]",
                 f"at = tl.arange(0, {SEARCHED})[None, :]", "below = tile * 0"]
        for step in steps:  # of so many pointers the last is before: all of them are
            lines += [f"places = below[:, None] + (at + 1) * {step} - 1",
                      f"has = places < {self.rows + 1}",
                      f"before = has & ({self._bound('places', 'has')} < first)",
                      f"below += {step} * tl.sum(before.to(tl.int32), axis=1)"]
        lines += [f"tl.store(begun + tile, below, mask=tile <= {self.tiles})",
                  f"tl.store(has_long + tile, 0, mask=tile <= {self.tiles})"]
        return self._kernel("searched", {"begun": "i32", "has_long": "i32"}, lines,
                            -(-(self.tiles + 1) // SEARCHES), 4)

    def _rows_of_few(self) -> TemplateKernel:
        """Rows that are not long; programs of elements learn that they have some of a long one."""
        lines = [*self._columns("row", self.block_r), f"has = row < {self.rows}",
                 f"begin = {self._bound('row', 'has')}", f"stop = {self._bound('row + 1', 'has')}",
                 f"is_long = stop - begin > {self.most}", "end = tl.where(is_long, begin, stop)",
                 *self._accumulator(self.block_r, self.block_e), *self._walk("begin", "end"),
                 *self._stored("out", "row", "has & ~is_long")]
        pointers = {"out": MEMORY[self.dtype]}
        if self.count > self.most:
            pointers["has_long"] = "i32"
            lines += [f"first = begin // {self.size}",
                      f"count = tl.where(is_long, (stop - 1) // {self.size} + 1 - first, 0)",
                      f"for t in range(0, tl.max(count), {self.block_e}):",
                      "    tl.store(has_long + first[:, None] + t + e, 1, "
                      "mask=t + e < count[:, None])"]
        return self._kernel("rows", pointers, lines, *self._grid_of_rows())

    def _long_rows(self) -> TemplateKernel:
        """The sums of long rows within tiles, and what each tile has of a row of several.

        `carry_in` has the sum of a row that begins before a tile, `carry_out` of one that does not
        end in it, which is `of_row`.
        """
        size, c = self.size, self.block_c
        lines = [
            *self._head(), f"for tile in range(tl.program_id(0) * {self.group}, "
            f"tl.minimum((tl.program_id(0) + 1) * {self.group}, {self.tiles})):",
            "    if tl.load(has_long + tile) == 0:", "        tl.store(of_row + tile, -1)",
            "    else:",
            *[f"        {line}" for line in [
                f"first = tile * {size}", f"end = tl.minimum(first + {size}, {self.count})",
                f"p = first + tl.arange(0, {size})", "inside = p < end",
                "column = tl.load(indices + p, mask=inside, other=-1)",
                f"known = inside & (column >= 0) & (column < {self.columns})",
                "value = tl.load(data + p, mask=known, other=0)[:, None]",
                "known = known[:, None] & has_c",
                f"factor = tl.load(x + {self._at('column')}, mask=known, other=0)",
                # what is not there is not multiplied: infinity times zero is no zero
                "product = tl.where(known, value * factor, 0)",
                "least = tl.load(begun + tile)", "most = tl.load(begun + tile + 1)",
                "low = p * 0 + least", "high = p * 0 + most", "span = most - least",
                "while span > 0:", "    middle = (low + high) // 2",
                f"    found = {self._bound('middle', 'low < high')} <= p",
                "    high = tl.where((low < high) & ~found, middle, high)",
                "    low = tl.where((low < high) & found, middle + 1, low)",
                "    span = span // 2",
                "row = low - 1", f"inside = inside & (row >= 0) & (row < {self.rows})",
                f"begin = {self._bound('row', 'inside')}",
                f"stop = {self._bound('row + 1', 'inside')}",
                f"inside = inside & (stop - begin > {self.most})",
                f"rows = tl.broadcast_to(row[:, None], ({size}, {c}))",
                "total, rows = tl.associative_scan((product, rows), 0, same_row)",
                "begins = begin >= first", "ends = p + 1 == stop", "is_last = p + 1 == end",
                f"tl.store(out + {self._at('row')}, total, mask=(inside & begins & ends)[:, None] "
                "& has_c)",
                f"part = (p * 0 + tile).to(tl.int64)[:, None] * {self.width} + c",
                "tl.store(carry_in + part, total, mask=(inside & ~begins & (ends | is_last))"
                "[:, None] & has_c)",
                "goes_on = inside & begins & ~ends & is_last",
                "tl.store(carry_out + part, total, mask=goes_on[:, None] & has_c)",
                "tl.store(of_row + tile + p * 0, tl.where(goes_on, row, -1), mask=is_last)"]]]
        return self._kernel("long_rows", self._results("begun", "has_long", "of_row"), lines,
                            -(-self.tiles // self.group), 4, SAME_ROW)

    def _parts(self) -> TemplateKernel:
        """Rows of several programs: at most one goes on behind each; parts are added in order."""
        c = self.block_c
        size = PARTS // c
        lines = [
            *self._head(), f"i = tl.arange(0, {size})",
            f"for tile in range(tl.program_id(0) * {self.group}, "
            f"tl.minimum((tl.program_id(0) + 1) * {self.group}, {self.tiles})):",
            "    row = tl.load(of_row + tile)", "    if row >= 0:",
            *[f"        {line}" for line in [
                f"most = ({self._bound('row + 1', 'row >= 0')} - 1) // {self.size} - tile",
                f"total = tl.zeros(({size}, {c}), {REGISTER[self.dtype]})",
                f"for t in range(0, most, {size}):",
                f"    part = (tile + 1 + t + i).to(tl.int64)[:, None] * {self.width} + c",
                "    inside = (t + i < most)[:, None] & has_c",
                "    total += tl.load(carry_in + part, mask=inside, other=0)",
                "whole = tl.sum(total, axis=0)[None, :]",
                f"whole += tl.load(carry_out + (c * 0 + tile).to(tl.int64) * {self.width} + c, "
                "mask=has_c, other=0)",
                f"to = (c * 0 + row).to(tl.int64) * {self.width} + c",
                "tl.store(out + to, whole, mask=has_c)"]]]
        return self._kernel("parts", self._results("of_row"), lines,
                            -(-self.tiles // self.group), 1)

    def _bound(self, place: str, mask: str) -> str:
        return f"({super()._bound(place, mask)}).to(tl.int32)"

    def _at(self, row: str) -> str:
        return f"{row}.to(tl.int64)[:, None] * {self.width} + c"


def _product(eqn: Equation, xs: Sequence[Tensor]) -> AxisCall:
    if eqn.params["transpose"]:
        return TransposedRowProductCall(eqn, xs)
    is_narrow = int(xs[3].shape[1]) <= FEW_COLUMNS and int(xs[0].size) < MOST_ELEMENTS
    return (SegmentedRowProductCall if is_narrow else RowProductCall)(eqn, xs)


RULES: dict[Primitive, Any] = {csr_dot_p: _product}
