"""Windows that slide over an array: sizes, padding, and their NumPy views.

Convolution and pooling share this: an axis of n elements is dilated (holes between elements),
padded (negative padding crops) and then covered by windows at a stride.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.lib.stride_tricks import as_strided

from functrans.core.dims import Size
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source

__all__ = ["Padding", "Pads", "count_windows", "dilate", "embed", "extract", "padded_sizes",
           "positive_ints", "resolve_padding", "sliding", "taps"]

Pads = tuple[tuple[int, int], ...]
Padding = str | Sequence[tuple[int, int]]


@overload
def dilate(size: int, dilation: int) -> int: ...
@overload
def dilate(size: Size, dilation: int) -> Size: ...
def dilate(size: Size, dilation: int) -> Size:
    """The extent of `size` elements at a distance of `dilation`."""
    if dilation == 1 or (isinstance(size, int) and size == 0):
        return size
    return (size - 1) * dilation + 1


def count_windows(size: Size, window: Size, stride: int) -> Size:
    """How many windows start within `size` elements, `stride` apart, and end there too."""
    if isinstance(size, int) and isinstance(window, int) and size < window:
        return 0
    return (size - window) // stride + 1


def positive_ints(name: str, what: str, values: Any,
                  n: int) -> tuple[int, ...]:
    """One positive int per axis; None means ones. Raises ArgumentError for anything else."""
    if values is None:
        return (1,) * n
    try:
        ints = tuple(map(operator.index, values if np.ndim(values) else (values,) * n))
    except TypeError:
        ints = ()
    if len(ints) != n or any(v < 1 for v in ints):
        raise ArgumentError(f"{name}: {what}={values!r} is not {n} positive integers.",
                            where=user_source(), why="there is one entry per windowed dimension.",
                            fix=f"{what}={(1,) * n}")
    return ints


def resolve_padding(name: str, padding: Padding, sizes: Sequence[Size], windows: Sequence[int],
                    strides: Sequence[int]) -> Pads:
    """(low, high) pairs for "SAME" (ceil(size / stride) windows), "SAME_LOWER", "VALID" or pairs.

    `sizes` and `windows` are the extents after dilation. Raises ArgumentError for other strings
    and for pairs that do not match the dimensions.
    """
    if isinstance(padding, str):
        kind = padding.upper()
        if kind == "VALID":
            return ((0, 0),) * len(windows)
        if kind not in ("SAME", "SAME_LOWER"):
            raise ArgumentError(f"{name}: the padding {padding!r} is not known.",
                                where=user_source(),
                                fix='"SAME", "SAME_LOWER", "VALID" or (low, high) pairs')
        totals = [_same_total(*each) for each in zip(sizes, windows, strides, strict=True)]
        if kind == "SAME":
            return tuple((t // 2, t - t // 2) for t in totals)
        return tuple((t - t // 2, t // 2) for t in totals)
    try:
        pads = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        pads = ()
    if len(pads) != len(windows):
        raise ArgumentError(f"{name}: padding={padding!r} is not {len(windows)} pairs of integers.",
                            where=user_source(), why="windowed dimensions have (low, high) pairs.",
                            fix=f"padding={((0, 0),) * len(windows)}")
    return pads


def _same_total(size: Size, window: int, stride: int) -> int:
    if stride == 1:  # does not depend on the size, which may be symbolic
        return max(window - 1, 0)
    count = -(-size // stride)
    return max((count - 1) * stride + window - size, 0)


def padded_sizes(name: str, sizes: Sequence[Size], padding: Pads,
                 dilation: Sequence[int]) -> tuple[Size, ...]:
    """Sizes after dilation and padding. Raises ShapeError when more is cropped than there is."""
    result = []
    for axis, (n, (low, high), d) in enumerate(zip(sizes, padding, dilation, strict=True)):
        extent = dilate(n, d)
        size = extent + (low + high)
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"{name}: padding {(low, high)} crops more than the {extent} elements "
                             f"of windowed dimension {axis}.", where=user_source())
        result.append(size)
    return tuple(result)


def embed(x: np.ndarray[Any, Any], padding: Pads, dilation: Sequence[int],
          value: Any = 0) -> np.ndarray[Any, Any]:
    """x with holes between its elements and padding around them, both holding `value`.

    One entry per axis; negative padding crops. x itself when nothing changes; else the memory
    order of x is kept.
    """
    if all(p == (0, 0) for p in padding) and all(d == 1 for d in dilation):
        return x
    spots = [_spots(*each) for each in zip(x.shape, padding, dilation, strict=True)]
    out = np.full_like(x, value, shape=tuple(size for size, _, _ in spots))
    out[tuple(to for _, _, to in spots)] = x[tuple(at for _, at, _ in spots)]
    return out


def extract(x: np.ndarray[Any, Any], shape: Sequence[int], padding: Pads,
            dilation: Sequence[int]) -> np.ndarray[Any, Any]:
    """The transpose of `embed` of an array of `shape`; zeros for elements that were cropped."""
    spots = [_spots(*each) for each in zip(shape, padding, dilation, strict=True)]
    taken = x[tuple(to for _, _, to in spots)]
    if taken.shape == tuple(shape):
        return taken
    out = np.zeros(tuple(shape), x.dtype)
    out[tuple(at for _, at, _ in spots)] = taken
    return out


def _spots(n: int, pads: tuple[int, int], dilation: int) -> tuple[int, slice, slice]:
    """The size of an axis after dilation and padding, which elements it keeps, and where."""
    low, high = pads
    size = max(dilate(n, dilation) + low + high, 0)
    first = max(-(low // dilation), 0)
    last = min(n, (size - 1 - low) // dilation + 1) if size else 0
    if last <= first:
        return size, slice(0, 0), slice(0, 0)
    return size, slice(first, last), slice(low + first * dilation, low + last * dilation, dilation)


def sliding(x: np.ndarray[Any, Any], first: int, window: Sequence[int], strides: Sequence[int],
            dilation: Sequence[int]) -> np.ndarray[Any, Any]:
    """The windows over the axes from `first` on, without copying.

    The result has the axes before `first`, then the places of windows, then those in a window.
    """
    size, steps = x.shape[first:], x.strides[first:]
    places = [int(count_windows(n, dilate(k, d), s))
              for n, k, s, d in zip(size, window, strides, dilation, strict=True)]
    return as_strided(x, (*x.shape[:first], *places, *window),
                      (*x.strides[:first], *(b * s for b, s in zip(steps, strides, strict=True)),
                       *(b * d for b, d in zip(steps, dilation, strict=True))), writeable=False)


def taps(x: np.ndarray[Any, Any], axis: int, window: int, stride: int,
         dilation: int) -> Iterator[np.ndarray[Any, Any]]:
    """For each place in a window along one axis, the elements that stand there in all windows."""
    places = int(count_windows(x.shape[axis], dilate(window, dilation), stride))
    for tap in range(window):
        start = tap * dilation
        stop = start + (places - 1) * stride + 1 if places else start
        yield x[(*(slice(None),) * axis, slice(start, stop, stride))]
