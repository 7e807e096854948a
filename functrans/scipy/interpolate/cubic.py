"""Cubic polynomials through values: splines, and those by slopes that keep a shape."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.interpolate.piecewise import Extrapolate, PPoly, table
from functrans.typing import Array, ArrayLike

_NAMES = {"natural": (2, 0.0), "clamped": (1, 0.0), "second": (2, 0.0), "first": (1, 0.0)}


def _hermite(x: Array, y: Array, slopes: Array) -> Array:
    """The coefficients of the cubic polynomials with given values and slopes at both ends."""
    h = jnp.diff(x).reshape(-1, *(1,) * (y.ndim - 1))
    secant = jnp.diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2 * secant) / h
    return jnp.stack([bend / h, (secant - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])


@register_pytree_with_keys_class
class CubicHermiteSpline(PPoly):
    """The cubic polynomials with values y and slopes dydx at growing places x.

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], [0.0, 2.0])
    >>> float(s(0.5))
    0.25
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, dydx: ArrayLike, axis: int = 0,
                 extrapolate: Extrapolate = None) -> None:
        x, values, axis = table("CubicHermiteSpline", x, y, axis)
        slopes = jnp.moveaxis(inexact(dydx)[0], axis, 0)
        if slopes.shape != values.shape:
            raise ShapeError(f"functrans.scipy.interpolate.CubicHermiteSpline: y has shape "
                             f"{jnp.shape(y)}, dydx {jnp.shape(dydx)}.", where=user_source())
        super().__init__(_hermite(x, values, slopes), x, extrapolate, axis)


@register_pytree_with_keys_class
class CubicSpline(PPoly):
    """The cubic spline through y at growing places x, twice continuously differentiable.

    `bc_type` is "not-a-knot" (the two polynomials at an end are one), "natural" (no curvature at
    the ends), "clamped" (no slope), "periodic", or a pair for both ends of such or of
    (order, value) of a derivative. It is a tree, differentiated in places and values.
    Source: de Boor, A Practical Guide to Splines (1978).

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])
    >>> round(float(s(1.5)), 4), round(float(s(1.5, 1)), 4)
    (3.375, 6.75)
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0, bc_type: Any = "not-a-knot",
                 extrapolate: Extrapolate = None) -> None:
        x, values, axis = table("CubicSpline", x, y, axis)
        if isinstance(bc_type, str) and bc_type == "periodic":
            slopes = _periodic_slopes(x, values)
            extrapolate = "periodic" if extrapolate is None else extrapolate
        else:
            ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
            if len(ends) != 2:
                raise ArgumentError(f"functrans.scipy.interpolate.CubicSpline: bc_type is "
                                    f"{shown(bc_type)}.", where=user_source(),
                                    fix="bc_type='natural', ((1, 0.0), 'not-a-knot')")
            slopes = _slopes(x, values, [_end(e, values) for e in ends])
        super().__init__(_hermite(x, values, slopes), x, extrapolate, axis)


def _end(given: Any, y: Array) -> tuple[int, Array] | None:
    """The order and value of a derivative at an end; None for the end of no condition."""
    if isinstance(given, str):
        if given == "not-a-knot":
            return None
        one_of("interpolate.CubicSpline", "bc_type", given, ("not-a-knot", *_NAMES, "periodic"))
        given = _NAMES[given]
    order, value = given
    one_of("interpolate.CubicSpline", "the order of a derivative", order, (1, 2))
    return order, jnp.broadcast_to(converted("scipy.interpolate", value, y.dtype), y.shape[1:])


def _slopes(x: Array, y: Array, ends: list[tuple[int, Array] | None]) -> Array:
    """The slopes of a spline, from a tridiagonal system."""
    n = x.shape[0]
    h = jnp.diff(x)
    rows = y.reshape(n, -1)
    secant = jnp.diff(rows, axis=0) / h[:, None]
    if n == 2:  # no condition is that of a line
        ends = [(1, secant[0].reshape(y.shape[1:])) if e is None else e for e in ends]
    both = n == 3 and ends[0] is None and ends[1] is None
    below = h[1:]
    above = h[:-1]
    middle = 2 * (below + above)
    right = 3 * (below[:, None] * secant[:-1] + above[:, None] * secant[1:])
    first, last = (_end_row(h, secant, e, both, k) for k, e in enumerate(ends))
    d = jnp.concatenate([first[0][None], middle, last[0][None]])
    du = jnp.concatenate([first[1][None], above, jnp.zeros_like(h[:1])])
    dl = jnp.concatenate([jnp.zeros_like(h[:1]), below, last[1][None]])
    b = jnp.concatenate([first[2][None], right, last[2][None]])
    return lax.linalg.tridiagonal_solve(dl.astype(b.dtype), d.astype(b.dtype), du.astype(b.dtype),
                                        b).reshape(y.shape)


def _end_row(h: Array, secant: Array, end: tuple[int, Array] | None, both: bool, side: int
             ) -> tuple[Array, Array, Array]:
    """The equation at an end: of its slope, of the next one, and the right side."""
    near, sign = (0, 1) if side == 0 else (-1, -1)
    one = jnp.ones_like(h[0])
    if end is None and both:  # one parabola through three points
        return one, one, 2 * secant[near]
    if end is None:
        far = near + sign
        h0, h1 = h[near], h[far]
        d = h0 + h1
        return h1, d, ((h0 + 2 * d) * h1 * secant[near] + h0**2 * secant[far]) / d
    order, value = end
    value = value.reshape(-1)
    if order == 1:
        return one, 0 * one, value
    return 2 * one, one, 3 * secant[near] - sign * value * h[near] / 2


def _periodic_slopes(x: Array, y: Array) -> Array:
    n = x.shape[0]
    h = jnp.diff(x)
    rows = y.reshape(n, -1)
    secant = jnp.diff(rows, axis=0) / h[:, None]
    if n <= 3:
        slope = secant if n == 2 else (secant * h[::-1, None]).sum(axis=0, keepdims=True) / h.sum()
        if n == 3:  # equal slopes at the ends, and the one condition between
            h0, h1 = h[0], h[1]
            m = (secant[0] / h0 + secant[1] / h1) / (1 / h0 + 1 / h1)
            slope = jnp.broadcast_to(m[None], rows.shape)
            return slope.reshape(y.shape)
        return jnp.concatenate([slope, slope]).reshape(y.shape)
    before = jnp.roll(h, 1)
    matrix = jnp.diag(2 * (h + before))
    places = jnp.arange(n - 1)
    matrix = matrix.at[places, (places - 1) % (n - 1)].add(h)
    matrix = matrix.at[places, (places + 1) % (n - 1)].add(before)
    last = jnp.roll(secant, 1, axis=0)
    right = 3 * (h[:, None] * last + before[:, None] * secant)
    slopes = jnp.linalg.solve(matrix.astype(right.dtype), right)
    return jnp.concatenate([slopes, slopes[:1]]).reshape(y.shape)


@register_pytree_with_keys_class
class PchipInterpolator(PPoly):
    """Cubic polynomials through y at growing places x that are monotonic where the values are.

    Source: Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5 (1984).

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])
    >>> float(s(1.5))
    1.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0,
                 extrapolate: Extrapolate = None) -> None:
        x, values, axis = table("PchipInterpolator", x, y, axis)
        super().__init__(_hermite(x, values, _monotonic(x, values)), x, extrapolate, axis)


