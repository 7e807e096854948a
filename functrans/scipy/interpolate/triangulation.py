"""Simplices between scattered points, and values that are linear on each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_values, one_of, refused
from functrans.scipy.interpolate.lines import interp1d
from functrans.scipy.interpolate.scattered import NearestNDInterpolator, places_of
from functrans.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator", "griddata"]

_APEX = 1e6  # the height of a point above all, in units of the extent
_SHAKEN = 1e-10  # how far points are moved, so that there are no more in a plane than span it
_FLAT = 1e-8  # of a simplex whose corners were moved out of a plane, relative to its sides


def delaunay(points: Any) -> Any:
    """The simplices (m, dims + 1) of Delaunay's triangulation of known points (n, dims).

    They are the lower faces of the convex hull of the points lifted to a paraboloid, to which one
    point after the other is added; of points on one sphere one of the triangulations is taken.
    Source: Brown, Inf. Process. Lett. 9 (1979); Preparata and Shamos (1985), ch. 3.4.2.
    """
    n, dims = points.shape
    spread = np.ptp(points, axis=0).max()
    unit = (points - points.mean(0)) / (spread or 1.0)
    _, first = np.unique(unit, axis=0, return_index=True)
    near = unit + _SHAKEN * np.random.default_rng(0).random(unit.shape)
    lifted = np.column_stack([near, (near**2).sum(1)])
    lifted = np.concatenate([lifted, [[0.0] * dims + [_APEX]]])
    start = _spanning(unit, np.sort(first))
    corners = [*start, n]
    inside = lifted[start].mean(0) + np.eye(dims + 1)[dims] * 0.5
    faces = np.array([[c for c in corners if c != left] for left in corners])
    normals, offsets = _planes(lifted, faces, inside)
    taken = set(start)
    for i in np.sort(first):
        if int(i) in taken:
            continue
        sees = normals @ lifted[i] > offsets
        if not sees.any():
            continue
        lost = faces[sees]
        ridges = np.sort(np.concatenate([np.delete(lost, j, axis=1) for j in range(dims + 1)]), 1)
        found, counts = np.unique(ridges, axis=0, return_counts=True)
        edge = found[counts == 1]
        new = np.column_stack([edge, np.full(len(edge), i)])
        more = _planes(lifted, new, inside)
        faces = np.concatenate([faces[~sees], new])
        normals = np.concatenate([normals[~sees], more[0]])
        offsets = np.concatenate([offsets[~sees], more[1]])
    below = faces[(faces != n).all(1)]
    sides = unit[below[:, 1:]] - unit[below[:, :1]]
    lengths = np.linalg.norm(sides, axis=-1).prod(1)
    return below[np.abs(np.linalg.det(sides)) > _FLAT * lengths]


def _spanning(unit: Any, candidates: Any) -> list[int]:
    """dims + 1 points that span the space, each far from the plane of those before it."""
    dims = unit.shape[1]
    chosen = [int(candidates[0])]
    basis = np.zeros((0, dims))
    for _ in range(dims):
        off = unit[candidates] - unit[chosen[0]]
        off = off - off @ basis.T @ basis
        size = np.linalg.norm(off, axis=1)
        at = int(np.argmax(size))
        if size[at] < 1e-10:
            raise ArgumentError("functrans.scipy.interpolate: the points lie in a plane of fewer "
                                f"dimensions than {dims}.", where=user_source(),
                                why="no simplex is between them.",
                                fix="NearestNDInterpolator, or fewer coordinates")
        basis = np.concatenate([basis, off[at:at + 1] / size[at]])
        chosen.append(int(candidates[at]))
    return chosen


def _planes(lifted: Any, faces: Any, inside: Any) -> tuple[Any, Any]:
    """Outward normals of length 1 and offsets of the planes through faces."""
    sides = lifted[faces[:, 1:]] - lifted[faces[:, :1]]
    sides = sides / np.linalg.norm(sides, axis=-1, keepdims=True)
    normals = np.linalg.svd(sides)[2][:, -1]
    # of the corners the lowest has the least roundoff in its height
    low = faces[np.arange(len(faces)), np.argmin(lifted[faces, -1], axis=1)]
    offsets = (normals * lifted[low]).sum(1)
    flip = np.where(normals @ inside > offsets, -1.0, 1.0)
    return normals * flip[:, None], offsets * flip


@register_pytree_with_keys_class
class LinearNDInterpolator:
    """Values (n, ...) at scattered points (n, dims), linear on each simplex between them.

    `fill_value` is outside of their hull; `rescale` chooses simplices in units of the ranges of
    the coordinates. Which simplices there are depends on the points: it is made of known ones,
    outside of `jit`, in a time that grows as n**2, and called within; all simplices are looked
    at. It is a tree, differentiated in places, values and points.

    >>> import functrans as ft
    >>> points = ft.numpy.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.1]])
    >>> f = ft.scipy.interpolate.LinearNDInterpolator(points, points[:, 0] + 2 * points[:, 1])
    >>> f([[0.5, 0.25], [2.0, 2.0]]).tolist()
    [1.0, nan]
    """

    def __init__(self, points: ArrayLike, values: ArrayLike, fill_value: ArrayLike = math.nan,
                 rescale: bool = False) -> None:
        name = "interpolate.LinearNDInterpolator"
        self.values, _ = inexact(values, points)
        self.points, _ = inexact(points, self.values.real)
        if self.points.ndim != 2 or self.values.shape[:1] != self.points.shape[:1] \
                or self.points.shape[1] < 2 or self.points.shape[0] <= self.points.shape[1]:
            raise ShapeError(f"functrans.scipy.{name}: points has shape {self.points.shape}, "
                             f"values {self.values.shape}.", where=user_source(),
                             why="points is (n, dims) with two dimensions or more and n > dims, "
                             "and there is a value for each.", fix="interp1d for points on a line")
        known = known_values(name, "points", points, "the simplices depend on the points.",
                             "f = LinearNDInterpolator(points, values)  # before jit").astype(float)
        if not np.isfinite(known).all():
            raise ArgumentError(f"functrans.scipy.{name}: a point is not finite.",
                                where=user_source())
        if rescale:
            known = known / np.where(np.ptp(known, axis=0) > 0, np.ptp(known, axis=0), 1)
        self.simplices = jnp.asarray(delaunay(known).astype(np.int32))
        self.fill_value = jnp.asarray(fill_value, self.values.dtype)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The points, their values, the simplices and the value outside are children."""
        names = ("points", "values", "simplices", "fill_value")
        return tuple((GetAttrKey(n), getattr(self, n)) for n in names), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> LinearNDInterpolator:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.points, made.values, made.simplices, made.fill_value = children
        return made

    def __call__(self, *args: Any) -> Array:
        """The values at places: an array whose last axis is that of coordinates, or one of each."""
        at = places_of(args, self.points)
        flat = at.reshape(-1, at.shape[-1])
        corners = self.points[self.simplices]
        base = corners[:, 0]
        inverse = jnp.linalg.inv(jnp.swapaxes(corners[:, 1:] - base[:, None], 1, 2))

        def parts(x: Array, base: Array, inverse: Array) -> Array:
            rest = jnp.sum(inverse * (x - base)[..., None, :], axis=-1)
            return jnp.concatenate([1 - jnp.sum(rest, -1, keepdims=True), rest], axis=-1)

        # the simplex whose least part is the largest has the place, or is the nearest
        least = jnp.min(lax.stop_gradient(parts(flat[:, None], base, inverse)), axis=-1)
        which = jnp.argmax(least, axis=1)
        outside = jnp.max(least, axis=1) < -100 * float(jnp.finfo(flat.dtype).eps)
        shares = parts(flat, base[which], inverse[which])
        rest = (1,) * (self.values.ndim - 1)
        corner_values = self.values[self.simplices[which]]
        found = jnp.sum(shares.reshape(*shares.shape, *rest) * corner_values, axis=1)
        found = jnp.where(outside.reshape(-1, *rest), self.fill_value, found)
        return found.reshape(*at.shape[:-1], *self.values.shape[1:])


