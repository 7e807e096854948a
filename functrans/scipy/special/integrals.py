"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
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
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike

__all__ = ["exp1", "expi", "expn", "shichi", "sici", "spence"]

_EI: Final = [1.0 / ((k + 1) * math.factorial(k + 1)) for k in range(130)]
_EI_FAR: Final = [float(math.factorial(k)) for k in range(40)]


def _expn_near(n: Array, x: Array) -> Array:
    """E_n(x) for 0 < x <= 1 by the power series (DLMF 8.19.8)."""
    def step(k: Any, term: Array, total: Array) -> tuple[Array, Array]:
        term = -term * x / k
        gap = k - n + 1.0
        return term, total - jnp.where(gap == 0, 0.0, term / jnp.where(gap == 0, 1.0, gap))

    one = jnp.ones_like(x)
    first = jnp.where(n == 1, 0.0, -1.0 / jnp.where(n == 1, 1.0, 1.0 - n))
    _, total = loop(step, (one, first), lambda t, s: lax.abs(t) > 1e-40, 60)
    # the power of order n - 1 has a logarithm: (-x)^(n - 1) / (n - 1)! (digamma(n) - log x)
    odd = jnp.remainder(n, 2.0) == 0
    size = lax.exp((n - 1.0) * lax.log(x) - lax.lgamma(n)) * (lax.digamma(n) - lax.log(x))
    return total + jnp.where(odd, -size, size)


def _expn_far(n: Array, x: Array) -> Array:
    """E_n(x) for x > 1 by the contracted continued fraction (DLMF 8.19.17)."""
    def step(k: Any, c: Array, d: Array, total: Array, moved: Array) -> tuple[Array, ...]:
        a, b = -k * (n - 1.0 + k), x + n + 2.0 * k
        d = 1.0 / (a * d + b)
        c = b + a / c
        return c, d, total * (c * d), lax.abs(c * d - 1.0)

    first = 1.0 / (x + n)
    state = (jnp.full_like(x, 1e300), first, first, jnp.ones_like(x))
    return lax.exp(-x) * loop(step, state, lambda c, d, t, moved: moved > 1e-16, 400)[2]


def _next_lower(out: Array, n: Array, x: Array) -> Array:
    return jnp.where(n == 0, -out * (1.0 + 1.0 / x), -_expn(jnp.maximum(n - 1.0, 0.0), x))


@partials(None, _next_lower)
def _expn(n: Array, x: Array) -> Array:
    proper = (x > 0) & (n >= 1) & (n == lax.floor(n)) & (x < math.inf) & (n < math.inf)
    order, place = jnp.where(proper, n, 1.0), jnp.where(proper, x, 1.0)
    near = place <= 1.0
    value = jnp.where(near, _expn_near(order, jnp.where(near, place, 1.0)),
                      _expn_far(order, jnp.where(near, 2.0, place)))
    value = jnp.where(proper, value, math.nan)
    at_zero = jnp.where(n > 1, 1.0 / jnp.where(n > 1, n - 1.0, 1.0), math.inf)
    whole = (n >= 0) & (n == lax.floor(n))
    value = jnp.where((x == 0) & whole, at_zero, value)
    plain = (n == 0) & (x > 0)
    value = jnp.where(plain, lax.exp(-x) / jnp.where(plain, x, 1.0), value)
    return jnp.where(whole & (x == math.inf), 0.0, value)


@wide
def expn(n: Array, x: Array) -> Array:
    """The exponential integral E_n(x) of exp(-x t) / t^n over t > 1, for an integer n >= 0.

    A power series up to x = 1 and a continued fraction beyond (DLMF 8.19). n has no derivative.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.expn(2, 1.0)), 4)
    0.1485
    """
    return _expn(n, x)


