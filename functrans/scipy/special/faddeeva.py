"""The scaled complex error function w(z) and the functions of real numbers that are parts of it."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy.special.common import (
    SQRT_HALF,
    in_double,
    operands,
    over_nodes,
    partials,
    polynomial,
    wide,
)
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike

__all__ = ["dawsn", "erfcx", "erfi", "fresnel", "modfresnelm", "modfresnelp", "owens_t",
           "voigt_profile", "wofz"]

_ROOT_PI: Final = math.sqrt(math.pi)

# The trapezoidal rule for erfcx from x = 1 on: its error is exp(-2 pi x / step)
_STEP: Final = 1 / 6
_ERFCX_NODES: Final = (np.arange(38) * _STEP) ** 2
_ERFCX_WEIGHTS: Final = np.exp(-_ERFCX_NODES) * np.where(_ERFCX_NODES == 0, 1, 2) * _STEP / math.pi


@partials(lambda out, x: 2.0 * x * out)
def _exp_square(x: Array) -> Array:
    """exp(x^2), with the digits of the square that rounding would lose."""
    high = x.astype(np.float32).astype(x.dtype)
    return lax.exp(high * high) * lax.exp((x - high) * (x + high))


def _erfcx(x: Array) -> Array:
    far = x >= 1.0
    tail = jnp.where(far, x, 1.0)
    series = over_nodes(lambda t2, v: 1.0 / (v + t2 / v), _ERFCX_NODES, _ERFCX_WEIGHTS, tail)
    near = jnp.where(far, 0.0, jnp.maximum(x, -27.0))  # exp overflows at -26.7
    return jnp.where(far, series, _exp_square(near) * lax.erfc(near))


@wide
def erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x), which neither under- nor overflows for large x.

    The trapezoidal rule for x/pi times the integral of exp(-t^2) / (x^2 + t^2).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erfcx(100.0)), 6)
    0.005642
    """
    return _erfcx(x)


