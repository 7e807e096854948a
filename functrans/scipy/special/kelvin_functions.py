"""Kelvin functions: Bessel functions of order 0 on the diagonal, ber + i bei = I_0(sqrt(i) x).

Both are integrals of smooth functions over a circle or a line, which few points sum exactly, and
asymptotic series far away. The derivatives are of order 1, and Kelvin's equation gives the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import (
    EULER,
    in_double,
    operands,
    over_nodes,
    partials,
    polynomial,
    wide,
)
from functrans.typing import Array, ArrayLike

__all__ = ["bei", "beip", "ber", "berp", "kei", "keip", "kelvin", "ker", "kerp"]

Pair = tuple[Any, Any]

_FAR: Final = 22.0
"""From where 30 terms of the asymptotic series are exact: the smallest is exp(-2 x) or so."""
_NEAR: Final = 2.0
"""Up to where ker and kei come from their series, and from where the line is short."""
_CIRCLE: Final = (np.arange(24) + 0.5) * math.pi / 48
_ON_CIRCLE: Final = np.cos(_CIRCLE)
_POINTS: Final = 44
_LINE: Final = np.arange(_POINTS) / _POINTS
_WEIGHTS: Final = np.concatenate([[0.5], np.ones(_POINTS - 1)]) / _POINTS
_TERMS: Final = 14
_ROOT: Final = math.sqrt(0.5)


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _turned(a: Pair, angle: float) -> Pair:
    return _times(a, (math.cos(angle), math.sin(angle)))


def _first_by_circle(x: Array, order: int) -> Pair:
    """I_0(z) or I_1(z) for z = sqrt(i) x: means of cosh(z cos t), or of sinh(z cos t) cos t."""
    def part(node: Any, x: Array, imaginary: bool) -> Array:
        s = x * _ROOT * node
        even, odd = lax.cosh(s), lax.sinh(s)
        if order:
            even, odd = odd * node, even * node
        return odd * lax.sin(s) if imaginary else even * lax.cos(s)

    weights = np.full(len(_ON_CIRCLE), 1.0 / len(_ON_CIRCLE))
    real, imaginary = (over_nodes(lambda node, x, im=im: part(node, x, im), _ON_CIRCLE, weights, x)
                       for im in (False, True))
    return real, imaginary


def _series_far(x: Array, order: int, sign: float) -> Pair:
    """sum_k sign^k a_k(order) / z^k (DLMF 10.40.1), which the exponential and root multiply."""
    coefficients = [1.0]
    for k in range(1, 30):
        coefficients.append(coefficients[-1] * sign * (4.0 * order - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1.0 / x
    parts = [polynomial(inverse, [c * trig(-0.25 * math.pi * k)
                                  for k, c in enumerate(coefficients)])
             for trig in (math.cos, math.sin)]
    return parts[0], parts[1]


def _second_far(x: Array, order: int) -> Pair:
    """exp(x / sqrt(2)) K_0(z) or K_1(z) by its asymptotic series."""
    height = lax.sqrt(0.5 * math.pi / x)
    phase = -(x * _ROOT) - math.pi / 8
    found = _times(_series_far(x, order, 1.0), (lax.cos(phase), lax.sin(phase)))
    return height * found[0], height * found[1]


def _first_far(x: Array, order: int) -> Pair:
    """exp(-x / sqrt(2)) I_0(z) or I_1(z): the growing part, and the falling one (DLMF 10.34.3)."""
    height = lax.sqrt(0.5 / (math.pi * x))
    phase = x * _ROOT - math.pi / 8
    grown = _times(_series_far(x, order, -1.0), (lax.cos(phase), lax.sin(phase)))
    second = _second_far(x, order)
    falling = lax.exp(-math.sqrt(2.0) * x) / math.pi * (1.0 if order == 0 else -1.0)
    return (height * grown[0] - falling * second[1], height * grown[1] + falling * second[0])


def _powers(x: Array, order: int, coefficients: Sequence[float]) -> Pair:
    """sum_k c_k (i x^2 / 4)^k; for order 1 times i x / 2."""
    square = 0.25 * x * x
    parts = [polynomial(square, [c * turn[k % 4] for k, c in enumerate(coefficients)])
             for turn in ((1, 0, -1, 0), (0, 1, 0, -1))]
    return (parts[0], parts[1]) if order == 0 else (-0.5 * x * parts[1], 0.5 * x * parts[0])


def _first_near(x: Array, order: int) -> Pair:
    return _powers(x, order, [1.0 / (math.factorial(k) * math.factorial(k + order))
                              for k in range(_TERMS)])


def _first(x: Array, order: int) -> Pair:
    """I_0(z) or sqrt(i) I_1(z), also of negative x."""
    size = lax.abs(x)
    near = size < _FAR
    small = size <= _NEAR
    series = _first_near(jnp.where(small, size, 0.0), order)
    inside = _first_by_circle(jnp.where(near, size, 0.0), order)
    far = jnp.where(near | (size == math.inf), _FAR, size)
    outside = _first_far(far, order)
    if order:
        inside, outside = (_turned(p, 0.25 * math.pi) for p in (inside, outside))
    # the exponential in two steps, as the root of x is below it
    half = lax.exp(0.5 * _ROOT * far)
    turn = jnp.where(x < 0, -1.0, 1.0) if order else 1.0
    nothing = jnp.where(size == math.inf, math.nan, 0.0)
    real, imaginary = (
        jnp.where(small, s, jnp.where(near, i, o * half * half)) * turn + nothing
        for s, i, o in zip(series, inside, outside, strict=True))
    return real, imaginary


_HARMONIC: Final = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _TERMS + 2))])


def _second_near(x: Array, order: int) -> Pair:
    """K_0(z), or sqrt(i) K_1(z), for 0 < x <= 2 by the power series (DLMF 10.31)."""
    plain = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    # the logarithm of z / 2 has a real part, and an angle of 45 degrees
    log_half = lax.log(0.5 * x)
    first = _powers(x, order, plain)
    weighted = _powers(x, order, [
        c * (0.5 * (_HARMONIC[k] + _HARMONIC[k + order]) - EULER) for k, c in enumerate(plain)])
    product = _times((log_half, jnp.full_like(x, 0.25 * math.pi)), first)
    real, imaginary = (w - p for w, p in zip(weighted, product, strict=True))
    return (real, imaginary) if order == 0 else (1.0 / x - real, -imaginary)


def _second_by_line(x: Array, order: int) -> Pair:
    """exp(x / sqrt(2)) K_0(z) or K_1(z) for 2 <= x <= 22: the integral of exp(-z cosh t) (cosh t).

    It ends where the integrand is less than 1e-18.
    """
    end = lax.acosh(1.0 + 42.0 / (_ROOT * x))

    def part(node: Any, x: Array, end: Array, imaginary: bool) -> Array:
        half = lax.sinh(0.5 * node * end)
        lift = 2.0 * half * half  # cosh t - 1
        angle = x * _ROOT * (1.0 + lift)
        size = lax.exp(-x * _ROOT * lift) * end
        if order:
            size = size * (1.0 + lift)
        return size * (-lax.sin(angle) if imaginary else lax.cos(angle))

    real, imaginary = (over_nodes(lambda node, x, end, im=im: part(node, x, end, im), _LINE,
                                  _WEIGHTS, x, end) for im in (False, True))
    return real, imaginary


def _second(x: Array, order: int) -> Pair:
    """K_0(z) or sqrt(i) K_1(z) for x > 0; its limits at 0 and infinity, NaN below 0."""
    near, far = x <= _NEAR, x >= _FAR
    regular = (x > 0) & (x < math.inf)
    small = _second_near(jnp.where(near & regular, x, 1.0), order)
    middle_x = jnp.where(near | far | ~regular, 10.0, x)
    middle = _second_by_line(middle_x, order)
    far_x = jnp.where(far & regular, x, _FAR)
    outside = _second_far(far_x, order)
    if order:
        middle, outside = (_turned(p, 0.25 * math.pi) for p in (middle, outside))
    scale = lax.exp(-_ROOT * jnp.where(far, far_x, middle_x))
    at_0 = ((math.inf, -0.25 * math.pi), (math.inf, 0.0))[order]
    real, imaginary = (
        jnp.where(regular, jnp.where(near, s, scale * jnp.where(far, o, m)),
                  jnp.where(x == 0, limit, jnp.where(x == math.inf, 0.0, math.nan)))
        for s, m, o, limit in zip(small, middle, outside, at_0, strict=True))
    return real, imaginary


def _slope_rule(other: Callable[..., Array], sign: float, at_0: float) -> Callable[..., Array]:
    """w'' of Kelvin's equation, w'' = i w - w' / x, by the values of both parts."""
    def rule(out: Array, x: Array) -> Array:
        safe = jnp.where(x == 0, 1.0, x)
        return jnp.where(x == 0, at_0, sign * other(x) - out / safe)

    return rule


def _family(part: Callable[[Array, int], Pair], falls: bool, at_0: tuple[float, float]
            ) -> tuple[Callable[..., Array], ...]:
    """Real and imaginary part of a function of z, and their derivatives."""
    def value(which: int) -> Callable[..., Array]:
        return partials(lambda out, x: slopes[which](x))(lambda x: part(x, 0)[which])

    def slope(which: int) -> Callable[..., Array]:
        def fun(x: Array) -> Array:
            found: Array = part(x, 1)[which]
            return -found if falls else found

        return partials(_slope_rule(values[1 - which], -1.0 if which == 0 else 1.0,
                                    at_0[which]))(fun)

    values = [value(0), value(1)]
    slopes = [slope(0), slope(1)]
    return (*values, *slopes)


_ber, _bei, _berp, _beip = _family(_first, False, (0.0, 0.5))
_ker, _kei, _kerp, _keip = _family(_second, True, (math.nan, math.nan))


@wide
def ber(x: Array) -> Array:
    """The Kelvin function ber, the real part of I_0(sqrt(i) x) (DLMF 10.61).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ber(1.0)), 4)
    0.9844
    """
    return _ber(x)


@wide
def bei(x: Array) -> Array:
    """The Kelvin function bei, the imaginary part of I_0(sqrt(i) x).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.bei(1.0)), 4)
    0.2496
    """
    return _bei(x)


@wide
def ker(x: Array) -> Array:
    """The Kelvin function ker, the real part of K_0(sqrt(i) x), for x > 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ker(1.0)), 4)
    0.2867
    """
    return _ker(x)


@wide
def kei(x: Array) -> Array:
    """The Kelvin function kei, the imaginary part of K_0(sqrt(i) x), for x >= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kei(1.0)), 4)
    -0.495
    """
    return _kei(x)


@wide
def berp(x: Array) -> Array:
    """The derivative of ber.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.berp(1.0)), 4)
    -0.0624
    """
    return _berp(x)


@wide
def beip(x: Array) -> Array:
    """The derivative of bei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.beip(1.0)), 4)
    0.4974
    """
    return _beip(x)


@wide
def kerp(x: Array) -> Array:
    """The derivative of ker.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.kerp(1.0)), 4)
    -0.6946
    """
    return _kerp(x)


@wide
def keip(x: Array) -> Array:
    """The derivative of kei.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.keip(1.0)), 4)
    0.3524
    """
    return _keip(x)


def kelvin(x: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """ber + i bei, ker + i kei and their derivatives, as complex numbers.

    >>> import functrans as ft
    >>> be, ke, bep, kep = ft.scipy.special.kelvin(1.0)
    >>> round(float(ke.real), 4), round(float(bep.imag), 4)
    (0.2867, 0.4974)
    """
    (x,) = operands("kelvin", x)

    def all_of(x: Array) -> tuple[Array, ...]:
        return tuple([f(x) for f in (_ber, _bei, _ker, _kei, _berp, _beip, _kerp, _keip)])

    parts = in_double(all_of, [x])
    narrow = x.dtype.itemsize < 4  # complex numbers have parts of 32 bits or 64
    if narrow:
        parts = [lax.convert_element_type(p, "float32") for p in parts]
    be, ke, bep, kep = [lax.complex(parts[k], parts[k + 1]) for k in (0, 2, 4, 6)]
    return be, ke, bep, kep
