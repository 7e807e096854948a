"""Order statistics: quantiles and their test, expectiles, and moments of ordered elements."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_dataclass
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of, real
from functrans.scipy.stats.missing import check_policy, refuse_missing
from functrans.scipy.stats.results import ConfidenceInterval, check_side, interval, tail_of
from functrans.scipy.stats.samples import over_axis
from functrans.typing import Array, ArrayLike

__all__ = ["expectile", "lmoment", "quantile", "quantile_test"]

_STATIC: Final = MappingProxyType({"static": True})
_WEIGHTED = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "hazen",
             "interpolated_inverted_cdf", "linear", "median_unbiased", "normal_unbiased", "weibull")
_METHODS = (*_WEIGHTED, "harrell-davis", "round_nearest", "round_inward", "round_outward")


def quantile(x: ArrayLike, p: ArrayLike, *, method: str = "linear", axis: int | None = 0,
             nan_policy: str = "propagate", keepdims: bool | None = None,
             weights: ArrayLike | None = None) -> Array:
    """Quantiles of levels p along an axis; x and p broadcast in their other axes.

    `method` is one of the nine of Hyndman and Fan, with the names of `numpy.quantile`, which may
    have `weights`, "harrell-davis" (a mean of all elements), or "round_nearest", "round_inward" or
    "round_outward" (elements, as winsorizing takes them). The axis is left out where p has one
    level along it, unless `keepdims`. NaN for levels outside of [0, 1].
    Source: Hyndman and Fan, Sample Quantiles in Statistical Packages (1996); Harrell and Davis
    (1982).

    >>> import functrans as ft
    >>> x = ft.numpy.array([[10.0, 8.0, 7.0, 5.0, 4.0], [0.0, 1.0, 2.0, 3.0, 5.0]])
    >>> ft.scipy.stats.quantile(x, 0.5, axis=-1).tolist()
    [7.0, 2.0]
    """
    one_of("stats.quantile", "method", method, _METHODS)
    check_policy("quantile", nan_policy)
    given = [x, p] if weights is None else [x, p, weights]
    values, levels, *others = real("stats.quantile", *given)
    if others and method not in _WEIGHTED:
        raise ArgumentError(f"scipy.stats.quantile: method is {method!r}, and weights are given.",
                            where=user_source(), fix='method="linear"')
    ndim = max(values.ndim, levels.ndim)
    flat = axis is None
    if axis is None:
        values, levels = values.reshape(-1), levels.reshape(-1)
        others, at = [w.reshape(-1) for w in others], 0
    elif not -ndim <= axis < ndim:
        raise ShapeError(f"scipy.stats.quantile: axis {axis} is not one of the {ndim} axes.",
                         where=user_source())
    else:
        at = axis % ndim
    rank = 1 if flat else ndim

    def along(v: Array) -> Array:
        return jnp.moveaxis(v.reshape((1,) * (rank - v.ndim) + v.shape), at, -1)

    lines, level, *weight = (along(v) for v in (values, levels, *others))
    if nan_policy == "raise":
        refuse_missing("quantile", lines)
    lead = jnp.broadcast_shapes(lines.shape[:-1], level.shape[:-1])
    lines, level = (jnp.broadcast_to(v, (*lead, v.shape[-1])) for v in (lines, level))
    count = level.shape[-1]
    if keepdims is False and count != 1:
        raise ShapeError(f"scipy.stats.quantile: keepdims=False, and p has {count} levels along "
                         "the axis.", where=user_source(), why="it would be lost.")
    bad = ~((level >= 0) & (level <= 1))
    found = _quantiles(lines, jnp.where(bad, 0.5, level), method, nan_policy,
                       jnp.broadcast_to(weight[0], lines.shape) if weight else None)
    found = jnp.where(bad, math.nan, found)
    keep = count != 1 if keepdims is None else keepdims
    if flat and keepdims:
        return found.reshape((1,) * (ndim - 1) + found.shape)
    return jnp.moveaxis(found, -1, at) if keep else found[..., 0]


def _quantiles(lines: Array, p: Array, method: str, nan_policy: str, weights: Array | None
               ) -> Array:
    size = lines.shape[-1]
    if not size:
        return jnp.full(p.shape, math.nan, p.dtype)
    lost = jnp.isnan(lines)
    left = jnp.sum(~lost, -1, keepdims=True)
    none = left == 0 if nan_policy == "omit" else jnp.any(lost, -1, keepdims=True)
    if weights is not None:
        lines = jnp.where(weights == 0, jnp.where(lost, lines, math.inf), lines)
        order = jnp.argsort(lines, -1)
        y = jnp.take_along_axis(lines, order, -1)
        weights = jnp.take_along_axis(weights, order, -1)
        left = left - jnp.sum((weights == 0) & ~jnp.isnan(y), -1, keepdims=True)
    else:
        y = jnp.sort(lines, -1)
    n = jnp.maximum(left, 1).astype(p.dtype) if nan_policy == "omit" else jnp.where(
        none, size, jnp.maximum(left, 1)).astype(p.dtype)
    y = jnp.where(jnp.isnan(y), 0, y)
    if method == "harrell-davis":
        a, b = (v[..., None] for v in (p * (n + 1), (1 - p) * (n + 1)))
        i = jnp.minimum(jnp.arange(size + 1, dtype=p.dtype) / n[..., None], 1)
        found = jnp.sum(jnp.diff(special.betainc(a, b, i), axis=-1) * y[..., None, :], -1)
        # a beta variable of which one shape is 0 is at the end
        last = jnp.take_along_axis(y, (n - 1).astype(int), -1)
        found = jnp.where(p <= 0, y[..., :1], jnp.where(p >= 1, last, found))
    elif method.startswith("round"):
        ways: Any = {"round_outward": (jnp.floor, jnp.ceil), "round_inward": (
            jnp.ceil, jnp.floor), "round_nearest": (jnp.round, jnp.round)}[method]
        place = jnp.where(p < 0.5, ways[0](p * n), ways[1](n * p - 1))
        found = jnp.take_along_axis(y, jnp.clip(place, 0, n - 1).astype(int), -1)
    else:
        found = _between_two(y, p, n, method, weights)
    return jnp.where(none, math.nan, found)


def _between_two(y: Array, p: Array, n: Array, method: str, weights: Array | None) -> Array:
    """The nine methods: two neighbours, and how much of the second."""
    m: Any = {"hazen": 0.5, "weibull": p, "linear": 1 - p, "median_unbiased": p / 3 + 1 / 3,
              "normal_unbiased": p / 4 + 3 / 8, "closest_observation": -0.5}.get(method, 0.0)
    if weights is None:
        at = p * n + m
        after = jnp.floor(at)
        before = after - 1
    else:
        sums = jnp.cumsum(weights, -1)
        at = p * jnp.take_along_axis(sums, (n - 1).astype(int), -1) + m
        after, before = (jnp.sum(sums[..., None, :] <= v[..., None], -1).astype(p.dtype)
                         for v in (at, at - 1))
    part = at - jnp.floor(at)
    if method == "inverted_cdf":
        part = (part > 0).astype(p.dtype)
    elif method == "averaged_inverted_cdf":
        part = (1 + (part > 0)) / 2
    elif method == "closest_observation":
        part = 1 - ((part == 0) & (jnp.mod(before, 2) == 1)).astype(p.dtype)
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        part = jnp.where(at < 0, 0, part)
    part = jnp.where(before < 0, 0, part).astype(p.dtype)
    low, high = (jnp.take_along_axis(y, jnp.clip(v, 0, n - 1).astype(int), -1)
                 for v in (before, after))
    # the second may be infinite where nothing of it is taken
    return jnp.where(part == 0, low, (1 - part) * low + part * jnp.where(part == 0, low, high))


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class QuantileTestResult:
    """How many elements are up to a value (type 1) or below it (type 2), and the p-value."""

    statistic: Array
    statistic_type: Array
    pvalue: Array
    sample: Array = dataclasses.field(repr=False)
    level: Array = dataclasses.field(repr=False)
    alternative: str = dataclasses.field(default="two-sided", repr=False, metadata=_STATIC)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Elements between which the quantile is; NaN where there are too few."""
        tail = 1 - tail_of(confidence_level, self.alternative)
        ordered = jnp.sort(self.sample)
        n = ordered.shape[0]
        below = special.bdtr(jnp.arange(n + 1, dtype=ordered.dtype), n, self.level)
        first = jnp.sum(below < tail) - 1
        last = jnp.sum(1 - below > tail)
        low = jnp.where(first >= 0, ordered[jnp.clip(first, 0, n - 1)], math.nan)
        high = jnp.where(last < n, ordered[jnp.clip(last, 0, n - 1)], math.nan)
        return interval(low, high, self.alternative)


