"""Intervals and tests of any statistic, by resampling with a key of random numbers.

`statistic(*samples)` is of vectors, and is mapped over the other axes; one that takes `axis` gets
whole arrays (`vectorized=False` for vectors). `batch` is how many resamples are computed at a time,
all by default. Resamples depend on the key alone: the same key gives the same result.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.stats.methods import MonteCarloMethod, PermutationMethod, Rng, key_of
from functrans.scipy.stats.results import ConfidenceInterval, check_side, interval, tail_of
from functrans.scipy.stats.statistics import sample
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["bootstrap", "monte_carlo_test", "permutation_test", "power"]

Statistic = Callable[..., Any]
Samples = ArrayLike | Sequence[ArrayLike]


class BootstrapResult(NamedTuple):
    """An interval, the statistics of all resamples along the last axis, and their deviation."""

    confidence_interval: ConfidenceInterval
    bootstrap_distribution: Array
    standard_error: Array


class PermutationTestResult(NamedTuple):
    """The statistic, its p-value, and the statistics of all permutations along the first axis."""

    statistic: Array
    pvalue: Array
    null_distribution: Array


class MonteCarloTestResult(NamedTuple):
    """The statistic, its p-value, and the statistics of all draws along the first axis."""

    statistic: Array
    pvalue: Array
    null_distribution: Array


def _lines(name: str, data: Samples, axis: int) -> list[Array]:
    """The samples along their last axes, with common axes before it."""
    found = []
    for x in inexact(*(data if isinstance(data, (tuple, list)) else [data])):
        if not x.ndim or not x.size:
            raise ShapeError(f"scipy.stats.{name}: a sample has shape {x.shape}.",
                             where=user_source(), why="data is a sequence of samples.",
                             fix=f"{name}(key, (x,), statistic)")
        values, where = sample(name, x, axis)
        found.append(jnp.moveaxis(values, where, -1))
    lead = np.broadcast_shapes(*(v.shape[:-1] for v in found))
    return [jnp.broadcast_to(v, (*lead, v.shape[-1])) for v in found]


def _along_last(statistic: Statistic, vectorized: bool | None) -> Callable[..., Array]:
    """The statistic of samples along their last axes."""
    if vectorized is None:
        try:
            vectorized = "axis" in inspect.signature(statistic).parameters
        except (TypeError, ValueError):  # of a function in C that tells nothing
            vectorized = False
    if vectorized:
        return lambda *parts: jnp.asarray(statistic(*parts, axis=-1))

    def mapped(*parts: Array) -> Array:
        lead = parts[0].shape[:-1]
        rows = [p.reshape(-1, p.shape[-1]) for p in parts]
        found: Array = vmap(lambda *v: jnp.asarray(statistic(*v)))(*rows)
        return found.reshape(lead)

    return mapped


def _same_length(name: str, parts: Sequence[Array], why: str) -> int:
    sizes = {p.shape[-1] for p in parts}
    if len(sizes) > 1:
        raise ShapeError(f"scipy.stats.{name}: the samples have {sorted(sizes)} elements.",
                         where=user_source(), why=why)
    return int(sizes.pop())


def _each(one: Callable[[Any], Array], rows: Any, batch: int | None) -> Array:
    size = 0 if batch is None else known_size("stats", "batch", batch)
    return lax.map(one, rows, batch_size=size)


def bootstrap(key: Array, data: Samples, statistic: Statistic, *, n_resamples: int = 9999,
              batch: int | None = None, vectorized: bool | None = None, paired: bool = False,
              axis: int = 0, confidence_level: float = 0.95, alternative: str = "two-sided",
              method: str = "BCa", bootstrap_result: BootstrapResult | None = None
              ) -> BootstrapResult:
    """The confidence interval of a statistic, from samples drawn out of the samples by a key.

    `data` is a sequence of samples; `paired` ones are drawn together. `method` is "percentile",
    "basic" (the same, reflected) or "BCa" (corrected for bias and skewness, by leaving out each
    element). The statistics of a `bootstrap_result` are taken together with new ones. Raises
    ShapeError for samples of one element.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 and 14.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(20.0)
    >>> found = ft.scipy.stats.bootstrap(ft.random.key(0), (x,), ft.numpy.mean, n_resamples=500)
    >>> bool(found.confidence_interval.low < 9.5), bool(found.confidence_interval.high > 9.5)
    (True, True)
    """
    check_side("bootstrap", alternative)
    one_of("stats.bootstrap", "method", method, ("percentile", "basic", "BCa"))
    count = known_size("stats.bootstrap", "n_resamples", n_resamples, 0 if bootstrap_result else 1)
    parts = _lines("bootstrap", data, axis)
    if any(p.shape[-1] < 2 for p in parts):
        raise ShapeError("scipy.stats.bootstrap: a sample has one element.", where=user_source(),
                         why="all of its resamples are alike.")
    of = _along_last(statistic, vectorized)
    if paired:
        _same_length("bootstrap", parts, "they are paired.")
    sizes = [p.shape[-1] for p in parts]

    def one(key: Array) -> Array:
        if paired:
            index = random.randint(key, (sizes[0],), 0, sizes[0])
            return of(*(p[..., index] for p in parts))
        keys = random.split(key, len(parts))
        return of(*(p[..., random.randint(keys[i], (n,), 0, n)]
                    for i, (p, n) in enumerate(zip(parts, sizes))))

    found = [] if bootstrap_result is None else [bootstrap_result.bootstrap_distribution]
    if count:
        found.append(jnp.moveaxis(_each(one, random.split(key, count), batch), 0, -1))
    drawn = jnp.concatenate(found, -1)
    low_level = jnp.asarray(1 - tail_of(confidence_level, alternative), drawn.dtype)
    whole = of(*parts)
    if method == "BCa":
        low_level, high_level = _corrected(parts, of, paired, whole, drawn, low_level)
    else:
        low_level = jnp.broadcast_to(low_level, drawn.shape[:-1])
        high_level = 1 - low_level
    ordered = jnp.sort(drawn, -1)
    low, high = (_quantile(ordered, level) for level in (low_level, high_level))
    if method == "basic":
        low, high = 2 * whole - high, 2 * whole - low
    return BootstrapResult(interval(low, high, alternative), drawn, jnp.std(drawn, -1, ddof=1))


def _quantile(ordered: Array, level: Array) -> Array:
    """The linear quantile of each row at a level of its own; NaN where that is."""
    last = ordered.shape[-1] - 1
    place = jnp.where(jnp.isnan(level), 0, level) * last
    below = jnp.clip(jnp.floor(place), 0, max(last - 1, 0)).astype(int)
    left = jnp.take_along_axis(ordered, below[..., None], -1)[..., 0]
    right = jnp.take_along_axis(ordered, jnp.minimum(below + 1, last)[..., None], -1)[..., 0]
    value = left + (place - below) * (right - left)
    return jnp.where(jnp.isnan(level), math.nan, value)


def _corrected(parts: list[Array], of: Callable[..., Array], paired: bool, whole: Array,
               drawn: Array, level: Array) -> tuple[Array, Array]:
    """The levels of both ends, corrected for the bias and the change of the spread."""
    score = whole[..., None]
    hits = (jnp.sum(drawn < score, -1) + jnp.sum(drawn <= score, -1)).astype(drawn.dtype)
    bias = special.ndtri(hits / (2 * drawn.shape[-1]))
    top: Any = 0.0
    bottom: Any = 0.0
    for j in range(1 if paired else len(parts)):
        n = parts[j].shape[-1]
        without = np.array([[i for i in range(n) if i != left] for left in range(n)])

        def one(row: Array, j: int = j) -> Array:
            return of(*(p[..., row] if paired or i == j else p for i, p in enumerate(parts)))

        left_out = lax.map(one, jnp.asarray(without), batch_size=0)
        off = (n - 1) * (jnp.mean(left_out, 0) - left_out)
        top = top + jnp.sum(off**3, 0) / n**3
        bottom = bottom + jnp.sum(off**2, 0) / n**2
    skewed = top / (6 * bottom**1.5)
    z = special.ndtri(level)
    ends = [bias + v for v in (z, -z)]
    low, high = (special.ndtr(bias + v / (1 - skewed * v)) for v in ends)
    return low, high


def _pvalue(observed: Array, null: Array, alternative: str, exact: bool) -> Array:
    """The share of statistics as extreme; what differs by rounding alone is equal."""
    near = 100 * float(jnp.finfo(observed.dtype).eps) * jnp.abs(observed)
    extra = 0 if exact else 1
    count = null.shape[0] + extra
    less, greater = ((jnp.sum(hit, 0).astype(observed.dtype) + extra) / count for hit in (
        null <= observed + near, null >= observed - near))
    if alternative == "two-sided":
        return jnp.clip(2 * jnp.minimum(less, greater), 0, 1)
    return less if alternative == "less" else greater


def permutation_test(key: Array | None, data: Samples, statistic: Statistic, *,
                     permutation_type: str = "independent", vectorized: bool | None = None,
                     n_resamples: int = 9999, batch: int | None = None,
                     alternative: str = "two-sided", axis: int = 0) -> PermutationTestResult:
    """Whether a statistic is as large by chance, by permuting samples.

    `permutation_type` says what could be exchanged: elements between samples ("independent"), the
    elements of a tuple between samples ("samples"; signs, of one sample), or the order of each
    sample ("pairings"). Where there are `n_resamples` permutations or fewer, the test is exact,
    and the key, which may be None, is not used.
    Source: Fisher, The Design of Experiments (1935); Phipson and Smyth (2010) for the p-value.

    >>> import functrans as ft
    >>> def difference(x, y, axis):
    ...     return x.mean(axis) - y.mean(axis)
    >>> data = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    >>> round(float(ft.scipy.stats.permutation_test(None, data, difference).pvalue), 4)
    0.1
    """
    check_side("permutation_test", alternative)
    one_of("stats.permutation_test", "permutation_type", permutation_type,
           ("independent", "samples", "pairings"))
    most = known_size("stats.permutation_test", "n_resamples", n_resamples)
    parts = _lines("permutation_test", data, axis)
    of = _along_last(statistic, vectorized)
    alone = len(parts) == 1
    if permutation_type == "independent":
        if alone:
            raise ArgumentError("scipy.stats.permutation_test: there is one sample.",
                                where=user_source(), why="elements are exchanged between samples.",
                                fix='permutation_type="samples"')
        sizes = [p.shape[-1] for p in parts]
        ends = np.cumsum(sizes)[:-1].tolist()
        together = jnp.concatenate(parts, -1)
        count = math.factorial(sum(sizes)) // math.prod(math.factorial(n) for n in sizes)
        shape: tuple[int, ...] = (sum(sizes),)

        def rows() -> Iterator[Any]:
            return _partitions(tuple(range(sum(sizes))), sizes)

        def one(index: Array) -> Array:
            return of(*jnp.split(together[..., index], ends, -1))
    else:
        n = _same_length("permutation_test", parts, "elements of samples belong together.")
        if permutation_type == "samples":
            table = jnp.stack([*parts, -parts[0]] if alone else parts, -1)
            shape = (n, table.shape[-1])

            def one(index: Array) -> Array:
                mixed = jnp.take_along_axis(table, jnp.broadcast_to(index, table.shape), -1)
                return of(*(mixed[..., i] for i in range(len(parts))))
        else:
            shape = (len(parts), n)

            def one(index: Array) -> Array:
                return of(*(p[..., index[i]] for i, p in enumerate(parts)))

        count = math.factorial(shape[1]) ** shape[0]

        def rows() -> Iterator[Any]:
            # a product holds all permutations at once: it is made where they are few
            return itertools.product(itertools.permutations(range(shape[1])), repeat=shape[0])

    exact = most >= count
    if exact:
        order = jnp.asarray(np.array(list(rows())))
    elif key is None:
        raise ArgumentError("scipy.stats.permutation_test: the key is None.", where=user_source(),
                            why=f"there are more permutations than n_resamples={shown(most)}.",
                            fix="permutation_test(ft.random.key(0), data, statistic)")
    else:
        order = jnp.argsort(random.uniform(key, (most, *shape)), -1)
    null = _each(one, order, batch)
    observed = of(*parts)
    return PermutationTestResult(observed, _pvalue(observed, null, alternative, exact), null)


def _partitions(left: tuple[int, ...], sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """All ways to deal elements into groups, one group after the other."""
    if len(sizes) == 1:
        yield left
        return
    for chosen in itertools.combinations(left, sizes[0]):
        rest = tuple(i for i in left if i not in chosen)
        for others in _partitions(rest, sizes[1:]):
            yield chosen + others


def monte_carlo_test(key: Array, data: Samples, rvs: Callable[..., Any] | Sequence[
        Callable[..., Any]], statistic: Statistic, *, vectorized: bool | None = None,
        n_resamples: int = 9999, batch: int | None = None, alternative: str = "two-sided",
        axis: int = 0) -> MonteCarloTestResult:
    """Whether a statistic of a sample is as large by chance, by drawing samples.

    `rvs(key, shape=shape)` draws as the hypothesis says, as `random.normal` and `norm.rvs` do; one
    for each sample of `data`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(10.0)
    >>> found = ft.scipy.stats.monte_carlo_test(
    ...     ft.random.key(0), x, ft.random.normal, ft.numpy.mean, n_resamples=99)
    >>> round(float(found.pvalue), 4)
    0.02
    """
    check_side("monte_carlo_test", alternative)
    count = known_size("stats.monte_carlo_test", "n_resamples", n_resamples)
    draws = [rvs] if callable(rvs) else list(rvs)
    parts = _lines("monte_carlo_test", data, axis)
    if len(draws) != len(parts):
        raise ArgumentError(f"scipy.stats.monte_carlo_test: rvs has {len(draws)} functions for "
                            f"{len(parts)} samples.", where=user_source())
    of = _along_last(statistic, vectorized)
    observed = of(*parts)

    def one(key: Array) -> Array:
        keys = random.split(key, len(parts))
        return of(*(jnp.asarray(draw(k, shape=p.shape)).astype(p.dtype)
                    for draw, k, p in zip(draws, keys, parts)))

    null = _each(one, random.split(key, count), batch)
    return MonteCarloTestResult(observed, _pvalue(observed, null, alternative, False), null)


class PowerResult(NamedTuple):
    """The shares of draws that a test finds significant, and the p-values of all draws."""

    power: Array
    pvalues: Array


def power(test: Callable[..., Any], rvs: Callable[..., Any] | Sequence[Callable[..., Any]],
          n_observations: ArrayLike | Sequence[ArrayLike], *, significance: ArrayLike = 0.01,
          vectorized: bool | None = None, n_resamples: int = 10000, batch: int | None = None,
          kwargs: Mapping[str, ArrayLike] | None = None, rng: Rng = None) -> PowerResult:
    """How often a test finds an effect that is there, by draws of samples.

    `rvs(key, shape=shape)` draws as the alternative says, one for each sample; `n_observations` are
    the sizes of the samples, which are known, numbers or arrays that broadcast, as the values of
    `kwargs` do, which both `rvs` and `test` are given. `test` returns a p-value, or a result that
    has one, of vectors, or along `axis`, and of samples with a significance below `significance`
    (one or many) the share is the power. The key or int of the draws is `rng`.

    >>> import functrans as ft
    >>> from functrans.scipy import stats
    >>> shifted = lambda key, shape: ft.random.normal(key, shape) + 1.0
    >>> found = stats.power(lambda x, axis: stats.ttest_1samp(x, 0.0, axis=axis), shifted, 20,
    ...                     n_resamples=500, significance=0.05, rng=0)
    >>> bool(found.power > 0.95)
    True
    """
    count = known_size("stats.power", "n_resamples", n_resamples)
    draws = [rvs] if callable(rvs) else list(rvs)
    sizes = [np.asarray(v) for v in (n_observations if isinstance(n_observations, (tuple, list))
                                     and len(draws) > 1 else [n_observations])]
    if len(sizes) != len(draws) or any((v < 1).any() or (v != v.astype(int)).any() for v in sizes):
        raise ArgumentError(f"scipy.stats.power: n_observations is {shown(n_observations)}.",
                            where=user_source(), why=f"it has a size for each of {len(draws)} "
                            "samples.")
    options = dict(kwargs or {})
    together = np.broadcast_arrays(*sizes, *(np.asarray(v) for v in options.values()))
    shape = together[0].shape
    key = key_of("power", rng)
    found = []
    for case, each in enumerate(zip(*(v.reshape(-1) for v in together))):
        given = dict(zip(options, each[len(sizes):]))
        if vectorized is False:
            of = _along_last(lambda *p, given=given: _pvalue_of(test(*p, **given)), False)
        else:
            of = _along_last(lambda *p, axis=-1, given=given: _pvalue_of(
                test(*p, **given, axis=axis)), True)
        rows = []
        step = count if batch is None else known_size("stats.power", "batch", batch)
        for start in range(0, count, step):
            keys = random.split(random.fold_in(random.fold_in(key, case), start), len(draws))
            now = min(step, count - start)
            rows.append(of(*(jnp.asarray(draw(k, shape=(now, int(n)), **given))
                             for draw, k, n in zip(draws, keys, each))))
        found.append(jnp.concatenate(rows))
    pvalues = jnp.stack(found).reshape(*shape, count)
    level = jnp.asarray(significance).astype(pvalues.dtype)
    level = level.reshape(level.shape + (1,) * pvalues.ndim)
    return PowerResult(jnp.mean(pvalues < level, -1, dtype=pvalues.dtype), pvalues)


def _pvalue_of(found: Any) -> Any:
    return getattr(found, "pvalue", found)


# What tests do with their `method` -------------------------------------------------------------


def resampled(name: str, method: Any, parts: Sequence[Array], statistic: Statistic,
              alternative: str, *, permutation_type: str = "independent",
              draw: Callable[..., Any] = random.normal) -> Array:
    """The p-value of a statistic of samples along their last axes, by a `method` of a test."""
    if isinstance(method, MonteCarloMethod):
        rvs: Any = [draw] * len(parts) if method.rvs is None else method.rvs
        return monte_carlo_test(key_of(name, method.rng), list(parts), rvs, statistic,
                                vectorized=True, n_resamples=method.n_resamples,
                                batch=method.batch, alternative=alternative, axis=-1).pvalue
    key, settings = resampling_of(name, method)
    given: Any = parts
    if permutation_type == "pairings_of_first":  # others stay as they are: one order is enough
        first, *others = parts
        given, permutation_type = (first,), "pairings"

        def of(x: Array, axis: int) -> Any:
            return statistic(x, *others, axis=axis)
    else:
        of = statistic
    return permutation_test(key, given, of, permutation_type=permutation_type, vectorized=True,
                            alternative=alternative, axis=-1, **settings).pvalue


def resampling_of(name: str, method: Any) -> tuple[Array, dict[str, Any]]:
    """The key and the settings of a `PermutationMethod`, the default for None."""
    if method is None:
        method = PermutationMethod()
    if not isinstance(method, PermutationMethod):
        raise ArgumentError(f"scipy.stats.{name}: method is {shown(method)}.", where=user_source(),
                            fix="method=stats.PermutationMethod()")
    rng = method.random_state if method.rng is None else method.rng
    return key_of(name, rng), {"n_resamples": method.n_resamples, "batch": method.batch}


publish(globals(), __all__)
