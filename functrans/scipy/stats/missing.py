"""Elements that are missing from samples: the policies for NaN."""

from __future__ import annotations

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.typing import Array

__all__ = ["count", "present"]

POLICIES = ("propagate", "omit", "raise")


def present(name: str, x: Array, nan_policy: str) -> tuple[Array, Array | None]:
    """x, and under "omit" the mask of what counts, with 0 elsewhere; None where all counts.

    Under "raise" a NaN is an ArgumentError, which values are needed for: not under `jit`.
    """
    one_of(f"stats.{name}", "nan_policy", nan_policy, POLICIES)
    if nan_policy == "omit":
        mask = ~jnp.isnan(x)
        return jnp.where(mask, x, 0), mask
    if nan_policy == "raise" and bool(jnp.any(jnp.isnan(x))):
        raise ArgumentError(f"scipy.stats.{name}: the sample has a NaN.", where=user_source(),
                            why='nan_policy is "raise".', fix='nan_policy="omit"')
    return x, None


def count(x: Array, axis: int, mask: Array | None) -> Array:
    """How many elements count along an axis."""
    if mask is None:
        return jnp.full((), x.shape[axis], x.dtype)
    return jnp.sum(mask, axis).astype(x.dtype)
