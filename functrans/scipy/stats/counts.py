"""Exact tests of counts, which are known: how many tables there are depends on them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact, known_size, known_values, one_of
from functrans.scipy.stats.results import SignificanceResult, check_side
from functrans.scipy.stats.statistics import rankdata
from functrans.typing import Array, ArrayLike

__all__ = ["barnard_exact", "boschloo_exact", "page_trend_test", "poisson_means_test"]

_WHY = "how many tables there are depends on its values."
_FIX = "call it outside of jit"
_GRID = 1024  # probabilities of which the best is refined; a polynomial of n elements has n bends


def _log_ways(n: int) -> np.ndarray:
    ways = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    out: np.ndarray = ways[-1] - ways - ways[::-1]
    return out


def _known_table(name: str, table: ArrayLike, alternative: str, n: int) -> np.ndarray:
    check_side(name, alternative)
    known_size(f"stats.{name}", "n", n)
    known = known_values(f"stats.{name}", "the table", table, _WHY, _FIX)
    if known.shape != (2, 2):
        raise ShapeError(f"scipy.stats.{name}: the table has shape {known.shape}.",
                         where=user_source(), why="it is two by two.", fix="chi2_contingency")
    whole = known.astype(np.int64)
    if (whole != known).any() or (whole < 0).any():
        raise ArgumentError(f"scipy.stats.{name}: the table is {shown(known.tolist())}.",
                            where=user_source(), why="it has counts, which are whole.")
    return whole


def _largest(table: np.ndarray, extreme: np.ndarray, n: int) -> float:
    """The largest probability of tables that are extreme, over those of one success."""
    columns = table.sum(0)
    rows = np.arange(columns[0] + 1)[:, None] + np.arange(columns[1] + 1)
    logs = (_log_ways(columns[0])[:, None] + _log_ways(columns[1]))[extreme]
    successes, size = rows[extreme], int(columns.sum())
    weights = np.zeros(size + 1)
    np.add.at(weights, successes, np.exp(logs - _log_ways(size)[successes]))
    # a mixture of binomial distributions, whose logarithms do not overflow
    counts, ways = np.arange(size + 1), _log_ways(size)

    def chance(p: np.ndarray) -> np.ndarray:
        inner = np.clip(p, 1e-300, 1 - 1e-16)[:, None]
        mass = np.exp(ways + counts * np.log(inner) + (size - counts) * np.log1p(-inner))
        mass = np.where(p[:, None] <= 0, counts == 0, np.where(
            p[:, None] >= 1, counts == size, mass))
        out: np.ndarray = mass @ weights
        return out

    grid = np.linspace(0, 1, max(n, _GRID) + 1)
    values = chance(grid)
    best = int(np.argmax(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(6):  # the best of 17 points again: 8**-6 of a cell is below 1e-8
        points = np.linspace(low, high, 17)
        at = int(np.argmax(chance(points)))
        low, high = points[max(at - 1, 0)], points[min(at + 1, 16)]
    return float(min(1.0, max(values[best], chance(np.array([0.5 * (low + high)]))[0])))


def _found(statistic: float, p: float) -> SignificanceResult:
    return SignificanceResult(jnp.asarray(statistic, jnp.float64), jnp.asarray(p, jnp.float64))


def barnard_exact(table: ArrayLike, alternative: str = "two-sided", pooled: bool = True,
                  n: int = 32) -> SignificanceResult:
    """Whether two columns of a table of counts have one probability of the first row.

    The statistic is Wald's, with one variance for both if `pooled`; the p-value is the largest over
    that probability, of `n` of them at least, the best of which is refined. The table is known.
    Source: Barnard, Significance Tests for 2x2 Tables (1947).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.barnard_exact([[7, 12], [8, 3]], alternative="less")
    >>> round(float(found.statistic), 3), round(float(found.pvalue), 4)
    (-1.894, 0.0341)
    """
    known = _known_table("barnard_exact", table, alternative, n)
    n1, n2 = known.sum(0)
    if not n1 or not n2:
        return _found(math.nan, 1.0)
    x1, x2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)
    p1, p2 = x1 / n1, x2 / n2
    part = (x1 + x2) / (n1 + n2)
    variance = part * (1 - part) * (1 / n1 + 1 / n2) if pooled else (
        p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2)
    with np.errstate(divide="ignore", invalid="ignore"):
        wald = np.where(p1 == p2, 0, (p1 - p2) / np.sqrt(variance))
    observed = wald[known[0, 0], known[0, 1]]
    extreme = np.abs(wald) >= abs(observed) if alternative == "two-sided" else (
        wald <= observed if alternative == "less" else wald >= observed)
    return _found(float(observed), _largest(known, extreme, n))


def boschloo_exact(table: ArrayLike, alternative: str = "two-sided", n: int = 32
                   ) -> SignificanceResult:
    """`barnard_exact` with the p-value of Fisher's test as the statistic.

    Source: Boschloo, Raised Conditional Level of Significance for the 2x2 Table (1970).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.boschloo_exact([[74, 31], [43, 32]], alternative="greater")
    >>> round(float(found.statistic), 4), round(float(found.pvalue), 4)
    (0.0483, 0.0356)
    """
    known = _known_table("boschloo_exact", table, alternative, n)
    n1, n2 = known.sum(0)
    if not n1 or not n2:
        return _found(math.nan, math.nan)
    if alternative == "two-sided":
        sides = [boschloo_exact(known, side, n) for side in ("less", "greater")]
        least = min(sides, key=lambda s: float(s.pvalue))
        return _found(float(least.statistic), min(1.0, 2 * float(least.pvalue)))
    logs = _log_ways(int(n1))[:, None] + _log_ways(int(n2))
    rows = np.arange(n1 + 1)[:, None] + np.arange(n2 + 1)
    logs = np.exp(logs - _log_ways(int(n1 + n2))[rows])
    # sums along the tables of the same rows, from the less or from the greater
    values = np.zeros_like(logs)
    for total in range(int(n1 + n2) + 1):
        first = np.arange(max(0, total - n2), min(n1, total) + 1)
        mass = logs[first, total - first]
        values[first, total - first] = np.cumsum(mass) if alternative == "less" else np.cumsum(
            mass[::-1])[::-1]
    observed = values[known[0, 0], known[0, 1]]
    extreme = values <= observed * (1 + 1e-13)
    return _found(float(observed), _largest(known, extreme, n))


def poisson_means_test(k1: ArrayLike, n1: ArrayLike, k2: ArrayLike, n2: ArrayLike, *,
                       diff: float = 0, alternative: str = "two-sided") -> SignificanceResult:
    """Whether the means of two Poisson variables, k events in n units each, differ by `diff`.

    The counts are known. Source: Krishnamoorthy and Thomson, A More Powerful Test for Comparing Two
    Poisson Means (2004).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.poisson_means_test(0, 100, 3, 100)
    >>> round(float(found.statistic), 4), round(float(found.pvalue), 4)
    (-1.7321, 0.0884)
    """
    check_side("poisson_means_test", alternative)
    a, size_a, b, size_b = (float(known_values("stats.poisson_means_test", name, v, _WHY, _FIX))
                            for name, v in (("k1", k1), ("n1", n1), ("k2", k2), ("n2", n2)))
    if a != int(a) or b != int(b) or min(a, b) < 0 or min(size_a, size_b) <= 0 or diff < 0:
        raise ArgumentError("scipy.stats.poisson_means_test: k1, n1, k2, n2 and diff are "
                            f"{a:g}, {size_a:g}, {b:g}, {size_b:g} and {diff:g}.",
                            where=user_source(), why="counts are whole and not negative, sizes "
                            "above 0, and diff is not negative.")
    mean = (a + b) / (size_a + size_b) - diff * size_a / (size_a + size_b)
    if mean <= 0:
        return _found(0.0, 1.0)
    observed = (a / size_a - b / size_b - diff) / math.sqrt(a / size_a**2 + b / size_b**2)
    sides = []
    for expected in (size_a * (mean + diff), size_b * mean):
        reach = 10 * math.sqrt(expected) + 25
        count = np.arange(max(0, math.floor(expected - reach)), math.ceil(expected + reach) + 1)
        logs = count * math.log(expected) - expected - np.array([math.lgamma(i + 1) for i in count])
        sides.append((count, np.exp(logs)))
    (x1, mass1), (x2, mass2) = sides
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (x1 / size_a - x2[:, None] / size_b - diff) / np.sqrt(
            x1 / size_a**2 + x2[:, None] / size_b**2)
    extreme = np.abs(ratio) >= abs(observed) if alternative == "two-sided" else (
        ratio <= observed if alternative == "less" else ratio >= observed)
    return _found(observed, float(np.sum((mass1 * mass2[:, None])[extreme])))


# Trends --------------------------------------------------------------------------------------


class PageTrendTestResult(NamedTuple):
    """Page's L, its p-value, and the method that found it."""

    statistic: Array
    pvalue: Array
    method: str


