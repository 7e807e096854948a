"""direct: the lowest value in a box, by dividing rectangles."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.ops import segment_min
from functrans.scipy.arguments import known_size, refused
from functrans.scipy.named_result import OptimizeResult
from functrans.scipy.optimize.global_minima import box_of
from functrans.scipy.optimize.implicit import Function, scalar_value, solution, with_args
from functrans.transforms.derivatives import grad
from functrans.transforms.vmap import vmap
from functrans.typing import Array

_DEEPEST = 40  # trisections of one side: 3**-40 is below the epsilon of doubles


class _Rectangles(NamedTuple):
    """Rectangles in the unit box: centers, trisections of each side, values; the first `used`."""

    centers: Array
    levels: Array
    values: Array
    used: Array
    nit: Array


def direct(func: Function, bounds: Any, *, args: tuple[Any, ...] = (), eps: float = 1e-4,
           maxfun: int | None = None, maxiter: int = 1000, locally_biased: bool = True,
           f_min: float = -math.inf, f_min_rtol: float = 1e-4, vol_tol: float = 1e-16,
           len_tol: float = 1e-6, callback: None = None) -> OptimizeResult:
    """The lowest point of `func(x, *args)` in a box, without derivatives and random numbers.

    Of rectangles those that a Lipschitz constant makes the best are divided into thirds, of each
    size one at a time. With `locally_biased` a size is that of the longest side, else that of the
    diagonal, and all that are equal are divided. It ends (`status`) at `maxfun` evaluations (1000
    for each variable, 1), `maxiter` iterations (2), within `f_min_rtol` of a known minimum `f_min`
    (3), or at a best rectangle of volume `vol_tol` (4) or half-size `len_tol` (5); `success` is
    that of the last three. It runs under `jit` and `vmap`; x has the derivatives of a minimum.
    Sources: Jones et al., J. Optim. Theory Appl. 79 (1993); Gablonsky and Kelley, J. Global Optim.
    21 (2001).

    >>> import functrans as ft
    >>> f = lambda x: ((x - 0.3) ** 2).sum() + ft.numpy.sin(9 * x[0]) ** 2
    >>> found = ft.scipy.optimize.direct(f, [(-1.0, 2.0), (-1.0, 1.0)])
    >>> print(found.x.round(2), found.status)
    [0.35 0.3 ] 1
    """
    if callback is not None:
        raise refused("optimize.direct", "callback", "the search is a compiled loop.",
                      "functrans.debug.callback within func")
    of_args = with_args("direct", func, args)
    lower, upper = box_of("direct", bounds)
    n = lower.size
    for name, given, top in (("eps", eps, math.inf), ("vol_tol", vol_tol, 1.0),
                             ("len_tol", len_tol, 1.0), ("f_min_rtol", f_min_rtol, 1.0)):
        if not 0 <= given <= top:
            raise ArgumentError(f"functrans.scipy.optimize.direct: {name} is {given}.",
                                where=user_source(), why=f"it is from 0 to {top}.")
    most = known_size("optimize.direct", "maxfun", 1000 * n if maxfun is None else maxfun)
    rounds = known_size("optimize.direct", "maxiter", maxiter)
    capacity = most + 2 * n * (n + 2)
    classes = _DEEPEST + 1 if locally_biased else n * _DEEPEST + 1
    sizes = jnp.asarray(_sizes(n, locally_biased)).astype(lower.dtype)

    def value(u: Array) -> Array:
        found = scalar_value("direct", of_args, lower + (upper - lower) * u)
        return jnp.where(jnp.isnan(found), math.inf, found)

    def class_of(levels: Array) -> Array:
        return jnp.min(levels, axis=-1) if locally_biased else jnp.sum(levels, axis=-1)

    def best_of(s: _Rectangles) -> tuple[Array, Array]:
        place = jnp.argmin(s.values)
        return place, s.values[place]

    def near(lowest: Array) -> Array:
        if not math.isfinite(f_min):
            return jnp.array(False)
        gap = lowest - f_min if f_min == 0 else (lowest - f_min) / abs(f_min)
        return gap <= f_min_rtol

    def small(levels: Array) -> tuple[Array, Array]:
        volume = 3.0 ** -jnp.sum(levels).astype(lower.dtype)
        sides = 3.0 ** -levels.astype(lower.dtype) / 2
        length = jnp.max(sides) if locally_biased else jnp.sqrt(jnp.sum(sides**2)) / math.sqrt(n)
        return volume <= vol_tol, length <= len_tol

    def unfinished(s: _Rectangles) -> Array:
        place, lowest = best_of(s)
        volume, length = small(s.levels[place])
        deep = jnp.min(s.levels[place]) >= _DEEPEST - 1
        more = (s.used < most) & ((s.nit < rounds) | (s.nit == 1))
        return more & ~(near(lowest) | volume | length | deep)

    def chosen(s: _Rectangles) -> tuple[Array, Array]:
        """Of each size the best rectangle, and whether it may have the lowest point."""
        kind = jnp.where(jnp.arange(capacity) < s.used, class_of(s.levels), classes)
        lows = segment_min(s.values, kind, classes + 1)[:classes]
        places = jnp.where(s.values == lows[jnp.minimum(kind, classes - 1)],
                           jnp.arange(capacity), capacity)
        where = segment_min(places, kind, classes + 1)[:classes]
        there = (lows < math.inf) & (where < capacity)
        rise = lows[:, None] - lows[None]
        run = sizes[:, None] - sizes[None]
        slope = rise / jnp.where(run == 0, 1, run)
        low = jnp.max(jnp.where(there[None] & (run > 0), slope, -math.inf), axis=1)
        high = jnp.min(jnp.where(there[None] & (run < 0), slope, math.inf), axis=1)
        _, lowest = best_of(s)
        bound = lows - jnp.where(jnp.isfinite(high), high, 0) * sizes
        good = ~jnp.isfinite(high) | (bound <= lowest - eps * jnp.abs(lowest))
        return where, there & (low <= high) & (high > 0) & good

    def divided(s: _Rectangles, place: Array) -> _Rectangles:
        center, levels = s.centers[place], s.levels[place]
        long = levels == jnp.min(levels)
        step = 3.0 ** -(jnp.min(levels) + 1).astype(lower.dtype)
        moves = step * jnp.eye(n, dtype=lower.dtype)
        points = jnp.stack([center + moves, center - moves], axis=1).reshape(2 * n, n)
        heights = vmap(value)(points)
        worth = jnp.where(long, jnp.min(heights.reshape(n, 2), axis=1), math.inf)
        order = jnp.argsort(worth)
        rank = jnp.zeros(n, order.dtype).at[order].set(jnp.arange(n, dtype=order.dtype))
        # along the best side is divided first: its thirds stay the largest
        new_levels = levels + ((rank[None] <= rank[:, None]) & long[None]).astype(levels.dtype)
        slot = s.used + 2 * (jnp.cumsum(long) - 1)
        slots = jnp.where(long[:, None], slot[:, None] + jnp.arange(2), capacity).reshape(-1)
        return _Rectangles(
            s.centers.at[slots].set(points, mode="drop"),
            s.levels.at[slots].set(jnp.repeat(new_levels, 2, axis=0), mode="drop").at[place].add(
                long.astype(levels.dtype)),
            s.values.at[slots].set(heights, mode="drop"), s.used + 2 * jnp.sum(long), s.nit)

    def improve(s: _Rectangles) -> _Rectangles:
        where, good = chosen(s)

        lows = s.values[jnp.minimum(where, capacity - 1)]

        def one(i: Any, s: _Rectangles) -> _Rectangles:
            if locally_biased:
                found: _Rectangles = lax.cond(good[i] & (s.used + 2 * n <= capacity), divided,
                                              lambda s, _: s, s, where[i])
                return found

            def equals(s: _Rectangles) -> Any:
                there = jnp.arange(capacity) < s.used
                return there & (class_of(s.levels) == i) & (s.values == lows[i])

            # those that are divided become smaller, and are of this class no more
            found = lax.while_loop(
                lambda s: good[i] & (s.used + 2 * n <= capacity) & jnp.any(equals(s)),
                lambda s: divided(s, jnp.argmax(equals(s))), s)
            return found

        s = lax.fori_loop(0, classes, one, s)
        return s._replace(nit=s.nit + 1)

    def search(_: Array) -> tuple[Array, Any]:
        middle = jnp.full(n, 0.5, lower.dtype)
        begin = _Rectangles(
            jnp.zeros((capacity, n), lower.dtype).at[0].set(middle),
            jnp.zeros((capacity, n), jnp.int32),
            jnp.full(capacity, math.inf, lower.dtype).at[0].set(value(middle)),
            jnp.array(1), jnp.array(1))
        s = lax.while_loop(unfinished, improve, begin)
        place, lowest = best_of(s)
        volume, length = small(s.levels[place])
        status = jnp.where(near(lowest), 3, jnp.where(volume, 4, jnp.where(length, 5, jnp.where(
            s.used >= most, 1, 2))))
        return lower + (upper - lower) * s.centers[place], (status, s.used, s.nit)

    def stationary(x: Array) -> Array:
        slope = grad(lambda v: scalar_value("direct", of_args, v))(x)
        return x - jnp.clip(x - slope, lower, upper)

    x, (status, nfev, nit) = solution(stationary, (lower + upper) / 2, search)
    return OptimizeResult(x=x, fun=scalar_value("direct", of_args, x), status=status,
                          success=status > 2, nfev=nfev, nit=nit)


def _sizes(n: int, biased: bool) -> Any:
    """The half-size of a rectangle by its class: of its longest side, or of its diagonal."""
    if biased:
        return 3.0 ** -np.arange(_DEEPEST + 1) / 2
    total = np.arange(n * _DEEPEST + 1)
    level, more = total // n, total % n
    return np.sqrt((n - more) * 9.0**-level + more * 9.0 ** -(level + 1)) / 2
