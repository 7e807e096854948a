"""Inverses of the distribution functions of special in their parameters, which are no quantiles.

Counts are real numbers in them: the incomplete beta and gamma functions are of all shapes.
"""

from __future__ import annotations

import math
from typing import Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import partials, wide
from functrans.scipy.special.distributions import fdtr, fdtrc, stdtr_
from functrans.scipy.special.error_functions import ndtri
from functrans.scipy.special.implicit_inverses import inverse, rising_root
from functrans.scipy.special.incomplete import betainc, betaincc, gammainc, gammaincc
from functrans.typing import Array

__all__ = ["bdtrik", "bdtrin", "btdtria", "btdtrib", "chdtriv", "fdtridfd", "gdtria", "gdtrib",
           "nbdtrik", "nbdtrin", "nrdtrimn", "nrdtrisd", "pdtrik", "stdtridf", "tklmbda"]


def _beta(a: Array, b: Array, x: Array) -> Array:
    return betainc(a, b, x)


def _beta_above(a: Array, b: Array, x: Array) -> Array:
    return betaincc(a, b, x)


def _binomial(k: Array, n: Array, p: Array) -> Array:
    return betaincc(k + 1.0, n - k, p)


def _binomial_above(k: Array, n: Array, p: Array) -> Array:
    return betainc(k + 1.0, n - k, p)


def _failures(k: Array, n: Array, p: Array) -> Array:
    return betainc(n, k + 1.0, p)


def _failures_above(k: Array, n: Array, p: Array) -> Array:
    return betaincc(n, k + 1.0, p)


def _gamma(a: Array, b: Array, x: Array) -> Array:
    return gammainc(b, a * x)


def _gamma_above(a: Array, b: Array, x: Array) -> Array:
    return gammaincc(b, a * x)


def _chi(v: Array, x: Array) -> Array:
    return gammainc(0.5 * v, 0.5 * x)


def _chi_above(v: Array, x: Array) -> Array:
    return gammaincc(0.5 * v, 0.5 * x)


def _events(k: Array, m: Array) -> Array:
    return gammaincc(k + 1.0, m)


def _events_above(k: Array, m: Array) -> Array:
    return gammainc(k + 1.0, m)


def _f(dfn: Array, dfd: Array, x: Array) -> Array:
    return fdtr(dfn, dfd, x)


def _f_above(dfn: Array, dfd: Array, x: Array) -> Array:
    return fdtrc(dfn, dfd, x)


def _student(df: Array, t: Array) -> Array:
    return stdtr_(df, t)


def _student_above(df: Array, t: Array) -> Array:
    return stdtr_(df, -t)


def _from_minus_1(u: Array, *args: Array) -> Array:
    return lax.expm1(u)


def _successes(u: Array, p: Array, n: Array, share: Array) -> Array:
    """Between -1 and n."""
    return (n + 1.0) * lax.logistic(u) - 1.0


def _more_than(u: Array, k: Array, p: Array, share: Array) -> Array:
    return k + lax.exp(u)


_BDTRIK: Final = inverse(_binomial, 0, True, _binomial_above, _successes)
_BDTRIN: Final = inverse(_binomial, 1, False, _binomial_above, _more_than)
_BTDTRIA: Final = inverse(_beta, 0, False, _beta_above)
_BTDTRIB: Final = inverse(_beta, 1, True, _beta_above)
_CHDTRIV: Final = inverse(_chi, 0, False, _chi_above)
_FDTRIDFD: Final = inverse(_f, 1, True, _f_above)
_GDTRIA: Final = inverse(_gamma, 0, True, _gamma_above)
_GDTRIB: Final = inverse(_gamma, 1, False, _gamma_above)
_NBDTRIK: Final = inverse(_failures, 0, True, _failures_above, _from_minus_1)
_NBDTRIN: Final = inverse(_failures, 1, False, _failures_above)
_PDTRIK: Final = inverse(_events, 0, True, _events_above, _from_minus_1)
_STDTRIDF: Final = inverse(_student, 0, lambda p, t: t > 0, _student_above)


def _count(value: Array) -> Array:
    """A count, 0 where even none is more likely than asked."""
    return jnp.where(value < 0, 0.0, value)


@wide
def bdtrik(y: Array, n: Array, p: Array) -> Array:
    """The number of successes k, real, for which the probability bdtr of at most k is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bdtrik(0.75, 2.0, 0.5)), 4)
    1.0
    """
    return _count(_BDTRIK(y, n, p))


@wide
def bdtrin(k: Array, y: Array, p: Array) -> Array:
    """The number of trials n, real, for which bdtr(k, n, p) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bdtrin(1.0, 0.75, 0.5)), 4)
    2.0
    """
    return _BDTRIN(k, y, p)


@wide
def btdtria(p: Array, b: Array, x: Array) -> Array:
    """The shape a for which betainc(a, b, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.btdtria(0.25, 1.0, 0.5)), 4)
    2.0
    """
    return _BTDTRIA(p, b, x)


@wide
def btdtrib(a: Array, p: Array, x: Array) -> Array:
    """The shape b for which betainc(a, b, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.btdtrib(1.0, 0.75, 0.5)), 4)
    2.0
    """
    return _BTDTRIB(a, p, x)


@wide
def chdtriv(p: Array, x: Array) -> Array:
    """The degrees of freedom v for which chdtr(v, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chdtriv(0.6321, 2.0)), 3)
    2.0
    """
    return _CHDTRIV(p, x)


