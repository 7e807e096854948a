"""Where increasing functions are 0: the inverses of distribution functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop
from functrans.typing import Array

__all__ = ["increasing_root"]

_CLOSE: Final = 1e-8  # of a step of Newton's: what it leaves is the square of this
_NEAR: Final = 1e-7  # of the value
_ROUNDING: Final = 2e-16
_LIMIT: Final = 200


def increasing_root(fun: Callable[[Array], tuple[Array, Array]], low: Array, high: Array,
                    start: Array, limit: int = _LIMIT) -> Array:
    """x between low and high where `fun(x)`, a pair of an increasing value and its slope, is 0.

    Newton's method, and the middle of the bracket where a step would leave it. From an end that is
    infinite strides of 1, 2, 4 ... go on until there is a bracket, and no step is much longer.
    """
    def step(k: Any, low: Array, high: Array, x: Array, moved: Array, off: Array, stride: Array
             ) -> tuple[Array, ...]:
        value, slope = fun(x)
        low, high = jnp.where(value < 0, x, low), jnp.where(value >= 0, x, high)
        new = x - value / slope
        endless = high - low == math.inf
        longest = jnp.where(endless, jnp.minimum(moved, 2.0 * stride), 0.7 * moved)
        inside = (new > low) & (new < high) & (lax.abs(new - x) <= longest)
        done = value == 0
        aside = jnp.where(endless, jnp.where(value < 0, x + stride, x - stride),
                          0.5 * (low + high))
        new = jnp.where(done, x, jnp.where(inside, new, aside))
        # a step to the middle says nothing of the distance that is left
        return (low, high, new, jnp.where(inside | done, lax.abs(new - x), 1e300),
                lax.abs(value), jnp.where(endless & ~inside, 2.0 * stride, stride))

    def going(low: Array, high: Array, x: Array, moved: Array, off: Array, stride: Array) -> Array:
        # around an end of a support x is close before the value is
        width = jnp.maximum(lax.abs(x), 1.0)
        return ((moved > _CLOSE * width) | (off > _NEAR)) & (high - low > _ROUNDING * width)

    start = jnp.clip(start, low, high)
    endless = jnp.full_like(start, 1e300)
    return loop(step, (low, high, start, endless, endless, jnp.ones_like(start)), going, limit)[2]
