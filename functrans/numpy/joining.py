"""Joining, splitting, repeating and editing arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dims import Dim
from functrans.core.dtypes import as_dtype, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    axis_index,
    broadcast,
    cast,
    concrete,
    filled,
    index_dtype,
    is_traced,
    operand,
    promote_dtypes,
    shape_tuple,
    slice_axis,
    static,
    static_int,
    wrap,
)
from functrans.numpy.creation import as_arrays, asarray
from functrans.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from functrans.numpy.reductions import sum
from functrans.numpy.ufunc_dispatch import truth
from functrans.numpy.ufuncs import astype
from functrans.typing import Array, ArrayLike, DTypeLike, NestedArrays, ShapeLike


def _items(name: str, arrays: Any) -> list[Array]:
    """The arrays to join: a sequence, or the rows of one array."""
    if isinstance(arrays, ARRAYS):
        return list(unstack(arrays))
    if isinstance(arrays, np.ndarray):
        return [asarray(a) for a in arrays]
    items = as_arrays(arrays)
    if not items:
        raise ArgumentError(f"functrans.numpy.{name} of no arrays.", where=user_source())
    return items


def concatenate(arrays: Array | np.ndarray | Sequence[NestedArrays], axis: int | None = 0,
                dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an existing axis; along the flattened arrays if axis is None.

    Shapes agree but along the axis, whose sizes add up.

    >>> import functrans.numpy as jnp
    >>> jnp.concatenate([jnp.zeros(2), jnp.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """
    xs = _items("concatenate", arrays)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    first = xs[0]
    if not first.ndim:
        raise ShapeError("functrans.numpy.concatenate: scalars cannot be joined along an axis.",
                         where=user_source(), fix="stack(arrays)")
    axis = axis_index(axis, first.ndim, "concatenate")
    for x in xs[1:]:
        if x.ndim != first.ndim or any(
                a != b for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))
                if i != axis):
            raise ShapeError(
                f"functrans.numpy.concatenate: shapes {', '.join(str(v.shape) for v in xs)} "
                f"differ outside axis {axis}.", where=user_source(),
                fix="stack(arrays) for a new axis, another axis=, or reshape first")
    if dtype is not None:
        xs = [astype(x, dtype) for x in xs]
    elif any(x.dtype != first.dtype or x.weak_type for x in xs):
        xs = promote_dtypes("concatenate", *xs)
    return lax.concatenate(xs, axis) if len(xs) > 1 else xs[0]


concat = concatenate


