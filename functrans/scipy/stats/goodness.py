"""Whether samples have a distribution, or one distribution, by integrals of squared differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.results import SignificanceResult, chi2_tail
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import iqr, rankdata
from functrans.typing import Array, ArrayLike

__all__ = ["cramervonmises", "cramervonmises_2samp", "epps_singleton_2samp"]

_TERMS = 12  # of the series, of which the next is below 1e-16 up to _FAR
_FAR = 12.0  # from where on the p-value is below 1e-25


def _limit(x: Array) -> Array:
    """The distribution function of the limit of Cramér and von Mises's statistic.

    Source: Csörgő and Faraway, The Exact and Asymptotic Distributions of Cramér-von Mises
    Statistics (1996), equation 1.3.
    """
    total = jnp.zeros_like(x)
    for k in range(_TERMS):
        y = 4 * k + 1
        q = y * y / (16 * x)
        # kve is kv exp(q): for small x the product of both would be lost
        factor = math.exp(math.lgamma(k + 0.5) - math.lgamma(k + 1)) * math.sqrt(y) / math.pi**1.5
        total = total + factor / jnp.sqrt(x) * jnp.exp(-2 * q) * _kve(0.25, q)
    return total


def _kve(order: float, x: Array) -> Array:
    return special.kve(jnp.full_like(x, order), x)


def _first_correction(x: Array) -> Array:
    """What a sample of n adds to the limit, times n: the same source, equation 1.10."""
    def second(y: Array) -> Array:
        z = y * y / 4
        return jnp.exp(-2 * z) * (y / 2) ** 1.5 * (_kve(0.25, z) + _kve(0.75, z)) / math.sqrt(
            math.pi)

    def third(y: Array) -> Array:
        z = y * y / 4
        return jnp.exp(-2 * z) / math.sqrt(math.pi) * (y / 2) ** 2.5 * (
            2 * _kve(0.25, z) + 3 * _kve(0.75, z) - _kve(1.25, z))

    root, low, high = 2 * jnp.sqrt(x), x**0.75, x**1.25
    total = jnp.zeros_like(x)
    for k in range(_TERMS):
        m = 2 * k + 1
        one, two = math.gamma(k + 0.5), math.gamma(k + 1.5)
        parts = (m * one * second((4 * k + 3) / root) / (9 * low)
                 + one * third((4 * k + 1) / root) / (72 * high)
                 + 2 * (m + 2) * two * third((4 * k + 5) / root) / (12 * high)
                 + 7 * m * one * second((4 * k + 1) / root) / (144 * low)
                 + 7 * m * one * second((4 * k + 5) / root) / (144 * low))
        total = total - parts / (math.pi * math.gamma(k + 1))
    return total


def _cvm_pvalue(w: Array, n: int | None) -> Array:
    low, high = (0.0, math.inf) if n is None else (1 / (12 * n), n / 3)
    inside = (w > max(low, 0.003)) & (w < min(high, _FAR))
    x = jnp.where(inside, w, 0.5)
    below = _limit(x)
    if n is not None:
        below = below * (1 + 1 / (12 * n)) + _first_correction(x) / n
    p = jnp.where(inside, jnp.clip(1 - below, 0, 1), jnp.where(w >= min(high, _FAR), 0.0, 1.0))
    return jnp.where(jnp.isnan(w), w, p)


@over_axis("rvs")
def cramervonmises(rvs: ArrayLike, cdf: Callable[..., ArrayLike], args: tuple[ArrayLike, ...] = (),
                   *, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
                   ) -> SignificanceResult:
    """Whether a sample of two elements or more has a distribution function: Cramér and von Mises.

    Source: Csörgő and Faraway (1996), whose first correction for the size of the sample is taken.

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.cramervonmises([0.1, 0.4, 0.7, 0.8], ft.scipy.stats.uniform.cdf)
    >>> round(float(w), 4), round(float(p), 4)
    (0.0333, 0.9806)
    """
    (x,) = inexact(rvs)
    n = x.shape[-1]
    _check_cdf("cramervonmises", cdf)
    if n < 2:
        raise ShapeError(f"scipy.stats.cramervonmises: the sample has {n} elements.",
                         where=user_source(), why="it has two or more.")
    levels = jnp.asarray(cdf(jnp.sort(x, -1), *args)).astype(x.dtype)
    u = (2 * jnp.arange(1, n + 1, dtype=x.dtype) - 1) / (2 * n)
    w = 1 / (12 * n) + jnp.sum((u - levels) ** 2, -1)
    return SignificanceResult(w, _cvm_pvalue(w, n))


def _check_cdf(name: str, cdf: Any) -> None:
    if not callable(cdf):
        raise ArgumentError(f"scipy.stats.{name}: cdf is {cdf!r}.", where=user_source(),
                            why="it is a function.", fix=f"ft.scipy.stats.{cdf}.cdf"
                            if isinstance(cdf, str) else "ft.scipy.stats.norm.cdf")


@lru_cache(maxsize=32)
def _cvm_counts(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of the sum of (i m' - j n')**2 over all orders, and the share from each on.

    m' and n' are m and n over their greatest divisor. Source: Xiao, Gordon and Yakovlev, A C++
    Program for the Cramér-von Mises Two-Sample Test (2006).
    """
    divisor = math.gcd(n, m)
    a, b = m // divisor, n // divisor
    above: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(1, int), np.ones(1))]
    for j in range(1, m + 1):
        values, counts = above[-1]
        above.append((values + (j * b) ** 2, counts))
    for i in range(1, n + 1):
        row: list[tuple[np.ndarray, np.ndarray]] = []
        for j in range(m + 1):
            values, counts = above[j]
            if j:
                values = np.concatenate([values, row[-1][0]])
                counts = np.concatenate([counts, row[-1][1]])
                values, inverse = np.unique(values, return_inverse=True)
                counts = np.bincount(inverse, counts)
            row.append((values + (i * a - j * b) ** 2, counts))
        above = row
    values, counts = above[-1]
    return values, np.cumsum(counts[::-1])[::-1] / counts.sum()


