"""Student's tests of means."""

from __future__ import annotations

import dataclasses

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_values, refused
from functrans.scipy.stats.methods import Resampling
from functrans.scipy.stats.missing import count, present
from functrans.scipy.stats.resampling import resampled
from functrans.scipy.stats.results import TtestResult, check_side, t_pvalue
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import sample
from functrans.typing import Array, ArrayLike

__all__ = ["ttest_1samp", "ttest_ind", "ttest_ind_from_stats", "ttest_rel"]


def _tested(estimate: Array, off: Array, error: Array, df: Array, alternative: str) -> TtestResult:
    t = off / error
    full = jnp.broadcast_to(df, t.shape)
    return TtestResult(t, t_pvalue(t, full, alternative), full, estimate, error, alternative)


def _summary(name: str, x: Array, axis: int, nan_policy: str) -> tuple[Array, Array, Array]:
    """How many elements there are, their mean, and their standard deviation."""
    values, mask = present(name, x, nan_policy)
    return count(values, axis, mask), jnp.mean(values, axis, where=mask), \
        jnp.std(values, axis, ddof=1, where=mask)


@over_axis("a", masks=True)
def ttest_1samp(a: ArrayLike, popmean: ArrayLike, axis: int | None = 0,
                nan_policy: str = "propagate", alternative: str = "two-sided", *,
                keepdims: bool = False) -> TtestResult:
    """Whether the mean is `popmean`, by Student's t.

    Along an axis (None: of all elements). `nan_policy="omit"` leaves NaN out. The result unpacks
    to the statistic and the p-value, and has `df` and `confidence_interval()`.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.ttest_1samp(ft.numpy.array([1.0, 2.0, 3.0]), 1.0)
    >>> t, p = found
    >>> round(float(t), 4), round(float(p), 4), float(found.df)
    (1.7321, 0.2254, 2.0)
    >>> print(found.confidence_interval(0.9).low.round(3))
    0.314
    """
    check_side("ttest_1samp", alternative)
    x, axis = sample("ttest_1samp", a, axis)
    n, mean, spread = _summary("ttest_1samp", x, axis, nan_policy)
    other = inexact(x, popmean)[1]
    # of as many axes as the sample was given, with 1 along that of the test
    if other.ndim > mean.ndim and other.shape:
        other = other.reshape(mean.shape)
    return _tested(mean, mean - other, spread / jnp.sqrt(n), n - 1, alternative)


