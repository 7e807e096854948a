"""The gamma distribution of shape a."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy import special
from functrans.scipy.stats.common import positive, promoted, standard, supported
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.gamma.logpdf(2.0, 1.0))
    -2.0
    """
    x, a, loc, scale = promoted("gamma.logpdf", x, a, loc, scale)
    z, a = standard(x, loc, scale), positive(a)
    inside = (z >= 0) & (z < math.inf)
    safe = fnp.where(inside, z, 1.0)
    density = special.xlogy(a - 1.0, safe) - safe - lax.lgamma(a) - lax.log(scale)
    return supported(inside, density, -math.inf, z, a)


def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, a, loc, scale))


def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x."""
    x, a, loc, scale = promoted("gamma.cdf", x, a, loc, scale)
    z, a = standard(x, loc, scale), positive(a)
    return supported(z > 0, special.gammainc(a, fnp.where(z > 0, z, 1.0)), 0.0, z, a)


def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    x, a, loc, scale = promoted("gamma.sf", x, a, loc, scale)
    z, a = standard(x, loc, scale), positive(a)
    return supported(z > 0, special.gammaincc(a, fnp.where(z > 0, z, 1.0)), 1.0, z, a)
