"""The gamma distribution of shape a."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.numpy.common import Array, ArrayLike
from functrans.scipy import special
from functrans.scipy.stats.common import outside, promoted


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gamma.logpdf(2.0, 1.0))
    -2.0
    """
    x, a, loc, scale = promoted("gamma.logpdf", x, a, loc, scale)
    inside = x >= loc
    z = fnp.where(inside, (x - loc) / scale, 1.0)
    density = special.xlogy(a - 1.0, z) - z - lax.lgamma(a) - lax.log(scale)
    return outside(inside, density, -math.inf)


def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, a, loc, scale))


def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, a, loc, scale = promoted("gamma.cdf", x, a, loc, scale)
    inside = x > loc
    return outside(inside, special.gammainc(a, fnp.where(inside, (x - loc) / scale, 1.0)), 0.0)


def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    x, a, loc, scale = promoted("gamma.sf", x, a, loc, scale)
    inside = x > loc
    return outside(inside, special.gammaincc(a, fnp.where(inside, (x - loc) / scale, 1.0)), 1.0)
