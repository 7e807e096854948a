"""Airy functions of real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.bessel_orders import jv
from functrans.scipy.special.common import in_double, operands, partials
from functrans.scipy.special.modified_bessel import iv, ive, kv, kve
from functrans.typing import Array, ArrayLike

__all__ = ["airy", "airye"]

_THIRD: Final = 1.0 / 3.0
_AT_0: Final = 0.355028053887817239      # Ai(0), which is Bi(0) / sqrt(3)
_SLOPE_AT_0: Final = 0.258819403792806798  # -Ai'(0), which is Bi'(0) / sqrt(3)
_TERMS: Final = 8  # of 1 at |x| = 1 the eighth leaves 1e-22


def _around_0(x: Array, derivative: bool) -> tuple[Array, Array]:
    """The solutions of y'' = x y that begin as 1 and x, or their derivatives (DLMF 9.4)."""
    cube = x * x * x
    even, odd = jnp.ones_like(x), jnp.ones_like(x)
    first, second = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(_TERMS):
        n = 3 * k
        if derivative:
            first, second = first + n * even, second + (n + 1) * odd
        else:
            first, second = first + even, second + odd
        even, odd = even * cube / ((n + 2) * (n + 3)), odd * cube / ((n + 3) * (n + 4))
    if derivative:
        return first / jnp.where(x == 0, 1.0, x), second
    return first, second * x


def _value(x: Array, derivative: bool, second_kind: bool, scaled: bool) -> Array:
    """One of the four by Bessel functions of a third and two thirds (DLMF 9.6), and around 0."""
    near = lax.abs(x) <= 1
    finite = lax.abs(x) < math.inf
    size = jnp.where(near | ~finite, 1.0, lax.abs(x))
    root = lax.sqrt(size)
    zeta = 2.0 * _THIRD * size * root
    order = jnp.full_like(x, 2.0 * _THIRD if derivative else _THIRD)
    sign = 1.0 if second_kind or not derivative else -1.0
    weight = size if derivative else root
    if second_kind:
        grown = (ive if scaled else iv)(order, zeta) + (ive if scaled else iv)(-order, zeta)
        above = weight / math.sqrt(3.0) * grown
        low, high = jv(-order, zeta), jv(order, zeta)
        below = weight / math.sqrt(3.0) * (low + high if derivative else low - high)
    else:
        above = sign * weight / (math.pi * math.sqrt(3.0)) * (kve if scaled else kv)(order, zeta)
        below = _THIRD * weight * (jv(order, zeta) + sign * jv(-order, zeta))
    even, odd = _around_0(jnp.where(near, x, 0.0), derivative)
    around = _AT_0 * even - _SLOPE_AT_0 * odd
    if second_kind:
        around = math.sqrt(3.0) * (_AT_0 * even + _SLOPE_AT_0 * odd)
    if scaled:
        small = jnp.where(near & (x > 0), x, 0.0)
        exponent = 2.0 * _THIRD * small * lax.sqrt(jnp.where(small > 0, small, 1.0))
        around = around * lax.exp(-exponent if second_kind else exponent)
        if not second_kind:  # SciPy's too: the scale is that of x > 0
            below = jnp.full_like(below, math.nan)
            around = jnp.where(x < 0, math.nan, around)
    value = jnp.where(near, around, jnp.where(x > 0, above, below))
    ends = jnp.where(x > 0, math.inf if second_kind and not scaled else 0.0,
                     math.nan if derivative else 0.0)
    return jnp.where(finite, value, jnp.where(x == x, ends, math.nan))


def _pair(second_kind: bool) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """A function and its derivative, each of which is the other's: y'' = x y."""
    @partials(lambda out, x: slope(x))
    def value(x: Array) -> Array:
        return _value(x, False, second_kind, False)

    @partials(lambda out, x: x * value(x))
    def slope(x: Array) -> Array:
        return _value(x, True, second_kind, False)

    return value, slope


def _scaled_pair(second_kind: bool) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """The same times exp(-+2/3 x^(3/2)), whose derivative is -+sqrt(x), for x > 0."""
    sign = -1.0 if second_kind else 1.0

    def rate(x: Array) -> Array:
        return sign * jnp.where(x > 0, lax.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)

    @partials(lambda out, x: slope(x) + rate(x) * out)
    def value(x: Array) -> Array:
        return _value(x, False, second_kind, True)

    @partials(lambda out, x: x * value(x) + rate(x) * out)
    def slope(x: Array) -> Array:
        return _value(x, True, second_kind, True)

    return value, slope


_PLAIN: Final = (*_pair(False), *_pair(True))
_SCALED: Final = (*_scaled_pair(False), *_scaled_pair(True))


def airy(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Ai, Ai', Bi and Bi' of real numbers: the solutions of y'' = z y, and their derivatives.

    By Bessel functions of orders 1/3 and 2/3 (DLMF 9.6), and by the power series around 0. Raises
    DTypeError for complex numbers.

    >>> import functrans as ft
    >>> [round(float(y), 4) for y in ft.scipy.special.airy(1.0)]
    [0.1353, -0.1591, 1.2074, 0.9324]
    """
    found: tuple[Array, Array, Array, Array] = in_double(
        lambda x: tuple(f(x) for f in _PLAIN), operands("airy", z))
    return found


def airye(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """`airy` without its growth: Ai and Ai' times exp(2/3 z^(3/2)), Bi and Bi' by it, for z > 0.

    Below 0 the first two are NaN, and the others those of `airy`, as SciPy has them.

    >>> import functrans as ft
    >>> [round(float(y), 3) for y in ft.scipy.special.airye(100.0)]
    [0.089, -0.892, 0.178, 1.784]
    """
    found: tuple[Array, Array, Array, Array] = in_double(
        lambda x: tuple(f(x) for f in _SCALED), operands("airye", z))
    return found
