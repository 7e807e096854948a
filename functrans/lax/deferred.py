"""Functions of jax.lax that are composed above this package, and imported when first called."""

from __future__ import annotations

import importlib

from functrans.typing import Array, ArrayLike

__all__ = ["betainc"]


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function; see `scipy.special.betainc`.

    >>> import functrans as ft
    >>> round(float(ft.lax.betainc(1.0, 1.0, 0.25)), 6)
    0.25
    """
    found: Array = importlib.import_module("functrans.scipy.special").betainc(a, b, x)
    return found
