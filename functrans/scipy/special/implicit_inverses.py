"""Inverses of distribution functions in one of their parameters, by brackets and secants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, partials, pushed
from functrans.typing import Array

__all__ = ["inverse", "positive", "real", "rising_root"]

_FARTHEST = 690.0
_LIMIT = 200
_CLOSE = 2e-16


def positive(u: Array, *args: Array) -> Array:
    """A parameter above 0 as the exponential of one of all numbers."""
    return lax.exp(u)


def real(u: Array, *args: Array) -> Array:
    """A parameter of all numbers, of which equal steps are equal factors far from 0."""
    return lax.sinh(u)


def rising_root(fun: Callable[[Array], Array], start: Array) -> Array:
    """u, |u| < 690, where a rising function of all numbers is 0; beyond that infinity.

    The bracket grows outwards in doubling steps. Inside it the secant's point is taken, of which
    the end that stays counts half the next time (the Illinois method), and every third time the
    middle.
    """
    def step(k: Any, low: Array, high: Array, at_low: Array, at_high: Array, u: Array, off: Array
             ) -> tuple[Array, ...]:
        value = fun(u)
        below = value < 0
        stays_low, stays_high = ~below & (off > 0), below & (off < 0)
        at_low = jnp.where(below, value, jnp.where(stays_low, 0.5 * at_low, at_low))
        at_high = jnp.where(below, jnp.where(stays_high, 0.5 * at_high, at_high), value)
        low, high = jnp.where(below, u, low), jnp.where(below, high, u)
        inside = (lax.abs(low) < math.inf) & (lax.abs(high) < math.inf)
        middle = 0.5 * low + 0.5 * high
        secant = high - at_high * ((high - low) / (at_high - at_low))
        good = (secant > low) & (secant < high) & (jnp.remainder(k, 3.0) != 0)
        wide = lax.exp(k * math.log(2.0) - math.log(2.0))
        outer = jnp.where(below, u + wide, u - wide)
        new = jnp.where(inside, jnp.where(good, secant, middle), outer)
        new = jnp.where((lax.abs(value) <= _CLOSE) | jnp.isnan(value), u, new)
        return low, high, at_low, at_high, new, value

    def going(low: Array, high: Array, at_low: Array, at_high: Array, u: Array, off: Array
              ) -> Array:
        width = high - low > 3e-16 * jnp.maximum(lax.abs(u), 0.1)
        return width & (lax.abs(off) > _CLOSE) & (lax.abs(u) < 2.0 * _FARTHEST)

    endless = jnp.full_like(start, math.inf)
    state = (-endless, endless, -endless, endless, start, endless)
    low, high, _, _, u, off = loop(step, state, going, _LIMIT)
    # where the search ended on one side of every root there is none, or the function is NaN
    found = (lax.abs(low) < math.inf) & (lax.abs(high) < math.inf) | (lax.abs(off) <= 1e-6)
    u = jnp.where(found | (lax.abs(u) > _FARTHEST), u, math.nan)
    return jnp.where(u > _FARTHEST, math.inf, jnp.where(u < -_FARTHEST, -math.inf, u))


def inverse(cdf: Callable[..., Array], place: int, rising: bool | Callable[..., Array],
            upper: Callable[..., Array] | None = None,
            parameter: Callable[..., Array] = positive) -> Callable[..., Array]:
    """The value of the argument at `place` for which cdf is the number that stands there.

    `rising` says whether cdf grows with it, `upper` is 1 less cdf where that has more digits, and
    `parameter` makes it of any number. Derivatives are those of the implicit function.
    """
    def value(*args: Array) -> Array:
        p = args[place]
        inside = (p > 0) & (p < 1)
        for i, x in enumerate(args):
            if i != place:
                inside = inside & ~jnp.isnan(x)
        safe = [jnp.where(inside, x, 0.5) for x in args]
        q = safe[place]
        up = jnp.asarray(rising(*safe) if callable(rising) else rising)
        tail = q > 0.5

        def off(u: Array) -> Array:
            at = parameter(u, *safe)
            given = [at if i == place else x for i, x in enumerate(safe)]
            lower = cdf(*given)
            other = jnp.maximum(1.0 - lower, 0.0) if upper is None else upper(*given)
            # of the smaller tail by its logarithm, of which secants are good far out
            below = lax.log(jnp.where(tail, 1.0, lower)) - lax.log(jnp.where(tail, 1.0, q))
            above = lax.log1p(-jnp.where(tail, q, 0.5)) - lax.log(jnp.where(tail, other, 0.5))
            found = jnp.where(tail, above, below)
            return jnp.where(up, found, -found)

        u = rising_root(off, jnp.zeros_like(q))
        found = parameter(u, *safe)
        low, high = (parameter(jnp.full_like(q, end), *safe) for end in (-math.inf, math.inf))
        first, last = jnp.where(up, low, high), jnp.where(up, high, low)
        ends = jnp.where(p == 0, first, jnp.where(p == 1, last, math.nan))
        return jnp.where(inside, found, ends)

    def rule(i: int) -> Callable[..., Array]:
        def slope(out: Array, *args: Array) -> Array:
            at = [out if j == place else x for j, x in enumerate(args)]
            own = pushed(cdf, place)(None, *at)
            if i == place:
                found: Array = jnp.ones_like(own) / own
                return found
            other: Array = -pushed(cdf, i)(None, *at) / own
            return other

        return slope

    count = cdf.__code__.co_argcount
    ruled: Callable[..., Array] = partials(*(rule(i) for i in range(count)))(value)
    return ruled
