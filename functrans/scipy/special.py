"""Special functions with the names of scipy.special: elementwise, broadcasting, floating."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from functrans import lax
from functrans import numpy as fnp
from functrans.core.errors import ArgumentError, DTypeError, publish
from functrans.core.source import user_source
from functrans.nn import functions as nn
from functrans.nn.functions import logsumexp
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.primitives import special
from functrans.primitives.transcendental import polygamma as _polygamma
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike, Axis

__all__ = [
    "beta",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)


_OF_COMPLEX = frozenset(("boxcox", "boxcox1p", "expit", "gamma", "logit", "xlog1py", "xlogy"))


@overload
def _elementwise(fun: Callable[[Array], Array]) -> Callable[[ArrayLike], Array]: ...


@overload
def _elementwise(fun: Callable[[Array, Array], Array]
                 ) -> Callable[[ArrayLike, ArrayLike], Array]: ...


def _elementwise(fun: Callable[..., Array]) -> Callable[..., Array]:
    """`fun` on operands of one floating dtype and shape."""
    # the signature of the wrapper is that of `fun`: this is what the wrapper takes
    fun.__annotations__ = dict.fromkeys(fun.__annotations__, "ArrayLike") | {"return": "Array"}

    @functools.wraps(fun)
    def wrapper(*args: ArrayLike) -> Array:
        xs = [operand(fun.__name__, x) for x in promote_dtypes_inexact(fun.__name__, *args)]
        if xs[0].dtype.kind == "c" and fun.__name__ not in _OF_COMPLEX:
            raise DTypeError(
                f"functrans.scipy.special.{fun.__name__.strip('_')} does not take {xs[0].dtype}.",
                where=user_source(), why="it is defined for real numbers.", fix="x.real")
        return fun(*(broadcast_all(fun.__name__, *xs) if len(xs) > 1 else xs))

    return wrapper


# Error functions and the normal distribution -------------------------------------------------


@_elementwise
def erf(x: Array) -> Array:
    """The error function.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.erf(1.0)), 4)
    0.8427
    """
    return lax.erf(x)


@_elementwise
def erfc(x: Array) -> Array:
    """1 - erf(x), accurate for large x."""
    return lax.erfc(x)


@_elementwise
def erfinv(x: Array) -> Array:
    """The inverse of the error function, for x in [-1, 1]."""
    return lax.erf_inv(x)


@_elementwise
def ndtr(x: Array) -> Array:
    """The cumulative distribution function of the standard normal distribution.

    >>> import functrans as ft
    >>> float(ft.scipy.special.ndtr(0.0))
    0.5
    """
    return 0.5 * lax.erfc(-x * _SQRT_HALF)


@_elementwise
def log_ndtr(x: Array) -> Array:
    """log(ndtr(x)), accurate in both tails, with its derivative.

    Far below zero by the asymptotic series (Abramowitz & Stegun 26.2.12).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.log_ndtr(-100.0)), 3)
    -5005.524
    """
    edge, terms = (-20.0, 10) if x.dtype == np.float64 else (-8.0, 6)
    far, high = x < edge, x > 4.0
    middle = fnp.where(far | high, 0.0, x)
    out = fnp.where(high, lax.log1p(-0.5 * lax.erfc(fnp.where(high, x, 4.0) * _SQRT_HALF)),
                    lax.log(0.5 * lax.erfc(-middle * _SQRT_HALF)))
    low = fnp.where(far, x, edge)
    square = 1.0 / (low * low)
    total = fnp.zeros_like(low)
    for k in reversed(range(1, terms + 1)):  # Horner of 1 - 1/x^2 + 1 3/x^4 - 1 3 5/x^6 ...
        total = -(2 * k - 1) * square * (1.0 + total)
    series = -0.5 * low * low - lax.log(-low) - _HALF_LOG_2PI + lax.log1p(total)
    return fnp.where(far, series, out)


@custom_jvp
def _ndtri(p: Array) -> Array:
    """Newton's method on the logarithm of the smaller tail, which is concave.

    Around a half, where the logarithm has no digits left for a result near zero, it is on erf.
    """
    tail = fnp.minimum(p, 1.0 - p)
    below_half = fnp.where(tail > 0.25, tail, 0.25) - 0.5  # exact
    inside = (tail > 0) & (tail <= 0.5)
    safe = fnp.where(inside, tail, 0.25)
    far = safe < 0.05
    goal = lax.log(safe)
    twice = -2.0 * fnp.where(far, goal, -4.0)
    guess = -lax.sqrt(twice - lax.log(twice) - 2.0 * _HALF_LOG_2PI + 1.0 / twice)
    x = fnp.where(far, guess, lax.erf_inv(2.0 * fnp.where(far, 0.25, safe) - 1.0) / _SQRT_HALF)
    for _ in range(4):
        have = log_ndtr(x)
        x = x - (have - goal) * lax.exp(have + 0.5 * x * x + _HALF_LOG_2PI)
    near = lax.erf_inv(2.0 * below_half) / _SQRT_HALF
    miss = 0.5 * lax.erf(near * _SQRT_HALF) - below_half
    x = fnp.where(tail > 0.25, near - miss * lax.exp(0.5 * near * near + _HALF_LOG_2PI), x)
    x = fnp.where(p > 0.5, -x, x)
    x = fnp.where(inside, x, np.nan)
    return fnp.where(p == 0, -np.inf, fnp.where(p == 1, np.inf, x))


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    x = _ndtri(*primals)
    return x, tangents[0] * lax.exp(0.5 * x * x + _HALF_LOG_2PI)


@_elementwise
def ndtri(p: Array) -> Array:
    """The inverse of ndtr: the quantile of the standard normal distribution, for p in [0, 1].

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.ndtri(0.975)), 3)
    1.96
    """
    return _ndtri(p)


# Logistic functions --------------------------------------------------------------------------


@_elementwise
def expit(x: Array) -> Array:
    """1 / (1 + exp(-x)).

    >>> import functrans as ft
    >>> float(ft.scipy.special.expit(0.0))
    0.5
    """
    return lax.logistic(x)


@_elementwise
def logit(x: Array) -> Array:
    """log(x / (1 - x)), the inverse of expit."""
    far = lax.log(x) - lax.log1p(-x)
    if fnp.iscomplexobj(x):
        return far
    centred = 2.0 * x - 1.0  # exact, where the logarithms cancel
    near = fnp.abs(centred) < 0.5
    return fnp.where(near, 2.0 * lax.atanh(fnp.where(near, centred, 0.0)), far)


def _box(log: Array, lmbda: Array) -> Array:
    """expm1(lmbda log) / lmbda; around 0 a series, as the derivatives in lmbda cancel there."""
    power = lmbda * log
    near = (fnp.abs(power) < 0.5) | (lmbda == 0)
    small = fnp.where(near & fnp.isfinite(power), power, 0.0)
    series = fnp.zeros_like(small)
    for k in reversed(range(18)):
        series = series * small + 1 / math.factorial(k + 1)
    safe = fnp.where(near, 1.0, lmbda)
    return fnp.where(near, log * series, lax.expm1(fnp.where(near, 1.0, power)) / safe)


@_elementwise
def boxcox(x: Array, lmbda: Array) -> Array:
    """(x ** lmbda - 1) / lmbda, and log(x) where lmbda is 0."""
    return _box(lax.log(x), lmbda)


@_elementwise
def boxcox1p(x: Array, lmbda: Array) -> Array:
    """boxcox(1 + x, lmbda), accurate near 0."""
    return _box(lax.log1p(x), lmbda)


# Entropies -----------------------------------------------------------------------------------


@custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    zero = (x == 0) & ~fnp.isnan(y)
    return fnp.where(zero, 0.0, x * lax.log(fnp.where(zero, 1.0, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlogy(x, y), tx * lax.log(y) + ty * (x / y)


@custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    zero = (x == 0) & ~fnp.isnan(y)
    return fnp.where(zero, 0.0, x * lax.log1p(fnp.where(zero, 0.0, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlog1py(x, y), tx * lax.log1p(y) + ty * (x / (1.0 + y))


@_elementwise
def xlogy(x: Array, y: Array) -> Array:
    """x log(y), and 0 where x is 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.xlogy(0.0, 0.0))
    0.0
    """
    return _xlogy(x, y)


@_elementwise
def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), and 0 where x is 0."""
    return _xlog1py(x, y)


