"""Integrals of Bessel, Airy and Struve functions of order 0 from 0, or to infinity.

Up to 2 or 3 by power series, or as far as those have terms of one sign; beyond by an integral over
a falling exponential, of which a complex argument gives both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.airy_functions import airy
from functrans.scipy.special.bessel import j0, y0
from functrans.scipy.special.bessel_orders import jv
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
from functrans.scipy.special.cylinder import LAPLACE_NODES, LAPLACE_WEIGHTS
from functrans.scipy.special.gammas import rgamma
from functrans.scipy.special.modified_bessel import i0, k0
from functrans.scipy.special.struve_functions import modstruve, struve
from functrans.typing import Array, ArrayLike

__all__ = ["besselpoly", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0",
           "itmodstruve0", "itstruve0"]

_LARGEST: Final = 720.0
_LIMIT: Final = 2000
_TERMS: Final = 16
_HARMONIC: Final = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 40))])


def _laplace(fun: Callable[..., Array], *args: Array) -> Array:
    return over_nodes(fun, LAPLACE_NODES, LAPLACE_WEIGHTS, *args)


def _acosh_above_1(p: Array) -> tuple[Array, Array]:
    """acosh(1 + p) and its sine, of complex numbers near 0 too."""
    root = lax.sqrt(p) * lax.sqrt(p + 2.0)
    return lax.log1p(p + root), root


def _tail(w: Array, order: float) -> Array:
    """exp(w) times the integral of K_order from w to infinity (DLMF 10.32.9)."""
    def part(node: Any, w: Array) -> Array:
        p = node / w
        u, sine = _acosh_above_1(p)
        weight = 0.5 * (lax.exp(order * u) + lax.exp(-order * u)) if order else 1.0
        found: Array = weight / ((1.0 + p) * sine * w)
        return found

    return _laplace(part, w)


def _tail_over(w: Array) -> Array:
    """exp(w) times the integral of K_0(t) / t from w to infinity."""
    return _laplace(lambda node, w: _acosh_above_1(node / w)[0] / (w + node), w)


def _on_axis(fun: Callable[[Array], Array], x: Array, power: float = 0.5) -> tuple[Array, Array]:
    """Of the K that `fun` has exp(w) times, the parts of J and Y at w = -i x, of the order 0.

    It falls as w to minus `power`, which is what is left where shares of w are no numbers.
    """
    size = jnp.minimum(x, 1e150)
    w = lax.complex(jnp.zeros_like(x), -size)
    rest = lax.exp(power * lax.log(size / x))
    value = fun(w) * lax.complex(rest * lax.cos(x), rest * lax.sin(x))
    return lax.real(value), lax.imag(value)


def _rising(x: Array, ratio: Callable[[Any], Any]) -> Array:
    """1 + r_1 + r_1 r_2 + ... of positive terms, r_k = ratio(k)."""
    one = jnp.ones_like(x)

    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = term * ratio(k)
        return total + term, term

    return loop(step, (one, one), lambda total, term: term > 1e-17 * total, _LIMIT)[0]


def _odd(value: Callable[[Array], Array], x: Array) -> Array:
    return jnp.where(x < 0, -1.0, 1.0) * value(lax.abs(x))


def _split(x: Array, near: float) -> tuple[Array, Array, Array]:
    """Whether x is below `near`, and an argument for either side."""
    low = x < near
    finite = x < math.inf
    return low, jnp.where(low & (x > 0), x, 0.5 * near), jnp.where(low | ~finite, near, x)


# Of J and Y --------------------------------------------------------------------------------------

_J_TERMS: Final = [(-1) ** k / (math.factorial(k) ** 2 * (2 * k + 1)) for k in range(_TERMS)]
_Y_TERMS: Final = [c * (float(_HARMONIC[k]) + 1 / (2 * k + 1)) for k, c in enumerate(_J_TERMS)]


@partials(lambda out, x: j0(x))
def _int_j0(x: Array) -> Array:
    def value(x: Array) -> Array:
        low, small, large = _split(x, 2.0)
        square = 0.25 * small * small
        # the real part of the integral of H is that of i / (pi / 2) K dw, w = -i x
        tail = (2 / math.pi) * _on_axis(lambda w: _tail(w, 0.0), large)[0]
        out = jnp.where(low, small * polynomial(square, _J_TERMS), 1.0 - tail)
        return jnp.where(x == 0, x, jnp.where(x == math.inf, 1.0, jnp.where(x == x, out, math.nan)))

    return _odd(value, x)


@partials(lambda out, x: y0(x))
def _int_y0(x: Array) -> Array:
    low, small, large = _split(x, 2.0)
    square = 0.25 * small * small
    log = lax.log(0.5 * small) + EULER
    near = (2 / math.pi) * small * (log * polynomial(square, _J_TERMS)
                                    - polynomial(square, _Y_TERMS))
    far = -(2 / math.pi) * _on_axis(lambda w: _tail(w, 0.0), large)[1]
    out = jnp.where(low, near, far)
    out = jnp.where(x == 0, x, jnp.where(x == math.inf, 0.0, out))
    return jnp.where(x >= 0, out, math.nan)


def itj0y0(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of J_0 and of Y_0 from 0 to x; the second one is NaN for x < 0.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.itj0y0(1.0)]
    [0.9197, -0.6371]
    """
    out: tuple[Array, Array] = in_double(lambda x: (_int_j0(x), _int_y0(x)),
                                         operands("itj0y0", x))
    return out


