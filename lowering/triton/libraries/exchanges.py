"""The permutation that exchanges of rows amount to: each program follows those of some matrices."""

from __future__ import annotations

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.triton.kernels.axis_calls import AxisCall, extents, module_text
from functrans.lowering.triton.kernels.kernel_source import MEMORY, Launches
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer, power_of_two

__all__ = ["exchanges_rule"]

MOST_ROWS = 4096  # in registers
TILE = 1024

TEXT = """\
@triton.jit
def exchanges(pivots, order):
    b = tl.program_id(0).to(tl.int64) * {beside} + tl.arange(0, {beside})[:, None]
    i = tl.arange(0, {block})[None, :]
    there = b < {count}
    v = i + tl.zeros([{beside}, {block}], tl.int32)
    for j in range({exchanges}):
        p = tl.load(pivots + b * {exchanges} + j, mask=there, other=0)
        here = tl.sum(tl.where(i == j, v, 0), 1, keep_dims=True)
        other = tl.sum(tl.where(i == p, v, 0), 1, keep_dims=True)
        v = tl.where(i == j, other, tl.where(i == p, here, v))
    tl.store(order + b * {rows} + i, v, mask=there & (i < {rows}))
"""


class PivotsToPermutation(AxisCall):
    """Pivots [count, exchanges], from 0, to the order of the rows."""

    name = "exchanges"

    def __init__(self, eqn: Equation, pivots: Tensor, count: int, exchanges: int) -> None:
        shape = eqn.outvars[0].aval.shape
        super().__init__([pivots], [Stored(shape, "i32", (), eqn.source)], eqn.source)
        self.count, self.exchanges, self.rows = count, exchanges, int(shape[-1])

    def launches(self) -> Launches:
        (pivots,), (order,) = self.operands, self.results
        block = power_of_two(self.rows)
        beside = min(power_of_two(self.count, 1), max(1, TILE // block))
        text = TEXT.format(beside=beside, block=block, count=self.count, rows=self.rows,
                           exchanges=self.exchanges)
        warps = min(8, max(1, beside * block // 256))
        kernel = TemplateKernel("exchanges", module_text(text),
                                (pointer("pivots", MEMORY[pivots.dtype]), pointer("order", "i32")),
                                (-(-self.count // beside), 1, 1), warps, 1)
        return Launches([kernel], {"pivots": (pivots, 0), "order": (order, 0)})


def exchanges_rule(eqn: Equation, xs: list[Tensor]) -> PivotsToPermutation | None:
    sizes = extents(xs[0], len(xs[0].shape) - 1)
    rows = eqn.outvars[0].aval.shape[-1]
    if sizes is None or 0 in sizes or not isinstance(rows, int) or not 0 < rows <= MOST_ROWS:
        return None
    return PivotsToPermutation(eqn, xs[0], sizes[0], sizes[1])
