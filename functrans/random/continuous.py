"""Continuous distributions by transforming uniform numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.random.arguments import (
    float_dtype,
    parameter,
    rounded,
    sample_dtype,
    sample_shape,
    scaled_uniform,
    unit_uniform,
)
from functrans.random.generators import Pair
from functrans.random.keys import child, pair
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def bits(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Random bits as unsigned integers of `dtype`, by default as wide as the default int.

    >>> import functrans as ft
    >>> ft.random.bits(ft.random.key(0), (2,), "uint8").dtype
    dtype('uint8')
    """
    default = np.dtype(f"uint{8 * dtypes.default_int().itemsize}")
    unsigned = sample_dtype("bits", dtype, "u", default)
    return pair("bits", key).bits(8 * unsigned.itemsize, sample_shape("bits", shape))


def uniform(
    key: Array,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Uniform numbers in [minval, maxval), whose shapes broadcast to `shape`.

    >>> import functrans as ft
    >>> ft.random.uniform(ft.random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    dtype = float_dtype("uniform", dtype)
    low, high = (
        rounded(bound, dtype) if isinstance(bound, (int, float)) else parameter(bound, dtype)
        for bound in (minval, maxval)
    )
    shape = sample_shape("uniform", shape, low, high)
    return scaled_uniform(pair("uniform", key), shape, dtype, low, high)


def normal(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Standard normal numbers; complex dtypes have variance 1/2 in each part.

    >>> import functrans as ft
    >>> ft.random.normal(ft.random.key(0), (2, 3)).shape
    (2, 3)
    """
    dtype = sample_dtype("normal", dtype, "fc", dtypes.default_float())
    shape = sample_shape("normal", shape)
    words = pair("normal", key)
    if dtypes.kind(dtype) == "f":
        return normal_from_key(words, shape, dtype)
    real = dtypes.real_dtype(dtype)
    root = rounded(1.0 / rounded(np.sqrt(2), real), real)
    return lax.complex(*(normal_from_key(child(words, i), shape, real) * root for i in (0, 1)))


def normal_from_key(key: Pair, shape: tuple[Any, ...], dtype: dtypes.DType) -> Array:
    """Standard normal numbers from the words of a key (each its own where they are arrays)."""
    low = np.nextafter(np.asarray(-1.0).astype(dtype), np.zeros((), dtype))
    u = scaled_uniform(key, shape, dtype, float(low), 1.0)
    return lax.erf_inv(u) * rounded(np.sqrt(2), dtype)


def truncated_normal(
    key: Array,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Standard normal numbers on condition that they are in (lower, upper).

    The shape is by default that of the bounds together.

    >>> import functrans as ft
    >>> x = ft.random.truncated_normal(ft.random.key(0), 1.0, 2.0, (100,))
    >>> bool((x > 1).all() & (x < 2).all())
    True
    """
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = parameter(lower, dtype), parameter(upper, dtype)
    shape = sample_shape("truncated_normal", shape, lower, upper)
    root = rounded(np.sqrt(2), dtype)
    low, high = lax.erf(lower / root), lax.erf(upper / root)
    u = scaled_uniform(pair("truncated_normal", key), shape, dtype, low, high)
    inside = [
        lax.nextafter(lax.stop_gradient(bound), ftnp.full_like(bound, toward))
        for bound, toward in ((lower, math.inf), (upper, -math.inf))
    ]
    return ftnp.clip(lax.erf_inv(u) * root, *inside)


def exponential(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Exponentially distributed numbers of rate 1, in [0, inf).

    >>> import functrans as ft
    >>> ft.random.exponential(ft.random.key(0), (3,)).shape
    (3,)
    """
    dtype = float_dtype("exponential", dtype)
    u = unit_uniform(pair("exponential", key), sample_shape("exponential", shape), dtype)
    return -lax.log1p(-u)


def gumbel(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None,
           mode: str | None = None) -> Array:
    """Standard Gumbel numbers; mode "high" draws twice the bits for a longer upper tail.

    >>> import functrans as ft
    >>> ft.random.gumbel(ft.random.key(0), (3,)).shape
    (3,)
    """
    dtype = float_dtype("gumbel", dtype)
    return gumbel_from_key(pair("gumbel", key), sample_shape("gumbel", shape), dtype, mode)


def gumbel_from_key(key: Pair, shape: tuple[Any, ...], dtype: dtypes.DType,
                    mode: str | None) -> Array:
    """Standard Gumbel numbers from the words of a key."""
    if mode not in (None, "low", "high"):
        raise ArgumentError(
            f"the mode {mode!r} of gumbel is none of 'low', 'high'.", where=user_source()
        )
    info = dtypes.finfo(dtype)
    tiny = float(info.tiny)
    if mode == "high":
        drawn = unit_uniform(key, (2, *shape), dtype)
        finer = drawn[0] + drawn[1] * 2.0**-info.nmant + tiny
        x = ftnp.where(drawn[0] >= 0.5, drawn[0], finer)
        return -lax.log(-lax.log1p(-x))
    return -lax.log(-lax.log(scaled_uniform(key, shape, dtype, tiny, 1.0)))


def laplace(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Standard Laplace numbers, of density exp(-|x|) / 2.

    >>> import functrans as ft
    >>> ft.random.laplace(ft.random.key(0), (3,)).shape
    (3,)
    """
    dtype = float_dtype("laplace", dtype)
    low = rounded(-1.0 + dtypes.finfo(dtype).epsneg, dtype)
    u = scaled_uniform(pair("laplace", key), sample_shape("laplace", shape), dtype, low, 1.0)
    return lax.sign(u) * lax.log1p(-lax.abs(u))


def logistic(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Standard logistic numbers, of distribution function 1 / (1 + exp(-x)).

    >>> import functrans as ft
    >>> ft.random.logistic(ft.random.key(0), (3,)).shape
    (3,)
    """
    dtype = float_dtype("logistic", dtype)
    low = float(dtypes.finfo(dtype).tiny)
    u = scaled_uniform(pair("logistic", key), sample_shape("logistic", shape), dtype, low, 1.0)
    return lax.log(u) - lax.log1p(-u)


def cauchy(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Standard Cauchy numbers, of density 1 / (pi (1 + x^2)).

    >>> import functrans as ft
    >>> ft.random.cauchy(ft.random.key(0), (3,)).shape
    (3,)
    """
    dtype = float_dtype("cauchy", dtype)
    low = float(dtypes.finfo(dtype).eps)
    u = scaled_uniform(pair("cauchy", key), sample_shape("cauchy", shape), dtype, low, 1.0)
    return lax.tan((u - 0.5) * np.pi)


def multivariate_normal(
    key: Array,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors of shape (*shape, n) with mean (..., n) and covariance (..., n, n).

    `method` factors the covariance: "cholesky", or "svd" or "eigh" where it is singular. Raises
    ShapeError if the sizes differ.

    >>> import functrans as ft
    >>> cov = ft.numpy.array([[2.0, 1.0], [1.0, 2.0]])
    >>> ft.random.multivariate_normal(ft.random.key(0), ft.numpy.zeros(2), cov, (5,)).shape
    (5, 2)
    """
    mean, cov = ftnp.asarray(mean), ftnp.asarray(cov)
    common, _ = dtypes.inexact_result_type(mean, cov)
    dtype = sample_dtype("multivariate_normal", dtype, "f", common)
    mean, cov = (lax.convert_element_type(x, common) for x in (mean, cov))
    if mean.ndim < 1 or cov.ndim < 2 or tuple(cov.shape[-2:]) != (mean.shape[-1],) * 2:
        raise ShapeError(
            f"multivariate_normal: the covariance of shape {cov.shape} does not fit the mean of "
            f"shape {mean.shape}.",
            where=user_source(),
            why="a mean of shape (..., n) needs a covariance of shape (..., n, n).",
        )
    shape = sample_shape("multivariate_normal", shape, mean[..., 0], cov[..., 0, 0])
    words = pair("multivariate_normal", key)
    noise = normal_from_key(words, (*shape, mean.shape[-1]), dtype)
    factor = _factor(cov, method)
    return mean + ftnp.matmul(factor, noise[..., None])[..., 0]


def _factor(cov: Any, method: str) -> Array:
    """A matrix A with A A^T = cov."""
    if method == "cholesky":
        return ftnp.linalg.cholesky(cov)
    if method == "eigh":
        scales, vectors = ftnp.linalg.eigh(cov)
    elif method == "svd":
        vectors, scales, _ = ftnp.linalg.svd(cov)
    else:
        raise ArgumentError(
            f"multivariate_normal: the method {method!r} is none of 'cholesky', 'eigh', 'svd'.",
            where=user_source(),
        )
    return vectors * ftnp.sqrt(scales[..., None, :])


def rayleigh(key: Array, scale: ArrayLike, shape: ShapeLike | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """Rayleigh numbers: lengths of plane normal vectors with standard deviation `scale`.

    >>> import functrans as ft
    >>> ft.random.rayleigh(ft.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("rayleigh", dtype)
    scale = parameter(scale, dtype)
    u = unit_uniform(pair("rayleigh", key), sample_shape("rayleigh", shape, scale), dtype)
    return lax.sqrt(lax.log(u) * -2.0) * scale


def pareto(key: Array, b: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None
           ) -> Array:
    """Pareto numbers of density b / x^(b + 1) on [1, inf).

    >>> import functrans as ft
    >>> ft.random.pareto(ft.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("pareto", dtype)
    b = parameter(b, dtype)
    return lax.exp(exponential(key, sample_shape("pareto", shape, b), dtype) / b)


def weibull_min(key: Array, scale: ArrayLike, concentration: ArrayLike, shape: ShapeLike = (),
                dtype: DTypeLike | None = None) -> Array:
    """Weibull numbers: `scale` times exponential ones to the power 1 / concentration.

    >>> import functrans as ft
    >>> ft.random.weibull_min(ft.random.key(0), 2.0, 1.5, (3,)).shape
    (3,)
    """
    dtype = float_dtype("weibull_min", dtype)
    scale, concentration = parameter(scale, dtype), parameter(concentration, dtype)
    shape = sample_shape("weibull_min", shape or None, scale, concentration)
    return ftnp.power(exponential(key, shape, dtype), 1.0 / concentration) * scale
