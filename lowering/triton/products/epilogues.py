"""Which epilogues of products are faster as kernels of their own.

The sums of the next tile wait for the epilogue of the one before it. So arithmetic that memory
traffic would hide, and loads that nothing hides, are paid for: under the gradient of gelu, 8192 x
4096 x 1024 of bfloat16 takes 194 us, without an epilogue 101, and the kernel of it alone 60.
"""

from __future__ import annotations

from collections.abc import Callable

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.work import flops_of

__all__ = ["slower_fused"]

# Picoseconds an element, on an H100: what an epilogue takes for an operation and to load two bytes,
# what memory takes for a byte. Of few elements, or wide ones, the launch or the traffic is more.
OPERATION, LOAD, BYTE = 0.045, 1.4, 1 / 3
LEAST_ELEMENTS = 1 << 22
HALVES = ("bf16", "f16")


def slower_fused(fused: FusedGemm, is_stored: Callable[[Tensor], bool]) -> str | None:
    """Why a product is faster without its epilogue; None where it is not."""
    size = fused.product.size
    if fused.product.dtype not in HALVES or not isinstance(size, int) or size < LEAST_ELEMENTS:
        return None
    operations = flops_of(fused.kernel, is_stored)
    loads = sum(t.size == size for t in fused.operands[2:])
    if not isinstance(operations, int):
        return None
    inside = OPERATION * operations / size + LOAD * loads
    apart = BYTE * (4 + 2 * loads)
    if inside <= apart:
        return None
    return f"it takes {inside * size / 1e6:.0f} us there and {apart * size / 1e6:.0f} us apart"
