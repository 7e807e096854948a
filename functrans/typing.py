"""The types of annotations: what functions take and return, for readers, editors and checkers.

`Array` is what every function on arrays returns; tracers are instances of it too.

>>> from functrans.typing import Array, ArrayLike
>>> def doubled(x: ArrayLike) -> Array:
...     return ft.numpy.add(x, x)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from functrans.array import Array
from functrans.core.dims import Dim
from functrans.device import Device
from functrans.primitives.precision import Precision

__all__ = ["Array", "ArrayLike", "Axis", "AxisName", "DTypeLike", "DeviceLike",
           "DotDimensionNumbers", "Index", "NestedArrays", "PrecisionLike", "PyTree", "Shape",
           "ShapeLike", "Size"]

ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex | Dim
"""What operations take: arrays, NumPy's arrays and numbers, Python's numbers, sizes; no lists."""


class SupportsArray(Protocol):
    """An object of another library that NumPy takes as an array."""

    def __array__(self) -> np.ndarray: ...


NestedArrays: TypeAlias = ArrayLike | SupportsArray | Sequence["NestedArrays"]
"""What `asarray` takes: arrays and numbers, or nested sequences of them."""


class HasDType(Protocol):
    """An object with a dtype, such as `functrans.numpy.float32` or an array."""

    @property
    def dtype(self) -> np.dtype: ...


DTypeLike: TypeAlias = np.dtype | type | str | HasDType
"""What stands for a dtype: a dtype, its name, its scalar type, Python's `float`, `int`, `bool`."""

Size: TypeAlias = int | Dim
"""The number of elements along an axis."""

Shape: TypeAlias = Sequence[Size]
"""The sizes of all axes."""

ShapeLike: TypeAlias = Size | np.integer | Sequence[Size | np.integer]
"""A shape, or the size of the one axis."""

Axis: TypeAlias = int | Sequence[int] | None
"""One axis, several, or (None) all."""

AxisName: TypeAlias = Hashable
"""The name that `vmap(axis_name=)` gives to the axis it maps, or a tuple of such names."""

DeviceLike: TypeAlias = Device | str
"""A device, or its name such as `"cpu"` or `"gpu:0"`."""

PrecisionLike: TypeAlias = str | Precision | tuple[str | Precision, str | Precision] | None
"""How exactly products are computed: a `lax.Precision`, its name, or one for each operand."""

DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]],
                                       tuple[Sequence[int], Sequence[int]]]
"""The axes of both operands that a product sums over, and those of its batch."""

Index: TypeAlias = Any
"""What indexes an array: integers, slices, None, ..., integer and boolean arrays, tuples."""

PyTree: TypeAlias = Any
"""Any nesting of registered containers; its leaves are arrays and numbers."""
