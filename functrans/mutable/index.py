"""Index expressions of NumPy code: which are views, which copies, and indices of indices.

An index that names a view is normalised to *entries*, one for each axis of the array and each new
axis: a Python int from the front, a traced integer, a `range` for a slice, None for a new axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from functrans import numpy as jnp
from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.dims import Dim
from functrans.core.errors import ConcretizationError, IndexingError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS, Tracer
from functrans.numpy.common import is_traced

__all__ = ["ARRAY_TYPES", "Entry", "around_traced_mask", "compose", "entries_of", "in_bounds",
           "is_advanced", "items_of", "known_mask", "last_of_repeated", "plain_index",
           "traced_mask"]

Entry: TypeAlias = Any
ARRAY_TYPES: Any = (*ARRAYS, np.ndarray)
_MAX_COMPARED = 64  # so many traced indices are compared pairwise: a table of 4,096 booleans


def plain_index(index: Any) -> tuple[Any, ...]:
    """The items of an index; numbers of known value as Python's, lists as arrays."""
    return tuple([_plain(i) for i in index]) if isinstance(index, tuple) else (_plain(index),)


def _plain(item: Any) -> Any:
    cls = type(item)
    if cls is int or item is None or item is Ellipsis or cls is bool:
        return item
    if cls is slice:
        return slice(*[_bound(b) for b in (item.start, item.stop, item.step)])
    if isinstance(item, list):
        array = jnp.asarray(item) if item else np.zeros(0, np.int64)
        return array if array.ndim or dtypes.kind(array.dtype) == "b" else array[None]
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, ARRAY_TYPES) and not item.ndim and not is_traced(item):
        if dtypes.kind(item.dtype) in "iu":
            return operator.index(item)
        if dtypes.kind(item.dtype) == "b":
            return bool(item)
    if isinstance(item, ARRAY_TYPES) and dtypes.kind(item.dtype) not in "iub":
        raise IndexingError(f"an index of dtype {item.dtype} is no integer or boolean.",
                            where=user_source(), fix="x[i.astype(int)]")
    if not isinstance(item, (*ARRAY_TYPES, Dim)):
        try:
            return operator.index(item)
        except TypeError:
            raise IndexingError(
                f"an index is an integer, a slice, ..., None or an array of integers or booleans, "
                f"got a {cls.__name__}.", where=user_source()) from None
    return item


def _bound(bound: Any) -> Any:
    if bound is None or type(bound) is int or isinstance(bound, Dim):
        return bound
    if is_traced(bound):
        raise ConcretizationError(
            "a slice with traced bounds has no known size.", where=user_source(),
            why="shapes are known while a program is traced.",
            fix="functrans.lax.dynamic_slice_in_dim(x, start, size) to read a window of a known "
                "size; x[start + np.arange(size)] to read or write one; np.where(mask, y, x)")
    return operator.index(bound)


def is_advanced(items: Sequence[Any]) -> bool:
    """Whether an index makes a copy: it has arrays or booleans."""
    return any(isinstance(i, bool) or (isinstance(i, ARRAY_TYPES) and bool(
        i.ndim > 0 or dtypes.kind(i.dtype) == "b")) for i in items)


def traced_mask(items: Sequence[Any]) -> Any:
    """The mask of an index that is one traced mask, else None."""
    first = items[0]
    if len(items) == 1 and is_traced(first) and dtypes.kind(first.dtype) == "b":
        return first
    return None


