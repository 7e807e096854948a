"""The error function and its relatives, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import (
    HALF_LOG_2PI,
    SQRT_HALF,
    elementwise,
    partials,
    wide,
)
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array


@elementwise
def erf(x: Array) -> Array:
    """The error function.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erf(1.0)), 4)
    0.8427
    """
    return lax.erf(x)


@elementwise
def erfc(x: Array) -> Array:
    """1 - erf(x), accurate for large x.

    >>> ft.scipy.special.erfc(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.1573], dtype=float32)
    """
    return lax.erfc(x)


@elementwise
def erfinv(x: Array) -> Array:
    """The inverse of the error function, for x in [-1, 1].

    >>> ft.scipy.special.erfinv(jnp.array([0.0, 0.5])).round(4)
    Array([0.    , 0.4769], dtype=float32)
    """
    return lax.erf_inv(x)


@elementwise
def ndtr(x: Array) -> Array:
    """The cumulative distribution function of the standard normal distribution.

    >>> import functrans as ft
    >>> float(ft.scipy.special.ndtr(0.0))
    0.5
    """
    return 0.5 * lax.erfc(-x * SQRT_HALF)


@elementwise
def log_ndtr(x: Array) -> Array:
    """log(ndtr(x)), accurate in both tails, with its derivative.

    Far below zero by the asymptotic series (Abramowitz & Stegun 26.2.12).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.log_ndtr(-100.0)), 3)
    -5005.524
    """
    edge, terms = (-20.0, 10) if x.dtype == np.float64 else (-8.0, 6)
    far, high = x < edge, x > 0.0
    middle = jnp.where(far | high, 0.0, x)
    out = jnp.where(high, lax.log1p(-0.5 * lax.erfc(jnp.where(high, x, 0.0) * SQRT_HALF)),
                    lax.log(0.5 * lax.erfc(-middle * SQRT_HALF)))
    low = jnp.where(far, x, edge)
    square = 1.0 / (low * low)
    total = jnp.zeros_like(low)
    for k in reversed(range(1, terms + 1)):  # Horner of 1 - 1/x^2 + 1 3/x^4 - 1 3 5/x^6 ...
        total = -(2 * k - 1) * square * (1.0 + total)
    series = -0.5 * low * low - lax.log(-low) - HALF_LOG_2PI + lax.log1p(total)
    return jnp.where(far, series, out)


def _tail_guess(twice: Array) -> Array:
    """Where the logarithm of ndtr is -twice / 2, roughly, far below zero."""
    return -lax.sqrt(twice - lax.log(twice) - 2.0 * HALF_LOG_2PI + 1.0 / twice)


def _log_newton(x: Array, goal: Array) -> Array:
    """Where log_ndtr is `goal`: Newton's method, on a concave function."""
    for _ in range(4):
        have = log_ndtr(x)
        x = x - (have - goal) * lax.exp(have + 0.5 * x * x + HALF_LOG_2PI)
    return x


@custom_jvp
def _ndtri(p: Array) -> Array:
    """Newton's method on the logarithm of the smaller tail, which is concave.

    Around a half, where the logarithm has no digits left for a result near zero, it is on erf.
    """
    tail = jnp.minimum(p, 1.0 - p)
    below_half = jnp.where(tail > 0.25, tail, 0.25) - 0.5  # exact
    inside = (tail > 0) & (tail <= 0.5)
    safe = jnp.where(inside, tail, 0.25)
    far = safe < 0.05
    goal = lax.log(safe)
    twice = -2.0 * jnp.where(far, goal, -4.0)
    x = jnp.where(far, _tail_guess(twice), lax.erf_inv(2.0 * jnp.where(far, 0.25, safe) - 1.0)
                  / SQRT_HALF)
    x = _log_newton(x, goal)
    near = lax.erf_inv(2.0 * below_half) / SQRT_HALF
    miss = 0.5 * lax.erf(near * SQRT_HALF) - below_half
    x = jnp.where(tail > 0.25, near - miss * lax.exp(0.5 * near * near + HALF_LOG_2PI), x)
    x = jnp.where(p > 0.5, -x, x)
    x = jnp.where(inside, x, np.nan)
    return jnp.where(p == 0, -np.inf, jnp.where(p == 1, np.inf, x))


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    x = _ndtri(*primals)
    return x, tangents[0] * lax.exp(0.5 * x * x + HALF_LOG_2PI)


@elementwise
def ndtri(p: Array) -> Array:
    """The inverse of ndtr: the quantile of the standard normal distribution, for p in [0, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ndtri(0.975)), 3)
    1.96
    """
    return _ndtri(p)


@partials(lambda x, y: lax.exp(y + 0.5 * x * x + HALF_LOG_2PI))
def _ndtri_exp(y: Array) -> Array:
    low = y < -1.0
    far = y < -1e8  # where the first terms of the expansion have all digits, and steps lose them
    safe = jnp.where(low & ~far, y, -2.0)
    near = safe > -3.0
    guess = jnp.where(near, _ndtri(lax.exp(safe)), _tail_guess(-2.0 * jnp.where(near, -4.0, safe)))
    high = -_ndtri(-lax.expm1(jnp.where(low, -1.0, y)))
    found = jnp.where(low, _log_newton(guess, safe), high)
    twice = -2.0 * jnp.where(far, y, -1e8)
    ends = -lax.sqrt(twice - jnp.where(twice < math.inf, lax.log(2.0 * math.pi * twice), 0.0))
    found = jnp.where(far, ends, found)
    return jnp.where(y > 0, math.nan, jnp.where(y == 0, math.inf, found))


@wide
def ndtri_exp(y: Array) -> Array:
    """The inverse of log_ndtr, for y <= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ndtri_exp(-5005.524)), 3)
    -100.0
    """
    return _ndtri_exp(y)


@wide
def erfcinv(y: Array) -> Array:
    """The inverse of erfc, for y in [0, 2], accurate for small y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erfcinv(0.1573)), 3)
    1.0
    """
    return -_ndtri(0.5 * y) * SQRT_HALF