@custom_jvp
def _entr(x: Array) -> Array:
    zero = x == 0
    return fnp.where(zero, 0.0, -x * lax.log(fnp.where(zero, 1.0, x)))


@_entr.defjvp
def _entr_jvp(primals: Any, tangents: Any) -> Any:
    return _entr(*primals), -tangents[0] * (lax.log(primals[0]) + 1.0)


@_elementwise
def entr(x: Array) -> Array:
    """-x log(x), 0 at 0 and -inf below."""
    negative = x < 0
    return fnp.where(negative, -np.inf, _entr(fnp.where(negative, 1.0, x)))


@_elementwise
def rel_entr(p: Array, q: Array) -> Array:
    """p log(p / q) for positive p and q, 0 where p is 0 and q >= 0, else inf."""
    both = (p > 0) & (q > 0)
    only_zero = (p == 0) & (q >= 0)
    sp, sq = fnp.where(both, p, 1.0), fnp.where(both, q, 1.0)
    found = fnp.where(both, sp * (lax.log(sp) - lax.log(sq)), fnp.where(only_zero, 0.0, np.inf))
    return fnp.where(fnp.isnan(p) | fnp.isnan(q), np.nan, found).astype(sp.dtype)


@_elementwise
def kl_div(p: Array, q: Array) -> Array:
    """rel_entr(p, q) - p + q, and inf where rel_entr is by definition."""
    defined = (p >= 0) & (q >= 0) & ((p == 0) | (q > 0))
    return rel_entr(p, q) + fnp.where(defined, q - p, 0.0)


