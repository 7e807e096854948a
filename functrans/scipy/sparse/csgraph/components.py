"""Connected components, and the order in which searches reach nodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import filterfalse
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.compressed import csr_array
from functrans.scipy.sparse.csgraph.graphs import (
    NONE,
    Graph,
    HostGraph,
    NDArray,
    by_host,
    checked,
    ends,
    host_graph,
    node,
    sparse_of,
    stable_order,
    struct,
)
from functrans.scipy.sparse.places import elements_of
from functrans.typing import Array


def connected_components(csgraph: Graph, directed: bool = True, connection: str = "weak",
                         return_labels: bool = True) -> Array | tuple[Array, Array]:
    """The number of components of a graph, and the component (n,) of each node, from 0 on.

    Of a directed graph "weak" ones are connected by edges in any direction, "strong" ones by paths
    both ways. Weak components are numbered in the order of their first nodes. The graph may be
    traced: it is computed on the host. Source: Tarjan, SIAM J. Comput. 1 (1972).

    >>> from functrans.scipy.sparse import csgraph
    >>> count, labels = csgraph.connected_components([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    >>> int(count), labels.tolist()
    (2, [0, 0, 1])
    """
    one_of("sparse.csgraph.connected_components", "connection", connection.lower(),
           ("weak", "strong"))
    held = checked("connected_components", csgraph)
    n = int(held.shape[0])
    strong = directed and connection.lower() == "strong"

    def find(graph: HostGraph) -> tuple[Any, NDArray]:
        labels = _strong(graph) if strong else weak_labels(graph)
        return np.int32(labels.max(initial=-1) + 1), labels.astype(np.int32)

    count, labels = by_host("connected_components", held, find,
                            (struct((), np.int32), struct((n,), np.int32)))
    return (count, labels) if return_labels else count


def weak_labels(graph: HostGraph) -> NDArray:
    """The component of each node where edges go both ways."""
    parent = np.arange(graph.size)
    counts = np.diff(graph.starts)
    # a few edges of each node join most of what is connected: few of all edges are left to follow.
    # Source: Sutton, Ben-Nun and Barak, IPDPS (2018)
    for k in range(3):
        u = np.flatnonzero(counts > k)
        parent = _joined(parent, u, graph.targets[graph.starts[u] + k])
    left = np.flatnonzero(np.repeat(parent, counts) != parent[graph.targets])
    u = np.searchsorted(graph.starts, left, "right") - 1
    _, labels = np.unique(_joined(parent, u, graph.targets[left]), return_inverse=True)
    return labels.reshape(-1)


def _joined(parent: NDArray, u: NDArray, v: NDArray) -> NDArray:
    """The root of each node, given those before edges from u to v join more."""
    while u.size:
        # each root takes the least root beside it, then all follow their roots to the end
        a, b = parent[u], parent[v]
        apart = a != b
        if not apart.any():
            break
        u, v, a, b = u[apart], v[apart], a[apart], b[apart]
        np.minimum.at(parent, np.maximum(a, b), np.minimum(a, b))
        parent = ends(parent)
    return parent


def _strong(graph: HostGraph) -> NDArray:
    """Tarjan's algorithm with a stack of its own."""
    n, after = graph.size, graph.neighbours
    number, low, label = [-1] * n, [0] * n, [-1] * n
    stack: list[int] = []
    count = found = 0
    for root in range(n):
        if number[root] >= 0:
            continue
        number[root] = low[root] = count
        count += 1
        stack.append(root)
        path = [(root, iter(after[root]))]
        while path:
            here, rest = path[-1]
            for there in rest:
                if number[there] < 0:
                    number[there] = low[there] = count
                    count += 1
                    stack.append(there)
                    path.append((there, iter(after[there])))
                    break
                if label[there] < 0:
                    low[here] = min(low[here], number[there])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == number[here]:
                    while label[here] < 0:
                        label[stack.pop()] = found
                    found += 1
    return np.asarray(label, np.int64)


def _search(name: str, csgraph: Graph, i_start: int, directed: bool, deep: bool
            ) -> tuple[list[int], NDArray]:
    """The nodes that are reached, in order, and the node before each."""
    graph = host_graph(name, csgraph)
    start = node(name, "i_start", i_start, graph.size)
    starts, targets = graph.starts, graph.targets
    if not directed:
        # the edges that leave a node, and then those that reach it
        back = graph.turned()
        starts = graph.starts + back.starts
        order = stable_order(np.r_[graph.sources, back.sources], graph.size)
        targets = np.r_[targets, back.targets][order]
    return (_deep if deep else _wide)(starts, targets, start)


def _deep(starts: NDArray, targets: NDArray, start: int) -> tuple[list[int], NDArray]:
    bounds, heads = starts.tolist(), targets.tolist()
    seen = bytearray(len(bounds) - 1)
    is_seen = seen.__getitem__

    def new(here: int) -> Iterator[int]:
        return filterfalse(is_seen, heads[bounds[here]:bounds[here + 1]])

    seen[start] = 1
    order, previous, path = [start], [NONE], [(start, new(start))]
    while path:
        here, rest = path[-1]
        for there in rest:
            seen[there] = 1
            previous.append(here)
            order.append(there)
            path.append((there, new(there)))
            break
        else:
            path.pop()
    before = np.full(len(seen), NONE, np.int32)
    before[order] = previous
    return order, before


_FEW = 32  # nodes of a level that Python's loop goes through faster than whole-array operations


def _wide(starts: NDArray, targets: NDArray, start: int) -> tuple[list[int], NDArray]:
    """Level by level: the nodes of the next one in the order in which edges reach them."""
    n, bounds = starts.size - 1, starts.tolist()
    seen = bytearray(n)
    is_seen = np.frombuffer(seen, np.bool_)  # of the same memory
    seen[start] = 1
    level, order, previous = [start], [start], [NONE]
    place = np.empty(n, np.int64)
    while level and len(order) < n:
        if len(level) < _FEW:
            sources: list[int] = []
            reached: list[int] = []
            for here in level:
                for there in targets[bounds[here]:bounds[here + 1]].tolist():
                    if not seen[there]:
                        seen[there] = 1
                        reached.append(there)
                        sources.append(here)
        else:
            nodes = np.asarray(level)
            counts = starts[nodes + 1] - starts[nodes]
            if 4 * counts.sum() < targets.size:
                numbers, _ = elements_of(nodes, starts)
                fresh = np.flatnonzero(~is_seen[targets[numbers]])
                found = targets[numbers[fresh]]
                by = np.repeat(nodes, counts)[fresh]
            else:
                # most edges start here: those to new nodes, in the order of the level
                numbers = np.flatnonzero(~is_seen[targets])
                by = np.searchsorted(starts, numbers, "right") - 1
                place.fill(-1)
                place[nodes] = np.arange(nodes.size)
                inside = np.flatnonzero(place[by] >= 0)
                inside = inside[stable_order(place[by[inside]], n)]
                found, by = targets[numbers[inside]], by[inside]
            # the last of what is written to one place stays: the first edge to each node
            at = np.arange(found.size)
            place[found[::-1]] = at[::-1]
            kept = np.flatnonzero(place[found] == at)
            found = found[kept]
            is_seen[found] = True
            reached, sources = found.tolist(), by[kept].tolist()
        level = reached
        order += reached
        previous += sources
    before = np.full(n, NONE, np.int32)
    before[order] = previous
    return order, before


def breadth_first_order(csgraph: Graph, i_start: int, directed: bool = True,
                        return_predecessors: bool = True) -> Array | tuple[Array, Array]:
    """The nodes reached from node `i_start`, nearest first, and the node before each (n,).

    The predecessor of the start and of what is not reached is -9999. The graph has to be known.
    Raises ArgumentError for a start that is no node.

    >>> from functrans.scipy.sparse import csgraph
    >>> order, before = csgraph.breadth_first_order([[0, 1, 1], [0, 0, 0], [0, 1, 0]], 0)
    >>> order.tolist(), before.tolist()
    ([0, 1, 2], [-9999, 0, 0])
    """
    order, before = _search("breadth_first_order", csgraph, i_start, directed, False)
    found = jnp.asarray(np.asarray(order, np.int32))
    return (found, jnp.asarray(before)) if return_predecessors else found


def depth_first_order(csgraph: Graph, i_start: int, directed: bool = True,
                      return_predecessors: bool = True) -> Array | tuple[Array, Array]:
    """The nodes reached from node `i_start`, going on from the newest; see `breadth_first_order`.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.depth_first_order([[0, 1, 1], [0, 0, 0], [0, 1, 0]], 0)[0].tolist()
    [0, 1, 2]
    """
    order, before = _search("depth_first_order", csgraph, i_start, directed, True)
    found = jnp.asarray(np.asarray(order, np.int32))
    return (found, jnp.asarray(before)) if return_predecessors else found


def tree_of(name: str, csgraph: Graph, before: NDArray, directed: bool) -> csr_array:
    """The edges from predecessors, with their weights in a graph."""
    graph = host_graph(name, csgraph)
    n = graph.size
    v = np.flatnonzero(before >= 0)
    u = before[v].astype(np.int64)
    weights = _weights(graph, u, v)
    if not directed:
        weights = np.fmin(weights, _weights(graph, v, u))
    weights = np.where(np.isnan(weights), 0.0, weights)
    dtype = checked(name, csgraph).dtype
    kept = dtype if dtype.kind == "f" else np.result_type(dtype, np.float32)
    return sparse_of(u, v, weights.astype(kept), n)


def _weights(graph: HostGraph, u: NDArray, v: NDArray) -> NDArray:
    """The weights of edges from u to v, NaN where there is none."""
    keys = graph.sources * graph.columns + graph.targets
    if not keys.size:
        return np.full(u.shape, np.nan)
    at = np.minimum(np.searchsorted(keys, u * graph.columns + v), keys.size - 1)
    return np.where(keys[at] == u * graph.columns + v, graph.weights[at], np.nan)


def breadth_first_tree(csgraph: Graph, i_start: int, directed: bool = True) -> csr_array:
    """The edges by which `breadth_first_order` first reaches nodes, with their weights.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.breadth_first_tree([[0.0, 2.0, 1.0], [0, 0, 3], [0, 0, 0]], 0).toarray().tolist()
    [[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    _, before = _search("breadth_first_tree", csgraph, i_start, directed, False)
    return tree_of("breadth_first_tree", csgraph, before, directed)


def depth_first_tree(csgraph: Graph, i_start: int, directed: bool = True) -> csr_array:
    """The edges by which `depth_first_order` first reaches nodes, with their weights.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.depth_first_tree([[0.0, 2.0, 1.0], [0, 0, 3], [0, 0, 0]], 0).toarray().tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    """
    _, before = _search("depth_first_tree", csgraph, i_start, directed, True)
    return tree_of("depth_first_tree", csgraph, before, directed)


def reconstruct_path(csgraph: Graph, predecessors: Array | NDArray, directed: bool = True
                     ) -> csr_array:
    """The tree of the edges from predecessors (n,) to nodes, with their weights in a graph.

    >>> from functrans.scipy.sparse import csgraph
    >>> before = jnp.array([-9999, 0, 1])
    >>> csgraph.reconstruct_path([[0.0, 2.0, 1.0], [0, 0, 3], [0, 0, 0]], before).toarray().tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    """
    return tree_of("reconstruct_path", csgraph, np.asarray(predecessors), directed)
