"""Minimum cuts of small networks (Edmonds and Karp, 1972)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

__all__ = ["FlowNetwork"]


class FlowNetwork:
    """Nodes, and edges with a capacity each.

    >>> network = FlowNetwork()
    >>> network.add("s", "a", 3.0)
    >>> network.add("a", "t", 2.0)
    >>> network.minimum_cut("s", "t")
    [('a', 't')]
    """

    def __init__(self) -> None:
        self._left: dict[Hashable, dict[Hashable, float]] = {}
        self._edges: list[tuple[Hashable, Hashable]] = []

    def add(self, a: Hashable, b: Hashable, capacity: float) -> None:
        """An edge from a to b; of two such the capacities are added."""
        ahead = self._left.setdefault(a, {})
        ahead[b] = ahead.get(b, 0.0) + capacity
        self._left.setdefault(b, {}).setdefault(a, 0.0)
        self._edges.append((a, b))

    def minimum_cut(self, source: Hashable, sink: Hashable) -> list[tuple[Hashable, Hashable]]:
        """The edges of a minimum cut, the nearest to the sink; none has an infinite capacity."""
        while (path := self._path(source, sink)) is not None:
            most = min(self._left[a][b] for a, b in path)
            assert most < math.inf
            for a, b in path:
                self._left[a][b] -= most
                self._left[b][a] += most
        reaching = {sink}
        waiting = [sink]
        while waiting:
            b = waiting.pop()
            for a in self._left[b]:
                if a not in reaching and self._left[a].get(b, 0.0) > 0:
                    reaching.add(a)
                    waiting.append(a)
        return [(a, b) for a, b in dict.fromkeys(self._edges)
                if a not in reaching and b in reaching]

    def _path(self, source: Hashable,
              sink: Hashable) -> list[tuple[Hashable, Hashable]] | None:
        """The edges of a shortest path on which something is left."""
        before: dict[Hashable, Hashable] = {source: source}
        waiting = deque([source])
        while waiting and sink not in before:
            a = waiting.popleft()
            for b, left in self._left.get(a, {}).items():
                if left > 0 and b not in before:
                    before[b] = a
                    waiting.append(b)
        if sink not in before:
            return None
        path = []
        at = sink
        while at is not source:
            path.append((before[at], at))
            at = before[at]
        return path[::-1]
