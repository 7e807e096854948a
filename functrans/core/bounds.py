"""Bounds of named sizes, and the comparisons of sizes that can be proved from them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import sympy

__all__ = ["NEGATED", "OPERATORS", "Bound", "provable"]

OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge}
NEGATED: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_INTEGERS = (int, np.integer)


class Bound(NamedTuple):
    """What is known of a named size."""

    min: int | None = None
    max: int | None = None
    multiple_of: int = 1


def provable(op: str, left: Any, right: Any, bounds: Mapping[str, Bound]) -> bool | None:
    """Whether a relation of sizes holds, or fails, for all values; None where that varies."""
    if isinstance(right, int) and not isinstance(left, int) and left.is_name:  # without sympy
        low, high = _extremes(bounds.get(left.name, Bound()))
        return _decided(op, low - right, None if high is None else high - right)
    import sympy  # noqa: PLC0415  lazy: names and ints are most of what is compared

    factors, difference = {}, sympy.Integer(0)
    for size, sign in ((left, 1), (right, -1)):
        value = sympy.Integer(int(size)) if isinstance(size, _INTEGERS) else size.expr
        difference += sign * value
    for symbol in difference.free_symbols:
        bound = bounds.get(str(symbol), Bound())
        if bound.multiple_of > 1:
            factors[symbol] = bound.multiple_of * symbol
    if factors:
        difference = difference.subs(factors)
    difference = sympy.expand(difference)
    found = _decided(op, *_linear_range(difference, bounds))
    if found is None and op in ("<", "<=", ">", ">="):
        relation = OPERATORS[op](difference, sympy.Integer(0))
        found = bool(relation) if relation in (sympy.true, sympy.false) else None
    return found


def _extremes(bound: Bound) -> tuple[int, int | None]:
    low, factor = bound.min or 0, bound.multiple_of
    return (low + (-low) % factor, None if bound.max is None else bound.max // factor * factor)


def _linear_range(e: sympy.Expr, bounds: Mapping[str, Bound]) -> tuple[int | None, int | None]:
    """The least and the greatest value of a sum of products of names, as if each were by itself."""
    low: int | None = 0
    high: int | None = 0
    for term, factor in e.as_coefficients_dict().items():
        if not factor.is_Integer:
            return None, None
        factor = int(factor)
        first: int | None = 1
        last: int | None = 1
        for base, power in term.as_powers_dict().items():
            if base.is_Integer:
                ends: tuple[int | None, int | None] = (int(base), int(base))
            elif base.is_Symbol:
                bound = bounds.get(str(base), Bound())
                least, most = _extremes(bound)
                by = bound.multiple_of
                ends = least // by, None if most is None else most // by
            else:
                return None, None
            if not power.is_Integer or power < 0:
                return None, None
            first, last = (None if a is None or b is None else a * b ** int(power)
                           for a, b in zip((first, last), ends, strict=True))
        if factor < 0:
            first, last = last, first
        low = None if low is None or first is None else low + factor * first
        high = None if high is None or last is None else high + factor * last
    return low, high


def _decided(op: str, low: int | None, high: int | None) -> bool | None:
    """Whether `difference op 0` for all differences of a range."""
    if op == "==" or op == "!=":
        if (low is not None and low > 0) or (high is not None and high < 0):
            return op == "!="
        return op == "==" if low == high == 0 else None
    if op in (">", ">="):
        low, high = None if high is None else -high, None if low is None else -low
        op = "<" if op == ">" else "<="
    holds, fails = OPERATORS[op], OPERATORS[NEGATED[op]]
    if high is not None and holds(high, 0):
        return True
    return False if low is not None and fails(low, 0) else None
