"""Bessel functions of any real order, of real and of complex numbers, and Hankel's (DLMF 10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy.special.common import operands, partials, pushed
from functrans.scipy.special.cylinder import (
    FAR,
    LARGEST_ORDER,
    cos_pi,
    first_far,
    first_scaled,
    second_scaled,
    sin_pi,
    times_scale,
    unit,
)
from functrans.scipy.special.gammas import gammaln
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike

__all__ = ["by_kind", "hankel1", "hankel1e", "hankel2", "hankel2e", "jv", "jv_", "jve",
           "modified_family", "order_and_number", "yv", "yv_", "yve"]

_TINY = 1e-3


def _known(v: Array) -> Array:
    return lax.abs(v) < LARGEST_ORDER


def _first_tiny(v: Array, z: Array, sign: float) -> Array:
    """J_v, or with the sign -1 I_v, of |z| < 1e-3 for v >= 0, by three terms of the series."""
    q = (0.25 * sign) * z * z
    sums = 1.0 - q / (v + 1.0) * (1.0 - q / (2.0 * (v + 2.0)))
    return lax.exp(v * lax.log(0.5 * z) - gammaln(v + 1.0)) * sums


def _both(v: Array, x: Array) -> tuple[Array, Array]:
    """J_v(x) and Y_v(x) for real v and x > 0."""
    order = lax.abs(v)
    w = lax.complex(jnp.zeros_like(x), -x)
    low, high, steps = second_scaled(order, w)
    phase = (2.0 / math.pi) * unit(-0.5 * (order + 1.0)) * lax.complex(lax.cos(x), lax.sin(x))
    hankel = phase * low
    second = times_scale(lax.imag(hankel), steps, 1)
    # below the order J is small beside Y, whose real part has no digits of it
    small = x < _TINY
    inside = (x < order) & ~small
    place = jnp.where(inside, w, 1.0 + 0.0j)
    first = first_scaled(jnp.where(inside, order, 10.0), place, jnp.where(inside, low, 1.0 + 0.0j),
                         jnp.where(inside, high, 20.0 + 0.0j))
    turned = lax.real(unit(0.5 * order) * lax.complex(lax.cos(x), -lax.sin(x)) * first)
    near = _first_tiny(order, jnp.where(small, x, 0.5 * _TINY), 1.0)
    value = jnp.where(small, near, jnp.where(
        inside, times_scale(turned, steps, -1), lax.real(hankel)))
    # DLMF 10.4.1, 10.4.2 below order 0
    c, s = cos_pi(order), sin_pi(order)
    below = v < 0
    mixed = c * value - jnp.where(s == 0, 0.0, s * jnp.where(s == 0, 1.0, second))
    other = s * value + jnp.where(c == 0, 0.0, c * jnp.where(c == 0, 1.0, second))
    return jnp.where(below, mixed, value), jnp.where(below, other, second)


def _jv_value(v: Array, x: Array) -> Array:
    whole = v == lax.floor(v)
    proper = (lax.abs(x) < math.inf) & (x != 0) & _known(v) & ((x > 0) | whole)
    order, size = jnp.where(proper, v, 0.0), jnp.where(proper, lax.abs(x), 1.0)
    value = _both(order, size)[0]
    value = jnp.where((x < 0) & (jnp.remainder(order, 2.0) == 1), -value, value)
    at_zero = jnp.where(v == 0, 1.0, jnp.where((v > 0) | whole, 0.0, math.inf * _sign_at_zero(v)))
    value = jnp.where(proper, value, jnp.where((x == 0) & _known(v), at_zero, math.nan))
    return jnp.where((lax.abs(x) == math.inf) & _known(v) & ((x > 0) | whole), 0.0, value)


def _sign_at_zero(v: Array) -> Array:
    """The sign of 1 / Gamma(v + 1) of a broken v < 0."""
    return jnp.where((v > -1) | (jnp.remainder(lax.floor(v), 2.0) == 1), 1.0, -1.0)


def _yv_value(v: Array, x: Array) -> Array:
    proper = (x > 0) & (x < math.inf) & _known(v)
    value = _both(jnp.where(proper, v, 0.0), jnp.where(proper, x, 1.0))[1]
    value = jnp.where(proper, value, jnp.where((x == 0) & _known(v), -math.inf, math.nan))
    return jnp.where((x == math.inf) & _known(v), 0.0, value)


def _beside(fun: Callable[..., Array], v: Array, x: Array) -> tuple[Array, Array]:
    """The function of the orders below and above, by one program."""
    both = fun(jnp.stack([v - 1.0, v + 1.0]), jnp.stack([x, x]))
    return both[0], both[1]


def _slope(fun: Callable[[], Callable[..., Array]]) -> Callable[..., Array]:
    def rule(out: Array, v: Array, x: Array) -> Array:
        below, above = _beside(fun(), v, x)
        return 0.5 * (below - above)

    return rule


jv_: Callable[..., Array] = partials(pushed(_jv_value, 0), _slope(lambda: jv_))(_jv_value)
yv_: Callable[..., Array] = partials(pushed(_yv_value, 0), _slope(lambda: yv_))(_yv_value)


# Complex numbers -----------------------------------------------------------------------------


def _right(v: Array, w: Array) -> tuple[Array, Array]:
    """exp(-w) I_v(w) and exp(w) K_v(w) for v >= 0 and w of a real part >= 0."""
    size = lax.abs(w)
    low, high, steps = second_scaled(v, w)
    far = size >= jnp.maximum(FAR, 0.5 * v * v)
    tiny = size < _TINY
    middle = ~far & ~tiny
    one = jnp.ones_like(w)
    close = first_scaled(jnp.where(middle, v, 10.0), jnp.where(middle, w, one),
                         jnp.where(middle, low, one), jnp.where(middle, high, 20.0 * one))
    outer = first_far(jnp.where(far, v, 0.0), jnp.where(far, w, 30.0 * one),
                      jnp.where(far, low, one))
    first = jnp.where(far, outer, _parts(close, steps, -1))
    little = jnp.where(tiny, w, 0.5 * _TINY * one)
    first = jnp.where(tiny, _first_tiny(v, little, -1.0) * lax.exp(-little), first)
    return first, _parts(low, steps, 1)


def _parts(z: Array, steps: Array, sign: int) -> Array:
    return lax.complex(times_scale(lax.real(z), steps, sign),
                       times_scale(lax.imag(z), steps, sign))


def _upper(v: Array, z: Array) -> tuple[Array, Array, Array]:
    """J_v(z) exp(-y), H1_v(z) exp(-i z) and w = -i z for v >= 0 and z = x + i y, y >= 0."""
    w = lax.complex(lax.imag(z), -lax.real(z))
    first, second = _right(v, w)
    turn = lax.complex(lax.cos(lax.imag(w)), lax.sin(lax.imag(w)))
    return (first * unit(0.5 * v) * turn, (2.0 / math.pi) * unit(-0.5 * (v + 1.0)) * second, w)


def _modified_value(v: Array, z: Array, second: bool, scaled: bool) -> Array:
    """I_v or K_v of a complex z; scaled by exp(-|Re z|) and by exp(z)."""
    x, y = lax.real(z), lax.imag(z)
    zero = (x == 0) & (y == 0)
    proper = (lax.abs(x) < math.inf) & (lax.abs(y) < math.inf) & _known(v) & ~zero
    order = jnp.where(proper, lax.abs(v), 0.0)
    one = jnp.ones_like(z)
    place = jnp.where(proper, z, one)
    left = lax.real(place) < 0
    w = jnp.where(left, -place, place)
    first, last = _right(order, w)
    fallen = lax.exp(-2.0 * w)
    upper = jnp.where(y < 0, -jnp.ones_like(v), 1.0)
    if second:
        # DLMF 10.34.2, of which the part of I is the larger one
        turned = unit(-upper * order) * last * fallen - (1j * math.pi * upper) * first
        value = jnp.where(left, turned, last)  # times exp(-w), or exp(w)
        if not scaled:
            half = lax.exp(jnp.where(left, 0.5 * w, -0.5 * w))
            value = value * half * half
        end = jnp.where(zero, math.inf, math.nan)
        return jnp.where(proper, value, lax.complex(end, jnp.where(zero, 0.0, end)))
    # 10.27.2 below order 0
    more = (2.0 / math.pi) * sin_pi(order) * last * fallen
    value = first + jnp.where(v < 0, more, 0.0)
    value = value * lax.complex(lax.cos(lax.imag(w)), lax.sin(lax.imag(w)))
    value = jnp.where(left, value * unit(upper * jnp.where(proper, v, 0.0)), value)
    if not scaled:
        half = lax.exp(0.5 * lax.real(w))
        value = value * half * half
    whole = v == lax.floor(v)
    end = jnp.where(v == 0, 1.0, jnp.where((v > 0) | whole, 0.0, math.inf))
    return jnp.where(proper, value, jnp.where(zero & _known(v), end + 0.0j, math.nan + 0.0j))


def modified_family(second: bool) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """I or K of real order and complex numbers, and the scaled one."""
    def plain(v: Array, z: Array) -> Array:
        return _modified_value(v, z, second, False)

    def slope(out: Array, v: Array, z: Array) -> Array:
        below, above = _beside(ruled, v, z)
        return (-0.5 if second else 0.5) * (below + above)

    ruled: Callable[..., Array] = partials(lambda out, v, z: _in_order(plain, v, z), slope)(plain)
    return ruled, lambda v, z: _modified_value(v, z, second, True)


_FIRST, _SECOND, _HANKEL1, _HANKEL2 = range(4)


def _complex_value(which: int, scaled: bool, v: Array, z: Array) -> Array:
    x, y = lax.real(z), lax.imag(z)
    zero = (x == 0) & (y == 0)
    proper = (lax.abs(x) < math.inf) & (lax.abs(y) < math.inf) & _known(v) & ~zero
    order = jnp.where(proper, lax.abs(v), 0.0)
    below = y < 0
    place = jnp.where(proper, lax.complex(x, lax.abs(y)), 1.0 + 0.0j)
    first, second, w = _upper(order, place)
    up = lax.real(w)
    # all scaled as J is, by exp(-y)
    turn = lax.complex(lax.cos(lax.real(place)), lax.sin(lax.real(place)))
    hankel = second * turn * lax.exp(-2.0 * up)
    negative = (v < 0) & proper
    c, s = cos_pi(order), sin_pi(order)
    i = 1.0j
    if which in (_HANKEL1, _HANKEL2):
        # of the conjugate the kinds change places
        other = 2.0 * first - hankel
        one = which == _HANKEL1
        if scaled:
            high, low = second, other * turn  # the second kind times exp(i z)
        else:
            high, low = second * turn * lax.exp(-up), other * lax.exp(up)
        high = jnp.where(negative, high * lax.complex(c, s), high)
        low = jnp.where(negative, low * lax.complex(c, -s), low)
        value = jnp.where(below, lax.conj(low if one else high), high if one else low)
    else:
        second_kind = i * (first - hankel)
        if which == _FIRST:
            value = jnp.where(negative, c * first - s * second_kind, first)
        else:
            value = jnp.where(negative, s * first + c * second_kind, second_kind)
        if not scaled:
            value = value * lax.exp(0.5 * up) * lax.exp(0.5 * up)
        value = jnp.where(below, lax.conj(value), value)
    if which == _FIRST:
        whole = v == lax.floor(v)
        end = jnp.where(v == 0, 1.0, jnp.where((v > 0) | whole, 0.0, math.inf))
        return jnp.where(proper, value, jnp.where(zero & _known(v), end + 0.0j, math.nan + 0.0j))
    end = lax.complex(jnp.full_like(x, -math.inf if which == _SECOND else math.nan),
                      jnp.full_like(x, 0.0 if which == _SECOND else math.nan))
    return jnp.where(proper, value, jnp.where(zero & _known(v), end, math.nan + 0.0j))


def _complex_family(which: int) -> tuple[Callable[..., Array], Callable[..., Array]]:
    def plain(v: Array, z: Array) -> Array:
        return _complex_value(which, False, v, z)

    ruled: Callable[..., Array] = partials(
        lambda out, v, z: _in_order(plain, v, z), _slope(lambda: ruled))(plain)
    return ruled, lambda v, z: _complex_value(which, True, v, z)


def _in_order(fun: Callable[..., Array], v: Array, z: Array) -> Array:
    found: Array = pushed(fun, 0)(None, v, z)
    return found


_COMPLEX = [_complex_family(which) for which in range(4)]


def order_and_number(name: str, v: ArrayLike, z: ArrayLike) -> tuple[Array, Array, Any]:
    """A real order in float64, z in float64 or complex128, of one shape, and the narrow dtype."""
    (given,) = promote_dtypes_inexact(name, z)
    number = operand(name, given)
    is_complex = dtypes.kind(number.dtype) == "c"
    order, real = operands(name, v, lax.real(number) if is_complex else number)
    wide_z: Array = real.astype(np.float64)
    if is_complex:
        imaginary = jnp.broadcast_to(lax.imag(number), real.shape)
        wide_z = lax.complex(wide_z, imaginary.astype(np.float64))
    narrow = number.dtype if is_complex else real.dtype
    return order.astype(np.float64), wide_z, narrow


def by_kind(name: str, real: Callable[..., Array] | None, of_complex: Callable[..., Array]
            ) -> Callable[[ArrayLike, ArrayLike], Array]:
    """The function of an order and a number that is `real` of a real one, if given."""
    def fun(v: ArrayLike, z: ArrayLike) -> Array:
        order, number, narrow = order_and_number(name, v, z)
        if dtypes.kind(number.dtype) != "c":
            if real is not None:
                return real(order, number).astype(narrow)
            number = lax.complex(number, jnp.zeros_like(number))
        wanted = np.complex128 if narrow in (np.float64, np.complex128) else np.complex64
        return of_complex(order, number).astype(wanted)

    return composite(fun)


_jv_of = by_kind("jv", jv_, _COMPLEX[_FIRST][0])
_jve_of = by_kind("jve", jv_, _COMPLEX[_FIRST][1])
_yv_of = by_kind("yv", yv_, _COMPLEX[_SECOND][0])
_yve_of = by_kind("yve", yv_, _COMPLEX[_SECOND][1])
_hankel_of = [by_kind(f"hankel{1 + k // 2}{'e' if k % 2 else ''}", None,
                      _COMPLEX[2 + k // 2][k % 2]) for k in range(4)]


def jv(v: ArrayLike, z: ArrayLike) -> Array:
    """The Bessel function of the first kind of real order v, |v| < 100,000, also of complex z.

    By Hankel functions, whose integral of Laplace's type and recurrence over orders take as long
    for a large z as for a small one, and below the order by their Wronskian. NaN for real z < 0
    unless v is an integer.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jv(2, 1.0)), 4)
    0.1149
    """
    return _jv_of(v, z)


def jve(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(-|Im z|) jv(v, z).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.jve(0, 100j).real), 4)
    0.0399
    """
    return _jve_of(v, z)


def yv(v: ArrayLike, z: ArrayLike) -> Array:
    """The Bessel function of the second kind of real order v, |v| < 100,000, also of complex z.

    NaN for real z < 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.yv(0.5, 1.0)), 4)
    -0.4311
    """
    return _yv_of(v, z)


def yve(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(-|Im z|) yv(v, z).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.yve(0.5, 1.0)), 4)
    -0.4311
    """
    return _yve_of(v, z)


def hankel1(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel's function of the first kind, jv + i yv, of real order v; complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hankel1(0, 1.0).imag), 4)
    0.0883
    """
    return _hankel_of[0](v, z)


def hankel1e(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(-i z) hankel1(v, z).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hankel1e(0, 100j).imag), 4)
    -0.0797
    """
    return _hankel_of[1](v, z)


def hankel2(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel's function of the second kind, jv - i yv, of real order v; complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hankel2(0, 1.0).imag), 4)
    -0.0883
    """
    return _hankel_of[2](v, z)


def hankel2e(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(i z) hankel2(v, z).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hankel2e(0, -100j).imag), 4)
    0.0797
    """
    return _hankel_of[3](v, z)
