"""What stands for another index: lists in a tuple, as in `x[[0, 2], :]`, and dynamic slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.errors import IndexingError, shown
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.primitives.arithmetic import add
from functrans.primitives.compare import bitwise_and, ge, le, lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import concatenate, expand_dims
from functrans.typing import ArrayLike

__all__ = ["RefSlice", "WindowIndex", "window_index", "with_arrays"]


@dataclass(frozen=True)
class RefSlice:
    """Consecutive elements from a place that may be traced; `ds` makes one."""

    start: ArrayLike
    size: int
    stride: int


class WindowIndex(NamedTuple):
    """An index with dynamic slices: that of a window, and where this is."""

    starts: tuple[Any, ...]
    sizes: tuple[Any, ...]
    rest: tuple[Any, ...]
    is_inside: Any


def window_index(shape: tuple[Any, ...], index: Any) -> WindowIndex | None:
    """The window that the dynamic slices of an index name; None of an index without any.

    Negative starts count from the end. `is_inside` says whether the window is within `shape`.
    Raises IndexingError for one that is larger.
    """
    items = index if type(index) is tuple else (index,)
    if not any(type(i) is RefSlice for i in items):
        return None
    used = sum(map(_axes_of, items))
    starts: list[Any] = [0] * len(shape)
    is_inside: Any = np.True_
    sizes, rest, axis = list(shape), list(items), 0
    for n, item in enumerate(items):
        if type(item) is RefSlice and axis < len(shape):
            length = (item.size - 1) * item.stride + 1 if item.size else 0
            if length > shape[axis]:
                raise IndexingError(
                    f"ds(..., {item.size}, {item.stride}) is longer than axis {axis}, which has "
                    f"{shape[axis]} elements.", where=user_source())
            start = item.start if isinstance(item.start, (Tracer, ArrayBase)) \
                else np.asarray(item.start)
            if start.ndim or dtypes.kind(start.dtype) not in "iu":
                raise IndexingError(f"ds starts at {shown(item.start)}, which is no integer.",
                                    where=user_source())
            start = convert_element_type(start, np.int32)
            start = select_n(lt(start, np.int32(0)), start, add(start, np.int32(shape[axis])))
            is_inside = bitwise_and(is_inside, bitwise_and(
                ge(start, np.int32(0)), le(start, np.int32(shape[axis] - length))))
            starts[axis], sizes[axis] = start, length
            rest[n] = slice(None, None, item.stride)
        axis += len(shape) - used if item is Ellipsis else _axes_of(item)
    return WindowIndex(tuple(starts), tuple(sizes), tuple(rest), is_inside)


def _axes_of(item: Any) -> int:
    """How many axes an item of an index stands for."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    is_mask = isinstance(item, (Tracer, ArrayBase, np.ndarray)) and dtypes.kind(item.dtype) == "b"
    return item.ndim if is_mask else 1


def with_arrays(index: Any) -> Any:
    """An index tuple with arrays in place of lists; any other index as it is.

    A list alone, `x[[0, 2]]`, stays: older NumPy took it for a tuple.
    Raises IndexingError for a list that is no array of integers or booleans.
    """
    if type(index) is not tuple or not any(type(item) is list for item in index):
        return index
    return tuple([_array(item) if type(item) is list else item for item in index])


def _array(items: list[Any]) -> Any:
    if _has_tracer(items):
        return _stacked(items)
    try:
        array = np.asarray(items)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if not array.size and array.dtype == np.float64:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iub":
        raise IndexingError(f"the list {shown(items)} in an index is no array of integers or "
                            "booleans.", where=user_source())
    return array


def _has_tracer(items: Any) -> bool:
    return any(map(_has_tracer, items)) if isinstance(items, list) else isinstance(items, Tracer)


def _stacked(items: Any) -> Any:
    """A list with traced integers in it, as an array."""
    if not isinstance(items, list):
        x: Any = items if isinstance(items, (Tracer, ArrayBase)) else np.asarray(items)
        if dtypes.kind(x.dtype) not in "iu":
            raise IndexingError(f"the list in an index holds {shown(items)}, which is no integer.",
                                where=user_source())
        wide = x.dtype.itemsize >= 4 and isinstance(x, (Tracer, ArrayBase))
        return x if wide else convert_element_type(x, np.int32)
    parts = [expand_dims(_stacked(item), (0,)) for item in items]
    widest = np.result_type(*[p.dtype for p in parts])
    return concatenate([convert_element_type(p, widest) for p in parts], 0)
