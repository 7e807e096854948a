"""Distribution functions of noncentral chi-squared, F and t variables: sums of Poisson weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, wide
from functrans.scipy.special.error_functions import ndtr
from functrans.scipy.special.implicit_inverses import inverse, real
from functrans.scipy.special.incomplete import betainc, gammainc
from functrans.typing import Array

__all__ = ["chndtr", "chndtridf", "chndtrinc", "chndtrix", "ncfdtr", "ncfdtri", "ncfdtridfd",
           "ncfdtridfn", "ncfdtrinc", "nctdtr", "nctdtridf", "nctdtrinc", "nctdtrit"]

_MOST: Final = 1e7
_LIMIT: Final = 11_000_000


def _top(mean: Array) -> Array:
    """The count from which on weights of a Poisson variable are below rounding."""
    fall = jnp.maximum(-lax.log(jnp.where(mean > 0, mean, 1.0)), 1.0)
    top = lax.ceil(mean + 10.0 * lax.sqrt(mean) + 46.0 / fall)
    return lax.stop_gradient(jnp.where(mean > 0, top, 0.0))


def _reach(log_drop: Callable[[Array], Array], top: Array) -> Array:
    """The largest count up to `top` of which the tail is a number of float64, by bisection."""
    def step(k: Any, low: Array, high: Array) -> tuple[Array, ...]:
        middle = lax.ceil(0.5 * (low + high))
        fits = log_drop(middle) > -600.0
        return jnp.where(fits, middle, low), jnp.where(fits, high, middle - 1.0)

    high = jnp.where(log_drop(top) > -600.0, top, top - 1.0)
    low = jnp.where(high < top, 0.0 * top, top)
    return lax.stop_gradient(loop(step, (low, jnp.maximum(high, low)),
                                  lambda low, high: low < high, 60)[0])


def _weighted(mean: Array, top: Array, weight: Array, offset: float, tail: Array, drop: Array,
              ratio: Callable[[Array], Array]) -> Array:
    """The sum of weight_j tail_j over j from `top` down to 0.

    weight_(j - 1) = weight_j (j + offset) / mean, tail_(j - 1) = tail_j + drop_(j - 1) and
    drop_(j - 1) = drop_j ratio(j): all terms are positive, and tails come of one evaluation.
    """
    safe = jnp.where(mean > 0, mean, 1.0)

    def step(k: Any, total: Array, weight: Array, tail: Array, drop: Array, j: Array
             ) -> tuple[Array, ...]:
        weight, drop = weight * (j + offset) / safe, drop * ratio(j)
        tail = tail + drop
        return total + weight * tail, weight, tail, drop, j - 1.0

    start = (weight * tail, weight, tail, drop, top)
    return loop(step, start, lambda total, weight, tail, drop, j: j > 0, _LIMIT)[0]


def _poisson(mean: Array, j: Array, offset: float) -> Array:
    """mean^j exp(-mean) / Gamma(j + 1 + offset)."""
    some = mean > 0
    safe = jnp.where(some, mean, 1.0)
    weight = lax.exp(j * lax.log(safe) - safe - lax.lgamma(j + 1.0 + offset))
    return jnp.where(some, weight, 1.0 if offset == 0 else 1.0 / math.gamma(1.0 + offset))


def _chndtr(x: Array, df: Array, nc: Array) -> Array:
    valid = (df > 0) & (nc >= 0) & (nc < _MOST) & (x == x)
    some = valid & (x > 0) & (x < math.inf)
    a, y, mean = (jnp.where(some, v, 1.0) * 0.5 for v in (df, x, nc))
    # of the shape s the fall to the next one is y^s exp(-y) / Gamma(s + 1)
    def log_drop(j: Array) -> Array:
        return (a + j) * lax.log(y) - y - lax.lgamma(a + j + 1.0)

    top = _reach(log_drop, _top(mean))
    high = a + top
    drop = lax.exp(log_drop(top))
    value = _weighted(mean, top, _poisson(mean, top, 0.0), 0.0, gammainc(high, y), drop,
                      lambda j: (a + j) / y)
    return jnp.where(some, value, jnp.where(valid, jnp.where(x > 0, 1.0, 0.0), math.nan))


def _beta_sum(mean: Array, offset: float, a: Array, b: Array, y: Array, z: Array) -> Array:
    """Poisson weights, of Gamma(j + 1 + offset), times I_y(a + j, b)."""
    # I_y(s, b) less I_y(s + 1, b) is y^s z^b / (s B(s, b))
    def log_drop(j: Array) -> Array:
        s = a + j
        return s * lax.log(y) + b * lax.log(z) + lax.lgamma(s + b) - lax.lgamma(s + 1.0) \
            - lax.lgamma(b)

    top = _reach(log_drop, _top(mean))
    return _weighted(mean, top, _poisson(mean, top, offset), offset, betainc(a + top, b, y),
                     lax.exp(log_drop(top)), lambda j: (a + j) / ((a + b + j - 1.0) * y))


def _ncfdtr(dfn: Array, dfd: Array, nc: Array, f: Array) -> Array:
    valid = (dfn > 0) & (dfd > 0) & (nc >= 0) & (nc < _MOST) & (f == f)
    some = valid & (f > 0) & (f < math.inf)
    m, n, x, mean = (jnp.where(some, v, 1.0) for v in (dfn, dfd, f, 0.5 * nc))
    y, z = m * x / (n + m * x), n / (n + m * x)
    value = _beta_sum(mean, 0.0, 0.5 * m, 0.5 * n, y, z)
    return jnp.where(some, value, jnp.where(valid, jnp.where(f > 0, 1.0, 0.0), math.nan))


def _nctdtr(df: Array, nc: Array, t: Array) -> Array:
    valid = (df > 0) & (lax.abs(nc) < 3000.0) & (t == t)
    some = valid & (t != 0) & (lax.abs(t) < math.inf)
    n, d, x = (jnp.where(some, v, 1.0) for v in (df, nc, t))
    below = x < 0
    d, x = jnp.where(below, -d, d), lax.abs(x)
    square = x * x
    y, z = square / (n + square), n / (n + square)
    mean = 0.5 * d * d
    even = _beta_sum(mean, 0.0, jnp.full_like(n, 0.5), 0.5 * n, y, z)
    odd = _beta_sum(mean, 0.5, jnp.ones_like(n), 0.5 * n, y, z)
    value = ndtr(-d) + 0.5 * (even + d * math.sqrt(0.5) * odd)
    value = jnp.clip(jnp.where(below, 1.0 - value, value), 0.0, 1.0)
    ends = jnp.where(t == 0, ndtr(-nc), jnp.where(t > 0, 1.0, 0.0))
    return jnp.where(some, value, jnp.where(valid, ends, math.nan))


@wide
def chndtr(x: Array, df: Array, nc: Array) -> Array:
    """The probability of values up to x of a noncentral chi-squared variable.

    Of df > 0 degrees of freedom and 0 <= nc < 1e7: a sum of Poisson weights times central tails,
    from the last count down (Ding, 1992).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chndtr(2.0, 2.0, 1.0)), 4)
    0.4699
    """
    return _chndtr(x, df, nc)


@wide
def ncfdtr(dfn: Array, dfd: Array, nc: Array, f: Array) -> Array:
    """The probability of values up to f of a noncentral F variable, 0 <= nc < 1e7.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ncfdtr(2.0, 3.0, 1.5, 1.0)), 4)
    0.3611
    """
    return _ncfdtr(dfn, dfd, nc, f)


@wide
def nctdtr(df: Array, nc: Array, t: Array) -> Array:
    """The probability of values up to t of a noncentral t variable, |nc| < 3000.

    Below t = 0 it is 1 less the other tail, within 1e-16 of it.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nctdtr(3.0, 0.5, 1.0)), 4)
    0.6515
    """
    return _nctdtr(df, nc, t)


_CHNDTRIX: Final = inverse(_chndtr, 0, True)
_CHNDTRIDF: Final = inverse(_chndtr, 1, False)
_CHNDTRINC: Final = inverse(_chndtr, 2, False)
_NCFDTRI: Final = inverse(_ncfdtr, 3, True)
_NCFDTRIDFN: Final = inverse(_ncfdtr, 0, False)
_NCFDTRIDFD: Final = inverse(_ncfdtr, 1, True)
_NCFDTRINC: Final = inverse(_ncfdtr, 2, False)
_NCTDTRIDF: Final = inverse(_nctdtr, 0, lambda p, nc, t: t > 0)
_NCTDTRINC: Final = inverse(_nctdtr, 1, False, parameter=real)
_NCTDTRIT: Final = inverse(_nctdtr, 2, True, parameter=real)


@wide
def chndtrix(p: Array, df: Array, nc: Array) -> Array:
    """The quantile x for which chndtr(x, df, nc) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chndtrix(0.4699, 2.0, 1.0)), 3)
    2.0
    """
    return _CHNDTRIX(p, df, nc)


@wide
def chndtridf(x: Array, p: Array, nc: Array) -> Array:
    """The degrees of freedom df for which chndtr(x, df, nc) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chndtridf(2.0, 0.4699, 1.0)), 3)
    2.0
    """
    return _CHNDTRIDF(x, p, nc)


@wide
def chndtrinc(x: Array, df: Array, p: Array) -> Array:
    """The noncentrality nc for which chndtr(x, df, nc) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.chndtrinc(2.0, 2.0, 0.4699)), 3)
    1.0
    """
    return _CHNDTRINC(x, df, p)


@wide
def ncfdtri(dfn: Array, dfd: Array, nc: Array, p: Array) -> Array:
    """The quantile f for which ncfdtr(dfn, dfd, nc, f) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ncfdtri(2.0, 3.0, 1.5, 0.3611)), 3)
    1.0
    """
    return _NCFDTRI(dfn, dfd, nc, p)


@wide
def ncfdtridfn(p: Array, dfd: Array, nc: Array, f: Array) -> Array:
    """A number of degrees of freedom dfn for which ncfdtr(dfn, dfd, nc, f) is p.

    Where there are several it is the one below which the probability is larger.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ncfdtridfn(0.391, 3.0, 1.5, 1.0)), 2)
    0.31
    """
    return _NCFDTRIDFN(p, dfd, nc, f)


@wide
def ncfdtridfd(dfn: Array, p: Array, nc: Array, f: Array) -> Array:
    """The degrees of freedom dfd for which ncfdtr(dfn, dfd, nc, f) is p.

    >>> import functrans as ft
    >>> p = ft.scipy.special.ncfdtr(2.0, 3.0, 1.5, 1.0)
    >>> round(float(ft.scipy.special.ncfdtridfd(2.0, p, 1.5, 1.0)), 2)
    3.0
    """
    return _NCFDTRIDFD(dfn, p, nc, f)


@wide
def ncfdtrinc(dfn: Array, dfd: Array, p: Array, f: Array) -> Array:
    """The noncentrality nc for which ncfdtr(dfn, dfd, nc, f) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ncfdtrinc(2.0, 3.0, 0.3611, 1.0)), 2)
    1.5
    """
    return _NCFDTRINC(dfn, dfd, p, f)


@wide
def nctdtridf(p: Array, nc: Array, t: Array) -> Array:
    """The degrees of freedom df for which nctdtr(df, nc, t) is p.

    >>> import functrans as ft
    >>> p = ft.scipy.special.nctdtr(3.0, 0.5, 1.0)
    >>> round(float(ft.scipy.special.nctdtridf(p, 0.5, 1.0)), 2)
    3.0
    """
    return _NCTDTRIDF(p, nc, t)


@wide
def nctdtrinc(df: Array, p: Array, t: Array) -> Array:
    """The noncentrality nc for which nctdtr(df, nc, t) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nctdtrinc(3.0, 0.6515, 1.0)), 2)
    0.5
    """
    return _NCTDTRINC(df, p, t)


@wide
def nctdtrit(df: Array, nc: Array, p: Array) -> Array:
    """The quantile t for which nctdtr(df, nc, t) is p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.nctdtrit(3.0, 0.5, 0.6515)), 3)
    1.0
    """
    return _NCTDTRIT(df, nc, p)
