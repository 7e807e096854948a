"""Splines that smooth: by a price on their curvature, or by as few knots as a distance allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, known_values
from functrans.scipy.interpolate.bsplines import (
    BSpline,
    collocation,
    interpolating_knots,
    make_lsq_spline,
)
from functrans.scipy.interpolate.penalized import penalized
from functrans.scipy.interpolate.piecewise import table
from functrans.scipy.linalg import solve_triangular, solveh_banded
from functrans.scipy.products import matmul
from functrans.transforms.derivatives import grad
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["generate_knots", "make_smoothing_spline", "make_splrep"]


def make_smoothing_spline(x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None,
                          lam: ArrayLike | None = None, *, axis: int = 0) -> BSpline:
    """The cubic spline with the least sum of w (y - f(x))**2 and lam times the integral of f''**2.

    x grows and has five places or more. Without `lam` it is the one of the least error of
    generalized cross-validation, up to the number of places, of one column of y. It is
    differentiated in all arguments, also where `lam` is found.
    Source: Green and Silverman, Nonparametric Regression and Generalized Linear Models (1994),
    ch. 2: Reinsch's algorithm.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 1.0, 9)
    >>> f = ft.scipy.interpolate.make_smoothing_spline(x, 2 * x, lam=1.0)
    >>> round(float(f(0.3)), 4)
    0.6
    """
    places, values, axis = table("make_smoothing_spline", x, y, axis, 5)
    n, dtype = places.shape[0], places.dtype
    rows = values.reshape(n, -1)
    weights = jnp.ones(n, dtype) if w is None else jnp.broadcast_to(inexact(w)[0], (n,)).astype(
        dtype)
    steps = jnp.diff(places)
    if lam is None:
        if rows.shape[1] != 1:
            raise ShapeError(f"functrans.scipy.interpolate.make_smoothing_spline: y has shape "
                             f"{jnp.shape(y)} and lam is None.", where=user_source(),
                             why="each column has a lam of its own.", fix="lam=1.0, or vmap")
        price: Array = _validated(steps, weights, rows[:, 0])
    else:
        price = jnp.asarray(lam, dtype)
    turns = _second_differences(rows, steps)
    curvature = solveh_banded(_band(steps, weights, price), turns)
    fitted = rows - price * _transposed(curvature, steps) / weights[:, None]
    knots = jnp.concatenate([jnp.repeat(places[:1], 3), places, jnp.repeat(places[-1:], 3)])
    c = _coefficients(places, knots, fitted, jnp.pad(curvature, [(1, 1), (0, 0)]))
    return BSpline.tree_unflatten((3, True, axis), (knots, c.reshape(n + 2, *values.shape[1:])))


def _second_differences(y: Array, steps: Array) -> Array:
    """The changes of the slopes between neighbours: (n, m) to (n - 2, m)."""
    return jnp.diff(jnp.diff(y, axis=0) / steps[:, None], axis=0)


def _transposed(g: Array, steps: Array) -> Array:
    """The transpose of `_second_differences`."""
    inner = jnp.diff(jnp.pad(g, [(1, 1), (0, 0)]), axis=0) / steps[:, None]
    return jnp.diff(jnp.pad(inner, [(1, 1), (0, 0)]), axis=0)


def _band(steps: Array, weights: Array, price: ArrayLike) -> Array:
    """The upper diagonals of R + price Q' W**-1 Q: what curvatures solve."""
    before, after = 1 / steps[:-1], 1 / steps[1:]
    middle = -before - after
    over = 1 / weights
    main = (steps[:-1] + steps[1:]) / 3 + price * (
        before**2 * over[:-2] + middle**2 * over[1:-1] + after**2 * over[2:])
    first = steps[1:-1] / 6 + price * (middle[:-1] * before[1:] * over[1:-2]
                                       + after[:-1] * middle[1:] * over[2:-1])
    second = price * after[:-2] * before[2:] * over[2:-2]
    return jnp.stack([jnp.pad(second, (2, 0)), jnp.pad(first, (1, 0)), main])


