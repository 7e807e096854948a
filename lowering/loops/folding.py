"""Operations that constants decide: their value, or one of their operands.

Only what is exact: results have the bits that the operation would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from functrans.lowering.loops.expr import Expr, ExprBuilder

__all__ = ["simplified"]

KINDS: Final = {"f": "float", "i": "int", "u": "uint"}
OF_CONSTANTS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "neg": np.negative, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal}
NEUTRAL: Final[Mapping[str, tuple[float, bool]]] = {
    "mul": (1.0, True), "div": (1.0, False), "sub": (0.0, False), "add": (-0.0, True)}
"""What changes nothing as the second operand, and whether it does not as the first one, either."""


def simplified(s: ExprBuilder, name: str, args: Sequence[Expr], dtype: str) -> Expr | None:
    """What an operation with a constant among its operands is, where that is known."""
    if name in ("and", "or", "not", "select"):
        return _chosen(s, name, args)
    if all(a.op == "const" for a in args):
        return _value(s, name, args, dtype)
    if name == "div" and args[1].op == "const" and (inverse := _inverse(args[1])) is not None:
        return s.op("mul", args[0], s.const(inverse, args[1].dtype))
    if len(args) == 2 and (neutral := NEUTRAL.get(name)) is not None:
        value, is_either = neutral
        for k in (1, 0) if is_either else (1,):
            if args[k].op == "const" and _is(args[k], value):
                return args[1 - k]
    return None


def _inverse(e: Expr) -> Any:
    """The reciprocal of a power of two, by which a product is the quotient to the bit."""
    if e.dtype not in ("f32", "f64") or not np.isfinite(e.aux) or abs(np.frexp(e.aux)[0]) != 0.5:
        return None
    return 1 / e.aux if 2.0**-100 < abs(e.aux) < 2.0**100 else None


def _is(e: Expr, value: float) -> bool:
    """Whether a constant is a number, with its sign where it is a float."""
    return bool(e.aux == value) and (
        e.dtype[0] != "f" or bool(np.signbit(e.aux) == np.signbit(value)))


def _chosen(s: ExprBuilder, name: str, args: Sequence[Expr]) -> Expr | None:
    if name == "select" and args[1] is args[2]:
        return args[1]
    for k, a in enumerate(args):
        if a.op != "const" or a.dtype != "bool":
            continue
        if name == "select" and k == 0:
            return args[1] if a.aux else args[2]
        if name in ("and", "or") and len(args) == 2:
            return args[1 - k] if bool(a.aux) == (name == "and") else a
        if name == "not":
            return s.const(np.bool_(not a.aux), "bool")
    return None


def _value(s: ExprBuilder, name: str, args: Sequence[Expr], dtype: str) -> Expr | None:
    if name == "convert":
        return _converted(s, args[0], dtype)
    function = OF_CONSTANTS.get(name)
    if function is None or any(a.dtype == "bool" for a in args):
        return None
    with np.errstate(all="ignore"):
        found = function(*[np.asarray(a.aux, _numpy(a.dtype)) for a in args])
    return s.const(np.asarray(found, _numpy(dtype)), dtype)


def _converted(s: ExprBuilder, e: Expr, dtype: str) -> Expr | None:
    """A constant in another dtype; floats as integers are the backend's."""
    if (e.dtype[0] == "f" and dtype[0] != "f") or dtype == "bool":
        return None
    value = np.asarray(e.aux, _numpy(e.dtype)).astype(_numpy(dtype))
    return s.const(value, dtype)


def _numpy(dtype: str) -> np.dtype[Any]:
    return np.dtype(bool if dtype == "bool" else f"{KINDS[dtype[0]]}{dtype[1:]}")
