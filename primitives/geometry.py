"""Windows that slide over an array: sizes, padding, and their NumPy views.

Convolution and pooling share this: an axis of n elements is dilated (holes between elements),
padded (negative padding crops) and then covered by windows at a stride.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from functrans.core.dims import Size
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source

__all__ = ["Padding", "Pads", "count_windows", "dilate", "embed", "padded_sizes", "positive_ints",
           "resolve_padding", "sliding"]

Pads = tuple[tuple[int, int], ...]
Padding = str | Sequence[tuple[int, int]]


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
    return max((count - 1) * stride + window - size, 0)  # type: ignore[return-value]


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
    shape, source, target = [], [], []
    for n, (low, high), d in zip(x.shape, padding, dilation, strict=True):
        size = max(int(dilate(n, d)) + low + high, 0)
        first = max(-(low // d), 0)  # of the elements whose place low + i * d is not cropped
        last = min(n, (size - 1 - low) // d + 1) if size else 0
        last = max(last, first)
        shape.append(size)
        source.append(slice(first, last))
        target.append(slice(low + first * d, low + last * d, d) if last > first else slice(0, 0))
    out = np.full_like(x, value, shape=tuple(shape))
    out[tuple(target)] = x[tuple(source)]
    return out


def sliding(x: np.ndarray[Any, Any], first: int, window: Sequence[int], strides: Sequence[int],
            dilation: Sequence[int]) -> np.ndarray[Any, Any]:
    """The windows over the axes from `first` on, without copying.

    The result has the axes before `first`, then the places of windows, then those in a window.
    """
    size, steps = x.shape[first:], x.strides[first:]
    places = [int(count_windows(n, int(dilate(k, d)), s))
              for n, k, s, d in zip(size, window, strides, dilation, strict=True)]
    return as_strided(x, (*x.shape[:first], *places, *window),
                      (*x.strides[:first], *(b * s for b, s in zip(steps, strides, strict=True)),
                       *(b * d for b, d in zip(steps, dilation, strict=True))), writeable=False)