def _dense(band: Array) -> Array:
    upper = sum(jnp.diag(band[2 - k, k:], k) for k in (1, 2))
    return jnp.diag(band[2]) + upper + jnp.asarray(upper).T


def _validated(steps: Array, weights: Array, y: Array) -> Array:
    """The price of curvature with the least error of generalized cross-validation.

    In the basis of the eigenvectors the error of each price is a sum. It is looked at from
    interpolation to a line, and its minimum differentiated by the implicit function theorem.
    Source: Craven and Wahba, Numer. Math. 31 (1979).
    """
    n, dtype = y.shape[0], y.dtype
    wide = jnp.float64
    steps, weights, y = (v.astype(wide) for v in (steps, weights, y))
    inner = _dense(_band(steps, weights, 0.0))
    outer = _dense(_band(steps, weights, 1.0)) - inner
    root = jnp.linalg.cholesky(inner)
    half = solve_triangular(root, outer, lower=True)
    d, vectors = jnp.linalg.eigh(solve_triangular(root, half.T, lower=True))
    turns = solve_triangular(root, _second_differences(y[:, None], steps), lower=True)[:, 0]
    squares = matmul(vectors.T, turns) ** 2
    d = jnp.maximum(d, jnp.finfo(wide).tiny)

    def error(log_price: Array) -> Array:
        share = 1 / (jnp.exp(-log_price) + d)  # of d, 0 where nothing is smoothed
        return n * jnp.sum(share**2 * d * squares) / jnp.sum(share * d) ** 2

    top = math.log(n)
    low = jnp.minimum(-jnp.log(lax.stop_gradient(d[-1])) - 12, top - 1)
    grid = lax.stop_gradient(low + (top - low) * jnp.linspace(0, 1, 161, dtype=wide))
    best = jnp.argmin(vmap(lambda v: lax.stop_gradient(error(v)))(grid))
    at = grid[best]
    inside = (best > 0) & (best < 160)
    slope = grad(error)
    bend = grad(lambda v: slope(v))
    gap = grid[1] - grid[0]
    left, right = at - gap, at + gap

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        rises = lax.stop_gradient(slope(middle)) > 0
        return jnp.where(rises, ends[0], middle), jnp.where(rises, middle, ends[1])

    left, right = lax.fori_loop(0, 45, halve, (left, right))
    found = lax.stop_gradient((left + right) / 2)
    curve = lax.stop_gradient(bend(found))
    moved = found - slope(found) / jnp.where(curve == 0, 1, curve)
    return jnp.exp(jnp.where(inside, moved, at)).astype(dtype)


def _coefficients(places: Array, knots: Array, f: Array, curvature: Array) -> Array:
    """Those of the spline with values f and second derivatives at places.

    They are the polar forms of its pieces at three knots each. Source: Ramshaw, Comput. Aided
    Geom. Des. 6 (1989).
    """
    n = places.shape[0]
    steps = jnp.diff(places)[:, None]
    change = jnp.diff(f, axis=0) / steps
    slope = change - steps * (2 * curvature[:-1] + curvature[1:]) / 6
    third = jnp.diff(curvature, axis=0) / steps
    piece = np.clip(np.arange(n + 2) - 1, 0, n - 2)  # a piece that the knots are the ends of
    h = [(knots[1 + j:n + 3 + j] - places[piece])[:, None] for j in range(3)]
    pairs = h[0] * h[1] + h[0] * h[2] + h[1] * h[2]
    return f[piece] + slope[piece] * (h[0] + h[1] + h[2]) / 3 + curvature[:-1][piece] * pairs / 6 \
        + third[piece] * h[0] * h[1] * h[2] / 6


# As few knots as a distance allows -----------------------------------------------------------

_NEAR = 1e-3  # the part of s that sums of squares may be off, as knots are counted


def _left(x: Any, y: Any, w: Any, t: Any, k: int, periodic: bool) -> Any:
    """The squares of what least squares leave at each place, over all columns of y."""
    matrix, _, _ = basis_and_jumps(x, t, k, periodic)
    c = np.linalg.lstsq(matrix * w[:, None], y * w[:, None], rcond=None)[0]
    return ((w[:, None] * (y - matrix @ c)) ** 2).sum(1)


