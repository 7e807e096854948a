"""The Poisson distribution of mean mu."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.numpy.common import Array, ArrayLike
from functrans.scipy import special
from functrans.scipy.stats.common import outside, promoted


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is an integer >= 0.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.poisson.logpmf(0, 2.0))
    -2.0
    """
    k, mu, loc = promoted("poisson.logpmf", k, mu, loc)
    n = k - loc
    inside = (n >= 0) & (n == lax.floor(n))
    n = fnp.where(inside, n, 0.0)
    return outside(inside, special.xlogy(n, mu) - lax.lgamma(n + 1.0) - mu, -math.inf)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, mu, loc))


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of values up to k."""
    k, mu, loc = promoted("poisson.cdf", k, mu, loc)
    n = lax.floor(k - loc)
    inside = n >= 0
    return outside(inside, special.gammaincc(fnp.where(inside, n, 0.0) + 1.0, mu), 0.0)
