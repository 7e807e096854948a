"""Distributions of vectors."""

from __future__ import annotations

import math
from typing import Any, Final

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.primitives.linalg import cholesky
from functrans.scipy import special
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.stats.base import DistributionFamily
from functrans.scipy.stats.covariance import Covariance
from functrans.scipy.stats.drawing import by_key
from functrans.typing import Array, ArrayLike, ShapeLike

__all__ = ["dirichlet", "multinomial", "multivariate_normal"]

_LOG_2PI: Final = math.log(2 * math.pi)


def _operands(name: str, *args: ArrayLike) -> list[Array]:
    name = f"scipy.stats.{name}"
    return [operand(name, x) for x in promote_dtypes_inexact(name, *args)]


class MultivariateNormal(DistributionFamily):
    """The normal distribution of vectors.

    >>> import functrans as ft
    >>> zero, one = ft.numpy.zeros(2), ft.numpy.eye(2)
    >>> round(float(ft.scipy.stats.multivariate_normal.logpdf(zero, zero, one)), 4)
    -1.8379
    """

    def logpdf(self, x: ArrayLike, mean: ArrayLike, cov: ArrayLike | Covariance) -> Array:
        """The logarithm of the density at x (..., n) for mean (..., n), covariance (..., n, n).

        A scalar covariance is that of independent elements; of a scalar mean, too, each element of
        x is one number. It may be a `Covariance`. Raises ShapeError when shapes do not fit.
        """
        if isinstance(cov, Covariance):
            x, mean = _operands("multivariate_normal.logpdf", x, mean)
            white = cov.whiten(x - mean)
            result: Array = -0.5 * (jnp.sum(white * white, -1) + cov.rank * _LOG_2PI + cov.log_pdet)
            return result
        x, mean, cov = _operands("multivariate_normal.logpdf", x, mean, cov)
        off = x - mean
        if not off.ndim or not (mean.ndim or cov.ndim):
            off = off[..., None]
        n = off.shape[-1]
        if cov.ndim == 0:
            return -0.5 * (jnp.sum(off * off, -1) / cov + n * lax.log(2 * math.pi * cov))
        if cov.ndim < 2 or cov.shape[-2:] != (n, n):
            raise ShapeError(f"multivariate_normal.logpdf: a covariance of shape {cov.shape} does "
                             f"not fit vectors of size {n}.", where=user_source(),
                             fix=f"shape ({n}, {n})")
        factor = cholesky(cov)
        white = solve_triangular(factor, off[..., None], lower=True)[..., 0]
        half_log_det = jnp.sum(lax.log(jnp.diagonal(factor, 0, -2, -1)), -1)
        return -0.5 * (jnp.sum(white * white, -1) + n * _LOG_2PI) - half_log_det

    def pdf(self, x: ArrayLike, mean: ArrayLike, cov: ArrayLike | Covariance) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: ArrayLike, cov: ArrayLike | Covariance) -> Array:
        """The entropy for a covariance (..., n, n)."""
        if isinstance(cov, Covariance):
            result: Array = 0.5 * (cov.rank * (1.0 + _LOG_2PI) + cov.log_pdet)
            return result
        (matrix,) = _operands("multivariate_normal.entropy", cov)
        n = matrix.shape[-1]
        half_log_det = jnp.sum(lax.log(jnp.diagonal(cholesky(matrix), 0, -2, -1)), -1)
        return 0.5 * n * (1.0 + _LOG_2PI) + half_log_det

    @by_key
    def rvs(self, key: Array, mean: ArrayLike, cov: ArrayLike | Covariance,
            shape: ShapeLike | None = None) -> Array:
        """Random vectors of shape (*shape, n) from a key."""
        if isinstance(cov, Covariance):
            (place,) = _operands("multivariate_normal.rvs", mean)
            sizes: Any = () if shape is None else shape
            lead = (sizes,) if isinstance(sizes, int) else tuple(sizes)
            z: Array = random.normal(key, (*lead, *cov.shape[:-1]), place.dtype)
            return place + cov.colorize(z)
        return random.multivariate_normal(key, mean, cov, shape)