def _monotonic(x: Array, y: Array) -> Array:
    h = jnp.diff(x).reshape(-1, *(1,) * (y.ndim - 1))
    m = jnp.diff(y, axis=0) / h
    if x.shape[0] == 2:
        return jnp.concatenate([m, m])
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    turns = m[:-1] * m[1:] <= 0
    safe0, safe1 = jnp.where(turns, 1, m[:-1]), jnp.where(turns, 1, m[1:])
    inner = jnp.where(turns, 0, (w1 + w2) / (w1 / safe0 + w2 / safe1))

    def end(h0: Array, h1: Array, m0: Array, m1: Array) -> Array:
        d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        wrong = jnp.sign(d) != jnp.sign(m0)
        steep = (jnp.sign(m0) != jnp.sign(m1)) & (jnp.abs(d) > 3 * jnp.abs(m0))
        return jnp.where(wrong, 0, jnp.where(steep, 3 * m0, d))

    return jnp.concatenate([end(h[0], h[1], m[0], m[1])[None], inner,
                            end(h[-1], h[-2], m[-1], m[-2])[None]])


@register_pytree_with_keys_class
class Akima1DInterpolator(PPoly):
    """Cubic polynomials through y at growing places x by slopes of neighbouring secants.

    `method` is "akima", or "makima", which overshoots less. Outside of x it is NaN by default.
    Source: Akima, J. ACM 17 (1970).

    >>> import functrans as ft
    >>> s = ft.scipy.interpolate.Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0])
    >>> float(s(1.5))
    1.5
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0, *, method: str = "akima",
                 extrapolate: Extrapolate = None) -> None:
        one_of("interpolate.Akima1DInterpolator", "method", method, ("akima", "makima"))
        x, values, axis = table("Akima1DInterpolator", x, y, axis)
        super().__init__(_hermite(x, values, _by_neighbours(x, values, method)), x,
                         False if extrapolate is None else extrapolate, axis)


def _by_neighbours(x: Array, y: Array, method: str) -> Array:
    h = jnp.diff(x).reshape(-1, *(1,) * (y.ndim - 1))
    m = jnp.diff(y, axis=0) / h
    if x.shape[0] == 2:
        return jnp.concatenate([m, m])
    # two secants beyond each end, as those of a parabola
    left1 = 2 * m[0] - m[1]
    right1 = 2 * m[-1] - m[-2]
    m = jnp.concatenate([(2 * left1 - m[0])[None], left1[None], m, right1[None],
                         (2 * right1 - m[-1])[None]])
    d = jnp.abs(jnp.diff(m, axis=0))
    if method == "makima":
        d = d + jnp.abs(m[1:] + m[:-1]) / 2
    before, after = d[:-2], d[2:]
    weight = before + after
    usable = weight > 1e-9 * jnp.max(weight)
    mixed = (after * m[1:-2] + before * m[2:-1]) / jnp.where(usable, weight, 1)
    plain = 0 * mixed if method == "makima" else (m[3:] + m[:-3]) / 2
    return jnp.where(usable, mixed, plain)
