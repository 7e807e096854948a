"""Reads of neighbours in another order: a few loads and a shuffle instead of an element at a time.

Pairs that are turned around, every second element, a small axis of channels moved: each vector of
such a row reads the same places relative to its first one. 1,024 float32 at a stride of two take
0.05 ns an element so, by scalar loads 0.25.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from functrans.lowering.loops.index import Atom, Computed, Index, LoopVar, Quotient

__all__ = ["MOST_WINDOWS", "are_whole_vectors", "offsets_of", "windows_of"]

MOST_PLACES: Final = 1 << 16
"""Of a row whose places are looked at."""
MOST_WINDOWS: Final = 4
"""Vectors that are loaded for one: more take as long as scalars."""


def offsets_of(place: Index, i: LoopVar, lanes: int) -> tuple[int, ...] | None:
    """Where the lanes of each whole vector along a row read, from the place of the first lane.

    None where that is not known, or not the same for all vectors.
    """
    if not isinstance(i.low, int) or not isinstance(i.high, int) or lanes < 2:
        return None
    count = (i.high - i.low) // lanes
    if not 0 < count * lanes <= MOST_PLACES:
        return None
    along = {a: c for a, c in place.terms.items() if Index({a: 1}).depends_on(i)}
    if not all(isinstance(c, int) and _is_known(a, i) for a, c in along.items()):
        return None
    at = _values(Index(along), i.low + np.arange(count * lanes)).reshape(count, lanes)
    relative = at - at[:, :1]
    return tuple(relative[0].tolist()) if (relative == relative[0]).all() else None


def _is_known(atom: Atom, i: LoopVar) -> bool:
    """Whether nothing but the place along the row says what an atom is."""
    if isinstance(atom, LoopVar):
        return atom is i
    return not isinstance(atom, Computed) and isinstance(atom.divisor, int) \
        and isinstance(atom.index.const, int) and all(
            isinstance(c, int) and _is_known(a, i) for a, c in atom.index.terms.items())


def _values(index: Index, i: np.ndarray) -> np.ndarray:
    total = np.full(i.shape, index.const, np.int64)
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            value = i
        else:
            assert not isinstance(atom, Computed)
            inner = _values(atom.index, i)
            value = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
        total += c * value
    return total


def windows_of(offsets: Sequence[int], lanes: int) -> list[int] | None:
    """Where vectors begin, from the least place, that have all these places and none beyond them.

    None where no few do.
    """
    last = max(offsets) - min(offsets)
    if last < lanes - 1:  # a whole vector would end beyond: a part of one is loaded
        return [0]
    begins = [min(k * lanes, last - lanes + 1) for k in range(-(-(last + 1) // lanes))]
    return begins if len(begins) <= MOST_WINDOWS else None


def are_whole_vectors(place: Index, i: LoopVar, lanes: int) -> bool:
    """Whether vectors along a row are one element, or neighbours in any order of one load."""
    if not place.depends_on(i):
        return True
    offsets = None if place.has_computed else offsets_of(place, i, lanes)
    return offsets is not None and (
        offsets == tuple(range(lanes)) or len(windows_of(offsets, lanes) or ()) == 1)
