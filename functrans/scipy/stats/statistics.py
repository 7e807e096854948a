"""Statistics of samples: moments, ranks and density estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.nn.functions import logsumexp
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.primitives.linalg import cholesky
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.stats.missing import check_policy, count, present, refuse_missing, weighed
from functrans.scipy.stats.samples import over_axis
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["entropy", "gaussian_kde", "gmean", "hmean", "iqr", "kurtosis", "mode", "moment",
           "rankdata", "sem", "skew", "zscore"]


def sample(name: str, a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """The sample in floating numbers, raveled for no axis, and the axis."""
    (x,) = inexact(a)
    if axis is None:
        return jnp.ravel(x), 0
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"scipy.stats.{name}: axis {axis} is not one of the {x.ndim} axes.",
                         where=user_source())
    return x, axis


def _cast(a: ArrayLike, dtype: DTypeLike | None) -> ArrayLike:
    return a if dtype is None else jnp.asarray(a).astype(dtype)


_NORMAL_IQR = 2 * NormalDist().inv_cdf(0.75)


@over_axis("a", masks=True)
def moment(a: ArrayLike, order: int = 1, axis: int | None = 0, nan_policy: str = "propagate", *,
           center: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """The moment of an order along an axis (None: of all elements), about the mean or `center`.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.moment(ft.numpy.array([1.0, 3.0]), 2))
    1.0
    """
    x, axis = sample("moment", a, axis)
    x, mask = present("moment", x, nan_policy)
    middle = jnp.mean(x, axis, keepdims=True, where=mask) if center is None else jnp.asarray(
        center, x.dtype)
    return jnp.mean((x - middle) ** order, axis, where=mask, keepdims=keepdims)


@over_axis("a", masks=True)
def skew(a: ArrayLike, axis: int | None = 0, bias: bool = True, nan_policy: str = "propagate", *,
         keepdims: bool = False) -> Array:
    """The skewness along an axis, the third moment over the variance to 3/2.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.skew(ft.numpy.array([1.0, 2.0, 3.0])))
    0.0
    """
    x, axis = sample("skew", a, axis)
    n = count(*_present("skew", x, axis, nan_policy))
    second, third = (moment(x, order, axis, nan_policy) for order in (2, 3))
    value = third / (second * lax.sqrt(second))
    if not bias:
        few = n <= 2
        m = jnp.where(few, 3, n)
        value = jnp.where(few, value, value * jnp.sqrt(m * (m - 1)) / (m - 2))
    return jnp.expand_dims(value, axis) if keepdims else value


@over_axis("a", masks=True)
def kurtosis(a: ArrayLike, axis: int | None = 0, fisher: bool = True, bias: bool = True,
             nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """The kurtosis along an axis; less 3, that of a normal distribution, with `fisher`.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.kurtosis(ft.numpy.array([1.0, -1.0]), fisher=False))
    1.0
    """
    x, axis = sample("kurtosis", a, axis)
    n = count(*_present("kurtosis", x, axis, nan_policy))
    second, fourth = (moment(x, order, axis, nan_policy) for order in (2, 4))
    value = fourth / (second * second)
    if not bias:
        few = n <= 3
        m = jnp.where(few, 4, n)
        value = jnp.where(few, value, 3 + ((m * m - 1) * value - 3 * (m - 1) ** 2) / (
            (m - 2) * (m - 3)))
    value = value - 3.0 if fisher else value
    return jnp.expand_dims(value, axis) if keepdims else value


def _present(name: str, x: Array, axis: int, nan_policy: str) -> tuple[Array, int, Array | None]:
    values, mask = present(name, x, nan_policy)
    return values, axis, mask


@over_axis("a", masks=True)
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean along an axis (None: of all elements).

    >>> import functrans as ft
    >>> float(ft.scipy.stats.sem(ft.numpy.array([1.0, 3.0])))
    1.0
    """
    x, axis = sample("sem", a, axis)
    x, mask = present("sem", x, nan_policy)
    error = jnp.std(x, axis, ddof=ddof, where=mask) / jnp.sqrt(count(x, axis, mask))
    return jnp.expand_dims(error, axis) if keepdims else error


