"""RegularGridInterpolator: values on a grid of any number of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, Final

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact, known_size, of_rank, one_of, refused
from functrans.scipy.interpolate.bsplines import local_basis, make_interp_spline
from functrans.scipy.interpolate.cubic import PchipInterpolator
from functrans.scipy.interpolate.piecewise import intervals
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

_DEGREES: Final[Mapping[str, int]] = MappingProxyType({"slinear": 1, "cubic": 3, "quintic": 5})
GRID_METHODS: Final = ("linear", "nearest", *_DEGREES, "pchip")


@register_pytree_with_keys_class
class RegularGridInterpolator:
    """Interpolates values on the grid of `points`, a growing vector for each axis.

    `method` is "linear", "nearest", "slinear", "cubic" or "quintic" (tensor products of splines of
    degree 1, 3 and 5), or "pchip" (monotonic cubics along one axis after the other, the last
    first). Outside of the grid the result is `fill_value`, or, with None, that of the nearest
    cell, continued. Axes of `values` after those of the grid stay. It is a tree, differentiated in
    points, values and places.
    Raises ShapeError where points and values do not fit, ArgumentError for `bounds_error`.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.0, 1.0, 2.0])
    >>> f = ft.scipy.interpolate.RegularGridInterpolator((x, x), x[:, None] + 10 * x)
    >>> f(ft.numpy.array([[0.5, 1.5]])).tolist()
    [15.5]
    """

    grid: tuple[Array, ...]
    values: Array
    fill_value: Array | None
    method: str

    def __init__(self, points: Sequence[ArrayLike], values: ArrayLike, method: str = "linear",
                 bounds_error: bool = False, fill_value: ArrayLike | None = math.nan) -> None:
        one_of("interpolate.RegularGridInterpolator", "method", method, GRID_METHODS)
        if bounds_error:
            raise refused("interpolate.RegularGridInterpolator", "bounds_error",
                          "values are not known when a program is made.", "fill_value=nan")
        (self.values,) = inexact(values)
        self.grid = tuple(of_rank("interpolate.RegularGridInterpolator", "points", inexact(p)[0], 1)
                          for p in points)
        sizes = tuple(p.shape[0] for p in self.grid)
        if sizes != self.values.shape[:len(sizes)] or any(n < 2 for n in sizes):
            raise ShapeError(f"functrans.scipy.interpolate.RegularGridInterpolator: the points are "
                             f"{sizes}, the values have shape {self.values.shape}.",
                             where=user_source(), why="an axis has a value for each of two points "
                             "or more.")
        self._enough_points(method)
        if fill_value is not None and jnp.iscomplexobj(fill_value) \
                and dtypes.kind(self.values.dtype) != "c":
            raise ArgumentError("functrans.scipy.interpolate.RegularGridInterpolator: fill_value "
                                "is complex, and values are not.", where=user_source())
        self.fill_value = None if fill_value is None else converted(
            "scipy.interpolate", fill_value, self.values.dtype)
        self.method = method

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The grid, the values and what fills are children."""
        return ((GetAttrKey("grid"), self.grid), (GetAttrKey("values"), self.values),
                (GetAttrKey("fill_value"), self.fill_value)), self.method

    @classmethod
    def tree_unflatten(cls, aux: str, children: Iterable[Any]) -> RegularGridInterpolator:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.grid, made.values, made.fill_value = children
        made.method = aux
        return made

    def _enough_points(self, method: str) -> None:
        least = 4 if method == "pchip" else _DEGREES.get(method, 1) + 1
        if any(p.shape[0] < least for p in self.grid):
            raise ShapeError(f"functrans.scipy.interpolate.RegularGridInterpolator: the points are "
                             f"{tuple(p.shape[0] for p in self.grid)}.", where=user_source(),
                             why=f"method={method!r} needs {least} along each axis.",
                             fix='method="linear"')

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None, *,
                 nu: Sequence[int] | None = None) -> Array:
        """The values at places: an array whose last axis is that of the grid, or a tuple.

        `nu` are orders of derivatives, one for each axis, of the methods that are splines.
        """
        method = self.method if method is None else method
        one_of("interpolate.RegularGridInterpolator", "method", method, GRID_METHODS)
        self._enough_points(method)
        if nu is not None and method not in _DEGREES:
            raise ArgumentError(f"functrans.scipy.interpolate.RegularGridInterpolator: nu with "
                                f"method={method!r}.", where=user_source(),
                                why="only splines have it.", fix='method="cubic", or ft.grad')
        rank = len(self.grid)
        orders = [known_size("interpolate.RegularGridInterpolator", "nu", v, 0)
                  for v in ((0,) * rank if nu is None else nu)]
        if len(orders) != rank:
            raise ArgumentError(f"functrans.scipy.interpolate.RegularGridInterpolator: nu has "
                                f"{len(orders)} orders.", where=user_source(),
                                why=f"there are {rank} axes.")
        if isinstance(xi, tuple):
            at = jnp.stack(jnp.broadcast_arrays(*inexact(*xi, self.values.real)[:-1]), axis=-1)
        else:
            at, _ = inexact(xi, self.values.real)
            at = at[:, None] if at.ndim == 1 and rank == 1 else at
        if at.shape[-1:] != (rank,):
            raise ShapeError("functrans.scipy.interpolate.RegularGridInterpolator: the places "
                             f"have shape {at.shape}.", where=user_source(),
                             why=f"the last axis has the {rank} coordinates.")
        flat = at.reshape(-1, rank)
        cells, parts, outside = [], [], jnp.zeros(flat.shape[0], bool)
        for d, points in enumerate(self.grid):
            x = flat[:, d]
            i = intervals(points, x)
            cells.append(i)
            parts.append((x - points[i]) / (points[i + 1] - points[i]))
            outside = outside | (x < points[0]) | (x > points[-1]) | jnp.isnan(x)
        rest = (1,) * (self.values.ndim - rank)
        if method in _DEGREES:
            out = self._tensor_splines(flat, _DEGREES[method], orders)
        elif method == "pchip":
            last = PchipInterpolator(self.grid[-1], self.values, axis=rank - 1)
            out = jnp.moveaxis(last(flat[:, -1]), rank - 1, 0)
            for d in range(rank - 2, -1, -1):
                points = self.grid[d]
                out = vmap(lambda v, a, p=points, d=d: PchipInterpolator(p, v, axis=d)(a))(
                    out, flat[:, d])
        elif method == "nearest":
            out = self.values[tuple(jnp.where(p <= 0.5, i, i + 1) for i, p in zip(cells, parts))]
        else:
            out = jnp.zeros((), self.values.dtype)
            for corner in product((0, 1), repeat=rank):
                weight = jnp.ones((), flat.dtype)
                for side, p in zip(corner, parts):
                    weight = weight * (p if side else 1 - p)
                value = self.values[tuple(i + side for i, side in zip(cells, corner))]
                out = out + value * weight.reshape(-1, *rest)
        if self.fill_value is not None:
            out = jnp.where(outside.reshape(-1, *rest), self.fill_value.astype(out.dtype), out)
        return out.reshape(*at.shape[:-1], *self.values.shape[rank:])

    def _tensor_splines(self, flat: Array, degree: int, orders: Sequence[int]) -> Array:
        """Each place by the coefficients around it, times the B-splines of each axis."""
        rank = len(self.grid)
        c, places, bases = self.values, [], []
        for d, (points, order) in enumerate(zip(self.grid, orders)):
            along = make_interp_spline(points, jnp.moveaxis(c, d, 0), degree)
            along = along.derivative(order)
            c = jnp.moveaxis(along.c, 0, d)
            first, basis = local_basis(along.t, along.k, c.shape[d],
                                       flat[:, d].astype(along.t.dtype))
            count = along.k + 1
            shape = (-1, *(count if i == d else 1 for i in range(rank)))
            places.append((first[:, None] + jnp.arange(count)).reshape(shape))
            bases.append(basis)
        out = c[tuple(places)]
        for basis in bases:
            out = jnp.sum(out * basis.reshape(*basis.shape, *(1,) * (out.ndim - 2)).astype(
                out.dtype), axis=1)
        return out


def interpn(points: Sequence[ArrayLike], values: ArrayLike, xi: ArrayLike | Sequence[ArrayLike],
            method: str = "linear", bounds_error: bool = False,
            fill_value: ArrayLike | None = math.nan) -> Array:
    """The values of a `RegularGridInterpolator` at places.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.0, 1.0, 2.0])
    >>> ft.scipy.interpolate.interpn((x,), x ** 2, [[0.5]]).tolist()
    [0.5]
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
