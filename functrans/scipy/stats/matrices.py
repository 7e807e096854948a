"""Distributions of matrices, and Student's of vectors."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy import special
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.stats.base import DistributionFamily
from functrans.scipy.stats.drawing import by_key
from functrans.typing import Array, ArrayLike, ShapeLike

__all__ = ["matrix_normal", "multivariate_t", "ortho_group", "special_ortho_group",
           "unitary_group", "wishart"]

_LOG_PI = math.log(math.pi)


def _operands(name: str, *args: ArrayLike) -> list[Array]:
    name = f"scipy.stats.{name}"
    return [operand(name, x) for x in promote_dtypes_inexact(name, *args)]


def _factor(name: str, matrix: Array, n: int) -> tuple[Array, Array]:
    """Cholesky's factor of a matrix (..., n, n), and half of the logarithm of its determinant."""
    if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
        raise ShapeError(f"functrans.scipy.stats.{name}: a matrix of shape {matrix.shape}.",
                         where=user_source(), why=f"it is (..., {n}, {n}).")
    root = jnp.linalg.cholesky(matrix)
    return root, jnp.sum(lax.log(jnp.diagonal(root, 0, -2, -1)), -1)


def _lead(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class MultivariateT(DistributionFamily):
    """Student's distribution of vectors, of a place, a shape (..., n, n) and df degrees of freedom.

    >>> import functrans as ft
    >>> zero, one = ft.numpy.zeros(2), ft.numpy.eye(2)
    >>> round(float(ft.scipy.stats.multivariate_t.logpdf(zero, zero, one, 3.0)), 4)
    -1.8379
    """

    def logpdf(self, x: ArrayLike, loc: ArrayLike, shape: ArrayLike, df: ArrayLike = 1.0) -> Array:
        """The logarithm of the density at x (..., n); an infinite df is the normal distribution."""
        x, loc, shape, df = _operands("multivariate_t.logpdf", x, loc, shape, df)
        off = jnp.atleast_1d(x - loc)
        n = off.shape[-1]
        root, half = _factor("multivariate_t", shape, n)
        white = solve_triangular(root, off[..., None], lower=True)[..., 0]
        square = jnp.sum(white * white, -1)
        normal = jnp.isinf(df)
        nu = jnp.where(normal, 1.0, df)
        heavy = (lax.lgamma(0.5 * (nu + n)) - lax.lgamma(0.5 * nu)
                 - 0.5 * n * (lax.log(nu) + _LOG_PI) - 0.5 * (nu + n) * lax.log1p(square / nu))
        light = -0.5 * (square + n * math.log(2 * math.pi))
        return jnp.where(normal, light, heavy) - half

    def pdf(self, x: ArrayLike, loc: ArrayLike, shape: ArrayLike, df: ArrayLike = 1.0) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, loc, shape, df))

    @by_key
    def rvs(self, key: Array, loc: ArrayLike, scale: ArrayLike, df: ArrayLike = 1.0,
            shape: ShapeLike = ()) -> Array:
        """Random vectors of shape (*shape, n) from a key; `scale` is the shape matrix."""
        place, matrix, nu = _operands("multivariate_t.rvs", loc, scale, df)
        one, two = random.split(key)
        lead = _lead(shape)
        z = random.multivariate_normal(one, jnp.zeros_like(place), matrix, lead, place.dtype)
        share = random.gamma(two, jnp.broadcast_to(0.5 * nu, lead), dtype=place.dtype)
        return place + z * lax.sqrt(0.5 * nu / share)[..., None]


class Wishart(DistributionFamily):
    """Wishart's distribution of positive definite matrices, of df and a scale (..., n, n).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.wishart.logpdf(ft.numpy.eye(2), 3.0, ft.numpy.eye(2))), 4)
    -3.531
    """

    def logpdf(self, x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
        """The logarithm of the density at x (..., n, n), for df > n - 1."""
        x, df, scale = _operands("wishart.logpdf", x, df, scale)
        n = x.shape[-1] if x.ndim else 0
        root_x, half_x = _factor("wishart", x, n)
        root, half = _factor("wishart", scale, n)
        inside = solve_triangular(root, root_x, lower=True)
        trace = jnp.sum(inside * inside, (-2, -1))
        gamma: Array = special.multigammaln(0.5 * df, n)
        return ((df - n - 1.0) * half_x - 0.5 * trace - 0.5 * df * n * math.log(2.0) - df * half
                - gamma)

    def pdf(self, x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, df, scale))

    def mean(self, df: ArrayLike, scale: ArrayLike) -> Array:
        """The mean, df times the scale."""
        df, scale = _operands("wishart.mean", df, scale)
        return df[..., None, None] * scale

    @by_key
    def rvs(self, key: Array, df: ArrayLike, scale: ArrayLike, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, n, n) from a key, by Bartlett's decomposition."""
        nu, matrix = _operands("wishart.rvs", df, scale)
        n = matrix.shape[-1]
        root, _ = _factor("wishart", matrix, n)
        lead = _lead(shape)
        one, two = random.split(key)
        below = jnp.tril(random.normal(one, (*lead, n, n), matrix.dtype), -1)
        shapes = 0.5 * (nu - jnp.arange(n, dtype=matrix.dtype))
        squares = 2.0 * random.gamma(two, jnp.broadcast_to(shapes, (*lead, n)), dtype=matrix.dtype)
        a = below + jnp.eye(n, dtype=matrix.dtype) * lax.sqrt(squares)[..., None]
        half = jnp.matmul(root, a, precision="highest")
        return jnp.matmul(half, jnp.swapaxes(half, -1, -2), precision="highest")


