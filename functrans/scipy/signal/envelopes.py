"""The envelope of a part of the spectrum of a signal."""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.signal.resampling import resample
from functrans.typing import Array, ArrayLike


def envelope(z: ArrayLike, bp_in: tuple[int | None, int | None] = (1, None), *,
             n_out: int | None = None, squared: bool = False, residual: str | None = "lowpass",
             axis: int = -1) -> Array:
    """The magnitude of the part of a signal with the frequencies bp_in, and what is left of it.

    `bp_in` are the first frequency of the discrete Fourier transform and the one after the last,
    from -(n // 2) to (n + 1) // 2 of n samples; of a real signal both sides belong to one. The
    result has the envelope, or its square, and the residual along a new first axis: "lowpass" (what
    is below), "all" (what is outside) or None, with which there is the envelope alone. It has
    `n_out` samples along the axis.
    Source: Oppenheim and Schafer, Discrete-Time Signal Processing (2009), ch. 12.

    >>> import functrans as ft
    >>> x = 3.0 + 2.0 * ft.numpy.cos(ft.numpy.arange(16.0) * ft.numpy.pi / 4)
    >>> found, rest = ft.scipy.signal.envelope(x)
    >>> round(float(found[5]), 3), round(float(rest[5]), 3)
    (2.0, 3.0)
    """
    one_of("signal.envelope", "residual", residual, ("lowpass", "all", None))
    (x,) = inexact(z)
    place = axis_index(axis, x.ndim, "envelope")
    x = jnp.moveaxis(x, place, -1)
    n = x.shape[-1]
    if not n:
        raise ShapeError(f"functrans.scipy.signal.envelope: z has shape {jnp.shape(z)}.",
                         where=user_source(), why="there are samples along the axis.")
    size = n if n_out is None else known_size("signal.envelope", "n_out", n_out)
    first, stop = _band(bp_in, n)
    is_real = dtypes.kind(x.dtype) != "c"
    # frequencies grow from -(n // 2); those of a real signal that are negative count as positive
    middle = n // 2
    if is_real:
        half = jnp.fft.rfft(x)
        spectrum = jnp.concatenate([half, jnp.zeros((*x.shape[:-1], n - half.shape[-1]),
                                                    half.dtype)], axis=-1)
        low, high = max(first, 1), max(stop, 0)
        both = jnp.arange(n)
        spectrum = jnp.where((both >= low) & (both < high), 2 * spectrum, spectrum)
    else:
        spectrum = jnp.fft.fft(x)
    grown = jnp.fft.fftshift(spectrum, axes=-1)
    part = grown[..., first + middle:stop + middle]
    found = jnp.fft.ifft(part, size) * (size / n)
    square = jnp.real(found) ** 2 + jnp.imag(found) ** 2
    if squared:
        out = square
    else:  # the root has no derivative at 0, where that of the magnitude is taken as 0
        out = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    out = jnp.moveaxis(out, -1, place)
    if residual is None:
        return out
    number = jnp.arange(n) - middle
    removed = (number >= first) & (number < stop)
    if residual == "lowpass":
        removed = removed | ((number >= stop) if stop > 0 else (number >= first))
    left = jnp.fft.ifftshift(jnp.where(removed, 0, grown), axes=-1)
    if is_real:
        least = min(n, size)
        if size != n and least % 2 == 0:
            factor = 2.0 if size < n else 0.5
            left = left.at[..., least // 2].multiply(factor)
        count = size // 2 + 1
        left = jnp.pad(left, [(0, 0)] * (left.ndim - 1) + [(0, max(count - n, 0))])[..., :count]
        rest: Any = jnp.fft.irfft(left, size) * (size / n)
    else:
        rest = resample(left, size, axis=-1, domain="freq")
    rest = jnp.moveaxis(rest, -1, place)
    return jnp.stack([out.astype(jnp.promote_types(out.dtype, rest.dtype)), rest])


def _band(bp_in: Any, n: int) -> tuple[int, int]:
    try:
        first, stop = bp_in
    except (TypeError, ValueError):
        raise ArgumentError(f"functrans.scipy.signal.envelope: bp_in is {shown(bp_in)}.",
                            where=user_source(), why="it is a pair.", fix="bp_in=(1, None)"
                            ) from None
    least, most = -(n // 2), (n + 1) // 2
    low = least if first is None else known_size("signal.envelope", "bp_in[0]", first, least)
    high = most if stop is None else known_size("signal.envelope", "bp_in[1]", stop, least)
    if not low < high <= most:
        raise ArgumentError(f"functrans.scipy.signal.envelope: bp_in is {shown(bp_in)}.",
                            where=user_source(), why=f"{least} <= bp_in[0] < bp_in[1] <= {most} "
                            f"for {n} samples.")
    return low, high
