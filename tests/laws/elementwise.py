"""Elementwise functions of real numbers with their values in mpmath, and slopes made of these."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
from mpmath import mp

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.scipy import special

INF = float("inf")
ZERO = (0.0,)
UNIT = (-1.0, 1.0)
# signs, ones, zero and its neighbourhoods, and integers, where functions round or have poles
GRID = (-3.0, -2.5, -2.0, -1.5, -1.0, -0.75, -0.5, -0.1, -1e-3, -1e-8, 0.0, 1e-8, 1e-3, 0.1, 0.5,
        0.75, 1.0, 1.5, 2.0, 2.5, 3.0)


@dataclass(frozen=True)
class Case:
    """A function, its value, the domain, points besides the grid, and how exact derivatives are."""

    fun: Callable[..., Any]
    value: Callable[..., Any]
    low: float = -INF
    high: float = INF
    more: tuple[float, ...] = ()
    tolerance: float = 1e-9

    @property
    def points(self) -> tuple[float, ...]:
        return tuple(sorted({x for x in (*GRID, *self.more) if self.low <= x <= self.high}))


def _named(text: str, value: Callable[..., Any], low: float = -INF, high: float = INF,
           more: tuple[float, ...] = (), tolerance: float = 1e-9) -> dict[str, Case]:
    modules = {"numpy": jnp, "lax": lax, "nn": ft.nn, "special": special}
    cases = {}
    for name in text.split():
        module, attribute = name.split(".")
        cases[name] = Case(getattr(modules[module], attribute), value, low, high, more, tolerance)
    return cases


def _sign(x: Any) -> Any:
    return mpmath.sign(x)


def _truncated(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x))


def _half(x: Any) -> Any:
    """x rounded, halves to even."""
    return mpmath.nint(x)


def _sinc(x: Any) -> Any:
    return mpmath.sinc(mp.pi * x)


def _softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _relu6(x: Any) -> Any:
    return min(max(x, 0), 6)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return x if x > 0 else alpha * mpmath.expm1(x)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _gelu(x: Any) -> Any:
    return x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mp.pi) * (x + mpmath.mpf("0.044715") * x**3)))


def _sparse_plus(x: Any) -> Any:
    return mpmath.mpf(0) if x <= -1 else x if x >= 1 else (x + 1) ** 2 / 4


def _root(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def _lgamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x)))


def _entr(x: Any) -> Any:
    return -x * mpmath.log(x) if x else x


def _ndtri(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def _scaled_bessel(n: int) -> Callable[..., Any]:
    return lambda x: mpmath.besseli(n, x) * mpmath.exp(-abs(x))


ONE: dict[str, Case] = {
    **_named("numpy.sin lax.sin", mpmath.sin),
    **_named("numpy.cos lax.cos", mpmath.cos),
    **_named("numpy.tan lax.tan", mpmath.tan),
    **_named("numpy.arcsin numpy.asin lax.asin", mpmath.asin, *UNIT),
    **_named("numpy.arccos numpy.acos lax.acos", mpmath.acos, *UNIT),
    **_named("numpy.arctan numpy.atan lax.atan", mpmath.atan),
    **_named("numpy.sinh lax.sinh", mpmath.sinh),
    **_named("numpy.cosh lax.cosh", mpmath.cosh),
    **_named("numpy.tanh lax.tanh nn.tanh", mpmath.tanh),
    **_named("numpy.arcsinh numpy.asinh lax.asinh", mpmath.asinh),
    **_named("numpy.arccosh numpy.acosh lax.acosh", mpmath.acosh, 1.0),
    **_named("numpy.arctanh numpy.atanh lax.atanh", mpmath.atanh, *UNIT),
    **_named("numpy.exp lax.exp", mpmath.exp),
    **_named("numpy.exp2 lax.exp2", lambda x: mpmath.mpf(2) ** x),
    **_named("numpy.expm1 lax.expm1", mpmath.expm1),
    **_named("numpy.log lax.log", mpmath.log, 0.0),
    **_named("numpy.log1p lax.log1p", mpmath.log1p, -1.0),
    **_named("numpy.log2", lambda x: mpmath.log(x, 2), 0.0),
    **_named("numpy.log10", mpmath.log10, 0.0),
    **_named("numpy.sqrt lax.sqrt", mpmath.sqrt, 0.0),
    **_named("lax.rsqrt", lambda x: 1 / mpmath.sqrt(x), 0.0),
    **_named("numpy.cbrt lax.cbrt", _root),
    **_named("numpy.square lax.square", lambda x: x * x),
    **_named("numpy.reciprocal lax.reciprocal", lambda x: 1 / x),
    **_named("numpy.abs numpy.absolute numpy.fabs lax.abs", abs),
    **_named("numpy.negative lax.neg", lambda x: -x),
    **_named("numpy.positive numpy.nan_to_num nn.identity numpy.real numpy.conj", lambda x: x),
    **_named("numpy.sign lax.sign", _sign),
    **_named("numpy.floor lax.floor", mpmath.floor),
    **_named("numpy.ceil lax.ceil", mpmath.ceil),
    **_named("numpy.trunc numpy.fix lax.trunc", _truncated),
    **_named("numpy.rint numpy.round lax.round", _half),
    **_named("numpy.deg2rad numpy.radians", lambda x: x * mp.pi / 180),
    **_named("numpy.rad2deg numpy.degrees", lambda x: x * 180 / mp.pi),
    **_named("numpy.sinc", _sinc, more=(0.2, 0.31, 0.32, 0.35, 1e-5, 1e-4, 0.01, 30.0)),
    **_named("numpy.i0 special.i0", lambda x: mpmath.besseli(0, x), more=(29.0, 30.0, 31.0, -30.0)),
    **_named("special.i1", lambda x: mpmath.besseli(1, x), more=(7.9, 8.0, 8.1)),
    **_named("special.i0e lax.bessel_i0e", _scaled_bessel(0), more=(7.9, 8.0, 8.1, 90.0)),
    **_named("special.i1e lax.bessel_i1e", _scaled_bessel(1), more=(7.9, 8.0, 8.1, 90.0)),
    **_named("lax.logistic special.expit nn.sigmoid", _sigmoid, more=(30.0, -30.0)),
    **_named("special.logit", lambda x: mpmath.log(x / (1 - x)), 0.0, 1.0),
    **_named("lax.erf special.erf", mpmath.erf),
    **_named("lax.erfc special.erfc", mpmath.erfc, more=(10.0,)),
    **_named("lax.erf_inv special.erfinv", mpmath.erfinv, *UNIT),
    **_named("lax.lgamma special.gammaln", _lgamma, more=(30.0, -30.5)),
    **_named("special.loggamma", _lgamma, 1e-3, more=(30.0,)),
    **_named("lax.digamma special.digamma special.psi", mpmath.digamma, more=(30.0, -30.5)),
    **_named("special.gamma", mpmath.gamma, more=(10.0,)),
    **_named("special.factorial", mpmath.factorial, 0.0, more=(10.0,)),
    **_named("special.ndtr", mpmath.ncdf, more=(-10.0,)),
    **_named("special.log_ndtr", lambda x: mpmath.log(mpmath.ncdf(x)),
             more=(-300.0, -21.0, -20.0, -19.0, 3.9, 4.0, 4.1, 10.0)),
    **_named("special.ndtri", _ndtri, 0.0, 1.0, (0.049, 0.05, 0.051)),
    **_named("special.entr", _entr, 0.0),
    **_named("nn.relu", lambda x: max(x, 0)),
    **_named("nn.relu6", _relu6, more=(6.0, 7.0)),
    **_named("nn.hard_sigmoid", lambda x: _relu6(x + 3) / 6, more=(-4.0, 4.0)),
    **_named("nn.hard_silu nn.hard_swish", lambda x: x * _relu6(x + 3) / 6, more=(-4.0, 4.0)),
    **_named("nn.hard_tanh", lambda x: min(max(x, -1), 1)),
    **_named("nn.leaky_relu", lambda x: x if x >= 0 else 0.01 * x),
    **_named("nn.softplus", _softplus, more=(-40.0, 40.0)),
    **_named("nn.log_sigmoid", lambda x: -_softplus(-x), more=(-40.0, 40.0)),
    **_named("nn.soft_sign", lambda x: x / (1 + abs(x))),
    **_named("nn.sparse_plus", _sparse_plus),
    **_named("nn.sparse_sigmoid", lambda x: (min(max(x, -1), 1) + 1) / 2),
    **_named("nn.silu nn.swish", lambda x: x * _sigmoid(x)),
    **_named("nn.mish", lambda x: x * mpmath.tanh(_softplus(x)), more=(-40.0, 40.0)),
    **_named("nn.squareplus", lambda x: (x + mpmath.sqrt(x * x + 4)) / 2),
    **_named("nn.elu nn.celu", _elu),
    **_named("nn.selu", lambda x: _SELU_SCALE * _elu(x, _SELU_ALPHA)),
    **_named("nn.gelu", _gelu, more=(-10.0, 10.0, 20.0)),
    "nn.gelu exact": Case(lambda x: ft.nn.gelu(x, approximate=False), lambda x: x * mpmath.ncdf(x)),
    "nn.celu 0.5": Case(lambda x: ft.nn.celu(x, 0.5), lambda x: x if x > 0 else
                        mpmath.expm1(2 * x) / 2),
    **_named("nn.log1mexp", lambda x: mpmath.log(-mpmath.expm1(-x)), 0.0,
             more=(0.69314718055994529, 0.6, 0.7, 40.0)),
    "numpy.modf": Case(lambda x: jnp.modf(x)[0], lambda x: x - _truncated(x)),
    "numpy.frexp": Case(lambda x: jnp.frexp(x)[0], lambda x: mpmath.frexp(x)[0], 1e-3),
    "numpy.ldexp": Case(lambda x: jnp.ldexp(x, 3), lambda x: 8 * x),
    "numpy.clip": Case(lambda x: jnp.clip(x, -1.0, 2.0), lambda x: min(max(x, -1), 2)),
    "lax.clamp": Case(lambda x: lax.clamp(-1.0, x, 2.0), lambda x: min(max(x, -1), 2)),
    "numpy.divmod": Case(lambda x: jnp.divmod(x, 1.5)[1],
                         lambda x: x - 1.5 * mpmath.floor(x / 1.5)),
    "special.multigammaln": Case(
        lambda x: special.multigammaln(x, 2),
        lambda x: _lgamma(x) + _lgamma(x - mpmath.mpf(0.5)) + mpmath.log(mp.pi) / 2, 0.6),
    "special.zeta of one": Case(special.zeta, mpmath.zeta, 1.1, tolerance=1e-3),
    **{f"lax.polygamma {n}": Case(lambda x, n=n: special.polygamma(n, x),
                                  lambda x, n=n: mpmath.psi(n, x), more=(30.0, -30.5))
       for n in (0, 1, 2, 3)},
    **{f"lax.integer_pow {n}": Case(lambda x, n=n: lax.integer_pow(x, n), lambda x, n=n: x ** n)
       for n in (-2, -1, 0, 1, 2, 3, 4)},
    **{f"x ** {n}": Case(lambda x, n=n: x ** n, lambda x, n=n: x ** mpmath.mpf(n), 0.0)
       for n in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0)},
    **{f"{n} ** x": Case(lambda x, n=n: n ** x, lambda x, n=n: mpmath.mpf(n) ** x)
       for n in (0.5, 1.0, 2.0)},
    **{"numpy.where sqrt": Case(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0),
                                lambda x: mpmath.sqrt(x) if x > 0 else mpmath.mpf(0))},
    "nn.logsumexp": Case(lambda x: ft.nn.logsumexp(jnp.stack([x, 1 - x]), 0),
                         lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(1 - x))),
    "nn.logmeanexp": Case(lambda x: ft.nn.logmeanexp(jnp.stack([x, 1 - x]), 0),
                          lambda x: mpmath.log((mpmath.exp(x) + mpmath.exp(1 - x)) / 2)),
    "nn.softmax": Case(lambda x: ft.nn.softmax(jnp.stack([x, 1 - x]), 0)[0],
                       lambda x: _sigmoid(2 * x - 1)),
    "nn.glu": Case(lambda x: ft.nn.glu(jnp.stack([x, x]), 0)[0], lambda x: x * _sigmoid(x)),
}


PAIRS = [(x, y) for x in (-2.0, -0.5, 0.0, 0.5, 1.0, 2.0) for y in (-2.0, -0.5, 0.0, 0.5, 1.0, 2.0)]


@dataclass(frozen=True)
class PairCase:
    """A function of two numbers."""

    fun: Callable[..., Any]
    value: Callable[..., Any]
    domain: Callable[[float, float], bool] = lambda x, y: True
    more: tuple[tuple[float, float], ...] = ()
    tolerance: float = 1e-9

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        return tuple(p for p in (*PAIRS, *self.more) if self.domain(*p))


def _paired(text: str, value: Callable[..., Any], domain: Any = lambda x, y: True,
            more: tuple[tuple[float, float], ...] = (), tolerance: float = 1e-9
            ) -> dict[str, PairCase]:
    modules = {"numpy": jnp, "lax": lax, "nn": ft.nn, "special": special}
    cases = {}
    for name in text.split():
        module, attribute = name.split(".")
        cases[name] = PairCase(getattr(modules[module], attribute), value, domain, more, tolerance)
    return cases


def _positive(x: float, y: float) -> bool:
    return x > 0 and y > 0


def _divisor(x: float, y: float) -> bool:
    return y != 0


def _fmod(x: Any, y: Any) -> Any:
    return x - y * mpmath.sign(x / y) * mpmath.floor(abs(x / y))


def _xlogy(x: Any, y: Any) -> Any:
    return x * mpmath.log(y) if x else mpmath.mpf(0)


def _boxcox(x: Any, power: Any) -> Any:
    return mpmath.log(x) if power == 0 else mpmath.expm1(power * mpmath.log(x)) / power


def _clipped(x: Any, y: Any) -> Any:
    return min(max(x, y), y + 1)


def _betaln(a: Any, b: Any) -> Any:
    return _lgamma(a) + _lgamma(b) - _lgamma(a + b)


TWO: dict[str, PairCase] = {
    **_paired("numpy.add lax.add", lambda x, y: x + y),
    **_paired("numpy.subtract lax.sub", lambda x, y: x - y),
    **_paired("numpy.multiply lax.mul", lambda x, y: x * y),
    **_paired("numpy.divide numpy.true_divide lax.div", lambda x, y: x / y, _divisor),
    **_paired("numpy.fmod lax.rem", _fmod, _divisor, ((2.3, 0.7), (-2.3, 0.7), (2.3, -0.7))),
    **_paired("numpy.remainder numpy.mod", lambda x, y: x - y * mpmath.floor(x / y), _divisor,
              ((2.3, 0.7), (-2.3, 0.7), (2.3, -0.7))),
    **_paired("numpy.floor_divide", lambda x, y: mpmath.floor(x / y), _divisor),
    **_paired("numpy.power numpy.pow numpy.float_power lax.pow", lambda x, y: x ** y,
              lambda x, y: x > 0 or (x == 0 and y > 1), ((4.0, 0.0), (0.25, -1.0), (4.0, 1.0))),
    **_paired("numpy.maximum numpy.fmax lax.max", max),
    **_paired("numpy.minimum numpy.fmin lax.min", min),
    **_paired("numpy.hypot", lambda x, y: mpmath.sqrt(x * x + y * y),
              more=((1e-9, 1.0), (1.0, -1e-9), (3.0, 4.0))),
    **_paired("numpy.arctan2 numpy.atan2 lax.atan2", mpmath.atan2,
              lambda y, x: not (y == 0 and x <= 0)),
    **_paired("numpy.logaddexp", lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
              more=((40.0, 0.0), (0.0, 40.0), (1.0, 1.0 + 1e-9))),
    **_paired("numpy.logaddexp2", lambda x, y: mpmath.log(2 ** x + 2 ** y, 2),
              more=((60.0, 0.0), (0.0, 60.0))),
    **_paired("numpy.copysign", lambda x, y: abs(x) if y >= 0 else -abs(x)),
    **_paired("numpy.heaviside", lambda x, y: y if x == 0 else mpmath.mpf(x > 0)),
    **_paired("numpy.nextafter lax.nextafter", lambda x, y: x),
    **_paired("special.xlogy", _xlogy, lambda x, y: y > 0, ((0.0, 1e-3), (0.0, 2.0))),
    **_paired("special.xlog1py", lambda x, y: _xlogy(x, 1 + y), lambda x, y: y > -1),
    **_paired("special.rel_entr", lambda p, q: p * mpmath.log(p / q), _positive),
    **_paired("special.kl_div", lambda p, q: p * mpmath.log(p / q) - p + q, _positive),
    **_paired("special.boxcox", _boxcox, lambda x, y: x > 0, ((2.0, 1e-9), (2.0, -1e-3), (1.0, 0.0),
                                                               (3.0, 0.5))),
    **_paired("special.boxcox1p", lambda x, y: _boxcox(1 + x, y), lambda x, y: x > -1,
              ((2.0, 1e-9), (1e-9, 0.5), (2.0, -1e-3))),
    **_paired("special.betaln", _betaln, _positive),
    **_paired("special.beta", lambda a, b: mpmath.exp(_betaln(a, b)), _positive),
    **_paired("special.comb", lambda n, k: mpmath.binomial(n, k), lambda n, k: n >= k >= 0,
              ((5.0, 2.0), (5.5, 2.5))),
    **_paired("special.poch", lambda z, m: mpmath.gamma(z + m) / mpmath.gamma(z),
              lambda z, m: z > 0 and z + m > 0),
    **_paired("special.gammainc lax.igamma",
              lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), _positive, tolerance=1e-3),
    **_paired("special.gammaincc lax.igammac",
              lambda a, x: mpmath.gammainc(a, x, regularized=True), _positive, tolerance=1e-3),
    **_paired("special.zeta lax.zeta", mpmath.zeta, lambda x, q: x > 1 and q > 0, tolerance=1e-3),
    "nn.leaky_relu": PairCase(ft.nn.leaky_relu, lambda x, y: x if x >= 0 else y * x),
    "nn.elu": PairCase(ft.nn.elu, _elu),
    "nn.celu": PairCase(ft.nn.celu, lambda x, y: x if x > 0 else y * mpmath.expm1(x / y), _divisor),
    "nn.squareplus": PairCase(ft.nn.squareplus, lambda x, b: (x + mpmath.sqrt(x * x + b)) / 2,
                              lambda x, b: b > 0),
    "numpy.where": PairCase(lambda x, y: jnp.where(x > y, x * x * y, x * y * y),
                            lambda x, y: x * x * y if x > y else x * y * y),
    "lax.complex": PairCase(lambda x, y: lax.real(lax.complex(x, y) ** 2),
                            lambda x, y: x * x - y * y),
    "lax.clamp": PairCase(lambda x, y: lax.clamp(y, x, y + 1.0), _clipped),
    "numpy.clip": PairCase(lambda x, y: jnp.clip(x, y, y + 1.0), _clipped),
}
