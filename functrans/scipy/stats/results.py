"""What tests of hypotheses return: tuples as SciPy's, some of which know more than they unpack to.

`alternative` is "two-sided", "less" or "greater".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_dataclass
from functrans.scipy import special
from functrans.scipy.arguments import one_of
from functrans.typing import Array

__all__ = ["ConfidenceInterval", "Correlation", "LinregressResult", "SignificanceResult",
           "TtestResult"]

SIDES = ("two-sided", "less", "greater")
_STATIC: Final = MappingProxyType({"static": True})


class SignificanceResult(NamedTuple):
    """A statistic, and the probability of one as extreme if the hypothesis held."""

    statistic: Array
    pvalue: Array


class ConfidenceInterval(NamedTuple):
    """The ends of an interval that has a value with a given confidence."""

    low: Array
    high: Array


class Unpacked:
    """A dataclass that unpacks to its first fields, as SciPy's results do."""

    unpacked: ClassVar[int] = 2

    def __iter__(self) -> Iterator[Any]:
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        return iter([getattr(self, name) for name in names[:self.unpacked]])

    def __len__(self) -> int:
        return self.unpacked

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class TtestResult(Unpacked):
    """Student's t, its p-value and degrees of freedom; the difference of means and its error.

    Unpacks to `statistic` and `pvalue`.
    """

    statistic: Array
    pvalue: Array
    df: Array
    estimate: Array
    standard_error: Array
    alternative: str = dataclasses.field(default="two-sided", metadata=_STATIC)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """The interval of the mean, or of the difference of means, on the side of the test."""
        level = tail_of(confidence_level, self.alternative)
        reach = self.standard_error * special.stdtrit(self.df, jnp.full_like(self.df, level))
        return interval(self.estimate - reach, self.estimate + reach, self.alternative)


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Correlation(Unpacked):
    """A correlation and the probability of one as extreme if there were none.

    Unpacks to these two; `spread` is the standard error of arctanh of the correlation.
    """

    statistic: Array
    pvalue: Array
    spread: Array
    alternative: str = dataclasses.field(default="two-sided", metadata=_STATIC)

    @property
    def correlation(self) -> Array:
        """The statistic."""
        return self.statistic

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """The interval of the correlation, by Fisher's transform; all of [-1, 1] of 3 pairs."""
        level = tail_of(confidence_level, self.alternative)
        # a correlation of 1 has no finite arctanh, and an interval of one point
        end = jnp.abs(self.statistic) >= 1
        z = jnp.arctanh(jnp.where(end, 0, self.statistic))
        reach = self.spread * NormalDist().inv_cdf(level)
        low, high = (jnp.where(end & jnp.isfinite(self.spread), self.statistic, jnp.tanh(v))
                     for v in (z - reach, z + reach))
        one = jnp.ones_like(low)
        return ConfidenceInterval(-one if self.alternative == "less" else low,
                                  one if self.alternative == "greater" else high)


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class LinregressResult(Unpacked):
    """A line, the correlation, the p-value of no slope, and the standard error of the slope.

    Unpacks to these five; the standard error of the intercept is a field besides.
    """

    unpacked: ClassVar[int] = 5

    slope: Array
    intercept: Array
    rvalue: Array
    pvalue: Array
    stderr: Array
    intercept_stderr: Array


def tail_of(confidence_level: float, alternative: str) -> float:
    """The probability below the upper end of an interval."""
    if not 0 < confidence_level < 1:
        raise ArgumentError(f"scipy.stats: confidence_level is {shown(confidence_level)}.",
                            where=user_source(), why="it is between 0 and 1.",
                            fix="confidence_level=0.95")
    return 0.5 + confidence_level / 2 if alternative == "two-sided" else confidence_level


def interval(low: Array, high: Array, alternative: str) -> ConfidenceInterval:
    """An interval that is open towards the side of the test."""
    if alternative == "less":
        low = jnp.full_like(low, -math.inf)
    elif alternative == "greater":
        high = jnp.full_like(high, math.inf)
    return ConfidenceInterval(low, high)


def check_side(name: str, alternative: str) -> None:
    """Raise ArgumentError for an alternative that is not known."""
    one_of(f"stats.{name}", "alternative", alternative, SIDES)


def normal_pvalue(z: Array, alternative: str) -> Array:
    """The probability of a normal variable as extreme."""
    if alternative == "two-sided":
        return 2 * special.ndtr(-jnp.abs(z))
    return special.ndtr(z if alternative == "less" else -z)


def t_pvalue(t: Array, df: Any, alternative: str) -> Array:
    """The probability of a variable of Student's as extreme."""
    df = jnp.broadcast_to(jnp.asarray(df).astype(t.dtype), t.shape)
    if alternative == "two-sided":
        return 2 * special.stdtr(df, -jnp.abs(t))
    return special.stdtr(df, t if alternative == "less" else -t)


def chi2_tail(x: Array, df: Any) -> Array:
    """The probability of a larger variable of chi squared."""
    return special.chdtrc(jnp.broadcast_to(jnp.asarray(df).astype(x.dtype), x.shape), x)
