"""Spectra of segments of signals: densities, coherence, spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, slice_axis
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.axes import frames
from functrans.scipy.signal.detrending import detrend as remove_trend
from functrans.scipy.signal.windows.named import cast_window, segment_window
from functrans.typing import Array, ArrayLike

Detrend = str | bool | Callable[[Array], Array]


class Segments(NamedTuple):
    """How a signal is cut: points of a segment, of two that overlap, and of a transform."""

    size: int
    overlap: int
    points: int

    @property
    def step(self) -> int:
        """From one segment to the next."""
        return self.size - self.overlap


def segments_of(name: str, size: int, noverlap: int | None, nfft: int | None,
                overlap: int | None = None) -> Segments:
    """The sizes that the arguments ask for; half of a segment overlaps by default."""
    shared = size // 2 if overlap is None else overlap
    if noverlap is not None:
        shared = known_size(f"signal.{name}", "noverlap", noverlap, 0)
    points = size if nfft is None else known_size(f"signal.{name}", "nfft", nfft)
    if shared >= size:
        raise ArgumentError(f"functrans.scipy.signal.{name}: noverlap is {shared}.",
                            where=user_source(), why=f"it is less than nperseg, which is {size}.")
    if points < size:
        raise ArgumentError(f"functrans.scipy.signal.{name}: nfft is {points}.",
                            where=user_source(), why=f"it is at least nperseg, which is {size}.")
    return Segments(size, shared, points)


def transformed(x: Array, window: Array, cut: Segments, detrend: Detrend, onesided: bool) -> Array:
    """The transforms of all segments along the last axis: (..., segments, frequencies)."""
    pieces = frames(x, cut.size, cut.step)
    if callable(detrend):
        pieces = detrend(pieces)
    elif detrend:
        pieces = remove_trend(pieces, type=str(detrend))
    pieces = pieces * window
    return jnp.fft.rfft(pieces, cut.points) if onesided else jnp.fft.fft(pieces, cut.points)


def frequencies(points: int, fs: ArrayLike, onesided: bool, like: Array) -> Array:
    """The frequencies of a transform, as exact as the signal is."""
    unit = (np.fft.rfftfreq if onesided else np.fft.fftfreq)(points)
    dtype = jnp.promote_types(default_float(), jnp.finfo(like.dtype).dtype)
    return jnp.asarray(unit).astype(dtype) * fs


def csd(x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: Any = "hann",
        nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
        detrend: Detrend = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """Frequencies and the cross spectral density of x and y, by Welch's method.

    Segments of `nperseg` points (256) with `noverlap` common ones (half of them) are detrended
    ("constant", "linear", False or a function), multiplied by the window and transformed with
    `nfft` points; the products are averaged ("mean" or "median"). `scaling` is "density" or
    "spectrum". Real signals have one side of a spectrum unless `return_onesided` is False.
    Source: P. Welch, IEEE Trans. Audio Electroacoust. 15 (1967).

    >>> import functrans as ft
    >>> x = ft.numpy.sin(ft.numpy.arange(64.0) * 2 * ft.numpy.pi / 8)
    >>> f, p = ft.scipy.signal.csd(x, x, nperseg=16)
    >>> float(f[p.real.argmax()])
    0.125
    """
    one_of("signal.csd", "average", average, ("mean", "median"))
    freqs, spectrum, _ = _spectra("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend,
                                  return_onesided, scaling, axis)
    if average == "mean":
        return freqs, jnp.mean(spectrum, axis=-1)
    count = spectrum.shape[-1]
    bias = _median_bias(count)
    if dtypes.kind(spectrum.dtype) == "c":
        middle = jnp.median(spectrum.real, axis=-1) + 1j * jnp.median(spectrum.imag, axis=-1)
    else:
        middle = jnp.median(spectrum, axis=-1)
    return freqs, middle.astype(spectrum.dtype) / bias


def welch(x: ArrayLike, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """Frequencies and the power spectral density of x; see `csd`.

    >>> import functrans as ft
    >>> x = ft.numpy.sin(ft.numpy.arange(64.0) * 2 * ft.numpy.pi / 8)
    >>> f, p = ft.scipy.signal.welch(x, nperseg=16)
    >>> float(f[p.argmax()])
    0.125
    """
    freqs, power = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                       scaling, axis, average)
    return freqs, power.real


def periodogram(x: ArrayLike, fs: ArrayLike = 1.0, window: Any = "boxcar", nfft: int | None = None,
                detrend: Detrend = "constant", return_onesided: bool = True,
                scaling: str = "density", axis: int = -1) -> tuple[Array, Array]:
    """Frequencies and the power spectral density of x, from one segment of all points.

    >>> import functrans as ft
    >>> x = ft.numpy.sin(ft.numpy.arange(64.0) * 2 * ft.numpy.pi / 8)
    >>> f, p = ft.scipy.signal.periodogram(x)
    >>> float(f[p.argmax()])
    0.125
    """
    (signal,) = inexact(x)
    axis = axis_index(axis, signal.ndim, "periodogram")
    size = signal.shape[axis]
    if nfft is not None and nfft < size:
        size = known_size("signal.periodogram", "nfft", nfft)
        signal, nfft = slice_axis(signal, 0, size, axis), None
    return welch(signal, fs, "boxcar" if window is None else window, size, 0, nfft, detrend,
                 return_onesided, scaling, axis)


def coherence(x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0, window: Any = "hann",
              nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
              detrend: Detrend = "constant", axis: int = -1) -> tuple[Array, Array]:
    """Frequencies and |Pxy|**2 / (Pxx Pyy), which is from 0 to 1; see `csd`.

    >>> import functrans as ft
    >>> x = ft.numpy.sin(ft.numpy.arange(64.0) ** 2)
    >>> f, c = ft.scipy.signal.coherence(x, 2 * x, nperseg=16)
    >>> bool(ft.numpy.allclose(c, 1.0, atol=1e-4))
    True
    """
    options = {"window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft,
               "detrend": detrend, "axis": axis}
    freqs, of_x = welch(x, fs, **options)
    _, of_y = welch(y, fs, **options)
    _, of_both = csd(x, y, fs, **options)
    return freqs, (of_both.real**2 + of_both.imag**2) / of_x / of_y


def spectrogram(x: ArrayLike, fs: ArrayLike = 1.0, window: Any = ("tukey", 0.25),
                nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
                detrend: Detrend = "constant", return_onesided: bool = True,
                scaling: str = "density", axis: int = -1, mode: str = "psd"
                ) -> tuple[Array, Array, Array]:
    """Frequencies, the times of the segments' middles, and the spectra of the segments.

    `mode` is "psd" (density), "complex" (as in `stft`), "magnitude", "angle" or "phase", which is
    unwrapped. An eighth of a segment overlaps by default. See `csd` for the other arguments.

    >>> import functrans as ft
    >>> f, t, s = ft.scipy.signal.spectrogram(ft.numpy.ones(64), nperseg=16)
    >>> s.shape, t[:3].tolist()
    ((9, 4), [8.0, 22.0, 36.0])
    """
    one_of("signal.spectrogram", "mode", mode, ("psd", "complex", "magnitude", "angle", "phase"))
    helper = partial(_spectra, "spectrogram", x, None, fs, window, nperseg, noverlap, nfft, detrend,
                     return_onesided, scaling, axis, overlap_part=8)
    if mode == "psd":
        freqs, spectrum, times = helper()
        return freqs, times, spectrum
    freqs, spectrum, times = helper(squared=False)
    if mode == "magnitude":
        spectrum = jnp.abs(spectrum)
    elif mode in ("angle", "phase"):
        spectrum = jnp.angle(spectrum)
        if mode == "phase":
            frequency = axis_index(axis, jnp.ndim(x), "spectrogram")
            spectrum = jnp.unwrap(spectrum, axis=frequency)
    return freqs, times, spectrum


def _spectra(name: str, x: ArrayLike, y: ArrayLike | None, fs: ArrayLike, window: Any,
             nperseg: int | None, noverlap: int | None, nfft: int | None, detrend: Detrend,
             onesided: bool, scaling: str, axis: int, overlap_part: int = 2, squared: bool = True
             ) -> tuple[Array, Array, Array]:
    """Frequencies, the scaled products of the segments' transforms, and the segments' times.

    The axis has frequencies then, and the last axis segments.
    """
    one_of(f"signal.{name}", "scaling", scaling, ("density", "spectrum"))
    both = inexact(x) if y is None or y is x else inexact(x, y)
    both = [jnp.moveaxis(v, axis_index(axis, v.ndim, name), -1) for v in both]
    length = max(v.shape[-1] for v in both)
    both = [jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, length - v.shape[-1])]) for v in both]
    onesided = onesided and all(dtypes.kind(v.dtype) != "c" for v in both)
    values, size = segment_window(name, window, nperseg, length)
    cut = segments_of(name, size, noverlap, nfft, size // overlap_part)
    weights = cast_window(values, both[0])
    pieces = [transformed(v, weights, cut, detrend, onesided) for v in both]
    scale = 1 / (fs * jnp.sum(weights**2)) if scaling == "density" else 1 / jnp.sum(weights) ** 2
    if not squared:
        out = pieces[0] * jnp.sqrt(scale).astype(weights.dtype)
    else:
        out = jnp.real(pieces[0]) ** 2 + jnp.imag(pieces[0]) ** 2 if len(pieces) == 1 \
            else jnp.conj(pieces[0]) * pieces[1]
        if onesided:  # what both sides have is on one
            sides = np.full(out.shape[-1], 2.0)
            sides[0] = 1
            if cut.points % 2 == 0:
                sides[-1] = 1
            out = out * jnp.asarray(sides).astype(weights.dtype)
        out = out * jnp.asarray(scale).astype(weights.dtype)
    count = out.shape[-2]
    times = jnp.asarray(size / 2 + np.arange(count) * cut.step).astype(default_float()) / fs
    out = jnp.swapaxes(out, -1, -2)  # (..., frequencies, segments)
    place = axis_index(axis, out.ndim - 1, name)
    out = jnp.moveaxis(out, -2, place)
    return frequencies(cut.points, fs, onesided, out), out, times


def _median_bias(n: int) -> float:
    """The mean of the median of n powers: Allen et al., FINDCHIRP, Phys. Rev. D 85 (2012)."""
    pairs = 2 * np.arange(1, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (pairs + 1) - 1 / pairs))
