"""What the text of a kernel is, and what it needs when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.tensor import Tensor

__all__ = ["BlockTotals", "KernelText", "PlaceScratch", "Scratch", "is_number"]


@dataclass(frozen=True)
class Scratch:
    """Memory that a kernel needs besides its operands: partial results of its chunks.

    `number` is that of the reduction it belongs to, so that each has memory of its own.
    """

    dtype: str
    size: Size
    number: int


@dataclass(frozen=True)
class PlaceScratch(Scratch):
    """Scratch for places, apart from that for values of the same size."""


@dataclass(frozen=True)
class BlockTotals(Scratch):
    """Scratch for the totals of blocks of rows, apart from that for the sums of a block."""


@dataclass(eq=False, repr=False)
class KernelText:
    """A kernel in C: `text` defines the functions, with NAME for its name.

    `operands` are what its argument array points to, in order; after them the sizes. It runs over
    `count` ranges, then `finish`, if there is one, in the calling thread. `lanes` elements are
    computed at once.
    """

    text: str
    operands: list[Tensor | Scratch]
    count: Size
    grain: Size
    weight: int
    size: Size
    has_finish: bool
    serial: bool
    sources: list[Any] = field(default_factory=list)
    lanes: int = 1


def is_number(n: Any, value: int) -> bool:
    """Whether a size is known to be `value`."""
    return isinstance(n, int) and n == value
