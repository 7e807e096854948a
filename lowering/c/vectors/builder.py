"""The frame that every emitter of C text writes into: types, names, functions and their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from functrans.lowering.c.isa import Isa

__all__ = ["DTYPES", "STORED", "CType", "Emitter", "VectorBuilder", "register_dtype"]


@dataclass(frozen=True)
class CType:
    """An element type: kind f, i, u or b; `c` is its type in C, `size` its bytes."""

    kind: str
    size: int
    c: str


DTYPES: Mapping[str, CType] = {
    "f32": CType("f", 4, "float"), "f64": CType("f", 8, "double"),
    **{f"{kind}{8 * size}": CType(kind, size, f"{kind}{8 * size}")
       for kind in "iu" for size in (1, 2, 4, 8)},
    "c8": CType("i", 1, "char"),  # what the byte builtins of gcc take
}
STORED: Mapping[str, str] = {"f16": "u16", "bf16": "u16", "bool": "u8"}
"""The element in memory of the dtypes that live otherwise in registers."""

_SCALARS = """\
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef u16 bf16; typedef u16 f16;
#define INL static inline __attribute__((always_inline))
"""


def register_dtype(dtype: str) -> str:
    """The dtype in which values of `dtype` live in registers."""
    return "f32" if dtype in ("f16", "bf16") else dtype


class VectorBuilder:
    """Collects typedefs and functions, dependencies first.

    A function is known by its stem, its dtype and its lanes: `add` of f32 in 16 lanes is
    `add_f32x16`, in one lane (plain scalars) `add_f32`. `emitters` maps a stem to what writes it.
    """

    def __init__(self, isa: Isa, emitters: Mapping[str, Emitter]) -> None:
        self.isa = isa
        self._emitters = emitters
        self._types: dict[str, str] = {}
        self._functions: dict[str, str | None] = {}
        self._order: list[str] = []

    def source(self) -> str:
        """The typedefs and functions that were asked for, dependencies first."""
        return "".join((_SCALARS, *self._types.values(), *self._order))

    # types ---------------------------------------------------------------------------------------

    def type(self, dtype: str, lanes: int) -> str:
        """The C type of a register value; "bool" is the mask of a kernel."""
        if dtype == "bool":
            return self.mask("i32", lanes)
        dtype = register_dtype(dtype)
        if lanes == 1:
            return DTYPES[dtype].c
        return self._typedef(f"{dtype}x{lanes}", dtype, DTYPES[dtype].size * lanes)

    def _typedef(self, name: str, dtype: str, size: int, attributes: str = "") -> str:
        if name not in self._types:
            self._types[name] = (f"typedef {DTYPES[dtype].c} {name} "
                                 f"__attribute__((vector_size({size}){attributes}));\n")
        return name

    def unaligned(self, dtype: str, lanes: int) -> str:
        """The type through which `lanes` elements are read and written anywhere in memory."""
        size = DTYPES[dtype].size
        return self._typedef(f"{dtype}x{lanes}u", dtype, size * lanes,
                             f", aligned({size}), may_alias")

    def mask(self, dtype: str, lanes: int) -> str:
        """The type of a comparison of `dtype`: bits with mask registers, else 0/-1 of its width."""
        if lanes == 1:
            return "int"
        if not self.isa.masks:
            if DTYPES[dtype].size != 4:
                return self.type(self.int_of(dtype), lanes)
            self._types.setdefault(
                f"maskx{lanes}", f"typedef {self.type('i32', lanes)} maskx{lanes};\n")
        self._types.setdefault(f"maskx{lanes}", f"typedef u{max(lanes, 8)} maskx{lanes};\n")
        return f"maskx{lanes}"

    def int_of(self, dtype: str) -> str:
        return f"i{8 * DTYPES[dtype].size}"

    def uint_of(self, dtype: str) -> str:
        return f"u{8 * DTYPES[dtype].size}"

    def suffix(self, dtype: str, lanes: int) -> str:
        return dtype if lanes == 1 else f"{dtype}x{lanes}"

    def bytes(self, dtype: str, lanes: int) -> int:
        return DTYPES[dtype].size * lanes

    def bits(self, dtype: str, lanes: int) -> int | None:
        """The width in bits of the one register that holds the value; None if none does."""
        size = self.bytes(dtype, lanes)
        return 8 * size if lanes > 1 and 16 <= size <= self.isa.vector_bytes else None

    def wide(self, dtype: str, lanes: int) -> bool:
        """Whether the value takes several registers."""
        return lanes > 1 and self.bytes(dtype, lanes) > self.isa.vector_bytes

    # functions -----------------------------------------------------------------------------------

    def knows(self, stem: str) -> bool:
        return stem in self._emitters

    def fn(self, stem: str, dtype: str, lanes: int) -> str:
        """The name of a function, which is written first if it does not exist yet."""
        name = f"{stem}_{self.suffix(dtype, lanes)}"
        return self.define(name, lambda: self._emitters[stem](self, dtype, lanes))

    def define(self, name: str, emit: Callable[[], str]) -> str:
        """Write the function `name` unless it was; what `emit` asks for comes before it."""
        if name not in self._functions:
            self._functions[name] = None
            text = emit()
            self._functions[name] = text
            self._order.append(text)
        return name

    def inline(self, stem: str, dtype: str, lanes: int, result: str, params: str, body: str) -> str:
        return f"INL {result} {stem}_{self.suffix(dtype, lanes)}({params}) {{ {body} }}\n"

    def lo(self, dtype: str, lanes: int, value: str) -> str:
        return f"{self.fn('lo', dtype, lanes)}({value})"

    def hi(self, dtype: str, lanes: int, value: str) -> str:
        return f"{self.fn('hi', dtype, lanes)}({value})"

    def join(self, dtype: str, lanes: int, low: str, high: str) -> str:
        return f"{self.fn('join', dtype, lanes)}({low}, {high})"

    def halves(self, stem: str, dtype: str, lanes: int, result: str, args: str) -> str:
        """A lane-wise function in terms of its halves; `result` and the letters of `args` are
        v (of dtype), i (signed of its width), m (its mask)."""
        half = self.fn(stem, dtype, lanes // 2)
        names = [chr(ord("a") + i) for i in range(len(args))]

        def pieces(side: str) -> str:
            return ", ".join(self._half(side, kind, dtype, lanes, name)
                             for kind, name in zip(args, names))

        params = ", ".join(f"{self._kind(kind, dtype, lanes)} {name}"
                           for kind, name in zip(args, names))
        low, high = f"{half}({pieces('lo')})", f"{half}({pieces('hi')})"
        if result == "m" and self.isa.masks:
            joined = f"({self.mask(dtype, lanes)})({low} | (u64){high} << {lanes // 2})"
        else:
            joined = self.join(dtype if result == "v" else self.int_of(dtype), lanes, low, high)
        return self.inline(stem, dtype, lanes, self._kind(result, dtype, lanes), params,
                           f"return {joined};")

    def _kind(self, kind: str, dtype: str, lanes: int) -> str:
        if kind == "m":
            return self.mask(dtype, lanes)
        return self.type(dtype if kind == "v" else self.int_of(dtype), lanes)

    def _half(self, side: str, kind: str, dtype: str, lanes: int, name: str) -> str:
        if kind == "m" and self.isa.masks:
            half = self.mask(dtype, lanes // 2)
            shift = 0 if side == "lo" else lanes // 2
            keep = f" & {(1 << lanes // 2) - 1}" if lanes // 2 < 8 else ""
            return f"({half})({name} >> {shift}{keep})"
        return f"{self.fn(side, dtype if kind == 'v' else self.int_of(dtype), lanes)}({name})"


Emitter = Callable[[VectorBuilder, str, int], str]
