"""Abstract values: what is known of a value without having it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.dims import Dim, Shape, Size, is_static, same_shape, substitute_shape
from functrans.core.masked import refuse_masked
from functrans.core.narrowing import narrowed

__all__ = ["AbstractValue", "ShapedArray", "get_aval", "operand_avals", "rank", "scalar_aval",
           "shape_text"]


SAME: Final[frozenset[Any]] = frozenset()
"""The axes along which a value varies that all devices have."""


class AbstractValue:
    """What is known of a value without having it: its type."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, and whether the dtype yields to others (weak type).

    Within a `shard_map` it also says along which axes of the mesh devices may have different
    values (`varying`). Written by hand rather than as a dataclass because one is made for every
    traced operation.
    """

    __slots__ = ("dtype", "shape", "varying", "weak_type")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], weak_type: bool = False,
                 varying: frozenset[Any] = SAME) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.varying = varying

    @property
    def aval(self) -> ShapedArray:
        """Itself: a type may stand where a value of it may."""
        return self

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def vma(self) -> frozenset[Any]:
        """The axes of the mesh along which it varies, by JAX's name."""
        return self.varying

    @property
    def size(self) -> Size:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> Size:
        return self.size * self.dtype.itemsize

    @property
    def is_static(self) -> bool:
        return is_static(self.shape)

    def strong(self) -> ShapedArray:
        """The same type without weakness."""
        return ShapedArray(self.shape, self.dtype, False, self.varying) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents: its own, or float0 where there are none."""
        if dtypes.kind(self.dtype) in "fc":
            return self.strong()
        return ShapedArray(self.shape, dtypes.float0)

    def varying_along(self, axes: frozenset[Any]) -> ShapedArray:
        """The same type, varying along `axes` and no others."""
        if axes == self.varying:
            return self
        return ShapedArray(self.shape, self.dtype, self.weak_type, axes)

    def update(self, **changes: Any) -> ShapedArray:
        """The same type with another `shape`, `dtype`, `weak_type` or `varying`."""
        return ShapedArray(**{"shape": self.shape, "dtype": self.dtype, "varying": self.varying,
                              "weak_type": self.weak_type, **changes})

    def with_shape(self, shape: Shape) -> ShapedArray:
        return ShapedArray(shape, self.dtype, self.weak_type, self.varying)

    def with_dtype(self, dtype: np.dtype[Any]) -> ShapedArray:
        return ShapedArray(self.shape, dtype, False, self.varying)

    def substitute(self, sizes: Mapping[str, int]) -> ShapedArray:
        return self.with_shape(substitute_shape(self.shape, sizes))

    def matches(self, other: ShapedArray) -> bool:
        """True when shape and dtype agree; weakness does not count."""
        return same_shape(self.shape, other.shape) and self.dtype == other.dtype

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, ShapedArray) and self.dtype == other.dtype
                and same_shape(self.shape, other.shape) and self.weak_type == other.weak_type
                and self.varying == other.varying)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __str__(self) -> str:
        varying = f"{{{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        return f"{dtypes.short_name(self.dtype)}[{shape_text(self.shape)}]{varying}"

    def __repr__(self) -> str:
        return f"ShapedArray({self}{', weak_type=True' if self.weak_type else ''})"


def shape_text(shape: Shape) -> str:
    return ",".join(map(str, shape))


def get_aval(x: Any) -> ShapedArray:
    """The type of an array, a tracer, a NumPy array or scalar, or a Python scalar."""
    try:
        aval: ShapedArray = x.aval
        return aval
    except AttributeError:
        pass
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        return ShapedArray(x.shape, narrowed(x.dtype))
    if isinstance(x, Dim):
        return ShapedArray((), dtypes.default_int(), True)
    return ShapedArray((), dtypes.canonical_scalar(x), not isinstance(x, bool))


def rank(x: Any) -> int:
    """The number of dimensions of an operand; 0 for Python scalars (np.ndim asks protocols)."""
    return getattr(x, "ndim", 0)


def operand_avals(args: Sequence[Any], name: str) -> list[ShapedArray]:
    """The types of the operands of one operation: Python scalars take the dtype of the arrays.

    Raises DTypeError or IntegerOverflowError, naming the operation, for a scalar that they cannot
    hold.
    """
    try:
        return [a.aval for a in args]
    except AttributeError:  # a NumPy array or a Python scalar is among them
        pass
    avals = [None if type(a) in _SCALARS else get_aval(a) for a in args]
    dtype = next((v.dtype for v in reversed(avals) if v is not None), None)
    return [scalar_aval(a, dtype, name) if v is None else v
            for a, v in zip(args, avals, strict=True)]


def scalar_aval(x: Any, dtype: np.dtype[Any] | None, name: str) -> ShapedArray:
    """The type of a Python scalar that is an operand beside arrays of `dtype`, or beside none."""
    if dtype is None:
        return ShapedArray((), dtypes.canonical_scalar(x), type(x) is not bool)
    dtypes.check_scalar(x, dtype, name)
    return ShapedArray((), dtype, True)


_SCALARS = (float, int, bool, complex)
