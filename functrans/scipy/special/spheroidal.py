"""Spheroidal wave functions, prolate and oblate, in Flammer's normalisation (DLMF 30)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.arguments import known_size
from functrans.scipy.special.bessel_orders import jv_, yv_
from functrans.scipy.special.common import in_double, operands, wide
from functrans.scipy.special.solutions import Pair, carried, solution
from functrans.scipy.special.tridiagonal import eigenvalue, eigenvector
from functrans.typing import Array, ArrayLike

__all__ = ["obl_ang1", "obl_ang1_cv", "obl_cv", "obl_cv_seq", "obl_rad1", "obl_rad1_cv",
           "obl_rad2", "obl_rad2_cv", "pro_ang1", "pro_ang1_cv", "pro_cv", "pro_cv_seq",
           "pro_rad1", "pro_rad1_cv", "pro_rad2", "pro_rad2_cv"]

_COUNT: Final = 100
_MOST: Final = 100.0
"""The largest m and n - m, so that the coefficients of |c| < 100 end in the count."""


def _valid(m: Array, n: Array, c: Array) -> Array:
    return (m >= 0) & (n >= m) & (m == lax.floor(m)) & (n == lax.floor(n)) & (m <= _MOST) \
        & (n - m <= _MOST) & (lax.abs(c) < 100.0)


def _matrix(m: Array, n: Array, square: Array) -> tuple[Array, Array, Array, Array]:
    """Of l (l + 1) + c^2 x^2 in normalized Legendre functions of one parity; their degrees l."""
    parity = jnp.remainder(n - m, 2.0)
    k = jnp.reshape(jnp.arange(_COUNT, dtype=np.float64), (-1, *(1,) * m.ndim))
    degree = m + parity + 2.0 * k

    def share(degree: Array) -> Array:
        return (degree * degree - m * m) / (4.0 * degree * degree - 1.0)

    d = degree * (degree + 1.0) + square * (share(degree) + share(degree + 1.0))
    e = square * lax.sqrt(share(degree + 1.0) * share(degree + 2.0))[:-1]
    return d, e, 0.5 * (n - m - parity), degree


def _safe(m: Array, n: Array, c: Array) -> tuple[Array, Array, Array, Array]:
    valid = _valid(m, n, c)
    return valid, jnp.where(valid, m, 0.0), jnp.where(valid, n, 0.0), jnp.where(valid, c, 0.0)


def _value_of(sign: float, m: Array, n: Array, c: Array) -> Array:
    valid, m, n, c = _safe(m, n, c)
    d, e, index, _ = _matrix(m, n, sign * c * c)
    return jnp.where(valid, eigenvalue(d, e, index), math.nan)


# Angles ------------------------------------------------------------------------------------------


def _polynomials(m: Array, degree: Array, vector: Array, x: Array) -> tuple[Array, ...]:
    """The sum of the vector times Legendre functions over (1 - x^2)^(m/2), and its derivative.

    Normalized, but for the factor of the one of degree m; two sums, of x and of 0.
    """
    where = jnp.stack([x, jnp.zeros_like(x)])
    first = degree[0]

    def step(carry: Any, now: Any) -> Any:
        low, high, low_slope, high_slope, at, total, rise = carry
        weight = now

        def upward(low: Array, high: Array, low_slope: Array, high_slope: Array, at: Array
                   ) -> tuple[Array, ...]:
            after = at + 1.0
            a = lax.sqrt((4.0 * after * after - 1.0) / (after * after - m * m))
            b = lax.sqrt((at * at - m * m) / (4.0 * at * at - 1.0))
            return (high, a * (where * high - b * low), high_slope,
                    a * (high + where * high_slope - b * low_slope), after)

        total, rise = total + weight * high, rise + weight * high_slope
        state = upward(*upward(low, high, low_slope, high_slope, at))
        return (*state, total, rise), None

    none = jnp.zeros_like(where)
    one = jnp.ones_like(where)
    # an odd parity begins at degree m + 1, x times a factor
    odd = first > m
    factor = lax.sqrt(2.0 * m + 3.0)
    start = (jnp.where(odd, one, none), jnp.where(odd, factor * where, one), none,
             jnp.where(odd, factor * one, none), first, none, none)
    out = lax.scan(step, start, vector)[0]
    return out[5][0], out[6][0], out[5][1], out[6][1]


def _angular(sign: float) -> Callable[..., Pair]:
    def raw(m: Array, n: Array, c: Array, cv: Array, x: Array) -> Pair:
        valid, m, n, c = _safe(m, n, c)
        valid = valid & (lax.abs(x) < 1) & (cv == cv)
        place = jnp.where(valid, x, 0.0)
        d, e, _, degree = _matrix(m, n, sign * c * c)
        vector = eigenvector(d, e, jnp.where(valid, cv, _value_of(sign, m, n, c)))
        value, slope, centre, tilt = _polynomials(m, degree, vector, place)
        # as the Legendre function of degree n at 0, or as the slope of an odd one
        even = jnp.remainder(n - m, 2.0) == 0
        half, s = 0.5 * (n - m), 0.5 * (n + m)
        log = m * math.log(2.0) - 0.5 * math.log(math.pi) + jnp.where(
            even, lax.lgamma(s + 0.5) - lax.lgamma(half + 1.0),
            math.log(2.0) + lax.lgamma(s + 1.0) - lax.lgamma(half + 0.5))
        flip = 1.0 - 2.0 * jnp.remainder(lax.floor(half), 2.0)
        scale = flip * lax.exp(log) / jnp.where(even, centre, tilt)
        u = (1.0 - place) * (1.0 + place)
        power = scale * lax.exp(0.5 * m * lax.log(u))
        found = power * value, power * (slope - m * place / u * value)
        return tuple(jnp.where(valid, f, math.nan) for f in found)  # type: ignore[return-value]

    return solution(raw, lambda value, slope, m, n, c, cv, x: (
        2.0 * x * slope - (cv - sign * c * c * x * x - m * m / ((1.0 - x) * (1.0 + x))) * value
    ) / ((1.0 - x) * (1.0 + x)), 2)


# Radii -------------------------------------------------------------------------------------------


def _equation(sign: float, m: Array, c: Array, cv: Array) -> Callable[[Array], Any]:
    """(x^2 - s)^2 y'' + 2 x (x^2 - s) y' = ((cv - s c^2 x^2 ...)) y in powers of t around x.

    Of s = 1 the prolate radial equation, of -1 the oblate one (30.2.1 with z = i x).
    """
    def powers(x: Array) -> tuple[list[Any], list[Any], list[Any]]:
        one = jnp.ones_like(x)
        u = [x * x - sign, 2.0 * x, one]                    # x^2 - s
        p = _product(u, u)
        q = _product([2.0 * x, 2.0 * one], u)
        # prolate: cv - c^2 x^2 + m^2 / (x^2 - 1); oblate: cv - c^2 x^2 - m^2 / (x^2 + 1)
        inner = [cv - c * c * x * x, -2.0 * c * c * x, -c * c * one]
        w = _product(inner, u)
        w[0] = w[0] + sign * m * m
        return p, q, w

    return powers


def _product(a: list[Any], b: list[Any]) -> list[Any]:
    out: list[Any] = [0.0] * (len(a) + len(b) - 1)
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            out[i + j] = out[i + j] + u * v
    return out


def _series(sign: float, second: bool, m: Array, n: Array, c: Array, cv: Array, x: Array) -> Pair:
    """The sum over spherical Bessel functions of c x (30.11.3), and its derivative."""
    d, e, _, degree = _matrix(m, n, sign * c * c)
    vector = eigenvector(d, e, cv)
    log = 0.5 * (lax.log(2.0 * degree + 1.0) + lax.lgamma(degree + m + 1.0)
                 - lax.lgamma(degree - m + 1.0))
    some = lax.abs(lax.stop_gradient(vector)) > 1e-20
    weight = jnp.where(some, vector * lax.exp(log - log[0]), 0.0)
    flip = 1.0 - 2.0 * jnp.remainder(0.5 * (degree - n), 2.0)
    z = c * x
    orders = jnp.where(some, degree, 0.0)
    fun = yv_ if second else jv_
    both = jnp.stack([orders + 0.5, orders + 1.5])
    values = fun(both, jnp.broadcast_to(z, both.shape)) * lax.sqrt(0.5 * math.pi / z)
    rises = orders / z * values[0] - values[1]
    value, rise = (jnp.sum(jnp.where(some, flip * weight * v, 0.0), 0) / jnp.sum(weight, 0)
                   for v in (values[0], rises))
    share = 1.0 - sign / (x * x)
    power = lax.exp(0.5 * m * lax.log(share))
    tilt = m * sign / (x * x * x * share)
    return power * value, power * (c * rise + tilt * value)


def _radial(sign: float, second: bool) -> Callable[..., Pair]:
    def raw(m: Array, n: Array, c: Array, cv: Array, x: Array) -> Pair:
        valid, m, n, c = _safe(m, n, c)
        low = 1.0 if sign > 0 else 0.0
        inside = x > 1 if sign > 0 else x >= 0
        valid = valid & inside & (x < 1e6) & (c > 0) & (cv == cv)
        size = jnp.where(valid, c, 1.0)
        place = jnp.where(valid, x, 2.0)
        number = jnp.where(valid, cv, _value_of(sign, m, n, size))
        # far out the series has hardly any terms that cancel; from there inwards by the equation
        far = lax.stop_gradient((n + 30.0 + size) / size + low)
        if second:
            start = jnp.maximum(place, far)
        else:
            start = jnp.maximum(place, (1.0 if sign > 0 else 0.5) * jnp.ones_like(place))
        value, slope = _series(sign, second, m, n, size, number, start)

        def reach(x: Array) -> Array:
            # a share of the way to the nearest singular point, short for the waves
            gap = x - 1.0 if sign > 0 else lax.sqrt(1.0 + x * x)
            return jnp.minimum(0.4 * gap, 2.0 / (1.0 + size))

        if second or sign < 0:
            value, slope = carried(_equation(sign, m, size, number), start, value, slope,
                                   place, reach)
        return jnp.where(valid, value, math.nan), jnp.where(valid, slope, math.nan)

    def bent(value: Array, slope: Array, m: Array, n: Array, c: Array, cv: Array, x: Array
             ) -> Array:
        u = x * x - sign
        return ((cv - c * c * x * x + sign * m * m / u) * value - 2.0 * x * slope) / u

    return solution(raw, bent, 2)


def _named(name: str, sign: float, pair: Callable[..., Pair], m: ArrayLike, n: ArrayLike,
           c: ArrayLike, cv: ArrayLike | None, x: ArrayLike) -> Pair:
    if cv is not None:
        found: Pair = in_double(pair, operands(name, m, n, c, cv, x))
        return found

    def whole(m: Array, n: Array, c: Array, x: Array) -> Pair:
        return pair(m, n, c, _value_of(sign, m, n, c), x)

    found = in_double(whole, operands(name, m, n, c, x))
    return found


_PRO_ANG: Final = _angular(1.0)
_OBL_ANG: Final = _angular(-1.0)
_PRO_RAD: Final = (_radial(1.0, False), _radial(1.0, True))
_OBL_RAD: Final = (_radial(-1.0, False), _radial(-1.0, True))


def _sequence(name: str, sign: float, m: int, n: int, c: ArrayLike) -> Array:
    order = known_size(f"special.{name}", "m", m, 0)
    last = known_size(f"special.{name}", "n", n, 0)
    degrees = np.arange(float(order), last + 1.0)

    def rows(c: Array) -> Array:
        column = jnp.asarray(degrees.reshape(-1, *(1,) * c.ndim)) + jnp.zeros_like(c)[None]
        return _value_of(sign, jnp.full_like(column, float(order)), column,
                         jnp.broadcast_to(c[None], column.shape))

    found: Array = in_double(rows, operands(name, c))
    return found


@wide
def pro_cv(m: Array, n: Array, c: Array) -> Array:
    """The characteristic value of the prolate spheroidal wave function of order m and degree n.

    For whole 0 <= m <= n, m and n - m to 100, and |c| < 100: an eigenvalue of a tridiagonal
    matrix. c has derivatives.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pro_cv(1, 2, 3.0)), 4)
    9.556
    """
    return _value_of(1.0, m, n, c)


def pro_cv_seq(m: int, n: int, c: ArrayLike) -> Array:
    """The characteristic values of prolate functions of order m, of the degrees m to n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.pro_cv_seq(0, 1, 1.0).round(4))
    [0.319  2.5931]
    """
    return _sequence("pro_cv_seq", 1.0, m, n, c)


def pro_ang1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The prolate angular function of the first kind, |x| < 1, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.pro_ang1(1, 2, 3.0, 0.4)]
    [0.9994, 1.5395]
    """
    return _named("pro_ang1", 1.0, _PRO_ANG, m, n, c, None, x)