@over_axis("x", "y", least=2)
def cramervonmises_2samp(x: ArrayLike, y: ArrayLike, method: str = "auto", *, axis: int | None = 0,
                         nan_policy: str = "propagate", keepdims: bool = False
                         ) -> SignificanceResult:
    """Whether two samples of two elements or more have one distribution: Cramér and von Mises.

    `method` is "exact", by the count of all orders without ties, "asymptotic", or "auto": exact up
    to 20 elements of each.
    Source: Anderson, On the Distribution of the Two-Sample Cramér-von Mises Criterion (1962).

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.cramervonmises_2samp([1.0, 3.0, 5.0], [2.0, 7.0, 8.0, 9.0])
    >>> round(float(t), 4), round(float(p), 4)
    (0.2857, 0.1714)
    """
    one_of("stats.cramervonmises_2samp", "method", method, ("auto", "exact", "asymptotic"))
    a, b = inexact(x, y)
    n, m = a.shape[-1], b.shape[-1]
    if min(n, m) < 2:
        raise ShapeError(f"scipy.stats.cramervonmises_2samp: the samples have {n} and {m} "
                         "elements.", where=user_source(), why="they have two or more.")
    ordered = jnp.concatenate([jnp.sort(a, -1), jnp.sort(b, -1)], -1)
    ranks = rankdata(ordered, axis=-1).astype(a.dtype)
    u = sum(size * jnp.sum((r - jnp.arange(1, size + 1, dtype=a.dtype)) ** 2, -1)
            for size, r in ((n, ranks[..., :n]), (m, ranks[..., n:])))
    k, size = n * m, n + m
    t = jnp.asarray(u) / (k * size) - (4 * k - 1) / (6 * size)
    if method == "exact" or (method == "auto" and max(n, m) <= 20):
        values, tails = _cvm_counts(n, m)
        divisor = math.gcd(n, m)
        observed = jnp.floor(t * (size * size * k / divisor**2) + 1e-3)
        place = jnp.searchsorted(jnp.asarray(values).astype(a.dtype), observed)
        p = jnp.asarray(np.append(tails, 0.0)).astype(a.dtype)[place]
    else:
        mean = (1 + 1 / size) / 6
        variance = (size + 1) * (4 * k * size - 3 * (n * n + m * m) - 2 * k) / (
            45 * size**2 * 4 * k)
        p = _cvm_pvalue(1 / 6 + (t - mean) / math.sqrt(45 * variance), None)
    return SignificanceResult(t, jnp.where(jnp.isnan(t), t, p))


@over_axis("x", "y", least=5)
def epps_singleton_2samp(x: ArrayLike, y: ArrayLike, t: Sequence[float] = (0.4, 0.8), *,
                         axis: int | None = 0, nan_policy: str = "propagate",
                         keepdims: bool = False) -> SignificanceResult:
    """Whether two samples of five elements or more have one distribution, discrete ones too.

    Their characteristic functions are compared at the points `t`, which are above 0, over half of
    the range of the quartiles. Source: Epps and Singleton (1986); Goerg and Kaiser, The Stata
    Journal 9 (2009).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(8.0)
    >>> w, p = ft.scipy.stats.epps_singleton_2samp(x, x ** 2)
    >>> round(float(w), 3), round(float(p), 4)
    (4.83, 0.3052)
    """
    a, b = inexact(x, y)
    n, m = a.shape[-1], b.shape[-1]
    if min(n, m) < 5:
        raise ShapeError(f"scipy.stats.epps_singleton_2samp: the samples have {n} and {m} "
                         "elements.", where=user_source(), why="they have five or more.")
    points = np.asarray(t, float)
    if points.ndim != 1 or (points <= 0).any():
        raise ArgumentError(f"scipy.stats.epps_singleton_2samp: t is {t!r}.", where=user_source(),
                            why="it is a vector of numbers above 0.", fix="t=(0.4, 0.8)")
    half = iqr(jnp.concatenate([a, b], -1), axis=-1) / 2
    scaled = jnp.asarray(points).astype(a.dtype) / half[..., None]

    def waves(v: Array) -> Array:
        angles = scaled[..., :, None] * v[..., None, :]
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -2)

    sides = waves(a), waves(b)
    means = [jnp.mean(g, -1, keepdims=True) for g in sides]
    spreads = [jnp.matmul(g - mean, jnp.swapaxes(g - mean, -1, -2)) / g.shape[-1]
               for g, mean in zip(sides, means)]
    size = n + m
    inverse = jnp.linalg.pinv(size / n * spreads[0] + size / m * spreads[1])
    off = means[0] - means[1]
    w = size * jnp.matmul(jnp.swapaxes(off, -1, -2), jnp.matmul(inverse, off))[..., 0, 0]
    if max(n, m) < 25:
        w = w / (1 + size**-0.45 + 10.1 * (n**-1.7 + m**-1.7))
    rank = jnp.linalg.matrix_rank(inverse).astype(w.dtype)
    return SignificanceResult(w, chi2_tail(w, rank))


publish(globals(), __all__)