@lru_cache(maxsize=32)
def _tail_of_page(rows: int, n: int) -> Any:
    """The probability of L from its least value on: sums over permutations, by subsets."""
    by_subset: dict[int, np.ndarray] = {0: np.ones(1)}
    top = n * (n + 1) * (2 * n + 1) // 6
    for place in range(1, n + 1):
        following: dict[int, np.ndarray] = {}
        for used, counts in by_subset.items():
            for rank in range(1, n + 1):
                if used >> rank & 1:
                    continue
                into = following.setdefault(used | 1 << rank, np.zeros(top + 1))
                into[place * rank:place * rank + len(counts)] += counts[:top + 1 - place * rank]
        by_subset = following
    (one,) = by_subset.values()
    one = one / one.sum()
    total = np.ones(1)
    for _ in range(rows):
        total = np.convolve(total, one)
    return np.cumsum(total[::-1])[::-1]


def page_trend_test(data: ArrayLike, ranked: bool = False, predicted_ranks: ArrayLike | None = None,
                    method: str = "auto") -> PageTrendTestResult:
    """Whether the columns of a table (rows, n) rise, in each row: Page's L.

    `predicted_ranks` is the order of the columns, as they stand by default; a table that is
    `ranked` has ranks. `method` is "exact" (for ranks without ties), "asymptotic" or "auto": exact
    for up to 8 columns of up to 12 rows, 20 of 3.
    Source: Page, Ordered Hypotheses for Multiple Treatments (1963).

    >>> import functrans as ft
    >>> table = [[3, 4, 3], [2, 2, 4], [3, 3, 5], [1, 3, 2], [2, 3, 2], [2, 4, 5], [1, 2, 4],
    ...          [3, 4, 4], [2, 4, 5], [1, 3, 4]]
    >>> found = ft.scipy.stats.page_trend_test(table)
    >>> float(found.statistic), round(float(found.pvalue), 5), found.method
    (133.5, 0.00182, 'exact')
    """
    one_of("stats.page_trend_test", "method", method, ("auto", "exact", "asymptotic"))
    (table,) = inexact(data)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3:
        raise ShapeError(f"scipy.stats.page_trend_test: the table has shape {table.shape}.",
                         where=user_source(), why="it has two rows or more, and three columns.")
    rows, n = table.shape
    ranks = table if ranked else rankdata(table, axis=-1).astype(table.dtype)
    order: Any = np.arange(1, n + 1) if predicted_ranks is None else known_values(
        "stats.page_trend_test", "predicted_ranks", predicted_ranks, "they are an order.", _FIX)
    if sorted(np.ravel(order).tolist()) != list(range(1, n + 1)):
        raise ArgumentError(f"scipy.stats.page_trend_test: predicted_ranks is {shown(order)}.",
                            where=user_source(), why=f"it has each number from 1 to {n} once.")
    total = jnp.sum(ranks * jnp.asarray(order).astype(ranks.dtype))
    if method == "auto":
        few = n <= 8 and rows <= 20 and (rows <= 12 or n <= 3)
        method = "exact" if few else "asymptotic"
    if method == "exact":
        if n > 14:
            raise ArgumentError(f"scipy.stats.page_trend_test: the table has {n} columns, and "
                                'method is "exact".', where=user_source(), why="there are 2**n "
                                "subsets of n columns to count.", fix='method="asymptotic"')
        tail = _tail_of_page(rows, n)
        place = jnp.clip(jnp.floor(jnp.where(jnp.isnan(total), 0, total)), 0, len(tail) - 1)
        p = jnp.asarray(tail).astype(total.dtype)[place.astype(int)]
    else:
        mean = rows * n * (n + 1) ** 2 / 4
        spread = math.sqrt(rows * n**2 * (n + 1) * (n**2 - 1) / 144)
        p = special.ndtr(-(total - mean) / spread)
    return PageTrendTestResult(total, jnp.where(jnp.isnan(total), total, p), method)


publish(globals(), __all__)
