"""Sets of inputs that the elements of an array depend on, and operations on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Pattern", "combined", "merged", "moved", "reduced", "spread", "united"]

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pattern:
    """For each element of an array the number of a row of a table of sets; row 0 is empty.

    Elements share rows, so that what moves elements moves numbers, and a value that depends on all
    inputs is one row.
    """

    rows: NDArray
    starts: NDArray  # where the set of each row begins in `members`, and where the last ends
    members: NDArray

    @staticmethod
    def identity(shape: tuple[Any, ...]) -> Pattern:
        """Each element depends on itself."""
        n = math.prod(shape)
        return Pattern(np.arange(1, n + 1).reshape(shape), np.r_[0, np.arange(n + 1)],
                       np.arange(n))

    def sizes(self) -> NDArray:
        """The number of inputs in each row of the table."""
        return np.diff(self.starts)

    def with_rows(self, rows: Any) -> Pattern:
        """The pattern of elements that are those of this one in other places."""
        return Pattern(np.asarray(rows, np.int64), self.starts, self.members)

    def pairs(self) -> tuple[NDArray, NDArray]:
        """The elements, flat and in order, and what they depend on, in order."""
        owners, members = self.expand(np.arange(self.rows.size), self.rows.reshape(-1))
        return owners, members

    def expand(self, owners: NDArray, rows: NDArray) -> tuple[NDArray, NDArray]:
        """Each owner beside each member of its row."""
        count = self.sizes()[rows]
        first = np.repeat(self.starts[rows], count)
        within = np.arange(first.size) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(owners, count), self.members[first + within]


def distinct(keys: NDArray) -> NDArray:
    """The integers that occur, in order.

    np.unique of NumPy 2.3 and later hashes them: 100,000 rows of three neighbours take 150 ms, and
    2 ms so.
    """
    ordered = np.sort(keys, axis=None)
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _table(count: int, owners: NDArray, members: NDArray) -> tuple[NDArray, NDArray]:
    """The table of `count` sets after an empty one, from pairs in any order."""
    if not owners.size:
        return np.zeros(count + 2, np.int64), np.zeros(0, np.int64)
    most = int(members.max()) + 1
    keys = distinct(owners * most + members)
    owners, members = keys // most, keys % most
    counts = np.bincount(owners, minlength=count)
    return np.r_[0, 0, np.cumsum(counts)], members


def united(shape: tuple[Any, ...], parts: Sequence[tuple[NDArray, Pattern, NDArray]]) -> Pattern:
    """Element `owners[k]` of a result depends on row `rows[k]` of a pattern, for all parts."""
    count = math.prod(shape)
    found = []
    for owners, pattern, rows in parts:
        owners, rows = owners.reshape(-1), rows.reshape(-1)
        # what depends on one row twice depends on it once: tables are shared, expansions are not
        keys = distinct(owners * len(pattern.starts) + rows)
        found.append(pattern.expand(keys // len(pattern.starts), keys % len(pattern.starts)))
    owners = np.concatenate([f[0] for f in found]) if found else np.zeros(0, np.int64)
    members = np.concatenate([f[1] for f in found]) if found else np.zeros(0, np.int64)
    starts, members = _table(count, owners, members)
    return Pattern(np.arange(1, count + 1).reshape(shape), starts, members)


def merged(patterns: Sequence[Pattern]) -> tuple[Pattern, list[NDArray]]:
    """One table for all patterns, and the rows of each in it."""
    first = patterns[0]
    if all(p.starts is first.starts and p.members is first.members for p in patterns):
        return first, [p.rows for p in patterns]
    starts, members, rows, before = [np.zeros(1, np.int64)], [], [], 0
    shift = 0
    for p in patterns:
        rows.append(np.where(p.rows > 0, p.rows + before, 0))
        starts.append(p.starts[1:] + shift)
        members.append(p.members)
        before += len(p.starts) - 1
        shift += p.members.size
    return Pattern(rows[0], np.concatenate(starts), np.concatenate(members)), rows


def moved(patterns: Sequence[Pattern], move: Callable[..., Any]) -> Pattern:
    """The pattern where elements are put elsewhere; `move` acts on row numbers."""
    table, rows = merged(patterns)
    return table.with_rows(move(*rows))


def combined(shape: tuple[Any, ...], patterns: Sequence[Pattern]) -> Pattern:
    """Each element depends on what the elements of all patterns at its place depend on."""
    wide = [p.with_rows(np.broadcast_to(p.rows, shape)) for p in patterns]
    if len(wide) == 1:
        return wide[0]
    table, rows = merged(wide)
    flat = np.stack([r.reshape(-1) for r in rows])
    if (flat == flat[0]).all():
        return table.with_rows(rows[0])
    width = len(table.starts)
    keys = flat[0]
    for more in flat[1:]:
        distinct, numbers = np.unique(keys * width + more, return_inverse=True)
        sources = np.stack([distinct // width, distinct % width])
        owners = np.tile(np.arange(distinct.size), 2)
        out = united((distinct.size,), [(owners, table, sources.reshape(-1))])
        previous = table
        table, others = merged([out, previous])
        keys = others[0][numbers.reshape(-1)]
        if previous is not table:  # the rows of what is still to come have moved
            shift = len(out.starts) - 1
            flat[1:] = np.where(flat[1:] > 0, flat[1:] + shift, 0)
            width = len(table.starts)
    return table.with_rows(keys.reshape(shape))


def reduced(pattern: Pattern, axes: Sequence[Any]) -> Pattern:
    """Each element depends on all those along `axes`."""
    rows = np.moveaxis(pattern.rows, tuple(axes), range(-len(axes), 0)) if axes else pattern.rows
    kept = rows.shape[:rows.ndim - len(axes)]
    count = math.prod(kept)
    owners = np.repeat(np.arange(count), rows.size // count if count else 0)
    return united(kept, [(owners, pattern, rows)])


def spread(shape: tuple[Any, ...], patterns: Sequence[Pattern]) -> Pattern:
    """Every element depends on all that any element of the patterns depends on."""
    zeros = [np.zeros(p.rows.size, np.int64) for p in patterns]
    one = united((1,), [(z, p, p.rows) for z, p in zip(zeros, patterns)])
    return one.with_rows(np.ones(shape, np.int64))
