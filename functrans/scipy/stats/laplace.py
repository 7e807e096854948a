"""The Laplace distribution."""

from __future__ import annotations

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy.stats.common import promoted, standard
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.laplace.logpdf(1.0)), 4)
    -1.6931
    """
    x, loc, scale = promoted("laplace.logpdf", x, loc, scale)
    return -lax.abs(standard(x, loc, scale)) - lax.log(2.0 * scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("laplace.cdf", x, loc, scale)
    z = standard(x, loc, scale)
    tail = 0.5 * lax.exp(-lax.abs(z))
    return fnp.where(z > 0, 1.0 - tail, tail)
