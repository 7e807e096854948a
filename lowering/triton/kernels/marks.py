"""Marks: whether a condition holds anywhere, stored by each thread for which it does.

A fold over all elements would have programs wait for each other, and keep products from having the
condition in their epilogue. A mark costs its condition, and memory that is cleared beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Mark, Tensor
from functrans.lowering.rules.reduce import RULES as FOLDS
from functrans.lowering.triton.kernels.written import Operand, Partial, Written, power_of_two

__all__ = ["MARK_BYTES", "RULES", "cleared", "room_for"]

MARK_BYTES = 16
"""Memory for a mark: what accesses of every width are aligned to."""
FEWEST = 1024
"""Elements; fewer are folded by one program, which goes on with the result."""


def room_for(count: int) -> Partial:
    """Memory for some marks of a program, in a row."""
    return Partial(1, power_of_two(count * MARK_BYTES // 4), "i32")


def cleared(room: Partial, more: Sequence[Tensor]) -> Written:
    """The launch before all others: nothing has been found."""
    operands: list[Operand] = [room, *more]
    lines = [f"tl.store(p0 + tl.arange(0, {room.size}), 0)",
             *[f"tl.store(p{k}, 0)" for k in range(1, len(operands))]]
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return Written(text, operands, 1, 4)


def _any(eqn: Equation, xs: list[Tensor]) -> Any:
    """Whether any element of an array is true; what keeps an axis is folded."""
    (x,), (out,) = xs, eqn.outvars
    if x.dtype != "bool" or out.aval.shape or not x.shape or not isinstance(x.size, int) \
            or x.size == 0:
        found = FOLDS["reduce_or"](eqn, xs)
        return found[0] if found else None
    return Mark(x.shape, xs, x.at, is_few=x.size <= FEWEST, source=eqn.source)


RULES = {"reduce_or": _any}
