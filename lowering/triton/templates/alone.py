"""Products of matrices that one program computes, tile by tile, as a phase of a loop."""

from __future__ import annotations

from functrans.lowering.triton.templates.kernel import BYTES, power_of_two
from functrans.lowering.triton.templates.matmul import Config, Matmul

__all__ = ["alone"]

STAGED_BYTES = 96 << 10  # of shared memory, of the tiles that are on their way


def alone(p: Matmul) -> Config:
    """The configuration of a product that one program computes."""
    block_m = min(power_of_two(p.m), 64)
    block_n = min(power_of_two(p.n), 4096 // block_m)
    block_k = min(power_of_two(p.k, 32), 128 // BYTES[p.a.dtype])
    stage = (block_m + block_n) * block_k * BYTES[p.a.dtype]
    warps = 8 if block_n >= 128 else 4
    return Config(block_m, block_n, block_k, warps, max(1, min(4, STAGED_BYTES // stage)),
                  descriptors=False)
