"""Other sampling rates: by transforms, by filters in polyphase form, by decimation; hilbert."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, slice_axis
from functrans.scipy.arguments import inexact, known_size, of_rank, one_of, real
from functrans.scipy.signal.design import sections_of_cheby1, windowed_sinc
from functrans.scipy.signal.filtering import sosfilt, sosfiltfilt
from functrans.scipy.signal.windows.named import window_values
from functrans.typing import Array, ArrayLike

_MODES = {"constant": "constant", "symmetric": "symmetric", "reflect": "reflect", "edge": "edge",
          "wrap": "wrap", "line": "line", "smooth": "smooth", "antisymmetric": "antisymmetric",
          "antireflect": "reflect"}
_LEVELS: dict[str, Callable[..., Array]] = {
    "mean": jnp.mean, "median": jnp.median, "maximum": jnp.max, "minimum": jnp.min}


def resample(x: ArrayLike, num: int, t: ArrayLike | None = None, axis: int = 0,
             window: Any = None, domain: str = "time") -> Array | tuple[Array, Array]:
    """x at `num` points along an axis, as a periodic signal, by its Fourier transform.

    `window` multiplies the spectrum; with times `t` the new ones are returned too. With the
    `domain` "freq" x is a spectrum already.

    >>> import functrans as ft
    >>> ft.scipy.signal.resample(ft.numpy.array([0.0, 1.0, 0.0, -1.0]), 2).round(4).tolist()
    [0.0, 0.0]
    """
    one_of("signal.resample", "domain", domain, ("time", "freq"))
    (v,) = inexact(x)
    axis = axis_index(axis, v.ndim, "resample")
    num = known_size("signal.resample", "num", num)
    size = v.shape[axis]
    is_real = dtypes.kind(v.dtype) != "c"
    v = jnp.moveaxis(v, axis, -1)
    spectrum = v if domain == "freq" else jnp.fft.rfft(v) if is_real else jnp.fft.fft(v)
    is_real = is_real and domain == "time"
    if window is not None:
        weights = _spectral_window(window, size, is_real)
        spectrum = spectrum * jnp.asarray(weights).astype(v.real.dtype)
    least = min(num, size)
    if is_real:
        y = _padded(spectrum[..., :least // 2 + 1], num // 2 + 1)
        if least % 2 == 0 and num != size:
            y = _scaled_at(y, least // 2, 2.0 if num < size else 0.5)
        out = jnp.fft.irfft(y, num) * (num / size)
    else:
        middle = (least + 1) // 2
        low, high = spectrum[..., :middle], spectrum[..., size - (least - middle):]
        if least % 2 == 0 and num != size:
            # the frequency that both sides share
            other = spectrum[..., least // 2:least // 2 + 1]
            if num < size:
                high = jnp.concatenate([high[..., :1] + other, high[..., 1:]], axis=-1)
                y = jnp.concatenate([low, high], axis=-1)
            else:
                half = 0.5 * high[..., :1]
                gap = jnp.zeros((*v.shape[:-1], num - least - 1), spectrum.dtype)
                y = jnp.concatenate([low, half, gap, half, high[..., 1:]], axis=-1)
        else:
            gap = jnp.zeros((*v.shape[:-1], num - least), spectrum.dtype)
            y = jnp.concatenate([low, gap, high], axis=-1)
        out = jnp.fft.ifft(y) * (num / size)
    out = jnp.moveaxis(out, -1, axis)
    if t is None:
        return out
    (times,) = inexact(t)
    return out, jnp.arange(num, dtype=times.dtype) * ((times[1] - times[0]) * size / num) + times[0]


def _spectral_window(window: Any, size: int, is_real: bool) -> Any:
    if callable(window):
        weights = window(np.fft.fftfreq(size))
    elif isinstance(window, (str, tuple, float, int)):
        weights = np.fft.fftshift(np.asarray(window_values(window, size)))
    else:
        weights = np.asarray(window)
    if np.shape(weights) != (size,):
        raise ArgumentError(f"functrans.scipy.signal.resample: the window has shape "
                            f"{np.shape(weights)}.", where=user_source(),
                            why=f"the signal has {size} points.")
    if is_real:  # the two sides as one
        weights = np.concatenate([weights[:1], (weights[1:] + weights[:0:-1]) / 2])
        weights = weights[:size // 2 + 1]
    return weights


def _padded(x: Array, size: int) -> Array:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])


def _scaled_at(x: Array, place: int, factor: float) -> Array:
    scale = np.ones(x.shape[-1])
    scale[place] = factor
    return x * jnp.asarray(scale).astype(x.real.dtype)


def upfirdn(h: ArrayLike, x: ArrayLike, up: int = 1, down: int = 1, axis: int = -1,
            mode: str = "constant", cval: ArrayLike = 0) -> Array:
    """x with up - 1 zeros after each point, filtered by h, of which every `down`-th point stays.

    `mode` says how x goes on beyond its ends: "constant" (with `cval`), "symmetric", "reflect",
    "edge", "wrap", "line" (through the first and last points), "smooth" (the two at each end),
    "antisymmetric" (mirrored, with the other sign) or "antireflect" (mirrored at the end points).

    >>> import functrans as ft
    >>> ft.scipy.signal.upfirdn([1.0, 1.0], ft.numpy.array([1.0, 2.0]), up=2).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    one_of("signal.upfirdn", "mode", mode, tuple(_MODES))
    taps, v = inexact(h, x)
    of_rank("signal.upfirdn", "h", taps, 1)
    up, down = (known_size("signal.upfirdn", n, u) for n, u in (("up", up), ("down", down)))
    axis = axis_index(axis, v.ndim, "upfirdn")
    return _polyphase(taps, v, up, down, axis, mode, cval)


