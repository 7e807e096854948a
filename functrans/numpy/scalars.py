"""Dtypes under their names, constants, and questions about types and shapes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from functrans.core import dtypes
from functrans.core.dtype_queries import issubdtype
from functrans.core.dtypes import as_dtype, finfo, iinfo, kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import PYTHON_SCALARS, axis_tuple
from functrans.numpy.creation import asarray
from functrans.typing import Array, ArrayLike, DTypeLike, NestedArrays

__all__ = [
    "ComplexWarning",
    "bfloat16",
    "bool",
    "bool_",
    "can_cast",
    "cdouble",
    "character",
    "complex32",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "flexible",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "inf",
    "int1",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "nan",
    "ndim",
    "newaxis",
    "number",
    "object_",
    "pi",
    "promote_types",
    "result_type",
    "shape",
    "signedinteger",
    "single",
    "size",
    "uint",
    "uint1",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]


Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


class ScalarType:
    """A dtype that converts when it is called: float32(x) is asarray(x, dtype=float32).

    >>> import functrans.numpy as jnp
    >>> jnp.float32(1).dtype == jnp.float32
    True
    """

    __slots__ = ("__name__", "dtype")

    def __init__(self, dtype: Any) -> None:
        self.dtype = as_dtype(dtype)
        self.__name__ = self.dtype.name

    def __call__(self, x: ArrayLike = 0) -> Array:
        return asarray(x, self.dtype)

    def __eq__(self, other: object) -> builtins.bool:
        return builtins.bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"functrans.numpy.{self.__name__}"


bool = bool_ = ScalarType("bool")
int8, int16, int32, int64 = (ScalarType(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (ScalarType(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (ScalarType(f"float{n}") for n in (16, 32, 64))
bfloat16 = ScalarType(dtypes.bfloat16)
float4_e2m1fn = ScalarType("float4_e2m1fn")
float6_e2m3fn, float6_e3m2fn = (ScalarType(f"float6_{n}fn") for n in ("e2m3", "e3m2"))
float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, \
    float8_e5m2fnuz, float8_e8m0fnu = (ScalarType(f"float8_{n}") for n in (
        "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"))
int1, int2, int4 = (ScalarType(f"int{n}") for n in (1, 2, 4))
uint1, uint2, uint4 = (ScalarType(f"uint{n}") for n in (1, 2, 4))
complex32, complex64, complex128 = (ScalarType(f"complex{n}") for n in (32, 64, 128))
single, double, csingle, cdouble = float32, float64, complex64, complex128
# The defaults of their kind; inside default_dtypes write float and int.
int_, uint, float_, complex_ = int32, uint32, float32, complex64

dtype = np.dtype
character, flexible, object_ = np.character, np.flexible, np.object_
ComplexWarning = np.exceptions.ComplexWarning
generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating

pi, e, euler_gamma = math.pi, math.e, float(np.euler_gamma)
inf, nan, newaxis = math.inf, math.nan, None


def result_type(*args: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype to which the arguments (arrays, dtypes, Python numbers) promote.

    >>> import functrans.numpy as jnp
    >>> jnp.result_type(jnp.float16, 2.0)
    dtype('float16')
    """
    return dtypes.result_type(*args)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype to which two dtypes promote.

    >>> jnp.promote_types("int16", "float16")
    dtype('float16')
    """
    return dtypes.promote_types(a, b)


def can_cast(from_: DTypeLike, to: DTypeLike, casting: Casting = "safe") -> builtins.bool:
    """Whether a dtype converts to another by NumPy's casting rule of that name.

    >>> jnp.can_cast("int32", "float64"), jnp.can_cast("float64", "int32")
    (True, False)
    """
    source, target = from_.dtype if isinstance(from_, ARRAYS) else as_dtype(from_), as_dtype(to)
    if target == dtypes.complex32 and source != target:  # NumPy is not told of these
        return can_cast(source, dtypes.float16, casting) if kind(source) != "c" \
            else casting in ("same_kind", "unsafe")
    return builtins.bool(np.can_cast(source, target, casting))


_KIND_NAMES = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
               "real floating": "f", "complex floating": "c", "numeric": "iufc"}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> builtins.bool:
    """Whether a dtype is of a kind: a dtype, a name such as 'real floating', or a tuple of them.

    >>> jnp.isdtype(jnp.float32, "real floating")
    True
    """
    given = as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KIND_NAMES:
            if dtypes.kind(given) in _KIND_NAMES[one]:
                return True
        elif isinstance(one, str):
            raise ArgumentError(f"functrans.numpy.isdtype: unknown kind {one!r}; it is one of "
                                f"{', '.join(_KIND_NAMES)}.", where=user_source())
        elif given == as_dtype(one):
            return True
    return False


def iscomplexobj(x: NestedArrays | None) -> builtins.bool:
    """Whether x has a complex dtype.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j]))
    True
    """
    if x is None:
        return False
    return kind(dtypes.dtype_of(x) if hasattr(x, "dtype") or type(x) in PYTHON_SCALARS
                else asarray(x).dtype) == "c"


def isrealobj(x: NestedArrays | None) -> builtins.bool:
    """Whether x does not have a complex dtype.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> builtins.bool:
    """Whether element is a number or text, or an array without dimensions.

    >>> jnp.isscalar(3.5), jnp.isscalar(jnp.array([3.5]))
    (True, False)
    """
    if isinstance(element, ARRAYS):
        return element.ndim == 0
    if isinstance(element, np.ndarray):
        return element.ndim == 0
    return isinstance(element, (*PYTHON_SCALARS, np.generic, str, bytes))


def iterable(y: object) -> builtins.bool:
    """Whether y can be iterated over.

    >>> jnp.iterable([1, 2]), jnp.iterable(5)
    (True, False)
    """
    return builtins.bool(ndim(y) > 0) if isinstance(y, ARRAYS) else builtins.bool(np.iterable(y))


def shape(a: NestedArrays) -> tuple[int, ...]:
    """The shape of an array or of nested sequences.

    >>> jnp.shape([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    return tuple(a.shape) if hasattr(a, "shape") else asarray(a).shape


def ndim(a: NestedArrays) -> int:
    """The number of dimensions of an array or of nested sequences.

    >>> jnp.ndim([[1, 2], [3, 4]])
    2
    """
    return len(shape(a))


def size(a: NestedArrays, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, all together or along one axis or several.

    >>> jnp.size(jnp.ones((2, 3)), axis=1), jnp.size(jnp.ones((2, 3, 4)), axis=(0, 2))
    (3, 8)
    """
    whole = shape(a)
    return math.prod(whole if axis is None else
                     [whole[i] for i in axis_tuple(axis, len(whole), "size")])
