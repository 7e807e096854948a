"""Marks: whether a condition holds anywhere, stored by each thread for which it does.

A fold over all elements would have programs wait for each other, and keep products from having the
condition in their epilogue. A mark costs its condition, and memory that is cleared beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.loops.tensor import Mark, Tensor
from functrans.lowering.rules.calls import CallRule
from functrans.lowering.rules.reduce import RULES as FOLDS
from functrans.lowering.triton.kernels.written import Operand, Partial, Written, power_of_two
from functrans.primitives.reduce import reduce_or_p

__all__ = ["MARK_BYTES", "cleared", "room_for", "rules_for"]

MARK_BYTES = 16
"""Memory for a mark: what accesses of every width are aligned to."""
FEWEST = 1024
"""Elements; fewer are folded by one program, which goes on with the result."""
LEAST = 2
"""Conditions of a program; a single one is folded, without a launch that clears it."""


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


def rules_for(jaxpr: Jaxpr) -> dict[str, CallRule]:
    """The rules by which a program has marks; none where clearing them is not worth a launch."""
    count = sum(eqn.primitive is reduce_or_p and not eqn.outvars[0].aval.shape
                for eqn in jaxpr.eqns)
    return {"reduce_or": _any} if count >= LEAST else {}
