"""Minimum cuts of networks, by blocking flows along shortest paths (Dinitz, 1970)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from functrans.core.jaxpr import Equation, Var

__all__ = ["FlowNetwork", "cut_of_values"]


class FlowNetwork:
    """Nodes, and edges with a capacity each.

    >>> network = FlowNetwork()
    >>> network.add("s", "a", 3.0)
    >>> network.add("a", "t", 2.0)
    >>> network.minimum_cut("s", "t")
    [('a', 't')]
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._nodes: list[Hashable] = []
        # edge e leads to _heads[e], and e ^ 1 is the same edge backwards
        self._heads: list[int] = []
        self._left: list[float] = []
        self._edges_of: list[list[int]] = []
        self._edges: dict[tuple[int, int], int] = {}

    def add(self, a: Hashable, b: Hashable, capacity: float) -> None:
        """An edge from a to b; of two such the capacities are added."""
        m, n = self._number(a), self._number(b)
        known = self._edges.get((m, n))
        if known is not None:
            self._left[known] += capacity
            return
        edge = self._edges[m, n] = len(self._heads)
        self._heads += (n, m)
        self._left += (capacity, 0.0)
        self._edges_of[m].append(edge)
        self._edges_of[n].append(edge + 1)

    def _number(self, node: Hashable) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._edges_of.append([])
        return number

    def minimum_cut(self, source: Hashable, sink: Hashable) -> list[tuple[Hashable, Hashable]]:
        """The edges of a minimum cut, the nearest to the sink; none has an infinite capacity."""
        s, t = self._number(source), self._number(sink)
        while True:
            levels = self._levels(t)
            if levels[s] < 0:
                break
            self._block(s, t, levels)
        return [(self._nodes[a], self._nodes[b]) for a, b in self._edges
                if levels[a] < 0 <= levels[b]]

    def _levels(self, t: int) -> list[int]:
        """How many edges with something left lead from each node to the sink; -1 where none do."""
        heads, left, edges_of = self._heads, self._left, self._edges_of
        levels = [-1] * len(self._nodes)
        levels[t] = 0
        waiting = [t]
        for b in waiting:
            for edge in edges_of[b]:
                a = heads[edge]
                if levels[a] < 0 and left[edge ^ 1] > 0:
                    levels[a] = levels[b] + 1
                    waiting.append(a)
        return levels

    def _block(self, s: int, t: int, levels: list[int]) -> None:
        """Send along shortest paths what these take."""
        heads, left, edges_of = self._heads, self._left, self._edges_of
        tried = [0] * len(self._nodes)
        path: list[int] = []
        at = s
        while True:
            if at == t:
                most = min([left[edge] for edge in path])
                assert most < math.inf
                for edge in path:
                    left[edge] -= most
                    left[edge ^ 1] += most
                # go on from the first edge that is full
                first = next(k for k, edge in enumerate(path) if left[edge] <= 0)
                at = heads[path[first] ^ 1]
                del path[first:]
                continue
            edges = edges_of[at]
            k = tried[at]
            while k < len(edges) and not (left[edges[k]] > 0
                                          and levels[heads[edges[k]]] == levels[at] - 1):
                k += 1
            tried[at] = k
            if k < len(edges):
                path.append(edges[k])
                at = heads[edges[k]]
            elif path:
                at = heads[path.pop() ^ 1]
                tried[at] += 1
            else:
                return


def cut_of_values(given: Mapping[Var, float], eqns: Sequence[Equation], wanted: Iterable[Var],
                  cost: Callable[[Var], float],
                  is_repeatable: Callable[[Equation], bool]) -> list[Var]:
    """The values of least cost from which repeatable equations compute those that are wanted.

    `given` has the costs of values that are there, `cost` that of a result; of two cuts that cost
    the same it is the later one. The values are in the order of the program.
    """
    network = FlowNetwork()
    for v, price in given.items():
        network.add("source", ("in", v), math.inf)
        network.add(("in", v), ("out", v), price)
    for eqn in eqns:
        for v in eqn.outvars:
            network.add(("in", v), ("out", v), cost(v))
            if not is_repeatable(eqn):
                network.add("source", ("in", v), math.inf)
                continue
            for a in eqn.invars:
                if isinstance(a, Var):
                    network.add(("out", a), ("in", v), math.inf)
    for v in wanted:
        network.add(("out", v), "sink", math.inf)
    cut = set(network.minimum_cut("source", "sink"))
    return [v for v in (*given, *[v for eqn in eqns for v in eqn.outvars])
            if (("in", v), ("out", v)) in cut]
