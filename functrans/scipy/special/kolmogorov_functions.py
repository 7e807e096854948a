"""Distribution functions of Kolmogorov's and Smirnov's statistics, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, over_nodes, partials, pushed, wide
from functrans.scipy.special.densities import log1pmx, stirling_rest
from functrans.scipy.special.implicit_inverses import rising_root
from functrans.typing import Array

__all__ = ["kolmogi", "kolmogorov", "smirnov", "smirnovi"]

_BORDER: Final = 0.82  # from where the series of the tail, and below which its dual is shorter
_COUNTS: Final = np.arange(1.0, 7.0)
_SIGNS: Final = (-1.0) ** (_COUNTS - 1)
_ODD: Final = (2.0 * np.arange(1.0, 6.0) - 1.0) ** 2 * math.pi**2 / 8
_ONES: Final = np.ones(5)


def _both(y: Array) -> tuple[Array, Array]:
    """The probability of less than y by Jacobi's dual series, and of more by the plain one."""
    far = y >= _BORDER
    large = jnp.where(far, jnp.minimum(y, 1e3), 1.0)
    small = jnp.where(far | ~(y > 0), 0.5, jnp.maximum(y, 0.02))
    above = 2.0 * over_nodes(lambda k, y: lax.exp(-2.0 * (k * y) ** 2), _COUNTS, _SIGNS, large)
    below = math.sqrt(2.0 * math.pi) / small * over_nodes(
        lambda c, y: lax.exp(-c / (y * y)), _ODD, _ONES, small)
    below = jnp.where(far, 1.0 - above, jnp.where(y > 0, below, 0.0))
    return below, jnp.where(far, above, 1.0 - below)


def _density(y: Array) -> Array:
    """That of the distribution, of either series."""
    far = y >= _BORDER
    large = jnp.where(far, jnp.minimum(y, 1e3), 1.0)
    small = jnp.where(far | ~(y > 0), 0.5, jnp.maximum(y, 0.02))
    above = 8.0 * large * over_nodes(
        lambda k, y: k * k * lax.exp(-2.0 * (k * y) ** 2), _COUNTS, _SIGNS, large)
    below = math.sqrt(2.0 * math.pi) / (small * small) * over_nodes(
        lambda c, y: (2.0 * c / (y * y) - 1.0) * lax.exp(-c / (y * y)), _ODD, _ONES, small)
    return jnp.where(far, above, jnp.where(y > 0, below, 0.0))


@partials(lambda out, y: -_density(y))
def _kolmogorov(y: Array) -> Array:
    return jnp.where(y == y, _both(y)[1], math.nan)


@wide
def kolmogorov(y: Array) -> Array:
    """The probability that the limit of sqrt(n) D of Kolmogorov's statistic is larger than y.

    2 times the sum of (-1)^(k - 1) exp(-2 k^2 y^2), or Jacobi's dual series below y = 0.82.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kolmogorov(1.0)), 4)
    0.27
    """
    return _kolmogorov(y)


@partials(lambda out, p: -1.0 / _density(out))
def _kolmogi(p: Array) -> Array:
    inside = (p > 0) & (p < 1)
    q = jnp.where(inside, p, 0.5)
    tail = q < 0.5

    def off(u: Array) -> Array:
        below, above = _both(lax.exp(u))
        low = lax.log(jnp.where(tail, 1.0, below)) - lax.log1p(-jnp.where(tail, 0.0, q))
        high = lax.log(jnp.where(tail, q, 1.0)) - lax.log(jnp.where(tail, above, 1.0))
        return jnp.where(tail, high, low)

    value = lax.exp(rising_root(off, jnp.zeros_like(q)))
    ends = jnp.where(p == 0, math.inf, jnp.where(p == 1, 0.0, math.nan))
    return jnp.where(inside, value, ends)


@wide
def kolmogi(p: Array) -> Array:
    """The y for which kolmogorov(y) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kolmogi(0.27)), 3)
    1.0
    """
    return _kolmogi(p)


# Smirnov's one-sided statistic -----------------------------------------------------------------

_LARGEST: Final = 1e6


