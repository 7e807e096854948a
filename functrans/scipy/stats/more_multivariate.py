"""More distributions of vectors, tables and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy import special
from functrans.scipy.arguments import known_values
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.stats.accepting import accepted
from functrans.scipy.stats.base import DistributionFamily
from functrans.scipy.stats.drawing import by_key
from functrans.scipy.stats.matrices import wishart
from functrans.typing import Array, ArrayLike, ShapeLike

__all__ = ["dirichlet_multinomial", "invwishart", "matrix_t", "multivariate_hypergeom",
           "normal_inverse_gamma", "random_correlation", "random_table", "uniform_direction",
           "vonmises_fisher"]

_LOG_PI = math.log(math.pi)


def _operands(name: str, *args: ArrayLike) -> list[Array]:
    name = f"scipy.stats.{name}"
    args = tuple(jnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in args)
    return [operand(name, x) for x in promote_dtypes_inexact(name, *args)]


def _lead(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _half_log_det(root: Array) -> Array:
    return jnp.sum(lax.log(jnp.diagonal(root, 0, -2, -1)), -1)


def _log_choose(n: Array, k: Array) -> Array:
    return lax.lgamma(n + 1.0) - lax.lgamma(k + 1.0) - lax.lgamma(n - k + 1.0)


class DirichletMultinomial(DistributionFamily):
    """How often each outcome comes in n trials of Dirichlet probabilities, of alpha (..., k).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.dirichlet_multinomial.pmf([1, 1], [1.0, 1.0], 2)), 4)
    0.3333
    """

    def logpmf(self, x: ArrayLike, alpha: ArrayLike, n: ArrayLike) -> Array:
        """The logarithm of the probability of the counts x (..., k); -inf if their sum is not n."""
        x, alpha, n = _operands("dirichlet_multinomial.logpmf", x, alpha, n)
        whole = jnp.all((x >= 0) & (x == lax.floor(x)), -1) & (jnp.sum(x, -1) == n)
        safe = jnp.where(whole[..., None], x, 0.0)
        total = jnp.sum(alpha, -1)
        value = (lax.lgamma(total) + lax.lgamma(n + 1.0) - lax.lgamma(n + total) + jnp.sum(
            lax.lgamma(safe + alpha) - lax.lgamma(alpha) - lax.lgamma(safe + 1.0), -1))
        return jnp.where(whole, value, -math.inf)

    def pmf(self, x: ArrayLike, alpha: ArrayLike, n: ArrayLike) -> Array:
        """The probability of the counts x."""
        return lax.exp(self.logpmf(x, alpha, n))

    def mean(self, alpha: ArrayLike, n: ArrayLike) -> Array:
        """The mean counts."""
        alpha, n = _operands("dirichlet_multinomial.mean", alpha, n)
        return n[..., None] * alpha / jnp.sum(alpha, -1, keepdims=True)

    def cov(self, alpha: ArrayLike, n: ArrayLike) -> Array:
        """The covariance (..., k, k) of the counts."""
        alpha, n = _operands("dirichlet_multinomial.cov", alpha, n)
        total = jnp.sum(alpha, -1)
        p = alpha / total[..., None]
        size = n * (n + total) / (1.0 + total)
        eye = jnp.eye(alpha.shape[-1], dtype=alpha.dtype)
        return size[..., None, None] * (eye * p[..., None] - p[..., None] * p[..., None, :])

    def var(self, alpha: ArrayLike, n: ArrayLike) -> Array:
        """The variance of each count."""
        return jnp.diagonal(self.cov(alpha, n), 0, -2, -1)

    @by_key
    def rvs(self, key: Array, alpha: ArrayLike, n: int, shape: ShapeLike = ()) -> Array:
        """Random counts of shape (*shape, k) from a key, for a Python int n and alpha (k,)."""
        (a,) = _operands("dirichlet_multinomial.rvs", alpha)
        one, two = random.split(key)
        p = random.dirichlet(one, a, _lead(shape))
        drawn: Array = random.multinomial(two, float(n), p)
        return drawn.astype(dtypes.default_int())


class MultivariateHypergeom(DistributionFamily):
    """The hypergeometric distribution of several kinds: n drawn from an urn of m (..., k) objects.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.multivariate_hypergeom.pmf([1, 1], [2, 2], 2)), 4)
    0.6667
    """

    def logpmf(self, x: ArrayLike, m: ArrayLike, n: ArrayLike) -> Array:
        """The logarithm of the probability of the counts x (..., k)."""
        x, m, n = _operands("multivariate_hypergeom.logpmf", x, m, n)
        fine = jnp.all((x >= 0) & (x <= m) & (x == lax.floor(x)), -1) & (jnp.sum(x, -1) == n)
        safe = jnp.where(fine[..., None], x, 0.0)
        value = jnp.sum(_log_choose(m, safe), -1) - _log_choose(jnp.sum(m, -1), n)
        possible = jnp.all(m >= 0, -1) & (n >= 0) & (n <= jnp.sum(m, -1))
        return jnp.where(possible, jnp.where(fine, value, -math.inf), math.nan)

    def pmf(self, x: ArrayLike, m: ArrayLike, n: ArrayLike) -> Array:
        """The probability of the counts x."""
        return lax.exp(self.logpmf(x, m, n))

    def mean(self, m: ArrayLike, n: ArrayLike) -> Array:
        """The mean counts."""
        m, n = _operands("multivariate_hypergeom.mean", m, n)
        return n[..., None] * m / jnp.sum(m, -1, keepdims=True)

    def cov(self, m: ArrayLike, n: ArrayLike) -> Array:
        """The covariance (..., k, k) of the counts."""
        m, n = _operands("multivariate_hypergeom.cov", m, n)
        total = jnp.sum(m, -1)
        p = m / total[..., None]
        size = n * (total - n) / jnp.maximum(total - 1.0, 1.0)
        eye = jnp.eye(m.shape[-1], dtype=m.dtype)
        return size[..., None, None] * (eye * p[..., None] - p[..., None] * p[..., None, :])

    def var(self, m: ArrayLike, n: ArrayLike) -> Array:
        """The variance of each count."""
        return jnp.diagonal(self.cov(m, n), 0, -2, -1)

    @by_key
    def rvs(self, key: Array, m: ArrayLike, n: int, shape: ShapeLike = ()) -> Array:
        """Random counts of shape (*shape, k) from a key, for known n and m (k,).

        The objects get random places in a row, of which the first n are taken.
        """
        counts = known_values("stats.multivariate_hypergeom.rvs", "m", m,
                              "it is how many objects there are.", "close over m")
        kinds = np.repeat(np.arange(counts.size), counts.astype(int))
        lead = _lead(shape)
        ranks = jnp.argsort(random.uniform(key, (*lead, kinds.size)), axis=-1)[..., :int(n)]
        taken = jnp.asarray(kinds)[ranks]
        return jnp.sum((taken[..., None] == jnp.arange(counts.size)).astype(
            dtypes.default_int()), -2)


class InvWishart(DistributionFamily):
    """The inverse Wishart distribution of positive definite matrices, of df and scale (..., n, n).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.invwishart.logpdf(ft.numpy.eye(2), 3.0, ft.numpy.eye(2))), 4)
    -3.531
    """

    def logpdf(self, x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
        """The logarithm of the density at x (..., n, n), for df > n - 1."""
        x, df, scale = _operands("invwishart.logpdf", x, df, scale)
        n = x.shape[-1]
        root_x, root = jnp.linalg.cholesky(x), jnp.linalg.cholesky(scale)
        inside = solve_triangular(root_x, root, lower=True)
        gamma: Array = special.multigammaln(0.5 * df, n)
        return (df * _half_log_det(root) - (df + n + 1.0) * _half_log_det(root_x)
                - 0.5 * jnp.sum(inside * inside, (-2, -1)) - 0.5 * df * n * math.log(2.0) - gamma)

    def pdf(self, x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, df, scale))

    def mean(self, df: ArrayLike, scale: ArrayLike) -> Array:
        """The mean, scale / (df - n - 1); NaN for df <= n + 1."""
        df, scale = _operands("invwishart.mean", df, scale)
        rest = df - scale.shape[-1] - 1.0
        return scale / jnp.where(rest > 0, rest, math.nan)[..., None, None]

    def mode(self, df: ArrayLike, scale: ArrayLike) -> Array:
        """Where the density is largest, scale / (df + n + 1)."""
        df, scale = _operands("invwishart.mode", df, scale)
        return scale / (df + scale.shape[-1] + 1.0)[..., None, None]

    def var(self, df: ArrayLike, scale: ArrayLike) -> Array:
        """The variance of each element; NaN for df <= n + 3."""
        df, scale = _operands("invwishart.var", df, scale)
        rest = (df - scale.shape[-1])[..., None, None]
        d = jnp.diagonal(scale, 0, -2, -1)
        value = ((rest + 1.0) * scale * scale + (rest - 1.0) * d[..., None] * d[..., None, :]) / (
            rest * (rest - 1.0) ** 2 * (rest - 3.0))
        return jnp.where(rest > 3, value, math.nan)

    def entropy(self, df: ArrayLike, scale: ArrayLike) -> Array:
        """The entropy."""
        df, scale = _operands("invwishart.entropy", df, scale)
        n = scale.shape[-1]
        half = _half_log_det(jnp.linalg.cholesky(scale))
        digammas = jnp.sum(lax.digamma(0.5 * (df[..., None] - jnp.arange(n, dtype=df.dtype))), -1)
        return ((n + 1.0) * half - 0.5 * n * (n + 1) * math.log(2.0) + special.multigammaln(
            0.5 * df, n) - 0.5 * (df + n + 1.0) * digammas + 0.5 * n * df)

    @by_key
    def rvs(self, key: Array, df: ArrayLike, scale: ArrayLike, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, n, n) from a key: inverses of Wishart ones."""
        df, scale = _operands("invwishart.rvs", df, scale)
        eye = jnp.eye(scale.shape[-1], dtype=scale.dtype)
        drawn = wishart.rvs(key, df, eye, shape)
        inside = solve_triangular(jnp.linalg.cholesky(drawn), eye + 0.0 * drawn, lower=True)
        half = jnp.matmul(inside, jnp.swapaxes(jnp.linalg.cholesky(scale), -1, -2),
                          precision="highest")
        return jnp.matmul(jnp.swapaxes(half, -1, -2), half, precision="highest")