class MatrixNormal(DistributionFamily):
    """The normal distribution of matrices (m, n), of a covariance of rows and one of columns.

    >>> import functrans as ft
    >>> zero, one = ft.numpy.zeros((2, 2)), ft.numpy.eye(2)
    >>> round(float(ft.scipy.stats.matrix_normal.logpdf(zero, zero, one, one)), 4)
    -3.6758
    """

    def logpdf(self, X: ArrayLike, mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike) -> Array:
        """The logarithm of the density at X (..., m, n)."""
        x, mean, rows, columns = _operands("matrix_normal.logpdf", X, mean, rowcov, colcov)
        off = jnp.atleast_2d(x - mean)
        m, n = off.shape[-2:]
        root_m, half_m = _factor("matrix_normal", rows, m)
        root_n, half_n = _factor("matrix_normal", columns, n)
        white = jnp.swapaxes(solve_triangular(root_m, off, lower=True), -1, -2)
        white = solve_triangular(root_n, white, lower=True)
        square = jnp.sum(white * white, (-2, -1))
        return -0.5 * (square + m * n * math.log(2 * math.pi)) - n * half_m - m * half_n

    def pdf(self, X: ArrayLike, mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike) -> Array:
        """The density."""
        return lax.exp(self.logpdf(X, mean, rowcov, colcov))

    @by_key
    def rvs(self, key: Array, mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike,
            shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, m, n) from a key."""
        mean, rows, columns = _operands("matrix_normal.rvs", mean, rowcov, colcov)
        m, n = mean.shape[-2:]
        left, right = _factor("matrix_normal", rows, m)[0], _factor("matrix_normal", columns, n)[0]
        lead = _lead(shape)
        z = random.normal(key, (*lead, m, n), mean.dtype)
        inner = jnp.matmul(z, jnp.swapaxes(right, -1, -2), precision="highest")
        return mean + jnp.matmul(left, inner, precision="highest")


class OrthoGroup(DistributionFamily):
    """Orthogonal matrices, uniformly.

    >>> import functrans as ft
    >>> ft.scipy.stats.ortho_group.rvs(ft.random.key(0), 3, shape=(2,)).shape
    (2, 3, 3)
    """

    @by_key
    def rvs(self, key: Array, dim: int, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, dim, dim) from a key."""
        return random.orthogonal(key, dim, shape)


class SpecialOrthoGroup(DistributionFamily):
    """Rotations, uniformly: orthogonal matrices of determinant 1.

    >>> import functrans as ft
    >>> q = ft.scipy.stats.special_ortho_group.rvs(ft.random.key(0), 3)
    >>> round(float(ft.numpy.linalg.det(q)), 4)
    1.0
    """

    @by_key
    def rvs(self, key: Array, dim: int, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, dim, dim) from a key."""
        q = random.orthogonal(key, dim, shape)
        sign = jnp.sign(jnp.linalg.det(q))
        return q.at[..., 0].multiply(sign[..., None])


class UnitaryGroup(DistributionFamily):
    """Unitary matrices, uniformly.

    >>> import functrans as ft
    >>> ft.scipy.stats.unitary_group.rvs(ft.random.key(0), 3).dtype.name
    'complex64'
    """

    @by_key
    def rvs(self, key: Array, dim: int, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, dim, dim) from a key."""
        return random.orthogonal(key, dim, shape, jnp.result_type(jnp.zeros(()), jnp.complex64))


matrix_normal = MatrixNormal("matrix_normal")
multivariate_t = MultivariateT("multivariate_t")
ortho_group = OrthoGroup("ortho_group")
special_ortho_group = SpecialOrthoGroup("special_ortho_group")
unitary_group = UnitaryGroup("unitary_group")
wishart = Wishart("wishart")
