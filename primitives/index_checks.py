"""Indices that a checked program looks at: those for which nobody said what out of bounds means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import config, dtypes
from functrans.core.dims import Dim, Size
from functrans.core.trace import Tracer
from functrans.primitives.arithmetic import mul
from functrans.primitives.broadcast import size_array
from functrans.primitives.check import INDEX, check_p
from functrans.primitives.compare import bitwise_and, ge, le
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index_layout import GatherDimensionNumbers
from functrans.primitives.shape import slice_in_dim

__all__ = ["check_index", "check_starts", "check_vectors", "looks_at_indices"]


def looks_at_indices() -> bool:
    """Whether programs that are traced now stop at an index out of bounds."""
    return "index" in config.current().checks


def check_index(index: Any, size: Size, axis: int, name: str = "") -> None:
    """Stop where an index array is not between -size and size - 1."""
    lowest = -1 if dtypes.kind(index.dtype) != "u" else 0
    _check(index, (lowest, size), size - 1,
           f"{name}index {{index}} is out of bounds for axis {axis} of size {size}")


def check_starts(name: str, shape: Sequence[Size], starts: Sequence[Any],
                 windows: Sequence[Size]) -> None:
    """Stop where a window that begins at `starts` sticks out of an array of this shape."""
    for axis, (size, start, width) in enumerate(zip(shape, starts, windows, strict=False)):
        if not isinstance(start, (int, Dim)):
            _check(start, (0, 0), size - width,
                   f"{name}: the window of {width} elements from index {{index}} on sticks out of "
                   f"axis {axis} of size {size}")


def check_vectors(name: str, indices: Any, shape: Sequence[Size], windows: Sequence[Size],
                  numbers: GatherDimensionNumbers) -> None:
    """Stop where a window that an index vector names sticks out of an array of this shape."""
    for k, axis in enumerate(numbers.start_index_map):
        part = slice_in_dim(indices, k, k + 1, axis=indices.ndim - 1)
        _check(part, (0, 0), shape[axis] - windows[axis],
               f"{name}: index {{index}} is out of bounds for axis {axis} of size {shape[axis]}")


def _check(index: Any, low: tuple[int, Size], high: Size, message: str) -> None:
    """Check that an index array is between a factor times a size and another size."""
    if not isinstance(index, (Tracer, ArrayBase)):
        index = np.asarray(index)
    if index.dtype.itemsize < 4:  # too narrow for most sizes
        index = convert_element_type(index, np.int32)
    factor, size = low
    least = size_array(size, index.dtype)
    least = mul(least, np.asarray(factor, index.dtype)) if factor else np.asarray(0, index.dtype)
    inside = bitwise_and(ge(index, least), le(index, size_array(high, index.dtype)))
    check_p.bind(inside, index, message=message, names=("index",), kind=INDEX, lanes=0)
