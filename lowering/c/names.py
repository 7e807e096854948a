"""Names in C: element types, and index arithmetic as C expressions."""

from __future__ import annotations

from functrans.core.dims import Dim, Size
from functrans.lowering.c.symbolic import expression_text
from functrans.lowering.loops.index import Index, LoopVar, Quotient, Remainder

__all__ = ["C_TYPES", "size_text"]

C_TYPES = {"f32": "float", "f64": "double", "f16": "u16", "bf16": "u16", "i8": "i8", "i16": "i16",
           "i32": "i32", "i64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
           "bool": "u8"}
"""The types of elements in memory; the integer names are typedefs of the prelude."""


def size_text(size: Size, names: dict[str, str]) -> str:
    """A size as a C expression; `names` has the C expression of every named size."""
    if not isinstance(size, Dim):
        return str(int(size))
    if size.is_name:
        return names[size.name]
    return expression_text(size, names)


def index_text(index: Index, names: dict[str, str], computed: object = None) -> str:
    """An index as a C expression; `computed(atom)` gives the expression of a computed value."""
    parts = []
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            text = atom.name
        elif isinstance(atom, (Quotient, Remainder)):
            inner = index_text(atom.index, names, computed)
            sign = "/" if isinstance(atom, Quotient) else "%"
            text = f"(({inner}) {sign} {size_text(atom.divisor, names)})"
        else:
            text = computed(atom)  # type: ignore[operator]
        parts.append(text if isinstance(c, int) and c == 1 else f"{text} * {size_text(c, names)}")
    if not parts or not (isinstance(index.const, int) and index.const == 0):
        parts.append(size_text(index.const, names))
    return " + ".join(parts)
