"""The regularized incomplete beta function and its complement, over all sizes of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.primitives import special
from functrans.scipy.special.common import EULER, loop, over_nodes, partials, pushed
from functrans.scipy.special.densities import beta_log_density, log1pmx, logs_of_shares
from functrans.typing import Array

__all__ = ["SMALL", "beta_at_odds", "beta_density", "beta_pair", "betainc_", "betaincc_",
           "log_of_front"]

_TINY: Final = 1e-300
_CALM: Final = 8.0  # steps of the fraction after the last that changed it, for derivatives
_NARROW: Final = 400.0
"""From where on the density of both parameters is near to a normal one, and the fraction takes as
many steps as the root of the smaller of them."""
SMALL: Final = 1e-4
"""Below it 1 less the integral has no digits, and four terms of its series are exact."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_EXPONENT: Final = 40.0  # the integral ends where the density has fallen by exp(-40)


def _fraction(a: Array, b: Array, x: Array, y: Array, used: Array) -> Array:
    """The even part of the continued fraction DLMF 8.17.22 by Lentz's method, times x^a y^b / B.

    It has a y - b x in place of a - (a + b) x, which has no digits for x near to 1.
    """
    def away(v: Array) -> Array:
        return jnp.where(lax.abs(v) < _TINY, _TINY, v)

    rest = a * y - b * x + 1.0

    def step(m: Any, c: Array, d: Array, total: Array, calm: Array) -> tuple[Array, ...]:
        # by ratios, as products of large parameters overflow
        below, above = a + 2.0 * m - 1.0, a + 2.0 * m + 1.0
        falling = (b - m) * x
        top = (a + m - 1.0) / below * ((a + b + m - 1.0) / below * x) * (m * falling)
        bottom = m + m * falling / below + (a + m) / above * (rest + m * (1.0 + y))
        d = 1.0 / away(bottom + top * d)
        c = away(bottom + top / c)
        factor = c * d
        still = ~(lax.abs(factor - 1.0) >= 1e-15)
        return c, d, total / factor, jnp.where(still, calm + 1.0, 0.0)

    first = away(a / (a + 1.0) * rest)
    state = (first, jnp.zeros_like(x), 1.0 / first, jnp.where(used, 0.0, _CALM))
    return loop(step, state, lambda c, d, total, calm: calm < _CALM, 20_000)[2]