def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate"
           ) -> Array:
    """Each element less the mean along an axis, over the standard deviation.

    >>> import functrans as ft
    >>> ft.scipy.stats.zscore(ft.numpy.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    (given,) = inexact(a)
    x, mask = present("zscore", given, nan_policy)
    return (given - jnp.mean(x, axis, keepdims=True, where=mask)) / jnp.std(
        x, axis, ddof=ddof, keepdims=True, where=mask)


@over_axis("x", masks=True)
def iqr(x: ArrayLike, axis: int | None = None, rng: tuple[float, float] = (25, 75),
        scale: float | str = 1.0, nan_policy: str = "propagate", interpolation: str = "linear",
        keepdims: bool = False) -> Array:
    """The distance between two percentiles, by default the quartiles, over `scale`.

    `scale` "normal" is that of a normal distribution of variance 1; `interpolation` is the `method`
    of `numpy.percentile`.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.iqr(ft.numpy.arange(5.0)))
    2.0
    """
    if isinstance(scale, str):
        one_of("stats.iqr", "scale", scale, ("normal",))
        scale = _NORMAL_IQR
    values, axis = sample("iqr", x, axis)
    of: Any = jnp.nanpercentile if nan_policy == "omit" else jnp.percentile
    low, high = (of(values, q, axis, method=interpolation) for q in sorted(rng))
    distance: Array = (high - low) / scale
    return distance


@over_axis("a", "weights", masks=True)
def gmean(a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None,
          weights: ArrayLike | None = None, *, nan_policy: str = "propagate",
          keepdims: bool = False) -> Array:
    """The geometric mean along an axis, in `dtype` if one is given.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.gmean(ft.numpy.array([1.0, 4.0]))), 4)
    2.0
    """
    x, axis = sample("gmean", _cast(a, dtype), axis)
    x, weights = weighed(x, weights, nan_policy)
    mean: Any = jnp.average(lax.log(x), axis, weights)
    return lax.exp(mean)


@over_axis("a", "weights", masks=True)
def hmean(a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, *,
          weights: ArrayLike | None = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Array:
    """The harmonic mean along an axis, in `dtype` if one is given.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.hmean(ft.numpy.array([1.0, 3.0]))), 4)
    1.5
    """
    x, axis = sample("hmean", _cast(a, dtype), axis)
    x, weights = weighed(x, weights, nan_policy)
    mean: Any = jnp.average(1.0 / x, axis, weights)
    return jnp.reciprocal(mean)


@over_axis("pk", "qk", masks=True)
def entropy(pk: ArrayLike, qk: ArrayLike | None = None, base: float | None = None, axis: int = 0, *,
            nan_policy: str = "propagate", keepdims: bool = False) -> Array:
    """The entropy of weights along an axis, or with qk their divergence from others.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.entropy(ft.numpy.ones(4), base=2)), 4)
    2.0
    """
    p, axis = sample("entropy", pk, axis)
    others = [] if qk is None else [sample("entropy", qk, axis)[0]]
    if nan_policy == "omit":  # 0 adds nothing
        lost = jnp.isnan(sum(others, p))
        p, *others = (jnp.where(lost, 0, v) for v in (p, *others))
    p = p / jnp.sum(p, axis, keepdims=True)
    if not others:
        each = special.entr(p)
    else:
        each = special.rel_entr(p, others[0] / jnp.sum(others[0], axis, keepdims=True))
    total = jnp.sum(each, axis)
    return total if base is None else total / math.log(base)


# Ranks ---------------------------------------------------------------------------------------

_METHODS = ("average", "min", "max", "dense", "ordinal")


def _ranks(x: Array, method: str) -> Array:
    """Ranks from 1 on along the last axis."""
    n = x.shape[-1]
    order = jnp.argsort(x, -1)
    place = jnp.argsort(order, -1)
    if method == "ordinal":
        return place + 1
    ordered = jnp.take_along_axis(x, order, -1)
    new = jnp.concatenate([jnp.ones_like(ordered[..., :1], dtype=bool),
                           ordered[..., 1:] != ordered[..., :-1]], -1)
    group = jnp.cumsum(new.astype(dtypes.default_int()), -1)
    if method == "dense":
        return jnp.take_along_axis(group, place, -1)
    index = jnp.broadcast_to(jnp.arange(1, n + 1), x.shape)
    first = lax.cummax(jnp.where(new, index, 0), axis=x.ndim - 1)
    ends = jnp.concatenate([new[..., 1:], jnp.ones_like(new[..., :1])], -1)
    last = lax.cummin(jnp.where(ends, index, n), axis=x.ndim - 1, reverse=True)
    first, last = (jnp.take_along_axis(v, place, -1) for v in (first, last))
    if method == "min":
        return first
    return last if method == "max" else 0.5 * (first + last)


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The rank of each element from 1 on, along an axis (None: of the raveled array).

    Equal elements have the average, "min" or "max" of their ranks, the next whole number after
    those of smaller ones ("dense"), or their order ("ordinal"). All ranks are NaN where a NaN is;
    with `nan_policy` "omit" that of the NaN alone.
    Raises ArgumentError for another method.

    >>> import functrans as ft
    >>> ft.scipy.stats.rankdata(ft.numpy.array([0, 2, 3, 2])).tolist()
    [1.0, 2.5, 4.0, 2.5]
    """
    check_policy("rankdata", nan_policy)
    if method not in _METHODS:
        raise ArgumentError(f"scipy.stats.rankdata: method={method!r} is not known.",
                            where=user_source(), fix=f"one of {', '.join(_METHODS)}")
    x = operand("scipy.stats.rankdata", a if axis is not None else jnp.ravel(a))
    if not x.size:
        return jnp.zeros(x.shape, dtypes.default_float())
    where = -1 if axis is None else axis
    moved = jnp.moveaxis(x, where, -1)
    ranks = _ranks(moved, method)
    if dtypes.kind(x.dtype) == "f":
        if nan_policy == "raise":
            refuse_missing("rankdata", moved)
        # NaN comes last, and changes no other rank
        lost = jnp.isnan(moved)
        if nan_policy != "omit":
            lost = jnp.any(lost, -1, keepdims=True)
        ranks = jnp.where(lost, math.nan, ranks)
    return jnp.moveaxis(ranks.astype(dtypes.default_float()), -1, where)


