"""Comparisons of many means, whose differences are tested together.

The largest of several differences has a distribution that is an integral over the common standard
deviation and over a normal variable: both are sums at Gauss's nodes, to 10 digits or more.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.core.tree_registry import register_dataclass
from functrans.scipy import special
from functrans.scipy.stats.comparisons import groups
from functrans.scipy.stats.methods import Rng
from functrans.scipy.stats.results import ConfidenceInterval, check_side, interval, tail_of
from functrans.typing import Array, ArrayLike

__all__ = ["dunnett", "tukey_hsd"]

_STATIC: Final = MappingProxyType({"static": True})
_HALVINGS = 60


@lru_cache(maxsize=8)
def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    found = np.polynomial.legendre.leggauss(count)
    return found[0], found[1]


def _over_spread(inner: Callable[[Array], Array], df: Array) -> Array:
    """The mean of a function of s, where df s**2 is a variable of chi squared; df is a scalar.

    The nodes are squared, since the density is a power of s near 0.
    """
    x, w = (jnp.asarray(v).astype(df.dtype) for v in _nodes(128))
    reach = 9 / jnp.sqrt(2 * df)
    low, high = jnp.maximum(0, 1 - reach), 1 + reach
    s = low + (high - low) * (x + 1) / 2
    logs = special.xlogy(df - 1, s) - df * s * s / 2 + df / 2 * jnp.log(df / 2) + math.log(
        2) - special.gammaln(df / 2)
    weights = jnp.exp(logs) * w * (high - low) / 2
    return jnp.sum(inner(s) * weights, -1)


def _normal_nodes(dtype: Any) -> tuple[Array, Array]:
    x, w = _nodes(128)
    z = 9 * x
    weights = 9 * w * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return jnp.asarray(z).astype(dtype), jnp.asarray(weights).astype(dtype)


def range_tail(q: Array, k: int, df: Array) -> Array:
    """The probability that the range of k normal variables is above q standard deviations.

    The standard deviation is estimated with df degrees of freedom; all are scalars.
    Source: Lund and Lund, Algorithm AS 190 (1983), for the formula.
    """
    z, weights = _normal_nodes(q.dtype)

    def inner(s: Array) -> Array:
        width = jnp.maximum(q, 0) * s[:, None]
        inside = special.ndtr(z + width) - special.ndtr(z)
        out: Array = k * jnp.sum(weights * inside ** (k - 1), -1)
        return out

    return jnp.clip(1 - _over_spread(inner, df), 0, 1)


def _largest_tail(t: Array, loads: Array, df: Array, alternative: str) -> Array:
    """The probability that one of Student's variables with a common part is beyond t, a scalar.

    Their correlations are products of `loads`, of the common normal variable.
    Source: Dunnett, A Multiple Comparison Procedure (1955).
    """
    z, weights = _normal_nodes(t.dtype)
    rest = jnp.sqrt(1 - loads * loads)[:, None]
    common = loads[:, None] * z

    def inner(s: Array) -> Array:
        end = (t if alternative == "greater" else -t if alternative == "less" else jnp.abs(
            t)) * s[:, None, None]
        inside = special.ndtr((end - common) / rest)
        if alternative == "two-sided":
            inside = inside - special.ndtr((-end - common) / rest)
        return jnp.sum(weights * jnp.prod(inside, -2), -1)

    return jnp.clip(1 - _over_spread(inner, df), 0, 1)


def _critical(tail: Callable[[Array], Array], level: Any, like: Array) -> Array:
    """Where a tail that falls has a level, by halving."""
    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        above = tail(middle) > level
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    def unfinished(state: tuple[Array, Array]) -> Array:
        going: Array = (tail(state[1]) > level) & (state[1] < 1e6)
        return going

    _, top = lax.while_loop(unfinished, lambda s: (s[1], 2 * s[1]), (
        jnp.zeros_like(like), jnp.ones_like(like)))
    low, high = lax.fori_loop(0, _HALVINGS, halve, (-top, top))
    return (low + high) / 2


def _flat(name: str, samples: Any, least: int) -> list[Array]:
    parts = groups(name, samples, None, least)
    if any(jnp.ndim(s) != 1 for s in samples) or any(p.shape[0] < 1 for p in parts):
        raise ShapeError(f"scipy.stats.{name}: the samples have shapes "
                         f"{[jnp.shape(s) for s in samples]}.", where=user_source(),
                         why="they are vectors.")
    return parts


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class TukeyHSDResult:
    """Differences of the means of all pairs of samples, (k, k), and their p-values."""

    statistic: Array
    pvalue: Array
    df: Array = dataclasses.field(repr=False)
    standard_error: Array = dataclasses.field(repr=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """The intervals of all differences, which hold together."""
        level = 1 - (2 * tail_of(confidence_level, "two-sided") - 1)
        k = self.statistic.shape[0]
        flat = jnp.broadcast_to(self.df, self.statistic.shape).reshape(-1)
        reach = lax.map(lambda df: _critical(lambda q: range_tail(q, k, df), level, df), flat)
        radius = reach.reshape(self.statistic.shape) * self.standard_error
        return ConfidenceInterval(self.statistic - radius, self.statistic + radius)


def tukey_hsd(*args: ArrayLike, equal_var: bool = True) -> TukeyHSDResult:
    """Which pairs of two vectors or more have different means: Tukey, Kramer, Games and Howell.

    p-values are of all pairs together, by the range of normal variables; without `equal_var` each
    vector has a variance of its own. The result has `confidence_interval()`.
    Source: Tukey, Comparing Individual Means in the Analysis of Variance (1949).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.tukey_hsd([1.0, 2.0, 3.0], [4.0, 6.0, 5.0], [2.0, 3.0, 2.5])
    >>> print(found.pvalue[0, 1:].round(4))
    [0.0128 0.7684]
    """
    parts = _flat("tukey_hsd", args, 2)
    sizes = jnp.asarray([p.shape[0] for p in parts], parts[0].dtype)
    means = jnp.stack([jnp.mean(p) for p in parts])
    variances = jnp.stack([jnp.var(p, ddof=1) for p in parts])
    k = len(parts)
    off = means[:, None] - means
    if equal_var:
        df = jnp.sum(sizes) - k
        pooled = jnp.sum(variances * (sizes - 1)) / df
        error = jnp.sqrt((1 / sizes[:, None] + 1 / sizes) * pooled / 2)
        df = jnp.broadcast_to(df, off.shape)
    else:
        each = variances / sizes
        error = jnp.sqrt((each[:, None] + each) / 2)
        own = each**2 / (sizes - 1)
        df = (each[:, None] + each) ** 2 / (own[:, None] + own)
    upper = np.triu_indices(k, 1)
    p = lax.map(lambda v: range_tail(v[0], k, v[1]), (
        jnp.abs(off[upper]) / error[upper], df[upper]))
    table = jnp.ones_like(off).at[upper].set(p).at[upper[::-1]].set(p)
    return TukeyHSDResult(off, table, df, error)


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class DunnettResult:
    """Student's t of each sample and the control, and p-values of all together."""

    statistic: Array
    pvalue: Array
    difference: Array = dataclasses.field(repr=False)
    standard_error: Array = dataclasses.field(repr=False)
    loads: Array = dataclasses.field(repr=False)
    df: Array = dataclasses.field(repr=False)
    alternative: str = dataclasses.field(default="two-sided", repr=False, metadata=_STATIC)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """The intervals of the differences of means from the control, which hold together."""
        level = 1 - (2 * tail_of(confidence_level, "two-sided") - 1)
        side = "two-sided" if self.alternative == "two-sided" else "greater"
        reach = _critical(lambda t: _largest_tail(t, self.loads, self.df, side), level, self.df)
        reach = jnp.abs(reach) * self.standard_error
        # "less" is open below, as "greater" is above
        return interval(self.difference - reach, self.difference + reach, self.alternative)


