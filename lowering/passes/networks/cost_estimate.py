"""What a way to compute something costs.

Times are in units of one operation of a product of matrices; measured on two cores with AVX-512,
where that is 5 ps. On other machines the ratios differ by a factor of two or three, the decisions
rarely: where two ways are that close, either will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from functrans.core.dims import Size

__all__ = ["COLLISION", "UNKNOWN", "CostEstimate", "in_lanes", "magnitude"]

UNKNOWN = 64  # what a symbolic size is taken to be
ELEMENT = 4.0  # an operation on each element of arrays that stay in the cache
BYTE = 6.0  # 30 GB/s
STEP = 2e5  # a kernel of its own, 1 us
FUSED = 0.25  # of a step: what works element by element is mostly part of another kernel
COLLISION = 0.1  # steps, of a row that waits for another to be added to the same place by atomic
# operations: 1 ns on a GPU, where all else takes a hundredth. CPUs add them one after the other
LANES = 16  # elements that are computed at once; what a short last axis leaves over is lost
MEMORY = 1.0  # bytes that live besides: pages are touched, caches are emptied


def magnitude(shape: Iterable[Size]) -> float:
    """The number of elements, with a guess for symbolic sizes."""
    product = 1.0
    for n in shape:
        product *= n if isinstance(n, int) else UNKNOWN
    return product


def in_lanes(shape: Sequence[Size]) -> float:
    """The number of elements of an array that is computed along its last axis."""
    last = magnitude(shape[-1:])
    whole = -(-last // LANES) * LANES
    return magnitude(shape[:-1]) * whole if last and last < 4 * LANES else magnitude(shape)


class CostEstimate(NamedTuple):
    """Operations of products of matrices, on single elements, bytes moved, kernels, and bytes that
    live at the peak."""

    flops: float = 0.0
    elements: float = 0.0
    moved: float = 0.0
    steps: float = 0.0
    memory: float = 0.0

    def then(self, other: CostEstimate) -> CostEstimate:
        """Both, one after the other; what lives does not live at once."""
        return CostEstimate(self.flops + other.flops, self.elements + other.elements,
                            self.moved + other.moved, self.steps + other.steps,
                            max(self.memory, other.memory))

    def alongside(self, other: CostEstimate) -> CostEstimate:
        """Both, with what lives at once."""
        return self.then(other)._replace(memory=self.memory + other.memory)

    @property
    def time(self) -> float:
        return self.flops + ELEMENT * self.elements + BYTE * self.moved + STEP * self.steps \
            + MEMORY * self.memory

    def __str__(self) -> str:
        return f"{_short(self.flops + self.elements)}FLOP, {_short(self.moved)}B moved, " \
               f"{_short(self.memory)}B at once"


def _short(x: float) -> str:
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= scale:
            return f"{x / scale:.3g} {unit}"
    return f"{x:.3g} "
