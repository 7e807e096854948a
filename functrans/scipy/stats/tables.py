"""Tables of frequencies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_values, one_of
from functrans.scipy.stats.comparisons import chi2_contingency, groups
from functrans.scipy.stats.methods import Resampling, key_of
from functrans.scipy.stats.missing import check_policy, refuse_missing
from functrans.scipy.stats.random_tables import known_counts, of_random_tables
from functrans.scipy.stats.results import SignificanceResult, check_side
from functrans.typing import Array, ArrayLike

__all__ = ["fisher_exact", "median_test"]


class MedianTestResult(NamedTuple):
    """A statistic, its p-value, the median of all, and how many of each are above and below it."""

    statistic: Array
    pvalue: Array
    median: Array
    table: Array


_TIES = 1 + 1e-11  # probabilities that differ by rounding alone are equal


def fisher_exact(table: ArrayLike, alternative: str | None = None, *,
                 method: Resampling = None, rng: Array | int | None = None,
                 n_resamples: int = 9999) -> SignificanceResult:
    """Whether rows and columns of a table are independent, given its margins.

    Of two by two the statistic is the ratio of the odds; of two sides (the default) the p-value is
    that of all tables that are as improbable. Tables of shape (..., 2, 2) are tested each. An empty
    row or column gives NaN and 1. Its time is that of the least margin.

    Of a larger table (rows, columns), which is known, the statistic is its probability, and the
    p-value the share of `n_resamples` random tables of its margins, and of itself, that are as
    improbable; `rng` is a key or a seed (0 by default), and there is no `alternative`. `method`, a
    `PermutationMethod` or a `MonteCarloMethod`, has both, and counts tables of two by two too.
    Source: Fisher, The Logic of Inductive Inference (1935).

    >>> import functrans as ft
    >>> odds, p = ft.scipy.stats.fisher_exact([[8, 2], [1, 5]])
    >>> float(odds), round(float(p), 4)
    (20.0, 0.035)
    """
    (given,) = inexact(table)
    if method is not None:
        random_state = getattr(method, "random_state", None)
        rng = random_state if method.rng is None else method.rng
        n_resamples = method.n_resamples
    if method is not None and given.shape == (2, 2):
        plain = fisher_exact(given, alternative)
        return SignificanceResult(plain.statistic, _resampled_sides(
            given, rng, n_resamples, alternative or "two-sided"))
    if given.ndim == 2 and given.shape != (2, 2) and given.size:
        if alternative is not None:
            raise ArgumentError(f"scipy.stats.fisher_exact: alternative={alternative!r} of a "
                                f"table of shape {given.shape}.", where=user_source(),
                                why="a larger table has no sides.", fix="fisher_exact(table)")
        return _resampled(given, rng, n_resamples)
    alternative = "two-sided" if alternative is None else alternative
    check_side("fisher_exact", alternative)
    if given.ndim < 2 or given.shape[-2:] != (2, 2):
        raise ShapeError(f"scipy.stats.fisher_exact: the table has shape {given.shape}.",
                         where=user_source(), why="tables are (rows, columns), or (..., 2, 2).",
                         fix="chi2_contingency(table)")
    counts = lax.stop_gradient(given).astype(jnp.float64)
    a, b, c, d = (counts[..., i, j] for i in (0, 1) for j in (0, 1))

    def one(cells: Array) -> Array:
        return _fisher_pvalue(cells[0], cells[1], cells[2], cells[3], alternative)

    flat = jnp.stack([v.reshape(-1) for v in (a, b, c, d)], axis=1)
    found = one(flat[0]) if flat.shape[0] == 1 else lax.map(one, flat)
    p = found.reshape(a.shape)
    a, b, c, d = (given[..., i, j] for i in (0, 1) for j in (0, 1))
    empty = (a + b == 0) | (c + d == 0) | (a + c == 0) | (b + d == 0)
    across = b * c
    odds = jnp.where(across > 0, a * d / jnp.where(across > 0, across, 1), math.inf)
    bad = jnp.any(jnp.isnan(given) | (given < 0), (-2, -1))
    return SignificanceResult(jnp.where(empty | bad, math.nan, odds), jnp.where(
        bad, math.nan, jnp.where(empty, 1, p)).astype(given.dtype))


def _resampled(table: Array, rng: Any, count: int) -> SignificanceResult:
    """A table among random ones of its margins: the columns of its observations are shuffled."""
    whole = known_counts("fisher_exact", table)
    sides = sum(math.lgamma(v + 1) for v in (*whole.sum(1), *whole.sum(0)))
    margins = sides - math.lgamma(whole.sum() + 1)

    def log_probability(cells: Array) -> Array:
        return margins - jnp.sum(lax.lgamma(cells + 1.0))

    found = log_probability(jnp.asarray(whole, jnp.float64))
    drawn = of_random_tables(whole, key_of("fisher_exact", rng), count, log_probability)
    as_rare = jnp.sum(drawn <= found + 1e-9)
    return SignificanceResult(jnp.exp(found).astype(table.dtype),
                              ((as_rare + 1) / (count + 1)).astype(table.dtype))


def _resampled_sides(table: Array, rng: Any, count: int, alternative: str) -> Array:
    """The share of random tables of two by two whose first cell is as extreme."""
    check_side("fisher_exact", alternative)
    whole = known_counts("fisher_exact", table)
    cells = of_random_tables(whole, key_of("fisher_exact", rng), count, lambda t: t[0, 0])
    if alternative == "two-sided":
        n1, n2 = (int(v) for v in whole.sum(0))
        m = int(whole.sum(1)[0])
        low = max(0, m - n2)
        ways = [math.comb(n1, k) * math.comb(n2, m - k) for k in range(low, min(n1, m) + 1)]
        masses = jnp.asarray(np.array(ways, float))
        at = (cells - low).astype(int)
        hits = masses[at] <= masses[int(whole[0, 0]) - low] * _TIES
    else:
        hits = cells <= whole[0, 0] if alternative == "less" else cells >= whole[0, 0]
    return ((jnp.sum(hits) + 1) / (count + 1)).astype(table.dtype)


def _fisher_pvalue(a: Array, b: Array, c: Array, d: Array, alternative: str) -> Array:
    """Sums of the probabilities of tables, each relative to that of the table that is there."""

    def side(way: float) -> tuple[Array, Array]:
        """The sum of all tables on one side, and of those that are as improbable."""
        first = (a, b, c, d)

        def there(state: Any) -> Any:
            (a, b, c, d), *_ = state
            # the next table has no negative cell
            return (jnp.minimum(b, c) if way > 0 else jnp.minimum(a, d)) > 0

        def step(state: Any) -> Any:
            (a, b, c, d), weight, total, improbable = state
            up, down = (b * c, (a + 1) * (d + 1)) if way > 0 else (a * d, (b + 1) * (c + 1))
            weight = weight * up / down
            cells = (a + way, b - way, c - way, d + way)
            return cells, weight, total + weight, improbable + jnp.where(
                weight <= _TIES, weight, 0)

        none = jnp.zeros_like(a)
        start = first, jnp.ones_like(a), none, none
        *_, total, improbable = lax.while_loop(there, step, start)
        return total, improbable

    (above, rare_above), (below, rare_below) = side(1.0), side(-1.0)
    chosen = {"less": below, "greater": above}.get(alternative, rare_above + rare_below)
    return jnp.minimum(1, (1 + chosen) / (1 + above + below))


def median_test(*samples: ArrayLike, ties: str = "below", correction: bool = True,
                lambda_: str | float | None = None,
                nan_policy: str = "propagate") -> MedianTestResult:
    """Whether samples have one median: how many of each are above that of all, as a table.

    Elements that are equal to the median are counted "below", "above", or left out ("ignore").
    Source: Mood (1950).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.median_test([1.0, 2.0, 3.0, 4.0], [3.0, 5.0, 6.0, 7.0])
    >>> round(float(found.pvalue), 4)
    0.4795
    """
    one_of("stats.median_test", "ties", ties, ("below", "above", "ignore"))
    parts = groups("median_test", samples, None)
    check_policy("median_test", nan_policy)
    if nan_policy == "omit":
        parts = [p[np.nonzero(~np.isnan(known_values(
            "stats.median_test", 'a sample of nan_policy="omit"', p,
            "how many elements are left depends on its values.", "call it outside of jit")))[0]]
            for p in parts]
    elif nan_policy == "raise":
        for p in parts:
            refuse_missing("median_test", p)
    middle = jnp.median(jnp.concatenate(parts))
    above = [jnp.sum(p >= middle if ties == "above" else p > middle) for p in parts]
    below = [jnp.sum(p <= middle if ties == "below" else p < middle) for p in parts]
    if not all(p.size for p in parts):
        raise ArgumentError("scipy.stats.median_test: a sample is empty.", where=user_source())
    table = jnp.stack([jnp.stack(above), jnp.stack(below)]).astype(parts[0].dtype)
    found = chi2_contingency(table, correction, lambda_)
    return MedianTestResult(found.statistic, found.pvalue, middle, table)


publish(globals(), __all__)
