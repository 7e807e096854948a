"""Tensors, the values of a program as functions of their index, and calls, its other steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functrans.core.dims import Dim, Shape, Size
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.precision import Precision
from functrans.core.source import Source
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index

__all__ = ["DTYPES", "FLOAT8", "ITEM_SIZES", "NARROW", "AnyFlag", "Branch", "CLibraryCall", "Call",
           "Conv", "Define", "FunctionCall", "Gemm", "HostCall", "Later", "Map", "Reduce",
           "ScanLoop", "ScatterTensor", "Stored", "Tensor", "WhileLoop", "compute_dtype",
           "dtype_name", "item_size", "memory_dtype"]


DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
          "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
          "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
          "float8_e4m3fn": "f8e4", "float8_e5m2": "f8e5", "key<fry>": "u64",
          "key<philox>": "u64"}
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
"""What one element is: read by the builder, which knows what is in memory."""


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


def _not_defined(s: ExprBuilder, index: tuple[Index, ...]) -> Expr:
    raise AssertionError("what is no function of its index is in memory when it is read")


class Tensor:
    """A value of the program: `shape`, `dtype` (in memory), and what one element of it is.

    `define(builder, index)` is an element of a value that is computed where it is read.
    `copies`: its elements in other orders, which calls want, by what defines the order.
    `known`: the elements of a small constant. `depth`: how many values follow from one another up
    to it. `pointwise`: an element is of those of the operands at the same index; they have its
    shape, or are scalars.
    """

    __slots__ = ("compute", "copies", "define", "depth", "dtype", "known", "operands", "pointwise",
                 "shape", "source")

    def __init__(self, shape: Shape, dtype: str, operands: Sequence[Tensor],
                 source: Source | None = None, define: Define | None = None) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.compute = compute_dtype(dtype)
        self.operands = tuple(operands)
        self.depth: int = 1 + max([x.depth for x in self.operands], default=0)
        self.source = source
        self.define = define or _not_defined
        self.pointwise = False
        self.copies: dict[object, Tensor] = {}
        self.known: np.ndarray[Any, Any] | None = None

    @property
    def size(self) -> Size:
        total: Size = 1
        for s in self.shape:
            total = total * s
        return total

    def __repr__(self) -> str:
        kind = type(self).__name__.removesuffix("Tensor") or "Tensor"
        return f"{kind}({self.dtype}{list(self.shape)})"


class Stored(Tensor):
    """A value in memory: an input, a constant, a result of a call."""

    __slots__ = ()


class Map(Tensor):
    """Every element by itself, from elements of the operands.

    `weight`: what one element costs, in additions; movement is free. `repeats`: one element of an
    operand is read for several elements. `terms`: an element reads so many of each operand.
    `converts`: it is its operand in another dtype, and nothing else.
    """

    __slots__ = ("converts", "repeats", "terms", "weight")

    def __init__(self, shape: Shape, dtype: str, operands: Sequence[Tensor], define: Define, *,
                 weight: int = 1, repeats: bool = False, terms: int = 1,
                 source: Source | None = None) -> None:
        super().__init__(shape, dtype, operands, source, define)
        self.weight = weight
        self.repeats = repeats
        self.terms = terms
        self.converts = False


class Later(Map):
    """A value as it is, for readers that are computed after another value is."""

    __slots__ = ("after",)

    def __init__(self, x: Tensor, after: Tensor) -> None:
        super().__init__(x.shape, x.dtype, (x,), lambda s, i: s.read(x, i), weight=0,
                         source=x.source)
        self.after = after


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


def tensor_text(t: Tensor) -> str:
    """`add f32[3, 4]`: what folds or scatters, the dtype and the shape."""
    op = f"{t.op} " if isinstance(t, Reduce) else ""
    op = f"scatter_{t.op} " if isinstance(t, ScatterTensor) else op
    return f"{op}{t.dtype}[{', '.join(map(str, t.shape))}]"


# --- Calls: the steps of a program that are not expressions of the loop language

class Call:
    """Reads its operands from memory, writes its results to memory."""

    name = "call"
    has_effect = False
    scratch: Sequence[Size] = ()
    """Bytes of memory that it needs besides operands and results."""
    updated: Tensor | None = None
    """An operand in whose memory the first result may be: it is read where that is written."""
    replaces_elements = False
    """Whether that is an update that a user wrote, who may ask for updates in place."""
    not_of_lanes = ""
    """Of a loop on a CPU, why it is no kernel of vectors of lanes."""
    is_composed = False
    """Whether simpler operations, from which it was recognised, compute the same."""
    over_lanes = False
    """Whether it is a program of lanes, whose operations can be computed one by one."""
    after: Collection[Tensor] = ()
    """Values that are computed before (see `Later`)."""
    reads_memory = False
    """Whether it takes operands by where they begin, in any shape (`read_instead`)."""

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Tensor],
                 source: Source | None) -> None:
        self.operands = tuple(operands)
        self.results = tuple(results)
        self.source = source

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.operands))})"

    def read_instead(self, others: Mapping[Tensor, Tensor]) -> None:
        """Read other values that have the same elements in memory."""
        raise NotImplementedError


class HostCall(Call):
    """An equation that Python evaluates: callbacks, and primitives without a rule.

    `why` says what failed, where there is a rule.
    """

    name = "host call"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor], results: Sequence[Tensor],
                 why: str = "") -> None:
        super().__init__(operands, results, eqn.source)
        self.eqn = eqn
        self.why = why
        self.has_effect = eqn.primitive.has_effect or any(map(has_effect, subjaxprs(eqn)))


class ScanLoop(Call):
    """A loop over the first axis of some operands, with a carry (see `primitives.control_flow`)."""

    name = "scan"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Tensor]) -> None:
        super().__init__(operands, results, eqn.source)
        self.body = eqn.params["jaxpr"]
        self.length: Size = eqn.params["length"]
        self.reverse: bool = eqn.params["reverse"]
        self.num_consts: int = eqn.params["num_consts"]
        self.num_carry: int = eqn.params["num_carry"]
        self.has_effect = has_effect(self.body)


class WhileLoop(Call):
    """A loop while a predicate of the carry holds.

    Its body may have `records` besides the carry, of every iteration: `record` is their number.
    """

    name = "while"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Tensor]) -> None:
        super().__init__(operands, results, eqn.source)
        self.predicate = eqn.params["cond_jaxpr"]
        self.body = eqn.params["body_jaxpr"]
        self.predicate_consts: int = eqn.params["cond_nconsts"]
        self.body_consts: int = eqn.params["body_nconsts"]
        self.record: Dim | None = eqn.params.get("record")
        self.masked: bool = eqn.params.get("masked", False)
        self.records = self.results[len(operands) - self.predicate_consts - self.body_consts:]
        self.has_effect = has_effect(self.body) or has_effect(self.predicate)


class Branch(Call):
    """One of several programs, chosen by the first operand."""

    name = "cond"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Tensor]) -> None:
        super().__init__(operands, results, eqn.source)
        self.branches = eqn.params["branches"]
        self.masked: bool = eqn.params.get("masked", False)
        self.has_effect = any(map(has_effect, self.branches))


class FunctionCall(Call):
    """A part of a program that it has several times, with other operands."""

    name = "function"

    def __init__(self, body: Jaxpr, times: int, operands: Sequence[Tensor],
                 results: Sequence[Tensor], source: Source | None) -> None:
        super().__init__(operands, results, source)
        self.body = body
        self.times = times


class Gemm(Call):
    """A product of matrices; `fields` are the sizes and strides of the library's `ft_gemm`.

    `precision` is that of float32 on GPUs, None what the settings say. Products of further `terms`,
    which have sizes and strides of their own, are added to it (on GPUs).
    """

    name = "gemm"

    def __init__(self, a: Tensor, b: Tensor, a_offset: Size, b_offset: Size,
                 fields: Mapping[str, Size], result: Tensor, source: Source | None,
                 precision: Precision | None = None, terms: Sequence[Gemm] = (),
                 after: Collection[Tensor] = ()) -> None:
        super().__init__((a, b, *[x for t in terms for x in t.operands]), (result,), source)
        self.a = a
        self.b = b
        self.precision = precision
        self.a_offset = a_offset
        self.b_offset = b_offset
        self.fields = fields
        self.terms = tuple(terms)
        self.after = after

    def with_result(self, result: Tensor, fields: Mapping[str, Size]) -> Gemm:
        """The same product, written to another tensor by other strides."""
        return Gemm(self.a, self.b, self.a_offset, self.b_offset, fields, result, self.source,
                    self.precision, self.terms, self.after)

    def plus(self, terms: Sequence[Gemm], result: Tensor) -> Gemm:
        """The sum of this product and others, which have the strides of its result."""
        return Gemm(self.a, self.b, self.a_offset, self.b_offset, self.fields, result,
                    self.source, self.precision, terms, self.after)

    @property
    def factors(self) -> tuple[Tensor, ...]:
        """What is multiplied: two matrices of each term."""
        return (self.a, self.b, *[x for t in self.terms for x in t.factors])

    @property
    def multiplications(self) -> Size:
        """Of all terms."""
        f = self.fields
        count = f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"]
        return sum([t.multiplications for t in self.terms], start=count)


class Conv(Call):
    """A convolution; `fields` are those of the library's `ft_conv`, `offsets` of x and w."""

    name = "conv"

    def __init__(self, x: Tensor, w: Tensor, offsets: tuple[Size, Size],
                 fields: Mapping[str, Size | Sequence[Size]], result: Tensor,
                 source: Source | None, precision: Precision | None = None) -> None:
        super().__init__((x, w), (result,), source)
        self.precision = precision
        self.offsets = offsets
        self.fields = fields


Argument = Size | Tensor | Sequence[Size] | Sequence[Tensor]


class CLibraryCall(Call):
    """A call of a library function; `signature` are the C types of its arguments.

    An argument is a size, a tensor (its address), or an array of either.
    """

    name = "library"
    reads_memory = True

    def __init__(self, function: str, signature: str, operands: Sequence[Tensor],
                 results: Sequence[Tensor], arguments: Sequence[Argument],
                 source: Source | None, is_complex: bool = False) -> None:
        super().__init__(operands, results, source)
        self.function = function
        self.is_complex = is_complex
        self.signature = signature
        self.arguments = tuple(arguments)

    def read_instead(self, others: Mapping[Tensor, Tensor]) -> None:
        def other(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [other(v) for v in value]
            return others.get(value, value) if isinstance(value, Tensor) else value

        self.operands = tuple([other(x) for x in self.operands])
        self.arguments = tuple([other(x) for x in self.arguments])


def has_effect(jaxpr: Jaxpr) -> bool:
    """Whether a program or one of its bodies does something besides its results."""
    return any(eqn.primitive.has_effect or any(map(has_effect, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)
