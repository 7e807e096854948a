"""Where a scatter puts its updates, as numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dims import Shape
from functrans.primitives.arithmetic import add, max_p, min_p, mul
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import ge, le, select_n_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index_layout import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    window_sizes,
)
from functrans.primitives.shape import broadcasted_iota, reshape, slice_in_dim

__all__ = ["rows_of_updates"]


def rows_of_updates(indices: Any, shape: Shape, updates: Shape,
                    params: Mapping[str, Any]) -> tuple[Any, int]:
    """The row of the operand that each row of updates goes to, and how wide rows are.

    Trailing dimensions that windows cover are columns; all others together are rows. Where an
    update goes nowhere its row is their number.
    """
    numbers = params["dimension_numbers"]
    columns = _covered(numbers, shape, updates)
    rows = len(shape) - columns
    found = _rows_of(indices, shape, updates, rows, updates[:len(updates) - columns], numbers,
                     params["mode"])
    return reshape(found, (-1,)), int(np.prod(shape[rows:], dtype=int))


def _covered(numbers: ScatterDimensionNumbers, shape: Shape, updates: Shape) -> int:
    """How many trailing dimensions of the operand are the same ones of the updates."""
    other = {*numbers.inserted_window_dims, *numbers.operand_batching_dims,
             *numbers.scatter_dims_to_operand_dims}
    count = 0
    while count < min(len(shape), len(updates)) and len(shape) - 1 - count not in other \
            and len(updates) - 1 - count in numbers.update_window_dims \
            and shape[-1 - count] == updates[-1 - count]:
        count += 1
    return count


def _rows_of(indices: Any, shape: Shape, updates: Shape, rank: int, lead: Shape,
             numbers: ScatterDimensionNumbers, mode: GatherScatterMode) -> Any:
    """The row of every update, over its first `rank` dimensions; their number where it is none."""
    windows = window_sizes(numbers, ShapedArray(updates, indices.dtype), len(shape))
    batch = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    unwindowed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inside = dict(zip([d for d in range(len(shape)) if d not in unwindowed],
                      numbers.update_window_dims, strict=True))
    row: Any = broadcast_in_dim(np.int32(0), lead, ())
    valid: Any = None
    for d in range(rank):
        place: Any = broadcast_in_dim(np.int32(0), lead, ())
        if d in inside:
            place = broadcasted_iota(np.int32, lead, inside[d])
        elif d in numbers.operand_batching_dims:
            at = numbers.scatter_indices_batching_dims[numbers.operand_batching_dims.index(d)]
            place = broadcasted_iota(np.int32, lead, batch[at])
        if d in numbers.scatter_dims_to_operand_dims:
            k = numbers.scatter_dims_to_operand_dims.index(d)
            start = slice_in_dim(indices, k, k + 1, axis=indices.ndim - 1)
            start = convert_element_type(reshape(start, indices.shape[:-1]), np.int64)
            last = shape[d] - windows[d]
            if mode is GatherScatterMode.FILL_OR_DROP:
                here = ge(start, np.int64(0)) & le(start, np.int64(last))
                valid = here if valid is None else valid & here
            start = max_p.bind(min_p.bind(start, np.int64(last)), np.int64(0))
            start = convert_element_type(start, np.int32)
            place = add(place, broadcast_in_dim(start, lead, batch))
        row = add(mul(row, np.int32(shape[d])), place)
    if valid is None:
        return row
    outside = np.int32(np.prod(shape[:rank], dtype=int))
    return select_n_p.bind(broadcast_in_dim(valid, lead, batch),
                           broadcast_in_dim(outside, lead, ()), row)
