"""Recursive filters as zeros, poles and gain in NumPy: prototypes, bands, and their other forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Values = np.ndarray[Any, Any]


class Zeros(NamedTuple):
    """A rational function by its zeros, its poles and its gain."""

    zeros: Values
    poles: Values
    gain: float

    @property
    def degree(self) -> int:
        """How many zeros are at infinity."""
        return len(self.poles) - len(self.zeros)


def _steps(N: int) -> Values:
    return np.arange(-N + 1, N, 2)


def butterworth(N: int) -> Zeros:
    """Poles on half a circle."""
    return Zeros(np.zeros(0), -np.exp(1j * np.pi * _steps(N) / (2 * N)) if N else np.zeros(0), 1.0)


def chebyshev_1(N: int, rp: float) -> Zeros:
    """Poles on half an ellipse; ripples of rp dB in the pass band."""
    if N == 0:
        return Zeros(np.zeros(0), np.zeros(0), 10 ** (-rp / 20))
    eps = np.sqrt(10 ** (0.1 * rp) - 1)
    poles = -np.sinh(np.arcsinh(1 / eps) / N + 1j * np.pi * _steps(N) / (2 * N))
    gain = np.prod(-poles).real
    return Zeros(np.zeros(0), poles, float(gain if N % 2 else gain / np.sqrt(1 + eps**2)))


def chebyshev_2(N: int, rs: float) -> Zeros:
    """The inverse of the first kind: ripples in the stop band, rs dB down."""
    if N == 0:
        return Zeros(np.zeros(0), np.zeros(0), 1.0)
    mu = np.arcsinh(np.sqrt(10 ** (0.1 * rs) - 1)) / N
    steps = _steps(N)[_steps(N) != 0]
    zeros = 1j / np.sin(steps * np.pi / (2 * N))
    circle = -np.exp(1j * np.pi * _steps(N) / (2 * N))
    poles = 1 / (np.sinh(mu) * circle.real + 1j * np.cosh(mu) * circle.imag)
    return Zeros(zeros, poles, float((np.prod(-poles) / np.prod(-zeros)).real))


def transformed(filter: Zeros, edges: Values, band: str) -> Zeros:
    """A low pass with the edge 1 as one of another band, in the s plane."""
    z, p, k = filter
    if band == "lowpass":
        w = float(edges[0])
        return Zeros(z * w, p * w, k * w**filter.degree)
    if band == "highpass":
        w = float(edges[0])
        gain = k * (np.prod(-z) / np.prod(-p)).real
        return Zeros(np.concatenate([w / z, np.zeros(filter.degree)]), w / p, float(gain))
    width, middle = float(edges[1] - edges[0]), float(np.sqrt(edges[0] * edges[1]))

    def split(x: Values) -> Values:
        root = np.sqrt(x.astype(complex) ** 2 - middle**2)
        return np.concatenate([x + root, x - root])

    if band == "bandpass":
        zeros = np.concatenate([split(z * width / 2), np.zeros(filter.degree)])
        return Zeros(zeros, split(p * width / 2), k * width**filter.degree)
    stopped = np.full(filter.degree, 1j * middle)
    zeros = np.concatenate([split(width / 2 / z), stopped, -stopped])
    gain = k * (np.prod(-z) / np.prod(-p)).real
    return Zeros(zeros, split(width / 2 / p), float(gain))


def digital(filter: Zeros, fs: float) -> Zeros:
    """The bilinear transform, for a sampling rate fs."""
    z, p, k = filter
    rate = 2 * fs
    gain = k * (np.prod(rate - z) / np.prod(rate - p)).real
    zeros = np.concatenate([(rate + z) / (rate - z), -np.ones(filter.degree)])
    return Zeros(zeros, (rate + p) / (rate - p), float(gain))


def transfer_of(filter: Zeros) -> tuple[Values, Values]:
    """Numerator and denominator; roots of real filters come in conjugated pairs."""
    return filter.gain * np.atleast_1d(np.poly(filter.zeros).real), \
        np.atleast_1d(np.poly(filter.poles).real)


def sections_of(filter: Zeros) -> Values:
    """Sections of second order, the poles nearest to the circle last, each with its next zeros."""
    z, p = list(filter.zeros), list(filter.poles)
    if not z and not p:
        return np.array([[filter.gain, 0, 0, 1, 0, 0]])
    count = (max(len(z), len(p)) + 1) // 2
    z += [0j] * (2 * count - len(z))
    p += [0j] * (2 * count - len(p))
    zeros, poles = _paired(z), _paired(p)
    sections = []
    for _ in range(count):
        at = int(np.argmin([abs(1 - abs(x)) for x in poles]))
        p1 = poles.pop(at)
        reals = [i for i, x in enumerate(poles) if x.imag == 0]
        if p1.imag == 0 and not [x for i, x in enumerate(poles) if i not in reals] \
                and len(reals) == 1 and len([x for x in zeros if x.imag == 0]) <= 0:
            p2 = poles.pop(reals[0])
        elif p1.imag == 0:
            p2 = poles.pop(min(reals, key=lambda i: abs(1 - abs(poles[i]))))
        else:
            p2 = poles.pop(poles.index(np.conj(p1)))
        near = int(np.argmin([abs(x - p1) for x in zeros]))
        z1 = zeros.pop(near)
        if z1.imag == 0:
            others = [i for i, x in enumerate(zeros) if x.imag == 0]
            z2 = zeros.pop(min(others, key=lambda i: abs(zeros[i] - p1)))
        else:
            z2 = zeros.pop(zeros.index(np.conj(z1)))
        sections.append([*np.poly([z1, z2]).real, *np.poly([p1, p2]).real])
    found = np.array(sections[::-1])
    found[0, :3] *= filter.gain
    return found


def _paired(roots: list[Any]) -> list[Any]:
    """Roots with exact conjugates, and reals without an imaginary part."""
    found: list[Any] = []
    for x in roots:
        if abs(x.imag) <= 1e-8 * max(abs(x), 1e-300):
            found.append(complex(x.real))
        elif x.imag > 0:
            found += [complex(x), complex(x).conjugate()]
    return found
