"""What half spaces have in common, cells on a sphere, and boxes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_values
from functrans.scipy.spatial.hulls import ConvexHull, Delaunay
from functrans.scipy.spatial.points import minkowski_distance
from functrans.scipy.spatial.simplices import QhullError
from functrans.typing import Array, ArrayLike

__all__ = ["HalfspaceIntersection", "Rectangle", "SphericalVoronoi", "tsearch"]

_ALIKE = 1e-9  # planes that differ by less are one


class HalfspaceIntersection:
    """The corners of what half spaces A x + b <= 0, rows (A, b) of `halfspaces`, have in common.

    `interior_point` is inside of all. `intersections` are the corners: poles of the faces of the
    convex hull of the `dual_points`, which `dual_facets`, `dual_vertices`, `dual_equations`,
    `dual_area` and `dual_volume` describe. It is made outside of `jit`; corners have derivatives in
    the half spaces. Raises ArgumentError for a point that is not inside.
    Source: Preparata and Shamos, Computational Geometry (1985), ch. 7.3.

    >>> import functrans as ft
    >>> square = np.array([[-1, 0, 0], [0, -1, 0], [1, 0, -1], [0, 1, -2.0]])
    >>> found = ft.scipy.spatial.HalfspaceIntersection(square, [0.5, 0.5])
    >>> sorted(found.intersections.round(3).tolist())
    [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    """

    def __init__(self, halfspaces: ArrayLike, interior_point: ArrayLike, incremental: bool = False,
                 qhull_options: str | None = None) -> None:
        rows, point = inexact(halfspaces, interior_point)
        if rows.ndim != 2 or point.shape != (rows.shape[1] - 1,) or rows.shape[1] < 3:
            raise ShapeError(f"functrans.scipy.spatial.HalfspaceIntersection: halfspaces has shape "
                             f"{rows.shape}, interior_point {point.shape}.", where=user_source(),
                             why="there is a row (A, b) for each, and a point of two coordinates "
                             "or more.")
        self.halfspaces, self.interior_point = rows, point
        self.ndim = int(point.shape[0])
        self._find()

    def _find(self) -> None:
        normals, offsets = self.halfspaces[:, :-1], self.halfspaces[:, -1]
        distance = jnp.sum(normals * self.interior_point, axis=1) + offsets
        known = known_values("spatial.HalfspaceIntersection", "halfspaces", distance, "which "
                             "corners there are depends on them.", "make it before jit")
        if not (known < 0).all():
            raise QhullError("functrans.scipy.spatial.HalfspaceIntersection: interior_point is "
                             f"{shown(np.asarray(self.interior_point))}.", where=user_source(),
                             why="A x + b is less than 0 of all half spaces there.",
                             fix="optimize.linprog finds such a point")
        self.dual_points = -normals / distance[:, None]
        hull = ConvexHull(self.dual_points)
        planes = np.asarray(lax.stop_gradient(hull.equations))
        scale = np.abs(planes).max()
        _, first, which = np.unique(np.round(planes / (scale * _ALIKE)), axis=0, return_index=True,
                                    return_inverse=True)
        order = np.argsort(first)  # as the faces come: which does not change with digits
        first, which = first[order], np.argsort(order)[which.reshape(-1)]
        faces = np.asarray(hull.simplices)
        self.dual_equations = hull.equations[first]
        self.dual_facets = [sorted({int(v) for v in faces[which == i].reshape(-1)})
                            for i in range(len(first))]
        self.dual_vertices = hull.vertices
        self.dual_area, self.dual_volume = hull.area, hull.volume
        self.nineq = int(self.halfspaces.shape[0])
        self.intersections = self.interior_point - self.dual_equations[:, :-1] / \
            self.dual_equations[:, -1:]
        self.is_bounded = bool((planes[:, -1] < 0).all())

    def add_halfspaces(self, halfspaces: ArrayLike, restart: bool = False) -> None:
        """Add half spaces, and find the corners anew."""
        more, _ = inexact(halfspaces, self.halfspaces)
        if more.ndim != 2 or more.shape[1] != self.halfspaces.shape[1]:
            raise ShapeError("functrans.scipy.spatial.HalfspaceIntersection: halfspaces has shape "
                             f"{more.shape}.", where=user_source(),
                             why=f"rows have {self.halfspaces.shape[1]} numbers.")
        self.halfspaces = jnp.concatenate([self.halfspaces, more])
        self._find()

    def close(self) -> None:
        """Nothing: there is no process to end."""


class SphericalVoronoi:
    """Voronoi's cells of points (n, dims) on a sphere: `vertices`, and the `regions` of points.

    `regions[i]` are the vertices of the cell of point i; `sort_vertices_of_regions()` brings them
    in order around it, and `calculate_areas()` gives the areas of cells (lengths in a plane). It is
    made outside of `jit`; vertices and areas have derivatives in the points.
    Raises ArgumentError for points that are not on the sphere, or that coincide.
    Source: Caroli et al., Symposium on Experimental Algorithms (2010); Van Oosterom and Strackee,
    IEEE Trans. Biomed. Eng. 30 (1983), for areas.

    >>> import functrans as ft
    >>> points = np.concatenate([np.eye(3), -np.eye(3)])
    >>> cells = ft.scipy.spatial.SphericalVoronoi(points)
    >>> cells.vertices.shape, cells.calculate_areas().round(3).tolist()[:2]
    ((8, 3), [2.094, 2.094])
    """

    def __init__(self, points: ArrayLike, radius: float = 1, center: ArrayLike | None = None,
                 threshold: float = 1e-6) -> None:
        name = "spatial.SphericalVoronoi"
        (self.points,) = inexact(points)
        if self.points.ndim != 2 or self.points.shape[1] < 2:
            raise ShapeError(f"functrans.scipy.{name}: the points have shape {self.points.shape}.",
                             where=user_source(), why="they are (n, dims).")
        self._dim = int(self.points.shape[1])
        if radius is None:
            raise ArgumentError(f"functrans.scipy.{name}: radius is None.", where=user_source(),
                                fix="radius=1")
        self.radius = radius
        self.center = jnp.zeros(self._dim, self.points.dtype) if center is None else inexact(
            center, self.points)[0]
        off = known_values(name, "points", self.points - self.center, "which cells there are "
                           "depends on them.", "SphericalVoronoi(points)  # before jit"
                           ).astype(float)
        margin = threshold * float(radius)
        if np.abs(np.linalg.norm(off, axis=1) - float(radius)).max(initial=0.0) >= margin:
            raise ArgumentError(f"functrans.scipy.{name}: a point is not on the sphere.",
                                where=user_source(), why=f"the distance of all from the centre is "
                                f"the radius, {radius}.", fix="radius=..., center=...")
        apart = np.linalg.norm(off[:, None] - off, axis=-1) + 3 * float(radius) * np.eye(len(off))
        if (apart <= margin).any():
            raise ArgumentError(f"functrans.scipy.{name}: two points coincide.",
                                where=user_source(), fix="np.unique(points, axis=0)")
        if np.linalg.matrix_rank(off - off[0], tol=margin) < self._dim:
            raise QhullError(f"functrans.scipy.{name}: the points are in a plane.",
                             where=user_source(), why="cells have corners off it.")
        hull = ConvexHull(self.points)
        self.vertices = self.radius * hull.equations[:, :-1] + self.center
        self._simplices = np.asarray(hull.simplices)
        self.regions = [[int(i) for i in np.flatnonzero((self._simplices == p).any(1))]
                        for p in range(len(off))]

    def sort_vertices_of_regions(self) -> None:
        """Bring the vertices of all regions in order around their points; in three dimensions."""
        if self._dim != 3:
            raise ArgumentError("functrans.scipy.spatial.SphericalVoronoi: the sphere has "
                                f"{self._dim} dimensions.", where=user_source(),
                                why="only in three cells have their corners in an order.")
        points = np.asarray(lax.stop_gradient(self.points - self.center))
        # the middles of the triangles around a point: as corners may coincide, these are in order
        middles = points[self._simplices].mean(1)
        for p, region in enumerate(self.regions):
            axis = points[p] / np.linalg.norm(points[p])
            start = np.eye(3)[np.argmin(np.abs(axis))]
            first = np.cross(axis, start)
            second = np.cross(axis, first)
            near = middles[region]
            order = np.argsort(np.arctan2(near @ second, near @ first), kind="stable")
            self.regions[p] = [region[i] for i in order]

    def calculate_areas(self) -> Array:
        """The areas of the cells; on a circle the lengths of their arcs."""
        normal = (self.points - self.center) / self.radius
        corners = (self.vertices - self.center) / self.radius
        if self._dim == 2:
            arcs = [self._arc(normal[p], corners[np.array(region)])
                    for p, region in enumerate(self.regions)]
            return jnp.stack(arcs) * self.radius
        self.sort_vertices_of_regions()
        which = np.array([p for p, region in enumerate(self.regions) for _ in region])
        here = np.array([v for region in self.regions for v in region])
        there = np.array([v for region in self.regions for v in region[1:] + region[:1]])
        a, b, c = normal[which], corners[here], corners[there]
        top = jnp.sum(a * jnp.cross(b, c), axis=1)
        bottom = 1 + jnp.sum(a * b, axis=1) + jnp.sum(b * c, axis=1) + jnp.sum(c * a, axis=1)
        angles = 2 * jnp.arctan2(top, bottom)
        return jnp.zeros(len(self.regions), angles.dtype).at[which].add(angles) * self.radius**2

    @staticmethod
    def _arc(point: Array, ends: Array) -> Array:
        """The angle between two ends through a point."""
        across = point[0] * ends[:, 1] - point[1] * ends[:, 0]
        along = jnp.sum(point * ends, axis=1)
        angles = jnp.arctan2(across, along)
        return jnp.sum(jnp.abs(angles))


@register_pytree_with_keys_class
class Rectangle:
    """The box between `mins` and `maxes`, and distances to it; a tree.

    >>> import functrans as ft
    >>> box = ft.scipy.spatial.Rectangle([2.0, 1.0], [0.0, 0.0])
    >>> float(box.volume()), float(box.min_distance_point([3.0, 1.0]))
    (2.0, 1.0)
    """

    def __init__(self, maxes: ArrayLike, mins: ArrayLike) -> None:
        high, low = inexact(maxes, mins)
        self.maxes, self.mins = jnp.maximum(high, low), jnp.minimum(high, low)
        if self.maxes.ndim != 1:
            raise ShapeError(f"functrans.scipy.spatial.Rectangle: the corners have shape "
                             f"{self.maxes.shape}.", where=user_source(), why="they are vectors.")
        self.m = int(self.maxes.shape[0])

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The corners are children."""
        return ((GetAttrKey("maxes"), self.maxes), (GetAttrKey("mins"), self.mins)), self.m

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> Rectangle:
        """A box, without its construction."""
        made = object.__new__(cls)
        made.maxes, made.mins = children
        made.m = aux
        return made

    def __repr__(self) -> str:
        return f"<Rectangle {list(zip(self.mins.tolist(), self.maxes.tolist()))}>"

    def volume(self) -> Array:
        """The product of the lengths."""
        return jnp.prod(self.maxes - self.mins)

    def split(self, d: int, split: ArrayLike) -> tuple[Rectangle, Rectangle]:
        """The boxes below and above a place along the axis d."""
        return (Rectangle(self.mins, self.maxes.at[d].set(split)),
                Rectangle(self.mins.at[d].set(split), self.maxes))

    def min_distance_point(self, x: ArrayLike, p: float = 2.0) -> Array:
        """The distance of a point, 0 inside."""
        at, _ = inexact(x, self.maxes)
        return _length(jnp.maximum(jnp.maximum(self.mins - at, at - self.maxes), 0), p)

    def max_distance_point(self, x: ArrayLike, p: float = 2.0) -> Array:
        """The distance of a point from the farthest corner."""
        at, _ = inexact(x, self.maxes)
        return _length(jnp.maximum(self.maxes - at, at - self.mins), p)

    def min_distance_rectangle(self, other: Rectangle, p: float = 2.0) -> Array:
        """The distance of another box, 0 where they have a part in common."""
        return _length(jnp.maximum(jnp.maximum(self.mins - other.maxes, other.mins - self.maxes),
                                   0), p)

    def max_distance_rectangle(self, other: Rectangle, p: float = 2.0) -> Array:
        """The largest distance of their corners."""
        return _length(jnp.maximum(self.maxes - other.mins, other.maxes - self.mins), p)


def _length(v: Array, p: float) -> Array:
    return minkowski_distance(jnp.zeros_like(v), v, p)


def tsearch(tri: Delaunay, xi: ArrayLike) -> Array:
    """The index of a simplex that has each place, -1 outside: `tri.find_simplex(xi)`.

    >>> import functrans as ft
    >>> mesh = ft.scipy.spatial.Delaunay([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> ft.scipy.spatial.tsearch(mesh, [[0.2, 0.2], [2.0, 2.0]]).tolist()
    [0, -1]
    """
    if not isinstance(tri, Delaunay):
        raise ArgumentError(f"functrans.scipy.spatial.tsearch: tri is a {type(tri).__name__}.",
                            where=user_source(), fix="tri = Delaunay(points)")
    return tri.find_simplex(xi)


publish(globals(), __all__)
