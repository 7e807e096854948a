"""Roots, minima and their brackets of many functions of one number at once.

Functions take and return arrays, of which each element is a problem of its own; all of them are
solved in one loop. With the names of scipy.optimize.elementwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, real, refused
from functrans.scipy.named_result import OptimizeResult
from functrans.transforms.derivatives import grad
from functrans.transforms.flat import check_callable
from functrans.typing import Array, ArrayLike

__all__ = ["bracket_minimum", "bracket_root", "find_minimum", "find_root"]

_PHI = 0.5 + 0.5 * math.sqrt(5)


def _function(name: str, f: Callable[..., Any], args: Any, points: list[Any]
              ) -> tuple[Callable[[Array], Array], list[Array]]:
    """f with its arguments, and the points in one shape and dtype."""
    check_callable(f, f"scipy.optimize.elementwise.{name}")
    more = args if isinstance(args, tuple) else (args,)
    given = real(f"optimize.elementwise.{name}", *points)
    shape = jnp.broadcast_shapes(*(p.shape for p in given), *(jnp.shape(a) for a in more))
    points = [jnp.broadcast_to(p, shape) for p in given]
    dtype = points[0].dtype

    def of_args(x: Array) -> Array:
        value = jnp.asarray(f(x, *more))
        if value.shape != shape:
            raise ShapeError(f"functrans.scipy.optimize.elementwise.{name}: f returns shape "
                             f"{value.shape} for {x.shape}.", where=user_source(),
                             why="each element of its argument is a problem of its own.")
        return value.astype(dtype)

    return of_args, points


def _tolerances(name: str, given: Mapping[str, Any] | None, defaults: dict[str, float]
                ) -> dict[str, Any]:
    unknown = set(given or {}) - set(defaults)
    if unknown:
        raise ArgumentError(f"functrans.scipy.optimize.elementwise.{name}: there is no tolerance "
                            f"{sorted(unknown)[0]!r}.", where=user_source(),
                            fix=", ".join(sorted(defaults)))
    return {k: defaults[k] if (given or {}).get(k) is None else (given or {})[k] for k in defaults}


def _of_points(name: str, init: Any, count: int) -> None:
    if not isinstance(init, (tuple, list)) or len(init) != count:
        raise ArgumentError(f"functrans.scipy.optimize.elementwise.{name}: init is {shown(init)}.",
                            where=user_source(), why=f"it has {count} points.",
                            fix=f"bracket_{name.removeprefix('find_')}(f, x).bracket")


def _no_callback(name: str, callback: Any) -> None:
    if callback is not None:
        raise refused(f"optimize.elementwise.{name}", "callback", "the search is a compiled loop.",
                      "functrans.debug.callback within f")


def _ratio(x: Array, y: Array) -> Array:
    found: Array = jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))
    return found


def _take(mask: Array, new: Any, old: Any) -> Any:
    return tuple(jnp.where(mask, n, o) for n, o in zip(new, old))


def find_root(f: Callable[..., Any], init: tuple[ArrayLike, ArrayLike], /, *,
              args: Any = (), tolerances: Mapping[str, float] | None = None,
              maxiter: int | None = None, callback: None = None) -> OptimizeResult:
    """Where `f(x, *args)` is 0 between the two points of `init`, for each element.

    The result has `x` and `f_x`, `success`, `status` (0 where it converged, -1 where the ends have
    one sign, -2 after `maxiter`, -3 where f is not finite), `bracket` and `f_bracket`, `nit` and
    `nfev`. `tolerances` are `xatol`, `xrtol`, `fatol` and `frtol`, by default those of the dtype.
    x is NaN where it failed, and differentiated by the implicit function theorem.
    Source: Chandrupatla, Adv. Eng. Softw. 28 (1997).

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.elementwise.find_root(
    ...     lambda x, c: x ** 3 - c, (0.0, 9.0), args=(ft.numpy.array([8.0, 27.0]),))
    >>> found.x.round(4).tolist()
    [2.0, 3.0]
    """
    _no_callback("find_root", callback)
    _of_points("find_root", init, 2)
    fun, (a, b) = _function("find_root", f, args, list(init))
    info = finfo(a.dtype)
    eps, tiny = float(info.eps), float(info.tiny)
    tol = _tolerances("find_root", tolerances, {"xatol": 4 * tiny, "xrtol": 4 * eps, "fatol": tiny,
                                                "frtol": 0.0})
    limit = int(math.log2(float(info.max)) - math.log2(tiny)) if maxiter is None else \
        known_size("optimize.elementwise.find_root", "maxiter", maxiter, 0)

    def search(start: Array) -> tuple[Array, Any]:
        f1, f2 = fun(a), fun(b)
        least = jnp.minimum(jnp.abs(f1), jnp.abs(f2))
        goal = tol["fatol"] + tol["frtol"] * least

        def status_of(s: Any) -> Array:
            x1, x2, _, f1, f2, *_ = s
            first = jnp.abs(f1) < jnp.abs(f2)
            x, value = jnp.where(first, x1, x2), jnp.where(first, f1, f2)
            done = (jnp.abs(value) <= goal) | (
                jnp.abs(x2 - x1) < jnp.abs(x) * tol["xrtol"] + tol["xatol"])
            lost = ~jnp.isfinite(f1) | ~jnp.isfinite(f2) | ~jnp.isfinite(x1) | ~jnp.isfinite(x2)
            same = jnp.sign(f1) == jnp.sign(f2)
            met = jnp.abs(value) <= goal
            return jnp.where(lost, -3, jnp.where(met, 0, jnp.where(same, -1, jnp.where(
                done, 0, 1))))

        def improve(s: Any) -> Any:
            x1, x2, _, f1, f2, _, t, nit, nfev = s
            open_ = status_of(s) == 1
            x = x1 + t * (x2 - x1)
            value = fun(x)
            same = jnp.sign(value) == jnp.sign(f1)
            y3, g3 = jnp.where(same, x1, x2), jnp.where(same, f1, f2)
            y2, g2 = jnp.where(same, x2, x1), jnp.where(same, f2, f1)
            y1, g1 = x, value
            xi, phi = _ratio(y1 - y2, y3 - y2), _ratio(g1 - g2, g3 - g2)
            curved = (1 - jnp.sqrt(jnp.maximum(1 - xi, 0)) < phi) & (
                phi < jnp.sqrt(jnp.maximum(xi, 0)))
            inverse = _ratio(g1, g1 - g2) * _ratio(g3, g3 - g2) - _ratio(
                y3 - y1, y2 - y1) * _ratio(g1, g3 - g1) * _ratio(g2, g2 - g3)
            nearest = jnp.where(jnp.abs(g1) < jnp.abs(g2), y1, y2)
            edge = 0.5 * _ratio(jnp.abs(nearest) * tol["xrtol"] + tol["xatol"], jnp.abs(y2 - y1))
            edge = jnp.minimum(edge, 0.5)
            t2 = jnp.clip(jnp.where(curved, inverse, 0.5), edge, 1 - edge)
            return _take(open_, (y1, y2, y3, g1, g2, g3, t2, nit + 1, nfev + 1), s)

        zero = jnp.zeros(a.shape, jnp.int32)
        begin = (a, b, b, f1, f2, f2, jnp.full_like(a, 0.5), zero, zero + 2)
        s, _ = lax.while_loop(lambda s: jnp.any(status_of(s[0]) == 1) & (s[1] < limit),
                              lambda s: (improve(s[0]), s[1] + 1), (begin, jnp.array(0)))
        status = status_of(s)
        status = jnp.where(status == 1, -2, status)
        x1, x2, _, f1, f2, _, _, nit, nfev = s
        x = jnp.where(jnp.abs(f1) < jnp.abs(f2), x1, x2)
        swap = x1 > x2
        ends = (jnp.where(swap, x2, x1), jnp.where(swap, x1, x2))
        values = (jnp.where(swap, f2, f1), jnp.where(swap, f1, f2))
        return x, (status, nit, nfev, ends, values)

    x, (status, nit, nfev, ends, values) = lax.custom_root(
        fun, a, lambda _, z: search(z), _elementwise_solve, has_aux=True)
    good = status >= -2
    good = good & (status != -1)
    return OptimizeResult(success=status == 0, status=status, x=jnp.where(good, x, math.nan),
                          f_x=jnp.where(good, fun(x), math.nan), nfev=nfev, nit=nit,
                          bracket=ends, f_bracket=values)


def _elementwise_solve(function: Callable[[Array], Array], y: Array) -> Array:
    """x with function(x) = y for a linear function that does not mix elements."""
    return y / function(jnp.ones_like(y))


def find_minimum(f: Callable[..., Any], init: tuple[ArrayLike, ArrayLike, ArrayLike], /, *,
                 args: Any = (), tolerances: Mapping[str, float] | None = None,
                 maxiter: int = 100, callback: None = None) -> OptimizeResult:
    """The minimum of `f(x, *args)` within three points, the middle one the lowest, of each element.

    The result is that of `find_root`; `status` is -1 where the middle is not the lowest.
    x is differentiated by the implicit function theorem.
    Source: Chandrupatla, Comput. Methods Appl. Mech. Eng. 152 (1998).

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.elementwise.find_minimum(
    ...     lambda x, c: (x - c) ** 2, (-5.0, 0.0, 5.0), args=(ft.numpy.array([1.0, 2.0]),))
    >>> found.x.round(3).tolist()
    [1.0, 2.0]
    """
    _no_callback("find_minimum", callback)
    _of_points("find_minimum", init, 3)
    fun, (a, m, b) = _function("find_minimum", f, args, list(init))
    info = finfo(a.dtype)
    eps, tiny = float(info.eps), float(info.tiny)
    tol = _tolerances("find_minimum", tolerances, {"xatol": tiny, "xrtol": math.sqrt(eps),
                                                   "fatol": tiny, "frtol": eps})
    limit = known_size("optimize.elementwise.find_minimum", "maxiter", maxiter, 0)
    lowest, highest = jnp.minimum(a, b), jnp.maximum(a, b)

    def search(start: Array) -> tuple[Array, Any]:
        def arranged(s: Any) -> Any:
            """With the larger part between the second point and the third."""
            x1, x2, x3, f1, f2, f3, *rest = s
            swap = jnp.abs(x3 - x2) < jnp.abs(x2 - x1)
            return (jnp.where(swap, x3, x1), x2, jnp.where(swap, x1, x3),
                    jnp.where(swap, f3, f1), f2, jnp.where(swap, f1, f3), *rest)

        def allowed(x2: Array) -> Any:
            return jnp.abs(x2) * tol["xrtol"] + tol["xatol"]

        def status_of(s: Any) -> Array:
            x1, x2, x3, f1, f2, f3, *_ = s
            lost = ~jnp.isfinite(x1 + x2 + x3 + f1 + f2 + f3)
            wrong = (f2 > f1) | (f2 > f3) | ((x2 - x1) * (x3 - x2) < 0)
            flat = f1 - 2 * f2 + f3 <= 2 * (jnp.abs(f2) * tol["frtol"] + tol["fatol"])
            done = (jnp.maximum(jnp.abs(x3 - x2), jnp.abs(x2 - x1)) <= 2 * allowed(x2)) | flat
            return jnp.where(lost, -3, jnp.where(wrong, -1, jnp.where(done, 0, 1)))

        def improve(s: Any) -> Any:
            open_ = status_of(s) == 1
            x1, x2, x3, f1, f2, f3, q0, nit, nfev = arranged(s)
            near, far = x2 - x1, x3 - x2
            u, v = near * (f3 - f2), far * (f1 - f2)
            q1 = 0.5 * (_ratio(u, u + v) * (x1 - x3) + x2 + x3)
            inner = jnp.abs(q1 - q0) < 0.5 * jnp.abs(near)
            xtol = allowed(x2)
            parabola = jnp.where(jnp.abs(q1 - x2) <= xtol, x2 + jnp.sign(far) * xtol, q1)
            x = jnp.where(inner, parabola, x2 + (2 - _PHI) * far)
            value = fun(x)
            beyond = jnp.sign(x - x2) == jnp.sign(far)
            higher = value > f2
            # the triple that holds the lowest point
            new = (jnp.where(beyond, jnp.where(higher, x1, x2), jnp.where(higher, x, x1)),
                   jnp.where(higher, x2, x),
                   jnp.where(beyond, jnp.where(higher, x, x3), jnp.where(higher, x3, x2)),
                   jnp.where(beyond, jnp.where(higher, f1, f2), jnp.where(higher, value, f1)),
                   jnp.where(higher, f2, value),
                   jnp.where(beyond, jnp.where(higher, value, f3), jnp.where(higher, f3, f2)),
                   q1, nit + 1, nfev + 1)
            return _take(open_, new, s)

        zero = jnp.zeros(a.shape, jnp.int32)
        begin = (a, m, b, fun(a), fun(m), fun(b), b, zero, zero + 3)
        s, _ = lax.while_loop(lambda s: jnp.any(status_of(s[0]) == 1) & (s[1] < limit),
                              lambda s: (improve(s[0]), s[1] + 1), (begin, jnp.array(0)))
        status = status_of(s)
        status = jnp.where(status == 1, -2, status)
        x1, x2, x3, f1, f2, f3, _, nit, nfev = s
        swap = x1 > x3
        ends = (jnp.where(swap, x3, x1), x2, jnp.where(swap, x1, x3))
        values = (jnp.where(swap, f3, f1), f2, jnp.where(swap, f1, f3))
        return x2, (status, nit, nfev, ends, values)

    def stationary(x: Array) -> Array:
        slope = grad(lambda z: jnp.sum(fun(z)))(x)
        return x - jnp.clip(x - slope, lowest, highest)

    x, (status, nit, nfev, ends, values) = lax.custom_root(
        stationary, m, lambda _, z: search(z), _elementwise_solve, has_aux=True)
    good = (status == 0) | (status == -2)
    return OptimizeResult(success=status == 0, status=status, x=jnp.where(good, x, math.nan),
                          f_x=jnp.where(good, fun(x), math.nan), nfev=nfev, nit=nit,
                          bracket=ends, f_bracket=values)


def bracket_root(f: Callable[..., Any], xl0: ArrayLike, xr0: ArrayLike | None = None, *,
                 xmin: ArrayLike | None = None, xmax: ArrayLike | None = None,
                 factor: ArrayLike | None = None, args: Any = (), maxiter: int = 1000
                 ) -> OptimizeResult:
    """Two points between which `f(x, *args)` changes its sign, for each element.

    From xl0 and xr0 (xl0 + 1) both ends move outward, each step `factor` (2) times as long as the
    one before, or, towards `xmin` and `xmax`, 1 / factor of what is left. The result has `bracket`
    and `f_bracket`, `success`, `status` (0, -2 after `maxiter`, -3 where f is not finite, -5 where
    points are not in order), `nit` and `nfev`. Without derivative.

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.elementwise.bracket_root(lambda x: x - 100, 0.0)
    >>> bool(found.bracket[0] < 100 < found.bracket[1])
    True
    """
    right = jnp.asarray(xl0) + 1 if xr0 is None else xr0
    low_end = -math.inf if xmin is None else xmin
    high_end = math.inf if xmax is None else xmax
    rate = 2.0 if factor is None else factor
    fun, (l0, r0, bottom, top, grow) = _function("bracket_root", f, args,
                                                 [xl0, right, low_end, high_end, rate])
    limit = known_size("optimize.elementwise.bracket_root", "maxiter", maxiter, 0)
    ordered = (bottom <= l0) & (l0 < r0) & (r0 <= top) & (grow > 1)
    width = r0 - l0

    def crossed(u: Array, v: Array) -> Array:
        return (jnp.sign(u) * jnp.sign(v) <= 0) & jnp.isfinite(u) & jnp.isfinite(v)

    def status_of(s: Any) -> Array:
        inner_l, l, inner_r, r, f_inner_l, fl, f_inner_r, fr, *_ = s
        found = crossed(f_inner_l, fl) | crossed(f_inner_r, fr)
        lost = ~jnp.isfinite(l) | ~jnp.isfinite(r) | jnp.isnan(fl) | jnp.isnan(fr)
        ended = ((l == bottom) | (l == inner_l)) & ((r == top) | (r == inner_r))
        ended = ended & (s[8] > 0)
        return jnp.where(~ordered, -5, jnp.where(found, 0, jnp.where(lost, -3, jnp.where(
            ended, -2, 1))))

    def outward(x: Array, first: Array, end: Array, sign: int, k: Array) -> Array:
        """The place after one more step: towards infinity or a bound."""
        power = grow ** (k + 1).astype(x.dtype)
        free = first + sign * width * (power - 1)
        bounded = end - (end - first) / jnp.where(jnp.isfinite(power), power, math.inf)
        return jnp.where(jnp.isfinite(end), jnp.where(jnp.isfinite(bounded), bounded, x), free)

    def improve(s: Any) -> Any:
        open_ = status_of(s) == 1
        _, l, _, r, _, fl, _, fr, nit, nfev = s
        l2, r2 = outward(l, l0, bottom, -1, nit), outward(r, r0, top, 1, nit)
        return _take(open_, (l, l2, r, r2, fl, fun(l2), fr, fun(r2), nit + 1, nfev + 2), s)

    zero = jnp.zeros(l0.shape, jnp.int32)
    f_l, f_r = fun(l0), fun(r0)
    # the first bracket is that between the two points
    begin = tuple(map(lax.stop_gradient,
                      (r0, l0, l0, r0, f_r, f_l, f_l, f_r, zero, zero + 2)))
    s, _ = lax.while_loop(lambda s: jnp.any(status_of(s[0]) == 1) & (s[1] < limit),
                          lambda s: (improve(s[0]), s[1] + 1), (begin, jnp.array(0)))
    inner_l, l, inner_r, r, g_l, fl, g_r, fr, nit, nfev = s
    status = status_of(s)
    status = jnp.where(status == 1, -2, status)
    at_left = crossed(g_l, fl)
    ends = (jnp.where(at_left, jnp.minimum(l, inner_l), jnp.minimum(inner_r, r)),
            jnp.where(at_left, jnp.maximum(l, inner_l), jnp.maximum(inner_r, r)))
    straight = l < inner_l
    values = (jnp.where(at_left, jnp.where(straight, fl, g_l), g_r),
              jnp.where(at_left, jnp.where(straight, g_l, fl), fr))
    return OptimizeResult(success=status == 0, status=status, bracket=ends, f_bracket=values,
                          nfev=nfev, nit=nit)


def bracket_minimum(f: Callable[..., Any], xm0: ArrayLike, *, xl0: ArrayLike | None = None,
                    xr0: ArrayLike | None = None, xmin: ArrayLike | None = None,
                    xmax: ArrayLike | None = None, factor: ArrayLike | None = None,
                    args: Any = (), maxiter: int = 1000) -> OptimizeResult:
    """Three points of which the middle one is the lowest of `f(x, *args)`, for each element.

    From xl0 < xm0 < xr0 (0.5 to both sides, or half of what is left to a bound) it goes downhill,
    each step `factor` (2) times as long as the last, or, towards `xmin` and `xmax`, 1 / factor of
    what is left. The result is that of `bracket_root`, and `status` -1 where the lowest
    point is at a bound. Without derivative.

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.elementwise.bracket_minimum(lambda x: (x - 20) ** 2, 0.0)
    >>> bool(found.bracket[0] < 20 < found.bracket[2])
    True
    """
    middle = jnp.asarray(xm0)
    low_end = -math.inf if xmin is None else xmin
    high_end = math.inf if xmax is None else xmax
    rate = 2.0 if factor is None else factor
    left = jnp.maximum(middle - 0.5, (middle + low_end) / 2) if xl0 is None else xl0
    right = jnp.minimum(middle + 0.5, (middle + high_end) / 2) if xr0 is None else xr0
    fun, (l, m, r, bottom, top, grow) = _function(
        "bracket_minimum", f, args, [left, xm0, right, low_end, high_end, rate])
    limit = known_size("optimize.elementwise.bracket_minimum", "maxiter", maxiter, 0)
    ordered = (bottom <= l) & (l < m) & (m < r) & (r <= top) & (grow > 1)
    fl, fm, fr = fun(l), fun(m), fun(r)
    # downhill is to the right where the left end is the higher one
    flip = fl < fr
    end, first = jnp.where(flip, bottom, top), jnp.where(flip, l, r)

    def status_of(s: Any) -> Array:
        _, b, c, fa, fb, fc, *_ = s
        found = (fb <= fa) & (fb <= fc) & ((fb < fa) | (fb < fc))
        lost = ~jnp.isfinite(fa + fb + fc) | ~jnp.isfinite(c)
        stuck = (b == c) | (c == end)
        return jnp.where(~ordered, -5, jnp.where(found & ~jnp.isnan(fa + fc), 0, jnp.where(
            lost, -3, jnp.where(stuck, -1, 1))))

    def improve(s: Any) -> Any:
        open_ = status_of(s) == 1
        _, b, c, _, fb, fc, nit, nfev = s
        free = first + (first - m) * grow ** (nit + 1).astype(c.dtype)
        d = jnp.where(jnp.isfinite(end), end - (end - c) / grow, free)
        return _take(open_, (b, c, d, fb, fc, fun(d), nit + 1, nfev + 1), s)

    zero = jnp.zeros(l.shape, jnp.int32)
    begin = tuple(map(lax.stop_gradient, (
        jnp.where(flip, r, l), m, jnp.where(flip, l, r), jnp.where(flip, fr, fl), fm,
        jnp.where(flip, fl, fr), zero, zero + 3)))
    s, _ = lax.while_loop(lambda s: jnp.any(status_of(s[0]) == 1) & (s[1] < limit),
                          lambda s: (improve(s[0]), s[1] + 1), (begin, jnp.array(0)))
    a, b, c, fa, fb, fc, nit, nfev = s
    status = status_of(s)
    status = jnp.where(status == 1, -2, status)
    ends = (jnp.where(flip, c, a), b, jnp.where(flip, a, c))
    values = (jnp.where(flip, fc, fa), fb, jnp.where(flip, fa, fc))
    return OptimizeResult(success=status == 0, status=status, bracket=ends, f_bracket=values,
                          nfev=nfev, nit=nit)


publish(globals(), __all__)
