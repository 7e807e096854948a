"""Reductions along rows as Triton functions: rows in registers, or walked in chunks.

Rows that are too long for registers are walked once for each stage. Reductions over columns beside
those along rows are folded by programs that walk the rows.
"""

from __future__ import annotations

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, reachable_expressions
from functrans.lowering.loops.tensor import Reduce, Tensor
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of
from functrans.lowering.triton.kernels.column_reductions import (
    ROW_TILE,
    ColumnReductionWriter,
    RowSplit,
    spread,
)
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import KernelSource, Options, power_of_two
from functrans.lowering.triton.kernels.reductions import TileReduction, tile_reduction
from functrans.lowering.triton.kernels.writer import TILE, TritonKernelWriter

__all__ = ["LongRowReductionWriter", "RowReductionWriter", "row_writer"]

LONGEST_ROW = 16384  # that is kept in registers
LEAST_TILE = 512
CHUNK = 4096
# Of an element: 32 elements of a thread take most registers
MANY_LOADS, MANY_OPERATIONS = 6, 32
WALKED_TILE = 4096  # of rows beside which columns are folded, by `Target.walkers` programs


def row_writer(kernel: Kernel, schedule: Schedule, options: Options) -> TritonKernelWriter:
    """What writes a kernel with reductions along rows."""
    rows = RowReductionWriter(kernel, schedule, options)
    if rows.row <= LONGEST_ROW:
        return rows
    if rows.reduces_columns:
        raise UnsupportedKernel("rows too long to fold columns beside them")
    return LongRowReductionWriter(kernel, schedule, options)


