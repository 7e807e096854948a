"""Marks: bytes of a program, cleared before all launches, that tell whether conditions hold."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.kernel_source import (
    KernelOperand,
    KernelSource,
    PartialResults,
    power_of_two,
)

__all__ = ["ANY_FLAG_BYTES", "any_flag_memory", "clear_any_flags"]

ANY_FLAG_BYTES = 16
"""Memory for a mark: what accesses of every width are aligned to."""


def any_flag_memory(count: int) -> PartialResults:
    """Memory for some marks of a program, in a row."""
    return PartialResults(1, power_of_two(count * ANY_FLAG_BYTES // 4), "i32")


def clear_any_flags(room: PartialResults, more: Sequence[Tensor]) -> KernelSource:
    """The launch before all others: nothing has been found."""
    operands: list[KernelOperand] = [room, *more]
    lines = [f"tl.store(p0 + tl.arange(0, {room.size}), 0)",
             *[f"tl.store(p{k}, 0)" for k in range(1, len(operands))]]
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return KernelSource(text, operands, 1, 4)