class MatrixT(DistributionFamily):
    """Student's distribution of matrices (m, n), of spreads of rows and columns and df.

    >>> import functrans as ft
    >>> zero, one = ft.numpy.zeros((1, 1)), ft.numpy.eye(1)
    >>> round(float(ft.scipy.stats.matrix_t.logpdf(zero, zero, one, one, 1.0)), 4)
    -1.1447
    """

    def logpdf(self, X: ArrayLike, mean: ArrayLike, row_spread: ArrayLike, col_spread: ArrayLike,
               df: ArrayLike = 1.0) -> Array:
        """The logarithm of the density at X (..., m, n)."""
        x, mean, rows, columns, df = _operands("matrix_t.logpdf", X, mean, row_spread,
                                               col_spread, df)
        off = jnp.atleast_2d(x - mean)
        m, n = off.shape[-2:]
        root_m, root_n = jnp.linalg.cholesky(rows), jnp.linalg.cholesky(columns)
        white = jnp.swapaxes(solve_triangular(root_m, off, lower=True), -1, -2)
        white = solve_triangular(root_n, white, lower=True)
        inner = jnp.eye(n, dtype=off.dtype) + jnp.matmul(
            white, jnp.swapaxes(white, -1, -2), precision="highest")
        high, low = 0.5 * (df + n + m - 1.0), 0.5 * (df + m - 1.0)
        front = special.multigammaln(high, m) - special.multigammaln(low, m)
        value: Array = front - 0.5 * m * n * _LOG_PI - n * _half_log_det(root_m) - m * \
            _half_log_det(root_n) - 2.0 * high * _half_log_det(jnp.linalg.cholesky(inner))
        return value

    def pdf(self, X: ArrayLike, mean: ArrayLike, row_spread: ArrayLike, col_spread: ArrayLike,
            df: ArrayLike = 1.0) -> Array:
        """The density."""
        return lax.exp(self.logpdf(X, mean, row_spread, col_spread, df))

    @by_key
    def rvs(self, key: Array, mean: ArrayLike, row_spread: ArrayLike, col_spread: ArrayLike,
            df: ArrayLike = 1.0, shape: ShapeLike = ()) -> Array:
        """Random matrices of shape (*shape, m, n) from a key."""
        mean, rows, columns, df = _operands("matrix_t.rvs", mean, row_spread, col_spread, df)
        m, n = mean.shape[-2:]
        one, two = random.split(key)
        spread = invwishart.rvs(one, df + (m - 1.0), rows, shape)
        z = random.normal(two, (*_lead(shape), m, n), mean.dtype)
        inner = jnp.matmul(z, jnp.swapaxes(jnp.linalg.cholesky(columns), -1, -2),
                           precision="highest")
        return mean + jnp.matmul(jnp.linalg.cholesky(spread), inner, precision="highest")