class ModeResult(NamedTuple):
    """The most frequent values and their counts."""

    mode: Array
    count: Array  # type: ignore[assignment]  # the name of SciPy, and of a method of tuples


@over_axis("a", whole=True, propagates=False)
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis (None: of all), the least of several, and its count.

    >>> import functrans as ft
    >>> result = ft.scipy.stats.mode(ft.numpy.array([3, 1, 3]))
    >>> int(result.mode), int(result.count)
    (3, 2)
    """
    x = operand("scipy.stats.mode", a)
    ndim = x.ndim
    if axis is None:
        x, axis = jnp.ravel(x), 0
    ordered = jnp.moveaxis(jnp.sort(x, axis), axis, -1)
    ranks = _ranks(ordered, "max") - _ranks(ordered, "min") + 1
    best = jnp.argmax(ranks, -1, keepdims=True)
    value = jnp.take_along_axis(ordered, best, -1)
    count = jnp.take_along_axis(ranks, best, -1)
    if keepdims and ordered.ndim != ndim:
        return ModeResult(*(jnp.reshape(v, (1,) * ndim) for v in (value, count)))
    if keepdims:
        return ModeResult(jnp.moveaxis(value, -1, axis), jnp.moveaxis(count, -1, axis))
    return ModeResult(value[..., 0], count[..., 0])


# Density estimates ---------------------------------------------------------------------------


class gaussian_kde:
    """A density estimate: the mean of normal densities around the points of a data set.

    `dataset` has shape (d, n), or (n,) for numbers; `bw_method` is "scott", "silverman", a factor,
    or a function of the estimate; `weights` has shape (n,).

    >>> import functrans as ft
    >>> kde = ft.scipy.stats.gaussian_kde(ft.numpy.array([-1.0, 0.0, 1.0]))
    >>> kde(ft.numpy.array([0.0])).shape
    (1,)
    >>> kde.pdf(0.0).round(3), kde.evaluate(0.0).round(3), kde.logpdf(0.0).round(3)
    (Array([0.318], dtype=float32), Array([0.318], dtype=float32), Array([-1.145], dtype=float32))
    >>> kde.integrate_box_1d(-10.0, 10.0).round(3)
    Array(1., dtype=float32)
    >>> kde.resample(ft.random.key(0), (5,)).shape
    (1, 5)
    """

    def __init__(self, dataset: ArrayLike, bw_method: Any = None,
                 weights: ArrayLike | None = None) -> None:
        (x,) = promote_dtypes_inexact("scipy.stats.gaussian_kde", dataset)
        self.dataset = jnp.atleast_2d(operand("scipy.stats.gaussian_kde", x))
        if self.dataset.shape[-1] < 2:
            raise ShapeError("gaussian_kde: the data set has fewer than 2 points.",
                             where=user_source())
        self.d, self.n = self.dataset.shape
        if weights is None:
            self.weights = jnp.full((self.n,), 1.0 / self.n, self.dataset.dtype)
        else:
            w = jnp.asarray(weights, self.dataset.dtype)
            if w.shape != (self.n,):
                raise ShapeError(f"gaussian_kde: weights of shape {w.shape} for {self.n} points.",
                                 where=user_source())
            self.weights = w / jnp.sum(w)
        self.neff = 1.0 / jnp.sum(self.weights**2)
        self.factor = self._factor(bw_method)
        mean = self.dataset @ self.weights
        off = self.dataset - mean[:, None]
        data = (off * self.weights) @ off.T / (1.0 - jnp.sum(self.weights**2))
        self.covariance = data * self.factor**2
        self._root = cholesky(self.covariance)

    def _factor(self, method: Any) -> Any:
        if method is None or method == "scott":
            return jnp.power(self.neff, -1.0 / (self.d + 4))
        if method == "silverman":
            return jnp.power(self.neff * (self.d + 2.0) / 4.0, -1.0 / (self.d + 4))
        if isinstance(method, str):
            raise ArgumentError(f"gaussian_kde: bw_method={method!r} is not known.",
                                where=user_source(), fix='"scott" or "silverman"')
        chosen: Callable[..., Any] = method
        return chosen(self) if callable(method) else method

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the estimate at points of shape (d, m), or (m,) for numbers."""
        (points,) = promote_dtypes_inexact("gaussian_kde.logpdf", x)
        points = jnp.atleast_2d(operand("gaussian_kde.logpdf", points)).astype(self.dataset.dtype)
        if points.shape[0] != self.d:
            if (points.shape[0], self.d) != (1, points.shape[1]):
                raise ShapeError(f"gaussian_kde.logpdf: points of shape {points.shape} in "
                                 f"{self.d} dimensions.", where=user_source())
            points = points.T
        white = solve_triangular(self._root, points, lower=True)
        data = solve_triangular(self._root, self.dataset, lower=True)
        distance = jnp.sum((white[:, :, None] - data[:, None, :]) ** 2, 0)
        log_root = jnp.sum(lax.log(jnp.diagonal(self._root))) + 0.5 * self.d * math.log(2 * math.pi)
        total: Array = logsumexp(-0.5 * distance, axis=1, b=self.weights)
        return total - log_root

    def pdf(self, x: ArrayLike) -> Array:
        """The estimate at points of shape (d, m), or (m,) for numbers."""
        return lax.exp(self.logpdf(x))

    evaluate = __call__ = pdf

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of numbers between two."""
        spread = self._root[0, 0]
        ends = [special.ndtr((jnp.asarray(v) - self.dataset[0]) / spread) for v in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]))

    def resample(self, key: Array, shape: Any = ()) -> Array:
        """Random points of shape (d, *shape) from a key."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        one, two = random.split(key)
        picks = random.categorical(one, lax.log(self.weights), shape=shape)
        noise = random.normal(two, (self.d, *shape), self.dataset.dtype)
        return self.dataset[:, picks] + jnp.tensordot(self._root, noise, 1)


publish(globals(), __all__)
