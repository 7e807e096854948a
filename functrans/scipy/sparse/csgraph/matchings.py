"""Matchings of rows and columns."""

from __future__ import annotations

import heapq

import numpy as np

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.csgraph.graphs import (
    Graph,
    HostGraph,
    NDArray,
    by_host,
    checked,
    struct,
)
from functrans.typing import Array


def _matched(graph: HostGraph) -> tuple[list[int], list[int]]:
    """The column of each row and the row of each column, -1 for none.

    Source: Hopcroft and Karp, SIAM J. Comput. 2 (1973).
    """
    rows, after = graph.size, graph.neighbours
    mate, back = [-1] * rows, [-1] * graph.columns
    for u in range(rows):  # what is free at once, which is most
        for v in after[u]:
            if back[v] < 0:
                mate[u], back[v] = v, u
                break
    while True:
        level = [0 if mate[u] < 0 else -1 for u in range(rows)]
        queue = [u for u in range(rows) if mate[u] < 0]
        ends = False
        for u in queue:
            for v in after[u]:
                other = back[v]
                if other < 0:
                    ends = True
                elif level[other] < 0:
                    level[other] = level[u] + 1
                    queue.append(other)
        if not ends:
            return mate, back
        turn = [0] * rows
        for root in range(rows):
            if mate[root] >= 0:
                continue
            path = [root]
            while path:
                u = path[-1]
                if turn[u] == len(after[u]):
                    path.pop()
                    continue
                v = after[u][turn[u]]
                turn[u] += 1
                if back[v] < 0:
                    # each row of the path takes the column that it looked at last
                    for w in path:
                        column = after[w][turn[w] - 1]
                        mate[w], back[column] = column, w
                    break
                if level[back[v]] == level[u] + 1:
                    path.append(back[v])


def maximum_bipartite_matching(graph: Graph, perm_type: str = "row") -> Array:
    """The row matched to each column, -1 for none; with `perm_type` "column" each row's column.

    As many pairs as there can be, among the elements that a matrix stores. The graph may be traced:
    it is computed on the host. Source: Hopcroft and Karp, SIAM J. Comput. 2 (1973).

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.maximum_bipartite_matching([[1, 1], [1, 0]], "column").tolist()
    [1, 0]
    """
    one_of("sparse.csgraph.maximum_bipartite_matching", "perm_type", perm_type, ("row", "column"))
    held = checked("maximum_bipartite_matching", graph, square=False)
    which = 1 if perm_type == "row" else 0
    count = int(held.shape[which])
    found: Array = by_host("maximum_bipartite_matching", held,
                           lambda g: np.asarray(_matched(g)[which], np.int32),
                           struct((count,), np.int32), square=False)
    return found


def structural_rank(graph: Graph) -> Array:
    """The largest rank of matrices that store elements where this one does.

    >>> from functrans.scipy.sparse import csgraph
    >>> int(csgraph.structural_rank([[1, 1, 0], [2, 3, 0], [4, 0, 0]]))
    2
    """
    found: Array = by_host(
        "structural_rank", checked("structural_rank", graph, square=False),
        lambda g: np.int32(sum(v >= 0 for v in _matched(g)[0])), struct((), np.int32),
        square=False)
    return found


def min_weight_full_bipartite_matching(biadjacency: Graph, maximize: bool = False
                                       ) -> tuple[Array, Array]:
    """The rows and columns of the matching of least weight that has all rows or all columns.

    Elements that are not stored are no edges; with `maximize` of greatest weight. The graph may be
    traced: it is computed on the host. Raises ArgumentError where no matching has them all.
    Source: Jonker and Volgenant, Computing 38 (1987), with heaps: O(n e log n).

    >>> from functrans.scipy.sparse import csgraph
    >>> weights = jnp.array([[4.0, 1.0, 3.0], [2.0, 7.0, 5.0]])
    >>> [x.tolist() for x in csgraph.min_weight_full_bipartite_matching(weights)]
    [[0, 1], [1, 0]]
    """
    held = checked("min_weight_full_bipartite_matching", biadjacency, square=False)
    rows, columns = (int(n) for n in held.shape)
    count = min(rows, columns)

    def find(graph: HostGraph) -> tuple[NDArray, NDArray]:
        wide = graph if rows <= columns else graph.turned()
        if maximize:
            wide = HostGraph(-wide.weights, wide.targets, wide.starts, wide.columns)
        mate = _lightest(wide)
        pairs = (np.arange(count), mate) if rows <= columns else (mate, np.arange(count))
        order = np.argsort(pairs[0], kind="stable")
        return pairs[0][order].astype(np.int32), pairs[1][order].astype(np.int32)

    row, column = by_host("min_weight_full_bipartite_matching", held, find,
                          (struct((count,), np.int32),) * 2, square=False)
    return row, column


def _lightest(graph: HostGraph) -> NDArray:
    """The column of each row, by shortest paths along which pairs change, one row at a time."""
    rows, columns, edges = graph.size, graph.columns, graph.lists
    price = [0.0] * columns
    mate, back = [-1] * rows, [-1] * columns
    # prices of the rows: each edge costs no less than both, and those of pairs as much
    worth = [min((w for _, w in pairs), default=0.0) for pairs in edges]
    for root in range(rows):
        reached: dict[int, float] = {}
        before: dict[int, int] = {}
        done: list[int] = []
        closed: set[int] = set()
        heap: list[tuple[float, int]] = []
        here, far, end = root, 0.0, -1
        while end < 0:
            base = far - worth[here]
            for v, w in edges[here]:
                if v in closed:
                    continue
                length = base + w - price[v]
                if length < reached.get(v, np.inf):
                    reached[v], before[v] = length, here
                    heapq.heappush(heap, (length, v))
            while heap and heap[0][1] in closed:
                heapq.heappop(heap)
            if not heap:
                raise ArgumentError("functrans.scipy.sparse.csgraph."
                                    "min_weight_full_bipartite_matching: there is no full "
                                    "matching.", where=user_source(),
                                    why="some rows or columns share too few of the others.",
                                    fix="maximum_bipartite_matching")
            far, v = heapq.heappop(heap)
            closed.add(v)
            if back[v] < 0:
                end = v
            else:
                done.append(v)
                here = back[v]
        worth[root] += far
        for v in done:
            worth[back[v]] += far - reached[v]
            price[v] -= far - reached[v]
        while end >= 0:
            u = before[end]
            back[end], mate[u], end = u, end, mate[u]
    return np.asarray(mate, np.int64)
