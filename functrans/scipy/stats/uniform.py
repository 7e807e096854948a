"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy.stats.common import between, positive, promoted, standard, supported
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.uniform.logpdf(2.0))
    -inf
    """
    x, loc, scale = promoted("uniform.logpdf", x, loc, scale)
    z = standard(x, loc, scale)
    return supported((z >= 0) & (z <= 1), -lax.log(scale), -math.inf, z)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, loc, scale = promoted("uniform.cdf", x, loc, scale)
    return fnp.clip(standard(x, loc, scale), 0.0, 1.0)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of cdf; NaN outside [0, 1]."""
    q, loc, scale = promoted("uniform.ppf", q, loc, scale)
    return between(q) * positive(scale) + loc
