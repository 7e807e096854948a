"""The Poisson distribution of mean mu."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy import special
from functrans.scipy.stats.common import promoted, supported
from functrans.typing import Array, ArrayLike


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is an integer >= 0.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.poisson.logpmf(0, 2.0))
    -2.0
    """
    k, mu, loc = promoted("poisson.logpmf", k, mu, loc)
    n, mu = k - loc, _mean(mu)
    inside = (n >= 0) & (n == lax.floor(n)) & (n < math.inf)
    safe = fnp.where(inside, n, 0.0)
    value = special.xlogy(safe, mu) - lax.lgamma(safe + 1.0) - mu
    return supported(inside, value, -math.inf, n, mu)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, mu, loc))


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of values up to k."""
    k, mu, loc = promoted("poisson.cdf", k, mu, loc)
    n, mu = lax.floor(k - loc), _mean(mu)
    inside = (n >= 0) & (n < math.inf)
    value = special.gammaincc(fnp.where(inside, n, 0.0) + 1.0, mu)
    return supported(n >= 0, fnp.where(inside, value, 1.0), 0.0, n, mu)


def _mean(mu: Array) -> Array:
    return fnp.where(mu >= 0, mu, math.nan)
