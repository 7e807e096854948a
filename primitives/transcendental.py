"""Exponentials, logarithms, roots, trigonometry, and the error and gamma functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core.primitive import Sample
from functrans.primitives.arithmetic import add, div, integer_pow, log_p, mul, neg, sub
from functrans.primitives.base import sample_array
from functrans.primitives.elementwise import Elementwise, Operation

if TYPE_CHECKING:
    from functrans.typing import Array

_POSITIVE = ((0.2, 3.0),)
_UNIT = ((-0.9, 0.9),)


class Exp(Elementwise):
    """e to the power of x."""

    evaluate = np.exp
    derivatives = (lambda t, out, x: mul(t, out),)


class Exp2(Elementwise):
    """2 to the power of x."""

    evaluate = np.exp2
    derivatives = (lambda t, out, x: mul(t, mul(out, math.log(2.0))),)


class Expm1(Elementwise):
    """e**x - 1, accurate near 0."""

    ufunc = np.expm1
    ufunc_kinds = "f"
    derivatives = (lambda t, out, x: mul(t, add(out, 1.0)),)

    def evaluate(self, x: Any) -> Any:
        out = np.expm1(x)
        if np.asarray(x).dtype.kind == "c":
            # NumPy multiplies infinity by the sine of 0, and by that of infinity
            out, x = np.array(out), np.asarray(x)
            lost = np.isinf(x.real) & ~np.isfinite(x.imag)
            np.copyto(out.real, np.expm1(x.real), where=(x.imag == 0) | lost)
            np.copyto(out.imag, np.exp(x).imag)
        return out


class Log1p(Elementwise):
    """log(1 + x), accurate near 0."""

    evaluate = np.log1p
    domain = ((-0.5, 3.0),)
    derivatives = (lambda t, out, x: div(t, add(x, 1.0)),)


class Sqrt(Elementwise):
    """The square root of x."""

    evaluate = np.sqrt
    domain = _POSITIVE
    derivatives = (lambda t, out, x: div(mul(t, 0.5), out),)


class Rsqrt(Elementwise):
    """1 / sqrt(x)."""

    domain = _POSITIVE
    derivatives = (lambda t, out, x: mul(t, mul(-0.5, div(out, x))),)

    def evaluate(self, x: Any) -> Any:
        return np.reciprocal(np.sqrt(x))


class Cbrt(Elementwise):
    """The real cube root of x."""

    kinds = "f"
    evaluate = np.cbrt
    domain = _POSITIVE
    # out twice instead of its square, whose own derivative at 0 would be 0 times infinity
    derivatives = (lambda t, out, x: mul(t, div(div(1 / 3, out), out)),)


class Sin(Elementwise):
    """Sine of x in radians."""

    evaluate = np.sin
    derivatives = (lambda t, out, x: mul(t, cos(x)),)


class Cos(Elementwise):
    """Cosine of x in radians."""

    evaluate = np.cos
    derivatives = (lambda t, out, x: neg(mul(t, sin(x))),)


class Tan(Elementwise):
    """Tangent of x in radians."""

    evaluate = np.tan
    domain = ((-1.0, 1.0),)
    derivatives = (lambda t, out, x: mul(t, add(integer_pow(out, 2), 1.0)),)


class Asin(Elementwise):
    """The angle in radians whose sine is x."""

    evaluate = np.arcsin
    domain = _UNIT
    derivatives = (lambda t, out, x: mul(t, rsqrt(sub(1.0, integer_pow(x, 2)))),)


class Acos(Elementwise):
    """The angle in radians whose cosine is x."""

    evaluate = np.arccos
    domain = _UNIT
    derivatives = (lambda t, out, x: neg(mul(t, rsqrt(sub(1.0, integer_pow(x, 2))))),)


class Atan(Elementwise):
    """The angle in radians whose tangent is x."""

    evaluate = np.arctan
    derivatives = (lambda t, out, x: div(t, add(integer_pow(x, 2), 1.0)),)


class Sinh(Elementwise):
    """Hyperbolic sine of x."""

    evaluate = np.sinh
    derivatives = (lambda t, out, x: mul(t, cosh(x)),)


class Cosh(Elementwise):
    """Hyperbolic cosine of x."""

    evaluate = np.cosh
    derivatives = (lambda t, out, x: mul(t, sinh(x)),)


class Tanh(Elementwise):
    """Hyperbolic tangent of x."""

    evaluate = np.tanh
    derivatives = (lambda t, out, x: mul(t, sub(1.0, mul(out, out))),)


class Asinh(Elementwise):
    """The inverse hyperbolic sine of x."""

    evaluate = np.arcsinh
    derivatives = (lambda t, out, x: mul(t, rsqrt(add(integer_pow(x, 2), 1.0))),)


class Acosh(Elementwise):
    """The inverse hyperbolic cosine of x, not below 1."""

    evaluate = np.arccosh
    domain = ((1.2, 3.0),)
    derivatives = (lambda t, out, x: mul(t, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))),)


class Atanh(Elementwise):
    """The inverse hyperbolic tangent of x in (-1, 1)."""

    evaluate = np.arctanh
    domain = _UNIT
    derivatives = (lambda t, out, x: div(t, sub(1.0, integer_pow(x, 2))),)


class Atan2(Elementwise):
    """The angle in radians between the first axis and the point (y, x), by quadrant."""

    kinds = "f"
    evaluate = np.arctan2
    domain = ((0.3, 2.0), (0.3, 2.0))
    derivatives = (lambda t, out, y, x: mul(t, div(x, _square_norm(y, x))),
                   lambda t, out, y, x: neg(mul(t, div(y, _square_norm(y, x)))))


class Logistic(Elementwise):
    """1 / (1 + exp(-x)), without overflow."""

    derivatives = (lambda t, out, x: mul(t, mul(out, sub(1.0, out))),)

    def evaluate(self, x: Any) -> Any:
        if np.asarray(x).dtype.kind == "c":
            return 1 / (1 + np.exp(-x))
        # exact in both tails, and without overflow
        one = x.dtype.type(1)
        small = np.exp(-np.abs(x))
        return np.where(x < 0, small, one) / (one + small)


class Erf(Elementwise):
    """The error function of x."""

    kinds = "f"
    evaluate = _runtime.erf
    derivatives = (lambda t, out, x: mul(t, _gaussian(x)),)


class Erfc(Elementwise):
    """1 - erf(x), accurate for large x."""

    kinds = "f"
    evaluate = _runtime.erfc
    derivatives = (lambda t, out, x: neg(mul(t, _gaussian(x))),)


class ErfInv(Elementwise):
    """The inverse of the error function, for x in [-1, 1]."""

    kinds = "f"
    evaluate = _runtime.erf_inv
    domain = _UNIT
    derivatives = (lambda t, out, x: mul(t, mul(exp(mul(out, out)), math.sqrt(math.pi) / 2)),)


class Lgamma(Elementwise):
    """The logarithm of |gamma(x)|."""

    kinds = "f"
    evaluate = _runtime.lgamma
    domain = ((0.5, 4.0),)
    derivatives = (lambda t, out, x: mul(t, digamma(x)),)


class Digamma(Elementwise):
    """The derivative of lgamma."""

    kinds = "f"
    evaluate = _runtime.digamma
    domain = ((0.5, 4.0),)
    derivatives = (lambda t, out, x: mul(t, polygamma(x, 1)),)


class Polygamma(Elementwise):
    """The derivative of order `n` >= 1 of digamma, by recurrence, asymptotics and reflection.

    Source: Abramowitz & Stegun 6.4.6, 6.4.7 and 6.4.11.
    """

    kinds = "f"
    domain = ((0.5, 4.0),)
    derivatives = (lambda t, out, x, *, n: mul(t, polygamma(x, n + 1)),)

    def evaluate(self, x: Any, *, n: int) -> Any:
        x = np.asarray(x)
        reflected = x <= 0
        z = np.where(reflected, 1 - x.astype(np.float64), x)
        sign = (-1.0) ** (n + 1)
        total = np.zeros_like(z)
        shift = 12 + n
        for k in range(shift):
            total = total + (z + k) ** -(n + 1.0)
        w = z + shift
        factorial = math.factorial(n)
        tail = math.factorial(n - 1) / w**n + factorial / (2 * w ** (n + 1))
        for k, b in enumerate(_BERNOULLI, start=1):
            scale = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
            tail = tail + scale / w ** (2 * k + n)
        out = sign * (factorial * total + tail)
        if np.any(reflected):
            out = np.where(reflected, (-1.0) ** n * out - _cotangent_derivative(x, n), out)
            out = np.where(reflected & (x == np.floor(x)), sign * np.inf, out)
        return out.astype(x.dtype)

    def samples(self) -> Iterator[Sample]:
        for n in (1, 2):
            yield Sample((sample_array(3, 2, low=0.5, high=4.0),), {"n": n})


_BERNOULLI: Sequence[float] = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


exp_p, exp2_p, expm1_p, log1p_p = Exp(), Exp2(), Expm1(), Log1p()
sqrt_p, rsqrt_p, cbrt_p = Sqrt(), Rsqrt(), Cbrt()
sin_p, cos_p, tan_p, asin_p, acos_p, atan_p, atan2_p = (
    Sin(), Cos(), Tan(), Asin(), Acos(), Atan(), Atan2())
sinh_p, cosh_p, tanh_p, asinh_p, acosh_p, atanh_p = (
    Sinh(), Cosh(), Tanh(), Asinh(), Acosh(), Atanh())
logistic_p, erf_p, erfc_p, erf_inv_p = Logistic(), Erf(), Erfc(), ErfInv()
lgamma_p, digamma_p, polygamma_p = Lgamma(), Digamma(), Polygamma()

# annotated where rules above refer to them: a type checker infers names only after class bodies
exp: Operation = exp_p.eager
rsqrt: Operation = rsqrt_p.eager
sin: Operation = sin_p.eager
cos: Operation = cos_p.eager
sinh: Operation = sinh_p.eager
cosh: Operation = cosh_p.eager
digamma: Operation = digamma_p.eager
exp2, expm1, log, log1p = exp2_p.eager, expm1_p.eager, log_p.eager, log1p_p.eager
sqrt, cbrt, lgamma = sqrt_p.eager, cbrt_p.eager, lgamma_p.eager
tan, asin, acos, atan, atan2 = (p.eager for p in (tan_p, asin_p, acos_p, atan_p, atan2_p))
tanh, asinh, acosh, atanh = (p.eager for p in (tanh_p, asinh_p, acosh_p, atanh_p))
logistic, erf, erfc, erf_inv = logistic_p.eager, erf_p.eager, erfc_p.eager, erf_inv_p.eager


def polygamma(x: Any, n: int) -> Array:
    """The derivative of order `n` >= 1 of digamma at x > 0.

    >>> import functrans as ft
    >>> round(float(ft.lax.polygamma(ft.numpy.float32(1.0), 1)), 4)
    1.6449
    """
    return polygamma_p.bind(x, n=n)


def _cotangent_derivative(x: Any, n: int) -> Any:
    """pi times the derivative of order n of cot(pi x): a polynomial in it."""
    factors = [0.0, 1.0]  # of c = cot(pi x), whose derivative is -pi (1 + c^2)
    for _ in range(n):
        slope = [k * f for k, f in enumerate(factors)][1:]
        square = [0.0, 0.0, *slope]
        factors = [-math.pi * (a + b) for a, b in zip([*slope, 0.0, 0.0], square, strict=True)]
    off = np.pi * (x - np.rint(x)).astype(np.float64)
    cotangent = np.cos(off) / np.abs(np.sin(off)) * np.where(off < 0, -1.0, 1.0)
    return math.pi * np.polynomial.polynomial.polyval(cotangent, factors)


def _square_norm(y: Any, x: Any) -> Any:
    return add(mul(x, x), mul(y, y))


def _gaussian(x: Any) -> Any:
    return mul(exp(neg(mul(x, x))), 2.0 / math.sqrt(math.pi))
