"""Reading with an index expression: NumPy's indexing in full, lowered to the cheapest operations.

Ints and slices become one slice (and a reversal, and a reshape), a traced int a dynamic slice,
and only index arrays a gather. Known indices out of bounds are errors where Python ints say so;
index arrays are clamped, or filled with `mode="fill"`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans._runtime import ArrayBase, get_trace, wrap
from functrans.core import dtypes
from functrans.core.dims import Dim
from functrans.core.eager import is_off_host
from functrans.core.errors import ArgumentError, IndexingError
from functrans.core.source import user_source
from functrans.numpy.index_lists import window_index, with_arrays
from functrans.numpy.index_parts import (
    Indices,
    count_from_front,
    index_vectors,
    is_known,
    negative_outside,
    parse_index,
    size_of,
)
from functrans.primitives.base import full
from functrans.primitives.dynamic_slice import dynamic_slice_p
from functrans.primitives.index import gather_p
from functrans.primitives.index_checks import check_index, looks_at_indices
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    default_fill,
)
from functrans.primitives.shape import reshape, rev, slice_p
from functrans.typing import Array

__all__ = ["check_mode", "check_parts", "getitem", "index_array", "numpy_index",
           "scalar_masks_expanded"]

# a smaller result is copied, so that it does not keep the whole array alive
_COPY_BYTES = 1024
_STATIC = frozenset((int, slice, type(None), type(Ellipsis)))
_MODES = ("fill", "drop", "clip", "wrap", "promise_in_bounds")


def getitem(x: Array, index: Any) -> Array:
    """x[index] of an array or tracer."""
    if get_trace() is None and isinstance(x, ArrayBase) and not is_off_host(x):
        result = _eager(x, index)
        if result is not None:
            return result
    return index_array(x, index)


def _eager(x: Array, index: Any) -> Array | None:
    """x[index] by NumPy, None where it is not NumPy's to say (or to refuse)."""
    index = numpy_index(index)
    if index is NotImplemented:
        return None
    try:
        part = x._np[index]
    except (IndexError, TypeError, ValueError):
        return None  # out of bounds, which may mean clamping, or calls for our own message
    if type(part) is np.ndarray and part.nbytes <= _COPY_BYTES and part.base is not None:
        part = part.copy()
    return wrap(part, x.weak_type)


def numpy_index(index: Any) -> Any:
    """An index as NumPy takes it; NotImplemented where NumPy means something else by it."""
    cls = type(index)
    if cls is tuple:
        if all(type(i) in _STATIC for i in index):
            return index
        items = tuple([_as_numpy(i) for i in index])
        return NotImplemented if any(i is NotImplemented for i in items) else items
    return index if cls in _STATIC else _as_numpy(index)


def _as_numpy(i: Any) -> Any:
    """One item of an index as NumPy takes it, or NotImplemented."""
    if type(i) in _STATIC:
        return i
    if isinstance(i, ArrayBase):
        if is_off_host(i):
            return NotImplemented
        i = i._np
    elif isinstance(i, np.integer):
        return int(i)
    if type(i) is np.ndarray and i.dtype.kind in "iub" and (i.ndim or i.dtype.kind != "b"):
        return i
    return NotImplemented