@partials(lambda out, x: lax.exp(x) / x)
def _expi(x: Array) -> Array:
    far = x > 40.0
    tail = jnp.minimum(jnp.where(far, x, 40.0), 720.0)  # Ei(717) is infinite
    inverse = 1.0 / tail
    large = lax.exp(0.5 * tail) * (lax.exp(0.5 * tail) * inverse
                                   * polynomial(inverse, _EI_FAR))
    near = (x > 0) & ~far
    place = jnp.where(near, x, 1.0)
    # around the root the logarithm and the series cancel: there both are of the distance to it
    series = EULER + lax.log(place) + place * polynomial(place, _EI)
    close = lax.abs(place - _ROOT) < 0.1
    step = jnp.where(close, (place - _ROOT) - _ROOT_LOW, 0.0)
    around = over_nodes(lambda t, h: lax.exp(_ROOT + h * t) / (_ROOT + h * t), *_UNIT, step) * step
    small = jnp.where(close, around, series)
    negative = jnp.where(x < 0, -x, 1.0)
    value = jnp.where(far, large, jnp.where(near, small, -_expn(jnp.ones_like(x), negative)))
    value = jnp.where(x == math.inf, x, jnp.where(x == 0, -math.inf, value))
    return jnp.where(jnp.isnan(x), math.nan, value)


_LEGENDRE = np.polynomial.legendre.leggauss(16)
_UNIT: Final = (0.5 * (_LEGENDRE[0] + 1.0), 0.5 * _LEGENDRE[1])
# where Ei is 0, and what rounding leaves of it
_ROOT: Final = 0.3725074107813666
_ROOT_LOW: Final = 1.3140183414386028e-17


@wide
def expi(x: Array) -> Array:
    """The exponential integral Ei(x), the principal value of that of exp(t) / t up to x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.expi(1.0)), 4)
    1.8951
    """
    return _expi(x)


@wide
def exp1(x: Array) -> Array:
    """The exponential integral E_1(x), for x >= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.exp1(1.0)), 4)
    0.2194
    """
    return _expn(jnp.ones_like(x), x)


# Sine and cosine integrals -------------------------------------------------------------------

_SI: Final = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(18)]
_CIN: Final = [(-1) ** (k + 1) / ((2 * k + 2) * math.factorial(2 * k + 2)) for k in range(18)]
_SHI: Final = [1 / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(40)]
_CHIN: Final = [1 / ((2 * k + 2) * math.factorial(2 * k + 2)) for k in range(40)]
# exp(-u) over u > 0: exp(-exp(-s) + s) ds has a trapezoidal rule that converges exponentially
_PLACES = np.arange(-60, 61) * 0.075
_U: Final = np.exp(_PLACES - np.exp(-_PLACES))
_U_WEIGHTS: Final = np.exp(-_U) * _U * (1.0 + np.exp(-_PLACES)) * 0.075


@custom_jvp
def _sici(x: Array) -> tuple[Array, Array]:
    size = lax.abs(x)
    near = size < 4.0
    z = jnp.where(near, size, 1.0)
    square = z * z
    sine = z * polynomial(square, _SI)
    cosine = EULER + lax.log(z) + square * polynomial(square, _CIN)
    far = jnp.where(near, 4.0, jnp.where(size < math.inf, size, 4.0))
    # DLMF 6.7.13: the auxiliary functions are integrals of exp(-x t) / (1 + t^2) and t times it
    f = over_nodes(lambda u, v: 1.0 / (v + u * (u / v)), _U, _U_WEIGHTS, far)
    g = over_nodes(lambda u, v: (u / v) / (v + u * (u / v)), _U, _U_WEIGHTS, far)
    s, c = lax.sin(far), lax.cos(far)
    si = jnp.where(near, sine, 0.5 * math.pi - (f * c + g * s))
    ci = jnp.where(near, cosine, f * s - g * c)
    si = jnp.where(size == math.inf, 0.5 * math.pi, si)
    ci = jnp.where(size == math.inf, jnp.where(x > 0, 0.0, math.nan), ci)
    ci = jnp.where(x == 0, -math.inf, ci)
    si, ci = (jnp.where(jnp.isnan(x), math.nan, v) for v in (si, ci))
    return jnp.where(x < 0, -si, si), ci


