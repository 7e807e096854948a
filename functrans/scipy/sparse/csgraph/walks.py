"""Shortest paths on the host: distances and predecessors of each node, in float64."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from functrans.scipy.sparse.csgraph.graphs import NONE, HostGraph, NDArray
from functrans.scipy.sparse.places import elements_of

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
    """Shortest paths from each of some nodes, for weights that are not negative."""
    if len(starts) * graph.weights.size > _FEW_EDGES:
        at_once = _by_thresholds(graph, starts, limit)
        if at_once is not None:
            return at_once
    found = [heap_search(graph, [s], limit) for s in starts]
    n = graph.size
    return (np.stack([f[0] for f in found]) if found else np.zeros((0, n)),
            np.stack([f[1] for f in found]) if found else np.zeros((0, n), np.int32))


_FEW_EDGES = 20000  # that a heap has followed before whole-array operations have started
_FEW_NODES = 100  # of a front that a heap takes faster


def _by_thresholds(graph: HostGraph, starts: Sequence[int], limit: float) -> Walks | None:
    """Paths from all starts at a time; None where fronts are of few nodes, as along a chain.

    All nodes nearer than a threshold are followed until none comes nearer; then the threshold
    grows. Source: Davidson, Baxter, Garland and Owens, IPDPS (2014), after the delta-stepping of
    Meyer and Sanders, J. Algorithms 49 (2003).
    """
    n, weights = graph.size, graph.weights
    finite = weights[np.isfinite(weights)]
    step = 1.5 * float(finite.mean()) * n / weights.size if finite.size else 0.0
    reached = np.full(len(starts) * n, np.inf)
    before = np.full(reached.size, NONE, np.int32)
    front = np.arange(len(starts)) * n + np.asarray(starts, np.int64)
    reached[front] = 0
    threshold = step
    waits = np.zeros(reached.size, bool)
    mark = np.empty(reached.size, np.int64)
    rounds = followed = 0
    while True:
        rounds += 1
        followed += front.size
        if rounds == 50 and followed < rounds * _FEW_NODES:
            return None
        nodes = front % n
        counts = graph.starts[nodes + 1] - graph.starts[nodes]
        edges, _ = elements_of(nodes, graph.starts)
        further = np.repeat(reached[front], counts) + weights[edges]
        there = graph.targets[edges] + np.repeat(front - nodes, counts)
        gain = np.flatnonzero((further < reached[there]) & (further <= limit))
        there, further = there[gain], further[gain]
        np.minimum.at(reached, there, further)
        best = np.flatnonzero(further == reached[there])
        there, gain = there[best], gain[best]
        # of equal ways to one node one counts: the last that is written
        mark[there] = np.arange(there.size)
        one = np.flatnonzero(mark[there] == np.arange(there.size))
        there = there[one]
        before[there] = np.repeat(nodes, counts)[gain[one]]
        is_near = reached[there] <= threshold
        waits[front] = False
        waits[there] = True
        front = there[is_near]
        if not front.size:
            far = np.flatnonzero(waits)
            if not far.size:
                shape = (len(starts), n)
                return reached.reshape(shape), before.reshape(shape)
            lengths = reached[far]
            threshold = float(lengths.min()) + step
            front = far[lengths <= threshold]


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
