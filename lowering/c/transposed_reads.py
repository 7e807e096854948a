"""Transposed reads: square tiles go through registers, so that memory is read by whole lines.

A kernel that reads an array down its columns walks its rows in blocks of as many as a vector has
lanes. For each tile of a block the transposed array is loaded along its own rows, transposed in
registers into a small buffer, and read from there. Measured on 4096 x 4096 float32, x.T + y: by
strided loads 3 GB/s, by tiles 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functrans.lowering.c.expressions import C_TYPES, CodeScope, ExprWriter, is_number
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar, Quotient, Remainder
from functrans.lowering.loops.tensor import ITEM_SIZES, Tensor
from functrans.lowering.schedule.group import Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import Domain, Kernel

__all__ = ["TILE_COLUMNS", "TILE_ROWS", "TransposedReads"]

# Columns that are finished before the next block of rows begins: the lines that the blocks of a
# piece share are then still in the first-level cache.
TILE_COLUMNS, TILE_ROWS = 256, 64


class TransposedReads:
    """The part of a kernel's writer that reads through transposed tiles."""

    kernel: Kernel
    domain: Domain
    schedule: Schedule
    prelude: Prelude
    lanes: int
    writer: ExprWriter

    def transposed(self, s: ExprBuilder, elements: Mapping[Tensor, Expr]) -> dict[Any, str]:
        """The loads (tensor, place) of the kernel that go through tiles, and the tiles' names."""
        kernel, d = self.kernel, self.domain
        if self.lanes == 1 or d.total is not None or any(m.role != "full" for m in kernel.members):
            return {}
        if s.undecided:
            return {}
        found: dict[Any, str] = {}
        for e in s.reachable(elements.values()):
            if e.op == "load" and self._is_transposed(e):
                found[e.aux] = f"tile{len(found)}"
        return found

    def _is_transposed(self, e: Expr) -> bool:
        t, place = e.aux
        step = place.coefficient(self.kernel.i)
        if is_number(step, 0) or is_number(step, 1) or not has_constant_stride(place,
                                                                               self.kernel.i):
            return False
        if ITEM_SIZES[t.dtype] not in (4, 8) or ITEM_SIZES[t.dtype] * self.lanes > 64:
            return False
        return self._along_rows(place) is not None

    def _along_rows(self, place: Index) -> LoopVar | Remainder | None:
        """What counts the rows of a place with step 1 within every block of rows."""
        found: LoopVar | Remainder | None = None
        for atom, c in place.terms.items():
            if atom is self.kernel.i:
                continue
            if atom is self.kernel.o and is_number(c, 1):
                found = self.kernel.o
            elif isinstance(atom, Remainder) and is_number(c, 1) and self._whole_blocks(atom):
                found = atom
            elif not (isinstance(atom, Quotient) and self._whole_blocks(atom)):
                return None
        return found

    def _whole_blocks(self, atom: Quotient | Remainder) -> bool:
        """Whether a quotient or remainder of the row number changes only between blocks."""
        return (atom.index == Index.of(self.kernel.o) and isinstance(atom.divisor, int)
                and atom.divisor % self.lanes == 0)

    def tiled_rows(self, tiles: dict[Any, str], head: CodeScope, body: CodeScope) -> None:
        """The loops over pieces of columns, blocks of rows, and tiles."""
        lanes, row = self.lanes, self.writer.size(self.domain.row)
        for (t, _), name in tiles.items():
            head.line(f"{C_TYPES[t.dtype]} {name}[{lanes * lanes}] "
                      "__attribute__((aligned(64)));")
        body.line(f"for (i64 part = 0; part < {row}; part += {TILE_COLUMNS})")
        body.line(f"for (i64 block = begin; block < end; block += {lanes}) {{")
        body.line(f"  const i64 rows = ft_min({lanes}, end - block);")
        body.line(f"  const i64 stop = ft_min(part + {TILE_COLUMNS}, {row});")
        body.line(f"  for (i64 at = part; at < stop; at += {lanes}) {{")
        body.line(f"    const i64 n = ft_min({lanes}, {row} - at);")
        fill = body.nested().nested()
        fill.line("{ const i64 o = block, i = at; (void)o; (void)i;")
        for (t, place), name in tiles.items():
            self._fill(t, place, name, fill)
        fill.line("}")
        body.take(fill)
        whole = isinstance(self.domain.row, int) and self.domain.row % lanes == 0
        for count in (None,) if whole else (None, "n"):
            test = "" if whole else f"if (n == {lanes}) " if count is None else "else "
            body.line(f"    {test}for (i64 r = 0; r < rows; r++) {{")
            body.line("      const i64 o = block + r, i = at; (void)o;")
            self._tile_row(tiles, count, body.nested().nested().nested(), body)
            body.line("    }")
        body.line("  }")
        body.line("}")

    def _fill(self, t: Tensor, place: Index, name: str, out: CodeScope) -> None:
        p, lanes = self.prelude, self.lanes
        self.writer.begin_row(out)
        start = f"{self.writer.owner.operand(t)} + ({self.writer.index(place, out)})"
        step = self.writer.size(place.coefficient(self.kernel.i))
        whole, part = p.transpose(t.dtype, lanes), p.transpose(t.dtype, lanes, True)
        out.line(f"if (n == {lanes} && rows == {lanes}) {whole}({start}, {step}, {name}, {lanes});")
        out.line(f"else {part}({start}, {step}, {name}, {lanes}, n, rows);")

    def _tile_row(self, tiles: dict[Any, str], count: str | None, inner: CodeScope,
                  body: CodeScope) -> None:
        kernel, writer = self.kernel, self.writer
        s = kernel.builder(self.schedule.is_stored)
        row, loop = inner.nested(), inner.nested()
        writer.begin_row(row)
        writer.begin_loop(row, 0, count)
        writer.tiles = {key: f"{name} + r * {self.lanes}" for key, name in tiles.items()}
        for m in kernel.members:
            name = writer.vector(kernel.element(s, m), loop)
            writer.locals[m.tensor] = name
            writer.local_stage[m.tensor] = 0
            if m.tensor in self.schedule.stored:
                base = writer.pointer(writer.owner.operand(m.tensor), kernel.places["full"],
                                      m.tensor)
                loop.line(self.prelude.store(m.tensor.dtype, self.lanes, f"{base} + i", name,
                                             writer.count) + ";")
        writer.tiles = {}
        body.take(row)
        body.take(loop)

