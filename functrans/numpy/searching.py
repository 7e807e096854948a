"""Finding and taking elements: where, nonzero, take, put, bincount, searchsorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from functrans import lax
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    broadcast,
    broadcast_all,
    broadcast_shapes,
    cast,
    concrete,
    converted,
    filled,
    index_dtype,
    is_traced,
    on_host,
    operand,
    promote_dtypes,
    refuse_out,
    size_of,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.creation import as_arrays, asarray
from functrans.numpy.elementwise import clip, select_where
from functrans.numpy.joining import concatenate, stack, take_rows
from functrans.numpy.manipulation import ravel
from functrans.numpy.reductions import sum
from functrans.numpy.ufunc_dispatch import truth
from functrans.primitives.index_checks import check_index, looks_at_indices
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, DTypeLike

_SIZE_FIX = "{}(..., size=n, fill_value=0)"


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


@overload
def where(condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None,
          fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]: ...


def where(
    condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
    size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array | tuple[Array, ...]:
    """x where condition holds, else y; with one argument the indices where it holds, as nonzero.

    >>> import functrans.numpy as jnp
    >>> jnp.where(jnp.asarray([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("functrans.numpy.where takes one argument or three.",
                            where=user_source())
    if size is not None or fill_value is not None:
        raise ArgumentError("functrans.numpy.where takes size= and fill_value= only with one "
                            "argument.", where=user_source())
    return select_where(condition, x, y)


def _positions(mask: Array, size: int, fill: Any) -> Array:
    """The flat positions of the first `size` true elements of a vector, then `fill`."""
    n = mask.shape[0]
    dtype = index_dtype(n, size)
    rank = lax.cumsum(lax.convert_element_type(mask, dtype), axis=0)
    rank = lax.sub(rank, lax.full_like(rank, 1))
    target = lax.select_n(mask, lax.full_like(rank, size), rank)  # past the end: dropped
    start = lax.full((size,), fill, dtype)
    return scatter_rows(lax.scatter, start, target, lax.iota(dtype, n))


def scatter_rows(scatter: Callable[..., Array], x: Array, index: Array, updates: Array) -> Array:
    """x with updates[i] put (or added, ...) into row index[i]; rows out of bounds are dropped."""
    if isinstance(x.shape[0], int) and x.shape[0] == 0:
        return x
    dims = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, updates.ndim)), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,))
    return scatter(x, lax.expand_dims(index, (1,)), updates, dims, mode="drop")


def nonzero(a: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one vector for each axis.

    Their number depends on the data: under tracing give size=; what is missing gets fill_value.

    >>> import functrans.numpy as jnp
    >>> [i.tolist() for i in jnp.nonzero(jnp.asarray([0, 5, 0, 7]))]
    [[1, 3]]
    """
    x = operand("nonzero", a)
    if not x.ndim:
        raise ShapeError("functrans.numpy.nonzero takes arrays of at least one dimension.",
                         where=user_source(), fix="nonzero(atleast_1d(x))")
    if not is_traced(x):
        found = np.nonzero(concrete("nonzero", x, "a", ""))
        if size is None:
            return tuple(wrap(i.astype(index_dtype(n)))
                         for i, n in zip(found, x.shape, strict=True))
    elif size is None:
        concrete("nonzero", x, "a", _SIZE_FIX.format("nonzero"))
    count = static_int("nonzero", size, "size")
    flat = _positions(truth(ravel(x)), count, size_of(x))
    missing = lax.ge(flat, lax.full_like(flat, size_of(x)))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    result = []
    stride = size_of(x)
    for axis_size, fill in zip(x.shape, fills, strict=True):
        if size_of(x) == 0:
            index = lax.full_like(flat, 0)
        else:
            stride = stride // axis_size
            index = lax.rem(lax.div(flat, lax.full_like(flat, stride)),
                            lax.full_like(flat, axis_size))
        filler = converted("nonzero", 0 if fill is None else fill, index.dtype)
        result.append(lax.select_n(missing, index, broadcast(filler, index.shape)))
    return tuple(result)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
                ) -> Array:
    """The indices of the elements of the flattened array that are not zero.

    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None,
             fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array:
    """The indices of the elements that are not zero, one row for each.

    >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = operand("argwhere", a)
    if not x.ndim:
        found = nonzero(lax.reshape(x, (1,)), size=size, fill_value=fill_value)[0]
        return lax.reshape(slice_axis(found, 0, 0), (0, 0)) if not found.shape[0] else (
            filled((found.shape[0], 0), 0, index_dtype()))
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=-1)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements of arr where condition holds, as a vector.

    >>> jnp.extract(jnp.array([1, 0, 1]), jnp.array([10, 20, 30]))
    Array([10, 30], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices of a along axis where the vector condition holds.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[1, 3],
           [4, 6]], dtype=int32)
    """
    refuse_out("compress", out)
    mask = truth(asarray(condition))
    x = operand("compress", a)
    if mask.ndim != 1:
        raise ShapeError(f"functrans.numpy.compress: the condition is a vector, and not of shape "
                         f"{mask.shape}.", where=user_source())
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "compress")
    if not is_traced(mask) and size is None:
        known = np.flatnonzero(concrete("compress", mask, "condition", ""))
        return take_rows(x, wrap(known.astype(index_dtype(x.shape[axis]))), axis)
    if size is None:
        concrete("compress", mask, "condition", _SIZE_FIX.format("compress"))
    places = _positions(mask, static_int("compress", size, "size"), x.shape[axis])
    return take(x, places, axis, mode="fill", fill_value=fill_value)


