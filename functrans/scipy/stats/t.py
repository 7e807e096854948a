"""Student's t distribution with df degrees of freedom."""

from __future__ import annotations

import math

from functrans import lax
from functrans.scipy.stats.common import promoted, standard
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.t.logpdf(0.0, 1.0)), 4)
    -1.1447
    """
    x, df, loc, scale = promoted("t.logpdf", x, df, loc, scale)
    z = standard(x, loc, scale)
    half = 0.5 * (df + 1.0)
    constant = lax.lgamma(half) - lax.lgamma(0.5 * df) - 0.5 * lax.log(math.pi * df)
    return constant - lax.log(scale) - half * lax.log1p(z * z / df)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return lax.exp(logpdf(x, df, loc, scale))
