"""Orthogonal polynomials, Legendre functions and spherical harmonics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.scipy.special.common import HALF_LOG_2PI, loop, partials, pushed, wide
from functrans.scipy.special.densities import betaln, log_gamma_ratio
from functrans.scipy.special.gammas import binom, poch
from functrans.scipy.special.hypergeometric import hyp1f1, hyp2f1
from functrans.typing import Array, ArrayLike

__all__ = ["eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
           "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre", "lpmv",
           "sph_harm_y"]

_LIMIT: Final = 100_000


def _recurrence(n: Array, first: Array, second: Array, step: Callable[[Any, Array, Array], Array],
                base: Any = 0.0) -> Array:
    """The polynomial of degree n of P_0 = first, P_1 = second, P_(k+1) = step(k, P_k, P_(k-1)).

    NaN for a degree that is no integer in [0, 100,000). With `base`, n and all degrees are beside
    that one.
    """
    valid = (n >= 0) & (n == lax.floor(n)) & (n < _LIMIT) & ~jnp.isnan(second)
    degree = jnp.where(valid, n, 0.0)

    def advance(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        return high, step(k + base, high, low), i + 1.0

    low, high, _ = loop(advance, (first, second, jnp.ones_like(first)),
                        lambda low, high, i: i < degree, _LIMIT)
    return jnp.where(valid, jnp.where(degree == 0, low, high), math.nan)


def _of_real_degree(n: Array, fun: Callable[[Array], Array],
                    step: Callable[[Any, Array, Array], Array], x: Array,
                    own: Any = False) -> Array:
    """The function of real degree n that is `fun`, which loses digits at a large degree.

    From a degree in [0, 1) and the next one the recurrence goes up, which holds for real degrees
    too; a degree below 0 is taken as it is, and at x = -1, where functions of broken degrees are
    infinite, and where `own` says so.
    """
    known = lax.abs(n) < _LIMIT
    degree = jnp.where(known, n, 0.0)
    taken = own | (_is_broken(degree) & (x == -1.0))
    steps = jnp.where((degree > 0) & ~taken, lax.floor(degree), 0.0)
    base = degree - steps
    value = _recurrence(steps, fun(base), fun(base + 1.0), step, base)
    return jnp.where(known, value, math.nan)


def _below(n: Array) -> Array:
    """n - 1, and 0 for 0: the degree of a derivative, whose factor is 0 then."""
    return jnp.where(n == 0, 0.0, n - 1.0)


def _of_zero(n: Array, value: Array) -> Array:
    return jnp.where(n == 0, 0.0, value)


def _jacobi_value(n: Array, a: Array, b: Array, x: Array) -> Array:
    def step(k: Any, high: Array, low: Array) -> Array:
        s = 2.0 * k + a + b
        head = (s + 1.0) * ((s + 2.0) * s * x + a * a - b * b)
        tail = 2.0 * (k + a) * (k + b) * (s + 2.0)
        out: Array = (head * high - tail * low) / (2.0 * (k + 1.0) * (k + a + b + 1.0) * s)
        return out

    def start(n: Array) -> Array:
        # those of degree 0 and 1 are polynomials
        line = (a + 1.0) + (a + b + 2.0) * (0.5 * (x - 1.0))
        other = (n != 0) & (n != 1)
        d, p, q = jnp.where(other, n, 0.0), jnp.where(other, a, 0.0), jnp.where(other, b, 0.0)
        value = binom(d + p, d) * hyp2f1(-d, d + p + q + 1.0, p + 1.0,
                                         jnp.where(other, 0.5 * (1.0 - x), 0.0))
        return jnp.where(n == 0, 0.0 * x + 1.0, jnp.where(n == 1, line, value))

    left, own = _left_of_zeros(n, a, b, x)
    own = own & ~left
    p, q, r, z = (jnp.where(left, v, w) for v, w in ((n, 0.5), (a, 0.5), (b, 0.5), (x, 0.5)))
    value = _of_real_degree(jnp.where(left, 0.0, n), start, step, x, own)
    return jnp.where(left, _beside_minus_one(p, q, r, z), value)


_FEW: Final = 30.0


def _left_of_zeros(n: Array, a: Array, b: Array, x: Array) -> tuple[Array, Array]:
    """Where a function of broken degree has no zeros, as it grows to infinity at -1, or x < 0.2.

    And where else it is 2F1 of its own degree.

    The zeros are, but for a few, where those of polynomials of a large degree are.
    """
    total = 2.0 * n + a + b
    safe = jnp.where(total > 0, total, 1.0)
    p, q = lax.square(a / safe), lax.square(b / safe)
    root = lax.sqrt(jnp.maximum(lax.square(p + q - 1.0) - 4.0 * p * q, 0.0))
    end = jnp.where(total > 0, q - p - root, 0.0)
    known = _is_broken(n) & (n < _LIMIT) & (b > -1.0) & (n + a > -1.0) & (n + b > -1.0)
    known = known & (x > -1.0) & (lax.abs(a) + lax.abs(b) < _LIMIT)
    few = b <= _FEW
    # among the zeros of a large b one of the solutions at -1 has no digits, and 2F1 at 1 has
    return known & (x < jnp.where(few, jnp.maximum(end, 0.2), end)), known & ~few & (n < 300.0)


_NODES: Final = (-2.0, -1.0, 1.0, 2.0)


def _beside_minus_one(n: Array, a: Array, b: Array, x: Array) -> Array:
    """Of a broken degree by the solutions at x = -1, of which one is infinite (DLMF 15.10.21).

    Around a whole b, where both have a pole that cancels, by the cubic through four values.
    """
    t = 0.5 * (1.0 + x)
    whole = lax.stop_gradient(jnp.round(b))
    width = lax.stop_gradient(1e-3 / (1.0 + lax.abs(lax.log(t))))
    at = (b - whole) / width
    near = lax.abs(at) < 0.5
    power = whole * lax.log(t)  # aside, where it overflows
    weights, places = [], []
    for i, node in enumerate(_NODES):
        weight = jnp.ones_like(x)
        for other in (*_NODES[:i], *_NODES[i + 1:]):
            weight = weight * (at - other) / (node - other)
        # elsewhere the first value is all, the others are at a place that is soon computed
        weights.append(jnp.where(near, weight, 0.0 if i else 1.0))
        places.append(jnp.where(near, whole + node * width, 0.5 if i else b))
    value = _both_solutions(n, a, jnp.stack(places), x, power)
    half = lax.exp(-0.5 * power)
    return jnp.sum(jnp.stack(weights) * value, 0) * half * half


def _sine_of_turns(*parts: Array) -> Array:
    """The sine of pi times a sum, of which each part keeps the digits of its fraction."""
    wholes = [lax.stop_gradient(jnp.round(v)) for v in parts]
    rest = sum((v - w for v, w in zip(parts, wholes, strict=True)), jnp.zeros_like(parts[0]))
    odd = sum((jnp.remainder(w, 2.0) for w in wholes), jnp.zeros_like(parts[0]))
    sine = lax.sin(math.pi * rest)
    return jnp.where(jnp.remainder(odd, 2.0) == 1, -sine, sine)


def _both_solutions(n: Array, a: Array, b: Array, x: Array, power: Array) -> Array:
    """The function times exp(power)."""
    n, a, x, power = (v + 0.0 * b for v in (n, a, x, power))
    t, y = 0.5 * (1.0 + x), n + a + 1.0
    first, second = hyp2f1(jnp.stack([-n, y]), jnp.stack([y + b, -n - b]),
                           jnp.stack([b + 1.0, 1.0 - b]), jnp.stack([t, t]))
    regular = binom(n + b, n) * _sine_of_turns(n, b) / _sine_of_turns(b) * first * lax.exp(power)
    grows = lax.exp(betaln(b + 1.0, y) - b * lax.log(t) + power) * ((b + y) / b)
    return regular - _sine_of_turns(n) / math.pi * grows * second


_jacobi: Callable[..., Array] = partials(
    None, pushed(_jacobi_value, 1), pushed(_jacobi_value, 2),
    lambda out, n, a, b, x: _of_zero(n, 0.5 * (n + a + b + 1.0)
                                     * _jacobi(_below(n), a + 1.0, b + 1.0, x)))(_jacobi_value)


@wide
def eval_jacobi(n: Array, alpha: Array, beta: Array, x: Array) -> Array:
    """Jacobi's polynomial of degree n, which may be broken for x >= -1.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_jacobi(1, 0.0, 0.0, 0.5))
    0.5
    """
    return _jacobi(n, alpha, beta, x)


def _legendre_value(n: Array, x: Array) -> Array:
    def start(n: Array) -> Array:
        other = (n != 0) & (n != 1)
        d = jnp.where(other, n, 0.0)
        value = hyp2f1(-d, d + 1.0, jnp.ones_like(x), jnp.where(other, 0.5 * (1.0 - x), 0.0))
        return jnp.where(n == 0, 0.0 * x + 1.0, jnp.where(n == 1, x, value))

    return _of_real_degree(_reflected(n), start, lambda k, high, low: (
        (2.0 * k + 1.0) * x * high - k * low) / (k + 1.0), x)


def _reflected(n: Array) -> Array:
    """The degree above -1/2 of Legendre's function of degree n, which is that of degree -n - 1."""
    return jnp.where(n < -0.5, -n - 1.0, n)


