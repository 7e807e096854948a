"""The normal distribution of vectors."""

from __future__ import annotations

import math

from functrans import lax
from functrans import numpy as fnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.primitives.linalg import cholesky
from functrans.scipy.linalg import solve_triangular
from functrans.typing import Array, ArrayLike


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The logarithm of the density at x (..., n) for mean (..., n) and covariance (..., n, n).

    A scalar covariance is that of independent elements. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> zero, one = ft.numpy.zeros(2), ft.numpy.eye(2)
    >>> round(float(ft.scipy.stats.multivariate_normal.logpdf(zero, zero, one)), 4)
    -1.8379
    """
    x, mean, cov = (operand("multivariate_normal.logpdf", v) for v in promote_dtypes_inexact(
        "multivariate_normal.logpdf", x, mean, cov))
    off = x - mean
    if not off.ndim:
        off = fnp.reshape(off, (1,))
    n = off.shape[-1]
    if cov.ndim == 0:
        return -0.5 * (fnp.sum(off * off, -1) / cov + n * lax.log(2 * math.pi * cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ShapeError(f"multivariate_normal.logpdf: a covariance of shape {cov.shape} does not "
                         f"fit vectors of size {n}.", where=user_source(), fix=f"shape ({n}, {n})")
    factor = cholesky(cov)
    white = solve_triangular(factor, off[..., None], lower=True)[..., 0]
    half_log_det = fnp.sum(lax.log(fnp.diagonal(factor, 0, -2, -1)), -1)
    return -0.5 * (fnp.sum(white * white, -1) + n * math.log(2 * math.pi)) - half_log_det


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density."""
    return lax.exp(logpdf(x, mean, cov))
