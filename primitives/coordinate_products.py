"""Products of matrices of coordinates with the columns of dense ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.dims import Size
from functrans.core.errors import DTypeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, mul
from functrans.primitives.base import full, sample_array, shapes_differ
from functrans.primitives.broadcast import (
    align_batch,
    broadcast_in_dim,
    move_axis,
    reduce_sum,
)
from functrans.primitives.compare import bitwise_and, ge, lt, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import Differentiable, linear
from functrans.primitives.index import scatter_add
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.shape import broadcasted_iota, concatenate, reshape, slice_in_dim
from functrans.primitives.sparse import added_rows, has_library_rows, native_rows, read_rows

__all__ = ["coo_dot_p", "inside_pairs", "product_of_coordinates"]


class CooDot(Differentiable):
    """A matrix of coordinates, or its transpose, times the columns of x.

    `data` (nse,) stands at the rows and columns `indices` (nse, 2), in any order; those out of
    bounds count for nothing. `is_sorted` promises that rows do not decrease.
    """

    derivatives = (linear, None, linear)

    def type(self, data: ShapedArray, indices: ShapedArray, x: ShapedArray, *,
             sizes: tuple[Size, Size], transpose: bool, is_sorted: bool) -> ShapedArray:
        if data.ndim != 1 or indices.shape != (data.shape[0], 2) or x.ndim != 2 or \
                x.shape[0] != sizes[0 if transpose else 1]:
            raise shapes_differ(self.name, (data, indices, x),
                                f"the matrix has {sizes[0]} rows and {sizes[1]} columns.")
        if dtypes.kind(indices.dtype) not in "iu":
            raise DTypeError(f"{self.name} takes integers as indices, got {indices}.",
                             where=user_source())
        if x.dtype != data.dtype or dtypes.kind(data.dtype) not in "iufc":
            raise DTypeError(f"{self.name} needs numbers of one dtype, got {data} and {x}.",
                             where=user_source())
        return ShapedArray((sizes[1 if transpose else 0], x.shape[1]), data.dtype)

    def evaluate(self, data: Any, indices: Any, x: Any, *, sizes: tuple[int, int],
                 transpose: bool, is_sorted: bool) -> np.ndarray[Any, Any]:
        shape = (sizes[1 if transpose else 0], x.shape[1])
        if has_library_rows(data.dtype, indices.dtype):
            return native_rows("coo_dot", (data, indices, x), shape, int(transpose), *sizes,
                               len(data), x.shape[1])
        inside = inside_pairs(indices, sizes)
        row, column = indices[inside].T.astype(np.int64)
        to, of = (column, row) if transpose else (row, column)
        return added_rows(data[inside, None] * x[of], to, shape[0])

    def transpose(self, ct: Any, data: Any, indices: Any, x: Any, *, sizes: tuple[Size, Size],
                  transpose: bool, is_sorted: bool) -> tuple[Any, None, Any]:
        in_data = in_x = None
        if isinstance(data, Linear):
            row, column = _columns(indices, sizes)
            left, right = (x, ct) if transpose else (ct, x)
            in_data = reduce_sum(mul(read_rows(left, row), read_rows(right, column)), (1,))
        if isinstance(x, Linear):
            in_x = self.bind(data, indices, ct, sizes=sizes, transpose=not transpose,
                             is_sorted=is_sorted)
        return in_data, None, in_x

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              sizes: tuple[Size, Size], transpose: bool, is_sorted: bool) -> tuple[Any, int]:
        if axes[0] is None and axes[1] is None:  # lanes are further columns
            data, indices, x = operands
            x = move_axis(x, axes[2] or 0, 1)
            size, n = x.shape[1:]
            out = self.bind(data, indices, reshape(x, (x.shape[0], size * n)), sizes=sizes,
                            transpose=transpose, is_sorted=is_sorted)
            return reshape(out, (out.shape[0], size, n)), 1
        data, indices, x = align_batch(operands, axes)
        size, nse = data.shape
        # one matrix with those of all lanes along its diagonal
        parts = []
        flat = reshape(indices, (size * nse, 2))
        lane = reshape(broadcasted_iota(indices.dtype, (size, nse), 0), (size * nse,))
        for at, most in zip(_columns(flat, sizes), sizes, strict=True):
            shifted = add(at, mul(lane, _wide(most, lane)))
            shifted = where(lt(at, _wide(most, at)), shifted, _wide(size * most, at))
            parts.append(reshape(shifted, (size * nse, 1)))
        out = self.bind(reshape(data, (size * nse,)), concatenate(parts, 1),
                        reshape(x, (size * x.shape[1], x.shape[2])),
                        sizes=(size * sizes[0], size * sizes[1]), transpose=transpose,
                        is_sorted=False)
        return reshape(out, (size, out.shape[0] // size, out.shape[1])), 0

    def cost(self, data: ShapedArray, indices: ShapedArray, x: ShapedArray,
             **params: Any) -> Cost:
        moved = data.nbytes + indices.nbytes + x.nbytes
        return Cost(2 * data.size * x.shape[1],
                    moved + self.type(data, indices, x, **params).nbytes)

    def samples(self) -> Iterator[Sample]:
        data, x = sample_array(6), sample_array(4, 2, seed=1)
        indices = np.array([[0, 3], [0, 0], [2, 1], [2, -1], [1, 3], [9, 2]], np.int32)
        for order in (slice(None), slice(None, None, -1)):
            params = {"sizes": (3, 4), "is_sorted": False}
            yield Sample((data, indices[order], x), {**params, "transpose": False})
            yield Sample((data, indices[order], x[:3]), {**params, "transpose": True})
        yield Sample((data[:3], indices[:3], x), {**params, "is_sorted": True, "transpose": False})


def inside_pairs(indices: np.ndarray[Any, Any], sizes: tuple[int, int]) -> np.ndarray[Any, Any]:
    """The numbers of the elements that have a row and a column."""
    return np.flatnonzero(((indices >= 0) & (indices < np.asarray(sizes))).all(1))


def _columns(indices: Any, sizes: tuple[Size, Size]) -> list[Any]:
    """Rows and columns, both beyond the sizes where one of them is out of bounds."""
    found = _split(indices)
    inside = bitwise_and(*[_is_inside(at, n) for at, n in zip(found, sizes, strict=True)])
    return [where(inside, at, _wide(n, at)) for at, n in zip(found, sizes, strict=True)]


def _split(indices: Any) -> list[Any]:
    wide = np.dtype(np.int64 if indices.dtype.itemsize == 8 else np.int32)
    indices = convert_element_type(indices, wide)
    return [reshape(slice_in_dim(indices, k, k + 1, axis=1), (indices.shape[0],))
            for k in range(2)]


def _is_inside(at: Any, size: Size) -> Any:
    return bitwise_and(ge(at, _wide(0, at)), lt(at, _wide(size, at)))


def _wide(value: Size, like: Any) -> Any:
    return broadcast_in_dim(full((), value, like.dtype), like.shape, ())


def product_of_coordinates(data: Any, indices: Any, x: Any, *, sizes: tuple[Size, Size],
                           transpose: bool, is_sorted: bool) -> list[Any]:
    """`coo_dot` by gathers, products and additions at places, of halves in float32."""
    dtype, wide = data.dtype, dtypes.computed_dtype(data.dtype)
    data, x = convert_element_type(data, wide), convert_element_type(x, wide)
    row, column = _split(indices)  # as they are: rows stay in order
    to, of = (column, row) if transpose else (row, column)
    data = where(_is_inside(of, sizes[0 if transpose else 1]), data, _wide(0, data))
    products = mul(broadcast_in_dim(data, (data.shape[0], x.shape[1]), (0,)), read_rows(x, of))
    size = sizes[1 if transpose else 0]
    out = scatter_add(full((size, x.shape[1]), 0, wide), reshape(to, (to.shape[0], 1)), products,
                      ScatterDimensionNumbers((1,), (0,), (0,)),
                      mode=GatherScatterMode.FILL_OR_DROP,
                      indices_are_sorted=is_sorted and not transpose)
    return [convert_element_type(out, dtype)]


coo_dot_p = CooDot()
