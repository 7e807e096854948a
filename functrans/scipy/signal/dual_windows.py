"""Dual windows: those that give back a signal from its short-time Fourier transform.

Source: Søndergaard, J. Fourier Anal. Appl. 18 (2012); Gröchenig, Foundations of Time-Frequency
Analysis (2001), ch. 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, value_of
from functrans.scipy.axes import overlap_add
from functrans.scipy.products import vdot
from functrans.typing import Array, ArrayLike


def window_of(name: str, argument: str, window: ArrayLike) -> Array:
    """A window: a vector of finite numbers."""
    if isinstance(window, (str, tuple)):
        raise ArgumentError(f"functrans.scipy.signal.{name}: {argument} is {window!r}.",
                            where=user_source(), why="it is the values of a window.",
                            fix="ShortTimeFFT.from_window, or get_window")
    values = jnp.asarray(window)
    if values.ndim != 1 or not values.shape[0]:
        raise ShapeError(f"functrans.scipy.signal.{name}: {argument} has shape {values.shape}.",
                         where=user_source(), why="it is a vector of one point or more.")
    known = value_of(values)
    if known is not None and not np.isfinite(known).all():
        raise ArgumentError(f"functrans.scipy.signal.{name}: {argument} is not finite.",
                            where=user_source())
    return values


def hop_of(name: str, hop: Any, most: int | None = None) -> int:
    """A step between segments, at most `most`."""
    size = known_size(f"signal.{name}", "hop", hop)
    if most is not None and size > most:
        raise ArgumentError(f"functrans.scipy.signal.{name}: hop is {size}.", where=user_source(),
                            why=f"it is at most the length of the window, which is {most}.")
    return size


def shifted_sum(x: Array, hop: int) -> Array:
    """The sum of a vector with all its shifts by multiples of hop that overlap with it."""
    size = x.shape[0]
    before = (size - 1) // hop
    whole = overlap_add(jnp.broadcast_to(x, (2 * before + 1, size)), hop)
    return whole[before * hop:before * hop + size]


def canonical_dual(window: Array, hop: int) -> Array:
    """The dual window of the least norm: the window over the sum of its shifted squares."""
    hop_of("ShortTimeFFT", hop, window.shape[0])
    if dtypes.kind(window.dtype) not in "fc":
        raise ArgumentError(f"functrans.scipy.signal.ShortTimeFFT: the window is "
                            f"{window.dtype}.", where=user_source(),
                            why="a dual window is a quotient.", fix="window.astype(float)")
    total = shifted_sum(jnp.real(window) ** 2 + jnp.imag(window) ** 2, hop)
    known = value_of(total)
    if known is not None and not np.all(
            known >= 10.0 ** -dtypes.finfo(known.dtype).precision * known.max()):
        raise ArgumentError("functrans.scipy.signal.ShortTimeFFT: the transform cannot be "
                            "inverted.", where=user_source(), why=f"windows {hop} points apart "
                            "are 0 together at a point.", fix="a smaller hop")
    return window / total


def closest_STFT_dual_window(win: ArrayLike, hop: int, desired_dual: ArrayLike | None = None, *,
                             scaled: bool = True) -> tuple[Array, Array]:
    """The dual window of `win` that is nearest to a factor times `desired_dual`, and the factor.

    Without `desired_dual` it is a constant; without `scaled` the factor is 1. It is differentiated
    in both windows. Raises ArgumentError where no dual window, or no factor, is there.
    Source: Moreno-Picot et al., IEEE Trans. Signal Process. 68 (2020); the duals are an affine
    space, which `desired_dual` is projected on.

    >>> import functrans as ft
    >>> dual, factor = ft.scipy.signal.closest_STFT_dual_window(ft.numpy.ones(4), 2)
    >>> dual.tolist(), float(factor)
    ([0.5, 0.5, 0.5, 0.5], 0.5)
    """
    window = window_of("closest_STFT_dual_window", "win", win)
    wanted = jnp.ones_like(window) if desired_dual is None else window_of(
        "closest_STFT_dual_window", "desired_dual", desired_dual)
    if wanted.shape != window.shape:
        raise ShapeError(f"functrans.scipy.signal.closest_STFT_dual_window: win has shape "
                         f"{window.shape}, desired_dual {wanted.shape}.", where=user_source(),
                         why="both have one length.")
    window, wanted = inexact(window, wanted)
    step = hop_of("closest_STFT_dual_window", hop, window.shape[0])
    least = canonical_dual(window, step)
    # the part of what is wanted that all duals have in common
    seen = least * shifted_sum(jnp.conj(window) * wanted, step)
    if not scaled:
        return least + wanted - seen, jnp.ones((), seen.dtype)
    top, bottom = vdot(seen, least), vdot(seen, seen).real
    values = value_of(jnp.stack([jnp.abs(top), bottom]))
    if values is not None and not (values[0] > 0 and values[1] > 10.0 ** -dtypes.finfo(
            values.dtype).precision):
        raise ArgumentError("functrans.scipy.signal.closest_STFT_dual_window: there is no factor.",
                            where=user_source(), why="desired_dual is orthogonal to all dual "
                            "windows.", fix="scaled=False")
    factor = top / bottom
    return least + factor * (wanted - seen), factor