def index_array(x: Array, index: Any, *, mode: Any = None, fill_value: Any = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                wrap_negative_indices: bool = True) -> Array:
    """x[index], with a word on indices out of bounds.

    `mode` is "clip" (default), "fill" (with `fill_value`, NaN or the lowest integer by default),
    "wrap" or "promise_in_bounds". Raises IndexingError for what is no index.
    """
    window = window_index(tuple(x.shape), index)
    if window is not None:
        x, index = dynamic_slice_p.bind(x, *window.starts, slice_sizes=window.sizes), window.rest
    x, index = scalar_masks_expanded(x, index)
    if not wrap_negative_indices:
        index = negative_outside(index)
    named = check_mode(mode, "clip" if fill_value is None else "fill")
    looks = (mode is None or named == "promise_in_bounds") and fill_value is None \
        and looks_at_indices()
    at = parse_index(tuple(x.shape), index, clamp_scalars=not looks and wrap_negative_indices
                     and named in ("clip", "promise_in_bounds"),
                     ints_in_bounds=mode is None and fill_value is None)
    if looks:
        check_parts(at)
    x = _sliced(x, at)
    arrays = at.arrays
    if not arrays:
        return _reshaped(x, at.result_shape)
    kept = [p for p in at.parts if p.kind in ("slice", "array")]
    sizes = [at.shape[p.axis] for p in arrays]
    if any(isinstance(s, int) and s == 0 for s in sizes):
        return _nothing_to_index(x, at, named, fill_value)
    values = [count_from_front(p.value, s, named == "wrap") if wrap_negative_indices or
              named == "wrap" else p.value for p, s in zip(arrays, sizes, strict=True)]
    if at.block == () and named in ("clip", "promise_in_bounds", "wrap"):
        starts = iter(values)
        return _reshaped(dynamic_slice_p.bind(
            x, *[next(starts) if p.kind == "array" else np.int32(0) for p in kept],
            slice_sizes=tuple(1 if p.kind == "array" else p.value[1] for p in kept)),
            at.result_shape)
    values, how = settle_bounds(values, sizes, named)
    collapsed = tuple(d for d, p in enumerate(kept) if p.kind == "array")
    real = [p for p in at.order if p is None or p.kind != "new"]
    before, rank = real.index(None), len(at.block)
    offset = tuple(d if d < before else d - 1 + rank for d in range(len(real)) if d != before)
    every = tuple(range(rank))
    vectors = index_vectors(values, at.block, [every] * len(values))
    windows = tuple(1 if p.kind == "array" else p.value[1] for p in kept)
    out = gather_p.bind(
        x, vectors, dimension_numbers=GatherDimensionNumbers(offset, collapsed, collapsed),
        slice_sizes=windows, unique_indices=unique_indices or at.distinct,
        indices_are_sorted=indices_are_sorted or (at.distinct and len(arrays) == 1), mode=how,
        fill_value=_fill_scalar(fill_value, x) if named == "fill" else None)
    return _reshaped(out, at.result_shape)


def check_parts(at: Indices) -> None:
    """In a checked program, stop where an index array is out of bounds."""
    for part in at.arrays:
        if not at.distinct:  # masks never are
            check_index(part.value, at.shape[part.axis], part.axis)


def check_mode(mode: Any, default: str) -> str:
    """A mode by its name; "drop" means "fill" where elements are read."""
    if mode is None:
        return default
    if isinstance(mode, GatherScatterMode):
        mode = mode.value
    if mode not in _MODES:
        raise ArgumentError(f"there is no mode {mode!r} for indices out of bounds.",
                            where=user_source(), fix=f"mode is one of {', '.join(_MODES)}")
    return "fill" if mode == "drop" else str(mode)


def _sliced(x: Array, at: Indices) -> Array:
    """x with the slices of an index applied and the axes of its ints dropped."""
    starts: list[Any] = [0] * len(at.shape)
    limits: list[Any] = list(at.shape)
    strides = [1] * len(at.shape)
    reverse, dropped = [], set()
    for kind, axis, value in at.parts:
        if kind == "int":
            starts[axis], limits[axis] = value, value + 1
            dropped.add(axis)
        elif kind == "slice":
            start, count, step = value
            if step < 0:
                start, step = start + (count - 1) * step, -step
                reverse.append(axis)
            if isinstance(count, int) and count == 0:
                starts[axis], limits[axis] = 0, 0
            else:
                starts[axis], strides[axis] = start, step
                limits[axis] = start + (count - 1) * step + 1 if step != 1 else start + count
    if tuple(limits) != at.shape or any(not isinstance(s, int) or s for s in starts) \
            or any(s != 1 for s in strides):
        x = slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits),
                         strides=tuple(strides))
    x = rev(x, reverse)
    return _reshaped(x, tuple(s for d, s in enumerate(x.shape) if d not in dropped)) \
        if dropped and at.arrays else x


