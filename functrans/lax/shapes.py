"""jax.lax's names that ask for shapes and sizes, or change them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.broadcasting import broadcast_shapes as common_shape
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Shape, Size
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, size_array
from functrans.primitives.conv import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    transposed_padding,
)
from functrans.primitives.geometry import (
    Padding,
    count_windows,
    dilate,
    padded_sizes,
    resolve_padding,
)
from functrans.primitives.shape import concatenate, expand_dims, reshape, slice_in_dim, squeeze
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["broadcast_like", "broadcast_shapes", "broadcast_to_rank", "conv_general_permutations",
           "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple", "dtype",
           "empty", "padtype_to_pads", "reduce_window_shape_tuple", "shape_as_value", "stack",
           "stage", "tile", "unstack"]


def broadcast_shapes(*shapes: Shape) -> tuple[Size, ...]:
    """The shape to which all given shapes broadcast; ranks are filled up with axes of size 1.

    >>> import functrans as ft
    >>> ft.lax.broadcast_shapes((2, 1), (1, 3), (3,))
    (2, 3)
    """
    return tuple(common_shape(*[tuple(s) for s in shapes], name="lax.broadcast_shapes"))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """x with new leading axes of size 1 up to a number of axes.

    >>> import functrans as ft
    >>> ft.lax.broadcast_to_rank(ft.numpy.ones(3), 3).shape
    (1, 1, 3)
    """
    x = to_array(x, "broadcast_to_rank: x")
    missing = operator.index(rank) - x.ndim
    if missing < 0:
        raise ShapeError(f"broadcast_to_rank: {x.ndim} axes are more than {rank}.",
                         where=user_source())
    return expand_dims(x, tuple(range(missing)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """arr repeated along axes of size 1 and new leading ones to the shape of another array.

    >>> import functrans as ft
    >>> ft.lax.broadcast_like(1.0, ft.numpy.ones((2, 2))).shape
    (2, 2)
    """
    x, shape = to_array(arr, "broadcast_like: arr"), get_aval(like_arr).shape
    if tuple(common_shape(x.shape, shape, name="lax.broadcast_like")) != tuple(shape):
        raise ShapeError(f"broadcast_like: {x.shape} does not broadcast to {shape}.",
                         where=user_source())
    return broadcast_in_dim(_without_ones(x, shape), shape, _kept_axes(x, shape))


def _kept_axes(x: Array, shape: Shape) -> tuple[int, ...]:
    lead = len(shape) - x.ndim
    return tuple(lead + i for i in range(x.ndim) if not _is_repeated(x.shape[i], shape[lead + i]))


def _without_ones(x: Array, shape: Shape) -> Array:
    lead = len(shape) - x.ndim
    return squeeze(x, tuple(i for i in range(x.ndim) if _is_repeated(x.shape[i], shape[lead + i])))


def _is_repeated(size: Size, whole: Size) -> bool:
    return isinstance(size, int) and size == 1 and not (isinstance(whole, int) and whole == 1)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The operand repeated `reps[i]` times along axis i.

    Raises ShapeError unless there is a number for each axis.

    >>> import functrans as ft
    >>> ft.lax.tile(ft.numpy.array([[1], [2]]), (1, 3)).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    x, counts = to_array(operand, "tile: the operand"), tuple(map(operator.index, reps))
    if len(counts) != x.ndim or any(n < 0 for n in counts):
        raise ShapeError(f"lax.tile: the repetitions {tuple(reps)} of an array of shape {x.shape}.",
                         where=user_source(), why="there is one, of at least 0, for each axis.",
                         fix="functrans.numpy.tile(x, reps)")
    between = [size for pair in zip(counts, x.shape) for size in pair]
    repeated = broadcast_in_dim(x, tuple(between), tuple(range(1, 2 * x.ndim, 2)))
    return reshape(repeated, tuple(n * s for n, s in zip(counts, x.shape)))


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype along a new axis.

    >>> import functrans as ft
    >>> ft.lax.stack([ft.numpy.ones(2), ft.numpy.zeros(2)], 1).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    parts = [to_array(x, "stack: an operand") for x in operands]
    if not parts:
        raise ArgumentError("lax.stack of no arrays.", where=user_source())
    axis = axis + parts[0].ndim + 1 if axis < 0 else axis
    return concatenate([expand_dims(x, (axis,)) for x in parts], axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without that axis.

    >>> import functrans as ft
    >>> [part.tolist() for part in ft.lax.unstack(ft.numpy.arange(4).reshape(2, 2), 1)]
    [[0, 2], [1, 3]]
    """
    x = to_array(x, "unstack: x")
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis < x.ndim:
        raise ShapeError(f"lax.unstack: axis {axis} of an array of shape {x.shape}.",
                         where=user_source())
    return tuple([squeeze(slice_in_dim(x, i, i + 1, axis=axis), (axis,))
                  for i in range(x.shape[axis])])


def stage(x: ArrayLike, /) -> Array:
    """x as an array or, where it is traced, as a tracer: what operations make of it.

    >>> lax.stage(2.5)
    Array(2.5, dtype=float32, weak_type=True)
    """
    return to_array(x, "stage: x")


def empty(shape: Shape | Size, dtype: DTypeLike) -> Array:
    """An array of a shape and a dtype whose elements nobody is to read; they are zeros.

    >>> lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    return full((shape,) if isinstance(shape, (int, Dim)) else tuple(shape), 0,
                dtypes.as_dtype(dtype))


def dtype(x: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype of an array, a number or what stands for a dtype.

    >>> import functrans as ft
    >>> ft.lax.dtype(1.0), ft.lax.dtype(ft.numpy.ones(2, "int8"))
    (dtype('float32'), dtype('int8'))
    """
    return dtypes.dtype_of(x)


