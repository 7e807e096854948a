"""Peaks of signals: where they are, how high and prominent, and how wide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, is_traced
from functrans.scipy.arguments import known_size, of_rank, one_of, real
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

Prominences = tuple[Array, Array, Array]


def find_peaks(x: ArrayLike, height: Any = None, threshold: Any = None,
               distance: float | None = None, prominence: Any = None, width: Any = None,
               wlen: float | None = None, rel_height: float = 0.5, plateau_size: Any = None, *,
               size: int | None = None, fill_value: int = -1) -> tuple[Array, dict[str, Array]]:
    """The places of the peaks of a signal (n,), and a dict of what was asked of them.

    A peak is higher than its neighbours, a flat one is at its middle. `height`, `threshold` (above
    both neighbours), `prominence`, `width` and `plateau_size` are the least, or a pair of the
    least and the largest with None for no limit; `distance` is that to higher peaks. `wlen` and
    `rel_height` are those of `peak_prominences` and `peak_widths`. Heights, prominences and widths
    are differentiated in x.

    With `size`, which `jit` and `vmap` need, there are so many places: the first ones, then
    `fill_value`, of which the dict has 0. Raises ArgumentError for a traced signal without it.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.0, 2.0, 0.0, 1.0, 1.0, 0.5, 3.0, 0.0])
    >>> peaks, found = ft.scipy.signal.find_peaks(x, height=(None, 2.5))
    >>> peaks.tolist(), found["peak_heights"].tolist()
    ([1, 3], [2.0, 1.0])
    """
    signal = _line("find_peaks", x)
    if size is None and is_traced(signal):
        raise ArgumentError("functrans.scipy.signal.find_peaks: the signal is traced.",
                            where=user_source(), why="the number of peaks depends on values.",
                            fix="find_peaks(x, size=10)")
    if distance is not None and not distance >= 1:
        raise ArgumentError(f"functrans.scipy.signal.find_peaks: distance is {distance}.",
                            where=user_source(), why="it is at least 1.")
    is_peak, left, right = _maxima(lax.stop_gradient(signal))
    # of three elements one is a peak at most
    most = max((signal.shape[0] - 1) // 2, 0)
    places = jnp.flatnonzero(is_peak) if size is None else jnp.flatnonzero(
        is_peak, size=most, fill_value=0)
    real_ones = jnp.sum(is_peak)
    keep = jnp.arange(places.shape[0]) < real_ones
    found: dict[str, Array] = {}
    if plateau_size is not None:
        sizes = (right - left + 1)[places]
        keep = keep & _within(sizes, plateau_size)
        found |= {"plateau_sizes": sizes, "left_edges": left[places],
                  "right_edges": right[places]}
    if height is not None:
        found["peak_heights"] = signal[places]
        keep = keep & _within(signal[places], height, places)
    if threshold is not None:
        found["left_thresholds"] = signal[places] - signal[places - 1]
        found["right_thresholds"] = signal[places] - signal[places + 1]
        low, high = _limits(threshold, places)
        both = found["left_thresholds"], found["right_thresholds"]
        keep = keep & (jnp.minimum(*both) >= low) & (jnp.maximum(*both) <= high)
    if distance is not None:
        keep = _far_apart(places, lax.stop_gradient(signal)[places], keep, math.ceil(distance))
    if prominence is not None or width is not None:
        found |= dict(zip(("prominences", "left_bases", "right_bases"),
                          _prominences(signal, places, wlen)))
        if prominence is not None:
            keep = keep & _within(found["prominences"], prominence, places)
    if width is not None:
        bases = found["prominences"], found["left_bases"], found["right_bases"]
        found |= dict(zip(("widths", "width_heights", "left_ips", "right_ips"),
                          _widths(signal, places, rel_height, bases)))
        keep = keep & _within(found["widths"], width, places)
    if size is None:
        chosen = jnp.flatnonzero(keep)
        return places[chosen], {k: v[chosen] for k, v in found.items()}
    chosen = jnp.flatnonzero(keep, size=known_size("signal.find_peaks", "size", size, 0),
                             fill_value=most)
    is_there = chosen < most
    if not most:
        return jnp.full(chosen.shape, fill_value, places.dtype), {
            k: jnp.zeros(chosen.shape, v.dtype) for k, v in found.items()}
    chosen = jnp.where(is_there, chosen, 0)
    return jnp.where(is_there, places[chosen], fill_value), {
        k: jnp.where(is_there, v[chosen], 0) for k, v in found.items()}


def _line(name: str, x: ArrayLike) -> Array:
    (signal,) = real(f"signal.{name}", x)
    return of_rank(f"signal.{name}", "x", signal, 1)


def _maxima(x: Array) -> tuple[Array, Array, Array]:
    """Where peaks are, and the ends of the run of equal elements that each element is in."""
    n = x.shape[0]
    index = jnp.arange(n)
    if n < 3:
        return jnp.zeros(n, bool), index, index
    changes = x[1:] != x[:-1]
    begins = jnp.concatenate([jnp.ones(1, bool), changes])
    ends = jnp.concatenate([changes, jnp.ones(1, bool)])
    left = lax.cummax(jnp.where(begins, index, 0))
    right = lax.cummin(jnp.where(ends, index, n - 1), reverse=True)
    inside = (left > 0) & (right < n - 1)
    before, after = x[jnp.maximum(left - 1, 0)], x[jnp.minimum(right + 1, n - 1)]
    is_peak = inside & (before < x) & (after < x) & (index == (left + right) // 2)
    return is_peak, left, right


def _limits(given: Any, places: Array | None) -> tuple[Any, Any]:
    """The least and the largest: numbers, or arrays with one for each element of the signal."""
    low, high = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, None)
    limits = []
    for limit, none in ((low, -math.inf), (high, math.inf)):
        value = none if limit is None else limit
        limits.append(jnp.asarray(value)[places] if jnp.ndim(value) else value)
    return limits[0], limits[1]


def _within(values: Array, given: Any, places: Array | None = None) -> Array:
    low, high = _limits(given, places)
    inside: Array = (values >= low) & (values <= high)
    return inside


def _far_apart(places: Array, heights: Array, keep: Array, distance: int) -> Array:
    """From the highest peak on, each removes those that are nearer; the later of equal ones first.
    """
    order = jnp.argsort(jnp.where(keep, heights, -jnp.inf))

    def step(k: Any, keep: Array) -> Array:
        i = order[places.shape[0] - 1 - k]
        near = jnp.abs(places - places[i]) < distance
        removed = near & (jnp.arange(places.shape[0]) != i)
        return jnp.where(keep[i], keep & ~removed, keep)

    if not places.shape[0]:
        return keep
    left: Array = lax.fori_loop(0, places.shape[0], step, keep)
    return left


def peak_prominences(x: ArrayLike, peaks: ArrayLike, wlen: float | None = None) -> Prominences:
    """How far peaks stand out of the higher one of the valleys on both sides, and these valleys.

    A valley is the lowest element before a higher one than the peak, the nearest of equal ones, in
    a window of `wlen` elements around the peak.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.0, 2.0, 1.0, 3.0, 0.5])
    >>> high, left, right = ft.scipy.signal.peak_prominences(x, [1, 3])
    >>> high.tolist(), left.tolist(), right.tolist()
    ([1.0, 2.5], [0, 0], [2, 4])
    """
    return _prominences(_line("peak_prominences", x), jnp.asarray(peaks, int), wlen)


def _prominences(x: Array, peaks: Array, wlen: float | None) -> Prominences:
    n = x.shape[0]
    if wlen is not None and not wlen > 1:
        raise ArgumentError(f"functrans.scipy.signal.peak_prominences: wlen is {wlen}.",
                            where=user_source(), why="it is larger than 1.")
    reach = n if wlen is None else (math.ceil(wlen) | 1) // 2
    values = lax.stop_gradient(x)

    def valley(peak: Array, step: int) -> Array:
        def unfinished(state: Any) -> Any:
            i, _ = state
            inside = (i >= 0) & (i < n) & (jnp.abs(i - peak) <= reach)
            return inside & (values[jnp.clip(i, 0, n - 1)] <= values[peak])

        def walk(state: Any) -> Any:
            i, lowest = state
            return i + step, jnp.where(values[i] < values[lowest], i, lowest)

        lowest: Array = lax.while_loop(unfinished, walk, (peak, peak))[1]
        return lowest

    if not peaks.shape[0]:
        return jnp.zeros(0, x.dtype), peaks, peaks
    left, right = (vmap(lambda p, s=step: valley(p, s))(peaks) for step in (-1, 1))
    return x[peaks] - jnp.maximum(x[left], x[right]), left, right


def peak_widths(x: ArrayLike, peaks: ArrayLike, rel_height: float = 0.5,
                prominence_data: Prominences | None = None, wlen: float | None = None
                ) -> tuple[Array, Array, Array, Array]:
    """The widths of peaks at a part of their prominence from the top, the heights, and both ends.

    Ends are interpolated between elements.

    >>> import functrans as ft
    >>> x = ft.numpy.array([0.0, 1.0, 2.0, 1.0, 0.0])
    >>> [v.tolist() for v in ft.scipy.signal.peak_widths(x, [2])]
    [[2.0], [1.0], [1.0], [3.0]]
    """
    signal, places = _line("peak_widths", x), jnp.asarray(peaks, int)
    data = _prominences(signal, places, wlen) if prominence_data is None else prominence_data
    return _widths(signal, places, rel_height, data)


def _widths(x: Array, peaks: Array, rel_height: float, data: Prominences
            ) -> tuple[Array, Array, Array, Array]:
    if not rel_height >= 0:
        raise ArgumentError(f"functrans.scipy.signal.peak_widths: rel_height is {rel_height}.",
                            where=user_source(), why="it is not negative.")
    prominences, lefts, rights = (jnp.asarray(v) for v in data)
    height = x[peaks] - prominences * rel_height
    if not peaks.shape[0]:
        return height, height, height, height
    values, level = lax.stop_gradient((x, height))

    def end(peak: Array, last: Array, h: Array, step: int) -> Array:
        def unfinished(i: Array) -> Any:
            return (i * step < last * step) & (values[i] > h)

        found: Array = lax.while_loop(unfinished, lambda i: i + step, peak)
        return found

    ends = []
    for last, step in ((lefts, -1), (rights, 1)):
        i = vmap(lambda p, last, h, s=step: end(p, last, h, s))(peaks, last, level)
        inner = i - step  # the neighbour towards the peak
        below = x[i] < height
        rise = jnp.where(below, x[inner] - x[i], 1)
        ends.append(i.astype(x.dtype) - step * jnp.where(below, (height - x[i]) / rise, 0))
    return ends[1] - ends[0], height, ends[0], ends[1]


def argrelextrema(data: ArrayLike, comparator: Callable[[Any, Any], Any], axis: int = 0,
                  order: int = 1, mode: str = "clip", *, size: int | None = None,
                  fill_value: int = -1) -> tuple[Array, ...]:
    """The places where `comparator(x, y)` holds for the `order` elements on both sides.

    `mode` is "clip" (beyond the ends are the last elements) or "wrap". With `size`, which `jit`
    needs, there are so many places, the last ones `fill_value`.

    >>> import functrans as ft
    >>> x = ft.numpy.array([2.0, 1.0, 3.0, 0.0, 2.0])
    >>> ft.scipy.signal.argrelextrema(x, ft.numpy.less)[0].tolist()
    [1, 3]
    """
    one_of("signal.argrelextrema", "mode", mode, ("clip", "wrap"))
    order = known_size("signal.argrelextrema", "order", order)
    x = jnp.asarray(data)
    axis = axis_index(axis, x.ndim, "argrelextrema")
    n = x.shape[axis]
    places = np.arange(n)
    found = jnp.ones(x.shape, bool)
    for shift in range(1, order + 1):
        for where in (places + shift, places - shift):
            near = where % n if mode == "wrap" else np.clip(where, 0, n - 1)
            found = found & jnp.asarray(comparator(x, jnp.take(x, near, axis=axis)))
    if size is None:
        return jnp.nonzero(found)
    return jnp.nonzero(found, size=size, fill_value=fill_value)


def argrelmax(data: ArrayLike, axis: int = 0, order: int = 1, mode: str = "clip", *,
              size: int | None = None, fill_value: int = -1) -> tuple[Array, ...]:
    """The places of relative maxima; see `argrelextrema`.

    >>> import functrans as ft
    >>> ft.scipy.signal.argrelmax(ft.numpy.array([2.0, 1.0, 3.0, 0.0, 2.0]))[0].tolist()
    [2]
    """
    return argrelextrema(data, jnp.greater, axis, order, mode, size=size, fill_value=fill_value)


def argrelmin(data: ArrayLike, axis: int = 0, order: int = 1, mode: str = "clip", *,
              size: int | None = None, fill_value: int = -1) -> tuple[Array, ...]:
    """The places of relative minima; see `argrelextrema`.

    >>> import functrans as ft
    >>> ft.scipy.signal.argrelmin(ft.numpy.array([2.0, 1.0, 3.0, 0.0, 2.0]))[0].tolist()
    [1, 3]
    """
    return argrelextrema(data, jnp.less, axis, order, mode, size=size, fill_value=fill_value)
