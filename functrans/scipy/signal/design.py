"""Filters by their frequencies: windows of sinc, and the classical recursive ones.

They are computed in float64 from values that Python knows, and given in the default float, whose
digits may be few for recursive filters of high order: `output="sos"`, or
`with ft.default_dtypes("float64")`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_complex, default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, one_of
from functrans.scipy.signal.prototypes import (
    Zeros,
    butterworth,
    chebyshev_1,
    chebyshev_2,
    digital,
    sections_of,
    transfer_of,
    transformed,
)
from functrans.scipy.signal.windows.named import window_values
from functrans.typing import Array

Cutoff = float | Sequence[float]
_BANDS = {"lowpass": "lowpass", "low": "lowpass", "lp": "lowpass", "highpass": "highpass",
          "high": "highpass", "hp": "highpass", "bandpass": "bandpass", "band": "bandpass",
          "bp": "bandpass", "bandstop": "bandstop", "stop": "bandstop", "bs": "bandstop"}


def butter(N: int, Wn: Cutoff, btype: str = "low", analog: bool = False, output: str = "ba",
           fs: float | None = None) -> tuple[Array, ...] | Array:
    """Butterworth's filter of order N, flat in its pass band, 3 dB down at Wn.

    Wn is a fraction of the Nyquist frequency (of `fs`), or a pair for "bandpass" and "bandstop".
    `output` is "ba" (numerator and denominator), "sos" (sections of second order) or "zpk" (zeros,
    poles, gain). Raises ArgumentError for frequencies out of range.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.butter(1, 0.5)
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    return made("butter", butterworth(_order("butter", N)), Wn, btype, analog, output, fs)


def cheby1(N: int, rp: float, Wn: Cutoff, btype: str = "low", analog: bool = False,
           output: str = "ba", fs: float | None = None) -> tuple[Array, ...] | Array:
    """Chebyshev's filter of order N with ripples of `rp` dB in its pass band; see `butter`.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.cheby1(1, 3.0, 0.5)
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    prototype = chebyshev_1(_order("cheby1", N), float(rp))
    return made("cheby1", prototype, Wn, btype, analog, output, fs)


def cheby2(N: int, rs: float, Wn: Cutoff, btype: str = "low", analog: bool = False,
           output: str = "ba", fs: float | None = None) -> tuple[Array, ...] | Array:
    """Chebyshev's filter of order N with ripples in its stop band, `rs` dB down; see `butter`.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.cheby2(1, 3.0, 0.5)
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    prototype = chebyshev_2(_order("cheby2", N), float(rs))
    return made("cheby2", prototype, Wn, btype, analog, output, fs)


def _order(name: str, N: int) -> int:
    return known_size(f"signal.{name}", "N", N, 0)


def made(name: str, prototype: Zeros, Wn: Cutoff, btype: str, analog: bool, output: str,
         fs: float | None) -> tuple[Array, ...] | Array:
    """A prototype as a filter of a band, in the form of `output`."""
    one_of(f"signal.{name}", "btype", btype.lower(), tuple(_BANDS))
    one_of(f"signal.{name}", "output", output, ("ba", "zpk", "sos"))
    band = _BANDS[btype.lower()]
    edges = np.atleast_1d(np.asarray(Wn, np.float64))
    wanted = 2 if band.startswith("band") else 1
    if edges.shape != (wanted,):
        raise ArgumentError(f"functrans.scipy.signal.{name}: Wn is {Wn}.", where=user_source(),
                            why=f"btype={btype!r} has {wanted} of them.")
    if fs is not None:
        if analog:
            raise ArgumentError(f"functrans.scipy.signal.{name}: an analog filter has no fs.",
                                where=user_source())
        edges = 2 * edges / float(fs)
    if (edges <= 0).any() or (not analog and (edges >= 1).any()):
        raise ArgumentError(f"functrans.scipy.signal.{name}: Wn is {Wn}.", where=user_source(),
                            why="frequencies are between 0 and half of the sampling rate.")
    found = transformed(prototype, edges if analog else 4 * np.tan(np.pi * edges / 2), band)
    if not analog:
        found = digital(found, 2.0)
    if output == "sos":
        return jnp.asarray(sections_of(found)).astype(default_float())
    if output == "ba":
        return tuple(jnp.asarray(v).astype(default_float()) for v in transfer_of(found))
    return (jnp.asarray(found.zeros).astype(default_complex()),
            jnp.asarray(found.poles).astype(default_complex()),
            jnp.asarray(found.gain).astype(default_float()))


