"""Shortest paths in graphs, differentiated in their weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.csgraph.graphs import (
    NONE,
    Graph,
    HostGraph,
    NDArray,
    by_host,
    checked,
    host_graph,
    is_known,
    matrix_of,
    node,
    struct,
)
from functrans.scipy.sparse.csgraph.walks import (
    by_edges,
    by_heaps,
    by_potentials,
    by_triples,
    heap_search,
    relaxed,
)
from functrans.typing import Array, ArrayLike

Distances = Array | tuple[Array, ...]
Indices = int | Sequence[int] | NDArray | None


def _starts(name: str, indices: Any, n: int) -> tuple[list[int], tuple[int, ...]]:
    """The nodes that paths start from, and the axes that a result has of them."""
    if indices is None:
        return list(range(n)), (n,)
    at = np.asarray(indices)
    if at.ndim > 1 or at.dtype.kind not in "iu":
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.{name}: indices of dtype {at.dtype} "
                            f"and shape {at.shape}.", where=user_source(),
                            fix="the number of a node, or a list of such")
    return [node(name, "indices", i, n) for i in np.atleast_1d(at).tolist()], at.shape


def along(weights: Array, before: Array, starts: Any) -> Array:
    """The sums of weights along the paths that predecessors (s, n) make, by doubled steps.

    Infinite where no path leads. Linear in the weights of the paths, which is the derivative.
    """
    _count, n = before.shape
    nodes = jnp.arange(n)
    at = jnp.asarray(starts)
    has = before >= 0
    step = jnp.where(has, before, nodes)
    total = jnp.where(has, weights[step, nodes], 0)
    reached = has | (at[:, None] == nodes)
    hops = 1
    while hops < n:
        total = total + jnp.take_along_axis(total, step, axis=1)
        step = jnp.take_along_axis(step, step, axis=1)
        hops *= 2
    return jnp.where(reached, total, jnp.asarray(np.inf, weights.dtype))


def _found(name: str, csgraph: Any, directed: bool, indices: Any, return_predecessors: bool,
           unweighted: bool, search: Callable[[HostGraph, list[int]], Any],
           positive: bool = False) -> Distances:
    held = checked(name, csgraph)
    n = int(held.shape[0])
    starts, axes = _starts(name, indices, n)
    s = len(starts)

    def run(graph: HostGraph) -> Any:
        if positive and (graph.weights < 0).any():
            raise ArgumentError(f"functrans.scipy.sparse.csgraph.{name}: a weight is negative.",
                                where=user_source(), why="the nearest node is taken to be final.",
                                fix="bellman_ford or johnson")
        return search(graph if directed else graph.both_ways(), starts)

    weights = matrix_of(name, held) if not is_known(held) else None
    if weights is None:
        reached, before = run(host_graph(name, held, unweighted=unweighted))
        dtype = held.dtype if held.dtype.kind == "f" else _floating()
        distances, previous = jnp.asarray(reached.astype(dtype)), jnp.asarray(before)
    else:
        previous = by_host(name, held, lambda g: run(g)[1], struct((s, n), np.int32),
                           unweighted=unweighted)
        if not directed:
            weights = jnp.minimum(weights, weights.T)
        if unweighted:
            weights = jnp.where(jnp.isinf(weights), weights, 1)
        distances = along(weights, previous, starts)
    distances, previous = (x.reshape(*axes, n) for x in (distances, previous))
    return (distances, previous) if return_predecessors else distances


def _floating() -> Any:
    return jnp.zeros(()).dtype


def shortest_path(csgraph: Graph, method: str = "auto", directed: bool = True,
                  return_predecessors: bool = False, unweighted: bool = False,
                  overwrite: bool = False, indices: Indices = None) -> Distances:
    """Lengths (n, n) of the shortest paths between nodes of a graph, infinite where there is none.

    A dense graph has an edge where a weight is finite and not zero, a sparse one where it is
    stored. `indices` are the nodes to start from, all by default; with `return_predecessors` the
    node before each (-9999 for none) comes as well. `method` is "FW", "D", "BF", "J" or "auto":
    see `floyd_warshall`, `dijkstra`, `bellman_ford`, `johnson`. `overwrite` is accepted.
    The paths are found on the host, by a callback where the graph is traced; lengths are
    differentiated in the weights of the paths. Raises NegativeCycleError, and ArgumentError for
    nodes that there are not.

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = jnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    >>> csgraph.shortest_path(graph, indices=0).tolist()
    [0.0, 1.0, 3.0]
    >>> import functrans as ft
    >>> ft.grad(lambda g: csgraph.shortest_path(g, indices=0)[2])(graph).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    one_of("sparse.csgraph.shortest_path", "method", method, ("auto", "FW", "D", "BF", "J"))
    if method == "FW":
        return _all_pairs("shortest_path", csgraph, directed, return_predecessors, unweighted,
                          indices)
    search: Any = {"D": by_heaps, "BF": by_edges, "J": by_potentials}.get(method, _automatic)
    return _found("shortest_path", csgraph, directed, indices, return_predecessors, unweighted,
                  search, method == "D")


