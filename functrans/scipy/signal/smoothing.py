"""Filters of neighbourhoods: polynomials, medians, ranks, Wiener's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, of_rank, one_of
from functrans.scipy.axes import neighbours
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike

_MODES = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap"}


def savgol_coeffs(window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0,
                  pos: float | None = None, use: str = "conv") -> Array:
    """The coefficients of the filter of Savitzky and Golay.

    They give the derivative `deriv` at `pos` (the middle) of the polynomial of least squares
    through `window_length` points that are `delta` apart; `use` is "conv" or "dot".

    >>> import functrans as ft
    >>> print(ft.scipy.signal.savgol_coeffs(3, 1).round(4))
    [0.3333 0.3333 0.3333]
    """
    values = _polynomial_taps(window_length, polyorder, deriv, delta, pos, use)
    return jnp.asarray(values).astype(default_float())


def _polynomial_taps(window_length: int, polyorder: int, deriv: int, delta: float,
                     pos: float | None, use: str) -> np.ndarray[Any, Any]:
    one_of("signal.savgol_coeffs", "use", use, ("conv", "dot"))
    size = known_size("signal.savgol_coeffs", "window_length", window_length)
    order = known_size("signal.savgol_coeffs", "polyorder", polyorder, 0)
    deriv = known_size("signal.savgol_coeffs", "deriv", deriv, 0)
    if order >= size:
        raise ArgumentError(f"functrans.scipy.signal.savgol_coeffs: polyorder is {order}.",
                            where=user_source(), why=f"it is less than window_length, {size}.")
    middle = (size // 2 - (0.5 if size % 2 == 0 else 0)) if pos is None else float(pos)
    if not 0 <= middle < size:
        raise ArgumentError(f"functrans.scipy.signal.savgol_coeffs: pos is {pos}.",
                            where=user_source(), why=f"it is from 0 to {size - 1}.")
    if deriv > order:
        return np.zeros(size)
    x = np.arange(size) - middle
    taps = np.linalg.pinv(np.vander(x, order + 1, increasing=True))[deriv]
    taps = taps * float(np.prod(np.arange(1, deriv + 1))) / delta**deriv
    return np.asarray(taps[::-1] if use == "conv" else taps)


def savgol_filter(x: ArrayLike, window_length: int, polyorder: int, deriv: int = 0,
                  delta: float = 1.0, axis: int = -1, mode: str = "interp", cval: ArrayLike = 0.0
                  ) -> Array:
    """x smoothed along an axis by polynomials of least squares through windows.

    `mode` says what is beyond the ends: "mirror", "constant" (`cval`), "nearest", "wrap", or
    "interp", where the first and last points are those of the polynomials through the first and
    last windows. Raises ArgumentError for an order that is not below window_length.
    Source: Savitzky and Golay, Analytical Chemistry 36 (1964).

    >>> import functrans as ft
    >>> ft.scipy.signal.savgol_filter(ft.numpy.array([1.0, 2.0, 3.0, 4.0]), 3, 1).round(4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    one_of("signal.savgol_filter", "mode", mode, (*_MODES, "interp"))
    (v,) = inexact(x)
    axis = axis_index(axis, v.ndim, "savgol_filter")
    taps = _polynomial_taps(window_length, polyorder, deriv, delta, None, "dot")
    size = len(taps)
    v = jnp.moveaxis(v, axis, -1)
    if mode == "interp" and size > v.shape[-1]:
        raise ShapeError(f"functrans.scipy.signal.savgol_filter: axis {axis} has {v.shape[-1]} "
                         f"points, and window_length is {size}.", where=user_source(),
                         fix="mode='nearest'")
    before, after = size // 2, (size - 1) // 2
    if size % 2 == 0:  # the places between points: SciPy's filter looks half a step ahead
        before, after = after, before
    width = [(0, 0)] * (v.ndim - 1) + [(before, after)]
    options: dict[str, Any] = {"constant_values": cval} if mode == "constant" else {}
    inner = v if mode == "interp" else jnp.pad(v, width, mode=_MODES[mode], **options)
    lines = inner.reshape(-1, 1, inner.shape[-1])
    kernel = jnp.asarray(taps).astype(v.dtype)[None, None]
    out = lax.conv_general_dilated(lines, kernel, (1,), [(0, 0)], precision="highest")
    out = out.reshape(*v.shape[:-1], out.shape[-1])
    if mode == "interp":
        half = size // 2
        ends = np.stack([_polynomial_taps(size, polyorder, deriv, delta, p, "dot")
                         for p in range(size)])
        ends_of = jnp.asarray(ends).astype(v.dtype)
        first = matmul(v[..., :size], ends_of[:half].T)
        last = matmul(v[..., -size:], ends_of[size - half:].T)
        out = out[..., half - before:out.shape[-1] - (half - after)]
        out = jnp.concatenate([first, out, last], axis=-1)
    return jnp.moveaxis(out, -1, axis)


def medfilt(volume: ArrayLike, kernel_size: int | Sequence[int] | None = None) -> Array:
    """The median of the neighbourhood of each element, with zeros beyond the edges.

    `kernel_size` is odd, one for all axes or one each (3).

    >>> import functrans as ft
    >>> ft.scipy.signal.medfilt(ft.numpy.array([1.0, 9.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0, 2.0]
    """
    x = jnp.asarray(volume)
    sizes = _sizes("medfilt", kernel_size, x.ndim)
    return _ranked("medfilt", x, np.ones(sizes, bool), int(np.prod(sizes)) // 2)


def medfilt2d(input: ArrayLike, kernel_size: int | Sequence[int] = 3) -> Array:
    """The median of the neighbourhood of each element of a matrix; see `medfilt`.

    >>> import functrans as ft
    >>> ft.scipy.signal.medfilt2d(ft.numpy.ones((3, 3))).tolist()
    [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]
    """
    return medfilt(of_rank("signal.medfilt2d", "input", jnp.asarray(input), 2), kernel_size)


def order_filter(a: ArrayLike, domain: ArrayLike, rank: int) -> Array:
    """The element of the given rank among those of the neighbourhood where `domain` is not 0.

    `domain` is known, and of odd sizes. Beyond the edges are zeros.

    >>> import functrans as ft
    >>> ft.scipy.signal.order_filter(ft.numpy.array([1.0, 5.0, 3.0]), [1, 1, 1], 2).tolist()
    [5.0, 5.0, 5.0]
    """
    x = jnp.asarray(a)
    footprint = np.asarray(domain) != 0
    if footprint.ndim != x.ndim or any(n % 2 == 0 for n in footprint.shape):
        raise ShapeError(f"functrans.scipy.signal.order_filter: domain has shape "
                         f"{footprint.shape}.", where=user_source(),
                         why=f"it has {x.ndim} axes of odd sizes.")
    if not 0 <= rank < footprint.sum():
        raise ArgumentError(f"functrans.scipy.signal.order_filter: rank is {rank}.",
                            where=user_source(), why=f"domain has {footprint.sum()} elements.")
    return _ranked("order_filter", x, footprint, int(rank))


def _ranked(name: str, x: Array, footprint: np.ndarray[Any, Any], rank: int) -> Array:
    padded = jnp.pad(x, [(n // 2, n // 2) for n in footprint.shape])
    return jnp.sort(neighbours(padded, footprint), axis=0)[rank]


def _sizes(name: str, sizes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if sizes is None or np.ndim(sizes) == 0:
        sizes = (3 if sizes is None else int(np.asarray(sizes)),) * ndim
    found = tuple(int(s) for s in np.asarray(sizes))
    if len(found) != ndim or any(s % 2 == 0 or s < 1 for s in found):
        raise ArgumentError(f"functrans.scipy.signal.{name}: the sizes of the neighbourhood are "
                            f"{found}.", where=user_source(), why=f"there are {ndim} odd ones.")
    return found


def wiener(im: ArrayLike, mysize: int | Sequence[int] | None = None,
           noise: ArrayLike | None = None) -> Array:
    """Wiener's filter: the mean of a neighbourhood where its variance is that of the noise.

    `mysize` is odd, one for all axes or one each (3); `noise` is the power of the noise, the mean
    of the variances by default. Source: Lim, Two-Dimensional Signal and Image Processing (1990).

    >>> import functrans as ft
    >>> ft.scipy.signal.wiener(ft.numpy.array([0.0, 3.0, 0.0]), noise=100.0).round(4).tolist()
    [1.0, 1.0, 1.0]
    """
    (x,) = inexact(im)
    sizes = _sizes("wiener", mysize, x.ndim)
    footprint = np.ones(sizes, bool)
    around = neighbours(jnp.pad(x, [(n // 2, n // 2) for n in sizes]), footprint)
    mean = jnp.mean(around, axis=0)
    variance = jnp.mean(around**2, axis=0) - mean**2
    power = jnp.mean(variance) if noise is None else noise
    quiet = variance < power
    return jnp.where(quiet, mean, mean + (x - mean) * (
        1 - power / jnp.where(quiet, 1, variance)))