def sections_of_cheby1(order: int, ripple: float, edge: float) -> np.ndarray[Any, Any]:
    """The sections of a digital low pass in float64."""
    warped = np.atleast_1d(4 * np.tan(np.pi * edge / 2))
    return sections_of(digital(transformed(chebyshev_1(order, ripple), warped, "lowpass"), 2.0))


def firwin(numtaps: int, cutoff: Cutoff, *, width: float | None = None, window: Any = "hamming",
           pass_zero: bool | str = True, scale: bool = True, fs: float | None = None) -> Array:
    """The filter of `numtaps` coefficients with pass bands between `cutoff`, by a window of sinc.

    `pass_zero` says whether 0 is in a pass band, or names the type: "lowpass", "highpass",
    "bandpass" or "bandstop". With `scale` the middle of the first pass band is passed as it is.
    Raises ArgumentError for an even number of coefficients that would have to pass the Nyquist
    frequency.

    >>> import functrans as ft
    >>> print(ft.scipy.signal.firwin(3, 0.5).round(4))
    [0.0462 0.9076 0.0462]
    """
    values = windowed_sinc(numtaps, cutoff, width, window, pass_zero, scale, fs)
    return jnp.asarray(values).astype(default_float())


def firwin_2d(hsize: Sequence[int], window: Any, *, fc: Any = None, fs: float = 2,
              circular: bool = False, pass_zero: bool | str = True, scale: bool = True) -> Array:
    """The coefficients (rows, columns) of a filter of images, by the method of `firwin`.

    `window` is a pair, for rows and columns, whose filters are multiplied; with `circular` it is
    one, whose filter is turned around the middle. Raises ArgumentError where `circular` has no
    `fc`, or sizes do not fit.

    >>> import functrans as ft
    >>> ft.scipy.signal.firwin_2d((3, 3), ("hamming", "hamming"), fc=0.5).shape
    (3, 3)
    """
    if np.shape(hsize) != (2,):
        raise ArgumentError(f"functrans.scipy.signal.firwin_2d: hsize is {hsize}.",
                            where=user_source(), why="it is (rows, columns).")
    rows, columns = (known_size("signal.firwin_2d", "hsize", n) for n in hsize)
    if fc is None:
        raise ArgumentError("functrans.scipy.signal.firwin_2d: fc is None.", where=user_source(),
                            why="it is the frequency where the pass band ends.", fix="fc=0.5")
    if circular:
        size = 8 * max(rows, columns)
        around = windowed_sinc(size, fc, None, window, pass_zero, scale, fs)
        x, y = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns))
        values = np.interp(np.hypot(x, y), np.linspace(0, 1, size), around)
        return jnp.asarray(values).astype(default_float())
    if isinstance(window, str) or len(window) != 2:
        raise ArgumentError(f"functrans.scipy.signal.firwin_2d: window is {window!r}.",
                            where=user_source(), why="it is a pair, for rows and columns.",
                            fix="window=('hamming', 'hamming')")
    first, second = (windowed_sinc(n, fc, None, w, pass_zero, scale, fs)
                     for n, w in zip((rows, columns), window))
    return jnp.asarray(np.outer(first, second)).astype(default_float())


