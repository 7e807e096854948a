"""Products of matrices of compressed rows, and the elements of a product at their places.

Each is the transpose of the other in one of its operands, so that derivatives of any order are of
these two. Elements out of bounds, and those that belong to no row, count for nothing; a pointer
that is less than one before it is as large as that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.dims import Size
from functrans.core.errors import DTypeError, OutOfMemoryError
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
from functrans.primitives.compare import bitwise_and, clamp, ge, lt, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.cumulative import cummax, cumsum
from functrans.primitives.differentiable import Differentiable, linear
from functrans.primitives.index import gather, scatter_add
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from functrans.primitives.native_matrices import CODES, library_function
from functrans.primitives.shape import broadcasted_iota, concatenate, pad, reshape, slice_in_dim

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["added_rows", "csr_dot_p", "csr_sample_p", "has_library_rows", "native_rows",
           "product_of_rows", "read_rows", "row_of_each", "rows_of_lanes", "sample_of_rows",
           "stored_elements"]

NDArray = np.ndarray[Any, Any]


class CompressedRows(Differentiable, abstract=True):
    """An operation on a matrix whose stored elements stand in order of their rows.

    Row i has the elements from `indptr[i]` to before `indptr[i + 1]`, in the columns `indices`.
    """

    def check_rows(self, indices: ShapedArray, indptr: ShapedArray, *others: ShapedArray) -> None:
        """Raise unless the parts are vectors of integers, and all else is of one dtype."""
        if indices.ndim != 1 or indptr.ndim != 1 or indptr.shape[0] == 0:
            raise shapes_differ(self.name, (indices, indptr), "both are vectors; the second has "
                                                              "one element more than rows.")
        if dtypes.kind(indices.dtype) not in "iu" or indptr.dtype != indices.dtype:
            raise DTypeError(f"{self.name} takes integers of one dtype as indices, got {indices} "
                             f"and {indptr}.", where=user_source())
        if any(x.dtype != others[0].dtype for x in others) or \
                dtypes.kind(others[0].dtype) not in "iufc":
            raise DTypeError(f"{self.name} needs numbers of one dtype, got "
                             f"{' and '.join(map(str, others))}.", where=user_source())


class CsrDot(CompressedRows):
    """A matrix of compressed rows, or its transpose, times the columns of x."""

    derivatives = (linear, None, None, linear)

    def type(self, data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, x: ShapedArray,
             *, columns: Size, transpose: bool) -> ShapedArray:
        self.check_rows(indices, indptr, data, x)
        rows = indptr.shape[0] - 1
        if data.shape != indices.shape or x.ndim != 2 or \
                x.shape[0] != (rows if transpose else columns):
            raise shapes_differ(self.name, (data, indices, x), f"the matrix has {rows} rows and "
                                                               f"{columns} columns.")
        return ShapedArray((columns if transpose else rows, x.shape[1]), data.dtype)

    def evaluate(self, data: Any, indices: Any, indptr: Any, x: Any, *, columns: int,
                 transpose: bool) -> NDArray:
        rows, width = len(indptr) - 1, x.shape[1]
        if has_library_rows(data.dtype, indices.dtype):
            shape = (columns if transpose else rows, width)
            return native_rows("csr_dot", (data, indices, indptr, x), shape, int(transpose), rows,
                           columns, len(indices), width)
        e, row, column = stored_elements(indices, indptr, columns)
        to, of = (column, row) if transpose else (row, column)
        return added_rows(data[e, None] * x[of], to, columns if transpose else rows)

    def transpose(self, ct: Any, data: Any, indices: Any, indptr: Any, x: Any, *, columns: Size,
                  transpose: bool) -> tuple[Any, None, None, Any]:
        in_data = in_x = None
        if isinstance(data, Linear):
            left, right = (x, ct) if transpose else (ct, x)
            in_data = csr_sample_p.bind(indices, indptr, left, right)
        if isinstance(x, Linear):
            in_x = self.bind(data, indices, indptr, ct, columns=columns, transpose=not transpose)
        return in_data, None, None, in_x

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, columns: Size,
              transpose: bool) -> tuple[Any, int]:
        if all(a is None for a in axes[:3]):  # lanes are further columns
            *parts, x = operands
            x = move_axis(x, axes[3] or 0, 1)
            size, n = x.shape[1:]
            out = self.bind(*parts, reshape(x, (x.shape[0], size * n)), columns=columns,
                            transpose=transpose)
            return reshape(out, (out.shape[0], size, n)), 1
        data, indices, indptr, x = align_batch(operands, axes)
        size, nse = data.shape
        indices, indptr = _blocks(indices, indptr, nse, columns)
        x = _with_padding(x) if transpose else x
        out = self.bind(reshape(data, (size * nse,)), indices, indptr,
                        reshape(x, (size * x.shape[1], x.shape[2])), columns=size * columns,
                        transpose=transpose)
        out = reshape(out, (size, out.shape[0] // size, out.shape[1]))
        return (out if transpose else slice_in_dim(out, 0, out.shape[1] - 1, axis=1)), 0

    def cost(self, data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, x: ShapedArray,
             **params: Any) -> Cost:
        n = x.shape[1]
        moved = data.nbytes + indices.nbytes + indptr.nbytes + x.nbytes
        return Cost(2 * data.size * n,
                    moved + self.type(data, indices, indptr, x, **params).nbytes)

    def samples(self) -> Iterator[Sample]:
        data, x = sample_array(6), sample_array(4, 2, seed=1)
        indices = np.array([3, 0, 1, 3, 9, 2], np.int32)
        for indptr in ([0, 2, 2, 5], [1, 4, 4, 6]):
            pointers = np.array(indptr, np.int32)
            yield Sample((data, indices, pointers, x), {"columns": 4, "transpose": False})
            yield Sample((data, indices, pointers, x[:3]), {"columns": 4, "transpose": True})


class CsrSample(CompressedRows):
    """The elements of y x^T at the places of a matrix of compressed rows."""

    derivatives = (None, None, linear, linear)

    def type(self, indices: ShapedArray, indptr: ShapedArray, y: ShapedArray,
             x: ShapedArray) -> ShapedArray:
        self.check_rows(indices, indptr, y, x)
        if y.ndim != 2 or x.ndim != 2 or y.shape != (indptr.shape[0] - 1, x.shape[1]):
            raise shapes_differ(self.name, (indptr, y, x), "y has the rows of the matrix, x its "
                                                           "columns, and both are as wide.")
        return ShapedArray(indices.shape, y.dtype)

    def evaluate(self, indices: Any, indptr: Any, y: Any, x: Any) -> NDArray:
        if has_library_rows(x.dtype, indices.dtype):
            return native_rows("csr_sample", (indices, indptr, y, x), indices.shape,
                               len(indptr) - 1, len(x), len(indices), x.shape[1])
        e, row, column = stored_elements(indices, indptr, len(x))
        out = np.zeros(indices.shape, y.dtype)
        out[e] = np.einsum("en,en->e", y[row], x[column])
        return out

    def transpose(self, ct: Any, indices: Any, indptr: Any, y: Any, x: Any
                  ) -> tuple[None, None, Any, Any]:
        def product(other: Any, size: Size, transpose: bool) -> Any:
            return csr_dot_p.bind(ct, indices, indptr, other, columns=size, transpose=transpose)

        return (None, None,
                product(x, x.shape[0], False) if isinstance(y, Linear) else None,
                product(y, x.aval.shape[0], True) if isinstance(x, Linear) else None)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
        indices, indptr, y, x = align_batch(operands, axes)
        size, nse = indices.shape
        indices, indptr = _blocks(indices, indptr, nse, x.shape[1])
        y = _with_padding(y)
        out = self.bind(indices, indptr, *[reshape(v, (size * v.shape[1], v.shape[2]))
                                           for v in (y, x)])
        # what stands behind the last row of a lane is in its padding, which is zero
        return reshape(out, (size, nse)), 0

    def cost(self, indices: ShapedArray, indptr: ShapedArray, y: ShapedArray,
             x: ShapedArray) -> Cost:
        moved = indices.nbytes + indptr.nbytes + y.nbytes + x.nbytes
        return Cost(2 * indices.size * x.shape[1],
                    moved + self.type(indices, indptr, y, x).nbytes)

    def samples(self) -> Iterator[Sample]:
        indices = np.array([3, 0, 1, 3, 9, 2], np.int32)
        for indptr in ([0, 2, 2, 5], [1, 4, 4, 6]):
            yield Sample((indices, np.array(indptr, np.int32), sample_array(3, 2),
                          sample_array(4, 2, seed=1)))


def has_library_rows(number: Any, index: Any) -> bool:
    """Whether csrc/lib_sparse.cpp has the dtypes."""
    return number in (np.float32, np.float64) and index in (np.int32, np.int64)


def native_rows(name: str, operands: Sequence[NDArray], shape: tuple[int, ...],
                *sizes: int) -> NDArray:
    """What a function of compressed rows computes; the last operand has the dtype of numbers."""
    arrays = [np.ascontiguousarray(x) for x in operands]
    out = np.empty(shape, arrays[-1].dtype)
    wide = any(x.dtype == np.int64 for x in arrays)
    numbers = (CODES[out.dtype.name], int(wide), *sizes)
    status = library_function(name, len(numbers), len(arrays) + 1)(
        *numbers, *[x.ctypes.data for x in (*arrays, out)])
    if status:
        raise OutOfMemoryError(f"{name} of {shape}: there is not enough memory.")
    return out


def stored_elements(indices: NDArray, indptr: NDArray, columns: int
                    ) -> tuple[NDArray, NDArray, NDArray]:
    """The elements that count, with their rows and columns."""
    pointers = np.maximum.accumulate(np.clip(indptr.astype(np.int64), 0, len(indices)))
    counts = np.diff(pointers)
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    e = pointers[row] + within
    column = indices[e].astype(np.int64)
    inside = (column >= 0) & (column < columns)
    return e[inside], row[inside], column[inside]


def added_rows(rows: NDArray, to: NDArray, count: int) -> NDArray:
    """Rows added at places; bincount takes a third of the time of add.at on rows."""
    n = rows.shape[1]
    if not rows.size:
        return np.zeros((count, n), rows.dtype)
    place = (to[:, None] * n + np.arange(n)).reshape(-1)

    def added(values: NDArray) -> NDArray:
        return np.bincount(place, values.reshape(-1), count * n).reshape(count, n)

    if rows.dtype.kind == "c":
        return (added(rows.real) + 1j * added(rows.imag)).astype(rows.dtype)
    if rows.dtype.kind == "f":
        return added(rows).astype(rows.dtype)
    out = np.zeros((count, n), rows.dtype)
    np.add.at(out, to, rows)
    return out


def _blocks(indices: Any, indptr: Any, nse: Size, columns: Size) -> tuple[Any, Any]:
    """One matrix with those of all lanes along its diagonal; each has one more row, of padding."""
    size, pointers = indptr.shape
    lane = broadcasted_iota(indices.dtype, indices.shape, 0)
    zero, most = full((), 0, indices.dtype), full((), columns, indices.dtype)
    outside = full((), size * columns, indices.dtype)
    inside = bitwise_and(ge(indices, _wide(zero, indices)), lt(indices, _wide(most, indices)))
    shifted = add(indices, mul(lane, _wide(most, lane)))
    indices = where(inside, shifted, _wide(outside, indices))
    first = mul(broadcasted_iota(indptr.dtype, indptr.shape, 0),
                _wide(full((), nse, indptr.dtype), indptr))
    ends = full((1,), size * nse, indptr.dtype)
    joined = concatenate([reshape(add(indptr, first), (size * pointers,)), ends], 0)
    return reshape(indices, (size * nse,)), joined


def _wide(x: Any, like: Any) -> Any:
    return broadcast_in_dim(x, like.shape, ())


def _with_padding(x: Any) -> Any:
    """A row of zeros behind each lane."""
    return pad(x, full((), 0, x.dtype), ((0, 0, 0), (0, 1, 0), (0, 0, 0)))


csr_dot_p, csr_sample_p = CsrDot(), CsrSample()

# ---- what targets without kernels for compressed rows compute --------------------------------


def row_of_each(indices: Any, indptr: Any) -> Any:
    """The row of each stored element; one that does not exist for those of none."""
    found = rows_of_lanes(reshape(indices, (1, indices.shape[0])),
                          reshape(indptr, (1, indptr.shape[0])))
    return reshape(found, indices.shape)


def rows_of_lanes(indices: Any, indptr: Any) -> Any:
    """The same of many matrices: of indices (lanes, nse) and pointers (lanes, rows + 1)."""
    (lanes, nse), pointers = indices.shape, indptr.shape[1]
    wide = np.dtype(np.int64 if indptr.dtype.itemsize == 8 else np.int32)
    indptr = clamp(full((), 0, wide), convert_element_type(indptr, wide), full((), nse, wide))
    indptr, numbers = cummax(indptr, 1), ScatterDimensionNumbers((), (0,), (0,))
    lane = mul(broadcasted_iota(wide, indptr.shape, 0), _wide(full((), nse + 1, wide), indptr))
    marks = scatter_add(full((lanes * (nse + 1),), 0, wide),
                        reshape(add(indptr, lane), (lanes * pointers, 1)),
                        full((lanes * pointers,), 1, wide), numbers, indices_are_sorted=True,
                        mode=GatherScatterMode.FILL_OR_DROP)
    row = slice_in_dim(cumsum(reshape(marks, (lanes, nse + 1)), 1), 0, nse, axis=1)
    return add(row, _wide(full((), -1, row.dtype), row))


def read_rows(x: Any, numbers: Any) -> Any:
    """The rows of x that have these numbers, of zeros where there is none."""
    return gather(x, reshape(numbers, (numbers.shape[0], 1)),
                  GatherDimensionNumbers((1,), (0,), (0,)), (1, x.shape[1]),
                  mode=GatherScatterMode.FILL_OR_DROP, fill_value=0)


def product_of_rows(data: Array, indices: Array, indptr: Array, x: Array, *, columns: Size,
                    transpose: bool) -> list[Any]:
    """`csr_dot` by gathers, products and additions at places, of halves in float32."""
    dtype, (data, x) = data.dtype, _computed(data, x)
    rows = row_of_each(indices, indptr)
    to, of = (indices, rows) if transpose else (rows, indices)
    wide = broadcast_in_dim(data, (data.shape[0], x.shape[1]), (0,))
    products = mul(wide, read_rows(x, of))
    size = columns if transpose else indptr.shape[0] - 1
    out = scatter_add(full((size, x.shape[1]), 0, data.dtype), reshape(to, (to.shape[0], 1)),
                      products, ScatterDimensionNumbers((1,), (0,), (0,)),
                      mode=GatherScatterMode.FILL_OR_DROP, indices_are_sorted=not transpose)
    return [convert_element_type(out, dtype)]


def sample_of_rows(indices: Array, indptr: Array, y: Array, x: Array) -> list[Any]:
    """`csr_sample` by gathers and sums of products, of halves in float32."""
    dtype, (y, x) = y.dtype, _computed(y, x)
    rows = row_of_each(indices, indptr)
    products = mul(read_rows(y, rows), read_rows(x, indices))
    return [convert_element_type(reduce_sum(products, (1,)), dtype)]


def _computed(*xs: Any) -> list[Any]:
    return [convert_element_type(x, dtypes.computed_dtype(x.dtype)) for x in xs]
