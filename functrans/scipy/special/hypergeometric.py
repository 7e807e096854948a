"""Hypergeometric functions of real arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop, partials, pushed, wide
from functrans.scipy.special.gammas import gammasgn
from functrans.scipy.special.gammas import rgamma_ as rgamma
from functrans.typing import Array

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1"]

_DIGITS: Final = 1e-20
_CALM: Final = 4.0  # terms below rounding before a sum ends: one alone may be 0


def _is_pole(c: Array) -> Array:
    return (c <= 0) & (c == lax.floor(c))


def _series(a: Array, b: Array, c: Array | None, x: Array, limit: int) -> Array:
    """The sum of (a)_k (b)_k / (c)_k x^k / k!; without c of (a)_k / (b)_k x^k / k!."""
    return _series_and_most(a, b, c, x, limit)[0]


def _series_and_most(a: Array, b: Array, c: Array | None, x: Array, limit: int
                     ) -> tuple[Array, Array]:
    """The sum, and the size of its largest term.

    Parameters below 0 make terms small before they grow again.
    """
    turn = lax.stop_gradient(-jnp.minimum(jnp.minimum(a, b), b if c is None else c))

    def step(k: Any, total: Array, term: Array, calm: Array, most: Array) -> tuple[Array, ...]:
        ratio = (a + k - 1.0) / (b + k - 1.0) if c is None \
            else (a + k - 1.0) * (b + k - 1.0) / (c + k - 1.0)
        term = term * (ratio * (x / k))
        total = total + term
        small = ~(lax.abs(term) > _DIGITS * lax.abs(total))  # also where it is NaN
        small = small & ((k > turn) | (term == 0))
        most = jnp.maximum(most, lax.stop_gradient(lax.abs(term)))
        return total, term, jnp.where(small, calm + 1.0, 0.0), most

    one = jnp.ones_like(x)
    total, _, _, most = loop(step, (one, one, jnp.zeros_like(x), one),
                             lambda t, u, calm, most: calm < _CALM, limit)
    return total, most


# 0F1 and 1F1 ---------------------------------------------------------------------------------


def _hankel(order: Array, x: Array) -> Array:
    """Bessel's function of the first kind, for an x that is large for the order (DLMF 10.17.3)."""
    square = 4.0 * order * order

    def step(k: Any, even: Array, odd: Array, term: Array) -> tuple[Array, ...]:
        first = term * (square - lax.square(4.0 * k - 3.0)) / ((2.0 * k - 1.0) * 8.0 * x)
        second = first * (square - lax.square(4.0 * k - 1.0)) / (2.0 * k * 8.0 * x)
        sign = jnp.where(jnp.remainder(k, 2.0) == 1, 1.0, -1.0)
        return even - sign * second, odd + sign * first, second

    one = jnp.ones_like(x)
    even, odd, _ = loop(step, (one, jnp.zeros_like(x), one),
                        lambda even, odd, term: lax.abs(term) > _DIGITS, 40)
    angle = x - (0.5 * order + 0.25) * math.pi
    return lax.sqrt(2.0 / (math.pi * x)) * (even * lax.cos(angle) - odd * lax.sin(angle))