@wide
def fdtridfd(dfn: Array, p: Array, x: Array) -> Array:
    """The degrees of freedom dfd for which fdtr(dfn, dfd, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fdtridfd(2.0, 0.5, 1.0)), 4)
    2.0
    """
    return _FDTRIDFD(dfn, p, x)


@wide
def gdtria(p: Array, b: Array, x: Array) -> Array:
    """The rate a for which gdtr(a, b, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gdtria(0.6321, 1.0, 1.0)), 3)
    1.0
    """
    return _GDTRIA(p, b, x)


@wide
def gdtrib(a: Array, p: Array, x: Array) -> Array:
    """The shape b for which gdtr(a, b, x) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gdtrib(1.0, 0.6321, 1.0)), 3)
    1.0
    """
    return _GDTRIB(a, p, x)


@wide
def nbdtrik(y: Array, n: Array, p: Array) -> Array:
    """The number of failures k, real, for which nbdtr(k, n, p) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nbdtrik(0.5, 2.0, 0.5)), 4)
    1.0
    """
    return _count(_NBDTRIK(y, n, p))


@wide
def nbdtrin(k: Array, y: Array, p: Array) -> Array:
    """The number of successes n, real, for which nbdtr(k, n, p) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nbdtrin(1.0, 0.5, 0.5)), 4)
    2.0
    """
    return _NBDTRIN(k, y, p)


@wide
def pdtrik(p: Array, m: Array) -> Array:
    """The number of events k, real, for which the probability pdtr of at most k is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pdtrik(0.7358, 1.0)), 3)
    1.0
    """
    return _count(_PDTRIK(p, m))


@wide
def stdtridf(p: Array, t: Array) -> Array:
    """The degrees of freedom df for which stdtr(df, t) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.stdtridf(0.75, 1.0)), 4)
    1.0
    """
    return _STDTRIDF(p, t)


@wide
def nrdtrimn(p: Array, std: Array, x: Array) -> Array:
    """The mean of the normal distribution of deviation std of which values up to x have share p.

    >>> import functrans as ft
    >>> float(ft.scipy.special.nrdtrimn(0.5, 2.0, 1.0))
    1.0
    """
    return jnp.where(std > 0, x - std * ndtri(p), math.nan)


@wide
def nrdtrisd(mn: Array, p: Array, x: Array) -> Array:
    """The deviation of the normal distribution of mean mn of which values up to x have share p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nrdtrisd(0.0, 0.8413, 1.0)), 3)
    1.0
    """
    return (x - mn) / ndtri(p)


# Tukey's lambda ----------------------------------------------------------------------------------


def _power_difference(u: Array, lmbda: Array) -> Array:
    """(p^lmbda - (1 - p)^lmbda) / lmbda of p = 1 / (1 + exp(-u))."""
    p, q = -jnp.logaddexp(0.0, -u), -jnp.logaddexp(0.0, u)
    tiny = lax.abs(lmbda) * jnp.maximum(lax.abs(p), lax.abs(q)) < 1e-8
    safe = jnp.where(tiny, 1.0, lmbda)
    far = (lax.expm1(safe * p) - lax.expm1(safe * q)) / safe
    return jnp.where(tiny, (p - q) * (1.0 + 0.5 * lmbda * (p + q)), far)


def _tukey_slope(out: Array, x: Array, lmbda: Array) -> Array:
    p, q = out, 1.0 - out
    inside = (p > 0) & (q > 0)
    p, q = jnp.where(inside, p, 0.5), jnp.where(inside, q, 0.5)
    e = lmbda - 1.0
    return jnp.where(inside, 1.0 / (lax.exp(e * lax.log(p)) + lax.exp(e * lax.log(q))), 0.0)


def _tukey_in_lambda(out: Array, x: Array, lmbda: Array) -> Array:
    inside = (out > 0) & (out < 1)
    p, q = (lax.log(jnp.where(inside, v, 0.5)) for v in (out, 1.0 - out))
    tiny = lax.abs(lmbda) < 1e-6
    safe = jnp.where(tiny, 1.0, lmbda)
    rise = (p * lax.exp(safe * p) - q * lax.exp(safe * q)) / safe - (
        lax.expm1(safe * p) - lax.expm1(safe * q)) / (safe * safe)
    rise = jnp.where(tiny, 0.5 * (p - q) * (p + q), rise)
    return -rise * _tukey_slope(out, x, lmbda)


@partials(_tukey_slope, _tukey_in_lambda)
def _tukey(x: Array, lmbda: Array) -> Array:
    some = (x == x) & (lmbda == lmbda) & (lax.abs(lmbda) < math.inf)
    edge = 1.0 / jnp.where(lmbda > 0, lmbda, 1.0)
    outside = (lmbda > 0) & (lax.abs(x) >= edge) | (lax.abs(x) == math.inf)
    place = jnp.where(some & ~outside, x, 0.0)
    shape = jnp.where(some & ~outside, lmbda, 0.0)
    u = rising_root(lambda u: _power_difference(u, shape) - place, jnp.zeros_like(place))
    value = jnp.where(outside, jnp.where(x > 0, 1.0, 0.0), lax.logistic(u))
    return jnp.where(some, value, math.nan)


@wide
def tklmbda(x: Array, lmbda: Array) -> Array:
    """Tukey's lambda distribution: p for which (p^lmbda - (1 - p)^lmbda) / lmbda is x.

    >>> import functrans as ft
    >>> float(ft.scipy.special.tklmbda(0.5, 1.0))
    0.75
    """
    return _tukey(x, lmbda)
