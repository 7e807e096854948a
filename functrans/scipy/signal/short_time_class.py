"""ShortTimeFFT: a short-time Fourier transform as an object, with its inverse and its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, one_of, value_of
from functrans.scipy.axes import frames, overlap_add
from functrans.scipy.signal.detrending import detrend
from functrans.scipy.signal.dual_windows import canonical_dual, hop_of, window_of
from functrans.scipy.signal.windows.named import window_values
from functrans.typing import Array, ArrayLike

_NAME = "signal.ShortTimeFFT"
_MODES = ("twosided", "centered", "onesided", "onesided2X")
_PADS: dict[str, dict[str, Any]] = {
    "zeros": {"mode": "constant"}, "edge": {"mode": "edge"}, "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"}}
Trend = Callable[[Any], Any] | str | None


def _error(what: str, why: str, fix: str = "") -> ArgumentError:
    return ArgumentError(f"functrans.scipy.{_NAME}: {what}", where=user_source(), why=why, fix=fix)


@register_pytree_with_keys_class
class ShortTimeFFT:
    """A short-time Fourier transform: windows `win` that are `hop` points apart, and its inverse.

    Slice p is the transform of mfft points of the signal times the conjugate of the window around
    the point p hop. `fft_mode` is "onesided" (of real signals), "onesided2X" (the other side's part
    added), "twosided" or "centered"; `scale_to` "magnitude" or "psd" scales the window;
    `phase_shift` says how far the zero of phase is from the middle of the window (None: it is at
    its start). It is a tree of its windows, differentiated in these and the signal. Where the
    window is 0 at its ends fewer slices have a part of the signal, which needs its values: of one
    that is traced every point counts.
    Raises ArgumentError for sizes that do not fit, and where no inverse is there.
    Source: Gröchenig, Foundations of Time-Frequency Analysis (2001).

    >>> import functrans as ft
    >>> moved = ft.scipy.signal.ShortTimeFFT(ft.numpy.ones(8), hop=4, fs=1.0)
    >>> x = ft.numpy.arange(20.0)
    >>> s = moved.stft(x)
    >>> s.shape, bool(ft.numpy.allclose(moved.istft(s, k1=20), x, atol=1e-4))
    ((5, 6), True)
    >>> moved.t(20)[:2].tolist(), moved.f[:2].tolist(), moved.extent(20)
    ([0.0, 4.0], [0.0, 0.125], (0.0, 24.0, 0.0, 0.625))
    >>> moved.p_range(20), moved.p_max(20), moved.p_num(20), moved.k_max(20), moved.nearest_k_p(7)
    ((0, 6), 6, 6, 24, 4)
    >>> moved.lower_border_end, moved.upper_border_begin(20)
    ((4, 1), (16, 5))
    >>> moved.stft_detrend(x, "constant").shape, moved.spectrogram(x, x[::-1]).shape
    ((5, 6), (5, 6))
    >>> kind = ft.scipy.signal.ShortTimeFFT
    >>> shown = kind.from_window("hann", 1.0, 8, 6)
    >>> shown.scale_to("psd")
    >>> shown.scaling, kind.from_dual(shown.win, 2, 1.0).m_num
    ('psd', 8)
    >>> print(kind.from_win_equals_dual(ft.numpy.ones(4), 2, 1.0).win.round(3))
    [0.707 0.707 0.707 0.707]
    """

    def __init__(self, win: ArrayLike, hop: int, fs: float, *, fft_mode: str = "onesided",
                 mfft: int | None = None, dual_win: ArrayLike | None = None,
                 scale_to: str | None = None, phase_shift: int | None = 0) -> None:
        self._win = window_of("ShortTimeFFT", "win", win)
        self._hop = hop_of("ShortTimeFFT", hop)
        self._scaling: str | None = None
        self._support = _support(self._win)
        self._dual: Array | None = None
        self.fs = fs
        self.mfft = self.m_num if mfft is None else mfft
        if dual_win is not None:
            self._dual = window_of("ShortTimeFFT", "dual_win", dual_win)
            if self._dual.shape != self._win.shape:
                raise ShapeError(f"functrans.scipy.{_NAME}: win has shape {self._win.shape}, "
                                 f"dual_win {self._dual.shape}.", where=user_source(),
                                 why="both have one length.")
        if scale_to is not None:
            self.scale_to(scale_to)
        self.fft_mode = fft_mode
        self.phase_shift = phase_shift

    @classmethod
    def from_window(cls, win_param: Any, fs: float, nperseg: int, noverlap: int, *,
                    symmetric_win: bool = False, fft_mode: str = "onesided",
                    mfft: int | None = None, scale_to: str | None = None,
                    phase_shift: int | None = 0) -> ShortTimeFFT:
        """With the window of `get_window`, of `nperseg` points of which `noverlap` overlap."""
        size = known_size(f"{_NAME}.from_window", "nperseg", nperseg)
        shared = known_size(f"{_NAME}.from_window", "noverlap", noverlap, 0)
        if shared >= size:
            raise _error(f"noverlap is {shared}.", f"it is less than nperseg, which is {size}.")
        values = np.asarray(window_values(win_param, size, symmetric_win), default_float())
        return cls(values, size - shared, fs, fft_mode=fft_mode, mfft=mfft, scale_to=scale_to,
                   phase_shift=phase_shift)

    @classmethod
    def from_dual(cls, dual_win: ArrayLike, hop: int, fs: float, *, fft_mode: str = "onesided",
                  mfft: int | None = None, scale_to: str | None = None,
                  phase_shift: int | None = 0) -> ShortTimeFFT:
        """With the window whose inverse has the window `dual_win`."""
        dual = window_of("ShortTimeFFT.from_dual", "dual_win", dual_win)
        return cls(canonical_dual(dual, hop_of("ShortTimeFFT", hop)), hop, fs, fft_mode=fft_mode,
                   mfft=mfft, dual_win=dual, scale_to=scale_to, phase_shift=phase_shift)

    @classmethod
    def from_win_equals_dual(cls, desired_win: ArrayLike, hop: int, fs: float, *,
                             fft_mode: str = "onesided", mfft: int | None = None,
                             scale_to: str | None = None, phase_shift: int | None = 0
                             ) -> ShortTimeFFT:
        """With the window near to `desired_win` that is its own dual, up to a factor.

        With `scale_to="unitary"` the energies of signal and transform are the same.
        """
        one_of(f"{_NAME}.from_win_equals_dual", "scale_to", scale_to,
               ("magnitude", "psd", "unitary", None))
        (window,) = inexact(window_of("ShortTimeFFT.from_win_equals_dual", "desired_win",
                                      desired_win))
        size = window.shape[0]
        step = hop_of("ShortTimeFFT", hop, size)
        rows = jnp.pad(window, (0, -size % step)).reshape(-1, step)
        square = jnp.sum(jnp.real(rows) ** 2 + jnp.imag(rows) ** 2, axis=0)
        known = value_of(square)
        if known is not None and not (known > 0).all():
            raise _error("desired_win has no dual window.", f"windows {step} points apart are 0 "
                         "together at a point.", "a smaller hop")
        window = (rows / jnp.sqrt(square)).reshape(-1)[:size]
        points = size if mfft is None else mfft
        factor = math.sqrt(points) if scale_to == "unitary" else 1.0
        made = cls(window / factor, step, fs, fft_mode="twosided", mfft=points,
                   dual_win=window * factor, phase_shift=phase_shift,
                   scale_to=None if scale_to == "unitary" else scale_to)
        if scale_to == "unitary":
            made._scaling = scale_to
        made.fft_mode = fft_mode
        return made

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The window and its dual are children."""
        return ((GetAttrKey("win"), self._win), (GetAttrKey("dual_win"), self._dual)), (
            self._hop, self._fs, self._fft_mode, self._mfft, self._scaling, self._phase_shift,
            self._support)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> ShortTimeFFT:
        """A transform, without its construction."""
        made = object.__new__(cls)
        made._win, made._dual = children
        (made._hop, made._fs, made._fft_mode, made._mfft, made._scaling, made._phase_shift,
         made._support) = aux
        return made

    # What it is made of ----------------------------------------------------------------------

    @property
    def win(self) -> Array:
        """The window."""
        return self._win

    @property
    def hop(self) -> int:
        """The points from one slice to the next."""
        return self._hop

    @property
    def fs(self) -> float:
        """The points in a unit of time."""
        return self._fs

    @fs.setter
    def fs(self, v: float) -> None:
        rate = float(v)
        if not rate > 0:
            raise _error(f"fs is {shown(v)}.", "it is positive.")
        self._fs = rate

    @property
    def T(self) -> float:
        """The time from one point to the next."""
        return 1 / self._fs

    @T.setter
    def T(self, v: float) -> None:
        if not v > 0:
            raise _error(f"T is {shown(v)}.", "it is positive.")
        self.fs = 1 / v

    @property
    def fft_mode(self) -> str:
        """The frequencies there are: "twosided", "centered", "onesided" or "onesided2X"."""
        return self._fft_mode

    @fft_mode.setter
    def fft_mode(self, t: str) -> None:
        one_of(_NAME, "fft_mode", t, _MODES)
        if t.startswith("one") and dtypes.kind(self._win.dtype) == "c":
            raise _error(f"fft_mode is {t!r}.", "the window is complex.", "fft_mode='twosided'")
        if t == "onesided2X" and self._scaling is None:
            raise _error("fft_mode is 'onesided2X'.", "what is doubled depends on the scaling.",
                         "scale_to='magnitude' or 'psd'")
        self._fft_mode = t

    @property
    def mfft(self) -> int:
        """The points of each transform, those of the window or more."""
        return self._mfft

    @mfft.setter
    def mfft(self, n_: int) -> None:
        self._mfft = known_size(_NAME, "mfft", n_, self.m_num)

    @property
    def phase_shift(self) -> int | None:
        """How far the zero of phase is from the middle of the window; None is its start."""
        return self._phase_shift

    @phase_shift.setter
    def phase_shift(self, v: int | None) -> None:
        if v is not None:
            v = known_size(_NAME, "phase_shift", v, 1 - self._mfft)
            if v >= self._mfft:
                raise _error(f"phase_shift is {v}.", f"it is less than mfft={self._mfft}.")
        self._phase_shift = v

    @property
    def scaling(self) -> str | None:
        """What the window is scaled for: None, "magnitude", "psd" or "unitary"."""
        return self._scaling

    def scale_to(self, scaling: str) -> None:
        """Scale the window so that slices are magnitudes ("magnitude") or densities ("psd")."""
        one_of(_NAME, "scaling", scaling, ("magnitude", "psd"))
        if self._scaling == scaling:
            return
        factor = self.fac_psd if scaling == "psd" else self.fac_magnitude
        self._win = self._win * factor
        if self._dual is not None:
            self._dual = self._dual / factor
        self._scaling = scaling

    @property
    def fac_magnitude(self) -> Any:
        """What slices are multiplied by to be magnitudes."""
        return 1 if self._scaling == "magnitude" else 1 / jnp.abs(jnp.sum(self._win))

    @property
    def fac_psd(self) -> Any:
        """What slices are multiplied by so that their squares are densities of power."""
        if self._scaling == "psd":
            return 1
        energy = jnp.sum(jnp.real(self._win) ** 2 + jnp.imag(self._win) ** 2)
        return 1 / jnp.sqrt(energy * self._fs)

    @property
    def dual_win(self) -> Array:
        """The window of the inverse; raises ArgumentError where there is none."""
        if self._dual is None:
            return canonical_dual(self._win, self._hop)
        return self._dual

    @property
    def invertible(self) -> bool:
        """Whether there is an inverse."""
        try:
            return self.dual_win.shape[0] > 0
        except ArgumentError:
            return False

    # Slices and points -----------------------------------------------------------------------

    @property
    def m_num(self) -> int:
        """The points of the window."""
        return int(self._win.shape[0])

    @property
    def m_num_mid(self) -> int:
        """The point of the window that stands at the time of its slice."""
        return self.m_num // 2

    def _stop(self, n: int) -> int:
        """The slice after the last one whose window has a part of a signal of n points."""
        self._long_enough(n)
        return max((n - 1 - self._support[0] + self.m_num_mid) // self._hop, n // self._hop) + 1

    def _long_enough(self, n: int) -> int:
        half = self.m_num - self.m_num_mid
        return known_size(_NAME, "the length of the signal", n, half)

    @property
    def k_min(self) -> int:
        """The first point of the first slice."""
        return self.p_min * self._hop - self.m_num_mid

    @property
    def p_min(self) -> int:
        """The first slice: the first whose window reaches the signal."""
        half = self.m_num - self.m_num_mid
        if half - self._hop >= self._support[1]:
            return 0
        return -max(-(-half // self._hop) - 1, 0)

    def k_max(self, n: int) -> int:
        """The point after the last slice of a signal of n points."""
        return (self.p_max(n) - 1) * self._hop + self.m_num - self.m_num_mid

    def p_max(self, n: int) -> int:
        """The slice after the last one of a signal of n points."""
        return self._stop(n)

    def p_num(self, n: int) -> int:
        """How many slices there are of a signal of n points."""
        return self.p_max(n) - self.p_min

    def p_range(self, n: int, p0: int | None = None, p1: int | None = None) -> tuple[int, int]:
        """The first slice and the one after the last, of a signal of n points."""
        low, high = self.p_min, self.p_max(n)
        first, stop = low if p0 is None else p0, high if p1 is None else p1
        if not low <= first < stop <= high:
            raise _error(f"p0 is {p0}, p1 {p1}.", f"{low} <= p0 < p1 <= {high} for a signal of "
                         f"{n} points.")
        return first, stop

    @property
    def lower_border_end(self) -> tuple[int, int]:
        """The first point, and the first slice, that what is before the signal does not reach."""
        start = self._support[0] - self.m_num_mid  # of slice 0: before the signal, or at it
        q = max(-((start + self._hop) // self._hop), 0)
        if start + q * self._hop > self._hop:
            return 0, max(self.p_min, 0)
        return start + q * self._hop + self.m_num, q + 1

    def upper_border_begin(self, n: int) -> tuple[int, int]:
        """The first point, and the first slice, that what is after the signal reaches."""
        self._long_enough(n)
        tail = self.m_num - self._support[1]
        q = (n + tail - self.m_num + self.m_num_mid) // self._hop
        q = min(q, n // self._hop + 1)
        return (q + 1) * self._hop - self.m_num_mid, q + 1

    def nearest_k_p(self, k: int, left: bool = True) -> int:
        """The point of the slice before (or after) the point k."""
        return (k if left else k + self._hop - 1) // self._hop * self._hop

    @property
    def delta_t(self) -> float:
        """The time from one slice to the next."""
        return self.T * self._hop

    def t(self, n: int, p0: int | None = None, p1: int | None = None, k_offset: int = 0) -> Array:
        """The times of the slices of a signal of n points."""
        first, stop = self.p_range(known_size(_NAME, "n", n), p0, p1)
        times = np.arange(first, stop) * self.delta_t + k_offset * self.T
        return jnp.asarray(times.astype(default_float()))

    @property
    def delta_f(self) -> float:
        """From one frequency to the next."""
        return 1 / (self._mfft * self.T)

    @property
    def onesided_fft(self) -> bool:
        """Whether there are no negative frequencies."""
        return self._fft_mode.startswith("one")

    @property
    def f_pts(self) -> int:
        """How many frequencies there are."""
        return self._mfft // 2 + 1 if self.onesided_fft else self._mfft

    @property
    def f(self) -> Array:
        """The frequencies."""
        if self.onesided_fft:
            values = np.fft.rfftfreq(self._mfft, self.T)
        else:
            values = np.fft.fftfreq(self._mfft, self.T)
            values = np.fft.fftshift(values) if self._fft_mode == "centered" else values
        return jnp.asarray(values.astype(default_float()))

    def extent(self, n: int, axes_seq: str = "tf", center_bins: bool = False
               ) -> tuple[float, float, float, float]:
        """The ends of times and frequencies, as matplotlib's `imshow` takes them."""
        one_of(f"{_NAME}.extent", "axes_seq", axes_seq, ("tf", "ft"))
        if self._fft_mode == "twosided":
            raise _error("fft_mode is 'twosided'.", "its frequencies do not grow.",
                         "fft_mode='centered'")
        low = 0 if self.onesided_fft else -(self._mfft // 2)
        shift = 0.5 if center_bins else 0
        times = tuple(self.delta_t * (p - shift) for p in (self.p_min, self.p_max(n)))
        freqs = tuple(self.delta_f * (q - shift) for q in (low, low + self.f_pts))
        (a, b), (c, d) = (times, freqs) if axes_seq == "tf" else (freqs, times)
        return a, b, c, d

    # Transforms ------------------------------------------------------------------------------

    def stft(self, x: ArrayLike, p0: int | None = None, p1: int | None = None, *,
             k_offset: int = 0, padding: str = "zeros", axis: int = -1) -> Array:
        """The transforms of the slices p0 to p1 of x; its axis becomes frequencies, then slices.

        Slices are along a new last axis. `padding` says what is beyond the ends: "zeros", "edge",
        "even" or "odd"; `k_offset` is the point of x that counts as the first.
        """
        return self.stft_detrend(x, None, p0, p1, k_offset=k_offset, padding=padding, axis=axis)

    def stft_detrend(self, x: ArrayLike, detr: Trend, p0: int | None = None,
                     p1: int | None = None, *, k_offset: int = 0, padding: str = "zeros",
                     axis: int = -1) -> Array:
        """`stft` of slices without their trend: "constant", "linear", or a function's result."""
        (signal,) = inexact(x)
        one_of(f"{_NAME}.stft", "padding", padding, tuple(_PADS))
        if self.onesided_fft and dtypes.kind(signal.dtype) == "c":
            raise _error("x is complex.", f"fft_mode={self._fft_mode!r} is of real signals.",
                         "fft_mode='twosided' or 'centered'")
        if isinstance(detr, str):
            one_of(f"{_NAME}.stft_detrend", "detr", detr, ("linear", "constant"))
        elif detr is not None and not callable(detr):
            raise _error(f"detr is {shown(detr)}.", "it is a name, a function or None.")
        place = axis_index(axis, signal.ndim, "ShortTimeFFT.stft")
        lines = jnp.moveaxis(signal, place, -1)
        n = lines.shape[-1]
        first, stop = self.p_range(n, p0, p1)
        start = first * self._hop - self.m_num_mid + k_offset
        end = start + (stop - first - 1) * self._hop + self.m_num
        width = [(0, 0)] * (lines.ndim - 1) + [(max(-start, 0), max(end - n, 0))]
        lines = jnp.pad(lines[..., max(start, 0):max(min(end, n), 0)], width, **_PADS[padding])
        pieces = frames(lines, self.m_num, self._hop)
        if detr is not None:
            remove = partial(detrend, type=detr) if isinstance(detr, str) else detr
            pieces = jnp.asarray(remove(pieces))
        spectra = self._forth(pieces * jnp.conj(self._win).astype(jnp.promote_types(
            self._win.dtype, pieces.dtype)))
        return jnp.moveaxis(jnp.swapaxes(spectra, -1, -2), -2, place)

    def spectrogram(self, x: ArrayLike, y: ArrayLike | None = None, detr: Trend = None, *,
                    p0: int | None = None, p1: int | None = None, k_offset: int = 0,
                    padding: str = "zeros", axis: int = -1) -> Array:
        """The squares of the magnitudes of `stft_detrend`, or the products of those of x and y."""
        of = partial(self.stft_detrend, detr=detr, p0=p0, p1=p1, k_offset=k_offset,
                     padding=padding, axis=axis)
        found = of(x)
        if y is None or y is x:
            return jnp.real(found) ** 2 + jnp.imag(found) ** 2
        return found * jnp.conj(of(y))

    def istft(self, S: ArrayLike, k0: int = 0, k1: int | None = None, *, f_axis: int = -2,
              t_axis: int = -1) -> Array:
        """The points k0 to k1 of the signal whose slices S are, from `p_min` on."""
        (z,) = inexact(S)
        if z.ndim < 2:
            raise ShapeError(f"functrans.scipy.{_NAME}.istft: S has shape {z.shape}.",
                             where=user_source(), why="it has frequencies and slices.")
        f, t = (axis_index(a, z.ndim, "ShortTimeFFT.istft") for a in (f_axis, t_axis))
        least = self.m_num - self.m_num_mid
        if f == t or z.shape[f] != self.f_pts or z.shape[t] < self.p_num(least):
            raise ShapeError(f"functrans.scipy.{_NAME}.istft: S has shape {z.shape}, f_axis is "
                             f"{f_axis}, t_axis {t_axis}.", where=user_source(),
                             why=f"there are {self.f_pts} frequencies and {self.p_num(least)} "
                             "slices or more.")
        z = jnp.moveaxis(z, (t, f), (-2, -1))
        stop = z.shape[-2] + self.p_min
        most = (stop - 1) * self._hop + least
        last = most if k1 is None else k1
        if not self.k_min <= k0 < last <= most or last - k0 < least:
            raise _error(f"k0 is {k0}, k1 {k1}.", f"{self.k_min} <= k0 < k1 <= {most}, and "
                         f"k1 - k0 is {least} or more.")
        q0 = k0 // self._hop + (self.p_min if k0 >= 0 else 0)
        q1 = min(self.p_max(last), stop)
        pieces = self._back(z[..., q0 - self.p_min:q1 - self.p_min, :]) * self.dual_win
        x = overlap_add(pieces, self._hop)
        start = q0 * self._hop - self.m_num_mid
        x = x[..., max(k0 - start, 0):]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [
            (max(start - k0, 0), max(last - start - x.shape[-1], 0))])[..., :last - k0]
        return jnp.moveaxis(x, -1, f if f < x.ndim else t)

    def _turn(self) -> int:
        assert self._phase_shift is not None
        return (self._phase_shift + self.m_num_mid) % self.m_num

    def _twice(self, like: Array) -> Array:
        """What the frequencies that have another side are multiplied by."""
        sides = np.full(self.f_pts, math.sqrt(2) if self._scaling == "psd" else 2.0)
        sides[0] = 1
        if self._mfft % 2 == 0:
            sides[-1] = 1
        return jnp.asarray(sides).astype(jnp.real(like).dtype)

    def _forth(self, x: Array) -> Array:
        if self._phase_shift is not None:
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, self._mfft - x.shape[-1])])
            x = jnp.roll(x, -self._turn(), axis=-1)
        if self.onesided_fft:
            out = jnp.fft.rfft(x, self._mfft)
            return out * self._twice(out) if self._fft_mode == "onesided2X" else out
        out = jnp.fft.fft(x, self._mfft)
        return jnp.fft.fftshift(out, axes=-1) if self._fft_mode == "centered" else out

    def _back(self, z: Array) -> Array:
        if self._fft_mode == "onesided2X":
            z = z / self._twice(z)
        if self.onesided_fft:
            x = jnp.fft.irfft(z, self._mfft)
        else:
            x = jnp.fft.ifft(jnp.fft.ifftshift(z, axes=-1) if self._fft_mode == "centered" else z)
        if self._phase_shift is not None:
            x = jnp.roll(x, self._turn(), axis=-1)
        return x[..., :self.m_num]


def _support(window: Array) -> tuple[int, int]:
    """Where a window is not 0: all of it where its values are not known."""
    known = value_of(window)
    places = None if known is None else np.flatnonzero(np.abs(known))
    if places is None or not places.size:
        return 0, int(window.shape[0])
    return int(places[0]), int(places[-1]) + 1
