"""Which tiles a product of matrices has: a model of a GPU says what each configuration takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.kernel import BYTES, power_of_two
from functrans.lowering.triton.templates.matmul_problem import MatmulConfig, MatmulProblem
from functrans.lowering.triton.templates.pack import (
    PackedMatmul,
    can_pack,
    needs_contiguous_sums,
    pack_operands,
)
from functrans.lowering.triton.templates.tiles import EFFICIENCY, last_combines, time_of_tiles
from functrans.lowering.triton.templates.written_out import written_out

__all__ = ["configs", "estimate", "lighter", "side_by_side", "smaller", "stores_from_registers"]

SMALL_SIZE, SMALL_BATCH = 64, 256
ROUNDED = 0.1  # of the rate of tf32, where loads are narrow: 64 of 255^3 take 119 us
NARROW_LOADS = 2  # of 4 bytes take so many times what those of 16 do: 319 x 262144 x 256 425 us
ACROSS = 0.35  # of the rate, where an operand is turned in registers and stored again
AT_ONCE = {1: 0.87, 2: 1.6}
MANY_AT_ONCE = 2.2
"""Of the rate without tensor cores, where a multiprocessor has one tile, two, or more at once:
784 x 2048 x 512 by 104 of them takes 130 us, 2048 x 784 x 512 by 256 of them 53."""
BY_WARPS = 0.46  # of the rate of tf32, where operands lie in any order: 173 TFLOP/s, not 374


LEAST_BY_WARPS = 128 * 128  # the tile that reaches this rate


def configs(p: MatmulProblem, target: Target = HOPPER, count: int = 6) -> list[MatmulConfig]:
    """Configurations worth trying, by the time that a model gives them."""
    return list(_configs(p, target, count))


@lru_cache(maxsize=1024)  # 0.1 ms: products of other sizes ask for that of their class again
def _configs(p: MatmulProblem, target: Target, count: int) -> tuple[MatmulConfig, ...]:
    if max(p.m, p.n, p.k) <= SMALL_SIZE and p.batches >= SMALL_BATCH and not p.more:
        return tuple(_small_configs(p, target))
    model = _Model(p, target)
    cuts = list(_cuts(p, target))
    ranked = [(time, -EFFICIENCY[cut[0]], cut, p)
              for time, cut in zip(model.times(cuts), cuts, strict=True)]
    if can_pack(p):
        before = pack_operands(p)
        model = _Model(before.problem, target, before)
        cuts = [cut for cut in _cuts(before.problem, target) if cut[1] == 1]
        ranked += [(time, 0.0, cut, before.problem)
                   for time, cut in zip(model.times(cuts), cuts, strict=True)]
    ranked.sort(key=lambda r: r[:2])
    found: dict[MatmulConfig, None] = {}
    for _, _, cut, q in ranked:
        variants = _variants(q, *cut, target)
        found |= dict.fromkeys(variants if q is p else [replace(variants[0], is_packed=True)])
        if len(found) >= count:
            break
    return tuple(found)[:count]


def _cuts(p: MatmulProblem, target: Target) -> Iterator[tuple[tuple[int, int], int]]:
    """Tiles, and how many programs share a sum."""
    narrow = BYTES[p.a.dtype] <= 2
    m, n = power_of_two(p.m), power_of_two(p.n)
    tiles = [t for t in EFFICIENCY if t[0] <= m and t[1] <= n]
    copied = p.has_descriptors
    if p.exact_after or not (_is_by_warps(p) or (copied and (narrow or p.precision == "tf32"))):
        tiles = [t for t in tiles if max(t) <= 128]
    waves, least = 2, 256
    if _without_tensor_cores(p):  # 4096^3: 45 TFLOP/s, larger tiles 40 to 42
        tiles = [t for t in tiles if max(t) <= 64]
        waves, least = 4, 128
    for tile in tiles:
        whole = _tiles(p, tile)
        for splits in (1, 2, 4, 8, 16, 32, 64, 128):
            if splits == 1 or (whole * splits <= waves * target.multiprocessors
                               and p.contracted >= splits * least):
                yield tile, splits


def estimate(p: MatmulProblem, config: MatmulConfig, target: Target = HOPPER) -> float:
    """Nanoseconds of a product by a model."""
    before = pack_operands(p) if config.is_packed else None
    model = _Model(p if before is None else before.problem, target, before)
    return model.times([((config.block_m, config.block_n), config.splits)])[0]


def lighter(p: MatmulProblem, target: Target = HOPPER) -> list[MatmulConfig]:
    """Configurations that leave threads room for an epilogue, the fastest first.

    A thread of 256 has 64 numbers of a tile or fewer, where the usual ones have up to 128.
    """
    cuts = [(tile, 1) for tile, splits in _cuts(p, target)
            if splits == 1 and 64 * 64 <= tile[0] * tile[1] <= 128 * 128]
    times = dict(zip(cuts, _Model(p, target).times(cuts), strict=True))
    return [replace(c, warps=EIGHT_WARPS) for cut in sorted(cuts, key=times.__getitem__)
            for c in _variants(p, *cut, target)[-1:]]


EIGHT_WARPS = 8
SIDE_BY_SIDE = 3
SHORT_SUM = 4
"""Steps of tiles of 64 x 64 for which descriptors take longer to make, 1 to 2 us, than they save:
512 x 32 x 1024 of float32 takes 3.5 us without, 256^3 3.4 (cuBLAS 5.1)."""


def side_by_side(p: MatmulProblem, target: Target = HOPPER) -> list[MatmulConfig]:
    """Configurations of which a multiprocessor computes several tiles at once.

    So the epilogue of one happens during the products and loads of others. Softplus and its
    derivative behind 131072 x 256 x 256 of float32 take 265 us in tiles of 64 x 128 by four warps,
    770 in larger ones, which keep 76 numbers of a thread in memory besides.
    """
    found = []
    for tile, splits in _cuts(p, target):
        if splits == 1 and 64 * 64 <= tile[0] * tile[1] <= 64 * 128 and min(tile) >= 64 \
                and _tiles(p, tile) >= SIDE_BY_SIDE * target.multiprocessors:
            c = replace(_variants(p, tile, 1, target)[-1], warps=4)
            stage = sum(tile) * c.block_k * BYTES[p.a.dtype]
            room = target.shared // SIDE_BY_SIDE - 2048
            found.append(replace(c, stages=max(1, min(c.stages, room // stage))))
    return found


class _Model:
    """Nanoseconds of a product by its tiles, and of packing its operands where it `is_packed`."""

    def __init__(self, p: MatmulProblem, target: Target,
                 before: PackedMatmul | None = None) -> None:
        self.p, self.target, self.size = p, target, BYTES[p.a.dtype]
        self.first = 0.0
        if before is not None:
            figures = target.measured
            self.first = 2 * before.nbytes / figures.bandwidth \
                + figures.split_launch * len(before.kernels)
        self.moved = p.batches * ((p.m + p.n) * p.contracted * self.size
                                  + p.m * p.n * BYTES[p.c.dtype])
        self.sums = 2 * p.batches * p.m * p.n * BYTES[p.sums]
        self.rate = target.measured.rates[p.precision if p.a.dtype == "fp32" else p.a.dtype]
        narrow = p.rounds and not p.has_descriptors
        self.by_warps, self.is_exact = _is_by_warps(p), _without_tensor_cores(p)
        if self.by_warps:
            self.rate *= BY_WARPS
            self.size *= NARROW_LOADS if narrow else 1
        elif narrow:
            self.rate *= ROUNDED
        elif needs_contiguous_sums(p) and p.across:
            self.rate *= ACROSS

    def times(self, cuts: Iterable[tuple[tuple[int, int], int]]) -> list[float]:
        """Those of several cuts: the size of tiles, and how many programs share a sum."""
        p = self.p
        return [self.first + time_of_tiles(
            tile, _tiles(p, tile), p.contracted, splits, self.size, self._rate(tile, splits),
            self.moved, splits * self.sums if splits > 1 else 0, self.target)
            for tile, splits in cuts]

    def _rate(self, tile: tuple[int, int], splits: int) -> float:
        """That of large tiles, as the model of tiles takes it; small ones by warps lose less."""
        if self.is_exact:
            waves = -(-_tiles(self.p, tile) * splits // self.target.multiprocessors)
            return self.rate * AT_ONCE.get(waves, MANY_AT_ONCE)
        if not self.by_warps:
            return self.rate
        of_tile = min(1.0, math.sqrt(tile[0] * tile[1] / LEAST_BY_WARPS))
        return self.rate / EFFICIENCY[tile] * of_tile


def _tiles(p: MatmulProblem, tile: tuple[int, int]) -> int:
    return -(-p.m // tile[0]) * -(-p.n // tile[1]) * p.batches


def _without_tensor_cores(p: MatmulProblem) -> bool:
    return p.a.dtype == "fp64" or (p.a.dtype == "fp32" and p.precision == "ieee")


def _is_by_warps(p: MatmulProblem) -> bool:
    """Whether operands of float32 are not as tensor cores read them in shared memory.

    Those of four warps read it along the sum alone: what lies across it is turned in registers and
    stored again, at 122 TFLOP/s. 256 x 131072 x 256 takes 163 us with them, 124 with those of one
    warp (cuBLAS 119), 291 with copies of both operands. What the copy engine does not read is
    rounded in registers, where those of one warp have it anyhow.
    """
    as_read = p.has_descriptors and not p.across
    return p.rounds and not as_read and "neither" not in (p.a.along, p.b.along)


def _variants(p: MatmulProblem, tile: tuple[int, int], splits: int,
              target: Target) -> list[MatmulConfig]:
    size = BYTES[p.a.dtype]
    area = tile[0] * tile[1]
    exact = _without_tensor_cores(p)
    copied = p.has_descriptors
    by_warps = _is_by_warps(p) and tile[0] >= 64  # smaller ones are by warps anyhow
    if exact or (p.a.dtype == "fp32" and p.precision != "tf32"):
        warps = 8 if area >= 128 * 64 else 4
    elif by_warps:
        # narrow loads take registers: those of 128 x 128 spill with 4 warps
        warps, copied = 8 if area > 128 * 128 or (area == 128 * 128 and not copied) else 4, False
    elif p.a.dtype == "fp32":  # 4096 x 512 x 784, tiles of 128 x 128: 14 us (cuBLAS 16)
        # operands that are rounded in registers take as many as the sums
        warps = 8 if area > 128 * 128 or (area >= 128 * 64 and not copied) else 4
    else:
        warps = 8 if area >= 128 * 128 and (tile[0] >= 128 or not copied) else 4
    block_k = min(128 // size if area > 64 * 64 else 256 // size, p.longest_step)
    if exact:  # without tensor cores; its operands are read badly where the copy engine puts them
        block_k, copied = 16, False
    elif not copied:  # what is not copied asynchronously takes registers
        block_k = min(block_k, 32)
    elif size > 1 and p.contracted * max(area, 64 * 64) <= SHORT_SUM * 64 * 64 * splits * block_k:
        copied = False
    tiles = _tiles(p, tile)
    alone = area > STAGED_TILE  # what is persistent has others, below
    stages = _stages(p, tile, block_k, 0, target, by_warps or alone)
    again = 2.0 * splits * p.batches * p.m * p.n * BYTES[p.sums]
    base = MatmulConfig(*tile, block_k, warps, stages, splits=splits, descriptors=copied,
                        by_warps=by_warps,
                        last_combines=last_combines(tile, tiles, splits, again, target))
    if not copied or splits > 1 or tiles <= target.multiprocessors or p.more:
        return [base]
    parts = 2 if area >= 128 * 256 else 1
    flat = MatmulConfig(*tile, block_k, warps, _stages(p, tile, block_k, parts, target),
                        persistent=True,
                        parts=parts)
    return [flat, base] if area >= 128 * 128 else [base]


STAGED_TILE = 128 * 128
"""Larger ones of float32 go to memory from registers where a program computes one: for the copy
engine they would take the shared memory of two stages of four. Triton 3.6 leaves bfloat16 two as
well, where nothing is computed of the sums: 1024 x 4096 x 8192 takes 134 us then, 89 with four."""


def stores_from_registers(p: MatmulProblem, config: MatmulConfig) -> bool:
    wide = p.a.dtype == "fp32" or (BYTES[p.c.dtype] >= 4 and not p.epilogue.arguments)
    return wide and not config.persistent and config.block_m * config.block_n > STAGED_TILE


def _stages(p: MatmulProblem, tile: tuple[int, int], block_k: int, parts: int,
            target: Target, from_registers: bool = False) -> int:
    stage = (tile[0] + tile[1]) * block_k * BYTES[p.a.dtype]
    room = target.shared - 1024  # the tile that is stored takes the place of stages, but not where
    # those of the next tile are on their way
    if parts or (p.a.dtype == "fp32" and not from_registers):
        room -= tile[0] * tile[1] // max(parts, 1) * BYTES[p.c.dtype]
    steps = max(-(-t.k // block_k) for t in p.terms)
    return max(1, min(4, room // stage, max(steps, 2)))


def smaller(p: MatmulProblem) -> list[MatmulConfig]:
    """Configurations for whoever has no room for others: little is on its way at a time."""
    block_k = 16 if _without_tensor_cores(p) else 32
    return [MatmulConfig(n, n, block_k, 4, 1, descriptors=False) for n in (64, 32, 16)]


def _small_configs(p: MatmulProblem, target: Target) -> list[MatmulConfig]:
    m, n = power_of_two(p.m), power_of_two(p.n)
    k = power_of_two(p.k, 32 if BYTES[p.a.dtype] == 1 else 16)
    area = m * n + (m + n) * k
    found = [MatmulConfig(m, n, k, warps, 1, descriptors=False, together=together)
             for together, warps in ((1, 1), (1, 2), (2, 2), (4, 4), (8, 4), (8, 8))
             if area * together <= 8 * 4096 * warps // 2 and together <= p.batches]

    def length(c: MatmulConfig) -> float:
        return written_out(p.a.dtype, p.precision, c.together * m * n * k, c.warps, target)

    # 48^3 by one warp at "highest": 8,192 multiply-adds of a thread, which keeps 554 in memory
    found += [replace(c, warps=warps) for warps in (4, 8) for c in found[:1]
              if length(c) > target.measured.written_out]
    found = [c for c in found if length(c) <= target.measured.written_out]
    return found or [MatmulConfig(m, n, k, 4, 1, descriptors=False, together=1)]
