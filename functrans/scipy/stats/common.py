"""What the distributions share."""

from __future__ import annotations

from typing import Any

from functrans import numpy as fnp
from functrans.numpy.common import Array, ArrayLike, broadcast_all, operand, promote_dtypes_inexact


def promoted(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments in one floating dtype and one shape."""
    xs = [operand(f"scipy.stats.{name}", x)
          for x in promote_dtypes_inexact(f"scipy.stats.{name}", *args)]
    return broadcast_all(f"scipy.stats.{name}", *xs)


def outside(inside: Any, value: Array, otherwise: float) -> Array:
    """value where inside, else a constant."""
    return fnp.where(inside, value, otherwise)
