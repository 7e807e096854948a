"""Kernels that turn what they read and fold it along rows, as Triton functions.

A program turns a tile, and folds it; the last of those of the same rows folds what all have found.
"""

from __future__ import annotations

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.folds import Fold
from functrans.lowering.triton.kernels.partials import FOLDED_AT_ONCE, fold_partials, partials_of
from functrans.lowering.triton.kernels.writer import ACROSS, KernelWriter
from functrans.lowering.triton.kernels.written import Partial, Tickets, Written

__all__ = ["AcrossWriter"]


class AcrossWriter(KernelWriter):
    """Writes kernels over tiles that read across, with reductions along rows that none reads."""

    def write(self) -> list[Written]:
        w, grid, tile = self.begin_tiles()
        count = -(-self.row // ACROSS)
        found: dict[Tensor, tuple[Fold, list[Partial]]] = {}
        folds = self.folds([m for m in self.kernel.members if m.role == "reduce_row"])
        for m in self.kernel.members:
            if m.tensor in folds:
                fold = folds[m.tensor]
                values = self.folded_values(w, m.tensor, fold, "i")
                names = self.named_all(len(values), fold.folded(values, 1))
                partials = partials_of(fold, count, self.rows)
                for p, name in zip(partials, names, strict=True):
                    self._store(w, f"{self.pointer(p)} + (pid % {count}) * {self.rows}", name)
                found[m.tensor] = fold, partials
            else:
                self.value(w, m)
        done = self.begin_last(Tickets(grid // count), f"pid // {count}", str(count))
        mask = w.masks["o"]
        for t, (fold, partials) in found.items():
            names = fold_partials(self.emit, self.fresh, fold, [self.pointer(p) for p in partials],
                                  (ACROSS, min(self.extent(count), FOLDED_AT_ONCE // ACROSS)), 1,
                                  str(count), str(self.rows), "o", mask)
            self._store(w, self.pointer(t), w.stored(self.named(fold.result(names)), t))
        self.end_last(done)
        return [self.written(grid, tile)]

    def _store(self, w: TileWriter, where: str, value: str) -> None:
        mask = f", mask={w.masks['o']}" if w.masks["o"] else ""
        self.emit(f"tl.store({where} + o, {value}{mask})")
