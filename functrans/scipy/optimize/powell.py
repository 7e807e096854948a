"""Powell's method: minima along directions that become conjugate, without derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.optimize.scalar_minima import minimum_of_line, minimum_within
from functrans.typing import Array

_FAR = 1e10  # where a line without bounds ends


class Search(NamedTuple):
    """The state of a search: a point, its value, the directions, and the last decrease."""

    x: Array
    value: Array
    directions: Array
    before: Array
    nit: Array
    nfev: Array


def powell(fun: Callable[[Array], Array], x: Array, xtol: float, ftol: float, maxiter: int,
           limits: tuple[Array, Array] | None, directions: Array | None = None
           ) -> tuple[Search, Array]:
    """The state at a minimum, and whether the last round changed little.

    The first directions are the axes, or rows of `directions`.

    Source: Powell, Computer Journal 7 (1964); Brent, Algorithms for Minimization Without
    Derivatives (1973), ch. 7.
    """
    n = x.size
    root = math.sqrt(float(finfo(x.dtype).eps))

    def along(x: Array, value: Array, d: Array) -> tuple[Array, Array, Array]:
        def line(t: Array) -> Array:
            return fun(x + t * d)

        if limits is None:
            t, calls = minimum_of_line(line, jnp.zeros_like(value), jnp.ones_like(value),
                                       max(100 * xtol, root), 100)
        else:
            # the part of the line within the bounds
            moving = d != 0
            ends = [(side - x) / jnp.where(moving, d, 1) for side in limits]
            low = jnp.max(jnp.where(moving, jnp.minimum(*ends), -_FAR))
            high = jnp.min(jnp.where(moving, jnp.maximum(*ends), _FAR))
            t, calls = minimum_within(line, jnp.minimum(low, 0), jnp.maximum(high, 0), root,
                                      xtol, 100)
        point = x + t * d
        if limits is not None:
            point = jnp.clip(point, *limits)
        now = fun(point)
        better = now < value
        return jnp.where(better, point, x), jnp.where(better, now, value), calls + 1

    def small(s: Search) -> Array:
        return 2 * (s.before - s.value) <= ftol * (jnp.abs(s.before) + jnp.abs(s.value)) + 1e-20

    def unfinished(s: Search) -> Any:
        return ((s.nit == 0) | ~small(s)) & (s.nit < maxiter) & ~jnp.isnan(s.value)

    def improve(s: Search) -> Search:
        def one(i: Any, state: Any) -> Any:
            x, value, best, which, nfev = state
            point, now, calls = along(x, value, s.directions[i])
            larger = value - now > best
            return (point, now, jnp.where(larger, value - now, best), jnp.where(larger, i, which),
                    nfev + calls)

        zero = jnp.zeros_like(s.value)
        start = (s.x, s.value, zero, jnp.array(0), s.nfev)
        x, value, best, which, nfev = lax.fori_loop(0, n, one, start)
        way = x - s.x
        beyond = x + way
        if limits is not None:
            beyond = jnp.clip(beyond, *limits)
        far = fun(beyond)
        curved = 2 * (s.value + far - 2 * value) * (s.value - value - best) ** 2
        useful = (far < s.value) & (curved < best * (s.value - far) ** 2) & jnp.any(way != 0)

        def turn(_: Any) -> Any:
            point, now, calls = along(x, value, way)
            # the direction of the largest decrease is most of the new one
            changed = s.directions.at[which].set(s.directions[-1]).at[-1].set(way)
            return point, now, changed, calls

        x, value, directions, calls = lax.cond(
            useful, turn, lambda _: (x, value, s.directions, jnp.zeros_like(nfev)), x)
        return Search(x, value, directions, s.value, s.nit + 1, nfev + calls + 1)

    value = fun(x)
    axes = jnp.eye(n, dtype=x.dtype) if directions is None else directions.astype(x.dtype)
    start = Search(x, value, axes, value, jnp.array(0), jnp.array(1))
    end = lax.while_loop(unfinished, improve, start)
    return end, small(end) & (end.nit > 0) & jnp.isfinite(end.value)
