"""Zeros of Bessel, Airy, Kelvin and error functions and of Fresnel's integrals.

How many is a known number; they are found on the host in float64, by Newton's method from an
asymptotic formula or from where the function changes sign.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.scipy.arguments import known_size
from functrans.scipy.special.airy_functions import airy
from functrans.scipy.special.bessel import yn
from functrans.scipy.special.bessel_orders import jv, yv
from functrans.scipy.special.bessel_sequences import jvp, yvp
from functrans.scipy.special.faddeeva import wofz
from functrans.scipy.special.kelvin_functions import (
    bei,
    beip,
    ber,
    berp,
    kei,
    keip,
    ker,
    kerp,
)
from functrans.typing import Array

__all__ = ["ai_zeros", "bei_zeros", "beip_zeros", "ber_zeros", "berp_zeros", "bi_zeros",
           "erf_zeros", "fresnel_zeros", "fresnelc_zeros", "fresnels_zeros", "jn_zeros",
           "jnjnp_zeros", "jnp_zeros", "jnyn_zeros", "kei_zeros", "keip_zeros", "kelvin_zeros",
           "ker_zeros", "kerp_zeros", "y0_zeros", "y1_zeros", "y1p_zeros", "yn_zeros", "ynp_zeros"]

_STEPS = 8


def _real(x: Any) -> Array:
    return jnp.asarray(x, default_float())


def _complex(z: Any) -> Array:
    return jnp.asarray(z, np.complex128 if default_float() == np.float64 else np.complex64)


def _refined(fun: Callable[[Any], Any], low: Any, high: Any, sign: Any) -> Any:
    """Where a function, of a sign at `low` and the other at `high`, is 0."""
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        left = np.sign(np.asarray(fun(middle))) == sign
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    # from an interval of 1/500 secants need four steps
    f_low, f_high = np.asarray(fun(low)), np.asarray(fun(high))
    for _ in range(6):
        apart = f_high - f_low
        step = np.where(apart == 0, 0.0, f_high * (high - low) / np.where(apart == 0, 1.0, apart))
        low, f_low, high = high, f_high, high - step
        f_high = np.asarray(fun(high))
    return high


def _first_zeros(fun: Callable[[Any], Any], count: int, last: float) -> Any:
    """The first `count` zeros in x > 0 of a function whose zeros are more than 1 apart."""
    while True:
        grid = np.concatenate([[1e-3], np.arange(0.25, max(last, 4.0) + 2.0, 0.5)])
        values = np.asarray(fun(grid))
        at = np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0)[:count]
        if len(at) == count:
            return _refined(fun, grid[at], grid[at + 1], np.sign(values[at]))
        last *= 1.5


def _bessel(name: str, fun: Callable[[Any, Any], Any], n: Any, nt: Any) -> Array:
    order = known_size(f"special.{name}", "n", n, 0)
    count = known_size(f"special.{name}", "nt", nt)
    last = order + 2.6 * order ** (1 / 3) + math.pi * (count + 2) + 0.2 * count
    return _real(_first_zeros(lambda x: fun(np.float64(order), x), count, last))


def jn_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the Bessel function of the first kind of integer order n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.jn_zeros(0, 2).round(4))
    [2.4048 5.5201]
    """
    return _bessel("jn_zeros", jv, n, nt)


def jnp_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of the Bessel function of the first kind.

    >>> import functrans as ft
    >>> print(ft.scipy.special.jnp_zeros(1, 1).round(4))
    [1.8412]
    """
    return _bessel("jnp_zeros", jvp, n, nt)


def yn_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the Bessel function of the second kind of integer order n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.yn_zeros(0, 1).round(4))
    [0.8936]
    """
    return _bessel("yn_zeros", yn, n, nt)


