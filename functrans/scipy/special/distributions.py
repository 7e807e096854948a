"""Distribution functions of special's older names, by incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.beta_integral import beta_at_odds, beta_pair
from functrans.scipy.special.common import HALF_LOG_2PI, partials, pushed, wide
from functrans.scipy.special.densities import betaln, log1p_square
from functrans.scipy.special.error_functions import ndtri
from functrans.scipy.special.incomplete import (
    beta_logit,
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    gammainc,
    gammainc_of_log,
    gammaincc,
    gammaincc_of_log,
    gammainccinv,
    gammaincinv,
)
from functrans.typing import Array

__all__ = ["bdtr", "bdtrc", "bdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri",
           "gdtr", "gdtrc", "gdtrix", "nbdtr", "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri",
           "stdtr", "stdtrit"]


def _nan_unless(valid: Array, value: Array) -> Array:
    return jnp.where(valid, value, math.nan)


# Binomial ------------------------------------------------------------------------------------


def _binomial(k: Array, n: Array, p: Array, upper: bool) -> Array:
    whole = lax.floor(k)
    valid = (n >= whole) & (n >= 0) & (p >= 0) & (p <= 1) & ~jnp.isnan(k)
    inside = valid & (whole >= 0) & (whole < n)
    a, b = jnp.where(inside, n - whole, 1.0), jnp.where(inside, whole + 1.0, 1.0)
    value = betainc(b, a, p) if upper else betaincc(b, a, p)
    low = jnp.where(whole < 0, 1.0 if upper else math.nan, 0.0 if upper else 1.0)
    return _nan_unless(valid, jnp.where(inside, value, low))


@wide
def bdtr(k: Array, n: Array, p: Array) -> Array:
    """The probability of at most floor(k) successes in n trials of probability p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bdtr(1, 2, 0.5)), 4)
    0.75
    """
    return _binomial(k, n, p, False)


@wide
def bdtrc(k: Array, n: Array, p: Array) -> Array:
    """The probability of more than floor(k) successes in n trials of probability p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bdtrc(1, 2, 0.5)), 4)
    0.25
    """
    return _binomial(k, n, p, True)


@wide
def bdtri(k: Array, n: Array, y: Array) -> Array:
    """The probability p of a success for which bdtr(k, n, p) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bdtri(1, 2, 0.75)), 4)
    0.5
    """
    whole = lax.floor(k)
    valid = (whole >= 0) & (whole < n)
    a, b = jnp.where(valid, n - whole, 1.0), jnp.where(valid, whole + 1.0, 1.0)
    return _nan_unless(valid, betainccinv(b, a, y))


def _after(k: Array) -> Array:
    """The number of trials up to floor(k), 1 for an impossible k."""
    return jnp.where(k >= 0, lax.floor(k) + 1.0, 1.0)


@wide
def nbdtr(k: Array, n: Array, p: Array) -> Array:
    """The probability of at most floor(k) failures before n successes of probability p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nbdtr(1, 2, 0.5)), 4)
    0.5
    """
    return _nan_unless(k >= 0, betainc(n, _after(k), p))


@wide
def nbdtrc(k: Array, n: Array, p: Array) -> Array:
    """The probability of more than floor(k) failures before n successes of probability p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nbdtrc(1, 2, 0.5)), 4)
    0.5
    """
    return _nan_unless(k >= 0, betaincc(n, _after(k), p))


@wide
def nbdtri(k: Array, n: Array, y: Array) -> Array:
    """The probability p of a success for which nbdtr(k, n, p) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nbdtri(1, 2, 0.5)), 4)
    0.5
    """
    return _nan_unless(k >= 0, betaincinv(n, _after(k), y))


# Poisson, gamma and chi-squared --------------------------------------------------------------


@wide
def pdtr(k: Array, m: Array) -> Array:
    """The probability of at most floor(k) events of a Poisson distribution of mean m.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pdtr(0, 1.0)), 4)
    0.3679
    """
    return _nan_unless(k >= 0, gammaincc(_after(k), m))


@wide
def pdtrc(k: Array, m: Array) -> Array:
    """The probability of more than floor(k) events of a Poisson distribution of mean m.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pdtrc(0, 1.0)), 4)
    0.6321
    """
    return _nan_unless(k >= 0, gammainc(_after(k), m))


@wide
def pdtri(k: Array, y: Array) -> Array:
    """The mean m for which pdtr(k, m) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pdtri(0, 0.3679)), 3)
    1.0
    """
    return _nan_unless(k >= 0, gammainccinv(_after(k), y))


@wide
def gdtr(a: Array, b: Array, x: Array) -> Array:
    """The probability of values up to x of a gamma distribution of rate a and shape b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gdtr(1.0, 1.0, 1.0)), 4)
    0.6321
    """
    return gammainc(b, a * x)


@wide
def gdtrc(a: Array, b: Array, x: Array) -> Array:
    """The probability of values above x of a gamma distribution of rate a and shape b.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gdtrc(1.0, 1.0, 1.0)), 4)
    0.3679
    """
    return gammaincc(b, a * x)


@wide
def gdtrix(a: Array, b: Array, p: Array) -> Array:
    """The quantile x for which gdtr(a, b, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gdtrix(1.0, 1.0, 0.6321)), 3)
    1.0
    """
    return gammaincinv(b, p) / a


@wide
def chdtr(v: Array, x: Array) -> Array:
    """The probability of values up to x of a chi-squared distribution of v degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chdtr(2.0, 2.0)), 4)
    0.6321
    """
    some = (x > 0) & (x < 1e-300)  # half of the least number is 0
    y = jnp.where(some, x, 1.0)
    small = gammainc_of_log(lax.log(y) - math.log(2.0), 0.5 * y, jnp.where(some, 0.5 * v, 1.0))
    return jnp.where(some & (v > 0), small, gammainc(0.5 * v, 0.5 * x))


@wide
def chdtrc(v: Array, x: Array) -> Array:
    """The probability of values above x of a chi-squared distribution of v degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chdtrc(2.0, 2.0)), 4)
    0.3679
    """
    some = (x > 0) & (x < 1e-300)
    y = jnp.where(some, x, 1.0)
    small = gammaincc_of_log(lax.log(y) - math.log(2.0), 0.5 * y, jnp.where(some, 0.5 * v, 1.0))
    return jnp.where(some & (v > 0), small, gammaincc(0.5 * v, 0.5 * x))


@wide
def chdtri(v: Array, p: Array) -> Array:
    """The x for which chdtrc(v, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chdtri(2.0, 0.3679)), 3)
    2.0
    """
    return 2.0 * gammainccinv(0.5 * v, p)


# F and Student's t ---------------------------------------------------------------------------


def _f_tail(dfn: Array, dfd: Array, x: Array) -> Array:
    """The share of odds dfn x / dfd, of finite degrees of freedom above 0; x may be infinite."""
    valid = (dfn > 0) & (dfd > 0) & (dfn < math.inf) & (dfd < math.inf) & (x >= 0)
    m, n = jnp.where(valid, dfn, 1.0), jnp.where(valid, dfd, 1.0)
    infinite = x == math.inf
    odds = jnp.minimum(m / n * jnp.where(infinite, 1.0, x), 1e308)
    odds = jnp.where(infinite, math.inf, odds)
    return _nan_unless(valid, beta_at_odds(0.5 * m, 0.5 * n, jnp.where(valid, odds, 1.0)))


@wide
def fdtr(dfn: Array, dfd: Array, x: Array) -> Array:
    """The probability of values up to x of an F distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fdtr(2.0, 2.0, 1.0)), 4)
    0.5
    """
    return _f_tail(dfn, dfd, x)


@wide
def fdtrc(dfn: Array, dfd: Array, x: Array) -> Array:
    """The probability of values above x of an F distribution.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fdtrc(2.0, 2.0, 1.0)), 4)
    0.5
    """
    # at -0.0 the reciprocal is that of 0
    return _f_tail(dfd, dfn, lax.abs(1.0 / jnp.where(x >= 0, x, math.nan)))


@wide
def fdtri(dfn: Array, dfd: Array, p: Array) -> Array:
    """The quantile x for which fdtr(dfn, dfd, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fdtri(2.0, 2.0, 0.5)), 4)
    1.0
    """
    # share / (1 - share) of the share of the sum, which is the exponential of its logit: of half
    # of it, as the odds may be beyond the numbers where the quantile is not
    half = lax.exp(0.5 * beta_logit(0.5 * dfn, 0.5 * dfd, p))
    return half * dfd / dfn * half



def _beta_tail(near: Array, half: Array, b: Array, share: Array) -> Array:
    """1 - I_share(half, b) where near, and I_share(b, half) elsewhere."""
    return beta_pair(half, b, jnp.where(near, share, 1.0 - share),
                     jnp.where(near, 1.0 - share, share))[1]


def _student_tail(df: Array, t: Array) -> Array:
    """The probability of values below t <= 0."""
    square = t * t
    whole = jnp.where(square < math.inf, square, 1.0)
    near = whole < df
    # of the smaller share, whose digits count
    share = jnp.where(near, whole, df) / (df + whole)
    half = jnp.full_like(df, 0.5)
    tail = _beta_tail(near, half, 0.5 * df, jnp.where(square < math.inf, share, 0.0))
    value = 0.5 * tail
    return jnp.where(square < math.inf, value, _far_tail(df, t))


def _far_tail(df: Array, t: Array) -> Array:
    """Where the square overflows, by the leading power of t."""
    size = jnp.where((t < -1.0) & (t > -math.inf), -t, 1e300)
    log = 0.5 * df * lax.log(df) - lax.log(df) - betaln(0.5 * df, jnp.full_like(df, 0.5)) \
        - df * lax.log(size)
    return jnp.where(t == -math.inf, 0.0, lax.exp(log))


def student_density(df: Array, t: Array) -> Array:
    """The density of Student's distribution."""
    normal = df == math.inf
    v = jnp.where(normal, 1.0, df)
    root = lax.sqrt(v)
    log = -0.5 * (v + 1.0) * log1p_square(t / root) - betaln(0.5 * v, jnp.full_like(v, 0.5))
    bell = -0.5 * t * t - HALF_LOG_2PI
    return lax.exp(jnp.where(normal, bell, log)) / root


