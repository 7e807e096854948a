"""Incomplete gamma functions, the Hurwitz zeta function and scaled Bessel functions."""

from __future__ import annotations

from typing import Any

from functrans import _runtime
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.primitives.arithmetic import abs, add, div, max, mul, neg, sign, sub
from functrans.primitives.compare import lt, where
from functrans.primitives.elementwise import Elementwise, Operation
from functrans.primitives.transcendental import digamma, exp, lgamma, log

__all__ = ["bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "igamma", "igamma_p",
           "igammac", "igammac_p", "random_gamma_grad", "random_gamma_grad_p", "zeta", "zeta_p"]

_SHAPES = ((0.5, 4.0), (0.3, 4.0))


class Igamma(Elementwise):
    """The regularized lower incomplete gamma function P(a, x) for a > 0, x >= 0."""

    kinds = "f"
    evaluate = _runtime.igamma
    domain = _SHAPES
    # P(a, x(a)) is constant along a quantile x(a), whose slope is random_gamma_grad
    derivatives = (
        lambda t, out, a, x: neg(mul(t, mul(random_gamma_grad(a, x), _gamma_density(a, x)))),
        lambda t, out, a, x: mul(t, _gamma_density(a, x)))


class Igammac(Elementwise):
    """The regularized upper incomplete gamma function 1 - P(a, x), accurate where it is small."""

    kinds = "f"
    evaluate = _runtime.igammac
    domain = _SHAPES
    derivatives = (
        lambda t, out, a, x: mul(t, mul(random_gamma_grad(a, x), _gamma_density(a, x))),
        lambda t, out, a, x: neg(mul(t, _gamma_density(a, x))))


class RandomGammaGrad(Elementwise):
    """dx/da of a sample x of the gamma distribution of parameter a, at constant P(a, x).

    Its own derivative in a is a central difference: relative error eps^(2/3).
    """

    kinds = "f"
    evaluate = _runtime.random_gamma_grad
    domain = _SHAPES
    derivatives = (
        lambda t, out, a, x: mul(t, _central_difference(lambda v: random_gamma_grad(v, x), a)),
        lambda t, out, a, x: neg(mul(t, add(sub(log(x), digamma(a)),
                                            mul(out, sub(div(sub(a, 1.0), x), 1.0))))))


class Zeta(Elementwise):
    """The Hurwitz zeta function: the sum of (q + k)^-x over k >= 0, for x > 1, q > 0.

    Its derivative in x is a central difference: relative error eps^(2/3).
    """

    kinds = "f"
    evaluate = _runtime.zeta
    domain = ((2.0, 4.0), (0.5, 3.0))
    derivatives = (
        lambda t, out, x, q: mul(t, _central_difference(lambda v: zeta(v, q), x)),
        lambda t, out, x, q: neg(mul(t, mul(x, zeta(add(x, 1.0), q)))))


class BesselI0e(Elementwise):
    """exp(-|x|) I_0(x), the modified Bessel function of order 0."""

    kinds = "f"
    evaluate = _runtime.bessel_i0e
    derivatives = (lambda t, out, x: mul(t, sub(bessel_i1e(x), mul(sign(x), out))),)


class BesselI1e(Elementwise):
    """exp(-|x|) I_1(x), the modified Bessel function of order 1."""

    kinds = "f"
    evaluate = _runtime.bessel_i1e
    derivatives = (lambda t, out, x: mul(t, _bessel_i1e_derivative(out, x)),)


def _gamma_density(a: Any, x: Any) -> Any:
    """dP/dx = x^(a - 1) e^-x / Gamma(a)."""
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def _central_difference(function: Any, x: Any) -> Any:
    eps = float(dtypes.finfo(get_aval(x).dtype).eps)
    step = mul(max(abs(x), 1e-3), eps ** (1 / 3))
    high, low = add(x, step), sub(x, step)
    return div(sub(function(high), function(low)), sub(high, low))


def _bessel_i1e_derivative(out: Any, x: Any) -> Any:
    tiny = lt(abs(x), float(dtypes.finfo(get_aval(x).dtype).eps))
    safe = where(tiny, 1.0, x)
    slope = sub(bessel_i0e(x), mul(out, add(sign(x), div(1.0, safe))))
    return where(tiny, 0.5, slope)


igamma_p, igammac_p, random_gamma_grad_p = Igamma(), Igammac(), RandomGammaGrad()
zeta_p, bessel_i0e_p, bessel_i1e_p = Zeta(), BesselI0e(), BesselI1e()

igamma: Operation = igamma_p.eager
igammac: Operation = igammac_p.eager
random_gamma_grad: Operation = random_gamma_grad_p.eager
zeta: Operation = zeta_p.eager
bessel_i0e: Operation = bessel_i0e_p.eager
bessel_i1e: Operation = bessel_i1e_p.eager