def around_traced_mask(items: tuple[Any, ...],
                       ndim: int) -> tuple[tuple[Any, ...], int, Any] | None:
    """An index with one traced mask among integers and slices: without it, its axis, and the mask.

    In the index that is left the axes of the mask are whole; they begin at the axis given.
    """
    masks = [k for k, i in enumerate(items) if traced_mask((i,)) is not None]
    if len(items) < 2 or len(masks) != 1:
        return None
    k = masks[0]
    others = (*items[:k], *items[k + 1:])
    if is_advanced(others):
        return None
    mask = items[k]
    before = list(items[:k])
    if Ellipsis in [i for i in before if i is None or i is Ellipsis]:
        used = mask.ndim + sum(i is not None and i is not Ellipsis for i in others)
        at = next(j for j, i in enumerate(before) if i is Ellipsis)
        before[at:at + 1] = [slice(None)] * (ndim - used)
    axis = sum(i is None or isinstance(i, slice) for i in before)
    return (*before, *[slice(None)] * mask.ndim, *items[k + 1:]), axis, mask


def known_mask(items: Sequence[Any]) -> Any:
    """The mask of an index that is one mask of known values, else None."""
    first = items[0]
    if len(items) == 1 and isinstance(first, ARRAY_TYPES) and not is_traced(first) and (
            first.ndim and dtypes.kind(first.dtype) == "b"):
        return first
    return None


def _out_of_bounds(i: Any, axis: int, size: Any) -> IndexingError:
    return IndexingError(f"index {i} is out of bounds for axis {axis} with size {size}.",
                         where=user_source())


def entries_of(items: Sequence[Any], shape: tuple[Any, ...]) -> tuple[Entry, ...] | None:
    """The entries of an index without arrays, or None where a size that it needs is symbolic.

    Raises IndexingError for too many indices, and for one out of bounds.
    """
    used = sum(i is not None and i is not Ellipsis for i in items)
    dots = sum(i is Ellipsis for i in items)
    if used > len(shape) or dots > 1:
        raise IndexingError(
            f"an index of {used} items for an array of {len(shape)} axes." if dots < 2 else
            "an index has ... more than once.", where=user_source())
    filled: list[Any] = []
    for i in items:
        filled += [slice(None)] * (len(shape) - used) if i is Ellipsis else [i]
    if not dots:
        filled += [slice(None)] * (len(shape) - used)
    entries: list[Entry] = []
    axis = 0
    for i in filled:
        if i is None:
            entries.append(None)
            continue
        size = shape[axis]
        if isinstance(i, slice):
            if not isinstance(size, int) or any(
                    isinstance(b, Dim) for b in (i.start, i.stop, i.step)):
                return None
            if i.step == 0:
                raise IndexingError("the step of a slice is zero.", where=user_source())
            entries.append(range(*i.indices(size)))
        elif isinstance(i, int):
            if not isinstance(size, int):
                return None
            if not -size <= i < size:
                raise _out_of_bounds(i, axis, size)
            entries.append(i % size)
        else:
            entries.append(i)
        axis += 1
    return tuple(entries)


def items_of(entries: Sequence[Entry]) -> tuple[Any, ...]:
    """Entries as an index."""
    return tuple([_slice(e) if isinstance(e, range) else e for e in entries])


def _slice(r: range) -> slice:
    if not len(r):
        return slice(0, 0)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, None if stop < 0 else stop, r.step)


def compose(first: Sequence[Entry], second: Sequence[Entry]) -> tuple[Entry, ...] | None:
    """The entries of x[first][second] as an index of x, or None where that is none."""
    if not all(isinstance(e, (int, range)) or e is None or isinstance(e, Tracer)
               for e in (*first, *second)):
        return None
    rest = list(second)
    entries: list[Entry] = []
    for e in first:
        if e is not None and not isinstance(e, range):
            entries.append(e)
            continue
        while rest and rest[0] is None:
            entries.append(rest.pop(0))
        inner = rest.pop(0)
        if e is None:
            if isinstance(inner, range) and inner == range(1):
                entries.append(None)
            elif inner != 0 or isinstance(inner, (range, Tracer)):
                return None
        elif isinstance(inner, (int, range)):
            entries.append(e[inner] if isinstance(inner, int) else e[_slice(inner)])
        else:  # a traced integer counts along a slice
            return None
    return (*entries, *rest)


