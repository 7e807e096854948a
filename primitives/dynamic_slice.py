"""Slices whose place is known only when the program runs: reading and writing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans._runtime import empty
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Dim, Shape, Size
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add
from functrans.primitives.base import sample_array, zeros
from functrans.primitives.broadcast import broadcast_batch, broadcast_in_dim, move_axis, size_array
from functrans.primitives.compare import lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import gather_p, join_components
from functrans.primitives.index_checks import check_starts, looks_at_indices
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    as_sizes,
    map_both,
    map_indices,
    scatter_numbers,
)
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import expand_dims, squeeze
from functrans.primitives.shape import slice as static_slice

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p",
           "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
           "dynamic_update_slice_p"]


class DynamicSlice(Primitive):
    """The window of `slice_sizes` at given starts, moved inside where it sticks out."""

    widens_halves = False
    is_quiet = True

    def type(self, operand: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> ShapedArray:
        _check_window(self.name, operand, starts, slice_sizes)
        return operand.with_shape(slice_sizes)

    def evaluate(self, operand: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
        operand = np.asarray(operand)
        return operand[_window(operand.shape, starts, slice_sizes)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, slice_sizes: Shape) -> Any:
        _, *starts = primals
        tangent = None if tangents[0] is None else self.bind(tangents[0], *starts,
                                                             slice_sizes=slice_sizes)
        return self.bind(*primals, slice_sizes=slice_sizes), tangent

    def transpose(self, ct: Any, operand: Linear, *starts: Any,
                  slice_sizes: Shape) -> tuple[Any, ...]:
        zero = zeros(operand.aval.strong())
        return dynamic_update_slice_p.bind(zero, ct, *starts), *(None for _ in starts)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              slice_sizes: Shape) -> tuple[Any, int]:
        (operand, *starts), (axis, *start_axes) = operands, axes
        if axis is not None:
            operand = move_axis(operand, axis, 0)
        if all(a is None for a in start_axes):
            size = operand.shape[0]
            return self.bind(operand, np.int32(0), *starts, slice_sizes=(size, *slice_sizes)), 0
        ndim = len(slice_sizes)
        numbers = _whole_window(ndim)
        numbers = map_indices(numbers) if axis is None else map_both(numbers)
        sizes = slice_sizes if axis is None else (1, *slice_sizes)
        return gather_p.bind(operand, _start_vectors(starts, start_axes),
                             dimension_numbers=numbers, slice_sizes=sizes,
                             unique_indices=axis is not None, indices_are_sorted=axis is not None,
                             mode=GatherScatterMode.CLIP, fill_value=None), 0

    def cost(self, operand: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> Cost:
        out = operand.with_shape(slice_sizes)
        return Cost(0, out.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        x = sample_array(4, 3)
        for starts in ((1, 0), (3, 2), (-5, 1)):
            yield Sample((x, *map(np.int32, starts)), {"slice_sizes": (2, 2)})


class DynamicUpdateSlice(Primitive):
    """The operand with the window that starts at given scalars replaced by an update."""

    widens_halves = False
    is_quiet = True

    def type(self, operand: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
        if operand.dtype != update.dtype:
            raise DTypeError(f"dynamic_update_slice: the update is {update}, the operand "
                             f"{operand}.", where=user_source(),
                             fix=f"update.astype({operand.dtype.name!r})")
        _check_window(self.name, operand, starts, update.shape)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type and update.weak_type)

    def evaluate(self, operand: Any, update: Any, *starts: Any) -> np.ndarray[Any, Any]:
        operand, update = np.asarray(operand), np.asarray(update)
        out = empty(operand.shape, operand.dtype)
        np.copyto(out, operand)
        out[_window(out.shape, starts, update.shape)] = update
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (operand, update, *starts), (t_operand, t_update, *_) = primals, tangents
        t_operand = zeros(get_aval(operand).strong()) if t_operand is None else t_operand
        t_update = zeros(get_aval(update).strong()) if t_update is None else t_update
        return self.bind(operand, update, *starts), self.bind(t_operand, t_update, *starts)

    def transpose(self, ct: Any, operand: Any, update: Any, *starts: Any) -> tuple[Any, ...]:
        ct_operand = ct_update = None
        aval = update.aval if isinstance(update, Linear) else get_aval(update)
        if isinstance(operand, Linear):
            ct_operand = self.bind(ct, zeros(aval.strong()), *starts)
        if isinstance(update, Linear):
            ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
        return ct_operand, ct_update, *(None for _ in starts)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
        (operand, update, *starts), (axis, update_axis, *start_axes) = operands, axes
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        operand, update = (broadcast_batch(x, size) if a is None else move_axis(x, a, 0)
                           for x, a in ((operand, axis), (update, update_axis)))
        if all(a is None for a in start_axes):
            return self.bind(operand, update, np.int32(0), *starts), 0
        return scatter_p.bind(operand, _start_vectors(starts, start_axes), update,
                              dimension_numbers=scatter_numbers(
                                  map_both(_whole_window(len(starts)))),
                              unique_indices=True, indices_are_sorted=True,
                              mode=GatherScatterMode.CLIP), 0

    def cost(self, operand: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Cost:
        return Cost(0, operand.nbytes + operand.nbytes + update.nbytes)

    def samples(self) -> Iterator[Sample]:
        x, u = sample_array(4, 3), sample_array(2, 2, seed=1)
        for starts in ((1, 0), (3, 2), (-5, 1)):
            yield Sample((x, u, *map(np.int32, starts)))


dynamic_slice_p, dynamic_update_slice_p = DynamicSlice(), DynamicUpdateSlice()


def _window(shape: Sequence[int], starts: Sequence[Any],
            sizes: Sequence[int]) -> tuple[slice, ...]:
    window = []
    for size, start, width in zip(shape, starts, sizes, strict=True):
        if width > size:
            raise ValueError("the window does not fit")
        first = min(max(int(start), 0), size - width)
        window.append(slice(first, first + width))
    return tuple(window)


def _whole_window(ndim: int) -> GatherDimensionNumbers:
    """Dimension numbers of one index vector that addresses every dimension of the operand."""
    return GatherDimensionNumbers(tuple(range(ndim)), (), tuple(range(ndim)))


def _start_vectors(starts: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """Batched scalars as an array of index vectors, one for each lane."""
    size = next(x.shape[a] for x, a in zip(starts, axes, strict=True) if a is not None)
    lanes = [x if a is not None else broadcast_in_dim(x, (size,), ())
             for x, a in zip(starts, axes, strict=True)]
    return join_components(lanes)


def _check_window(name: str, operand: ShapedArray, starts: Sequence[ShapedArray],
                  sizes: Shape) -> None:
    if not len(starts) == len(sizes) == operand.ndim:
        raise ShapeError(f"{name}: {len(starts)} starts and {len(sizes)} window sizes for "
                         f"{operand}.", where=user_source(), why="there is one per dimension.")
    for start in starts:
        if start.shape or dtypes.kind(start.dtype) not in "iu":
            raise DTypeError(f"{name}: a start is {start}, and must be an integer scalar.",
                             where=user_source())
    for size, width in zip(operand.shape, sizes, strict=True):
        if isinstance(size, int) and isinstance(width, int) and not 0 <= width <= size:
            raise ShapeError(f"{name}: a window of shape {sizes} does not fit {operand}.",
                             where=user_source())


def _starts(name: str, operand: Any, starts: Any,
            allow_negative: bool | Sequence[bool]) -> list[Any]:
    """One start for each dimension; negative ones count from the end where that is allowed."""
    if hasattr(starts, "ndim"):
        if starts.ndim != 1:
            raise ShapeError(f"{name}: the starts are {get_aval(starts)}, and must be a vector.",
                             where=user_source())
        parts = [squeeze(static_slice(starts, (i,), (i + 1,)), (0,))
                 for i in range(starts.shape[0])]
    else:
        parts = list(starts)
    wraps = (allow_negative,) * operand.ndim if isinstance(allow_negative, (bool, np.bool_)) \
        else tuple(allow_negative)
    if len(wraps) != operand.ndim:
        raise ArgumentError(f"{name}: allow_negative_indices has {len(wraps)} entries for "
                            f"{operand.ndim} dimensions.", where=user_source())
    return [_from_front(s, size) if wrap else _at_least_zero(s)
            for s, size, wrap in zip(parts, operand.shape, wraps, strict=False)] \
        + parts[operand.ndim:]


def _at_least_zero(start: Any) -> Any:
    """A start that does not count from the end: a negative one is moved to 0."""
    return max(int(start), 0) if isinstance(start, (int, np.integer)) else start


def _from_front(start: Any, size: Size) -> Any:
    if isinstance(start, (int, np.integer)):
        return int(start) + size if start < 0 else int(start)
    if isinstance(start, Dim) or dtypes.kind(start.dtype) == "u":
        return start
    if start.dtype.itemsize < 4:  # too narrow for most sizes
        start = convert_element_type(start, np.int32)
    return select_n(lt(start, 0), start, add(start, size_array(size, start.dtype)))


def _static_window(shape: Sequence[Any], starts: Sequence[Any],
                   sizes: Sequence[Any]) -> tuple[slice, ...] | None:
    """The window if all is known and fits, else None."""
    if not len(shape) == len(starts) == len(sizes) or any(
            type(v) is not int for v in (*shape, *starts, *sizes)):
        return None
    if any(width > size for width, size in zip(sizes, shape, strict=True)):
        return None
    return _window(shape, starts, sizes)


def dynamic_slice(operand: Array, start_indices: ArrayLike | Sequence[ArrayLike],
                  slice_sizes: Sequence[Size], *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The window of `slice_sizes` at `start_indices` (a vector, or one scalar per dimension).

    Negative starts count from the end, unless `allow_negative_indices` is false (for all or one
    dimension); a window that sticks out is moved inside. Raises ShapeError when there is not one
    start and one size for each dimension, or the window is too large.

    >>> import functrans as ft
    >>> ft.lax.dynamic_slice(ft.numpy.arange(5), (ft.numpy.int32(4),), (2,)).tolist()
    [3, 4]
    """
    starts, sizes = _starts("dynamic_slice", operand, start_indices, allow_negative_indices), \
        as_sizes(slice_sizes)
    window = _static_window(operand.shape, starts, sizes)
    if window is not None:
        return static_slice(operand, [w.start for w in window], [w.stop for w in window])
    if looks_at_indices():
        check_starts("dynamic_slice", operand.shape, starts, sizes)
    return dynamic_slice_p.bind(operand, *map(_scalar, starts), slice_sizes=sizes)


