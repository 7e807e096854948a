"""Incomplete gamma and beta functions, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.primitives import special
from functrans.scipy.special.common import elementwise, loop, partials, pushed, wide
from functrans.scipy.special.densities import beta_log_density, betaln, gamma_log_density
from functrans.scipy.special.error_functions import ndtri
from functrans.scipy.special.roots import increasing_root
from functrans.typing import Array

__all__ = ["betainc", "betaincc", "betainccinv", "betaincinv", "gammainc", "gammaincc",
           "gammainccinv", "gammaincinv"]

@elementwise
def gammainc(a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammainc(1.0, 1.0)), 4)
    0.6321
    """
    return special.igamma(a, x)


@elementwise
def gammaincc(a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x).

    >>> ft.scipy.special.gammaincc(2.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.7358], dtype=float32)
    """
    return special.igammac(a, x)



def _gamma_quantile(a: Array, p: Array, q: Array) -> Array:
    """x with P(a, x) = p and Q(a, x) = q, in log(x) and by the smaller of p and q."""
    lower = p <= q
    goal = lax.log(jnp.where(lower, p, q))
    # P(a, x) <= x^a / Gamma(a + 1), and the tail is below exp(-L) from a + sqrt(2 a L) + L on
    least = (lax.log(p) + lax.lgamma(a + 1.0)) / a
    rest = -lax.log(q)
    most = lax.log(a + lax.sqrt(2.0 * a * rest) + rest) + 1e-9
    ninth = 1.0 / (9.0 * a)
    cube = 1.0 - ninth + ndtri(jnp.where(lower, p, q)) * jnp.where(lower, 1.0, -1.0) \
        * lax.sqrt(ninth)
    guess = jnp.where((a > 0.5) & (cube > 0.1), lax.log(a) + 3.0 * lax.log(
        jnp.maximum(cube, 0.1)), least)

    def miss(t: Array) -> tuple[Array, Array]:
        x = lax.exp(t)
        value = jnp.where(lower, special.igamma(a, x), special.igammac(a, x))
        slope = lax.exp(gamma_log_density(a, x)) / value
        off = lax.log(value) - goal
        return jnp.where(lower, off, -off), slope

    tiny = least < -40.0  # of the series of P the first term is left
    bottom = jnp.where(tiny, -1.0, least - 1e-9 * (1.0 + lax.abs(least)))
    found = increasing_root(miss, bottom, jnp.maximum(most, bottom + 1e-9), guess)
    return lax.exp(jnp.where(tiny, least, found))


def _gamma_inverse(a: Array, p: Array, upper: bool) -> Array:
    inside = (p > 0) & (p < 1) & (a > 0) & (a < math.inf)
    shape, given = jnp.where(inside, a, 1.0), jnp.where(inside, p, 0.5)
    x = _gamma_quantile(shape, 1.0 - given, given) if upper \
        else _gamma_quantile(shape, given, 1.0 - given)
    zero, one = (math.inf, 0.0) if upper else (0.0, math.inf)
    ends = jnp.where(p == 0, zero, jnp.where(p == 1, one, math.nan))
    return jnp.where(inside, x, jnp.where(a > 0, ends, math.nan))


def _by_density(out: Array, a: Array, p: Array) -> Array:
    return out * lax.exp(-gamma_log_density(a, out))


def _moves_with_shape(out: Array, a: Array, p: Array) -> Array:
    return special.random_gamma_grad(a, out)


@partials(_moves_with_shape, _by_density)
def _gammaincinv(a: Array, y: Array) -> Array:
    return _gamma_inverse(a, y, False)


@partials(_moves_with_shape, lambda out, a, y: -_by_density(out, a, y))
def _gammainccinv(a: Array, y: Array) -> Array:
    return _gamma_inverse(a, y, True)


@wide
def gammaincinv(a: Array, y: Array) -> Array:
    """x with gammainc(a, x) = y, for y in [0, 1].

    Newton's method in log(x); derivatives by the implicit function theorem.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammaincinv(1.0, 0.6321)), 3)
    1.0
    """
    return _gammaincinv(a, y)


@wide
def gammainccinv(a: Array, y: Array) -> Array:
    """x with gammaincc(a, x) = y, for y in [0, 1], accurate for small y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammainccinv(1.0, 0.3679)), 3)
    1.0
    """
    return _gammainccinv(a, y)


# Beta ----------------------------------------------------------------------------------------

_TINY: Final = 1e-300
_CALM: Final = 8.0  # steps of the fraction after the last that changed it, for derivatives


def _fraction(a: Array, b: Array, x: Array) -> Array:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    def away(v: Array) -> Array:
        return jnp.where(lax.abs(v) < _TINY, _TINY, v)

    def step(m: Any, c: Array, d: Array, total: Array, calm: Array) -> tuple[Array, ...]:
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / away(1.0 + even * d)
        c = away(1.0 + even / c)
        first = d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / away(1.0 + odd * d)
        c = away(1.0 + odd / c)
        factor = first * (d * c)
        still = ~(lax.abs(factor - 1.0) >= 1e-15)
        return c, d, total * factor, jnp.where(still, calm + 1.0, 0.0)

    one = jnp.ones_like(x)
    d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0))
    return loop(step, (one, d, d, jnp.zeros_like(x)),
                lambda c, d, total, calm: calm < _CALM, 20_000)[2]


def beta_pair(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """I_x(a, b) and 1 - I_x(a, b) for y = 1 - x, both accurate where they are small."""
    inside = (x > 0) & (y > 0) & (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf)
    a_, b_ = jnp.where(inside, a, 1.0), jnp.where(inside, b, 1.0)
    x_, y_ = jnp.where(inside, x, 0.5), jnp.where(inside, y, 0.5)
    left = x_ * (a_ + b_ + 2.0) <= a_ + 1.0
    p, q = jnp.where(left, a_, b_), jnp.where(left, b_, a_)
    u = jnp.where(left, x_, y_)
    part = lax.exp(beta_log_density(a_, b_, x_, y_)) / p * _fraction(p, q, u)
    low, high = jnp.where(left, part, 1.0 - part), jnp.where(left, 1.0 - part, part)
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


def _beta_density(a: Array, b: Array, x: Array) -> Array:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b), also at the ends."""
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    value = lax.exp(beta_log_density(a, b, safe, 1.0 - safe)) / (safe * (1.0 - safe))
    p = jnp.where(x == 0, a, b)
    end = jnp.where(p > 1, 0.0, jnp.where(p == 1, a + b - 1.0, math.inf))
    return jnp.where(inside, value, jnp.where((x == 0) | (x == 1), end, math.nan))


