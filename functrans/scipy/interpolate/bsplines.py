"""Splines as sums of B-splines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.interpolate.piecewise import Extrapolate, table
from functrans.typing import Array, ArrayLike


@register_pytree_with_keys_class
class BSpline:
    """The spline sum c[i] B_i(x) of degree k with knots t, which do not fall.

    `c` has n = len(t) - k - 1 coefficients along its first axis, and may have more axes.
    `extrapolate` goes on with the outer polynomials, gives NaN (False) or repeats ("periodic").
    It is a tree, differentiated in knots, coefficients and places.
    Source: de Boor, A Practical Guide to Splines (1978), ch. X.

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.BSpline([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)
    >>> float(s(0.5))
    2.0
    >>> s.derivative()(0.5).item()
    2.0
    """

    def __init__(self, t: ArrayLike, c: ArrayLike, k: int, extrapolate: Extrapolate = True,
                 axis: int = 0) -> None:
        self.c, _ = inexact(c, t)
        self.t, _ = inexact(t, self.c.real)
        self.k = known_size("interpolate.BSpline", "k", k, 0)
        one_of("interpolate.BSpline", "extrapolate", extrapolate, (True, False, "periodic"))
        self.extrapolate = extrapolate
        self.axis = axis
        self.c = jnp.moveaxis(self.c, axis, 0)
        if self.t.ndim != 1 or self.c.shape[0] < self.k + 1 \
                or self.t.shape[0] - self.k - 1 > self.c.shape[0]:
            raise ShapeError(f"functrans.scipy.interpolate.BSpline: t has shape {self.t.shape}, c "
                             f"{self.c.shape}, k is {k}.", where=user_source(),
                             why="there are len(t) - k - 1 coefficients.")

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Knots and coefficients are children."""
        return ((GetAttrKey("t"), self.t), (GetAttrKey("c"), self.c)), (
            self.k, self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> BSpline:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.t, made.c = children
        made.k, made.extrapolate, made.axis = aux
        return made

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Extrapolate = None) -> Array:
        """The values at x, or those of the derivative of order nu."""
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        at, _ = inexact(x, self.t)
        k, n = self.k, self.t.shape[0] - self.k - 1
        first, last = self.t[k], self.t[n]
        if how == "periodic":
            at = first + jnp.mod(at - first, last - first)
        flat = at.reshape(-1)
        i = jnp.clip(jnp.searchsorted(self.t, flat, side="right") - 1, k, n - 1)
        rest = (1,) * (self.c.ndim - 1)
        d = [self.c[i - k + j] for j in range(k + 1)]
        for r in range(1, k + 1):  # de Boor's algorithm
            for j in range(k, r - 1, -1):
                left = self.t[i - k + j]
                width = self.t[i + 1 + j - r] - left
                part = (flat - left) / jnp.where(width == 0, 1, width)
                part = part.reshape(-1, *rest).astype(self.c.dtype)
                d[j] = d[j - 1] + part * (d[j] - d[j - 1])
        value = d[k]
        if how is False:
            inside = ((flat >= first) & (flat <= last)).reshape(-1, *rest)
            value = jnp.where(inside, value, math.nan)
        value = value.reshape(*at.shape, *self.c.shape[1:])
        if not self.axis:
            return value
        return jnp.moveaxis(value, tuple(range(at.ndim)), tuple(
            range(self.axis, self.axis + at.ndim)))

    def derivative(self, nu: int = 1) -> BSpline:
        """The spline that is the derivative of order nu."""
        t, c, k = self.t, self.c, self.k
        for _ in range(known_size("interpolate.BSpline", "nu", nu, 0)):
            if not k:
                c = jnp.zeros_like(c)
                break
            n = t.shape[0] - k - 1
            width = t[k + 1:n + k] - t[1:n]
            factor = (k / jnp.where(width == 0, 1, width)).reshape(-1, *(1,) * (c.ndim - 1))
            c = jnp.diff(c[:n], axis=0) * factor.astype(c.dtype)
            t, k = t[1:-1], k - 1
        return BSpline.tree_unflatten((k, self.extrapolate, self.axis), (t, c))


def make_interp_spline(x: ArrayLike, y: ArrayLike, k: int = 3, t: ArrayLike | None = None,
                       bc_type: None = None, axis: int = 0) -> BSpline:
    """The spline of degree k through y at growing places x.

    The knots are `t`, or those of no condition at the ends: middles of places for even k.
    Raises ArgumentError for conditions at the ends (see `CubicSpline`).

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.make_interp_spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], k=2)
    >>> round(float(s(1.5)), 4)
    2.25
    """
    k = known_size("interpolate.make_interp_spline", "k", k, 0)
    one_of("interpolate.make_interp_spline", "bc_type", bc_type, (None, "not-a-knot"))
    places, values, axis = table("make_interp_spline", x, y, axis, max(k + 1, 1))
    n = places.shape[0]
    if t is not None:
        (knots,) = inexact(t)
        if knots.shape != (n + k + 1,):
            raise ArgumentError(f"functrans.scipy.interpolate.make_interp_spline: t has shape "
                                f"{knots.shape}.", where=user_source(),
                                why=f"there are {n + k + 1} knots.")
    elif k == 0:
        knots = jnp.concatenate([places, places[-1:]])
    else:
        if k % 2:
            inner = places[(k + 1) // 2:n - (k + 1) // 2]
        else:
            middles = (places[1:] + places[:-1]) / 2
            inner = middles[k // 2:n - 1 - k // 2]
        knots = jnp.concatenate([jnp.repeat(places[:1], k + 1), inner,
                                 jnp.repeat(places[-1:], k + 1)])
    basis = BSpline.tree_unflatten((k, True, 0), (knots, jnp.asarray(np.eye(n)).astype(
        places.dtype)))
    if k == 0:
        c = values
    else:
        c = jnp.linalg.solve(basis(places).astype(values.dtype), values.reshape(n, -1)).reshape(
            values.shape)
    return BSpline.tree_unflatten((k, True, axis), (knots, c))
