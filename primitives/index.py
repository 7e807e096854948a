"""gather and scatter_add, which transpose into each other, and taking parts along one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans._runtime import empty
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Shape, Size
from functrans.core.errors import IndexingError, ShapeError
from functrans.core.primitive import Cost, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.base import sample_array, zeros
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import Differentiable
from functrans.primitives.index_checks import check_vectors, looks_at_indices
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_sizes,
    checked_shape,
    default_fill,
    layout_of,
    map_both,
    map_indices,
    map_operand,
    result_shape,
    scatter_numbers,
    window_sizes,
)
from functrans.primitives.shape import concatenate, expand_dims, slice_in_dim, squeeze

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["Gather", "GatherDimensionNumbers", "GatherScatterMode", "Scatter", "ScatterAdd",
           "ScatterDimensionNumbers", "gather", "gather_p", "index_in_dim", "index_take",
           "scatter_add", "scatter_add_p"]


class Gather(Differentiable):
    """Windows of an operand at the places that an array of index vectors names."""

    widens_halves = False
    is_quiet = True
    derivatives = (lambda t, out, operand, indices, **params:
                   _gather_tangent(t, indices, params), None)

    def type(self, operand: ShapedArray, indices: ShapedArray, *,
             dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
             **params: Any) -> ShapedArray:
        return operand.with_shape(
            checked_shape(self.name, dimension_numbers, operand, indices, slice_sizes))

    def evaluate(self, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
                 slice_sizes: tuple[int, ...], mode: GatherScatterMode, fill_value: Any = None,
                 **params: Any) -> Any:
        operand, indices = np.asarray(operand), np.asarray(indices)
        layout = layout_of(dimension_numbers, operand.shape, indices.shape, slice_sizes)
        rows, inside = layout.rows(indices, mode)
        x = operand if layout.is_ordered else operand.transpose(layout.order)
        if layout.crop is not None:
            x = x[(..., *layout.crop)]
        if x.flags.c_contiguous or x.size <= 2 * rows.size * int(np.prod(layout.columns)):
            out = x.reshape(layout.num_rows, *layout.columns).take(rows, axis=0)
        else:  # a few rows of a large array that is not laid out in rows: no copy of all of it
            out = x[np.unravel_index(rows, layout.row_shape)]
        if inside is not None:
            fill = default_fill(out.dtype) if fill_value is None else \
                np.asarray(fill_value).astype(out.dtype)
            outside = ~inside.reshape(inside.shape + (1,) * (out.ndim - inside.ndim))
            out = np.where(outside, fill, out)
        return out if layout.is_result_ordered else out.transpose(layout.from_result)

    def transpose(self, ct: Any, operand: Any, indices: Any, *,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                  unique_indices: bool, indices_are_sorted: bool, mode: GatherScatterMode,
                  fill_value: Any = None) -> tuple[Any, None]:
        numbers = scatter_numbers(dimension_numbers)
        return scatter_add_p.bind(zeros(operand.aval.strong()), indices, ct,
                                  dimension_numbers=numbers, unique_indices=unique_indices,
                                  indices_are_sorted=indices_are_sorted, mode=mode), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
              **params: Any) -> tuple[Any, int]:
        (operand, indices), (operand_axis, indices_axis) = operands, axes
        if operand_axis is not None:
            operand = move_axis(operand, operand_axis, 0)
        if indices_axis is None:
            numbers = map_operand(dimension_numbers)
            sizes: Shape = (operand.shape[0], *slice_sizes)
        else:
            indices = move_axis(indices, indices_axis, 0)
            numbers, sizes = map_indices(dimension_numbers), slice_sizes
            if operand_axis is not None:
                numbers, sizes = map_both(dimension_numbers), (1, *slice_sizes)
            # sorted and distinct in each lane, which says nothing of all lanes together
            params = {**params, "unique_indices": operand_axis is not None
                      and params["unique_indices"], "indices_are_sorted": False}
        return gather_p.bind(operand, indices, dimension_numbers=numbers, slice_sizes=sizes,
                             **params), 0

    def cost(self, operand: ShapedArray, indices: ShapedArray, **params: Any) -> Cost:
        out = self.type(operand, indices, **params)
        return Cost(0, indices.nbytes + out.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        for operand, indices, numbers, sizes in _gather_samples():
            for mode in (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP):
                yield Sample((operand, indices),
                             {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode,
                              "unique_indices": False, "indices_are_sorted": False,
                              "fill_value": 0.5})


class Scatter(Primitive, abstract=True):
    """An operand combined with updates at the places that an array of index vectors names."""

    ufunc: ClassVar[np.ufunc | None] = None  # combines what is there with an update; None: replaces

    def type(self, operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
             dimension_numbers: ScatterDimensionNumbers, **params: Any) -> ShapedArray:
        windows = window_sizes(dimension_numbers, updates, operand.ndim)
        wanted = checked_shape(self.name, dimension_numbers.gather, operand, indices, windows)
        if updates.shape != wanted or updates.dtype != operand.dtype:
            like = ShapedArray(wanted, operand.dtype)
            raise ShapeError(f"{self.name}: the updates are {updates} and must be {like}.",
                             where=user_source(), why=f"the operand is {operand}, the indices are "
                                                      f"{indices}, and {dimension_numbers}.")
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)

    def evaluate(self, operand: Any, indices: Any, updates: Any, *,
                 dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
                 unique_indices: bool = False, **params: Any) -> np.ndarray[Any, Any]:
        operand, indices, updates = map(np.asarray, (operand, indices, updates))
        windows = window_sizes(dimension_numbers, ShapedArray(updates.shape, updates.dtype),
                               operand.ndim)
        layout = layout_of(dimension_numbers.gather, operand.shape, indices.shape, windows)
        if updates.shape != layout.result_shape or updates.dtype != operand.dtype:
            raise ValueError("updates do not fit")
        rows, inside = layout.rows(indices, mode)
        # an own copy with the rows first, in C order, on pages that the allocator keeps
        ordered = operand.transpose(layout.order)
        out = empty(ordered.shape, ordered.dtype)
        np.copyto(out, ordered)
        target = out.reshape(layout.num_rows, *out.shape[len(layout.row_shape):])
        if not layout.is_result_ordered:
            updates = updates.transpose(layout.result_order)
        if inside is not None:
            rows, updates = rows[inside], updates[inside]
        rows = rows.reshape(-1)
        updates = updates.reshape(rows.size, *layout.columns)
        if self.ufunc is None or rows.size == 1 or unique_indices:
            at = rows if layout.crop is None else (rows, *layout.crop)
            if self.ufunc is None:
                target[at] = updates
            else:
                target[at] = self.ufunc(target[at], updates)
        else:
            self._accumulate(target, rows, updates)
        return out if layout.is_ordered else out.transpose(layout.inverse)

    def _accumulate(self, target: np.ndarray[Any, Any], rows: np.ndarray[Any, Any],
                    updates: np.ndarray[Any, Any]) -> None:
        """Combine rows one after the other, through NumPy's fast loop for one dimension."""
        assert self.ufunc is not None
        columns = target.shape[1:]
        at = rows * int(np.prod(columns))
        for d, size in enumerate(updates.shape[1:]):
            at = at[..., None] + np.arange(size) * int(np.prod(columns[d + 1:]))
        self.ufunc.at(target.reshape(-1), at.reshape(-1), updates.reshape(-1))

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimension_numbers: ScatterDimensionNumbers, **params: Any) -> tuple[Any, int]:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        operand, indices, updates = (
            x if a is None else move_axis(x, a, 0) for x, a in zip(operands, axes, strict=True))
        operand = broadcast_batch(operand, size) if axes[0] is None else operand
        updates = broadcast_batch(updates, size) if axes[2] is None else updates
        if axes[1] is None:
            numbers = scatter_numbers(map_operand(dimension_numbers.gather))
        else:
            numbers = scatter_numbers(map_both(dimension_numbers.gather))
            params = {**params, "indices_are_sorted": False}
        return self.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0

    def cost(self, operand: ShapedArray, indices: ShapedArray, updates: ShapedArray,
             **params: Any) -> Cost:
        return Cost(updates.size if self.ufunc else 0, operand.nbytes + operand.nbytes
                    + indices.nbytes + updates.nbytes + updates.nbytes)

    def samples(self) -> Iterator[Sample]:
        for operand, indices, numbers, sizes in _gather_samples():
            shape = result_shape(numbers, indices.shape, sizes)
            updates = sample_array(*map(int, shape), seed=1, low=0.5)
            for mode in (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP):
                yield Sample((operand, indices, updates),
                             {"dimension_numbers": scatter_numbers(numbers), "mode": mode,
                              "unique_indices": False, "indices_are_sorted": False})


