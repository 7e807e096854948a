"""Modified Bessel functions of real and of integer order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.primitives import special
from functrans.scipy.special.bessel_orders import by_kind, modified_family
from functrans.scipy.special.common import (
    EULER,
    HALF_LOG_2PI,
    elementwise,
    loop,
    over_nodes,
    partials,
    polynomial,
    pushed,
    wide,
)
from functrans.typing import Array, ArrayLike

__all__ = ["i0", "i0e", "i1", "i1e", "iv", "ive", "k0", "k0e", "k1", "k1e", "kn", "kv", "kve"]


@elementwise
def i0e(x: Array) -> Array:
    """exp(-|x|) i0(x).

    >>> ft.scipy.special.i0e(jnp.array([0.0, 2.0])).round(4)
    Array([1.    , 0.3085], dtype=float32)
    """
    return special.bessel_i0e(x)


@elementwise
def i1e(x: Array) -> Array:
    """exp(-|x|) i1(x).

    >>> ft.scipy.special.i1e(jnp.array([0.0, 2.0])).round(4)
    Array([0.    , 0.2153], dtype=float32)
    """
    return special.bessel_i1e(x)


@elementwise
def i0(x: Array) -> Array:
    """The modified Bessel function of order 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.i0(0.0))
    1.0
    """
    half = lax.exp(0.5 * lax.abs(x))  # the whole may overflow where the product does not
    return half * special.bessel_i0e(x) * half


@elementwise
def i1(x: Array) -> Array:
    """The modified Bessel function of order 1.

    >>> ft.scipy.special.i1(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.5652], dtype=float32)
    """
    half = lax.exp(0.5 * lax.abs(x))
    return half * special.bessel_i1e(x) * half


# The second kind: power series up to x = 2, then the trapezoidal rule for exp(-x cosh t) cosh(v t)

_K_TERMS: Final = 13
_HARMONIC: Final = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 40))])
_I0_SERIES: Final = [1 / math.factorial(k) ** 2 for k in range(_K_TERMS)]
_I1_SERIES: Final = [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(_K_TERMS)]
_K0_SERIES: Final = [float(_HARMONIC[k]) * c for k, c in enumerate(_I0_SERIES)]
_K1_SERIES: Final = [float(_HARMONIC[k] + _HARMONIC[k + 1]) * c for k, c in enumerate(_I1_SERIES)]
_K_NODES: Final = np.arange(25) / 24.0
_K_WEIGHTS: Final = np.where(_K_NODES == 0, 0.5, 1.0) / 24.0


def _second_kind(x: Array, order: int) -> tuple[Array, Array]:
    """K_0 or K_1 for 0 < x <= 2, and exp(x) times it beyond; for each the other's x is not."""
    near = jnp.where((x > 0) & (x <= 2.0), x, 1.0)
    q = 0.25 * near * near
    log = lax.log(0.5 * near) + EULER
    if order == 0:
        small = -log * polynomial(q, _I0_SERIES) + polynomial(q, _K0_SERIES)
    else:
        small = 1.0 / near + 0.5 * near * (log * polynomial(q, _I1_SERIES)
                                           - 0.5 * polynomial(q, _K1_SERIES))
    far = jnp.where(x > 2.0, jnp.minimum(x, 1e300), 2.0)
    # until x (cosh t - 1) is 40, in t = 2 asinh(sqrt(20 / x) u), whose slope is smooth
    top = 2.0 * lax.asinh(lax.sqrt(20.0 / far))

    def integrand(u: Any, v: Any, end: Any) -> Any:
        t = end * u
        half = lax.sinh(0.5 * t)
        value = lax.exp(-2.0 * v * half * half)
        return value * lax.cosh(t) if order else value

    large = top * over_nodes(integrand, _K_NODES, _K_WEIGHTS, far, top)
    return small, large


def _k_values(x: Array, order: int, scaled: bool) -> Array:
    small, large = _second_kind(x, order)
    near = x <= 2.0
    place = jnp.where(x > 0, x, 1.0)
    value = jnp.where(near, small * lax.exp(place) if scaled else small,
                      large if scaled else large * lax.exp(-place))
    value = jnp.where(x == math.inf, 0.0, value)
    return jnp.where(x > 0, value, jnp.where(x == 0, math.inf, math.nan))


@partials(lambda out, x: -_k1(x))
def _k0(x: Array) -> Array:
    return _k_values(x, 0, False)


@partials(lambda out, x: -_k0(x) - out / x)
def _k1(x: Array) -> Array:
    return _k_values(x, 1, False)


@partials(lambda out, x: out - _k1e(x))
def _k0e(x: Array) -> Array:
    return _k_values(x, 0, True)


@partials(lambda out, x: out - _k0e(x) - out / x)
def _k1e(x: Array) -> Array:
    return _k_values(x, 1, True)


