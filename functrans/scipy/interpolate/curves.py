"""Splines of curves, knots that are added, and zeros."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, known_values, one_of
from functrans.scipy.interpolate.bsplines import BSpline
from functrans.scipy.interpolate.fitpack import curves_of, spline_of
from functrans.scipy.interpolate.penalized import least_squares, penalized
from functrans.scipy.interpolate.smoothing import (
    all_knots,
    basis_and_jumps,
    grown_knots,
    periodic_knots,
)
from functrans.typing import Array, ArrayLike

__all__ = ["insert", "make_splprep", "splprep", "sproot"]

Curve = tuple[tuple[Array, list[Array], int], Array]
FullCurve = tuple[Curve, float, int, str]
Inserted = BSpline | tuple[Array, Array | list[Array], int]

_WHY = "the number of knots depends on it."


def _fitted(name: str, x: Any, w: Any, u: Any, ub: Any, ue: Any, k: int, s: float, t: Any,
            periodic: bool) -> tuple[Array, Array, Array, float]:
    """Knots, coefficients (n, dims), the places of the points, and the squares that are left."""
    degree = known_size(f"interpolate.{name}", "k", k, 1)
    points = jnp.stack(inexact(*x), axis=1) if isinstance(x, (list, tuple)) else inexact(x)[0].T
    if points.ndim != 2 or points.shape[0] <= degree:
        raise ShapeError(f"functrans.scipy.interpolate.{name}: x has shape {points.T.shape}.",
                         where=user_source(), why="it has a row for each coordinate, of more than "
                         f"{degree} points.")
    known = known_values(f"interpolate.{name}", "x", points, _WHY, f"{name}(x)  # before jit"
                         ).astype(float)
    if periodic:
        points = jnp.concatenate([points[:-1], points[:1]])
        known = np.concatenate([known[:-1], known[:1]])
    if u is None:
        steps = np.linalg.norm(np.diff(known, axis=0), axis=1)
        at = np.concatenate([[0.0], np.cumsum(steps)])
        at = at / (at[-1] or 1.0)
        at[-1] = 1.0
    else:
        at = known_values(f"interpolate.{name}", "u", u, _WHY, f"{name}(x)  # before jit"
                          ).astype(float)
    weights = np.ones(len(at)) if w is None else known_values(
        f"interpolate.{name}", "w", w, _WHY, "constant weights").astype(float)
    if at.shape != known.shape[:1] or weights.shape != at.shape or (np.diff(at) <= 0).any():
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: u has shape {at.shape}, w "
                            f"{weights.shape}, and there are {len(known)} points.",
                            where=user_source(), why="both have one for each point, and u grows: "
                            "points that follow on each other differ.")
    if periodic:
        weights = np.concatenate([weights[:-1], [0.0]])
    ends = float(at[0] if ub is None or u is None else ub), float(
        at[-1] if ue is None or u is None else ue)
    if t is not None:
        knots = np.asarray(t, float)
    elif s:
        knots = list(grown_knots(at, known, weights, ends, degree, float(s), periodic))[-1]
    else:
        knots = all_knots(at, degree, periodic)
    matrix, jumps, free = basis_and_jumps(at, knots, degree, periodic)
    rows = points * jnp.asarray(weights)[:, None]
    scaled, values = matrix * weights[:, None], known * weights[:, None]
    simplest = len(knots) == 2 * (degree + 1)
    if simplest or not s:
        c = least_squares(scaled, jumps, rows)
    else:
        c = penalized(scaled, jumps, values, rows, float(s))
    left = float(np.sum((scaled @ np.asarray(lax.stop_gradient(c)) - values) ** 2))
    c = jnp.tensordot(jnp.asarray(free), c, 1, precision="highest")
    whole = periodic_knots(knots, degree) if periodic else knots
    return (jnp.asarray(whole).astype(points.dtype), c.astype(points.dtype),
            jnp.asarray(at).astype(points.dtype), left)


def splprep(x: Any, w: ArrayLike | None = None, u: ArrayLike | None = None,
            ub: float | None = None, ue: float | None = None, k: int = 3, task: int = 0,
            s: float | None = None, t: ArrayLike | None = None, full_output: int = 0,
            nest: int | None = None, per: int = 0, quiet: int = 1) -> Curve | FullCurve:
    """The spline of a curve through or near points, and the places u of these on it.

    `x` has a row for each coordinate. The result is the pair of (knots, a list of the coefficients
    of each coordinate, degree) and u, which is the part of the length of the polygon by default.
    `s` is the sum of the squares of w times the distances (m - sqrt(2 m) for m points, 0 for the
    spline through all), `per` closes the curve, and with `task=-1` the knots are t. With
    `full_output` the sum that is left, 0 and a message follow. It is made outside of `jit`, and
    differentiated in x with knots and u as they are; `nest` and `quiet` are accepted.
    Source: Dierckx, Curve and Surface Fitting with Splines (1993), ch. 9.

    >>> import functrans as ft
    >>> angle = ft.numpy.linspace(0.0, 2 * ft.numpy.pi, 20)
    >>> tck, u = ft.scipy.interpolate.splprep([ft.numpy.cos(angle), ft.numpy.sin(angle)], s=0)
    >>> [abs(v).round(2).item() for v in ft.scipy.interpolate.splev(0.25, tck)]
    [0.0, 1.0]
    """
    one_of("interpolate.splprep", "task", task, (0, -1))
    if task == -1 and t is None:
        raise ArgumentError("functrans.scipy.interpolate.splprep: task is -1.",
                            where=user_source(), why="the knots are given.", fix="t=knots")
    if not len(x) or jnp.ndim(x[0]) != 1:
        raise ShapeError(f"functrans.scipy.interpolate.splprep: x has shape {jnp.shape(x)}.",
                         where=user_source(), why="it has a row for each coordinate.",
                         fix="splprep([x, y]), or splrep(x, y) of a function")
    count = len(jnp.asarray(x[0]))
    amount = count - math.sqrt(2 * count) if s is None else float(s)
    if amount < 0:
        raise ArgumentError(f"functrans.scipy.interpolate.splprep: s is {shown(s)}.",
                            where=user_source(), why="it is a sum of squares.")
    knots, c, at, left = _fitted("splprep", x, w, u, ub, ue, k, 0.0 if task == -1 else amount,
                                 t if task == -1 else None, bool(per))
    found = (knots, list(c.T), k), at
    if not full_output:
        return found
    return found, left, 0, "the sum of squares is s"


def make_splprep(x: Any, *, w: ArrayLike | None = None, u: ArrayLike | None = None,
                 ub: float | None = None, ue: float | None = None, k: int = 3, s: float = 0,
                 t: ArrayLike | None = None, nest: int | None = None, bc_type: str | None = None
                 ) -> tuple[BSpline, Array]:
    """The spline of a curve as a `BSpline` that gives (coordinates, places), and the places u.

    See `splprep`; `bc_type="periodic"` closes the curve.

    >>> import functrans as ft
    >>> points = [ft.numpy.array([0.0, 1.0, 2.0, 3.0]), ft.numpy.array([0.0, 1.0, 0.0, 1.0])]
    >>> curve, u = ft.scipy.interpolate.make_splprep(points)
    >>> curve(u).round(3).tolist()[1]
    [0.0, 1.0, 0.0, 1.0]
    """
    one_of("interpolate.make_splprep", "bc_type", bc_type, (None, "not-a-knot", "periodic"))
    if s < 0 or (not s and any(v is not None for v in (t, w, nest))):
        raise ArgumentError(f"functrans.scipy.interpolate.make_splprep: s is {shown(s)}.",
                            where=user_source(), why="it is a sum of squares, and 0 for the curve "
                            "through all points, which has no t, w or nest.")
    knots, c, at, _ = _fitted("make_splprep", x, w, u, ub, ue, k, s, t, bc_type == "periodic")
    how: Any = "periodic" if bc_type == "periodic" else True
    return BSpline(knots, c.T, k, how, axis=1), at


def insert(x: ArrayLike, tck: Any, m: int = 1, per: int = 0) -> Inserted:
    """The same spline with the knot x, m times more, in the form of tck.

    With `per` the spline is periodic, and so are its new knots. It works under `jit`.
    Source: Boehm, Comput. Aided Des. 12 (1980).

    >>> import functrans as ft
    >>> line = [0.0, 0.0, 1.0, 1.0], [1.0, 3.0, 0.0, 0.0], 1
    >>> t, c, k = ft.scipy.interpolate.insert(0.5, line)
    >>> t.tolist(), c.tolist()
    ([0.0, 0.0, 0.5, 1.0, 1.0], [1.0, 2.0, 3.0, 0.0, 0.0])
    """
    curves = curves_of(tck)
    if curves is not None:
        made = [_inserted(x, one, m, per) for one in curves]
        return made[0][0], [c for _, c, _ in made], tck[2]
    t, c, k = _inserted(x, tck, m, per)
    if isinstance(tck, BSpline):
        n = t.shape[0] - k - 1
        return BSpline.tree_unflatten((k, tck.extrapolate, tck.axis), (t, c[:n]))
    return t, c, k


def _inserted(x: ArrayLike, tck: Any, m: int, per: int) -> tuple[Array, Array, int]:
    """Knots, coefficients with as many zeros as FITPACK has behind them, and the degree."""
    line = spline_of("insert", tck)
    times = known_size("interpolate.insert", "m", m, 0)
    k, t = line.k, line.t
    n = t.shape[0] - k - 1
    c = line.c[:n]
    at, _ = inexact(x, t)
    if at.ndim:
        raise ShapeError(f"functrans.scipy.interpolate.insert: x has shape {at.shape}.",
                         where=user_source(), why="it is one knot.")
    at = at.astype(t.dtype)
    if per:
        count = n - k  # intervals of a period
        period = t[n] - t[k]
        base = t[k:n]
        t = jnp.concatenate([base + i * period for i in range(-1, 3)])
        # the first coefficient of a period belongs to the knots from k before its start
        c = jnp.take(c[:count], (np.arange(t.shape[0] - k - 1) + k) % count, axis=0)
        for shift in range(-1, 3):
            for _ in range(times):
                t, c = _with_knot(t, c, k, at + shift * period)
        first = (count + times) - k
        t = t[first:first + count + times + 2 * k + 1]
        c = c[first:first + count + times + k]
    else:
        for _ in range(times):
            t, c = _with_knot(t, c, k, at)
    return t, jnp.concatenate([c, jnp.zeros((k + 1, *c.shape[1:]), c.dtype)]), k


def _with_knot(t: Array, c: Array, k: int, x: Array) -> tuple[Array, Array]:
    """Knots and coefficients of the same spline with one knot more."""
    n = c.shape[0]
    j = jnp.clip(jnp.searchsorted(t, x, side="right") - 1, k, n - 1)
    i = jnp.arange(n + 1)
    left, right = t[jnp.clip(i, 0, n)], t[jnp.clip(i + k, 0, n + k)]
    width = right - left
    part = (x - left) / jnp.where(width == 0, 1, width)
    share = jnp.where(i <= j - k, 1, jnp.where(i > j, 0, part))
    share = share.reshape(-1, *(1,) * (c.ndim - 1)).astype(c.dtype)
    new = share * c[jnp.clip(i, 0, n - 1)] + (1 - share) * c[jnp.clip(i - 1, 0, n - 1)]
    place = jnp.arange(t.shape[0] + 1)
    knots = jnp.where(place <= j, t[jnp.clip(place, 0, t.shape[0] - 1)],
                      jnp.where(place == j + 1, x, t[jnp.clip(place - 1, 0, t.shape[0] - 1)]))
    return knots, new


def sproot(tck: Any, mest: int = 10) -> Array | list[Array]:
    """The zeros of a cubic spline within its knots, at most `mest`; a list of them of a curve.

    Their number depends on values: not under `jit`. They are differentiated in the coefficients.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.5, 9.0, 40)
    >>> tck = ft.scipy.interpolate.splrep(x, ft.numpy.sin(x))
    >>> print(ft.scipy.interpolate.sproot(tck).round(2))
    [3.14 6.28]
    """
    curves = curves_of(tck)
    if curves is not None:
        return [_zeros(one, mest) for one in curves]
    return _zeros(tck, mest)


def _zeros(tck: Any, mest: int) -> Array:
    line = spline_of("sproot", tck)
    if line.k != 3 or line.c.ndim != 1:
        raise ArgumentError(f"functrans.scipy.interpolate.sproot: the degree is {line.k}, and c "
                            f"has shape {line.c.shape}.", where=user_source(),
                            why="it is a cubic spline of one variable.")
    fix = "optimize.brentq"
    t, c = (known_values("interpolate.sproot", name, v, "the number of zeros depends on it.", fix
                         ).astype(float) for name, v in (("t", line.t), ("c", line.c)))
    n = len(t) - 4
    pieces, at = [], t[3:n + 1]
    known = BSpline.tree_unflatten((3, True, 0), (jnp.asarray(t), jnp.asarray(c[:n])))
    starts = at[:-1][np.diff(at) > 0]
    ends = at[1:][np.diff(at) > 0]
    rows = np.stack([np.asarray(known(starts, nu)) / math.factorial(nu) for nu in range(4)])
    scale = np.abs(c[:n]).max(initial=0.0)
    for i, (a, b) in enumerate(zip(starts, ends)):
        powers = rows[::-1, i] * (b - a) ** np.arange(3, -1, -1)
        powers = np.where(np.abs(powers) <= 1e-15 * scale, 0, powers)
        roots = np.roots(powers)
        near = roots[np.abs(roots.imag) < 1e-7].real
        pieces += [a + (b - a) * min(max(r, 0.0), 1.0) for r in near if -1e-9 < r < 1 + 1e-9]
    zeros: list[float] = []
    for z in sorted(pieces):
        if not zeros or z - zeros[-1] > 1e-8 * (at[-1] - at[0]):
            zeros.append(z)
    if len(zeros) > mest:
        warnings.warn(f"sproot: there are {len(zeros)} zeros, and mest is {mest}", RuntimeWarning,
                      stacklevel=3)
    found = jnp.asarray(np.array(zeros[:mest])).astype(line.t.dtype)
    # a step of Newton's, whose derivative is that of the zero
    slope = lax.stop_gradient(line(found, 1))
    return found - jnp.where(slope == 0, 0, line(found) / jnp.where(slope == 0, 1, slope))


publish(globals(), __all__)
