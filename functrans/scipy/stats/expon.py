"""The exponential distribution of mean `scale`, from loc on."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy.stats.common import between, positive, promoted, standard, supported
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.expon.logpdf(2.0))
    -2.0
    """
    x, loc, scale = promoted("expon.logpdf", x, loc, scale)
    z = standard(x, loc, scale)
    return supported(z >= 0, -z - lax.log(scale), -math.inf, z)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("expon.cdf", x, loc, scale)
    return -lax.expm1(-fnp.maximum(standard(x, loc, scale), 0.0))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x."""
    x, loc, scale = promoted("expon.logsf", x, loc, scale)
    return -fnp.maximum(standard(x, loc, scale), 0.0)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    return lax.exp(logsf(x, loc, scale))


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf; NaN outside [0, 1]."""
    q, loc, scale = promoted("expon.ppf", q, loc, scale)
    return loc - positive(scale) * lax.log1p(-between(q))