@wide
def k0(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.k0(1.0)), 4)
    0.421
    """
    return _k0(x)


@wide
def k1(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.k1(1.0)), 4)
    0.6019
    """
    return _k1(x)


@wide
def k0e(x: Array) -> Array:
    """exp(x) k0(x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.k0e(1.0)), 4)
    1.1445
    """
    return _k0e(x)


@wide
def k1e(x: Array) -> Array:
    """exp(x) k1(x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.k1e(1.0)), 4)
    1.6362
    """
    return _k1e(x)


# Real orders ---------------------------------------------------------------------------------

_K_LIMIT: Final = 20_000


def _log_kv(v: Array, x: Array) -> tuple[Array, Array]:
    """exp(x) K_v(x) for x > 0 as a value and the logarithm of its scale.

    The integral of exp(v t - x cosh t) over all t (DLMF 10.32.9), by the trapezoidal rule around
    its peak, whose logarithm is the scale. The step is a fraction of the width of the peak.
    """
    order = jnp.where(v < 0, -v, v)
    fixed = lax.stop_gradient(order)
    peak = lax.stop_gradient(lax.asinh(fixed / x))
    half = lax.sinh(0.5 * peak)
    top = order * peak - 2.0 * x * half * half
    width = 1.0 / lax.sqrt(lax.sqrt(fixed * fixed + x * x))
    step = lax.stop_gradient(jnp.minimum(0.2, 0.45 * width))

    def height(t: Any) -> Any:
        s = lax.sinh(0.5 * t)
        return lax.exp(order * t - 2.0 * x * s * s - top)

    def walk(k: Any, total: Array, last: Array) -> tuple[Array, Array]:
        up, down = height(peak + k * step), height(peak - k * step)
        return total + (up + down), up + down

    first = height(peak)
    total, _ = loop(walk, (first, first), lambda total, last: last > 1e-19 * total, _K_LIMIT)
    return 0.5 * step * total, top


def _kv_value(v: Array, x: Array, scaled: bool) -> Array:
    proper = (x > 0) & (x < math.inf) & (lax.abs(v) < math.inf)
    order, place = jnp.where(proper, v, 0.0), jnp.where(proper, x, 1.0)
    value, log = _log_kv(order, place)
    value = value * lax.exp(log if scaled else log - place)
    end = jnp.where(x == 0, math.inf, jnp.where(x == math.inf, 0.0, math.nan))
    return jnp.where(proper, value, jnp.where(jnp.isnan(v), math.nan, end))


def _kv_plain(v: Array, x: Array) -> Array:
    return _kv_value(v, x, False)


def _kv_scaled(v: Array, x: Array) -> Array:
    return _kv_value(v, x, True)


_kv: Callable[..., Array] = partials(pushed(_kv_plain, 0),
               lambda out, v, x: -0.5 * (_kv(v - 1.0, x) + _kv(v + 1.0, x)))(_kv_plain)
_kve: Callable[..., Array] = partials(pushed(_kv_scaled, 0),
                lambda out, v, x: out - 0.5 * (_kve(v - 1.0, x) + _kve(v + 1.0, x)))(_kv_scaled)


_COMPLEX_K: Final = modified_family(True)
_kv_of = by_kind("kv", _kv, _COMPLEX_K[0])
_kve_of = by_kind("kve", _kve, _COMPLEX_K[1])


def kv(v: ArrayLike, x: ArrayLike) -> Array:
    """The modified Bessel function of the second kind of real order v, for x > 0 or complex.

    The trapezoidal rule for an integral of Schläfli's type (DLMF 10.32.9).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kv(0.5, 1.0)), 4)
    0.4611
    """
    return _kv_of(v, x)


def kve(v: ArrayLike, x: ArrayLike) -> Array:
    """exp(x) kv(v, x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kve(0.5, 1.0)), 4)
    1.2533
    """
    return _kve_of(v, x)


@wide
def kn(n: Array, x: Array) -> Array:
    """The modified Bessel function of the second kind of integer order n.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kn(2, 1.0)), 4)
    1.6248
    """
    return _kv(lax.stop_gradient(jnp.where(n == lax.floor(n), n, math.nan)), x)


_HANKEL: Final = 30.0


