"""Operands in memory of the call, in the order in which the copy engine and tensor cores read them.

Tensor cores read float32 and float8 along the sum alone, and the copy engine reads rows that start
at multiples of 16 bytes. Other layouts go through registers, at a third of the speed or less
(4096^3 in tf32: 122 TFLOP/s, not 359, or 328 with what packing takes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.lowering.triton.templates.kernel import (
    BYTES,
    Expression,
    TemplateKernel,
    expand,
    integer,
    pointer,
)

__all__ = ["pack", "pitch_of"]

PACK = '''
@triton.jit
def NAME():
    tiles = tl.cdiv(cols, BLOCK)
    tile = tl.program_id(0)
    col = tile % tiles * BLOCK + tl.arange(0, BLOCK)
    tile = tile // tiles
    tiles = tl.cdiv(near, BLOCK)
    row = tile % tiles * BLOCK + tl.arange(0, BLOCK)
    tile = tile // tiles
    source = SOURCE + tl.cast(offset, tl.int64)
    target = workspace + tl.cast(first, tl.int64)
    OUTER
    known = (row < near)[:, None] & (col < cols)[None, :]
    there = (tl.cast(row, tl.int64) * NEAR_STEP)[:, None] + (tl.cast(col, tl.int64)
                                                             * COL_STEP)[None, :]
    x = tl.load(source + there, mask=known)
    tl.store(target + ((tl.cast(row, tl.int64) * near_pitch)[:, None] + col[None, :]), x,
             mask=known)
'''


def pitch_of(count: int, dtype: str) -> int:
    """Elements from one row of so many to the next: rows start at multiples of 16 bytes."""
    unit = 16 // BYTES[dtype]
    return -(-count // unit) * unit


def pack(name: str, source: str, dtype: str, dims: Sequence[tuple[int, int]],
         col: tuple[int, int], first: int, aligned: bool, offset: int = 0) -> TemplateKernel:
    """The launch that writes rows of `col` to the workspace, for each index of `dims` one.

    `dims` and `col` are sizes, and strides of the source; `first` is the place of the first row.
    """
    merged: list[tuple[int, int]] = []
    for size, step in dims:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * step:
            size *= merged.pop()[0]
        merged.append((size, step))
    merged = merged or [(1, 1)]
    pitches: list[int] = []
    pitch = pitch_of(col[0], dtype)
    for size, _ in reversed(merged):
        pitches.insert(0, pitch)
        pitch *= size
    near = next((i for i, (_, step) in enumerate(merged) if step == 1), len(merged) - 1)
    outer = [i for i in range(len(merged)) if i != near]
    lines = [line for k, _ in reversed(list(enumerate(outer))) for line in (
        f"at = tl.cast(tile % size{k}, tl.int64)", f"source += at * step{k}",
        f"target += at * pitch{k}", f"tile = tile // size{k}")]
    count, step = merged[near]
    arguments = (
        pointer(source, dtype, aligned), pointer("workspace", dtype), integer("cols", col[0]),
        integer("near", count), integer("near_pitch", pitches[near]), integer("offset", offset),
        integer("first", first), *[integer("near_step", step)] * (step != 1),
        *[integer("col_step", col[1])] * (col[1] != 1),
        *[integer(f"{what}{k}", value) for k, i in enumerate(outer) for what, value in (
            ("size", merged[i][0]), ("step", merged[i][1]), ("pitch", pitches[i]))])
    block = 64 if BYTES[dtype] > 1 else 128
    constants = {"BLOCK": block, "SOURCE": Expression(source),
                 "NEAR_STEP": Expression("near_step" if step != 1 else "1"),
                 "COL_STEP": Expression("col_step" if col[1] != 1 else "1")}
    tiles = -(-count // block) * -(-col[0] // block) * math.prod(merged[i][0] for i in outer)
    return TemplateKernel(name, expand(PACK, name, arguments, constants, {"OUTER": lines}),
                          arguments,
                          (tiles, 1, 1), 4, 1, flops=0)
