"""The values of all windows in float64: vectors that are symmetric about their middle.

Parameters that are arrays or tracers are differentiated; with Python's numbers the values are
constants of a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.scipy.arguments import known_size

Values = Any  # an array of NumPy, or one of the package where a parameter is one


def _places(M: int) -> np.ndarray[Any, Any]:
    """Distances from the middle."""
    return np.arange(M) - (M - 1) / 2


def _unit(M: int) -> np.ndarray[Any, Any]:
    """Places from -1 to 1."""
    return np.linspace(-1, 1, M)


def _module(*parameters: Any) -> Any:
    return jnp if any(isinstance(p, ARRAYS) for p in parameters) else np


def _cosines(M: int, coefficients: Any) -> Values:
    """sum a[k] cos(k x) for x from -pi to pi."""
    xp = _module(*coefficients) if isinstance(coefficients, (tuple, list)) \
        else _module(coefficients)
    x = np.pi * _unit(M)
    total = xp.zeros(M, np.float64)
    for k in range(len(coefficients)):
        total = total + coefficients[k] * np.cos(k * x)
    return total


def _hamming(M: int, alpha: Any) -> Values:
    return _cosines(M, (alpha, 1 - alpha))


def _bartlett(M: int) -> Values:
    return 1 - np.abs(_unit(M))


def _triang(M: int) -> Values:
    n = np.arange(1, (M + 1) // 2 + 1)
    half = 2 * n / (M + 1) if M % 2 else (2 * n - 1) / M
    return np.concatenate([half, half[::-1][M % 2:]])


def _parzen(M: int) -> Values:
    x = np.abs(_places(M)) / (M / 2)
    return np.where(np.abs(_places(M)) <= (M - 1) / 4, 1 - 6 * x**2 + 6 * x**3, 2 * (1 - x)**3)


def _bohman(M: int) -> Values:
    x = np.abs(_unit(M))
    values = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    values[[0, -1]] = 0
    return values


def _barthann(M: int) -> Values:
    x = np.abs(_unit(M) / 2)
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)


def _cosine(M: int) -> Values:
    return np.sin(np.pi / M * (np.arange(M) + 0.5))


def _lanczos(M: int) -> Values:
    return np.sinc(_unit(M))


def _tukey(M: int, alpha: Any) -> Values:
    xp = _module(alpha)
    from_edge = (1 - np.abs(_unit(M))) / 2
    edge = xp.clip(alpha, 0, 1) / 2
    inside = from_edge >= edge
    ramp = 0.5 * (1 - xp.cos(np.pi * from_edge / xp.where(edge > 0, edge, 1)))
    return xp.where(inside, 1.0, ramp)


def _gaussian(M: int, std: Any) -> Values:
    return _module(std).exp(-(_places(M) / std) ** 2 / 2)


def _general_gaussian(M: int, p: Any, sig: Any) -> Values:
    xp = _module(p, sig)
    return xp.exp(-0.5 * xp.abs(_places(M) / sig) ** (2 * p))


def _exponential(M: int, center: Any, tau: Any) -> Values:
    middle = (M - 1) / 2 if center is None else center
    xp = _module(middle, tau)
    return xp.exp(-xp.abs(np.arange(M) - middle) / tau)


def _kaiser(M: int, beta: Any) -> Values:
    xp = _module(beta)
    return xp.i0(beta * np.sqrt(np.maximum(1 - _unit(M) ** 2, 0))) / xp.i0(
        beta if xp is jnp else float(beta))


def _kaiser_bessel_derived(M: int, beta: Any) -> Values:
    if M % 2:
        raise ArgumentError(f"functrans.scipy.signal.windows.kaiser_bessel_derived: M is {M}.",
                            where=user_source(), why="it is even.")
    xp = _module(beta)
    sums = xp.cumsum(_kaiser(M // 2 + 1, beta))
    half = xp.sqrt(sums[:-1] / sums[-1])
    return xp.concatenate([half, half[::-1]])


def _chebwin(M: int, at: float) -> Values:
    """The inverse transform of a Chebyshev polynomial."""
    order = M - 1
    beta = math.cosh(math.acosh(10 ** (abs(at) / 20)) / order)
    x = beta * np.cos(np.pi * np.arange(M) / M)
    inside = np.cos(order * np.arccos(np.clip(x, -1, 1)))
    outside = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1)))
    p = np.where(np.abs(x) <= 1, inside, np.where(x > 1, 1, (-1) ** order) * outside)
    if M % 2:
        w = np.real(np.fft.fft(p))[:(M + 1) // 2]
        w = np.concatenate([w[:0:-1], w])
    else:
        w = np.real(np.fft.fft(p * np.exp(1j * np.pi / M * np.arange(M))))[:M // 2 + 1]
        w = np.concatenate([w[:0:-1], w[1:]])
    return w / w.max()


def _taylor(M: int, nbar: int, sll: float, norm: bool) -> Values:
    """Carrara and Goodman, Spotlight Synthetic Aperture Radar (1995), appendix D.2."""
    a = math.acosh(10 ** (sll / 20)) / math.pi
    s2 = nbar**2 / (a**2 + (nbar - 0.5)**2)
    m = np.arange(1, nbar)
    signs = np.where(m % 2, 1.0, -1.0)
    f = np.array([signs[i] * np.prod(1 - k**2 / s2 / (a**2 + (m - 0.5)**2))
                  / (2 * np.prod(1 - k**2 / np.delete(m, i)**2)) for i, k in enumerate(m)])

    def at(n: Any) -> Any:
        return 1 + 2 * np.dot(f, np.cos(2 * np.pi * m[:, None] * (n - M / 2 + 0.5) / M))

    values = at(np.arange(M))
    return values / at(np.array([(M - 1) / 2])) if norm else values


def _dpss(M: int, NW: float) -> Values:
    """The first sequence: the eigenvector of the largest eigenvalue of a tridiagonal matrix."""
    if not 0 < NW < M / 2:
        raise ArgumentError(f"functrans.scipy.signal.windows.dpss: NW is {NW}.",
                            where=user_source(), why="it is between 0 and M / 2.")
    n = np.arange(M)
    diagonal = (_places(M)) ** 2 * math.cos(2 * math.pi * NW / M)
    beside = n[1:] * (M - n[1:]) / 2
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    first = np.linalg.eigh(matrix)[1][:, -1]
    first = first * np.sign(first.sum())
    largest = first.max()
    if M % 2 == 0:  # its middle is between two points
        largest = largest * (M**2 / (M**2 + NW))**-1
    return first / largest


_FLATTOP = (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)
FORMS: Final[Mapping[str, Callable[..., Values]]] = MappingProxyType({
    "barthann": _barthann,
    "bartlett": _bartlett,
    "blackman": lambda M: _cosines(M, (0.42, 0.50, 0.08)),
    "blackmanharris": lambda M: _cosines(M, (0.35875, 0.48829, 0.14128, 0.01168)),
    "bohman": _bohman,
    "boxcar": np.ones,
    "chebwin": _chebwin,
    "cosine": _cosine,
    "dpss": _dpss,
    "exponential": _exponential,
    "flattop": lambda M: _cosines(M, _FLATTOP),
    "gaussian": _gaussian,
    "general_cosine": _cosines,
    "general_gaussian": _general_gaussian,
    "general_hamming": _hamming,
    "hamming": lambda M: _hamming(M, 0.54),
    "hann": lambda M: _hamming(M, 0.5),
    "kaiser": _kaiser,
    "kaiser_bessel_derived": _kaiser_bessel_derived,
    "lanczos": _lanczos,
    "nuttall": lambda M: _cosines(M, (0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    "parzen": _parzen,
    "taylor": _taylor,
    "triang": _triang,
    "tukey": _tukey,
})


def values_of(name: str, M: int, sym: bool, parameters: Sequence[Any] = ()) -> Values:
    """M values of a window; without `sym` those of M + 1 less the last, which is as the first."""
    M = known_size(f"signal.windows.{name}", "M", M, 0)
    if M <= 1:
        return np.ones(M)
    values = FORMS[name](M if sym else M + 1, *parameters)
    return values[:M]