betainc_: Callable[..., Array] = partials(pushed(_lower, 0), pushed(_lower, 1),
                    lambda out, a, b, x: _beta_density(a, b, x))(_lower)
betaincc_: Callable[..., Array] = partials(pushed(_upper, 0), pushed(_upper, 1),
                     lambda out, a, b, x: -_beta_density(a, b, x))(_upper)


@wide
def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].

    The continued fraction of DLMF 8.17.22, which is differentiated for derivatives in a and b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.betainc(1.0, 1.0, 0.25)), 6)
    0.25
    """
    return betainc_(a, b, x)


@wide
def betaincc(a: Array, b: Array, x: Array) -> Array:
    """1 - betainc(a, b, x), accurate where it is small.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.betaincc(1.0, 1.0, 0.25)), 6)
    0.75
    """
    return betaincc_(a, b, x)


def _logit_quantile(a: Array, b: Array, p: Array, q: Array) -> Array:
    """logit(x) with I_x(a, b) = p and 1 - I_x(a, b) = q, by the smaller of p and q."""
    lower = p <= q
    goal = lax.log(jnp.where(lower, p, q))
    # the leading terms at both ends: I_x ~ x^a / (a B(a, b))
    log_beta = betaln(a, b)
    start_low = (lax.log(p) + lax.log(a) + log_beta) / a
    start_high = -(lax.log(q) + lax.log(b) + log_beta) / b
    near = ndtri(jnp.where(lower, p, q)) * jnp.where(lower, 1.0, -1.0)
    normal = lax.log(a) - lax.log(b) + near * lax.sqrt(1.0 / a + 1.0 / b)
    guess = jnp.where((a > 1) & (b > 1), normal, jnp.where(lower, start_low, start_high))

    def miss(t: Array) -> tuple[Array, Array]:
        x, y = lax.logistic(t), lax.logistic(-t)
        low, high = beta_pair(a, b, x, y)
        value = jnp.where(lower, low, high)
        off = lax.log(value) - goal
        return jnp.where(lower, off, -off), lax.exp(beta_log_density(a, b, x, y)) / value

    edge = jnp.full_like(a, 700.0)
    return increasing_root(miss, -edge, edge, guess)


def _over_density(part: int) -> Any:
    """How logit(x) moves with a parameter: less the slope of I_x over the density of logit(x)."""
    slope = pushed(_at_logit, part)
    return lambda out, a, b, p, q: -slope(out, a, b, out) * _per_logit(out, a, b)


def _at_logit(a: Array, b: Array, t: Array) -> Array:
    return beta_pair(a, b, lax.logistic(t), lax.logistic(-t))[0]


def _per_logit(out: Array, a: Array, b: Array) -> Array:
    return lax.exp(-beta_log_density(a, b, lax.logistic(out), lax.logistic(-out)))


@partials(_over_density(0), _over_density(1), lambda out, a, b, p, q: _per_logit(out, a, b), None)
def _beta_logit(a: Array, b: Array, p: Array, q: Array) -> Array:
    """logit of the quantile of p = 1 - q, also at the ends; of its derivatives p has all."""
    valid = (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf)
    inside = (p > 0) & (q > 0) & valid
    t = _logit_quantile(*(jnp.where(inside, v, w) for v, w in ((a, 1.0), (b, 1.0), (p, 0.5),
                                                               (q, 0.5))))
    ends = jnp.where(p == 0, -math.inf, jnp.where(q == 0, math.inf, math.nan))
    return jnp.where(inside, t, jnp.where(valid, ends, math.nan))


def beta_logit(a: Array, b: Array, y: Array, upper: bool = False) -> Array:
    """logit(x) with I_x(a, b) = y, or with 1 - I_x(a, b) = y."""
    out: Array = _beta_logit(a, b, 1.0 - y, y) if upper else _beta_logit(a, b, y, 1.0 - y)
    return out


@wide
def betaincinv(a: Array, b: Array, y: Array) -> Array:
    """x with betainc(a, b, x) = y, for y in [0, 1].

    Newton's method in logit(x); derivatives by the implicit function theorem.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.betaincinv(1.0, 1.0, 0.25)), 6)
    0.25
    """
    return lax.logistic(beta_logit(a, b, y))


@wide
def betainccinv(a: Array, b: Array, y: Array) -> Array:
    """x with betaincc(a, b, x) = y, for y in [0, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.betainccinv(1.0, 1.0, 0.25)), 6)
    0.75
    """
    return lax.logistic(beta_logit(a, b, y, upper=True))