# Gamma functions -----------------------------------------------------------------------------


@_elementwise
def gammaln(x: Array) -> Array:
    """log |Gamma(x)|.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammaln(4.0)), 4)
    1.7918
    """
    return lax.lgamma(x)


@_elementwise
def loggamma(x: Array) -> Array:
    """The principal branch of log Gamma(x): real for x >= 0, NaN for real x below."""
    return fnp.where(x < 0, np.nan, lax.lgamma(x))


@_elementwise
def digamma(x: Array) -> Array:
    """The derivative of log |Gamma(x)|."""
    return lax.digamma(x)


psi = digamma


def polygamma(n: int, x: ArrayLike) -> Array:
    """The derivative of order n of digamma, for a Python int n and x > 0.

    Raises ArgumentError when n is no int or is negative.
    """
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise ArgumentError(f"functrans.scipy.special.polygamma: the order {n!r} is no int >= 0.",
                            where=user_source())
    return digamma(x) if n == 0 else _higher(x, int(n))


def _higher(x: ArrayLike, n: int) -> Array:
    (y,) = promote_dtypes_inexact("polygamma", x)
    return _polygamma(y, n)


@_elementwise
def gammasgn(x: Array) -> Array:
    """The sign of Gamma(x): -1 or 1; NaN at negative integers."""
    floor = lax.floor(x)
    sign = fnp.where(fnp.remainder(floor, 2.0) == 0, 1.0, -1.0)
    pole = ((x < 0) & (x == floor)) | fnp.isnan(x)
    at_zero = fnp.where(fnp.signbit(x), -1.0, 1.0)  # Gamma(-0.0) is -inf
    sign = fnp.where(x > 0, 1.0, fnp.where(x == 0, at_zero, sign))
    return fnp.where(pole, np.nan, sign).astype(x.dtype)


# of Lanczos's series with g = 7 and 9 terms, exact to 15 digits: P. Godfrey (2001)
_LANCZOS = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)


def _complex_gamma(z: Array) -> Array:
    """Gamma of complex z: Lanczos's series right of 1/2, and by reflection left of it."""
    left = lax.real(z) < 0.5
    right = fnp.where(left, -z, z - 1.0)
    total: Any = 0.99999999999980993
    for k, term in enumerate(_LANCZOS, start=1):
        total = total + term / (right + k)
    base = right + 7.5
    value: Array = total * lax.exp((right + 0.5) * lax.log(base) - base + _HALF_LOG_2PI)
    mirrored = fnp.where(left, z, 0.5)
    return fnp.where(left, math.pi / (lax.sin(math.pi * mirrored) * value), value)


