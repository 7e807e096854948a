"""Expressions of symbolic sizes as C."""

from __future__ import annotations

from typing import Any

from functrans.core.dims import Dim

__all__ = ["expression_text"]


def expression_text(size: Dim, names: dict[str, str]) -> str:
    """`2*B + 1` as a C expression of type i64."""
    return _text(size.expr, names)


def _text(e: Any, names: dict[str, str]) -> str:
    name = type(e).__name__  # sympy is not imported for programs without such sizes
    if e.is_Integer:
        return f"({int(e)}LL)"
    if e.is_Symbol:
        return names[str(e)]
    if e.is_Add:
        return "(" + " + ".join(_text(a, names) for a in e.args) + ")"
    if e.is_Mul:
        return "(" + " * ".join(_text(a, names) for a in e.args) + ")"
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "(" + " * ".join([_text(e.base, names)] * int(e.exp)) + ")"
    if name == "floor":
        numerator, denominator = e.args[0].together().as_numer_denom()
        return f"ft_floordiv({_text(numerator, names)}, {_text(denominator, names)})"
    if name == "Mod":
        return f"ft_mod({_text(e.args[0], names)}, {_text(e.args[1], names)})"
    if name in ("Max", "Min"):
        f = "ft_max" if name == "Max" else "ft_min"
        out = _text(e.args[0], names)
        for a in e.args[1:]:
            out = f"{f}({out}, {_text(a, names)})"
        return out
    raise ValueError(f"the size {e} has no form in C")
