"""Peaks that stand out at many widths: ridges of the continuous wavelet transform.

Source: Du, Kibbe and Lin, Bioinformatics 22 (2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_values
from functrans.typing import Array, ArrayLike


def _ricker(points: int, a: float) -> Any:
    """Minus the second derivative of a Gaussian of the width a, of norm 1."""
    square = ((np.arange(points) - (points - 1) / 2) / a) ** 2
    return 2 / math.sqrt(3 * a * math.sqrt(math.pi)) * (1 - square) * np.exp(-square / 2)


def _wavelets(x: Any, wavelet: Callable[..., Any], widths: Any) -> Any:
    """The correlations of x with the wavelet of each width, a row for each."""
    rows = []
    for width in widths:
        size = min(10 * width, len(x))
        shape = np.conj(np.asarray(wavelet(size, width))[::-1])
        whole = np.convolve(x, shape)
        start = (len(shape) - 1) // 2
        rows.append(whole[start:start + len(x)])
    return np.array(rows)


class _Ridge:
    """A line of maxima from wide to narrow rows: the places of each row, and how long none came."""

    def __init__(self, row: int, column: int) -> None:
        self.row, self.column, self.first = row, column, column
        self.length, self.gap = 1, 0


def _ridges(transform: Any, distances: Any, gap: float) -> list[_Ridge]:
    """Maxima of each row joined with the nearest ridge from wider rows, or as new ridges."""
    # a place at an end has no neighbour there, and is no maximum
    inner = transform[:, 1:-1]
    peaks = np.zeros(transform.shape, bool)
    peaks[:, 1:-1] = (inner > transform[:, :-2]) & (inner > transform[:, 2:])
    open_: list[_Ridge] = []
    closed: list[_Ridge] = []
    for row in range(len(transform) - 1, -1, -1):
        for ridge in open_:
            ridge.gap += 1
        before = list(open_)
        ends = np.array([ridge.column for ridge in before])
        for column in np.flatnonzero(peaks[row]).tolist():
            apart = np.abs(column - ends)
            near = int(np.argmin(apart)) if len(before) else -1
            if near >= 0 and apart[near] <= distances[row]:
                ridge = before[near]
                # of two maxima that are near to one ridge the later is its end
                ridge.row, ridge.column, ridge.gap = row, column, 0
                ridge.length += 1
            else:
                open_.append(_Ridge(row, column))
        closed += [r for r in reversed(open_) if r.gap > gap]
        open_ = [r for r in open_ if r.gap <= gap]
    return closed + open_


def find_peaks_cwt(vector: ArrayLike, widths: Any, wavelet: Callable[..., Any] | None = None,
                   max_distances: Any = None, gap_thresh: float | None = None,
                   min_length: float | None = None, min_snr: float = 1, noise_perc: float = 10,
                   window_size: int | None = None) -> Array:
    """The places of peaks of a vector that are maxima of its wavelet transforms of many `widths`.

    Maxima of neighbouring widths are joined up to `max_distances` (a quarter of the width), across
    at most `gap_thresh` widths without one (the first width). A ridge is kept with `min_length`
    maxima (a quarter of the widths), and `min_snr` times the noise: the percentile `noise_perc` of
    the first transform in a window of `window_size` (a 20th of the vector). `wavelet(points,
    width)` is Ricker's by default. The number of peaks depends on values: not under `jit`.

    >>> import functrans as ft
    >>> x = ft.numpy.sin(ft.numpy.arange(0, 9.4, 0.05))
    >>> ft.scipy.signal.find_peaks_cwt(x, range(1, 10)).tolist()
    [32, 158]
    """
    x = known_values("signal.find_peaks_cwt", "vector", vector, "the number of peaks depends on "
                     "it.", "find_peaks(x, size=10)")
    sizes = np.atleast_1d(np.asarray(widths))
    if x.ndim != 1 or not x.size or sizes.ndim != 1 or not sizes.size:
        raise ShapeError(f"functrans.scipy.signal.find_peaks_cwt: the vector has shape {x.shape}, "
                         f"widths {sizes.shape}.", where=user_source(),
                         why="both are vectors, and not empty.")
    if (sizes <= 0).any():
        raise ArgumentError(f"functrans.scipy.signal.find_peaks_cwt: widths is {widths}.",
                            where=user_source(), why="a width is positive.")
    distances = sizes / 4 if max_distances is None else np.asarray(max_distances, float)
    if distances.shape[:1] < sizes.shape:
        raise ShapeError(f"functrans.scipy.signal.find_peaks_cwt: max_distances has shape "
                         f"{distances.shape}.", where=user_source(), why="there is one for each "
                         "width.")
    transform = _wavelets(x, wavelet or _ricker, sizes)
    gap = math.ceil(sizes[0]) if gap_thresh is None else gap_thresh
    least = math.ceil(len(sizes) / 4) if min_length is None else min_length
    window = math.ceil(len(x) / 20) if window_size is None else int(window_size)
    first = transform[0]
    before, odd = divmod(window, 2)
    found = []
    for ridge in _ridges(transform, distances, gap):
        if ridge.length < least:
            continue
        at = ridge.column
        near = first[max(at - before, 0):at + before + odd]
        noise = np.percentile(near, noise_perc) if near.size else np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            if not abs(transform[ridge.row, at] / noise) < min_snr:
                found.append(at)
    return jnp.asarray(np.sort(np.array(found, np.int64)))
