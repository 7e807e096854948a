"""The largest flow through a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.arithmetic import is_sparse
from functrans.scipy.sparse.compressed import csr_array
from functrans.scipy.sparse.csgraph.graphs import host_graph, node
from functrans.sparse.base import JAXSparse


@dataclass(frozen=True)
class MaximumFlowResult:
    """A flow: its value, and what flows along each edge, negative against its direction.

    >>> from functrans.scipy.sparse import csgraph, csr_array
    >>> csgraph.maximum_flow(csr_array(np.array([[0, 3], [0, 0]])), 0, 1)
    MaximumFlowResult with value of 3
    """

    flow_value: int
    flow: csr_array

    def __repr__(self) -> str:
        return f"MaximumFlowResult with value of {self.flow_value}"


def maximum_flow(csgraph: JAXSparse, source: int, sink: int, *, method: str = "dinic"
                 ) -> MaximumFlowResult:
    """The largest flow from one node to another where edges carry their integer weights at most.

    `method` is "dinic" or "edmonds_karp": both are Dinic's, and the flow may be another of the same
    value. The graph has to be known. Raises ArgumentError for weights that are no integers or
    negative, and for nodes that are one. Source: Dinic, Soviet Math. Doklady 11 (1970).

    >>> from functrans.scipy.sparse import csgraph, csr_array
    >>> graph = csr_array(np.array([[0, 5, 0], [0, 0, 3], [0, 0, 0]]))
    >>> found = csgraph.maximum_flow(graph, 0, 2)
    >>> found.flow_value, found.flow.toarray().tolist()
    (3, [[0, 3, 0], [-3, 0, 3], [0, -3, 0]])
    """
    one_of("sparse.csgraph.maximum_flow", "method", method, ("dinic", "edmonds_karp"))
    if not is_sparse(csgraph) or np.dtype(csgraph.dtype).kind not in "iu":
        raise ArgumentError("functrans.scipy.sparse.csgraph.maximum_flow: a graph of "
                            f"{getattr(csgraph, 'dtype', type(csgraph).__name__)}.",
                            where=user_source(), why="capacities are integers of a sparse graph.",
                            fix="csr_array(graph, dtype='int32')")
    if csgraph.shape[0] != csgraph.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse.csgraph.maximum_flow: a graph of shape "
                         f"{csgraph.shape}.", where=user_source(), why="it is square.")
    graph = host_graph("maximum_flow", csgraph)
    n = graph.size
    s, t = node("maximum_flow", "source", source, n), node("maximum_flow", "sink", sink, n)
    if s == t or (graph.weights < 0).any():
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.maximum_flow: source={source}, sink="
                            f"{sink}, least capacity {graph.weights.min(initial=0):g}.",
                            where=user_source(), why="the nodes are two, and capacities from 0 on.")
    u, v = graph.sources, graph.targets
    # each edge beside its reverse: edge k has the reverse k ^ 1
    heads = np.stack([v, u], -1).reshape(-1).tolist()
    room = np.stack([graph.weights.astype(np.int64), np.zeros(u.size, np.int64)],
                    -1).reshape(-1).tolist()
    leaving: list[list[int]] = [[] for _ in range(n)]
    for k, (a, b) in enumerate(zip(u.tolist(), v.tolist())):
        leaving[a].append(2 * k)
        leaving[b].append(2 * k + 1)
    value = 0
    while True:
        level = [-1] * n
        level[s] = 0
        queue = [s]
        for here in queue:
            for e in leaving[here]:
                if room[e] and level[heads[e]] < 0:
                    level[heads[e]] = level[here] + 1
                    queue.append(heads[e])
        if level[t] < 0:
            break
        value += _blocking(s, t, heads, room, leaving, level)
    used = np.asarray(room[1::2], np.int64)
    rows, columns = np.r_[u, v], np.r_[v, u]
    made = csr_array((jnp.asarray(np.r_[used, -used].astype(np.int32)), (rows, columns)),
                     shape=(n, n))
    return MaximumFlowResult(value, made)


def _blocking(s: int, t: int, heads: list[int], room: list[int], leaving: list[list[int]],
              level: list[int]) -> int:
    """Send all that goes along edges from each level to the next."""
    turn = [0] * len(leaving)
    path: list[int] = []
    here, total = s, 0
    while True:
        if here == t:
            most = min(room[e] for e in path)
            total += most
            first = len(path)
            for k, e in enumerate(path):
                room[e] -= most
                room[e ^ 1] += most
                if not room[e] and k < first:
                    first = k
            here = heads[path[first] ^ 1]
            del path[first:]
            continue
        edges = leaving[here]
        while turn[here] < len(edges):
            e = edges[turn[here]]
            if room[e] and level[heads[e]] == level[here] + 1:
                break
            turn[here] += 1
        if turn[here] < len(edges):
            path.append(edges[turn[here]])
            here = heads[path[-1]]
        elif path:
            e = path.pop()
            here = heads[e ^ 1]
            turn[here] += 1
        else:
            return total
