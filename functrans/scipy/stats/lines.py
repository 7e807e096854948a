"""Lines through pairs, and the correlation of their orders."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
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
from functrans.typing import Array, ArrayLike

__all__ = ["kendalltau", "linregress", "pointbiserialr", "siegelslopes", "theilslopes"]

_EXACT_TAU = 33  # elements up to which SciPy counts permutations


def linregress(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided", *,
               axis: int | None = 0) -> LinregressResult:
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


def pointbiserialr(x: ArrayLike, y: ArrayLike) -> SignificanceResult:
    """The correlation of a mask with numbers, and its p-value.

    >>> import functrans as ft
    >>> r = ft.scipy.stats.pointbiserialr([0, 0, 1, 1], [1.0, 2.0, 3.0, 5.0])
    >>> round(float(r.statistic), 4)
    0.8452
    """
    line = linregress(x, y)
    return SignificanceResult(line.rvalue, line.pvalue)


def kendalltau(x: ArrayLike, y: ArrayLike, *, method: str = "auto", variant: str = "b",
               alternative: str = "two-sided") -> SignificanceResult:
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
    a, b = _pairs("kendalltau", x, y, None)
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


def _points(name: str, y: ArrayLike, x: ArrayLike | None) -> tuple[Array, Array]:
    """Places, which are the numbers from 0 on where none are given, and values."""
    (b,) = inexact(y)
    places = jnp.arange(b.shape[0]) if x is None else jnp.asarray(x)
    return _pairs(name, places.astype(b.dtype), b, None)


def _over(rise: Array, run: Array) -> Array:
    """A ratio that is NaN, with no derivative, where it is over 0."""
    return jnp.where(run == 0, jnp.nan, rise / jnp.where(run == 0, 1, run))


def theilslopes(y: ArrayLike, x: ArrayLike | None = None, method: str = "separate") -> Slopes:
    """The median of the slopes of all pairs with different x, and the intercept: Theil and Sen.

    `method` is "separate" (the median of y less slope times that of x) or "joint" (the median of
    what is left).

    >>> import functrans as ft
    >>> line = ft.scipy.stats.theilslopes([0.0, 2.0, 4.0, 6.0, 100.0])
    >>> float(line.slope)
    2.0
    """
    one_of("stats.theilslopes", "method", method, ("separate", "joint"))
    a, b = _points("theilslopes", y, x)
    rows, columns = np.triu_indices(a.shape[0], 1)
    slopes = _over(b[columns] - b[rows], a[columns] - a[rows])
    slope = jnp.nanmedian(slopes)
    if method == "joint":
        return Slopes(slope, jnp.median(b - slope * a))
    return Slopes(slope, jnp.median(b) - slope * jnp.median(a))


def siegelslopes(y: ArrayLike, x: ArrayLike | None = None, method: str = "hierarchical") -> Slopes:
    """The median of the medians of the slopes from each point, and the intercept: Siegel (1982).

    >>> import functrans as ft
    >>> line = ft.scipy.stats.siegelslopes([0.0, 2.0, 4.0, 100.0])
    >>> float(line.slope)
    2.0
    """
    one_of("stats.siegelslopes", "method", method, ("hierarchical", "separate"))
    a, b = _points("siegelslopes", y, x)
    run = a - a[:, None]
    slope = jnp.median(jnp.nanmedian(_over(b - b[:, None], run), axis=1))
    if method == "separate":
        cut = _over(b[:, None] * a - b * a[:, None], run)
        return Slopes(slope, jnp.median(jnp.nanmedian(cut, axis=1)))
    return Slopes(slope, jnp.median(b - slope * a))


publish(globals(), __all__)
