"""Elements that are missing from samples: the policies for NaN."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_values, one_of
from functrans.typing import Array, ArrayLike

__all__ = ["Lines", "check_policy", "count", "present", "refuse_missing", "weighed"]

POLICIES = ("propagate", "omit", "raise")


def present(name: str, x: Array, nan_policy: str) -> tuple[Array, Array | None]:
    """x, and under "omit" the mask of what counts, with 0 elsewhere; None where all counts.

    Under "raise" a NaN is an ArgumentError, which values are needed for: under `jit` it is one too.
    """
    check_policy(name, nan_policy)
    if nan_policy == "omit":
        mask = ~jnp.isnan(x)
        return jnp.where(mask, x, 0), mask
    if nan_policy == "raise":
        refuse_missing(name, x)
    return x, None


def check_policy(name: str, nan_policy: str) -> None:
    """Raise ArgumentError for a policy that is not known."""
    one_of(f"stats.{name}", "nan_policy", nan_policy, POLICIES)


def refuse_missing(name: str, x: Array) -> None:
    """Raise ArgumentError where a known sample has a NaN, or where it is traced."""
    value = known_values(f"stats.{name}", 'a sample of nan_policy="raise"', x,
                         "whether there is a NaN depends on its values.",
                         'nan_policy="propagate", and ft.checked around the program')
    if np.isnan(value).any():
        raise ArgumentError(f"scipy.stats.{name}: the sample has a NaN.", where=user_source(),
                            why='nan_policy is "raise".', fix='nan_policy="omit"')


def count(x: Array, axis: int, mask: Array | None) -> Array:
    """How many elements count along an axis."""
    if mask is None:
        return jnp.full((), x.shape[axis], x.dtype)
    return jnp.sum(mask, axis).astype(x.dtype)


def weighed(x: Array, weights: ArrayLike | None, nan_policy: str
            ) -> tuple[Array, ArrayLike | None]:
    """x and its weights, under "omit" with 1 and a weight of 0 where a NaN is."""
    if nan_policy != "omit":
        return x, weights
    own = jnp.ones_like(x) if weights is None else jnp.broadcast_to(
        jnp.asarray(weights).astype(x.dtype), x.shape)
    there = ~(jnp.isnan(x) | jnp.isnan(own))
    return jnp.where(there, x, 1), jnp.where(there, own, 0)


@dataclasses.dataclass(frozen=True)
class Lines:
    """Reductions along the last axis, of all elements or of those that are no NaN."""

    omit: bool

    def size(self, x: Array) -> Any:
        """How many there are: an int where all count."""
        return jnp.sum(~jnp.isnan(x), -1).astype(x.dtype) if self.omit else x.shape[-1]

    def sum(self, x: Array) -> Array:
        """The sum."""
        return jnp.nansum(x, -1) if self.omit else jnp.sum(x, -1)

    def mean(self, x: Array, keepdims: bool = False) -> Array:
        """The mean."""
        return (jnp.nanmean if self.omit else jnp.mean)(x, -1, keepdims=keepdims)

    def median(self, x: Array, keepdims: bool = False) -> Array:
        """The median."""
        return (jnp.nanmedian if self.omit else jnp.median)(x, -1, keepdims=keepdims)

    def var(self, x: Array, ddof: int) -> Array:
        """The variance."""
        return (jnp.nanvar if self.omit else jnp.var)(x, -1, ddof=ddof)