# Dawson's integral: Taylor's series, Rybicki's sampled one, and the asymptotic series
_DAWSN_STEP: Final = 0.2
_DAWSN_ODD: Final = np.arange(-61.0, 62.0, 2.0)
_DAWSN_SMALL: Final = [(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(16)]
_DAWSN_LARGE: Final = [float(math.prod(range(1, 2 * k, 2))) for k in range(22)]


def _dawsn(x: Array) -> Array:
    size = jnp.where(x < 0, -x, x)
    small, large = size < 0.5, size > 7.0
    z = jnp.where(small, size, 0.25)
    near = z * polynomial(z * z, _DAWSN_SMALL)
    inverse = 0.5 / jnp.where(large, size, 7.0)
    far = inverse * polynomial(2.0 * inverse * inverse, _DAWSN_LARGE)
    z = jnp.where(small | large, 1.0, size)
    even = lax.stop_gradient(2.0 * jnp.round(z / (2.0 * _DAWSN_STEP)))
    middle = over_nodes(lambda n, v, e: lax.exp(-jnp.square(v - n * _DAWSN_STEP)) / (n + e),
                        _DAWSN_ODD, 1 / _ROOT_PI, z - even * _DAWSN_STEP, even)
    value = jnp.where(small, near, jnp.where(large, far, middle))
    return jnp.where(x < 0, -value, value)


@wide
def dawsn(x: Array) -> Array:
    """Dawson's integral, exp(-x^2) times that of exp(t^2) from 0 to x.

    Rybicki, 1989, "Dawson's integral and the sampling theorem".

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.dawsn(1.0)), 4)
    0.5381
    """
    return _dawsn(x)


@wide
def erfi(x: Array) -> Array:
    """The imaginary error function, -i erf(i x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erfi(1.0)), 4)
    1.6504
    """
    clipped = jnp.clip(x, -27.0, 27.0)  # infinite beyond
    return (2 / _ROOT_PI) * _exp_square(clipped) * _dawsn(clipped)


# The rules of AlAzah and Chandler-Wilde: nodes at multiples of the step, or between them
_COUNT: Final = 13
_H: Final = math.sqrt(math.pi / (_COUNT + 1))
_MIDPOINTS: Final = ((np.arange(_COUNT + 1) + 0.5) * _H) ** 2
_MULTIPLES: Final = (np.arange(1, _COUNT + 1) * _H) ** 2
_FAR: Final = 1e8


def _first_quadrant(z: Any) -> Any:
    """w(z) for real and imaginary parts that are not negative."""
    x, y = lax.real(z), lax.imag(z)
    far = (x > _FAR) | (y > _FAR)
    u = jnp.where(far, 1.0, z)
    fraction = x / _H - jnp.floor(x / _H)
    shifted = (y < x) & (fraction >= 0.25) & (fraction <= 0.75) & ~far
    square = u * u
    scale = (2j * _H / math.pi) * u

    def total(nodes: Any, at: Any) -> Any:
        return over_nodes(lambda n, s: 1.0 / (s - n), nodes, np.exp(-nodes), at)

    safe_square = jnp.where(shifted, square, 1.0 + 1.0j)
    safe = jnp.where(shifted, u, 1.0 + 1.0j)
    trapezoid = scale * total(_MULTIPLES, safe_square) + (1j * _H / math.pi) / safe
    midpoint = scale * total(_MIDPOINTS, jnp.where(shifted, 1.0 + 1.0j, square))
    poles = (y < x) | (y < math.pi / _H)
    v = jnp.where(poles & ~far, u, 1.0 + 0.0j)
    turn = lax.exp((2j * math.pi / _H) * v)
    sign = jnp.where(shifted, -1.0, 1.0)
    pole = 2.0 * lax.exp(-v * v) * turn / (turn + sign)
    value = jnp.where(shifted, trapezoid, midpoint) + jnp.where(poles & ~far, pole, 0.0)
    return jnp.where(far, (1j / _ROOT_PI) / jnp.where(far, z, 1.0), value)


def _wofz(z: Any) -> Any:
    x, y = lax.real(z), lax.imag(z)
    left, below = x < 0, y < 0
    corner = lax.complex(jnp.where(left, -x, x), jnp.where(below, -y, y))
    value = _first_quadrant(corner)
    value = jnp.where(left != below, lax.conj(value), value)
    u = jnp.where(below, z, 0.0)
    return jnp.where(below, 2.0 * lax.exp(-u * u) - value, value)


def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z^2) erfc(-i z), complex.

    AlAzah and Chandler-Wilde, 2021, "Computation of the complex error function using modified
    trapezoidal rules".

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.wofz(1j).real), 4)
    0.4276
    """
    (x,) = promote_dtypes_inexact("wofz", z)
    x = operand("wofz", x)
    wanted = np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64
    out: Array = _wofz(x.astype(np.complex128)).astype(wanted)
    return out


@wide
def voigt_profile(x: Array, sigma: Array, gamma: Array) -> Array:
    """The density of the sum of a normal and a Cauchy variable of widths sigma and gamma.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.voigt_profile(0.0, 1.0, 0.0)), 4)
    0.3989
    """
    valid = (sigma >= 0) & (gamma >= 0)
    # far out, where the normal part is narrow, Cauchy's density is left
    size = jnp.maximum(lax.abs(x), gamma)
    smooth = (sigma > 0) & ((size <= 1e9 * sigma) | jnp.isnan(x)) & (size < math.inf)
    width = jnp.where(smooth, sigma, 1.0) / SQRT_HALF
    place, spread = jnp.where(smooth, x, 0.0), jnp.where(smooth, gamma, 0.0)
    profile = lax.real(_wofz(lax.complex(place / width, spread / width))) / (width * _ROOT_PI)
    some = ~smooth & (size > 0) & (size < math.inf)
    scale = jnp.where(some, lax.stop_gradient(size), 1.0)
    u, v = jnp.where(some, x, 0.0) / scale, jnp.where(some, gamma, 1.0) / scale
    lorentz = v / (u * u + v * v) / (math.pi * scale)
    # of an infinite x, or an infinite width, nothing is left
    lorentz = jnp.where(some, lorentz, jnp.where(size == 0, math.inf, 0.0))
    known = valid & ~jnp.isnan(x)
    return jnp.where(known, jnp.where(smooth, profile, lorentz), math.nan)


# Fresnel's integrals -------------------------------------------------------------------------

_FRESNEL_C: Final = [(-1) ** k / (math.factorial(2 * k) * (4 * k + 1)) for k in range(16)]
_FRESNEL_S: Final = [(-1) ** k / (math.factorial(2 * k + 1) * (4 * k + 3)) for k in range(16)]


def _half_turns(x: Array) -> Array:
    """pi x^2 / 2 less whole turns: of x = n + f the square of n is reduced exactly."""
    n = jnp.round(jnp.where(lax.abs(x) < 2.0**26, x, 0.0))
    f = jnp.where(lax.abs(x) < 2.0**26, x, 0.0) - n
    turns = jnp.remainder(n * n, 4.0) + jnp.remainder(2.0 * n * f, 4.0) + f * f
    return (0.5 * math.pi) * turns


@custom_jvp
def _fresnel(x: Array) -> tuple[Array, Array]:
    size = lax.abs(x)
    small = size < 1.3
    z = jnp.where(small, size, 0.0)
    phase = 0.5 * math.pi * z * z
    sine = z * phase * polynomial(phase * phase, _FRESNEL_S)
    cosine = z * polynomial(phase * phase, _FRESNEL_C)
    z = jnp.where(small, 2.0, size)
    half = jnp.where(z < math.inf, 0.5 * _ROOT_PI * z, 1.0)
    w = _first_quadrant(lax.complex(half, half))
    angle = _half_turns(z)
    rest = lax.complex(lax.cos(angle), lax.sin(angle)) * jnp.where(z < math.inf, w, 0.0)
    both = (0.5 + 0.5j) * (1.0 - rest)
    sign = jnp.where(jnp.isnan(x), math.nan, jnp.where(x < 0, -1.0, 1.0))
    return (sign * jnp.where(small, sine, lax.imag(both)),
            sign * jnp.where(small, cosine, lax.real(both)))


@_fresnel.defjvp
def _fresnel_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    # the phase is reduced, whose own slope is that of the whole one
    angle = _fresnel_angle(x)
    return _fresnel(x), (t * lax.sin(angle), t * lax.cos(angle))


@partials(lambda out, x: math.pi * x)
def _fresnel_angle(x: Array) -> Array:
    return _half_turns(x)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals (S, C): of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x.

    >>> import functrans as ft
    >>> s, c = ft.scipy.special.fresnel(1.0)
    >>> round(float(s), 4), round(float(c), 4)
    (0.4383, 0.7799)
    """
    sine, cosine = in_double(_fresnel, operands("fresnel", x))
    return sine, cosine


