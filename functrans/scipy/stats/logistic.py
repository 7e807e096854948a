"""The logistic distribution."""

from __future__ import annotations

from functrans import lax
from functrans.scipy import special
from functrans.scipy.stats.common import positive, promoted, standard
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.logistic.logpdf(0.0)), 4)
    -1.3863
    """
    x, loc, scale = promoted("logistic.logpdf", x, loc, scale)
    z = lax.abs(standard(x, loc, scale))  # the density is even
    return -z - 2.0 * lax.log1p(lax.exp(-z)) - lax.log(scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("logistic.cdf", x, loc, scale)
    return lax.logistic(standard(x, loc, scale))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    x, loc, scale = promoted("logistic.sf", x, loc, scale)
    return lax.logistic(-standard(x, loc, scale))


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf."""
    x, loc, scale = promoted("logistic.ppf", x, loc, scale)
    return loc + positive(scale) * special.logit(x)
