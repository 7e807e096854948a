"""The Cauchy distribution."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy.stats.common import between, positive, promoted, standard
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.cauchy.logpdf(0.0)), 4)
    -1.1447
    """
    x, loc, scale = promoted("cauchy.logpdf", x, loc, scale)
    z = standard(x, loc, scale)
    return -lax.log(math.pi * scale) - lax.log1p(z * z)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("cauchy.cdf", x, loc, scale)
    return 0.5 + lax.atan(standard(x, loc, scale)) * (1 / math.pi)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf."""
    q, loc, scale = promoted("cauchy.ppf", q, loc, scale)
    q = between(q) + 0.0  # -0.0 is 0.0
    low, high = q < 0.25, q > 0.75
    middle = lax.tan(math.pi * (fnp.where(low | high, 0.5, q) - 0.5))
    # around the ends the tangent is one over that of the distance to the end
    first = -1.0 / lax.tan(math.pi * fnp.where(low, q, 0.25))
    last = 1.0 / lax.tan(math.pi * (1.0 - fnp.where(high, q, 0.75)))
    return loc + positive(scale) * fnp.where(low, first, fnp.where(high, last, middle))