def in_bounds(items: Sequence[Any], shape: tuple[Any, ...]) -> None:
    """Raise IndexingError where an index array of known values, or a mask, does not fit."""
    used = sum(0 if i is None or i is Ellipsis or isinstance(i, bool) else
               i.ndim if isinstance(i, ARRAY_TYPES) and dtypes.kind(i.dtype) == "b"
               else 1 for i in items)
    if used > len(shape):
        raise IndexingError(f"an index of {used} axes for an array of {len(shape)}.",
                            where=user_source())
    axis = 0
    for i in items:
        if i is None or isinstance(i, bool):
            continue
        if i is Ellipsis:
            axis += len(shape) - used
            continue
        if not isinstance(i, ARRAY_TYPES):
            size = shape[axis]
            if isinstance(i, int) and isinstance(size, int) and not -size <= i < size:
                raise _out_of_bounds(i, axis, size)
            axis += 1
            continue
        if dtypes.kind(i.dtype) == "b":
            for k, size in enumerate(i.shape):
                if isinstance(size, int) and isinstance(shape[axis + k], int) and (
                        size != shape[axis + k]):
                    raise IndexingError(
                        f"a mask of shape {tuple(i.shape)} for axes of shape "
                        f"{tuple(shape[axis:axis + i.ndim])}.", where=user_source())
            axis += i.ndim
            continue
        size = shape[axis]
        if not is_traced(i) and isinstance(size, int):
            values = np.asarray(i)
            if values.size and (values.min() < -size or values.max() >= size):
                wrong = values[(values < -size) | (values >= size)]
                raise _out_of_bounds(wrong.flat[0], axis, size)
        axis += 1


def last_of_repeated(items: tuple[Any, ...], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with all but the last of equal places out of bounds, where writes are left out.

    NumPy's assignment lets the last value stay; a scatter leaves the order open.
    """
    axes, axis = [], 0
    dots = len(shape) - sum(
        0 if i is None or i is Ellipsis or isinstance(i, bool) else
        i.ndim if isinstance(i, ARRAY_TYPES) and dtypes.kind(i.dtype) == "b" else 1
        for i in items)
    for k, i in enumerate(items):
        if isinstance(i, ARRAY_TYPES) and i.ndim and dtypes.kind(i.dtype) == "b":
            return items  # masks name no place twice
        if i is None or isinstance(i, bool):
            continue
        if isinstance(i, ARRAY_TYPES):
            axes.append((k, axis))
        axis += dots if i is Ellipsis else 1
    arrays = [items[k] for k, _ in axes]
    sizes = [shape[a] for _, a in axes]
    block = jnp.broadcast_shapes(*[tuple(i.shape) for i in arrays])
    known_sizes = all(isinstance(s, int) for s in (*block, *sizes))
    count: Any = math.prod(block) if known_sizes else None
    if count is None or count <= 1:
        return items
    known = not any(is_traced(i) for i in arrays)
    of = np if known else jnp
    place: Any = 0
    for i, size in zip(arrays, sizes, strict=True):
        i = np.asarray(i) if known else jnp.asarray(i)
        place = place * size + of.where(i < 0, i + size, i)
    place = of.broadcast_to(place, block).reshape(-1)
    if known:
        _, from_end = np.unique(place[::-1], return_index=True)
        if len(from_end) == count:
            return items
        keep: Any = np.zeros(count, bool)
        keep[count - 1 - from_end] = True
    elif count <= _MAX_COMPARED:
        later = np.triu(np.ones((count, count), bool), 1)
        keep = jnp.logical_not(jnp.any((place[:, None] == place) & later, axis=1))
    else:
        order = jnp.arange(count)
        last = jnp.zeros(math.prod(sizes), order.dtype).at[place].max(order)
        keep = last[place] == order
    k, a = axes[0]
    first = of.where(keep.reshape(block), arrays[0], shape[a])
    return (*items[:k], jnp.asarray(first) if isinstance(items[k], ArrayBase) else first,
            *items[k + 1:])