def stack(arrays: Array | np.ndarray | Sequence[NestedArrays], axis: int = 0, out: None = None,
          dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape joined along a new axis.

    >>> import functrans.numpy as jnp
    >>> jnp.stack([jnp.arange(2), jnp.arange(2)]).shape
    (2, 2)
    """
    if out is not None:
        raise ArgumentError("functrans.numpy.stack does not take out=.", where=user_source())
    xs = _items("stack", arrays)
    if any(x.shape != xs[0].shape for x in xs):
        raise ShapeError(f"functrans.numpy.stack: the arrays have different shapes: "
                         f"{', '.join(str(x.shape) for x in xs)}.", where=user_source(),
                         fix="concatenate(arrays) along an axis that they have, or pad them")
    axis = axis_index(axis, xs[0].ndim + 1, "stack")
    return concatenate([lax.expand_dims(x, (axis,)) for x in xs], axis, dtype)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of x along axis: the inverse of stack.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    x = operand("unstack", x)
    if not x.ndim:
        raise ShapeError("functrans.numpy.unstack takes arrays of at least one dimension.",
                         where=user_source())
    axis = axis_index(axis, x.ndim, "unstack")
    return tuple(lax.squeeze(slice_axis(x, i, i + 1, axis), (axis,))
                 for i in range(int(x.shape[axis])))


def _list(arrays: Array | list[Array]) -> list[Array]:
    return arrays if isinstance(arrays, list) else [arrays]


def vstack(tup: Array | np.ndarray | Sequence[NestedArrays], dtype: DTypeLike | None = None
           ) -> Array:
    """Arrays joined along the first axis, vectors as rows.

    >>> jnp.vstack((jnp.array([1, 2]), jnp.array([3, 4])))
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return concatenate(_list(atleast_2d(*_items("vstack", tup))), 0, dtype)


def hstack(tup: Array | np.ndarray | Sequence[NestedArrays], dtype: DTypeLike | None = None
           ) -> Array:
    """Arrays joined along the second axis, vectors along their only one.

    >>> jnp.hstack((jnp.array([[1], [2]]), jnp.array([[3], [4]])))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    xs = _list(atleast_1d(*_items("hstack", tup)))
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype)


def dstack(tup: Array | np.ndarray | Sequence[NestedArrays], dtype: DTypeLike | None = None
           ) -> Array:
    """Arrays joined along the third axis.

    >>> jnp.dstack((jnp.array([1, 2]), jnp.array([3, 4])))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return concatenate(_list(atleast_3d(*_items("dstack", tup))), 2, dtype)


def column_stack(tup: Array | np.ndarray | Sequence[NestedArrays]) -> Array:
    """Vectors as columns, and matrices, joined along the second axis.

    >>> jnp.column_stack((jnp.array([1, 2]), jnp.array([3, 4])))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    xs = [x if x.ndim >= 2 else lax.reshape(x, (x.size, 1)) for x in _items("column_stack", tup)]
    return concatenate(xs, 1)


def _block_depth(arrays: Any) -> int:
    return 1 + max((_block_depth(a) for a in arrays), default=0) if isinstance(arrays, list) else 0


def block(arrays: NestedArrays) -> Array:
    """An array of nested lists of blocks: the innermost are joined along the last axis.

    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 2)), 5.0]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 5.]], dtype=float32)
    """
    depth = _block_depth(arrays)

    def leaf_rank(a: Any) -> int:
        return max(map(leaf_rank, a), default=0) if isinstance(a, list) else asarray(a).ndim

    rank = max(depth, leaf_rank(arrays))

    def join(a: Any, level: int) -> Array:
        if isinstance(a, list):
            return concatenate([join(b, level + 1) for b in a], rank - depth + level)
        x = asarray(a)
        return lax.expand_dims(x, tuple(range(rank - x.ndim))) if x.ndim < rank else x

    return join(arrays, 0)


# splitting -----------------------------------------------------------------------------------


def _split(name: str, ary: ArrayLike, sections: Any, axis: int, uneven: bool) -> list[Array]:
    x = operand(name, ary)
    axis = axis_index(axis, x.ndim, name)
    size = x.shape[axis]
    if isinstance(sections, (list, tuple)) or np.ndim(sections):
        points = [i if isinstance(i, Dim) else static_int(name, i, "indices_or_sections")
                  for i in sections]
        bounds = [0, *(max(p + size, 0) if p < 0 else min(p, size) for p in points), size]
    else:
        count = static_int(name, sections, "indices_or_sections")
        if count <= 0 or (size % count and not uneven):
            raise ShapeError(f"functrans.numpy.{name}: axis {axis} of shape {x.shape} does not "
                             f"split into {count} equal parts.", where=user_source(),
                             fix=f"array_split(x, {count})")
        part, extra = divmod(size, count)
        bounds = [i * part + min(i, extra) for i in range(count + 1)]
    return [slice_axis(x, start, max(start, stop), axis)
            for start, stop in itertools.pairwise(bounds)]


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
          ) -> list[Array]:
    """Equal parts of an array along axis, or its parts between the given indices.

    >>> import functrans.numpy as jnp
    >>> [part.tolist() for part in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split("split", ary, indices_or_sections, axis, False)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
                ) -> list[Array]:
    """As split, into parts that differ by at most one in size.

    >>> [part.tolist() for part in jnp.array_split(jnp.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    return _split("array_split", ary, indices_or_sections, axis, True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """split along the first axis.

    >>> [part.tolist() for part in jnp.vsplit(jnp.arange(6).reshape(3, 2), [1])]
    [[[0, 1]], [[2, 3], [4, 5]]]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """split along the second axis, or the only one of a vector.

    >>> [part.tolist() for part in jnp.hsplit(jnp.arange(8).reshape(2, 4), 2)]
    [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    """
    x = operand("hsplit", ary)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """split along the third axis.

    >>> [part.shape for part in jnp.dsplit(jnp.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return split(ary, indices_or_sections, 2)


# repeating -----------------------------------------------------------------------------------


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """A repeated as a whole, so often along each axis.

    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = asarray(A)
    counts = shape_tuple(reps, "tile")
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    spread = tuple(v for pair in zip(counts, shape, strict=True) for v in pair)
    places = tuple(2 * i + 1 for i in range(rank - x.ndim, rank))
    x = lax.broadcast_in_dim(x, spread, places)
    return lax.reshape(x, tuple(c * s for c, s in zip(counts, shape, strict=True)))


