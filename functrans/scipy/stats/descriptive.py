"""Summaries of samples: robust ones, those of directions and of bins, distances between samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.missing import check_policy, count, present, refuse_missing, weighed
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import kurtosis, sample, skew
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["circmean", "circstd", "circvar", "describe", "differential_entropy", "energy_distance",
           "gstd", "gzscore", "kstat", "kstatvar", "median_abs_deviation", "percentileofscore",
           "pmean", "scoreatpercentile", "tmax", "tmean", "tmin", "trim_mean", "tsem", "tstd",
           "tvar", "variation", "wasserstein_distance", "zmap"]


class DescribeResult(NamedTuple):
    """Size, extremes and moments of a sample."""

    nobs: int
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


@over_axis("a", masks=True)
def describe(a: ArrayLike, axis: int | None = 0, ddof: int = 1, bias: bool = True,
             nan_policy: str = "propagate") -> DescribeResult:
    """The size of a sample, its extremes, mean, variance, skewness and kurtosis.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.describe(ft.numpy.array([1.0, 2.0, 3.0]))
    >>> found.nobs, float(found.mean), float(found.variance)
    (3, 2.0, 1.0)
    """
    given, axis = sample("describe", a, axis)
    x, mask = present("describe", given, nan_policy)
    ends = [of(x, axis, where=mask, initial=far) for of, far in (
        (jnp.min, math.inf), (jnp.max, -math.inf))] if mask is not None else [
        jnp.min(x, axis), jnp.max(x, axis)]
    size: Any = x.shape[axis] if mask is None else jnp.sum(mask, axis)
    return DescribeResult(size, (ends[0], ends[1]), jnp.mean(x, axis, where=mask),
                          jnp.var(x, axis, ddof=ddof, where=mask),
                          skew(given, axis, bias, nan_policy),
                          kurtosis(given, axis, bias=bias, nan_policy=nan_policy))


@over_axis("a", masks=True)
def variation(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", ddof: int = 0, *,
              keepdims: bool = False) -> Array:
    """The standard deviation over the mean.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.variation(ft.numpy.array([1.0, 3.0])))
    0.5
    """
    x, axis = sample("variation", a, axis)
    x, mask = present("variation", x, nan_policy)
    return jnp.std(x, axis, ddof=ddof, where=mask) / jnp.mean(x, axis, where=mask)


@over_axis("a", masks=True)
def gstd(a: ArrayLike, axis: int | None = 0, ddof: int = 1, *, keepdims: bool = False,
         nan_policy: str = "propagate") -> Array:
    """The geometric standard deviation: that of logarithms, as a factor.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gstd(ft.numpy.array([1.0, 2.0, 4.0]))), 4)
    2.0
    """
    x, axis = sample("gstd", a, axis)
    there = ~jnp.isnan(x) if nan_policy == "omit" else None
    x = x if there is None else jnp.where(there, x, 1)
    return jnp.exp(jnp.std(jnp.log(x), axis, ddof=ddof, where=there))


def zmap(scores: ArrayLike, compare: ArrayLike, axis: int | None = 0, ddof: int = 0,
         nan_policy: str = "propagate") -> Array:
    """Scores less the mean of others, over their standard deviation.

    >>> import functrans as ft
    >>> ft.scipy.stats.zmap(ft.numpy.array([3.0]), ft.numpy.array([1.0, 3.0])).tolist()
    [1.0]
    """
    x, y = inexact(scores, compare)
    y, mask = present("zmap", y, nan_policy)
    return (x - jnp.mean(y, axis, keepdims=True, where=mask)) / jnp.std(
        y, axis, ddof=ddof, keepdims=True, where=mask)


def gzscore(a: ArrayLike, *, axis: int | None = 0, ddof: int = 0,
            nan_policy: str = "propagate") -> Array:
    """The z-scores of logarithms.

    >>> import functrans as ft
    >>> ft.scipy.stats.gzscore(ft.numpy.array([1.0, 4.0])).tolist()
    [-1.0, 1.0]
    """
    (x,) = inexact(a)
    return zmap(jnp.log(x), jnp.log(x), axis, ddof, nan_policy)


@over_axis("a", "weights", masks=True)
def pmean(a: ArrayLike, p: float, *, axis: int | None = 0, dtype: DTypeLike | None = None,
          weights: ArrayLike | None = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Array:
    """The mean of powers p, to 1 / p; the geometric mean for p = 0; in `dtype` if one is given.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.pmean(ft.numpy.array([1.0, 7.0]), 2)), 4)
    5.0
    """
    x, axis = sample("pmean", a if dtype is None else jnp.asarray(a).astype(dtype), axis)
    x, weights = weighed(x, weights, nan_policy)
    if p == 0:
        mean: Any = jnp.average(jnp.log(x), axis, weights)
        return jnp.exp(mean)
    powers: Any = jnp.average(x**p, axis, weights)
    return jnp.power(powers, 1 / p)


# Trimmed -------------------------------------------------------------------------------------

Limits = tuple[float | None, float | None] | None


def _inside(x: Array, limits: Limits, inclusive: tuple[bool, bool], nan_policy: str = "propagate"
            ) -> Array:
    low, high = (None, None) if limits is None else limits
    keep = jnp.ones(x.shape, bool)
    if low is not None:
        keep = keep & ((x >= low) if inclusive[0] else (x > low))
    if high is not None:
        keep = keep & ((x <= high) if inclusive[1] else (x < high))
    return keep & ~jnp.isnan(x) if nan_policy == "omit" else keep


@over_axis("a", masks=True)
def tmean(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
          axis: int | None = None, *, nan_policy: str = "propagate",
          keepdims: bool = False) -> Array:
    """The mean of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmean(ft.numpy.arange(6.0), (1, 3)))
    2.0
    """
    x, axis = sample("tmean", a, axis)
    return jnp.mean(x, axis, where=_inside(x, limits, inclusive, nan_policy))


@over_axis("a", masks=True)
def tvar(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1, *, nan_policy: str = "propagate",
         keepdims: bool = False) -> Array:
    """The variance of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tvar(ft.numpy.arange(6.0), (1, 3)))
    1.0
    """
    x, axis = sample("tvar", a, axis)
    return jnp.var(x, axis, ddof=ddof, where=_inside(x, limits, inclusive, nan_policy))


@over_axis("a", masks=True)
def tstd(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1, *, nan_policy: str = "propagate",
         keepdims: bool = False) -> Array:
    """The standard deviation of the elements within limits.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tstd(ft.numpy.arange(6.0), (1, 3)))
    1.0
    """
    return jnp.sqrt(tvar(a, limits, inclusive, axis, ddof, nan_policy=nan_policy))


@over_axis("a", masks=True)
def tsem(a: ArrayLike, limits: Limits = None, inclusive: tuple[bool, bool] = (True, True),
         axis: int | None = 0, ddof: int = 1, *, nan_policy: str = "propagate",
         keepdims: bool = False) -> Array:
    """The standard error of the mean of the elements within limits.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.tsem(ft.numpy.arange(6.0), (1, 4))), 4)
    0.6455
    """
    x, where = sample("tsem", a, axis)
    left = count(x, where, _inside(x, limits, inclusive, nan_policy))
    return tstd(a, limits, inclusive, axis, ddof, nan_policy=nan_policy) / jnp.sqrt(left)


@over_axis("a", masks=True)
def tmin(a: ArrayLike, lowerlimit: float | None = None, axis: int | None = 0,
         inclusive: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """The least of the elements from a limit on; NaN where there is none.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmin(ft.numpy.arange(6.0), 1.5))
    2.0
    """
    x, axis = sample("tmin", a, axis)
    keep = _inside(x, (lowerlimit, None), (inclusive, True), nan_policy)
    found = jnp.min(x, axis, where=keep, initial=jnp.inf)
    return jnp.where(jnp.any(keep, axis), found, jnp.nan)


@over_axis("a", masks=True)
def tmax(a: ArrayLike, upperlimit: float | None = None, axis: int | None = 0,
         inclusive: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """The largest of the elements up to a limit; NaN where there is none.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.tmax(ft.numpy.arange(6.0), 3.5))
    3.0
    """
    x, axis = sample("tmax", a, axis)
    keep = _inside(x, (None, upperlimit), (True, inclusive), nan_policy)
    found = jnp.max(x, axis, where=keep, initial=-jnp.inf)
    return jnp.where(jnp.any(keep, axis), found, jnp.nan)


@over_axis("a")
def trim_mean(a: ArrayLike, proportiontocut: float, axis: int | None = 0, *,
              nan_policy: str = "propagate", keepdims: bool = False) -> Array:
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


@over_axis("x")
def median_abs_deviation(x: ArrayLike, axis: int | None = 0,
                         center: Callable[..., Any] | None = None, scale: float | str = 1.0,
                         nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
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


def percentileofscore(a: ArrayLike, score: ArrayLike, kind: str = "rank",
                      nan_policy: str = "propagate") -> Array:
    """The percentage of elements below scores: of equal ones half ("rank"), all, none, or "mean".

    `kind` is "rank", "weak", "strict" or "mean".

    >>> import functrans as ft
    >>> float(ft.scipy.stats.percentileofscore([1.0, 2.0, 3.0, 4.0], 3.0))
    75.0
    """
    one_of("stats.percentileofscore", "kind", kind, ("rank", "weak", "strict", "mean"))
    x, at = inexact(a, score)
    x = jnp.ravel(x)
    check_policy("percentileofscore", nan_policy)
    if nan_policy == "raise":
        refuse_missing("percentileofscore", x)
        refuse_missing("percentileofscore", at)
    lost = jnp.isnan(at)
    if nan_policy == "omit":
        n: Any = count(x, 0, ~jnp.isnan(x))
    else:
        n, lost = x.shape[0], lost | jnp.any(jnp.isnan(x))
    below, up_to = (jnp.sum(v, -1).astype(x.dtype) for v in (x < at[..., None], x <= at[..., None]))
    if kind == "rank":
        part = (below + up_to + (below < up_to)) / 2
    else:
        part = up_to if kind == "weak" else below if kind == "strict" else (below + up_to) / 2
    return jnp.where(lost, jnp.nan, part * (100 / n))


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


def _mean_vector(name: str, samples: ArrayLike, high: float, low: float, axis: int | None,
                 nan_policy: str) -> tuple[Array, Array]:
    x, axis = sample(name, samples, axis)
    x, mask = present(name, x, nan_policy)
    angles = (x - low) * (2 * math.pi / (high - low))
    return jnp.mean(jnp.sin(angles), axis, where=mask), jnp.mean(
        jnp.cos(angles), axis, where=mask)


@over_axis("samples", masks=True)
def circmean(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None,
             nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """The mean of angles in a range that repeats.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circmean([10.0, 350.0, 30.0], high=360)), 3)
    10.0
    """
    s, c = _mean_vector("circmean", samples, high, low, axis, nan_policy)
    turn = high - low
    return jnp.mod(jnp.arctan2(s, c) * (turn / (2 * math.pi)), turn) + low


@over_axis("samples", masks=True)
def circvar(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None,
            nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """1 less the length of the mean of unit vectors.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circvar([0.0, 1.0])), 4)
    0.1224
    """
    s, c = _mean_vector("circvar", samples, high, low, axis, nan_policy)
    return 1 - jnp.minimum(1, jnp.hypot(s, c))


@over_axis("samples", masks=True)
def circstd(samples: ArrayLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None,
            nan_policy: str = "propagate", *, normalize: bool = False,
            keepdims: bool = False) -> Array:
    """The root of -2 log of the length of the mean of unit vectors, in units of the range.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.circstd([0.0, 1.0])), 4)
    0.511
    """
    s, c = _mean_vector("circstd", samples, high, low, axis, nan_policy)
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


@over_axis("values", least=3)
def differential_entropy(values: ArrayLike, *, window_length: int | None = None,
                         base: float | None = None, axis: int = 0, method: str = "auto",
                         nan_policy: str = "propagate", keepdims: bool = False) -> Array:
    """The entropy of the density of a sample, by the distances of its order: Vasicek (1976).

    `method` is "vasicek", "van es", "ebrahimi", "correa", or "auto": that of Van Es up to 10
    elements, of Ebrahimi up to 1,000, of Vasicek from there on.

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
    methods = ("auto", "vasicek", "van es", "ebrahimi", "correa")
    one_of("stats.differential_entropy", "method", method, methods)
    if method == "auto":
        method = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
    ordered = jnp.sort(lines, -1)
    if method == "correa":
        found = _correa(ordered, m)
    elif method == "van es":
        k = np.arange(m, n + 1)
        apart = ordered[..., m:] - ordered[..., :-m]
        found = jnp.sum(jnp.log((n + 1) / m * apart), -1) / (n - m) + float(
            np.sum(1 / k) + math.log(m) - math.log(n + 1))
    elif method == "ebrahimi":
        i = np.arange(1, n + 1)
        c = np.where(i <= m, 1 + (i - 1) / m, np.where(i >= n - m + 1, 1 + (n - i) / m, 2.0))
        found = jnp.mean(jnp.log(n * _gaps(ordered, m) / jnp.asarray(c * m).astype(x.dtype)), -1)
    else:
        found = jnp.mean(jnp.log(n / (2 * m) * _gaps(ordered, m)), -1)
    return found if base is None else found / math.log(base)


