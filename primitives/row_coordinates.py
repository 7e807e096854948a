"""Index vectors of the elements of compressed rows, of several matrices one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.errors import DTypeError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.base import shapes_differ
from functrans.primitives.broadcast import align_batch
from functrans.primitives.convert import convert_element_type
from functrans.primitives.native_matrices import library_function
from functrans.primitives.shape import concatenate, reshape
from functrans.primitives.sparse import rows_of_lanes

__all__ = ["coordinates_of_lanes", "row_coordinates_p"]

NDArray = np.ndarray[Any, Any]


class RowCoordinates(Primitive):
    """The row and the column of each element of compressed rows.

    Operands are columns (lanes, nse) and pointers (lanes, rows + 1) of each matrix; the result
    (lanes, sum of nse, 2) has one matrix after the other. Elements before the first pointer have
    row -1, those behind the last the number of rows; a pointer that is less than one before it is
    as large as that. Columns are as they are.
    """

    def type(self, *operands: ShapedArray) -> ShapedArray:
        columns, pointers = operands[::2], operands[1::2]
        first = operands[0]
        if len(columns) != len(pointers) or any(
                x.ndim != 2 or x.shape[0] != first.shape[0] for x in operands) or any(
                p.shape[1] != pointers[0].shape[1] or p.shape[1] == 0 for p in pointers):
            raise shapes_differ(self.name, operands, "each matrix has columns (lanes, nse) and "
                                                     "pointers (lanes, rows + 1).")
        if any(x.dtype != first.dtype for x in operands) or dtypes.kind(first.dtype) not in "iu":
            raise DTypeError(f"{self.name} takes integers of one dtype, got "
                             f"{' and '.join(map(str, operands))}.", where=user_source())
        total = sum((x.shape[1] for x in columns[1:]), start=columns[0].shape[1])
        return ShapedArray((first.shape[0], total, 2), first.dtype)

    def evaluate(self, *operands: Any) -> NDArray:
        arrays = [np.ascontiguousarray(x) for x in operands]
        aval = self.type(*[ShapedArray(x.shape, x.dtype) for x in arrays])
        out = np.empty(aval.shape, aval.dtype)
        lanes, rows = len(arrays[0]), arrays[1].shape[1] - 1
        if aval.dtype in (np.int32, np.int64):
            counts = np.asarray([x.shape[1] for x in arrays[::2]], np.int64)
            addresses = np.asarray([x.ctypes.data for x in arrays], np.int64)
            library_function("row_coordinates", 4, 3)(
                int(aval.dtype == np.int64), lanes, rows, len(counts), counts.ctypes.data,
                addresses.ctypes.data, out.ctypes.data)
            return out
        for lane in range(lanes):
            at = 0
            for columns, pointers in zip(arrays[::2], arrays[1::2], strict=True):
                nse = columns.shape[1]
                starts = np.maximum.accumulate(np.clip(pointers[lane].astype(np.int64), 0, nse))
                counts = np.diff(starts, prepend=0, append=nse)
                numbers = np.arange(-1, rows + 1).astype(out.dtype)
                out[lane, at:at + nse, 0] = np.repeat(numbers, counts)
                out[lane, at:at + nse, 1] = columns[lane]
                at += nse
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.bind(*primals), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
        aligned = align_batch(operands, axes)
        size, lanes = aligned[0].shape[:2]
        out = self.bind(*[reshape(x, (size * lanes, x.shape[2])) for x in aligned])
        return reshape(out, (size, lanes, *out.shape[1:])), 0

    def cost(self, *avals: ShapedArray) -> Cost:
        out = self.type(*avals)
        return Cost(0, sum((a.nbytes for a in avals), start=out.nbytes))

    def samples(self) -> Iterator[Sample]:
        columns = np.array([[3, 0, 1, 3, 9], [2, 1, 0, 2, -1]], np.int32)
        pointers = np.array([[0, 2, 2, 5], [1, 4, 3, 4]], np.int32)
        yield Sample((columns, pointers), {})
        yield Sample((columns, pointers, columns[:, 1:], pointers[::-1] - 1), {})


row_coordinates_p = RowCoordinates()


def coordinates_of_lanes(*operands: Any) -> list[Any]:
    """`row_coordinates` by sums of how many rows begin before each element."""
    found = []
    for columns, pointers in zip(operands[::2], operands[1::2], strict=True):
        rows = convert_element_type(rows_of_lanes(columns, pointers), columns.dtype)
        shape = (*columns.shape, 1)
        found.append(concatenate([reshape(rows, shape), reshape(columns, shape)], 2))
    return [found[0] if len(found) == 1 else concatenate(found, 1)]