@_sici.defjvp
def _sici_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    zero = x == 0
    safe = jnp.where(zero, 1.0, x)
    return _sici(x), (t * jnp.where(zero, 1.0, lax.sin(safe) / safe), t * (lax.cos(x) / x))


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals (Si, Ci); of negative x the real part of Ci.

    >>> import functrans as ft
    >>> si, ci = ft.scipy.special.sici(1.0)
    >>> round(float(si), 4), round(float(ci), 4)
    (0.9461, 0.3374)
    """
    sine, cosine = in_double(_sici, operands("sici", x))
    return sine, cosine


@custom_jvp
def _shichi(x: Array) -> tuple[Array, Array]:
    size = lax.abs(x)
    near = size < 18.0
    z = jnp.where(near, size, 1.0)
    square = z * z
    shi = z * polynomial(square, _SHI)
    chi = EULER + lax.log(z) + square * polynomial(square, _CHIN)
    far = jnp.where(near, 18.0, size)
    half = 0.5 * _expi(far)
    rest = 0.5 * _expn(jnp.ones_like(far), far)
    shi, chi = jnp.where(near, shi, half + rest), jnp.where(near, chi, half - rest)
    chi = jnp.where(x == 0, -math.inf, chi)
    return jnp.where(x < 0, -shi, shi), jnp.where(jnp.isnan(x), math.nan, chi)


@_shichi.defjvp
def _shichi_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    zero = x == 0
    safe = jnp.where(zero, 1.0, x)
    return _shichi(x), (t * jnp.where(zero, 1.0, lax.sinh(safe) / safe), t * (lax.cosh(x) / x))


def shichi(x: ArrayLike) -> tuple[Array, Array]:
    """The hyperbolic sine and cosine integrals (Shi, Chi).

    >>> import functrans as ft
    >>> shi, chi = ft.scipy.special.shichi(1.0)
    >>> round(float(shi), 4), round(float(chi), 4)
    (1.0573, 0.8379)
    """
    shi, chi = in_double(_shichi, operands("shichi", x))
    return shi, chi


# The dilogarithm -----------------------------------------------------------------------------

# B_2k / (2k + 1)!
_DILOG: Final = [0.027777777777777776, -0.0002777777777777778, 4.72411186696901e-06,
                 -9.185773074661964e-08, 1.8978869988971e-09, -4.0647616451442256e-11,
                 8.921691020456452e-13, -1.9939295860721074e-14, 4.518980029619918e-16,
                 -1.0356517612181247e-17, 2.395218621026187e-19, -5.581785874325009e-21,
                 1.3091507554183213e-22, -3.0874198024267403e-24, 7.315975652702203e-26,
                 -1.740845657234001e-27, 4.1576356446139e-29, -9.962148488284622e-31,
                 2.3940344248961652e-32]


def _spence_slope(out: Array, x: Array) -> Array:
    one = x == 1
    safe = jnp.where(one, 0.5, x)
    near = lax.abs(x - 1.0) < 0.3
    # log(x) / (1 - x) by the series of atanh, whose derivatives stay exact at 1
    h = jnp.where(near, x - 1.0, 0.0)
    r = h / (2.0 + h)
    series = -2.0 / (2.0 + h) * polynomial(r * r, [1 / (2 * k + 1) for k in range(14)])
    return jnp.where(near, series, lax.log(safe) / (1.0 - safe))


@partials(_spence_slope)
def _spence(x: Array) -> Array:
    """Li2(1 - x): 1 - x is brought to [-1, 1/2] (DLMF 25.12), where -log(x) is the variable."""
    inverted = x > 2.0
    v = jnp.where(inverted, 1.0 / jnp.where(inverted, x, 1.0), x)  # Li2(z) by 1 / x
    reflected = v < 0.5
    w = jnp.where(reflected, 1.0 - v, v)
    u = -lax.log1p(-jnp.where(reflected, v, 1.0 - v))
    series = u * (1.0 - 0.25 * u + u * u * polynomial(u * u, _DILOG))
    log_v = lax.log(jnp.where(v > 0, v, 1.0))
    value = jnp.where(reflected, math.pi**2 / 6 - lax.log(jnp.where(reflected, w, 1.0)) * log_v
                      - series, series)
    log_x = lax.log(jnp.where(inverted, x, 1.0))
    value = jnp.where(inverted, -0.5 * log_x * log_x - value, value)
    return jnp.where(x >= 0, jnp.where(x == math.inf, -math.inf, value), math.nan)


@wide
def spence(x: Array) -> Array:
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.spence(0.0)), 4)
    1.6449
    """
    return _spence(x)
