"""Products without an instruction of their own: tl.dot writes each multiply-add of a thread out.

A compiler takes longer for a text than in proportion to its length, and a thread with many numbers
of a tile keeps some in memory. So configurations of such products are held to a bound.
"""

from __future__ import annotations

from functrans.lowering.schedule.target import Target

__all__ = ["written_out"]


def written_out(dtype: str, precision: str, multiply_adds: int, warps: int,
                target: Target) -> float:
    """The multiply-adds of a thread in the text of products of tiles, as those of float32 count.

    Those of tensor cores are few: 0.

    >>> from functrans.lowering.schedule.target import HOPPER
    >>> written_out("fp32", "ieee", 64 * 64 * 16, 4, HOPPER)
    512.0
    """
    share = target.measured.written_out_shares.get(precision, 0.0) if dtype == "fp32" else 0.0
    return share * multiply_adds / (32 * warps)
