"""Kernels of the schedule as Triton functions.

A program of the grid computes a tile of rows and places along them. Kernels that fold rows keep
whole rows in registers, or walk them in chunks where they are too long, once for each stage;
kernels that fold columns walk rows, and what the programs found is added up by the last of them, or
by a second launch.
"""

from __future__ import annotations

from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.transposed_reads import reduces_transposed_tiles
from functrans.lowering.triton.kernels.column_reductions import ColumnReductionWriter
from functrans.lowering.triton.kernels.kernel_source import KernelSource, Options
from functrans.lowering.triton.kernels.row_reductions import row_writer
from functrans.lowering.triton.kernels.scatters import ScatterWriter
from functrans.lowering.triton.kernels.transposed_reductions import TransposedReductionWriter
from functrans.lowering.triton.kernels.writer import TritonKernelWriter

__all__ = ["write_kernel"]


def write_kernel(kernel: Kernel, schedule: Schedule, options: Options) -> list[KernelSource]:
    """The launches of a kernel. Raises UnsupportedKernel for what Triton cannot say."""
    roles = {m.role for m in kernel.members}
    if "scatter" in roles:
        return ScatterWriter(kernel, schedule, options).write()
    if reduces_transposed_tiles(
        kernel, schedule.is_stored) and options.has_arrival_counters and not options.any_size:
        return TransposedReductionWriter(kernel, schedule, options).write()
    if "reduce_row" in roles:
        return row_writer(kernel, schedule, options).write()
    if roles & {"reduce_column", "reduce_all"}:
        return ColumnReductionWriter(kernel, schedule, options).write()
    return ElementWriter(kernel, schedule, options).write()


class ElementWriter(TritonKernelWriter):
    """Writes kernels without reductions."""

    def write(self) -> list[KernelSource]:
        w, grid, tile = self.begin_tiles()
        for m in self.kernel.members:
            self.value(w, m)
        return [self.written(grid, tile)]
