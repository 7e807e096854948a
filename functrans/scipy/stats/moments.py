"""Means of functions of a variable, for families without formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.stats.integrals import side_mean
from functrans.typing import Array, ArrayLike

__all__ = ["continuous_mean", "whole_mean"]

_SIDE = 1024  # of terms that are added to each side of the median
_STEPS = np.arange(-_SIDE, _SIDE + 1.0)


class _Ended(Protocol):
    def ends(self, *shapes: Array) -> tuple[Any, Any]: ...


class _Density(_Ended, Protocol):
    def log_density(self, z: Array, *shapes: Array) -> Array: ...

    def division(self, *shapes: Array) -> Any: ...


class _Counts(_Ended, Protocol):
    def log_probability(self, k: Array, *shapes: Array) -> Array: ...


def _double(xs: Sequence[Array]) -> list[Array]:
    return [x.astype(np.float64) for x in xs]


def continuous_mean(family: _Density, fun: Callable[[Array], Array], shapes: Sequence[Array],
                    like: Array, low: ArrayLike | None = None, high: ArrayLike | None = None
                    ) -> Array:
    """The mean of fun(z) over the standard variable, in float64, between two places or ends.

    By quadrature from its division to both sides. It is infinite where it diverges.
    """
    shapes, like = _double(shapes), like.astype(np.float64)
    ends = family.ends(*shapes)
    found = family.division(*shapes)
    places = [lax.stop_gradient(p) + jnp.zeros_like(like)
              for p in (found if isinstance(found, tuple) else (found,))]
    if low is not None and high is not None:
        ends = (jnp.maximum(low, ends[0]), jnp.minimum(high, ends[1]))
        places = [jnp.clip(p, *map(lax.stop_gradient, ends)) for p in places]

    def log_density(z: Array, *rest: Array) -> Array:
        return family.log_density(z, *rest)

    total = side_mean(fun, log_density, places[0], ends[0], shapes, False)
    for start, end in zip(places, [*places[1:], ends[1]], strict=True):
        total = total + side_mean(fun, log_density, start, end, shapes, True)
    return total


def whole_mean(family: _Counts, fun: Callable[[Array], Array], shapes: Sequence[Array],
               median: Array) -> Array:
    """The mean of fun(k) over whole numbers: 2049 terms around the median, and integrals.

    Beyond the terms the sum is by the midpoint rule an integral, of the probabilities that the
    formula gives between whole numbers; it is infinite where that diverges.
    """
    shapes = _double(shapes)
    centre = lax.stop_gradient(median.astype(np.float64))
    low, high = (jnp.zeros_like(centre) + end for end in family.ends(*shapes))
    first = jnp.maximum(low, centre - _SIDE)
    last = jnp.minimum(high, centre + _SIDE)
    k = centre[..., None] + _STEPS
    inside = (k >= low[..., None]) & (k <= high[..., None])
    safe = jnp.where(inside, k, centre[..., None])
    spread = [jnp.broadcast_to(s[..., None], k.shape) for s in shapes]
    logs = family.log_probability(safe, *spread)
    some = inside & (logs > -740.0)
    terms = lax.exp(jnp.where(some, logs, 0.0)) * fun(safe)
    total = jnp.sum(jnp.where(some, terms, 0.0), -1)
    for start, end, more, upper in ((first - 0.5, low - 0.5, first > low, False),
                                    (last + 0.5, high + 0.5, last < high, True)):
        start = jnp.where(more, start, centre)
        end = jnp.where(more, end, centre + (1.0 if upper else -1.0))
        rest = side_mean(fun, family.log_probability, start, end, shapes, upper)
        total = total + jnp.where(more, rest, 0.0)
    return jnp.where(jnp.isnan(centre), math.nan, total)