def _correa(ordered: Array, m: int) -> Array:
    n = ordered.shape[-1]
    offsets = np.arange(-m, m + 1)
    near = ordered[..., np.clip(np.arange(n) + offsets[:, None], 0, n - 1)]
    off = near - jnp.mean(near, -2, keepdims=True)
    places = jnp.asarray(offsets[:, None]).astype(ordered.dtype)
    return -jnp.mean(jnp.log(jnp.sum(off * places, -2) / (n * jnp.sum(off * off, -2))), -1)


def _gaps(ordered: Array, m: int) -> Array:
    """Between the elements m places before and after each, which end at the ends."""
    n = ordered.shape[-1]
    places = np.arange(n)
    return ordered[..., np.minimum(places + m, n - 1)] - ordered[..., np.maximum(places - m, 0)]


@over_axis("data", masks=True)
def kstat(data: ArrayLike, n: int = 2, *, axis: int | None = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Array:
    """The unbiased estimate of the cumulant of order n, from 1 to 4: Fisher's k-statistic.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.kstat([1.0, 2.0, 3.0], 2))
    1.0
    """
    one_of("stats.kstat", "n", n, (1, 2, 3, 4))
    x, axis = sample("kstat", data, axis)
    x, mask = present("kstat", x, nan_policy)
    size: Any = float(x.shape[axis]) if mask is None else count(x, axis, mask)
    mean = jnp.mean(x, axis, keepdims=True, where=mask)
    if n == 1:
        return jnp.squeeze(mean, axis)
    sums = [jnp.sum((x - mean) ** k, axis, where=mask) for k in (2, 3, 4)]
    if n == 2:
        return jnp.asarray(sums[0] / (size - 1))
    if n == 3:
        return jnp.asarray(size * sums[1] / ((size - 1) * (size - 2)))
    return jnp.asarray(size * ((size + 1) * sums[2] - 3 * (size - 1) / size * sums[0] ** 2) / (
        (size - 1) * (size - 2) * (size - 3)))


@over_axis("data", masks=True)
def kstatvar(data: ArrayLike, n: int = 2, *, axis: int | None = None, nan_policy: str = "propagate",
             keepdims: bool = False) -> Array:
    """The unbiased estimate of the variance of `kstat` of order 1 or 2.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.kstatvar([1.0, 2.0, 3.0, 5.0], 1)), 4)
    0.7292
    """
    one_of("stats.kstatvar", "n", n, (1, 2))
    x, where = sample("kstatvar", data, axis)
    size: Any = count(x, where, ~jnp.isnan(x)) if nan_policy == "omit" else x.shape[where]
    k2 = kstat(x, 2, axis=where, nan_policy=nan_policy)
    if n == 1:
        return jnp.asarray(k2 / size)
    k4 = kstat(x, 4, axis=where, nan_policy=nan_policy)
    return jnp.asarray((2 * size * k2 * k2 + (size - 1) * k4) / (size * (size + 1)))


publish(globals(), __all__)