def quantile_test(x: ArrayLike, *, q: ArrayLike = 0, p: ArrayLike = 0.5,
                  alternative: str = "two-sided") -> QuantileTestResult:
    """Whether the quantile of level p of a vector's distribution is q.

    "greater" is a larger quantile, "less" a smaller one. The result has `confidence_interval()`.
    Source: Conover, Practical Nonparametric Statistics (1999), 3.2.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.quantile_test(ft.numpy.arange(1.0, 11.0), q=3.0, p=0.5)
    >>> float(found.statistic), round(float(found.pvalue), 4)
    (3.0, 0.3438)
    """
    check_side("quantile_test", alternative)
    values, at, level = inexact(x, q, p)
    if values.ndim != 1 or not values.size or at.ndim or level.ndim:
        raise ShapeError(f"scipy.stats.quantile_test: x, q and p have shapes {values.shape}, "
                         f"{at.shape} and {level.shape}.", where=user_source(),
                         why="x is a vector, q and p are numbers.")
    n = values.shape[0]
    up_to, below = (jnp.sum(v).astype(values.dtype) for v in (values <= at, values < at))
    greater = special.bdtr(up_to, n, level)
    # of no element the probability is that of all
    less = jnp.where(below > 0, special.bdtrc(jnp.maximum(below - 1, 0), n, level), 1)
    if alternative == "two-sided":
        second = less < greater
        p_value = jnp.minimum(1, 2 * jnp.minimum(less, greater))
    else:
        second = jnp.asarray(alternative == "less")
        p_value = less if alternative == "less" else greater
    bad = jnp.any(jnp.isnan(values)) | jnp.isnan(at) | ~((level > 0) & (level < 1))
    return QuantileTestResult(jnp.where(second, below, up_to), jnp.where(second, 2, 1),
                              jnp.where(bad, math.nan, p_value), values, level, alternative)


