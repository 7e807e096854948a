"""The arena of a program: where its temporaries live, planned by when they are needed."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, TypeVar

from functrans.core.dims import Size

__all__ = ["ALIGNMENT", "Arena", "Block", "plan_arena"]

ALIGNMENT = 64

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Block(Generic[K]):
    """Memory of `nbytes` that is needed from step `first` to step `last`, both included."""

    key: K
    nbytes: Size
    first: int
    last: int


@dataclass(eq=False, repr=False)
class Arena(Generic[K]):
    """Byte offsets of blocks; `nbytes` of all, `peak` what is needed at the fullest step.

    Offsets of blocks of known size come first. Blocks of a symbolic size follow in `symbolic`:
    slots of one size each, shared by blocks that are not needed at the same time.
    """

    offsets: dict[K, int]
    nbytes: int
    symbolic: list[tuple[Size, list[K]]]


def plan_arena(blocks: Sequence[Block[K]]) -> Arena[K]:
    """Place blocks so that those needed at the same time do not overlap; large ones first."""
    placed: list[tuple[int, int, Block[K]]] = []  # by their beginnings
    offsets: dict[K, int] = {}
    known = [b for b in blocks if isinstance(b.nbytes, int)]
    for block in sorted(known, key=lambda b: -int(b.nbytes)):
        nbytes = _aligned(int(block.nbytes))
        start = 0
        for low, high, other in placed:
            if other.first > block.last or block.first > other.last:
                continue
            if start + nbytes <= low:
                break
            start = max(start, high)
        insort(placed, (start, start + nbytes, block), key=itemgetter(0))
        offsets[block.key] = start
    slots: list[tuple[Size, list[Block[K]]]] = []
    for block in blocks:
        if isinstance(block.nbytes, int):
            continue
        for size, sharing in slots:
            if size == block.nbytes and all(
                    o.first > block.last or block.first > o.last for o in sharing):
                sharing.append(block)
                break
        else:
            slots.append((block.nbytes, [block]))
    return Arena(offsets, max((high for _, high, _ in placed), default=0),
                 [(size, [b.key for b in sharing]) for size, sharing in slots])


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
