"""Mathieu functions, their characteristic values and coefficients (DLMF 28, McLachlan's signs)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.special.bessel_orders import jv_, yv_
from functrans.scipy.special.common import in_double, operands, wide
from functrans.scipy.special.solutions import Pair, solution
from functrans.scipy.special.tridiagonal import eigenvalue, eigenvector
from functrans.typing import Array, ArrayLike

__all__ = ["mathieu_a", "mathieu_b", "mathieu_cem", "mathieu_even_coef", "mathieu_modcem1",
           "mathieu_modcem2", "mathieu_modsem1", "mathieu_modsem2", "mathieu_odd_coef",
           "mathieu_sem"]

_COUNT: Final = 120
_MOST: Final = 150.0
"""The largest order, and so that the coefficients of |q| < 30,000 end in the count."""
_WIDEST: Final = 30_000.0


def _row(x: Array) -> Array:
    return jnp.reshape(jnp.arange(_COUNT, dtype=np.float64), (-1, *(1,) * x.ndim))


def _valid(m: Array, q: Array, sine: bool) -> Array:
    return (m == lax.floor(m)) & (m >= (1 if sine else 0)) & (m <= _MOST) & (
        lax.abs(q) < _WIDEST)


def _matrix(m: Array, q: Array, sine: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Diagonal, neighbours and index of the eigenvalue; the frequencies, and whether m is odd."""
    odd = jnp.remainder(m, 2.0) == 1
    k = _row(m)
    first = k == 0
    even_base = 2.0 if sine else 0.0
    frequency = 2.0 * k + jnp.where(odd, 1.0, even_base)
    turn = -q if sine else q
    d = frequency * frequency + jnp.where(first & odd, turn, 0.0)
    e = jnp.where(first[:-1] & ~odd, 1.0 if sine else math.sqrt(2.0), jnp.ones_like(q)) * q
    index = jnp.where(odd, 0.5 * (m - 1.0), 0.5 * (m - even_base))
    return d, e, index, frequency, odd


def _characteristic(m: Array, q: Array, sine: bool) -> Array:
    valid = _valid(m, q, sine)
    order, width = jnp.where(valid, m, 1.0), jnp.where(valid, q, 0.0)
    d, e, index, _, _ = _matrix(order, width, sine)
    return jnp.where(valid, eigenvalue(d, e, index), math.nan)


def _coefficients(m: Array, q: Array, sine: bool) -> tuple[Array, Array, Array]:
    """The Fourier coefficients, their frequencies, and whether m is odd, of valid m and q."""
    d, e, index, frequency, odd = _matrix(m, q, sine)
    vector = eigenvector(d, e, eigenvalue(d, e, index))
    # the sign of the function or its slope at pi / 2, or for q < 0 at 0, where no terms cancel
    k = _row(m)
    plain = jnp.ones_like(frequency)
    weight = jnp.where(odd, plain, frequency) if sine else jnp.where(odd, frequency, plain)
    weight = jnp.where((k == 0) & ~odd & (not sine), math.sqrt(0.5), weight)
    at_0 = frequency if sine else jnp.ones_like(frequency)
    flip = 1.0 - 2.0 * jnp.remainder(k + index, 2.0)
    total = jnp.where(q >= 0, jnp.sum(flip * weight * vector, 0), jnp.sum(at_0 * vector, 0))
    vector = jnp.where(total < 0, -vector, vector)
    if not sine:
        vector = vector * jnp.where((k == 0) & ~odd, math.sqrt(0.5), jnp.ones_like(vector))
    return vector, frequency, odd


@wide
def mathieu_a(m: Array, q: Array) -> Array:
    """The characteristic value of the even Mathieu function of order m, 0 <= m <= 150, |q| < 3e4.

    An eigenvalue of a tridiagonal matrix; q has derivatives.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.mathieu_a(1, 3.0)), 4)
    2.519
    """
    return _characteristic(m, q, False)


@wide
def mathieu_b(m: Array, q: Array) -> Array:
    """The characteristic value of the odd Mathieu function of order m, 1 <= m <= 150, |q| < 3e4.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.mathieu_b(1, 3.0)), 4)
    -2.7854
    """
    return _characteristic(m, q, True)


