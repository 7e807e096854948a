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
from functrans.scipy.spatial.simplices import delaunay
from functrans.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator", "griddata"]


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
