"""Colourings by which one product with a matrix reads several of its columns.

Gebremedhin, Manne and Pothen, What color is your Jacobian? SIAM Review 47 (2005): greedy
algorithms, vertices with the most neighbours first.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

__all__ = ["column_colors", "star_colors"]

NDArray = np.ndarray[Any, Any]


def _groups(keys: NDArray, values: NDArray, count: int) -> list[NDArray]:
    order = np.argsort(keys, kind="stable")
    ends = np.cumsum(np.bincount(keys, minlength=count))
    return np.split(values[order], ends[:-1]) if count else []


def column_colors(rows: NDArray, columns: NDArray, shape: tuple[Any, Any]) -> NDArray:
    """A colour for each column: two of one colour have no row in common.

    Partial distance-2 colouring of the bipartite graph of rows and columns (section 3.4 there).
    """
    m, n = shape
    of_row, of_column = _groups(rows, columns, m), _groups(columns, rows, n)
    sizes = np.bincount(rows, minlength=m)
    degree = np.zeros(n, np.int64)
    np.add.at(degree, columns, sizes[rows])
    colors = np.full(n, -1)
    # place n of `taken` is for columns without a colour
    taken = np.full(n + 1, -1)
    for j in np.argsort(-degree, kind="stable"):
        for i in of_column[j]:
            taken[colors[of_row[i]]] = j
        taken[-1] = -1
        colors[j] = int(np.argmax(taken[:degree[j] + 1] != j)) if degree[j] else 0
    return colors


def star_colors(rows: NDArray, columns: NDArray, n: int) -> NDArray:
    """A colour for each column of a symmetric matrix, whose diagonal is taken to be stored.

    Neighbours differ, and each path of four vertices has three colours (section 4 there), so that
    each element, or the one opposite, is the only one of its colour in its row.
    """
    off = rows != columns
    order = np.argsort(rows[off], kind="stable")
    flat = columns[off][order].tolist()
    ends = np.cumsum(np.bincount(rows[off], minlength=n)).tolist()
    neighbours = [set(flat[a:b]) for a, b in itertools.pairwise([0, *ends])]
    colors = [-1] * n
    # neighbours of one colour of each vertex, counted; and which vertices have two of a colour
    count: list[dict[int, int]] = [{} for _ in range(n)]
    twice: dict[int, set[int]] = {}
    none: set[int] = set()
    for v in sorted(range(n), key=[-len(s) for s in neighbours].__getitem__):
        taken = set()
        mine = count[v]
        for w in neighbours[v]:
            c = colors[w]
            if c < 0:
                continue
            taken.add(c)
            # v - w - x - y, and p - v - w - x where p has the colour of w
            far = neighbours[w] if mine.get(c, 0) > 1 else neighbours[w] & twice.get(c, none)
            taken.update(colors[x] for x in far)
        color = 0
        while color in taken:
            color += 1
        colors[v] = color
        for w in neighbours[v]:
            seen = count[w].get(color, 0) + 1
            count[w][color] = seen
            if seen == 2:
                twice.setdefault(color, set()).add(w)
    return np.array(colors, np.int64)
