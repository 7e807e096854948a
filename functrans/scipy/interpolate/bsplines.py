"""Splines as sums of B-splines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.interpolate.piecewise import Extrapolate, table
from functrans.scipy.products import matmul
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
    >>> s.derivative()(0.5).item(), s.antiderivative()(1.0).item(), s.integrate(0.0, 1.0).item()
    (2.0, 2.0, 2.0)
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

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The spline that is the integral from the first knot, taken nu times."""
        t, c, k = self.t, self.c, self.k
        c = c[:t.shape[0] - k - 1]
        for _ in range(known_size("interpolate.BSpline", "nu", nu, 0)):
            width = ((t[k + 1:] - t[:-k - 1]) / (k + 1)).reshape(-1, *(1,) * (c.ndim - 1))
            sums = jnp.cumsum(c * width.astype(c.dtype), axis=0)
            c = jnp.concatenate([jnp.zeros_like(sums[:1]), sums])
            t, k = jnp.concatenate([t[:1], t, t[-1:]]), k + 1
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return BSpline.tree_unflatten((k, how, self.axis), (t, c))

    def integrate(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The integral from a to b: beyond the knots of the outer polynomials, or of nothing."""
        whole = self.antiderivative()
        if self.extrapolate is True:
            return whole(b) - whole(a)
        first, last = self.t[self.k], self.t[self.t.shape[0] - self.k - 1]
        low, high, _ = inexact(a, b, self.t)
        if self.extrapolate is False:
            return whole(jnp.clip(high, first, last)) - whole(jnp.clip(low, first, last))
        period, start = last - first, whole(first)

        def at(x: Array) -> Array:
            turns = jnp.floor((x - first) / period)
            return whole(x - turns * period) + turns * (whole(last) - start)

        return at(high) - at(low)

    @classmethod
    def basis_element(cls, t: ArrayLike, extrapolate: Extrapolate = True) -> BSpline:
        """The B-spline of the knots t, of degree len(t) - 2.

        >>> import functrans as ft
        >>> hat = ft.scipy.interpolate.BSpline.basis_element([0.0, 1.0, 2.0])
        >>> float(hat(0.5))
        0.5
        """
        (knots,) = inexact(t)
        k = known_size("interpolate.BSpline.basis_element", "len(t)", knots.shape[0], 2) - 2
        outer = jnp.concatenate([jnp.full(k, 0, knots.dtype) + knots[0] - 1, knots,
                                 jnp.full(k, 0, knots.dtype) + knots[-1] + 1])
        c = jnp.zeros(outer.shape[0] - k - 1, knots.dtype).at[k].set(1)
        return cls(outer, c, k, extrapolate)


def local_basis(t: Array, k: int, n: int, x: Array) -> tuple[Array, Array]:
    """The first of the k + 1 B-splines that are not 0 at places (m,), and their values (m, k + 1).

    Source: Cox, J. Inst. Math. Appl. 10 (1972); de Boor, J. Approx. Theory 6 (1972).
    """
    i = jnp.clip(jnp.searchsorted(t, x, side="right") - 1, k, n - 1)
    values = [jnp.ones_like(x)]
    for r in range(1, k + 1):
        after = [jnp.zeros_like(x)] * (r + 1)
        for j in range(r):
            left, right = t[i + 1 + j - r], t[i + 1 + j]
            part = values[j] / (right - left)
            after[j] = after[j] + (right - x) * part
            after[j + 1] = after[j + 1] + (x - left) * part
        values = after
    return i - k, jnp.stack(values, axis=-1)


def interpolating_knots(places: Array, k: int) -> Array:
    """The knots of a spline through as many places as it has coefficients."""
    n = places.shape[0]
    if k == 0:
        return jnp.concatenate([places, places[-1:]])
    if k % 2:
        inner = places[(k + 1) // 2:n - (k + 1) // 2]
    else:
        middles = (places[1:] + places[:-1]) / 2
        inner = middles[k // 2:n - 1 - k // 2]
    return jnp.concatenate([jnp.repeat(places[:1], k + 1), inner, jnp.repeat(places[-1:], k + 1)])


def collocation(knots: Array, k: int, places: Array) -> Array:
    """The matrix of all B-splines at places."""
    n = knots.shape[0] - k - 1
    first, values = local_basis(knots, k, n, places)
    rows = jnp.arange(places.shape[0])[:, None]
    matrix = jnp.zeros((places.shape[0], n), values.dtype)
    return matrix.at[rows, first[:, None] + jnp.arange(k + 1)].set(values)


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
    else:
        knots = interpolating_knots(places, k)
    if k == 0:
        c = values
    else:
        c = jnp.linalg.solve(collocation(knots, k, places).astype(values.dtype),
                             values.reshape(n, -1)).reshape(values.shape)
    return BSpline.tree_unflatten((k, True, axis), (knots, c))


def make_lsq_spline(x: ArrayLike, y: ArrayLike, t: ArrayLike, k: int = 3,
                    w: ArrayLike | None = None, axis: int = 0) -> BSpline:
    """The spline of degree k with knots t that is nearest to y at growing places x.

    Squares of distances are weighted by the squares of `w`. Raises ShapeError for fewer places
    than coefficients. Source: de Boor, A Practical Guide to Splines (1978), ch. XIV.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 1.0, 9)
    >>> knots = [0.0, 0.0, 0.5, 1.0, 1.0]
    >>> s = ft.scipy.interpolate.make_lsq_spline(x, 2 * x, knots, k=1)
    >>> round(float(s(0.25)), 3)
    0.5
    """
    k = known_size("interpolate.make_lsq_spline", "k", k, 0)
    places, values, axis = table("make_lsq_spline", x, y, axis, max(k + 1, 1))
    knots, _ = inexact(t, places)
    count = places.shape[0]
    if knots.ndim != 1 or not k < knots.shape[0] - k - 1 <= count:
        raise ShapeError(f"functrans.scipy.interpolate.make_lsq_spline: t has shape "
                         f"{knots.shape}, there are {count} places, k is {k}.",
                         where=user_source(),
                         why="there are len(t) - k - 1 coefficients, as many as places at most.")
    matrix = collocation(knots, k, places).astype(values.dtype)
    rows = values.reshape(count, -1)
    if w is not None:
        weights = jnp.broadcast_to(inexact(w)[0], (count,)).astype(values.dtype)[:, None]
        matrix, rows = matrix * weights, rows * weights
    q, r = jnp.linalg.qr(matrix)
    c = jnp.linalg.solve(r, matmul(q.T.conj(), rows))
    return BSpline.tree_unflatten((k, True, axis), (knots, c.reshape(-1, *values.shape[1:])))