def _narrow_tail(a: Array, b: Array, x: Array, y: Array, used: Array) -> Array:
    """The smaller side of x of a density whose parameters are both large.

    Gauss's rule on the density from x outwards, in standard deviations, up to where it is exp(-40)
    of its value at x. It runs where one of the lanes is used.
    """
    n = a + b
    width = lax.sqrt(a) * lax.sqrt(b / n)  # of n x
    off = jnp.where(x <= y, x * n - a, b - y * n)
    # where it is above the smallest number
    off = jnp.where(a * log1pmx(jnp.maximum(off / a, -0.999)) + b * log1pmx(
        jnp.maximum(-off / b, -0.999)) > -1500.0, off, 0.0)
    way = jnp.where(off > 0, width, -width)

    def exponent(off: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """log(x^a y^b) less that of the mean, and x y over that of the mean."""
        p, q = off / a, -off / b
        inside = (p > -1.0) & (q > -1.0)
        p, q = jnp.where(inside, p, 0.0), jnp.where(inside, q, 0.0)
        value = a * log1pmx(p) + b * log1pmx(q)
        return jnp.where(inside, value, -math.inf), (1.0 + p) * (1.0 + q)

    start, share = exponent(off, a, b)
    length = lax.stop_gradient(
        _EXPONENT / jnp.maximum(lax.abs(off) / width / share, 0.1 * _EXPONENT))

    def height(t: Any, off: Array, way: Array, length: Array, a: Array, b: Array, start: Array
               ) -> Array:
        value, share = exponent(off + 0.5 * (1.0 + t) * length * way, a, b)
        return lax.exp(value - start) / share

    def step(k: Any, total: Array, done: Array) -> tuple[Array, Array]:
        return over_nodes(height, _NODES, _WEIGHTS, off, way, length, a, b, start), done + 1.0

    zero = jnp.zeros_like(x)
    total = loop(step, (zero, jnp.where(used, 0.0, 1.0)), lambda total, done: done < 1.0, 1)[0]
    return lax.exp(beta_log_density(a, b, x, y)) / width * (0.5 * length) * total


def _log_of_small(a: Array, b: Array, x: Array, log_x: Array, used: Array) -> Array:
    """log(I_x(a, b)) for an a near 0, which is near 0 itself: (DLMF 8.17.7)."""
    def step(k: Any, total: Array, term: Array, calm: Array) -> tuple[Array, ...]:
        term = term * ((k - b) / k * x)
        new = term / (a + k)
        small = ~(lax.abs(new) > 1e-18 * lax.abs(total))
        return total + new, term, jnp.where(small, calm + 1.0, 0.0)

    zero = jnp.zeros_like(x)
    rest = loop(step, (zero, zero + 1.0, jnp.where(used, 0.0, 4.0)),
                lambda total, term, calm: calm < 4.0, 3000)[0]
    return a * log_x + log_of_front(a, b) + lax.log1p(a * rest)


def log_of_front(a: Array, b: Array) -> Array:
    """log(1 / (a B(a, b))) by powers of an a near 0."""
    c = b + 1.0
    return -lax.log1p(a / b) + a * (lax.digamma(c) + EULER + a * (
        0.5 * (special.zeta(jnp.full_like(c, 2.0), c) - math.pi**2 / 6) - a / 3.0 * (
            special.zeta(jnp.full_like(c, 3.0), c) - 1.2020569031595942)))


def beta_pair(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """I_x(a, b) and 1 - I_x(a, b) for y = 1 - x, both accurate where they are small.

    By a continued fraction; where a parameter is near 0, by a series of the logarithm; where both
    are large, by Gauss's rule on the density.
    """
    inside = (x > 0) & (y > 0) & (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf)
    a_, b_ = jnp.where(inside, a, 1.0), jnp.where(inside, b, 1.0)
    x_, y_ = jnp.where(inside, x, 0.5), jnp.where(inside, y, 0.5)
    narrow = inside & (jnp.minimum(a_, b_) >= _NARROW)
    # x <= (a + 1) / (a + b + 2), by the smaller of x and y
    left = jnp.where(x_ <= y_, x_ * (a_ + b_ + 2.0) <= a_ + 1.0, y_ * (a_ + b_ + 2.0) >= b_ + 1.0)
    p, q = jnp.where(left, a_, b_), jnp.where(left, b_, a_)
    u, v = jnp.where(left, x_, y_), jnp.where(left, y_, x_)
    small = inside & (p < SMALL)

    plain = inside & ~narrow & ~small
    one = jnp.ones_like(p)
    p_, q_, u_, v_ = (jnp.where(plain, z, w) for z, w in (
        (p, one), (q, one), (u, 0.5), (v, 0.5)))
    part = lax.exp(beta_log_density(p_, q_, u_, v_)) * _fraction(p_, q_, u_, v_, plain)
    other = 1.0 - part

    log_x, log_y = logs_of_shares(x_, y_)
    log = _log_of_small(jnp.where(small, p, SMALL), jnp.where(small, q, 1.0),
                        jnp.where(small, u, 0.5),
                        jnp.where(small, jnp.where(left, log_x, log_y), -1.0), small)
    part = jnp.where(small, lax.exp(log), part)
    other = jnp.where(small, -lax.expm1(log), other)

    large = tuple(jnp.where(narrow, v, w) for v, w in (
        (a_, _NARROW), (b_, _NARROW), (x_, 0.5), (y_, 0.5)))
    tail = _narrow_tail(large[0], large[1], large[2], large[3], narrow)
    under = jnp.where(large[2] <= large[3], large[2] * (large[0] + large[1]) <= large[0],
                      large[1] <= large[3] * (large[0] + large[1]))
    first = jnp.where(narrow, under, left)
    part, other = jnp.where(narrow, tail, part), jnp.where(narrow, 1.0 - tail, other)
    low, high = jnp.where(first, part, other), jnp.where(first, other, part)
    # all of the mass is at an end where the parameter of that end is 0
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (y >= 0) & ~((a == 0) & (b == 0)) \
        & ~((a == math.inf) & (b == math.inf))
    at_left = (x > 0) & ((y <= 0) | (a == 0) | (b == math.inf))
    end = jnp.where(valid, jnp.where(at_left, 1.0, 0.0), math.nan)
    return jnp.where(inside, low, end), jnp.where(inside, high, 1.0 - end)


def _lower(a: Array, b: Array, x: Array) -> Array:
    return beta_pair(a, b, x, 1.0 - x)[0]


def _upper(a: Array, b: Array, x: Array) -> Array:
    return beta_pair(a, b, x, 1.0 - x)[1]


def beta_density(a: Array, b: Array, x: Array) -> Array:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b), also at the ends."""
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    value = lax.exp(beta_log_density(a, b, safe, 1.0 - safe)) / (safe * (1.0 - safe))
    p = jnp.where(x == 0, a, b)
    end = jnp.where(p > 1, 0.0, jnp.where(p == 1, a + b - 1.0, math.inf))
    return jnp.where(inside, value, jnp.where((x == 0) | (x == 1), end, math.nan))


betainc_: Callable[..., Array] = partials(
    pushed(_lower, 0), pushed(_lower, 1), lambda out, a, b, x: beta_density(a, b, x))(_lower)
betaincc_: Callable[..., Array] = partials(
    pushed(_upper, 0), pushed(_upper, 1), lambda out, a, b, x: -beta_density(a, b, x))(_upper)


def _shares(odds: Array) -> tuple[Array, Array]:
    """odds / (1 + odds) and 1 / (1 + odds), for odds from 0 to infinity."""
    more = odds > 1.0
    small = jnp.where(more, 1.0 / jnp.where(more, odds, 1.0), odds)
    part = small / (1.0 + small)
    return jnp.where(more, 1.0 / (1.0 + small), part), jnp.where(more, part, 1.0 / (1.0 + small))


def _at_odds(a: Array, b: Array, odds: Array) -> Array:
    return beta_pair(a, b, *_shares(odds))[0]


def _odds_density(out: Array, a: Array, b: Array, odds: Array) -> Array:
    inside = (odds > 0) & (odds < math.inf)
    safe = jnp.where(inside, odds, 1.0)
    value = lax.exp(beta_log_density(a, b, *_shares(safe)) - lax.log(safe))
    end = jnp.where(a > 1, 0.0, jnp.where(a == 1, b, math.inf))
    return jnp.where(inside, value, jnp.where(odds == 0, end, 0.0))


beta_at_odds: Callable[..., Array] = partials(
    pushed(_at_odds, 0), pushed(_at_odds, 1), _odds_density)(_at_odds)
"""I_x(a, b) at x = odds / (1 + odds), which keeps the digits of x and of 1 - x."""
