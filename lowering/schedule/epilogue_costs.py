"""Which epilogues of products are faster as kernels of their own.

The sums of the next tile wait for the epilogue of the one before it. So arithmetic that memory
traffic would hide, and loads that nothing hides, are paid for: under the gradient of gelu, 8192 x
4096 x 1024 of bfloat16 takes 194 us, without an epilogue 101, and the kernel of it alone 60.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.epilogues import FusedConv, FusedGemm
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.schedule.target import HOPPER, Target

__all__ = ["LONG_EPILOGUE", "additions_of", "slower_on_cpus", "slower_on_gpus"]

# of fewer elements, or wide ones, the launch or the traffic is more
LEAST_ELEMENTS = 1 << 22
HALVES = ("bf16", "f16")
LONG_EPILOGUE = 12
"""Of each element, in additions: products of float32 have smaller tiles for it."""
LEAST_COLUMNS = 64
"""Of tiles of a convolution that the copy engine moves: an epilogue computes all of them."""
BEHIND_TAPS = 0.75
"""The share of that that an addition takes behind a convolution. Of 64 x 64 x 64 x 128 of float32
and 3 x 3 taps, 260 us, gelu is there in 286 and apart in 350, its gradient in 391 both ways; of 64
features, 109 us, in 173 and 156."""


def additions_of(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> int:
    """What a kernel computes of an element, in additions."""
    builder = kernel.shared(is_stored)
    made = reachable_expressions([kernel.element(builder, m) for m in kernel.members])
    return sum(ELEMENTWISE.weight(e.op) for e in made if e.args and e.depends_on(kernel.i))


def slower_on_gpus(fused: FusedGemm | FusedConv, is_stored: Callable[[Tensor], bool],
                   target: Target = HOPPER) -> str | None:
    """Why a product is faster without its epilogue; None where it is not."""
    size = fused.product.size
    few = fused.fields["out_features"] if isinstance(fused, FusedConv) else LEAST_COLUMNS
    if isinstance(few, int) and few < LEAST_COLUMNS \
            and additions_of(fused.kernel, is_stored) >= LONG_EPILOGUE:
        return f"its tiles have {LEAST_COLUMNS} columns, of which {few} are features"
    if not isinstance(size, int) or size < LEAST_ELEMENTS:
        return None
    if fused.product.dtype == "f32":
        inside, apart = _of_float32(fused, is_stored, target)
    elif fused.product.dtype in HALVES and isinstance(
            operations := flops_of(fused.kernel, is_stored), int):
        loads = sum(t.size == size for t in fused.operands[len(fused.multiplied):])
        figures = target.measured
        inside = figures.epilogue_operation * operations / size + figures.epilogue_load * loads
        apart = figures.byte * (4 + 2 * loads)
    else:
        return None
    if inside <= apart:
        return None
    return f"it takes {inside * size / 1e3:.0f} us there and {apart * size / 1e3:.0f} us apart"


def _of_float32(fused: FusedGemm | FusedConv, is_stored: Callable[[Tensor], bool],
                target: Target) -> tuple[float, float]:
    """Nanoseconds an element of an epilogue of float32, there and apart.

    Behind a product long ones have small tiles, which take half as long again.
    """
    figures, additions = target.measured, additions_of(fused.kernel, is_stored)
    inside = figures.epilogue_addition * additions
    if isinstance(fused, FusedConv):
        inside *= BEHIND_TAPS
    elif additions >= LONG_EPILOGUE and isinstance(k := fused.fields["k"], int):
        inside += k / figures.rates["tf32"]
    return inside, 8 * figures.byte


# An epilogue is called for every tile, its loops have tails, and sums that would go straight to c
# go to a buffer first: for fewer elements, or rows, or shorter ones, a kernel over all elements at
# once is faster (tanh after 8 x 1024 x 1024: 234 us fused, 175 apart; after 4096 x 16 x 1024: 2.2
# and 3.7 ms).
LEAST_TILE, LEAST_ROW, LEAST_ROWS = 1024, 16, 16
# The library runs smaller products (multiply-adds) in one thread, while a kernel of its own over so
# many elements would have several.
SERIAL_WORK, SERIAL_ELEMENTS = 1 << 18, 1 << 15


def slower_on_cpus(fused: FusedGemm | FusedConv,
                   is_stored: Callable[[Tensor], bool]) -> str | None:
    """Why the library of CPUs is faster without an epilogue; None where it is not."""
    f: Mapping[str, Any] = fused.fields
    batch, m, n, k = f["batch0"] * f["batch1"], f["m"], f["n"], f["k"]
    if any(isinstance(size, int) and size < least for size, least in (
            (n, LEAST_ROW), (m, LEAST_ROWS), (m * n, LEAST_TILE))):
        return "the product is small"
    work = batch * m * n * k
    if isinstance(work, int) and work < SERIAL_WORK and not (
            isinstance(batch * m * n, int) and batch * m * n < SERIAL_ELEMENTS):
        return "the product is too small for several threads, the kernel is not"
    return None