def _legendre_slope(out: Array, n: Array, x: Array) -> Array:
    one, degree = jnp.ones_like(x), _reflected(n)
    return _of_zero(degree, 0.5 * (degree + 1.0) * _jacobi(_below(degree), one, one, x))


_legendre: Callable[..., Array] = partials(None, _legendre_slope)(_legendre_value)


@wide
def eval_legendre(n: Array, x: Array) -> Array:
    """Legendre's polynomial of degree n, which may be broken or negative for x >= -1.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_legendre(2, 0.5))
    -0.125
    """
    return _legendre(n, x)


def _is_broken(n: Array) -> Array:
    return (n != lax.floor(n)) & (lax.abs(n) < math.inf)


def _circular(n: Array, x: Array, second: bool) -> Array:
    """Chebyshev's functions of real degree n: of n times the angle whose cosine is x >= -1.

    NaN for x < -1, where they are complex (infinite at -1 for the second kind).
    """
    inside = lax.abs(x) <= 1.0
    # of the half angle, as acos has no digits near 1
    near = jnp.where(inside, x, 0.0)
    angle = 2.0 * lax.atan2(lax.sqrt(0.5 * (1.0 - near)), lax.sqrt(0.5 * (1.0 + near)))
    out = jnp.where(x > 1.0, x, 2.0)
    width = lax.log1p((out - 1.0) + lax.sqrt(out - 1.0) * lax.sqrt(out + 1.0))
    if not second:
        value, grown = lax.cos(n * angle), lax.cosh(n * width)
    else:
        flat = near == 1.0
        safe = jnp.where(flat | (near == -1.0), 1.0, angle)
        value = lax.sin((n + 1.0) * safe) / lax.sin(safe)
        value = jnp.where(flat, n + 1.0, value)
        end = jnp.where(jnp.remainder(lax.floor(n), 2.0) == 0, -math.inf, math.inf)
        value = jnp.where(near == -1.0, -end, value)
        # sinh((n + 1) w) / sinh(w), of which both overflow
        size = lax.abs(n + 1.0)
        grown = jnp.sign(n + 1.0) * lax.exp((size - 1.0) * width) * lax.expm1(
            -2.0 * size * width) / lax.expm1(-2.0 * width)
    return jnp.where(inside, value, jnp.where(x > 1.0, grown, math.nan))


