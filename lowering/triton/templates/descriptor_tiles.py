"""Tiles of matrices that the copy engine moves: the text of their descriptors, loads and stores."""

from __future__ import annotations

from functrans.core.record import Record
from functrans.lowering.triton.templates.matmul_problem import MatmulOperand

__all__ = ["DescriptorTiles"]


class DescriptorTiles(Record):
    """A matrix whose tiles the copy engine moves."""

    operand: MatmulOperand
    name: str
    sizes: tuple[str, str]
    block: tuple[str, str]
    batch: tuple[int, int]

    @property
    def axes(self) -> list[int]:
        """Axes of the batch that the matrix has."""
        return [k for k in (0, 1) if self.batch[k] > 1 and self.operand.batch[k]]

    def _transposed(self, row: str, col: str) -> tuple[str, str]:
        return (row, col) if self.operand.along == "row" else (col, row)

    @property
    def described(self) -> str:
        far = f"{self.name}_row" if self.operand.along == "row" else f"{self.name}_col"
        shape = [f"batch{k}" for k in self.axes] + [*self._transposed(*self.sizes)]
        strides = [f"{self.name}_batch{k}" for k in self.axes] + [far, "1"]
        block = ["1"] * len(self.axes) + [*self._transposed(*self.block)]
        return (f"{self.name}_tiles = tl.make_tensor_descriptor({self.name}, [{', '.join(shape)}], "
                f"[{', '.join(strides)}], [{', '.join(block)}])")

    def _place(self, row: str, col: str) -> str:
        return ", ".join([f"b{k}" for k in self.axes] + [*self._transposed(row, col)])

    def load(self, row: str, col: str) -> str:
        tile = f"{self.name}_tiles.load([{self._place(row, col)}])"
        if self.axes:
            tile = f"tl.reshape({tile}, ({', '.join(self._transposed(*self.block))}))"
        return tile if self.operand.along == "row" else f"tl.trans({tile})"

    def store(self, row: str, col: str, value: str) -> str:
        if self.axes:
            value = f"tl.reshape({value}, ({', '.join(['1'] * len(self.axes) + [*self.block])}))"
        return f"{self.name}_tiles.store([{self._place(row, col)}], {value})"