# taking --------------------------------------------------------------------------------------

_MODES = (None, "fill", "clip", "wrap", "promise_in_bounds", "raise")


def index_operand(name: str, indices: ArrayLike) -> Array:
    index = operand(name, np.asarray(indices) if isinstance(indices, (list, tuple)) else indices)
    if kind(index.dtype) not in "iu":
        if index.size == 0:
            return cast(index, index_dtype())
        raise DTypeError(f"functrans.numpy.{name}: indices are integers, and not {index.dtype}.",
                         where=user_source(), fix="indices.astype(int)")
    # narrower ones do not hold the sizes of most axes
    return lax.convert_element_type(index, np.int32) if index.dtype.itemsize < 4 else index


def normal_index(name: str, index: Array, size: Any, mode: str | None, axis: int = 0,
                 clip_counts_back: bool = False) -> tuple[Array, str]:
    """Indices counted from the front and the gather mode that does the rest.

    With mode "clip" a negative index is 0, as in NumPy's take, unless `clip_counts_back`.
    """
    if mode not in _MODES:
        raise ArgumentError(f"functrans.numpy.{name}: unknown mode={mode!r}; it is 'fill', 'clip' "
                            "or 'wrap'.", where=user_source())
    if mode == "raise":
        raise ArgumentError(f"functrans.numpy.{name}: mode='raise' is not possible.",
                            where=user_source(), why="indices are not known while tracing.",
                            fix="mode='fill'")
    if mode is None and looks_at_indices():
        check_index(index, size, axis, f"{name}: ")
    if mode == "wrap":
        n = lax.full_like(index, size)
        rest = lax.rem(index, n)
        negative = lax.lt(rest, lax.full_like(rest, 0))
        return lax.select_n(negative, rest, lax.add(rest, n)), "promise_in_bounds"
    if mode == "clip" and not clip_counts_back:
        return index, "clip"
    if kind(index.dtype) == "i":
        negative = lax.lt(index, lax.full_like(index, 0))
        index = lax.select_n(negative, index, lax.add(index, lax.full_like(index, size)))
    return index, "fill" if mode is None else mode


