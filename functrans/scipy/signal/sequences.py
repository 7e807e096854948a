"""Spectra of uneven samples, and small functions of sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, of_rank, one_of, real
from functrans.scipy.signal.filtering import lfilter
from functrans.scipy.signal.windows.named import window_values
from functrans.typing import Array, ArrayLike


def lombscargle(x: ArrayLike, y: ArrayLike, freqs: ArrayLike, *, weights: ArrayLike | None = None,
                floating_mean: bool = False, normalize: bool = False) -> Array:
    """The periodogram of values y at places x, at angular frequencies.

    `weights` are those of values, `floating_mean` fits a constant too. The result is an amplitude
    squared times n / 4, or with `normalize` the part of the variance that is explained.
    Source: Zechmeister and Kürster, Astron. Astrophys. 496 (2009).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(8.0)
    >>> power = ft.scipy.signal.lombscargle(x, ft.numpy.sin(x), [1.0], normalize=True)
    >>> power.round(3).tolist()
    [1.0]
    """
    places, values, w, weight = real("signal.lombscargle", x, y, freqs,
                                     1.0 if weights is None else weights)
    of_rank("signal.lombscargle", "freqs", w, 1)
    if places.ndim != 1 or values.shape != places.shape:
        raise ShapeError(f"functrans.scipy.signal.lombscargle: x has shape {places.shape}, y "
                         f"{values.shape}.", where=user_source(), why="both are vectors.")
    weight = jnp.broadcast_to(weight, places.shape)
    weight = weight / jnp.sum(weight)
    angle = w[:, None] * places
    # the phase for which sine and cosine are orthogonal
    c, s = jnp.cos(angle), jnp.sin(angle)

    def mean(v: Array) -> Array:
        return jnp.sum(weight * v, axis=-1)

    mean_c, mean_s = (mean(v) if floating_mean else jnp.zeros_like(w) for v in (c, s))
    cc, ss, cs = mean(c * c) - mean_c**2, mean(s * s) - mean_s**2, mean(c * s) - mean_c * mean_s
    tau = 0.5 * jnp.arctan2(2 * cs, cc - ss)
    c, s = jnp.cos(angle - tau[:, None]), jnp.sin(angle - tau[:, None])
    mean_y = mean(values) if floating_mean else 0.0
    mean_c, mean_s = (mean(v) if floating_mean else jnp.zeros_like(w) for v in (c, s))
    parts = jnp.zeros_like(w)
    for wave, m in ((c, mean_c), (s, mean_s)):
        square = mean(wave * wave) - m * m
        cross = mean(values * wave) - mean_y * m
        small = square <= jnp.finfo(square.dtype).eps
        parts = parts + jnp.where(small, 0, cross**2 / jnp.where(small, 1, square))
    if normalize:
        return parts / (mean(values**2) - mean_y**2)
    return parts * (places.shape[0] / 2)


def vectorstrength(events: ArrayLike, period: ArrayLike) -> tuple[Array, Array]:
    """How well events keep to a period (1: all at one phase), and their mean phase.

    >>> import functrans as ft
    >>> strength, phase = ft.scipy.signal.vectorstrength([0.0, 1.0, 2.0], 1.0)
    >>> round(float(strength), 3)
    1.0
    """
    times, periods = real("signal.vectorstrength", events, period)
    of_rank("signal.vectorstrength", "events", times, 1)
    if periods.ndim > 1:
        raise ShapeError(f"functrans.scipy.signal.vectorstrength: period has shape "
                         f"{periods.shape}.", where=user_source(), why="it is a vector at most.")
    vectors = jnp.mean(jnp.exp(2j * math.pi * times / periods[..., None]), axis=-1)
    return jnp.abs(vectors), jnp.angle(vectors)


def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> Array:
    """The lags of the elements of `correlate` of two sequences of these lengths.

    >>> import functrans as ft
    >>> ft.scipy.signal.correlation_lags(3, 2).tolist()
    [-1, 0, 1, 2]
    """
    one_of("signal.correlation_lags", "mode", mode, ("full", "same", "valid"))
    lags = np.arange(-in2_len + 1, in1_len)
    if mode == "same":
        middle, half = lags.size // 2, in1_len // 2
        lags = lags[middle - half:middle - half + in1_len]
    elif mode == "valid":
        bound = in1_len - in2_len
        lags = np.arange(bound + 1) if bound >= 0 else np.arange(bound, 1)
    return jnp.asarray(lags.astype(np.int32))


def deconvolve(signal: ArrayLike, divisor: ArrayLike) -> tuple[Array, Array]:
    """Quotient and remainder: signal = convolve(divisor, quotient) + remainder.

    >>> import functrans as ft
    >>> q, r = ft.scipy.signal.deconvolve([1.0, 3.0, 2.0], [1.0, 1.0])
    >>> q.tolist(), r.tolist()
    ([1.0, 2.0], [0.0, 0.0, 0.0])
    """
    top, bottom = inexact(signal, divisor)
    for name, v in (("signal", top), ("divisor", bottom)):
        of_rank("signal.deconvolve", name, v, 1)
    size = top.shape[0] - bottom.shape[0] + 1
    if size < 1:
        return jnp.zeros(0, top.dtype), top
    quotient = lfilter(top, bottom, jnp.zeros(size, top.dtype).at[0].set(1))
    assert not isinstance(quotient, tuple)
    return quotient, top - jnp.convolve(bottom, quotient, precision="highest")


def max_len_seq(nbits: int, state: Any = None, length: int | None = None, taps: Any = None
                ) -> tuple[Array, Array]:
    """A sequence of bits of the longest period 2**nbits - 1, and the state of its register.

    >>> import functrans as ft
    >>> ft.scipy.signal.max_len_seq(3)[0].tolist()
    [1, 1, 1, 0, 1, 0, 0]
    """
    known = {2: [1], 3: [2], 4: [3], 5: [3], 6: [5], 7: [6], 8: [7, 6, 1], 9: [5], 10: [7],
             11: [9], 12: [11, 10, 4], 13: [12, 11, 8], 14: [13, 12, 2], 15: [14],
             16: [15, 13, 4]}
    n = known_size("signal.max_len_seq", "nbits", nbits, 2)
    if taps is None and n not in known:
        raise ArgumentError(f"functrans.scipy.signal.max_len_seq: nbits is {n}.",
                            where=user_source(), fix="taps=[...], or nbits up to 16")
    register = np.ones(n, np.int8) if state is None else np.asarray(state, bool).astype(np.int8)
    if register.shape != (n,) or not register.any():
        raise ArgumentError("functrans.scipy.signal.max_len_seq: the state has no 1, or not "
                            f"{n} bits.", where=user_source())
    chosen = known[n] if taps is None else sorted({int(t) for t in taps}, reverse=True)
    bits = np.zeros(2**n - 1 if length is None else int(length), np.int8)
    for i in range(len(bits)):
        bits[i] = register[0]
        last = register[0] ^ np.bitwise_xor.reduce(register[chosen])
        register = np.append(register[1:], last)
    return jnp.asarray(bits), jnp.asarray(register)


def check_COLA(window: Any, nperseg: int, noverlap: int, tol: float = 1e-10) -> bool:
    """Whether windows that overlap so add to a constant.

    >>> import functrans as ft
    >>> ft.scipy.signal.check_COLA("hann", 8, 4)
    True
    """
    sums = _overlapped(window, nperseg, noverlap, 1)
    return bool(np.max(np.abs(sums - np.median(sums))) < tol)


def check_NOLA(window: Any, nperseg: int, noverlap: int, tol: float = 1e-10) -> bool:
    """Whether the squares of windows that overlap so are above 0 everywhere: `istft` can invert.

    >>> import functrans as ft
    >>> ft.scipy.signal.check_NOLA("hann", 8, 4)
    True
    """
    return bool(np.min(_overlapped(window, nperseg, noverlap, 2)) > tol)


def _overlapped(window: Any, nperseg: int, noverlap: int, power: int) -> Any:
    if not 0 <= noverlap < nperseg:
        raise ArgumentError(f"functrans.scipy.signal: noverlap is {noverlap}, nperseg {nperseg}.",
                            where=user_source(), why="0 <= noverlap < nperseg.")
    named = isinstance(window, (str, tuple))
    values = np.asarray(window_values(window, nperseg, sym=False) if named else window, float)
    step = nperseg - noverlap
    sums = np.zeros(step)
    for i in range(nperseg // step):
        sums += values[i * step:(i + 1) * step] ** power
    rest = nperseg % step
    if rest:
        sums[:rest] += values[-rest:] ** power
    return sums
