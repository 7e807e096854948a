"""BCOO arrays taken apart and put together: slices, shapes, concatenation, sums over axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import axis_tuple, shape_tuple
from functrans.sparse.base import index_dtype_for, mismatch, outside, places, vectors
from functrans.sparse.bcoo import BCOO, full_batch
from functrans.sparse.layout import bcoo_sum_duplicates, bcoo_update_layout
from functrans.typing import Array, ArrayLike

__all__ = ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_reduce_sum",
           "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_squeeze"]


def _made(sizes: Sequence[Any], data: Any, indices: Any, is_sorted: bool = False,
          is_unique: bool = False) -> BCOO:
    return BCOO.tree_unflatten((tuple(sizes), is_sorted, is_unique), (data, indices))


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[Any]) -> BCOO:
    """The sums over `axes`, as a sparse array of the other axes.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense().tolist()
    [1.0, 1.0, 1.0]
    """
    axes = axis_tuple(tuple(axes), mat.ndim, "bcoo_reduce_sum")
    if not axes:
        return mat
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    lanes = [a for a in axes if a < n]
    kept = [a for a in range(n, end) if a not in axes]
    dense = tuple([a - end + n + 1 for a in axes if a >= end])
    mat = full_batch(mat) if lanes else mat
    data = jnp.sum(mat.data, axis=dense, dtype=mat.dtype) if dense else mat.data
    indices = mat.indices
    if len(kept) != mat.n_sparse:
        # places out of bounds along an axis that goes must not count
        beyond = outside(indices, mat.sparse_shape)
        data = jnp.where(beyond.reshape(*beyond.shape, *[1] * (data.ndim - n - 1)),
                         jnp.zeros((), data.dtype), data)
        indices = jnp.stack([indices[..., a - n] for a in kept], axis=-1) if kept else \
            jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    if lanes:
        others = [a for a in range(n) if a not in lanes]
        data, indices = (jnp.transpose(x, (*others, *lanes, *range(n, x.ndim))) for x in
                         (data, indices))
        batch = data.shape[:len(others)]
        data = data.reshape(*batch, -1 if data.size else 0, *data.shape[n + 1:]) \
            if data.size else jnp.zeros((*batch, math.prod(data.shape[len(others):n + 1]),
                                         *data.shape[n + 1:]), data.dtype)
        indices = indices.reshape(*batch, data.shape[len(others)], indices.shape[-1])
    sizes = [mat.sparse_shape[a - n] for a in kept]
    same = not lanes and len(kept) == mat.n_sparse
    return _made(sizes, data, indices, mat.indices_sorted and same, mat.unique_indices and same)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[Any], limit_indices: Sequence[Any],
               strides: Sequence[Any] | None = None) -> BCOO:
    """The elements from `start_indices` to before `limit_indices` in steps of `strides`.

    As many places are stored as before, or as many as there are where these are fewer. Raises
    ShapeError where a bound is outside of the array.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.arange(6.0))
    >>> part = sparse.bcoo_slice(m, start_indices=(1,), limit_indices=(6,), strides=(2,))
    >>> part.todense().tolist()
    [1.0, 3.0, 5.0]
    """
    starts, limits = (tuple(map(operator.index, x)) for x in (start_indices, limit_indices))
    steps = (1,) * mat.ndim if strides is None else tuple(map(operator.index, strides))
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise mismatch("bcoo_slice", f"{len(starts)} starts, {len(limits)} limits and {len(steps)} "
                       f"strides for {mat.ndim} axes.")
    for start, limit, step, n in zip(starts, limits, steps, mat.shape, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise mismatch("bcoo_slice", f"from {start} to {limit} in steps of {step} is no slice "
                           f"of an axis of {n}.")
    bounds = [slice(*b) for b in zip(starts, limits, steps, strict=True)]
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(m != k for m, k in zip(_lengths(bounds[:n]), mat.batch_shape)):
        mat = full_batch(mat)
    lanes = tuple(bounds[:n]) if mat.data.shape[:n] == mat.indices.shape[:n] == mat.batch_shape \
        else (slice(None),) * n
    data = mat.data[(*lanes, slice(None), *bounds[end:])]
    indices = mat.indices[lanes]
    if all(b == slice(0, k, 1) for b, k in zip(bounds[n:end], mat.sparse_shape)):
        return _made(mat.sparse_shape, data, indices, mat.indices_sorted, mat.unique_indices)
    return _window(mat, data, indices, starts[n:end], _lengths(bounds[n:end]), steps[n:end])


def _lengths(bounds: Sequence[slice]) -> tuple[Any, ...]:
    return tuple([len(range(b.start, b.stop, b.step)) for b in bounds])


def _window(mat: BCOO, data: Array, indices: Array, starts: Sequence[Any], sizes: tuple[Any, ...],
            steps: Sequence[Any]) -> BCOO:
    """The places within a window of the sparse axes, counted from its start."""
    n = mat.n_batch
    inside = jnp.ones(indices.shape[:-1], bool)
    columns = []
    for k, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        at = indices[..., k] - start
        inside = inside & (at >= 0) & (at < size * step) & (indices[..., k] < mat.sparse_shape[k])
        if step > 1:
            inside = inside & (at % step == 0)
            at = at // step
        columns.append(at)
    found = jnp.stack(columns, axis=-1)
    none = jnp.asarray(np.asarray(sizes, mat.indices.dtype))
    found = jnp.where(inside[..., None], found, none).astype(mat.indices.dtype)
    data = jnp.where(inside.reshape(*inside.shape, *[1] * mat.n_dense), data,
                     jnp.zeros((), data.dtype)) if n == inside.ndim - 1 else data
    out = _made(sizes, data, found, False, mat.unique_indices)
    return bcoo_sum_duplicates(out, nse=math.prod(sizes)) if mat.nse > math.prod(sizes) else out


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any],
                       slice_sizes: Sequence[Any]) -> BCOO:
    """A window of `slice_sizes` from `start_indices`, which may be traced.

    Starts are moved so that the window is inside, as in lax.dynamic_slice.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.arange(6.0))
    >>> sparse.bcoo_dynamic_slice(m, (3,), (2,)).todense().tolist()
    [3.0, 4.0]
    """
    sizes = tuple(map(operator.index, slice_sizes))
    if not len(start_indices) == len(sizes) == mat.ndim:
        raise mismatch("bcoo_dynamic_slice", f"{len(start_indices)} starts and {len(sizes)} sizes "
                       f"for {mat.ndim} axes.")
    for size, n in zip(sizes, mat.shape, strict=True):
        if not 0 <= size <= n:
            raise mismatch("bcoo_dynamic_slice", f"a window of {size} in an axis of {n}.")
    starts = [jnp.clip(jnp.asarray(s), 0, n - size) for s, n, size in
              zip(start_indices, mat.shape, sizes, strict=True)]
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    mat = full_batch(mat) if sizes[:n] != mat.batch_shape else mat
    data, indices = mat.data, mat.indices
    for a in [a for a in (*range(n), *range(end, mat.ndim)) if sizes[a] != mat.shape[a]]:
        at = starts[a] + jnp.arange(sizes[a])
        data = jnp.take(data, at, axis=a if a < n else a - end + n + 1)
        indices = jnp.take(indices, at, axis=a) if a < n else indices
    if sizes[n:end] == mat.sparse_shape:
        return _made(mat.sparse_shape, data, indices, mat.indices_sorted, mat.unique_indices)
    window = [s.astype(indices.dtype) for s in starts[n:end]]
    return _window(mat, data, indices, window, sizes[n:end], (1,) * (end - n))


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[Any],
                 dimensions: Sequence[Any] | None = None) -> BCOO:
    """The array in the shape `new_sizes`; batch and dense axes remain such where they can.

    Raises ShapeError where the number of elements differs.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).todense().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        raise ArgumentError("bcoo_reshape: dimensions are those of the array, in order.",
                            where=user_source(), fix="bcoo_transpose first")
    sizes = shape_tuple(new_sizes, "bcoo_reshape")
    if math.prod(sizes) != mat.size:
        raise mismatch("bcoo_reshape", f"{mat.shape} has not as many elements as {sizes}.")
    n_batch = _same_product(sizes, mat.batch_shape)
    if n_batch is None:
        mat = bcoo_update_layout(mat, n_batch=0)
        n_batch = 0
    n_dense = _same_product(sizes[n_batch:][::-1], mat.dense_shape)
    if n_dense is None:
        mat = bcoo_update_layout(mat, n_dense=0)
        n_dense = 0
    mat = full_batch(mat)
    end = len(sizes) - n_dense
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    indices = vectors(places(mat.indices, mat.sparse_shape), sparse, mat.indices.dtype)
    return _made(sparse, mat.data.reshape(*batch, mat.nse, *dense),
                 indices.reshape(*batch, mat.nse, len(sparse)), mat.indices_sorted,
                 mat.unique_indices)


