"""The normal distribution."""

from __future__ import annotations

import math

from functrans import lax
from functrans.scipy import special
from functrans.scipy.stats.common import positive, promoted, standard
from functrans.typing import Array, ArrayLike

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.norm.logpdf(0.0)), 4)
    -0.9189
    """
    x, loc, scale = promoted("norm.logpdf", x, loc, scale)
    z = standard(x, loc, scale)
    return -0.5 * z * z - lax.log(scale) - _HALF_LOG_2PI


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.norm.cdf(1.0, loc=1.0))
    0.5
    """
    x, loc, scale = promoted("norm.cdf", x, loc, scale)
    return special.ndtr(standard(x, loc, scale))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of cdf, accurate in both tails."""
    x, loc, scale = promoted("norm.logcdf", x, loc, scale)
    return special.log_ndtr(standard(x, loc, scale))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    x, loc, scale = promoted("norm.sf", x, loc, scale)
    return special.ndtr(-standard(x, loc, scale))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of sf, accurate in both tails."""
    x, loc, scale = promoted("norm.logsf", x, loc, scale)
    return special.log_ndtr(-standard(x, loc, scale))


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf."""
    q, loc, scale = promoted("norm.ppf", q, loc, scale)
    return special.ndtri(q) * positive(scale) + loc


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of sf."""
    q, loc, scale = promoted("norm.isf", q, loc, scale)
    return loc - special.ndtri(q) * positive(scale)
