"""Tables of counts: what they would be, how their axes hang together, and risks of groups."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree_registry import register_dataclass
from functrans.scipy.arguments import inexact, known_values, one_of, refused
from functrans.scipy.stats.comparisons import chi2_contingency, expected_of
from functrans.scipy.stats.results import ConfidenceInterval, check_side, interval, tail_of
from functrans.typing import Array, ArrayLike

__all__ = ["association", "chi2_contingency", "crosstab", "expected_freq", "margins", "odds_ratio",
           "relative_risk"]

Values = ArrayLike | Sequence[str]
_STATIC: Final = MappingProxyType({"static": True})


def margins(a: ArrayLike) -> list[Array]:
    """The sums of an array along all axes but each one, with as many axes.

    >>> from functrans.scipy.stats import contingency
    >>> [m.tolist() for m in contingency.margins([[1, 2, 3], [4, 5, 6]])]
    [[[6], [15]], [[5, 7, 9]]]
    """
    x = jnp.asarray(a)
    return [jnp.sum(x, tuple(i for i in range(x.ndim) if i != k), keepdims=True)
            for k in range(x.ndim)]


def expected_freq(observed: ArrayLike) -> Array:
    """The frequencies of a table if its axes were independent: products of the margins.

    >>> from functrans.scipy.stats import contingency
    >>> contingency.expected_freq([[10, 10, 20], [20, 20, 20]]).tolist()
    [[12.0, 12.0, 16.0], [18.0, 18.0, 24.0]]
    """
    (table,) = inexact(observed)
    return expected_of(table)


class CrosstabResult(NamedTuple):
    """The values of each sequence, and how often each combination is."""

    elements: tuple[Any, ...]
    count: Array  # type: ignore[assignment]  # the name of SciPy, and of a method of tuples


def crosstab(*args: Values, levels: Sequence[Values | None] | None = None, sparse: bool = False
             ) -> CrosstabResult:
    """How often each combination of the values of sequences of one length is.

    Sequences are known, and may be of strings. `levels` has for each its values, of which others
    are left out, or None: all that there are.

    >>> from functrans.scipy.stats import contingency
    >>> found = contingency.crosstab(["A", "B", "A", "A"], ["X", "X", "Y", "X"])
    >>> found.count.tolist()
    [[2, 1], [1, 0]]
    """
    if sparse:
        raise refused("stats.contingency.crosstab", "sparse=True", "the table is an array.",
                      "functrans.sparse.BCOO.fromdense(crosstab(x, y).count)")
    known = [known_values("stats.contingency.crosstab", "a sequence", a, "the values are its rows "
                          "and columns.", "call it outside of jit") if isinstance(a, Tracer)
             else np.asarray(a) for a in args]
    if not known or len({k.shape for k in known}) > 1 or known[0].ndim != 1:
        raise ShapeError(f"scipy.stats.contingency.crosstab: the sequences have shapes "
                         f"{[k.shape for k in known]}.", where=user_source(),
                         why="they are vectors of one length.", fix="crosstab(x, y)")
    given = [None] * len(known) if levels is None else list(levels)
    if len(given) != len(known):
        raise ArgumentError(f"scipy.stats.contingency.crosstab: there are {len(given)} levels for "
                            f"{len(known)} sequences.", where=user_source())
    elements, places, inside = [], [], np.ones(known[0].shape, bool)
    for values, level in zip(known, given):
        if level is None:
            found, place = np.unique(values, return_inverse=True)
        else:
            found = np.asarray(level)
            hits = values[:, None] == found
            place = np.argmax(hits, 1) if found.size else np.zeros(values.shape, int)
            inside &= hits.any(1)
        elements.append(found)
        places.append(place)
    table = np.zeros([len(e) for e in elements], int)
    np.add.at(table, tuple(p[inside] for p in places), 1)
    return CrosstabResult(tuple(elements), jnp.asarray(table))


def association(observed: ArrayLike, method: str = "cramer", correction: bool = False,
                lambda_: str | float | None = None) -> Array:
    """How much the rows and columns of a table depend on each other, from 0 to 1.

    `method` is "cramer" (Cramér's V), "tschuprow" (T) or "pearson" (the coefficient of
    contingency); `correction` and `lambda_` are those of `chi2_contingency`.

    >>> from functrans.scipy.stats import contingency
    >>> round(float(contingency.association([[100, 150], [203, 322], [420, 700], [320, 210]])), 4)
    0.1862
    """
    one_of("stats.contingency.association", "method", method, ("cramer", "tschuprow", "pearson"))
    (table,) = inexact(observed)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ShapeError(f"scipy.stats.contingency.association: the table has shape "
                         f"{table.shape}.", where=user_source(),
                         why="it has two rows and columns or more.")
    part = chi2_contingency(table, correction, lambda_).statistic / jnp.sum(table)
    rows, columns = (n - 1 for n in table.shape)
    if method == "pearson":
        return jnp.sqrt(part / (1 + part))
    return jnp.sqrt(part / (min(rows, columns) if method == "cramer" else math.sqrt(
        rows * columns)))


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class RelativeRiskResult:
    """A ratio of risks, and the counts that it is of."""

    relative_risk: Array
    exposed_cases: Array
    exposed_total: Array
    control_cases: Array
    control_total: Array

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """The interval by the logarithm's normal distribution: Katz et al. (1978)."""
        score = NormalDist().inv_cdf(tail_of(confidence_level, "two-sided"))
        a, b = self.exposed_cases, self.control_cases
        some = (a > 0) & (b > 0)
        error = jnp.sqrt(1 / jnp.where(a > 0, a, 1) - 1 / self.exposed_total + 1 / jnp.where(
            b > 0, b, 1) - 1 / self.control_total)
        low, high = (self.relative_risk * jnp.exp(way * score * error) for way in (-1, 1))
        none = (a == 0) & (b == 0)
        low = jnp.where(some, low, jnp.where((a == 0) & ~none, 0.0, math.nan))
        high = jnp.where(some, high, jnp.where((b == 0) & ~none, math.inf, math.nan))
        return ConfidenceInterval(low, high)


