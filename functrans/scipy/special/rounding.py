"""SciPy's `round`, in a module of its own: it hides Python's."""

from __future__ import annotations

from functrans import numpy as jnp
from functrans.scipy.special.common import elementwise
from functrans.typing import Array

__all__ = ["round"]


@elementwise
def round(x: Array) -> Array:
    """The nearest whole number, as a floating one; of halves the even one.

    >>> import functrans as ft
    >>> float(ft.scipy.special.round(2.5))
    2.0
    """
    return jnp.round(x)
