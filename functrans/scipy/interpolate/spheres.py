"""Splines of functions on a sphere, of the angles theta from the pole and phi around it.

Source: Dierckx, Algorithms for smoothing data on the sphere with tensor product splines, Computing
32 (1984).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, value_of
from functrans.scipy.interpolate.penalized import least_squares, penalized
from functrans.scipy.interpolate.smoothing import basis_and_jumps, periodic_knots
from functrans.scipy.interpolate.surfaces import (
    BivariateSpline,
    known_points,
    most_left,
    tensor_fit,
)
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike

_NEAR = 1e-3  # the part of s that sums of squares may be off, as knots are counted
Poles = tuple[tuple[bool, bool], tuple[bool, bool]]  # of each: is the slope one, is it 0


class _SphereSpline(BivariateSpline):
    """What splines on a sphere share: theta is in [0, pi], and phi is periodic."""

    def __call__(self, theta: ArrayLike, phi: ArrayLike, dtheta: int = 0, dphi: int = 0,
                 grid: bool = True) -> Array:
        """The values on the grid of theta and phi, or at their pairs."""
        known = value_of(theta)
        if known is not None and ((known < 0) | (known > np.pi)).any():
            raise ArgumentError(f"functrans.scipy.interpolate.{type(self).__name__}: theta is "
                                f"{shown(known)}.", where=user_source(),
                                why="it is from 0 to pi.")
        around, _ = inexact(phi, self.ty)
        first = self.ty[self.degrees[1]]
        turned = first + jnp.mod(around - first, 2 * np.pi)
        # the end of the period stays the end
        turned = jnp.where(around == first + 2 * np.pi, around, turned)
        return super().__call__(theta, turned, dtheta, dphi, grid)

    def ev(self, theta: ArrayLike, phi: ArrayLike, dtheta: int = 0, dphi: int = 0) -> Array:
        """The values at pairs of theta and phi."""
        return self(theta, phi, dtheta, dphi, grid=False)


def _free(rows: int, knots: Any, columns: int, poles: Poles) -> Any:
    """The matrix of all coefficients of the free ones: one value, and one slope, at each pole.

    Along the first row there is one value; the second has a cosine and a sine of phi, as splines.
    """
    places = knots[3:-4]
    matrix, _, _ = basis_and_jumps(places, knots, 3, periodic=True)
    waves = np.linalg.lstsq(matrix, np.stack([np.cos(places), np.sin(places)], 1), rcond=None)[0]
    kinds = []
    for smooth, flat in poles:
        kind = [np.zeros((2, columns, 1))]
        kind[0][:, :, 0] = 1
        if not smooth:
            kind[0][1] = 0
            kind.append(np.stack([np.zeros((columns, columns)), np.eye(columns)]))
        elif not flat and columns > 1:  # a constant has no direction
            kind.append(np.stack([np.zeros((columns, 2)), waves]))
        kinds.append(np.concatenate(kind, axis=2))
    first, last = kinds[0], kinds[1][::-1]
    inner = rows - 4
    found = np.zeros((rows, columns, first.shape[2] + inner * columns + last.shape[2]))
    found[:2, :, :first.shape[2]] = first
    for i in range(inner):
        start = first.shape[2] + i * columns
        found[2 + i, :, start:start + columns] = np.eye(columns)
    found[-2:, :, -last.shape[2]:] = last
    return found.reshape(rows * columns, -1)


def _count(pole: tuple[bool, bool], columns: int) -> int:
    """The free coefficients of a pole."""
    smooth, flat = pole
    return 1 + (columns if not smooth else 0 if flat or columns == 1 else 2)


def _fit(theta: Any, phi: Any, tt: Any, tp: Any, poles: Poles) -> tuple[Any, Any, Any]:
    matrix, jumps, around = tensor_fit(theta, phi, tt, tp, 3, 3, periodic=True)
    free = _free(len(tt) - 4, tp, around.shape[1], poles)
    return matrix @ free, jumps @ free, (free, around)


def _ended(inner: Any, low: float, high: float) -> Any:
    return np.concatenate([np.repeat(low, 4), inner, np.repeat(high, 4)])


_SMOOTH: Poles = ((True, False), (True, False))


def _grown(theta: Any, phi: Any, r: Any, w: Any, s: float, start: float, poles: Poles
           ) -> Iterator[tuple[Any, Any]]:
    """Knots, each time one more, where most is left, until that is s or less."""
    tt, tp = _ended([], 0.0, np.pi), _ended([], start, start + 2 * np.pi)
    most = 8 + int(np.sqrt(len(theta) / 2)) + 4
    while True:
        yield tt, tp
        matrix, _, _ = _fit(theta, phi, tt, tp, poles)
        c = np.linalg.lstsq(matrix * w[:, None], r * w, rcond=None)[0]
        left = (w * (r - matrix @ c)) ** 2
        if left.sum() - s < _NEAR * s:
            return
        if len(tt) == 8:
            tt = _ended([np.pi / 2], 0.0, np.pi)
            tp = _ended(start + np.pi * np.array([0.5, 1.0, 1.5]), start, start + 2 * np.pi)
            continue
        best = [(*most_left(t[3:-3], at, left), t) for t, at in ((tt, theta), (tp, phi))
                if len(t) < most]
        best = [v for v in best if v[1] is not None]
        if not best:
            warnings.warn(f"the knots are as many as there may be, and s={s:g} is not reached",
                          UserWarning, stacklevel=4)
            return
        _, knot, t = max(best, key=lambda v: v[0])
        longer = np.sort(np.append(t, float(knot or 0)))
        tt, tp = (longer, tp) if t is tt else (tt, longer)


def _base(tt: Any, fixed: Any) -> Array:
    """The coefficients along theta of a polynomial with the values that poles are met with."""
    low, high = (0.0 if v is None else v for v in fixed)
    if any(v is None for v in fixed):  # a constant
        return jnp.full(len(tt) - 4, 1.0, jnp.float64) * (low + high)
    places = np.linspace(0, np.pi, 4 * len(tt))
    matrix, _, _ = basis_and_jumps(places, tt, 3)
    part = places / np.pi
    rising = np.linalg.lstsq(matrix, part * part * (3 - 2 * part), rcond=None)[0]
    return jnp.asarray(1 - rising) * low + jnp.asarray(rising) * high


def _sphere(name: str, theta: Any, phi: Any, r: ArrayLike, w: Any, s: float,
            knots: tuple[Any, Any] | None, poles: Poles = _SMOOTH, start: float = 0.0,
            fixed: Any = (None, None)) -> tuple[Array, Array, Array, float]:
    """Knots, coefficients and what is left, of values r at angles with weights w.

    `fixed` are the values of the poles that are met.
    """
    (target,) = inexact(r)
    target = target.reshape(-1)
    weights = np.ones(target.shape[0]) if w is None else w
    around, about, values, weights = known_points(name, theta=theta, phi=phi, r=target, w=weights)
    if (around < 0).any() or (around > np.pi).any() or (about < start).any() or \
            (about > start + 2 * np.pi + 1e-12).any() or (weights < 0).any() or not s >= 0:
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: an angle, a weight or s is out "
                            "of range.", where=user_source(), why="theta is from 0 to pi, phi from "
                            "0 to 2 pi; weights and s are not negative.", fix="phi % (2 * np.pi)")
    if knots is None:
        *_, (tt, tp) = _grown(around, about, values, weights, s, start, poles)
    else:
        tt, tp = knots
    matrix, jumps, (free, wrapped) = _fit(around, about, tt, tp, poles)
    matrix = matrix * weights[:, None]
    rows, scaled = (target * jnp.asarray(weights))[:, None], (values * weights)[:, None]
    # what is met is subtracted with a polynomial of theta, which has no jumps, and is then 0: the
    # first coefficient, and the first one of the last pole
    last = free.shape[1] - _count(poles[1], wrapped.shape[1])
    met = [i for i, v in zip((0, last), fixed) if v is not None]
    rest = [i for i in range(matrix.shape[1]) if i not in met]
    base = _base(tt, fixed).astype(rows.dtype)
    of_theta, _, _ = basis_and_jumps(around, tt, 3)
    rows = rows - matmul(jnp.asarray(of_theta * weights[:, None]).astype(rows.dtype),
                         base[:, None])
    scaled = np.asarray(lax.stop_gradient(rows)).astype(float)
    matrix, jumps = matrix[:, rest], jumps[:, rest]
    c = least_squares(matrix, jumps, rows)

    def left(c: Array) -> float:
        return float(np.sum((matrix @ np.asarray(lax.stop_gradient(c)) - scaled) ** 2))

    if knots is None and left(c) < s * (1 - _NEAR) and len(tt) > 8:
        c = penalized(matrix, jumps, scaled, rows, s)
    amount, c = left(c), jnp.zeros((free.shape[1], 1), c.dtype).at[np.array(rest)].set(c)
    whole = jnp.tensordot(jnp.asarray(free), c[:, 0], 1, precision="highest").reshape(
        len(tt) - 4, -1)
    whole = jnp.tensordot(whole, jnp.asarray(wrapped.T), 1, precision="highest")
    whole = whole + base[:, None]
    return (jnp.asarray(tt).astype(target.dtype), jnp.asarray(periodic_knots(tp, 3)).astype(
        target.dtype), whole.astype(target.dtype), amount)


@register_pytree_with_keys_class
class SmoothSphereBivariateSpline(_SphereSpline):
    """The smoothest function on a sphere that leaves s: the sum of the squares of w (r - f).

    `theta` is from 0 to pi, `phi` from 0 to 2 pi, at scattered points. It is a cubic spline of both
    with one value and one tangent plane at each pole, made outside of `jit`, called within, and
    differentiated in r with knots as they are. Knots are added one by one, where most is left;
    coefficients that values leave open jump least (`eps` is accepted). See `BivariateSpline` for
    the methods.

    >>> import functrans as ft
    >>> theta, phi = (v.reshape(-1) for v in ft.numpy.meshgrid(
    ...     ft.numpy.linspace(0.2, 3.0, 5), ft.numpy.linspace(0.0, 6.0, 5)))
    >>> f = ft.scipy.interpolate.SmoothSphereBivariateSpline(theta, phi, ft.numpy.cos(theta), s=0.1)
    >>> f.ev(1.0, 2.0).shape
    ()
    """

    def __init__(self, theta: ArrayLike, phi: ArrayLike, r: ArrayLike, w: ArrayLike | None = None,
                 s: float = 0.0, eps: float = 1e-16) -> None:
        tt, tp, c, left = _sphere("SmoothSphereBivariateSpline", theta, phi, r, w, s, None)
        self._set(tt, tp, c, (3, 3), left)


@register_pytree_with_keys_class
class LSQSphereBivariateSpline(_SphereSpline):
    """The function on a sphere of least squares of w (r - f) with the knots tt and tp within.

    See `SmoothSphereBivariateSpline`.

    >>> import functrans as ft
    >>> theta, phi = (v.reshape(-1) for v in ft.numpy.meshgrid(
    ...     ft.numpy.linspace(0.1, 3.0, 9), ft.numpy.linspace(0.0, 6.0, 9)))
    >>> r = 1 + 0.5 * ft.numpy.cos(theta)
    >>> f = ft.scipy.interpolate.LSQSphereBivariateSpline(theta, phi, r, [1.0, 2.0], [2.0, 4.0])
    >>> round(float(f.ev(1.0, 2.0)), 2)
    1.27
    """

    def __init__(self, theta: ArrayLike, phi: ArrayLike, r: ArrayLike, tt: ArrayLike,
                 tp: ArrayLike, w: ArrayLike | None = None, eps: float = 1e-16) -> None:
        name = "LSQSphereBivariateSpline"
        (inner_t,), (inner_p,) = known_points(name, tt=tt), known_points(name, tp=tp)
        for n, t, high in (("tt", inner_t, np.pi), ("tp", inner_p, 2 * np.pi)):
            if (np.diff(t) <= 0).any() or (t <= 0).any() or (t >= high).any():
                raise ArgumentError(f"functrans.scipy.interpolate.{name}: {n} is {shown(t)}.",
                                    where=user_source(), why=f"knots grow, from 0 to {high:.4f}.")
        knots = _ended(inner_t, 0.0, np.pi), _ended(inner_p, 0.0, 2 * np.pi)
        made = _sphere(name, theta, phi, r, w, 0.0, knots)
        self._set(*made[:3], (3, 3), made[3])


@register_pytree_with_keys_class
class RectSphereBivariateSpline(_SphereSpline):
    """The function on a sphere through values r (theta, phi) on a grid u, v, or near to it.

    `u` grows between 0 and pi, `v` from -pi or more through less than 2 pi. `pole_values` are those
    at both poles, met where `pole_exact`; without them the smoothest are taken, where FITPACK keeps
    its first guess. With `pole_continuity` there is a tangent plane at a pole, a level
    one with `pole_flat`; each is for both, or a pair. `s` is the sum of squares that is left. It is
    made outside of `jit`, called within, and differentiated in r.

    >>> import functrans as ft
    >>> u, v = ft.numpy.linspace(0.3, 2.8, 6), ft.numpy.linspace(0.0, 6.0, 5)
    >>> r = 1 + ft.numpy.cos(u)[:, None] * ft.numpy.ones(5)
    >>> f = ft.scipy.interpolate.RectSphereBivariateSpline(u, v, r)
    >>> round(float(f.ev(1.0, 2.0)), 2)
    1.54
    """

    def __init__(self, u: ArrayLike, v: ArrayLike, r: ArrayLike, s: float = 0.0,
                 pole_continuity: Any = False, pole_values: Any = None, pole_exact: Any = False,
                 pole_flat: Any = False) -> None:
        name = "RectSphereBivariateSpline"
        smooth, exact, flat = (_pair(p) for p in (pole_continuity, pole_exact, pole_flat))
        values = (None, None) if pole_values is None else tuple(pole_values) if isinstance(
            pole_values, (tuple, list)) else (pole_values, pole_values)
        (at_u,), (at_v,) = known_points(name, u=u), known_points(name, v=v)
        (target,) = inexact(r)
        if target.shape != (len(at_u), len(at_v)) or len(at_u) < 4 or len(at_v) < 4:
            raise ShapeError(f"functrans.scipy.interpolate.{name}: u has {len(at_u)} values, v "
                             f"{len(at_v)}, and r has shape {target.shape}.", where=user_source(),
                             why="r has a row for each u, and there are four or more of both.")
        if (np.diff(at_u) <= 0).any() or (np.diff(at_v) <= 0).any() or at_u[0] <= 0 \
                or at_u[-1] >= np.pi or not -np.pi <= at_v[0] < np.pi \
                or at_v[-1] >= at_v[0] + 2 * np.pi:
            raise ArgumentError(f"functrans.scipy.interpolate.{name}: u is {shown(at_u)}, v "
                                f"{shown(at_v)}.", where=user_source(), why="both grow, u between "
                                "0 and pi, v from -pi or more through less than 2 pi.")
        if any(f and not c for f, c in zip(flat, smooth)):
            raise ArgumentError(f"functrans.scipy.interpolate.{name}: pole_flat without "
                                "pole_continuity.", where=user_source(),
                                fix="pole_continuity=True")
        theta, phi = (w.reshape(-1) for w in np.meshgrid(at_u, at_v, indexing="ij"))
        flatly = target.reshape(-1)
        weights = np.ones(len(theta))
        fixed: list[Any] = [None, None]
        for i, (value, is_exact) in enumerate(zip(values, exact)):
            if value is not None and is_exact:
                fixed[i] = inexact(value, flatly)[0].reshape(())
            elif value is not None:  # it counts as one more point
                theta, phi = np.append(theta, i * np.pi), np.append(phi, at_v[0])
                flatly = jnp.concatenate([flatly, inexact(value, flatly)[0].reshape(1)])
                weights = np.append(weights, 1.0)
        knots = None
        if not s:
            within = at_u[1 - smooth[0]:len(at_u) - 1 + smooth[1]]
            knots = _ended(within, 0.0, np.pi), _ended(at_v[1:], at_v[0], at_v[0] + 2 * np.pi)
        poles = (smooth[0], flat[0]), (smooth[1], flat[1])
        made = _sphere(name, theta, phi, flatly, weights, float(s), knots, poles, at_v[0],
                       fixed)
        self._set(*made[:3], (3, 3), made[3])


def _pair(value: Any) -> tuple[bool, bool]:
    if isinstance(value, (tuple, list)):
        return bool(value[0]), bool(value[1])
    return bool(value), bool(value)