def _same_product(sizes: Sequence[Any], group: Sequence[Any]) -> int | None:
    """How many sizes have the product of a group; None where none have, or are empty."""
    wanted, count = math.prod(group), 0
    if wanted == 0:
        return None
    product = 1
    while product < wanted and count < len(sizes):
        product *= sizes[count]
        count += 1
    # sizes of 1 stay with a group that had them
    while count < len(group) and count < len(sizes) and sizes[count] == 1:
        count += 1
    return count if product == wanted else None


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[Any]) -> BCOO:
    """The array without `dimensions`, which have size 1.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(jnp.ones((1, 3))), dimensions=(0,)).shape
    (3,)
    """
    axes = axis_tuple(tuple(dimensions), arr.ndim, "bcoo_squeeze")
    if any(arr.shape[a] != 1 for a in axes):
        raise mismatch("bcoo_squeeze", f"axes {axes} of {arr.shape} are not all of size 1.")
    return bcoo_reduce_sum(arr, axes=axes)


def bcoo_rev(operand: BCOO, dimensions: Sequence[Any]) -> BCOO:
    """The array with `dimensions` reversed.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.arange(3.0)), (0,)).todense().tolist()
    [2.0, 1.0, 0.0]
    """
    axes = axis_tuple(tuple(dimensions), operand.ndim, "bcoo_rev")
    n, end = operand.n_batch, operand.n_batch + operand.n_sparse
    lanes = tuple([a for a in axes if a < n])
    mat = full_batch(operand) if lanes else operand
    data = jnp.flip(mat.data, (*lanes, *[a - end + n + 1 for a in axes if a >= end]))
    indices = jnp.flip(mat.indices, lanes) if lanes else mat.indices
    turned = [a - n for a in axes if n <= a < end]
    if turned:
        inside = ~outside(indices, mat.sparse_shape)
        indices = jnp.stack([jnp.where(inside, size - 1 - indices[..., k], size) if k in turned
                             else indices[..., k] for k, size in enumerate(mat.sparse_shape)],
                            axis=-1).astype(indices.dtype)
    return _made(mat.sparse_shape, data, indices, mat.indices_sorted and not turned,
                 mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays of one layout one after the other along an axis.

    Raises ShapeError where they differ in other axes or in layout.

    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1).shape
    (2, 4)
    """
    mats = list(operands)
    if not mats:
        raise ArgumentError("bcoo_concatenate of no arrays.", where=user_source())
    first = mats[0]
    (axis,) = axis_tuple(dimension, first.ndim, "bcoo_concatenate")
    for m in mats:
        same = (m.n_batch, m.n_dense, m.ndim) == (first.n_batch, first.n_dense, first.ndim)
        if not same or any(a != b for k, (a, b) in enumerate(zip(m.shape, first.shape))
                           if k != axis):
            raise mismatch("bcoo_concatenate", f"{m!r} does not fit {first!r} along axis {axis}.",
                           "x.update_layout(n_batch=, n_dense=)")
    dtype = jnp.result_type(*[m.data for m in mats])
    index = index_dtype_for(jnp.result_type(*[m.indices for m in mats]),
                            (sum(m.shape[axis] for m in mats),))
    mats = [full_batch(m) for m in mats]
    n, end = first.n_batch, first.n_batch + first.n_sparse
    if axis < n:
        most = max(m.nse for m in mats)
        mats = [padded(m, most) for m in mats]
        return _made(first.sparse_shape,
                     jnp.concatenate([m.data.astype(dtype) for m in mats], axis),
                     jnp.concatenate([m.indices.astype(index) for m in mats], axis),
                     all(m.indices_sorted for m in mats), all(m.unique_indices for m in mats))
    datas, indices, before = [], [], 0
    total = sum(m.shape[axis] for m in mats)
    for m in mats:
        data, at = m.data.astype(dtype), m.indices.astype(index)
        if axis >= end:
            where = [(0, 0)] * data.ndim
            where[axis - end + n + 1] = (before, total - before - m.shape[axis])
            data = jnp.pad(data, where)
        elif before or total != m.shape[axis]:
            k = axis - n
            inside = ~outside(at, m.sparse_shape)
            shifted = jnp.where(inside, at[..., k] + before, total)
            at = jnp.stack([shifted.astype(index) if c == k else at[..., c]
                            for c in range(first.n_sparse)], axis=-1)
        datas.append(data)
        indices.append(at)
        before += m.shape[axis]
    sizes = list(first.sparse_shape)
    if axis < end:
        sizes[axis - n] = total
    return _made(sizes, jnp.concatenate(datas, n), jnp.concatenate(indices, n), False,
                 axis < end and all(m.unique_indices for m in mats))


def padded(mat: BCOO, nse: int) -> BCOO:
    """The array with room for `nse` places; those that are added are out of bounds."""
    more, n = nse - mat.nse, mat.n_batch
    if more <= 0:
        return mat
    data = jnp.pad(mat.data, [(0, 0)] * n + [(0, more)] + [(0, 0)] * mat.n_dense)
    none = jnp.asarray(np.asarray(mat.sparse_shape, mat.indices.dtype))
    none = jnp.broadcast_to(none, (*mat.indices.shape[:n], more, mat.n_sparse))
    return _made(mat.sparse_shape, data, jnp.concatenate([mat.indices, none], n),
                 mat.indices_sorted, mat.unique_indices)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[Any],
                          broadcast_dimensions: Sequence[Any]) -> BCOO:
    """The array repeated to `shape`, its axis i as axis `broadcast_dimensions[i]` of the result.

    New axes before the sparse ones are batch axes, those behind them are dense. Raises ShapeError
    where an axis fits neither by its size nor by size 1, or axes are not in order.

    >>> from functrans.experimental import sparse
    >>> m = sparse.bcoo_broadcast_in_dim(sparse.eye(2), shape=(3, 2, 2),
    ...                                  broadcast_dimensions=(1, 2))
    >>> m.n_batch, m.shape
    (1, (3, 2, 2))
    """
    sizes = shape_tuple(shape, "bcoo_broadcast_in_dim")
    dims = tuple(map(operator.index, broadcast_dimensions))
    if len(dims) != mat.ndim or list(dims) != sorted(set(dims)) or \
            any(not 0 <= d < len(sizes) for d in dims) or \
            any(n not in (1, sizes[d]) for n, d in zip(mat.shape, dims, strict=True)):
        raise mismatch("bcoo_broadcast_in_dim", f"axes {dims} of {sizes} do not take {mat.shape}.")
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    if mat.n_sparse:
        first, last = dims[n], dims[end - 1] + 1
    else:
        first = last = dims[n - 1] + 1 if n else 0
    mat = full_batch(mat)
    nse = mat.nse
    batch, sparse, dense = sizes[:first], sizes[first:last], sizes[last:]
    lanes = [mat.batch_shape[dims.index(d)] if d in dims else 1 for d in range(first)]
    rest = [mat.shape[dims.index(d)] if d in dims else 1 for d in range(last, len(sizes))]
    data = jnp.broadcast_to(mat.data.reshape(*lanes, nse, *rest), (*batch, nse, *dense))
    indices = jnp.broadcast_to(mat.indices.reshape(*lanes, nse, mat.n_sparse),
                               (*batch, nse, mat.n_sparse))
    indices = indices.astype(index_dtype_for(indices.dtype, sparse))
    beyond = outside(indices, mat.sparse_shape)
    columns, is_sorted = [], mat.indices_sorted
    for d in range(first, last):
        columns.append(indices[..., dims.index(d) - n] if d in dims else
                       jnp.where(beyond, sizes[d], 0).astype(indices.dtype))
    indices = jnp.stack(columns, axis=-1) if columns else indices
    for k, d in enumerate(range(first, last)):
        size, old = sizes[d], mat.shape[dims.index(d)] if d in dims else 1
        if size == old:
            continue
        nse = data.shape[first]
        steps = jnp.arange(size, dtype=indices.dtype)
        inside = ~beyond
        column = jnp.where(inside[..., None], steps, size)
        spread = jnp.broadcast_to(indices[..., None, :], (*batch, nse, size, len(sparse)))
        indices = spread.at[..., k].set(column.astype(indices.dtype)).reshape(
            *batch, nse * size, len(sparse))
        beyond = jnp.repeat(beyond, size, axis=first)
        data = jnp.repeat(data, size, axis=first)
        is_sorted = False
    return _made(sparse, data, indices, is_sorted, mat.unique_indices)


def reshaped(mat: BCOO, *shape: ArrayLike) -> BCOO:
    """`x.reshape(2, 3)`, `x.reshape((2, -1))`."""
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    sizes = [operator.index(n) for n in given]  # type: ignore[arg-type]
    if sizes.count(-1) == 1:
        others = -math.prod(sizes)
        sizes[sizes.index(-1)] = mat.size // others if others else 0
    return bcoo_reshape(mat, new_sizes=sizes)


publish(globals(), __all__)
