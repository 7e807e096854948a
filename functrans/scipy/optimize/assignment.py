"""linear_sum_assignment: the cheapest pairs of rows and columns."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import of_rank, real
from functrans.typing import Array, ArrayLike


def linear_sum_assignment(cost_matrix: ArrayLike, maximize: bool = False) -> tuple[Array, Array]:
    """Rows and columns of pairs with the least sum of costs, or the largest; each in one pair.

    Of the matrix (n, m) there are min(n, m) pairs, in the order of their rows. It runs under `jit`
    and `vmap`; an infinite cost forbids a pair. Raises ArgumentError for NaN and where no
    assignment is finite, if costs are known; columns are -1 there if they are traced.
    Source: Crouse, IEEE Trans. Aerosp. Electron. Syst. 52 (2016).

    >>> import functrans as ft
    >>> cost = ft.numpy.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    >>> rows, columns = ft.scipy.optimize.linear_sum_assignment(cost)
    >>> columns.tolist(), cost[rows, columns].sum().item()
    ([1, 0, 2], 5.0)
    """
    (cost,) = real("optimize.linear_sum_assignment", cost_matrix)
    of_rank("optimize.linear_sum_assignment", "cost_matrix", cost, 2)
    cost = lax.stop_gradient(-cost if maximize else cost)
    known = not is_traced(cost)
    turned = cost.shape[0] > cost.shape[1]
    table = cost.T if turned else cost
    if not table.size:
        none = jnp.zeros(0, jnp.int32)
        return none, none
    if known and bool(jnp.any(jnp.isnan(table) | (table == -jnp.inf))):
        raise ArgumentError("functrans.scipy.optimize.linear_sum_assignment: a cost is NaN or "
                            "infinitely good.", where=user_source(),
                            fix="jnp.nan_to_num(cost, nan=jnp.inf)")
    columns = _columns(table)
    if known and bool(jnp.any(columns < 0)):
        raise ArgumentError("functrans.scipy.optimize.linear_sum_assignment: no assignment has a "
                            "finite cost.", where=user_source())
    rows = jnp.arange(table.shape[0], dtype=columns.dtype)
    if not turned:
        return rows, columns
    order = jnp.argsort(columns)
    return columns[order], rows[order]


def _columns(cost: Array) -> Array:
    """The column of each row, of a matrix with no more rows than columns."""
    n, m = cost.shape
    index = jnp.int32

    def add(row: Any, state: Any) -> Any:
        """One more row: the shortest path of changes to a free column, by Dijkstra's method."""
        u, v, column_of, row_of = state

        def unfinished(inner: Any) -> Any:
            *_, sink, _ = inner
            return sink == -1

        def extend(inner: Any) -> Any:
            i, shortest, before, seen_rows, seen, least, _, _ = inner
            seen_rows = seen_rows.at[i].set(True)
            through = least + cost[i] - u[i] - v
            shorter = ~seen & (through < shortest)
            before = jnp.where(shorter, i, before)
            shortest = jnp.where(shorter, through, shortest)
            open_ends = jnp.where(seen, jnp.inf, shortest)
            least = jnp.min(open_ends)
            # of several, a column that is free ends the search
            ties = open_ends == least
            free = ties & (row_of < 0)
            j = jnp.where(jnp.any(free), jnp.argmax(free), jnp.argmax(ties)).astype(index)
            lost = ~(least < jnp.inf)
            sink = jnp.where(lost, -2, jnp.where(row_of[j] < 0, j, -1)).astype(index)
            follows = jnp.where(sink == -1, row_of[j], i).astype(index)
            return (follows, shortest, before, seen_rows, seen.at[j].set(True), least, sink, lost)

        start = (jnp.asarray(row, index), jnp.full(m, jnp.inf, cost.dtype),
                 jnp.full(m, -1, index), jnp.zeros(n, bool), jnp.zeros(m, bool),
                 jnp.zeros((), cost.dtype), jnp.asarray(-1, index), jnp.array(False))
        _, shortest, before, seen_rows, seen, least, sink, lost = lax.while_loop(
            unfinished, extend, start)
        # dual variables: reduced costs stay positive, and 0 along the path
        path = shortest[jnp.maximum(column_of, 0)]
        others = seen_rows & (jnp.arange(n) != row)
        u2 = jnp.where(others, u + least - path, u).at[row].add(least)
        v2 = jnp.where(seen & (shortest < jnp.inf), v - (least - shortest), v)

        def walk(inner: Any) -> Any:
            column_of, row_of, j, _ = inner
            i = before[j]
            follows = column_of[i]
            return column_of.at[i].set(j), row_of.at[j].set(i), follows, i == row

        first = jnp.maximum(sink, 0)
        column2, row2, _, _ = lax.while_loop(
            lambda inner: ~inner[3], walk, (column_of, row_of, first, lost))
        keep = [jnp.where(lost, old, new) for old, new in ((u, u2), (v, v2))]
        return keep[0], keep[1], column2, row2

    start = (jnp.zeros(n, cost.dtype), jnp.zeros(m, cost.dtype), jnp.full(n, -1, index),
             jnp.full(m, -1, index))
    found: Array = lax.fori_loop(0, n, add, start)[2]
    return found