# Of real angles ----------------------------------------------------------------------------------


def _angular(sine: bool) -> Callable[..., Pair]:
    def raw(m: Array, q: Array, x: Array) -> Pair:
        valid = _valid(m, q, sine) & (lax.abs(x) < math.inf)
        order, width, place = (jnp.where(valid, v, w) for v, w in ((m, 1.0), (q, 0.0), (x, 0.0)))
        vector, frequency, _ = _coefficients(order, width, sine)
        c, s = lax.cos(frequency * place), lax.sin(frequency * place)
        value, slope = (s, frequency * c) if sine else (c, -frequency * s)
        return (jnp.where(valid, jnp.sum(vector * value, 0), math.nan),
                jnp.where(valid, jnp.sum(vector * slope, 0), math.nan))

    return solution(raw, lambda value, slope, m, q, x: (
        2.0 * q * lax.cos(2.0 * x) - _characteristic(m, q, sine)) * value, 1)


_CE: Final = _angular(False)
_SE: Final = _angular(True)


def _of_degrees(name: str, pair: Callable[..., Pair], m: ArrayLike, q: ArrayLike, x: ArrayLike
                ) -> Pair:
    def both(m: Array, q: Array, x: Array) -> Pair:
        # whole turns first, which are exact in degrees
        turn = (x - 360.0 * lax.stop_gradient(jnp.round(x / 360.0))) * (math.pi / 180.0)
        return pair(m, q, turn)

    found: tuple[Array, Array] = in_double(both, operands(name, m, q, x))
    return found


def mathieu_cem(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The even Mathieu function ce_m(x, q) and its derivative by radians, for x in degrees.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_cem(2, 3.0, 30.0)]
    [0.8891, -0.5283]
    """
    return _of_degrees("mathieu_cem", _CE, m, q, x)


def mathieu_sem(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The odd Mathieu function se_m(x, q) and its derivative by radians, for x in degrees.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_sem(2, 3.0, 30.0)]
    [0.6397, 1.3154]
    """
    return _of_degrees("mathieu_sem", _SE, m, q, x)


# Of imaginary ones -------------------------------------------------------------------------------


def _radial(sine: bool, second: bool) -> Callable[..., Pair]:
    def raw(m: Array, q: Array, x: Array) -> Pair:
        """Sums of products of Bessel functions (DLMF 28.24), around the largest coefficient."""
        valid = _valid(m, q, sine) & (q > 0) & (lax.abs(x) < 300.0)
        order, width, place = (jnp.where(valid, v, w) for v, w in ((m, 1.0), (q, 1.0), (x, 0.0)))
        vector, _, odd = _coefficients(order, width, sine)
        size = lax.abs(lax.stop_gradient(vector))
        k = _row(m)
        s = jnp.argmax(size, 0).astype(np.float64)
        largest = jnp.sum(jnp.where(k == s, vector, 0.0), 0)
        some = size > 1e-19 * jnp.max(size, 0)
        shift = jnp.where(odd, 1.0, 2.0 if sine else 0.0)
        root = lax.sqrt(width)
        low, high = root * lax.exp(-place), root * lax.exp(place)
        apart = jnp.where(some, k - s, 0.0)
        beside = jnp.where(some, k + s + shift, 0.0)
        orders = jnp.stack([apart, beside])
        both = jnp.stack([orders, orders + 1.0])

        def with_rise(fun: Callable[..., Array], z: Array) -> Pair:
            """The functions of both orders, and z times their slopes."""
            values = fun(both, jnp.broadcast_to(z, both.shape))
            return values[0], orders * values[0] - z * values[1]

        (f, df), (g, dg) = with_rise(jv_, low), with_rise(yv_ if second else jv_, high)
        sign = -1.0 if sine else 1.0
        # by x the first argument falls as it is, and the second one grows
        products = f[0] * g[1] + sign * f[1] * g[0]
        slopes = f[0] * dg[1] - df[0] * g[1] + sign * (f[1] * dg[0] - df[1] * g[0])
        index = jnp.where(odd, 0.5 * (order - 1.0), 0.5 * (order - (2.0 if sine else 0.0)))
        flip = 1.0 - 2.0 * jnp.remainder(k + index, 2.0)
        scale = jnp.where((s == 0) & ~odd & (not sine), 0.5, 1.0) / largest
        value, slope = (jnp.where(valid, scale * jnp.sum(
            jnp.where(some, flip * vector * p, 0.0), 0), math.nan) for p in (products, slopes))
        return value, slope

    return solution(raw, lambda value, slope, m, q, x: (
        _characteristic(m, q, sine) - 2.0 * q * lax.cosh(2.0 * x)) * value, 1)


