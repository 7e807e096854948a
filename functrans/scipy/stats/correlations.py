"""Correlations of pairs."""

from __future__ import annotations

import math
import warnings

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import staged
from functrans.scipy import special
from functrans.scipy.arguments import inexact, refused
from functrans.scipy.stats.cautions import (
    ConstantInputWarning,
    NearConstantInputWarning,
)
from functrans.scipy.stats.methods import Resampling
from functrans.scipy.stats.missing import check_policy, refuse_missing
from functrans.scipy.stats.resampling import resampled
from functrans.scipy.stats.results import Correlation, check_side, t_pvalue
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import rankdata, sample
from functrans.typing import Array, ArrayLike

__all__ = ["pearsonr", "spearmanr", "spearmanrho"]


def _warn_of_constants(a: Array, b: Array, axis: int) -> None:
    """Warn of known samples that have no correlation, or one of few digits, as SciPy does."""
    if staged(a, b):
        return
    for v in (np.asarray(a), np.asarray(b)):
        spread = np.abs(v - v.mean(axis, keepdims=True)).max(axis)
        if (v == v.take([0], axis)).all(axis).any():
            warnings.warn(ConstantInputWarning("a sample is constant: its correlation is NaN."),
                          stacklevel=5)
        elif (spread < 1e-13 * np.abs(v.mean(axis))).any():
            warnings.warn(NearConstantInputWarning("a sample is nearly constant: its correlation "
                                                   "has few digits."), stacklevel=5)


@over_axis("x", "y")
def pearsonr(x: ArrayLike, y: ArrayLike, *, alternative: str = "two-sided",
             method: Resampling = None, axis: int | None = 0) -> Correlation:
    """Pearson's correlation of x and y along an axis, and its p-value.

    The result unpacks to both, and has `confidence_interval()`. `method` is None, for the exact
    distribution of normal variables, a `PermutationMethod` or a `MonteCarloMethod`.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0])
    >>> round(float(ft.scipy.stats.pearsonr(x, 2 * x).statistic), 4)
    1.0
    """
    check_side("pearsonr", alternative)
    a, where = sample("pearsonr", x, axis)
    b, _ = sample("pearsonr", y, axis)
    if a.shape[where] != b.shape[where] or a.shape[where] < 2:
        raise ShapeError(f"scipy.stats.pearsonr: the samples have {a.shape[where]} and "
                         f"{b.shape[where]} elements.", where=user_source(),
                         why="they are pairs, at least two.")
    _warn_of_constants(a, b, where)
    a, b = (v - jnp.mean(v, where, keepdims=True) for v in (a, b))
    r = jnp.sum(a * b, where) * lax.rsqrt(jnp.sum(a * a, where) * jnp.sum(b * b, where))
    r = jnp.clip(r, -1.0, 1.0)
    n = a.shape[where]
    if method is not None:
        last = [jnp.moveaxis(v, where, -1) for v in (a, b)]
        exact = pearsonr(*last, axis=-1)
        p = resampled("pearsonr", method, last, lambda s, t, axis: pearsonr(
            s, t, axis=axis).statistic, alternative, permutation_type="pairings_of_first")
        return Correlation(r, p, exact.spread, alternative)
    spread = jnp.full_like(r, 1 / math.sqrt(n - 3) if n > 3 else math.inf)
    if n == 2:
        return Correlation(jnp.round(r), jnp.where(jnp.isnan(r), r, 1.0), spread, alternative)
    # (r + 1) / 2 is a beta variable of two equal shapes
    half = jnp.full_like(r, 0.5 * n - 1.0)
    if alternative == "two-sided":
        p = 2.0 * special.betainc(half, half, 0.5 * (1.0 - lax.abs(r)))
    else:
        p = special.betainc(half, half, 0.5 * (1.0 + (r if alternative == "less" else -r)))
    return Correlation(r, p, spread, alternative)


