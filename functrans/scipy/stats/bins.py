"""Statistics of the values in bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, known_values, one_of
from functrans.scipy.stats.statistics import sample as sample_of
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["binned_statistic", "binned_statistic_2d", "binned_statistic_dd", "cumfreq", "relfreq"]

_STATISTICS = ("mean", "std", "sum", "count", "min", "max", "median")
Edges = int | Sequence[float] | Array
Bins = Edges | Sequence[Edges]
Ranges = Sequence[tuple[float, float]] | None


class BinnedStatistic(NamedTuple):
    """A statistic of each bin, the edges, and the bin of each element from 1 on."""

    statistic: Array
    bin_edges: Array
    binnumber: Array


class BinnedStatistic2D(NamedTuple):
    """A statistic of each bin, the edges of both axes, and the bin of each element."""

    statistic: Array
    x_edge: Array
    y_edge: Array
    binnumber: Array


class BinnedStatisticDD(NamedTuple):
    """A statistic of each bin, the edges of all axes, and the bin of each element."""

    statistic: Array
    bin_edges: list[Array]
    binnumber: Array


def _edges(name: str, at: Array, bins: Any, limits: Any) -> Array:
    if isinstance(bins, (int, np.integer)):
        count = known_size(f"stats.{name}", "bins", bins)
        low, high = (jnp.min(at), jnp.max(at)) if limits is None else limits
        same = low == high
        return jnp.linspace(jnp.where(same, low - 0.5, low), jnp.where(same, high + 0.5, high),
                            count + 1, dtype=at.dtype)
    edges = jnp.asarray(bins).astype(at.dtype)
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ShapeError(f"scipy.stats.{name}: bins have shape {edges.shape}.",
                         where=user_source(), why="they are a number, or two edges or more.")
    return edges


def _numbers(at: Array, edges: Array) -> Array:
    """The bin of each element, from 1 on; 0 and one more are outside. The last has its edge."""
    number = jnp.searchsorted(edges, at, side="right")
    return jnp.where(at == edges[-1], edges.shape[0] - 1, number)


def _of_bins(line: Array, number: Array, count: int, statistic: str) -> Array:
    """A statistic of the values of each of `count` bins."""
    sums = jnp.zeros(count, line.dtype)
    sizes = sums.at[number].add(1)
    none = sizes == 0
    safe = jnp.where(none, 1, sizes)
    if statistic == "count":
        return sizes
    if statistic in ("min", "max"):
        worst = jnp.full(count, jnp.inf if statistic == "min" else -jnp.inf, line.dtype)
        best = worst.at[number]
        found = best.min(line) if statistic == "min" else best.max(line)
    elif statistic == "median":
        order = jnp.lexsort((line, number))
        ordered = line[order]
        whole = jnp.zeros(count, jnp.int32).at[number].add(1)
        first = jnp.cumsum(whole) - whole
        last = line.shape[0] - 1
        a, b = (ordered[jnp.clip(first + (whole - k) // 2, 0, last)] for k in (1, 0))
        found = (a + b) / 2
    else:
        total = sums.at[number].add(line)
        if statistic == "sum":
            return total
        found = total / safe
        if statistic == "std":
            square = sums.at[number].add((line - found[number]) ** 2) / safe
            found = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    return jnp.where(none, jnp.nan, found)


def _called(name: str, values: Array, number: Array, count: int, statistic: Callable[..., Any]
            ) -> Array:
    """A function of the values of each bin, whose numbers are known."""
    known = known_values(f"stats.{name}", "a sample", number, "how many values each bin has "
                         "depends on it.", f"statistic={_STATISTICS[0]!r}, or one of the others")
    found = []
    for i in range(count):
        places = np.nonzero(known == i)[0]
        found.append(jnp.asarray(statistic(values[places])).astype(values.dtype) if places.size
                     else jnp.full((), jnp.nan, values.dtype))
    return jnp.stack(found)


def binned_statistic_dd(sample: ArrayLike | Sequence[ArrayLike], values: ArrayLike,
                        statistic: str | Callable[..., Any] = "mean", bins: Bins = 10,
                        range: Ranges = None, expand_binnumbers: bool = False,
                        binned_statistic_result: BinnedStatisticDD | None = None
                        ) -> BinnedStatisticDD:
    """A statistic of the values of each bin of points (n, d), or d vectors of their coordinates.

    `statistic` is as in `binned_statistic`. `bins` is a number, or for each axis a number in a pair
    of `range`, or edges. Bins are numbered together, with those outside of the edges, or for each
    axis with `expand_binnumbers`. A `binned_statistic_result` has the bins of the same points.

    >>> import functrans as ft
    >>> points = ft.numpy.array([[0.0, 0.1], [0.9, 0.2], [0.8, 0.9]])
    >>> found = ft.scipy.stats.binned_statistic_dd(points, [1.0, 2.0, 4.0], "sum", bins=2)
    >>> found.statistic.tolist()
    [[1.0, 0.0], [2.0, 4.0]]
    """
    points = sample if hasattr(sample, "shape") else jnp.stack(
        inexact(*sample), -1) if isinstance(sample, (tuple, list)) else jnp.asarray(sample)
    x, v = inexact(points, values)
    x = x[:, None] if x.ndim == 1 else x
    return _binned("binned_statistic_dd", x, v, statistic, bins, range, expand_binnumbers,
                   binned_statistic_result)


def _binned(name: str, x: Array, v: Array, statistic: str | Callable[..., Any], bins: Any,
            limits: Any, expand: bool, known: BinnedStatisticDD | None) -> BinnedStatisticDD:
    if not callable(statistic):
        one_of(f"stats.{name}", "statistic", statistic, _STATISTICS)
    if x.ndim != 2 or v.shape[-1:] != x.shape[:1]:
        raise ShapeError(f"scipy.stats.{name}: the points have shape {x.shape}, values {v.shape}.",
                         where=user_source(), why="there is a value for each point.")
    d = x.shape[1]
    each = [bins] * d if isinstance(bins, (int, np.integer)) else list(bins)
    if len(each) != d or (limits is not None and len(limits) != d):
        raise ArgumentError(f"scipy.stats.{name}: bins is {shown(bins)}.", where=user_source(),
                            why=f"it is a number, or it has one or edges for each of {d} axes, as "
                            "range has a pair.")
    edges = known.bin_edges if known is not None else [
        _edges(name, x[:, i], b, None if limits is None else limits[i]) for i, b in enumerate(each)]
    sizes = [e.shape[0] + 1 for e in edges]
    columns = [_numbers(x[:, i], e) for i, e in enumerate(edges)]
    number = jnp.zeros(x.shape[:1], jnp.int32)
    for size, column in zip(sizes, columns):
        number = number * size + column.astype(jnp.int32)
    count = int(np.prod(sizes))

    def of(line: Array) -> Array:
        if callable(statistic):
            return _called(name, line, number, count, statistic)
        return _of_bins(line, number, count, statistic)

    rows = v.reshape(-1, v.shape[-1])
    found = jnp.stack([of(r) for r in rows]) if callable(statistic) else (
        of(rows[0])[None] if rows.shape[0] == 1 else vmap(of)(rows))
    found = found.reshape(*v.shape[:-1], *sizes)
    inner = (..., *(slice(1, -1) for _ in sizes))
    return BinnedStatisticDD(found[inner], list(edges), jnp.stack(columns) if expand and d > 1
                             else number)


def binned_statistic_2d(x: ArrayLike, y: ArrayLike, values: ArrayLike,
                        statistic: str | Callable[..., Any] = "mean", bins: Bins = 10,
                        range: Ranges = None, expand_binnumbers: bool = False) -> BinnedStatistic2D:
    """A statistic of the values of each bin of points in a plane; see `binned_statistic_dd`.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.binned_statistic_2d(
    ...     [0.0, 0.9, 0.8], [0.1, 0.2, 0.9], [1.0, 2.0, 4.0], "count", bins=2)
    >>> found.statistic.tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    a, b, v = inexact(x, y, values)
    if a.ndim != 1 or a.shape != b.shape:
        raise ShapeError(f"scipy.stats.binned_statistic_2d: x has shape {a.shape}, y {b.shape}.",
                         where=user_source(), why="they are vectors of one length.")
    both: Any = bins
    if not isinstance(bins, (int, np.integer)) and len(bins) not in (1, 2):
        both = [bins, bins]  # edges of both axes
    found = _binned("binned_statistic_2d", jnp.stack([a, b], -1), v, statistic, both, range,
                    expand_binnumbers, None)
    return BinnedStatistic2D(found.statistic, found.bin_edges[0], found.bin_edges[1],
                             found.binnumber)


def binned_statistic(x: ArrayLike, values: ArrayLike, statistic: str | Callable[..., Any] = "mean",
                     bins: Edges = 10, range: tuple[float, float] | None = None) -> BinnedStatistic:
    """A statistic of the values of each bin of x.

    `statistic` is "mean", "std", "sum", "count", "min", "max" or "median", or, where x is known, a
    function of a vector; bins without values have NaN, sums and counts 0. `bins` are their number
    in `range`, or their edges.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.binned_statistic([0.0, 0.1, 0.9], [1.0, 2.0, 4.0], "sum", bins=2)
    >>> found.statistic.tolist(), found.binnumber.tolist()
    ([3.0, 4.0], [1, 1, 2])
    """
    at, v = inexact(x, values)
    if at.ndim != 1:
        raise ShapeError(f"scipy.stats.binned_statistic: x has shape {at.shape}.",
                         where=user_source(), why="it is a vector.")
    one = bins if isinstance(bins, (int, np.integer)) else [bins]
    found = _binned("binned_statistic", at[:, None], v, statistic, one,
                    None if range is None else [range], False, None)
    return BinnedStatistic(found.statistic, found.bin_edges[0], found.binnumber)


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
    x, _ = sample_of("relfreq", a, None)
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