def ynp_zeros(n: int, nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of the Bessel function of the second kind.

    >>> import functrans as ft
    >>> print(ft.scipy.special.ynp_zeros(0, 1).round(4))
    [2.1971]
    """
    return _bessel("ynp_zeros", yvp, n, nt)


def jnyn_zeros(n: int, nt: int) -> tuple[Array, Array, Array, Array]:
    """The first nt zeros above 0 of J_n, its derivative, Y_n and its derivative.

    >>> import functrans as ft
    >>> [round(float(z[0]), 4) for z in ft.scipy.special.jnyn_zeros(1, 1)]
    [3.8317, 1.8412, 2.1971, 3.683]
    """
    return jn_zeros(n, nt), jnp_zeros(n, nt), yn_zeros(n, nt), ynp_zeros(n, nt)


def jnjnp_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """The nt least zeros of all J_n and their derivatives in their order, with what they are of.

    The orders n, the serial numbers m, and 1 for zeros of a derivative or 0: that of J_0 at 0 comes
    first, of serial number 0.

    >>> import functrans as ft
    >>> zo, n, m, t = ft.scipy.special.jnjnp_zeros(3)
    >>> print(zo.round(4))
    [0.     1.8412 2.4048]
    """
    count = known_size("special.jnjnp_zeros", "nt", nt)
    last = 2.0 * math.sqrt(count) + 4.0
    while True:
        orders = np.arange(0.0, last + 1.0)
        grid = np.concatenate([[1e-3], np.arange(0.25, last, 0.5)])
        rows: list[tuple[float, int, int, int]] = [(0.0, 0, 0, 1)]
        for kind, fun in enumerate((jv, jvp)):
            values = np.asarray(fun(orders[:, None], grid))
            # far below the order there is no zero, and values underflow
            change = (np.sign(values[:, 1:]) * np.sign(values[:, :-1]) < 0) \
                & (grid[1:] > orders[:, None])
            at = np.argwhere(change)
            order = orders[at[:, 0]]
            low, high = grid[at[:, 1]], grid[at[:, 1] + 1]
            found = _refined(functools.partial(fun, order), low, high,
                             np.sign(values[at[:, 0], at[:, 1]]))
            serial = 1 + np.concatenate([np.arange(c) for c in change.sum(1)])
            rows += [(float(x), int(v), int(s), kind)
                     for x, v, s in zip(found, order, serial, strict=True)]
        if len(rows) >= count:
            zero, n, m, t = (np.array(column) for column in zip(
                *sorted(rows, key=lambda r: (round(r[0], 9), r[3]))[:count], strict=True))
            return _real(zero), jnp.asarray(n), jnp.asarray(m), jnp.asarray(t)
        last *= 1.3


def _newton(fun: Callable[[Any], tuple[Any, Any]], start: Any, steps: int = 12) -> Any:
    z = np.asarray(start)
    for _ in range(steps):
        value, slope = fun(z)
        z = z - np.asarray(value) / np.asarray(slope)
    return z


def _second_kind(name: str, nt: Any, is_complex: bool, order: int, slope: bool
                 ) -> tuple[Array, Array]:
    count = known_size(f"special.{name}", "nt", nt)
    v = np.float64(order)

    def fun(z: Any) -> tuple[Any, Any]:
        if not slope:
            return yv(v, z), yvp(v, z)
        return yvp(v, z), yvp(v, z, 2)

    if is_complex:
        # beside the zeros of J, above the cut
        if slope:
            first, rest = [0.5768 + 0.9040j], np.asarray(jnp_zeros(order, count), np.float64)[:-1]
        elif order:
            first, rest = [-0.5027 + 0.7862j], np.asarray(jn_zeros(order, count), np.float64)[:-1]
        else:
            first, rest = [], np.asarray(jn_zeros(order, count), np.float64)
        start = np.concatenate([first, -rest + 0.55j])[:count]
        zero = _newton(fun, start)
    else:
        found = ynp_zeros(order, count) if slope else yn_zeros(order, count)
        zero = _newton(fun, np.asarray(found, np.float64), 2)
    value = yv(v, zero) if slope else yvp(v, zero)
    return _complex(zero), _complex(value)


def y0_zeros(nt: int, complex: bool = False) -> tuple[Array, Array]:
    """The first nt zeros of Y_0, and its derivative there, as complex numbers.

    With `complex` those of negative real and positive imaginary part.

    >>> import functrans as ft
    >>> zero, slope = ft.scipy.special.y0_zeros(1)
    >>> round(float(zero[0].real), 4), round(float(slope[0].real), 4)
    (0.8936, 0.8794)
    """
    return _second_kind("y0_zeros", nt, complex, 0, False)


def y1_zeros(nt: int, complex: bool = False) -> tuple[Array, Array]:
    """The first nt zeros of Y_1, and its derivative there, as complex numbers.

    >>> import functrans as ft
    >>> zero, slope = ft.scipy.special.y1_zeros(1)
    >>> round(float(zero[0].real), 4), round(float(slope[0].real), 4)
    (2.1971, 0.5208)
    """
    return _second_kind("y1_zeros", nt, complex, 1, False)


def y1p_zeros(nt: int, complex: bool = False) -> tuple[Array, Array]:
    """The first nt zeros of the derivative of Y_1, and Y_1 there, as complex numbers.

    >>> import functrans as ft
    >>> zero, value = ft.scipy.special.y1p_zeros(1)
    >>> round(float(zero[0].real), 4), round(float(value[0].real), 4)
    (3.683, 0.4167)
    """
    return _second_kind("y1p_zeros", nt, complex, 1, True)


# Airy --------------------------------------------------------------------------------------------


def _airy_zeros(name: str, nt: Any, which: int) -> tuple[Array, Array, Array, Array]:
    count = known_size(f"special.{name}", "nt", nt)
    k = 4.0 * np.arange(1, count + 1)
    shift = (1.0, 3.0) if which == 0 else (3.0, 1.0)
    found = []
    for slope in (False, True):
        t = 3.0 * math.pi / 8.0 * (k - shift[slope])
        q = 1.0 / (t * t)
        # DLMF 9.9.18, 9.9.19
        start = -t ** (2 / 3) * ((1 - 7 / 48 * q) if slope else (1 + 5 / 48 * q))
        if slope and which:
            start[0] = -2.2944  # where the series is no guess
        if slope and not which:
            start[0] = -1.0188

        def fun(x: Any, slope: bool = slope) -> tuple[Any, Any]:
            values = [np.asarray(v) for v in airy(x)[2 * which:2 * which + 2]]
            return (values[1], x * values[0]) if slope else (values[0], values[1])

        found.append(_newton(fun, start, 6))
    at, at_slope = found
    value = airy(at_slope)[2 * which]
    derivative = airy(at)[2 * which + 1]
    return _real(at), _real(at_slope), _real(value), _real(derivative)


def ai_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """The first nt zeros a of Ai and a' of Ai', Ai at a', and Ai' at a.

    >>> import functrans as ft
    >>> [round(float(v[0]), 4) for v in ft.scipy.special.ai_zeros(1)]
    [-2.3381, -1.0188, 0.5357, 0.7012]
    """
    return _airy_zeros("ai_zeros", nt, 0)


def bi_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """The first nt real zeros b of Bi and b' of Bi', Bi at b', and Bi' at b.

    >>> import functrans as ft
    >>> [round(float(v[0]), 4) for v in ft.scipy.special.bi_zeros(1)]
    [-1.1737, -2.2944, -0.4549, 0.602]
    """
    return _airy_zeros("bi_zeros", nt, 1)


# Kelvin ------------------------------------------------------------------------------------------


def _kelvin(name: str, fun: Callable[[Any], Any], nt: Any) -> Array:
    count = known_size(f"special.{name}", "nt", nt)
    return _real(_first_zeros(fun, count, 4.45 * (count + 1)))


def ber_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the Kelvin function ber.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ber_zeros(1)[0]), 4)
    2.8489
    """
    return _kelvin("ber_zeros", ber, nt)


def bei_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the Kelvin function bei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bei_zeros(1)[0]), 4)
    5.0262
    """
    return _kelvin("bei_zeros", bei, nt)


def ker_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the Kelvin function ker.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ker_zeros(1)[0]), 4)
    1.7185
    """
    return _kelvin("ker_zeros", ker, nt)


