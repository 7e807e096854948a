"""Gamma and beta functions, factorials, and the zeta function."""

from __future__ import annotations

import fractions
import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.primitives import special
from functrans.primitives.transcendental import polygamma as _polygamma
from functrans.scipy.special import densities
from functrans.scipy.special.common import (
    HALF_LOG_2PI,
    elementwise,
    in_double,
    operands,
    wide,
)
from functrans.typing import Array, ArrayLike

_FAR = 1e30  # half of a term beside the integral is beyond its last bit


@elementwise
def gammaln(x: Array) -> Array:
    """log |Gamma(x)|.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gammaln(4.0)), 4)
    1.7918
    """
    return lax.lgamma(x)


@elementwise
def loggamma(x: Array) -> Array:
    """The principal branch of log Gamma(x): real for x >= 0, NaN for real x below.

    >>> ft.scipy.special.loggamma(jnp.array([1.0, 5.0])).round(4)
    Array([0.    , 3.1781], dtype=float32)
    """
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


@elementwise
def digamma(x: Array) -> Array:
    """The derivative of log |Gamma(x)|.

    >>> ft.scipy.special.psi(jnp.array([1.0, 2.0])).round(4)
    Array([-0.5772,  0.4228], dtype=float32)
    """
    return lax.digamma(x)


