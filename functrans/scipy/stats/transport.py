"""Distances between samples of points."""

from __future__ import annotations

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_values
from functrans.scipy.optimize import linear_sum_assignment, linprog
from functrans.scipy.spatial.distance import cdist
from functrans.scipy.stats.descriptive import wasserstein_distance
from functrans.typing import Array, ArrayLike

__all__ = ["wasserstein_distance_nd"]


def wasserstein_distance_nd(u_values: ArrayLike, v_values: ArrayLike,
                            u_weights: ArrayLike | None = None,
                            v_weights: ArrayLike | None = None) -> Array:
    """How far the mass of one sample of points (n, d) moves to that of another (m, d).

    Vectors are samples of numbers, see `wasserstein_distance`. As many points without weights are
    assigned to each other; otherwise the cost of transport is a linear program of n m unknowns. It
    has derivatives in the points.
    Source: Peyré and Cuturi, Computational Optimal Transport (2019).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.wasserstein_distance_nd(
    ...     [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]])), 4)
    1.0
    """
    u, v = inexact(u_values, v_values)
    if u.ndim == 1 and v.ndim == 1:
        return wasserstein_distance(u, v, u_weights, v_weights)
    if u.ndim != 2 or v.ndim != 2 or u.shape[1] != v.shape[1] or not u.size or not v.size:
        raise ShapeError(f"scipy.stats.wasserstein_distance_nd: the samples have shapes {u.shape} "
                         f"and {v.shape}.", where=user_source(),
                         why="they are (points, dimensions), of as many dimensions.")
    n, m = u.shape[0], v.shape[0]
    cost = cdist(u, v)
    if u_weights is None and v_weights is None and n == m:
        rows, columns = linear_sum_assignment(cost)
        return jnp.mean(cost[rows, columns])
    masses = []
    for name, count, weights in (("u_weights", n, u_weights), ("v_weights", m, v_weights)):
        w = np.ones(count) if weights is None else np.asarray(known_values(
            "stats.wasserstein_distance_nd", name, weights, "the program is made with them.",
            "call it outside of jit"), float)
        if w.shape != (count,) or (w < 0).any() or not 0 < w.sum() < np.inf:
            raise ArgumentError(f"scipy.stats.wasserstein_distance_nd: {name} has shape {w.shape}.",
                                where=user_source(), why=f"it has {count} weights, which are not "
                                "negative and not all 0.")
        masses.append(w / w.sum())
    # what leaves each point, and what comes to each but the last, which has the rest
    leaves = np.kron(np.eye(n), np.ones(m))
    comes = np.kron(np.ones(n), np.eye(m))[:-1]
    equal, total = np.concatenate([leaves, comes]), np.concatenate([masses[0], masses[1][:-1]])
    plan = linprog(cost.reshape(-1), A_eq=jnp.asarray(equal).astype(cost.dtype),
                   b_eq=jnp.asarray(total).astype(cost.dtype))
    return jnp.asarray(plan.fun)


publish(globals(), __all__)
