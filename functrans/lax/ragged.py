"""Products of matrices whose rows belong to groups of different sizes, and of scaled blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.record import Record
from functrans.core.source import user_source
from functrans.lax.elementwise import bitwise_and, ge, lt, mul, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.cumulative import cumsum
from functrans.primitives.dot import dot_general
from functrans.primitives.shape import broadcasted_iota, reshape
from functrans.typing import Array, DotDimensionNumbers, DTypeLike, PrecisionLike

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]


class RaggedDotDimensionNumbers(Record):
    """The axes of `ragged_dot_general`.

    Those of the product, as of `dot_general`; the axis of lhs whose elements are in groups; and the
    axis of rhs that counts groups, where the first is not summed over and not one of the batch.

    >>> rows = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> x, y = jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> lax.ragged_dot_general(x, y, jnp.array([1, 2]), rows).tolist()
    [[2.0], [10.0], [10.0]]
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        (cl, cr), (bl, br) = self.dot_dimension_numbers
        object.__setattr__(self, "dot_dimension_numbers",
                           ((tuple(cl), tuple(cr)), (tuple(bl), tuple(br))))
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(lhs: Array, rhs: Array, group_sizes: Array, precision: PrecisionLike = None,
               preferred_element_type: DTypeLike | None = None, group_offset: None = None) -> Array:
    """Rows of lhs (m, k) times the matrix of their group in rhs (g, k, n): (m, n).

    The first group_sizes[0] rows are of the first group, and so on; rows behind the last group give
    0. Raises ShapeError where the shapes do not fit.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> rhs = jnp.array([[[1.0]], [[10.0]]])
    >>> ft.lax.ragged_dot(jnp.ones((4, 1)), rhs, jnp.array([1, 2])).tolist()
    [[1.0], [10.0], [10.0], [0.0]]
    """
    if lhs.ndim != 2 or rhs.ndim != 3 or getattr(group_sizes, "ndim", 1) != 1:
        raise ShapeError(f"ragged_dot of shapes {lhs.shape} and {rhs.shape}.",
                         where=user_source(),
                         why="it is of (m, k), (g, k, n) and the sizes of g groups.",
                         fix="functrans.lax.ragged_dot_general(...)")
    return ragged_dot_general(lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type,
                              group_offset)


def ragged_dot_general(lhs: Array, rhs: Array, group_sizes: Array,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None,
                       preferred_element_type: DTypeLike | None = None, group_offset: None = None
                       ) -> Array:
    """The product of lhs and rhs by groups of the elements along one axis of lhs.

    The groups are of an axis of the result: each element is multiplied with the part of rhs that
    its group has; or of an axis of the sum: the result has an axis of groups in front, each the sum
    over its own elements; or of an axis of the batch, where they change nothing. `group_sizes`
    is (g,), or has in front the sizes of the axes of lhs that are before the one in groups: those
    of the batch, and then free ones, or others of the sum. Raises ShapeError where these do not
    fit, ArgumentError for a `group_offset`, which JAX refuses, too.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> of_sum = ft.lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> x, y = jnp.ones((1, 5)), jnp.arange(5.0)[:, None]
    >>> ft.lax.ragged_dot_general(x, y, jnp.array([2, 3]), of_sum).tolist()
    [[[1.0]], [[9.0]]]
    """
    if group_offset is not None:
        raise ArgumentError("ragged_dot: a group_offset.", where=user_source(),
                            why="JAX defines it for kernels of TPUs alone.")
    x, y = to_array(lhs, "ragged_dot: lhs"), to_array(rhs, "ragged_dot: rhs")
    sizes = to_array(group_sizes, "ragged_dot: group_sizes")
    numbers = ragged_dot_dimension_numbers
    (contract, contract_y), (batch, batch_y) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise ArgumentError(f"ragged_dot: groups along {len(numbers.lhs_ragged_dimensions)} axes.",
                            where=user_source(), why="one axis of lhs is in groups.")
    axis = numbers.lhs_ragged_dimensions[0] % x.ndim
    if axis in batch:
        return dot_general(x, y, numbers.dot_dimension_numbers, precision, preferred_element_type)
    masked = _by_groups(x, sizes, axis, batch, contract)
    batch_x, contract_x = (tuple(d + 1 for d in axes) for axes in (batch, contract))
    if axis in contract:
        if numbers.rhs_group_dimensions:
            raise ArgumentError("ragged_dot: rhs has no axis of groups where the sum is in groups.",
                                where=user_source(), fix="rhs_group_dimensions=()")
        out = dot_general(masked, y, ((contract_x, contract_y), (batch_x, batch_y)), precision,
                          preferred_element_type)
        return _in_front(out, len(batch))
    if len(numbers.rhs_group_dimensions) != 1:
        raise ArgumentError("ragged_dot: rhs needs one axis of groups.", where=user_source(),
                            fix="rhs_group_dimensions=(0,)")
    of_groups = numbers.rhs_group_dimensions[0] % y.ndim
    if y.shape[of_groups] != sizes.shape[-1]:
        raise ShapeError(f"ragged_dot: {sizes.shape[-1]} sizes for {y.shape[of_groups]} groups of "
                         "rhs.", where=user_source())
    return dot_general(masked, y, (((*contract_x, 0), (*contract_y, of_groups)),
                                   (batch_x, batch_y)), precision, preferred_element_type)


