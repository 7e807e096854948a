"""Quantiles of distributions without a formula for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, partials
from functrans.scipy.special.roots import increasing_root
from functrans.scipy.stats.slopes import slope_of_quantile
from functrans.typing import Array

__all__ = ["numeric_quantile", "whole_quantile"]

_STEPS: Final = 1300
"""Doublings to the largest number, and then those of a search between two."""


class _Family(Protocol):
    def ends(self, *shapes: Array) -> tuple[Any, Any]: ...

    def log_density(self, z: Array, *shapes: Array) -> Array: ...

    def below(self, z: Array, *shapes: Array) -> Array: ...

    def log_tail(self, z: Array, lower: Array, *shapes: Array) -> Array: ...


def numeric_quantile(family: _Family, q: Array, shapes: Sequence[Array], upper: bool) -> Array:
    """z with below(z) = q, of `upper` with above(z) = q, for q in (0, 1).

    By Newton's method on the logarithm of the smaller tail, in float64; its derivatives are those
    of the implicit function.
    """
    def found(p: Array, *rest: Array) -> Array:
        low, high = (jnp.zeros_like(p) + v for v in family.ends(*rest))
        open_low, open_high = low == -math.inf, high == math.inf
        first = jnp.where(open_low, jnp.where(open_high, 0.0, high - 1.0),
                          jnp.where(open_high, low + 1.0, 0.5 * (low + high)))
        small = p <= 0.5
        goal = lax.log(jnp.where(small, p, 1.0 - p))
        lower = small != upper

        def miss(z: Array) -> tuple[Array, Array]:
            tail = family.log_tail(z, lower, *rest)
            off = tail - goal
            return jnp.where(lower, off, -off), lax.exp(family.log_density(z, *rest) - tail)

        return increasing_root(miss, low, high, first, _STEPS)

    def slope(i: int) -> Callable[..., Array]:
        moved = slope_of_quantile(family, i)
        return lambda out, p, *rest: moved(out, *rest)

    sign = -1.0 if upper else 1.0
    rules = [lambda out, p, *rest: sign * lax.exp(-family.log_density(out, *rest)),
             *(slope(i) for i in range(len(shapes)))]
    double = [x.astype(np.float64) for x in (q, *shapes)]
    out: Array = partials(*rules)(found)(*double)
    return out.astype(q.dtype)


def whole_quantile(reached: Callable[[Array], Array], low: Array, high: Array, inside: Array
                   ) -> Array:
    """The least whole number in [low, high] that is reached: by doubling, then by halving."""
    base = jnp.where(low > -math.inf, low, 0.0)

    def widen(k: Any, top: Array, step: Array) -> tuple[Array, Array]:
        return jnp.minimum(top + step, high), 2.0 * step

    def sink(k: Any, bottom: Array, step: Array) -> tuple[Array, Array]:
        return jnp.maximum(bottom - step, low), 2.0 * step

    one = jnp.ones_like(low)
    top, _ = loop(widen, (base, one), lambda top, step: inside & (top < high) & ~reached(top), 60)
    bottom, _ = loop(sink, (base - 1.0, one), lambda bottom, step: (
        inside & (bottom >= low) & reached(bottom)), 60)

    def halve(k: Any, bottom: Array, top: Array) -> tuple[Array, Array]:
        middle = lax.floor(0.5 * (bottom + top))
        there = reached(middle)
        return jnp.where(there, bottom, middle), jnp.where(there, middle, top)

    return loop(halve, (bottom, top), lambda bottom, top: inside & (top - bottom > 1.0), 60)[1]