def relative_risk(exposed_cases: ArrayLike, exposed_total: ArrayLike, control_cases: ArrayLike,
                  control_total: ArrayLike) -> RelativeRiskResult:
    """The risk of those who are exposed over that of the control; counts broadcast.

    NaN without cases, infinite without cases in the control. The result has
    `confidence_interval()`.

    >>> from functrans.scipy.stats import contingency
    >>> found = contingency.relative_risk(27, 122, 44, 487)
    >>> round(float(found.relative_risk), 4)
    2.4495
    """
    a, n, b, m = inexact(exposed_cases, exposed_total, control_cases, control_total)
    none = b == 0
    ratio = (a / n) / (jnp.where(none, 1, b) / m)
    ratio = jnp.where(none, jnp.where(a == 0, math.nan, math.inf), ratio)
    bad = (a < 0) | (b < 0) | (a > n) | (b > m) | (n < 1) | (m < 1)
    return RelativeRiskResult(jnp.where(bad, math.nan, ratio), a, n, b, m)


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class OddsRatioResult:
    """A ratio of odds, and the table that it is of."""

    statistic: Array
    table: Array = dataclasses.field(repr=False)
    kind: str = dataclasses.field(repr=False, metadata=_STATIC)

    def confidence_interval(self, confidence_level: float = 0.95, alternative: str = "two-sided"
                            ) -> ConfidenceInterval:
        """The exact interval of a "conditional" ratio, of a "sample" one by its logarithm."""
        check_side("contingency.odds_ratio", alternative)
        level = tail_of(confidence_level, alternative)
        table = self.table
        empty = jnp.any(jnp.sum(table, 0) == 0) | jnp.any(jnp.sum(table, 1) == 0)
        if self.kind == "sample":
            score = NormalDist().inv_cdf(level)
            error = jnp.sqrt(jnp.sum(1 / table))
            logs = jnp.log(self.statistic)
            low, high = jnp.exp(logs - score * error), jnp.exp(logs + score * error)
        else:
            law = _Conditional(np.asarray(table))
            ends = (0.0 if law.x == law.low else law.solve(lambda r: law.above(r), 1 - level),
                    math.inf if law.x == law.high else law.solve(lambda r: -law.below(r),
                                                                 -(1 - level)))
            low, high = (jnp.asarray(v, table.dtype) for v in ends)
        low, high = jnp.where(empty, 0.0, low), jnp.where(empty, math.inf, high)
        if alternative == "less":
            low = jnp.zeros_like(low)
        return interval(low, high, "greater") if alternative == "greater" else ConfidenceInterval(
            low, high)


