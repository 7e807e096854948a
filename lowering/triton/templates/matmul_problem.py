"""A product of matrices by sizes and strides, and how it is cut into tiles."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

from functrans.core.record import Record
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    PLAIN,
    EpilogueSource,
    power_of_two,
)
from functrans.lowering.triton.templates.tiles import Tiling

__all__ = ["MatmulConfig", "MatmulOperand", "MatmulProblem", "MatmulTerm"]


class MatmulOperand(Record):
    """A matrix for each index of the batch, by strides in elements; `aligned`: to 16 bytes."""

    dtype: str
    row: int
    col: int
    batch: tuple[int, int] = (0, 0)
    aligned: bool = True

    @cached_property
    def along(self) -> str:
        """The direction in which elements are neighbours in memory."""
        return "row" if self.col == 1 else "col" if self.row == 1 else "neither"

    @cached_property
    def has_descriptor(self) -> bool:
        """Whether the copy engine can read its tiles."""
        far = self.row if self.along == "row" else self.col
        size = BYTES[self.dtype]
        return self.along != "neither" and self.aligned and far > 0 and all(
            stride >= 0 and stride * size % 16 == 0 for stride in (far, *self.batch))


class MatmulTerm(NamedTuple):
    """A product of a sum of products; in the same direction as of others are 1 its strides."""

    a: MatmulOperand
    b: MatmulOperand
    k: int


class MatmulProblem(Record):
    """`precision` of float32 operands: "ieee", "tf32", "tf32x3" or "bf16x6" (see Triton's dot).

    Products of `more` terms are added to that of a and b.

    Tensor cores add products of float8 in some 14 bits: with `exact_after`, sums of so many go to
    float32 sums, which takes time and registers.
    """

    m: int
    n: int
    k: int
    a: MatmulOperand
    b: MatmulOperand
    c: MatmulOperand
    batch: tuple[int, int] = (1, 1)
    alpha: float = 1.0
    precision: str = "ieee"
    epilogue: EpilogueSource = PLAIN
    exact_after: int = 0
    more: tuple[MatmulTerm, ...] = ()

    @cached_property
    def terms(self) -> tuple[MatmulTerm, ...]:
        """All products of the sum."""
        return (MatmulTerm(self.a, self.b, self.k), *self.more)

    @cached_property
    def contracted(self) -> int:
        """The contracted size of all terms."""
        return sum(t.k for t in self.terms)

    @cached_property
    def has_descriptors(self) -> bool:
        """Whether the copy engine can read the tiles of all operands."""
        return all(t.a.has_descriptor and t.b.has_descriptor for t in self.terms)

    @cached_property
    def batches(self) -> int:
        return math.prod(self.batch)

    @cached_property
    def across(self) -> tuple[str, ...]:
        """The operands whose neighbours in memory are not neighbours along the sum."""
        return tuple([name for name, op, along in (("a", self.a, "row"), ("b", self.b, "col"))
                      if op.along != along])

    @cached_property
    def rounds(self) -> bool:
        """Whether operands are rounded before tensor cores read them, who cut bits off."""
        return self.a.dtype == "fp32" and self.precision == "tf32"

    @cached_property
    def longest_step(self) -> int:
        """The step along the sum that has all of it."""
        return power_of_two(max(t.k for t in self.terms), 32)

    @cached_property
    def sums(self) -> str:
        return {"fp64": "fp64", "i8": "i32"}.get(self.a.dtype, "fp32")


class MatmulConfig(Tiling):
    """How a product is cut: see `configs`.

    `descriptors`: tiles come through the copy engine; a persistent program computes them without a
    gap if `flat`; `together`: matrices of the batch in one program (0: not the kernel of small
    ones); `is_packed`: operands that are not read along the sum are transposed first;
    `by_warps`: with the instructions of one warp (mma.sync), which have operands in registers and
    so in any layout, and half the rate of those of four (wgmma).
    """

    flat: bool = True
    descriptors: bool = True
    together: int = 0
    is_packed: bool = False
    by_warps: bool = False
