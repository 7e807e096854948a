"""Small operands that a kernel reads many times across memory, as copies it reads in order.

Of 16 x 257 x 8 x 8 numbers a warp of a kernel over rows of 257 read 32 that lie 64 apart, from 32
lines of the first-level cache, and so did each of 255 programs: 416 us on an H100, where memory
takes 30.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from functrans.core.record import Record
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.index import Index, flatten, unflatten
from functrans.lowering.loops.steps import step_along
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.kernel_source import KernelSource, PartialResults

if TYPE_CHECKING:
    from functrans.lowering.triton.kernels.writer import TritonKernelWriter

__all__ = ["PackedOperand", "packed_operands"]

LEAST_READS = 1 << 20
"""Elements of a kernel from which on a launch more is little."""

LEAST_REPEATS = 16
"""How often an element is read."""

PACKED = frozenset(("f32", "f64", "i32", "i64", "u32", "f16", "bf16"))
SIDE = 32


class PackedOperand(Record, eq=False):
    """A copy of an operand with one of its dimensions last."""

    tensor: Tensor
    last: int
    room: PartialResults

    def place(self, index: tuple[Index, ...]) -> Index:
        """Where an element is in the copy."""
        order = [k for k in range(len(index)) if k != self.last] + [self.last]
        shape = self.tensor.shape
        return flatten([index[k] for k in order], [shape[k] for k in order])

    def launch(self) -> KernelSource:
        """The launch that copies, tile by tile."""
        shape = [int(n) for n in self.tensor.shape]
        before, n, after = (math.prod(shape[:self.last]), shape[self.last],
                            math.prod(shape[self.last + 1:]))
        down, across = -(-n // SIDE), -(-after // SIDE)
        text = f"""@triton.jit
def NAME(p0, p1):
    pid = tl.program_id(0)
    n = pid % {down} * {SIDE} + tl.arange(0, {SIDE})[:, None]
    c = pid // {down} % {across} * {SIDE} + tl.arange(0, {SIDE})[None, :]
    at = pid // {down * across} * {n * after}
    inside = (n < {n}) & (c < {after})
    x = tl.load(p1 + at + n * {after} + c, mask=inside)
    tl.store(p0 + at + c * {n} + n, x, mask=inside)
"""
        return KernelSource(text, [self.room, self.tensor], before * down * across, 4,
                            flops=0)


Loads = Mapping[tuple[Tensor, Index], tuple[PackedOperand, Index]]


def packed_operands(writer: TritonKernelWriter) -> Loads:
    """The loads of a kernel that read copies of small operands, and where."""
    kernel, elements = writer.kernel, writer.rows * writer.row
    if writer.any_size or writer.line or elements < LEAST_READS:
        return {}
    found: dict[tuple[Tensor, Index], tuple[PackedOperand, Index]] = {}
    copies: dict[tuple[Tensor, int], PackedOperand] = {}
    for e in reachable_expressions(writer.elements.values()):
        if e.op != "load" or e.dtype not in PACKED:
            continue
        t, index = e.aux
        if step_along(index, kernel.i) in (0, 1, None) or not isinstance(t.size, int) \
                or t.size * LEAST_REPEATS > elements or t.dtype not in PACKED:
            continue
        places = unflatten(index, t.shape)
        steps = [step_along(k, kernel.i) for k in places]
        if sorted(map(str, steps)) != sorted(["1"] + ["0"] * (len(steps) - 1)):
            continue
        last = steps.index(1)
        copy = copies.setdefault((t, last), PackedOperand(
            t, last, PartialResults(1, t.size, t.dtype)))
        found[t, index] = copy, copy.place(places)
    return found
