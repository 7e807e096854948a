"""Bessel functions of the first and second kind, spherical ones, and Airy's functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.special.common import (
    EULER,
    in_double,
    loop,
    operands,
    over_nodes,
    partials,
    polynomial,
    pushed,
    wide,
)
from functrans.typing import Array, ArrayLike

__all__ = ["bessel_jn", "j0", "j1", "jn", "jv", "spherical_jn", "y0", "y1", "yn"]

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


# Real orders of the first kind ---------------------------------------------------------------

_GROWTH: Final = 1e150
_LIMIT: Final = 40_000


def _jv_series(v: Array, x: Array) -> Array:
    """The power series, whose terms hardly cancel for x^2 / 4 < 2 (v + 1)."""
    square = -0.25 * x * x

    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = term * square / (k * (k + v))
        return total + term, term

    one = jnp.ones_like(x)
    total, _ = loop(step, (one, one), lambda total, term: lax.abs(term) > 1e-22, 200)
    return total * lax.exp(v * lax.log(0.5 * x) - lax.lgamma(v + 1.0))


def _jv_hankel(v: Array, x: Array) -> Array:
    mu = 4.0 * v * v

    def step(k: Any, p: Array, q: Array, term: Array) -> tuple[Array, ...]:
        odd = -term * (mu - (4.0 * k - 3.0) ** 2) / (8.0 * (2.0 * k - 1.0) * x)
        even = odd * (mu - (4.0 * k - 1.0) ** 2) / (8.0 * (2.0 * k) * x)
        return p + even, q - odd, even

    one = jnp.ones_like(x)
    p, q, _ = loop(step, (one, jnp.zeros_like(x), one),
                   lambda p, q, term: lax.abs(term) > 1e-18, 30)
    # x less (v / 2 + 1 / 4) pi, by the angle of v alone, which is reduced first
    angle = (0.5 * math.pi) * (jnp.remainder(v, 4.0) + 0.5)
    s, c = lax.sin(x), lax.cos(x)
    cosine = c * lax.cos(angle) + s * lax.sin(angle)
    sine = s * lax.cos(angle) - c * lax.sin(angle)
    return lax.sqrt(2 / (math.pi * x)) * (p * cosine - q * sine)


def _jv_recurrence(v: Array, x: Array) -> Array:
    """Miller's downward recurrence over orders, normalised by DLMF 10.23.15."""
    goal = lax.stop_gradient(jnp.maximum(lax.floor(v), 0.0))
    first = v - goal
    most = lax.stop_gradient(jnp.maximum(x, goal))
    half = lax.floor(0.5 * (most + 24.0 + 9.0 * lax.cbrt(most)))

    def step(k: Any, upper: Array, lower: Array, norm: Array, weight: Array, found: Array,
             i: Array) -> tuple[Array, ...]:
        # lower is of order first + 2 i, of weight (first + 2 i) Gamma(first + i) / i!
        at = first + 2.0 * i
        norm = norm + at * weight * lower
        found = jnp.where(goal == 2.0 * i, lower, found)
        before = 2.0 * at / x * lower - upper
        found = jnp.where(goal == 2.0 * i - 1.0, before, found)
        after = 2.0 * (at - 1.0) / x * before - lower
        weight = weight * i / jnp.where(i > 1, first + i - 1.0, 1.0)
        scale = jnp.where(lax.abs(after) > _GROWTH, 1 / _GROWTH, 1.0)
        return (before * scale, after * scale, norm * scale, weight, found * scale, i - 1.0)

    none = jnp.zeros_like(x)
    start = lax.exp(lax.lgamma(first + half) - lax.lgamma(half + 1.0))
    _, last, norm, _, found, _ = loop(
        step, (none, jnp.full_like(x, 1e-200), none, start, none, half),
        lambda u, lower, n, w, f, i: i > 0, _LIMIT)
    found = jnp.where(goal == 0, last, found)
    norm = norm + last * lax.exp(lax.lgamma(first + 1.0))
    return found / norm * lax.exp(first * lax.log(0.5 * x))


def _jv_value(v: Array, x: Array) -> Array:
    whole = v == lax.floor(v)
    proper = (lax.abs(x) < math.inf) & (x != 0) & (lax.abs(v) < 1e4) \
        & ((x > 0) | whole) & (whole | (v > -1))
    flipped = proper & whole & (v < 0)
    order = jnp.where(proper, jnp.where(flipped, -v, v), 0.0)
    size = jnp.where(proper, jnp.where(x < 0, -x, x), 1.0)
    small = 0.25 * size * size < 2.0 * (order + 1.0)
    large = ~small & (size > _FAR) & (size > 0.5 * order * order + 20.0)
    bounded = ~small & ~large & (size < 3e4)
    value = jnp.where(small, _jv_series(jnp.where(small, order, 0.0), jnp.where(small, size, 1.0)),
                      jnp.where(large, _jv_hankel(jnp.where(large, order, 0.0),
                                                  jnp.where(large, size, 50.0)),
                                _jv_recurrence(jnp.where(bounded, order, 0.0),
                                               jnp.where(bounded, size, 3.0))))
    value = jnp.where(small | large | bounded, value, math.nan)
    odd = whole & (jnp.remainder(v, 2.0) == 1)
    value = jnp.where(odd & (flipped != (x < 0)), -value, value)
    at_zero = jnp.where(v == 0, 1.0, jnp.where((v > 0) | whole, 0.0, math.inf))
    value = jnp.where(proper, value, jnp.where((x == 0) & (lax.abs(v) < 1e4) & (whole | (v > -1)),
                                               at_zero, math.nan))
    return jnp.where((lax.abs(x) == math.inf) & (lax.abs(v) < 1e4), 0.0, value)


def _jv_slope(out: Array, v: Array, x: Array) -> Array:
    """J_v' by two neighbours, or by the upper one where the lower is below order -1."""
    low = (v < 1) & (v != lax.floor(v))
    between = 0.5 * (_jv(jnp.where(low, 1.0, v) - 1.0, x) - _jv(jnp.where(low, 0.0, v) + 1.0, x))
    upper = v / jnp.where(low, x, 1.0) * out - _jv(jnp.where(low, v, 0.0) + 1.0, x)
    return jnp.where(low, upper, between)


_jv: Callable[..., Array] = partials(pushed(_jv_value, 0), _jv_slope)(_jv_value)


@wide
def jv(v: Array, x: Array) -> Array:
    """The Bessel function of the first kind of order v > -1 or of any integer, |v| < 10,000.

    The power series, Miller's recurrence, or Hankel's asymptotic series. NaN for other orders,
    and for x < 0 unless v is an integer.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jv(2, 1.0)), 4)
    0.1149
    """
    return _jv(v, x)


@wide
def jn(n: Array, x: Array) -> Array:
    """The Bessel function of the first kind of integer order n, |n| < 10,000.

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
