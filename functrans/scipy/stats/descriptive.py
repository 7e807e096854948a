"""Summaries of samples: robust ones, those of directions and of bins, distances between samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.stats.statistics import kurtosis, sample, skew
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["binned_statistic", "circmean", "circstd",
           "circvar", "cumfreq", "describe", "differential_entropy", "energy_distance", "gstd",
           "gzscore", "kstat", "kstatvar", "median_abs_deviation", "percentileofscore", "pmean",
           "relfreq", "scoreatpercentile", "tmax", "tmean", "tmin", "trim_mean", "tsem", "tstd",
           "tvar", "variation", "wasserstein_distance", "zmap"]


class DescribeResult(NamedTuple):
    """Size, extremes and moments of a sample."""

    nobs: int
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


def describe(a: ArrayLike, axis: int | None = 0, ddof: int = 1, bias: bool = True
             ) -> DescribeResult:
    """The size of a sample, its extremes, mean, variance, skewness and kurtosis.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.describe(ft.numpy.array([1.0, 2.0, 3.0]))
    >>> found.nobs, float(found.mean), float(found.variance)
    (3, 2.0, 1.0)
    """
    x, axis = sample("describe", a, axis)
    return DescribeResult(x.shape[axis], (jnp.min(x, axis), jnp.max(x, axis)), jnp.mean(x, axis),
                          jnp.var(x, axis, ddof=ddof), skew(x, axis, bias),
                          kurtosis(x, axis, bias=bias))


def variation(a: ArrayLike, axis: int | None = 0, ddof: int = 0) -> Array:
    """The standard deviation over the mean.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.variation(ft.numpy.array([1.0, 3.0])))
    0.5
    """
    x, axis = sample("variation", a, axis)
    return jnp.std(x, axis, ddof=ddof) / jnp.mean(x, axis)


def gstd(a: ArrayLike, axis: int | None = 0, ddof: int = 1) -> Array:
    """The geometric standard deviation: that of logarithms, as a factor.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gstd(ft.numpy.array([1.0, 2.0, 4.0]))), 4)
    2.0
    """
    x, axis = sample("gstd", a, axis)
    return jnp.exp(jnp.std(jnp.log(x), axis, ddof=ddof))


def zmap(scores: ArrayLike, compare: ArrayLike, axis: int | None = 0, ddof: int = 0) -> Array:
    """Scores less the mean of others, over their standard deviation.

    >>> import functrans as ft
    >>> ft.scipy.stats.zmap(ft.numpy.array([3.0]), ft.numpy.array([1.0, 3.0])).tolist()
    [1.0]
    """
    x, y = inexact(scores, compare)
    return (x - jnp.mean(y, axis, keepdims=True)) / jnp.std(y, axis, ddof=ddof, keepdims=True)


def gzscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0) -> Array:
    """The z-scores of logarithms.

    >>> import functrans as ft
    >>> ft.scipy.stats.gzscore(ft.numpy.array([1.0, 4.0])).tolist()
    [-1.0, 1.0]
    """
    (x,) = inexact(a)
    return zmap(jnp.log(x), jnp.log(x), axis, ddof)


def pmean(a: ArrayLike, p: float, *, axis: int | None = 0, weights: ArrayLike | None = None
          ) -> Array:
    """The mean of powers p, to 1 / p; the geometric mean for p = 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.pmean(ft.numpy.array([1.0, 7.0]), 2)), 4)
    5.0
    """
    x, axis = sample("pmean", a, axis)
    if p == 0:
        mean: Any = jnp.average(jnp.log(x), axis, weights)
        return jnp.exp(mean)
    powers: Any = jnp.average(x**p, axis, weights)
    return jnp.power(powers, 1 / p)


# Trimmed -------------------------------------------------------------------------------------

Limits = tuple[float | None, float | None] | None


def _inside(x: Array, limits: Limits, inclusive: tuple[bool, bool]) -> Array:
    low, high = (None, None) if limits is None else limits
    keep = jnp.ones(x.shape, bool)
    if low is not None:
        keep = keep & ((x >= low) if inclusive[0] else (x > low))
    if high is not None:
        keep = keep & ((x <= high) if inclusive[1] else (x < high))
    return keep


def tmean(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
          axis: int | None = None) -> Array:
    """The mean of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmean(ft.numpy.arange(6.0), (1, 3)))
    2.0
    """
    x, axis = sample("tmean", a, axis)
    return jnp.mean(x, axis, where=_inside(x, limits, inclusive))


def tvar(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1) -> Array:
    """The variance of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tvar(ft.numpy.arange(6.0), (1, 3)))
    1.0
    """
    x, axis = sample("tvar", a, axis)
    return jnp.var(x, axis, ddof=ddof, where=_inside(x, limits, inclusive))


def tstd(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1) -> Array:
    """The standard deviation of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tstd(ft.numpy.arange(6.0), (1, 3)))
    1.0
    """
    return jnp.sqrt(tvar(a, limits, inclusive, axis, ddof))


def tsem(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1) -> Array:
    """The standard error of the mean of the elements within limits.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.tsem(ft.numpy.arange(6.0), (1, 4))), 4)
    0.6455
    """
    x, where = sample("tsem", a, axis)
    count = jnp.sum(_inside(x, limits, inclusive), where)
    return tstd(a, limits, inclusive, axis, ddof) / jnp.sqrt(count.astype(x.dtype))


def tmin(a: ArrayLike, lowerlimit: float | None = None, axis: int | None = 0,
         inclusive: bool = True) -> Array:
    """The least of the elements from a limit on; NaN where there is none.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmin(ft.numpy.arange(6.0), 1.5))
    2.0
    """
    x, axis = sample("tmin", a, axis)
    keep = _inside(x, (lowerlimit, None), (inclusive, True))
    found = jnp.min(x, axis, where=keep, initial=jnp.inf)
    return jnp.where(jnp.any(keep, axis), found, jnp.nan)


def tmax(a: ArrayLike, upperlimit: float | None = None, axis: int | None = 0,
         inclusive: bool = True) -> Array:
    """The largest of the elements up to a limit; NaN where there is none.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmax(ft.numpy.arange(6.0), 3.5))
    3.0
    """
    x, axis = sample("tmax", a, axis)
    keep = _inside(x, (None, upperlimit), (True, inclusive))
    found = jnp.max(x, axis, where=keep, initial=-jnp.inf)
    return jnp.where(jnp.any(keep, axis), found, jnp.nan)


def trim_mean(a: ArrayLike, proportiontocut: float, axis: int | None = 0) -> Array:
    """The mean without a part of the least and the largest elements.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.trim_mean(ft.numpy.array([0.0, 1.0, 2.0, 3.0, 100.0]), 0.2))
    2.0
    """
    x, axis = sample("trim_mean", a, axis)
    n = x.shape[axis]
    cut = int(proportiontocut * n)
    if 2 * cut >= n:
        raise ArgumentError(f"scipy.stats.trim_mean: proportiontocut is {proportiontocut}.",
                            where=user_source(), why="it is less than a half.")
    ordered = jnp.moveaxis(jnp.sort(x, axis), axis, -1)
    return jnp.mean(ordered[..., cut:n - cut], -1)


def median_abs_deviation(x: ArrayLike, axis: int | None = 0,
                         center: Callable[..., Any] | None = None, scale: float | str = 1.0
                         ) -> Array:
    """The median of the distances from the median; `scale` "normal" makes it a standard deviation.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.median_abs_deviation(ft.numpy.array([1.0, 2.0, 3.0, 9.0, 5.0])))
    2.0
    """
    values, axis = sample("median_abs_deviation", x, axis)
    if isinstance(scale, str):
        one_of("stats.median_abs_deviation", "scale", scale, ("normal",))
        scale = 0.6744897501960817
    middle = (jnp.median if center is None else center)(values, axis=axis)
    off = jnp.abs(values - jnp.expand_dims(jnp.asarray(middle), axis))
    return jnp.median(off, axis) / scale


def percentileofscore(a: ArrayLike, score: ArrayLike, kind: str = "rank") -> Array:
    """The percentage of elements below scores: of equal ones half ("rank"), all, none, or "mean".

    `kind` is "rank", "weak", "strict" or "mean".

    >>> import functrans as ft
    >>> float(ft.scipy.stats.percentileofscore([1.0, 2.0, 3.0, 4.0], 3.0))
    75.0
    """
    one_of("stats.percentileofscore", "kind", kind, ("rank", "weak", "strict", "mean"))
    x, at = inexact(a, score)
    x = jnp.ravel(x)
    n = x.shape[0]
    below, up_to = (jnp.sum(v, -1).astype(x.dtype) for v in (x < at[..., None], x <= at[..., None]))
    if kind == "rank":
        part = (below + up_to + (below < up_to)) / 2
    else:
        part = up_to if kind == "weak" else below if kind == "strict" else (below + up_to) / 2
    return part * (100 / n)


def scoreatpercentile(a: ArrayLike, per: ArrayLike, limit: tuple[float, float] | None = None,
                      interpolation_method: str = "fraction", axis: int | None = None) -> Array:
    """The score at percentages, interpolated ("fraction"), the "lower" or the "higher".

    >>> import functrans as ft
    >>> float(ft.scipy.stats.scoreatpercentile(ft.numpy.arange(5.0), 50))
    2.0
    """
    names = {"fraction": "linear", "lower": "lower", "higher": "higher"}
    one_of("stats.scoreatpercentile", "interpolation_method", interpolation_method, tuple(names))
    x, where = sample("scoreatpercentile", a, axis)
    if limit is not None:
        x = jnp.where(_inside(x, limit, (True, True)), x, jnp.nan)
        return jnp.nanpercentile(x, per, where, method=names[interpolation_method])
    return jnp.percentile(x, per, where, method=names[interpolation_method])


# Directions ----------------------------------------------------------------------------------


def _mean_vector(name: str, samples: ArrayLike, high: float, low: float, axis: int | None
                 ) -> tuple[Array, Array]:
    x, axis = sample(name, samples, axis)
    angles = (x - low) * (2 * math.pi / (high - low))
    return jnp.mean(jnp.sin(angles), axis), jnp.mean(jnp.cos(angles), axis)


def circmean(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0,
             axis: int | None = None) -> Array:
    """The mean of angles in a range that repeats.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circmean([10.0, 350.0, 30.0], high=360)), 3)
    10.0
    """
    s, c = _mean_vector("circmean", samples, high, low, axis)
    turn = high - low
    return jnp.mod(jnp.arctan2(s, c) * (turn / (2 * math.pi)), turn) + low


def circvar(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0,
            axis: int | None = None) -> Array:
    """1 less the length of the mean of unit vectors.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circvar([0.0, 1.0])), 4)
    0.1224
    """
    s, c = _mean_vector("circvar", samples, high, low, axis)
    return 1 - jnp.minimum(1, jnp.hypot(s, c))


def circstd(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0,
            axis: int | None = None, *, normalize: bool = False) -> Array:
    """The root of -2 log of the length of the mean of unit vectors, in units of the range.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circstd([0.0, 1.0])), 4)
    0.511
    """
    s, c = _mean_vector("circstd", samples, high, low, axis)
    found = jnp.sqrt(-2 * jnp.log(jnp.minimum(1, jnp.hypot(s, c))))
    return found if normalize else found * ((high - low) / (2 * math.pi))


# Between samples -----------------------------------------------------------------------------


def _distance(name: str, p: int, u: ArrayLike, v: ArrayLike, u_weights: ArrayLike | None,
              v_weights: ArrayLike | None) -> Array:
    """The integral of |U - V|**p of the distribution functions, to 1 / p."""
    a, b = inexact(u, v)
    parts = []
    for x, w in ((a, u_weights), (b, v_weights)):
        if x.ndim != 1 or not x.shape[0]:
            raise ShapeError(f"scipy.stats.{name}: values have shape {x.shape}.",
                             where=user_source(), why="they are a vector.")
        weight = jnp.ones_like(x) if w is None else jnp.asarray(w).astype(x.dtype)
        if weight.shape != x.shape:
            raise ShapeError(f"scipy.stats.{name}: values have shape {x.shape}, weights "
                             f"{weight.shape}.", where=user_source())
        parts.append(weight / jnp.sum(weight))
    values = jnp.concatenate([a, b])
    order = jnp.argsort(values)
    steps = jnp.concatenate([parts[0], -parts[1]])[order]
    off = jnp.cumsum(steps)[:-1]
    widths = jnp.diff(values[order])
    return jnp.sum(jnp.abs(off) * widths) if p == 1 else jnp.sum(off * off * widths)


def wasserstein_distance(u_values: ArrayLike, v_values: ArrayLike,
                         u_weights: ArrayLike | None = None, v_weights: ArrayLike | None = None
                         ) -> Array:
    """How far the mass of one sample moves to that of another: Kantorovich's distance.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.wasserstein_distance([0.0, 1.0], [1.0, 2.0]))
    1.0
    """
    return _distance("wasserstein_distance", 1, u_values, v_values, u_weights, v_weights)


def energy_distance(u_values: ArrayLike, v_values: ArrayLike, u_weights: ArrayLike | None = None,
                    v_weights: ArrayLike | None = None) -> Array:
    """The root of twice the integral of the squared difference of distribution functions.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.energy_distance([0.0], [2.0])), 4)
    2.0
    """
    total = _distance("energy_distance", 2, u_values, v_values, u_weights, v_weights)
    return jnp.where(total > 0, jnp.sqrt(2 * jnp.where(total > 0, total, 1)), 0)


def differential_entropy(values: ArrayLike, *, window_length: int | None = None,
                         base: float | None = None, axis: int = 0) -> Array:
    """The entropy of the density of a sample, by the distances of its order: Vasicek (1976).

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 1.0, 1000)
    >>> abs(round(float(ft.scipy.stats.differential_entropy(x)), 1))
    0.0
    """
    x, axis = sample("differential_entropy", values, axis)
    lines = jnp.moveaxis(x, axis, -1)
    n = lines.shape[-1]
    m = math.floor(math.sqrt(n) + 0.5) if window_length is None else int(window_length)
    if not 2 <= 2 * m < n:
        raise ArgumentError(f"scipy.stats.differential_entropy: window_length is {m}, the sample "
                            f"has {n} elements.", where=user_source(), why="twice the window is "
                            "less than the sample.")
    # of many elements Vasicek's estimate, of fewer those of Ebrahimi and of Van Es
    ordered = jnp.sort(lines, -1)
    if n <= 10:
        k = np.arange(m, n + 1)
        apart = ordered[..., m:] - ordered[..., :-m]
        found = jnp.sum(jnp.log((n + 1) / m * apart), -1) / (n - m) + float(
            np.sum(1 / k) + math.log(m) - math.log(n + 1))
    elif n <= 1000:
        i = np.arange(1, n + 1)
        c = np.where(i <= m, 1 + (i - 1) / m, np.where(i >= n - m + 1, 1 + (n - i) / m, 2.0))
        found = jnp.mean(jnp.log(n * _gaps(ordered, m) / jnp.asarray(c * m).astype(x.dtype)), -1)
    else:
        found = jnp.mean(jnp.log(n / (2 * m) * _gaps(ordered, m)), -1)
    return found if base is None else found / math.log(base)


def _gaps(ordered: Array, m: int) -> Array:
    """Between the elements m places before and after each, which end at the ends."""
    n = ordered.shape[-1]
    places = np.arange(n)
    return ordered[..., np.minimum(places + m, n - 1)] - ordered[..., np.maximum(places - m, 0)]


def kstat(data: ArrayLike, n: int = 2, *, axis: int | None = None) -> Array:
    """The unbiased estimate of the cumulant of order n, from 1 to 4: Fisher's k-statistic.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.kstat([1.0, 2.0, 3.0], 2))
    1.0
    """
    one_of("stats.kstat", "n", n, (1, 2, 3, 4))
    x, axis = sample("kstat", data, axis)
    size = float(x.shape[axis])
    mean = jnp.mean(x, axis, keepdims=True)
    if n == 1:
        return jnp.squeeze(mean, axis)
    sums = [jnp.sum((x - mean) ** k, axis) for k in (2, 3, 4)]
    if n == 2:
        return sums[0] / (size - 1)
    if n == 3:
        return size * sums[1] / ((size - 1) * (size - 2))
    return size * ((size + 1) * sums[2] - 3 * (size - 1) / size * sums[0] ** 2) / (
        (size - 1) * (size - 2) * (size - 3))


def kstatvar(data: ArrayLike, n: int = 2, *, axis: int | None = None) -> Array:
    """The unbiased estimate of the variance of `kstat` of order 1 or 2.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.kstatvar([1.0, 2.0, 3.0, 5.0], 1)), 4)
    0.7292
    """
    one_of("stats.kstatvar", "n", n, (1, 2))
    x, where = sample("kstatvar", data, axis)
    size = x.shape[where]
    k2 = kstat(x, 2, axis=where)
    if n == 1:
        return k2 / size
    return (2 * size * k2 * k2 + (size - 1) * kstat(x, 4, axis=where)) / (size * (size + 1))


# Bins ----------------------------------------------------------------------------------------


class BinnedStatistic(NamedTuple):
    """A statistic of each bin, the edges, and the bin of each element from 1 on."""

    statistic: Array
    bin_edges: Array
    binnumber: Array


def binned_statistic(x: ArrayLike, values: ArrayLike, statistic: str = "mean",
                     bins: int | Sequence[float] | Array = 10,
                     range: tuple[float, float] | None = None) -> BinnedStatistic:
    """A statistic of the values of each bin of x.

    `statistic` is "mean", "std", "sum", "count", "min", "max" or "median"; bins without values have
    NaN, sums and counts 0. `bins` are their number in `range`, or their edges.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.binned_statistic([0.0, 0.1, 0.9], [1.0, 2.0, 4.0], "sum", bins=2)
    >>> found.statistic.tolist(), found.binnumber.tolist()
    ([3.0, 4.0], [1, 1, 2])
    """
    one_of("stats.binned_statistic", "statistic", statistic, (
        "mean", "std", "sum", "count", "min", "max", "median"))
    at, v = inexact(x, values)
    if at.ndim != 1 or v.shape[-1:] != at.shape:
        raise ShapeError(f"scipy.stats.binned_statistic: x has shape {at.shape}, values {v.shape}.",
                         where=user_source(), why="there is a value for each element of x.")
    if isinstance(bins, int):
        count = known_size("stats.binned_statistic", "bins", bins)
        low, high = (jnp.min(at), jnp.max(at)) if range is None else range
        same = low == high
        edges = jnp.linspace(jnp.where(same, low - 0.5, low), jnp.where(same, high + 0.5, high),
                             count + 1, dtype=at.dtype)
    else:
        edges = jnp.asarray(bins).astype(at.dtype)
        count = edges.shape[0] - 1
    number = jnp.searchsorted(edges, at, side="right")
    number = jnp.where(at == edges[-1], count, number)

    def of(line: Array) -> Array:
        sums = jnp.zeros(count + 2, line.dtype)
        sizes = sums.at[number].add(1)[1:-1]
        none = sizes == 0
        safe = jnp.where(none, 1, sizes)
        if statistic == "count":
            return sizes
        if statistic in ("min", "max"):
            worst = jnp.full(count + 2, jnp.inf if statistic == "min" else -jnp.inf, line.dtype)
            best = worst.at[number]
            found = (best.min(line) if statistic == "min" else best.max(line))[1:-1]
        elif statistic == "median":
            order = jnp.lexsort((line, number))
            ordered = line[order]
            whole = jnp.zeros(count + 2, jnp.int32).at[number].add(1)
            first = (jnp.cumsum(whole) - whole)[1:-1]
            last = line.shape[0] - 1
            a, b = (ordered[jnp.clip(first + (whole[1:-1] - k) // 2, 0, last)] for k in (1, 0))
            found = (a + b) / 2
        else:
            total = sums.at[number].add(line)
            if statistic == "sum":
                return total[1:-1]
            found = total[1:-1] / safe
            if statistic == "std":
                means = jnp.pad(found, 1)
                square = sums.at[number].add((line - means[number]) ** 2)[1:-1] / safe
                found = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
        return jnp.where(none, jnp.nan, found)

    out = of(v) if v.ndim == 1 else vmap(of)(v.reshape(-1, v.shape[-1])).reshape(
        *v.shape[:-1], count)
    return BinnedStatistic(out, edges, number)


class CumfreqResult(NamedTuple):
    """Frequencies of bins, their lower end and width."""

    frequency: Array
    lowerlimit: Array
    binsize: Array


def relfreq(a: ArrayLike, numbins: int = 10,
            defaultreallimits: tuple[float, float] | None = None,
            weights: ArrayLike | None = None) -> CumfreqResult:
    """The share of elements in each of `numbins` bins, which go half of one beyond the extremes.

    >>> import functrans as ft
    >>> ft.scipy.stats.relfreq([1.0, 2.0, 2.0, 3.0], 3).frequency.tolist()
    [0.25, 0.5, 0.25]
    """
    x, _ = sample("relfreq", a, None)
    count = known_size("stats.relfreq", "numbins", numbins)
    if defaultreallimits is None:
        low, high = jnp.min(x), jnp.max(x)
        half = (high - low) / (2 * (count - 1)) if count > 1 else jnp.zeros_like(low)
        low, high = low - half, high + half
    else:
        low, high = (jnp.asarray(v).astype(x.dtype) for v in defaultreallimits)
    width = (high - low) / count
    counted = binned_statistic(x, x, "count", low + width * jnp.arange(count + 1)).statistic \
        if weights is None else binned_statistic(
            x, jnp.ravel(jnp.asarray(weights)), "sum", low + width * jnp.arange(
                count + 1)).statistic
    return CumfreqResult(counted / x.shape[0], low, width)


def cumfreq(a: ArrayLike, numbins: int = 10,
            defaultreallimits: tuple[float, float] | None = None,
            weights: ArrayLike | None = None) -> CumfreqResult:
    """The number of elements in each bin and those before; see `relfreq`.

    >>> import functrans as ft
    >>> ft.scipy.stats.cumfreq([1.0, 2.0, 2.0, 3.0], 3).frequency.tolist()
    [1.0, 3.0, 4.0]
    """
    found = relfreq(a, numbins, defaultreallimits, weights)
    return CumfreqResult(jnp.cumsum(found.frequency * jnp.size(a)), found.lowerlimit, found.binsize)


publish(globals(), __all__)