def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
           total_repeat_length: int | None = None) -> Array:
    """Each element of a repeated along axis, repeats times; counts may differ between elements.

    With traced repeats give total_repeat_length, the size of the result: what is over is cut off,
    what is missing is filled with the last element.

    >>> import functrans.numpy as jnp
    >>> jnp.repeat(jnp.arange(2), 2).tolist()
    [0, 0, 1, 1]
    """
    x = asarray(a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "repeat")
    size = x.shape[axis]
    if isinstance(repeats, (int, np.integer)) and total_repeat_length is None:
        count = int(repeats)
        shape = list(x.shape)
        shape.insert(axis + 1, count)
        places = tuple(i if i <= axis else i + 1 for i in range(x.ndim))
        spread = lax.broadcast_in_dim(x, tuple(shape), places)
        return lax.reshape(spread, tuple(s * count if i == axis else s
                                         for i, s in enumerate(x.shape)))
    if total_repeat_length is None:
        counts = concrete("repeat", asarray(repeats), "repeats",
                          "repeat(..., total_repeat_length=n)")
        source = np.repeat(np.arange(size), counts)
        return take_rows(x, wrap(source.astype(index_dtype(size))), axis)
    total = static_int("repeat", total_repeat_length, "total_repeat_length")
    dtype = index_dtype(size, total)
    counts_array = broadcast(cast(ravel(asarray(repeats)), dtype), (size,))
    ends = lax.cumsum(counts_array, axis=0)
    # Position p belongs to the first element whose end lies beyond p.
    positions = lax.iota(dtype, total)
    shape2 = (total, size)
    passed = lax.le(lax.broadcast_in_dim(ends, shape2, (1,)),
                    lax.broadcast_in_dim(positions, shape2, (0,)))
    index = sum(passed, 1, dtype)
    index = lax.min(index, lax.full_like(index, size - 1))
    return take_rows(x, index, axis)


