"""minimize_scalar: minima of functions of one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.optimize.implicit import (
    Function,
    option,
    scalar_value,
    solution,
    with_args,
)
from functrans.scipy.optimize.results import ScalarResults
from functrans.transforms.derivatives import grad
from functrans.typing import Array

_GOLDEN = (3 - math.sqrt(5)) / 2
_GROW = (1 + math.sqrt(5)) / 2


def minimize_scalar(fun: Function, bracket: Any = None, bounds: Any = None,
                    args: tuple[Any, ...] = (), method: str | None = None,
                    tol: float | None = None, options: Mapping[str, Any] | None = None
                    ) -> ScalarResults:
    """The minimum of `fun(x, *args)` of one number.

    `method` is "brent" or "golden", from a `bracket` of two points to begin with or three around
    the minimum, (0, 1) by default, or "bounded" between `bounds`. Options are `maxiter`, and
    `xtol` or (for "bounded") `xatol`. x is differentiated by the implicit function theorem, in what
    `fun` closes over and in `args`; at a bound it does not move.
    Source: Brent, Algorithms for Minimization Without Derivatives (1973).

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.minimize_scalar(lambda x, a: (x - a) ** 2, args=(3.0,))
    >>> round(float(found.x), 3)
    3.0
    """
    how = ("bounded" if bounds is not None else "brent") if method is None else method.lower()
    one_of("optimize.minimize_scalar", "method", how, ("brent", "golden", "bounded"))
    of_args = with_args("minimize_scalar", fun, args)
    if (how == "bounded") != (bounds is not None):
        raise ArgumentError(f"functrans.scipy.optimize.minimize_scalar: method={how!r}, and bounds "
                            f"is {bounds}.", where=user_source(),
                            fix="method='bounded', bounds=(a, b)")
    name = "xatol" if how == "bounded" else "xtol"
    given = {"disp": 0, "maxiter": 500 if how == "bounded" else 5000, name: tol}
    known = option("minimize_scalar", dict(options or {}), given)

    def value(x: Array) -> Array:
        return scalar_value("minimize_scalar", of_args, x)

    if how == "bounded":
        points = [v.reshape(()) for v in inexact(*bounds)]
    else:
        points = [v.reshape(()) for v in inexact(*((0.0, 1.0) if bracket is None else bracket))]
        if len(points) not in (2, 3):
            raise ArgumentError("functrans.scipy.optimize.minimize_scalar: bracket has "
                                f"{len(points)} points.", where=user_source(),
                                fix="bracket=(a, b), or (a, b, c) with f(b) below f(a), f(c)")
    eps = float(finfo(points[0].dtype).eps)
    tolerance = known[name]

    def search(x: Array) -> Any:
        if how == "bounded":
            absolute = 1e-5 if tolerance is None else tolerance
            return _brent(value, points[0], points[1], None, math.sqrt(eps), absolute / 3,
                          known["maxiter"], 0)
        low, middle, high, calls = _bracket(value, points)
        left, right = jnp.minimum(low, high), jnp.maximum(low, high)
        if how == "golden":
            relative = math.sqrt(eps) if tolerance is None else max(tolerance, math.sqrt(eps))
            return _golden(value, left, middle, right, relative, known["maxiter"], calls)
        relative = max(1.48e-8 if tolerance is None else tolerance, math.sqrt(eps))
        return _brent(value, left, right, middle, relative, 1e-11, known["maxiter"], calls)

    def stationary(x: Array) -> Array:
        if how != "bounded":
            found: Array = grad(value)(x)
            return found
        # a step of the gradient; at a bound only the bound moves the minimum
        return x - jnp.clip(x - grad(value)(x), points[0], points[1])

    at, (converged, nfev, nit) = solution(stationary, points[0], search)
    return ScalarResults(at, value(at), converged, nfev, nit)


def minimum_of_line(f: Function, a: Array, b: Array, relative: float, limit: int
                    ) -> tuple[Array, Array]:
    """The minimum downhill of two points, and the number of evaluations."""
    low, middle, high, calls = _bracket(f, [a, b])
    x, (_, nfev, _) = _brent(f, jnp.minimum(low, high), jnp.maximum(low, high), middle, relative,
                             1e-11, limit, calls)
    return x, nfev


def minimum_within(f: Function, low: Array, high: Array, relative: float, absolute: float,
                   limit: int) -> tuple[Array, Array]:
    """The minimum between two points, and the number of evaluations."""
    x, (_, nfev, _) = _brent(f, low, high, None, relative, absolute, limit, jnp.array(0))
    return x, nfev


def _bracket(f: Function, points: list[Array]) -> Any:
    """Three points, the middle one below the others: downhill in growing steps."""
    if len(points) == 3:
        return (*points, 0)
    a, b = points
    fa, fb = f(a), f(b)
    uphill = fb > fa
    a, b = jnp.where(uphill, b, a), jnp.where(uphill, a, b)
    fb = jnp.where(uphill, fa, fb)
    c = b + _GROW * (b - a)

    def unfinished(state: Any) -> Any:
        *_, fb, fc, count = state
        return (fc < fb) & (count < 1000)

    def improve(state: Any) -> Any:
        _, b, c, _, fc, count = state
        d = c + _GROW * (c - b)
        return b, c, d, fc, f(d), count + 1

    a, b, c, _, _, count = lax.while_loop(unfinished, improve, (a, b, c, fb, f(c), 3))
    return a, b, c, count


def _brent(f: Function, low: Array, high: Array, middle: Array | None, relative: float,
           absolute: float, limit: int, calls: Any) -> Any:
    """Parabolas through the three lowest points, and golden sections where they do not help."""
    x = low + _GOLDEN * (high - low) if middle is None else middle
    fx = f(x)

    def finished(a: Array, b: Array, x: Array) -> Array:
        tol = relative * jnp.abs(x) + absolute
        return jnp.abs(x - (a + b) / 2) <= 2 * tol - (b - a) / 2

    def unfinished(state: Any) -> Any:
        a, b, x, *_, count = state
        return ~finished(a, b, x) & (count < limit)

    def improve(state: Any) -> Any:
        a, b, x, w, v, fx, fw, fv, step, last, count = state
        tol = relative * jnp.abs(x) + absolute
        center = (a + b) / 2
        r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
        p = (x - v) * q - (x - w) * r
        q = 2 * (q - r)
        p, q = jnp.where(q > 0, -p, p), jnp.abs(q)
        useful = (jnp.abs(last) > tol) & (jnp.abs(p) < jnp.abs(q * last / 2)) & (
            p > q * (a - x)) & (p < q * (b - x)) & (q > 0)
        parabola = p / jnp.where(q > 0, q, 1)
        point = x + parabola
        near_end = (point - a < 2 * tol) | (b - point < 2 * tol)
        parabola = jnp.where(near_end, jnp.where(x < center, tol, -tol), parabola)
        rest = jnp.where(x < center, b - x, a - x)
        new_last = jnp.where(useful, step, rest)
        new = jnp.where(useful, parabola, _GOLDEN * rest)
        u = x + jnp.where(jnp.abs(new) >= tol, new, jnp.where(new > 0, tol, -tol))
        fu = f(u)
        better = fu <= fx
        a = jnp.where(better, jnp.where(u < x, a, x), jnp.where(u < x, u, a))
        b = jnp.where(better, jnp.where(u < x, x, b), jnp.where(u < x, b, u))
        second = ~better & ((fu <= fw) | (w == x))
        third = ~better & ~second & ((fu <= fv) | (v == x) | (v == w))
        v2 = jnp.where(better | second, w, jnp.where(third, u, v))
        fv2 = jnp.where(better | second, fw, jnp.where(third, fu, fv))
        w2 = jnp.where(better, x, jnp.where(second, u, w))
        fw2 = jnp.where(better, fx, jnp.where(second, fu, fw))
        return (a, b, jnp.where(better, u, x), w2, v2, jnp.where(better, fu, fx), fw2, fv2, new,
                new_last, count + 1)

    zero = jnp.zeros_like(x)
    start = (low, high, x, x, x, fx, fx, fx, zero, zero, 0)
    a, b, x, *_, count = lax.while_loop(unfinished, improve, start)
    return x, (finished(a, b, x) & ~jnp.isnan(f(x)), calls + count + 1, count)


def _golden(f: Function, low: Array, middle: Array, high: Array, relative: float, limit: int,
            calls: Any) -> Any:
    right = high - middle > middle - low
    x1 = jnp.where(right, middle, middle - _GOLDEN * (middle - low))
    x2 = jnp.where(right, middle + _GOLDEN * (high - middle), middle)

    def unfinished(state: Any) -> Any:
        a, x1, x2, b, _, _, count = state
        return (b - a > relative * (jnp.abs(x1) + jnp.abs(x2))) & (count < limit)

    def improve(state: Any) -> Any:
        a, x1, x2, b, f1, f2, count = state
        forth = f2 < f1
        point = jnp.where(forth, x2 + _GOLDEN * (b - x2), x1 - _GOLDEN * (x1 - a))
        value = f(point)
        return (jnp.where(forth, x1, a), jnp.where(forth, x2, point), jnp.where(forth, point, x1),
                jnp.where(forth, b, x2), jnp.where(forth, f2, value), jnp.where(forth, value, f1),
                count + 1)

    start = (low, x1, x2, high, f(x1), f(x2), 0)
    a, x1, x2, b, f1, f2, count = lax.while_loop(unfinished, improve, start)
    close = b - a <= relative * (jnp.abs(x1) + jnp.abs(x2))
    return jnp.where(f1 < f2, x1, x2), (close, calls + count + 2, count)