def _iv_series(v: Array, x: Array) -> Array:
    """exp(-x) I_v(x) by the power series, of positive terms for v > -1, around its largest one."""
    square = 0.25 * x * x
    # the ratio of terms k and k - 1 is 1 where k (k + v) is x^2 / 4
    top = lax.stop_gradient(lax.floor(jnp.maximum(
        0.5 * (lax.sqrt(v * v + x * x) - v), 0.0)))
    start = jnp.ones_like(x)

    def up(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = term * square / ((top + k) * (top + k + v))
        return total + term, term

    def down(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        at = top - k + 1.0
        term = jnp.where(at > 0, term * (at * (at + v)) / square, 0.0)
        return total + term, term

    def going(total: Array, term: Array) -> Array:
        return lax.abs(term) > 1e-19 * lax.abs(total)

    total, _ = loop(up, (start, start), going, 20_000)
    below, _ = loop(down, (jnp.zeros_like(x), start), lambda total, term: (
        lax.abs(term) > 1e-19 * (1.0 + lax.abs(total))), 20_000)
    log = (2.0 * top + v) * lax.log(0.5 * x) - lax.lgamma(top + 1.0) - lax.lgamma(top + v + 1.0)
    return (total + below) * lax.exp(log - x)


def _iv_hankel(v: Array, x: Array) -> Array:
    """exp(-x) I_v(x) by its asymptotic series (DLMF 10.40.1)."""
    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = -term * (4.0 * v * v - (2.0 * k - 1.0) ** 2) / (8.0 * k * x)
        return total + term, term

    one = jnp.ones_like(x)
    total, _ = loop(step, (one, one), lambda total, term: lax.abs(term) > 1e-18, 40)
    return total * lax.exp(-0.5 * lax.log(x) - HALF_LOG_2PI)


def _ive_positive(v: Array, x: Array) -> Array:
    """exp(-x) I_v(x) for x > 0 and v that is no negative integer."""
    far = (x > _HANKEL) & (x > 0.5 * v * v + 25.0)
    return jnp.where(far, _iv_hankel(jnp.where(far, v, 0.0), jnp.where(far, x, 50.0)),
                     _iv_series(jnp.where(far, 0.0, v), jnp.where(far, 1.0, x)))


def _ive_value(v: Array, x: Array) -> Array:
    whole = v == lax.floor(v)
    order = jnp.where(whole & (v < 0), -v, v)
    proper = (lax.abs(x) > 0) & (lax.abs(x) < math.inf) & (lax.abs(v) < 1e4) & ((x > 0) | whole)
    # below zero sin(pi v) 2 / pi K_v is added to the function of the opposite order (10.27.2)
    negative = proper & (order < 0)
    u = jnp.where(proper, jnp.where(order < 0, -order, order), 0.0)
    size = jnp.where(proper, jnp.where(x < 0, -x, x), 1.0)
    value = _ive_positive(u, size)
    second, log = _log_kv(jnp.where(negative, u, 0.0), jnp.where(negative, size, 1.0))
    turn = jnp.remainder(u, 2.0)
    more = (2 / math.pi) * lax.sin(math.pi * turn) * second * lax.exp(log - 2.0 * size)
    value = value + jnp.where(negative, more, 0.0)
    odd = whole & (jnp.remainder(v, 2.0) == 1)
    value = jnp.where((x < 0) & odd, -value, value)
    at_zero = jnp.where(order == 0, 1.0, jnp.where(order > 0, 0.0, math.inf))
    value = jnp.where(proper, value, jnp.where(x == 0, at_zero, math.nan))
    return jnp.where((lax.abs(x) == math.inf) & (lax.abs(v) < math.inf), 0.0, value)


def _iv_value(v: Array, x: Array) -> Array:
    size = jnp.minimum(lax.abs(x), 1e4)
    value = _ive_value(v, x)
    half = lax.exp(0.5 * size)
    return jnp.where(lax.abs(x) == math.inf, jnp.where(x > 0, x, math.nan), value * half * half)


_iv: Callable[..., Array] = partials(
    pushed(_iv_value, 0), lambda out, v, x: _iv_slope(v, x))(_iv_value)
_ive: Callable[..., Array] = partials(
    pushed(_ive_value, 0), lambda out, v, x: _ive_slope(v, x) - lax.sign(x) * out)(_ive_value)


def _iv_slope(v: Array, x: Array) -> Array:
    return 0.5 * (_iv(v - 1.0, x) + _iv(v + 1.0, x))


def _ive_slope(v: Array, x: Array) -> Array:
    return 0.5 * (_ive(v - 1.0, x) + _ive(v + 1.0, x))


_COMPLEX_I: Final = modified_family(False)
_iv_of = by_kind("iv", _iv, _COMPLEX_I[0])
_ive_of = by_kind("ive", _ive, _COMPLEX_I[1])


def iv(v: ArrayLike, x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of real order v, |v| < 10,000, or complex x.

    The power series, and Hankel's asymptotic one for large x. NaN for real x < 0 unless v is
    an integer.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.iv(0.5, 1.0)), 4)
    0.9377
    """
    return _iv_of(v, x)


def ive(v: ArrayLike, x: ArrayLike) -> Array:
    """exp(-|x|) iv(v, x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ive(0.5, 1.0)), 4)
    0.345
    """
    return _ive_of(v, x)
