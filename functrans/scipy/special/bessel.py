"""Bessel functions of integer orders, and spherical ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.special.bessel_orders import jv_ as _jv
from functrans.scipy.special.common import (
    EULER,
    in_double,
    loop,
    operands,
    over_nodes,
    partials,
    polynomial,
    wide,
)
from functrans.typing import Array, ArrayLike

__all__ = ["bessel_jn", "j0", "j1", "jn", "spherical_jn", "y0", "y1", "yn"]

_FAR: Final = 25.0
"""From where Hankel's asymptotic series is exact for orders 0 and 1."""

_TERMS: Final = 12
_HARMONIC: Final = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 40))])
_SQUARES: Final = [1 / math.factorial(k) ** 2 for k in range(_TERMS)]
_NEXT: Final = [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(_TERMS)]
_Y0_SERIES: Final = [float(_HARMONIC[k]) * c for k, c in enumerate(_SQUARES)]
_Y1_SERIES: Final = [float(_HARMONIC[k] + _HARMONIC[k + 1]) * c for k, c in enumerate(_NEXT)]
# The mean of cos(x sin t) over a circle, by 64 points of it of which 16 differ: exact to J_64(25)
_SINES: Final = np.sin((np.arange(16) + 0.5) * math.pi / 32)


def _hankel(order: int, x: Array) -> tuple[Array, Array]:
    """J and Y of order 0 or 1 for x >= 25 (DLMF 10.17.3)."""
    mu = 4.0 * order * order
    terms = [1.0]
    for k in range(1, 20):
        terms.append(terms[-1] * (mu - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1.0 / jnp.minimum(x, 1e300)
    square = -inverse * inverse
    p = polynomial(square, terms[0::2])
    q = inverse * polynomial(square, terms[1::2])
    # the phase x - pi / 4 (or 3 pi / 4 less), by sums of the sine and cosine of x
    s, c = lax.sin(x), lax.cos(x)
    cosine, sine = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    height = lax.sqrt(inverse / math.pi)
    return height * (p * cosine - q * sine), height * (p * sine + q * cosine)


def _j_value(x: Array, order: int) -> Array:
    size = lax.abs(x)
    far = size >= _FAR
    near = jnp.where(far, 1.0, size)
    if order == 0:
        inner = over_nodes(lambda s, v: lax.cos(v * s), _SINES, 1 / 16, near)
    else:
        inner = over_nodes(lambda s, v: lax.sin(v * s) * s, _SINES, 1 / 16, near)
    place = jnp.where(far & (size < math.inf), size, _FAR)
    value = jnp.where(far, _hankel(order, place)[0], inner)
    value = jnp.where(size == math.inf, 0.0, value)
    return jnp.where(x < 0, -value, value) if order else value


def _first_slope(out: Array, x: Array) -> Array:
    """J_1' = J_0 - J_1 / x, and 1/2 around 0, by J_2 for its own derivatives."""
    return 0.5 * (_j0(x) - _jv(jnp.full_like(x, 2.0), x))


@partials(lambda out, x: -_j1(x))
def _j0(x: Array) -> Array:
    return _j_value(x, 0)


@partials(_first_slope)
def _j1(x: Array) -> Array:
    return _j_value(x, 1)


@wide
def j0(x: Array) -> Array:
    """The Bessel function of the first kind of order 0.

    The mean of cos(x sin t), and Hankel's asymptotic series from 25 on.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.j0(1.0)), 4)
    0.7652
    """
    return _j0(x)


@wide
def j1(x: Array) -> Array:
    """The Bessel function of the first kind of order 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.j1(1.0)), 4)
    0.4401
    """
    return _j1(x)


# The second kind -----------------------------------------------------------------------------


def _y_middle(x: Array) -> tuple[Array, Array]:
    """Y_0 and Y_1 for 2 <= x <= 25 by Neumann's series of J, from a downward recurrence."""
    def step(i: Any, state: Any) -> Any:
        upper, lower, norm, zero, one = state  # J of orders n + 1 and n up to a factor, n even
        n = 64.0 - 2.0 * i.astype(x.dtype)
        before = 2.0 * n / x * lower - upper
        sign = jnp.where(jnp.remainder(0.5 * n, 2.0) == 1, -2.0, 2.0) / n
        next_ = 2.0 * (n - 1.0) / x * before - lower
        return (before, next_, norm + 2.0 * lower, zero + sign * lower,
                one + 0.5 * sign * (before - upper))

    none = jnp.zeros_like(x)
    j1_, j0_, norm, zero, one = lax.fori_loop(
        0, 32, step, (none, jnp.full_like(x, 1e-150), none, none, none))
    norm = norm + j0_
    log = lax.log(0.5 * x) + EULER
    y0_ = (2 / math.pi) * (log * j0_ - 2.0 * zero) / norm
    y1_ = (2 / math.pi) * (log * j1_ - j0_ / x + 2.0 * one) / norm
    return y0_, y1_


def _y_value(x: Array, order: int) -> Array:
    near, far = x < 2.0, x >= _FAR
    z = jnp.where(near & (x > 0), x, 1.0)
    q = -0.25 * z * z
    log = lax.log(0.5 * z) + EULER
    if order == 0:
        small = (2 / math.pi) * (log * polynomial(q, _SQUARES) - polynomial(q, _Y0_SERIES))
    else:
        small = (-2.0 / z + z * (log * polynomial(q, _NEXT)
                                 - 0.5 * polynomial(q, _Y1_SERIES))) / math.pi
    middle = _y_middle(jnp.where(near | far, 2.0, x))[order]
    large = _hankel(order, jnp.where(far & (x < math.inf), x, _FAR))[1]
    value = jnp.where(near, small, jnp.where(far, large, middle))
    value = jnp.where(x == 0, -math.inf, jnp.where(x == math.inf, 0.0, value))
    return jnp.where(x >= 0, value, math.nan)


@partials(lambda out, x: -_y1(x))
def _y0(x: Array) -> Array:
    return _y_value(x, 0)


@partials(lambda out, x: _y0(x) - out / x)
def _y1(x: Array) -> Array:
    return _y_value(x, 1)


@wide
def y0(x: Array) -> Array:
    """The Bessel function of the second kind of order 0; NaN below 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.y0(1.0)), 4)
    0.0883
    """
    return _y0(x)


@wide
def y1(x: Array) -> Array:
    """The Bessel function of the second kind of order 1; NaN below 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.y1(1.0)), 4)
    -0.7812
    """
    return _y1(x)


def _yn_value(n: Array, x: Array) -> Array:
    whole = (n == lax.floor(n)) & (lax.abs(n) < 1e4)
    order = jnp.where(whole, lax.abs(n), 0.0)

    def step(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        return high, 2.0 * i / x * high - low, i + 1.0

    start = (_y0(x), _y1(x), jnp.ones_like(x))
    low, high, _ = loop(step, start, lambda low, high, i: (i < order) & (x > 0) & (
        lax.abs(high) < math.inf), 10_000)
    value = jnp.where(order == 0, low, high)
    value = jnp.where((x > 0) & jnp.isnan(value), -math.inf, value)
    odd = (n < 0) & (jnp.remainder(n, 2.0) == 1)
    return jnp.where(whole, jnp.where(odd, -value, value), math.nan)


@partials(None, lambda out, n, x: 0.5 * (_yn(n - 1.0, x) - _yn(n + 1.0, x)))
def _yn(n: Array, x: Array) -> Array:
    return _yn_value(n, x)


@wide
def yn(n: Array, x: Array) -> Array:
    """The Bessel function of the second kind of integer order n, |n| < 10,000; NaN below 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.yn(2, 1.0)), 4)
    -1.6507
    """
    return _yn(n, x)


# Integer and spherical orders ------------------------------------------------------------------


@wide
def jn(n: Array, x: Array) -> Array:
    """The Bessel function of the first kind of integer order n, |n| < 100,000.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jn(2, 1.0)), 4)
    0.1149
    """
    return _jv(lax.stop_gradient(jnp.where(n == lax.floor(n), n, math.nan)), x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to v, along a new first axis.

    `n_iter` is what JAX's has; the recurrence is as long as it needs to be. Raises ArgumentError
    for a v that is no int >= 0.

    >>> import functrans as ft
    >>> ft.scipy.special.bessel_jn(ft.numpy.ones(3), v=2).shape
    (3, 3)
    """
    if not isinstance(v, (int, np.integer)) or v < 0:
        raise ArgumentError(f"functrans.scipy.special.bessel_jn: the order {v!r} is no int >= 0.",
                            where=user_source())
    (x,) = operands("bessel_jn", z)
    orders = jnp.reshape(jnp.arange(v + 1), (v + 1, *(1,) * x.ndim)).astype(x.dtype)
    xs = operands("bessel_jn", orders, x[None])
    out: Array = in_double(_jv, xs)
    return out


def _spherical(n: Array, z: Array) -> Array:
    size = jnp.where(z < 0, -z, z)
    proper = (size > 0) & (size < math.inf)
    x = jnp.where(proper, size, 1.0)
    value = _jv(n + 0.5, x) * lax.sqrt(0.5 * math.pi / x)
    odd = (z < 0) & (jnp.remainder(n, 2.0) == 1)
    end = jnp.where((z == 0) & (n == 0), 1.0, jnp.where(jnp.isnan(z), math.nan, 0.0))
    value = jnp.where(proper, jnp.where(odd, -value, value), end)
    return jnp.where((n >= 0) & (n == lax.floor(n)), value, math.nan)


def _spherical_slope(n: Array, z: Array) -> Array:
    lower = _spherical_jn(jnp.maximum(n - 1.0, 0.0), z)
    upper = _spherical_jn(n + 1.0, z)
    return jnp.where(n == 0, -upper, (n * lower - (n + 1.0) * upper) / (2.0 * n + 1.0))


_spherical_jn: Callable[..., Array] = partials(
    None, lambda out, n, z: _spherical_slope(n, z))(_spherical)


def spherical_jn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """The spherical Bessel function of the first kind of integer order n >= 0, or its derivative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.spherical_jn(0, 1.0)), 4)
    0.8415
    """
    xs = operands("spherical_jn", n, z)
    out: Array = in_double(_spherical_slope if derivative else _spherical_jn, xs)
    return out
