"""A convolution by sizes and strides, and how it is cut into tiles."""

from __future__ import annotations

import math

from functrans.core.record import Record
from functrans.lowering.triton.templates.kernel import PLAIN, EpilogueSource
from functrans.lowering.triton.templates.tiles import Tiling

__all__ = ["ConvolutionConfig", "ConvolutionProblem", "Filter", "Image"]


class Image(Record):
    """Strides in elements; `space` has one for each dimension of the window."""

    dtype: str
    group: int
    batch: int
    feature: int
    space: tuple[int, ...]
    offset: int = 0
    aligned: bool = True


class Filter(Record):
    dtype: str
    group: int
    out: int
    input: int
    space: tuple[int, ...]
    offset: int = 0
    aligned: bool = True


class ConvolutionProblem(Record):
    """The fields of the library's `ft_conv`; features are those of one group.

    In lines of the epilogue `place` is the offset of an element in the output, and `cols` its
    feature; there are no `rows`.
    """

    batch: int
    in_features: int
    out_features: int
    in_size: tuple[int, ...]
    window: tuple[int, ...]
    out_size: tuple[int, ...]
    stride: tuple[int, ...]
    pad_low: tuple[int, ...]
    x: Image
    w: Filter
    out: Image
    in_dilation: tuple[int, ...] = ()
    window_dilation: tuple[int, ...] = ()
    groups: int = 1
    alpha: float = 1.0
    precision: str = "ieee"
    epilogue: EpilogueSource = PLAIN

    @property
    def rank(self) -> int:
        return len(self.window)

    @property
    def rows(self) -> int:
        return self.batch * math.prod(self.out_size)

    @property
    def taps(self) -> int:
        return math.prod(self.window)

    @property
    def sums(self) -> str:
        return {"fp64": "fp64", "i8": "i32"}.get(self.x.dtype, "fp32")

    @property
    def rounds(self) -> bool:
        """Whether operands are rounded before tensor cores read them, who cut bits off."""
        return self.x.dtype == "fp32" and self.precision == "tf32"

    @property
    def batch_inner(self) -> bool:
        """Whether neighbouring rows are neighbours in the batch."""
        return self.x.batch == 1 and self.x.feature != 1


class ConvolutionConfig(Tiling):
    """`flat`: a step takes places of the sum in a row, else features of one tap.

    `descriptors`: tiles are boxes of the tensors and come through the copy engine, where that can
    (see `boxes`); `packed`: of operands that are packed first; the rest is as in products of
    matrices.
    """

    flat: bool = False
    descriptors: bool = False
    packed: bool = False