def dynamic_update_slice(operand: Array, update: ArrayLike,
                         start_indices: ArrayLike | Sequence[ArrayLike], *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The operand with the window at `start_indices` replaced by the update; see dynamic_slice.

    Raises ShapeError when the update is no window of the operand, DTypeError when dtypes differ.

    >>> import functrans as ft
    >>> ft.lax.dynamic_update_slice(ft.numpy.zeros(3), ft.numpy.ones(1), (1,)).tolist()
    [0.0, 1.0, 0.0]
    """
    starts = _starts("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    if looks_at_indices():
        check_starts("dynamic_update_slice", operand.shape, starts, get_aval(update).shape)
    return dynamic_update_slice_p.bind(operand, update, *map(_scalar, starts))


def _scalar(start: Any) -> Any:
    """A start as an operand: Python ints are int32, whatever the arrays beside them are."""
    return size_array(start, np.int32) if isinstance(start, (int, Dim)) else start


def _starts_on(operand: Any, start: Any, axis: int) -> tuple[list[Any], int]:
    axis %= operand.ndim
    starts: list[Any] = [0] * operand.ndim
    starts[axis] = start
    return starts, axis


def dynamic_slice_in_dim(operand: Array, start_index: ArrayLike, slice_size: Size, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """The window of `slice_size` at `start_index` along one axis; see dynamic_slice.

    >>> import functrans as ft
    >>> ft.lax.dynamic_slice_in_dim(ft.numpy.arange(5), 1, 2).tolist()
    [1, 2]
    """
    starts, axis = _starts_on(operand, start_index, axis)
    return dynamic_slice(operand, starts, (*operand.shape[:axis], slice_size,
                                           *operand.shape[axis + 1:]),
                         allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand: Array, index: ArrayLike, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The part at one index along `axis`, which may be traced; clamped into bounds.

    >>> import functrans as ft
    >>> int(ft.lax.dynamic_index_in_dim(ft.numpy.arange(5), ft.numpy.int32(3), keepdims=False))
    3
    """
    part = dynamic_slice_in_dim(operand, index, 1, axis,
                                allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(operand: Array, update: ArrayLike, start_index: ArrayLike,
                                axis: int, *, allow_negative_indices: bool = True) -> Array:
    """The operand with the update at `start_index` along one axis; see dynamic_update_slice.

    >>> import functrans as ft
    >>> ft.lax.dynamic_update_slice_in_dim(ft.numpy.zeros(3), ft.numpy.ones(1), 2, 0).tolist()
    [0.0, 0.0, 1.0]
    """
    return dynamic_update_slice(operand, update, _starts_on(operand, start_index, axis)[0],
                                allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand: Array, update: ArrayLike, index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with the part at one index along `axis` replaced, with or without that axis.

    >>> import functrans as ft
    >>> ft.lax.dynamic_update_index_in_dim(ft.numpy.zeros(3), 1.0, 2, 0).tolist()
    [0.0, 0.0, 1.0]
    """
    axis %= operand.ndim
    part: Any = update if hasattr(update, "ndim") else np.asarray(update, operand.dtype)
    if part.ndim < operand.ndim:
        part = expand_dims(part, (axis,))
    return dynamic_update_slice_in_dim(operand, part, index, axis,
                                       allow_negative_indices=allow_negative_indices)
