"""Derivatives of Bessel functions of any count, and their sequences over orders."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size
from functrans.scipy.special.bessel_orders import (
    hankel1,
    hankel2,
    jv,
    jv_,
    order_and_number,
    yv,
    yv_,
)
from functrans.scipy.special.common import in_double, operands
from functrans.scipy.special.gammas import gammaln
from functrans.scipy.special.modified_bessel import iv, kv
from functrans.typing import Array, ArrayLike

__all__ = ["h1vp", "h2vp", "ivp", "jvp", "kvp", "lmbda", "riccati_jn", "riccati_yn", "yvp"]


# Derivatives -------------------------------------------------------------------------------------


def _derivative(name: str, fun: Callable[..., Array], v: ArrayLike, z: ArrayLike, n: int,
                alternating: bool, sign: float = 1.0) -> Array:
    """The n-th derivative by the orders beside v (DLMF 10.6.7 and 10.29.5), in one call."""
    count = known_size(f"special.{name}", "n", n, 0)
    order, x, narrow = order_and_number(name, v, z)
    k = np.arange(count + 1)
    weights = np.array([math.comb(count, int(i)) for i in k]) * (sign / 2.0) ** count
    if alternating:
        weights = weights * (-1.0) ** k
    column = (count + 1, *(1,) * x.ndim)
    orders = order[None] + np.reshape(2.0 * k - count, column)
    values = fun(orders, jnp.broadcast_to(x[None], orders.shape))
    found: Array = jnp.sum(values * np.reshape(weights, column), 0)
    if found.dtype != np.complex128:
        return found.astype(narrow)
    return found.astype(np.complex128 if narrow in (np.float64, np.complex128) else np.complex64)


def jvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the Bessel function of the first kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jvp(0, 1.0)), 4)
    -0.4401
    """
    return _derivative("jvp", jv, v, z, n, True)


def yvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the Bessel function of the second kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.yvp(0, 1.0)), 4)
    0.7812
    """
    return _derivative("yvp", yv, v, z, n, True)


def h1vp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of Hankel's function of the first kind of order v; complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.h1vp(0, 1.0).imag), 4)
    0.7812
    """
    return _derivative("h1vp", hankel1, v, z, n, True)


def h2vp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of Hankel's function of the second kind of order v; complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.h2vp(0, 1.0).imag), 4)
    -0.7812
    """
    return _derivative("h2vp", hankel2, v, z, n, True)


def ivp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the modified Bessel function of the first kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ivp(0, 1.0)), 4)
    0.5652
    """
    return _derivative("ivp", iv, v, z, n, False)


def kvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """The n-th derivative in z of the modified Bessel function of the second kind of order v.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kvp(0, 1.0)), 4)
    -0.6019
    """
    return _derivative("kvp", kv, v, z, n, False, -1.0)


# Sequences ---------------------------------------------------------------------------------------


def _rows(first: float, count: int, x: Array) -> tuple[Array, Array]:
    """The orders first + 0 to count - 1 along a new first axis, and x beside them."""
    orders = jnp.reshape(jnp.arange(count, dtype=np.float64) + first,
                         (count, *(1,) * x.ndim)) + jnp.zeros_like(x)[None]
    return orders, jnp.broadcast_to(x[None], orders.shape)


def lmbda(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """Jahnke and Emden's Lambda functions Gamma(v + 1) (2 / x)^v J_v(x), and their derivatives.

    Of the orders v - floor(v), ... v along a new first axis. Raises ArgumentError for a v that is
    no known number >= 0.

    >>> import functrans as ft
    >>> value, slope = ft.scipy.special.lmbda(1, 2.0)
    >>> [round(float(y), 4) for y in value]
    [0.2239, 0.5767]
    """
    if not isinstance(v, (int, float, np.floating, np.integer)) or not 0 <= v < 1e4:
        raise ArgumentError(f"scipy.special.lmbda: v is {v!r}.", where=user_source(),
                            why="it is the largest order, a known number from 0 on: it says how "
                            "many there are.", fix="v=2.5")
    count = math.floor(v) + 1

    def both(x: Array) -> tuple[Array, Array]:
        order, z = _rows(float(v) - math.floor(v), count + 1, x)
        size = lax.abs(z)
        near = size < 1e-3
        safe = jnp.where(near, 1.0, size)
        far = jv_(order, safe) * lax.exp(gammaln(order + 1.0) - order * lax.log(0.5 * safe))
        value = jnp.where(near, 1.0 - 0.25 * z * z / (order + 1.0), far)
        return value[:-1], -0.5 * z[:-1] / (order[:-1] + 1.0) * value[1:]

    found: tuple[Array, Array] = in_double(both, operands("lmbda", x))
    return found


def _riccati(name: str, n: int, x: ArrayLike, second: bool) -> tuple[Array, Array]:
    count = known_size(f"special.{name}", "n", n, 0) + 1

    def both(x: Array) -> tuple[Array, Array]:
        order, z = _rows(0.0, count + 1, x)
        size = lax.abs(z)
        safe = jnp.where(size == 0, 1.0, size)
        value = lax.sqrt(0.5 * math.pi * safe) * (yv_ if second else jv_)(order + 0.5, safe)
        zero = jnp.where(order == 0, -1.0, -math.inf) if second else 0.0
        value = jnp.where(size == 0, zero, value)
        odd = jnp.remainder(order, 2.0) == 1
        value = jnp.where((z < 0) & (odd if second else ~odd), -value, value)
        # (k + 1) f_(k-1) less k f_(k+1), over 2 k + 1 (DLMF 10.51.1)
        below = jnp.concatenate([(lax.sin(x) if second else lax.cos(x))[None], value[:-2]])
        k = order[:-1]
        slope = ((k + 1.0) * below - jnp.where(k == 0, 0.0, k) * jnp.where(
            k == 0, 0.0, value[1:])) / (2.0 * k + 1.0)
        if second:
            slope = jnp.where((size[:-1] == 0) & (k > 0), math.inf, slope)
        return value[:-1], slope

    found: tuple[Array, Array] = in_double(both, operands(name, x))
    return found


def riccati_jn(n: int, x: ArrayLike) -> tuple[Array, Array]:
    """x times the spherical Bessel functions of the first kind, orders 0 to n, and the derivatives.

    The orders are along a new first axis.

    >>> import functrans as ft
    >>> value, slope = ft.scipy.special.riccati_jn(1, 1.0)
    >>> [round(float(y), 4) for y in value]
    [0.8415, 0.3012]
    """
    return _riccati("riccati_jn", n, x, False)


def riccati_yn(n: int, x: ArrayLike) -> tuple[Array, Array]:
    """x times the spherical Bessel functions of the second kind, orders 0 to n, and derivatives.

    The orders are along a new first axis.

    >>> import functrans as ft
    >>> value, slope = ft.scipy.special.riccati_yn(1, 1.0)
    >>> [round(float(y), 4) for y in value]
    [-0.5403, -1.3818]
    """
    return _riccati("riccati_yn", n, x, True)