def spearmanr(a: ArrayLike, b: ArrayLike | None = None, axis: int | None = 0,
              nan_policy: str = "propagate", alternative: str = "two-sided") -> Correlation:
    """Spearman's correlation, that of the ranks, along an axis, and its p-value.

    A sample `a` of two axes alone has variables along the other axis: of more than two the
    results are matrices. The result unpacks to both, and has `confidence_interval()`, of the
    variance (1 + r**2 / 2) / (n - 3) (Bonett and Wright, Psychometrika 65, 2000).

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0])
    >>> round(float(ft.scipy.stats.spearmanr(x, x ** 3).statistic), 4)
    1.0
    """
    check_side("spearmanr", alternative)
    if b is None:
        check_policy("spearmanr", nan_policy)
        if nan_policy == "omit":
            raise refused("stats.spearmanr", 'nan_policy="omit" of a sample of many variables',
                          "each pair of variables would have other elements.",
                          'spearmanr(a[:, 0], a[:, 1], nan_policy="omit")')
        (table,) = inexact(a)
        if nan_policy == "raise":
            refuse_missing("spearmanr", table)
        return _spearman_of_variables(table, axis, alternative)
    return spearmanrho(a, b, alternative=alternative, axis=axis, nan_policy=nan_policy)


@over_axis("x", "y", paired=True, least=2)
def spearmanrho(x: ArrayLike, y: ArrayLike, /, *, alternative: str = "two-sided",
                method: Resampling = None, axis: int | None = 0, nan_policy: str = "propagate",
                keepdims: bool = False) -> Correlation:
    """Spearman's correlation of x and y, that of their ranks, along an axis, and its p-value.

    `method`, a `PermutationMethod`, shuffles x instead of Student's distribution.
    Source: Spearman, The Proof and Measurement of Association between Two Things (1904).

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0, 3.0])
    >>> round(float(ft.scipy.stats.spearmanrho(x, x ** 3).statistic), 4)
    1.0
    """
    check_side("spearmanrho", alternative)
    u, v = inexact(x, y)
    a, b = (rankdata(w, axis=axis).astype(w.dtype) for w in (u, v))
    found = pearsonr(a, b, axis=axis).statistic
    asymptotic = _of_ranks(found, a.shape[-1], alternative)
    if method is None:
        return asymptotic
    p = resampled("spearmanrho", method, (a, b), lambda s, t, axis: pearsonr(
        s, t, axis=axis).statistic, alternative, permutation_type="pairings_of_first")
    return Correlation(found, p, asymptotic.spread, alternative)


def _of_ranks(r: Array, n: int, alternative: str) -> Correlation:
    t = r * lax.sqrt((n - 2.0) / ((1.0 + r) * (1.0 - r)))
    scale = 1 / math.sqrt(n - 3) if n > 3 else math.inf
    p = t_pvalue(t, n - 2, alternative) if n > 2 else jnp.full_like(r, math.nan)
    return Correlation(r, p, jnp.sqrt(1 + r * r / 2) * scale, alternative)


def _spearman_of_variables(table: Array, axis: int | None, alternative: str) -> Correlation:
    if table.ndim != 2 or axis is None or table.shape[1 - axis % 2] < 2:
        raise ShapeError(f"scipy.stats.spearmanr: a has shape {table.shape}, and there is no b.",
                         where=user_source(), why="two variables or more are compared, along an "
                         "axis of two.", fix="spearmanr(a, b)")
    ranks = jnp.moveaxis(rankdata(table, axis=axis).astype(table.dtype), axis, -1)
    off = ranks - jnp.mean(ranks, -1, keepdims=True)
    unit = off * lax.rsqrt(jnp.sum(off * off, -1, keepdims=True))
    r = jnp.clip(jnp.sum(unit[:, None] * unit[None], -1), -1, 1)
    if r.shape[0] == 2:
        return _of_ranks(r[0, 1], ranks.shape[-1], alternative)
    r = jnp.where(jnp.eye(r.shape[0], dtype=bool) & ~jnp.isnan(r), 1, r)
    return _of_ranks(r, ranks.shape[-1], alternative)


publish(globals(), __all__)