class NormalInverseGamma(DistributionFamily):
    """A normal variable x, whose variance s2 is an inverse gamma variable.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.normal_inverse_gamma.logpdf(0.0, 1.0)), 4)
    -1.9189
    """

    def logpdf(self, x: ArrayLike, s2: ArrayLike, mu: ArrayLike = 0, lmbda: ArrayLike = 1,
               a: ArrayLike = 1, b: ArrayLike = 1) -> Array:
        """The logarithm of the density at x and s2; NaN for lmbda, a or b that is not positive."""
        x, s2, mu, lmbda, a, b = _operands("normal_inverse_gamma.logpdf", x, s2, mu, lmbda, a, b)
        some = s2 > 0
        safe = jnp.where(some, s2, 1.0)
        value = (0.5 * lax.log(lmbda) - 0.5 * math.log(2 * math.pi) + a * lax.log(b)
                 - lax.lgamma(a) - (a + 1.5) * lax.log(safe)
                 - (2.0 * b + lmbda * (x - mu) ** 2) / (2.0 * safe))
        known = (lmbda > 0) & (a > 0) & (b > 0)
        return jnp.where(known, jnp.where(some, value, -math.inf), math.nan)

    def pdf(self, x: ArrayLike, s2: ArrayLike, mu: ArrayLike = 0, lmbda: ArrayLike = 1,
            a: ArrayLike = 1, b: ArrayLike = 1) -> Array:
        """The density."""
        return lax.exp(self.logpdf(x, s2, mu, lmbda, a, b))

    def mean(self, mu: ArrayLike = 0, lmbda: ArrayLike = 1, a: ArrayLike = 1, b: ArrayLike = 1
             ) -> tuple[Array, Array]:
        """The means of x and of s2; NaN where they are none."""
        mu, lmbda, a, b = _operands("normal_inverse_gamma.mean", mu, lmbda, a, b)
        fine = lmbda > 0
        return (jnp.where(fine & (a > 0.5), mu, math.nan),
                jnp.where(fine & (a > 1), b / jnp.where(a > 1, a - 1.0, 1.0), math.nan))

    def var(self, mu: ArrayLike = 0, lmbda: ArrayLike = 1, a: ArrayLike = 1, b: ArrayLike = 1
            ) -> tuple[Array, Array]:
        """The variances of x and of s2; NaN where they are none."""
        mu, lmbda, a, b = _operands("normal_inverse_gamma.var", mu, lmbda, a, b)
        one, two = jnp.where(a > 1, a - 1.0, math.nan), jnp.where(a > 2, a - 2.0, math.nan)
        return b / (one * lmbda), b * b / (one * one * two)

    @by_key
    def rvs(self, key: Array, mu: ArrayLike = 0, lmbda: ArrayLike = 1, a: ArrayLike = 1,
            b: ArrayLike = 1, shape: ShapeLike = ()) -> tuple[Array, Array]:
        """Random x and s2 of a shape from a key."""
        mu, lmbda, a, b = _operands("normal_inverse_gamma.rvs", mu, lmbda, a, b)
        one, two = random.split(key)
        sizes = np.broadcast_shapes(_lead(shape), mu.shape, lmbda.shape, a.shape, b.shape)
        s2 = b / random.gamma(one, a, sizes, a.dtype)
        return mu + lax.sqrt(s2 / lmbda) * random.normal(two, sizes, a.dtype), s2


