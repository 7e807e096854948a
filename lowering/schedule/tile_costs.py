"""What tile programs take: registers of live tiles, instructions, time; where they are cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from functrans.core.precision import Precision
from functrans.core.record import Record
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.tensor import Gemm, Reduce, Tensor, item_size
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.schedule.target import Target
from functrans.lowering.schedule.tile_space import TileSize, TileSpace, TileValue, extent
from functrans.primitives.precision import resolved_precision

__all__ = ["TileShape", "cut", "launched_time", "rate_of", "tiled_time"]

WARP = 32
LIVE_NUMBERS = 128
"""Of tiles that are needed later, for each thread; the others are of the step at hand."""
MOST_INSTRUCTIONS = 4000
"""Of a thread of a program, roughly: its compiler takes longer for each in a longer text. Programs
of 5,600 took 3 s and one of 6,000 11.6, of 4,900 at "highest" 3.7; of 3,600 1.4."""
PRODUCT_INSTRUCTIONS = 60
"""Of a product besides those of tensor cores: tiles change their layout."""
LATEST_CUT = 0.6
"""A program ends in the rest of its longest run, where the fewest values are needed later."""
TILE_AREA = 4096
BLOCKS = (128, 64, 32, 16)
RATES = {Precision.DEFAULT: "tf32", Precision.HIGH: "tf32x3", Precision.HIGHEST: "ieee"}
RATES_OF_TYPES = {"bf16": "bf16", "f16": "fp16", "f64": "fp64", "f8e4": "fp8e4nv", "f8e5": "fp8e5"}


class TileShape(Record):
    """How many indices a program takes, in so many warps, and how many programs there are."""

    block: int
    warps: int
    programs: int

    @property
    def threads(self) -> int:
        return WARP * self.warps


def shape_of(values: Iterable[TileValue], count: int, by_rows: bool, target: Target) -> TileShape:
    """The block and the warps that suit the tiles of some values."""
    forms = [form for v in values for form in (v.form, *[over for _, over in v.exprs])]
    if not by_rows:
        area = max(extent(f.rows) * extent(f.cols) for f in forms)
        return TileShape(1, 4 if area <= TILE_AREA else 8, count)
    widest = max(extent(v.form.cols) for v in values)
    block = next(b for b in BLOCKS if b * widest <= TILE_AREA or b == BLOCKS[-1])
    while block > BLOCKS[-1] and count < block * target.multiprocessors:
        block //= 2
    return TileShape(block, 8 if block * widest >= TILE_AREA else 4, -(-count // block))


def cut(steps: Sequence[Sequence[TileValue]], count: int, by_rows: bool, target: Target,
        failures: Mapping[Tensor, int]) -> list[tuple[int, TileShape]]:
    """How many steps each program takes, one after the other.

    Those of values that are in `failures`, so often, are smaller.
    """
    pieces: list[tuple[int, TileShape]] = []
    shape = shape_of([v for s in steps for v in s], count, by_rows, target)
    begin = 0
    while begin < len(steps):
        size = 1
        while begin + size < len(steps) and _fits(steps[begin:begin + size + 1], shape, failures):
            size += 1
        if begin + size < len(steps):
            least = max(1, math.ceil(size * LATEST_CUT))
            size = min(range(size, least - 1, -1),
                       key=lambda n: _crossing(steps[begin:], n, shape))
        pieces.append((size, shape))
        begin += size
    return pieces


def _fits(steps: Sequence[Sequence[TileValue]], shape: TileShape,
          failed: Mapping[Tensor, int]) -> bool:
    values = [v for s in steps for v in s]
    failures = max([failed.get(v.tensor, 0) for v in values], default=0)
    return most_live(values, shape) <= (LIVE_NUMBERS >> failures) * shape.threads \
        and sum(instructions(v, shape) for v in values) <= MOST_INSTRUCTIONS


def _crossing(steps: Sequence[Sequence[TileValue]], n: int, shape: TileShape) -> int:
    """The elements of tiles that are needed behind the first n steps."""
    made = {v.tensor: elements(v.form, shape) for s in steps[:n] for v in s}
    needed = {how.tensor for s in steps[n:] for v in s for how in v.inside}
    return sum(size for t, size in made.items() if t in needed)


def elements(form: TileSize, shape: TileShape) -> int:
    """Of a tile of indices, in registers."""
    return max(shape.block, extent(form.rows)) * extent(form.cols)


def most_live(values: Sequence[TileValue], shape: TileShape) -> int:
    """The most elements of tiles that are needed at one time.

    What is loaded, transposed or rounded for a product is a tile as long as others use it, too.
    """
    made: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    size: dict[Hashable, int] = {}
    for k, v in enumerate(values):
        made.setdefault(v.tensor, k)
        own = extent(v.form.rows) * extent(v.form.cols) if v.total else elements(v.form, shape)
        for key, n in [(v.tensor, own), *_read(v, shape)]:
            size.setdefault(key, n)
            made.setdefault(key, k)
            last[key] = k
    change = [0] * (len(values) + 1)
    for key, n in size.items():
        change[made[key]] += n
        change[last[key] + 1] -= n
    return max(accumulate(change))


def _read(v: TileValue, shape: TileShape) -> Iterator[tuple[Hashable, int]]:
    """The tiles that a value is computed from, by what they are, and their elements."""
    yield from ((how.tensor, elements(v.exprs[0][1], shape)) for how in v.inside)
    for e, over in v.exprs:
        if v.product is not None:
            yield (e, over), elements(over, shape) if e.op == "local" or shape.block == 1 \
                else extent(over.rows) * extent(over.cols)
        else:
            yield from ((x, elements(over, shape)) for x in reachable_expressions([e])
                        if x.op == "load" and len(x.variables) > 1)


def instructions(v: TileValue, shape: TileShape) -> int:
    """Of a thread, for a value."""
    size = max(elements(over, shape) for _, over in v.exprs)
    if v.product is None:
        return -(-size // shape.threads) * (v.weight + 1)
    work = _multiplied(v, shape)
    name = _rate(v)
    each = 1 if name == "ieee" else 256 if name in ("bf16", "fp16") else 128
    return PRODUCT_INSTRUCTIONS + -(-work // (shape.threads * each)) \
        + 2 * sum(elements(over, shape) for _, over in v.exprs) // shape.threads


def _multiplied(v: TileValue, shape: TileShape) -> int:
    assert v.product is not None
    if v.total:
        return max(shape.block, extent(v.product.k)) * extent(v.product.m) * extent(v.product.n)
    if min(f for _, over in v.exprs for f in over) == 1 and shape.block == 1:
        return max(elements(over, shape) for _, over in v.exprs)
    return max(shape.block, extent(v.product.m)) * extent(v.product.n) * extent(v.product.k)


def _rate(v: TileValue) -> str:
    assert v.product is not None
    return rate_of(v.product.gemm)


def rate_of(gemm: Gemm) -> str:
    """Which of the rates of products that of a product is."""
    dtype = gemm.operands[0].dtype
    return RATES[resolved_precision(gemm.precision)] if dtype == "f32" else RATES_OF_TYPES[dtype]


# --------------------------------------------------------------------------- time


def launched_time(step: Step, is_stored: Callable[[Tensor], bool], target: Target) -> float:
    """Nanoseconds of a step that is launched; what may be the epilogue of a product is none."""
    figures = target.measured
    flops = flops_of(step, is_stored)
    if isinstance(step, Gemm):
        touched: Iterable[Tensor] = (*step.operands, *step.results)
    elif isinstance(step, Kernel):
        touched = [*step.loads(step.builder(is_stored)),
                   *[m.tensor for m in step.members if is_stored(m.tensor)]]
    else:
        touched = ()
    moved = sum(t.size * item_size(t.dtype) for t in touched if isinstance(t.size, int))
    is_epilogue = isinstance(step, Kernel) and not any(
        isinstance(m.tensor, Reduce) for m in step.members)
    return (0.0 if is_epilogue else figures.launch) + max(
        moved * figures.byte, (flops if isinstance(flops, int) else 0) / figures.all_rate)


def tiled_time(values: Sequence[TileValue], shape: TileShape, space: TileSpace, nbytes: int,
               target: Target) -> float:
    """Nanoseconds of a tile program that moves so many bytes."""
    figures = target.measured
    at_once = max(1, figures.tile_warps // shape.warps)
    waves = -(-shape.programs // (target.multiprocessors * at_once))
    work = steps = 0.0
    read = 0
    for v in values:
        if v.product is None:
            size = max(elements(over, shape) for _, over in v.exprs)
            work += size * (v.weight + 1) / figures.tile_operations
            steps += figures.tile_reduction if v.axes else 0.0
            continue
        work += 2 * _multiplied(v, shape) / (figures.rates[_rate(v)] * figures.tile_efficiency)
        matrices = sum(over.rows * over.cols * 4 for e, over in v.exprs if e.op == "load")
        steps += figures.tile_product + matrices / figures.one_bandwidth
        read += matrices
    programs = -(-shape.programs // target.multiprocessors)
    launches = 1 + any(v.total for v in values)
    return launches * figures.launch + max(nbytes * figures.byte, waves * steps, programs * work,
                                shape.programs * read / figures.shared_bandwidth)
