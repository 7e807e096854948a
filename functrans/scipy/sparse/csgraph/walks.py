"""Shortest paths on the host: distances and predecessors of each node, in float64."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from functrans.scipy.sparse.csgraph.graphs import NONE, HostGraph, NDArray

Walks = tuple[NDArray, NDArray]


class NegativeCycleError(Exception):
    """A cycle of negative weight, around which paths become ever shorter.

    >>> from functrans.scipy.sparse import csgraph
    >>> issubclass(csgraph.NegativeCycleError, Exception)
    True
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the graph has a cycle of negative weight.")


def heap_search(graph: HostGraph, starts: Sequence[int], limit: float = np.inf
                ) -> tuple[NDArray, NDArray, NDArray]:
    """Distances from the nearest of some nodes, predecessors, and which of the nodes it is.

    Source: Dijkstra, Numer. Math. 1 (1959), with a heap.
    """
    n, edges = graph.size, graph.lists
    reached = [np.inf] * n
    before, origin = [NONE] * n, [NONE] * n
    done = [False] * n
    heap: list[tuple[float, int]] = []
    for s in starts:
        reached[s], origin[s] = 0.0, s
        heap.append((0.0, s))
    heapq.heapify(heap)
    push, pop = heapq.heappush, heapq.heappop
    while heap:
        far, here = pop(heap)
        if done[here]:
            continue
        done[here] = True
        for there, weight in edges[here]:
            further = far + weight
            if further < reached[there] and further <= limit:
                reached[there], before[there], origin[there] = further, here, origin[here]
                push(heap, (further, there))
    return np.asarray(reached), np.asarray(before, np.int32), np.asarray(origin, np.int32)


def by_heaps(graph: HostGraph, starts: Sequence[int], limit: float = np.inf) -> Walks:
    """Dijkstra's algorithm from each of some nodes."""
    found = [heap_search(graph, [s], limit) for s in starts]
    n = graph.size
    return (np.stack([f[0] for f in found]) if found else np.zeros((0, n)),
            np.stack([f[1] for f in found]) if found else np.zeros((0, n), np.int32))


def relaxed(graph: HostGraph, reached: NDArray) -> Walks:
    """Distances after all edges have been followed until none is a gain, of rows of distances.

    Source: Bellman, Quart. Appl. Math. 16 (1958). All edges and all rows are followed at a time.
    """
    n = graph.size
    before = np.full(reached.shape, NONE, np.int32)
    back = graph.turned()
    if not back.weights.size or not reached.size:
        return reached, before
    heads = np.flatnonzero(np.diff(back.starts))
    first = back.starts[heads]
    owners = np.repeat(np.arange(heads.size), np.diff(np.r_[first, back.weights.size]))
    numbers = np.arange(back.weights.size)
    for _ in range(n + 1):
        further = reached[:, back.targets] + back.weights
        best = np.minimum.reduceat(further, first, axis=1)
        gain = best < reached[:, heads]
        if not gain.any():
            return reached, before
        is_best = np.where(further == best[:, owners], numbers, numbers.size)
        edge = np.minimum.reduceat(is_best, first, axis=1)
        lane, place = np.nonzero(gain)
        reached = reached.copy()
        reached[lane, heads[place]] = best[lane, place]
        before[lane, heads[place]] = back.targets[edge[lane, place]]
    raise NegativeCycleError


def by_edges(graph: HostGraph, starts: Sequence[int]) -> Walks:
    """Bellman and Ford's algorithm from each of some nodes."""
    reached = np.full((len(starts), graph.size), np.inf)
    reached[np.arange(len(starts)), np.asarray(starts, int)] = 0
    return relaxed(graph, reached)


def by_potentials(graph: HostGraph, starts: Sequence[int]) -> Walks:
    """Dijkstra's algorithm with weights that potentials make positive.

    Source: Johnson, J. ACM 24 (1977).
    """
    if not (graph.weights < 0).any():
        return by_heaps(graph, starts)
    height = relaxed(graph, np.zeros((1, graph.size)))[0][0]
    weights = graph.weights + height[graph.sources] - height[graph.targets]
    raised = HostGraph(np.maximum(weights, 0), graph.targets, graph.starts, graph.columns)
    reached, before = by_heaps(raised, starts)
    return reached + height - height[np.asarray(starts, int)][:, None], before


def by_triples(graph: HostGraph) -> Walks:
    """Distances between all pairs, through each node in turn.

    Source: Floyd, Comm. ACM 5 (1962).
    """
    n = graph.size
    reached = np.full((n, n), np.inf)
    before = np.full((n, n), NONE, np.int32)
    np.minimum.at(reached, (graph.sources, graph.targets), graph.weights)
    before[graph.sources, graph.targets] = graph.sources
    at = np.arange(n)
    if (reached[at, at] < 0).any():
        raise NegativeCycleError
    reached[at, at], before[at, at] = 0, NONE
    for k in range(n):
        further = reached[:, k, None] + reached[k]
        gain = further < reached
        np.minimum(reached, further, out=reached)
        before[gain] = np.broadcast_to(before[k], (n, n))[gain]
    if (reached[at, at] < 0).any():
        raise NegativeCycleError
    return reached, before
