"""Tensors: the values of a program, each defined as a function of its index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functrans.core.dims import Shape, Size
from functrans.core.source import Source
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index

__all__ = [
    "DTYPES",
    "FLOAT8",
    "ITEM_SIZES",
    "NARROW",
    "AnyFlag",
    "Define",
    "Map",
    "Reduce",
    "ScatterTensor",
    "Stored",
    "Tensor",
    "compute_dtype",
    "dtype_name",
    "item_size",
    "memory_dtype",
]

DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
          "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
          "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
          "float8_e4m3fn": "f8e4", "float8_e5m2": "f8e5", "key<fry>": "u64"}
"""The dtypes that compiled code computes with, by their short names; others go to the host.

A random key is the 64 bits of its two words, which are moved, selected and compared as one number.
"""
ITEM_SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
              "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, "f8e4": 1, "f8e5": 1}
"""Bytes of an element in memory."""
FLOAT8 = frozenset(("f8e4", "f8e5"))
"""Those that programs for GPUs have, and no others."""
NARROW = FLOAT8 | {"f16", "bf16"}
"""Floats that are narrow in memory and float32 in registers."""

Define = Callable[[ExprBuilder, tuple[Index, ...]], Expr]


@lru_cache(maxsize=64)  # NumPy takes 2 us to name a dtype
def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """The short name of a dtype, None when compiled code does not know it."""
    return DTYPES.get(dtype.name)


def memory_dtype(dtype: np.dtype[Any]) -> str:
    """The short name of a dtype, or `raw16` and the like for those that kernels do not know."""
    return dtype_name(dtype) or f"raw{dtype.itemsize}"


def item_size(name: str) -> int:
    """Bytes of an element in memory; `raw16` and the like are named by it."""
    return int(name[3:]) if name.startswith("raw") else ITEM_SIZES[name]


def compute_dtype(name: str) -> str:
    """The dtype of registers: halves are computed in float32 and rounded when they are stored."""
    return "f32" if name in NARROW else name


class Tensor:
    """A value of the program: `shape`, `dtype` (in memory), and what one element of it is.

    `copies`: its elements in other orders, which calls want, by what defines the order.
    """

    __slots__ = ("compute", "copies", "dtype", "operands", "shape", "source")

    def __init__(self, shape: Shape, dtype: str, operands: Sequence[Tensor],
                 source: Source | None = None) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.compute = compute_dtype(dtype)
        self.operands = tuple(operands)
        self.source = source
        self.copies: dict[object, Tensor] = {}

    @property
    def size(self) -> Size:
        total: Size = 1
        for s in self.shape:
            total = total * s
        return total

    def at(self, s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        """The element at an index."""
        return s.read(self, index)

    def define(self, s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        raise AssertionError(f"{self!r} is stored before it is read")

    def __repr__(self) -> str:
        kind = type(self).__name__.removesuffix("Tensor") or "Tensor"
        return f"{kind}({self.dtype}{list(self.shape)})"


class Stored(Tensor):
    """A value in memory: an input, a constant, a result of a call."""

    __slots__ = ()


class Map(Tensor):
    """Every element by itself, from elements of the operands.

    `weight`: what one element costs, in additions; movement is free. `repeats`: one element of an
    operand is read for several elements.
    """

    __slots__ = ("_define", "repeats", "weight")

    def __init__(self, shape: Shape, dtype: str, operands: Sequence[Tensor], define: Define, *,
                 weight: int = 1, repeats: bool = False, source: Source | None = None) -> None:
        super().__init__(shape, dtype, operands, source)
        self._define = define
        self.weight = weight
        self.repeats = repeats

    def define(self, s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
        return self._define(s, index)


class Reduce(Tensor):
    """`op` over the last `len(sizes)` indices of a space `shape + sizes`.

    `op`: add, mul, max, min, and, or, xor; argmax and argmin give the first place of the extreme
    value (NaN is extreme), a number in `0 <= place < sizes[0]`.
    """

    __slots__ = ("element", "op", "sizes", "value_dtype")

    def __init__(self, op: str, shape: Shape, sizes: Shape, dtype: str, operands: Sequence[Tensor],
                 element: Define, *, value_dtype: str | None = None,
                 source: Source | None = None) -> None:
        super().__init__(shape, dtype, operands, source)
        self.op = op
        self.sizes = tuple(sizes)
        self.element = element
        self.value_dtype = compute_dtype(value_dtype or dtype)  # of what is compared or added


class AnyFlag(Reduce):
    """Whether any element of a space is true, which is written wherever one is.

    Nothing is folded: the space may be a part of any kernel, or of the epilogue of a product. One
    of few elements is a reduction like others, unless a call writes it.
    """

    __slots__ = ("is_few",)

    def __init__(self, sizes: Shape, operands: Sequence[Tensor], element: Define, *, is_few: bool,
                 source: Source | None = None) -> None:
        super().__init__("or", (), sizes, "bool", operands, element, source=source)
        self.is_few = is_few


Place = Callable[[ExprBuilder, tuple[Index, ...]], "tuple[tuple[Index, ...], Expr | None]"]


class ScatterTensor(Tensor):
    """`base` with the elements of a space `sizes` combined into it by `op` (set, add, ...).

    `place` gives where an element goes, and a condition under which it does.
    """

    __slots__ = ("base", "element", "op", "place", "sizes", "unique")

    def __init__(self, op: str, base: Tensor, sizes: Shape, operands: Sequence[Tensor],
                 place: Place, element: Define, *, unique: bool,
                 source: Source | None = None) -> None:
        super().__init__(base.shape, base.dtype, operands, source)
        self.op = op
        self.base = base
        self.sizes = tuple(sizes)
        self.place = place
        self.element = element
        self.unique = unique