class ScatterAdd(Scatter):
    """The operand with updates added at indexed places; several at one place all count."""

    ufunc = np.add

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = self.bind(operand, indices, updates, **params)
        if t_updates is None:
            return out, t_operand
        base = zeros(get_aval(operand).strong()) if t_operand is None else t_operand
        return out, self.bind(base, indices, t_updates, **params)

    def transpose(self, ct: Any, operand: Any, indices: Any, updates: Any,
                  **params: Any) -> tuple[Any, None, Any]:
        return (ct if isinstance(operand, Linear) else None, None,
                gather_updates(ct, indices, updates, **params)
                if isinstance(updates, Linear) else None)


def gather_updates(x: Any, indices: Any, updates: Any, *,
                   dimension_numbers: ScatterDimensionNumbers, unique_indices: bool,
                   indices_are_sorted: bool, mode: GatherScatterMode, fill_value: Any = 0) -> Any:
    """What a scatter of `updates` (values or `Linear`) would write to, read from x."""
    aval = updates.aval if isinstance(updates, Linear) else get_aval(updates)
    sizes = window_sizes(dimension_numbers, aval, x.ndim)
    return gather_p.bind(x, indices, dimension_numbers=dimension_numbers.gather, slice_sizes=sizes,
                         unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                         mode=mode, fill_value=fill_value)


