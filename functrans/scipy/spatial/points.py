"""Sets of points: matrices of distances, likeness after moves, arcs."""

from __future__ import annotations

import math
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, of_rank, real
from functrans.scipy.products import matmul, precise, vdot
from functrans.typing import Array, ArrayLike

__all__ = ["distance_matrix", "geometric_slerp", "minkowski_distance", "minkowski_distance_p",
           "procrustes"]


def minkowski_distance_p(x: ArrayLike, y: ArrayLike, p: float = 2) -> Array:
    """sum |x - y|**p over the last axis; the largest |x - y| for an infinite p.

    >>> float(minkowski_distance_p([0.0, 3.0], [4.0, 0.0]))
    25.0
    """
    a, b = inexact(x, y)
    apart = jnp.abs(a - b)
    if p == math.inf:
        return jnp.max(apart, axis=-1)
    return jnp.sum(apart if p == 1 else apart * apart if p == 2 else apart**p, axis=-1)


def minkowski_distance(x: ArrayLike, y: ArrayLike, p: float = 2) -> Array:
    """(sum |x - y|**p)**(1 / p) over the last axis; its derivative between equal points is 0.

    >>> float(minkowski_distance([0.0, 3.0], [4.0, 0.0]))
    5.0
    """
    total = minkowski_distance_p(x, y, p)
    if p in (1, math.inf):
        return total
    return jnp.where(total > 0, jnp.where(total > 0, total, 1) ** (1 / p), 0)


def distance_matrix(x: ArrayLike, y: ArrayLike, p: float = 2, threshold: int = 1000000) -> Array:
    """The distances of all rows of x from all rows of y.

    >>> distance_matrix([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [[5.0, 1.0]]
    """
    a, b = inexact(x, y)
    for name, v in (("x", a), ("y", b)):
        of_rank("spatial.distance_matrix", name, v, 2)
    if a.shape[1] != b.shape[1]:
        raise ShapeError(f"functrans.scipy.spatial.distance_matrix: x has shape {a.shape}, y "
                         f"{b.shape}.", where=user_source(), why="rows have one size.")
    return minkowski_distance(a[:, None], b[None], p)


@precise
def procrustes(data1: ArrayLike, data2: ArrayLike) -> tuple[Array, Array, Array]:
    """Both sets of points centred and scaled, the second turned to the first, and what is left.

    Source: Krzanowski, Principles of Multivariate Analysis (2000).

    >>> import functrans as ft
    >>> a = ft.numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> abs(ft.scipy.spatial.procrustes(a, 2 * a[:, ::-1])[2]).round(3).item()
    0.0
    """
    a, b = real("spatial.procrustes", data1, data2)
    if a.ndim != 2 or a.shape != b.shape or not a.size:
        raise ShapeError(f"functrans.scipy.spatial.procrustes: the data have shapes {a.shape} and "
                         f"{b.shape}.", where=user_source(), why="both are (points, dimensions).")
    a, b = (v - jnp.mean(v, axis=0) for v in (a, b))
    a, b = (v / jnp.sqrt(jnp.sum(v * v)) for v in (a, b))
    # the orthogonal matrix nearest to the product, and the sum of its singular values
    u, w, vt = jnp.linalg.svd(matmul(b.T, a), full_matrices=False)
    b = matmul(b, matmul(u, vt)) * jnp.sum(w)
    return a, b, jnp.sum((a - b) ** 2)


def geometric_slerp(start: ArrayLike, end: ArrayLike, t: ArrayLike, tol: float = 1e-7) -> Array:
    """The points at parts t of the shortest arc between two unit vectors, from start to end.

    >>> import functrans as ft
    >>> print(ft.scipy.spatial.geometric_slerp([1.0, 0.0], [0.0, 1.0], 0.5).round(4))
    [0.7071 0.7071]
    """
    a, b, parts = real("spatial.geometric_slerp", start, end, t)
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        raise ShapeError(f"functrans.scipy.spatial.geometric_slerp: the ends have shapes {a.shape} "
                         f"and {b.shape}.", where=user_source(), why="both are vectors of 2 or "
                         "more.")
    ends: Any = jnp.stack([vdot(a, a), vdot(b, b)])
    if not is_traced(ends) and bool(jnp.any(jnp.abs(ends - 1) > 1e-6)):
        raise ArgumentError("functrans.scipy.spatial.geometric_slerp: an end is not on the unit "
                            "sphere.", where=user_source(), fix="v / jnp.linalg.norm(v)")
    # by the part of the end across the start, which keeps the digits of small angles
    cosine = vdot(a, b)
    across = b - cosine * a
    sine = jnp.sqrt(vdot(across, across))
    flat = sine <= tol
    direction = across / jnp.where(flat, 1, sine)
    angle = jnp.arctan2(sine, cosine) * parts[..., None]
    return jnp.where(flat, a + parts[..., None] * (b - a),
                     jnp.cos(angle) * a + jnp.sin(angle) * direction)


publish(globals(), __all__)
