"""The beta distribution of shapes a and b on [loc, loc + scale]."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.scipy import special
from functrans.scipy.stats.common import positive, promoted, standard, supported
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
           scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> abs(round(float(ft.scipy.stats.beta.logpdf(0.5, 1.0, 1.0)), 4))
    0.0
    """
    x, a, b, loc, scale = promoted("beta.logpdf", x, a, b, loc, scale)
    z, a, b = standard(x, loc, scale), positive(a), positive(b)
    inside = (z >= 0) & (z <= 1)
    safe = fnp.where(inside, z, 0.5)
    density = (special.xlogy(a - 1.0, safe) + special.xlog1py(b - 1.0, -safe)
               - special.betaln(a, b) - lax.log(scale))
    return supported(inside, density, -math.inf, z, a, b)


def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
        scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, a, b, loc, scale))
