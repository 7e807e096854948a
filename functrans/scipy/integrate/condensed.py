"""Systems of a chain of equations, each between two neighbours, and conditions at both ends.

Unknowns are y_0 ... y_m, vectors of n, and p, a vector of k. Inner ones are eliminated one after
the other by orthogonal transformations, which is stable where values grow one way and fall the
other.
Source: Wright, SIAM J. Sci. Stat. Comput. 13 (1992).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.config import matmul_precision
from functrans.scipy.products import matmul
from functrans.typing import Array


class Blocks(NamedTuple):
    """left_i y_i + right_i y_{i+1} + of_p_i p, and first y_0 + last y_m + ends_p p."""

    left: Array
    right: Array
    of_p: Array
    first: Array
    last: Array
    ends_p: Array


def solve_blocks(blocks: Blocks, chain: Array, ends: Array) -> tuple[Array, Array]:
    """y (m + 1, n) and p, of right-hand sides (m, n) and (n + k,)."""
    n = chain.shape[1]

    def eliminate(relation: Any, row: Any) -> Any:
        """Of y_i: the relation of y_0 and y_i and the next equation become one of y_0, y_{i+1}."""
        to_first, to_now, to_p, right = relation
        left, after, of_p, given = row
        with matmul_precision("highest"):
            q, r = jnp.linalg.qr(jnp.concatenate([to_now, left]), mode="complete")
        none = jnp.zeros_like(to_first)
        turned = [matmul(q.T, jnp.concatenate(pair)) for pair in (
            (to_first, none), (none, after), (to_p, of_p), (right, given))]
        return tuple(v[n:] for v in turned), (r[:n], *(v[:n] for v in turned))

    begin = (blocks.left[0], blocks.right[0], blocks.of_p[0], chain[0])
    rows = (blocks.left[1:], blocks.right[1:], blocks.of_p[1:], chain[1:])
    (to_first, to_last, to_p, right), kept = lax.scan(eliminate, begin, rows)
    system = jnp.concatenate([jnp.concatenate([to_first, to_last, to_p], axis=1),
                              jnp.concatenate([blocks.first, blocks.last, blocks.ends_p], axis=1)])
    with matmul_precision("highest"):
        corner = jnp.linalg.solve(system, jnp.concatenate([right, ends]))
    first, last, p = corner[:n], corner[n:2 * n], corner[2 * n:]

    def substitute(after: Array, row: Any) -> tuple[Array, Array]:
        r, to_first, to_next, to_p, right = row
        rest = right - matmul(to_first, first) - matmul(to_next, after) - matmul(to_p, p)
        now = lax.linalg.triangular_solve(r, rest[:, None], left_side=True, lower=False)[:, 0]
        return now, now

    _, inner = lax.scan(substitute, last, kept, reverse=True)
    return jnp.concatenate([first[None], inner, last[None]]), p