def _stdtr_value(df: Array, t: Array) -> Array:
    valid = (df > 0) & ~jnp.isnan(t)
    normal = df == math.inf
    v = jnp.where(valid & ~normal, df, 1.0)
    zero = t == 0
    tail = _student_tail(v, jnp.where(zero, -1.0, -lax.abs(t)))
    value = jnp.where(zero, 0.5, jnp.where(t > 0, 1.0 - tail, tail))
    bell = 0.5 * lax.erfc(-t * math.sqrt(0.5))
    return _nan_unless(valid, jnp.where(normal, bell, value))


stdtr_: Callable[..., Array] = partials(
    pushed(_stdtr_value, 0), lambda out, df, t: student_density(df, t))(_stdtr_value)


@wide
def stdtr(df: Array, t: Array) -> Array:
    """The probability of values up to t of Student's distribution of df degrees of freedom.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.stdtr(1.0, 1.0)), 4)
    0.75
    """
    return stdtr_(df, t)


def _by_student(out: Array, df: Array, p: Array) -> Array:
    slope: Array = pushed(_stdtr_value, 0)(out, df, out)
    return -slope / student_density(df, out)


def _stdtrit_value(df: Array, p: Array) -> Array:
    tail = jnp.minimum(p, 1.0 - p)
    inside = (tail > 0) & (df > 0) & (df < math.inf)
    v, q = jnp.where(inside, df, 1.0), jnp.where(inside, tail, 0.25)
    half = jnp.full_like(v, 0.5)
    far = q < 0.25
    # of the tail, or of what is within around the middle, where the tail has no digits
    a, b = jnp.where(far, 0.5 * v, half), jnp.where(far, half, 0.5 * v)
    logit = beta_logit(a, b, 2.0 * jnp.where(far, q, 0.5 - q))
    size = lax.sqrt(v) * lax.exp(0.5 * jnp.where(far, -logit, logit))
    ends = jnp.where((p == 0) | (p == 1), math.inf, math.nan)
    size = jnp.where(inside, size, jnp.where(df > 0, ends, math.nan))
    value = jnp.where(p < 0.5, -size, size)
    return jnp.where(df == math.inf, ndtri(p), value)


stdtrit_: Callable[..., Array] = partials(
    _by_student, lambda out, df, p: 1.0 / student_density(df, out))(_stdtrit_value)


@wide
def stdtrit(df: Array, p: Array) -> Array:
    """The quantile t for which stdtr(df, t) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.stdtrit(1.0, 0.75)), 4)
    1.0
    """
    return stdtrit_(df, p)


