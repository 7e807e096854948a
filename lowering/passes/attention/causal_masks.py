"""Causal masks: conditions that a key is not behind the row by more than a number."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.rules.reduce import identity_element

__all__ = ["causal_offset"]


def causal_offset(e: Expr, s: ExprBuilder, key: LoopVar, rows: Sequence[LoopVar]) -> int | None:
    """n where a condition is `key <= row + n`, with the first of `rows` for the row."""
    if e.op == "not":
        inner = e.args[0]
        turned = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}.get(inner.op)
        return None if turned is None else causal_offset(
            s.op(turned, *inner.args, dtype="bool"), s, key, rows)
    if e.op == "select" and e.args[1].op == e.args[2].op == "const":
        yes, no = bool(e.args[1].aux), bool(e.args[2].aux)
        if yes == no:
            return None
        return causal_offset(e.args[0] if yes else s.op("not", e.args[0]), s, key, rows)
    if e.op not in ("lt", "le", "gt", "ge"):
        return None
    x, y = map(_place, e.args)
    if x is None or y is None:
        return None
    rest = y - x if e.op in ("lt", "le") else x - y  # the condition: rest >= 0, or > 0
    if rest.coefficient(key) != -1 or not rows or rest.coefficient(rows[0]) != 1 \
            or len(rest.terms) != 2:
        return None
    return int(rest.const) - (e.op in ("lt", "gt"))


def _place(e: Expr) -> Index | None:
    """A number that is computed from variables alone."""
    if e.op == "index":
        return e.aux if _holds(e.dtype, e.aux) else None
    if e.op == "const" and float(e.aux).is_integer():
        return Index.of(int(e.aux))
    if e.op == "convert":
        found = _place(e.args[0])
    elif e.op in ("add", "sub"):
        x, y = map(_place, e.args)
        found = None if x is None or y is None else x + y if e.op == "add" else x - y
    else:
        return None
    return found if found is not None and _holds(e.dtype, found) else None


def _holds(dtype: str, index: Index) -> bool:
    """Whether all values of an index are numbers of a type."""
    low, high = index.bounds()
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}.get(dtype)
    if digits is not None:
        return bool(-(1 << digits) <= low and high <= 1 << digits)
    if dtype == "bool":
        return False
    least = 0 if dtype[0] == "u" else identity_element("max", dtype)
    return bool(least <= low and high <= identity_element("min", dtype))
