"""Parabolic cylinder functions D, V and W, of real numbers, and D of complex ones (DLMF 12)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy.special.common import in_double, operands
from functrans.scipy.special.confluent import hyperu_
from functrans.scipy.special.cylinder import sin_pi
from functrans.scipy.special.faddeeva import wofz
from functrans.scipy.special.gammas import rgamma
from functrans.scipy.special.solutions import Pair, carried, solution
from functrans.typing import Array, ArrayLike

__all__ = ["pbdn_seq", "pbdv", "pbdv_seq", "pbvv", "pbvv_seq", "pbwa"]

_MOST: Final = 1000.0


def _grown(a: Array, x: Array, value: Array, slope: Array, sign: float) -> Pair:
    """The solution of y'' = (sign x^2 / 4 + a) y of its value and slope at 0."""
    def equation(x: Array) -> tuple[list[Any], list[Any], list[Any]]:
        w = [a + (0.25 * sign) * x * x, (0.5 * sign) * x, jnp.full_like(x, 0.25 * sign)]
        return [jnp.ones_like(x)], [], w

    def reach(x: Array) -> Array:
        return 2.0 / lax.sqrt(1.0 + lax.abs(a) + 0.25 * x * x)

    return carried(equation, jnp.zeros_like(x), value, slope, x, reach)


def _by_tricomi(v: Array, x: Array) -> Array:
    """D_v of x > 0 by Tricomi's function (12.7.14)."""
    half = 0.5 * x * x
    size = lax.exp(0.5 * v * math.log(2.0) - 0.5 * half)
    return size * hyperu_(-0.5 * v, jnp.full_like(v, 0.5), half)


def _at_0(v: Array) -> Pair:
    """D_v(0) and D_v'(0) (12.2.6, 12.2.7)."""
    value = lax.exp(0.5 * v * math.log(2.0)) * math.sqrt(math.pi) * rgamma(0.5 - 0.5 * v)
    slope = lax.exp(0.5 * (v + 1.0) * math.log(2.0)) * math.sqrt(math.pi) * rgamma(-0.5 * v)
    return value, -slope


def _pbdv_raw(v: Array, x: Array) -> Pair:
    valid = (lax.abs(v) < _MOST) & (x == x)
    some = valid & (lax.abs(x) < math.inf)
    order, place = jnp.where(some, v, 0.5), jnp.where(some, x, 1.0)
    whole = (order == lax.floor(order)) & (order >= 0)
    # D of whole orders is even or odd; of others that of x < 0 grows from 0 on
    by_tail = (place > 0) | (whole & (place < 0))
    size = jnp.where(by_tail, lax.abs(place), 1.0)
    both = _by_tricomi(jnp.stack([order, order - 1.0]), jnp.stack([size, size]))
    value, slope = both[0], order * both[1] - 0.5 * size * both[0]
    odd = jnp.remainder(order, 2.0) == 1
    turned = place < 0
    value = jnp.where(turned & odd, -value, value)
    slope = jnp.where(turned & ~odd, -slope, slope)
    # at 0 the derivative of the order is that of the gamma functions
    back = jnp.where(by_tail, 0.0, place)
    first, rise = _at_0(order)
    low, low_slope = _grown(-order - 0.5, back, first, rise, 1.0)
    value, slope = jnp.where(by_tail, value, low), jnp.where(by_tail, slope, low_slope)
    end = jnp.where(valid & (x == math.inf), 0.0, math.nan)
    return jnp.where(some, value, end), jnp.where(some, slope, end)


_pbdv = solution(_pbdv_raw, lambda value, slope, v, x: (0.25 * x * x - v - 0.5) * value)


