"""Where the boxes of a directed graph go: in layers from top to bottom, edges mostly downwards.

Sugiyama's steps: layers by the longest path, places of their own for edges that pass a layer, the
order within layers by barycentres of neighbours, and then positions that pull neighbours together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Box", "Placed", "place"]

SWEEPS = 12
GAP = 18.0  # between boxes of a layer
PASSING = 6.0  # the width of an edge that passes a layer


@dataclass(frozen=True)
class Box:
    """What has a place: its size."""

    width: float
    height: float


@dataclass(frozen=True)
class Placed:
    """The upper left corners of boxes, where each edge bends, and the size of all.

    `floors` are where the layers of the boxes end: an edge that leaves a low box goes down to there
    before it turns, and not through a high one beside it.
    """

    at: Sequence[tuple[float, float]]
    floors: Sequence[float]
    bends: Mapping[tuple[int, int], Sequence[tuple[float, float]]]
    width: float
    height: float


def place(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], gap: float = 40.0) -> Placed:
    """Places for boxes; edges (a, b) go from earlier to later boxes, a < b, and layers are `gap`
    apart."""
    edges = list(dict.fromkeys(edges))
    layer = _layers(len(boxes), edges)
    widths = [box.width for box in boxes]
    routes: dict[tuple[int, int], list[int]] = {}
    nodes = list(range(len(boxes)))
    links: list[tuple[int, int]] = []
    for a, b in edges:
        route = []
        for passed in range(layer[a] + 1, layer[b]):
            route.append(len(nodes))
            nodes.append(len(nodes))
            layer.append(passed)
            widths.append(PASSING)
        routes[a, b] = route
        links += zip([a, *route], [*route, b], strict=True)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for n in nodes:
        rows[layer[n]].append(n)
    above: list[list[int]] = [[] for _ in nodes]
    below: list[list[int]] = [[] for _ in nodes]
    for a, b in links:
        below[a].append(b)
        above[b].append(a)
    _order(rows, above, below)
    x = _positions(rows, above, below, widths)
    y, tops = 0.0, []
    for row in rows:
        tops.append(y)
        y += max(boxes[n].height if n < len(boxes) else 0.0 for n in row) + gap
    left = min((x[n] - widths[n] / 2 for n in nodes), default=0.0)
    right = max((x[n] + widths[n] / 2 for n in nodes), default=0.0)
    at = [(x[n] - widths[n] / 2 - left, tops[layer[n]]) for n in range(len(boxes))]
    depth = [max((boxes[n].height for n in row if n < len(boxes)), default=0.0) for row in rows]
    bends = {edge: [point for n in route
                    for point in ((x[n] - left, tops[layer[n]]),
                                  (x[n] - left, tops[layer[n]] + depth[layer[n]]))]
             for edge, route in routes.items()}
    floors = [tops[layer[n]] + depth[layer[n]] for n in range(len(boxes))]
    return Placed(at, floors, bends, right - left, max(y - gap, 0.0))


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path to each box; what nobody points at is moved down to its first reader."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    layer = [0] * count
    for b in range(count):
        layer[b] = max((layer[a] + 1 for a in before[b]), default=0)
    for a in reversed(range(count)):
        if not before[a] and after[a]:
            layer[a] = min(layer[b] for b in after[a]) - 1
    return layer


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort layers by the mean places of neighbours, downwards and upwards in turn."""
    best, fewest = [list(r) for r in rows], _crossings(rows, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for k in (range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)):
            place_of = {n: p for p, n in enumerate(rows[k - 1 if down else k + 1])}
            mine = {n: p for p, n in enumerate(rows[k])}

            def key(n: int, place_of: dict[int, int] = place_of, mine: dict[int, int] = mine,
                    down: bool = down) -> float:
                near = [place_of[m] for m in (above if down else below)[n]]
                return sum(near) / len(near) if near else float(mine[n])

            rows[k].sort(key=key)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(r) for r in rows], crossings
    rows[:] = best


def _crossings(rows: list[list[int]], below: list[list[int]]) -> int:
    """How many edges between neighbouring layers cross."""
    count = 0
    for row, following in pairwise(rows):
        place_of = {n: p for p, n in enumerate(following)}
        ends: list[int] = []
        for n in row:
            mine = [place_of[m] for m in below[n]]
            count += sum(1 for m in mine for e in ends if e > m)
            ends += mine
    return count


def _positions(rows: list[list[int]], above: list[list[int]], below: list[list[int]],
               widths: Sequence[float]) -> list[float]:
    """Centres along a layer: near those of neighbours, in order, without overlap."""
    x = [0.0] * len(widths)
    for row in rows:
        at = 0.0
        for n in row:
            x[n] = at + widths[n] / 2
            at += widths[n] + GAP
        for n in row:
            x[n] -= at / 2
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for k in (range(len(rows)) if down else range(len(rows) - 1, -1, -1)):
            wanted = []
            for n in rows[k]:
                near = (above if down else below)[n] or (below if down else above)[n]
                wanted.append(sum(x[m] for m in near) / len(near) if near else x[n])
            for n, at in zip(rows[k], _apart(rows[k], wanted, widths), strict=True):
                x[n] = at
    return x


def _apart(row: Sequence[int], wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones, by least squares, at which boxes do not overlap."""
    offsets = [0.0]
    for a, b in pairwise(row):
        offsets.append(offsets[-1] + (widths[a] + widths[b]) / 2 + GAP)
    blocks: list[tuple[float, int]] = []  # pools of adjacent violators: mean and size
    for target, offset in zip(wanted, offsets, strict=True):
        mean, size = target - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean = (mean * size + other * count) / (size + count)
            size += count
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