def _gather_samples() -> Iterator[tuple[Any, Any, GatherDimensionNumbers, tuple[int, ...]]]:
    """Rows with repetition and one out of bounds; windows; two components; batching dimensions."""
    x = sample_array(4, 3)
    numbers = GatherDimensionNumbers
    yield x, np.array([[0], [2], [2], [9]], np.int32), numbers((1,), (0,), (0,)), (1, 3)
    yield x, np.array([[1], [-1]], np.int32), numbers((0, 1), (), (1,)), (3, 2)
    yield x, np.array([[[0, 1], [3, 2], [0, 1]]], np.int32), numbers((), (0, 1), (0, 1)), (1, 1)
    yield (sample_array(2, 4, 3), np.array([[[1], [1]], [[0], [3]]], np.int32),
           numbers((2,), (1,), (1,), (0,), (0,)), (1, 1, 2))
    yield x, np.array([2], np.int32), numbers((0,), (0,), (0,)), (1, 3)


def _gather_tangent(t: Any, indices: Any, params: dict[str, Any]) -> Any:
    return gather_p.bind(t, indices, **{**params, "fill_value": 0})


gather_p: Gather = Gather()
scatter_add_p: ScatterAdd = ScatterAdd()


def gather(operand: Array, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[Size], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: ArrayLike | None = None) -> Array:
    """Windows of `slice_sizes` of the operand at every index vector (last dimension of indices).

    Raises ShapeError when the numbers do not fit, DTypeError for indices that are no integers.
    See XLA's operation semantics, Gather.

    >>> import functrans as ft
    >>> numbers = ft.lax.GatherDimensionNumbers((), (0,), (0,))
    >>> ft.lax.gather(ft.numpy.arange(4), ft.numpy.array([[2], [0]]), numbers, (1,)).tolist()
    [2, 0]
    """
    start_indices, slice_sizes = as_indices(start_indices), as_sizes(slice_sizes)
    if mode is None and looks_at_indices():
        check_vectors("gather", start_indices, operand.shape, slice_sizes, dimension_numbers)
    return gather_p.bind(operand, start_indices, dimension_numbers=dimension_numbers,
                         slice_sizes=slice_sizes, unique_indices=bool(unique_indices),
                         indices_are_sorted=bool(indices_are_sorted),
                         mode=GatherScatterMode.from_any(mode), fill_value=fill_value)


