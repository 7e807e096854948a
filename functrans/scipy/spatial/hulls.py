"""Convex hulls, Delaunay's triangulations and Voronoi's cells of known points.

Which simplices there are depends on values: they are found outside of `jit`, in a time that grows
as n**2. Volumes, areas, planes and the vertices of cells are arrays that follow the points, and
have their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_values
from functrans.scipy.products import matmul
from functrans.scipy.spatial.simplices import delaunay, hull
from functrans.typing import Array, ArrayLike

__all__ = ["ConvexHull", "Delaunay", "Voronoi"]


def _known(name: str, points: ArrayLike) -> tuple[Array, Any]:
    """The points (n, dims) as an array, and their values."""
    (given,) = inexact(points)
    if given.ndim != 2 or given.shape[1] < 2 or given.shape[0] <= given.shape[1]:
        raise ShapeError(f"functrans.scipy.spatial.{name}: the points have shape {given.shape}.",
                         where=user_source(),
                         why="they are (n, dims), with at least two dimensions and n > dims.")
    known = known_values(f"spatial.{name}", "points", given, "which simplices there are depends "
                         "on the points.", f"{name}(points)  # before jit").astype(float)
    if not np.isfinite(known).all():
        raise ArgumentError(f"functrans.scipy.spatial.{name}: a point is not finite.",
                            where=user_source())
    return given, known


def _neighbors(simplices: Any) -> Any:
    """Of each corner the simplex on the other side, -1 where there is none."""
    count, size = simplices.shape
    sides = np.concatenate([np.sort(np.delete(simplices, k, axis=1), axis=1)
                            for k in range(size)])
    _, which = np.unique(sides, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    of = which.reshape(-1)[order]
    found = np.full(count * size, -1)
    same = np.flatnonzero(of[1:] == of[:-1])
    found[order[same]], found[order[same + 1]] = order[same + 1] % count, order[same] % count
    return found.reshape(size, count).T


class ConvexHull:
    """The convex hull of points (n, dims): its `vertices`, `simplices`, `volume` and `area`.

    `vertices` are indices of points, in two dimensions counterclockwise; `simplices` the corners of
    faces, `neighbors` the faces across from these; `equations` outward normals and offsets, which
    are negative inside. In two dimensions `volume` is the area and `area` the perimeter.
    Raises ShapeError for too few points, ArgumentError for points in a plane and under `jit`.
    Source: the beneath-beyond method (Preparata and Shamos, 1985, ch. 3.4.2).

    >>> import functrans as ft
    >>> square = ft.numpy.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [1.0, 1.0]])
    >>> found = ft.scipy.spatial.ConvexHull(square)
    >>> float(found.volume), float(found.area), sorted(found.vertices.tolist())
    (4.0, 8.0, [0, 1, 2, 3])
    """

    def __init__(self, points: ArrayLike, incremental: bool = False,
                 qhull_options: str | None = None) -> None:
        self.points, known = _known("ConvexHull", points)
        faces, normals, _ = hull(known)
        self.npoints, self.ndim = known.shape
        self.nsimplex = len(faces)
        corners = np.unique(faces)
        if self.ndim == 2:
            off = known[corners] - known[corners].mean(0)
            corners = corners[np.argsort(np.arctan2(off[:, 1], off[:, 0]), kind="stable")]
        self.vertices = jnp.asarray(corners)
        self.simplices = jnp.asarray(faces)
        self.neighbors = jnp.asarray(_neighbors(faces))
        self.min_bound = jnp.min(self.points, axis=0)
        self.max_bound = jnp.max(self.points, axis=0)
        sides = self.points[faces[:, 1:]] - self.points[faces[:, :1]]
        self.equations = self._equations(faces, sides, normals)
        gram = matmul(sides, jnp.swapaxes(sides, 1, 2))
        self.area = jnp.sum(jnp.sqrt(jnp.linalg.det(gram))) / math.factorial(self.ndim - 1)
        middle = jnp.mean(self.points[faces[0]], axis=0)  # on the hull: as good as inside
        sizes = jnp.linalg.det(self.points[faces] - middle)
        self.volume = jnp.sum(jnp.abs(sizes)) / math.factorial(self.ndim)

    def _equations(self, faces: Any, sides: Array, known: Any) -> Array:
        """The unit normal is what is left of the known one across the sides."""
        q, _ = jnp.linalg.qr(jnp.swapaxes(sides, 1, 2))
        like = jnp.asarray(known, sides.dtype)
        inside = matmul(q, matmul(jnp.swapaxes(q, 1, 2), like[..., None]))[..., 0]
        normal = like - inside
        normal = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
        offset = -jnp.sum(normal * self.points[faces[:, 0]], axis=1, keepdims=True)
        return jnp.concatenate([normal, offset], axis=1)


class Delaunay:
    """Delaunay's triangulation of points (n, dims): `simplices`, `neighbors`, `find_simplex(xi)`.

    `neighbors` are the simplices across from the corners, -1 outside; `convex_hull` the faces of
    the hull. Of points on one sphere one of the triangulations is taken.
    Raises ShapeError for too few points, ArgumentError for points in a plane and under `jit`.

    >>> import functrans as ft
    >>> corners = ft.numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = ft.scipy.spatial.Delaunay(corners)
    >>> sorted(found.simplices[0].tolist()), found.find_simplex([[0.2, 0.2], [2.0, 2.0]]).tolist()
    ([0, 1, 2], [0, -1])
    """

    def __init__(self, points: ArrayLike, furthest_site: bool = False, incremental: bool = False,
                 qhull_options: str | None = None) -> None:
        if furthest_site:
            raise ArgumentError("functrans.scipy.spatial.Delaunay: furthest_site=True.",
                                where=user_source(), why="simplices are those of nearest sites.")
        self.points, known = _known("Delaunay", points)
        found = delaunay(known)
        self.npoints, self.ndim = known.shape
        self.nsimplex = len(found)
        across = _neighbors(found)
        self.simplices, self.neighbors = jnp.asarray(found), jnp.asarray(across)
        outer = [np.delete(found[i], k) for i, k in np.argwhere(across < 0)]
        self.convex_hull = jnp.asarray(np.array(outer))
        self.coplanar = jnp.asarray(np.zeros((0, 3), int))

    @property
    def transform(self) -> Array:
        """Of each simplex the matrix that gives the first shares of its corners, and the last one.

        (nsimplex, dims + 1, dims): shares are `transform[i, :dims] @ (x - transform[i, dims])`.
        """
        corners = self.points[self.simplices]
        base = corners[:, -1:]
        inverse = jnp.linalg.inv(jnp.swapaxes(corners[:, :-1] - base, 1, 2))
        return jnp.concatenate([inverse, base], axis=1)

    def find_simplex(self, xi: ArrayLike, bruteforce: bool = False, tol: float | None = None
                     ) -> Array:
        """The index of a simplex that has each place (..., dims), -1 outside; all are looked at."""
        at, _ = inexact(xi, self.points)
        if at.shape[-1:] != (self.ndim,):
            raise ShapeError(f"functrans.scipy.spatial.Delaunay: places have shape {at.shape}.",
                             where=user_source(), why=f"the last axis has {self.ndim} coordinates.")
        eps = 100 * float(finfo(at.dtype).eps) if tol is None else tol
        moved = lax.stop_gradient(self.transform)
        rest = at.reshape(-1, 1, self.ndim) - moved[:, self.ndim]
        shares = jnp.sum(moved[:, :self.ndim] * rest[..., None, :], axis=-1)
        least = jnp.minimum(jnp.min(shares, axis=-1), 1 - jnp.sum(shares, axis=-1))
        found = jnp.where(jnp.max(least, axis=1) < -eps, -1, jnp.argmax(least, axis=1))
        return found.reshape(at.shape[:-1])


class Voronoi:
    """Voronoi's cells of points (n, dims): `vertices`, `ridge_points`, `ridge_vertices`, `regions`.

    A ridge is between the two points of `ridge_points`; its vertices are in order, those at
    infinity are -1. `regions[point_region[i]]` are the vertices of the cell of point i, counter-
    clockwise or not; vertices that coincide stay several.
    Raises ShapeError for too few points, ArgumentError for points in a plane and under `jit`.

    >>> import functrans as ft
    >>> points = ft.numpy.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> ft.scipy.spatial.Voronoi(points).vertices.tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, points: ArrayLike, furthest_site: bool = False, incremental: bool = False,
                 qhull_options: str | None = None) -> None:
        if furthest_site:
            raise ArgumentError("functrans.scipy.spatial.Voronoi: furthest_site=True.",
                                where=user_source(), why="cells are those of nearest sites.")
        self.points, known = _known("Voronoi", points)
        found = delaunay(known)
        self.npoints, self.ndim = known.shape
        corners = self.points[found]
        sides = corners[:, 1:] - corners[:, :1]
        # the centre is as far from the first corner as from the others
        right = 0.5 * jnp.sum(sides * sides, axis=-1)
        self.vertices = corners[:, 0] + jnp.linalg.solve(sides, right[..., None])[..., 0]
        around: dict[tuple[int, int], list[int]] = {}
        for i, simplex in enumerate(found):
            for pair in combinations(sorted(simplex.tolist()), 2):
                around.setdefault(pair, []).append(i)
        outer = {pair for i, k in np.argwhere(_neighbors(found) < 0)
                 for pair in combinations(sorted(np.delete(found[i], k).tolist()), 2)}
        centres = np.asarray(lax.stop_gradient(self.vertices))
        self.ridge_dict = {pair: _walked(known, pair, cells, centres, pair in outer)
                           for pair, cells in around.items()}
        self.ridge_points = jnp.asarray(np.array(list(self.ridge_dict)))
        self.ridge_vertices = list(self.ridge_dict.values())
        self.point_region = jnp.arange(self.npoints)
        self.regions = [self._cell(i, known, found, centres) for i in range(self.npoints)]

    def _cell(self, i: int, known: Any, found: Any, centres: Any) -> list[int]:
        cells = np.flatnonzero((found == i).any(1))
        open_ = any(-1 in vertices for pair, vertices in self.ridge_dict.items() if i in pair)
        if self.ndim == 2:
            off = centres[cells] - known[i]
            corners = known[found[cells]].mean(1) - known[i]  # the order of the triangles
            angle = np.arctan2(*(corners if open_ else off).T[::-1])
            cells = cells[np.argsort(angle, kind="stable")]
        return [int(c) for c in cells] + [-1] * open_


def _walked(known: Any, pair: Sequence[int], cells: list[int], centres: Any, is_outer: bool
            ) -> list[int]:
    """The vertices of a ridge, around the line between its points, after infinity."""
    if len(cells) > 2 and known.shape[1] == 3:
        axis = known[pair[1]] - known[pair[0]]
        off = centres[cells] - centres[cells].mean(0)
        plane = np.linalg.svd(axis[None])[2][1:]
        first, second = off @ plane.T[:, 0], off @ plane.T[:, 1]
        cells = [cells[k] for k in np.argsort(np.arctan2(second, first), kind="stable")]
    return [-1] * is_outer + [int(c) for c in cells]


publish(globals(), __all__)