class RowReductionWriter(ColumnReductionWriter):
    """Writes kernels whose rows are in registers whole."""

    @property
    def reduces_columns(self) -> bool:
        return any(m.role in ("reduce_column", "reduce_all") for m in self.kernel.members)

    def write(self) -> list[KernelSource]:
        block_i = power_of_two(self.row)  # of four, softmax of 8192 x 5000 takes 2.6 times as long
        return self._beside_columns(block_i) if self.reduces_columns else [self._rows(block_i)]

    def _rows(self, block_i: int) -> KernelSource:
        tile = self._tile()
        fits = max(1, tile // block_i)
        block_o = min(self.extent(self.per_part, fits), fits)
        self.emit_program()
        w = self.tile_writer(*self.axes(f"pid * {block_o}", self.rows, block_o, "0", self.row,
                                        block_i))
        self.load_early(w)
        for m in self.kernel.members:
            self.other(w, m)
        warps = row_warps if tile == ROW_TILE else spread
        return self.written(-(-self.rows // block_o), block_o * block_i, warps(block_o * block_i))

    def _tile(self) -> int:
        """A smaller tile where there are too few rows for all multiprocessors."""
        tile = ROW_TILE
        while (tile > LEAST_TILE and 2 * self.rows * self.row < self.options.target.walkers * tile
               and not self.any_size):
            tile //= 2
        return tile

    def _beside_columns(self, block_i: int) -> list[KernelSource]:
        fits = max(1, self._walked_tile() // block_i)
        block_o = min(self.extent(self.per_part, fits), fits)
        tiles = -(-self.per_part // block_o)
        walkers = max(1, self.options.target.walkers // self.parts)
        walk = RowSplit(min(tiles, walkers), 1, block_o, block_i)
        self.emit_program()
        share = self.n(walk.splits, "programs", near=False)
        per_part = self.n(self.per_part, "per_part", near=False)
        self.emit("column = 0")
        self.emit(f"part = pid // {share}")
        self.emit(f"split = pid % {share}")
        accumulators = self.walk_begins(walk, tiles, share)
        w = self.walked(walk, f"part * {per_part} + t * {block_o}", "0")
        self.walk_members(w, accumulators)
        return self.finished(walk, accumulators, walking_warps(walk.tile, self._holds_many))

    @property
    def _holds_many(self) -> bool:
        """Whether an element takes many registers: 32 of a thread would not fit.

        Of a ray's distances they took 255 and 72 numbers in memory, of 8 elements 128 and none, and
        the kernel compiles in a third of the time.
        """
        operations = sum(bool(e.args) and e.depends_on(self.kernel.i)
                         for e in reachable_expressions(self.elements.values()))
        return self.loads_of_elements() >= MANY_LOADS or operations >= MANY_OPERATIONS

    def _walked_tile(self) -> int:
        """A smaller tile where there are too few rows for all programs, or much is read of each."""
        tile = WALKED_TILE // 2 if self._holds_many else WALKED_TILE
        while tile > TILE and self.rows * self.row < self.options.target.walkers * tile:
            tile //= 2
        return tile

    def other(self, w: TileWriter, m: Member) -> None:
        """A member at rows that are in registers whole."""
        if m.role != "reduce_row":
            self.value(w, m)
            return
        assert isinstance(m.tensor, Reduce)
        fold = tile_reduction(m.tensor)
        reduce_rows(self, w, m.tensor, fold, self.reduction_operands(w, m.tensor, fold, "i"))


class LongRowReductionWriter(TritonKernelWriter):
    """Writes rows in chunks, once for each stage; what a later stage reads is computed again."""

    def write(self) -> list[KernelSource]:
        block_o = 1
        self.emit_program()
        stages = stages_of(self.kernel, self.elements)
        results: dict[Tensor, str] = {}
        stored: set[Tensor] = set()
        for stage in range(max(stages.values()) + 1):
            members = [m for m in self.kernel.members if stages[m.tensor] == stage]
            folds = self.reductions_of([m for m in members if m.role == "reduce_row"])
            accumulators = {t: self.accumulators(fold, (block_o, CHUNK))
                            for t, fold in folds.items()}
            self.emit(f"for t in range(0, {self.n(self.row, 'row')}, {CHUNK}):")
            self.indent = "        "
            w = self._chunk(block_o, "t", results)
            for m in members:
                if m.tensor in folds:
                    names, fold = accumulators[m.tensor], folds[m.tensor]
                    values = self.reduction_operands(w, m.tensor, fold, "i")
                    self.emit(f"{', '.join(names)} = {fold.combined(names, values)}")
                elif m.role in ("full", "any_flag") and m.tensor not in stored:
                    stored.add(m.tensor)
                    self.value(w, m)
                elif m.role == "row":
                    w.locals[m.tensor] = self.computed(w, m.tensor)
            self.indent = "    "
            outer = self._chunk(block_o, "0", results)
            for m in members:
                if m.tensor in folds:
                    reduce_rows(self, outer, m.tensor, folds[m.tensor], accumulators[m.tensor])
                elif m.role == "row":
                    self.value(outer, m)
                elif m.role == "any_flag_row":
                    self.value(outer, m)
                    continue
                else:
                    continue
                results[m.tensor] = outer.locals[m.tensor]
        return [self.written(self.rows, block_o * CHUNK)]

    def _chunk(self, block_o: int, start: str, results: dict[Tensor, str]) -> TileWriter:
        masks = self.axes("pid", self.rows, block_o, start, self.row, CHUNK)
        return _Recompute(self, masks, results)


class _Recompute(TileWriter):
    """Recomputes the values of earlier stages where they are read."""

    def __init__(self, owner: TritonKernelWriter, masks: tuple[str | None, str | None],
                 results: dict[Tensor, str]) -> None:
        super().__init__(owner.kernel, owner.emit, owner.pointer, owner.fresh,
                         {"o": masks[0], "i": masks[1]}, owner.numbers, owner.packed)
        self._owner = owner
        owner.writers.append(self)
        self.locals.update(results)

    def expression(self, e: Expr) -> str:
        if e.op == "local" and e.aux not in self.locals:
            value = super().expression(self._owner.elements[e.aux])
            self.locals[e.aux] = self.as_stored(value,
                                                e.aux) if self._owner.is_materialized(e.aux) \
                else value
        return super().expression(e)


def reduce_rows(owner: TritonKernelWriter, w: TileWriter, t: Tensor, fold: TileReduction,
                values: list[str]) -> None:
    """Reduce a tile along its rows, and store the results that other kernels read."""
    names = owner.named_all(len(values), fold.reduced(values, 1))
    w.locals[t] = w.name(fold.result(names))
    if owner.is_materialized(t):
        w.locals[t] = w.as_stored(w.locals[t], t)
        owner.store_in_rows(w, t)


def row_warps(tile: int) -> int:
    """Warps for rows in registers: 16 elements a thread (8192 x 1024: 9 us; with 8, 12)."""
    return power_of_two(min(16, max(1, tile // 512)))


def walking_warps(tile: int, holds_many: bool) -> int:
    """Warps of kernels that reduce columns, too, whose accumulators take registers.

    A thread has 32 elements, 8 where it holds many numbers for each.
    """
    return power_of_two(min(16, max(4, tile // (256 if holds_many else 1024))))