def dunnett(*samples: ArrayLike, control: ArrayLike, alternative: str = "two-sided",
            rng: Rng = None, random_state: Rng = None) -> DunnettResult:
    """Which vectors have other means than a control, at one level for all.

    p-values are integrals, not draws: `rng` and `random_state` are not used. The result has
    `confidence_interval()`.
    Source: Dunnett, A Multiple Comparison Procedure for Comparing Several Treatments with a Control
    (1955).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.dunnett([9.0, 10.0, 12.0], [6.0, 7.0, 5.0], control=[7.0, 8.0, 6.5])
    >>> print(found.pvalue.round(4))
    [0.0257 0.4053]
    """
    check_side("dunnett", alternative)
    *parts, base = _flat("dunnett", (*samples, control), 2)
    sizes = jnp.asarray([p.shape[0] for p in parts], base.dtype)
    n0 = base.shape[0]
    df = jnp.sum(sizes) + n0 - len(parts) - 1
    total = sum(jnp.sum((p - jnp.mean(p)) ** 2) for p in (*parts, base))
    spread = jnp.sqrt(total / df)
    off = jnp.stack([jnp.mean(p) for p in parts]) - jnp.mean(base)
    error = spread * jnp.sqrt(1 / sizes + 1 / n0)
    t = off / error
    loads = 1 / jnp.sqrt(1 + n0 / sizes)
    p = lax.map(lambda v: _largest_tail(v, loads, df, alternative), t)
    return DunnettResult(t, p, off, error, loads, df, alternative)


publish(globals(), __all__)