def _with_knot(x: Any, t: Any, k: int, left: Any) -> Any:
    """Knots with one more: the middle place of the interval that most is left in."""
    ends = t[k:len(t) - k]
    at = np.searchsorted(x, ends)
    best, most = None, 0.0
    for i in range(len(ends) - 1):
        first, last = int(at[i]), int(at[i + 1])
        if last - first < 2:
            continue  # no place within
        # what is left at a knot counts half on both sides
        total = left[first:last + 1].sum() - (left[first] * (i > 0) + left[last] * (
            i + 2 < len(ends))) / 2
        if best is None or total > most:
            best, most = first + (last - first - 1) // 2 + 1, total
    if best is None:
        return t
    return np.sort(np.append(t, x[best]))


def grown_knots(x: Any, y: Any, w: Any, ends: tuple[float, float], k: int, s: float,
                periodic: bool = False) -> Iterator[Any]:
    """Knots, each time more of them, until least squares of y (m, columns) leave s or less.

    Source: Dierckx, Curve and Surface Fitting with Splines (1993), ch. 5.
    """
    t = np.repeat(np.array(ends, float), k + 1)
    most = len(x) + k + 1 + (k - 1 if periodic else 0)
    before, more = 0.0, 1
    while True:
        yield t
        left = _left(x, y, w, t, k, periodic)
        total = float(left.sum())
        beyond = total - s
        if abs(beyond) < _NEAR * s or beyond < 0:
            return
        if len(t) > 2 * (k + 1):
            fall = before - total
            wanted = int(more * beyond / fall) if fall > _NEAR * s else 2 * more
            more = min(2 * more, max(wanted, more // 2, 1))
        before = total
        if periodic and len(t) == 2 * (k + 1):
            # of a constant the whole period is one interval: its middle place, as in FITPACK
            t = np.sort(np.append(t, x[(len(x) + 1) // 2 - 1]))
            continue
        for _ in range(more):
            longer = _with_knot(x, t, k, left)
            if len(longer) >= most or len(longer) == len(t):
                yield all_knots(x, k, periodic)
                return
            t = longer
            left = _left(x, y, w, t, k, periodic)


def all_knots(x: Any, k: int, periodic: bool = False) -> Any:
    """The knots of a spline through values at all places, with repeated ends."""
    if not periodic:
        return np.asarray(interpolating_knots(jnp.asarray(x), k))
    inner = x[1:-1] if k % 2 else (x[1:-1] + x[:-2]) / 2
    return np.concatenate([np.repeat(x[0], k + 1), inner, np.repeat(x[-1], k + 1)])


def _known(name: str, x: ArrayLike, y: ArrayLike, w: ArrayLike | None, k: int
           ) -> tuple[Any, Any, Any]:
    """Places, values and weights as float64 in NumPy, which knots are chosen by."""
    fix = "make_lsq_spline(x, y, t), or make_smoothing_spline(x, y, lam=lam)"
    at, values = (known_values(f"interpolate.{name}", argument, v, "the number of knots depends on "
                               "it.", fix).astype(float) for v, argument in ((x, "x"), (y, "y")))
    weights = np.ones(len(at)) if w is None else np.asarray(w, float)
    if at.ndim != 1 or at.shape != values.shape or weights.shape != at.shape or len(at) <= k:
        raise ShapeError(f"functrans.scipy.interpolate.{name}: x has shape {at.shape}, y "
                         f"{values.shape}, w {weights.shape}.", where=user_source(),
                         why=f"they are vectors of one length, more than {k}.")
    if (np.diff(at) <= 0).any() or (weights <= 0).any():
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: x does not grow, or a weight is "
                            "not positive.", where=user_source())
    return at, values, weights


def generate_knots(x: ArrayLike, y: ArrayLike, *, w: ArrayLike | None = None,
                   xb: float | None = None, xe: float | None = None, k: int = 3, s: float = 0
                   ) -> Iterator[Array]:
    """Knots of splines of degree k, from none within on, until one is as near to y as s says.

    `s` is the sum of the squares of w (y - f(x)) that may be left. Each time there are more, where
    most is left. Values are needed: not under `jit`.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 6.0, 30)
    >>> [len(t) for t in ft.scipy.interpolate.generate_knots(x, ft.numpy.sin(x), s=0.1)]
    [8, 9, 10]
    """
    degree = known_size("interpolate.generate_knots", "k", k, 1)
    at, values, weights = _known("generate_knots", x, y, w, degree)
    ends = float(at[0] if xb is None else xb), float(at[-1] if xe is None else xe)
    dtype = inexact(x)[0].dtype
    for t in grown_knots(at, values[:, None], weights, ends, degree, float(s)) if s else [
            all_knots(at, degree)]:
        yield jnp.asarray(t, dtype)


def make_splrep(x: ArrayLike, y: ArrayLike, *, w: ArrayLike | None = None, xb: float | None = None,
                xe: float | None = None, k: int = 3, s: float = 0, t: ArrayLike | None = None
                ) -> BSpline:
    """The smoothest spline of degree k that leaves s: the sum of the squares of w (y - f(x)).

    Its knots are those of `generate_knots`, or `t`; of all with these knots it is the one whose
    derivative of order k jumps least. Knots, x and w are constants of the program, which `jit`
    does not choose; it is differentiated in y.
    Source: Dierckx, Curve and Surface Fitting with Splines (1993), ch. 5.

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 6.0, 30)
    >>> f = ft.scipy.interpolate.make_splrep(x, ft.numpy.sin(x), s=0.1)
    >>> round(float(((f(x) - ft.numpy.sin(x)) ** 2).sum()), 3)
    0.1
    """
    degree = known_size("interpolate.make_splrep", "k", k, 1)
    if s < 0:
        raise ArgumentError(f"functrans.scipy.interpolate.make_splrep: s is {shown(s)}.",
                            where=user_source(), why="it is a sum of squares.")
    at, values, weights = _known("make_splrep", x, y, w, degree)
    if t is None:
        ends = float(at[0] if xb is None else xb), float(at[-1] if xe is None else xe)
        knots = list(grown_knots(at, values[:, None], weights, ends, degree, s))[-1] if s else \
            all_knots(at, degree)
    else:
        knots = np.asarray(t, float)
    if len(knots) == 2 * (degree + 1) or not s:
        return make_lsq_spline(x, y, knots, degree, w)
    (target,) = inexact(y)
    matrix, jumps, _ = basis_and_jumps(at, knots, degree)
    rows = target[:, None] * jnp.asarray(weights)[:, None]
    c = penalized(matrix * weights[:, None], jumps, (values * weights)[:, None], rows, s)[:, 0]
    return BSpline(jnp.asarray(knots).astype(target.dtype), c.astype(target.dtype), degree)


def periodic_knots(t: Any, k: int) -> Any:
    """Knots with repeated ends as those of a periodic spline: repeated with their period."""
    inner = t[k:len(t) - k]
    count = len(inner) - 1
    number = np.arange(-k, count + k + 1)
    return inner[number % count] + (inner[-1] - inner[0]) * (number // count)


def basis_and_jumps(x: Any, t: Any, k: int, periodic: bool = False) -> tuple[Any, Any, Any]:
    """All B-splines at places (m, n), the jumps of their derivative k at knots, and what is free.

    The last is the matrix of the coefficients of the free ones: those of a period, where knots t
    are `periodic`, which are given with repeated ends.
    """
    knots = periodic_knots(t, k) if periodic else t
    count = len(knots) - k - 1
    matrix = np.asarray(collocation(jnp.asarray(knots), k, jnp.asarray(x)))
    top = np.asarray(BSpline(knots, np.eye(count), k).derivative(k).c)
    if not periodic:
        return matrix, np.diff(top, axis=0), np.eye(count)
    free = np.eye(count - k)[np.arange(count) % (count - k)]
    jumps = np.concatenate([np.diff(top, axis=0), top[:1] - top[-1:]])
    return matrix @ free, jumps @ free, free

publish(globals(), __all__)