@_elementwise
def gamma(x: Array) -> Array:
    """Gamma(x), the factorial of x - 1; x may be complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gamma(5.0)), 3)
    24.0
    """
    if x.dtype.kind == "c":
        return _complex_gamma(x)
    return lax.stop_gradient(gammasgn(x)) * lax.exp(lax.lgamma(x))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n!, as a floating number; 0 for negative n. Raises ArgumentError when `exact`."""
    if exact:
        raise ArgumentError("functrans.scipy.special.factorial is not exact.",
                            where=user_source(), fix="math.factorial(n)")
    (x,) = promote_dtypes_inexact("factorial", n)
    x = operand("factorial", x)
    return fnp.where(x < 0, 0.0, lax.exp(lax.lgamma(fnp.where(x < 0, 0.0, x) + 1.0)))


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)) along axes, by default over all elements."""
    return nn.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """log(softmax(x)) along axes, by default over all elements."""
    return nn.log_softmax(x, axis)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N, as a floating number; 0 for k outside [0, N].

    With `repetition` an element may be chosen more than once.
    """
    if not repetition:
        return _comb(N, k)
    items, chosen = promote_dtypes_inexact("comb", N, k)
    nothing = (items == 0) & (chosen == 0)
    return fnp.where(nothing, 1.0, _comb(items + chosen - 1, chosen))


@_elementwise
def _comb(N: Array, k: Array) -> Array:
    valid = (k >= 0) & (k <= N)
    n, m = fnp.where(valid, N, 1.0), fnp.where(valid, k, 1.0)
    return fnp.where(valid, lax.exp(-lax.log1p(n) - _betaln(n - m + 1.0, m + 1.0)), 0.0)


@_elementwise
def poch(z: Array, m: Array) -> Array:
    """Gamma(z + m) / Gamma(z), for z > 0 and z + m > 0."""
    return lax.exp(lax.lgamma(z + m) - lax.lgamma(z))


def _betaln(a: Array, b: Array) -> Array:
    return lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)


@_elementwise
def betaln(a: Array, b: Array) -> Array:
    """log |B(a, b)|, for B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)."""
    return _betaln(a, b)


@_elementwise
def beta(a: Array, b: Array) -> Array:
    """B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)."""
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return lax.stop_gradient(sign) * lax.exp(_betaln(a, b))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension d, for a > (d - 1) / 2."""
    (x,) = promote_dtypes_inexact("multigammaln", a)
    x = operand("multigammaln", x)
    constant = 0.25 * d * (d - 1) * math.log(math.pi)
    halves = np.arange(d).astype(x.dtype) / 2
    return fnp.sum(lax.lgamma(x[..., None] - halves), -1) + constant


@_elementwise
def gammainc(a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammainc(1.0, 1.0)), 4)
    0.6321
    """
    return special.igamma(a, x)


@_elementwise
def gammaincc(a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x)."""
    return special.igammac(a, x)


@_elementwise
def _zeta(x: Array, q: Array) -> Array:
    return special.zeta(x, q)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function for x > 1; Riemann's when q is not given.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.zeta(2.0)), 4)
    1.6449
    """
    return _zeta(x, 1.0 if q is None else q)


# Bessel functions ----------------------------------------------------------------------------


@_elementwise
def i0e(x: Array) -> Array:
    """exp(-|x|) i0(x)."""
    return special.bessel_i0e(x)


@_elementwise
def i1e(x: Array) -> Array:
    """exp(-|x|) i1(x)."""
    return special.bessel_i1e(x)


@_elementwise
def i0(x: Array) -> Array:
    """The modified Bessel function of order 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.i0(0.0))
    1.0
    """
    return lax.exp(lax.abs(x)) * special.bessel_i0e(x)


@_elementwise
def i1(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    return lax.exp(lax.abs(x)) * special.bessel_i1e(x)

publish(globals(), __all__)