psi = digamma


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n of digamma, for whole n >= 0 and x > 0; they broadcast.

    Arrays of orders are NaN where they are negative or not whole. Raises ArgumentError for a Python
    number that is.

    >>> ft.scipy.special.polygamma(1, jnp.array([1.0, 2.0])).round(4)
    Array([1.6449, 0.6449], dtype=float32)
    """
    if isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0:
        return digamma(x) if n == 0 else _higher(x, int(n))
    if isinstance(n, (int, float, np.number, str, type(None))):
        raise ArgumentError(f"functrans.scipy.special.polygamma: the order {n!r} is no int >= 0.",
                            where=user_source())
    return _of_orders(n, x)


@wide
def _of_orders(n: Array, x: Array) -> Array:
    """(-1)^(n + 1) n! zeta(n + 1, x) (DLMF 5.15.2)."""
    whole = (n >= 1) & (n == lax.floor(n))
    order = lax.stop_gradient(jnp.where(whole, n, 1.0))
    sign = jnp.where(jnp.remainder(order, 2.0) == 1, 1.0, -1.0)
    # far out the first term of the asymptotic series is left
    far = x > _FAR
    value = sign * lax.exp(lax.lgamma(order + 1.0)) * lax.zeta(order + 1.0, jnp.where(far, 1.0, x))
    last = sign * lax.exp(lax.lgamma(order) - order * lax.log(jnp.where(far, x, 1.0)))
    value = jnp.where(far, last, value)
    return jnp.where(whole, value, jnp.where(n == 0, lax.digamma(x), np.nan))


def _higher(x: ArrayLike, n: int) -> Array:
    (y,) = promote_dtypes_inexact("polygamma", x)
    return _polygamma(y, n)


@elementwise
def gammasgn(x: Array) -> Array:
    """The sign of Gamma(x): -1 or 1; NaN at negative integers.

    >>> ft.scipy.special.gammasgn(jnp.array([2.5, -0.5, -1.5]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    floor = lax.floor(x)
    sign = jnp.where(jnp.remainder(floor, 2.0) == 0, 1.0, -1.0)
    pole = ((x < 0) & (x == floor)) | jnp.isnan(x)
    at_zero = jnp.where(jnp.signbit(x), -1.0, 1.0)  # Gamma(-0.0) is -inf
    sign = jnp.where(x > 0, 1.0, jnp.where(x == 0, at_zero, sign))
    return jnp.where(pole, np.nan, sign).astype(x.dtype)


# of Lanczos's series with g = 7 and 9 terms, exact to 15 digits: P. Godfrey (2001)
_LANCZOS = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)


def _complex_gamma(z: Array) -> Array:
    """Gamma of complex z: Lanczos's series right of 1/2, and by reflection left of it."""
    left = lax.real(z) < 0.5
    right = jnp.where(left, -z, z - 1.0)
    total: Any = 0.99999999999980993
    for k, term in enumerate(_LANCZOS, start=1):
        total = total + term / (right + k)
    base = right + 7.5
    value: Array = total * lax.exp((right + 0.5) * lax.log(base) - base + HALF_LOG_2PI)
    mirrored = jnp.where(left, z, 0.5)
    return jnp.where(left, math.pi / (lax.sin(math.pi * mirrored) * value), value)


@elementwise
def gamma(x: Array) -> Array:
    """Gamma(x), the factorial of x - 1; x may be complex.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.gamma(5.0)), 3)
    24.0
    """
    if dtypes.kind(x.dtype) == "c":
        return _complex_gamma(x)
    out: Array = in_double(_gamma, [x])
    return out


def _gamma(x: Array) -> Array:
    return lax.stop_gradient(gammasgn(x)) * lax.exp(lax.lgamma(x))


def rgamma_(x: Array) -> Array:
    """1 / Gamma(x), left of 1/2 by reflection, which is smooth where Gamma has poles."""
    left = x < 0.5
    turned = jnp.where(left, x, 0.0)
    whole = lax.stop_gradient(jnp.round(turned))
    rest = turned - whole
    sine = jnp.where(jnp.remainder(whole, 2.0) == 1, -1.0, 1.0) * lax.sin(math.pi * rest)
    return jnp.where(left, lax.exp(lax.lgamma(1.0 - turned)) * sine / math.pi,
                     lax.exp(-lax.lgamma(jnp.where(left, 1.0, x))))


@wide
def rgamma(x: Array) -> Array:
    """1 / Gamma(x), which is 0 where Gamma has poles.

    >>> import functrans as ft
    >>> float(ft.scipy.special.rgamma(0.0))
    0.0
    """
    return rgamma_(x)


def _inexact(name: str, exact: bool, fix: str) -> None:
    if exact:
        raise ArgumentError(f"functrans.scipy.special.{name} is not exact.",
                            where=user_source(), fix=fix)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n!, as a floating number; 0 for negative n. Raises ArgumentError when `exact`.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.factorial(5)), 3)
    120.0
    """
    _inexact("factorial", exact, "math.factorial(n)")
    out: Array = in_double(_factorial, operands("factorial", n))
    return out


def _factorial(x: Array) -> Array:
    return jnp.where(x < 0, 0.0, lax.exp(lax.lgamma(jnp.where(x < 0, 0.0, x) + 1.0)))


def factorial2(n: ArrayLike, exact: bool = False) -> Array:
    """n!! = n (n - 2) (n - 4) ..., as a floating number, for an integer n; 0 for negative n.

    NaN for other numbers. Raises ArgumentError when `exact`.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.factorial2(7)), 3)
    105.0
    """
    _inexact("factorial2", exact, "math.prod(range(n, 0, -2))")
    out: Array = in_double(_factorial2, operands("factorial2", n))
    return out


def _factorial2(n: Array) -> Array:
    x = lax.stop_gradient(n)
    safe = jnp.where(x > 0, x, 0.0)
    odd = jnp.remainder(safe, 2.0) == 1
    log = 0.5 * safe * math.log(2.0) + lax.lgamma(0.5 * safe + 1.0)
    value = lax.exp(log + odd.astype(x.dtype) * (0.5 * math.log(2 / math.pi)))
    return jnp.where(x == lax.floor(x), jnp.where(x < 0, 0.0, value), math.nan)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N, as a floating number; 0 for k outside [0, N].

    With `repetition` an element may be chosen more than once.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.comb(5, 2)), 3)
    10.0
    """
    if not repetition:
        return _comb(N, k)
    items, chosen = promote_dtypes_inexact("comb", N, k)
    nothing = (items == 0) & (chosen == 0)
    return jnp.where(nothing, 1.0, _comb(items + chosen - 1, chosen))


@wide
def _comb(N: Array, k: Array) -> Array:
    valid = (k >= 0) & (k <= N)
    n, m = jnp.where(valid, N, 1.0), jnp.where(valid, k, 1.0)
    value = lax.exp(-lax.log1p(n) - densities.betaln(n - m + 1.0, m + 1.0))
    return jnp.where(valid, value, jnp.where(jnp.isnan(N) | jnp.isnan(k), math.nan, 0.0))