def _automatic(graph: HostGraph, starts: list[int]) -> Any:
    """All pairs at a time where most nodes have many edges, a heap for each start otherwise."""
    n = graph.size
    if len(starts) * (graph.weights.size + n) * 8 > n * n * max(n, 1) / 8 and \
            len(starts) * 4 > n and n <= 2000:
        reached, before = by_triples(graph)
        return reached[starts], before[starts]
    return by_potentials(graph, starts)


def _all_pairs(name: str, csgraph: Any, directed: bool, return_predecessors: bool,
               unweighted: bool, indices: Any) -> Distances:
    def search(graph: HostGraph, starts: list[int]) -> Any:
        reached, before = by_triples(graph)
        return reached[starts], before[starts]

    return _found(name, csgraph, directed, indices, return_predecessors, unweighted, search)


def floyd_warshall(csgraph: Graph, directed: bool = True, return_predecessors: bool = False,
                   unweighted: bool = False, overwrite: bool = False) -> Distances:
    """Lengths of the shortest paths between all nodes, through each node in turn: O(n^3).

    Where the graph is traced it is one compiled loop, and cycles of negative weight give NaN. See
    `shortest_path`. Source: Floyd, Comm. ACM 5 (1962).

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.floyd_warshall(jnp.array([[0.0, 1.0], [3.0, 0.0]])).tolist()
    [[0.0, 1.0], [3.0, 0.0]]
    """
    held = checked("floyd_warshall", csgraph)
    if is_known(held):
        return _all_pairs("floyd_warshall", held, directed, return_predecessors, unweighted, None)
    weights = matrix_of("floyd_warshall", held)
    n = weights.shape[0]
    if not directed:
        weights = jnp.minimum(weights, weights.T)
    if unweighted:
        weights = jnp.where(jnp.isinf(weights), weights, 1)
    own = jnp.eye(n, dtype=bool)
    known = lax.stop_gradient(weights)
    loops = jnp.any(jnp.diagonal(known) < 0)
    nodes = jnp.arange(n, dtype=np.int32)
    before = jnp.where(jnp.isinf(known) | own, NONE, nodes[:, None])

    def through(k: Any, state: Any) -> Any:
        reached, before = state
        further = reached[:, k, None] + reached[k]
        return jnp.minimum(reached, further), jnp.where(further < reached, before[k], before)

    reached, before = lax.fori_loop(0, n, through, (jnp.where(own, 0, known), before))
    lost = loops | jnp.any(jnp.diagonal(reached) < 0)
    distances = jnp.where(lost, jnp.asarray(np.nan, weights.dtype),
                          along(weights, before, np.arange(n)))
    return (distances, before) if return_predecessors else distances


