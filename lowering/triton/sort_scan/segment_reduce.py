"""Segment reduction: sorted rows of updates are reduced into rows of a base.

Where the updates of each row begin and end is written down first, and a program folds those of one
row, in order. Pieces of the updates that are all of one row are folded before, each in a program of
its own: a row that has most of them would take long otherwise. Where updates are few beside rows,
there is a program for each update instead: the first of a row looks for the last, folds them, and
no other row is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import NARROW, Map, Tensor, compute_dtype
from functrans.lowering.passes.indexing import (
    COMBINING_SCATTERS,
    is_atomic,
    sorted_segment_reduce_p,
)
from functrans.lowering.rules import indexing
from functrans.lowering.rules.graph import results_of
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.expressions import narrow, widened
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
    literal,
    power_of_two,
)
from functrans.lowering.triton.kernels.reductions import TileReduction
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel, pointer

__all__ = ["RULES", "SegmentReduceCall"]

BLOCK = 1024  # places of a program that looks where rows begin
COLUMNS = 1024  # few programs: most rows have few updates
WIDE, NARROW_TILE, WIDE_TILE = 128, 256, 1024  # elements of updates that a program reads at a time
PIECE = 128  # updates, and at least so many tiles:
TILES = 4
FEW = 2  # updates are few where there are so many times as many rows
COPYING = 1056  # programs that copy the base, 8 a multiprocessor


class SegmentReduceCall(AxisCall):
    """`sorted_segment_reduce`: base, keys, order and updates to the base with the updates in it."""

    name = "segment reduction"
    replaces_elements = True

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        base, self.keys, self.order, self.updates = xs
        self.start = _constant(base)
        self.base = self.updated = None if self.start is not None else base
        operands = [t for t in (self.base, *xs[1:]) if t is not None]
        super().__init__(operands, results_of(eqn), eqn.source)
        self.rows, self.width = map(int, base.shape)
        self.count = int(self.keys.size)
        self.dtype = base.dtype
        self.fold = TileReduction(eqn.params["op"], compute_dtype(base.dtype))
        self.block_c = min(power_of_two(self.width), COLUMNS)
        tile = WIDE_TILE if self.width >= WIDE else NARROW_TILE
        self.block_p = tile // min(self.block_c, tile)
        self.warps = max(1, self.block_p * self.block_c // 256)
        self.across = -(-self.width // self.block_c)
        self.piece = max(PIECE, TILES * self.block_p)
        self.pieces = self.count // self.piece  # what is left over is in none
        self.is_few = self.base is not None and FEW * self.count <= self.rows

    def launches(self) -> Launches:
        places: dict[str, tuple[KernelOperand, int]] = {
            "out": (self.results[0], 0), "keys": (self.keys, 0), "order": (self.order, 0),
            "updates": (self.updates, 0)}
        if self.base is not None:
            places["base"] = (self.base, 0)
        if self.is_few:
            found = [self._copied(), self._folded()]
        else:
            bounds = PartialResults(1, 2 * self.rows, "i32")
            places |= {"begins": (bounds, 0), "ends": (bounds, 4 * self.rows)}
            found = [self._cleared(), self._bounds(), self._folded()]
        if self.pieces:
            places["pieces"] = (PartialResults(self.pieces, self.width, self.fold.dtype), 0)
            found.insert(-1, self._pieces())
        return Launches(found, places)

    # --------------------------------------------------------------------------- text

    def _kernel(self, name: str, pointers: dict[str, str], lines: Sequence[str], grid: int,
                warps: int = 4) -> TemplateKernel:
        arguments: list[Argument] = [pointer(n, t, n != "ends" or self.rows % 4 == 0)
                                     for n, t in pointers.items()]
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {x}\n" for x in lines)
        return TemplateKernel(name, module_text(text), tuple(arguments), (grid, 1, 1), warps, 3)

    def _read(self, where: str, mask: str) -> str:
        """An element of the base or of updates, as it is computed with."""
        text = f"tl.load({where}, mask={mask}, other=0)"
        return widened(text, self.dtype) if self.dtype in NARROW else text

    def _accumulator(self) -> str:
        return f"acc = {self.fold.initial(f'({self.block_p}, {self.block_c})')[0]}"

    def _walk(self, first: str, end: str, pieces: bool = False) -> list[str]:
        """Add to `acc` the updates, or the pieces, from one place up to another."""
        row = "p" if pieces else "at"
        where = f"{'pieces' if pieces else 'updates'} + {row}.to(tl.int64) * {self.width} + c"
        value = f"tl.load({where}, mask=inside, other=0)" if pieces else \
            self._read(where, "inside")
        order = [] if pieces else [f"    at = tl.load(order + p, mask=p < {end}, other=0)"]
        return [f"for t in range({first}, {end}, {self.block_p}):",
                f"    p = t + tl.arange(0, {self.block_p})[:, None]", *order,
                f"    inside = (p < {end}) & (c < {self.width})",
                f"    value = {self.fold.masked(value, 'inside')}",
                f"    acc = {self.fold.combined(['acc'], ['value'])}"]

    def _columns(self, what: str) -> list[str]:
        return ["pid = tl.program_id(0)", f"{what} = pid // {self.across}",
                f"c = (pid % {self.across}) * {self.block_c} + tl.arange(0, {self.block_c})"
                "[None, :]"]

    # --------------------------------------------------------------------------- kernels

    def _cleared(self) -> TemplateKernel:
        size = 2 * self.rows
        return self._kernel("cleared", {"begins": "i32"}, [
            f"i = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})",
            f"tl.store(begins + i, 0, mask=i < {size})"], -(-size // BLOCK))

    def _bounds(self) -> TemplateKernel:
        n = self.count
        lines = [f"p = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})", f"inside = p < {n}",
                 f"key = tl.load(keys + p, mask=inside, other={self.rows})",
                 "before = tl.load(keys + p - 1, mask=inside & (p > 0), other=-1)",
                 "first = inside & (key != before)",
                 f"tl.store(begins + key, p, mask=first & (key < {self.rows}))",
                 "tl.store(ends + before, p, mask=first & (p > 0))",
                 f"tl.store(ends + key, p + 1, mask=(p == {n - 1}) & (key < {self.rows}))"]
        return self._kernel("bounds", {"keys": "i32", "begins": "i32", "ends": "i32"}, lines,
                            -(-n // BLOCK))

    def _pieces(self) -> TemplateKernel:
        """Partials of pieces that belong to one row; those of other pieces are not read."""
        lines = [*self._columns("piece"), f"first = piece * {self.piece}",
                 "one = tl.load(keys + first)",
                 f"same = one == tl.load(keys + first + {self.piece - 1})",
                 f"end = tl.where(same & (one < {self.rows}), first + {self.piece}, first)",
                 self._accumulator(), *self._walk("first", "end"),
                 f"place = pieces + piece.to(tl.int64) * {self.width} + c",
                 f"inside = (c < {self.width}) & (c * 0 + first < end)",
                 f"tl.store(place, {self.fold.reduced(['acc'], 0)}, mask=inside)"]
        return self._kernel("pieces_of_rows", {
            "pieces": MEMORY[self.fold.dtype], "keys": "i32", "order": "i32",
            "updates": MEMORY[self.dtype]}, lines, self.pieces * self.across, self.warps)

    def _copied(self) -> TemplateKernel:
        """The base in the memory of the result, where it is not there already."""
        size, kind = self.rows * self.width, MEMORY[self.dtype]
        lines = ["first = tl.program_id(0).to(tl.int64)", f"size = {size}",
                 "if out.to(tl.int64) == base.to(tl.int64):", "    size = 0",
                 f"for t in range(first * {BLOCK}, size, {COPYING * BLOCK}):",
                 f"    i = t + tl.arange(0, {BLOCK})", f"    inside = i < {size}",
                 "    tl.store(out + i, tl.load(base + i, mask=inside), mask=inside)"]
        return self._kernel("copied", {"out": kind, "base": kind}, lines,
                            min(COPYING, -(-size // BLOCK)))

    def _found_by_update(self) -> list[str]:
        """The row of an update and the end of its updates, which is their begin for all but one."""
        n = self.count
        return [*self._columns("begin"), "row = tl.load(keys + begin)",
                "before = tl.load(keys + begin - 1, mask=begin > 0, other=-1)",
                f"is_first = (row != before) & (row < {self.rows})",
                "end = tl.where(is_first, begin + 1, begin)",
                f"above = tl.where(is_first, {n}, begin)",
                f"for t in range({n.bit_length()}):", "    middle = (end + above) // 2",
                "    same = tl.load(keys + middle, mask=end < above, other=-1) == row",
                "    above = tl.where((end < above) & (same == 0), middle, above)",
                "    end = tl.where((end < above) & same, middle + 1, end)"]

    def _folded(self) -> TemplateKernel:
        """A row: updates up to the first whole piece, pieces, and what comes after them."""
        pointers = {"out": MEMORY[self.dtype], "updates": MEMORY[self.dtype], "order": "i32"}
        if self.is_few:
            lines = self._found_by_update()
            pointers["keys"] = "i32"
        else:
            lines = [*self._columns("row"), "begin = tl.load(begins + row)",
                     "end = tl.load(ends + row)"]
            pointers |= {"begins": "i32", "ends": "i32"}
        lines.append(self._accumulator())
        if self.pieces:
            lines += [f"first = (begin + {self.piece - 1}) // {self.piece}",
                      f"last = end // {self.piece}",
                      f"head = tl.where(first < last, first * {self.piece}, end)",
                      f"tail = tl.where(first < last, last * {self.piece}, end)",
                      *self._walk("begin", "head"), *self._walk("first", "last", pieces=True),
                      *self._walk("tail", "end")]
            pointers["pieces"] = MEMORY[self.fold.dtype]
        else:
            lines += self._walk("begin", "end")
        lines += [f"found = {self.fold.reduced(['acc'], 0)}",
                  f"place = row.to(tl.int64) * {self.width} + c"]
        if self.start is not None:
            lines.append(f"old = {literal(self.start, self.fold.dtype)}")
        else:
            lines.append(f"old = {self._read('base + place', f'c < {self.width}')}")
            pointers["base"] = MEMORY[self.dtype]
        value = f"tl.where(begin < end, {self.fold.combined(['old'], ['found'])}, old)"
        if self.dtype in NARROW:
            value = narrow(f"({value})", self.dtype)
        inside = f"c < {self.width}"
        if self.is_few:
            inside = f"({inside}) & (c * 0 + begin < end)"
        lines.append(f"tl.store(out + place, {value}, mask={inside})")
        programs = self.count if self.is_few else self.rows
        return self._kernel("folded", pointers, lines, programs * self.across, self.warps)


def _constant(t: Tensor) -> Any:
    """The number that every element of a tensor is, or None."""
    variables = tuple([Index.of(LoopVar(f"d{k}", n)) for k, n in enumerate(t.shape)])
    e = ExprBuilder(lambda x: not isinstance(x, Map)).read(t, variables)
    return e.aux if e.op == "const" else None


def _combining(primitive: Primitive) -> Callable[[Equation, list[Tensor]], Tensor | None]:
    def rule(eqn: Equation, xs: list[Tensor]) -> Tensor | None:
        found = indexing.RULES[primitive](eqn, xs) if is_atomic(eqn) else None
        return None if found is None else found[0]
    return rule


RULES: dict[Primitive, Any] = {sorted_segment_reduce_p: SegmentReduceCall,
                               **{p: _combining(p) for p in COMBINING_SCATTERS}}
