"""Distributions made of the normal, exponential, gamma and uniform ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import shape_tuple
from functrans.random.arguments import (
    float_dtype,
    parameter,
    sample_dtype,
    sample_shape,
    unit_uniform,
)
from functrans.random.continuous import normal_from_key
from functrans.random.gamma import gamma_from_key
from functrans.random.generators import Pair
from functrans.random.keys import child, pair
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def lognormal(key: Array, sigma: ArrayLike = 1.0, shape: ShapeLike | None = None,
              dtype: DTypeLike | None = None) -> Array:
    """Numbers whose logarithm is normal, of mean 0 and standard deviation `sigma`.

    >>> import functrans as ft
    >>> ft.random.lognormal(ft.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    dtype = float_dtype("lognormal", dtype)
    sigma = parameter(sigma, dtype)
    shape = sample_shape("lognormal", shape, sigma)
    return lax.exp(normal_from_key(pair("lognormal", key), shape, dtype) * sigma)


def maxwell(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Maxwell numbers: the lengths of standard normal vectors in space.

    >>> import functrans as ft
    >>> bool((ft.random.maxwell(ft.random.key(0), (100,)) > 0).all())
    True
    """
    dtype = float_dtype("maxwell", dtype)
    return _maxwell(pair("maxwell", key), sample_shape("maxwell", shape), dtype)


def _maxwell(words: Pair, shape: tuple[Any, ...], dtype: dtypes.DType) -> Array:
    return ftnp.linalg.norm(normal_from_key(words, (*shape, 3), dtype), axis=-1)


def double_sided_maxwell(key: Array, loc: ArrayLike, scale: ArrayLike, shape: ShapeLike = (),
                         dtype: DTypeLike | None = None) -> Array:
    """Maxwell numbers with a random sign, times `scale`, plus `loc`.

    The shape of the parameters together follows `shape`, which is that of the parameters, too,
    where it is empty; so it is in JAX.

    >>> import functrans as ft
    >>> ft.random.double_sided_maxwell(ft.random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("double_sided_maxwell", dtype)
    loc, scale = parameter(loc, dtype), parameter(scale, dtype)
    common = sample_shape("double_sided_maxwell", None, loc, scale)
    whole = (*(sample_shape("double_sided_maxwell", shape) or common), *common)
    words = pair("double_sided_maxwell", key)
    sign = _signs(child(words, 1), whole, dtype)
    return sign * _maxwell(child(words, 0), whole, dtype) * scale + loc


def _signs(words: Pair, shape: tuple[Any, ...], dtype: dtypes.DType) -> Array:
    heads = unit_uniform(words, shape, dtypes.default_float()) < 0.5
    return lax.convert_element_type(heads, dtype) * 2 - 1


def generalized_normal(key: Array, p: float, shape: ShapeLike = (), dtype: DTypeLike | None = None
                       ) -> Array:
    """Numbers of density exp(-|x|^p), up to a factor.

    >>> import functrans as ft
    >>> ft.random.generalized_normal(ft.random.key(0), 1.5, (3,)).shape
    (3,)
    """
    dtype = float_dtype("generalized_normal", dtype)
    words = pair("generalized_normal", key)
    return _generalized(words, p, sample_shape("generalized_normal", shape), dtype)


def _generalized(words: Pair, p: Any, shape: tuple[Any, ...], dtype: dtypes.DType) -> Array:
    exponent = parameter(1.0 / p, dtype)
    size = gamma_from_key(child(words, 0), exponent, shape, log_space=False)
    return _signs(child(words, 1), shape, dtype) * ftnp.power(size, exponent)


def ball(key: Array, d: int, p: float = 2, shape: ShapeLike = (), dtype: DTypeLike | None = None
         ) -> Array:
    """Points of shape (*shape, d) that are uniform in the ball |x_1|^p + ... + |x_d|^p <= 1.

    Barthe, Guedon, Mendelson and Naor, A probabilistic approach to the geometry of the l_p^n-ball
    (2005).

    >>> import functrans as ft
    >>> x = ft.random.ball(ft.random.key(0), 3, shape=(100,))
    >>> bool((ft.numpy.linalg.norm(x, axis=-1) <= 1).all())
    True
    """
    dtype = float_dtype("ball", dtype)
    shape = sample_shape("ball", shape)
    if d < 0:
        raise ArgumentError(f"ft.random.ball: {d} dimensions.", where=user_source(),
                            fix="ft.random.ball(key, 3)")
    words = pair("ball", key)
    g = _generalized(child(words, 0), p, (*shape, d), dtype)
    beyond = -lax.log1p(-unit_uniform(child(words, 1), shape, dtype))
    total = ftnp.sum(ftnp.abs(g) ** p, -1) + beyond
    return g / ftnp.power(total, parameter(1.0 / p, dtype))[..., None]


def orthogonal(key: Array, n: int, shape: ShapeLike = (), dtype: DTypeLike | None = None,
               m: int | None = None) -> Array:
    """Matrices of shape (*shape, n, m), uniform among those with orthonormal rows or columns.

    The rows are orthonormal where n <= m, the columns where m <= n, which is by default n; of a
    complex dtype the matrices are unitary. Mezzadri, How to generate random matrices from the
    classical compact groups (2007). Raises ShapeError for negative sizes.

    >>> import functrans as ft
    >>> q = ft.random.orthogonal(ft.random.key(0), 3)
    >>> bool(ft.numpy.allclose(q @ q.T, ft.numpy.eye(3), atol=1e-5))
    True
    """
    dtype = sample_dtype("orthogonal", dtype, "fc", dtypes.default_float())
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ShapeError(f"ft.random.orthogonal: matrices of {n} rows and {columns} columns.",
                         where=user_source())
    size = (*shape_tuple(shape, "orthogonal", "ft.random"), max(n, columns), min(n, columns))
    words = pair("orthogonal", key)
    if dtypes.kind(dtype) == "f":
        z = normal_from_key(words, size, dtype)
    else:
        real = dtypes.real_dtype(dtype)
        root = np.sqrt(0.5).astype(real)
        z = lax.complex(*(normal_from_key(child(words, i), size, real) * root for i in (0, 1)))
    q, r = ftnp.linalg.qr(z)
    q = q * ftnp.sign(ftnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return ftnp.matrix_transpose(q) if n < columns else q


def triangular(key: Array, left: ArrayLike, mode: ArrayLike, right: ArrayLike,
               shape: ShapeLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers in [left, right] whose density rises to `mode` and falls from it in straight lines.

    >>> import functrans as ft
    >>> x = ft.random.triangular(ft.random.key(0), 0.0, 1.0, 4.0, (100,))
    >>> bool((x >= 0).all() & (x <= 4).all())
    True
    """
    dtype = float_dtype("triangular", dtype)
    left, mode, right = (parameter(x, dtype) for x in (left, mode, right))
    shape = sample_shape("triangular", shape, left, mode, right)
    u = unit_uniform(pair("triangular", key), shape, dtype)
    span = right - left
    rising = left + lax.sqrt(u * span * (mode - left))
    falling = right - lax.sqrt((1 - u) * span * (right - mode))
    return ftnp.where(u < (mode - left) / span, rising, falling)


def wald(key: Array, mean: ArrayLike, shape: ShapeLike | None = None,
         dtype: DTypeLike | None = None) -> Array:
    """Inverse Gaussian numbers of a mean and shape parameter 1.

    Michael, Schucany and Haas, Generating random variates using transformations with multiple roots
    (1976).

    >>> import functrans as ft
    >>> bool((ft.random.wald(ft.random.key(0), 2.0, (100,)) > 0).all())
    True
    """
    dtype = float_dtype("wald", dtype)
    mean = parameter(mean, dtype)
    shape = sample_shape("wald", shape, mean)
    words = pair("wald", key)
    y = lax.square(normal_from_key(child(words, 0), shape, dtype))
    z = unit_uniform(child(words, 1), shape, dtype)
    square = lax.square(mean)
    x = mean + square * y / 2 - mean / 2 * lax.sqrt(4 * mean * y + square * lax.square(y))
    return ftnp.where(z <= mean / (mean + x), x, square / x)


def f(key: Array, dfnum: ArrayLike, dfden: ArrayLike, shape: ShapeLike | None = None,
      dtype: DTypeLike | None = None) -> Array:
    """Ratios of chi-square numbers, each over its degrees of freedom: the F distribution.

    >>> import functrans as ft
    >>> ft.random.f(ft.random.key(0), 3.0, 5.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("f", dtype)
    dfnum, dfden = parameter(dfnum, dtype), parameter(dfden, dtype)
    shape = sample_shape("f", shape, dfnum, dfden)
    words = pair("f", key)
    den, num = (_chisquare(child(words, i), df, shape) / df for i, df in enumerate((dfden, dfnum)))
    return num / den


def _chisquare(words: Pair, df: Any, shape: tuple[Any, ...]) -> Array:
    return lax.exp(gamma_from_key(words, df / 2.0, shape, log_space=True)) * 2.0
