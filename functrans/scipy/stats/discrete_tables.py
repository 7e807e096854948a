"""Generators of whole numbers from tables of their probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, explain_missing_names, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.arguments import inexact, known_values
from functrans.scipy.stats.generators import (
    CalledBack,
    UniversalGenerator,
    UNURANError,
    domain_of,
)
from functrans.typing import Array, ArrayLike

__all__ = ["DiscreteAliasUrn", "DiscreteGuideTable"]


def _probabilities(name: str, dist: Any, domain: Any) -> tuple[np.ndarray[Any, Any], int]:
    """The probabilities of consecutive numbers, and the first of these."""
    if callable(getattr(dist, "pmf", None)):
        low, high = domain_of(name, dist, domain)
        if math.isinf(low) or math.isinf(high):
            raise ArgumentError(f"scipy.stats.sampling.{name}: the domain is {(low, high)}.",
                                where=user_source(), why="a table is of finitely many numbers.",
                                fix="domain=(0, 10)")
        p = CalledBack(dist.pmf)(np.arange(int(low), int(high) + 1))
        first = int(low)
    else:
        p = known_values(f"stats.sampling.{name}", "dist", dist, "tables are made of its values.",
                         "make the generator outside of jit")
        p = p.astype(np.float64) if p.dtype.kind in "biuf" else np.zeros(0)
        first = 0 if domain is None else int(domain[0])
    if p.ndim != 1 or len(p) == 0 or not np.all(np.isfinite(p)) or not np.any(p):
        raise ArgumentError(f"scipy.stats.sampling.{name}: the probabilities are {shown(p)}.",
                            where=user_source(), why="they are a vector of finite numbers, of "
                            "which one is not 0.")
    if np.any(p < 0):
        raise UNURANError(f"scipy.stats.sampling.{name}: a probability is negative.",
                          where=user_source())
    return p / np.sum(p), first


@register_pytree_node_class
class DiscreteAliasUrn(UniversalGenerator):
    """Draws of whole numbers from urns of two numbers each, with two reads for a draw.

    Raises UNURANError for negative probabilities. Source: Walker, 1977; Vose, 1991.

    >>> from functrans.scipy.stats import sampling
    >>> made = sampling.DiscreteAliasUrn([0.0, 1.0, 0.0], domain=(5, 8), random_state=0)
    >>> made.rvs(3).tolist()
    [6, 6, 6]
    """

    def __init__(self, dist: Any, *, domain: Any = None, urn_factor: float = 1,
                 random_state: Any = None) -> None:
        if not urn_factor >= 1:
            raise ArgumentError(f"scipy.stats.sampling.DiscreteAliasUrn: urn_factor is "
                                f"{shown(urn_factor)}.", where=user_source(), why="it is >= 1.")
        p, first = _probabilities("DiscreteAliasUrn", dist, domain)
        n = max(len(p), int(len(p) * urn_factor))
        part = np.concatenate([p, np.zeros(n - len(p))]) * n
        alias = np.arange(n)
        small, large = list(np.flatnonzero(part < 1)), list(np.flatnonzero(part >= 1))
        while small and large:
            one, other = small.pop(), large[-1]
            alias[one] = other
            part[other] -= 1 - part[one]
            if part[other] < 1:
                small.append(large.pop())
        # what rounding left over is full, but a number of probability 0 is never drawn
        most = int(np.argmax(p))
        for k in small:
            alias[k] = most
        super().__init__(None, {"part": part, "alias": alias, "first": np.array(first)},
                         random_state)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        t = self._tables
        one, two = random.split(key)
        i = random.randint(one, shape, 0, t["part"].shape[0])
        full = random.uniform(two, shape, np.float64) < t["part"][i]
        whole: Array = jnp.where(full, i.astype(t["alias"].dtype), t["alias"][i]) + t["first"]
        return whole


@register_pytree_node_class
class DiscreteGuideTable(UniversalGenerator):
    """Draws of whole numbers by inversion: the quantiles of a table of sums of probabilities.

    The table is searched by bisection, which `guide_factor` does not change. Raises UNURANError
    for negative probabilities. Source: Chen and Asau, 1974.

    >>> from functrans.scipy.stats import sampling
    >>> made = sampling.DiscreteGuideTable([0.25, 0.25, 0.5], random_state=0)
    >>> made.ppf([0.25, 0.375, 1.0]).tolist()
    [0.0, 1.0, 2.0]
    """

    def __init__(self, dist: Any, *, domain: Any = None, guide_factor: float = 1,
                 random_state: Any = None) -> None:
        if not guide_factor >= 0:
            raise ArgumentError(f"scipy.stats.sampling.DiscreteGuideTable: guide_factor is "
                                f"{shown(guide_factor)}.", where=user_source(), why="it is >= 0.")
        p, first = _probabilities("DiscreteGuideTable", dist, domain)
        sums = np.cumsum(p)
        sums[np.flatnonzero(p)[-1]:] = 1.0
        super().__init__(None, {"sums": sums, "first": np.array(first)}, random_state)

    def ppf(self, u: ArrayLike) -> Array:
        """The quantiles of u, one less than the first number of 0; NaN outside of [0, 1]."""
        (p,) = inexact(u)
        y = p.astype(np.float64)
        k = jnp.searchsorted(self._tables["sums"], y) + self._tables["first"]
        k = jnp.where(y == 0, self._tables["first"] - 1, k).astype(p.dtype)
        return jnp.where((y >= 0) & (y <= 1), k, math.nan)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        u = random.uniform(key, shape, np.float64)
        k = jnp.searchsorted(self._tables["sums"], u, side="right")
        whole: Array = (k + self._tables["first"]).astype(dtypes.default_int())
        return whole


explain_missing_names(globals())