def gammatone(freq: float, ftype: str, order: int | None = None, numtaps: int | None = None,
              fs: float | None = None) -> tuple[Array, Array]:
    """Numerator and denominator of a filter of the human ear around a frequency.

    `ftype` is "fir", with `numtaps` coefficients (those of 15 ms) and an order (4) up to 24, or
    "iir", of order 4. `fs` is the sampling rate, 2 by default.
    Source: Slaney, An Efficient Implementation of the Patterson-Holdsworth Auditory Filter Bank,
    Apple TR 35 (1993); Glasberg and Moore, Hear. Res. 47 (1990).

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.gammatone(440, "iir", fs=16000)
    >>> b.shape, a.shape
    ((5,), (9,))
    """
    how = ftype.lower()
    one_of("signal.gammatone", "ftype", how, ("fir", "iir"))
    rate = 2.0 if fs is None else float(fs)
    if not 0 < freq < rate / 2:
        raise ArgumentError(f"functrans.scipy.signal.gammatone: freq is {freq}.",
                            where=user_source(), why=f"it is between 0 and {rate / 2}.")
    width = 2 * np.pi * 1.019 * (freq / 9.26449 + 24.7)  # of the filter of an ear, in radians
    angle = 2 * np.pi * freq / rate
    if how == "fir":
        n = known_size("signal.gammatone", "order", 4 if order is None else order)
        if n > 24:
            raise ArgumentError(f"functrans.scipy.signal.gammatone: order is {n}.",
                                where=user_source(), why="it is 24 at most.")
        size = max(int(rate * 0.015), 15) if numtaps is None else known_size(
            "signal.gammatone", "numtaps", numtaps)
        t = np.arange(size) / rate
        scale = 2 * width**n / math.factorial(n - 1) / rate
        b: Any = scale * t ** (n - 1) * np.exp(-width * t) * np.cos(2 * np.pi * freq * t)
        a: Any = np.ones(1)
    else:
        if order is not None or numtaps is not None:
            raise ArgumentError("functrans.scipy.signal.gammatone: ftype is 'iir'.",
                                where=user_source(), why="it has order 4, and 5 coefficients.",
                                fix="order=None, numtaps=None")
        pole = np.exp(-width / rate + 1j * angle)
        k = np.arange(5)
        b = np.array([1, -4, 6, -4, 1]) * (pole**k).real
        a = np.poly(np.repeat([pole, pole.conjugate()], 4)).real
        # 1 at the frequency: both polynomials by their factors, which keep their digits
        near, far = -np.expm1(-width / rate), -np.expm1(-width / rate - 2j * angle)
        b = b * abs(2 * (near * far) ** 4 / (near**4 + far**4))
    return jnp.asarray(b).astype(default_float()), jnp.asarray(a).astype(default_float())


def windowed_sinc(numtaps: int, cutoff: Cutoff, width: float | None = None,
                  window: Any = "hamming", pass_zero: bool | str = True, scale: bool = True,
                  fs: float | None = None) -> np.ndarray[Any, Any]:
    """The coefficients of `firwin` in float64."""
    size = known_size("signal.firwin", "numtaps", numtaps)
    nyquist = 1.0 if fs is None else float(fs) / 2
    edges = np.atleast_1d(np.asarray(cutoff, np.float64)) / nyquist
    if edges.ndim != 1 or not edges.size or (edges <= 0).any() or (edges >= 1).any() \
            or (np.diff(edges) <= 0).any():
        raise ArgumentError(f"functrans.scipy.signal.firwin: cutoff is {cutoff}.",
                            where=user_source(), why="frequencies grow, between 0 and half of the "
                            "sampling rate.")
    if width is not None:
        window = ("kaiser", kaiser_parameter(2.285 * (size - 1) * np.pi * width / nyquist + 7.95))
    if isinstance(pass_zero, str):
        one_of("signal.firwin", "pass_zero", pass_zero,
               ("bandstop", "lowpass", "bandpass", "highpass"))
        pass_zero = pass_zero in ("bandstop", "lowpass")
    passes_end = bool(edges.size % 2) != bool(pass_zero)
    if passes_end and size % 2 == 0:
        raise ArgumentError(f"functrans.scipy.signal.firwin: numtaps is {size}.",
                            where=user_source(), why="an even number of coefficients cannot pass "
                            "the Nyquist frequency.", fix=f"numtaps={size + 1}")
    edges = np.concatenate([[0.0] if pass_zero else [], edges, [1.0] if passes_end else []])
    bands = edges.reshape(-1, 2)
    m = np.arange(size) - (size - 1) / 2
    taps = sum(right * np.sinc(right * m) - left * np.sinc(left * m) for left, right in bands)
    taps = np.asarray(taps * np.asarray(window_values(window, size, sym=True)))
    if scale:
        left, right = bands[0]
        middle = 0.0 if left == 0 else 1.0 if right == 1 else (left + right) / 2
        taps = taps / np.sum(taps * np.cos(np.pi * m * middle))
    return np.asarray(taps)


def kaiser_parameter(attenuation: float) -> float:
    """Kaiser's parameter for an attenuation in dB: Oppenheim and Schafer (2009), eq. 7.75."""
    if attenuation > 50:
        return 0.1102 * (attenuation - 8.7)
    if attenuation > 21:
        return float(0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21))
    return 0.0