def _rest(n: Array) -> Array:
    """log n! less that of Stirling's formula, for whole n > 0."""
    large = n >= 15.0
    big = jnp.where(large, n, 15.0)
    some = jnp.where(large, 1.0, jnp.maximum(n, 1.0))
    exact = lax.lgamma(some + 1.0) - (some + 0.5) * lax.log(some) + some \
        - 0.5 * math.log(2 * math.pi)
    return jnp.where(large, stirling_rest(big), exact)


def _smirnov_value(n: Array, d: Array) -> Array:
    known = (n >= 1) & (n == lax.floor(n)) & (n <= _LARGEST) & (d >= 0) & (d <= 1)
    inside = known & (d > 0) & (d < 1)
    count, x = jnp.where(inside, n, 1.0), jnp.where(inside, d, 0.5)
    last = lax.stop_gradient(lax.floor(count * (1.0 - x)))
    own = _rest(count)

    def term(k: Array) -> Array:
        """d / (d + k / n) times the probability of k of n at that share (Loader's form)."""
        rest = count - k
        edge = k >= count
        more = jnp.where(edge, 1.0, rest)
        apart = count * x
        tight = (apart >= more) | edge
        log = k * log1pmx(apart / k) + more * log1pmx(jnp.where(tight, 0.0, -apart / more))
        log = log + own - _rest(k) - _rest(more) + 0.5 * (
            lax.log(count / more) - lax.log(2 * math.pi * k))
        return jnp.where(tight, 0.0, x / (x + k / count) * lax.exp(log))

    def step(k: Any, total: Array, i: Array) -> tuple[Array, Array]:
        return total + term(i), i + 1.0

    first = lax.exp(count * lax.log1p(-x))
    total, _ = loop(step, (first, jnp.ones_like(x)), lambda total, i: i <= last,
                    int(_LARGEST))
    value = jnp.where(inside, jnp.minimum(total, 1.0), jnp.where(d == 0, 1.0, 0.0))
    return jnp.where(known, value, math.nan)


_smirnov: Callable[..., Array] = partials(None, pushed(_smirnov_value, 1))(_smirnov_value)


@wide
def smirnov(n: Array, d: Array) -> Array:
    """The probability that Smirnov's one-sided statistic of n <= 1e6 numbers is d or larger.

    The sum of Birnbaum and Tingey (1951), whose terms are positive.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.smirnov(2, 0.5)), 4)
    0.25
    """
    return _smirnov(n, d)


def _smirnovi_slope(out: Array, n: Array, p: Array) -> Array:
    slope: Array = pushed(_smirnov_value, 1)(None, n, out)
    return jnp.ones_like(slope) / slope


@partials(None, _smirnovi_slope)
def _smirnovi(n: Array, p: Array) -> Array:
    known = (n >= 1) & (n == lax.floor(n)) & (n <= _LARGEST) & (p >= 0) & (p <= 1)
    inside = known & (p > 0) & (p < 1)
    count, q = jnp.where(inside, n, 1.0), jnp.where(inside, p, 0.5)
    tail = q < 0.5

    def off(u: Array) -> Array:
        value = _smirnov_value(count, lax.logistic(u))
        low = lax.log(jnp.where(tail, 0.5, jnp.maximum(1.0 - value, 0.0)))
        low = low - lax.log1p(-jnp.where(tail, 0.5, q))
        high = lax.log(jnp.where(tail, q, 0.5)) - lax.log(jnp.where(tail, value, 0.5))
        return jnp.where(tail, high, low)

    # around where exp(-2 n d^2) is p
    guess = jnp.minimum(lax.sqrt(-0.5 * lax.log(q) / count), 0.9)
    value = lax.logistic(rising_root(off, lax.log(guess) - lax.log1p(-guess)))
    ends = jnp.where(p == 0, 1.0, 0.0)
    return jnp.where(inside, value, jnp.where(known, ends, math.nan))


@wide
def smirnovi(n: Array, p: Array) -> Array:
    """The d for which smirnov(n, d) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.smirnovi(2, 0.5)), 4)
    0.366
    """
    return _smirnovi(n, p)
