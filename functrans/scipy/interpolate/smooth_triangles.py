"""Values at scattered points of a plane, smooth from triangle to triangle."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact
from functrans.scipy.interpolate.scattered import places_of
from functrans.scipy.products import matmul
from functrans.scipy.spatial.hulls import Delaunay
from functrans.typing import Array, ArrayLike

# of each part of a cubic polynomial the powers of the four barycentric coordinates
_POWERS = [(a, b, c, 3 - a - b - c) for a in range(4) for b in range(4 - a)
           for c in range(4 - a - b)]


@register_pytree_with_keys_class
class CloughTocher2DInterpolator:
    """Values (n, ...) at scattered points (n, 2) of a plane, by cubics with one slope at each edge.

    Slopes at the points are those of the least curvature along the edges, by one system of 2 n
    equations, where SciPy iterates: `tol` and `maxiter` are accepted. `fill_value` is outside of
    the hull; `rescale` measures in units of the ranges of the coordinates. It is made of known
    points outside of `jit`, called within, and is a tree, differentiated in places and values.
    Raises ShapeError for points that are not in a plane.
    Source: Alfeld, Comput. Aided Geom. Design 1 (1984); Nielson, Math. Comp. 40 (1983).

    >>> import functrans as ft
    >>> points = ft.numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.4, 0.6]])
    >>> f = ft.scipy.interpolate.CloughTocher2DInterpolator(points, points[:, 0] * 2.0)
    >>> round(float(f(0.5, 0.25)), 3)
    1.0
    """

    def __init__(self, points: Any, values: ArrayLike, fill_value: ArrayLike = math.nan,
                 tol: float = 1e-6, maxiter: int = 400, rescale: bool = False) -> None:
        name = "interpolate.CloughTocher2DInterpolator"
        if isinstance(points, Delaunay):
            mesh = points
        else:
            (given,) = inexact(points)
            if given.ndim != 2 or given.shape[1] != 2:
                raise ShapeError(f"functrans.scipy.{name}: the points have shape {given.shape}.",
                                 where=user_source(), why="they are (n, 2).",
                                 fix="RBFInterpolator(points, values)")
            low, size = jnp.min(given, axis=0), jnp.ptp(given, axis=0)
            self.moved = (low, jnp.where(size > 0, size, 1)) if rescale else (
                jnp.zeros_like(low), jnp.ones_like(size))
            mesh = Delaunay((given - self.moved[0]) / self.moved[1])
        if isinstance(points, Delaunay):
            self.moved = (jnp.zeros(2, mesh.points.dtype), jnp.ones(2, mesh.points.dtype))
        self.points, self.simplices = mesh.points, mesh.simplices
        self.neighbors = mesh.neighbors
        self.values, _ = inexact(values, self.points)
        if self.values.shape[:1] != self.points.shape[:1]:
            raise ArgumentError(f"functrans.scipy.{name}: there are {self.points.shape[0]} points "
                                f"and {self.values.shape[:1]} values.", where=user_source())
        self.fill_value = jnp.asarray(fill_value, self.values.dtype)
        self.grad = _slopes(self.points, self.values.reshape(self.points.shape[0], -1),
                            np.asarray(self.simplices))

    _names = ("points", "values", "simplices", "neighbors", "fill_value", "grad", "moved")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The points, values, slopes and triangles are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in self._names), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> CloughTocher2DInterpolator:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        for name, child in zip(cls._names, children):
            setattr(made, name, child)
        return made

    def __call__(self, *args: Any) -> Array:
        """The values at places: an array whose last axis is that of coordinates, or one of each."""
        at = places_of(args, self.points)
        flat = (at.reshape(-1, 2) - self.moved[0]) / self.moved[1]
        corners = self.points[self.simplices]
        inverse = jnp.linalg.inv(jnp.swapaxes(corners[:, :2] - corners[:, 2:], 1, 2))

        def shares(x: Array, inverse: Array, last: Array) -> Array:
            rest = jnp.sum(inverse * (x - last)[..., None, :], axis=-1)
            return jnp.concatenate([rest, 1 - jnp.sum(rest, -1, keepdims=True)], axis=-1)

        every = lax.stop_gradient(shares(flat[:, None], inverse, corners[:, 2]))
        least = jnp.min(every, axis=-1)
        which = jnp.argmax(least, axis=1)
        outside = jnp.max(least, axis=1) < -100 * float(jnp.finfo(flat.dtype).eps)
        b = shares(flat, inverse[which], corners[which, 2])
        # the centres of the triangles around, in the coordinates of this one
        across = self.neighbors[which]
        centres = jnp.mean(self.points[self.simplices[across]], axis=2)
        c = shares(centres, inverse[which][:, None], corners[which, 2][:, None])
        found = _cubic(b, corners[which], c, across, self.values.reshape(
            self.values.shape[0], -1)[self.simplices[which]], self.grad[self.simplices[which]])
        rest = self.values.shape[1:]
        value = jnp.where(outside[:, None], self.fill_value, found)
        return value.reshape(*at.shape[:-1], *rest)


def _slopes(points: Array, values: Array, simplices: Any) -> Array:
    """The slopes (n, values, 2) of the least curvature along the edges of triangles."""
    n = points.shape[0]
    pairs = np.concatenate([simplices[:, [0, 1]], simplices[:, [1, 2]], simplices[:, [2, 0]]])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    e = points[j] - points[i]
    weight = 1 / jnp.sqrt(jnp.sum(e * e, axis=1)) ** 3
    outer = e[:, :, None] * e[:, None, :] * weight[:, None, None]
    blocks = jnp.zeros((n, n, 2, 2), points.dtype).at[i, i].add(4 * outer).at[i, j].add(2 * outer)
    matrix = jnp.swapaxes(blocks, 1, 2).reshape(2 * n, 2 * n)
    rise = 6 * (values[j] - values[i])[:, None, :] * (e * weight[:, None])[:, :, None]
    right = jnp.zeros((n, 2, values.shape[1]), rise.dtype).at[i].add(rise)
    used = np.zeros(n, bool)  # a point that no triangle has, has no slope either
    used[i] = True
    matrix = matrix + jnp.diag(jnp.asarray(np.repeat(~used, 2), matrix.dtype))
    found = jnp.linalg.solve(matrix.astype(right.dtype), right.reshape(2 * n, -1))
    return jnp.swapaxes(found.reshape(n, 2, -1), 1, 2)


def _cubic(b: Array, corners: Array, centres: Array, across: Array, f: Array, slope: Array
           ) -> Array:
    """The cubic of a triangle that is split at its centre, in Bernstein's form.

    b (m, 3) are the places, f (m, 3, values) the values and slope (m, 3, values, 2) those at the
    corners; `centres` (m, 3, 3) of the neighbors say along which line slopes across an edge agree.
    """
    def along(k: int, to: int) -> Array:
        e = corners[:, to] - corners[:, k]
        return f[:, k] + jnp.sum(slope[:, k] * e[:, None], axis=-1) / 3

    part: dict[tuple[int, ...], Any] = {}
    unit = np.eye(4, dtype=int)

    def key(*corners_: int) -> tuple[int, ...]:
        return tuple(unit[list(corners_)].sum(0))

    for k in range(3):
        part[key(k, k, k)] = f[:, k]
        one, two = along(k, (k + 1) % 3), along(k, (k + 2) % 3)
        part[key(k, k, (k + 1) % 3)], part[key(k, k, (k + 2) % 3)] = one, two
        part[key(k, k, 3)] = (f[:, k] + one + two) / 3
    for k in range(3):  # the edge across from corner k
        p, q = (k + 1) % 3, (k + 2) % 3
        to_p, to_q = centres[:, k, p], centres[:, k, q]
        below = 2 - 3 * to_q - 3 * to_p
        none = across[:, k] < 0
        g = jnp.where(none, -0.5, (2 * to_q + to_p - 1) / jnp.where(none | (below == 0), 1, below))
        ppp, ppq, pqq, qqq = (part[key(*v)] for v in ((p, p, p), (p, p, q), (p, q, q), (q, q, q)))
        bend = g[:, None] * (qqq - ppp + 3 * (ppq - pqq))
        part[key(p, q, 3)] = 0.5 * (bend - ppp + 2 * ppq - pqq + part[key(q, q, 3)]
                                    + part[key(p, p, 3)])
    for k in range(3):
        others = [part[key(k, v, 3)] for v in range(3) if v != k]
        part[key(k, 3, 3)] = (part[key(k, k, 3)] + others[0] + others[1]) / 3
    part[key(3, 3, 3)] = (part[key(0, 3, 3)] + part[key(1, 3, 3)] + part[key(2, 3, 3)]) / 3
    # the coordinates in the third of the triangle that has the place: one of the corners' is 0
    least = jnp.min(b, axis=1, keepdims=True)
    full = jnp.concatenate([b - least, 3 * least], axis=1)
    total: Any = 0
    for powers in _POWERS:
        if powers not in part:  # of all three corners: none in any of the parts
            continue
        count = math.factorial(3) // math.prod(map(math.factorial, powers))
        weight: Any = count
        for i, p in enumerate(powers):
            weight = weight * full[:, i] ** p if p else weight
        total = total + weight[:, None] * part[powers]
    found: Array = total
    return found


def lagrange(x: ArrayLike, w: ArrayLike) -> Array:
    """The coefficients, highest power first, of the polynomial through values w at places x.

    For `jnp.polyval`, and for few places: twenty lose all digits.

    >>> import functrans as ft
    >>> ft.scipy.interpolate.lagrange([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]).round(5).tolist()
    [1.0, 0.0, 0.0]
    """
    at, values = inexact(x, w)
    if at.ndim != 1 or at.shape != values.shape:
        raise ShapeError(f"functrans.scipy.interpolate.lagrange: x has shape {at.shape}, w "
                         f"{values.shape}.", where=user_source(), why="both are vectors.")
    rows = []
    for k in range(at.shape[0]):
        others = jnp.delete(at, k)
        rows.append(jnp.poly(others) / jnp.prod(at[k] - others))
    return matmul(values, jnp.stack(rows))