def dijkstra(csgraph: Graph, directed: bool = True, indices: Indices = None,
             return_predecessors: bool = False, unweighted: bool = False, limit: float = np.inf,
             min_only: bool = False) -> Distances:
    """Lengths of the shortest paths by a heap: O(e log n) for each start of e edges, none negative.

    Paths longer than `limit` are none. With `min_only` the lengths (n,) are those from the nearest
    of `indices`, and predecessors are followed by the node that it is. See `shortest_path`. Raises
    ArgumentError for a negative weight. Source: Dijkstra, Numer. Math. 1 (1959).

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = [[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    >>> csgraph.dijkstra(graph, indices=[0, 1], min_only=True).tolist()
    [0.0, 0.0, 2.0]
    """
    if not limit >= 0:
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.dijkstra: limit={limit}.",
                            where=user_source(), fix="a number from 0 on")
    if not min_only:
        return _found("dijkstra", csgraph, directed, indices, return_predecessors, unweighted,
                      lambda graph, starts: by_heaps(graph, starts, limit), True)
    held = checked("dijkstra", csgraph)
    n = int(held.shape[0])
    starts, _ = _starts("dijkstra", indices, n)

    def nearest(graph: HostGraph, _: list[int]) -> Any:
        reached, before, _origin = heap_search(graph, starts, limit)
        return reached[None], before[None]

    # one row, whose start is any of the nodes: those without a predecessor are told apart below
    distances, before = _found("dijkstra", held, directed, [0] if n else [], True, unweighted,
                               nearest, True)
    distances, before = distances[0], before[0]
    is_start = np.zeros(n, bool)
    is_start[starts] = True
    distances = jnp.where(jnp.asarray(is_start), 0, jnp.where(before < 0, jnp.asarray(
        np.inf, distances.dtype), distances))
    if not return_predecessors:
        return distances
    step = jnp.where(before < 0, jnp.arange(n), before)
    for _ in range(max(n - 1, 1).bit_length()):
        step = step[step]
    origin = jnp.where(jnp.isinf(distances), NONE, step).astype(np.int32)
    return distances, before, origin


def bellman_ford(csgraph: Graph, directed: bool = True, indices: Indices = None,
                 return_predecessors: bool = False, unweighted: bool = False) -> Distances:
    """Lengths of the shortest paths by following all edges until none is a gain: O(n e) a start.

    Weights may be negative. See `shortest_path`. Source: Bellman, Quart. Appl. Math. 16 (1958).

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = [[0.0, 4.0, 1.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.0]]
    >>> csgraph.bellman_ford(graph, indices=0).tolist()
    [0.0, -1.0, 1.0]
    """
    return _found("bellman_ford", csgraph, directed, indices, return_predecessors, unweighted,
                  by_edges)


def johnson(csgraph: Graph, directed: bool = True, indices: Indices = None,
            return_predecessors: bool = False, unweighted: bool = False) -> Distances:
    """Lengths of the shortest paths by heaps, with weights that potentials make positive.

    Weights may be negative. See `shortest_path`. Source: Johnson, J. ACM 24 (1977).

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = [[0.0, 4.0, 1.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.0]]
    >>> csgraph.johnson(graph, indices=0).tolist()
    [0.0, -1.0, 1.0]
    """
    return _found("johnson", csgraph, directed, indices, return_predecessors, unweighted,
                  by_potentials)