def _chebyt_slope(out: Array, n: Array, x: Array) -> Array:
    return n * _chebyu(n - 1.0, x)


@partials(None, _chebyt_slope)
def _chebyt(n: Array, x: Array) -> Array:
    whole = _recurrence(lax.abs(n), jnp.ones_like(x), x, lambda k, high, low: 2.0 * x * high - low)
    broken = _is_broken(n)
    return jnp.where(broken, _circular(jnp.where(broken, n, 0.5), x, False), whole)


def _chebyu_slope(out: Array, n: Array, x: Array) -> Array:
    """By Gegenbauer's polynomial; of a broken degree by ((n + 1) T_(n+1) - x U_n) / (x^2 - 1)."""
    broken = _is_broken(n)
    two = jnp.full_like(x, 2.0)
    whole = _of_zero(n, 2.0 * _gegenbauer(jnp.where(broken, 0.0, _below(n)), two, x))
    safe = jnp.where(broken & (lax.abs(x) != 1.0), x, 0.5)
    degree = jnp.where(broken, n, 0.5)
    other = ((degree + 1.0) * _chebyt(degree + 1.0, safe) - safe * out) / (
        (safe - 1.0) * (safe + 1.0))
    end = jnp.where(x == 1.0, n * (n + 1.0) * (n + 2.0) / 3.0, math.nan)
    return jnp.where(broken, jnp.where(lax.abs(x) == 1.0, end, other), whole)