def _reshaped(x: Array, shape: tuple[Any, ...]) -> Array:
    return x if tuple(x.shape) == shape else reshape(x, shape)


def settle_bounds(values: list[Any], sizes: list[Any],
                  named: str) -> tuple[list[Any], GatherScatterMode]:
    """Indices whose values are known are clamped here, so that the program need not do it."""
    if all(is_known(v) for v in values) and not any(isinstance(s, Dim) for s in sizes):
        inside = all(not v.size or (v.min() >= 0 and v.max() < s)
                     for v, s in zip(values, sizes, strict=True))
        if inside:
            return values, GatherScatterMode.PROMISE_IN_BOUNDS
        if named == "clip":
            return ([np.clip(v, 0, s - 1) for v, s in zip(values, sizes, strict=True)],
                    GatherScatterMode.PROMISE_IN_BOUNDS)
    if named == "wrap":
        return values, GatherScatterMode.PROMISE_IN_BOUNDS
    return values, GatherScatterMode.from_any(named)


def _nothing_to_index(x: Array, at: Indices, named: str, fill_value: Any) -> Array:
    """Index arrays on an axis of size 0.

    A traced one fills: the body of a loop over the axis is traced, though it never runs.
    """
    count = size_of(at.result_shape)
    fills = named == "fill" or not all(is_known(p.value) for p in at.arrays)
    if fills and not (isinstance(count, int) and count == 0):
        fill = _fill_scalar(fill_value, x)
        return full(at.result_shape, default_fill(x.dtype) if fill is None else fill, x.dtype)
    if isinstance(count, int) and count == 0:
        return full(at.result_shape, 0, x.dtype)
    axis = next(p.axis for p in at.arrays if at.shape[p.axis] == 0)
    raise IndexingError(f"axis {axis} has size 0 and nothing to index.", where=user_source(),
                        fix='x.at[i].get(mode="fill")')


def _fill_scalar(fill_value: Any, x: Any) -> Any:
    """The fill value as a hashable scalar of x's dtype; None for the default."""
    if fill_value is None:
        return None
    value = np.asarray(fill_value)
    if value.ndim:
        raise ArgumentError(f"fill_value has shape {value.shape}, and must be a scalar.",
                            where=user_source())
    return value.astype(x.dtype)[()]


def scalar_masks_expanded(x: Any, index: Any) -> tuple[Any, Any]:
    """True and False as indices: they select all or nothing of a new axis of size 1.

    Lists in the index are arrays afterwards.
    """
    index = with_arrays(index)
    items = index if isinstance(index, tuple) else (index,)
    if not any(_is_scalar_mask(i) for i in items):
        return x, index
    used = sum(0 if i is None or i is Ellipsis or _is_scalar_mask(i) else
               i.ndim if _is_mask(i) else 1 for i in items)
    new_items: list[Any] = []
    shape: list[Any] = []
    axis = 0
    for i in items:
        if _is_scalar_mask(i):
            shape.append(1)
            new_items.append(np.flatnonzero(np.asarray(i)).astype(np.int32))
            continue
        new_items.append(i)
        step = (0 if i is None else x.ndim - used if i is Ellipsis else
                i.ndim if _is_mask(i) else 1)
        shape += x.shape[axis:axis + step]
        axis += step
    return reshape(x, (*shape, *x.shape[axis:])), tuple(new_items)


def _is_mask(i: Any) -> bool:
    return hasattr(i, "dtype") and hasattr(i, "ndim") and i.dtype in (np.bool_,)


def _is_scalar_mask(i: Any) -> bool:
    return isinstance(i, (bool, np.bool_)) or (
        isinstance(i, (ArrayBase, np.ndarray)) and i.ndim == 0 and dtypes.kind(i.dtype) == "b")