_MODIFIED: Final = {(sine, second): _radial(sine, second)
                    for sine in (False, True) for second in (False, True)}


def _modified(name: str, sine: bool, second: bool, *args: ArrayLike) -> Pair:
    found: Pair = in_double(_MODIFIED[sine, second], operands(name, *args))
    return found


def mathieu_modcem1(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The even modified Mathieu function of the first kind, Mc1_m(x, q), and its derivative.

    For q > 0: a sum of products of Bessel functions. NaN for other q.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_modcem1(2, 3.0, 0.5)]
    [0.5515, -0.2872]
    """
    return _modified("mathieu_modcem1", False, False, m, q, x)


def mathieu_modcem2(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The even modified Mathieu function of the second kind, Mc2_m(x, q), and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_modcem2(2, 3.0, 0.5)]
    [-0.0717, 1.1917]
    """
    return _modified("mathieu_modcem2", False, True, m, q, x)


def mathieu_modsem1(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The odd modified Mathieu function of the first kind, Ms1_m(x, q), and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_modsem1(2, 3.0, 0.5)]
    [0.4126, 0.4856]
    """
    return _modified("mathieu_modsem1", True, False, m, q, x)


def mathieu_modsem2(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """The odd modified Mathieu function of the second kind, Ms2_m(x, q), and its derivative.

    >>> import functrans as ft
    >>> [round(float(v), 4) for v in ft.scipy.special.mathieu_modsem2(2, 3.0, 0.5)]
    [-0.2884, 1.2036]
    """
    return _modified("mathieu_modsem2", True, True, m, q, x)


# Coefficients ----------------------------------------------------------------------------------


def _known(name: str, m: Any, q: Any, sine: bool) -> Array:
    least = 1 if sine else 0
    fine = isinstance(m, (int, float, np.integer, np.floating)) and m == int(m) \
        and least <= m <= _MOST and isinstance(q, (int, float, np.integer, np.floating)) \
        and 0 <= q < _WIDEST
    if not fine:
        raise ArgumentError(f"scipy.special.{name}: the order and q are {m!r} and {q!r}.",
                            where=user_source(), why="they are known numbers, a whole order from "
                            f"{least} to 150 and 0 <= q < 30,000: they say how many coefficients "
                            "there are.", fix=f"{name}(2, 5.0)")
    root = math.sqrt(q)
    extent = 7.5 + 56.1 * root - 134.7 * q + 90.7 * root * q if q <= 1 else (
        17.0 + 3.1 * root - 0.126 * q + 0.0037 * root * q)
    count = min(int(extent + 0.5 * m), _COUNT)
    vector = _coefficients(jnp.asarray(np.float64(m)), jnp.asarray(np.float64(q)), sine)[0]
    return vector[:count].astype(default_float())


def mathieu_even_coef(m: int, q: float) -> Array:
    """The Fourier coefficients of the even Mathieu function of order m: of cos(2 k x), or odd ones.

    How many there are depends on m and q, which are known numbers.

    >>> import functrans as ft
    >>> print(ft.scipy.special.mathieu_even_coef(2, 3.0)[:2].round(4))
    [0.3935 0.793 ]
    """
    return _known("mathieu_even_coef", m, q, False)


def mathieu_odd_coef(m: int, q: float) -> Array:
    """The Fourier coefficients of the odd Mathieu function of order m.

    >>> import functrans as ft
    >>> print(ft.scipy.special.mathieu_odd_coef(3, 3.0)[:2].round(4))
    [0.2538 0.9496]
    """
    return _known("mathieu_odd_coef", m, q, True)
