"""The frame of kernels that compute a result by tiles, each a sum of products of tiles."""

from __future__ import annotations

import math

from functrans.core.record import Record
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.templates.kernel import BYTES, MOST_ARRIVAL_COUNTERS

__all__ = [
    "ADD_MANY",
    "ADD_SPLITS",
    "EFFICIENCY",
    "FRAME",
    "SPAN",
    "STORE_PARTS",
    "TILE",
    "Tiling",
    "at_once",
    "last_combines",
    "rounding",
    "time_of_tiles",
]


class Tiling(Record):
    """How a result is cut into tiles, and the sum of each into steps.

    `group`: rows of tiles that run side by side; `splits`: programs that share the sum of a tile,
    whose partial sums a second launch adds, or the last of them if `last_combines`; `persistent`:
    a program computes tiles one after the other; `parts` of the columns go through the epilogue
    one by one.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group: int = 8
    splits: int = 1
    persistent: bool = False
    parts: int = 1
    last_combines: bool = False

    @property
    def numbers(self) -> int:
        """How many numbers of a tile each thread has."""
        return self.block_m * self.block_n // (32 * self.warps)


def rounding(descriptors: list[str], rounds: bool) -> list[str]:
    """The lines that make descriptors, whose copies are rounded to TensorFloat-32 or are not."""
    return [text for line in descriptors
            for text in (*["fm.next_copies_round()"] * rounds, line)]


# blocks: DESCRIBE makes descriptors, PLACE finds a tile, SUM computes `acc`, STORE takes it away
FRAME = '''
@triton.jit
def NAME():
    tiles_m = TILES_M
    tiles_n = TILES_N
    steps = STEPS
    DESCRIBE
    if PERSISTENT:
        # the places of the epilogue are counted apart, so that loads do not wait for them
        stored = tl.program_id(0) - tl.num_programs(0)
        tiles = tiles_m * tiles_n * OUTER
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTENED):
            PLACE
            SUM
            stored += tl.num_programs(0)
            tile = stored
            PLACE
            STORE
    else:
        tile = tl.program_id(0)
        PLACE
        SUM
        STORE
'''

# GROUP rows of tiles run side by side, so that programs at one time read few of both operands
TILE = '''
outer = tile // (tiles_m * tiles_n)
inner = tile % (tiles_m * tiles_n)
first_m = inner // (GROUP * tiles_n) * GROUP
count_m = tl.minimum(tiles_m - first_m, GROUP)
row = (first_m + inner % (GROUP * tiles_n) % count_m) * BLOCK_M
col = inner % (GROUP * tiles_n) // count_m * BLOCK_N
if SPLITS > 1:
    split = outer % SPLITS
    outer = outer // SPLITS
'''

# the steps of a sum that a program takes
SPAN = '''
if SPLITS > 1:
    share = tl.cdiv(steps, SPLITS)
    first = split * share
    last = tl.minimum(first + share, steps)
else:
    first = 0
    last = steps
'''

# where there are two parts, those of a tile's columns, or of its rows if it is transposed
STORE_PARTS = '''
if SPLITS > 1:
    STORE_SPLIT
    if LAST_COMBINES:
        # as the last program of a reduction does: stores of all its threads come before its arrival
        arrival = arrivals + (outer * tiles_m * tiles_n + inner)
        tl.debug_barrier()
        done = tl.atomic_add(arrival, 1, sem='acq_rel')
        if done == SPLITS - 1:
            ADD_SPLITS
            FINISH
            tl.store(arrival, 0)
elif PARTS == 1:
    FINISH
else:
    left, right = tl.split(tl.permute(tl.reshape(acc, HALVES), (0, 2, 1)))
    acc = left
    FINISH
    NEXT_PART
    acc = right
    FINISH
'''

# Partial sums are added in order, whoever finished first. Other programs of this launch may have
# stored them: they are read from the second-level cache, 16 at a time. (128 written out are no
# faster, ptxas has 34 registers for them, and took 1.5 s to compile, where a loop takes 0.3.)
ADD_SPLITS = '''
acc = tl.load(sums, mask=summed, other=0, cache_modifier='.cg')
if SPLITS <= 16 or SPLITS % 16:
    for other in tl.static_range(1, SPLITS):
        acc += tl.load(sums + other * apart, mask=summed, other=0, cache_modifier='.cg')
else:
    for other in tl.static_range(1, 16):
        acc += tl.load(sums + other * apart, mask=summed, other=0, cache_modifier='.cg')
    for done in range(16, SPLITS, 16):
        for other in tl.static_range(16):
            acc += tl.load(sums + (done + other) * apart, mask=summed, other=0,
                           cache_modifier='.cg')
'''

# The same by a launch of its own, which may have hundreds to add: so many are on their way.
ADD_MANY = '''
acc = tl.load(sums, mask=summed, other=0)
for chunk in range(1, SPLITS, LOADS):
    each = chunk + tl.arange(0, LOADS)[:, None, None]
    acc += tl.sum(tl.load(sums[None, :, :] + each * apart,
                          mask=summed[None, :, :] & (each < SPLITS), other=0), 0)
'''



def at_once(splits: int, most: int) -> int:
    """How many further sums `ADD_MANY` loads at once: few kinds, so that many have one text."""
    return min(most, next((n for n in (4, 16) if n >= splits - 1), 64))


# What of the peak a tile reaches once the pipeline is full (large products of bfloat16)
EFFICIENCY = {(128, 256): 1.0, (256, 128): 0.97, (128, 128): 0.85, (64, 256): 0.8, (256, 64): 0.7,
              (128, 64): 0.6, (64, 128): 0.62, (64, 64): 0.45, (32, 128): 0.35, (128, 32): 0.3,
              (32, 64): 0.25, (64, 32): 0.22, (16, 128): 0.2, (16, 64): 0.12, (32, 32): 0.12,
              (16, 32): 0.07, (64, 16): 0.1, (128, 16): 0.15, (16, 16): 0.04, (32, 16): 0.06}


def time_of_tiles(tile: tuple[int, int], tiles: int, k: int, splits: int, size: int, rate: float,
                  moved: float, again: float, target: Target) -> float:
    """Nanoseconds of sums of `k` products for so many tiles, by a model.

    `rate` is that of a large tile, `size` the bytes of an operand's element, `moved` the bytes
    that are read and written once, `again` those of split sums.
    """
    figures = target.measured
    waves = math.ceil(tiles * splits / target.multiprocessors)
    compute = max(waves * 2 * tile[0] * tile[1] / (rate * EFFICIENCY[tile]),
                  figures.product_step / 64) * k / splits
    cached = tiles * (tile[0] + tile[1]) * k * size / figures.cache_bandwidth
    slowest = max(compute, moved / figures.bandwidth, cached)
    together = min(_times_to_combine(tile, splits, again, target)) if splits > 1 else 0.0
    return slowest + 0.1 * compute + together


def last_combines(tile: tuple[int, int], tiles: int, splits: int, again: float,
                  target: Target) -> bool:
    """Whether the last program of a tile adds its split sums faster than a second launch does."""
    if splits == 1 or tiles > MOST_ARRIVAL_COUNTERS:
        return False
    last, second = _times_to_combine(tile, splits, again, target)
    return last <= second


def _times_to_combine(tile: tuple[int, int], splits: int, again: float,
                      target: Target) -> tuple[float, float]:
    """Nanoseconds in which the last program of each tile adds split sums, and a second launch."""
    figures = target.measured
    alone = splits * tile[0] * tile[1] * BYTES["fp32"] / figures.one_bandwidth
    return (figures.last_arrival + 0.5 * again / figures.bandwidth + alone,
            figures.split_launch + again / figures.bandwidth)
