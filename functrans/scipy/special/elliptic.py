"""Elliptic integrals: Carlson's symmetric forms, and Legendre's by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, partials, polynomial, pushed, wide
from functrans.typing import Array

__all__ = ["ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd",
           "elliprf", "elliprg", "elliprj", "first_kind_in_m"]

_CLOSE: Final = 2e-3  # what the series of order 7 leaves is of order 8
_LIMIT: Final = 100
_LIMIT_OF_FOUR: Final = 600  # a fourth argument that is large falls to a quarter in each step


def _apart(mean: Array, *xs: Array) -> Array:
    """The largest distance to the mean, relative to it."""
    far = lax.abs(mean - xs[0])
    for x in xs[1:]:
        far = jnp.maximum(far, lax.abs(mean - x))
    return far / mean


def _root_sum(x: Array, y: Array, z: Array) -> Array:
    a, b, c = lax.sqrt(x), lax.sqrt(y), lax.sqrt(z)
    return a * b + b * c + c * a


def _proper(value: Array, least_two: Array, *xs: Array) -> Array:
    """NaN for a negative argument, inf where two are 0, 0 where one is infinite."""
    valid, infinite = xs[0] >= 0, xs[0] == math.inf
    for x in xs[1:]:
        valid, infinite = valid & (x >= 0), infinite | (x == math.inf)
    value = jnp.where(least_two == 0, math.inf, jnp.where(infinite, 0.0, value))
    return jnp.where(valid, value, math.nan)


def _second_least(x: Array, y: Array, z: Array) -> Array:
    return jnp.maximum(jnp.minimum(x, y), jnp.minimum(jnp.maximum(x, y), z))


def _usable(keep: Array, *xs: Array) -> list[Array]:
    return [jnp.where(keep, x, 1.0) for x in xs]


def _finite_positive(*xs: Array) -> Array:
    keep = (xs[0] >= 0) & (xs[0] < math.inf)
    for x in xs[1:]:
        keep = keep & (x >= 0) & (x < math.inf)
    return keep


@partials(lambda out, x, y, z: -_rd(y, z, x) / 6.0, lambda out, x, y, z: -_rd(z, x, y) / 6.0,
          lambda out, x, y, z: -_rd(x, y, z) / 6.0)
def _rf(x: Array, y: Array, z: Array) -> Array:
    """Carlson, 1995, "Numerical computation of real or complex elliptic integrals"."""
    two = _second_least(x, y, z)
    a, b, c = _usable(_finite_positive(x, y, z) & (two > 0), x, y, z)

    def step(k: Any, a: Array, b: Array, c: Array) -> tuple[Array, ...]:
        shift = _root_sum(a, b, c)
        return 0.25 * (a + shift), 0.25 * (b + shift), 0.25 * (c + shift)

    a, b, c = loop(step, (a, b, c), lambda a, b, c: _apart((a + b + c) / 3.0, a, b, c) > _CLOSE,
                   _LIMIT)
    mean = (a + b + c) / 3.0
    u, v = (mean - a) / mean, (mean - b) / mean
    w = -u - v
    e2, e3 = u * v - w * w, u * v * w
    series = 1.0 - e2 / 10.0 + e3 / 14.0 + e2 * e2 / 24.0 - 3.0 * e2 * e3 / 44.0 \
        - 5.0 * e2 * e2 * e2 / 208.0 + 3.0 * e3 * e3 / 104.0 + e2 * e2 * e3 / 16.0
    return _proper(series / lax.sqrt(mean), two, x, y, z)


def _rd_value(x: Array, y: Array, z: Array) -> Array:
    keep = _finite_positive(x, y, z) & (x + y > 0) & (z > 0)
    a, b, c = _usable(keep, x, y, z)

    def step(k: Any, a: Array, b: Array, c: Array, total: Array, power: Array
             ) -> tuple[Array, ...]:
        shift = _root_sum(a, b, c)
        total = total + power / (lax.sqrt(c) * (c + shift))
        return 0.25 * (a + shift), 0.25 * (b + shift), 0.25 * (c + shift), total, 0.25 * power

    # the first step by itself: where x is a constant 0, a loop would take its root's slope times 0
    start = step(0, a, b, c, jnp.zeros_like(a), jnp.ones_like(a))
    a, b, c, total, power = loop(
        step, start,
        lambda a, b, c, t, p: _apart((a + b + 3.0 * c) / 5.0, a, b, c) > _CLOSE, _LIMIT)
    mean = (a + b + 3.0 * c) / 5.0
    u, v = (mean - a) / mean, (mean - b) / mean
    w = -(u + v) / 3.0
    rest = power / mean / lax.sqrt(mean) * _series_of_five(
        u * v - 6.0 * w * w, (3.0 * u * v - 8.0 * w * w) * w,
        3.0 * (u * v - w * w) * w * w, u * v * w * w * w)
    value = _proper(rest + 3.0 * total, jnp.minimum(x + y, z), x, y, z)
    return value


def _series_of_five(e2: Array, e3: Array, e4: Array, e5: Array) -> Array:
    return 1.0 - 3.0 * e2 / 14.0 + e3 / 6.0 + 9.0 * e2 * e2 / 88.0 - 3.0 * e4 / 22.0 \
        - 9.0 * e2 * e3 / 52.0 + 3.0 * e5 / 26.0 - e2 * e2 * e2 / 16.0 + 3.0 * e3 * e3 / 40.0 \
        + 3.0 * e2 * e4 / 20.0 + 45.0 * e2 * e2 * e3 / 272.0 - 9.0 * (e3 * e4 + e2 * e5) / 68.0


_rd: Callable[..., Array] = partials(*(pushed(_rd_value, i) for i in range(3)))(_rd_value)


_RC: Final = [math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(24)]


def _rc_value(x: Array, y: Array) -> Array:
    """By atan and log, and a series where x is near y; the principal value for y < 0."""
    negative = y < 0
    u, w = jnp.where(negative, x - y, x), jnp.where(negative, -y, y)
    keep = (x >= 0) & (w > 0) & (u < math.inf) & (w < math.inf)
    a, b = _usable(keep, u, w)
    t = 1.0 - a / b
    near = lax.abs(t) < 0.2
    small = jnp.where(near, t, 0.0)
    # asin(s) / s for s^2 = t = 1 - a / b
    series = polynomial(small, _RC)
    below, above = (t >= 0) & ~near, (t < 0) & ~near
    p = lax.sqrt(jnp.where(below, b - a, 1.0))
    q = lax.sqrt(jnp.where(above, a - b, 1.0))
    circular = lax.atan2(p, lax.sqrt(jnp.where(below & (a > 0), a, 0.0) + jnp.where(
        below, 0.0, 1.0))) / p
    hyperbolic = lax.log((lax.sqrt(jnp.where(above, a, 2.0)) + q)
                         / lax.sqrt(jnp.where(above, b, 1.0))) / q
    value = jnp.where(near, series / lax.sqrt(b), jnp.where(below, circular, hyperbolic))
    value = value * jnp.where(negative & keep, lax.sqrt(jnp.where(keep, x, 1.0) / a), 1.0)
    infinite = (x == math.inf) | (lax.abs(y) == math.inf)
    end = jnp.where((x >= 0) & (y == 0), math.inf, jnp.where((x >= 0) & infinite, 0.0, math.nan))
    return jnp.where(keep, value, end)


_rc = _rc_value


def _rj_value(x: Array, y: Array, z: Array, p: Array) -> Array:
    two = _second_least(x, y, z)
    keep = _finite_positive(x, y, z, p) & (two > 0) & (p > 0)
    a, b, c, d = _usable(keep, x, y, z, p)

    def step(k: Any, a: Array, b: Array, c: Array, d: Array, total: Array, power: Array
             ) -> tuple[Array, ...]:
        shift = _root_sum(a, b, c)
        r = lax.sqrt(d)
        one, two = r + lax.sqrt(a), (r + lax.sqrt(b)) * (r + lax.sqrt(c))
        # 1 + (d - a) (d - b) (d - c) / (one two)^2, which cancels for a small d
        total = total + power / one / two * _rc(
            jnp.ones_like(a), 2.0 * (r / one) * ((d + shift) / two))
        return (0.25 * (a + shift), 0.25 * (b + shift), 0.25 * (c + shift), 0.25 * (d + shift),
                total, 0.25 * power)

    start = step(0, a, b, c, d, jnp.zeros_like(a), jnp.ones_like(a))
    a, b, c, d, total, power = loop(
        step, start,
        lambda a, b, c, d, t, w: _apart((a + b + c + 2.0 * d) / 5.0, a, b, c, d) > _CLOSE,
        _LIMIT_OF_FOUR)
    mean = (a + b + c + 2.0 * d) / 5.0
    u, v, w = (mean - a) / mean, (mean - b) / mean, (mean - c) / mean
    s = -0.5 * (u + v + w)
    e2 = u * v + u * w + v * w - 3.0 * s * s
    rest = power / mean / lax.sqrt(mean) * _series_of_five(
        e2, u * v * w + 2.0 * e2 * s + 4.0 * s * s * s,
        (2.0 * u * v * w + e2 * s + 3.0 * s * s * s) * s, u * v * w * s * s)
    value = _proper(jnp.where(p == math.inf, 0.0, rest + 6.0 * total), two, x, y, z)
    return jnp.where(p > 0, value, math.nan)


_rj: Callable[..., Array] = partials(*(pushed(_rj_value, i) for i in range(4)))(_rj_value)


def _rg_value(x: Array, y: Array, z: Array) -> Array:
    low, high = jnp.minimum(jnp.minimum(x, y), z), jnp.maximum(jnp.maximum(x, y), z)
    middle = _second_least(x, y, z)
    # to the size of the largest, beside which two that are less than roundoff are as good as 0
    keep = (low >= 0) & (middle > 1e-20 * high) & (high < math.inf)
    low_, high_, middle_ = _usable(keep, low, high, middle)
    scale = lax.stop_gradient(high_)
    a, b, c = low_ / scale, high_ / scale, middle_ / scale
    value = 0.5 * lax.sqrt(scale) * (c * _rf(a, b, c) - (a - c) * (b - c) * _rd(a, b, c) / 3.0
                                     + lax.sqrt(a) * lax.sqrt(b / c))
    one = (low >= 0) & (middle <= 1e-20 * high) & (high < math.inf)
    end = jnp.where(one, 0.5 * lax.sqrt(jnp.where(high > 0, high, 0.0)),
                    jnp.where((low >= 0) & (high == math.inf), math.inf, math.nan))
    return jnp.where(keep, value, end)


@wide
def elliprf(x: Array, y: Array, z: Array) -> Array:
    """Carlson's integral R_F of arguments that are not negative, at most one of them 0.

    Duplication, and a series of order 7 (Carlson, 1995).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.elliprf(1.0, 2.0, 3.0)), 4)
    0.7269
    """
    return _rf(x, y, z)


@wide
def elliprd(x: Array, y: Array, z: Array) -> Array:
    """Carlson's integral R_D, for z > 0 and at most one of x and y 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.elliprd(1.0, 2.0, 3.0)), 4)
    0.2905
    """
    return _rd(x, y, z)


@wide
def elliprc(x: Array, y: Array) -> Array:
    """Carlson's integral R_C, for x >= 0; the principal value for y < 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.elliprc(1.0, 2.0)), 4)
    0.7854
    """
    return _rc(x, y)


@wide
def elliprg(x: Array, y: Array, z: Array) -> Array:
    """Carlson's integral R_G of arguments that are not negative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.elliprg(1.0, 2.0, 3.0)), 4)
    1.4018
    """
    return _rg_value(x, y, z)


@wide
def elliprj(x: Array, y: Array, z: Array, p: Array) -> Array:
    """Carlson's integral R_J, for p > 0; NaN below.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.elliprj(1.0, 2.0, 3.0, 4.0)), 4)
    0.2398
    """
    return _rj(x, y, z, p)


# Legendre's forms ----------------------------------------------------------------------------


def _complete(p: Array) -> tuple[Array, Array]:
    """K and E of m = 1 - p for finite p > 0, by the arithmetic-geometric mean (DLMF 19.8)."""
    a, b = jnp.ones_like(p), lax.sqrt(p)
    power, total = 1.0, 0.5 * (1.0 - p)
    for _ in range(12):
        half = 0.5 * (a - b)
        total = total + power * half * half
        a, b, power = 0.5 * (a + b), lax.sqrt(a * b), 2.0 * power
    first = (0.5 * math.pi) / a
    return first, first * (1.0 - total)


def _one(x: Array) -> Array:
    return jnp.ones_like(x)


@partials(lambda out, p: -_rd(jnp.zeros_like(p), _one(p), p) / 6.0)
def _ellipkm1(p: Array) -> Array:
    keep = (p > 0) & (p < math.inf)
    value = _complete(jnp.where(keep, p, 1.0))[0]
    return jnp.where(keep, value, jnp.where(p == 0, math.inf, jnp.where(p > 0, 0.0, math.nan)))


@partials(lambda out, m: -_rd(jnp.zeros_like(m), 1.0 - m, _one(m)) / 6.0)
def _ellipe(m: Array) -> Array:
    keep = (m < 1) & (m > -math.inf)
    # for large -m by E(m) = sqrt(1 - m) E(m / (m - 1)), whose sums do not cancel
    low = keep & (m < 0)
    p = 1.0 - jnp.where(keep, m, 0.0)
    value = _complete(jnp.where(low, 1.0 / p, p))[1] * jnp.where(low, lax.sqrt(p), 1.0)
    return jnp.where(keep, value, jnp.where(m == 1, 1.0, jnp.where(m < 1, math.inf, math.nan)))


@wide
def ellipk(m: Array) -> Array:
    """The complete elliptic integral of the first kind of parameter m < 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellipk(0.0)), 4)
    1.5708
    """
    return _ellipkm1(1.0 - m)


@wide
def ellipkm1(p: Array) -> Array:
    """ellipk(1 - p), accurate for small p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellipkm1(1.0)), 4)
    1.5708
    """
    return _ellipkm1(p)


@wide
def ellipe(m: Array) -> Array:
    """The complete elliptic integral of the second kind of parameter m <= 1.

    >>> import functrans as ft
    >>> float(ft.scipy.special.ellipe(1.0))
    1.0
    """
    return _ellipe(m)


def _parts(phi: Array, m: Array) -> tuple[Array, Array, Array, Array]:
    """Half turns of phi, the sine of the rest, its cosine squared, and 1 - m sin^2."""
    turns = lax.stop_gradient(jnp.round(phi / math.pi))
    rest = phi - turns * math.pi
    s, c = lax.sin(rest), lax.cos(rest)
    left = c * c + (1.0 - m) * s * s
    return turns, s, c * c, left


def _times_turns(turns: Array, value: Array) -> Array:
    return jnp.where(turns == 0, 0.0, 2.0 * turns * value)


def first_kind_in_m(out: Array, phi: Array, m: Array) -> Array:
    """The derivative of the integral of the first kind, which is `out`, in m."""
    turns, s, square, left = _parts(phi, m)
    slope = _rd(jnp.zeros_like(m), _one(m), jnp.where(turns == 0, 1.0, 1.0 - m)) / 6.0
    return s * s * s * _rd(square, _one(m), left) / 6.0 + _times_turns(turns, slope)


@partials(lambda out, phi, m: 1.0 / lax.sqrt(_parts(phi, m)[3]), first_kind_in_m)
def _ellipkinc(phi: Array, m: Array) -> Array:
    turns, s, square, left = _parts(phi, m)
    whole = _ellipkm1(jnp.where(turns == 0, 1.0, 1.0 - m))
    value = _endless(phi, m, s * _rf(square, left, _one(m)) + _times_turns(turns, whole))
    return jnp.where((m == -math.inf) & (lax.abs(phi) < math.inf), 0.0 * phi, value)


def _endless(phi: Array, m: Array, value: Array) -> Array:
    """Infinite for an infinite amplitude, as each turn adds the same."""
    return jnp.where((lax.abs(phi) == math.inf) & (m <= 1.0), phi, value)


def _second_in_m(out: Array, phi: Array, m: Array) -> Array:
    turns, s, square, left = _parts(phi, m)
    slope = -_rd(jnp.zeros_like(m), jnp.where(turns == 0, 1.0, 1.0 - m), _one(m)) / 6.0
    return -s * s * s * _rd(square, left, _one(m)) / 6.0 + _times_turns(turns, slope)


@partials(lambda out, phi, m: lax.sqrt(_parts(phi, m)[3]), _second_in_m)
def _ellipeinc(phi: Array, m: Array) -> Array:
    turns, s, square, left = _parts(phi, m)
    whole = _ellipe(jnp.where(turns == 0, 0.0, m))
    flat = (square == 0) & (left == 0)
    value = s * (_rf(square, left, _one(m)) - m * s * s * _rd(square, left, _one(m)) / 3.0)
    value = _endless(phi, m, jnp.where(flat, s, value) + _times_turns(turns, whole))
    endless = jnp.where(phi == 0, phi, jnp.where(phi < 0, -math.inf, math.inf))
    return jnp.where((m == -math.inf) & (phi == phi), endless, value)


@wide
def ellipkinc(phi: Array, m: Array) -> Array:
    """The incomplete elliptic integral of the first kind of amplitude phi and parameter m.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellipkinc(1.0, 0.5)), 4)
    1.0832
    """
    return _ellipkinc(phi, m)


@wide
def ellipeinc(phi: Array, m: Array) -> Array:
    """The incomplete elliptic integral of the second kind of amplitude phi and parameter m.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ellipeinc(1.0, 0.5)), 4)
    0.9273
    """
    return _ellipeinc(phi, m)