def pro_ang1_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`pro_ang1` of a known characteristic value, `pro_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.pro_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.pro_ang1_cv(1, 2, 3.0, cv, 0.4)]
    [0.999, 1.539]
    """
    return _named("pro_ang1_cv", 1.0, _PRO_ANG, m, n, c, cv, x)


def pro_rad1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The prolate radial function of the first kind, x > 1, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.pro_rad1(1, 2, 3.0, 1.4)]
    [0.3127, -0.0419]
    """
    return _named("pro_rad1", 1.0, _PRO_RAD[0], m, n, c, None, x)


def pro_rad1_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`pro_rad1` of a known characteristic value, `pro_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.pro_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.pro_rad1_cv(1, 2, 3.0, cv, 1.4)]
    [0.313, -0.042]
    """
    return _named("pro_rad1_cv", 1.0, _PRO_RAD[0], m, n, c, cv, x)


def pro_rad2(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The prolate radial function of the second kind, x > 1, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.pro_rad2(1, 2, 3.0, 1.4)]
    [-0.145, 1.1297]
    """
    return _named("pro_rad2", 1.0, _PRO_RAD[1], m, n, c, None, x)


def pro_rad2_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`pro_rad2` of a known characteristic value, `pro_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.pro_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.pro_rad2_cv(1, 2, 3.0, cv, 1.4)]
    [-0.145, 1.13]
    """
    return _named("pro_rad2_cv", 1.0, _PRO_RAD[1], m, n, c, cv, x)


@wide
def obl_cv(m: Array, n: Array, c: Array) -> Array:
    """The characteristic value of the oblate spheroidal wave function of order m and degree n.

    For whole 0 <= m <= n, m and n - m to 100, and |c| < 100: an eigenvalue of a tridiagonal
    matrix. c has derivatives.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.obl_cv(1, 2, 3.0)), 4)
    1.8215
    """
    return _value_of(-1.0, m, n, c)


def obl_cv_seq(m: int, n: int, c: ArrayLike) -> Array:
    """The characteristic values of oblate functions of order m, of the degrees m to n.

    >>> import functrans as ft
    >>> print(ft.scipy.special.obl_cv_seq(0, 1, 1.0).round(4))
    [-0.3486  1.3932]
    """
    return _sequence("obl_cv_seq", -1.0, m, n, c)


def obl_ang1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The oblate angular function of the first kind, |x| < 1, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.obl_ang1(1, 2, 3.0, 0.4)]
    [1.2276, 3.1505]
    """
    return _named("obl_ang1", -1.0, _OBL_ANG, m, n, c, None, x)


def obl_ang1_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`obl_ang1` of a known characteristic value, `obl_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.obl_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.obl_ang1_cv(1, 2, 3.0, cv, 0.4)]
    [1.228, 3.151]
    """
    return _named("obl_ang1_cv", -1.0, _OBL_ANG, m, n, c, cv, x)


def obl_rad1(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The oblate radial function of the first kind, x >= 0, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.obl_rad1(1, 2, 3.0, 0.4)]
    [0.1629, 0.3701]
    """
    return _named("obl_rad1", -1.0, _OBL_RAD[0], m, n, c, None, x)


def obl_rad1_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`obl_rad1` of a known characteristic value, `obl_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.obl_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.obl_rad1_cv(1, 2, 3.0, cv, 0.4)]
    [0.163, 0.37]
    """
    return _named("obl_rad1_cv", -1.0, _OBL_RAD[0], m, n, c, cv, x)


def obl_rad2(m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The oblate radial function of the second kind, x >= 0, and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.obl_rad2(1, 2, 3.0, 0.4)]
    [-0.4695, 0.6973]
    """
    return _named("obl_rad2", -1.0, _OBL_RAD[1], m, n, c, None, x)


def obl_rad2_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
                 ) -> tuple[Array, Array]:
    """`obl_rad2` of a known characteristic value, `obl_cv(m, n, c)`.

    >>> import functrans as ft
    >>> cv = ft.scipy.special.obl_cv(1, 2, 3.0)
    >>> [round(float(v), 3) for v in ft.scipy.special.obl_rad2_cv(1, 2, 3.0, cv, 0.4)]
    [-0.469, 0.697]
    """
    return _named("obl_rad2_cv", -1.0, _OBL_RAD[1], m, n, c, cv, x)
