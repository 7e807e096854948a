"""The distance between neighbouring floats."""

from __future__ import annotations

import numpy as np

from functrans import lax
from functrans.numpy.ufuncs import unary
from functrans.typing import Array

__all__ = ["spacing"]


def _spacing(x: Array) -> Array:
    x = lax.stop_gradient(x)  # a step function
    away = lax.full_like(x, np.inf)
    if x.dtype == np.float16:
        return lax.sub(lax.nextafter(x, away), x)
    away = lax.select_n(lax.lt(x, lax.full_like(x, 0)), away, lax.neg(away))
    return lax.sub(lax.nextafter(x, away), x)


spacing = unary("spacing", _spacing, """The next number away from zero less x.

    >>> import functrans.numpy as jnp
    >>> float(jnp.spacing(1.0)) == float(jnp.finfo("float32").eps)
    True
    """, None, kinds="f")
