"""RegularGridInterpolator: values on a grid of any number of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact, of_rank, one_of, refused
from functrans.scipy.interpolate.piecewise import intervals
from functrans.typing import Array, ArrayLike


@register_pytree_with_keys_class
class RegularGridInterpolator:
    """Interpolates values on the grid of `points`, a growing vector for each axis.

    `method` is "linear" or "nearest". Outside of the grid the result is `fill_value`, or, with
    None, that of the nearest cell, continued. Axes of `values` after those of the grid stay. It is
    a tree, differentiated in points, values and places.
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
        one_of("interpolate.RegularGridInterpolator", "method", method, ("linear", "nearest"))
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

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The values at places: an array whose last axis is that of the grid, or a tuple."""
        method = self.method if method is None else method
        one_of("interpolate.RegularGridInterpolator", "method", method, ("linear", "nearest"))
        rank = len(self.grid)
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
        if method == "nearest":
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
