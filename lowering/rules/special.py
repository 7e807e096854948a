"""Special functions as expressions: a fixed number of terms, in float64, rounded at the end.

So float32 has the accuracy of the references in `primitives/`, and kernels of both backends fuse
these functions with what is around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, ExprBuilder

__all__ = ["MOST_ORDER", "bessel_i0e", "bessel_i1e", "polygamma"]

MOST_ORDER: Final = 60
"""Of polygamma: its terms are as many as its order and 12, and all are written out."""


class _Number(Record):
    """An expression of float64, with the operators of numbers."""

    s: ExprBuilder
    e: Expr

    def _op(self, name: str, *others: _Number | float, dtype: str | None = None) -> _Number:
        return _Number(self.s, self.s.op(name, self.e, *[self._expr(x) for x in others],
                                         dtype=dtype))

    def _expr(self, x: _Number | float) -> Expr:
        return x.e if isinstance(x, _Number) else self.s.const(np.float64(x), "f64")

    def __add__(self, x: _Number | float) -> _Number:
        return self._op("add", x)

    def __sub__(self, x: _Number | float) -> _Number:
        return self._op("sub", x)

    def __mul__(self, x: _Number | float) -> _Number:
        return self._op("mul", x)

    def __truediv__(self, x: _Number | float) -> _Number:
        return self._op("div", x)

    def __pow__(self, n: int) -> _Number:
        """A whole power above 0, by squaring."""
        half = self if n < 2 else (self * self) ** (n // 2)
        return half if n < 2 or n % 2 == 0 else half * self

    def inverse(self) -> _Number:
        return _Number(self.s, self._expr(1.0)) / self

    def unary(self, name: str) -> _Number:
        return self._op(name)

    def compared(self, test: str, x: _Number | float) -> _Number:
        return self._op(test, x, dtype="bool")

    def choose(self, then: _Number | float, otherwise: _Number | float) -> _Number:
        """One of two numbers, by this condition."""
        return self._op("select", then, otherwise, dtype="f64")


def _in_float64(function: Callable[[_Number, bool], _Number]) -> Callable[..., Expr]:
    """An expression of one operand; the function is told whether float32 is enough."""
    def expression(s: ExprBuilder, x: Expr) -> Expr:
        wide = x if x.dtype == "f64" else s.op("convert", x, dtype="f64")
        out = function(_Number(s, wide), x.dtype != "f64").e
        return out if x.dtype == "f64" else s.op("convert", out, dtype=x.dtype)

    return expression


def _chebyshev(coefficients: Sequence[float], t: _Number, is_short: bool) -> _Number:
    """The sum of coefficients[k] T_k(t), by Clenshaw's recurrence."""
    first, *rest = [c for c in coefficients if not is_short or abs(c) > SHORT]
    twice = t + t
    b1: _Number | None = None
    b2: _Number | None = None
    for c in reversed(rest):
        b0 = _Number(t.s, t._expr(c)) if b1 is None else twice * b1 + c
        b1, b2 = b0 if b2 is None else b0 - b2, b1
    assert b1 is not None
    out = t * b1 + first
    return out if b2 is None else out - b2


SHORT: Final = 1e-10
"""Terms that float32 does not show."""
SWITCH: Final = 8.0
"""Between the series in x and in 1 / x."""

# Chebyshev coefficients, computed with mpmath at 40 digits: of exp(-x) I0(x) and exp(-x) I1(x) / x
# on x in [0, 8]; of sqrt(x) exp(-x) I(x) on 8 / x in [0, 1].
NEAR_0: Final = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09,
    -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12,
    -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15,
    -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18)
NEAR_1: Final = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
    2.7779141127610464e-18)
FAR_0: Final = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15,
    -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
    -4.830504485944182e-18, -7.233180487874754e-18)
FAR_1: Final = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09,
    -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11,
    1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13,
    -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15,
    3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17,
    4.414348323071708e-18, 7.517296310842105e-18)


def _bessel(near: Sequence[float], far: Sequence[float], z: _Number, is_short: bool,
            factor: _Number | None = None) -> _Number:
    inside = _chebyshev(near, z * (2 / SWITCH) - 1.0, is_short)
    root = z.unary("sqrt")
    outside = _chebyshev(far, z.inverse() * (2 * SWITCH) - 1.0, is_short) / root
    if factor is not None:
        inside = inside * factor
    return z.compared("le", SWITCH).choose(inside, outside)


@_in_float64
def bessel_i0e(x: _Number, is_short: bool) -> _Number:
    """exp(-|x|) I0(x)."""
    return _bessel(NEAR_0, FAR_0, x.unary("abs"), is_short)


@_in_float64
def bessel_i1e(x: _Number, is_short: bool) -> _Number:
    """exp(-|x|) I1(x), an odd function: zeros keep their sign."""
    z = x.unary("abs")
    size = _bessel(NEAR_1, FAR_1, z, is_short, z)
    signed = x.compared("lt", 0.0).choose(size * -1.0, size)
    return x.compared("eq", 0.0).choose(x, signed)


BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def polygamma(n: int) -> Callable[..., Expr]:
    """The derivative of order n of digamma (Abramowitz & Stegun 6.4.6, 6.4.7 and 6.4.11)."""
    def value(x: _Number, is_short: bool) -> _Number:
        is_mirrored = x.compared("le", 0.0)
        z = is_mirrored.choose((x - 1.0) * -1.0, x)
        shift = 12 + n
        factorial = float(math.factorial(n))
        w = (z + float(shift)).inverse()
        tail = w * (factorial / 2) + math.factorial(n - 1)
        power = w * w
        series: _Number | None = None
        for k, b in reversed(list(enumerate(BERNOULLI, start=1))):
            scale = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
            series = power * scale if series is None else (series + scale) * power
        assert series is not None
        total = (tail + series) * w ** n
        for k in reversed(range(shift)):  # the smallest first
            total = total + ((z + float(k)) ** (n + 1)).inverse() * factorial
        direct = total * (-1.0) ** (n + 1)
        mirrored = total * -1.0 - _cotangent_derivative(x, n)
        pole = (-1.0) ** (n + 1) * math.inf
        mirrored = x.compared("eq", x.unary("floor")).choose(pole, mirrored)
        return is_mirrored.choose(mirrored, direct)

    return _in_float64(value)


def _cotangent_derivative(x: _Number, n: int) -> _Number:
    """pi times the derivative of order n of cot(pi x): a polynomial in it."""
    factors = [0.0, 1.0]  # of c = cot(pi x), whose derivative is -pi (1 + c^2)
    for _ in range(n):
        slope = [k * f for k, f in enumerate(factors)][1:]
        square = [0.0, 0.0, *slope]
        factors = [-math.pi * (a + b) for a, b in zip([*slope, 0.0, 0.0], square, strict=True)]
    off = x - x.unary("round_even")
    square_off = off * off
    sine = _taylor([(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1)
                    for k in range(12)], square_off) * off
    cosine = _taylor([(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(12)],
                     square_off)
    return _taylor([math.pi * f for f in factors], cosine / sine)


def _taylor(coefficients: Sequence[float], x: _Number) -> _Number:
    *rest, last = coefficients
    out = x * 0.0 + last
    for c in reversed(rest):
        out = out * x + c
    return out
