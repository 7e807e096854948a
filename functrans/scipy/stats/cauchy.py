"""The Cauchy distribution."""

from __future__ import annotations

import math

from functrans import lax
from functrans.numpy.common import Array, ArrayLike
from functrans.scipy.stats.common import promoted


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.cauchy.logpdf(0.0)), 4)
    -1.1447
    """
    x, loc, scale = promoted("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -lax.log(math.pi * scale) - lax.log1p(z * z)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("cauchy.cdf", x, loc, scale)
    return 0.5 + lax.atan((x - loc) / scale) * (1 / math.pi)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf."""
    q, loc, scale = promoted("cauchy.ppf", q, loc, scale)
    return loc + scale * lax.tan(math.pi * (q - 0.5))
