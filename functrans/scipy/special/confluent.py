"""The confluent hypergeometric function of the second kind, and Wright's Bessel function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, partials, pushed, wide
from functrans.scipy.special.gammas import rgamma
from functrans.typing import Array

__all__ = ["hyperu", "hyperu_", "log_wright_bessel", "wright_bessel"]

_LIMIT: Final = 20_000
_MOST: Final = 1e4


def _by_integral(a: Array, b: Array, x: Array) -> Array:
    """log U(a, b, x) for a >= 1 and x > 0: that of s^(a - 1) exp(-s) (1 + s / x)^(b - a - 1).

    By the trapezoidal rule over log s around the peak, in steps that are a fraction of its width
    (DLMF 13.4.4 with t = s / x).
    """
    power = b - a - 1.0
    # where a - s + power s / (x + s) is 0
    half = 0.5 * lax.stop_gradient(b - 1.0 - x)
    shape, place = lax.stop_gradient(a), lax.stop_gradient(x)
    root = lax.sqrt(half * half + shape * place)
    peak = jnp.where(half > 0, half + root, shape * place / (root - half))
    fixed = lax.stop_gradient(power)
    width = 1.0 / lax.sqrt(jnp.maximum(peak - fixed * place * peak / (place + peak) ** 2, 1e-3))
    step = jnp.minimum(0.2, 0.4 * width)
    at = lax.log(peak)

    def height(t: Any) -> Any:
        s = lax.exp(t)
        return a * t - s + power * lax.log1p(s / x)

    top = height(at)

    def walk(k: Any, total: Array, last: Array) -> tuple[Array, Array]:
        up, down = lax.exp(height(at + k * step) - top), lax.exp(height(at - k * step) - top)
        return total + (up + down), up + down

    one = jnp.ones_like(x)
    total, _ = loop(walk, (one, one), lambda total, last: last > 1e-19 * total, _LIMIT)
    found: Array = lax.log(step * total) + top - a * lax.log(x) - lax.lgamma(a)
    return found


def _hyperu_value(a: Array, b: Array, x: Array) -> Array:
    known = (lax.abs(a) < _MOST) & (lax.abs(b) < _MOST) & (x >= 0)
    some = known & (x > 0) & (x < math.inf)
    p, q, z = (jnp.where(some, v, 1.0) for v in (a, b, x))
    steps = lax.stop_gradient(jnp.maximum(lax.ceil(1.0 - p), 0.0))
    high = p + steps
    logs = _by_integral(jnp.stack([high, high + 1.0]), jnp.stack([q, q]), jnp.stack([z, z]))
    # down to the order a, where U grows as fast as any solution (13.3.7), from one scale
    scale = jnp.where(steps > 0, lax.stop_gradient(logs[0]), 0.0)

    def down(k: Any, here: Array, above: Array, i: Array) -> tuple[Array, ...]:
        c = p + i
        before = (z + 2.0 * c - q) * here - c * (c - q + 1.0) * above
        return before, here, i - 1.0

    here, _, _ = loop(down, (lax.exp(logs[0] - scale), lax.exp(logs[1] - scale), steps),
                          lambda here, above, i: i > 0.5, int(_MOST) + 2)
    value = here * lax.exp(scale)
    small = (b < 1) & known
    c, d = jnp.where(small, b, 0.0), jnp.where(small, a - b + 1.0, 1.0)
    at_0 = jnp.where(small, lax.exp(lax.lgamma(1.0 - c)) * rgamma(d), math.inf)
    far = jnp.where(a > 0, 0.0, jnp.where(a == 0, 1.0, math.inf))
    return jnp.where(some, value, jnp.where(known, jnp.where(x == 0, at_0, far), math.nan))


hyperu_: Callable[..., Array] = partials(
    pushed(_hyperu_value, 0), pushed(_hyperu_value, 1),
    lambda out, a, b, x: -a * hyperu_(a + 1.0, b + 1.0, x))(_hyperu_value)


@wide
def hyperu(a: Array, b: Array, x: Array) -> Array:
    """Tricomi's confluent hypergeometric function U(a, b, x) for x >= 0 and |a|, |b| < 10,000.

    An integral of positive numbers for a >= 1 (DLMF 13.4.4), and down from there by the recurrence
    over a.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hyperu(1.0, 2.0, 4.0)), 4)
    0.25
    """
    return hyperu_(a, b, x)


# Wright's Bessel function ----------------------------------------------------------------------


def _log_wright_value(a: Array, b: Array, x: Array) -> Array:
    known = (a >= 0) & (b >= 0) & (x >= 0) & (a < math.inf) & (b < math.inf)
    some = known & (x > 0) & (x < math.inf)
    p, q, z = jnp.where(some, a, 1.0), jnp.where(some, b, 1.0), jnp.where(some, x, 1.0)
    log = lax.log(z)

    def height(k: Array) -> Array:
        inner = p * k + q
        zero = inner <= 0
        gamma = lax.lgamma(jnp.where(zero, 1.0, inner))
        return jnp.where(zero, -math.inf, k * log - lax.lgamma(k + 1.0) - gamma)

    # the largest term is where k (p k + q)^p is x or so: by bisection of the logarithm
    def halve(i: Any, low: Array, high: Array) -> tuple[Array, Array]:
        middle = 0.5 * (low + high)
        k = lax.exp(middle)
        rises = middle + p * lax.log(p * k + q + 1e-300) < log
        return jnp.where(rises, middle, low), jnp.where(rises, high, middle)

    fixed = jnp.maximum(lax.stop_gradient(log), 0.0)
    low, _ = loop(halve, (-jnp.ones_like(z), fixed + 1.0), lambda low, high: high - low > 1e-3, 60)
    at = lax.stop_gradient(jnp.maximum(lax.floor(lax.exp(low)), jnp.where(q == 0, 1.0, 0.0)))
    top = height(at)

    def walk(k: Any, total: Array, last: Array) -> tuple[Array, Array]:
        up = lax.exp(height(at + k) - top)
        down = jnp.where(at - k >= 0, lax.exp(height(jnp.maximum(at - k, 0.0)) - top), 0.0)
        return total + (up + down), up + down

    one = jnp.ones_like(z)
    total, _ = loop(walk, (one, one), lambda total, last: last > 1e-18 * total, 1_000_000)
    value = top + lax.log(total)
    positive = jnp.where(b > 0, b, 1.0)
    at_0 = jnp.where(b == 0, -math.inf, -lax.lgamma(positive))
    return jnp.where(some, value, jnp.where(known, jnp.where(x == 0, at_0, math.inf), math.nan))


_log_wright: Callable[..., Array] = partials(
    pushed(_log_wright_value, 0), pushed(_log_wright_value, 1),
    lambda out, a, b, x: lax.exp(_log_wright(a, a + b, x) - out))(_log_wright_value)


@wide
def log_wright_bessel(a: Array, b: Array, x: Array) -> Array:
    """The logarithm of wright_bessel(a, b, x), which may be beyond the largest number.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.log_wright_bessel(1.0, 1.0, 1e6)), 2)
    1995.28
    """
    return _log_wright(a, b, x)


@wide
def wright_bessel(a: Array, b: Array, x: Array) -> Array:
    """Wright's generalized Bessel function, the sum of x^k / (k! Gamma(a k + b)), for numbers >= 0.

    Its terms are positive, and are summed from the largest one to both sides (Wright, 1933).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.wright_bessel(1.0, 1.0, 1.0)), 4)
    2.2796
    """
    return lax.exp(_log_wright(a, b, x))