@over_axis("a", "b", paired=True, masks=True)
def ttest_rel(a: ArrayLike, b: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
              alternative: str = "two-sided", *, keepdims: bool = False) -> TtestResult:
    """Whether the mean of the differences of pairs is 0; see `ttest_1samp`.

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


@over_axis("a", "b", masks=True)
def ttest_ind(a: ArrayLike, b: ArrayLike, *, axis: int | None = 0, equal_var: bool = True,
              nan_policy: str = "propagate", alternative: str = "two-sided", trim: float = 0,
              method: Resampling = None, keepdims: bool = False) -> TtestResult:
    """Whether two samples have one mean: Student's test, or Welch's without `equal_var`.

    `method`, a `PermutationMethod` or a `MonteCarloMethod`, finds the p-value by resampling. With
    `trim` it is Yuen's, which leaves out this part of the elements at both ends of each
    sample (Yuen, Biometrika 61, 1974). See `ttest_1samp` for the result.

    >>> import functrans as ft
    >>> a, b = ft.numpy.array([1.0, 2.0, 3.0]), ft.numpy.array([3.0, 4.0, 6.0])
    >>> t, p = ft.scipy.stats.ttest_ind(a, b)
    >>> round(float(t), 4), round(float(p), 4)
    (-2.2136, 0.0913)
    """
    if method is not None:
        if trim:
            raise refused("stats.ttest_ind", "method= with trim=", "resamples are not trimmed.")
        given = [jnp.moveaxis(*sample("ttest_ind", x, axis), -1) for x in inexact(a, b)]
        if nan_policy == "omit":
            given = [_left("ttest_ind", x) for x in given]
        plain = ttest_ind(*given, axis=-1, equal_var=equal_var, alternative=alternative)
        return dataclasses.replace(plain, pvalue=resampled(
            "ttest_ind", method, given, lambda x, y, axis: ttest_ind(
                x, y, axis=axis, equal_var=equal_var).statistic, alternative))
    if not 0 <= trim < 0.5:
        raise ArgumentError(f"scipy.stats.ttest_ind: trim is {shown(trim)}.", where=user_source(),
                            why="it is the part left out at each end: 0 <= trim < 0.5.")
    if trim and nan_policy == "omit":
        raise ArgumentError('scipy.stats.ttest_ind: trim and nan_policy="omit" are given.',
                            where=user_source(), why="how many elements are trimmed would depend "
                            "on values.", fix="ttest_ind(a[~isnan(a)], b[~isnan(b)], trim=trim)")
    parts = []
    for x in inexact(a, b):
        values, where = sample("ttest_ind", x, axis)
        parts.append(_trimmed(values, where, trim, nan_policy) if trim else _summary(
            "ttest_ind", values, where, nan_policy))
    (n, mean, spread), (m, other, other_spread) = parts
    return ttest_ind_from_stats(mean, spread, n, other, other_spread, m, equal_var, alternative)


def _left(name: str, x: Array) -> Array:
    """A vector of known values without its NaN."""
    if x.ndim != 1:
        raise refused(f"stats.{name}", 'method= with nan_policy="omit" of samples of many axes',
                      "each line would be resampled by itself.")
    known = known_values(f"stats.{name}", "a sample", x, "which elements are NaN depends on its "
                         "values.", "call it outside of jit")
    return x[np.nonzero(~np.isnan(known))[0]]


def _trimmed(x: Array, axis: int, trim: float, nan_policy: str) -> tuple[Array, Array, Array]:
    """What `_summary` gives, of a trimmed sample, its variance that of the winsorized one."""
    values = jnp.moveaxis(present("ttest_ind", x, nan_policy)[0], axis, -1)
    n = values.shape[-1]
    cut = int(n * trim)
    ordered = jnp.sort(values, -1)
    lost = jnp.where(jnp.any(jnp.isnan(values), -1), jnp.nan, 0)
    inner = ordered[..., cut:n - cut]
    held = jnp.clip(ordered, inner[..., :1], inner[..., -1:])
    left = jnp.full((), n - 2 * cut, x.dtype)
    return left, jnp.mean(inner, -1) + lost, jnp.std(held, -1, ddof=2 * cut + 1) + lost


def ttest_ind_from_stats(mean1: ArrayLike, std1: ArrayLike, nobs1: ArrayLike, mean2: ArrayLike,
                         std2: ArrayLike, nobs2: ArrayLike, equal_var: bool = True,
                         alternative: str = "two-sided") -> TtestResult:
    """`ttest_ind` of means, standard deviations and sizes.

    >>> import functrans as ft
    >>> t, p = ft.scipy.stats.ttest_ind_from_stats(2.0, 1.0, 3, 4.0, 1.0, 3)
    >>> round(float(t), 4)
    -2.4495
    """
    check_side("ttest_ind", alternative)
    m1, s1, m2, s2 = inexact(mean1, std1, mean2, std2)
    n1, n2 = (jnp.asarray(n, m1.dtype) for n in (nobs1, nobs2))
    v1, v2 = s1 * s1 / n1, s2 * s2 / n2
    if equal_var:
        df = n1 + n2 - 2
        pooled = ((n1 - 1) * s1 * s1 + (n2 - 1) * s2 * s2) / df
        error = jnp.sqrt(pooled * (1 / n1 + 1 / n2))
    else:
        df = (v1 + v2) ** 2 / (v1 * v1 / (n1 - 1) + v2 * v2 / (n2 - 1))
        error = jnp.sqrt(v1 + v2)
    return _tested(m1 - m2, m1 - m2, error, df, alternative)


publish(globals(), __all__)
