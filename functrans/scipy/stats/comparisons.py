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
from functrans.numpy.common import is_traced
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.descriptive import trim_mean
from functrans.scipy.stats.methods import Resampling, key_of
from functrans.scipy.stats.missing import Lines, count
from functrans.scipy.stats.random_tables import known_counts, of_random_tables
from functrans.scipy.stats.results import (
    SignificanceResult,
    check_side,
    chi2_tail,
    t_pvalue,
)
from functrans.scipy.stats.samples import over_axis
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


def centred(name: str, samples: Sequence[ArrayLike], axis: int | None, center: str,
            proportiontocut: float, lines: Lines) -> list[tuple[Array, Array]]:
    """Samples, and the middle of each."""
    one_of(f"stats.{name}", "center", center, ("median", "mean", "trimmed"))
    parts = groups(name, samples, axis)
    if center == "trimmed":
        return [(p, trim_mean(p, proportiontocut, -1)[..., None]) for p in parts]
    middle: Any = lines.median if center == "median" else lines.mean
    return [(p, middle(p, keepdims=True)) for p in parts]


def known_sizes(given: dict[str, Any]) -> bool:
    """Whether the middle of samples is found without knowing how many elements they have."""
    return bool(given["center"] != "trimmed")


def _between(parts: Sequence[Array], lines: Lines) -> tuple[Array, Array, Any, Any]:
    """The sums of squares between and within groups, and their degrees of freedom."""
    sizes = [lines.size(p) for p in parts]
    count: Any = sum(sizes)
    middle: Any = sum(lines.sum(p) for p in parts) / count
    between = sum(n * (lines.mean(p) - middle) ** 2 for n, p in zip(sizes, parts))
    within = sum(lines.sum((p - lines.mean(p, keepdims=True)) ** 2) for p in parts)
    return jnp.asarray(between), jnp.asarray(within), len(parts) - 1, count - len(parts)


def _welch(parts: Sequence[Array], lines: Lines) -> SignificanceResult:
    """Welch, On the Comparison of Several Mean Values: An Alternative Approach (1951)."""
    k = len(parts)
    sizes, means = [lines.size(p) for p in parts], [lines.mean(p) for p in parts]
    weights = [n / lines.var(p, 1) for n, p in zip(sizes, parts)]
    total: Any = sum(weights)
    mean: Any = sum(w * m for w, m in zip(weights, means)) / total
    between: Any = sum(w * (m - mean) ** 2 for w, m in zip(weights, means)) / (k - 1)
    spread: Any = sum((1 - w / total) ** 2 / (n - 1) for w, n in zip(weights, sizes))
    f = between / (1 + 2 * (k - 2) / (k * k - 1) * spread)
    return SignificanceResult(f, _f_tail(f, k - 1, (k * k - 1) / (3 * spread)))


def _f_tail(f: Array, between: int, within: Any) -> Array:
    return special.fdtrc(jnp.full_like(f, between), jnp.full_like(f, 1) * within, f)


