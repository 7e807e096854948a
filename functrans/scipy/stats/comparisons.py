"""Tests of hypotheses: of means of groups, of variances and of tables.

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
from functrans.scipy.stats.results import (
    SignificanceResult,
    check_side,
    chi2_tail,
    t_pvalue,
)
from functrans.scipy.stats.statistics import sample
from functrans.typing import Array, ArrayLike

__all__ = ["alexandergovern", "bartlett", "binomtest", "chi2_contingency", "chisquare",
           "combine_pvalues", "f_oneway", "false_discovery_control", "levene",
           "power_divergence"]

class ContingencyResult(NamedTuple):
    """A statistic, its p-value, the degrees of freedom and the frequencies that are expected."""

    statistic: Array
    pvalue: Array
    dof: int
    expected_freq: Array


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
    check_side("binomtest", alternative)
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
        return SignificanceResult(s, t_pvalue(s * factor, 5 * n + 4, "greater"))
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