class RandomCorrelation(DistributionFamily):
    """Correlation matrices of given eigenvalues.

    Source: Davies and Higham, BIT 40 (2000).

    >>> import functrans as ft
    >>> c = ft.scipy.stats.random_correlation.rvs(ft.random.key(0), [0.5, 0.8, 1.2, 1.5])
    >>> [round(float(v), 4) for v in ft.numpy.diagonal(c)]
    [1.0, 1.0, 1.0, 1.0]
    """

    @by_key
    def rvs(self, key: Array, eigs: ArrayLike, tol: float = 1e-13, diag_tol: float = 1e-7
            ) -> Array:
        """A random matrix (n, n) from a key, for eigenvalues (n,) whose sum is n.

        A random rotation, and one rotation in a plane for each element of the diagonal. The sum is
        made n; `tol` and `diag_tol` are accepted.
        """
        (values,) = _operands("random_correlation.rvs", eigs)
        if values.ndim != 1 or values.shape[0] < 2:
            raise ShapeError(f"scipy.stats.random_correlation: eigs has shape {values.shape}.",
                             where=user_source(), why="it is (n,), of n from 2 on.")
        n = values.shape[0]
        values = values * (n / jnp.sum(values))
        q = random.orthogonal(key, n).astype(values.dtype)
        m = jnp.matmul(q * values, q.T, precision="highest")
        index = jnp.arange(n)

        def turn(i: Any, m: Array) -> Array:
            """A rotation by which element i of the diagonal is 1, with one on the other side."""
            d = jnp.diagonal(m)
            off = jnp.where(index > i, (d - 1.0) * jnp.sign(1.0 - d[i]), -math.inf)
            j = jnp.argmax(off)
            a, b, c = d[i] - 1.0, d[j] - 1.0, m[i, j]
            needed = (jnp.abs(a) > 0) & (off[j] > -math.inf)
            root = lax.sqrt(jnp.maximum(c * c - a * b, 0.0))
            t = (c + jnp.where(c < 0, -root, root)) / jnp.where(b != 0, b, 1.0)
            cos = 1.0 / lax.sqrt(1.0 + t * t)
            cos, sin = jnp.where(needed, cos, 1.0), jnp.where(needed, cos * t, 0.0)
            rows = m[i] * cos - m[j] * sin, m[i] * sin + m[j] * cos
            m = m.at[i].set(rows[0]).at[j].set(rows[1])
            columns = m[:, i] * cos - m[:, j] * sin, m[:, i] * sin + m[:, j] * cos
            m = m.at[:, i].set(columns[0]).at[:, j].set(columns[1])
            return m.at[i, i].set(1.0)

        out = lax.fori_loop(0, n - 1, turn, m)
        out = 0.5 * (out + out.T)
        return jnp.where(jnp.eye(n, dtype=bool), 1.0, out)