_J2_TERMS: Final = [(-1) ** k / (math.factorial(k + 1) ** 2 * (2 * k + 2)) for k in range(_TERMS)]
_Y2_TERMS: Final = [c * (float(_HARMONIC[k + 1]) + 1 / (2 * k + 2))
                    for k, c in enumerate(_J2_TERMS)]


def _over_j(x: Array, other: Callable[[Array], Array], sign: float, at: Array) -> Array:
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.where(x == 0, at, sign * (1.0 - other(x)) / safe)


@partials(lambda out, x: _over_j(x, j0, 1.0, 0.5 * x))
def _int_j0_over(x: Array) -> Array:
    size = lax.abs(x)
    low, small, large = _split(size, 2.0)
    square = 0.25 * small * small
    # of H / t the integral from x is that of K / w from -i x on
    tail = (2 / math.pi) * _on_axis(_tail_over, large, 1.5)[1]
    out = jnp.where(low, square * polynomial(square, _J2_TERMS),
                    lax.log(0.5 * large) + EULER + tail)
    return jnp.where(size == 0, 0.0, jnp.where(size == math.inf, math.inf,
                                               jnp.where(x == x, out, math.nan)))


def _log_parts(small: Array, plain: list[float], weighted: list[float]) -> Array:
    """The integral of K_0(t) / t from `small` on, or that of -pi / 2 Y_0(t) / t, by its series."""
    square = 0.25 * small * small
    log = lax.log(0.5 * small) + EULER
    return 0.5 * log * log + square * (log * polynomial(square, plain)
                                       - polynomial(square, weighted))


@partials(lambda out, x: -y0(x) / x)
def _int_y0_over(x: Array) -> Array:
    low, small, large = _split(x, 2.0)
    near = -(2 / math.pi) * (_log_parts(small, [-c for c in _J2_TERMS],
                                        [-c for c in _Y2_TERMS]) - math.pi ** 2 / 12)
    far = -(2 / math.pi) * _on_axis(_tail_over, large, 1.5)[0]
    out = jnp.where(low, near, far)
    out = jnp.where(x == 0, -math.inf, jnp.where(x == math.inf, 0.0, out))
    return jnp.where(x >= 0, out, math.nan)


def it2j0y0(x: ArrayLike) -> tuple[Array, Array]:
    """The integral of (1 - J_0(t)) / t from 0 to x, and that of Y_0(t) / t from x to infinity.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.it2j0y0(1.0)]
    [0.1212, 0.3953]
    """
    out: tuple[Array, Array] = in_double(lambda x: (_int_j0_over(x), _int_y0_over(x)),
                                         operands("it2j0y0", x))
    return out


# Of I and K --------------------------------------------------------------------------------------