def kei_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the Kelvin function kei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kei_zeros(1)[0]), 4)
    3.9147
    """
    return _kelvin("kei_zeros", kei, nt)


def berp_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of ber.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.berp_zeros(1)[0]), 4)
    6.0387
    """
    return _kelvin("berp_zeros", berp, nt)


def beip_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of bei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.beip_zeros(1)[0]), 4)
    3.7727
    """
    return _kelvin("beip_zeros", beip, nt)


def kerp_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of ker.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kerp_zeros(1)[0]), 4)
    2.6658
    """
    return _kelvin("kerp_zeros", kerp, nt)


def keip_zeros(nt: int) -> Array:
    """The first nt zeros above 0 of the derivative of kei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.keip_zeros(1)[0]), 4)
    4.9318
    """
    return _kelvin("keip_zeros", keip, nt)


def kelvin_zeros(nt: int) -> tuple[Array, ...]:
    """The first nt zeros above 0 of ber, bei, ker, kei and of their derivatives.

    >>> import functrans as ft
    >>> [round(float(z[0]), 2) for z in ft.scipy.special.kelvin_zeros(1)]
    [2.85, 5.03, 1.72, 3.91, 6.04, 3.77, 2.67, 4.93]
    """
    return tuple([zeros(nt) for zeros in (ber_zeros, bei_zeros, ker_zeros, kei_zeros, berp_zeros,
                                          beip_zeros, kerp_zeros, keip_zeros)])