def expectile(a: ArrayLike, alpha: float = 0.5, *, weights: ArrayLike | None = None) -> Array:
    """The expectile of level alpha of all elements: the mean where those above it count alpha.

    What is below counts 1 - alpha. 0 is the least element, 0.5 the mean, 1 the largest. It has
    derivatives in the elements and the weights.
    Source: Newey and Powell, Asymmetric Least Squares Estimation and Testing (1987).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.expectile([1.0, 2.0, 3.0, 10.0], 0.8)), 4)
    6.5714
    """
    if not 0 <= alpha <= 1:
        raise ArgumentError(f"scipy.stats.expectile: alpha is {shown(alpha)}.",
                            where=user_source(), why="it is between 0 and 1.")
    x, *others = inexact(*([a] if weights is None else [a, weights]))
    w = jnp.broadcast_to(others[0], x.shape).reshape(-1) if others else jnp.ones_like(x).reshape(-1)
    x = x.reshape(-1)
    if not x.size:
        raise ShapeError("scipy.stats.expectile: the sample is empty.", where=user_source())
    if alpha in (0, 1):
        return jnp.min(x) if alpha == 0 else jnp.max(x)
    still, still_w = lax.stop_gradient(x), lax.stop_gradient(w)

    def sides(t: Array) -> Array:
        return jnp.where(still > t, alpha, 1 - alpha).astype(x.dtype)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        before, now, step = state
        return (before != now) & (step < 200)

    def improved(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, now, step = state
        c = sides(now) * still_w
        return now, jnp.sum(c * still) / jnp.sum(c), step + 1

    # which elements are above changes a few times, and then the mean of weights is the solution
    start = jnp.sum(still * still_w) / jnp.sum(still_w)
    _, found, _ = lax.while_loop(unfinished, improved, (
        jnp.full_like(start, math.inf), start, jnp.zeros((), jnp.int32)))
    c = sides(lax.stop_gradient(found)) * w
    return jnp.sum(c * x) / jnp.sum(c)


def lmoment(sample: ArrayLike, order: int | Sequence[int] | None = None, *, axis: int = 0,
            sorted: bool = False, standardize: bool = True, nan_policy: str = "propagate",
            keepdims: bool = False) -> Array:
    """L-moments of orders along an axis: means of differences of ordered elements.

    Orders are 1 to 4 by default, along the first axis of the result; with `standardize` those from
    3 on are over the second. `sorted` says that the elements are in order. NaN where there are
    fewer elements than the order.
    Source: Hosking, L-Moments (1990).

    >>> import functrans as ft
    >>> print(ft.scipy.stats.lmoment(ft.numpy.array([1.0, 2.0, 4.0, 8.0])).round(4))
    [3.75   1.9167 0.3913 0.1304]
    """
    orders = np.asarray((1, 2, 3, 4) if order is None else order)
    if orders.ndim > 1 or not orders.size or orders.dtype.kind != "i" or (orders < 1).any():
        raise ArgumentError(f"scipy.stats.lmoment: order is {shown(order)}.", where=user_source(),
                            why="it is an int from 1 on, or some.", fix="order=[1, 2, 3]")
    found = _lmoments(sample, tuple(orders.reshape(-1).tolist()), axis=axis, ordered=sorted,
                      standardize=standardize, nan_policy=nan_policy, keepdims=keepdims)
    return jnp.stack(found) if orders.ndim else found[0]


def _lmoment_named(fun: Any) -> Any:
    fun.__name__ = "lmoment"  # which messages name
    return fun


@over_axis("sample")
@_lmoment_named
def _lmoments(sample: ArrayLike, orders: tuple[int, ...], *, axis: int, ordered: bool,
              standardize: bool, nan_policy: str, keepdims: bool) -> tuple[Array, ...]:
    (x,) = inexact(sample)
    x = x if ordered else jnp.sort(x, -1)
    n = x.shape[-1]
    weights: list[Any] = []
    for r in range(max(orders)):
        ways = np.array([math.comb(j, r) for j in range(n)], float)
        weights.append(ways / (math.comb(n - 1, r) * n) if r < n else np.zeros(n))
    found = []
    for r in range(max(orders)):
        row = sum((-1) ** (r - k) * math.comb(r, k) * math.comb(r + k, k) * weights[k]
                  for k in range(r + 1))
        value = jnp.sum(x * jnp.asarray(row).astype(x.dtype), -1)
        found.append(value if r < n else jnp.full_like(value, math.nan))
    if standardize:
        found = [v / found[1] if r >= 2 else v for r, v in enumerate(found)]
    return tuple(found[r - 1] for r in orders)


publish(globals(), __all__)