def scatter_add(operand: Array, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with updates added at every index vector; repeated ones add up.

    Raises ShapeError when the numbers do not fit, DTypeError for indices that are no integers.
    See XLA's operation semantics, Scatter.

    >>> import functrans as ft
    >>> numbers = ft.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> i, u = ft.numpy.array([[0], [0]]), ft.numpy.array([1, 2])
    >>> ft.lax.scatter_add(ft.numpy.zeros(2, "int32"), i, u, numbers).tolist()
    [3, 0]
    """
    return bind_scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def bind_scatter(primitive: Scatter, operand: Any, indices: Any, updates: Any,
                 numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
                 mode: str | GatherScatterMode | None) -> Array:
    """Bind one of the scatters with canonical parameters."""
    indices = as_indices(indices)
    if mode is None and looks_at_indices():
        windows = window_sizes(numbers, get_aval(updates), operand.ndim)
        check_vectors(primitive.name, indices, operand.shape, windows, numbers.gather)
    return primitive.bind(operand, indices, updates, dimension_numbers=numbers,
                          indices_are_sorted=bool(indices_are_sorted),
                          unique_indices=bool(unique_indices),
                          mode=GatherScatterMode.from_any(mode))


def as_indices(indices: Any) -> Any:
    """Index arrays as they are; nested sequences of ints as int32."""
    return indices if hasattr(indices, "dtype") else np.asarray(indices, np.int32)


def join_components(parts: Sequence[Any]) -> Any:
    """Index vectors from their components, integer arrays of one shape, on a new last axis."""
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.stack(parts, axis=-1)
    dtype = dtypes.result_type(*parts)
    return concatenate([expand_dims(convert_element_type(p, dtype), (p.ndim,)) for p in parts],
                       parts[0].ndim)


def index_in_dim(operand: Array, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The part at one static index along `axis`, negative from the end.

    Raises IndexingError when the index is out of bounds.

    >>> import functrans as ft
    >>> ft.lax.index_in_dim(ft.numpy.arange(6).reshape(2, 3), -1, axis=0).tolist()
    [[3, 4, 5]]
    """
    axis %= operand.ndim
    size = operand.shape[axis]
    if not -size <= index < size:
        raise IndexingError(f"index {index} is out of bounds for axis {axis} of size {size}.",
                            where=user_source())
    start = index + size if index < 0 else index
    part = slice_in_dim(operand, start, start + 1, axis=axis)
    return part if keepdims else squeeze(part, (axis,))


def index_take(src: Array, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """src at tuples of indices: axes[k] is indexed by idxs[k], vectors of one length, in front.

    >>> import functrans as ft
    >>> i = ft.numpy.array([1, 0])
    >>> ft.lax.index_take(ft.numpy.arange(4).reshape(2, 2), (i, i), (0, 1)).tolist()
    [3, 0]
    """
    from_axes = tuple(a % src.ndim for a in axes)
    vectors = join_components([as_indices(i) for i in idxs])
    windows = tuple(1 if d in from_axes else s for d, s in enumerate(src.shape))
    numbers = GatherDimensionNumbers(tuple(range(1, src.ndim - len(from_axes) + 1)),
                                     tuple(sorted(from_axes)), from_axes)
    return gather(src, vectors, numbers, windows, mode="clip")
