"""Matrices of compressed rows times columns: a program takes some rows, side by side.

Each row is read a few elements at a time; so a row that has most of the elements would take long.
Pieces of the elements that are all of one row are added up before, each in a tile of its own: a row
adds what is before its first whole piece, its pieces, and what is behind them. Nothing is atomic,
so the same numbers give the same bits.

Of the transpose, a program takes some elements, finds their rows by binary search, and adds to the
result by atomic operations; deterministic programs add in order (`passes/compositions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.graph import results_of
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
    power_of_two,
)
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer

__all__ = ["RowProductCall", "TransposedRowProductCall"]

TILE = 256  # elements times columns that a program reads at a time
COLUMNS = 64  # of a program
ELEMENTS = 1024  # times columns of a program, which adds each to the transposed product
FILLED = 1024  # elements of a result that a program clears
PIECE = 256  # elements
PIECES = 32  # times columns of a program, which searches for the rows of all at once


class RowProductCall(AxisCall):
    """`csr_dot` of rows as they stand: data, indices, pointers that do not decrease, and x."""

    name = "product of compressed rows"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(xs, results_of(eqn), eqn.source)
        self.data, self.indices, self.indptr, self.x = xs
        self.count, self.rows = int(self.data.size), int(self.indptr.size) - 1
        self.columns, self.width = int(eqn.params["columns"]), int(self.x.shape[1])
        self.dtype, self.index = self.data.dtype, self.indices.dtype
        self.block_c = min(power_of_two(self.width), COLUMNS)
        # elements of a row at a time: about half of what a row has
        mean = max(1, self.count // max(1, 2 * self.rows))
        self.block_e = min(power_of_two(mean), max(1, TILE // self.block_c), 32)
        self.block_r = max(1, TILE // (self.block_c * self.block_e))
        self.across = -(-self.width // self.block_c)
        self.pieces = self.count // PIECE  # what is left over is in none
        self.together = max(4, PIECES // self.block_c)

    def launches(self) -> Launches:
        places: dict[str, tuple[KernelOperand, int]] = {
            "out": (self.results[0], 0), "data": (self.data, 0), "indices": (self.indices, 0),
            "indptr": (self.indptr, 0), "x": (self.x, 0)}
        if not self.pieces:
            return Launches([self._rows()], places)
        places["pieces"] = (PartialResults(self.pieces, self.width, self.dtype), 0)
        return Launches([self._pieces(), self._rows()], places)

    def _kernel(self, name: str, result: dict[str, str], lines: Sequence[str], grid: int,
                warps: int, *functions: str) -> TemplateKernel:
        kind, index = MEMORY[self.dtype], MEMORY[self.index]
        pointers = {**result, "data": kind, "indices": index, "indptr": index, "x": kind}
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        arguments = tuple([pointer(n, t) for n, t in pointers.items()])
        return TemplateKernel(name, module_text(*functions, text), arguments, (grid, 1, 1), warps,
                              3)

    def _columns(self, what: str, count: int) -> list[str]:
        return ["pid = tl.program_id(0)",
                f"{what} = (pid // {self.across}) * {count} + tl.arange(0, {count})",
                f"c = (pid % {self.across}) * {self.block_c} + tl.arange(0, {self.block_c})"
                "[None, None, :]", f"has_c = c < {self.width}"]

    def _bound(self, place: str, mask: str) -> str:
        """A pointer: it is not trusted to be one."""
        read = f"tl.load(indptr + {place}, mask={mask}, other=0).to(tl.int64)"
        return f"tl.minimum(tl.maximum({read}, 0), {self.count})"

    def _elements(self, begin: str, end: str) -> list[str]:
        """Add elements `begin + e` up to `end`, one of each for every row of the tile."""
        return [f"p = {begin} + e", f"inside = p < {end}",
                "column = tl.load(indices + p, mask=inside, other=-1).to(tl.int64)",
                f"inside = inside & (column >= 0) & (column < {self.columns})",
                "value = tl.load(data + p, mask=inside, other=0)[:, :, None]",
                "inside = inside[:, :, None] & has_c",
                f"factor = tl.load(x + column[:, :, None] * {self.width} + c, mask=inside, "
                "other=0)",
                # what is not there is not multiplied: infinity times zero is no zero
                "acc += tl.where(inside, value * factor, 0)"]

    def _accumulator(self, rows: int, elements: int) -> list[str]:
        kind = "tl.float64" if self.dtype == "f64" else "tl.float32"
        return [f"acc = tl.zeros(({rows}, {elements}, {self.block_c}), {kind})",
                f"e = tl.arange(0, {elements})[None, :]"]

    def _walk(self, begin: str, end: str) -> list[str]:
        return [f"for t in range(0, tl.max({end} - {begin}), {self.block_e}):",
                *[f"    {line}" for line in self._elements(f"({begin})[:, None] + t",
                                                           f"({end})[:, None]")]]

    def _stored(self, to: str, row: str, mask: str) -> list[str]:
        return ["total = tl.sum(acc, axis=1)",
                f"at = {row}.to(tl.int64)[:, None] * {self.width} + tl.reshape(c, "
                f"(1, {self.block_c}))",
                f"tl.store({to} + at, total, mask=({mask})[:, None] & "
                f"(tl.reshape(c, (1, {self.block_c})) < {self.width}))"]

    def _pieces(self) -> TemplateKernel:
        """Sums of pieces that are of one row, which a binary search finds; others are not read."""
        step = max(1, min(PIECE, 1024 // (self.block_c * self.together)))
        lines = [*self._columns("piece", self.together), f"has = piece < {self.pieces}",
                 f"first = piece.to(tl.int64) * {PIECE}",
                 # the last row that begins at the first element or before it
                 "low = piece * 0", f"high = piece * 0 + {self.rows}",
                 f"for t in range({self.rows.bit_length()}):", "    middle = (low + high) // 2",
                 f"    found = {self._bound('middle', 'has')} <= first",
                 "    low = tl.where((low < high) & found, middle + 1, low)",
                 "    high = tl.where(found, high, middle)",
                 f"whole = has & (low > 0) & ({self._bound('low', 'has & (low > 0)')} >= "
                 f"first + {PIECE})",
                 *self._accumulator(self.together, step),
                 f"last = tl.where(whole, first + {PIECE}, first)",
                 f"for t in range(0, tl.max(last - first), {step}):",
                 *[f"    {line}" for line in self._elements("first[:, None] + t",
                                                            "last[:, None]")],
                 *self._stored("pieces", "piece", "whole")]
        grid = -(-self.pieces // self.together) * self.across
        return self._kernel("pieces_of_rows", {"pieces": MEMORY[self.dtype]}, lines, grid, 4)

    def _rows(self) -> TemplateKernel:
        lines = [*self._columns("row", self.block_r), f"has = row < {self.rows}",
                 f"begin = {self._bound('row', 'has')}", f"end = {self._bound('row + 1', 'has')}",
                 *self._accumulator(self.block_r, self.block_e)]
        pointers = {"out": MEMORY[self.dtype]}
        if self.pieces:
            pointers["pieces"] = MEMORY[self.dtype]
            lines += [
                f"first = (begin + {PIECE - 1}) // {PIECE}", f"last = end // {PIECE}",
                f"head = tl.where(first < last, first * {PIECE}, end)",
                f"tail = tl.where(first < last, last * {PIECE}, end)",
                *self._walk("begin", "head"), *self._walk("tail", "end"),
                f"for t in range(0, tl.max(last - first), {self.block_e}):",
                "    p = first[:, None] + t + e",
                "    inside = (p < last[:, None])[:, :, None] & has_c",
                f"    acc += tl.load(pieces + p[:, :, None] * {self.width} + c, mask=inside, "
                "other=0)"]
        else:
            lines += self._walk("begin", "end")
        lines += self._stored("out", "row", "has")
        return self._kernel("rows", pointers, lines, *self._grid_of_rows())

    def _grid_of_rows(self) -> tuple[int, int]:
        """Programs of all rows, and the warps of each."""
        size = self.block_r * self.block_e * self.block_c
        return -(-self.rows // self.block_r) * self.across, max(1, min(4, size // 64))


class TransposedRowProductCall(AxisCall):
    """The same for the transpose of the rows."""

    name = "product of transposed compressed rows"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(xs, results_of(eqn), eqn.source)
        self.data, self.indices, self.indptr, self.x = xs
        self.count, self.rows = int(self.data.size), int(self.indptr.size) - 1
        self.columns, self.width = int(eqn.params["columns"]), int(self.x.shape[1])
        self.block_c = min(power_of_two(self.width), COLUMNS)
        self.block_e = min(power_of_two(self.count), ELEMENTS // self.block_c)

    def launches(self) -> Launches:
        places: dict[str, tuple[KernelOperand, int]] = {
            "out": (self.results[0], 0), "data": (self.data, 0), "indices": (self.indices, 0),
            "indptr": (self.indptr, 0), "x": (self.x, 0)}
        return Launches([self._cleared(), self._added()], places)

    def _kernel(self, name: str, pointers: dict[str, str], lines: Sequence[str], grid: int
                ) -> TemplateKernel:
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        arguments = tuple([pointer(n, t) for n, t in pointers.items()])
        return TemplateKernel(name, module_text(text), arguments, (grid, 1, 1), 4, 3)

    def _cleared(self) -> TemplateKernel:
        size = self.columns * self.width
        lines = [f"i = tl.program_id(0).to(tl.int64) * {FILLED} + tl.arange(0, {FILLED})",
                 f"tl.store(out + i, 0, mask=i < {size})"]
        return self._kernel("cleared", {"out": MEMORY[self.results[0].dtype]}, lines,
                            -(-size // FILLED))

    def _added(self) -> TemplateKernel:
        kind, index = MEMORY[self.data.dtype], MEMORY[self.indices.dtype]
        across = -(-self.width // self.block_c)
        step = self.block_e - 1
        lines = [
            "pid = tl.program_id(0)", f"first = (pid // {across}) * {self.block_e}",
            f"c = (pid % {across}) * {self.block_c} + tl.arange(0, {self.block_c})[None, :]",
            # how many rows begin at the first element or before it, and the same of the last one
            f"ends = tl.minimum(first + tl.arange(0, 2) * {step}, {self.count - 1})",
            "low = ends * 0", f"high = ends * 0 + {self.rows + 1}",
            f"for t in range({(self.rows + 1).bit_length()}):",
            *[f"    {line}" for line in self._halved("ends")],
            "least = tl.min(low)", "most = tl.max(low)",
            f"p = first + tl.arange(0, {self.block_e})", "low = p * 0 + least",
            "high = p * 0 + most", "span = most - least", "while span > 0:",
            *[f"    {line}" for line in self._halved("p")], "    span = span // 2",
            "row = low - 1", f"inside = (p < {self.count}) & (row >= 0) & (row < {self.rows})",
            "column = tl.load(indices + p, mask=inside, other=-1).to(tl.int64)",
            f"inside = inside & (column >= 0) & (column < {self.columns})",
            "value = tl.load(data + p, mask=inside, other=0)[:, None]",
            f"inside = inside[:, None] & (c < {self.width})",
            f"factor = tl.load(x + row.to(tl.int64)[:, None] * {self.width} + c, mask=inside, "
            "other=0)",
            f"tl.atomic_add(out + column[:, None] * {self.width} + c, value * factor, "
            "mask=inside, sem='relaxed')"]
        pointers = {"out": kind, "data": kind, "indices": index, "indptr": index, "x": kind}
        return self._kernel("added", pointers, lines, -(-self.count // self.block_e) * across)

    def _halved(self, place: str) -> list[str]:
        """A step of the search for the first row behind a place, between `low` and `high`."""
        return ["middle = (low + high) // 2",
                f"found = tl.load(indptr + middle, mask=low < high, other=0) <= {place}",
                "high = tl.where((low < high) & ~found, middle, high)",
                "low = tl.where((low < high) & found, middle + 1, low)"]

