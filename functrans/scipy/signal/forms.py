"""Forms of filters, analog ones, delays, and windows of FIR filters by their attenuation."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_complex, default_float
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, known_values, value_of
from functrans.scipy.signal.design import kaiser_parameter
from functrans.scipy.signal.prototypes import Zeros, sections_of
from functrans.scipy.signal.responses import angles
from functrans.scipy.signal.windows.named import window_values
from functrans.typing import Array, ArrayLike

_SMALL: Final = 1e-14  # coefficients that count as 0, as in SciPy


def known_numbers(name: str, *values: ArrayLike) -> list[Any]:
    """Coefficients as NumPy arrays; raises ArgumentError for tracers."""
    return [known_values(f"signal.{name}", "a coefficient", v, "roots are paired by their values.",
                         "compute it before jit") for v in values]


def tf2zpk(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """Zeros, poles and gain of a numerator and a denominator.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.tf2zpk([2.0, -2.0], [1.0, -0.5])
    >>> z.real.tolist(), p.real.tolist(), float(k)
    ([1.0], [0.5], 2.0)
    """
    found = _zeros_of("tf2zpk", b, a)
    return (jnp.asarray(found.zeros).astype(default_complex()),
            jnp.asarray(found.poles).astype(default_complex()),
            jnp.asarray(found.gain).astype(default_float()))


def _zeros_of(name: str, b: ArrayLike, a: ArrayLike) -> Zeros:
    top, bottom = (np.atleast_1d(v).astype(float) for v in known_numbers(name, b, a))
    top = np.trim_zeros(top, "f") if top.any() else top[:1]
    return Zeros(np.roots(top), np.roots(bottom), float(top[0] / bottom[0]))


def zpk2sos(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Array:
    """Sections of second order of zeros, poles and a gain, the poles nearest to the circle last.

    >>> import functrans as ft
    >>> ft.scipy.signal.zpk2sos([1.0], [0.5], 2.0).tolist()
    [[2.0, -2.0, 0.0, 1.0, -0.5, 0.0]]
    """
    zeros, poles, gain = known_numbers("zpk2sos", z, p, k)
    found = Zeros(np.atleast_1d(zeros).astype(complex), np.atleast_1d(poles).astype(complex),
                  float(gain))
    return jnp.asarray(sections_of(found)).astype(default_float())


def tf2sos(b: ArrayLike, a: ArrayLike) -> Array:
    """Sections of second order of a numerator and a denominator.

    >>> import functrans as ft
    >>> ft.scipy.signal.tf2sos([2.0, -2.0], [1.0, -0.5]).tolist()
    [[2.0, -2.0, 0.0, 1.0, -0.5, 0.0]]
    """
    found = _zeros_of("tf2sos", b, a)
    return zpk2sos(found.zeros, found.poles, found.gain)


def sos2zpk(sos: ArrayLike) -> tuple[Array, Array, Array]:
    """Zeros, poles and gain of sections of second order.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.sos2zpk([[2.0, -2.0, 0.0, 1.0, -0.5, 0.0]])
    >>> z.real.tolist(), p.real.tolist(), float(k)
    ([1.0, 0.0], [0.5, 0.0], 2.0)
    """
    (sections,) = known_numbers("sos2zpk", sos)
    zeros, poles, gain = [np.zeros(0, complex)], [np.zeros(0, complex)], 1.0
    for row in sections:
        for part, into in ((row[:3], zeros), (row[3:], poles)):
            roots = np.roots(part)
            into.append(np.concatenate([roots, np.zeros(2 - len(roots))]))
        gain *= float(row[0] / row[3])
    return (jnp.asarray(np.concatenate(zeros)).astype(default_complex()),
            jnp.asarray(np.concatenate(poles)).astype(default_complex()),
            jnp.asarray(gain).astype(default_float()))


def bilinear(b: ArrayLike, a: ArrayLike, fs: ArrayLike = 1.0) -> tuple[Array, Array]:
    """The digital filter of an analog one, by s = 2 fs (z - 1) / (z + 1).

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.bilinear([1.0], [1.0, 2.0], fs=1.0)
    >>> b.tolist(), a.tolist()
    ([0.25, 0.25], [1.0, 0.0])
    """
    top, bottom = (jnp.atleast_1d(v) for v in inexact(b, a))
    twice = 2 * jnp.asarray(fs)
    order = max(top.shape[0], bottom.shape[0]) - 1
    found = []
    for v in (top, bottom):
        total = jnp.zeros(order + 1, v.dtype)
        for i in range(v.shape[0]):
            power = v.shape[0] - 1 - i
            plus, minus = np.poly(-np.ones(order - power)), np.poly(np.ones(power))
            total = total + v[i] * twice**power * jnp.asarray(
                np.convolve(plus, minus)).astype(v.dtype)
        found.append(total)
    return found[0] / found[1][0], found[1] / found[1][0]


def freqs(b: ArrayLike, a: ArrayLike, worN: ArrayLike) -> tuple[Array, Array]:
    """The response of an analog filter at angular frequencies.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.freqs([1.0], [1.0, 1.0], [0.0, 1.0])
    >>> print(abs(h).round(4))
    [1.     0.7071]
    """
    top, bottom = (jnp.atleast_1d(v) for v in inexact(b, a))
    (w,) = inexact(worN)
    w = jnp.atleast_1d(w)
    return w, jnp.polyval(top, 1j * w) / jnp.polyval(bottom, 1j * w)


def freqz_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, worN: int | ArrayLike | None = 512,
              whole: bool = False, fs: ArrayLike = 2 * math.pi) -> tuple[Array, Array]:
    """Frequencies, and the response of a digital filter of zeros and poles there; see `freqz`.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.freqz_zpk([-1.0], [], 0.5, worN=2)
    >>> print(abs(h).round(4))
    [1.     0.7071]
    """
    zeros, poles, gain = inexact(z, p, k)
    w = angles(worN, whole, False, fs)
    at = jnp.exp(1j * w)[:, None]
    h = gain * jnp.prod(at - zeros.reshape(-1), axis=1) / jnp.prod(at - poles.reshape(-1), axis=1)
    return w * fs / (2 * math.pi), h


def group_delay(system: tuple[ArrayLike, ArrayLike], w: int | ArrayLike | None = 512,
                whole: bool = False, fs: ArrayLike = 2 * math.pi) -> tuple[Array, Array]:
    """Frequencies, and by how many samples a digital filter (b, a) delays an envelope there.

    >>> import functrans as ft
    >>> w, delay = ft.scipy.signal.group_delay(([1.0, 2.0, 1.0], [1.0]), w=2)
    >>> delay.round(3).tolist()
    [1.0, 1.0]
    """
    b, a = (jnp.atleast_1d(v) for v in inexact(*system))
    at_angles = angles(w, whole, False, fs)
    c = jnp.convolve(b, jnp.conj(a[::-1]))
    ramp = c * jnp.arange(c.shape[0])
    at = jnp.exp(-1j * at_angles)
    top, bottom = jnp.polyval(ramp[::-1], at), jnp.polyval(c[::-1], at)
    singular = jnp.abs(bottom) < 10 * jnp.finfo(c.dtype).eps
    delay = jnp.real(top / jnp.where(singular, 1, bottom)) - (a.shape[0] - 1)
    return at_angles * fs / (2 * math.pi), jnp.where(singular, 0, delay)


def kaiser_beta(a: float) -> float:
    """The parameter of Kaiser's window for an attenuation in dB.

    >>> import functrans as ft
    >>> round(ft.scipy.signal.kaiser_beta(65), 4)
    6.2043
    """
    return kaiser_parameter(float(a))


def kaiser_atten(numtaps: int, width: float) -> float:
    """The attenuation in dB of a filter by Kaiser's window, of a transition of `width` of Nyquist.

    >>> import functrans as ft
    >>> round(ft.scipy.signal.kaiser_atten(211, 0.0375), 4)
    64.481
    """
    return 2.285 * (numtaps - 1) * math.pi * width + 7.95


def kaiserord(ripple: float, width: float) -> tuple[int, float]:
    """How many coefficients a filter by Kaiser's window needs, and its parameter.

    >>> import functrans as ft
    >>> ft.scipy.signal.kaiserord(65, 0.1)[0]
    81
    """
    a = abs(float(ripple))
    if a < 8:
        raise ArgumentError(f"functrans.scipy.signal.kaiserord: ripple is {ripple} dB.",
                            where=user_source(), why="Kaiser's formula holds from 8 dB on.")
    return math.ceil((a - 7.95) / 2.285 / (math.pi * width) + 1), kaiser_beta(a)


def firwin2(numtaps: int, freq: ArrayLike, gain: ArrayLike, *, nfreqs: int | None = None,
            window: Any = "hamming", antisymmetric: bool = False, fs: float = 2.0) -> Array:
    """The filter of `numtaps` coefficients with gains at frequencies, by a window.

    `freq` grows from 0 to fs / 2; equal ones are jumps. The result is differentiated in gains.

    >>> import functrans as ft
    >>> print(abs(ft.scipy.signal.firwin2(5, [0.0, 1.0], [1.0, 1.0])).round(3))
    [0. 0. 1. 0. 0.]
    """
    size = known_size("signal.firwin2", "numtaps", numtaps)
    (edges,) = known_numbers("firwin2", freq)
    nyquist = fs / 2
    edges = edges.astype(float)
    (values,) = inexact(gain)
    if edges.shape != values.shape or edges[0] != 0 or edges[-1] != nyquist or (
            np.diff(edges) < 0).any():
        raise ArgumentError("functrans.scipy.signal.firwin2: freq does not fit.",
                            where=user_source(), why="it grows from 0 to fs / 2, with a gain each.")
    count = 1 + 2 ** math.ceil(math.log2(size)) if nfreqs is None else int(nfreqs)
    if count <= size // 2:
        raise ArgumentError(f"functrans.scipy.signal.firwin2: nfreqs is {count}.",
                            where=user_source(), why="it is more than half of numtaps.")
    jumps = np.flatnonzero(np.diff(edges) == 0)
    step = np.finfo(float).eps * nyquist
    for k in jumps:
        edges[k] -= step
        edges[k + 1] += step
    x = np.linspace(0, nyquist, count)
    fx = jnp.interp(jnp.asarray(x).astype(values.dtype), jnp.asarray(edges).astype(values.dtype),
                    values) if not len(jumps) else jnp.asarray(
                        _weights_of_interp(x, edges)).astype(values.dtype) @ values
    shift = np.exp(-(size - 1) / 2 * 1j * np.pi * x / nyquist) * (1j if antisymmetric else 1)
    taps = jnp.fft.irfft(fx * jnp.asarray(shift))[:size]
    if window is not None:
        taps = taps * jnp.asarray(np.asarray(window_values(window, size, sym=True)))
    if antisymmetric and size % 2:
        taps = taps.at[size // 2].set(0)
    return taps.astype(values.dtype)


def _weights_of_interp(x: Any, edges: Any) -> Any:
    """The matrix of linear interpolation in float64, for edges that are eps apart."""
    return np.stack([np.interp(x, edges, row) for row in np.eye(len(edges))], axis=1)


def firls(numtaps: int, bands: ArrayLike, desired: ArrayLike, *, weight: ArrayLike | None = None,
          fs: float = 2.0) -> Array:
    """The symmetric filter of an odd number of coefficients nearest to gains in bands.

    `bands` are pairs of frequencies, `desired` the gains at both, `weight` one for each band, of
    the integral of squares. Source: Selesnick, Linear-Phase FIR Filter Design By Least Squares.

    >>> import functrans as ft
    >>> print(ft.scipy.signal.firls(3, [0.0, 1.0], [1.0, 1.0]).round(3))
    [0. 1. 0.]
    """
    size = known_size("signal.firls", "numtaps", numtaps)
    if size % 2 == 0:
        raise ArgumentError(f"functrans.scipy.signal.firls: numtaps is {size}.",
                            where=user_source(), why="it is odd.", fix=f"numtaps={size + 1}")
    edges = np.asarray(bands, float).reshape(-1, 2) / (fs / 2)
    gains = np.asarray(desired, float).reshape(-1, 2)
    weights = np.ones(len(edges)) if weight is None else np.asarray(weight, float)
    if gains.shape != edges.shape or weights.shape != (len(edges),) or (
            np.diff(edges.reshape(-1)) < 0).any() or (np.diff(edges) <= 0).any():
        raise ArgumentError("functrans.scipy.signal.firls: bands, desired and weight do not fit.",
                            where=user_source(), why="bands grow, with two gains each.")
    half = (size - 1) // 2
    n = np.arange(size)[:, None]
    q = np.sum(np.diff(np.sinc(edges * n[..., None]) * edges, axis=-1)[..., 0] * weights, axis=1)
    index = np.arange(half + 1)
    matrix = q[np.abs(index[:, None] - index)] + q[index[:, None] + index]
    slope = np.diff(gains, axis=1) / np.diff(edges, axis=1)
    start = gains[:, :1] - edges[:, :1] * slope
    b = edges * (slope * edges + start) * np.sinc(edges * index[:, None, None])
    at = index[1:, None, None]
    b[0] -= slope * edges * edges / 2
    b[1:] += slope * np.cos(at * np.pi * edges) / (np.pi * at) ** 2
    right = np.sum(np.diff(b, axis=2)[..., 0] * weights, axis=1)
    a = np.linalg.lstsq(matrix, right, rcond=None)[0]
    taps = np.concatenate([a[:0:-1], 2 * a[:1], a[1:]])
    return jnp.asarray(taps).astype(default_float())


class BadCoefficients(UserWarning):
    """A numerator begins with zeros, which are dropped: a filter may be badly conditioned.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", BadCoefficients)
    ...     normalize([0.0, 2.0], [2.0, 1.0])[0].tolist()
    [1.0]
    """


def normalize(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """A numerator, or rows of such, and a denominator, divided by the latter's first coefficient.

    Leading zeros are dropped where values are known, with a warning, `BadCoefficients`, of those of
    a numerator. Raises ArgumentError for a denominator of zeros.

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.signal.normalize([2.0], [2.0, 1.0])]
    [[1.0], [1.0, 0.5]]
    """
    top, bottom = (jnp.atleast_1d(v) for v in inexact(b, a))
    if bottom.ndim != 1 or top.ndim > 2:
        raise ShapeError(f"functrans.scipy.signal.normalize: b has shape {top.shape}, a "
                         f"{bottom.shape}.", where=user_source(),
                         why="a is a vector, and b a vector or rows.")
    known = value_of(bottom)
    if known is not None:
        some = np.flatnonzero(known)
        if not some.size:
            raise ArgumentError("functrans.scipy.signal.normalize: the denominator is 0.",
                                where=user_source())
        bottom = bottom[int(some[0]):]
    top, bottom = top / bottom[0], bottom / bottom[0]
    known = value_of(top)
    if known is not None and known.size:
        large = np.flatnonzero((np.abs(np.atleast_2d(known)) > _SMALL).any(0))
        zeros = int(large[0]) if large.size else known.shape[-1]
        if zeros:
            warnings.warn("the numerator of a filter begins with zeros, which are dropped",
                          BadCoefficients, stacklevel=2)
            top = top[..., min(zeros, known.shape[-1] - 1):]
    return (top[0] if top.ndim == 2 and top.shape[0] == 1 else top), bottom