_K_TERMS: Final = [abs(c) for c in _J_TERMS]
_K_WEIGHTED: Final = [c * (float(_HARMONIC[k]) + 1 / (2 * k + 1)) for k, c in enumerate(_K_TERMS)]
_I2_TERMS: Final = [abs(c) for c in _J2_TERMS]
_K2_TERMS: Final = [abs(c) for c in _Y2_TERMS]


@partials(lambda out, x: i0(x))
def _int_i0(x: Array) -> Array:
    size = lax.abs(x)
    place = jnp.where(size < _LARGEST, x, 0.0)
    square = 0.25 * place * place
    value = place * _rising(place, lambda k: square * (2.0 * k - 1.0) / (k * k * (2.0 * k + 1.0)))
    return jnp.where(size < _LARGEST, value, x * math.inf)


@partials(lambda out, x: k0(x))
def _int_k0(x: Array) -> Array:
    low, small, large = _split(x, 2.0)
    square = 0.25 * small * small
    log = lax.log(0.5 * small) + EULER
    near = small * (polynomial(square, _K_WEIGHTED) - log * polynomial(square, _K_TERMS))
    far = 0.5 * math.pi - lax.exp(-large) * _tail(large, 0.0)
    out = jnp.where(low, near, far)
    out = jnp.where(x == 0, x, jnp.where(x == math.inf, 0.5 * math.pi, out))
    return jnp.where(x >= 0, out, math.nan)