def shape_as_value(shape: Shape) -> Array:
    """The sizes of a shape as a vector of integers, of symbolic ones as what they are at run time.

    >>> import functrans as ft
    >>> ft.lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    int_ = dtypes.default_int()
    if not len(shape):
        return full((0,), 0, int_)
    if all(isinstance(n, int) for n in shape):
        return to_array(np.array(tuple(shape), int_))
    return stack([to_array(np.asarray(n, int_)) if isinstance(n, int) else size_array(n, int_)
                  for n in shape])


# sizes of convolutions and windows -----------------------------------------------------------


def conv_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, strides: Sequence[int], pads: Padding,
                     batch_group_count: int = 1) -> tuple[Size, ...]:
    """The shape of the convolution of (N, C, *spatial) with (O, I, *window).

    >>> import functrans as ft
    >>> ft.lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), "SAME")
    (1, 4, 4, 4)
    """
    name = "conv_shape_tuple"
    windows: Any = tuple(rhs_shape[2:])
    sizes = tuple(lhs_shape[2:])
    pairs = resolve_padding(name, pads, sizes, windows, strides)
    whole = padded_sizes(name, sizes, pairs, (1,) * len(windows))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0],
            *(count_windows(n, k, s) for n, k, s in zip(whole, windows, strides, strict=True)))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The places of the axes that three strings name, as in `conv_dimension_numbers`.

    >>> import functrans as ft
    >>> ft.lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    shape = (1,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(shape, shape, dimension_numbers))


def conv_general_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                             padding: Padding,
                             dimension_numbers: ConvDimensionNumbers | Sequence[str] | None
                             ) -> tuple[Size, ...]:
    """The shape of a convolution whose axes are named, as in `conv_general_dilated`.

    >>> import functrans as ft
    >>> ft.lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (1, 1), "VALID",
    ...                                 ("NHWC", "HWIO", "NHWC"))
    (1, 6, 6, 4)
    """
    dims = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    plain = conv_shape_tuple(tuple([lhs_shape[i] for i in dims.lhs_spec]),
                             tuple([rhs_shape[i] for i in dims.rhs_spec]), window_strides, padding)
    return _placed(plain, dims.out_spec)


def conv_transpose_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                               padding: Padding,
                               dimension_numbers: ConvDimensionNumbers | Sequence[str] | None
                               ) -> tuple[Size, ...]:
    """The shape of a transposed convolution whose axes are named.

    >>> import functrans as ft
    >>> ft.lax.conv_transpose_shape_tuple((1, 4, 4, 2), (3, 3, 2, 5), (2, 2), "SAME",
    ...                                   ("NHWC", "HWOI", "NHWC"))
    (1, 8, 8, 2)
    """
    dims = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    sizes = [lhs_shape[i] for i in dims.lhs_spec[2:]]
    windows: Any = [rhs_shape[i] for i in dims.rhs_spec[2:]]
    pads = [transposed_padding(padding.upper(), k, s) for k, s in zip(windows, window_strides)] \
        if isinstance(padding, str) and padding.upper() in ("SAME", "VALID") else \
        resolve_padding("conv_transpose_shape_tuple", padding, sizes, windows, window_strides)
    whole = padded_sizes("conv_transpose_shape_tuple", sizes, tuple(pads), window_strides)
    plain = (lhs_shape[dims.lhs_spec[0]], rhs_shape[dims.rhs_spec[0]],
             *(count_windows(n, k, 1) for n, k in zip(whole, windows, strict=True)))
    return _placed(plain, dims.out_spec)


def _placed(sizes: Sequence[Size], places: Sequence[int]) -> tuple[Size, ...]:
    """Sizes in canonical order, each where its axis is."""
    result: list[Any] = [0] * len(places)
    for size, place in zip(sizes, places, strict=True):
        result[place] = size
    return tuple(result)


def reduce_window_shape_tuple(operand_shape: Shape, window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Padding,
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[Size, ...]:
    """The shape of `reduce_window`.

    >>> import functrans as ft
    >>> ft.lax.reduce_window_shape_tuple((8,), (3,), (2,), ((1, 1),))
    (4,)
    """
    ones = (1,) * len(operand_shape)
    base, spread = base_dilation or ones, window_dilation or ones
    windows = [dilate(k, d) for k, d in zip(window_dimensions, spread, strict=True)]
    sizes = [dilate(n, d) for n, d in zip(operand_shape, base, strict=True)]
    name = "reduce_window_shape_tuple"
    pairs = resolve_padding(name, padding, sizes, windows, window_strides)
    whole = padded_sizes(name, sizes, pairs, ones)
    return tuple([count_windows(n, k, s)
                  for n, k, s in zip(whole, windows, window_strides, strict=True)])


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int],
                    window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """What "SAME", "SAME_LOWER" or "VALID" puts before and behind each axis.

    >>> import functrans as ft
    >>> ft.lax.padtype_to_pads((8,), (3,), (1,), "SAME")
    [(1, 1)]
    """
    if not isinstance(padding, str):
        raise ArgumentError(f"padtype_to_pads: {padding!r} is no text.", where=user_source(),
                            fix='"SAME", "SAME_LOWER" or "VALID"')
    return list(resolve_padding("padtype_to_pads", padding, tuple(in_shape), tuple(window_shape),
                                tuple(window_strides)))
