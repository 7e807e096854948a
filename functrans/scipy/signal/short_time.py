"""stft and istft: the transforms of overlapping segments, and the signal of such."""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.axes import EXTENSIONS, overlap_add
from functrans.scipy.signal.spectral import (
    Detrend,
    frequencies,
    segments_of,
    transformed,
)
from functrans.scipy.signal.windows.named import cast_window, segment_window
from functrans.typing import Array, ArrayLike

_LEAST = 1e-10  # of the sum of squared windows that a signal is divided by


def stft(x: ArrayLike, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1, *, scaling: str = "spectrum") -> tuple[Array, Array, Array]:
    """Frequencies, times and the transforms of the segments of a signal.

    The axis becomes frequencies, and segments are a new last axis. The signal is continued by half
    a segment at both ends by `boundary` ("zeros", "even", "odd", "constant" or None), and filled up
    to whole segments where `padded`. See `csd` for the other arguments.

    >>> import functrans as ft
    >>> f, t, z = ft.scipy.signal.stft(ft.numpy.ones(64), nperseg=16)
    >>> z.shape, t[:3].tolist()
    ((9, 9), [0.0, 8.0, 16.0])
    """
    one_of("signal.stft", "scaling", scaling, ("spectrum", "psd"))
    one_of("signal.stft", "boundary", boundary, (*EXTENSIONS, None))
    (signal,) = inexact(x)
    place = axis_index(axis, signal.ndim, "stft")
    signal = jnp.moveaxis(signal, place, -1)
    onesided = return_onesided and dtypes.kind(signal.dtype) != "c"
    values, size = segment_window("stft", window, nperseg, signal.shape[-1])
    cut = segments_of("stft", size, noverlap, nfft)
    if boundary is not None:
        signal = EXTENSIONS[boundary]("signal.stft", signal, size // 2)
    if padded:
        rest = -(signal.shape[-1] - size) % cut.step % size
        signal = jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, rest)])
    weights = cast_window(values, signal)
    out = transformed(signal, weights, cut, detrend, onesided)
    scale = 1 / jnp.abs(jnp.sum(weights)) if scaling == "spectrum" \
        else 1 / jnp.sqrt(fs * jnp.sum(weights**2)).astype(weights.dtype)
    count = out.shape[-2]
    start = 0 if boundary is not None else size / 2
    times = (jnp.arange(count, dtype=default_float()) * cut.step + start) / fs
    out = jnp.moveaxis(jnp.swapaxes(out * scale, -1, -2), -2, place)
    return frequencies(cut.points, fs, onesided, out), times, out


def istft(Zxx: ArrayLike, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2, *,
          scaling: str = "spectrum") -> tuple[Array, Array]:
    """Times and the signal whose `stft` is nearest to Zxx, with the same arguments.

    Where the squared windows sum to 0 the signal is not known, and is 0. Raises ShapeError for
    fewer than two axes, ArgumentError for sizes that do not fit.
    Source: Griffin and Lim, IEEE Trans. ASSP 32 (1984).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(32.0)
    >>> f, t, z = ft.scipy.signal.stft(x, nperseg=8)
    >>> bool(ft.numpy.allclose(ft.scipy.signal.istft(z, nperseg=8)[1], x, atol=1e-4))
    True
    """
    one_of("signal.istft", "scaling", scaling, ("spectrum", "psd"))
    (z,) = inexact(Zxx)
    if z.ndim < 2:
        raise ShapeError(f"functrans.scipy.signal.istft: Zxx has shape {z.shape}.",
                         where=user_source(), why="it has frequencies and segments.")
    f, t = (axis_index(a, z.ndim, "istft") for a in (freq_axis, time_axis))
    if f == t:
        raise ArgumentError("functrans.scipy.signal.istft: time_axis and freq_axis are one.",
                            where=user_source())
    lead = [a for a in range(z.ndim) if a not in (f, t)]
    z = jnp.transpose(z, (*lead, t, f))
    count = z.shape[-1]
    default = 2 * (count - 1) if input_onesided else count
    size = default if nperseg is None else known_size("signal.istft", "nperseg", nperseg)
    if nfft is None:
        nfft = default + 1 if input_onesided and size == default + 1 else default
    cut = segments_of("istft", size, noverlap, nfft)
    values, _ = segment_window("istft", window, size, size)
    # the first points of the inverse are the segment; the others were filled up
    pieces = jnp.fft.irfft(z, cut.points) if input_onesided else jnp.fft.ifft(z, cut.points)
    weights = cast_window(values, pieces)
    scale = jnp.abs(jnp.sum(weights)) if scaling == "spectrum" \
        else jnp.sqrt(fs * jnp.sum(weights**2)).astype(weights.dtype)
    x = overlap_add(pieces[..., :size] * (weights * scale), cut.step)
    norm = overlap_add(jnp.broadcast_to(weights**2, (pieces.shape[-2], size)), cut.step)
    if boundary:
        stop = x.shape[-1] - size // 2
        x, norm = x[..., size // 2:stop], norm[size // 2:stop]
    x = x / jnp.where(norm > _LEAST, norm, 1)
    place = t - (f < t)
    times = jnp.arange(x.shape[-1], dtype=default_float()) / fs
    return times, jnp.moveaxis(x, -1, place)