def _waves_0f1(v: Array, z: Array) -> Array:
    """0F1 far below 0 by the Bessel function of order v - 1, from an order in [0, 1) up."""
    order, x = v - 1.0, 2.0 * lax.sqrt(-z)
    steps = lax.stop_gradient(jnp.where(lax.square(order) < x, 0.0, lax.floor(order)))
    base = order - steps

    def up(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        return high, 2.0 * (base + i + 1.0) / x * high - low, i + 1.0

    wave, _, _ = loop(up, (_hankel(base, x), _hankel(base + 1.0, x), jnp.zeros_like(x)),
                      lambda low, high, i: i < steps, 10_000)
    power = lax.lgamma(v) + (1.0 - v) * 0.5 * lax.log(-z)
    return lax.stop_gradient(gammasgn(v)) * lax.exp(power) * wave


def _hyp0f1_value(v: Array, z: Array) -> Array:
    size = lax.abs(z)
    whole = ~_is_pole(v) & (lax.abs(v) < math.inf)
    # above orders of the size of the argument the Bessel function falls
    waves = whole & (z < -1e6) & (z > -math.inf) & (
        (lax.square(v - 1.0) < 2.0 * lax.sqrt(size)) | ((v > 1.0) & (v < 1e4) & (
            v < lax.sqrt(size))))
    keep = whole & ~waves & ((size < 1e6) | (size < 4.0 * v))
    # the exponential of 2 sqrt(z), but for a large parameter
    endless = whole & (lax.abs(v) < 1e4) & (z >= 1e6)
    far = _waves_0f1(jnp.where(waves, v, 1.0), jnp.where(waves, z, -1e6))
    b, x = jnp.where(keep, v, 1.0), jnp.where(keep, z, 0.0)
    # terms of both signs cancel but for a parameter that is large for x: from there down
    raised = lax.ceil(jnp.maximum(jnp.where(x < -1.0, -0.25 * x, 0.0),
                                  jnp.where((b < 1.0) & (b > -1e4), 2.0, 0.0)) - b)
    raised = lax.stop_gradient(jnp.maximum(raised, 0.0))
    raised = jnp.where(b > -1e4, raised, 0.0)

    def series(b: Array) -> Array:
        def step(k: Any, total: Array, term: Array, calm: Array) -> tuple[Array, ...]:
            term = term * (x / (k * (b + k - 1.0)))
            total = total + term
            small = ~(lax.abs(term) > _DIGITS * lax.abs(total))  # also where it is NaN
            return total, term, jnp.where(small, calm + 1.0, 0.0)

        one = jnp.ones_like(x)
        return loop(step, (one, one, jnp.zeros_like(x)), lambda t, u, calm: calm < _CALM, 9000)[0]

    def down(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        c = b + (i - 1.0)
        return low + x / c / (c + 1.0) * high, low, i - 1.0

    top = b + raised
    high = series(jnp.where(raised > 0, top + 1.0, 1.0))
    value, _, _ = loop(down, (series(top), high, raised), lambda low, high, i: i > 0, 300_000)
    value = jnp.where(keep, jnp.where(x == 0, 1.0, value), math.nan)
    value = jnp.where(waves, far, value)
    return jnp.where(endless, math.inf * lax.stop_gradient(gammasgn(v)), value)


_hyp0f1: Callable[..., Array] = partials(pushed(_hyp0f1_value, 0),
                   lambda out, v, z: _hyp0f1(v + 1.0, z) / v)(_hyp0f1_value)


@wide
def hyp0f1(v: Array, z: Array) -> Array:
    """The confluent hypergeometric limit function 0F1(; v; z).

    Far below 0 by the asymptotic series of Bessel functions, for v up to the smaller of 10,000 and
    sqrt(-z), and for (v - 1)^2 < 2 sqrt(-z); NaN for other parameters at z < -1e6.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hyp0f1(1.0, 1.0)), 4)
    2.2796
    """
    return _hyp0f1(v, z)


_LARGE: Final = 60.0


def _two_f_zero(a: Array, b: Array, x: Array) -> Array:
    """The asymptotic series of (a)_k (b)_k / k! x^k, up to its smallest term."""
    def step(k: Any, total: Array, term: Array, last: Array) -> tuple[Array, ...]:
        new = term * ((a + k - 1.0) * (b + k - 1.0) * x / k)
        grows = (lax.abs(new) > lax.abs(term)) & (k > 2.0)
        return (jnp.where(grows, total, total + new), jnp.where(grows, term, new),
                jnp.where(grows, 0.0, lax.abs(new)))

    one = jnp.ones_like(x)
    return loop(step, (one, one, one),
                lambda total, term, last: last > 1e-18 * lax.abs(total), 200)[0]


def _kummer(a: Array, b: Array, x: Array) -> Array:
    """1F1 for x >= 0: the series, and the asymptotic one where x is large for the parameters."""
    size = jnp.maximum(lax.abs(a), lax.abs(b)) + 1.0
    far = (x > _LARGE) & (x > 2.0 * size * size) & ~_is_pole(a) & (x < 1e300)
    near = jnp.where(far, 1.0, jnp.minimum(x, 1e4))
    # of a below 0 the first terms have both signs
    first = jnp.where(a < -1.0, jnp.minimum(near, (1.0 + lax.abs(b)) / (1.0 + lax.abs(a))), near)
    u, v = jnp.where(far, 1.0, a), jnp.where(far, 1.0, b)
    first = jnp.where(far, near, first)
    series = _series(u, v, None, first, 30_000)
    series = _carried(u, v, first, near, series)
    p, q = jnp.where(far, a, 1.0), jnp.where(far, b, 1.0)
    y = jnp.where(far, x, _LARGE)
    sums = _two_f_zero(q - p, 1.0 - p, 1.0 / y)
    power = lax.exp(0.5 * (y + (p - q) * lax.log(y)))
    head = _gamma(q) * rgamma(p)
    return jnp.where(far, head * power * sums * power, jnp.where(x > 1e4, math.nan, series))


def _carried(a: Array, b: Array, at: Array, x: Array, value: Array) -> Array:
    """1F1 at x of its value at a lesser point > 0, by Taylor's series of Kummer's equation.

    A step is at most half of the way from 0, and short for the waves and for the power of x that
    solutions have there, so that the terms of no series cancel. Outwards 1F1 is the largest of the
    solutions, or as large as the others.
    """
    some = at < x
    slope = a / b * _series(jnp.where(some, a, 0.0) + 1.0, b + 1.0, None,
                            jnp.where(some, at, 0.0), 3000)

    def advance(k: Any, at: Array, value: Array, slope: Array) -> tuple[Array, ...]:
        step = jnp.minimum(jnp.minimum(0.5, 4.0 / (1.0 + lax.abs(b))) * at,
                           jnp.minimum(2.0, 1.5 * lax.sqrt(at / (1.0 + lax.abs(a)))))
        step = lax.stop_gradient(step)
        last = x - at <= step
        step = jnp.where(last, x - at, step)

        def term(k: Any, low: Array, high: Array, total: Array, rise: Array, calm: Array
                 ) -> tuple[Array, ...]:
            m = k - 1.0
            new = ((m + a) * (step * step) * low - (m + 1.0) * (m + b - at) * step * high) \
                / (at * (m + 1.0) * (m + 2.0))
            small = ~((lax.abs(new) > _DIGITS * lax.abs(total))
                      | (lax.abs((m + 2.0) * new) > _DIGITS * lax.abs(rise)))
            return (high, new, total + new, rise + (m + 2.0) * new,
                    jnp.where(small, calm + 1.0, 0.0))

        high = slope * step
        state = (value, high, value + high, high, jnp.where(step > 0, 0.0, _CALM))
        _, _, total, rise, _ = loop(term, state, lambda a, b, c, d, calm: calm < _CALM, 300)
        return (jnp.where(last, x, at + step), total,
                jnp.where(step > 0, rise / jnp.where(step > 0, step, 1.0), slope))

    return loop(advance, (at, value, slope), lambda at, value, slope: at < x, 50_000)[1]


def _polynomial_1f1(n: Array, b: Array, x: Array) -> Array:
    """1F1(-n; b; x) for whole n: Laguerre's polynomial but for a factor, by recurrence."""
    def step(k: Any, low: Array, high: Array, i: Array) -> tuple[Array, ...]:
        return high, ((2.0 * k + b - x) * high - k * low) / (b + k), i + 1.0

    one = jnp.ones_like(x)
    _, high, _ = loop(step, (one, 1.0 - x / b, one), lambda low, high, i: i < n, 100_000)
    return jnp.where(n == 0, one, high)


def _gamma(x: Array) -> Array:
    return 1.0 / rgamma(x)


def _hyp1f1_value(a: Array, b: Array, x: Array) -> Array:
    finite = (lax.abs(a) < math.inf) & (lax.abs(b) < math.inf) & (lax.abs(x) < math.inf)
    # a polynomial, which ends before a pole of b
    ends = finite & _is_pole(a) & (a > -1e5) & (~_is_pole(b) | (b <= a))
    whole = _polynomial_1f1(jnp.where(ends, lax.stop_gradient(-a), 0.0), jnp.where(ends, b, 1.0),
                            jnp.where(ends, x, 0.0))
    keep = ~_is_pole(b) & finite & ~ends
    p, q, z = jnp.where(keep, a, 1.0), jnp.where(keep, b, 1.0), jnp.where(keep, x, 0.0)
    # by Kummer's transformation below 0, where the series would cancel
    turned = z < 0
    rest = jnp.where(turned, q - p, p)
    size = lax.abs(z)
    # e^x times a polynomial, as for a = b + n
    short = _is_pole(rest) & (rest > -1e5)
    value = _kummer(jnp.where(short, 1.0, rest), q, jnp.where(short, 0.0, size))
    other = _polynomial_1f1(jnp.where(short, lax.stop_gradient(-rest), 0.0), q,
                            jnp.where(short, size, 0.0))
    value = jnp.where(short, other, value)
    value = jnp.where(turned, lax.exp(jnp.where(turned, z, 0.0)) * value, value)
    value = jnp.where(ends, whole, jnp.where(keep, value, jnp.where(finite, math.inf, math.nan)))
    return jnp.where(finite & (x == 0), 1.0, value)


_ASIDE: Final = 1e-8


def _slope_in_a(out: Array, a: Array, b: Array, x: Array) -> Array:
    """Where the series ends its slope in a is one of infinitely many terms: that close by."""
    beside = _is_pole(a) | ((x < 0) & _is_pole(b - a))
    slope: Array = pushed(_hyp1f1_value, 0)(out, a + jnp.where(beside, _ASIDE, 0.0), b, x)
    return slope


def _slope_in_b(out: Array, a: Array, b: Array, x: Array) -> Array:
    beside = (x < 0) & _is_pole(b - a) & ~_is_pole(a)
    slope: Array = pushed(_hyp1f1_value, 1)(out, a, b + jnp.where(beside, _ASIDE, 0.0), x)
    return slope


_hyp1f1: Callable[..., Array] = partials(_slope_in_a, _slope_in_b,
                   lambda out, a, b, x: a / b * _hyp1f1(a + 1.0, b + 1.0, x))(_hyp1f1_value)


@wide
def hyp1f1(a: Array, b: Array, x: Array) -> Array:
    """Kummer's confluent hypergeometric function 1F1(a; b; x).

    The power series, Kummer's transformation for x < 0, and the asymptotic series (DLMF 13.7.2);
    Taylor's series of its equation, step by step, where terms of both signs would cancel.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183
    """
    return _hyp1f1(a, b, x)


# 2F1 -----------------------------------------------------------------------------------------

_DISC: Final = 0.6  # up to where the series at 0 is summed
_WIDE_DISC: Final = 0.9
_CANCELS: Final = 1e3  # of its largest term over its sum, from where it is summed closer to 0


def _continued(a: Array, b: Array, c: Array, x: Array) -> Array:
    """2F1 for x in [0, 1): its series, then Taylor's at points halfway to 1 (by its equation).

    Where the terms of the series cancel it is summed where they do not yet, and Taylor's series go
    on from there. Their steps are short for the waves and for the powers that solutions have, so
    that no terms cancel.
    """
    # of c far below 0 the other solution grows as a high power of x from there on
    disc = jnp.where(lax.stop_gradient(c) < -5.0, _WIDE_DISC, _DISC)
    first = jnp.where(lax.stop_gradient(x) > disc, disc, x)
    value, most = _series_and_most(a, b, c, first, 2000)
    slope = a * b / c * _series(a + 1.0, b + 1.0, c + 1.0, first, 2000)
    begin = jnp.minimum(_calm_place(a, b, c), lax.stop_gradient(x))
    # from there on the power 1 - c of x, which is another solution, grows from rounding too
    grown = lax.stop_gradient(jnp.maximum(-c, 0.0) * lax.log(first / begin))
    lost = lax.log(most / lax.abs(lax.stop_gradient(value)))
    waves = (begin > 0) & (lost > jnp.clip(grown, math.log(_CANCELS), 20.0))
    begin = jnp.where(waves, begin, 0.0)
    p, q, r = (jnp.where(waves, v, 1.0) for v in (a, b, c))
    first = jnp.where(waves, begin, first)
    value = jnp.where(waves, _series(p, q, r, begin, 2000), value)
    slope = jnp.where(waves, p * q / r * _series(p + 1.0, q + 1.0, r + 1.0, begin, 2000), slope)

    def advance(k: Any, at: Array, value: Array, slope: Array) -> tuple[Array, ...]:
        power = at * (1.0 - at)
        wave = 1.5 * lax.sqrt(power / (1.0 + lax.abs(a * b)))
        drift = 2.0 * power / (1.0 + lax.abs(c - (a + b + 1.0) * at))
        room = lax.stop_gradient(jnp.minimum(jnp.minimum(0.5 * at, 0.5 * (1.0 - at)),
                                             jnp.minimum(wave, drift)))
        # with a margin for rounding: the last step is the one that depends on x
        last = x - at <= 1.000002 * room
        step = jnp.where(last, x - at, room)
        new_value, new_slope = _taylor(a, b, c, at, value, slope, step)
        return jnp.where(last, x, at + step), new_value, new_slope

    return loop(advance, (first, value, slope), lambda at, v, s: at < x, 5000)[1]


def _calm_place(a: Array, b: Array, c: Array) -> Array:
    """An x up to which the terms that change their sign fall."""
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    begin = jnp.maximum(0.0, lax.ceil(-c))
    size = 1.0 + lax.abs(high + begin) * lax.abs(low + begin)
    return lax.stop_gradient(jnp.minimum(_DISC, 2.0 * (1.0 + begin) * (1.0 + lax.abs(
        c + begin)) / size))


def _taylor(a: Array, b: Array, c: Array, at: Array, value: Array, slope: Array, step: Array
            ) -> tuple[Array, Array]:
    """The solution of the hypergeometric equation and its slope a step further.

    The recurrence is that of the coefficients times powers of the step.
    """
    p = at * (1.0 - at)
    ratio, square = step / p, step * (step / p)
    gain = 1.0 - 2.0 * at
    first = c - (a + b + 1.0) * at

    def term(k: Any, low: Array, high: Array, total: Array, rise: Array, calm: Array
             ) -> tuple[Array, ...]:
        m = k - 1.0
        new = ((m + a) * (m + b) * square * low - (m + 1.0) * (gain * m + first) * ratio * high) \
            / ((m + 1.0) * (m + 2.0))
        small = ~((lax.abs(new) > _DIGITS * lax.abs(total))
                  | (lax.abs((m + 2.0) * new) > _DIGITS * lax.abs(rise)))
        return (high, new, total + new, rise + (m + 2.0) * new,
                jnp.where(small, calm + 1.0, 0.0))

    high = slope * step
    state = (value, high, value + high, high, jnp.zeros_like(value))
    _, _, total, rise, _ = loop(term, state, lambda a, b, c, d, calm: calm < _CALM, 400)
    return total, jnp.where(step > 0, rise / jnp.where(step > 0, step, 1.0), slope)


def _at_one(a: Array, b: Array, c: Array) -> Array:
    """Gauss's sum, where c - a - b > 0."""
    converges = c - a - b > 0
    p, q, r = (jnp.where(converges, v, w) for v, w in ((a, 0.0), (b, 0.0), (c, 1.0)))
    value = _gamma(r) * _gamma(r - p - q) * rgamma(r - p) * rgamma(r - q)
    # elsewhere it grows as Gamma(c) / (Gamma(a) Gamma(b)) times a power, or a logarithm
    sign = gammasgn(c) * gammasgn(a) * gammasgn(b)
    return jnp.where(converges, value, math.inf * lax.stop_gradient(sign))


def _hyp2f1_value(a: Array, b: Array, c: Array, x: Array) -> Array:
    # Euler's transformation, where it gives a polynomial: the least of the solutions beside 1
    short = (_is_pole(c - a) | _is_pole(c - b)) & ~_is_pole(a) & ~_is_pole(b) & ~_is_pole(c) \
        & (x < 1.0) & (x > -math.inf)
    power = jnp.where(short, (c - a - b) * lax.log1p(-jnp.where(short, x, 0.0)), 0.0)
    value = _direct_2f1(jnp.where(short, c - a, a), jnp.where(short, c - b, b), c, x)
    return value * lax.exp(power)


def _direct_2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    # a polynomial ends before a pole of c
    last = jnp.where(_is_pole(a), -a, math.inf)
    last = jnp.minimum(last, jnp.where(_is_pole(b), -b, math.inf))
    ends = (last < math.inf) & (last < 500.0)
    pole = _is_pole(c) & ~(ends & (last <= -c))
    finite = (lax.abs(a) < math.inf) & (lax.abs(b) < math.inf) & (lax.abs(c) < math.inf)
    keep = finite & ~pole & (x < 1) & (x > -math.inf) & ~ends
    p, q, r = (jnp.where(keep, v, 1.0) for v in (a, b, c))
    z = jnp.where(keep, x, 0.0)
    low = z < 0
    # Pfaff's transformation brings what is below 0 to (0, 1), with the parameter that makes the
    # terms of one sign where there is one
    swap = low & (lax.abs(r - p) < lax.abs(r - q)) & (r - q < 0)
    p, q = jnp.where(swap, q, p), jnp.where(swap, p, q)
    q = jnp.where(low, r - q, q)
    inner = _continued(p, q, r, jnp.where(low, z / (z - 1.0), z))
    value = inner * jnp.where(low, lax.exp(-p * lax.log1p(-jnp.where(low, z, 0.0))), 1.0)
    one = jnp.where(x == 1, 1.0, 0.0)
    value = jnp.where(keep, value, jnp.where((one == 1) & finite & ~pole & ~ends,
                                             _at_one(a, b, c), math.nan))
    whole = ends & ~pole & (lax.abs(x) < math.inf) & finite
    polynomial = _polynomial(*(jnp.where(whole, v, w) for v, w in (
        (a, 0.0), (b, 0.0), (c, 1.0), (x, 0.0))))
    value = jnp.where(whole, polynomial, value)
    value = jnp.where(pole & finite & ~jnp.isnan(x), math.inf, value)
    return jnp.where(finite & (x == 0), 1.0, value)


def _polynomial(a: Array, b: Array, c: Array, x: Array) -> Array:
    last_a, last_b = (lax.stop_gradient(jnp.where(_is_pole(v), -v, math.inf)) for v in (a, b))
    last = jnp.minimum(last_a, last_b)

    def step(k: Any, total: Array, term: Array, i: Array, most: Array) -> tuple[Array, ...]:
        term = term * ((a + k - 1.0) * (b + k - 1.0) / (c + k - 1.0) * (x / k))
        return total + term, term, i + 1.0, jnp.maximum(most, lax.stop_gradient(lax.abs(term)))

    one = jnp.ones_like(x)
    total, _, _, most = loop(step, (one, one, jnp.zeros_like(x), one),
                             lambda total, term, i, most: i < last, 500)
    cancels = ~_is_pole(c) & (x <= 1.0) & (last < 500.0) & (
        most > _CANCELS * lax.abs(lax.stop_gradient(total)))
    own, other = jnp.where(last_a <= last_b, a, b), jnp.where(last_a <= last_b, b, a)
    return jnp.where(cancels, _of_both_ends(*(jnp.where(cancels, v, w) for v, w in (
        (own, 0.0), (other, 1.0), (c, 1.0), (x, 0.0)))), total)


def _of_both_ends(a: Array, b: Array, c: Array, x: Array) -> Array:
    """The polynomial of -a = 0, 1, ... at x <= 1 from 0 on up to 1/2, and from 1 on down to there.

    DLMF 15.8.7: towards the end at which it starts it would be the least of the solutions.
    """
    low = x < 0
    w, q = jnp.where(low, x / (x - 1.0), x), jnp.where(low, c - b, b)
    turned = 1.0 + a + q - c
    upper = (w > 0.5) & ~_is_pole(turned)
    ends = lax.stop_gradient(-a)

    def step(k: Any, product: Array, i: Array) -> tuple[Array, Array]:
        return product * ((c - q + i) / (c + i)), i + 1.0

    product, _ = loop(step, (jnp.ones_like(x), jnp.zeros_like(x)),
                      lambda product, i: upper & (i < ends), 500)
    value = product * _continued(a, q, jnp.where(upper, turned, c), jnp.where(upper, 1.0 - w, w))
    return value * jnp.where(low, lax.exp(-a * lax.log1p(-jnp.where(low, x, 0.0))), 1.0)


_hyp2f1: Callable[..., Array] = partials(
    pushed(_hyp2f1_value, 0), pushed(_hyp2f1_value, 1), pushed(_hyp2f1_value, 2),
    lambda out, a, b, c, x: a * b / c * _hyp2f1(a + 1.0, b + 1.0, c + 1.0, x))(_hyp2f1_value)


@wide
def hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x), for x <= 1; NaN beyond.

    Its series up to x = 0.6 and Taylor's at points halfway to 1 from there, which needs no case
    for c - a - b near an integer; Pfaff's transformation for x < 0; Gauss's sum at 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    return _hyp2f1(a, b, c, x)
