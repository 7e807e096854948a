"""Collectives within groups of the positions of a named axis (`axis_index_groups`).

They are made of `ppermute`, of which a group of g members makes g - 1: each member receives what
an all-gather, or the two halves of an all-reduce, move in any case, and derivatives, vmap and all
engines come along. Members combine what came in the order of their places: they get the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Size
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, mul, rem, sub
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import reduce_sum
from functrans.primitives.collective import axis_index_p, ppermute_p
from functrans.primitives.compare import eq, select_n
from functrans.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_slice_in_dim
from functrans.primitives.shape import concatenate, pad, reshape, slice_in_dim

__all__ = ["Groups"]

SMALL: Final = 4096
"""Elements up to which a sum moves everything to everyone, in half as many steps."""


class Groups:
    """Groups of the positions of one named axis, as the user gave them.

    Raises ArgumentError for groups that do not have each position once; with `equal` for groups of
    different sizes.
    """

    def __init__(self, what: str, groups: Sequence[Sequence[int]], axis_name: Any, size: Size,
                 equal: bool) -> None:
        if isinstance(axis_name, (tuple, list)):
            if len(axis_name) != 1:
                raise ArgumentError(f"{what}: axis_index_groups over the axes {axis_name!r}.",
                                    where=user_source(),
                                    why="groups are of the positions of one axis.",
                                    fix=f"axis_name={axis_name[0]!r}")
            axis_name = axis_name[0]
        self.name = axis_name
        try:
            self.members = [[int(k) for k in group] for group in groups]
        except TypeError:
            raise ArgumentError(f"{what}: axis_index_groups is {groups!r}.", where=user_source(),
                                why="it is a list of lists of positions.",
                                fix="axis_index_groups=[[0, 1], [2, 3]]") from None
        if not isinstance(size, int) or sorted(k for g in self.members for k in g) \
                != list(range(size)):
            raise ArgumentError(
                f"{what}: axis_index_groups is {groups!r}, over the axis {axis_name!r} of size "
                f"{size}.", where=user_source(), why="each position is in one group.",
                fix="axis_index_groups=[[0, 1], [2, 3]]  # of an axis of size 4")
        sizes = {len(g) for g in self.members}
        if equal and len(sizes) > 1:
            raise ArgumentError(f"{what}: axis_index_groups has groups of {sorted(sizes)} members.",
                                where=user_source(), why="results have one shape everywhere.",
                                fix="groups of one size")
        self.size = max(sizes)
        self.is_equal = len(sizes) == 1
        self._count = size

    def _table(self, of: Callable[[Sequence[int], int], int]) -> Any:
        """A number for each position, at this one."""
        table = np.zeros(self._count, np.int32)
        for group in self.members:
            for place, k in enumerate(group):
                table[k] = of(group, place)
        here = axis_index_p.bind(axis_name=self.name)
        return dynamic_index_in_dim(to_array(table), here, 0, False)

    @property
    def length(self) -> Any:
        """The number of members of the group that this position is in."""
        return self.size if self.is_equal else self._table(lambda group, place: len(group))

    def _send(self, x: Any, step: int) -> Any:
        """x of the member `step` places before this one; where there are not so many, zeros."""
        pairs = tuple([(g[i], g[(i + step) % len(g)]) for g in self.members if step < len(g)
                       for i in range(len(g))])
        return ppermute_p.bind(x, axis_name=self.name, perm=pairs)

    def _in_order(self, came: Sequence[Any]) -> Any:
        """What came in each step, by the place of its sender, along a new first axis."""
        place = self._table(lambda group, place: place)
        n = len(came)
        # came[s] is of the place before by s: backwards, it is in order from some place on
        back = [came[-s % n] for s in range(n)]
        rows = [reshape(x, (1, *x.shape)) for x in (*back, *back)]
        start = rem(sub(np.int32(n), place), np.int32(n))
        return dynamic_slice_in_dim(concatenate(rows, 0), start, n, 0)

    def gather(self, x: Any) -> Any:
        """x of all members, along a new first axis; of groups of one size."""
        return self._in_order([x if s == 0 else self._send(x, s) for s in range(self.size)])

    def exchange(self, parts: Any) -> Any:
        """The part of this place of all members, along the first axis; parts are along it, too."""
        place = self._table(lambda group, place: place)
        came = []
        for step in range(self.size):
            to = rem(add(place, np.int32(step)), np.int32(self.size))
            part = dynamic_index_in_dim(parts, to, 0, False)
            came.append(part if step == 0 else self._send(part, step))
        return self._in_order(came)

    def sum(self, x: Any) -> Any:
        """The sum over the members."""
        count = math.prod(x.shape)
        if not self.is_equal:
            return self.combine(x, zeros(get_aval(x).strong()), lambda ys: reduce_sum(ys, (0,)))
        if count <= SMALL:
            return reduce_sum(self.gather(x), (0,))
        part = -(-count // self.size)
        flat = pad(reshape(x, (count,)), np.zeros((), x.dtype),
                   [(0, part * self.size - count, 0)])
        mine = reduce_sum(self.exchange(reshape(flat, (self.size, part))), (0,))
        whole = reshape(self.gather(mine), (part * self.size,))
        return reshape(slice_in_dim(whole, 0, count), x.shape)

    def combine(self, x: Any, nothing: Any, reduce: Callable[[Any], Any]) -> Any:
        """`reduce` of what all members have, along a new first axis; `nothing` adds nothing."""
        if self.is_equal:
            return reduce(self.gather(x))
        # one after the other along the axis, so that groups of all sizes have one program
        mine = self._table(lambda group, place: group[0])
        rows = []
        for step in range(self._count):
            source = rem(add(axis_index_p.bind(axis_name=self.name),
                             np.int32(self._count - step)), np.int32(self._count))
            whose = dynamic_index_in_dim(to_array(self._firsts()), source, 0, False)
            pairs = tuple([(i, (i + step) % self._count) for i in range(self._count)])
            came = x if step == 0 else ppermute_p.bind(x, axis_name=self.name, perm=pairs)
            rows.append(reshape(select_n(eq(whose, mine), nothing, came), (1, *x.shape)))
        return reduce(concatenate(rows, 0))

    def _firsts(self) -> np.ndarray[Any, Any]:
        """The first member of the group of each position."""
        table = np.zeros(self._count, np.int32)
        for group in self.members:
            table[group] = group[0]
        return table

    def scaled(self, x: Any) -> Any:
        """A number that all members have, summed up."""
        return x * self.size if self.is_equal else mul(self.length, x)
