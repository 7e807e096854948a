"""Struve functions of the first kind, plain and modified (DLMF, chapter 11)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, over_nodes, partials, wide
from functrans.scipy.special.gammas import gammaln, rgamma
from functrans.typing import Array

__all__ = ["modstruve", "struve"]

_LIMIT: Final = 1200
"""Of terms of a series: around x / 2 they are largest, and x is below 714."""
# The integral of exp(-s) f(s) by double exponentials: s = exp(t - exp(-t))
_T: Final = np.linspace(-4.3, 4.0, 105)
_NODES: Final = np.exp(_T - np.exp(-_T))
_WEIGHTS: Final = (_T[1] - _T[0]) * np.exp(-_NODES) * _NODES * (1.0 + np.exp(-_T))
_MOST: Final = 30.0
"""The largest order of `struve`: values of larger ones are less than what cancels."""


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
    return jnp.where(inside, value, ends) * _sign_of(v, x)


def _constant(v: Array, x: Array) -> Array:
    """(x/2)^v / (sqrt(pi) gamma(v + 3/2)), what the recurrences of both have besides (11.4.25)."""
    half = 0.5 * lax.abs(x)
    power = lax.exp(v * lax.log(jnp.where(half > 0, half, 1.0)))
    power = jnp.where(half > 0, power, jnp.where(v == 0, 1.0, jnp.where(v > 0, 0.0, math.inf)))
    even = v - 2.0 * lax.floor(0.5 * v) == 0.0
    turn = jnp.where((x < 0) & ~even, -1.0, 1.0)
    return turn * power * rgamma(v + 1.5) / math.sqrt(math.pi)


@partials(None, lambda out, v, x: _modified_(v + 1.0, x) + _constant(v, x) + _over(v, x, out))
def _modified_(v: Array, x: Array) -> Array:
    return _modified(v, x)


def _over(v: Array, x: Array, out: Array) -> Array:
    """v out / x, which is 0 at 0 where v is more than 0."""
    return jnp.where(x == 0, 0.0, v * out / jnp.where(x == 0, 1.0, x))


@wide
def modstruve(v: Array, x: Array) -> Array:
    """The modified Struve function L_v of real order v > -3/2.

    A series of positive terms (DLMF 11.2.2). Derivatives are those in x. NaN for negative x unless
    v is whole.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.modstruve(0.0, 1.0)), 4)
    0.7102
    """
    return _modified_(v, x)


def _beyond(f: Array, x: Array) -> tuple[Array, Array]:
    """H_f and H_(f+1) for x >= 3 and 0 <= f < 1: Y and an integral over a falling exponential.

    The integrals are DLMF 11.5.1 and, of the Hankel function of which Y is the imaginary part,
    Hankel's along the path of steepest descent (Watson, 1944, section 6.12).
    """
    found = []
    for v in (f, f + 1.0):
        p, phase = v - 0.5, -(0.5 * v + 0.25) * math.pi

        def rest(node: Any, p: Array, x: Array) -> Array:
            return lax.exp(p * lax.log1p((node / x) ** 2))

        def wave(node: Any, p: Array, x: Array, phase: Array, s: Array, c: Array) -> Array:
            y = 0.5 * node / x
            size = lax.exp(p * (np.log(node) + 0.5 * lax.log1p(y * y)))
            # of the sum with x, which may be large, by the sine and the cosine of it
            turn = phase + p * lax.atan(y)
            return size * (s * lax.cos(turn) + c * lax.sin(turn))

        gamma = rgamma(v + 0.5)
        second = lax.sqrt(2.0 / (math.pi * x)) * over_nodes(
            wave, _NODES, _WEIGHTS, p, x, phase, lax.sin(x), lax.cos(x))
        scale = lax.exp((v - 1.0) * lax.log(0.5 * x)) / math.sqrt(math.pi)
        found.append(gamma * (second + scale * over_nodes(rest, _NODES, _WEIGHTS, p, x)))
    return found[0], found[1]


def _plain(n: Array, x: Array) -> Array:
    size = lax.abs(x)
    known = (n >= 0) & (n <= _MOST + 3.0)
    order = jnp.where(known, n, 0.0)
    first = order - lax.floor(order)
    near = size < jnp.maximum(3.0, order)
    small = jnp.where(near & (size > 0), size, 1.0)
    series = _series(order, small, -1.0)
    large = jnp.where(near | ~(size < math.inf), 30.0 + order, size)

    def step(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        # 11.4.25, which is stable up to the order that is x
        return high, 2.0 * i / large * high - low + _constant(i, large), i + 1.0

    start = (*_beyond(first, large), 1.0 + first)
    low, high, _ = loop(step, start, lambda low, high, i: i < order - 0.5, 64)
    beyond = jnp.where(order < 1, low, high)
    # at infinity H_v falls to 0 where v < 1, H_1 is 2 / pi, and others grow
    ends = jnp.where(order < 1, 0.0, jnp.where(
        order == 1, jnp.full_like(x, 2.0 / math.pi), math.inf))
    # where powers overflow that of the largest exponent is left
    beyond = jnp.where(lax.is_finite(beyond) | (order < 2), beyond, _constant(order - 1.0, large))
    value = jnp.where(near, jnp.where(size > 0, series, 0.0), beyond)
    value = jnp.where(size == math.inf, ends, jnp.where(x == x, value, math.nan))
    return jnp.where(known, value * _sign_of(order, x), math.nan)


@partials(None, lambda out, n, x: _constant(n, x) + _over(n, x, out) - _struve(n + 1.0, x))
def _struve(n: Array, x: Array) -> Array:
    return _plain(n, x)


@wide
def struve(v: Array, x: Array) -> Array:
    """The Struve function H_v of real order 0 <= v <= 30; NaN for other orders.

    The power series up to x = 3 or v, and beyond by two integrals for the orders below 2 (DLMF
    11.5.1) and the recurrence over orders. Derivatives are those in x. NaN for negative x unless v
    is whole.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.struve(0.0, 1.0)), 4)
    0.5687
    """
    return jnp.where(v <= _MOST, _struve(v, x), math.nan)
