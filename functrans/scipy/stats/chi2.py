"""The chi-squared distribution with df degrees of freedom."""

from __future__ import annotations

from functrans import numpy as fnp
from functrans.scipy.stats import gamma
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.chi2.logpdf(2.0, 2.0)), 4)
    -1.6931
    """
    return gamma.logpdf(x, fnp.divide(df, 2), loc, fnp.multiply(scale, 2))


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return gamma.pdf(x, fnp.divide(df, 2), loc, fnp.multiply(scale, 2))


def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    return gamma.cdf(x, fnp.divide(df, 2), loc, fnp.multiply(scale, 2))


def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    return gamma.sf(x, fnp.divide(df, 2), loc, fnp.multiply(scale, 2))