def iti0k0(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of I_0 and of K_0 from 0 to x; the second one is NaN for x < 0.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.iti0k0(1.0)]
    [1.0865, 1.2425]
    """
    out: tuple[Array, Array] = in_double(lambda x: (_int_i0(x), _int_k0(x)),
                                         operands("iti0k0", x))
    return out


@partials(lambda out, x: _over_j(x, i0, -1.0, 0.5 * x))
def _int_i0_over(x: Array) -> Array:
    size = lax.abs(x)
    square = 0.25 * jnp.where(size < _LARGEST, x * x, 0.0)
    value = 0.5 * square * _rising(square, lambda k: square * k / ((k + 1.0) ** 3))
    return jnp.where(size < _LARGEST, value, jnp.where(x == x, math.inf, math.nan))


@partials(lambda out, x: -k0(x) / x)
def _int_k0_over(x: Array) -> Array:
    low, small, large = _split(x, 2.0)
    near = _log_parts(small, _I2_TERMS, _K2_TERMS) + math.pi ** 2 / 24
    far = lax.exp(-large) * _tail_over(large)
    out = jnp.where(low, near, far)
    out = jnp.where(x == 0, math.inf, jnp.where(x == math.inf, 0.0, out))
    return jnp.where(x >= 0, out, math.nan)


def it2i0k0(x: ArrayLike) -> tuple[Array, Array]:
    """The integral of (I_0(t) - 1) / t from 0 to x, and that of K_0(t) / t from x to infinity.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.it2i0k0(1.0)]
    [0.129, 0.2085]
    """
    out: tuple[Array, Array] = in_double(lambda x: (_int_i0_over(x), _int_k0_over(x)),
                                         operands("it2i0k0", x))
    return out


# Of Struve functions -----------------------------------------------------------------------------


def _double_odds(count: int, factor: Callable[[int], float]) -> list[float]:
    """(-1)^k / ((2 k + 1)!!)^2 times a factor of k."""
    squares = np.cumprod([1.0, *((2.0 * k + 1.0) ** 2 for k in range(1, count))])
    return [(-1) ** k / float(squares[k]) * factor(k) for k in range(count)]


_H_TERMS: Final = _double_odds(20, lambda k: 1 / (2 * k + 2))
_H2_TERMS: Final = _double_odds(20, lambda k: 1 / (2 * k + 1))


@partials(lambda out, x: struve(jnp.zeros_like(x), x))
def _int_h0(x: Array) -> Array:
    size = lax.abs(x)
    low, small, large = _split(size, 3.0)
    near = (2 / math.pi) * small * small * polynomial(small * small, _H_TERMS)

    def part(node: Any, x: Array) -> Array:
        q = (node / x) ** 2
        root = lax.sqrt(1.0 + q)
        found: Array = -q / (root * (1.0 + root) * node)
        return found

    second = -(2 / math.pi) * _on_axis(lambda w: _tail(w, 0.0), large)[1]
    far = (2 / math.pi) * (lax.log(2.0 * large) + EULER - _laplace(part, large)) + second
    out = jnp.where(low, near, far)
    return jnp.where(size == 0, 0.0, jnp.where(size == math.inf, math.inf,
                                               jnp.where(x == x, out, math.nan)))


@wide
def itstruve0(x: Array) -> Array:
    """The integral of the Struve function H_0 from 0 to x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.itstruve0(1.0)), 4)
    0.3011
    """
    return _int_h0(x)


def _h0_over(x: Array) -> Array:
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.where(x == 0, 2 / math.pi, struve(jnp.zeros_like(x), safe) / safe)


@partials(lambda out, x: -_h0_over(x))
def _int_h0_over(x: Array) -> Array:
    size = lax.abs(x)
    low, small, large = _split(size, 3.0)
    near = 0.5 * math.pi - (2 / math.pi) * small * polynomial(small * small, _H2_TERMS)
    second = -(2 / math.pi) * _on_axis(_tail_over, large, 1.5)[0]
    far = second + (2 / math.pi) * _laplace(lambda node, x: lax.asinh(node / x) / node, large)
    out = jnp.where(low, near, far)
    out = jnp.where(size == 0, 0.5 * math.pi, jnp.where(size == math.inf, 0.0, out))
    return jnp.where(x == x, jnp.where(x < 0, math.pi - out, out), math.nan)


@wide
def it2struve0(x: Array) -> Array:
    """The integral of H_0(t) / t, of the Struve function H_0, from x to infinity.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.it2struve0(1.0)), 4)
    0.9572
    """
    return _int_h0_over(x)


@partials(lambda out, x: modstruve(jnp.zeros_like(x), x))
def _int_l0(x: Array) -> Array:
    size = lax.abs(x)
    place = jnp.where(size < _LARGEST, size, 0.0)
    square = place * place
    value = square / math.pi * _rising(place, lambda k: square * k / (
        (k + 1.0) * (2.0 * k + 1.0) ** 2))
    return jnp.where(size < _LARGEST, value, jnp.where(x == x, math.inf, math.nan))


@wide
def itmodstruve0(x: Array) -> Array:
    """The integral of the modified Struve function L_0 from 0 to x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.itmodstruve0(1.0)), 4)
    0.3365
    """
    return _int_l0(x)


# Of Airy functions -------------------------------------------------------------------------------

_AT_0: Final = 0.355028053887817239
_SLOPE_AT_0: Final = 0.258819403792806798


def _airy_series(x: Array) -> tuple[Array, Array]:
    """The integrals from 0 of the solutions that begin as 1 and x, for x > -1 (DLMF 9.4)."""
    cube = x * x * x
    one = jnp.ones_like(x)

    def step(k: Any, f: Array, g: Array, a: Array, b: Array) -> tuple[Array, ...]:
        n = 3.0 * k
        a = a * cube * (n - 2.0) / ((n - 1.0) * n * (n + 1.0))
        b = b * cube * (n - 1.0) / (n * (n + 1.0) * (n + 2.0))
        return f + a, g + b, a, b

    f, g, _, _ = loop(step, (one, one, one, one), lambda f, g, a, b: (
        lax.abs(a) > 1e-17 * lax.abs(f)) | (lax.abs(b) > 1e-17 * lax.abs(g)), _LIMIT)
    return x * f, 0.5 * x * x * g


_MIDDLE: Final = 2.0


def _int_airy(x: Array) -> tuple[Array, Array, Array, Array]:
    """Integrals of Ai and Bi from 0 to x and from 0 to -x, for x >= 0."""
    low, small, large = _split(x, _MIDDLE)
    zeta = 2.0 / 3.0 * large * lax.sqrt(large)
    f, g = _airy_series(jnp.where(x < 110.0, jnp.where(x > 0, x, 0.0), 1.0))
    root = math.sqrt(3.0)
    rising = root * (_AT_0 * f + _SLOPE_AT_0 * g)
    rising = jnp.where(x < 110.0, rising, math.inf)
    falling = jnp.where(low, _AT_0 * f - _SLOPE_AT_0 * g, 1.0 / 3.0 - lax.exp(-zeta) / (
        math.pi * root) * _tail(zeta, 1.0 / 3.0))
    back_f, back_g = _airy_series(jnp.where(low, -small, 0.0))
    # Ai + i Bi of negative numbers is a multiple of the Hankel function of a third (DLMF 9.6.6)
    real, imaginary = _on_axis(lambda w: _tail(w, 1.0 / 3.0), zeta)
    scale = 2.0 / (math.pi * root)
    ai, bi = 2.0 / 3.0 - scale * real, scale * imaginary
    first = jnp.where(low, -(_AT_0 * back_f - _SLOPE_AT_0 * back_g), ai)
    second = jnp.where(low, -root * (_AT_0 * back_f + _SLOPE_AT_0 * back_g), bi)
    ends = (1.0 / 3.0, math.inf, 2.0 / 3.0, 0.0)
    found = [jnp.where(x == math.inf, end, jnp.where(x == 0, 0.0, jnp.where(x == x, v, math.nan)))
             for v, end in zip((falling, rising, first, second), ends, strict=True)]
    return found[0], found[1], found[2], found[3]


def _airy_part(which: int) -> Callable[[Array], Array]:
    def value(x: Array) -> Array:
        forward, negative = _int_airy(lax.abs(x))[which], _int_airy(lax.abs(x))[(which + 2) % 4]
        return jnp.where(x < 0, -negative, forward)

    return partials(lambda out, x: airy(-x if which > 1 else x)[2 * (which % 2)])(value)


_AIRY: Final = [_airy_part(which) for which in range(4)]


def itairy(x: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """The integrals from 0 to x of Ai(t), Bi(t), Ai(-t) and Bi(-t).

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.itairy(1.0)]
    [0.2363, 0.8728, 0.4657, 0.373]
    """
    out: tuple[Array, Array, Array, Array] = in_double(
        lambda x: tuple(f(x) for f in _AIRY), operands("itairy", x))
    return out


# Of a power times J ------------------------------------------------------------------------------


def _poly(a: Array, lmb: Array, nu: Array) -> Array:
    # of x^(lmb + nu + 2 k) the integral is 1 / (lmb + nu + 2 k + 1)
    square = -a * a
    first = lmb + nu + 1.0

    def step(k: Any, total: Array, term: Array) -> tuple[Array, Array]:
        term = term * square / (k * (k + nu))
        return total + term / (first + 2.0 * k), term

    one = jnp.ones_like(a)
    total, _ = loop(step, (one / first, one), lambda total, term: (
        lax.abs(term) > 1e-18 * lax.abs(total)), _LIMIT)
    size = lax.abs(a)
    power = lax.exp(nu * lax.log(jnp.where(size > 0, size, 1.0)))
    power = jnp.where(size > 0, power, jnp.where(nu == 0, 1.0, 0.0))
    odd = (a < 0) & (jnp.remainder(nu, 2.0) == 1)
    known = (a >= 0) | (nu == lax.floor(nu))
    return jnp.where(known, jnp.where(odd, -power, power) * rgamma(nu + 1.0) * total, math.nan)


@partials(lambda out, a, lmb, nu: (jv(nu, 2.0 * a) - (lmb + 1.0) * out) / jnp.where(a == 0, 1.0, a),
          None, None)
def _besselpoly(a: Array, lmb: Array, nu: Array) -> Array:
    return _poly(a, lmb, nu)


@wide
def besselpoly(a: Array, lmb: Array, nu: Array) -> Array:
    """The integral of x^lmb J_nu(2 a x) from 0 to 1, by its power series.

    Its terms cancel exp(2 |a|) of them, as SciPy's do: 1e-12 up to |a| = 4.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.besselpoly(1.0, 0.0, 0.0)), 4)
    0.7129
    """
    return _besselpoly(a, lmb, nu)
