"""Jacobi's elliptic functions of real arguments."""

from __future__ import annotations

import math
from typing import Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import in_double, operands, partials
from functrans.scipy.special.elliptic import first_kind_in_m
from functrans.typing import Array, ArrayLike

__all__ = ["ellipj"]

_MEANS: Final = 9  # of 1 and 1e-8, which is the root of the least 1 - m, the seventh is exact


def _delta(phi: Array, m: Array) -> Array:
    """sqrt(1 - m sin^2 phi), without a difference."""
    cosine = lax.cos(phi)
    return lax.sqrt((1.0 - m) + m * cosine * cosine)


@partials(lambda phi, u, m: _delta(phi, m),
          lambda phi, u, m: -_delta(phi, m) * first_kind_in_m(u, phi, m))
def _amplitude(u: Array, m: Array) -> Array:
    """phi with F(phi, m) = u, by descending Landen transformations (DLMF 22.20.2)."""
    proper = (m >= 0) & (m < 1)
    safe = jnp.where(proper, m, 0.0)
    a, b = jnp.ones_like(u), lax.sqrt(1.0 - safe)
    ratios = []
    for _ in range(_MEANS):
        a, b, c = 0.5 * (a + b), lax.sqrt(a * b), 0.5 * (a - b)
        ratios.append(c / a)
    phi = 2.0**_MEANS * a * u
    for ratio in reversed(ratios):
        phi = 0.5 * (phi + lax.asin(ratio * lax.sin(phi)))
    gudermannian = 2.0 * lax.atan(lax.tanh(0.5 * u))
    return jnp.where(proper, phi, jnp.where(m == 1, gudermannian, math.nan))


def _functions(u: Array, m: Array) -> tuple[Array, Array, Array, Array]:
    phi = _amplitude(u, m)
    return lax.sin(phi), lax.cos(phi), _delta(phi, m), phi


def ellipj(u: ArrayLike, m: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Jacobi's sn, cn, dn and the amplitude of u, for the parameter 0 <= m <= 1; else NaN.

    The amplitude has derivatives in u and m, which those of the functions follow from. Raises
    DTypeError for complex numbers.

    >>> import functrans as ft
    >>> [round(float(y), 4) for y in ft.scipy.special.ellipj(1.0, 0.5)]
    [0.803, 0.596, 0.8232, 0.9323]
    """
    found: tuple[Array, Array, Array, Array] = in_double(_functions, operands("ellipj", u, m))
    return found
