"""Functions of complex numbers that are given as pairs of real numbers.

Formulas are those of W. Kahan, Branch cuts for complex elementary functions (1987), and of NumPy:
they keep the signs of zeros on branch cuts and do not overflow where the result does not. Values at
infinities are those of ISO C99, annex G, where the plain formula would multiply 0 and infinity.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from functrans.core.avals import get_aval
from functrans.primitives import arithmetic as a
from functrans.primitives import compare as c
from functrans.primitives import transcendental as t
from functrans.primitives.compare import where
from functrans.primitives.convert import bitcast_convert_type

__all__ = ["Pair", "absolute", "divided", "equal", "finite", "power", "power_of_modulus",
           "product", "signum", "times_i", "turned"]

BIG_TANH = 20.0
"""From where on tanh is 1 and its derivative not seen, in float64 too."""


class Pair(NamedTuple):
    """The real and the imaginary part of a complex number."""

    re: Any
    im: Any


def times_i(z: Pair) -> Pair:
    return Pair(a.neg(z.im), z.re)


def _over_i(z: Pair) -> Pair:
    return Pair(z.im, a.neg(z.re))


def product(x: Pair, y: Pair) -> Pair:
    return Pair(a.sub(a.mul(x.re, y.re), a.mul(x.im, y.im)),
                a.add(a.mul(x.re, y.im), a.mul(x.im, y.re)))


def divided(x: Pair, y: Pair) -> Pair:
    """Scaled by the larger part of y: R. Smith, Algorithm 116 (1962)."""
    real_is_larger = c.ge(a.abs(y.re), a.abs(y.im))
    large, small = where(real_is_larger, y.re, y.im), where(real_is_larger, y.im, y.re)
    zero = c.eq(large, 0.0)
    ratio = a.div(small, where(zero, 1.0, large))
    scale = a.div(1.0, a.add(large, a.mul(small, ratio)))
    re = where(real_is_larger, a.add(x.re, a.mul(x.im, ratio)), a.add(a.mul(x.re, ratio), x.im))
    im = where(real_is_larger, a.sub(x.im, a.mul(x.re, ratio)), a.sub(a.mul(x.im, ratio), x.re))
    size = a.abs(large)
    return Pair(where(zero, a.div(x.re, size), a.mul(re, scale)),
                where(zero, a.div(x.im, size), a.mul(im, scale)))


def absolute(z: Pair) -> Any:
    x, y = a.abs(z.re), a.abs(z.im)
    large, small = a.max(x, y), a.min(x, y)
    ratio = a.div(small, where(c.eq(large, 0.0), 1.0, large))
    size = a.mul(large, t.sqrt(a.add(a.mul(ratio, ratio), 1.0)))
    infinite = c.bitwise_or(c.eq(x, math.inf), c.eq(y, math.inf))
    return where(infinite, math.inf, size)


def power_of_modulus(z: Pair, *, exponent: int) -> Any:
    """|z|^n for an even n > 0, without a root: it overflows and vanishes where the power does."""
    square = a.add(a.mul(z.re, z.re), a.mul(z.im, z.im))
    square = where(_has_infinity(z), math.inf, square)
    return square if exponent == 2 else a.integer_pow(square, exponent // 2)


def signum(z: Pair) -> Pair:
    size = absolute(z)
    zero, far = c.eq(size, 0.0), _has_infinity(z)
    both = c.bitwise_and(_is_infinite(z.re), _is_infinite(z.im))
    safe = where(c.bitwise_or(zero, far), 1.0, size)

    def part(x: Any) -> Any:
        at_end = where(both, math.nan, where(_is_infinite(x), a.sign(x), 0.0))
        return where(zero, 0.0, where(far, at_end, a.div(x, safe)))

    return Pair(part(z.re), part(z.im))


def equal(x: Pair, y: Pair) -> Any:
    return c.bitwise_and(c.eq(x.re, y.re), c.eq(x.im, y.im))


def finite(z: Pair) -> Any:
    return c.bitwise_and(c.is_finite(z.re), c.is_finite(z.im))


def _is_negative(x: Any) -> Any:
    """Whether the sign bit is set."""
    bits = bitcast_convert_type(x, np.dtype(f"int{8 * get_aval(x).dtype.itemsize}"))
    return c.lt(bits, 0)


def _copysign(x: Any, sign: Any) -> Any:
    """|x| with the sign of an array; x may be a number that is not negative."""
    size = x if isinstance(x, float) else a.abs(x)
    negative = -size if isinstance(size, float) else a.neg(size)
    return where(_is_negative(sign), negative, size, like=sign)


def _is_infinite(x: Any) -> Any:
    return c.eq(a.abs(x), math.inf)


def _has_infinity(z: Pair) -> Any:
    return c.bitwise_or(_is_infinite(z.re), _is_infinite(z.im))


def _without_angle(z: Pair) -> Any:
    """Where the real part is infinite and the imaginary one infinite or NaN."""
    return c.bitwise_and(_is_infinite(z.re), c.bitwise_not(c.is_finite(z.im)))


def exp(z: Pair) -> Pair:
    size, flat = t.exp(z.re), c.eq(z.im, 0.0)
    limit = where(_without_angle(z), size, a.mul(size, t.cos(z.im)))
    none = c.bitwise_and(_without_angle(z), c.eq(size, 0.0))
    return Pair(where(flat, size, limit),
                where(flat, z.im, where(none, _copysign(0.0, z.im), a.mul(size, t.sin(z.im)))))


def turned(z: Pair) -> Pair:
    """exp where the real part is 0 or NaN, of which 1 + x is the exponential."""
    size = a.add(z.re, 1.0)
    return Pair(a.mul(size, t.cos(z.im)),
                where(c.eq(z.im, 0.0), z.im, a.mul(size, t.sin(z.im))))


def exp2(z: Pair) -> Pair:
    return exp(Pair(a.mul(z.re, math.log(2)), a.mul(z.im, math.log(2))))


def expm1(z: Pair) -> Pair:
    half = t.sin(a.mul(z.im, 0.5))
    re = a.sub(a.mul(t.expm1(z.re), t.cos(z.im)), a.mul(2.0, a.mul(half, half)))
    return Pair(where(_without_angle(z), t.expm1(z.re), re), exp(z).im)


def log(z: Pair) -> Pair:
    x, y = a.abs(z.re), a.abs(z.im)
    large, small = a.max(x, y), a.min(x, y)
    size = absolute(z)
    # near the unit circle |z| has lost what its logarithm is
    near = c.bitwise_and(c.gt(size, 0.5), c.lt(size, 2.0))
    excess = a.add(a.mul(a.sub(large, 1.0), a.add(large, 1.0)), a.mul(small, small))
    re = where(near, a.mul(0.5, t.log1p(where(near, excess, 0.0))), t.log(size))
    return Pair(re, t.atan2(z.im, z.re))


def log1p(z: Pair) -> Pair:
    direct = log(Pair(a.add(z.re, 1.0), z.im))
    small = c.lt(absolute(z), 0.5)
    square = a.add(a.mul(z.re, a.add(z.re, 2.0)), a.mul(z.im, z.im))
    return Pair(where(small, a.mul(0.5, t.log1p(where(small, square, 0.0))), direct.re), direct.im)


def sqrt(z: Pair) -> Pair:
    root = t.sqrt(a.mul(0.5, a.add(absolute(z), a.abs(z.re))))
    other = a.div(a.abs(z.im), a.mul(2.0, where(c.eq(root, 0.0), 1.0, root)))
    right = c.ge(z.re, 0.0)
    far = _is_infinite(z.im)
    return Pair(where(far, math.inf, where(right, root, other)),
                where(far, z.im, _copysign(where(right, other, root), z.im)))


def rsqrt(z: Pair) -> Pair:
    return reciprocal(sqrt(z))


def reciprocal(z: Pair) -> Pair:
    one = a.add(a.mul(z.re, 0.0), 1.0)
    return divided(Pair(one, a.sub(one, one)), z)


def sin(z: Pair) -> Pair:
    turned = times_i(z)
    out = _over_i(sinh(turned))
    return Pair(out.re, where(_without_angle(turned), math.inf, out.im))


def cos(z: Pair) -> Pair:
    return cosh(times_i(z))


def sinh(z: Pair) -> Pair:
    turned = c.bitwise_not(c.is_finite(z.im))
    nothing = c.bitwise_and(c.eq(z.re, 0.0), turned)
    re = where(_without_angle(z), math.inf, a.mul(t.sinh(z.re), t.cos(z.im)))
    return Pair(where(nothing, z.re, re),
                where(c.eq(z.im, 0.0), z.im, a.mul(t.cosh(z.re), t.sin(z.im))))


def cosh(z: Pair) -> Pair:
    nothing = c.bitwise_and(c.eq(z.re, 0.0), c.bitwise_not(c.is_finite(z.im)))
    turns = c.bitwise_and(_is_negative(z.re), c.eq(z.re, z.re))
    im = where(nothing, 0.0, a.mul(t.sinh(z.re), t.sin(z.im)))
    return Pair(where(_without_angle(z), math.inf, a.mul(t.cosh(z.re), t.cos(z.im))),
                where(c.eq(z.im, 0.0), where(turns, a.neg(z.im), z.im), im))


def tanh(z: Pair) -> Pair:
    far = c.gt(a.abs(z.re), BIG_TANH)
    x = where(far, 1.0, z.re)
    tangent, s = t.tan(z.im), t.sinh(x)
    beta, rho = a.add(a.mul(tangent, tangent), 1.0), t.sqrt(a.add(a.mul(s, s), 1.0))
    below = a.add(a.mul(a.mul(beta, s), s), 1.0)
    tail = a.mul(a.mul(a.mul(4.0, t.sin(z.im)), t.cos(z.im)), t.exp(a.mul(-2.0, a.abs(z.re))))
    tail = where(_without_angle(z), _copysign(0.0, z.im), tail)
    nothing = c.bitwise_and(c.eq(z.re, 0.0), c.bitwise_not(c.is_finite(z.im)))
    re = where(nothing, z.re, a.div(a.mul(a.mul(beta, rho), s), below))
    return Pair(where(far, a.sign(z.re), re),
                where(c.eq(z.im, 0.0), z.im, where(far, tail, a.div(tangent, below))))


def tan(z: Pair) -> Pair:
    return _over_i(tanh(times_i(z)))


def _one_minus(z: Pair) -> Pair:
    return Pair(a.sub(1.0, z.re), a.neg(z.im))


def _one_plus(z: Pair) -> Pair:
    return Pair(a.add(1.0, z.re), z.im)


def asin(z: Pair) -> Pair:
    low, high = sqrt(_one_minus(z)), sqrt(_one_plus(z))
    re = where(c.eq(z.re, 0.0), z.re, t.atan2(z.re, product(low, high).re))
    return _unless_infinite(z, Pair(re,
                                    t.asinh(product(Pair(low.re, a.neg(low.im)), high).im)),
                            Pair(t.atan2(z.re, a.abs(z.im)), _copysign(math.inf, z.im)))


def acos(z: Pair) -> Pair:
    low, high = sqrt(_one_minus(z)), sqrt(_one_plus(z))
    re = where(c.eq(z.re, 0.0), math.pi / 2, a.mul(2.0, t.atan2(low.re, high.re)))
    return _unless_infinite(z, Pair(re,
                                    t.asinh(product(Pair(high.re, a.neg(high.im)), low).im)),
                            Pair(t.atan2(a.abs(z.im), z.re), a.neg(_copysign(math.inf, z.im))))


def acosh(z: Pair) -> Pair:
    low, high = sqrt(Pair(a.sub(z.re, 1.0), z.im)), sqrt(_one_plus(z))
    im = where(c.eq(z.re, 0.0), _copysign(math.pi / 2, z.im),
               a.mul(2.0, t.atan2(low.im, high.re)))
    return _unless_infinite(z, Pair(t.asinh(product(Pair(low.re, a.neg(low.im)), high).re), im),
                            Pair(where(_has_infinity(z), math.inf, z.re), t.atan2(z.im, z.re)))


def asinh(z: Pair) -> Pair:
    return _over_i(asin(times_i(z)))


def atanh(z: Pair) -> Pair:
    square, below = a.mul(z.im, z.im), a.sub(1.0, z.re)
    re = a.mul(0.25, t.log1p(a.div(a.mul(4.0, z.re), a.add(a.mul(below, below), square))))
    im = a.mul(0.5, t.atan2(a.mul(2.0, z.im), a.sub(a.mul(below, a.add(1.0, z.re)), square)))
    turn = where(c.eq(z.im, z.im), _copysign(math.pi / 2, z.im), z.im)
    re = where(c.eq(z.re, 0.0), z.re, re)
    return _unless_infinite(z, Pair(re, im), Pair(_copysign(0.0, z.re), turn))


def _unless_infinite(z: Pair, plain: Pair, limit: Pair) -> Pair:
    infinite = _has_infinity(z)
    return Pair(where(infinite, limit.re, plain.re), where(infinite, limit.im, plain.im))


def atan(z: Pair) -> Pair:
    return _over_i(atanh(times_i(z)))


def logistic(z: Pair) -> Pair:
    e = exp(Pair(a.neg(z.re), a.neg(z.im)))
    return reciprocal(_one_plus(e))


def power(x: Pair, y: Pair) -> Pair:
    """x ** y; of 0 it is 1, 0 or NaN by the real part of y."""
    out = exp(product(y, log(x)))
    zero = c.bitwise_and(c.eq(x.re, 0.0), c.eq(x.im, 0.0))
    none = c.bitwise_and(c.eq(y.re, 0.0), c.eq(y.im, 0.0))
    at_zero = where(none, 1.0, where(c.gt(y.re, 0.0), 0.0, math.nan, like=out.re), like=out.re)
    return Pair(where(zero, at_zero, out.re),
                where(zero, where(c.bitwise_or(none, c.gt(y.re, 0.0)), 0.0, math.nan, like=out.im),
                      out.im))


def integer_power(z: Pair, exponent: int) -> Pair:
    one = a.add(a.mul(z.re, 0.0), 1.0)
    out: Pair | None = None
    square, n = z, abs(exponent)
    while n:
        if n & 1:
            out = square if out is None else product(out, square)
        n >>= 1
        if n:
            square = product(square, square)
    if out is None:
        return Pair(one, a.sub(one, one))
    return reciprocal(out) if exponent < 0 else out