def griddata(points: Any, values: ArrayLike, xi: Any, method: str = "linear",
             fill_value: ArrayLike = math.nan, rescale: bool = False) -> Array:
    """Values at scattered points, (n, dims), interpolated at places xi: an array, or a tuple.

    `method` is "nearest" or "linear", and for points on a line "cubic"; outside of the points the
    last two give `fill_value`. Raises ArgumentError for "cubic" in more dimensions. "linear" there
    takes known points: see `LinearNDInterpolator`.

    >>> import functrans as ft
    >>> griddata = ft.scipy.interpolate.griddata
    >>> griddata([[0.0, 0.0], [1.0, 1.0]], [3.0, 4.0], ([0.1, 0.9], [0.2, 0.8]), "nearest").tolist()
    [3.0, 4.0]
    """
    one_of("interpolate.griddata", "method", method, ("nearest", "linear", "cubic"))
    if isinstance(points, tuple):
        points = jnp.stack(inexact(*points), axis=-1)
    (at,) = inexact(points)
    dims = 1 if at.ndim == 1 else at.shape[-1]
    if method == "nearest":
        return NearestNDInterpolator(at, values, rescale)(xi)
    if dims > 1 and method == "linear":
        return LinearNDInterpolator(at, values, fill_value, rescale)(xi)
    if dims > 1:
        raise refused("interpolate.griddata", f"method={method!r} in {dims} dimensions",
                      "its slopes would have to be guessed.",
                      'method="linear", or RBFInterpolator(points, values)(xi)')
    line = at.reshape(-1)
    (places,) = inexact(xi[0] if isinstance(xi, tuple) else xi)
    places = places[..., 0] if at.ndim == 2 and places.shape[-1:] == (1,) else places
    kind: Any = method
    return interp1d(line, values, kind, axis=0, fill_value=fill_value)(places)


publish(globals(), __all__)
