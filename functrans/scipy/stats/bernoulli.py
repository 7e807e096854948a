"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy import special
from functrans.scipy.stats.common import between, promoted, supported
from functrans.typing import Array, ArrayLike


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k; -inf unless k - loc is 0 or 1.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.bernoulli.logpmf(1, 1.0))
    0.0
    """
    k, p, loc = promoted("bernoulli.logpmf", k, p, loc)
    n, p = k - loc, between(p)
    inside = (n == 0) | (n == 1)
    safe = fnp.where(inside, n, 0.0)
    value = special.xlogy(safe, p) + special.xlog1py(1.0 - safe, -p)
    return supported(inside, value, -math.inf, n, p)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return lax.exp(logpmf(k, p, loc))


def cdf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of values up to k."""
    k, p, loc = promoted("bernoulli.cdf", k, p, loc)
    n, p = k - loc, between(p)
    return supported(n >= 0, fnp.where(n < 1, 1.0 - p, 1.0), 0.0, n, p)
