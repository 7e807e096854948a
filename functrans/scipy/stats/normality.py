"""Whether samples are those of a normal distribution."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.stats.results import (
    SignificanceResult,
    check_side,
    chi2_tail,
    normal_pvalue,
)
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import kurtosis, moment, sample, skew
from functrans.typing import Array, ArrayLike

__all__ = ["jarque_bera", "kurtosistest", "normaltest", "shapiro", "skewtest"]


def _large(name: str, a: ArrayLike, axis: int | None, alternative: str, least: int
           ) -> tuple[Array, int, float]:
    """A sample that is large enough for an approximation, its axis and its size."""
    check_side(name, alternative)
    x, axis = sample(name, a, axis)
    n = x.shape[axis]
    if n < least:
        raise ShapeError(f"scipy.stats.{name}: a sample has {n} elements.", where=user_source(),
                         why=f"the approximation holds from {least} on.")
    return x, axis, float(n)


@over_axis("a", least=8)
def skewtest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
             alternative: str = "two-sided", *, keepdims: bool = False) -> SignificanceResult:
    """Whether the skewness is that of a normal distribution: D'Agostino, for 8 elements or more.

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.skewtest(ft.numpy.arange(8.0) ** 3)
    >>> round(float(z), 3)
    1.769
    """
    x, axis, n = _large("skewtest", a, axis, alternative, 8)
    y = skew(x, axis) * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / (
        (n - 2) * (n + 5) * (n + 7) * (n + 9))
    w2 = -1 + math.sqrt(2 * (beta - 1))
    z = jnp.arcsinh(y / math.sqrt(2 / (w2 - 1))) / math.sqrt(0.5 * math.log(w2))
    return SignificanceResult(z, normal_pvalue(z, alternative))


@over_axis("a", least=5)
def kurtosistest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
                 alternative: str = "two-sided", *, keepdims: bool = False) -> SignificanceResult:
    """Whether the kurtosis is that of a normal distribution: Anscombe and Glynn (1983).

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.kurtosistest(ft.numpy.arange(20.0))
    >>> round(float(z), 3)
    -1.706
    """
    x, axis, n = _large("kurtosistest", a, axis, alternative, 5)
    b2 = kurtosis(x, axis, fisher=False)
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    standard = (b2 - mean) / math.sqrt(variance)
    root = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(
        6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a_ = 6 + 8 / root * (2 / root + math.sqrt(1 + 4 / root**2))
    middle = 1 - 2 / (9 * a_)
    bottom = 1 + standard * math.sqrt(2 / (a_ - 4))
    third = jnp.sign(bottom) * ((1 - 2 / a_) / jnp.abs(bottom)) ** (1 / 3)
    z = (middle - third) / math.sqrt(2 / (9 * a_))
    return SignificanceResult(z, normal_pvalue(z, alternative))


@over_axis("a", least=8)
def normaltest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", *,
               keepdims: bool = False) -> SignificanceResult:
    """Whether skewness and kurtosis are those of a normal distribution: D'Agostino and Pearson.

    >>> import functrans as ft
    >>> k, p = ft.scipy.stats.normaltest(ft.numpy.arange(20.0))
    >>> round(float(k), 3)
    2.91
    """
    total = skewtest(a, axis).statistic ** 2 + kurtosistest(a, axis).statistic ** 2
    return SignificanceResult(total, chi2_tail(total, 2))


@over_axis("x")
def jarque_bera(x: ArrayLike, *, axis: int | None = None, nan_policy: str = "propagate",
                keepdims: bool = False) -> SignificanceResult:
    """Whether skewness and kurtosis are those of a normal distribution, for many elements.

    >>> import functrans as ft
    >>> j, p = ft.scipy.stats.jarque_bera(ft.numpy.arange(20.0))
    >>> round(float(j), 3)
    1.212
    """
    values, axis = sample("jarque_bera", x, axis)
    second = moment(values, 2, axis)
    s = moment(values, 3, axis) / second**1.5
    k = moment(values, 4, axis) / second**2
    j = values.shape[axis] / 6 * (s * s + (k - 3) ** 2 / 4)
    return SignificanceResult(j, chi2_tail(j, 2))


# Shapiro and Wilk ----------------------------------------------------------------------------

# of Royston's polynomials, the constant first
_FIRST = (0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
_SECOND = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
_FEW_MEAN = (0.544, -0.39978, 0.025054, -6.714e-4)
_FEW_SPREAD = (1.3822, -0.77857, 0.062767, -0.0020322)
_MANY_MEAN = (-1.5861, -0.31082, -0.083751, 0.0038915)
_MANY_SPREAD = (-0.4803, -0.082676, 0.0030302)


def _polynomial(c: tuple[float, ...], x: float) -> float:
    return sum(v * x**i for i, v in enumerate(c))


def _shapiro_weights(n: int) -> Any:
    """The weights of the ordered sample: Royston's approximation of the best ones."""
    half = n // 2
    if n == 3:
        upper = np.array([math.sqrt(0.5)])
    else:
        normal = NormalDist()
        m = np.array([-normal.inv_cdf((i - 0.375) / (n + 0.25)) for i in range(1, half + 1)])
        square = 2 * float(np.sum(m * m))
        root = 1 / math.sqrt(n)
        ends = [_polynomial(c, root) + m[i] / math.sqrt(square)
                for i, c in enumerate((_FIRST, _SECOND)[:2 if n > 5 else 1])]
        known = len(ends)
        scale = (square - 2 * np.sum(m[:known] ** 2)) / (1 - 2 * sum(v * v for v in ends))
        upper = np.concatenate([ends, m[known:] / np.sqrt(scale)])
    return np.concatenate([-upper, np.zeros(n % 2), upper[::-1]])