@partials(None, _chebyu_slope)
def _chebyu(n: Array, x: Array) -> Array:
    # U_(-n) = -U_(n-2)
    degree = jnp.where(n < -1.0, -n - 2.0, n)
    value = _recurrence(jnp.maximum(degree, 0.0), jnp.ones_like(x), 2.0 * x,
                        lambda k, high, low: 2.0 * x * high - low)
    value = jnp.where(n < -1.0, -value, value)
    value = jnp.where(n == -1, 0.0 * x, value)
    broken = _is_broken(n)
    return jnp.where(broken, _circular(jnp.where(broken, n, 0.5), x, True), value)


@wide
def eval_chebyt(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the first kind of degree n, which may be broken: cos(n acos x).

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_chebyt(2, 0.5))
    -0.5
    """
    return _chebyt(n, x)


@wide
def eval_chebyu(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the second kind of degree n, which may be broken.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_chebyu(2, 0.5))
    0.0
    """
    return _chebyu(n, x)


def _gegenbauer_value(n: Array, a: Array, x: Array) -> Array:
    def start(n: Array) -> Array:
        other = (n != 0) & (n != 1)
        d, p = jnp.where(other, n, 0.0), jnp.where(other, a, 0.5)
        value = binom(d + 2.0 * p - 1.0, d) * hyp2f1(-d, d + 2.0 * p, p + 0.5,
                                                     jnp.where(other, 0.5 * (1.0 - x), 0.0))
        return jnp.where(n == 0, 0.0 * x + 1.0, jnp.where(n == 1, 2.0 * a * x, value))

    # of a broken degree left of 0 by Jacobi's function, which grows to infinity at -1
    left = _is_broken(n) & (n > 0) & (n < _LIMIT) & (a > 0) & (a < _LIMIT) & (x < 0) & (x > -1.0)
    d, p, z = (jnp.where(left, v, 0.5) for v in (n, a, x))
    ratio = lax.exp(log_gamma_ratio(2.0 * p, d) - log_gamma_ratio(p + 0.5, d))
    grown = ratio * _jacobi(d, p - 0.5, p - 0.5, z)
    value = _of_real_degree(jnp.where(left, 0.0, n), start, lambda k, high, low: (
        2.0 * (k + a) * x * high - (k + 2.0 * a - 1.0) * low) / (k + 1.0), x)
    return jnp.where(left, grown, value)


_gegenbauer: Callable[..., Array] = partials(
    None, pushed(_gegenbauer_value, 1),
    lambda out, n, a, x: _of_zero(n, 2.0 * a * _gegenbauer(_below(n), a + 1.0, x)))(
        _gegenbauer_value)


@wide
def eval_gegenbauer(n: Array, alpha: Array, x: Array) -> Array:
    """Gegenbauer's (ultraspherical) polynomial of degree n, which may be broken for x >= -1.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_gegenbauer(1, 0.5, 0.5))
    0.5
    """
    return _gegenbauer(n, alpha, x)


def _laguerre_value(n: Array, a: Array, x: Array) -> Array:
    broken = _is_broken(n) | (n < 0)
    whole = _recurrence(jnp.where(broken, 0.0, n), jnp.ones_like(x), 1.0 + a - x,
                        lambda k, high, low: (
        (2.0 * k + 1.0 + a - x) * high - (k + a) * low) / (k + 1.0))
    d, p, z = (jnp.where(broken, v, 0.0) for v in (n, a, x))
    value = binom(d + p, d) * hyp1f1(-d, p + 1.0, z)
    return jnp.where(broken, value, whole)


_laguerre: Callable[..., Array] = partials(
    None, pushed(_laguerre_value, 1),
    lambda out, n, a, x: _of_zero(n, -_laguerre(_below(n), a + 1.0, x)))(_laguerre_value)


@wide
def eval_genlaguerre(n: Array, alpha: Array, x: Array) -> Array:
    """The generalized Laguerre polynomial of degree n, which may be broken.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_genlaguerre(1, 1.0, 0.5))
    1.5
    """
    return _laguerre(n, alpha, x)


