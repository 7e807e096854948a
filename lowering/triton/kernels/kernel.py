"""Kernels of the schedule as Triton functions.

A program of the grid computes a tile of rows and places along them. Kernels that fold rows keep
whole rows in registers, or walk them in chunks where they are too long, once for each stage;
kernels that fold columns walk rows, and what the programs found is added up by the last of them, or
by a second launch.
"""

from __future__ import annotations

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.split_reductions import reduces_transposed_tiles
from functrans.lowering.triton.kernels.column_reductions import ColumnReductionWriter
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import (
    ArrivalCounters,
    KernelSource,
    Options,
    PartialResults,
)
from functrans.lowering.triton.kernels.reductions import (
    REDUCED_AT_ONCE,
    TileReduction,
    partials_of,
    reduce_partials,
)
from functrans.lowering.triton.kernels.row_reductions import row_writer
from functrans.lowering.triton.kernels.scatters import ScatterWriter
from functrans.lowering.triton.kernels.writer import TRANSPOSED_TILE, TritonKernelWriter

__all__ = ["TransposedReductionWriter", "write_kernel"]


# --- Kernels with transposed loads and reductions along rows, as Triton functions
#
# A program transposes a tile in shared memory and reduces it; the last program of the same rows
# combines the partials of all.

class TransposedReductionWriter(TritonKernelWriter):
    """Writes kernels with transposed loads whose reductions along rows no member reads."""

    def write(self) -> list[KernelSource]:
        w, grid, tile = self.begin_tiles()
        count = -(-self.row // TRANSPOSED_TILE)
        found: dict[Tensor, tuple[TileReduction, list[PartialResults]]] = {}
        folds = self.reductions_of([m for m in self.kernel.members if m.role == "reduce_row"])
        for m in self.kernel.members:
            if m.tensor in folds:
                fold = folds[m.tensor]
                values = self.reduction_operands(w, m.tensor, fold, "i")
                names = self.named_all(len(values), fold.reduced(values, 1))
                partials = partials_of(fold, count, self.rows)
                for p, name in zip(partials, names, strict=True):
                    self._store(w, f"{self.pointer(p)} + (pid % {count}) * {self.rows}", name)
                found[m.tensor] = fold, partials
            else:
                self.value(w, m)
        done = self.begin_last_arrival(ArrivalCounters(grid // count), f"pid // {count}",
                                       str(count))
        mask = w.masks["o"]
        for t, (fold, partials) in found.items():
            names = reduce_partials(self.emit, self.fresh, fold,
                                    [self.pointer(p) for p in partials],
                                    (TRANSPOSED_TILE, min(self.extent(count),
                                                          REDUCED_AT_ONCE // TRANSPOSED_TILE)), 1,
                                    str(count), str(self.rows), "o", mask)
            self._store(w, self.pointer(t), w.stored(self.named(fold.result(names)), t))
        self.end_last_arrival(done)
        return [self.written(grid, tile)]

    def _store(self, w: TileWriter, where: str, value: str) -> None:
        mask = f", mask={w.masks['o']}" if w.masks["o"] else ""
        self.emit(f"tl.store({where} + o, {value}{mask})")


def write_kernel(kernel: Kernel, schedule: Schedule, options: Options) -> list[KernelSource]:
    """The launches of a kernel. Raises UnsupportedKernel for what Triton cannot say."""
    roles = {m.role for m in kernel.members}
    if "scatter" in roles:
        return ScatterWriter(kernel, schedule, options).launches()
    if reduces_transposed_tiles(
        kernel, schedule.is_stored) and options.has_arrival_counters and not options.any_size:
        return TransposedReductionWriter(kernel, schedule, options).launches()
    if "reduce_row" in roles:
        return row_writer(kernel, schedule, options).launches()
    if roles & {"reduce_column", "reduce_all"}:
        return ColumnReductionWriter(kernel, schedule, options).launches()
    return ElementWriter(kernel, schedule, options).launches()


class ElementWriter(TritonKernelWriter):
    """Writes kernels without reductions."""

    def write(self) -> list[KernelSource]:
        w, grid, tile = self.begin_tiles()
        for m in self.kernel.members:
            self.value(w, m)
        return [self.written(grid, tile)]
