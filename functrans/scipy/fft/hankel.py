"""Hankel transforms of functions at places that grow by one factor.

Source: Hamilton, Mon. Not. R. Astron. Soc. 312 (2000): FFTLog.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.scipy.arguments import inexact, real
from functrans.typing import Array, ArrayLike

# of Stirling's series: B_2k / (2 k (2 k - 1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LARGE = 9  # the real part from which the series has 16 digits


def _log_gamma(z: Any, xp: Any, start: float) -> Any:
    """The logarithm of the gamma function, without jumps; `start` is the real part of z."""
    count = max(math.ceil(_LARGE - start), 0)
    total = xp.sum(xp.log(z[..., None] + np.arange(count)), axis=-1)
    z = z + count
    series: Any = 0
    for c in reversed(_STIRLING):
        series = series / z / z + c
    return (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series / z - total


def _kind(*parameters: Any) -> tuple[Any, list[Any]]:
    """NumPy for parameters that are known, and jnp where one is traced."""
    if any(isinstance(p, Tracer) for p in parameters):
        return jnp, list(inexact(*parameters))
    return np, [float(np.asarray(p)) for p in parameters]


def _bounds(mu: Any, bias: Any) -> float:
    """A real part that both arguments of the gamma function are at least."""
    if isinstance(mu, float) and isinstance(bias, float):
        return (mu + 1 - abs(bias)) / 2
    return -4.0


def _coefficients(n: int, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool) -> Any:
    """The factors of the frequencies of n points: quotients of gamma functions."""
    xp, (dln, mu, offset, bias) = _kind(dln, mu, offset, bias)
    start = _bounds(mu, bias)
    y = np.arange(n // 2 + 1) * np.pi / (n * dln)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = _log_gamma((mu + 1 + bias) / 2 + 1j * y, xp, start)
        below = _log_gamma((mu + 1 - bias) / 2 + 1j * y, xp, start)
        log = (above.real - below.real + math.log(2) * bias) + 1j * (
            above.imag + below.imag + 2 * y * (math.log(2) - offset))
        u = xp.exp(log)
    if n % 2 == 0:
        last = np.arange(n // 2 + 1) == n // 2
        u = xp.where(last, u.real, u)
    if xp is np:
        if not np.isfinite(u[0]):
            u[0] = _first(mu, bias)
        if np.isinf(u[0]) and not inverse:
            warnings.warn("fht: the transform is singular; its mean is left out, as with another "
                          "bias it need not be", stacklevel=4)
            u[0] = 0
        elif u[0] == 0 and inverse:
            warnings.warn("ifht: the transform is singular; its mean is left out, as with another "
                          "bias it need not be", stacklevel=4)
            u[0] = np.inf
    return u


def _first(mu: float, bias: float) -> float:
    """The factor of the mean, 2**bias gamma(a + bias) / gamma(a), where both may be infinite."""
    a = (mu + 1 - bias) / 2
    steps = round(bias)
    if steps != bias:  # one of the two is infinite
        return 0.0 if a <= 0 and a == round(a) else math.inf
    product = math.prod(a + k for k in range(steps)) if steps >= 0 else 1 / (
        math.prod(a - k for k in range(1, 1 - steps)) or math.nan)
    return float(2.0**bias * (math.inf if math.isnan(product) else product))


def _line(name: str, a: ArrayLike) -> Array:
    (x,) = real(f"fft.{name}", a)
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"functrans.scipy.fft.{name}: the array has shape {x.shape}.",
                         where=user_source(), why="its last axis has the places.")
    return x


def fht(a: ArrayLike, dln: ArrayLike, mu: ArrayLike, offset: ArrayLike = 0.0,
        bias: ArrayLike = 0.0) -> Array:
    """The Hankel transform of order mu of a at places r[j] = r_c exp((j - j_c) dln), last axis.

    A(k) is the integral of a(r) J_mu(k r) k dr at places k_c exp((j - j_c) dln) with k_c r_c =
    exp(offset), and (k r)**bias in the integral. It is differentiated in all but the number of
    places.

    >>> import functrans as ft
    >>> r = ft.numpy.exp((ft.numpy.arange(64) - 31.5) * 0.25)
    >>> a = r * ft.numpy.exp(-r ** 2 / 2)              # which is its own transform, of order 0
    >>> bool(abs(ft.scipy.fft.fht(a, 0.25, 0.0) - a).max() < 1e-2)
    True
    """
    x = _line("fht", a)
    n = x.shape[-1]
    u = jnp.asarray(_coefficients(n, dln, mu, offset, bias, False))
    at = (np.arange(n) - (n - 1) / 2) * _value(dln)
    x = x * _scale(x, -_value(bias) * at)
    out = _transformed(x, u, False)
    return out * _scale(out, -_value(bias) * (at + _value(offset)))


def ifht(A: ArrayLike, dln: ArrayLike, mu: ArrayLike, offset: ArrayLike = 0.0,
         bias: ArrayLike = 0.0) -> Array:
    """The function whose `fht` is A, with the same arguments.

    >>> import functrans as ft
    >>> a = ft.numpy.array([0.0, 1.0, 3.0, 1.0])
    >>> print(abs(ft.scipy.fft.ifht(ft.scipy.fft.fht(a, 0.5, 1.0), 0.5, 1.0)).round(3))
    [0. 1. 3. 1.]
    """
    x = _line("ifht", A)
    n = x.shape[-1]
    u = jnp.asarray(_coefficients(n, dln, mu, offset, bias, True))
    at = (np.arange(n) - (n - 1) / 2) * _value(dln)
    x = x * _scale(x, _value(bias) * (at + _value(offset)))
    out = _transformed(x, u, True)
    return out * _scale(out, _value(bias) * at)


def _value(v: Any) -> Any:
    return v if isinstance(v, Tracer) else float(np.asarray(v))


def _scale(x: Array, log: Any) -> Array:
    return jnp.exp(jnp.asarray(log)).astype(x.dtype)


def _transformed(x: Array, u: Array, inverse: bool) -> Array:
    spectrum = jnp.fft.rfft(x)
    u = (1 / jnp.conj(u) if inverse else u).astype(spectrum.dtype)
    return jnp.flip(jnp.fft.irfft(spectrum * u, x.shape[-1]), axis=-1)


def fhtoffset(dln: ArrayLike, mu: ArrayLike, initial: ArrayLike = 0.0, bias: ArrayLike = 0.0
              ) -> float | Array:
    """The offset near to `initial` for which the transform and its inverse are real at both ends.

    >>> import functrans as ft
    >>> round(ft.scipy.fft.fhtoffset(0.1, 1.0), 4)
    -0.003
    """
    xp, (step, order, near, q) = _kind(dln, mu, initial, bias)
    start = _bounds(order, q)
    y = np.pi / (2 * step)
    turns = [_log_gamma(xp.asarray((order + 1 + sign * q) / 2 + 1j * y), xp, start).imag
             for sign in (1, -1)]
    part = (math.log(2) - near) / step + (turns[0] + turns[1]) / np.pi
    found = near + (part - xp.round(part)) * step
    offset: float | Array = float(found) if xp is np else found
    return offset
