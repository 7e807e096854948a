"""Logistic functions, entropies, losses and other functions of a few operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.nn import functions as nn
from functrans.scipy.special.common import elementwise, partials, polynomial
from functrans.scipy.special.densities import log1pmx
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike, Axis


@elementwise
def expit(x: Array) -> Array:
    """1 / (1 + exp(-x)).

    >>> import functrans as ft
    >>> float(ft.scipy.special.expit(0.0))
    0.5
    """
    return lax.logistic(x)


@elementwise
def logit(x: Array) -> Array:
    """log(x / (1 - x)), the inverse of expit.

    >>> ft.scipy.special.logit(jnp.array([0.5, 0.9])).round(4)
    Array([0.    , 2.1972], dtype=float32)
    """
    far = lax.log(x) - lax.log1p(-x)
    if jnp.iscomplexobj(x):
        return far
    centred = 2.0 * x - 1.0  # exact, where the logarithms cancel
    near = jnp.abs(centred) < 0.5
    return jnp.where(near, 2.0 * lax.atanh(jnp.where(near, centred, 0.0)), far)


_EXPREL = [1 / math.factorial(k + 1) for k in range(18)]


def _box(log: Array, lmbda: Array) -> Array:
    """expm1(lmbda log) / lmbda; around 0 a series, as the derivatives in lmbda cancel there."""
    power = lmbda * log
    near = (jnp.abs(power) < 0.5) | (lmbda == 0)
    small = jnp.where(near & jnp.isfinite(power), power, 0.0)
    series = polynomial(small, _EXPREL)
    safe = jnp.where(near, 1.0, lmbda)
    return jnp.where(near, log * series, lax.expm1(jnp.where(near, 1.0, power)) / safe)


@elementwise
def boxcox(x: Array, lmbda: Array) -> Array:
    """(x ** lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> ft.scipy.special.boxcox(jnp.array([1.0, 4.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _box(lax.log(x), lmbda)


@elementwise
def boxcox1p(x: Array, lmbda: Array) -> Array:
    """boxcox(1 + x, lmbda), accurate near 0.

    >>> ft.scipy.special.boxcox1p(jnp.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _box(lax.log1p(x), lmbda)


@custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    zero = (x == 0) & ~jnp.isnan(y)
    return jnp.where(zero, 0.0, x * lax.log(jnp.where(zero, 1.0, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlogy(x, y), tx * lax.log(y) + ty * (x / y)


@custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    zero = (x == 0) & ~jnp.isnan(y)
    return jnp.where(zero, 0.0, x * lax.log1p(jnp.where(zero, 0.0, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlog1py(x, y), tx * lax.log1p(y) + ty * (x / (1.0 + y))


@elementwise
def xlogy(x: Array, y: Array) -> Array:
    """x log(y), and 0 where x is 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.xlogy(0.0, 0.0))
    0.0
    """
    return _xlogy(x, y)


@elementwise
def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), and 0 where x is 0.

    >>> ft.scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 1.0])).round(4)
    Array([0.    , 1.3863], dtype=float32)
    """
    return _xlog1py(x, y)


@custom_jvp
def _entr(x: Array) -> Array:
    zero = x == 0
    return jnp.where(zero, 0.0, -x * lax.log(jnp.where(zero, 1.0, x)))


@_entr.defjvp
def _entr_jvp(primals: Any, tangents: Any) -> Any:
    return _entr(*primals), -tangents[0] * (lax.log(primals[0]) + 1.0)


@elementwise
def entr(x: Array) -> Array:
    """-x log(x), 0 at 0 and -inf below.

    >>> ft.scipy.special.entr(jnp.array([0.0, 0.5, -1.0])).round(4)
    Array([0.    , 0.3466,   -inf], dtype=float32)
    """
    negative = x < 0
    return jnp.where(negative, -np.inf, _entr(jnp.where(negative, 1.0, x)))


@elementwise
def rel_entr(p: Array, q: Array) -> Array:
    """p log(p / q) for positive p and q, 0 where p is 0 and q >= 0, else inf.

    >>> ft.scipy.special.rel_entr(jnp.array([0.5, 0.0]), jnp.array([0.25, 0.5])).round(4)
    Array([0.3466, 0.    ], dtype=float32)
    """
    both = (p > 0) & (q > 0)
    only_zero = (p == 0) & (q >= 0)
    sp, sq = jnp.where(both, p, 1.0), jnp.where(both, q, 1.0)
    found = jnp.where(both, sp * (lax.log(sp) - lax.log(sq)), jnp.where(only_zero, 0.0, np.inf))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), np.nan, found).astype(sp.dtype)


@elementwise
def kl_div(p: Array, q: Array) -> Array:
    """rel_entr(p, q) - p + q, and inf where rel_entr is by definition.

    >>> import functrans as ft
    >>> float(ft.scipy.special.kl_div(1.0, 1.0))
    0.0
    """
    near = (p > 0) & (lax.abs(q - p) < 0.5 * p)
    safe, other = jnp.where(near, p, 1.0), jnp.where(near, q, 1.0)
    # where the terms cancel; 0 for equal ones, not -0
    close = 0.0 - safe * log1pmx((other - safe) / safe)
    defined = (p >= 0) & (q >= 0) & ((p == 0) | (q > 0))
    far = rel_entr(jnp.where(near, 1.0, p), jnp.where(near, 1.0, q)) + jnp.where(
        defined & ~near, q - p, 0.0)
    return jnp.where(near, close, far)


# Losses --------------------------------------------------------------------------------------


@elementwise
def huber(delta: Array, r: Array) -> Array:
    """Huber's loss: r^2 / 2 for |r| <= delta, delta (|r| - delta / 2) beyond; inf for delta < 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.huber(1.0, 3.0))
    2.5
    """
    size = lax.abs(r)
    value = jnp.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return jnp.where(delta < 0, math.inf, value)


@elementwise
def pseudo_huber(delta: Array, r: Array) -> Array:
    """The smooth relative of Huber's loss, delta^2 (sqrt(1 + (r / delta)^2) - 1).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.pseudo_huber(1.0, 3.0)), 4)
    2.1623
    """
    safe = jnp.where(delta > 0, delta, 1.0)
    ratio = r / safe
    far = lax.abs(ratio) > 1e9  # whose square adds to 1 beyond its last bit, and may overflow
    near = jnp.where(far, 0.0, ratio)
    value = jnp.where(far, delta * (lax.abs(r) - delta),
                      r * (jnp.where(far, 0.0, r) / (1.0 + lax.sqrt(1.0 + near * near))))
    value = jnp.where(jnp.isinf(r), math.inf, value)
    value = jnp.where(jnp.isnan(delta), math.nan, jnp.where(delta == 0, 0.0, value))
    return jnp.where(delta < 0, math.inf, value)


# Functions that keep their digits ------------------------------------------------------------


@elementwise
def log_expit(x: Array) -> Array:
    """log(expit(x)), accurate in both tails.

    >>> import functrans as ft
    >>> float(ft.scipy.special.log_expit(-1000.0))
    -1000.0
    """
    return _log_expit(x)


@partials(lambda out, x: lax.logistic(-x))
def _log_expit(x: Array) -> Array:
    return jnp.minimum(x, 0.0) - lax.log1p(lax.exp(-lax.abs(x)))


@elementwise
def exprel(x: Array) -> Array:
    """(exp(x) - 1) / x, which is 1 at 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.exprel(0.0))
    1.0
    """
    near = lax.abs(x) < 0.5
    series = polynomial(jnp.where(near, x, 0.0), _EXPREL)
    safe = jnp.where(near, 1.0, x)
    return jnp.where(x == math.inf, x, jnp.where(near, series, lax.expm1(safe) / safe))


@elementwise
def inv_boxcox(y: Array, lmbda: Array) -> Array:
    """The x of which boxcox(x, lmbda) is y.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.inv_boxcox(1.5, 2.0)), 6)
    2.0
    """
    return lax.exp(log1p_over(y, lmbda))


@elementwise
def inv_boxcox1p(y: Array, lmbda: Array) -> Array:
    """The x of which boxcox1p(x, lmbda) is y, accurate near 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.inv_boxcox1p(1.5, 2.0)), 6)
    1.0
    """
    return lax.expm1(log1p_over(y, lmbda))


def log1p_over(y: Array, lmbda: Array) -> Array:
    """log1p(lmbda y) / lmbda; around 0 by the series of atanh, as in _box."""
    t = y * lmbda
    near = (lax.abs(t) < 0.5) & (lax.abs(t) < math.inf)
    small = jnp.where(near, t, 0.0)
    ratio = small / (2.0 + small)
    series = 2.0 / (2.0 + small) * polynomial(ratio * ratio, [1 / (2 * k + 1) for k in range(18)])
    # a product that overflows by its factors, also of an infinite y and a lmbda near 0
    endless = (t == math.inf) & (lax.abs(y) < math.inf) & (lax.abs(lmbda) < math.inf)
    factors = lax.log(lax.abs(jnp.where(endless, y, 1.0))) + lax.log(
        lax.abs(jnp.where(endless, lmbda, 1.0)))
    log = jnp.where(endless, factors, lax.log1p(jnp.where(near | endless, 1.0, t)))
    value = jnp.where(near, y * series, log / jnp.where(near, 1.0, lmbda))
    return jnp.where((lmbda == 0) & (lax.abs(y) == math.inf), y, value)


@elementwise
def cosm1(x: Array) -> Array:
    """cos(x) - 1, accurate near 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.cosm1(0.0)) == 0.0
    True
    """
    half = lax.sin(0.5 * x)
    return -2.0 * half * half


@elementwise
def powm1(x: Array, y: Array) -> Array:
    """x ** y - 1, accurate where the power is near 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.powm1(3.0, 2.0)), 5)
    8.0
    """
    positive = x > 0
    logarithm = y * lax.log(jnp.where(positive, x, 1.0))
    near = positive & (lax.abs(logarithm) < 1.0)
    return jnp.where(near, lax.expm1(jnp.where(near, logarithm, 0.0)),
                     jnp.power(jnp.where(near, 1.0, x), y) - 1.0)


@elementwise
def expm1(x: Array) -> Array:
    """exp(x) - 1, accurate near 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.expm1(0.0))
    0.0
    """
    return lax.expm1(x)


@elementwise
def log1p(x: Array) -> Array:
    """log(1 + x), accurate near 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.log1p(0.0))
    0.0
    """
    return lax.log1p(x)


@elementwise
def cbrt(x: Array) -> Array:
    """The real cube root.

    >>> import functrans as ft
    >>> float(ft.scipy.special.cbrt(-8.0))
    -2.0
    """
    return lax.cbrt(x)


@elementwise
def exp2(x: Array) -> Array:
    """2 ** x.

    >>> import functrans as ft
    >>> float(ft.scipy.special.exp2(3.0))
    8.0
    """
    return lax.exp2(x)


@partials(lambda out, x: math.log(10.0) * out)
def _exp10(x: Array) -> Array:
    return jnp.power(10.0, x).astype(x.dtype)


@elementwise
def exp10(x: Array) -> Array:
    """10 ** x.

    >>> import functrans as ft
    >>> float(ft.scipy.special.exp10(2.0))
    100.0
    """
    return _exp10(x)


# Angles in degrees ---------------------------------------------------------------------------

_DEGREE = math.pi / 180


def _quadrant(x: Array) -> tuple[Array, Array]:
    """x >= 0 as a multiple of 90 degrees, modulo 4, and the rest in [-45, 45]; exact."""
    turned = jnp.remainder(x, 360.0)
    quarters = jnp.round(turned / 90.0)
    return quarters, turned - 90.0 * quarters


def _sine(quarter: Array, rest: Array) -> Array:
    """The sine of quarter * 90 + rest degrees."""
    sine, cosine = lax.sin(rest * _DEGREE), lax.cos(rest * _DEGREE)
    quarter = jnp.remainder(quarter, 4.0)
    value = jnp.where((quarter == 1) | (quarter == 3), cosine, sine)
    return jnp.where(quarter >= 2, -value, value) + 0.0


@partials(lambda out, x: _DEGREE * _cosdg(x))
def _sindg(x: Array) -> Array:
    value = _sine(*_quadrant(lax.abs(x)))
    return jnp.where(x < 0, -value, value)


@partials(lambda out, x: -_DEGREE * _sindg(x))
def _cosdg(x: Array) -> Array:
    quarter, rest = _quadrant(lax.abs(x))
    return _sine(quarter + 1.0, rest)


@elementwise
def sindg(x: Array) -> Array:
    """The sine of x degrees.

    >>> import functrans as ft
    >>> float(ft.scipy.special.sindg(90.0))
    1.0
    """
    return _sindg(x)


@elementwise
def cosdg(x: Array) -> Array:
    """The cosine of x degrees.

    >>> import functrans as ft
    >>> float(ft.scipy.special.cosdg(90.0))
    0.0
    """
    return _cosdg(x)


def _tangent(x: Array, shift: float) -> Array:
    """The tangent of x degrees for shift 0, and less the cotangent for shift 1."""
    quarter, rest = _quadrant(lax.abs(x))
    odd = jnp.remainder(quarter + shift, 2.0) == 1
    tangent = lax.tan(rest * _DEGREE)
    pole = odd & (rest == 0)
    value = jnp.where(odd, -1.0 / jnp.where(odd & ~pole, tangent, 1.0), tangent)
    return jnp.where(pole, math.inf, jnp.where(x < 0, -value, value))


@partials(lambda out, x: _DEGREE * (1.0 + out * out))
def _tandg(x: Array) -> Array:
    return _tangent(x, 0.0)


@partials(lambda out, x: -_DEGREE * (1.0 + out * out))
def _cotdg(x: Array) -> Array:
    value = _tangent(x, 1.0)
    return jnp.where(lax.abs(value) == math.inf, value, -value)


@elementwise
def tandg(x: Array) -> Array:
    """The tangent of x degrees; inf at odd multiples of 90.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.tandg(45.0)), 6)
    1.0
    """
    return _tandg(x)


@elementwise
def cotdg(x: Array) -> Array:
    """The cotangent of x degrees; inf at multiples of 180.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.cotdg(45.0)), 6)
    1.0
    """
    return _cotdg(x)


@elementwise
def radian(d: Array, m: Array, s: Array) -> Array:
    """The angle of d degrees, m minutes and s seconds in radians.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.radian(180.0, 0.0, 0.0)), 4)
    3.1416
    """
    return (d + m / 60.0 + s / 3600.0) * _DEGREE


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)) along axes, by default over all elements.

    >>> import functrans as ft
    >>> ft.scipy.special.softmax(ft.numpy.array([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    return nn.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """log(softmax(x)) along axes, by default over all elements.

    >>> import functrans as ft
    >>> ft.scipy.special.log_softmax(ft.numpy.array([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    return nn.log_softmax(x, axis)
