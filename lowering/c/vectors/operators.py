"""An operation on register values as a C expression: operators of C where they mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from functrans.lowering.c.vectors.builder import DTYPES, VectorBuilder

__all__ = ["MASK_OPERATIONS", "arithmetic"]

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "is_finite", "isnan")
_ALIASES = {"round_even": "round", "clamp_min": "max", "clamp_max": "min"}

MASK_OPERATIONS: Mapping[str, Callable[[Callable[..., str], Sequence[str]], str]] = {
    "and": lambda m, x: m("mand", *x), "mul": lambda m, x: m("mand", *x),
    "min": lambda m, x: m("mand", *x), "or": lambda m, x: m("mor", *x),
    "max": lambda m, x: m("mor", *x), "add": lambda m, x: m("mor", *x),
    "xor": lambda m, x: m("mxor", *x), "ne": lambda m, x: m("mxor", *x),
    "eq": lambda m, x: m("mnot", m("mxor", *x)), "not": lambda m, x: m("mnot", *x),
    "gt": lambda m, x: m("mandnot", *x), "lt": lambda m, x: m("mandnot", x[1], x[0]),
    "le": lambda m, x: m("mnot", m("mandnot", *x)),
    "ge": lambda m, x: m("mnot", m("mandnot", x[1], x[0])),
    "any": lambda m, x: m("any", *x), "all": lambda m, x: m("all", *x),
    "select": lambda m, x: m("mor", m("mand", x[0], x[1]), m("mandnot", x[2], x[0])),
}
"""Operations on the masks of a kernel (booleans), from calls of the mask functions."""


_CONSTANT = re.compile(r"(?:splat_\w+\()?(?:\([iu]\d+\))?\(?(\d+)(?:u|ll|ull)?\)*")


def _constant(text: str) -> int | None:
    """The value of a decimal literal, also of one that was broadcast."""
    match = _CONSTANT.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < 2**31 else None


def arithmetic(b: VectorBuilder, name: str, dtype: str, args: Sequence[str], lanes: int) -> str:
    """The expression `name` of values of `dtype` (no booleans)."""
    name, d = _ALIASES.get(name, name), DTYPES[dtype]
    # narrow scalars are computed as int in C
    back = f"({d.c})" if lanes == 1 and d.size < 4 else ""
    if name in _INFIX or (name == "div" and d.kind == "f"):
        return f"{back}({args[0]} {_INFIX.get(name, '/')} {args[1]})"
    if name in ("neg", "not"):
        return f"{back}({'-' if name == 'neg' else '~'}{args[0]})"
    if name == "square":
        return f"{b.fn('square', dtype, lanes)}({args[0]})"
    constant = _constant(args[1]) if len(args) == 2 else None
    if name in ("div", "rem") and constant and d.size >= 4:  # by multiplication; no special cases
        return f"({args[0]} {'/' if name == 'div' else '%'} {constant})"
    if name.startswith("shift") and constant is not None and constant < 8 * d.size:
        signed = name == "shift_right_arithmetic"
        t = b.type(b.int_of(dtype) if signed else b.uint_of(dtype), lanes)
        operator = "<<" if name == "shift_left" else ">>"
        return f"(({b.type(dtype, lanes)})(({t}){args[0]} {operator} {constant}))"
    if name == "select":
        mask = f"{b.fn('widen', dtype, lanes)}({args[0]})"
        return f"{b.fn('select', dtype, lanes)}({mask}, {args[1]}, {args[2]})"
    call = f"{b.fn(name, dtype, lanes)}({', '.join(args)})"
    return f"{b.fn('narrow', dtype, lanes)}({call})" if name in _COMPARISONS else call