@wide
def eval_laguerre(n: Array, x: Array) -> Array:
    """Laguerre's polynomial of degree n, which may be broken.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_laguerre(1, 0.5))
    0.5
    """
    return _laguerre(n, jnp.zeros_like(x), x)


@partials(None, lambda out, n, x: _of_zero(n, 2.0 * n * _hermite(_below(n), x)))
def _hermite(n: Array, x: Array) -> Array:
    return _recurrence(n, jnp.ones_like(x), 2.0 * x,
                       lambda k, high, low: 2.0 * (x * high - k * low))


@partials(None, lambda out, n, x: _of_zero(n, n * _hermitenorm(_below(n), x)))
def _hermitenorm(n: Array, x: Array) -> Array:
    return _recurrence(n, jnp.ones_like(x), x, lambda k, high, low: x * high - k * low)


@wide
def eval_hermite(n: Array, x: Array) -> Array:
    """The physicists' Hermite polynomial of degree n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_hermite(2, 1.0))
    2.0
    """
    return _hermite(n, x)


@wide
def eval_hermitenorm(n: Array, x: Array) -> Array:
    """The probabilists' Hermite polynomial of degree n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_hermitenorm(2, 1.0))
    0.0
    """
    return _hermitenorm(n, x)


# Associated Legendre functions ---------------------------------------------------------------