@over_axis("x", least=3)
def shapiro(x: ArrayLike, *, axis: int | None = None, nan_policy: str = "propagate",
            keepdims: bool = False) -> SignificanceResult:
    """Whether a sample of three elements or more is normal: Shapiro and Wilk.

    The p-value is Royston's approximation, for up to 5,000 elements (Applied Statistics 44, 1995,
    algorithm R94). Raises ShapeError for fewer than three.

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.shapiro([1.0, 2.0, 3.0, 5.0, 9.0])
    >>> round(float(w), 4), round(float(p), 4)
    (0.9124, 0.4822)
    """
    values, where, size = _large("shapiro", x, axis, "two-sided", 3)
    n = int(size)
    ordered = jnp.sort(jnp.moveaxis(values, where, -1), -1)
    lost = jnp.where(jnp.any(jnp.isnan(ordered), -1), jnp.nan, 0)
    off = ordered - jnp.mean(ordered, -1, keepdims=True)
    weights = _shapiro_weights(n)
    unit = jnp.asarray(weights / np.sqrt(np.sum(weights**2))).astype(off.dtype)
    length = jnp.sqrt(jnp.sum(off * off, -1))
    flat = length == 0
    along = jnp.sum(off * unit, -1) / jnp.where(flat, 1, length)
    # 1 - w without cancellation: w is near 1
    less = jnp.where(flat, 0, jnp.clip((1 - along) * (1 + along), 0, 1))
    w = 1 - less
    if n == 3:
        p = 6 / math.pi * (jnp.arcsin(jnp.sqrt(w)) - math.asin(math.sqrt(0.75)))
        return SignificanceResult(w + lost, jnp.where(flat, 1, jnp.clip(p, 0, 1)) + lost)
    y = jnp.log(jnp.where(less > 0, less, 1))
    if n <= 11:
        end = -2.273 + 0.459 * n
        beyond = y >= end
        y = -jnp.log(jnp.where(beyond, 1, end - y))
        mean, spread = _polynomial(_FEW_MEAN, n), math.exp(_polynomial(_FEW_SPREAD, n))
    else:
        beyond = jnp.zeros_like(flat)
        log_n = math.log(n)
        mean, spread = _polynomial(_MANY_MEAN, log_n), math.exp(_polynomial(_MANY_SPREAD, log_n))
    p = jnp.where(beyond, 0, special.ndtr((mean - y) / spread))
    return SignificanceResult(w + lost, jnp.where(less > 0, p, 1) + lost)


publish(globals(), __all__)