class _Conditional:
    """The first cell of a table of two by two, given its margins and the ratio of odds."""

    def __init__(self, table: np.ndarray) -> None:
        whole = table.astype(int)
        n1, n2 = (int(v) for v in whole.sum(1))
        m = int(whole.sum(0)[0])
        self.x, self.low, self.high = int(whole[0, 0]), max(0, m - n2), min(n1, m)
        self.cells = np.arange(self.low, self.high + 1)
        self.logs = np.array([-sum(math.lgamma(v + 1) for v in (
            k, n1 - k, m - k, n2 - m + k)) for k in self.cells])

    def masses(self, log_ratio: float) -> np.ndarray:
        logs = self.logs + self.cells * log_ratio
        out: np.ndarray = np.exp(logs - logs.max())
        out /= out.sum()
        return out

    def mean(self, log_ratio: float) -> float:
        return float(np.sum(self.cells * self.masses(log_ratio)))

    def below(self, log_ratio: float) -> float:
        return float(np.sum(self.masses(log_ratio)[self.cells <= self.x]))

    def above(self, log_ratio: float) -> float:
        return float(np.sum(self.masses(log_ratio)[self.cells >= self.x]))

    def solve(self, rising: Callable[[float], float], value: float) -> float:
        """The ratio where a function of its logarithm that rises has a value, by halving."""
        low, high = -1.0, 1.0
        while rising(low) > value and low > -700:
            low *= 2
        while rising(high) < value and high < 700:
            high *= 2
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if rising(middle) < value else (low, middle)
        return math.exp((low + high) / 2)


def odds_ratio(table: ArrayLike, *, kind: str = "conditional") -> OddsRatioResult:
    """The ratio of the odds of two columns of a table of counts, two by two.

    `kind` is "sample", a d / (b c), or "conditional", the most likely one given the margins, of
    which the table is known. NaN where a row or a column is empty. The result has
    `confidence_interval()`.
    Source: Cornfield, A Statistical Problem Arising from Retrospective Studies (1956).

    >>> from functrans.scipy.stats import contingency
    >>> round(float(contingency.odds_ratio([[7, 15], [58, 472]]).statistic), 4)
    3.7837
    """
    one_of("stats.contingency.odds_ratio", "kind", kind, ("conditional", "sample"))
    (given,) = inexact(table)
    if given.shape != (2, 2):
        raise ShapeError(f"scipy.stats.contingency.odds_ratio: the table has shape {given.shape}.",
                         where=user_source(), why="it is two by two.")
    empty = jnp.any(jnp.sum(given, 0) == 0) | jnp.any(jnp.sum(given, 1) == 0)
    across = given[0, 1] * given[1, 0]
    ratio = jnp.where(across > 0, given[0, 0] * given[1, 1] / jnp.where(across > 0, across, 1),
                      math.inf)
    if kind == "conditional":
        known = known_values("stats.contingency.odds_ratio", "the table", given, "how many tables "
                             "have its margins depends on it.", 'kind="sample"')
        if (known != known.astype(int)).any() or (known < 0).any():
            raise ArgumentError(f"scipy.stats.contingency.odds_ratio: the table is "
                                f"{shown(known.tolist())}.", where=user_source(),
                                why="it has counts, which are whole.", fix='kind="sample"')
        if not bool(empty):
            law = _Conditional(known)
            value = 0.0 if law.x == law.low else math.inf if law.x == law.high else law.solve(
                law.mean, law.x)
            ratio = jnp.asarray(value, given.dtype)
    return OddsRatioResult(jnp.where(empty, math.nan, ratio), given, kind)


publish(globals(), __all__)