def construct_dist_matrix(graph: Graph, predecessors: ArrayLike, directed: bool = True,
                          null_value: float = np.inf) -> Array:
    """Lengths (n, n) of the paths that predecessors (n, n) make, `null_value` where there is none.

    Differentiated in the weights.

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = jnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    >>> _, before = csgraph.shortest_path(graph, return_predecessors=True)
    >>> csgraph.construct_dist_matrix(graph, before, null_value=-1.0).tolist()
    [[0.0, 1.0, 3.0], [-1.0, 0.0, 2.0], [-1.0, -1.0, 0.0]]
    """
    weights = matrix_of("construct_dist_matrix", graph)
    before = jnp.asarray(predecessors)
    n = weights.shape[0]
    if before.shape != (n, n):
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.construct_dist_matrix: predecessors "
                            f"of shape {before.shape} for {n} nodes.", where=user_source(),
                            fix="return_predecessors=True of shortest_path")
    if not directed:
        weights = jnp.minimum(weights, weights.T)
    found = along(weights, before, np.arange(n))
    return jnp.where(jnp.isinf(found), jnp.asarray(null_value, found.dtype), found)


def yen(csgraph: Graph, source: int, sink: int, K: int, *, directed: bool = True,
        return_predecessors: bool = False, unweighted: bool = False) -> Distances:
    """Lengths of the K shortest paths without loops between two nodes, increasing, and their nodes.

    There are fewer where there are not so many; row i of the predecessors (paths, n) is path i. The
    graph has to be known. Raises ArgumentError for nodes that there are not.
    Source: Yen, Management Science 17 (1971).

    >>> from functrans.scipy.sparse import csgraph
    >>> graph = [[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    >>> csgraph.yen(graph, 0, 2, 3).tolist()
    [3.0, 5.0]
    """
    graph = host_graph("yen", csgraph, unweighted=unweighted)
    n = graph.size
    start, end = node("yen", "source", source, n), node("yen", "sink", sink, n)
    if K < 1 or start == end:
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.yen: K={K}, source={source}, "
                            f"sink={sink}.", where=user_source(),
                            why="there is one path at least, between two nodes.")
    graph = graph if directed else graph.both_ways()
    height = np.zeros(n)
    if (graph.weights < 0).any():
        height = relaxed(graph, np.zeros((1, n)))[0][0]
    raised = HostGraph(np.maximum(graph.weights + height[graph.sources] - height[graph.targets], 0),
                       graph.targets, graph.starts, n)
    edges = [dict(pairs) for pairs in raised.lists]

    def shortest(first: int, closed: set[int], cut: set[int]) -> list[int]:
        kept = [[] if u in closed else [(v, w) for v, w in raised.lists[u] if v not in closed
                                        and not (u == first and v in cut)] for u in range(n)]
        part = HostGraph(raised.weights, raised.targets, raised.starts, n)
        part.__dict__["lists"] = kept
        reached, before, _ = heap_search(part, [first])
        if not np.isfinite(reached[end]):
            return []
        path = [end]
        while path[-1] != first:
            path.append(int(before[path[-1]]))
        return path[::-1]

    def length(path: list[int]) -> float:
        return sum(edges[u][v] for u, v in itertools.pairwise(path))

    paths: list[list[int]] = []
    waiting: dict[tuple[int, ...], float] = {}
    first = shortest(start, set(), set())
    if first:
        waiting[tuple(first)] = length(first)
    while waiting and len(paths) < K:
        best = min(waiting, key=lambda p: (waiting[p], p))
        del waiting[best]
        path = list(best)
        paths.append(path)
        for k in range(len(path) - 1):
            root = path[:k + 1]
            cut = {p[k + 1] for p in paths if p[:k + 1] == root and len(p) > k + 1}
            rest = shortest(path[k], set(root[:-1]), cut)
            if rest:
                whole = tuple(root[:-1] + rest)
                if list(whole) not in paths:
                    waiting[whole] = length(list(whole))
    held = checked("yen", csgraph).dtype
    dtype = held if held.kind == "f" else _floating()
    total = np.asarray([length(p) + height[end] - height[start] for p in paths], dtype)
    if not return_predecessors:
        return jnp.asarray(total)
    before = np.full((len(paths), n), NONE, np.int32)
    for row, path in zip(before, paths):
        row[path[1:]] = path[:-1]
    return jnp.asarray(total), jnp.asarray(before)

