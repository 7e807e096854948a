"""What the distributions share."""

from __future__ import annotations

import math

from functrans import numpy as fnp
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.typing import Array, ArrayLike


def promoted(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments in one floating dtype and one shape."""
    xs = [operand(f"scipy.stats.{name}", x)
          for x in promote_dtypes_inexact(f"scipy.stats.{name}", *args)]
    return broadcast_all(f"scipy.stats.{name}", *xs)


def positive(x: Array) -> Array:
    """x, and NaN unless it is above 0: a parameter, as SciPy takes it."""
    return fnp.where(x > 0, x, math.nan)


def standard(x: Array, loc: Array, scale: Array) -> Array:
    """(x - loc) / scale, and NaN for a scale that is not above 0."""
    return (x - loc) / positive(scale)


def supported(inside: Array, value: Array, otherwise: float, *known: Array) -> Array:
    """value where inside the support, else a constant; NaN where any of the `known` is NaN."""
    found = fnp.where(inside, value, otherwise)
    for x in known:
        found = fnp.where(x == x, found, math.nan)
    return found


def between(q: Array) -> Array:
    """q, and NaN unless it is a probability."""
    return fnp.where((q >= 0) & (q <= 1), q, math.nan)
