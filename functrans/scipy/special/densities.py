"""Logarithms of gamma and beta functions and densities without the cancellation of large terms."""

from __future__ import annotations

from typing import Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import HALF_LOG_2PI, partials, polynomial
from functrans.typing import Array

__all__ = ["beta_log_density", "betaln", "gamma_log_density", "log1p_square",
           "log1pmx", "log_gamma_ratio",
           "logs_of_shares", "stirling_rest"]

LARGE: Final = 10.0
"""From where Stirling's series is exact."""

_STIRLING: Final = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
                    -3617 / 122400, 43867 / 244188, -174611 / 125400]
_ATANH: Final = [1 / (2 * k + 3) for k in range(18)]


def stirling_rest(x: Array) -> Array:
    """log Gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, for x >= LARGE."""
    inverse = 1.0 / x
    return inverse * polynomial(inverse * inverse, _STIRLING)


def log1p_square(r: Array) -> Array:
    """log(1 + r^2), also where the square overflows."""
    far = lax.abs(r) > 1e9  # whose square adds to 1 beyond its last bit
    near = lax.log1p(lax.square(jnp.where(far, 0.0, r)))
    return jnp.where(far, 2.0 * lax.log(lax.abs(jnp.where(far, r, 1.0))), near)


@partials(lambda out, t: -t / (1.0 + t))
def log1pmx(t: Array) -> Array:
    """log(1 + t) - t, accurate near 0."""
    near = lax.abs(t) < 0.5
    small = jnp.where(near, t, 0.0)
    r = small / (2.0 + small)
    series = r * (2.0 * r * r * polynomial(r * r, _ATANH) - small)
    far = jnp.where(near, 1.0, t)
    return jnp.where(near, series, lax.log1p(far) - far)


def _digamma(x: Array) -> Array:
    return lax.digamma(x)


@partials(lambda out, x, m: _digamma(x + m) - _digamma(x),
          lambda out, x, m: _digamma(x + m))
def log_gamma_ratio(x: Array, m: Array) -> Array:
    """log |Gamma(x + m) / Gamma(x)|."""
    large = (x >= LARGE) & (x + m >= LARGE)
    big, more = jnp.where(large, x, LARGE), jnp.where(large, m, 0.0)
    total = big + more
    rest = stirling_rest(total) - stirling_rest(big)
    series = more * lax.log(total) - more + (big - 0.5) * lax.log1p(more / big) + rest
    plain = jnp.where(large, 1.0, x)
    return jnp.where(large, series,
                     lax.lgamma(plain + jnp.where(large, 0.0, m)) - lax.lgamma(plain))


@partials(lambda out, a, b: _digamma(a) - _digamma(a + b),
          lambda out, a, b: _digamma(b) - _digamma(a + b))
def betaln(a: Array, b: Array) -> Array:
    """log |B(a, b)|."""
    small, big = jnp.minimum(a, b), jnp.maximum(a, b)
    one_large = lax.lgamma(small) - log_gamma_ratio(big, small)
    both = small >= LARGE
    p, q = jnp.where(both, small, LARGE), jnp.where(both, big, LARGE)
    rest = stirling_rest(p) + (stirling_rest(q) - stirling_rest(p + q))
    both_large = (HALF_LOG_2PI - 0.5 * lax.log(q) + rest
                  + (p - 0.5) * lax.log(p / (p + q)) - q * lax.log1p(p / q))
    return jnp.where(both, both_large, one_large)


def _departure(t: Array, share: Array, scale: Array) -> Array:
    """log(1 + t) - t for 1 + t = share * scale, which has the digits of small ones."""
    far = t < -0.5
    log = lax.log(jnp.where(far, share, 1.0)) + lax.log(jnp.where(far, scale, 1.0))
    return jnp.where(far, log - t, log1pmx(jnp.where(far, 0.0, t)))


def gamma_log_density(a: Array, x: Array) -> Array:
    """log(x^a exp(-x) / Gamma(a)) for a > 0 and x > 0."""
    large = a >= LARGE
    big = jnp.where(large, a, LARGE)
    centred = big * _departure((x - big) / big, x, 1.0 / big) + 0.5 * lax.log(big) - HALF_LOG_2PI \
        - stirling_rest(big)
    small = jnp.where(large, 1.0, a)
    return jnp.where(large, centred, small * lax.log(x) - x - lax.lgamma(small))


def logs_of_shares(x: Array, y: Array) -> tuple[Array, Array]:
    """log(x) and log(y) for y = 1 - x, by the smaller of them, which has its digits."""
    less = x <= y
    small = jnp.where(less, x, y)
    log, other = lax.log(small), lax.log1p(-small)
    return jnp.where(less, log, other), jnp.where(less, other, log)


def beta_log_density(a: Array, b: Array, x: Array, y: Array) -> Array:
    """log(x^a y^b / B(a, b)) for y = 1 - x and a, b > 0."""
    large = (a >= LARGE) & (b >= LARGE)
    p, q = jnp.where(large, a, LARGE), jnp.where(large, b, LARGE)
    n = p + q
    # x - p / n by the smaller of x and y, which has its digits
    off = jnp.where(x <= y, x * n - p, q - y * n)
    rest = stirling_rest(p) + stirling_rest(q) - stirling_rest(n)
    centred = (p * _departure(off / p, x, n / p) + q * _departure(-off / q, y, n / q)
               + 0.5 * (lax.log(p) + lax.log(q / n)) - HALF_LOG_2PI - rest)
    log_x, log_y = logs_of_shares(x, y)
    plain = a * log_x + b * log_y - betaln(a, b)
    return jnp.where(large, centred, plain)