# Complex error functions -----------------------------------------------------------------------


def _erf(z: Any) -> Any:
    """erf of complex numbers with a real part that is not negative."""
    return 1.0 - np.exp(-z * z) * np.asarray(wofz(1j * z))


def _erf_odd(z: Any) -> Any:
    right = z.real >= 0
    value = _erf(np.where(right, z, -z))
    return np.where(right, value, -value)


def erf_zeros(nt: int) -> Array:
    """The first nt zeros of erf in the first quadrant, complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erf_zeros(1)[0].imag), 3)
    1.881
    """
    n = np.arange(1.0, known_size("special.erf_zeros", "nt", nt) + 1.0)
    size = np.sqrt(math.pi * (4 * n - 0.5))
    lift = np.log(math.pi * np.sqrt(2 * n - 0.25)) / size
    start = 0.5 * (size - lift) + 0.5j * (size + lift)
    return _complex(_newton(lambda z: (_erf(z), 2 / math.sqrt(math.pi) * np.exp(-z * z)), start))


def _fresnel(z: Any, sine: bool) -> tuple[Any, Any]:
    """S or C of complex numbers, and the derivative (DLMF 7.5.8)."""
    root = 0.5 * math.sqrt(math.pi)
    up = 0.5 * (1 + 1j) * _erf_odd(root * (1 - 1j) * z)
    down = 0.5 * (1 - 1j) * _erf_odd(root * (1 + 1j) * z)
    phase = 0.5 * math.pi * z * z
    return ((up - down) / 2j, np.sin(phase)) if sine else (0.5 * (up + down), np.cos(phase))


def _fresnel_zeros(name: str, nt: Any, sine: bool) -> Array:
    n = np.arange(1.0, known_size(f"special.{name}", "nt", nt) + 1.0)
    size = 2 * np.sqrt(n) if sine else np.sqrt(4 * n - 1)
    log = np.log(math.pi * size)
    start = size - log / (math.pi**2 * size**3) + 1j * log / (math.pi * size)
    return _complex(_newton(lambda z: _fresnel(z, sine), start))


def fresnelc_zeros(nt: int) -> Array:
    """The first nt zeros of Fresnel's cosine integral in the first quadrant, complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fresnelc_zeros(1)[0].real), 3)
    1.744
    """
    return _fresnel_zeros("fresnelc_zeros", nt, False)


def fresnels_zeros(nt: int) -> Array:
    """The first nt zeros of Fresnel's sine integral in the first quadrant, complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.fresnels_zeros(1)[0].real), 3)
    2.009
    """
    return _fresnel_zeros("fresnels_zeros", nt, True)


def fresnel_zeros(nt: int) -> tuple[Array, Array]:
    """The first nt zeros of Fresnel's sine and of his cosine integral, complex.

    >>> import functrans as ft
    >>> [z.shape for z in ft.scipy.special.fresnel_zeros(3)]
    [(3,), (3,)]
    """
    return fresnels_zeros(nt), fresnelc_zeros(nt)
