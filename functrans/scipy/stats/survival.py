"""Distribution functions of samples, some of whose elements are known to be larger only."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.core.tree_registry import register_dataclass
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of, refused
from functrans.scipy.stats.results import (
    ConfidenceInterval,
    SignificanceResult,
    check_side,
    normal_pvalue,
    tail_of,
)
from functrans.typing import Array, ArrayLike

__all__ = ["ecdf", "logrank"]

_STATIC: Final = MappingProxyType({"static": True})


@runtime_checkable
class Censored(Protocol):
    """A sample as `CensoredData` has it: values, and bounds of others."""

    @property
    def uncensored(self) -> Array: ...

    @property
    def left(self) -> Array: ...

    @property
    def right(self) -> Array: ...

    @property
    def interval(self) -> Array: ...


def _observed(name: str, sample: ArrayLike | Censored) -> tuple[Array, Array]:
    """All times, and whether each is known, or is a lower bound."""
    if isinstance(sample, Censored):
        if jnp.size(sample.left) or jnp.size(sample.interval):
            raise refused(f"stats.{name}", "values that are bounded from above",
                          "the estimate is of values and lower bounds.",
                          "CensoredData(uncensored, right=right)")
        known, bounds = inexact(sample.uncensored, sample.right)
    else:
        (known,) = inexact(sample)
        bounds = known[:0]
    if known.ndim != 1 or not known.size + bounds.size:
        raise ShapeError(f"scipy.stats.{name}: the sample has shape {known.shape}.",
                         where=user_source(), why="it is a vector, or CensoredData.")
    return jnp.concatenate([known, bounds]), jnp.concatenate(
        [jnp.ones(known.shape, bool), jnp.zeros(bounds.shape, bool)])


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class EmpiricalDistributionFunction:
    """A function of steps: its places, and its values from each on."""

    quantiles: Array
    probabilities: Array
    at_risk: Array | None = dataclasses.field(repr=False)
    events: Array | None = dataclasses.field(repr=False)
    kind: str = dataclasses.field(repr=False, metadata=_STATIC)

    def evaluate(self, x: ArrayLike) -> Array:
        """The values at x, of any shape."""
        at, places = inexact(x, self.quantiles)
        first = jnp.full((1,), 1.0 if self.kind == "sf" else 0.0, self.probabilities.dtype)
        return jnp.concatenate([first, self.probabilities])[
            jnp.searchsorted(places, at, side="right")]

    def plot(self, ax: Any, **options: Any) -> Any:
        """Draws the steps by `ax.step`, of axes of Matplotlib; returns what that does."""
        q = np.asarray(self.quantiles)
        margin = (q[-1] - q[0]) * 0.05
        places = np.concatenate([[q[0] - margin], q, [q[-1] + margin]])
        return ax.step(places, np.asarray(self.evaluate(places)), **{"where": "post", **options})

    def confidence_interval(self, confidence_level: float = 0.95, *, method: str = "linear"
                            ) -> ConfidenceInterval:
        """The function's lower and upper ends at each place, by Greenwood's variance.

        `method` is "linear" or "log-log". NaN where all that are left have their event at once.
        """
        one_of("stats.ecdf", "method", method, ("linear", "log-log"))
        if self.at_risk is None or self.events is None:
            raise ArgumentError("scipy.stats.ecdf: an end of an interval has no interval.",
                                where=user_source())
        score = NormalDist().inv_cdf(tail_of(confidence_level, "two-sided"))
        n, d = self.at_risk, self.events
        sf = self.probabilities if self.kind == "sf" else 1 - self.probabilities
        hazard = jnp.cumsum(jnp.where(n > d, d / jnp.where(n > d, n * (n - d), 1), math.inf))
        if method == "linear":
            reach = score * jnp.sqrt(sf**2 * hazard)
            ends = [self.probabilities - reach, self.probabilities + reach]
        else:
            logs = jnp.log(sf)
            reach = score * jnp.sqrt(hazard / logs**2)
            middle = jnp.log(-logs)
            ends = [jnp.exp(-jnp.exp(middle + reach)), jnp.exp(-jnp.exp(middle - reach))]
            if self.kind == "cdf":
                ends = [1 - ends[1], 1 - ends[0]]
        return ConfidenceInterval(*(
            EmpiricalDistributionFunction(self.quantiles, jnp.clip(v, 0, 1), None, None, self.kind)
            for v in ends))  # type: ignore[arg-type]


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class ECDFResult:
    """The share of elements up to each place, and beyond it."""

    cdf: EmpiricalDistributionFunction
    sf: EmpiricalDistributionFunction


def ecdf(sample: ArrayLike | Censored, *, size: int | None = None) -> ECDFResult:
    """The distribution function of a vector, or of `CensoredData` with lower bounds.

    The places are the different elements; under `jit` `size` is their number, and the last fills
    what is left. Source: Kaplan and Meier, Nonparametric Estimation from Incomplete Observations
    (1958).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.ecdf([6.23, 5.58, 7.06, 6.42, 5.2])
    >>> print(found.cdf.probabilities)
    [0.2 0.4 0.6 0.8 1. ]
    >>> print(found.sf.evaluate(6.0).round(2))
    0.6
    """
    times, died = _observed("ecdf", sample)
    order = jnp.argsort(times)
    t, event = times[order], died[order].astype(times.dtype)
    count = t.shape[0]
    first = jnp.concatenate([jnp.ones((1,), bool), t[1:] > t[:-1]])
    if size is None:
        still = lax.stop_gradient(first)
        if is_traced(still):
            raise ArgumentError("functrans.scipy.stats.ecdf: the sample is traced, and there is no "
                                "size.", where=user_source(), why="how many different elements "
                                "there are depends on its values.", fix=f"ecdf(x, size={count})")
        starts = jnp.asarray(np.nonzero(np.asarray(still))[0])
    else:
        starts = jnp.nonzero(first, size=known_size("stats.ecdf", "size", size),
                             fill_value=count)[0]
    sums = jnp.concatenate([jnp.zeros((1,), t.dtype), jnp.cumsum(event)])
    ends = jnp.concatenate([starts[1:], jnp.full((1,), count, starts.dtype)])
    places = t[jnp.minimum(starts, count - 1)]
    at_risk = (count - starts).astype(t.dtype)
    events = sums[ends] - sums[starts]
    left = 1 - events / jnp.maximum(at_risk, 1)
    if isinstance(sample, Censored):
        sf = jnp.cumprod(left)
        cdf = 1 - sf
    else:
        cdf = sums[ends] / count
        sf = 1 - cdf
    return ECDFResult(EmpiricalDistributionFunction(places, cdf, at_risk, events, "cdf"),
                      EmpiricalDistributionFunction(places, sf, at_risk, events, "sf"))


def logrank(x: ArrayLike | Censored, y: ArrayLike | Censored, alternative: str = "two-sided"
            ) -> SignificanceResult:
    """Whether two samples of times, some of which are lower bounds, have one distribution.

    x and y are vectors or `CensoredData`. "less" is that x lives longer.
    Source: Mantel, Evaluation of Survival Data and Two New Rank Order Statistics (1966).

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.logrank([1.0, 3.0, 5.0, 8.0], [2.0, 9.0, 11.0, 12.0])
    >>> round(float(z), 4), round(float(p), 4)
    (1.7745, 0.076)
    """
    check_side("logrank", alternative)
    (own, died), (other, other_died) = (_observed("logrank", v) for v in (x, y))
    own, other = inexact(own, other)
    times = jnp.concatenate([own, other])
    dead = jnp.concatenate([died, other_died])

    def left(sample: Array) -> Array:
        return jnp.sum(sample >= times[:, None], -1).astype(times.dtype)

    in_x, in_both = left(own), left(times)
    # a sum over different times is one over deaths, each of the share of those at its time
    together = jnp.sum((times == times[:, None]) & dead, -1).astype(times.dtype)
    expected = jnp.sum(jnp.where(dead, in_x / in_both, 0))
    several = dead & (in_both > 1)
    bottom = jnp.where(several, in_both**2 * (in_both - 1), 1)
    variance = jnp.sum(jnp.where(several, in_x * (in_both - in_x) * (
        in_both - together) / bottom, 0))
    z = (jnp.sum(died) - expected) / jnp.sqrt(variance)
    return SignificanceResult(z, normal_pvalue(z, alternative))


publish(globals(), __all__)
