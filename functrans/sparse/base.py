"""What all sparse arrays have in common: operators, attributes and warnings about slow layouts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from functrans import numpy as fnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.transforms.vmap import vmap
from functrans.typing import Array

__all__ = ["CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
           "SparseEfficiencyWarning"]

# what operators do, by name; functrans/sparse/operators.py fills it in
OPERATIONS: dict[str, Callable[..., Any]] = {}


class SparseEfficiencyError(ArgumentError):
    """A layout that would store many zeros, where the caller did not ask for it."""


class SparseEfficiencyWarning(UserWarning):
    """A layout that stores many zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A layout that a library of CUDA does not have; never given, as kernels here need none."""


class JAXSparse(ABC):
    """An array of which only some elements are stored: a pytree of their values and places.

    Operators act as on the dense array: `@`, `+`, `-`, `*` and `/` with numbers, dense and sparse
    arrays. What keeps zeros returns a sparse array, all else a dense one.
    """

    data: Array
    __hash__ = None  # type: ignore[assignment]
    # NumPy's and our arrays leave `array @ sparse` to the operators here
    __array_ufunc__: ClassVar[None] = None

    @property
    @abstractmethod
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""

    @property
    @abstractmethod
    def nse(self) -> int:
        """The number of stored elements, of each element of a batch."""

    @abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @abstractmethod
    def transpose(self, axes: Any = None) -> Any:
        """The array with its axes in another order."""

    @abstractmethod
    def with_data(self, data: Any) -> Any:
        """An array with other values at the same places."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """The array itself, when its values are computed."""
        self.data.block_until_ready()
        return self

    def astype(self, dtype: Any) -> Any:
        """The array with elements of another dtype."""
        return self.with_data(self.data.astype(dtype))

    def __repr__(self) -> str:
        try:
            shape = ",".join(map(str, self.shape))
            return f"{type(self).__name__}({self.dtype.name}[{shape}], nse={self.nse})"
        except (AttributeError, IndexError, TypeError):  # leaves that are no arrays
            return f"{type(self).__name__}({self.data!r})"

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of a sparse array without axes.", where=user_source())
        size: int = self.shape[0]
        return size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        raise ArgumentError("a sparse array is neither true nor false.", where=user_source(),
                            fix="x.todense().any() or x.nse > 0")

    def sum(self, axis: Any = None) -> Any:
        """The sum over `axis`, all axes by default: sparse where axes are left, else a number."""
        return OPERATIONS["sum"](self, axis)

    def reshape(self, *shape: Any) -> Any:
        """The array in another shape of the same size."""
        return OPERATIONS["reshape"](self, *shape)

    def __getitem__(self, index: Any) -> Any:
        return OPERATIONS["getitem"](self, index)

    def __matmul__(self, other: Any) -> Any:
        return OPERATIONS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return OPERATIONS["matmul"](other, self)

    def __add__(self, other: Any) -> Any:
        return OPERATIONS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPERATIONS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPERATIONS["subtract"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPERATIONS["subtract"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPERATIONS["multiply"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPERATIONS["multiply"](self, other)

    def __truediv__(self, other: Any) -> Any:
        return OPERATIONS["divide"](self, other)

    def __pow__(self, power: Any) -> Any:
        return OPERATIONS["power"](self, power)

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return OPERATIONS["unary"](self, fnp.abs)


def per_lane(fun: Callable[..., Any], count: int, in_axes: Any = 0) -> Callable[..., Any]:
    """`fun` mapped over `count` leading axes."""
    for _ in range(count):
        fun = vmap(fun, in_axes)
    return fun


def places(indices: Array, sizes: tuple[Any, ...]) -> Array:
    """The place of each index vector in row-major order; the number of places where it is none."""
    count = math.prod(sizes)
    wide = np.dtype(np.int64 if count >= 2**31 or indices.dtype.itemsize > 4 else np.int32)
    outside = fnp.zeros(indices.shape[:-1], bool)
    place = fnp.zeros(indices.shape[:-1], wide)
    for k, n in enumerate(sizes):
        at = indices[..., k]
        outside = outside | (at < 0) | (at >= n)
        place = place * n + at.astype(wide)
    return fnp.where(outside, count, place).astype(wide)


def vectors(place: Array, sizes: tuple[Any, ...], dtype: Any) -> Array:
    """The index vectors of places; the sizes themselves, which are out of bounds, for no place."""
    outside = place >= math.prod(sizes)
    columns = []
    for n in reversed(sizes):
        columns.append(fnp.where(outside, n, place % max(n, 1)))
        place = place // max(n, 1)
    if not columns:
        return fnp.zeros((*place.shape, 0), dtype)
    return fnp.stack(columns[::-1], axis=-1).astype(dtype)


def check_index_dtype(name: str, indices: Any) -> None:
    """Raise where indices are no integers."""
    if np.dtype(indices.dtype).kind not in "iu":
        raise ArgumentError(f"{name}: indices have dtype {indices.dtype}.", where=user_source(),
                            fix="indices.astype('int32')")


def mismatch(name: str, what: str, fix: str = "") -> ShapeError:
    """The error for parts that do not fit."""
    return ShapeError(f"{name}: {what}", where=user_source(), fix=fix)


publish(globals(), __all__)