@wide
def binom(x: Array, y: Array) -> Array:
    """The binomial coefficient of real x and y, Gamma(x + 1) / (Gamma(y + 1) Gamma(x - y + 1)).

    NaN for a negative integer x.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.binom(5.0, 2.0)), 3)
    10.0
    """
    pole = (x < 0) & (x == lax.floor(x))
    part = _fraction_between(x, y)
    none = ((y < 0) & (y == lax.floor(y))) | ((y > x) & (part == lax.floor(part)))
    # where x - y + 1 has not the digits of x
    far = (y >= 1) & (y < math.inf) & (y - x > 0.5) & (lax.abs(x) < 1e6) & ~(pole | none)
    n, k = jnp.where(pole | none | far, 1.0, x), jnp.where(pole | none | far, 1.0, y)
    sign = gammasgn(n + 1.0) * gammasgn(k + 1.0) * gammasgn(n - k + 1.0)
    log = densities.log_gamma_ratio(n - k + 1.0, k) - lax.lgamma(k + 1.0)
    value = lax.stop_gradient(sign) * lax.exp(log)
    value = jnp.where(far, _reflected(jnp.where(far, x, 0.5), jnp.where(far, y, 100.0)), value)
    value = jnp.where(pole, math.nan, jnp.where(none, 0.0, value))
    # of infinite x it is y + 0 factors of it, over the factorial of y
    infinite = (x == math.inf) & (y > -math.inf) & (y < math.inf) & ~none
    ends = jnp.where(y == 0, 1.0, jnp.where(y > 0, math.inf, 0.0))
    value = jnp.where(infinite, ends, value)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), math.nan, value)


def _fraction_between(x: Array, y: Array) -> Array:
    """y - x less a whole number, exact also where y - x is not."""
    finite = (lax.abs(x) < math.inf) & (lax.abs(y) < math.inf)
    a, b = jnp.where(finite, x, 0.0), jnp.where(finite, y, 0.5)
    return (b - lax.stop_gradient(jnp.round(b))) - (a - lax.stop_gradient(jnp.round(a)))


def _reflected(x: Array, y: Array) -> Array:
    """The coefficient for x below y, by the reflection of Gamma(x - y + 1)."""
    odd = [jnp.remainder(lax.stop_gradient(jnp.round(v)), 2.0) for v in (x, y)]
    sine = lax.sin(math.pi * _fraction_between(x, y))
    sine = jnp.where(odd[0] != odd[1], -sine, sine)
    return lax.stop_gradient(gammasgn(x + 1.0)) * sine / math.pi * lax.exp(
        lax.lgamma(x + 1.0) + densities.log_gamma_ratio(y + 1.0, -x - 1.0))


def perm(N: ArrayLike, k: ArrayLike, exact: bool = False) -> Array:
    """The number of sequences of k of N elements, N! / (N - k)!; 0 for k outside [0, N].

    Raises ArgumentError when `exact`.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.perm(5, 2)), 3)
    20.0
    """
    _inexact("perm", exact, "math.perm(N, k)")
    return _perm(N, k)


@wide
def _perm(N: Array, k: Array) -> Array:
    valid = (k >= 0) & (k <= N)
    n, m = jnp.where(valid, N, 1.0), jnp.where(valid, k, 1.0)
    value = lax.exp(densities.log_gamma_ratio(n - m + 1.0, m))
    return jnp.where(valid, value, jnp.where(jnp.isnan(N) | jnp.isnan(k), math.nan, 0.0))


@wide
def poch(z: Array, m: Array) -> Array:
    """Pochhammer's symbol Gamma(z + m) / Gamma(z).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.poch(5.0, 2.0)), 3)
    30.0
    """
    whole_z, total = (z <= 0) & (z == lax.floor(z)), z + m
    whole_total = (total <= 0) & (total == lax.floor(total))
    # between two poles by reflection: (-1)^m Gamma(1 - z) / Gamma(1 - z - m)
    both, either = whole_z & whole_total, whole_z | whole_total
    a, b = jnp.where(either, 1.0, z), jnp.where(either, 0.0, m)
    value = lax.stop_gradient(gammasgn(a + b) * gammasgn(a)) * lax.exp(
        densities.log_gamma_ratio(a, b))
    down = (m < 0) & (m == lax.floor(m)) & (m > -math.inf) & (lax.abs(z) < 0.5)
    both = both | down  # as z + m loses what z is above a pole
    whole_z, whole_total = whole_z & ~down, whole_total & ~down
    p, q = jnp.where(both, 1.0 - z, 1.0), jnp.where(both, -m, 0.0)
    turned = lax.exp(-densities.log_gamma_ratio(p, q))
    turned = jnp.where(jnp.remainder(m, 2.0) == 1, -turned, turned)
    # elsewhere the value is 1 there by itself, and has slopes
    is_one = (m == 0) & (either | ~lax.is_finite(z))
    found = jnp.where(is_one, 1.0, jnp.where(both, turned, jnp.where(
        whole_z, 0.0, jnp.where(whole_total, math.inf, value))))
    return jnp.where((z == z) & (m == m), found, np.nan)


