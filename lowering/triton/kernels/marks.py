"""Marks: bytes of a program, cleared before all launches, that tell whether conditions hold."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.written import Operand, Partial, Written, power_of_two

__all__ = ["MARK_BYTES", "cleared", "room_for"]

MARK_BYTES = 16
"""Memory for a mark: what accesses of every width are aligned to."""


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
