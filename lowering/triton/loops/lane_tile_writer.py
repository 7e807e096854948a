"""The text of a kernel whose programs each compute a tile of lanes, in loops of their own.

Lanes stand along the second axis of a tile, as many as a program takes, their components along the
first. Matrices that lanes share are loaded before the loops in which they do not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from functrans.core.precision import Precision
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_tile_reader import (
    PART_COMPONENTS,
    Fold,
    LaneTileReader,
    Side,
    WideProduct,
)
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.target import Target
from functrans.lowering.schedule.tile_costs import RATES
from functrans.lowering.schedule.tile_space import extent
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.reductions import TileReduction
from functrans.lowering.triton.loops.thread_writer import LineBlock, ThreadWriter

__all__ = ["LaneTileWriter"]

WIDE_BLOCKS: Final = (256, 128)
"""Components that a loop over more than a tile has takes at once."""
OTHER_SHARED: Final = 64 << 10
"""Bytes of shared memory for tiles, beside matrices that stay with a program in its loops."""
WIDE_STAGES: Final = 2
"""Blocks of a shared matrix that are on their way or there."""
NARROW_OPERANDS: Final = {"bf16": "tl.bfloat16", "f16": "tl.float16"}


class LaneTileWriter(ThreadWriter):
    """Writes expressions over a tile of `block` lanes, each in its loop.

    `nanoseconds` are what a program takes for what has been written.
    """

    def __init__(self, reader: LaneTileReader, block: int, ragged: bool, target: Target) -> None:
        super().__init__()
        self.block.indent = "    "
        self.reader, self.lanes, self.target = reader, block, target
        self.masks = {reader.lane.name: "in_lane" if ragged else None}
        self.kept_bytes = 0
        self._stays = False
        self.trips: dict[LoopVar, int] = {}
        """How often a loop runs, by what changes with it."""
        self.nanoseconds = 0.0
        self.busy = 0.0
        """Of these, what a multiprocessor cannot do for another program meanwhile."""

    # --------------------------------------------------------------------------- shapes

    def extent(self, v: LoopVar) -> int:
        """How many components, or terms, a tile has."""
        assert isinstance(v.high, int)
        if not self._is_wide(v):
            return extent(v.high)
        return min(WIDE_BLOCKS, key=lambda n: -v.high % n)

    def extent_of(self, n: int) -> int:
        """How many numbers a tile has of n."""
        return extent(n)

    def _is_wide(self, v: LoopVar) -> bool:
        known = self.reader
        return v in known.wide or v in known.wide.values() or v in known.parts.values()

    def mask(self, variables: Iterable[LoopVar]) -> str | None:
        found = []
        for v in sorted(variables, key=lambda v: v.name):
            if v is self.reader.lane:
                found.append(self.masks[v.name])
            elif self._is_inner(v) and isinstance(v.high, int) and v.high % self.extent(v):
                found.append(f"in_{v.name}")
        return " & ".join(m for m in found if m) or None

    def _is_inner(self, v: LoopVar) -> bool:
        return self._is_wide(v) or v in self.reader.components.values() \
            or v in self.reader.terms.values() or v in self.reader.across.values() \
            or v in self.reader.parted.values()

    def lanes_of(self, e: Expr) -> int:
        """The lanes of the tile that an expression is; one where they share it."""
        return self.lanes if self.reader.lane in e.variables else 1

    def whole(self, e: Expr, components: LoopVar | None) -> str:
        """An expression as a tile with all its components."""
        return self.name(f"tl.broadcast_to({self.expression(e)}, "
                         f"{self.shape(components, self.lanes_of(e))})")

    def shape(self, components: LoopVar | None, lanes: int) -> tuple[int, int]:
        """The shape of a tile."""
        return (1 if components is None else self.extent(components), lanes)

    def numbers(self) -> list[str]:
        """The lines that number components, and terms."""
        lines = []
        known = self.reader
        for lane, variables in (("[:, None]", known.components), ("[None, :]", known.terms),
                                ("[None, :, None]", known.across)):
            for n, v in variables.items():
                lines.append(f"    {v.name} = tl.arange(0, {extent(n)}){lane}")
                if n % extent(n):
                    lines.append(f"    in_{v.name} = {v.name} < {n}")
        for (n, parts), v in known.parted.items():
            each = extent(n) // parts
            lines.append(f"    {v.name} = tl.arange(0, {parts})[:, None, None] * {each}"
                         f" + tl.arange(0, {each})[None, None, :]")
            if n % extent(n):
                lines.append(f"    in_{v.name} = {v.name} < {n}")
        return lines

    # --------------------------------------------------------------------------- expressions

    def expression(self, e: Expr) -> str:
        """As of other writers; a matrix for which there is no room is loaded where it is used."""
        if not self._stays and (e.op != "right" or e in self._known or self._has_room(e)):
            return super().expression(e)
        before, self._stays = self._stays, True
        try:
            return TileWriter.expression(self, e)
        finally:
            self._stays = before

    def _has_room(self, e: Expr) -> bool:
        """Whether a matrix stays with the program, if nothing in a loop changes it."""
        if not self.block.may_hoist(e):
            return True
        nbytes = 4 * self.extent(e.aux.components) * self.extent(e.aux.along)
        if self.kept_bytes + nbytes > self.target.shared - OTHER_SHARED:
            return False
        self.kept_bytes += nbytes
        return True

    def _written(self, e: Expr) -> str:
        special: dict[str, Callable[[Expr], str]] = {
            "component": self._component, "fold": self._fold, "product": self._product,
            "left": self._left, "right": self._right}
        make = special.get(e.op)
        if make is not None:
            return make(e)
        if e.args:
            self._spend(0.0, self._area(e) / self.target.measured.tile_operations)
        return super()._written(e)

    def _operation(self, e: Expr, args: list[str]) -> str:
        """As on other tiles: what is shorter for a thread may branch."""
        return TileWriter._operation(self, e, args)

    def _area(self, e: Expr) -> float:
        """Elements of the tile of an expression."""
        return math.prod([self.lanes_of(e), *[self.extent(v) for v in e.variables
                                             if self._is_inner(v)]])

    def _spend(self, waits: float, works: float) -> None:
        """Count what is written next, as often as its loops run."""
        times = 1
        block: LineBlock | None = self.block
        while block is not None:
            times *= self.trips.get(block.variable, 1) if block.variable is not None else 1
            block = block.outer
        self.nanoseconds += times * (waits + works)
        self.busy += times * works

    def _component(self, e: Expr) -> str:
        """A component: the sum of its bits and of zeros."""
        (whole,), (components, k) = e.args, e.aux
        x = self.expression(whole)
        self._spend(self.target.measured.tile_reduction, 0.0)
        where = f"{components.name} == {k}"
        if e.dtype[0] == "f":
            bits = "tl.int64" if e.dtype == "f64" else "tl.int32"
            kind = "tl.float64" if e.dtype == "f64" else "tl.float32"
            taken = self.name(f"tl.sum(tl.where({where}, {x}.to({bits}, bitcast=True), 0), 0, "
                              "keep_dims=True)")
            return self.name(f"{taken}.to({bits}).to({kind}, bitcast=True)")
        if e.dtype == "bool":
            return self.name(f"tl.sum(tl.where({where}, {x}.to(tl.int32), 0), 0, "
                             "keep_dims=True) != 0")
        return self.name(f"tl.sum(tl.where({where}, {x}, 0), 0, keep_dims=True).to({x}.dtype)")

    def _fold(self, e: Expr) -> str:
        """A reduction of components; of more than a tile has, block by block."""
        (inner,) = e.args
        how: Fold = e.aux
        op = how.op
        if how.dtype == "bool":
            op = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
        fold, v = TileReduction(op, how.dtype), how.components
        self._spend(self.target.measured.tile_reduction, 0.0)

        def terms() -> list[str]:
            inside = self.mask([v]) or f"{v.name} >= 0"
            names = [self.name(fold.masked(self.whole(inner, v), inside))]
            if fold.is_place:
                place = f"tl.broadcast_to({v.name}, {names[0]}.shape)"
                names.append(self.name(f"tl.where({inside}, {place}, {2**31 - 1}).to(tl.int32)"))
            return names

        if self._is_wide(v):
            found = [self.name(x) for x in fold.initial(str(self.shape(v, self.lanes_of(inner))))]
            with self.blocks(v):
                self.emit(f"{', '.join(found)} = {fold.combined(found, terms())}")
        else:
            found = terms()
        done = [self.fresh() for _ in found]
        self.emit(f"{', '.join(done)} = {fold.reduced(found, 0)}")
        return self.name(fold.result(done))

    @contextmanager
    def blocks(self, v: LoopVar, parts: int = 1) -> Iterator[None]:
        """The loop over blocks of components, of more than a tile has, and of parts of their terms.
        """
        assert isinstance(v.high, int)
        terms, block, start = self.reader.wide[v], self.extent(v), self.fresh()
        self.trips[v] = -(-v.high // block)
        with self.nested(f"for {start} in tl.range(0, {v.high}, {block}, "
                         f"num_stages={WIDE_STAGES}):", v,
                         frozenset({terms, self.reader.parts.get(v, terms)})):
            numbers = [(v, f"tl.arange(0, {block})[:, None]"),
                       (terms, f"tl.arange(0, {block})[None, :]")]
            if v in self.reader.parts:
                each = block // parts
                numbers[1] = (self.reader.parts[v], f"tl.arange(0, {parts})[:, None, None] * {each}"
                              f" + tl.arange(0, {each})[None, None, :]")
            for x, number in numbers:
                self.emit(f"{x.name} = {start} + {number}")
                if v.high % block:
                    self.emit(f"in_{x.name} = {x.name} < {v.high}")
            yield

    # --------------------------------------------------------------------------- products

    def _left(self, e: Expr) -> str:
        return self._side(e, e.aux, self.whole(e.args[0], e.aux.along))

    def _right(self, e: Expr) -> str:
        how: Side = e.aux
        assert how.components is not None
        shape: tuple[int, ...] = (self.extent(how.components), self.extent(how.along))
        if self._is_in_parts(how.along):
            parts = self._parts(how.components)
            shape = (parts, shape[0], shape[1] // parts)
        self._spend(4 * math.prod(shape) / self.target.measured.one_bandwidth, 0.0)
        return self._side(e, how, self.name(
            f"tl.broadcast_to({self.expression(e.args[0])}, {shape})"))

    def _side(self, e: Expr, how: Side, x: str) -> str:
        """A tile that a tensor core reads: 0 behind the end of the sum."""
        if inside := self.mask([how.along]):
            x = self.name(f"tl.where({inside}, {x}, 0.0)")
        if how.dtype in NARROW_OPERANDS:
            return self.name(f"{x}.to({NARROW_OPERANDS[how.dtype]})")
        return self.name(f"fm.tf32({x})") if how.precision is Precision.DEFAULT else x

    def _product(self, e: Expr) -> str:
        (x, w), how = e.args, e.aux
        assert isinstance(how, WideProduct)
        wide = self._is_wide(how.left)
        assert isinstance(how.left.high, int)
        rate = RATES[how.precision] if x.aux.dtype == "f32" else \
            {"bf16": "bf16", "f16": "fp16"}[x.aux.dtype]
        self.spend_on_product(how.left.high, self.lanes, self.extent(how.components), rate)
        precision = RATES[how.precision] if x.aux.dtype == "f32" else "ieee"
        tail = f"input_precision='{precision}', out_dtype=tl.float32)"
        shape = self.shape(how.components, self.lanes)
        parts = self._parts(how.components) if self._is_in_parts(how.right) else 0

        def left() -> str:
            filled = self._filled(x)
            each = self.extent(how.left) // parts if parts else 0
            return f"tl.reshape({filled}, ({parts}, {each}, {self.lanes}))" if parts else filled

        if wide:
            acc = self.name(f"tl.zeros({(parts, *shape) if parts else shape}, tl.float32)")
            with self.blocks(how.left, parts):
                right = self.expression(w)
                self.emit(f"{acc} = tl.dot({right}, {left()}, {acc}, {tail}")
        else:
            right = self.expression(w)
            acc = self.name(f"tl.dot({right}, {left()}, {tail}")
        return self.name(f"tl.sum({acc}, 0)") if parts else acc

    def _is_in_parts(self, terms: LoopVar) -> bool:
        return terms in self.reader.parts.values() or terms in self.reader.parted.values()

    def _parts(self, components: LoopVar) -> int:
        """In how many parts warps add up a wide product: each has 16 components at least."""
        return PART_COMPONENTS // self.extent(components)

    def spend_on_product(self, terms: int, left: int, right: int, rate: str) -> None:
        """Count a product of so many terms that is written next."""
        figures = self.target.measured
        self._spend(figures.tile_product, 2 * terms * left * right / (
            figures.rates[rate] * figures.tile_efficiency))

    def _filled(self, x: Expr) -> str:
        """The left side with all lanes."""
        name = self.expression(x)
        return name if self.lanes_of(x) == self.lanes else self.name(
            f"tl.broadcast_to({name}, {self.shape(x.aux.along, self.lanes)})")

    # --------------------------------------------------------------------------- memory

    def store_tile(self, t: Tensor, place: Index, e: Expr, only: str = "") -> None:
        """Store an element of every lane and component; where only some do, these."""
        variables = place.variables()
        inner = [v for v in variables if self._is_inner(v)]
        shape = self.shape(inner[0] if inner else None,
                           self.lanes if self.reader.lane in variables else 1)
        value = self.stored(self.name(f"tl.broadcast_to({self.expression(e)}, {shape})"), t)
        inside = " & ".join(filter(None, [self.mask(variables), only]))
        mask = f", mask=({inside}) & tl.full({shape}, 1, tl.int1)" if inside else ""
        self.emit(f"tl.store({self.pointer(t)} + ({self.place(t, place)}) "
                  f"+ tl.zeros({shape}, tl.int32), {value}{mask})")
