"""Lines through pairs, and the correlation of their orders."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple, TypeVar

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.comparisons import groups
from functrans.scipy.stats.ranks import exact_pvalue
from functrans.scipy.stats.results import (
    SIDES,
    LinregressResult,
    SignificanceResult,
    normal_pvalue,
    t_pvalue,
)
from functrans.scipy.stats.samples import over_axis
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["kendalltau", "linregress", "pointbiserialr", "siegelslopes", "theilslopes"]

_T = TypeVar("_T")
_EXACT_TAU = 33  # elements up to which SciPy counts permutations


@over_axis("x", "y", paired=True, least=2)
def linregress(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided", *, axis: int | None = 0,
               nan_policy: str = "propagate", keepdims: bool = False) -> LinregressResult:
    """The line of least squares through pairs.

    Unpacks to five values, and has the `intercept_stderr` besides.

    >>> import functrans as ft
    >>> line = ft.scipy.stats.linregress([0.0, 1.0, 2.0], [1.0, 3.0, 5.5])
    >>> round(float(line.slope), 3), round(float(line.intercept), 3)
    (2.25, 0.917)
    """
    one_of("stats.linregress", "alternative", alternative, SIDES)
    a, b = _pairs("linregress", x, y, axis)
    n = a.shape[-1]
    mean_a, mean_b = jnp.mean(a, -1, keepdims=True), jnp.mean(b, -1, keepdims=True)
    da, db = a - mean_a, b - mean_b
    saa, sbb, sab = jnp.sum(da * da, -1), jnp.sum(db * db, -1), jnp.sum(da * db, -1)
    r = jnp.where(saa * sbb == 0, 0, sab / jnp.sqrt(jnp.where(saa * sbb == 0, 1, saa * sbb)))
    r = jnp.clip(r, -1, 1)
    slope = sab / saa
    intercept = mean_b[..., 0] - slope * mean_a[..., 0]
    df = n - 2
    if not df:
        flat = jnp.where(b[..., 0] == b[..., 1], 1.0, 0.0).astype(a.dtype)
        none = jnp.zeros_like(slope)
        return LinregressResult(slope, intercept, r, flat, none, none)
    t = r * jnp.sqrt(df / ((1 - r + 1e-20) * (1 + r + 1e-20)))
    error = jnp.sqrt(jnp.maximum((1 - r * r) * sbb / saa / df, 0))
    of_intercept = error * jnp.sqrt(saa / n + mean_a[..., 0] ** 2)
    return LinregressResult(slope, intercept, r, t_pvalue(t, df, alternative), error, of_intercept)


def _pairs(name: str, x: ArrayLike, y: ArrayLike, axis: int | None) -> tuple[Array, Array]:
    a, b = groups(name, (x, y), axis)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"scipy.stats.{name}: the samples have {a.shape[-1]} and {b.shape[-1]} "
                         "elements.", where=user_source(), why="they are pairs.")
    return a, b


@over_axis("x", "y", paired=True, least=2)
def pointbiserialr(x: ArrayLike, y: ArrayLike, *, axis: int | None = 0,
                   nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """The correlation of a mask with numbers, and its p-value.

    >>> import functrans as ft
    >>> r = ft.scipy.stats.pointbiserialr([0, 0, 1, 1], [1.0, 2.0, 3.0, 5.0])
    >>> round(float(r.statistic), 4)
    0.8452
    """
    line = linregress(x, y, axis=axis)
    return SignificanceResult(line.rvalue, line.pvalue)


@over_axis("x", "y", paired=True, least=2)
def kendalltau(x: ArrayLike, y: ArrayLike, *, nan_policy: str = "propagate", method: str = "auto",
               variant: str = "b", alternative: str = "two-sided", axis: int | None = None,
               keepdims: bool = False) -> SignificanceResult:
    """Kendall's correlation: pairs of one order less those of the other, over all of them.

    `variant` is "b", which takes ties into account, or "c". `method` is "asymptotic", "exact"
    (without ties), or "auto": exact up to 33 elements without ties. All pairs are compared.

    >>> import functrans as ft
    >>> t = ft.scipy.stats.kendalltau([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
    >>> round(float(t.statistic), 4), round(float(t.pvalue), 4)
    (0.6667, 0.3333)
    """
    one_of("stats.kendalltau", "alternative", alternative, SIDES)
    one_of("stats.kendalltau", "method", method, ("auto", "asymptotic", "exact"))
    one_of("stats.kendalltau", "variant", variant, ("b", "c"))
    return _each_line(lambda a, b: _kendalltau(a, b, method, variant, alternative),
                      *_pairs("kendalltau", x, y, axis))


def _each_line(of: Callable[[Array, Array], _T], a: Array, b: Array) -> _T:
    """A function of vectors, of the last axes."""
    for _ in a.shape[:-1]:
        of = vmap(of)
    return of(a, b)


def _kendalltau(a: Array, b: Array, method: str, variant: str, alternative: str
                ) -> SignificanceResult:
    n = a.shape[0]
    upper = jnp.asarray(np.triu(np.ones((n, n), bool), 1))
    way_a, way_b = (jnp.sign(v[:, None] - v) for v in (a, b))
    balance = jnp.sum(jnp.where(upper, way_a * way_b, 0))
    pairs = n * (n - 1) / 2
    tied_a, tied_b = (jnp.sum(jnp.where(upper, w == 0, 0)).astype(a.dtype)
                      for w in (way_a, way_b))
    if variant == "b":
        tau = balance / jnp.sqrt((pairs - tied_a) * (pairs - tied_b))
    else:
        kinds = [jnp.sum(jnp.diff(jnp.sort(v)) != 0) + 1 for v in (a, b)]
        least = jnp.minimum(*kinds).astype(a.dtype)
        tau = 2 * balance / (n * n * (least - 1) / least)
    tau = jnp.clip(tau, -1, 1)
    counts = [jnp.sum(v[:, None] == v, -1).astype(a.dtype) for v in (a, b)]
    # sums over groups of t of t (t - 1) (2 t + 5) and t (t - 1) (t - 2), as sums over elements
    by = [jnp.sum((c - 1) * (2 * c + 5)) for c in counts]
    by_three = [jnp.sum((c - 1) * (c - 2)) for c in counts]
    m = n * (n - 1.0)
    variance = (m * (2 * n + 5) - by[0] - by[1]) / 18 + 2 * tied_a * tied_b / m + (
        by_three[0] * by_three[1] / (9 * m * (n - 2)) if n > 2 else 0)
    p = normal_pvalue(balance / jnp.sqrt(variance), alternative)
    if method == "exact" or (method == "auto" and n <= _EXACT_TAU):
        exact = exact_pvalue((balance + pairs) / 2, _counts_of_inversions(n), alternative)
        plain = (tied_a == 0) & (tied_b == 0)
        p = exact if method == "exact" else jnp.where(plain, exact, p)
    return SignificanceResult(tau, p)


def _counts_of_inversions(n: int) -> Any:
    """How many permutations have each number of inversions."""
    counts = np.ones(1)
    for k in range(2, n + 1):
        counts = np.convolve(counts, np.ones(k))
    return counts


class Slopes(NamedTuple):
    """A line through medians."""

    slope: Array
    intercept: Array


class TheilslopesResult(NamedTuple):
    """A line through medians, and the ends of the confidence interval of its slope."""

    slope: Array
    intercept: Array
    low_slope: Array
    high_slope: Array


def _points(name: str, y: ArrayLike, x: ArrayLike | None, axis: int | None) -> tuple[Array, Array]:
    """Places, which are the numbers from 0 on where none are given, and values."""
    (b,) = inexact(y)
    n = b.size if axis is None else b.shape[axis]
    places = jnp.broadcast_to(jnp.arange(n), b.shape) if x is None else jnp.asarray(x)
    return _pairs(name, places.astype(b.dtype), b, axis)


def _over(rise: Array, run: Array) -> Array:
    """A ratio that is NaN, with no derivative, where it is over 0."""
    return jnp.where(run == 0, jnp.nan, rise / jnp.where(run == 0, 1, run))


@over_axis("y", "x", paired=True, least=2)
def theilslopes(y: ArrayLike, x: ArrayLike | None = None, alpha: float = 0.95,
                method: str = "separate", *, axis: int | None = None, nan_policy: str = "propagate",
                keepdims: bool = False) -> TheilslopesResult:
    """The median of the slopes of all pairs with different x, and the intercept: Theil and Sen.

    `method` is "separate" (the median of y less slope times that of x) or "joint" (the median of
    what is left). The slope has the ends of an interval of confidence `alpha`.
    Source: Sen, Estimates of the Regression Coefficient Based on Kendall's Tau (1968).

    >>> import functrans as ft
    >>> line = ft.scipy.stats.theilslopes([0.0, 2.0, 4.0, 6.0, 100.0])
    >>> float(line.slope)
    2.0
    """
    one_of("stats.theilslopes", "method", method, ("separate", "joint"))
    if not 0 <= alpha <= 1:
        raise ArgumentError(f"scipy.stats.theilslopes: alpha is {shown(alpha)}.",
                            where=user_source(), why="it is a probability.", fix="alpha=0.95")
    return _each_line(lambda a, b: _theilslopes(a, b, alpha, method),
                      *_points("theilslopes", y, x, axis))


def _theilslopes(a: Array, b: Array, alpha: float, method: str) -> TheilslopesResult:
    n = a.shape[0]
    rows, columns = np.triu_indices(n, 1)
    slopes = jnp.sort(_over(b[columns] - b[rows], a[columns] - a[rows]))
    slope = jnp.nanmedian(slopes)
    intercept = jnp.median(b - slope * a) if method == "joint" else jnp.median(
        b) - slope * jnp.median(a)
    ties = sum(jnp.sum((c - 1) * (2 * c + 5)) for c in (
        jnp.sum(v[:, None] == v, -1).astype(a.dtype) for v in (a, b)))
    spread = jnp.sqrt(jnp.maximum((n * (n - 1) * (2 * n + 5) - ties) / 18, 0))
    count = jnp.sum(~jnp.isnan(slopes)).astype(a.dtype)
    reach = NormalDist().inv_cdf(max(min(alpha, 1 - alpha) / 2, 1e-300)) * spread
    high = jnp.clip(jnp.round((count - reach) / 2), 0, count - 1)
    low = jnp.clip(jnp.round((count + reach) / 2) - 1, 0, None)
    ends = [slopes[v.astype(int)] for v in (low, high)]
    return TheilslopesResult(slope, intercept, *ends)


@over_axis("y", "x", paired=True, least=2)
def siegelslopes(y: ArrayLike, x: ArrayLike | None = None, method: str = "hierarchical", *,
                 axis: int | None = None, nan_policy: str = "propagate",
                 keepdims: bool = False) -> Slopes:
    """The median of the medians of the slopes from each point, and the intercept: Siegel (1982).

    >>> import functrans as ft
    >>> line = ft.scipy.stats.siegelslopes([0.0, 2.0, 4.0, 100.0])
    >>> float(line.slope)
    2.0
    """
    one_of("stats.siegelslopes", "method", method, ("hierarchical", "separate"))

    def of(a: Array, b: Array) -> Slopes:
        run = a - a[:, None]
        slope = jnp.median(jnp.nanmedian(_over(b - b[:, None], run), axis=1))
        if method == "separate":
            cut = _over(b[:, None] * a - b * a[:, None], run)
            return Slopes(slope, jnp.median(jnp.nanmedian(cut, axis=1)))
        return Slopes(slope, jnp.median(b - slope * a))

    return _each_line(of, *_points("siegelslopes", y, x, axis))


publish(globals(), __all__)
