"""Any-flags: bytes of a program, cleared before all launches, set where a condition holds."""

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
"""Bytes of a flag: the alignment of accesses of every width."""


def any_flag_memory(count: int) -> PartialResults:
    """Memory for some flags of a program, next to each other."""
    return PartialResults(1, power_of_two(count * ANY_FLAG_BYTES // 4), "i32")


def clear_any_flags(room: PartialResults, more: Sequence[Tensor]) -> KernelSource:
    """The launch before all others, which sets all flags to 0."""
    operands: list[KernelOperand] = [room, *more]
    lines = [f"tl.store(p0 + tl.arange(0, {room.size}), 0)",
             *[f"tl.store(p{k}, 0)" for k in range(1, len(operands))]]
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return KernelSource(text, operands, 1, 4)
