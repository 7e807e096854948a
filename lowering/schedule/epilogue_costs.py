"""Which epilogues of products are faster as kernels of their own.

The sums of the next tile wait for the epilogue of the one before it. So arithmetic that memory
traffic would hide, and loads that nothing hides, are paid for: under the gradient of gelu, 8192 x
4096 x 1024 of bfloat16 takes 194 us, without an epilogue 101, and the kernel of it alone 60.
"""

from __future__ import annotations

from collections.abc import Callable

from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.schedule.target import HOPPER, Target

__all__ = ["additions_of", "slower_on_cpus", "slower_on_gpus"]

# of fewer elements, or wide ones, the launch or the traffic is more
LEAST_ELEMENTS = 1 << 22
HALVES = ("bf16", "f16")


def additions_of(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> int:
    """What a kernel computes of an element, in additions."""
    builder = kernel.shared(is_stored)
    made = reachable_expressions([kernel.element(builder, m) for m in kernel.members])
    return sum(ELEMENTWISE.weight(e.op) for e in made if e.args and e.depends_on(kernel.i))


def slower_on_gpus(fused: FusedGemm, is_stored: Callable[[Tensor], bool],
                   target: Target = HOPPER) -> str | None:
    """Why a product is faster without its epilogue; None where it is not."""
    size = fused.product.size
    if fused.product.dtype not in HALVES or not isinstance(size, int) or size < LEAST_ELEMENTS:
        return None
    operations = flops_of(fused.kernel, is_stored)
    loads = sum(t.size == size for t in fused.operands[len(fused.factors):])
    if not isinstance(operations, int):
        return None
    figures = target.measured
    inside = figures.epilogue_operation * operations / size + figures.epilogue_load * loads
    apart = figures.byte * (4 + 2 * loads)
    if inside <= apart:
        return None
    return f"it takes {inside * size / 1e3:.0f} us there and {apart * size / 1e3:.0f} us apart"


# An epilogue is called for every tile, its loops have tails, and sums that would go straight to c
# go to a buffer first: for fewer elements, or rows, or shorter ones, a kernel over all elements at
# once is faster (tanh after 8 x 1024 x 1024: 234 us fused, 175 apart; after 4096 x 16 x 1024: 2.2
# and 3.7 ms).
LEAST_TILE, LEAST_ROW, LEAST_ROWS = 1024, 16, 16
# The library runs smaller products (multiply-adds) in one thread, while a kernel of its own over so
# many elements would have several.
SERIAL_WORK, SERIAL_ELEMENTS = 1 << 18, 1 << 15


def slower_on_cpus(fused: FusedGemm, is_stored: Callable[[Tensor], bool]) -> str | None:
    """Why the library of CPUs is faster without an epilogue; None where it is not."""
    f = fused.fields
    batch, m, n, k = f["batch0"] * f["batch1"], f["m"], f["n"], f["k"]
    if any(isinstance(size, int) and size < least for size, least in (
            (n, LEAST_ROW), (m, LEAST_ROWS), (m * n, LEAST_TILE))):
        return "the product is small"
    work = batch * m * n * k
    if isinstance(work, int) and work < SERIAL_WORK and not (
            isinstance(batch * m * n, int) and batch * m * n < SERIAL_ELEMENTS):
        return "the product is too small for several threads, the kernel is not"
    return None