@composite
def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
    mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements or slices of a at indices along axis (of the flattened array if None).

    The shape is a's with that of the indices in place of the axis.

    Out of bounds gives NaN (the smallest integer, the largest unsigned one) by default, the nearest
    element with mode 'clip', and counts around with 'wrap'.

    >>> import functrans.numpy as jnp
    >>> jnp.take(jnp.asarray([5, 6, 7]), jnp.asarray([2, 0])).tolist()
    [7, 5]
    """
    refuse_out("take", out)
    x = operand("take", a)
    index = index_operand("take", indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "take")
    size = x.shape[axis]
    index, mode = normal_index("take", index, size, mode, axis)
    if isinstance(indices, int) and isinstance(size, int) and 0 <= indices < size:
        return lax.index_in_dim(x, indices, axis, keepdims=False)  # a slice, in all modes
    dims = lax.GatherDimensionNumbers(
        offset_dims=tuple(i if i < axis else i + index.ndim - 1
                          for i in range(x.ndim) if i != axis),
        collapsed_slice_dims=(axis,), start_index_map=(axis,))
    sizes = tuple(1 if i == axis else s for i, s in enumerate(x.shape))
    if isinstance(x.shape[axis], int) and x.shape[axis] == 0:
        if size_of(index) != 0:
            raise ArgumentError(f"functrans.numpy.take: axis {axis} of shape {x.shape} has nothing "
                                "to take.", where=user_source())
        return filled((*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), 0, x.dtype)
    return lax.gather(x, lax.expand_dims(index, (index.ndim,)), dims, sizes,
                      unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                      mode=mode, fill_value=fill_value)


def _along_axis(x: Array, index: Array, axis: int) -> Array:
    """Full coordinates, last axis, of the elements that index names along axis."""
    parts = []
    for i, size in enumerate(x.shape):
        if i == axis:
            part = index
        elif isinstance(size, int) and size == 1:
            part = lax.full_like(index, 0)
        else:
            part = lax.broadcasted_iota(index.dtype, index.shape, i)
        parts.append(lax.expand_dims(part, (index.ndim,)))
    return lax.concatenate(parts, index.ndim)


def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                    mode: str | None = None, fill_value: ArrayLike | None = None, *,
                    wrap_negative_indices: bool | None = None) -> Array:
    """The elements of arr at indices along axis, matched along the others, as argsort gives them.

    The shape is that of the indices; the other axes of arr and of these broadcast.

    Negative indices count from the end, unless `wrap_negative_indices` is false: then they are out
    of bounds.

    >>> import functrans.numpy as jnp
    >>> x = jnp.asarray([[3, 1, 2]])
    >>> jnp.take_along_axis(x, jnp.argsort(x), axis=1).tolist()
    [[1, 2, 3]]
    """
    x = operand("take_along_axis", arr)
    index = index_operand("take_along_axis", indices)
    if axis is None:
        x, axis = ravel(x), 0
    if x.ndim != index.ndim:
        raise ShapeError(f"functrans.numpy.take_along_axis: an array of shape {x.shape} needs "
                         f"indices of {x.ndim} dimensions, and they have shape {index.shape}.",
                         where=user_source())
    axis = axis_index(axis, x.ndim, "take_along_axis")
    if wrap_negative_indices is False and kind(index.dtype) == "i" and mode in (
            None, "fill", "clip"):
        zero = lax.full_like(index, 0)
        outside = zero if mode == "clip" else lax.full_like(index, x.shape[axis])
        index = lax.select_n(lax.lt(index, zero), index, outside)
    index, mode = normal_index("take_along_axis", index, x.shape[axis], mode, axis, True)
    shape = _match_other_axes("take_along_axis", x, index, axis)
    index = broadcast(index, shape)
    dims = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=tuple(range(x.ndim)),
                                      start_index_map=tuple(range(x.ndim)))
    return lax.gather(x, _along_axis(x, index, axis), dims, (1,) * x.ndim, mode=mode,
                      fill_value=fill_value)


def _match_other_axes(name: str, x: Array, index: Array, axis: int) -> tuple[Any, ...]:
    """index's shape with its other axes broadcast to those of x."""
    others = broadcast_shapes(
        tuple(1 if i == axis else s for i, s in enumerate(x.shape)),
        tuple(1 if i == axis else s for i, s in enumerate(index.shape)), name=name)
    return tuple(index.shape[i] if i == axis else s for i, s in enumerate(others))


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """arr with values at indices along axis; inplace=False says that a new array is meant.

    >>> jnp.put_along_axis(jnp.zeros((2, 2), int), jnp.array([[1], [0]]), 9, axis=1, inplace=False)
    Array([[0, 9],
           [9, 0]], dtype=int32)
    """
    _refuse_inplace("put_along_axis", inplace)
    x = operand("put_along_axis", arr)
    index = index_operand("put_along_axis", indices)
    shape = x.shape
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "put_along_axis")
    index, mode = normal_index("put_along_axis", index, x.shape[axis], mode, axis, True)
    index = broadcast(index, _match_other_axes("put_along_axis", x, index, axis))
    updates = broadcast(converted("put_along_axis", values, x.dtype), index.shape)
    dims = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=tuple(range(x.ndim)),
        scatter_dims_to_operand_dims=tuple(range(x.ndim)))
    result = lax.scatter(x, _along_axis(x, index, axis), updates, dims,
                         mode="drop" if mode == "fill" else mode)
    return lax.reshape(result, shape)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """a with values v, repeated as needed, at the flat indices ind.

    An index out of bounds is the nearest one by default, and counts around with mode 'wrap'.

    >>> jnp.put(jnp.arange(4), jnp.array([0, 2]), jnp.array([10, 30]), inplace=False)
    Array([10,  1, 30,  3], dtype=int32)
    """
    _refuse_inplace("put", inplace)
    x = operand("put", a)
    index = ravel(index_operand("put", ind))
    values = ravel(asarray(v))
    if index.shape[0] == 0 or values.shape[0] == 0:
        return x
    repeats = -(-index.shape[0] // values.shape[0])
    values = slice_axis(concatenate([values] * repeats), 0, index.shape[0])
    index, mode = normal_index("put", index, size_of(x), "clip" if mode is None else mode,
                               clip_counts_back=mode is None)
    if mode == "clip":
        index = clip(index, 0, size_of(x) - 1)
    return lax.reshape(scatter_rows(lax.scatter, ravel(x), index, cast(values, x.dtype)), x.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """arr with vals, repeated as needed, at the places where mask holds.

    >>> jnp.place(jnp.arange(4), jnp.array([0, 1, 0, 1]), jnp.array([10, 20]), inplace=False)
    Array([ 0, 10,  2, 20], dtype=int32)
    """
    _refuse_inplace("place", inplace)
    x = operand("place", arr)
    chosen = ravel(truth(operand("place", mask)))
    values = cast(ravel(asarray(vals)), x.dtype)
    rank = lax.cumsum(lax.convert_element_type(chosen, index_dtype(size_of(x))), axis=0)
    rank = lax.sub(rank, lax.full_like(rank, 1))
    source = take(values, rank, mode="wrap")
    return lax.reshape(lax.select_n(chosen, ravel(x), source), x.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
                  ) -> Array:
    """a with val on its main diagonal.

    >>> jnp.fill_diagonal(jnp.zeros((2, 3), int), 7, inplace=False)
    Array([[7, 0, 0],
           [0, 7, 0]], dtype=int32)
    """
    _refuse_inplace("fill_diagonal", inplace)
    if wrap:
        raise ArgumentError("functrans.numpy.fill_diagonal does not take wrap=True.",
                            where=user_source())
    x = operand("fill_diagonal", a)
    if x.ndim < 2:
        raise ShapeError(f"functrans.numpy.fill_diagonal takes matrices, and got {x.shape}.",
                         where=user_source())
    size = min(x.shape)
    values = cast(ravel(asarray(val)), x.dtype)
    values = take(values, lax.iota(index_dtype(size), size), mode="wrap")
    grids = [lax.broadcasted_iota(index_dtype(*x.shape), x.shape, i) for i in range(x.ndim)]
    same = broadcast(lax.full((), True, np.dtype(bool)), x.shape)
    for grid in grids[1:]:
        same = lax.bitwise_and(same, lax.eq(grids[0], grid))
    rows = take(values, grids[0], mode="clip")
    return lax.select_n(same, x, rows)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ArgumentError(f"functrans.numpy.{name} cannot change an array in place.",
                            where=user_source(), why="arrays are immutable.",
                            fix=f"x = {name}(x, ..., inplace=False)")


def choose(a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None,
           mode: str = "raise") -> Array:
    """For each element the choice whose number a gives; a must be concrete unless mode is given.

    >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
    Array([ 1, 20,  3], dtype=int32)
    """
    refuse_out("choose", out)
    index = index_operand("choose", a)
    options = as_arrays(choices)
    count = len(options)
    if mode == "raise":
        value = concrete("choose", index, "a", "choose(..., mode='clip')")
        if value.size and (value.min() < 0 or value.max() >= count):
            raise ArgumentError(f"functrans.numpy.choose: an index is out of bounds for {count} "
                                "choices.", where=user_source(), fix="mode='clip'")
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    else:
        index = normal_index("choose", index, count, mode)[0]
    index, *options = broadcast_all("choose", index, *(
        operand("choose", o) for o in promote_dtypes("choose", *options)))
    result = options[0]
    for i, option in enumerate(options[1:], 1):
        result = lax.select_n(lax.eq(index, lax.full_like(index, i)), result, option)
    return result


# rows of values ------------------------------------------------------------------------------


def count_into(index: Array, weights: Array | None, length: Any, dtype: DTypeLike | None = None
               ) -> Array:
    """The sum of weights (1 each) for every index in [0, length)."""
    if weights is None:
        weights = lax.full(index.shape, 1, index_dtype(size_of(index)) if dtype is None else dtype)
    return scatter_rows(lax.scatter_add, filled((length,), 0, weights.dtype), index, weights)


@composite
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None) -> Array:
    """How often each integer from 0 up occurs, or the sum of its weights.

    The size depends on the data: under tracing give length=, beyond which values are dropped.

    >>> import functrans.numpy as jnp
    >>> jnp.bincount(jnp.asarray([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    index = index_operand("bincount", asarray(x))
    if index.ndim != 1:
        raise ShapeError(f"functrans.numpy.bincount takes vectors, and got shape {index.shape}.",
                         where=user_source())
    if length is None:
        value = concrete("bincount", index, "x", "bincount(x, length=n)")
        length = max(int(value.max()) + 1 if value.size else 0, minlength)
    else:
        length = max(length, minlength)
    index = lax.max(index, lax.full_like(index, 0))
    if weights is None:
        return count_into(index, None, length)
    w = operand("bincount", asarray(weights))
    if w.shape != index.shape:
        raise ShapeError(f"functrans.numpy.bincount: weights of shape {w.shape} for values of "
                         f"shape {index.shape}.", where=user_source())
    return count_into(index, w, length)


def _before(x: Array, y: Array) -> Array:
    """x < y with NaN last."""
    if kind(x.dtype) not in "fc":
        return lax.lt(x, y)
    return lax.bitwise_or(lax.lt(x, y), lax.bitwise_and(lax.ne(y, y), lax.eq(x, x)))


def searchsorted(a: ArrayLike, v: ArrayLike, side: Literal["left", "right"] = "left",
                 sorter: ArrayLike | None = None, *, method: str = "scan") -> Array:
    """Where values v go into the sorted vector a: before equal elements ("left") or behind.

    The shape is v's.

    >>> import functrans.numpy as jnp
    >>> jnp.searchsorted(jnp.asarray([1, 3, 5]), jnp.asarray([3, 4])).tolist()
    [1, 2]
    """
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ArgumentError(f"functrans.numpy.searchsorted: unknown method={method!r}; it is scan, "
                            "scan_unrolled, sort or compare_all.", where=user_source())
    if side not in ("left", "right"):
        raise ArgumentError(f"functrans.numpy.searchsorted: side is 'left' or 'right', and not "
                            f"{side!r}.", where=user_source())
    row, values = (operand("searchsorted", x) for x in promote_dtypes(
        "searchsorted", asarray(a), asarray(v)))
    if row.ndim != 1:
        raise ShapeError(f"functrans.numpy.searchsorted searches a vector, and got shape "
                         f"{row.shape}.", where=user_source())
    if sorter is not None:
        row = take(row, sorter)
    size = row.shape[0]
    dtype = index_dtype(size)
    # many values in no order cost NumPy 70 ns each
    if row.dtype.kind in "iuf" and on_host(row, values) and values.size <= 1 << 12:
        return asarray(np.searchsorted(np.asarray(row), np.asarray(values), side).astype(dtype))
    return _searched(row, values, side, method)


@composite
def _searched(row: Array, values: Array, side: str, method: str) -> Array:
    """The same for what is traced, and for dtypes that NumPy does not search."""
    size = row.shape[0]
    dtype = index_dtype(size)
    if isinstance(size, int) and size == 0:
        return filled(values.shape, 0, dtype)
    if method == "compare_all":
        shape = (*values.shape, size)
        rows = lax.broadcast_in_dim(row, shape, (values.ndim,))
        wanted = lax.broadcast_in_dim(values, shape, tuple(range(values.ndim)))
        passed = (_before(rows, wanted) if side == "left"
                  else lax.bitwise_not(_before(wanted, rows)))
        return sum(passed, -1, dtype)
    if method == "sort":
        return cast(_ranks_by_sorting(row, values, side), dtype)
    # the number of elements before each value, bit by bit from the highest
    found = lax.full(values.shape, 0, index_dtype(2 * size))
    for k in reversed(range(int(size).bit_length())):
        further = lax.add(found, lax.full_like(found, 1 << k))
        last = take(row, lax.sub(further, lax.full_like(found, 1)), mode="clip")
        passed = (_before(last, values) if side == "left"
                  else lax.bitwise_not(_before(values, last)))
        exists = lax.le(further, lax.full_like(found, size))
        found = lax.select_n(lax.bitwise_and(passed, exists), found, further)
    return cast(found, dtype)


def _ranks_by_sorting(row: Array, values: Array, side: str) -> Array:
    """Where values go, by sorting them together with the row: for many values at once."""
    flat = lax.reshape(values, (values.size,))
    first, second = (flat, row) if side == "left" else (row, flat)
    joined = lax.concatenate([first, second], 0)
    dtype = index_dtype(joined.shape[0])
    number = lax.iota(dtype, joined.shape[0])
    order = lax.sort((joined, number), num_keys=1, is_stable=True)[1]
    start = 0 if side == "left" else row.shape[0]
    is_value = lax.bitwise_and(lax.ge(order, lax.full_like(order, start)),
                               lax.lt(order, lax.full_like(order, start + flat.shape[0])))
    passed = lax.cumsum(lax.convert_element_type(lax.bitwise_not(is_value), dtype), axis=0)
    # the position of each value in the sorted order says how many of the row it passed
    places = lax.sort((order, passed), num_keys=1)[1]
    return lax.reshape(slice_axis(places, start, start + flat.shape[0]), values.shape)
