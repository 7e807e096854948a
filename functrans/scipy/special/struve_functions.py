"""Struve functions of the first kind, plain and modified (DLMF, chapter 11)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.bessel_orders import jv_, yv_
from functrans.scipy.special.common import loop, over_nodes, partials, pushed, wide
from functrans.scipy.special.cylinder import LAPLACE_NODES, LAPLACE_WEIGHTS
from functrans.scipy.special.gammas import gammaln, rgamma
from functrans.scipy.special.modified_bessel import iv
from functrans.typing import Array

__all__ = ["modstruve", "struve"]

_LIMIT: Final = 1200
"""Of terms of a series: around x / 2 they are largest, and x is below 714."""
# the half-line sine transform of (1 - u^2)^(v - 1/2), of which at most 200 radians are in reach
_U, _U_WEIGHTS = np.polynomial.legendre.leggauss(200)
_U, _U_WEIGHTS = 0.5 * (_U + 1.0), 0.5 * _U_WEIGHTS
_MOST: Final = 1000.0
"""The largest order of `struve`, of both signs."""


def _sign_of(v: Array, x: Array) -> Array:
    """(-1)^(v + 1) for x < 0 and whole v; NaN for others, where the value is complex."""
    whole = lax.floor(v) == v
    odd = v - 2.0 * lax.floor(0.5 * v) == 1.0
    return jnp.where(x >= 0, 1.0, jnp.where(whole, jnp.where(odd, 1.0, -1.0), math.nan))


def _series(v: Array, x: Array, sign: float) -> Array:
    """sum_k sign^k (x/2)^(2k+v+1) / (gamma(k + 3/2) gamma(k + v + 3/2)) for x > 0 (11.2.1, .2)."""
    square = 0.25 * x * x
    power = (v + 1.0) * lax.log(0.5 * x)
    gamma = v + 1.5
    # the first term as a product, or where that is no number as a sum of logarithms
    plain = lax.exp(power) * rgamma(gamma) / (0.5 * math.sqrt(math.pi))
    far = lax.exp(power - gammaln(gamma)) / (0.5 * math.sqrt(math.pi))
    first = jnp.where((gamma > 0) & (gamma > 100.0), far, plain)

    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = term * (sign * square / ((k + 0.5) * (k + v + 0.5)))
        return total + term, term

    # terms fall once (k + 1/2)(k + v + 1/2) has passed the square, which the ratio of two tells
    total, _ = loop(step, (jnp.ones_like(x), jnp.ones_like(x)),
                    lambda total, term: (lax.abs(term) > 1e-17 * lax.abs(total)), _LIMIT)
    return first * total


def _modified(v: Array, x: Array) -> Array:
    size = lax.abs(x)
    inside = (size > 0) & (size < 720.0)
    value = _series(v, jnp.where(inside, size, 1.0), 1.0)
    at_0 = jnp.where(v == -1.0, jnp.full_like(v, 2.0 / math.pi), jnp.where(v > -1.0, 0.0, jnp.where(
        lax.floor(v + 0.5) == v + 0.5, 0.0, math.nan)))
    ends = jnp.where(size == 0, at_0, jnp.where(x == x, math.inf, math.nan))
    # of half a whole number below -1 the terms begin late, with those of I_(-v) (DLMF 11.4.3)
    turned = (lax.floor(v + 0.5) == v + 0.5) & (v < -1.0)
    other = iv(jnp.where(turned, -v, 0.0), jnp.where(turned & inside, size, 1.0))
    value = jnp.where(turned, other, value)
    return jnp.where(inside, value, ends) * _sign_of(v, x)


def _constant(v: Array, x: Array) -> Array:
    """(x/2)^v / (sqrt(pi) gamma(v + 3/2)), what the recurrences of both have besides (11.4.25)."""
    half = 0.5 * lax.abs(x)
    power = lax.exp(v * lax.log(jnp.where(half > 0, half, 1.0)))
    power = jnp.where(half > 0, power, jnp.where(v == 0, 1.0, jnp.where(v > 0, 0.0, math.inf)))
    even = v - 2.0 * lax.floor(0.5 * v) == 0.0
    turn = jnp.where((x < 0) & ~even, -1.0, 1.0)
    return turn * power * rgamma(v + 1.5) / math.sqrt(math.pi)


@partials(pushed(_modified, 0),
          lambda out, v, x: _modified_(v + 1.0, x) + _constant(v, x) + _over(v, x, out))
def _modified_(v: Array, x: Array) -> Array:
    return _modified(v, x)


def _over(v: Array, x: Array, out: Array) -> Array:
    """v out / x, which is 0 at 0 where v is more than 0."""
    return jnp.where(x == 0, 0.0, v * out / jnp.where(x == 0, 1.0, x))


@wide
def modstruve(v: Array, x: Array) -> Array:
    """The modified Struve function L_v of real order v.

    A series whose terms are positive but for the first -v ones (DLMF 11.2.2). NaN for negative x
    unless v is whole.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.modstruve(0.0, 1.0)), 4)
    0.7102
    """
    return _modified_(v, x)


def _rest(v: Array, x: Array) -> Array:
    """H_v - Y_v for v > -1/2 and x that is large for v (DLMF 11.5.2)."""
    log = (v - 1.0) * lax.log(0.5 * x) - gammaln(v + 0.5)
    return lax.exp(log) / math.sqrt(math.pi) * over_nodes(
        lambda node, p, x: lax.exp(p * lax.log1p((node / x) ** 2)), LAPLACE_NODES,
        LAPLACE_WEIGHTS, v - 0.5, x)


def _finite(v: Array, x: Array) -> Array:
    """H_v for x < 3 v or so by the integral of sin(x u) (1 - u^2)^(v - 1/2) (DLMF 11.5.1)."""
    end = jnp.minimum(9.0 / lax.sqrt(2.0 * v), 1.0)
    total = end * over_nodes(
        lambda u, v, x, end: lax.sin(x * end * u) * lax.exp((v - 0.5) * lax.log1p(
            -jnp.minimum((end * u) ** 2, 1.0 - 1e-15))), _U, _U_WEIGHTS, v, x, end)
    return 2.0 / math.sqrt(math.pi) * total * lax.exp(v * lax.log(0.5 * x) - gammaln(v + 0.5))


def _upward(v: Array, x: Array) -> Array:
    """H_v for v > -1/2 and x > 0."""
    near = 0.25 * x * x < jnp.maximum(2.5, v + 1.5)
    # the nodes of the other integral end where exp(-s) (1 + s^2 / x^2)^v is not yet small
    reach = jnp.where(v < 3.0, v, jnp.maximum(v, jnp.minimum(3.0 * v, 13.1 * lax.sqrt(
        jnp.maximum(v, 0.0)))))
    finite = ~near & (x < reach)
    far = ~near & ~finite
    series = _series(v, jnp.where(near, x, 1.0), -1.0)
    inner = _finite(jnp.where(finite, v, 10.0), jnp.where(finite, x, 1.0))
    place, order = jnp.where(far, x, 10.0), jnp.where(far, v, 0.0)
    outer = yv_(order, place) + _rest(order, place)
    return jnp.where(near, series, jnp.where(finite, inner, outer))


def _plain(n: Array, x: Array) -> Array:
    size = lax.abs(x)
    known = lax.abs(n) <= _MOST + 3.0
    order = jnp.where(known, n, 0.0)
    some = (size > 0) & (size < math.inf)
    place = jnp.where(some, size, 1.0)
    # below -1/2 down from the two orders above it, where H grows as fast as any solution
    low = order <= -0.5
    steps = jnp.where(low, lax.ceil(-0.5 - order) + jnp.where(
        lax.floor(order + 0.5) == order + 0.5, 1.0, 0.0), 0.0)
    start = order + lax.stop_gradient(steps)
    both = _upward(jnp.stack([start, start + 1.0]), jnp.stack([place, place]))

    def down(k: Any, here: Array, above: Array, i: Array) -> tuple[Array, ...]:
        v = order + i
        return 2.0 * v / place * here - above + _constant(v, place), here, i - 1.0

    value, _, _ = loop(down, (both[0], both[1], steps), lambda here, above, i: i > 0.5, 1100)
    # and of half a whole number it is J of the opposite order (11.4.3), which falls
    half = low & (lax.floor(order + 0.5) == order + 0.5)
    mirror = jv_(jnp.where(half, -order, 0.0), jnp.where(half, place, 1.0))
    odd = jnp.remainder(lax.floor(-order), 2.0) == 1
    value = jnp.where(half, jnp.where(odd, -mirror, mirror), value)
    at_0 = jnp.where(order == -1, jnp.full_like(x, 2.0 / math.pi), jnp.where(
        (order > -1) | half, 0.0, math.inf * _sign_of_gamma(order + 1.5)))
    # at infinity H_v falls to 0 where v < 1, H_1 is 2 / pi, and others grow
    ends = jnp.where(order < 1, 0.0, jnp.where(
        order == 1, jnp.full_like(x, 2.0 / math.pi), math.inf))
    value = jnp.where(some, value, jnp.where(size == 0, at_0, jnp.where(x == x, ends, math.nan)))
    return jnp.where(known, value * _sign_of(order, x), math.nan)


def _sign_of_gamma(x: Array) -> Array:
    return jnp.where((x > 0) | (jnp.remainder(lax.floor(x), 2.0) == 0), 1.0, -1.0)


@partials(pushed(_plain, 0),
          lambda out, n, x: _constant(n, x) + _over(n, x, out) - _struve(n + 1.0, x))
def _struve(n: Array, x: Array) -> Array:
    return _plain(n, x)


@wide
def struve(v: Array, x: Array) -> Array:
    """The Struve function H_v of real order, |v| <= 1000; NaN for other orders.

    The power series for small x, integrals between 0 and 1 or beside Y_v for larger ones (DLMF
    11.5), and the recurrence over orders below -1/2. NaN for negative x unless v is whole.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.struve(0.0, 1.0)), 4)
    0.5687
    """
    return jnp.where(lax.abs(v) <= _MOST, _struve(v, x), math.nan)