def _polyphase(taps: Array, x: Array, up: int, down: int, axis: int, mode: str, cval: Any) -> Array:
    kind = jnp.promote_types(taps.dtype, x.dtype)
    taps, x = taps.astype(kind), jnp.moveaxis(x, axis, -1).astype(kind)
    if not x.size:
        shape = (*x.shape[:-1], max(-(-((x.shape[-1] - 1) * up + taps.shape[0]) // down), 0))
        return jnp.moveaxis(jnp.zeros(shape, kind), -1, axis)
    lead, size, count = x.shape[:-1], x.shape[-1], taps.shape[0]
    wanted = -(-((size - 1) * up + count) // down)
    extra = 0
    if mode != "constant" or not (isinstance(cval, (int, float)) and cval == 0):
        extra = -(-count // up)
        x = _continued(x, extra, mode, cval)
    length = (x.shape[-1] - 1) * up + 1
    before = count - 1 - extra * up
    after = (wanted - 1) * down + count - length - before
    lines = x.reshape(-1, 1, x.shape[-1])
    out = lax.conv_general_dilated(lines, taps[::-1][None, None], (down,), [(before, after)],
                                   lhs_dilation=(up,), precision="highest")
    return jnp.moveaxis(out.reshape(*lead, wanted), -1, axis)


def _continued(x: Array, count: int, mode: str, cval: Any) -> Array:
    if mode in ("line", "smooth"):
        # along the line of the first and last points, or of the two at each end
        size = x.shape[-1]
        first, last = x[..., :1], x[..., -1:]
        if size == 1:
            left = right = jnp.zeros_like(first)
        elif mode == "line":
            left = right = (last - first) / (size - 1)
        else:
            left, right = x[..., 1:2] - first, last - x[..., -2:-1]
        steps = jnp.arange(1, count + 1, dtype=x.real.dtype)
        return jnp.concatenate([first - left * steps[::-1], x, last + right * steps], axis=-1)
    if mode == "antisymmetric":
        size = x.shape[-1]
        place = np.mod(np.arange(-count, size + count), 2 * size)
        signs = np.where(place < size, 1.0, -1.0)
        return x[..., np.minimum(place, 2 * size - 1 - place)] * jnp.asarray(signs).astype(
            x.real.dtype)
    options: dict[str, Any] = {"constant_values": cval} if mode == "constant" else \
        {"reflect_type": "odd"} if mode == "antireflect" else {}
    width = [(0, 0)] * (x.ndim - 1) + [(count, count)]
    return jnp.pad(x, width, mode=_MODES[mode], **options)


def resample_poly(x: ArrayLike, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0),
                  padtype: str | None = "constant", cval: ArrayLike | None = None) -> Array:
    """x at up / down times its sampling rate along an axis, by a filter in polyphase form.

    `window` is that of a low pass, or an array: its coefficients. `padtype` says what is beyond the
    ends: a mode of `upfirdn`, or "mean", "median", "maximum" or "minimum".

    >>> import functrans as ft
    >>> ft.scipy.signal.resample_poly(ft.numpy.ones(4), 1, 2, padtype="line").round(4).tolist()
    [1.0, 1.0]
    """
    padtype = "constant" if padtype is None else padtype
    one_of("signal.resample_poly", "padtype", padtype, (*_MODES, *_LEVELS))
    if cval is not None and padtype != "constant":
        raise ArgumentError(f"functrans.scipy.signal.resample_poly: padtype={padtype!r} has no "
                            "cval.", where=user_source())
    (v,) = inexact(x)
    axis = axis_index(axis, v.ndim, "resample_poly")
    up, down = (known_size("signal.resample_poly", n, u) for n, u in (("up", up), ("down", down)))
    common = math.gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return v
    size = v.shape[axis]
    wanted = -(-size * up // down)
    if isinstance(window, (str, tuple, float, int)):
        most = max(up, down)
        half = 10 * most
        taps = jnp.asarray(windowed_sinc(2 * half + 1, 1 / most, window=window)).astype(
            v.real.dtype) * up
    else:
        (taps,) = inexact(window)
        half = (taps.size - 1) // 2
        taps = taps.astype(jnp.result_type(v, taps)) * up
    before = down - half % down
    removed = (half + before) // down
    after = 0
    while -(-((size - 1) * up + taps.size + before + after) // down) < wanted + removed:
        after += 1
    taps = jnp.pad(taps, (before, after))
    if padtype in _LEVELS:
        level = _LEVELS[padtype](v, axis=axis, keepdims=True)
        out = _polyphase(taps, v - level, up, down, axis, "constant", 0)
        return slice_axis(out, removed, removed + wanted, axis) + level
    out = _polyphase(taps, v, up, down, axis, padtype, 0 if cval is None else cval)
    return slice_axis(out, removed, removed + wanted, axis)


def decimate(x: ArrayLike, q: int, n: int | None = None, ftype: str = "iir", axis: int = -1,
             zero_phase: bool = True) -> Array:
    """Every q-th point of x along an axis, after a low pass.

    `ftype` is "iir", Chebyshev's filter of order n (8), or "fir", a window of n + 1 points (20 q).
    With `zero_phase` no phase is shifted.

    >>> import functrans as ft
    >>> ft.scipy.signal.decimate(ft.numpy.ones(60), 2).shape
    (30,)
    """
    one_of("signal.decimate", "ftype", ftype, ("iir", "fir"))
    (v,) = inexact(x)
    axis = axis_index(axis, v.ndim, "decimate")
    q = known_size("signal.decimate", "q", q)
    if ftype == "fir":
        taps = windowed_sinc((20 * q if n is None else n) + 1, 1 / q)
        if zero_phase:
            return resample_poly(v, 1, q, axis, jnp.asarray(taps).astype(v.dtype))
        size = v.shape[axis]
        found = _polyphase(jnp.asarray(taps).astype(v.dtype), v, 1, q, axis, "constant", 0)
        return slice_axis(found, 0, -(-size // q), axis)
    sos = jnp.asarray(sections_of_cheby1(8 if n is None else n, 0.05, 0.8 / q)).astype(v.dtype)
    out: Any = sosfiltfilt(sos, v, axis) if zero_phase else sosfilt(sos, v, axis)
    index: list[Any] = [slice(None)] * v.ndim
    index[axis] = slice(None, None, q)
    every: Array = out[tuple(index)]
    return every


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """The analytic signal of a real one: its transform without negative frequencies.

    Raises ArgumentError for complex signals.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 0.0, -1.0, 0.0])
    >>> ft.scipy.signal.hilbert(x).imag.round(4).tolist()
    [0.0, 1.0, 0.0, -1.0]
    """
    (v,) = real("signal.hilbert", x)
    axis = axis_index(axis, v.ndim, "hilbert")
    size = v.shape[axis] if N is None else known_size("signal.hilbert", "N", N)
    weights = jnp.asarray(_one_sided(size)).astype(v.dtype)
    spectrum = jnp.fft.fft(jnp.moveaxis(v, axis, -1), size)
    return jnp.moveaxis(jnp.fft.ifft(spectrum * weights), -1, axis)


def hilbert2(x: ArrayLike, N: int | Sequence[int] | None = None,
             axes: tuple[int, int] = (-2, -1)) -> Array:
    """The analytic signal of a real one over two axes.

    >>> import functrans as ft
    >>> ft.scipy.signal.hilbert2(ft.numpy.ones((2, 2))).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    (v,) = real("signal.hilbert2", x)
    places = [axis_index(a, v.ndim, "hilbert2") for a in axes]
    if N is None:
        sizes = [v.shape[a] for a in places]
    else:
        sizes = [known_size("signal.hilbert2", "N", n) for n in
                 ((N, N) if isinstance(N, int) else N)]
    out = jnp.fft.fft2(v, sizes, places)
    for a, n in zip(places, sizes):
        shape = [n if i == a else 1 for i in range(v.ndim)]
        weights = _one_sided(n)
        weights[(n + 1) // 2:] = 0  # what is both too, as in SciPy
        out = out * jnp.asarray(weights).astype(v.dtype).reshape(shape)
    return jnp.fft.ifft2(out, axes=places)


def _one_sided(size: int) -> np.ndarray[Any, Any]:
    """2 for positive frequencies, 0 for negative ones, 1 for what is both."""
    weights = np.zeros(size)
    weights[0] = 1
    weights[1:(size + 1) // 2] = 2
    if size % 2 == 0:
        weights[size // 2] = 1
    return weights

