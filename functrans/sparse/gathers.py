"""Rows and windows of BCOO arrays at places that may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.primitives.index_layout import GatherDimensionNumbers, GatherScatterMode
from functrans.sparse.base import per_lane
from functrans.sparse.bcoo import BCOO, full_batch
from functrans.sparse.layout import bcoo_transpose
from functrans.sparse.movement import bcoo_dynamic_slice, bcoo_squeeze
from functrans.sparse.products import bcoo_dot_general
from functrans.typing import Array, ArrayLike

__all__ = ["bcoo_gather", "bcoo_take"]


def bcoo_take(mat: BCOO, numbers: Array, axis: int) -> BCOO:
    """The rows `numbers` along an axis; negative ones count from its end, as in NumPy."""
    n, end, size = mat.n_batch, mat.n_batch + mat.n_sparse, mat.shape[axis]
    numbers = jnp.where(numbers < 0, numbers + size, numbers)
    if axis < n:
        mat = full_batch(mat)
        return mat._replace(jnp.take(mat.data, numbers, axis=axis, mode="clip"),
                            jnp.take(mat.indices, numbers, axis=axis, mode="clip"))
    if axis >= end:
        return mat.with_data(jnp.take(mat.data, numbers, axis=axis - end + n + 1, mode="clip"))
    count = numbers.shape[0]
    numbers = jnp.clip(numbers, 0, max(size - 1, 0)).astype(mat.indices.dtype)
    chosen = BCOO((jnp.ones((count,), mat.dtype),
                   jnp.stack([jnp.arange(count, dtype=mat.indices.dtype), numbers], axis=-1)),
                  shape=(count, size), unique_indices=True)
    if n:
        out: BCOO = per_lane(lambda m: bcoo_take(m, numbers, axis - n), n)(full_batch(mat))
        return out
    rows = bcoo_dot_general(chosen, mat, dimension_numbers=(((1,), (axis,)), ((), ())))
    order = [*range(1, axis + 1), 0, *range(axis + 1, mat.ndim)]
    found: BCOO = bcoo_transpose(rows, permutation=order)
    return found


def bcoo_gather(operand: BCOO, start_indices: ArrayLike,
                dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[Any], *,
                unique_indices: bool = False, indices_are_sorted: bool = False,
                mode: str | GatherScatterMode | None = None, fill_value: Any = None) -> BCOO:
    """Windows of a sparse array, as in lax.gather; axes of windows follow those of the indices.

    Windows outside of the array are moved inside with mode "clip", and are zero otherwise. Raises
    ArgumentError for a fill value that is not zero and for batching dimensions.

    >>> import functrans.numpy as jnp
    >>> from functrans import lax
    >>> from functrans.experimental import sparse
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), numbers, (1, 3)).todense().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    del unique_indices, indices_are_sorted
    d, starts = dimension_numbers, jnp.asarray(start_indices)
    mode = GatherScatterMode.from_any(mode)
    if d.operand_batching_dims or (fill_value is not None and np.any(np.asarray(fill_value) != 0)):
        raise ArgumentError("bcoo_gather: batching dimensions and fill values other than 0 are not "
                            "those of a sparse array.", where=user_source(), fix="vmap")
    sizes = tuple(slice_sizes)
    collapsed = tuple(d.collapsed_slice_dims)

    def window(at: Array) -> BCOO:
        begin: list[Any] = [0] * operand.ndim
        inside = jnp.asarray(True)
        for k, axis in enumerate(d.start_index_map):
            begin[axis] = at[k]
            inside = inside & (at[k] >= 0) & (at[k] <= operand.shape[axis] - sizes[axis])
        out = bcoo_dynamic_slice(operand, begin, sizes)
        if mode is GatherScatterMode.FILL_OR_DROP:
            out = out.with_data(jnp.where(inside, out.data, jnp.zeros((), out.dtype)))
        return bcoo_squeeze(out, dimensions=collapsed)

    out: BCOO = per_lane(window, starts.ndim - 1)(starts)
    lanes = starts.ndim - 1
    rest = [k for k in range(out.ndim) if k not in d.offset_dims]
    order = [0] * out.ndim
    for k, place in enumerate(rest):
        order[place] = k
    for k, place in enumerate(d.offset_dims):
        order[place] = lanes + k
    return out if order == list(range(out.ndim)) else bcoo_transpose(out, permutation=order)


publish(globals(), __all__)