class RandomTable(DistributionFamily):
    """Tables of counts with given sums of rows and columns, of independent ones.

    Source: Patefield, Applied Statistics 30 (1981), for the probabilities.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.random_table.pmf([[1, 0], [0, 1]], [1, 1], [1, 1])), 4)
    0.5
    """

    def logpmf(self, x: ArrayLike, row: ArrayLike, col: ArrayLike) -> Array:
        """The logarithm of the probability of the table x (..., rows, columns)."""
        x, row, col = _operands("random_table.logpmf", x, row, col)
        fine = (jnp.all(jnp.sum(x, -1) == row, -1) & jnp.all(jnp.sum(x, -2) == col, -1)
                & jnp.all((x >= 0) & (x == lax.floor(x)), (-2, -1)))
        safe = jnp.where(fine[..., None, None], x, 0.0)
        value = (jnp.sum(lax.lgamma(row + 1.0)) + jnp.sum(lax.lgamma(col + 1.0))
                 - lax.lgamma(jnp.sum(row) + 1.0) - jnp.sum(lax.lgamma(safe + 1.0), (-2, -1)))
        return jnp.where(fine, value, -math.inf)

    def pmf(self, x: ArrayLike, row: ArrayLike, col: ArrayLike) -> Array:
        """The probability of the table x."""
        return lax.exp(self.logpmf(x, row, col))

    def mean(self, row: ArrayLike, col: ArrayLike) -> Array:
        """The mean table."""
        row, col = _operands("random_table.mean", row, col)
        return row[:, None] * col / jnp.sum(row)

    @by_key
    def rvs(self, key: Array, row: ArrayLike, col: ArrayLike, shape: ShapeLike = ()) -> Array:
        """Random tables of shape (*shape, rows, columns) from a key, for known sums."""
        why, fix = "they are how many observations there are.", "close over row and col"
        rows = known_values("stats.random_table.rvs", "row", row, why, fix).astype(int)
        columns = known_values("stats.random_table.rvs", "col", col, why, fix).astype(int)
        if rows.sum() != columns.sum() or (rows < 0).any() or (columns < 0).any():
            raise ArgumentError(f"scipy.stats.random_table: sums of rows are {rows.sum()}, of "
                                f"columns {columns.sum()}.", where=user_source(),
                                why="both are the number of observations.")
        ranks = jnp.argsort(random.uniform(key, (*_lead(shape), int(rows.sum()))), axis=-1)
        of_row = np.repeat(np.arange(rows.size), rows)
        of_column = jnp.asarray(np.repeat(np.arange(columns.size), columns))[ranks]
        kind = dtypes.default_int()
        left = jnp.asarray(of_row[:, None] == np.arange(rows.size)).astype(kind)
        right = (of_column[..., None] == jnp.arange(columns.size)).astype(kind)
        return jnp.einsum("oi,...oj->...ij", left, right)


