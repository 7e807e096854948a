"""`float`, `int`, `complex` and NumPy's types of numbers, as functions under numpy_code see them.

`float(x[0])` of a traced number stays in the program, and keeps its derivative: Python's own would
be refused, or under grad be a constant. As dtypes and for isinstance they are what they stand for.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import public
from functrans.core.trace import Tracer
from functrans.mutable.arrays import MutableArray, fresh, unwrap
from functrans.numpy.common import is_traced

__all__ = ["PYTHON_NUMBERS", "SCALAR_TYPES", "NumberType"]


class NumberType:
    """A type of numbers, which takes traced ones too."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._is_numpys = issubclass(cls, np.generic)
        self.__name__ = cls.__name__
        self.__doc__ = cls.__doc__

    @property
    def dtype(self) -> Any:
        return np.dtype(self._cls)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x: Any = unwrap(args[0]) if args else None
        if self._is_numpys and isinstance(args[0] if args else None, (MutableArray, Tracer)):
            return fresh(jnp.astype(x, self._cls))
        traced = len(args) == 1 and isinstance(args[0], (MutableArray, Tracer)) and (
            is_traced(x) if self._cls is int else isinstance(x, Tracer))
        if traced and x.size == 1 and (self._cls is complex or dtypes.kind(x.dtype) != "c"):
            return lax.convert_element_type(jnp.reshape(x, ()), self.dtype, True)
        return self._cls(*((x, *args[1:]) if args else ()), **kwargs)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self._cls)

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self._cls)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._cls

    def __hash__(self) -> int:
        return hash(self._cls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cls, name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._cls,)  # class C(float)

    def __or__(self, other: Any) -> Any:
        return self._cls | getattr(other, "_cls", other)

    def __ror__(self, other: Any) -> Any:
        return other | self._cls

    def __repr__(self) -> str:
        return repr(self._cls)


PYTHON_NUMBERS: Final[Mapping[str, NumberType]] = MappingProxyType({
    cls.__name__: NumberType(cls) for cls in (builtins.float, builtins.int, builtins.complex)})
SCALAR_TYPES: Final[Mapping[Any, NumberType]] = MappingProxyType({
    cls: NumberType(cls) for cls in (
        np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int16,
        np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)})
