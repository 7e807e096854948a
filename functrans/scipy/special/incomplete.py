"""Incomplete gamma and beta functions, and their inverses."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.primitives import special
from functrans.scipy.special.beta_integral import (
    SMALL,
    beta_pair,
    betainc_,
    betaincc_,
    log_of_front,
)
from functrans.scipy.special.common import EULER, elementwise, partials, pushed, wide
from functrans.scipy.special.densities import beta_log_density, betaln, gamma_log_density
from functrans.scipy.special.error_functions import ndtri
from functrans.scipy.special.roots import increasing_root
from functrans.typing import Array

__all__ = [
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "gammainc",
    "gammainc_of_log",
    "gammaincc",
    "gammaincc_of_log",
    "gammainccinv",
    "gammaincinv",
]

@elementwise
def gammainc(a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammainc(1.0, 1.0)), 4)
    0.6321
    """
    subnormal = (x > 0) & (x < float(dtypes.finfo(x.dtype).tiny)) & (a > 0) & (a < math.inf)
    p, y = jnp.where(subnormal, a, 1.0), jnp.where(subnormal, x, 1.0)
    return jnp.where(subnormal, lax.exp(_log_first(p, lax.log(y))),
                     special.igamma(a, jnp.where(subnormal, 1.0, x)))


@elementwise
def gammaincc(a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x).

    >>> ft.scipy.special.gammaincc(2.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.7358], dtype=float32)
    """
    subnormal = (x > 0) & (x < float(dtypes.finfo(x.dtype).tiny)) & (a > 0) & (a < math.inf)
    p, y = jnp.where(subnormal, a, 1.0), jnp.where(subnormal, x, 1.0)
    return jnp.where(subnormal, 1.0 - lax.exp(_log_first(p, lax.log(y))),
                     special.igammac(a, jnp.where(subnormal, 1.0, x)))


def _log_first(a: Array, log_x: Array) -> Array:
    """The logarithm of the first term of the series of P(a, x), which is all for a tiny x."""
    return a * log_x - lax.lgamma(a + 1.0)


def gammainc_of_log(log_x: Array, x: Array, a: Array) -> Array:
    """P(a, x) for x > 0, also where x is no number above 0; far out the slopes are 0."""
    small = x < 1e-20
    safe = jnp.minimum(jnp.where(small, 1.0, x), 1e30)
    first = lax.exp(_log_first(a, jnp.where(small, log_x, 0.0)))
    return jnp.where(small, first, gammainc(a, safe))


def gammaincc_of_log(log_x: Array, x: Array, a: Array) -> Array:
    """1 - P(a, x) for x > 0, also where x is no number above 0."""
    small = x < 1e-20
    safe = jnp.minimum(jnp.where(small, 1.0, x), 1e30)
    # not by expm1, whose slope is lost where the value is -1
    first = 1.0 - lax.exp(_log_first(a, jnp.where(small, log_x, 0.0)))
    return jnp.where(small, first, gammaincc(a, safe))



def _gamma_quantile(a: Array, p: Array, q: Array) -> Array:
    """x with P(a, x) = p and Q(a, x) = q, in log(x) and by the smaller of p and q."""
    lower = p <= q
    goal = lax.log(jnp.where(lower, p, q))
    # P(a, x) <= x^a / Gamma(a + 1), and the tail is below exp(-L) from a + sqrt(2 a L) + L on
    near_zero = a < 1e-6
    log_gamma = jnp.where(near_zero, -a * EULER, lax.lgamma(jnp.where(near_zero, 0.0, a) + 1.0))
    least = (jnp.where(lower, lax.log(p), lax.log1p(-q)) + log_gamma) / a
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
    # all of the mass is at 0 for a shape 0, and at infinity for an infinite one
    mass = jnp.where((p > 0) & (p < 1), jnp.where(a == 0, 0.0, math.inf), math.nan)
    ends = jnp.where(p == 0, zero, jnp.where(p == 1, one, mass))
    return jnp.where(inside, x, jnp.where(a >= 0, ends, math.nan))


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

@wide
def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].

    The continued fraction of DLMF 8.17.22, a series where a parameter is near 0, and a quadrature
    where both are large; each is differentiated for derivatives in a and b.

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


def _log_front(a: Array, b: Array, log_beta: Array) -> Array:
    """log(1 / (a B(a, b)))."""
    small = a < SMALL
    return jnp.where(small, log_of_front(jnp.where(small, a, SMALL), b), -lax.log(a) - log_beta)


def _logit_quantile(a: Array, b: Array, p: Array, q: Array) -> Array:
    """logit(x) with I_x(a, b) = p and 1 - I_x(a, b) = q, by the smaller of p and q."""
    lower = p <= q
    goal = lax.log(jnp.where(lower, p, q))
    # the leading terms at both ends: I_x ~ x^a / (a B(a, b))
    log_beta = betaln(a, b)
    log_p = jnp.where(lower, lax.log(p), lax.log1p(-q))
    log_q = jnp.where(lower, lax.log1p(-p), lax.log(q))
    start_low = (log_p - _log_front(a, b, log_beta)) / a
    start_high = -(log_q - _log_front(b, a, log_beta)) / b
    near = ndtri(jnp.where(lower, p, q)) * jnp.where(lower, 1.0, -1.0)
    normal = lax.log(a) - lax.log(b) + near * lax.sqrt(1.0 / a + 1.0 / b)
    guess = jnp.where((a > 1) & (b > 1), normal, jnp.where(lower, start_low, start_high))

    def miss(t: Array) -> tuple[Array, Array]:
        x, y = lax.logistic(t), lax.logistic(-t)
        low, high = beta_pair(a, b, x, y)
        value = jnp.where(lower, low, high)
        off = lax.log(value) - goal
        return jnp.where(lower, off, -off), lax.exp(beta_log_density(a, b, x, y)) / value

    edge = jnp.full_like(a, 745.0)
    found = increasing_root(miss, -edge, edge, guess)
    # beyond the numbers, and where nothing but the leading term is left
    found = jnp.where((start_low < -690.0) & (start_low + lax.log(b) < -40.0), start_low,
                      found)
    return jnp.where((start_high > 690.0) & (lax.log(a) - start_high < -40.0), start_high,
                     found)


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
    valid = (a > 0) & (b > 0) & (p >= 0) & (q >= 0) & ~((a == math.inf) & (b == math.inf))
    inside = (p > 0) & (q > 0) & valid & (a < math.inf) & (b < math.inf)
    t = _logit_quantile(*(jnp.where(inside, v, w) for v, w in ((a, 1.0), (b, 1.0), (p, 0.5),
                                                               (q, 0.5))))
    # all of the mass is at the end that an infinite parameter is away from
    mass = jnp.where(a == math.inf, math.inf, -math.inf)
    ends = jnp.where(p == 0, -math.inf, jnp.where(q == 0, math.inf, mass))
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