class Dirichlet(DistributionFamily):
    """The Dirichlet distribution: positive vectors of sum 1.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.25, 0.75])
    >>> round(float(ft.scipy.stats.dirichlet.logpdf(x, ft.numpy.ones(2))), 4)
    0.0
    """

    def logpdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """The logarithm of the density at x, along its first axis, for alpha of shape (n,).

        x has n elements along that axis, or n - 1 of which the last is what is left of 1; -inf
        outside of the simplex. Raises ShapeError where sizes do not fit.
        """
        x, alpha = _operands("dirichlet.logpdf", x, alpha)
        if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0],
                                                              alpha.shape[0] - 1):
            raise ShapeError(f"dirichlet.logpdf: x of shape {x.shape} does not fit alpha of shape "
                             f"{alpha.shape}.", where=user_source(),
                             why="x has an element for each of alpha along its first axis.")
        if x.shape[0] != alpha.shape[0]:
            x = jnp.concatenate([x, 1.0 - jnp.sum(x, 0, keepdims=True)])
        each = jnp.reshape(alpha, (-1, *(1,) * (x.ndim - 1)))
        eps = float(dtypes.finfo(x.dtype).eps)
        inside = jnp.all(x >= 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1.0) < 1e4 * eps)
        possible = jnp.all(alpha > 0)
        constant = lax.lgamma(jnp.sum(alpha)) - jnp.sum(lax.lgamma(alpha))
        safe = jnp.where(inside, x, 0.5)
        value = constant + jnp.sum(special.xlogy(each - 1.0, safe), 0)
        return jnp.where(possible, jnp.where(inside, value, -math.inf), math.nan)

    def pdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, alpha))

    def mean(self, alpha: ArrayLike) -> Array:
        """The mean vector."""
        (a,) = _operands("dirichlet.mean", alpha)
        return a / jnp.sum(a)

    def var(self, alpha: ArrayLike) -> Array:
        """The variance of each element."""
        (a,) = _operands("dirichlet.var", alpha)
        total = jnp.sum(a)
        return a * (total - a) / (total * total * (total + 1.0))

    def entropy(self, alpha: ArrayLike) -> Array:
        """The entropy."""
        (a,) = _operands("dirichlet.entropy", alpha)
        total = jnp.sum(a)
        return jnp.sum(lax.lgamma(a)) - lax.lgamma(total) \
            + (total - a.shape[0]) * lax.digamma(total) - jnp.sum((a - 1.0) * lax.digamma(a))

    @by_key
    def rvs(self, key: Array, alpha: ArrayLike, shape: ShapeLike | None = None) -> Array:
        """Random vectors of shape (*shape, n) from a key."""
        return random.dirichlet(key, alpha, shape)


class Multinomial(DistributionFamily):
    """The multinomial distribution: how often each of several outcomes comes in n trials.

    >>> import functrans as ft
    >>> p = ft.numpy.array([0.5, 0.5])
    >>> round(float(ft.scipy.stats.multinomial.pmf(ft.numpy.array([1, 1]), 2, p)), 4)
    0.5
    """

    def logpmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The logarithm of the probability of the counts x (..., k) for p (..., k).

        -inf where the counts are not whole numbers of sum n.
        """
        x, n, p = _operands("multinomial.logpmf", x, n, p)
        whole = jnp.all((x >= 0) & (x == lax.floor(x)), -1) & (jnp.sum(x, -1) == n)
        safe = jnp.where(whole[..., None], x, 0.0)
        value = lax.lgamma(n + 1.0) + jnp.sum(special.xlogy(safe, p) - lax.lgamma(safe + 1.0), -1)
        return jnp.where(whole, value, -math.inf)

    def pmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The probability of the counts x."""
        return lax.exp(self.logpmf(x, n, p))

    def mean(self, n: ArrayLike, p: ArrayLike) -> Array:
        """The mean counts."""
        n, p = _operands("multinomial.mean", n, p)
        return n[..., None] * p

    @by_key
    def rvs(self, key: Array, n: int, p: ArrayLike, shape: ShapeLike = ()) -> Array:
        """Random counts of shape (*shape, k) from a key, for a Python int n and p of shape (k,)."""
        (weights,) = _operands("multinomial.rvs", p)
        sizes: Any = (shape,) if isinstance(shape, int) else shape
        picks: Any = random.categorical(key, lax.log(weights), shape=(*sizes, int(n)))
        classes = jnp.arange(weights.shape[-1])
        return jnp.sum((picks[..., None] == classes).astype(dtypes.default_int()), -2)


multivariate_normal, dirichlet = MultivariateNormal("multivariate_normal"), Dirichlet("dirichlet")
multinomial = Multinomial("multinomial")