def _modified_fresnel(name: str, x: ArrayLike, sign: float) -> tuple[Array, Array]:
    """The integral of exp(sign i t^2) from x on, and its product with a rotation that leaves w / 2.

    The integral is that of erfc of a turned argument (DLMF 7.7).
    """
    (given,) = operands(name, x)
    y = given.astype(np.float64)
    small = lax.abs(y) < 1e8
    turn = SQRT_HALF * jnp.where(small, y, 1e8)
    half = 0.5 * _wofz(lax.complex(turn, turn))
    half = half if sign > 0 else lax.conj(half)
    square = jnp.where(small, y, 0.0) ** 2
    phase = lax.complex(lax.cos(square + 0.25 * math.pi), sign * lax.sin(square + 0.25 * math.pi))
    wanted = np.complex128 if given.dtype == np.float64 else np.complex64
    return (_ROOT_PI * phase * half).astype(wanted), half.astype(wanted)


def modfresnelp(x: ArrayLike) -> tuple[Array, Array]:
    """The integral F of exp(i t^2) from x to infinity, and exp(-i (x^2 + pi / 4)) F / sqrt(pi).

    >>> import functrans as ft
    >>> f, k = ft.scipy.special.modfresnelp(0.0)
    >>> round(float(f.real), 4), round(float(k.real), 4)
    (0.6267, 0.5)
    """
    return _modified_fresnel("modfresnelp", x, 1.0)


def modfresnelm(x: ArrayLike) -> tuple[Array, Array]:
    """The integral F of exp(-i t^2) from x to infinity, and exp(i (x^2 + pi / 4)) F / sqrt(pi).

    >>> import functrans as ft
    >>> f, k = ft.scipy.special.modfresnelm(0.0)
    >>> round(float(f.imag), 4), round(float(k.real), 4)
    (-0.6267, 0.5)
    """
    return _modified_fresnel("modfresnelm", x, -1.0)


# Owen's function -----------------------------------------------------------------------------

_LEGENDRE = np.polynomial.legendre.leggauss(40)
_OWEN_NODES: Final = 0.5 * (_LEGENDRE[0] + 1.0)
_OWEN_WEIGHTS: Final = 0.5 * _LEGENDRE[1] / (2 * math.pi)


def _normal_density(x: Array) -> Array:
    return lax.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _owens_in_h(out: Array, h: Array, a: Array) -> Array:
    safe = jnp.where(lax.abs(h) < math.inf, h, 0.0)
    return jnp.where(safe == h, -0.5 * _normal_density(h) * lax.erf(a * safe * SQRT_HALF), 0.0)


@partials(_owens_in_h,
          lambda out, h, a: lax.exp(-0.5 * h * h * (1.0 + a * a)) / (2 * math.pi * (1.0 + a * a)))
def _owens_t(h: Array, a: Array) -> Array:
    x, y = lax.abs(h), lax.abs(a)
    steep = y > 1.0
    ratio = jnp.where(steep, 1.0 / jnp.where(steep, y, 1.0), y)
    # at most 40: all is 0 beyond
    far = jnp.minimum(x, 40.0) * jnp.where(steep, jnp.minimum(y, 1e300), 1.0)
    place = jnp.minimum(far, 40.0)
    part = ratio * over_nodes(
        lambda t, u, r: lax.exp(-0.5 * u * u * (1.0 + jnp.square(r * t)))
        / (1.0 + jnp.square(r * t)), _OWEN_NODES, _OWEN_WEIGHTS, place, ratio)
    one, two = 0.5 * lax.erfc(x * SQRT_HALF), 0.5 * lax.erfc(place * SQRT_HALF)
    value = jnp.where(steep, 0.5 * (one + two) - one * two - part, part)
    value = jnp.where(jnp.isnan(h) | jnp.isnan(a), math.nan, value)
    return jnp.where(a < 0, -value, value)


@wide
def owens_t(h: Array, a: Array) -> Array:
    """Owen's function: the probability of X > h and 0 < Y < a X for independent normal X and Y.

    Gauss's rule for |a| <= 1, and the relation of Owen (1956) beyond.

    >>> import functrans as ft
    >>> float(ft.scipy.special.owens_t(0.0, 1.0))
    0.125
    """
    return _owens_t(h, a)


