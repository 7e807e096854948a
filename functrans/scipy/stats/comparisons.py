"""Tests of hypotheses: of means, of variances, of tables and of shapes.

Each returns its statistic and its p-value, along an axis; both are differentiated in the samples.
`alternative` is "two-sided", "less" or "greater".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.statistics import kurtosis, moment, sample, skew
from functrans.typing import Array, ArrayLike

__all__ = ["alexandergovern", "bartlett", "binomtest", "chi2_contingency", "chisquare",
           "combine_pvalues", "f_oneway", "false_discovery_control", "jarque_bera",
           "kurtosistest", "levene", "normaltest", "power_divergence", "skewtest", "ttest_1samp",
           "ttest_ind", "ttest_ind_from_stats", "ttest_rel"]

SIDES = ("two-sided", "less", "greater")


class SignificanceResult(NamedTuple):
    """A statistic, and the probability of one as extreme if the hypothesis held."""

    statistic: Array
    pvalue: Array


class ContingencyResult(NamedTuple):
    """A statistic, its p-value, the degrees of freedom and the frequencies that are expected."""

    statistic: Array
    pvalue: Array
    dof: int
    expected_freq: Array


def normal_pvalue(z: Array, alternative: str) -> Array:
    """The probability of a normal variable as extreme."""
    if alternative == "two-sided":
        return 2 * special.ndtr(-jnp.abs(z))
    return special.ndtr(z if alternative == "less" else -z)


def _t_pvalue(t: Array, df: Any, alternative: str) -> Array:
    df = jnp.broadcast_to(jnp.asarray(df).astype(t.dtype), t.shape)
    if alternative == "two-sided":
        return 2 * special.stdtr(df, -jnp.abs(t))
    return special.stdtr(df, t if alternative == "less" else -t)


def chi2_tail(x: Array, df: Any) -> Array:
    """The probability of a larger variable of chi squared."""
    return special.chdtrc(jnp.broadcast_to(jnp.asarray(df).astype(x.dtype), x.shape), x)


def _side(name: str, alternative: str) -> None:
    one_of(f"stats.{name}", "alternative", alternative, SIDES)


def ttest_1samp(a: ArrayLike, popmean: ArrayLike, axis: int | None = 0,
                nan_policy: str = "propagate", alternative: str = "two-sided"
                ) -> SignificanceResult:
    """Whether the mean is `popmean`, by Student's t.

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.ttest_1samp(ft.numpy.array([1.0, 2.0, 3.0]), 1.0)
    >>> round(float(t), 4), round(float(p), 4)
    (1.7321, 0.2254)
    """
    _side("ttest_1samp", alternative)
    one_of("stats.ttest_1samp", "nan_policy", nan_policy, ("propagate",))
    x, axis = sample("ttest_1samp", a, axis)
    n = x.shape[axis]
    mean = inexact(x, popmean)[1]
    if mean.ndim == x.ndim and mean.ndim:
        mean = jnp.squeeze(mean, axis)
    t = (jnp.mean(x, axis) - mean) / (jnp.std(x, axis, ddof=1) / math.sqrt(n))
    return SignificanceResult(t, _t_pvalue(t, n - 1, alternative))


def ttest_rel(a: ArrayLike, b: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
              alternative: str = "two-sided") -> SignificanceResult:
    """Whether the mean of the differences of pairs is 0.

    >>> import functrans as ft
    >>> a = ft.numpy.array([1.0, 2.0, 3.0])
    >>> t, p = ft.scipy.stats.ttest_rel(a, a ** 2)
    >>> round(float(t), 4)
    -1.5119
    """
    x, y = inexact(a, b)
    if axis is None:
        x, y, axis = jnp.ravel(x), jnp.ravel(y), 0
    if x.shape[axis] != y.shape[axis]:
        raise ShapeError(f"scipy.stats.ttest_rel: the samples have shapes {x.shape} and "
                         f"{y.shape}.", where=user_source(), why="they are pairs.",
                         fix="ttest_ind(a, b)")
    return ttest_1samp(x - y, 0.0, axis, nan_policy, alternative)


def ttest_ind(a: ArrayLike, b: ArrayLike, axis: int | None = 0, equal_var: bool = True,
              nan_policy: str = "propagate", alternative: str = "two-sided") -> SignificanceResult:
    """Whether two samples have one mean: Student's test, or Welch's without `equal_var`.

    >>> import functrans as ft
    >>> a, b = ft.numpy.array([1.0, 2.0, 3.0]), ft.numpy.array([3.0, 4.0, 6.0])
    >>> t, p = ft.scipy.stats.ttest_ind(a, b)
    >>> round(float(t), 4), round(float(p), 4)
    (-2.2136, 0.0913)
    """
    one_of("stats.ttest_ind", "nan_policy", nan_policy, ("propagate",))
    x, y = inexact(a, b)
    x, where = sample("ttest_ind", x, axis)
    y, where_y = sample("ttest_ind", y, axis)
    return ttest_ind_from_stats(
        jnp.mean(x, where), jnp.std(x, where, ddof=1), x.shape[where], jnp.mean(y, where_y),
        jnp.std(y, where_y, ddof=1), y.shape[where_y], equal_var, alternative)


def ttest_ind_from_stats(mean1: ArrayLike, std1: ArrayLike, nobs1: ArrayLike, mean2: ArrayLike,
                         std2: ArrayLike, nobs2: ArrayLike, equal_var: bool = True,
                         alternative: str = "two-sided") -> SignificanceResult:
    """`ttest_ind` of means, standard deviations and sizes.

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.ttest_ind_from_stats(2.0, 1.0, 3, 4.0, 1.0, 3)
    >>> round(float(t), 4)
    -2.4495
    """
    _side("ttest_ind", alternative)
    m1, s1, m2, s2 = inexact(mean1, std1, mean2, std2)
    n1, n2 = (jnp.asarray(n).astype(m1.dtype) for n in (nobs1, nobs2))
    v1, v2 = s1 * s1 / n1, s2 * s2 / n2
    if equal_var:
        df = n1 + n2 - 2
        pooled = ((n1 - 1) * s1 * s1 + (n2 - 1) * s2 * s2) / df
        error = jnp.sqrt(pooled * (1 / n1 + 1 / n2))
    else:
        df = (v1 + v2) ** 2 / (v1 * v1 / (n1 - 1) + v2 * v2 / (n2 - 1))
        error = jnp.sqrt(v1 + v2)
    t = (m1 - m2) / error
    return SignificanceResult(t, _t_pvalue(t, df, alternative))


def groups(name: str, samples: Sequence[ArrayLike], axis: int | None, least: int = 2
           ) -> list[Array]:
    """Samples whose last axis is that of the test."""
    if len(samples) < least:
        raise ArgumentError(f"scipy.stats.{name}: there are {len(samples)} samples.",
                            where=user_source(), why=f"at least {least} are compared.",
                            fix=f"{name}(a, b)")
    found = []
    for x in inexact(*samples):
        y, where = sample(name, x, axis)
        found.append(jnp.moveaxis(y, where, -1))
    return found


def _between(parts: Sequence[Array]) -> tuple[Array, Array, int, int]:
    """The sums of squares between and within groups, and their degrees of freedom."""
    count = sum(p.shape[-1] for p in parts)
    total = jnp.concatenate(jnp.broadcast_arrays(*parts) if len({p.shape for p in parts}) == 1
                            else parts, axis=-1)
    middle = jnp.mean(total, -1, keepdims=True)
    between = sum(p.shape[-1] * (jnp.mean(p, -1) - middle[..., 0]) ** 2 for p in parts)
    within = sum(jnp.sum((p - jnp.mean(p, -1, keepdims=True)) ** 2, -1) for p in parts)
    return jnp.asarray(between), jnp.asarray(within), len(parts) - 1, count - len(parts)


def f_oneway(*samples: ArrayLike, axis: int | None = 0) -> SignificanceResult:
    """Whether samples of equal variances have one mean: the analysis of variance.

    >>> import functrans as ft
    >>> f, p = ft.scipy.stats.f_oneway([1.0, 2.0, 3.0], [3.0, 4.0, 6.0], [2.0, 2.0, 5.0])
    >>> round(float(f), 4), round(float(p), 4)
    (1.9474, 0.223)
    """
    between, within, k, n = _between(groups("f_oneway", samples, axis))
    f = between / k / (within / n)
    return SignificanceResult(f, special.fdtrc(jnp.full_like(f, k), jnp.full_like(f, n), f))


def levene(*samples: ArrayLike, center: str = "median", proportiontocut: float = 0.05,
           axis: int | None = 0) -> SignificanceResult:
    """Whether samples have one variance, by their distances from the "median" or "mean".

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.levene([1.0, 2.0, 3.0], [3.0, 4.0, 9.0])
    >>> round(float(w), 4)
    0.7273
    """
    one_of("stats.levene", "center", center, ("median", "mean"))
    middle: Any = jnp.median if center == "median" else jnp.mean
    parts = [jnp.abs(p - middle(p, -1, keepdims=True)) for p in groups("levene", samples, axis)]
    between, within, k, n = _between(parts)
    w = between / k / (within / n)
    return SignificanceResult(w, special.fdtrc(jnp.full_like(w, k), jnp.full_like(w, n), w))


def bartlett(*samples: ArrayLike, axis: int | None = 0) -> SignificanceResult:
    """Whether normal samples have one variance.

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.bartlett([1.0, 2.0, 3.0], [3.0, 4.0, 9.0])
    >>> round(float(t), 4)
    1.8141
    """
    parts = groups("bartlett", samples, axis)
    sizes = [p.shape[-1] for p in parts]
    total, k = sum(sizes), len(parts)
    variances = [jnp.var(p, -1, ddof=1) for p in parts]
    pooled = sum((n - 1) * v for n, v in zip(sizes, variances)) / (total - k)
    top = (total - k) * jnp.log(pooled) - sum(
        (n - 1) * jnp.log(v) for n, v in zip(sizes, variances))
    bottom = 1 + (sum(1 / (n - 1) for n in sizes) - 1 / (total - k)) / (3 * (k - 1))
    t = top / bottom
    return SignificanceResult(t, chi2_tail(t, k - 1))


def alexandergovern(*samples: ArrayLike, axis: int | None = 0) -> SignificanceResult:
    """Whether samples of any variances have one mean: Alexander and Govern (1994).

    >>> import functrans as ft
    >>> a, p = ft.scipy.stats.alexandergovern([1.0, 2.0, 3.0], [3.0, 4.0, 6.0])
    >>> round(float(a), 3)
    2.486
    """
    parts = groups("alexandergovern", samples, axis)
    means = [jnp.mean(p, -1) for p in parts]
    squares = [jnp.var(p, -1, ddof=1) / p.shape[-1] for p in parts]
    weights = [1 / s for s in squares]
    mean = sum(w * m for w, m in zip(weights, means)) / sum(weights)
    total: Any = 0.0
    for p, m, s in zip(parts, means, squares):
        v = p.shape[-1] - 1.0
        t = (m - mean) / jnp.sqrt(s)
        a = v - 0.5
        b = 48 * a * a
        c = jnp.sqrt(a * jnp.log1p(t * t / v))
        z = c + (c**3 + 3 * c) / b - (4 * c**7 + 33 * c**5 + 240 * c**3 + 855 * c) / (
            10 * b * b + 8 * b * c**4 + 1000 * b)
        total = total + z * z
    return SignificanceResult(total, chi2_tail(total, len(parts) - 1))


# Tables --------------------------------------------------------------------------------------

_POWERS = {"pearson": 1.0, "log-likelihood": 0.0, "freeman-tukey": -0.5,
           "mod-log-likelihood": -1.0, "neyman": -2.0, "cressie-read": 2 / 3}


def power_divergence(f_obs: ArrayLike, f_exp: ArrayLike | None = None, ddof: int = 0,
                     axis: int | None = 0, lambda_: str | float | None = None
                     ) -> SignificanceResult:
    """Whether frequencies are those that are expected, all equal by default.

    `lambda_` is the power of Cressie and Read, or its name: "pearson" (the default),
    "log-likelihood", "freeman-tukey", "mod-log-likelihood", "neyman" or "cressie-read".

    >>> import functrans as ft
    >>> g, p = ft.scipy.stats.power_divergence([16.0, 18.0, 11.0], lambda_="log-likelihood")
    >>> round(float(g), 4)
    1.8054
    """
    if isinstance(lambda_, str):
        one_of("stats.power_divergence", "lambda_", lambda_, tuple(_POWERS))
    power = 1.0 if lambda_ is None else _POWERS[lambda_] if isinstance(lambda_, str) else lambda_
    given = [f_obs] if f_exp is None else [f_obs, f_exp]
    observed, *others = inexact(*given)
    observed, where = sample("power_divergence", observed, axis)
    expected = jnp.mean(observed, where, keepdims=True) if not others else sample(
        "power_divergence", others[0], axis)[0]
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2 * special.xlogy(observed, observed / expected)
    elif power == -1:
        terms = 2 * special.xlogy(expected, expected / observed)
    else:
        terms = 2 * observed * ((observed / expected) ** power - 1) / (power * (power + 1))
    total = jnp.sum(terms, where)
    return SignificanceResult(total, chi2_tail(total, observed.shape[where] - 1 - ddof))


def chisquare(f_obs: ArrayLike, f_exp: ArrayLike | None = None, ddof: int = 0,
              axis: int | None = 0) -> SignificanceResult:
    """Pearson's chi squared of frequencies; see `power_divergence`.

    >>> import functrans as ft
    >>> c, p = ft.scipy.stats.chisquare([16.0, 18.0, 11.0])
    >>> round(float(c), 4), round(float(p), 4)
    (1.7333, 0.4204)
    """
    return power_divergence(f_obs, f_exp, ddof, axis)


def chi2_contingency(observed: ArrayLike, correction: bool = True,
                     lambda_: str | float | None = None) -> ContingencyResult:
    """Whether the axes of a table of frequencies are independent.

    With one degree of freedom `correction` is that of Yates.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.chi2_contingency(ft.numpy.array([[10.0, 20.0], [30.0, 5.0]]))
    >>> found.dof, round(float(found.statistic), 3)
    (1, 16.578)
    """
    (table,) = inexact(observed)
    if not table.size or not table.ndim:
        raise ShapeError(f"scipy.stats.chi2_contingency: the table has shape {table.shape}.",
                         where=user_source())
    total = jnp.sum(table)
    expected = total * jnp.ones_like(table)
    for a in range(table.ndim):
        others = tuple(i for i in range(table.ndim) if i != a)
        expected = expected * jnp.sum(table, others, keepdims=True) / total
    dof = int(table.size - sum(table.shape) + table.ndim - 1)
    if dof == 0:
        return ContingencyResult(jnp.zeros_like(total), jnp.ones_like(total), 0, expected)
    if dof == 1 and correction:
        off = expected - table
        table = table + jnp.minimum(0.5, jnp.abs(off)) * jnp.sign(off)
    found = power_divergence(table, expected, table.size - 1 - dof, None, lambda_)
    return ContingencyResult(found.statistic, found.pvalue, dof, expected)


def binomtest(k: ArrayLike, n: int, p: ArrayLike = 0.5, alternative: str = "two-sided"
              ) -> SignificanceResult:
    """Whether k successes of n have the probability p; the statistic is k / n.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.binomtest(3, 15, 0.1).pvalue), 4)
    0.1841
    """
    _side("binomtest", alternative)
    count, part = inexact(k, p)
    each = np.arange(n + 1.0)
    each_of = jnp.asarray(each).astype(count.dtype)
    log_ways = jnp.asarray(np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(
        n - i + 1) for i in each])).astype(count.dtype)

    def mass(i: Array, ways: Array) -> Array:
        return jnp.exp(ways + special.xlogy(i, part[..., None]) + special.xlog1py(
            n - i, -part[..., None]))

    masses = mass(each_of, log_ways)
    at = each_of == count[..., None]
    if alternative == "two-sided":
        here = jnp.sum(jnp.where(at, masses, 0), -1, keepdims=True)
        chosen = masses <= here * (1 + 1e-7)
    else:
        chosen = each_of <= count[..., None] if alternative == "less" else (
            each_of >= count[..., None])
    return SignificanceResult(count / n, jnp.minimum(1, jnp.sum(jnp.where(chosen, masses, 0), -1)))


# Shapes --------------------------------------------------------------------------------------


def skewtest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
             alternative: str = "two-sided") -> SignificanceResult:
    """Whether the skewness is that of a normal distribution: D'Agostino, for 8 elements or more.

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.skewtest(ft.numpy.arange(8.0) ** 3)
    >>> round(float(z), 3)
    1.769
    """
    _side("skewtest", alternative)
    one_of("stats.skewtest", "nan_policy", nan_policy, ("propagate",))
    x, axis = sample("skewtest", a, axis)
    n = float(x.shape[axis])
    if n < 8:
        raise ShapeError(f"scipy.stats.skewtest: a sample has {int(n)} elements.",
                         where=user_source(), why="the approximation holds from 8 on.")
    y = skew(x, axis) * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / (
        (n - 2) * (n + 5) * (n + 7) * (n + 9))
    w2 = -1 + math.sqrt(2 * (beta - 1))
    z = jnp.arcsinh(y / math.sqrt(2 / (w2 - 1))) / math.sqrt(0.5 * math.log(w2))
    return SignificanceResult(z, normal_pvalue(z, alternative))


def kurtosistest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
                 alternative: str = "two-sided") -> SignificanceResult:
    """Whether the kurtosis is that of a normal distribution: Anscombe and Glynn (1983).

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.kurtosistest(ft.numpy.arange(20.0))
    >>> round(float(z), 3)
    -1.706
    """
    _side("kurtosistest", alternative)
    one_of("stats.kurtosistest", "nan_policy", nan_policy, ("propagate",))
    x, axis = sample("kurtosistest", a, axis)
    n = float(x.shape[axis])
    if n < 5:
        raise ShapeError(f"scipy.stats.kurtosistest: a sample has {int(n)} elements.",
                         where=user_source(), why="the approximation holds from 5 on.")
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


def normaltest(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate"
               ) -> SignificanceResult:
    """Whether skewness and kurtosis are those of a normal distribution: D'Agostino and Pearson.

    >>> import functrans as ft
    >>> k, p = ft.scipy.stats.normaltest(ft.numpy.arange(20.0))
    >>> round(float(k), 3)
    2.91
    """
    total = skewtest(a, axis, nan_policy).statistic ** 2 + kurtosistest(
        a, axis, nan_policy).statistic ** 2
    return SignificanceResult(total, chi2_tail(total, 2))


def jarque_bera(x: ArrayLike, *, axis: int | None = None) -> SignificanceResult:
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


# Many tests ----------------------------------------------------------------------------------


def combine_pvalues(pvalues: ArrayLike, method: str = "fisher",
                    weights: ArrayLike | None = None, *, axis: int = 0) -> SignificanceResult:
    """One test of independent ones.

    `method` is "fisher", "pearson", "tippett", "stouffer" or "mudholkar_george".

    `weights` are those of "stouffer".

    >>> import functrans as ft
    >>> s, p = ft.scipy.stats.combine_pvalues([0.1, 0.05, 0.02])
    >>> round(float(p), 4)
    0.0053
    """
    one_of("stats.combine_pvalues", "method", method, (
        "fisher", "pearson", "tippett", "stouffer", "mudholkar_george"))
    p, axis = sample("combine_pvalues", pvalues, axis)
    n = p.shape[axis]
    if method == "fisher":
        s = -2 * jnp.sum(jnp.log(p), axis)
        return SignificanceResult(s, chi2_tail(s, 2 * n))
    if method == "pearson":
        s = 2 * jnp.sum(jnp.log1p(-p), axis)
        return SignificanceResult(s, 1 - chi2_tail(-s, 2 * n))
    if method == "tippett":
        s = jnp.min(p, axis)
        return SignificanceResult(s, -jnp.expm1(n * jnp.log1p(-s)))
    if method == "mudholkar_george":
        s = -jnp.sum(jnp.log(p) - jnp.log1p(-p), axis)
        factor = math.sqrt(3 / n) / math.pi * math.sqrt((5 * n + 4) / (5 * n + 2))
        return SignificanceResult(s, _t_pvalue(s * factor, 5 * n + 4, "greater"))
    w = jnp.ones_like(p) if weights is None else jnp.asarray(weights).astype(p.dtype)
    s = jnp.sum(w * -special.ndtri(p), axis) / jnp.sqrt(jnp.sum(w * w, axis))
    return SignificanceResult(s, special.ndtr(-s))


def false_discovery_control(ps: ArrayLike, *, axis: int | None = 0, method: str = "bh") -> Array:
    """p-values adjusted for the rate of false discoveries: "bh", or "by" for dependent tests.

    Source: Benjamini and Hochberg (1995), Benjamini and Yekutieli (2001).

    >>> import functrans as ft
    >>> print(ft.scipy.stats.false_discovery_control([0.01, 0.04, 0.03]).round(3))
    [0.03 0.04 0.04]
    """
    one_of("stats.false_discovery_control", "method", method, ("bh", "by"))
    p, where = sample("false_discovery_control", ps, axis)
    lines = jnp.moveaxis(p, where, -1)
    m = lines.shape[-1]
    order = jnp.argsort(lines, -1)
    factors = m / np.arange(1, m + 1) * (sum(1 / i for i in range(1, m + 1)) if method == "by"
                                         else 1)
    raised = jnp.take_along_axis(lines, order, -1) * jnp.asarray(factors).astype(p.dtype)
    raised = lax.cummin(raised, axis=raised.ndim - 1, reverse=True)
    back = jnp.take_along_axis(raised, jnp.argsort(order, -1), -1)
    return jnp.moveaxis(jnp.clip(back, 0, 1), -1, where)


publish(globals(), __all__)