@wide
def betaln(a: Array, b: Array) -> Array:
    """log |B(a, b)|, for B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b).

    Where the poles of a and a + b cancel it is that of the limit, as SciPy's is.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.betaln(2.0, 3.0)), 4)
    -2.4849
    """
    p, q, value, pole = _beside_poles(a, b)
    return jnp.where(pole, value, densities.betaln(p, q))


@wide
def beta(a: Array, b: Array) -> Array:
    """B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b).

    Where the poles of a and a + b cancel it is the limit, as SciPy's is: beta(-2, 1) is -1/2.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.beta(2.0, 3.0)), 4)
    0.0833
    """
    p, q, value, pole = _beside_poles(a, b)
    sign = gammasgn(p) * gammasgn(q) * gammasgn(p + q)
    # of -n and m it is (-1)^m B(n + 1 - m, m)
    other = jnp.where(_is_pole(a), b, a)
    odd = (jnp.remainder(other, 2.0) == 1) & ((value < math.inf) | (other < 0))
    sign = jnp.where(pole, jnp.where(odd, -1.0, 1.0), sign)
    size = lax.exp(jnp.where(pole, value, densities.betaln(p, q)))
    total = a + b
    zero = (total <= 0) & (total == lax.floor(total)) & ~pole & (a != lax.floor(a))
    return jnp.where(zero, 0.0, lax.stop_gradient(sign) * size)


def _is_pole(x: Array) -> Array:
    """Where Gamma has one: whole numbers up to 0."""
    return (x <= 0) & (x == lax.floor(x)) & (x > -math.inf)


def _beside_poles(a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """Arguments without poles, log |B| at those with one, or at an infinite one, and where."""
    first = _is_pole(a)
    n, m = jnp.where(first, a, b), jnp.where(first, b, a)
    some = first | _is_pole(b)
    rest = 1.0 - n - m
    finite = some & (m == lax.floor(m)) & (m > 0) & (rest > 0)
    at_limit = densities.betaln(jnp.where(finite, rest, 1.0), jnp.where(finite, m, 1.0))
    endless = (jnp.maximum(a, b) == math.inf) & (jnp.minimum(a, b) > 0)
    value = jnp.where(endless, -math.inf, jnp.where(finite, at_limit, math.inf))
    pole = (some | endless) & (a == a) & (b == b)
    return jnp.where(pole, 1.0, a), jnp.where(pole, 1.0, b), value, pole


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B_0 to B_n, for a Python int n; infinite from where they overflow.

    From the tangent numbers, which are integers (Brent and Harvey, 2011). Raises ArgumentError
    for an n that is no int >= 0.

    >>> import functrans as ft
    >>> ft.scipy.special.bernoulli(2).tolist()
    [1.0, -0.5, 0.1666666716337204]
    """
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise ArgumentError(f"functrans.scipy.special.bernoulli: {n!r} is no int >= 0.",
                            where=user_source())
    numbers = np.zeros(int(n) + 1)
    numbers[:2] = (1.0, -0.5)[:int(n) + 1]
    half = min(int(n) // 2, 130)
    tangents = [math.factorial(k) for k in range(max(half, 1))]
    for i in range(1, half):
        for j in range(i, half):
            tangents[j] = (j - i) * tangents[j - 1] + (j - i + 2) * tangents[j]
    for k in range(1, int(n) // 2 + 1):
        sign = 1.0 if k % 2 else -1.0
        power = 4**k
        value = fractions.Fraction(2 * k * tangents[k - 1], power * (power - 1)) \
            if k <= half else None
        numbers[2 * k] = math.inf * sign if value is None or value > 1e308 else sign * float(value)
    return jnp.asarray(numbers.astype(dtypes.default_float()))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension d, for a > (d - 1) / 2.

    >>> ft.scipy.special.multigammaln(jnp.array([3.0]), 2).round(4)
    Array([1.5502], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("multigammaln", a)
    x = operand("multigammaln", x)
    constant = 0.25 * d * (d - 1) * math.log(math.pi)
    halves = np.arange(d).astype(x.dtype) / 2
    return jnp.sum(lax.lgamma(x[..., None] - halves), -1) + constant


@elementwise
def _zeta(x: Array, q: Array) -> Array:
    # far out the integral is left, which is a number where the terms underflow
    far = (q > _FAR) & (x > 1.0)
    value = special.zeta(x, jnp.where(far, 1.0, q))
    exponent = jnp.where(far, x - 1.0, 1.0)
    return jnp.where(far, jnp.power(jnp.where(far, q, 1.0), -exponent) / exponent, value)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function for x > 1; Riemann's when q is not given.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.zeta(2.0)), 4)
    1.6449
    """
    return _zeta(x, 1.0 if q is None else q)