@over_axis("*samples", masks=True)
def f_oneway(*samples: ArrayLike, axis: int | None = 0, equal_var: bool = True,
             nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether samples have one mean: the analysis of variance; Welch's without `equal_var`.

    >>> import functrans as ft
    >>> f, p = ft.scipy.stats.f_oneway([1.0, 2.0, 3.0], [3.0, 4.0, 6.0], [2.0, 2.0, 5.0])
    >>> round(float(f), 4), round(float(p), 4)
    (1.9474, 0.223)
    """
    parts, lines = groups("f_oneway", samples, axis), Lines(nan_policy == "omit")
    if not equal_var:
        return _welch(parts, lines)
    between, within, k, n = _between(parts, lines)
    f = between / k / (within / n)
    return SignificanceResult(f, _f_tail(f, k, n))


@over_axis("*samples", masks=known_sizes)
def levene(*samples: ArrayLike, center: str = "median", proportiontocut: float = 0.05,
           axis: int | None = 0, nan_policy: str = "propagate",
           keepdims: bool = False) -> SignificanceResult:
    """Whether samples have one variance, by their distances from the "median" or "mean".

    `center` "trimmed" is the mean without `proportiontocut` of the elements at each end.

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.levene([1.0, 2.0, 3.0], [3.0, 4.0, 9.0])
    >>> round(float(w), 4)
    0.7273
    """
    parts = [jnp.abs(p - middle) for p, middle in centred(
        "levene", samples, axis, center, proportiontocut, Lines(nan_policy == "omit"))]
    between, within, k, n = _between(parts, Lines(nan_policy == "omit"))
    w = between / k / (within / n)
    return SignificanceResult(w, _f_tail(w, k, n))


@over_axis("*samples", masks=True)
def bartlett(*samples: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
             keepdims: bool = False) -> SignificanceResult:
    """Whether normal samples have one variance.

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.bartlett([1.0, 2.0, 3.0], [3.0, 4.0, 9.0])
    >>> round(float(t), 4)
    1.8141
    """
    parts = groups("bartlett", samples, axis)
    lines = Lines(nan_policy == "omit")
    sizes = [lines.size(p) for p in parts]
    total, k = sum(sizes), len(parts)
    variances = [lines.var(p, 1) for p in parts]
    pooled = sum((n - 1) * v for n, v in zip(sizes, variances)) / (total - k)
    top = (total - k) * jnp.log(pooled) - sum(
        (n - 1) * jnp.log(v) for n, v in zip(sizes, variances))
    bottom = 1 + (sum(1 / (n - 1) for n in sizes) - 1 / (total - k)) / (3 * (k - 1))
    t = top / bottom
    return SignificanceResult(t, chi2_tail(t, k - 1))


@over_axis("*samples", masks=True)
def alexandergovern(*samples: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
                    keepdims: bool = False) -> SignificanceResult:
    """Whether samples of any variances have one mean: Alexander and Govern (1994).

    >>> import functrans as ft
    >>> a, p = ft.scipy.stats.alexandergovern([1.0, 2.0, 3.0], [3.0, 4.0, 6.0])
    >>> round(float(a), 3)
    2.486
    """
    parts = groups("alexandergovern", samples, axis)
    lines = Lines(nan_policy == "omit")
    means = [lines.mean(p) for p in parts]
    squares = [lines.var(p, 1) / lines.size(p) for p in parts]
    weights = [1 / s for s in squares]
    mean = sum(w * m for w, m in zip(weights, means)) / sum(weights)
    total: Any = 0.0
    for p, m, s in zip(parts, means, squares):
        v = lines.size(p) - 1.0
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


@over_axis("f_obs", "f_exp", paired=True, masks=True)
def power_divergence(f_obs: ArrayLike, f_exp: ArrayLike | None = None, ddof: int = 0,
                     axis: int | None = 0, lambda_: str | float | None = None, *,
                     nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
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
    mask = None
    if nan_policy == "omit":
        mask = ~jnp.isnan(sum(others, observed))
        # what is left out is as expected, and adds nothing
        observed = jnp.where(mask, observed, 1)
    expected = jnp.mean(observed, where, keepdims=True, where=mask) if not others else sample(
        "power_divergence", others[0], axis)[0]
    if mask is not None:
        expected = jnp.where(mask, expected, 1)
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2 * special.xlogy(observed, observed / expected)
    elif power == -1:
        terms = 2 * special.xlogy(expected, expected / observed)
    else:
        terms = 2 * observed * ((observed / expected) ** power - 1) / (power * (power + 1))
    total = jnp.sum(terms, where)
    return SignificanceResult(total, chi2_tail(total, count(observed, where, mask) - 1 - ddof))


def chisquare(f_obs: ArrayLike, f_exp: ArrayLike | None = None, ddof: int = 0, axis: int | None = 0,
              *, sum_check: bool = True, nan_policy: str = "propagate",
              keepdims: bool = False) -> SignificanceResult:
    """Pearson's chi squared of frequencies; see `power_divergence`.

    With `sum_check` both have one sum, where they are known.

    >>> import functrans as ft
    >>> c, p = ft.scipy.stats.chisquare([16.0, 18.0, 11.0])
    >>> round(float(c), 4), round(float(p), 4)
    (1.7333, 0.4204)
    """
    if sum_check and f_exp is not None:
        _check_sums(f_obs, f_exp, axis, nan_policy)
    return power_divergence(f_obs, f_exp, ddof, axis, nan_policy=nan_policy, keepdims=keepdims)


def _check_sums(f_obs: ArrayLike, f_exp: ArrayLike, axis: Any, nan_policy: str) -> None:
    a, b = jnp.broadcast_arrays(*inexact(f_obs, f_exp))
    add = jnp.nansum if nan_policy == "omit" else jnp.sum
    if nan_policy == "omit":
        a, b = jnp.where(jnp.isnan(b), b, a), jnp.where(jnp.isnan(a), a, b)
    one, two = (lax.stop_gradient(add(v, axis)) for v in (a, b))
    off = jnp.abs(one - two) / jnp.minimum(one, two)
    limit = float(np.sqrt(jnp.finfo(a.dtype).eps))
    if not is_traced(off) and bool(np.any(np.asarray(off) > limit)):
        raise ArgumentError("scipy.stats.chisquare: the sums of the frequencies differ by "
                            f"{float(np.nanmax(np.asarray(off))):.2g} of them.",
                            where=user_source(), why="those that are expected are of as many.",
                            fix="sum_check=False, or f_exp * f_obs.sum() / f_exp.sum()")


def chi2_contingency(observed: ArrayLike, correction: bool = True,
                     lambda_: str | float | None = None, *, method: Resampling = None
                     ) -> ContingencyResult:
    """Whether the axes of a table of frequencies are independent.

    With one degree of freedom `correction` is that of Yates. `method`, a `PermutationMethod` or a
    `MonteCarloMethod`, finds the p-value of a table of two axes, which is known, without the
    correction, among random ones of its margins.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.chi2_contingency(ft.numpy.array([[10.0, 20.0], [30.0, 5.0]]))
    >>> found.dof, round(float(found.statistic), 3)
    (1, 16.578)
    """
    (table,) = inexact(observed)
    if not table.size or not table.ndim:
        raise ShapeError(f"scipy.stats.chi2_contingency: the table has shape {table.shape}.",
                         where=user_source())
    if method is not None:
        return _resampled_contingency(table, lambda_, method)
    total = jnp.sum(table)
    expected = expected_of(table)
    dof = int(table.size - sum(table.shape) + table.ndim - 1)
    if dof == 0:
        return ContingencyResult(jnp.zeros_like(total), jnp.ones_like(total), 0, expected)
    if dof == 1 and correction:
        off = expected - table
        table = table + jnp.minimum(0.5, jnp.abs(off)) * jnp.sign(off)
    found = power_divergence(table, expected, table.size - 1 - dof, None, lambda_)
    return ContingencyResult(found.statistic, found.pvalue, dof, expected)


def expected_of(table: Array) -> Array:
    """The frequencies of a table if its axes were independent."""
    total = jnp.sum(table)
    expected = total * jnp.ones_like(table)
    for a in range(table.ndim):
        others = tuple(i for i in range(table.ndim) if i != a)
        expected = expected * jnp.sum(table, others, keepdims=True) / total
    return expected


def _resampled_contingency(table: Array, lambda_: str | float | None, method: Any
                           ) -> ContingencyResult:
    if table.ndim != 2:
        raise ShapeError(f"scipy.stats.chi2_contingency: the table has shape {table.shape}, and "
                         "method is given.", where=user_source(), why="tables of two axes are "
                         "resampled.")
    plain = chi2_contingency(table, False, lambda_)
    expected = expected_of(table).astype(jnp.float64)

    def of(cells: Array) -> Array:
        return power_divergence(cells, expected, 0, None, lambda_).statistic

    rng = getattr(method, "random_state", None) if method.rng is None else method.rng
    drawn = of_random_tables(known_counts("chi2_contingency", table), key_of(
        "chi2_contingency", rng), method.n_resamples, of)
    observed = of(table.astype(jnp.float64))
    hits = drawn >= observed * (1 - 1e-12)
    p = (jnp.sum(hits) + 1) / (method.n_resamples + 1)
    return ContingencyResult(plain.statistic, p.astype(table.dtype), plain.dof, plain.expected_freq)


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


@over_axis("pvalues", "weights", paired=True)
def combine_pvalues(pvalues: ArrayLike, method: str = "fisher", weights: ArrayLike | None = None, *,
                    axis: int = 0, nan_policy: str = "propagate",
                    keepdims: bool = False) -> SignificanceResult:
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