def _in_front(x: Array, axis: int) -> Array:
    from_axes = (axis, *(d for d in range(x.ndim) if d != axis))
    return x.transpose(from_axes)


def _by_groups(x: Array, sizes: Array, axis: int, batch: Sequence[int], contract: Sequence[int]
               ) -> Array:
    """x once for each group, in front, with zeros where an element is of another one."""
    free = [d for d in range(x.ndim) if d not in batch and d not in contract]
    before = [*batch, *(free if axis in free else contract)]
    before = before[:before.index(axis)]
    if sizes.ndim > 1 and tuple(sizes.shape[:-1]) != tuple(x.shape[d] for d in before):
        raise ShapeError(f"ragged_dot: sizes of groups of shape {sizes.shape} for an array of "
                         f"shape {x.shape}.", where=user_source(),
                         why=f"they are of shape (g,), or {[x.shape[d] for d in before]} and g.")
    groups = sizes.shape[-1]
    ends = cumsum(convert_element_type(sizes, dtypes.default_int()), axis=sizes.ndim - 1)
    starts = sub(ends, convert_element_type(sizes, ends.dtype))
    shape = (groups, *x.shape)
    places = (*(d + 1 for d in before), 0) if sizes.ndim > 1 else (0,)
    # in the order of the axes of the result
    order = tuple(np.argsort(places).tolist())
    first, last = (broadcast_in_dim(v.transpose(order), shape, tuple(sorted(places)))
                   for v in (starts, ends))
    index = broadcasted_iota(ends.dtype, shape, axis + 1)
    inside = bitwise_and(ge(index, first), lt(index, last))
    whole = broadcast_in_dim(x, shape, tuple(range(1, x.ndim + 1)))
    return select_n(inside, full(shape, 0, x.dtype), whole)


def scaled_dot(lhs: Array, rhs: Array, *, lhs_scale: Array | None = None,
               rhs_scale: Array | None = None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of operands of few bits, each block of a sum with a scale of its own.

    A scale has the shape of its operand, but along the axis of the sum an element for each block of
    equally many elements. By default (b, m, k) is multiplied with (b, k, n), in bfloat16. Raises
    ShapeError where a scale does not fit.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> x, y = jnp.ones((1, 1, 4), "float8_e4m3fn"), jnp.ones((1, 4, 1), "float8_e4m3fn")
    >>> scale = jnp.array([[[1.0, 8.0]]]).astype("float8_e8m0fnu")
    >>> ft.lax.scaled_dot(x, y, lhs_scale=scale).item()
    18.0
    """
    if dimension_numbers is None:
        dimension_numbers = (((2,), (1,)), ((0,), (0,)))
    wanted = dtypes.bfloat16 if preferred_element_type is None \
        else dtypes.as_dtype(preferred_element_type)
    wide = wanted if wanted.itemsize > 4 else dtypes.float32
    x = _unscaled("lhs", lhs, lhs_scale, dimension_numbers[0][0], wide)
    y = _unscaled("rhs", rhs, rhs_scale, dimension_numbers[0][1], wide)
    return convert_element_type(dot_general(x, y, dimension_numbers), wanted)


def _unscaled(name: str, x: Array, scale: Array | None, contract: Sequence[int],
              wide: np.dtype[Any]) -> Array:
    """An operand times its scales."""
    x = convert_element_type(to_array(x, f"scaled_dot: {name}"), wide)
    if scale is None:
        return x
    scale = convert_element_type(to_array(scale, f"scaled_dot: {name}_scale"), wide)
    shape: list[Any] = []
    for d, size in enumerate(x.shape):
        count = scale.shape[d] if scale.ndim == x.ndim else 0
        if not count or size % count or (count != size and d not in contract):
            raise ShapeError(f"scaled_dot: {name} has shape {x.shape} and its scales "
                             f"{scale.shape}.",
                             where=user_source(),
                             why="scales are of elements, or along the sum of equal blocks.")
        shape += [count, size // count]
    blocks = broadcast_in_dim(scale, tuple(shape), tuple(range(0, 2 * x.ndim, 2)))
    return mul(x, reshape(blocks, x.shape))
