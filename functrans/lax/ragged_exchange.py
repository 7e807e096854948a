"""`ragged_all_to_all`: slices of unlike sizes exchanged along a named axis."""

from __future__ import annotations

from typing import Any

from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.lax.operations import full_like
from functrans.lax.parallel import all_gather, axis_index, axis_size
from functrans.primitives.arithmetic import add, sub
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import bitwise_and, ge, lt, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dynamic_slice import dynamic_slice_in_dim
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.reduce import reduce_min
from functrans.primitives.scatter import scatter
from functrans.primitives.shape import broadcasted_iota, reshape
from functrans.typing import Array, ArrayLike, AxisName

__all__ = ["ragged_all_to_all"]


def ragged_all_to_all(operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike,
                      send_sizes: ArrayLike, output_offsets: ArrayLike, recv_sizes: ArrayLike, *,
                      axis_name: AxisName, axis_index_groups: None = None) -> Array:
    """`output` with slices of all operands along a named axis written into it.

    Slice k of n goes to position `k // (n // size)` of the axis: rows from `input_offsets[k]` on,
    `send_sizes[k]` of them, to where `output_offsets[k]` says there. `recv_sizes` are the sizes of
    what comes, which the senders say, too. Operands are gathered, and each position takes its rows.
    Raises ShapeError unless the four arrays have one size, which the axis divides.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> def exchange(x, sizes, starts, to, received):
    ...     return ft.lax.ragged_all_to_all(x, jnp.zeros(4, int), starts, sizes, to, received,
    ...                                     axis_name="i")
    >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])                        # 1 | 2 3   4 5 | 6
    >>> sizes, starts = jnp.array([[1, 2], [2, 1]]), jnp.array([[0, 1], [0, 2]])
    >>> to, received = jnp.array([[0, 0], [1, 2]]), jnp.array([[1, 2], [2, 1]])
    >>> ft.vmap(exchange, axis_name="i")(x, sizes, starts, to, received).tolist()
    [[1, 4, 5, 0], [2, 3, 6, 0]]
    """
    if axis_index_groups is not None:
        raise ArgumentError("ragged_all_to_all: there are no axis_index_groups.",
                            where=user_source(), fix="a mesh with one more axis")
    operand, output = to_array(operand, "operand"), to_array(output, "output")
    parts = [convert_element_type(to_array(x, "offsets"), "int32")
             for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    size = axis_size(axis_name)
    (n, *_), *others = [x.shape for x in parts]
    if any(s != (n,) for s in [parts[0].shape, *others]) or n % size:
        raise ShapeError(f"ragged_all_to_all: offsets and sizes of shapes "
                         f"{', '.join(str(x.shape) for x in parts)} over {size} positions.",
                         where=user_source(), fix="vectors of one size, a multiple of the axis's")
    if operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:]:
        raise ShapeError(f"ragged_all_to_all: operand {operand.dtype}{operand.shape} and output "
                         f"{output.dtype}{output.shape} differ in more than rows.",
                         where=user_source())
    each = n // size
    first = axis_index(axis_name)
    everything = all_gather(operand, axis_name)  # (size, rows, ...)
    starts, sizes, to = (all_gather(x, axis_name) for x in parts[:3])
    mine = [dynamic_slice_in_dim(x, first * each, each, 1) for x in (starts, sizes, to)]
    rows = operand.shape[0]
    row = broadcasted_iota("int32", (size, each, rows), 2)
    start, count, goal = (broadcast_in_dim(x, (size, each, rows), (0, 1)) for x in mine)
    inside = bitwise_and(ge(row, start), lt(row, add(start, count)))
    nowhere = full_like(row, output.shape[0])
    place = where(inside, add(sub(row, start), goal), nowhere)
    out: Array = _written(output, everything, place)
    return out


def _written(output: Any, rows: Any, place: Any) -> Any:
    """`output` with rows (positions, rows, ...) at places (positions, slices, rows)."""
    size, each, count = place.shape
    if each > 1:  # a row may be in several slices
        for k in range(each):
            output = _written(output, rows, place[:, k:k + 1])
        return output
    at = reshape(reduce_min(place, (1,)), (size * count, 1))
    updates = reshape(rows, (size * count, *rows.shape[2:]))
    numbers = ScatterDimensionNumbers(tuple(range(1, updates.ndim)), (0,), (0,))
    return scatter(output, at, updates, numbers, mode=GatherScatterMode.FILL_OR_DROP)