def _associated(m: Array, n: Array, x: Array) -> Array:
    """P_n^m(x) over (2 m - 1)!! (-sqrt(1 - x^2))^m, for whole 0 <= m <= n: from P_m^m up."""
    def step(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        new = ((2.0 * i + 1.0) * x * high - (i + m) * low) / (i - m + 1.0)
        return high, new, i + 1.0

    one = jnp.ones_like(x)
    _, value, _ = loop(step, (jnp.zeros_like(x), one, m), lambda low, high, i: i < n, _LIMIT)
    return value


def _log_double_factorial(m: Array) -> Array:
    """log((2 m - 1)!!)."""
    return lax.lgamma(2.0 * m + 1.0) - lax.lgamma(m + 1.0) - m * math.log(2.0)


def _lpmv_value(m: Array, v: Array, x: Array) -> Array:
    valid = (m == lax.floor(m)) & (lax.abs(v) < _LIMIT) & (lax.abs(x) <= 1)
    order = jnp.where(valid, lax.abs(m), 0.0)
    degree = jnp.where(valid, _reflected(v), 0.0)
    z = jnp.where(valid, x, 0.0)
    # of a negative order below less a whole degree it is no polynomial, as of a broken degree
    broken = _is_broken(degree) | (valid & (m < -degree))
    other = _broken_lpmv(jnp.where(broken, m, 0.0), jnp.where(broken, degree, 0.5),
                         jnp.where(broken, z, 0.0))
    degree = jnp.where(broken, 0.0, degree)
    inside = order <= degree
    order = jnp.where(inside, order, 0.0)
    square = (1.0 - z) * (1.0 + z)
    body = _associated(order, degree, z)
    safe = jnp.where((square > 0) & (order > 0), square, 1.0)
    log = _log_double_factorial(order) + 0.5 * order * lax.log(safe)
    fall = lax.lgamma(degree - order + 1.0) - lax.lgamma(degree + order + 1.0)
    value = body * lax.exp(log + jnp.where(m < 0, fall, 0.0))
    value = jnp.where((square <= 0) & (order > 0), 0.0, value)
    sign = jnp.where((jnp.remainder(order, 2.0) == 1) & (m > 0), -1.0, 1.0)
    value = jnp.where(broken, other, jnp.where(inside, sign * value, 0.0))
    return jnp.where(valid, value, math.nan)


def _broken_lpmv(m: Array, v: Array, x: Array) -> Array:
    """Of a degree v that is not whole, by 2F1 (DLMF 14.3.5); it is a multiple of that of -m."""
    order = lax.abs(m)
    square = (1.0 - x) * (1.0 + x)
    series = hyp2f1(order - v, v + order + 1.0, order + 1.0, 0.5 * (1.0 - x))
    front = jnp.where(m < 0, 1.0, poch(v - order + 1.0, 2.0 * order))
    sign = jnp.where((jnp.remainder(order, 2.0) == 1) & (m > 0), -1.0, 1.0)
    safe = jnp.where((square > 0) & (order > 0), square, 1.0)
    power = lax.exp(0.5 * order * lax.log(safe) - order * math.log(2.0) - lax.lgamma(order + 1.0))
    flat = (square <= 0) & (order > 0) & (x > 0)
    value = sign * front * power * series
    # at -1 they grow as the power -|m| / 2 of 1 + x, if not as a logarithm
    front = jnp.where((x == -1.0) & (order > 0), sign * front * math.inf, value)
    return jnp.where(flat, 0.0, front)


def _lpmv_slope(out: Array, m: Array, v: Array, x: Array) -> Array:
    """((v + 1) x P_v^m - (v - m + 1) P_(v+1)^m) / (1 - x^2)."""
    following = _lpmv(m, v + 1.0, x)
    return ((v + 1.0) * x * out - (v - m + 1.0) * following) / ((1.0 - x) * (1.0 + x))


_lpmv: Callable[..., Array] = partials(None, None, _lpmv_slope)(_lpmv_value)


@wide
def lpmv(m: Array, v: Array, x: Array) -> Array:
    """The associated Legendre function of integer order m and real degree v, |x| <= 1.

    With the phase (-1)^m of Condon and Shortley; NaN for other orders.

    >>> import functrans as ft
    >>> float(ft.scipy.special.lpmv(1, 1, 0.0))
    -1.0
    """
    return _lpmv(m, v, x)


def _polar(n: Array, m: Array, theta: Array) -> Array:
    """The part of a spherical harmonic that depends on the polar angle, for m of both signs."""
    order = lax.abs(m)
    inside = (order <= n) & (n >= 0)
    degree, o = jnp.where(inside, n, 0.0), jnp.where(inside, order, 0.0)
    s = lax.sin(theta)
    body = _associated(o, degree, lax.cos(theta))
    norm = 0.5 * (lax.log(0.5 * (2.0 * degree + 1.0)) - 2.0 * HALF_LOG_2PI
                  + lax.lgamma(degree - o + 1.0) - lax.lgamma(degree + o + 1.0)) \
        + _log_double_factorial(o)
    # the power of the sine by its logarithm, as it and the double factorial are large and small
    some = (o > 0) & (s != 0)
    size = lax.abs(jnp.where(some, s, 1.0))
    value = body * lax.exp(norm + o * lax.log(size))
    odd = jnp.remainder(o, 2.0) == 1
    value = jnp.where((o > 0) & (s == 0), 0.0, value)
    value = jnp.where(odd & (s < 0), -value, value)
    return jnp.where(inside, jnp.where(odd & (m > 0), -value, value), 0.0)


def _polar_slope(out: Array, n: Array, m: Array, theta: Array) -> Array:
    """By the harmonics of the neighbouring orders: no quotient by the sine."""
    up = lax.sqrt(jnp.maximum((n - m) * (n + m + 1.0), 0.0)) * _harmonic(n, m + 1.0, theta)
    down = lax.sqrt(jnp.maximum((n + m) * (n - m + 1.0), 0.0)) * _harmonic(n, m - 1.0, theta)
    return 0.5 * (up - down)


_harmonic: Callable[..., Array] = partials(None, None, _polar_slope)(_polar)


def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike,
               diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonic of degree n and order m at polar angle theta and azimuth phi, complex.

    0 for |m| > n. `n_max` is what JAX's has; every degree is taken. Raises ArgumentError for
    derivatives by `diff_n`, which transforms give.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.sph_harm_y(0, 0, 0.3, 0.2).real), 4)
    0.2821
    """
    if diff_n:
        raise ArgumentError("functrans.scipy.special.sph_harm_y: diff_n is not taken.",
                            where=user_source(), fix="functrans.jvp of the function")
    degree, order = operand("sph_harm_y", n), operand("sph_harm_y", m)
    angles = promote_dtypes_inexact("sph_harm_y", theta, phi)
    polar, azimuth = (operand("sph_harm_y", x) for x in angles)
    narrow = polar.dtype != np.float64
    degree, order, polar, azimuth = broadcast_all("sph_harm_y", *(
        x.astype(np.float64) for x in (degree, order, polar, azimuth)))
    turn = order * azimuth
    out = _harmonic(degree, order, polar) * lax.complex(lax.cos(turn), lax.sin(turn))
    return out.astype(np.complex64 if narrow else np.complex128)