def pbdv(v: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The parabolic cylinder function D_v(x) of real order, |v| < 1000, and its derivative.

    By Tricomi's function for x > 0, and from 0 on by Taylor's series of its equation below.

    >>> import functrans as ft
    >>> [round(float(y), 4) for y in ft.scipy.special.pbdv(1.5, 2.0)]
    [0.9465, -0.1455]
    """
    found: Pair = in_double(_pbdv, operands("pbdv", v, x))
    return found


def _pbvv_raw(v: Array, x: Array) -> Pair:
    some = (lax.abs(v) < _MOST) & (lax.abs(x) < math.inf)
    order, place = jnp.where(some, v, 0.5), jnp.where(some, x, 1.0)
    a = -order - 0.5
    # 12.2.8 and 12.2.9
    value = lax.exp((0.5 * a + 0.25) * math.log(2.0)) * sin_pi(0.75 - 0.5 * a) * rgamma(
        0.75 - 0.5 * a)
    slope = lax.exp((0.5 * a + 0.75) * math.log(2.0)) * sin_pi(0.25 - 0.5 * a) * rgamma(
        0.25 - 0.5 * a)
    value, slope = _grown(a, place, value, slope, 1.0)
    return jnp.where(some, value, math.nan), jnp.where(some, slope, math.nan)


_pbvv = solution(_pbvv_raw, lambda value, slope, v, x: (0.25 * x * x - v - 0.5) * value)


def pbvv(v: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The parabolic cylinder function V_v(x), V(-v - 1/2, x) of DLMF, and its derivative.

    From 0 on by Taylor's series of its equation.

    >>> import functrans as ft
    >>> [round(float(y), 4) for y in ft.scipy.special.pbvv(1.5, 2.0)]
    [0.2105, 0.8106]
    """
    found: Pair = in_double(_pbvv, operands("pbvv", v, x))
    return found


def _log_gamma_size(x: float, y: Array) -> Array:
    """log |Gamma(x + i y)| for x > 0, by Stirling's series from x + 12 on."""
    shift = 12
    low = jnp.zeros_like(y)
    for k in range(shift):
        low = low + 0.5 * lax.log((x + k) ** 2 + y * y)
    big = x + shift
    angle = lax.atan2(y, jnp.full_like(y, big))
    log = 0.5 * lax.log(big * big + y * y)
    total = (big - 0.5) * log - y * angle - big + 0.5 * math.log(2 * math.pi)
    for k, c in enumerate((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)):
        n = 2 * k + 1
        total = total + c * lax.exp(-n * log) * lax.cos(n * angle)
    return total - low


def _pbwa_raw(a: Array, x: Array) -> Pair:
    some = (lax.abs(a) < 100.0) & (lax.abs(x) < 1000.0)
    order, place = jnp.where(some, a, 0.5), jnp.where(some, x, 1.0)
    apart = 0.5 * (_log_gamma_size(0.25, 0.5 * order) - _log_gamma_size(0.75, 0.5 * order))
    value, slope = 2.0**-0.75 * lax.exp(apart), -(2.0**-0.25) * lax.exp(-apart)
    value, slope = _grown(order, place, value, slope, -1.0)
    return jnp.where(some, value, math.nan), jnp.where(some, slope, math.nan)


_pbwa = solution(_pbwa_raw, lambda value, slope, a, x: (a - 0.25 * x * x) * value)


def pbwa(a: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The parabolic cylinder function W(a, x), |a| < 100 and |x| < 1000, and its derivative.

    From 0 on by Taylor's series of y'' = (a - x^2 / 4) y; of x > 0 and a > 0, where W falls, it
    loses exp(pi a) of its digits.

    >>> import functrans as ft
    >>> [round(float(y), 4) for y in ft.scipy.special.pbwa(1.5, 2.0)]
    [0.0977, -0.0682]
    """
    found: Pair = in_double(_pbwa, operands("pbwa", a, x))
    return found


# Sequences -------------------------------------------------------------------------------------


def _orders(name: str, v: Any, x: ArrayLike, fun: Any) -> Pair:
    if not isinstance(v, (int, float, np.integer, np.floating)) or not abs(float(v)) < _MOST:
        raise ArgumentError(f"scipy.special.{name}: v is {v!r}.", where=user_source(),
                            why="it is the last order, a known number: it says how many there "
                            "are.", fix="v=2.5")
    last = float(v)
    count = int(last)
    orders = last - count + (-1.0 if count < 0 else 1.0) * np.arange(abs(count) + 1.0)

    def rows(x: Array) -> Pair:
        column = jnp.asarray(orders.reshape(-1, *(1,) * x.ndim)) + jnp.zeros_like(x)[None]
        found: Pair = fun(column, jnp.broadcast_to(x[None], column.shape))
        return found

    found: Pair = in_double(rows, operands(name, x))
    return found


def pbdv_seq(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """D of the orders v - int(v) to v in whole steps, and its derivatives, along a new first axis.

    >>> import functrans as ft
    >>> print(ft.scipy.special.pbdv_seq(1.5, 1.0)[0].round(4))
    [0.8422 0.5157]
    """
    return _orders("pbdv_seq", v, x, _pbdv)


def pbvv_seq(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """V of the orders v - int(v) to v in whole steps, and its derivatives, along a new first axis.

    >>> import functrans as ft
    >>> print(ft.scipy.special.pbvv_seq(1.5, 1.0)[0].round(4))
    [ 0.22   -0.5418]
    """
    return _orders("pbvv_seq", v, x, _pbvv)


def pbdn_seq(n: int, z: ArrayLike) -> tuple[Array, Array]:
    """D of the whole orders 0 to n, or down to a negative n, of complex z, and the derivatives.

    The orders are along a new first axis. Negative ones are by the recurrence from -1, which loses
    digits where Re z is large.

    >>> import functrans as ft
    >>> print(ft.scipy.special.pbdn_seq(2, 1.0)[0].real.round(4))
    [0.7788 0.7788 0.    ]
    """
    if not isinstance(n, (int, np.integer)) or abs(n) > 100:
        raise ArgumentError(f"scipy.special.pbdn_seq: n is {n!r}.", where=user_source(),
                            why="it is the last order, a whole number from -100 to 100.",
                            fix="n=2")
    (given,) = promote_dtypes_inexact("pbdn_seq", z)
    number = operand("pbdn_seq", given)
    wide_parts = number.dtype in (np.float64, np.complex128)
    x = number.astype(np.complex128 if dtypes.kind(number.dtype) == "c" else np.float64)
    x = x.astype(np.complex128)
    first = lax.exp(-0.25 * x * x)
    rows = [first]
    if n >= 0:
        for k in range(n):
            rows.append(x * rows[k] - (k * rows[k - 1] if k else 0.0))
        slopes = [-0.5 * x * first] + [k * rows[k - 1] - 0.5 * x * rows[k]
                                       for k in range(1, n + 1)]
    else:
        # D_(-1) is exp(-z^2 / 4) times sqrt(pi / 2) w(i z / sqrt(2)) (12.7.5)
        rows.append(math.sqrt(0.5 * math.pi) * first * wofz(1j * math.sqrt(0.5) * x))
        for k in range(1, -n):
            rows.append((rows[k - 1] - x * rows[k]) / k)
        slopes = [-0.5 * x * first] + [0.5 * x * rows[k] - rows[k - 1] for k in range(1, 1 - n)]
    wanted = np.complex128 if wide_parts else np.complex64
    return jnp.stack(rows).astype(wanted), jnp.stack(slopes).astype(wanted)
