"""The arrays of a file: one section of raw little-endian bytes, and a table of what they are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from functrans._runtime import wrap
from functrans.core.dtypes import float0
from functrans.export.container import ALIGNMENT, aligned
from functrans.export.kinds import dtype_named, name_of_dtype
from functrans.export.plain import damaged

__all__ = ["ArrayReader", "ArrayWriter"]


class ArrayWriter:
    """Collects arrays; one that is there already is not written again."""

    def __init__(self) -> None:
        self.table: list[list[Any]] = []
        self._bytes = bytearray()
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # numbers are by identity

    def number(self, array: np.ndarray[Any, Any]) -> int:
        if id(array) not in self._numbers:
            self._kept.append(array)
            self._numbers[id(array)] = len(self.table)
            dtype = array.dtype
            data = b"" if dtype == float0 else _little_endian(array).tobytes()
            self._bytes += bytes(aligned(len(self._bytes)) - len(self._bytes))
            self.table.append([name_of_dtype(dtype), len(self._bytes), *array.shape])
            self._bytes += data
        return self._numbers[id(array)]

    @property
    def data(self) -> bytes:
        return bytes(self._bytes)


class ArrayReader:
    """The arrays of a file; raises ExportError where the table does not fit the bytes."""

    def __init__(self, table: Any, data: bytes) -> None:
        if not isinstance(table, list):
            raise damaged("its table of arrays is no list")
        self._arrays = [_array(entry, data) for entry in table]

    def __getitem__(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._arrays):
            raise damaged(f"there is no array {number!r:.50}")
        return self._arrays[number]


def _array(entry: Any, data: bytes) -> Any:
    if not isinstance(entry, list) or len(entry) < 2 \
            or any(type(n) is not int or not 0 <= n < 2**63 for n in entry[1:]):
        raise damaged("an array is no list of dtype, place and sizes")
    dtype, start, shape = dtype_named(entry[0]), entry[1], tuple(entry[2:])
    if dtype == float0 or len(shape) > 32:
        raise damaged(f"there are no arrays of {len(shape)} axes of {entry[0]}")
    count = 1
    for n in shape:
        count *= n
    if start % ALIGNMENT or start > len(data) or count * dtype.itemsize > len(data) - start:
        raise damaged(f"an array of {dtype}{list(shape)} is not all there")
    if count == 0 and any(n > 2**40 for n in shape):
        raise damaged("an empty array has a size that none has")
    array = np.frombuffer(data, dtype, count, start).reshape(shape)
    if dtype == np.bool_ and count and array.view(np.uint8).max() > 1:
        raise damaged("a boolean is neither 0 nor 1")
    return wrap(_little_endian(array).copy(), False)


def _little_endian(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers with their bytes turned around, on a machine that has them so."""
    return array if sys.byteorder == "little" else array.byteswap()