def take_rows(x: Array, index: Array, axis: int) -> Array:
    """x[..., index, ...] for a vector of indices in bounds."""
    dims = lax.GatherDimensionNumbers(
        offset_dims=tuple(i for i in range(x.ndim) if i != axis),
        collapsed_slice_dims=(axis,), start_index_map=(axis,))
    sizes = tuple(1 if i == axis else s for i, s in enumerate(x.shape))
    return lax.gather(x, lax.expand_dims(index, (1,)), dims, sizes, mode="clip")


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements of a, repeated as often as needed, in a new shape.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
    Array([[1, 2, 3, 1],
           [2, 3, 1, 2]], dtype=int32)
    """
    x = ravel(asarray(a))
    shape = shape_tuple(new_shape, "resize")
    size = math.prod(shape)
    if size == 0 or x.size == 0:
        return filled(shape, 0, x.dtype)
    x = tile(x, -(-size // x.size)) if size > x.size else x
    return lax.reshape(slice_axis(x, 0, size), shape)


# editing -------------------------------------------------------------------------------------


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """values joined to the end of arr along axis, or both flattened.

    >>> jnp.append(jnp.array([1, 2]), jnp.array([[3], [4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    return concatenate([asarray(arr), asarray(values)], axis)


def _keep(obj: Any, size: int) -> np.ndarray:
    keep = np.ones(size, bool)
    keep[obj] = False
    return keep


def delete(arr: ArrayLike, obj: int | slice | Sequence[int] | ArrayLike, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """arr without the entries at index, indices, mask or slice obj along axis.

    >>> jnp.delete(jnp.array([10, 20, 30, 40]), jnp.array([1, 3]))
    Array([10, 30], dtype=int32)
    """
    x = asarray(arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "delete")
    size = x.shape[axis]
    if isinstance(obj, slice):
        keep = _keep(obj, size)
    elif isinstance(obj, ARRAYS) and is_traced(obj) and (
            assume_unique_indices or obj.ndim == 0 or obj.size == 1):
        return _delete_traced(x, lax.reshape(obj, (obj.size,)), axis)
    else:
        index = static("delete", obj, "obj") if not isinstance(obj, list) else np.asarray(
            obj, None if obj else int)
        if index.dtype != bool and index.size and (index.min() < -size or index.max() >= size):
            raise ArgumentError(f"functrans.numpy.delete: an index is out of bounds for axis "
                                f"{axis} of shape {x.shape}.", where=user_source())
        keep = _keep(index, size)
    return take_rows(x, wrap(np.flatnonzero(keep).astype(index_dtype(size))), axis)


def _delete_traced(x: Array, obj: Array, axis: int) -> Array:
    """Without unique traced indices: the i-th survivor is i plus the number of removed before."""
    size = x.shape[axis]
    dtype = index_dtype(size)
    obj = cast(obj, dtype)
    obj = lax.select_n(lax.lt(obj, lax.full_like(obj, 0)), obj,
                       lax.add(obj, lax.full_like(obj, size)))
    removed = obj.shape[0]
    (ordered,) = lax.sort((obj,), num_keys=1)
    gaps = lax.sub(ordered, lax.iota(dtype, removed))
    index = lax.iota(dtype, size - removed)
    shape = (size - removed, removed)
    passed = lax.le(lax.broadcast_in_dim(gaps, shape, (1,)),
                    lax.broadcast_in_dim(index, shape, (0,)))
    return take_rows(x, lax.add(index, sum(passed, 1, dtype)), axis)


def insert(arr: ArrayLike, obj: int | slice | Sequence[int] | ArrayLike, values: ArrayLike,
           axis: int | None = None) -> Array:
    """arr with values put in before the index, indices or slice obj along axis.

    A traced obj is an integer or an array of integers.

    >>> import functrans.numpy as jnp
    >>> jnp.insert(jnp.arange(3), 1, 9).tolist()
    [0, 9, 1, 2]
    """
    x = asarray(arr)
    v = asarray(values)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "insert")
    v = cast(v, x.dtype)
    index = _insertion_points(x, obj, axis)
    if index.ndim == 0:
        v = moveaxis(lax.expand_dims(v, tuple(range(x.ndim - v.ndim))), 0, axis)
        index = broadcast(index, (v.shape[axis],)) if is_traced(index) else \
            np.repeat(index, v.shape[axis])
    count = index.shape[0]
    v = broadcast(v, tuple(count if i == axis else s for i, s in enumerate(x.shape)))
    joined = lax.concatenate([x, v], axis)
    source = _source_if_traced(index, x.shape[axis]) if is_traced(index) else \
        wrap(_source_of_insertion(index, x.shape[axis]).astype(index_dtype(joined.shape[axis])))
    return take_rows(joined, source, axis)


def _insertion_points(x: Array, obj: Any, axis: int) -> Any:
    """Where to insert, counted from the front: a NumPy array, or a traced one."""
    size = x.shape[axis]
    if is_traced(obj):
        if kind(obj.dtype) not in "iu" or obj.ndim > 1:
            raise ArgumentError(f"functrans.numpy.insert: a traced obj is an integer or a vector "
                                f"of integers, and not {obj.aval}.", where=user_source())
        obj = lax.convert_element_type(obj, np.int32) if obj.dtype.itemsize < 4 else obj
        negative = lax.lt(obj, lax.full_like(obj, 0))
        return lax.select_n(negative, obj, lax.add(obj, lax.full_like(obj, size)))
    if isinstance(obj, slice):
        index = np.arange(size)[obj]
    else:
        index = np.asarray(obj) if isinstance(obj, list) else static("insert", obj, "obj")
        if index.dtype == bool:
            index = np.flatnonzero(index)
    index = index.astype(np.int64)
    if index.size and (index.min() < -size or index.max() > size):
        raise ArgumentError(f"functrans.numpy.insert: an index is out of bounds for axis {axis} of "
                            f"shape {x.shape}.", where=user_source())
    return np.where(index < 0, index + size, index)


def _source_of_insertion(index: np.ndarray, size: int) -> np.ndarray:
    """For each element of the result its position among the old ones and then the new ones."""
    count = index.size
    order = np.argsort(index, kind="stable")
    places = np.empty(count, np.int64)
    places[order] = index[order] + np.arange(count)
    source = np.empty(size + count, np.int64)
    old = np.ones(size + count, bool)
    old[places] = False
    source[old] = np.arange(size)
    source[places] = size + np.arange(count)
    return source


def _source_if_traced(index: Array, size: Any) -> Array:
    """The same for positions that are not known: old element i follows those put before it."""
    old = lax.iota(index.dtype, size)
    keys = lax.concatenate([old, lax.clamp(0, index, size)], 0)
    new = lax.concatenate([lax.full_like(old, 1), lax.full_like(index, 0)], 0)
    number = lax.iota(index_dtype(keys.shape[0]), keys.shape[0])
    return lax.sort((keys, new, number), num_keys=2, is_stable=True)[2]


# applying functions --------------------------------------------------------------------------


def apply_over_axes(func: Callable[..., Array], a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """func(a, axis) applied along one axis after the other, keeping the number of dimensions.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    x = asarray(a)
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        result = func(x, axis)
        if result.ndim == x.ndim - 1:
            result = lax.expand_dims(result, (axis_index(axis, x.ndim, "apply_over_axes"),))
        if result.ndim != x.ndim:
            raise ShapeError("functrans.numpy.apply_over_axes: the function changed the shape "
                             f"{x.shape} to {result.shape}.", where=user_source())
        x = result
    return x


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """The truth values along axis packed into uint8, eight to a byte, padded with zeros.

    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    x = truth(operand("packbits", a))
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, axis, -1)
    padding = -x.shape[-1] % 8
    byte = as_dtype("uint8")
    x = lax.pad(lax.convert_element_type(x, byte), wrap(np.zeros((), byte)),
                [(0, 0, 0)] * (x.ndim - 1) + [(0, padding, 0)])
    x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    weights = 1 << np.arange(8, dtype=np.uint8)
    weights = weights[::-1].copy() if bitorder == "big" else weights
    packed = lax.mul(x, broadcast(wrap(weights), x.shape))
    return moveaxis(sum(packed, -1, byte), -1, axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """The bits of uint8 values along axis as values 0 and 1 of dtype uint8.

    >>> jnp.unpackbits(jnp.array([131], jnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    x = operand("unpackbits", a)
    if x.dtype != np.dtype(np.uint8):
        raise ArgumentError(f"functrans.numpy.unpackbits takes uint8, and got {x.dtype}.",
                            where=user_source())
    if axis is None:
        x, axis = ravel(x), 0
    x = moveaxis(x, axis, -1)
    shifts = np.arange(8, dtype=np.uint8)
    shifts = shifts[::-1].copy() if bitorder == "big" else shifts
    shape = (*x.shape, 8)
    bits = lax.shift_right_logical(lax.broadcast_in_dim(x, shape, tuple(range(x.ndim))),
                                   broadcast(wrap(shifts), shape))
    bits = lax.bitwise_and(bits, lax.full_like(bits, 1))
    bits = lax.reshape(bits, (*x.shape[:-1], x.shape[-1] * 8))
    if count is not None:
        size = bits.shape[-1]
        if count > size:
            config = [(0, 0, 0)] * (bits.ndim - 1) + [(0, count - size, 0)]
            bits = lax.pad(bits, wrap(np.zeros((), np.uint8)), config)
        else:
            bits = slice_axis(bits, 0, count if count >= 0 else size + count)
    return moveaxis(bits, -1, axis)
