"""Polynomials that fit points, and the roots of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dtypes import complex_dtype
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy import linalg
from functrans.numpy.common import (
    filled,
    is_traced,
    promote_dtypes_inexact,
    slice_axis,
    static_int,
)
from functrans.numpy.creation import arange, asarray
from functrans.numpy.cumulative import cumprod
from functrans.numpy.joining import concatenate
from functrans.numpy.manipulation import roll
from functrans.numpy.matrices import eye, vander
from functrans.numpy.products import outer
from functrans.numpy.reductions import all as all_
from functrans.numpy.reductions import sum as sum_
from functrans.numpy.searching import where
from functrans.numpy.sorting import argsort
from functrans.numpy.ufuncs import astype, equal
from functrans.typing import Array, ArrayLike

__all__ = ["polyfit", "roots"]


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` that fits y at x by least squares: its coefficients.

    y is a vector, or a matrix with a problem in each column; `w` weighs the differences. With
    `full` the residuals, the rank, the singular values and rcond follow, with `cov` the covariance
    of the coefficients, which "unscaled" does not scale by the residuals. Raises ShapeError where
    the sizes differ, ArgumentError for a negative degree.

    >>> import functrans.numpy as jnp
    >>> jnp.polyfit(jnp.arange(4.0), 2 * jnp.arange(4.0) + 1, 1).round(3).tolist()
    [2.0, 1.0]
    """
    deg = static_int("polyfit", deg, "deg")
    x, y = promote_dtypes_inexact("polyfit", asarray(x), asarray(y))
    if deg < 0:
        raise ArgumentError(f"functrans.numpy.polyfit: the degree {deg} is negative.",
                            where=user_source())
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ShapeError(f"functrans.numpy.polyfit: points of shapes {x.shape} and {y.shape}.",
                         where=user_source(), why="x is a vector, and y has a row for each of it.")
    if rcond is None:
        rcond = x.shape[0] * float(np.finfo(x.dtype).eps)
    powers, right = vander(x, deg + 1), y
    if w is not None:
        w = astype(asarray(w), x.dtype)
        if w.shape != x.shape:
            raise ShapeError(f"functrans.numpy.polyfit: weights of shape {w.shape} for points of "
                             f"shape {x.shape}.", where=user_source())
        powers = powers * w[:, None]
        right = right * (w if y.ndim == 1 else w[:, None])
    scale = lax.sqrt(lax.reduce_sum(powers * powers, (0,)))
    found, residuals, rank, singular = linalg.lstsq(powers / scale, right, rcond)
    fitted = found / (scale if y.ndim == 1 else scale[:, None])
    if full:
        return fitted, residuals, rank, singular, asarray(rcond)
    if not cov:
        return fitted
    base = linalg.inv(powers.T @ powers / outer(scale, scale)) / outer(scale, scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if x.shape[0] <= deg + 1:
            raise ArgumentError(f"functrans.numpy.polyfit: the covariance of {deg + 1} "
                                f"coefficients from {x.shape[0]} points.", where=user_source(),
                                fix='cov="unscaled"')
        factor = residuals / (x.shape[0] - (deg + 1))
    return fitted, base * factor if y.ndim == 1 or cov == "unscaled" else base[:, :, None] * factor


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The complex roots of p[0] x**n + ... + p[n]: eigenvalues of the companion matrix.

    Leading zeros lower the degree, which the shape of the result depends on. With
    `strip_zeros=False`, as it has to be under `jit`, there is a NaN at the end for each of them.
    Raises ArgumentError for traced p otherwise.

    >>> import functrans.numpy as jnp
    >>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real).round(4).tolist()
    [1.0, 2.0]
    """
    (p,) = promote_dtypes_inexact("roots", asarray(p))
    if p.ndim > 1:
        raise ShapeError(f"functrans.numpy.roots of coefficients of shape {p.shape}.",
                         where=user_source())
    p = lax.reshape(p, (p.size,))
    if not strip_zeros:
        return _roots_and_nan(p)
    if is_traced(p):
        raise ArgumentError("functrans.numpy.roots of traced coefficients.", where=user_source(),
                            why="the number of roots depends on leading zeros.",
                            fix="functrans.numpy.roots(p, strip_zeros=False)")
    (places,) = np.nonzero(np.asarray(lax.stop_gradient(p)))
    if not places.size:
        return _roots(slice_axis(p, p.shape[0], p.shape[0], 0))
    # zeros at the end are roots that are 0, which stand last, as in NumPy
    first, last = int(places[0]), int(places[-1])
    zeros = filled((p.shape[0] - 1 - last,), 0, complex_dtype(p.dtype))
    return concatenate([_roots(slice_axis(p, first, last + 1, 0)), zeros])


def _roots(p: Array) -> Array:
    degree = p.shape[0] - 1
    if degree < 1:
        return filled((0,), 0, complex_dtype(p.dtype))
    top = lax.neg(slice_axis(p, 1, degree + 1, 0)) / slice_axis(p, 0, 1, 0)
    below = eye(degree - 1, degree, dtype=p.dtype)
    return linalg.eigvals(concatenate([lax.expand_dims(top, (0,)), below]))


def _roots_and_nan(p: Array) -> Array:
    """The roots, and a NaN for each leading zero."""
    if p.shape[0] < 2:
        return _roots(p)
    is_zero = equal(p, 0)
    lead = sum_(cumprod(astype(is_zero, "int32")))
    p = where(all_(is_zero), 1, p)  # of no polynomial all are NaN, whatever the matrix has
    found = _roots(roll(p, lax.neg(lead)))
    order = argsort(equal(found, 0), stable=True)  # zeros that the rotation has brought go last
    kept = arange(found.shape[0]) < found.shape[0] - lead
    return where(kept, found[order], complex(np.nan, np.nan))