class UniformDirection(DistributionFamily):
    """Directions in `dim` dimensions, uniformly: points of the unit sphere.

    >>> import functrans as ft
    >>> x = ft.scipy.stats.uniform_direction.rvs(ft.random.key(0), 3)
    >>> round(float((x**2).sum()), 4)
    1.0
    """

    @by_key
    def rvs(self, key: Array, dim: int, shape: ShapeLike = ()) -> Array:
        """Random unit vectors of shape (*shape, dim) from a key."""
        if dim < 1:
            raise ArgumentError(f"scipy.stats.uniform_direction: dim is {dim}.",
                                where=user_source(), why="it is a number of dimensions from 1 on.")
        z = random.normal(key, (*_lead(shape), int(dim)))
        return z / jnp.linalg.norm(z, axis=-1, keepdims=True)


class VonMisesFisher(DistributionFamily):
    """Directions around a unit vector mu (n,), of concentration kappa.

    >>> import functrans as ft
    >>> mu = ft.numpy.array([0.0, 0.0, 1.0])
    >>> round(float(ft.scipy.stats.vonmises_fisher.logpdf(mu, mu, 1.0)), 4)
    -1.6925
    """

    @staticmethod
    def _log_front(n: int, kappa: Array) -> Array:
        half = jnp.full_like(kappa, 0.5 * n - 1.0)
        front: Array = special.xlogy(half, kappa) - 0.5 * n * math.log(2 * math.pi) - lax.log(
            special.ive(half, kappa)) - kappa
        return front

    def logpdf(self, x: ArrayLike, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
        """The logarithm of the density on the sphere at unit vectors x (..., n)."""
        x, mu, kappa = _operands("vonmises_fisher.logpdf", x, mu, kappa)
        if mu.ndim != 1 or mu.shape[0] < 2 or x.shape[-1:] != mu.shape:
            raise ShapeError(f"scipy.stats.vonmises_fisher: x of shape {x.shape} does not fit mu "
                             f"of shape {mu.shape}.", where=user_source(),
                             why="both have n elements, from 2 on, along the last axis.")
        return self._log_front(mu.shape[0], kappa) + kappa * jnp.sum(mu * x, -1)

    def pdf(self, x: ArrayLike, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
        """The density on the sphere."""
        return lax.exp(self.logpdf(x, mu, kappa))

    def entropy(self, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
        """The entropy."""
        mu, kappa = _operands("vonmises_fisher.entropy", mu, kappa)
        half = jnp.full_like(kappa, 0.5 * mu.shape[0])
        ratio = special.ive(half, kappa) / special.ive(half - 1.0, kappa)
        return -self._log_front(mu.shape[0], kappa) - kappa * ratio

    @by_key
    def rvs(self, key: Array, mu: ArrayLike, kappa: ArrayLike = 1, shape: ShapeLike = ()) -> Array:
        """Random unit vectors of shape (*shape, n) from a key.

        Source: Wood, Communications in Statistics: Simulation 23 (1994).
        """
        mu, kappa = _operands("vonmises_fisher.rvs", mu, kappa)
        n, lead = mu.shape[0], _lead(shape)
        one, two = random.split(key)
        rest = n - 1.0
        b = rest / (2.0 * kappa + lax.sqrt(4.0 * kappa * kappa + rest * rest))
        x0 = (1.0 - b) / (1.0 + b)
        c = kappa * x0 + rest * lax.log(1.0 - x0 * x0)

        def propose(key: Array) -> tuple[Array, Array]:
            first, second = random.split(key)
            z = random.beta(first, 0.5 * rest, 0.5 * rest, lead, mu.dtype)
            w = (1.0 - (1.0 + b) * z) / (1.0 - (1.0 - b) * z)
            u = random.uniform(second, lead, mu.dtype)
            return w, kappa * w + rest * lax.log(1.0 - x0 * w) - c >= lax.log(u)

        w = accepted(one, jnp.zeros(lead, mu.dtype), propose)
        side = uniform_direction.rvs(two, n - 1, lead).astype(mu.dtype)
        x = jnp.concatenate([w[..., None], lax.sqrt(jnp.maximum(1.0 - w * w, 0.0))[
            ..., None] * side], -1)
        # the reflection that has mu for the first axis
        first = jnp.zeros_like(mu).at[0].set(1.0)
        off = first - mu
        square = jnp.sum(off * off)
        share = 2.0 * jnp.sum(x * off, -1, keepdims=True) / jnp.where(square > 0, square, 1.0)
        return x - jnp.where(square > 0, share, 0.0) * off

    def fit(self, x: ArrayLike) -> tuple[Array, Array]:
        """The most likely mu and kappa of unit vectors x (m, n)."""
        (x,) = _operands("vonmises_fisher.fit", x)
        mean = jnp.mean(x, 0)
        r = jnp.linalg.norm(mean)
        n = x.shape[-1]
        kappa = r * (n - r * r) / (1.0 - r * r)  # Banerjee et al. (2005), then Newton's method
        half = jnp.full_like(kappa, 0.5 * n)
        for _ in range(4):
            ratio = special.ive(half, kappa) / special.ive(half - 1.0, kappa)
            kappa = kappa - (ratio - r) / (1.0 - ratio * ratio - (n - 1.0) / kappa * ratio)
        return mean / r, kappa


dirichlet_multinomial = DirichletMultinomial("dirichlet_multinomial")
multivariate_hypergeom = MultivariateHypergeom("multivariate_hypergeom")
invwishart, matrix_t = InvWishart("invwishart"), MatrixT("matrix_t")
normal_inverse_gamma = NormalInverseGamma("normal_inverse_gamma")
random_correlation = RandomCorrelation("random_correlation")
random_table, uniform_direction = RandomTable("random_table"), UniformDirection("uniform_direction")
vonmises_fisher = VonMisesFisher("vonmises_fisher")
