"""interp1d: values at places along one axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from functrans import numpy as jnp
from functrans.core.keypath import GetAttrKey
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact, one_of, refused
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline
from functrans.scipy.interpolate.piecewise import intervals, table
from functrans.typing import Array, ArrayLike

_KINDS = ("linear", "slinear", "nearest", "nearest-up", "previous", "next", "zero", "quadratic",
          "cubic")


@register_pytree_with_keys_class
class interp1d:
    """Interpolates y along an axis, between places x that are sorted first unless they are.

    `kind` is "linear", "nearest" (of two, the lower), "nearest-up", "previous", "next", "quadratic"
    or "cubic" (splines). Outside it is `fill_value`, a pair of them for below and above, or goes on
    with "extrapolate". It is a tree, differentiated in places and values.

    >>> import functrans as ft
    >>> f = ft.scipy.interpolate.interp1d([0.0, 1.0, 2.0], [0.0, 10.0, 40.0])
    >>> f(ft.numpy.array([0.5, 1.5])).tolist()
    [5.0, 25.0]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, kind: str = "linear", axis: int = -1,
                 copy: bool = True, bounds_error: bool | None = None, fill_value: Any = math.nan,
                 assume_sorted: bool = False) -> None:
        one_of("interpolate.interp1d", "kind", kind, _KINDS)
        if bounds_error:
            raise refused("interpolate.interp1d", "bounds_error", "values are not known when a "
                          "program is made.", "fill_value=nan")
        self.kind = "linear" if kind == "slinear" else kind
        self.x, self.y, self.axis = table("interp1d", x, y, axis)
        if not assume_sorted:
            order = jnp.argsort(self.x)
            self.x, self.y = self.x[order], self.y[order]
        self.fill: Any = None
        if not (isinstance(fill_value, str) and fill_value == "extrapolate"):
            pair = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
            self.fill = tuple(converted("scipy.interpolate", v, self.y.dtype) for v in pair)
        self.spline: BSpline | None = None
        if self.kind in ("quadratic", "cubic"):
            self.spline = make_interp_spline(self.x, self.y, 3 if self.kind == "cubic" else 2)

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Places, values, what fills, and the spline are children."""
        names = ("x", "y", "fill", "spline")
        return tuple((GetAttrKey(n), getattr(self, n)) for n in names), (self.kind, self.axis)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> interp1d:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.x, made.y, made.fill, made.spline = children
        made.kind, made.axis = aux
        return made

    def __call__(self, x: ArrayLike) -> Array:
        """The values at places, whose axes replace the one of the table."""
        at, _ = inexact(x, self.x)
        flat = at.reshape(-1)
        value = self._values(flat)
        rest = (1,) * (self.y.ndim - 1)
        if self.fill is not None:
            below, above = (v[None] if v.ndim else v for v in self.fill)
            value = jnp.where((flat < self.x[0]).reshape(-1, *rest), below, value)
            value = jnp.where((flat > self.x[-1]).reshape(-1, *rest), above, value)
        value = value.reshape(*at.shape, *self.y.shape[1:])
        return jnp.moveaxis(value, tuple(range(at.ndim)), tuple(
            range(self.axis, self.axis + at.ndim))) if self.axis else value

    def _values(self, at: Array) -> Array:
        if self.spline is not None:
            return self.spline(at)
        last = self.x.shape[0] - 1
        if self.kind == "linear":
            i = intervals(self.x, at)
            part = (at - self.x[i]) / (self.x[i + 1] - self.x[i])
            part = part.reshape(-1, *(1,) * (self.y.ndim - 1)).astype(self.y.dtype)
            return self.y[i] + (self.y[i + 1] - self.y[i]) * part
        if self.kind in ("nearest", "nearest-up"):
            middles = (self.x[1:] + self.x[:-1]) / 2
            nearest = jnp.searchsorted(middles, at) if self.kind == "nearest" else \
                jnp.searchsorted(middles, at, side="right")
            return self.y[jnp.clip(nearest, 0, last)]
        if self.kind in ("previous", "zero"):
            place = jnp.searchsorted(self.x, at, side="right") - 1
        else:
            place = jnp.searchsorted(self.x, at, side="left")
        # there is none before the first place, and none after the last one
        if self.kind == "zero":
            return self.y[jnp.clip(place, 0, last)]
        known = ((place >= 0) & (place <= last)).reshape(-1, *(1,) * (self.y.ndim - 1))
        return jnp.where(known, self.y[jnp.clip(place, 0, last)], math.nan)


def interp2d(x: Any, y: Any, z: Any, kind: str = "linear", copy: bool = True,
             bounds_error: bool = False, fill_value: Any = None) -> NoReturn:
    """Refused, as in SciPy, which has no `interp2d` any more.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.interpolate.interp2d([0.0, 1.0], [0.0, 1.0], [0.0, 1.0])
    ... except ft.errors.ArgumentError as error:
    ...     print(str(error).splitlines()[0])
    functrans.scipy.interpolate does not take interp2d.
    """
    raise refused("interpolate", "interp2d", "SciPy has removed it: its results depended on the "
                  "order of points.", "RegularGridInterpolator((x, y), z), or "
                  "RectBivariateSpline(x, y, z), of points on a grid; "
                  "CloughTocher2DInterpolator(points, values) of scattered ones")
