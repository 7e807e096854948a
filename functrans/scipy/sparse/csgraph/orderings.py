"""Spanning trees, and orders of nodes that bring edges near to the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.scipy.sparse.compressed import csr_array
from functrans.scipy.sparse.csgraph.graphs import (
    Graph,
    HostGraph,
    NDArray,
    by_host,
    checked,
    ends,
    host_graph,
    sparse_of,
    struct,
)
from functrans.sparse.base import JAXSparse
from functrans.typing import Array


def minimum_spanning_tree(csgraph: Graph, overwrite: bool = False) -> csr_array:
    """The edges of a tree of least weight that joins what is connected, with their weights.

    Edges go both ways; of two between nodes the lighter counts. Which edges it is has to be known
    outside of derivatives: weights are those of the graph, and differentiated as such. `overwrite`
    is accepted. Raises ConcretizationError under `jit`.
    Source: Kruskal, Proc. Amer. Math. Soc. 7 (1956).

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = [[0.0, 8.0, 3.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    >>> csgraph.minimum_spanning_tree(graph).toarray().tolist()
    [[0.0, 0.0, 3.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    held = checked("minimum_spanning_tree", csgraph)
    graph = host_graph("minimum_spanning_tree", held)
    u, v, w = graph.sources, graph.targets, graph.weights
    chosen = np.sort(_lightest(graph))
    chosen = chosen[w[chosen] != 0]
    u, v = u[chosen], v[chosen]
    if isinstance(held, JAXSparse):
        mat: Any = held  # whose elements are in the order of the graph's
        return sparse_of(u, v, mat.data[chosen], graph.size)
    return sparse_of(u, v, jnp.asarray(held)[u, v], graph.size)


def _lightest(graph: HostGraph) -> NDArray:
    """The numbers of the edges of a least forest; of equal weights the first edge counts.

    Source: Boruvka's algorithm, as in Nesetril, Milkova and Nesetrilova, Discrete Math. 233 (2001):
    each tree takes its lightest edge to another, all at a time.
    """
    weights = graph.weights
    order = np.argsort(weights)
    ranked = weights[order]
    if (ranked[1:] == ranked[:-1]).any() or (ranked != ranked).any():
        order = np.argsort(weights, kind="stable")
    u, v = graph.sources[order], graph.targets[order]
    root = np.arange(graph.size)
    kept: list[NDArray] = []
    while True:
        apart = root[u] != root[v]
        u, v, order = root[u[apart]], root[v[apart]], order[apart]
        if not order.size:
            return np.concatenate([np.zeros(0, np.int64), *kept])
        # the last of what is written to one place stays: edges come with the lightest one last
        lightest = np.full(graph.size, order.size)
        numbers = np.arange(order.size)[::-1]
        lightest[u[::-1]] = numbers
        np.minimum.at(lightest, v, numbers[::-1])
        trees = np.flatnonzero(lightest < order.size)
        edge = lightest[trees]
        other = u[edge] + v[edge] - trees
        # two trees that take the same edge: the one of the lower number stays a root
        above = np.arange(graph.size)
        above[trees] = other
        twice = (above[other] == trees) & (trees < other)
        above[trees[twice]] = trees[twice]
        kept.append(order[edge[~twice]])
        root = ends(above)[root]


def reverse_cuthill_mckee(graph: Graph, symmetric_mode: bool = False) -> Array:
    """An order (n,) of the nodes in which edges are near to the diagonal.

    With `symmetric_mode` the graph has each edge in both directions; without it that is made so.
    The graph may be traced: it is computed on the host.
    Source: Cuthill and McKee, Proc. 24th ACM National Conference (1969), reversed.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.reverse_cuthill_mckee([[0, 0, 1], [0, 0, 1], [1, 1, 0]]).tolist()
    [1, 2, 0]
    """
    held = checked("reverse_cuthill_mckee", graph)
    n = int(held.shape[0])
    found: Array = by_host("reverse_cuthill_mckee", held,
                           lambda g: _order(g if symmetric_mode else g.both_ways()),
                           struct((n,), np.int32))
    return found


def _order(graph: HostGraph) -> NDArray:
    n, after = graph.size, graph.neighbours
    loops = np.zeros(n, np.int64)
    loops[graph.sources[graph.sources == graph.targets]] = 1
    degree = (np.diff(graph.starts) + loops).tolist()
    seen = [False] * n
    order: list[int] = []
    for seed in np.argsort(degree, kind="stable").tolist():
        if seen[seed]:
            continue
        seen[seed] = True
        order.append(seed)
        place = len(order) - 1
        while place < len(order):
            new = []
            for there in after[order[place]]:
                if not seen[there]:
                    seen[there] = True
                    new.append(there)
            order += sorted(new, key=degree.__getitem__)
            place += 1
    return np.asarray(order[::-1], np.int32)

