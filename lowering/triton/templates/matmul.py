"""Products of matrices: c[b0, b1] = epilogue(alpha * a[b0, b1] @ b[b0, b1])."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from textwrap import indent

from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.descriptor_tiles import DescriptorTiles
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    INT_MAX,
    TYPES,
    Argument,
    Expression,
    TemplateKernel,
    arrivals,
    expand,
    integer,
    pointer,
    power_of_two,
    stored_as,
)
from functrans.lowering.triton.templates.matmul_problem import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    MatmulTerm,
)
from functrans.lowering.triton.templates.matmul_terms import SUM_OF_TERMS, TermArguments
from functrans.lowering.triton.templates.pack import (
    PackedMatmul,
    can_pack,
    needs_contiguous_sums,
    pack_operands,
)
from functrans.lowering.triton.templates.tiles import (
    ADD_MANY,
    ADD_SPLITS,
    EFFICIENCY,
    FRAME,
    SPAN,
    STORE_PARTS,
    TILE,
    at_once,
    last_combines,
    rounding,
    time_of_tiles,
)

__all__ = [
    "MatmulConfig",
    "MatmulOperand",
    "MatmulProblem",
    "MatmulTerm",
    "configs",
    "estimate",
    "kernels",
    "lighter",
    "side_by_side",
    "smaller",
]

OF_BATCH = '''
if BATCHED:
    b0 = outer // batch1
    b1 = outer % batch1
else:
    b0 = 0
    b1 = 0
'''
PLACE = TILE + OF_BATCH

SUM = SPAN + '''
FIND_OPERANDS
acc = tl.full((BLOCK_M, BLOCK_N), 0, dtype=SUMS)
for step in range(first, last):
    LOAD
    MULTIPLY
'''

FIND_OPERANDS = '''
if not DESCRIPTORS:
    at_m = row + tl.arange(0, BLOCK_M)
    at_n = col + tl.arange(0, BLOCK_N)
    at_k = tl.arange(0, BLOCK_K)
    if BATCHED:
        a_matrix = a + tl.cast(b0, tl.int64) * a_batch0 + tl.cast(b1, tl.int64) * a_batch1
        b_matrix = b + tl.cast(b0, tl.int64) * b_batch0 + tl.cast(b1, tl.int64) * b_batch1
    else:
        a_matrix = a
        b_matrix = b
    a_tile = a_matrix + (WIDE(at_m)[:, None] * A_ROW + WIDE(at_k)[None, :] * A_COL)
    b_tile = b_matrix + (WIDE(at_k)[:, None] * B_ROW + WIDE(at_n)[None, :] * B_COL)
'''

MULTIPLY = '''
if EXACT_AFTER:
    acc = tl.dot(x, y, acc, max_num_imprecise_acc=EXACT_AFTER, out_dtype=SUMS)
else:
    acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=SUMS)
'''

LOAD = '''
if not DESCRIPTORS:
    done = step * BLOCK_K
    if EVEN_M and EVEN_K:
        x = tl.load(a_tile + WIDE(done) * A_COL)
    elif EVEN_K:
        x = tl.load(a_tile + WIDE(done) * A_COL, mask=(at_m < m)[:, None], other=0.0)
    else:
        there = (at_m < m)[:, None] & (at_k < k - done)[None, :]
        x = tl.load(a_tile + WIDE(done) * A_COL, mask=there, other=0.0)
    if EVEN_N and EVEN_K:
        y = tl.load(b_tile + WIDE(done) * B_ROW)
    elif EVEN_K:
        y = tl.load(b_tile + WIDE(done) * B_ROW, mask=(at_n < n)[None, :], other=0.0)
    else:
        there = (at_k < k - done)[:, None] & (at_n < n)[None, :]
        y = tl.load(b_tile + WIDE(done) * B_ROW, mask=there, other=0.0)
    x = ROUNDED(x)
    y = ROUNDED(y)
'''

STORE_SPLIT = '''
rows = (row + tl.arange(0, BLOCK_M))[:, None]
cols = (col + tl.arange(0, BLOCK_N))[None, :]
partial = workspace + tl.cast(split * (BATCHES) + outer, tl.int64) * m * n
tl.store(partial + (tl.cast(rows, tl.int64) * n + cols), acc, mask=(rows < m) & (cols < n))
'''

FINISH = '''
rows = (row + tl.arange(0, BLOCK_M))[:, None]
cols = (col + tl.arange(0, BLOCK_N // PARTS))[None, :]
if EVEN_M and EVEN_N:
    inside = None
else:
    inside = (rows < m) & (cols < n)
if ALPHA != 1.0:
    acc = acc * ALPHA
EPILOGUE
if STORES_DESCRIPTOR:
    STORE_TILE
elif STORES:
    c_matrix = c
    if BATCHED:
        c_matrix += tl.cast(b0, tl.int64) * c_batch0 + tl.cast(b1, tl.int64) * c_batch1
    place = WIDE(rows) * C_ROW + WIDE(cols) * C_COL
    tl.store(c_matrix + place, RESULT, mask=inside)
'''

# where the partial sums of a tile are, and how far from one to the next
PLACE_OF_SUMS = '''
sums = workspace + tl.cast(outer, tl.int64) * m * n + (tl.cast(rows, tl.int64) * n + cols)
summed = (rows < m) & (cols < n)
apart = (BATCHES) * tl.cast(m, tl.int64) * n
'''
PARTIALS = PLACE_OF_SUMS + ADD_SPLITS

# the second launch of a split sum
COMBINE = '''
@triton.jit
def NAME():
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    tile = tl.program_id(0)
    outer = tile // (tiles_m * tiles_n)''' + indent(OF_BATCH, "    ") + '''
    row = tile // tiles_n % tiles_m * BLOCK_M
    col = tile % tiles_n * BLOCK_N
    rows = (row + tl.arange(0, BLOCK_M))[:, None]
    cols = (col + tl.arange(0, BLOCK_N))[None, :]
    PLACE_OF_SUMS
    ADD_MANY
    FINISH
'''

# many small matrices: one tile has all of some
SMALL = '''
@triton.jit
def NAME():
    outer = tl.program_id(0) * TOGETHER + tl.arange(0, TOGETHER)[:, None, None]
    if BATCHED:
        b0 = outer // batch1
        b1 = outer % batch1
        a_matrix = a + (tl.cast(b0, tl.int64) * a_batch0 + tl.cast(b1, tl.int64) * a_batch1)
        b_matrix = b + (tl.cast(b0, tl.int64) * b_batch0 + tl.cast(b1, tl.int64) * b_batch1)
        c_matrix = c + (tl.cast(b0, tl.int64) * c_batch0 + tl.cast(b1, tl.int64) * c_batch1)
    else:
        b0 = 0
        b1 = 0
        a_matrix = a
        b_matrix = b
        c_matrix = c
    rows = tl.arange(0, BLOCK_M)[None, :, None]
    cols = tl.arange(0, BLOCK_N)[None, None, :]
    left = tl.arange(0, BLOCK_K)[None, None, :]
    right = tl.arange(0, BLOCK_K)[None, :, None]
    a_tile = a_matrix + (rows * A_ROW + left * A_COL)
    b_tile = b_matrix + (right * B_ROW + cols * B_COL)
    if EVEN_M and EVEN_N and EVEN_K and EVEN_BATCH:
        x = tl.load(a_tile)
        y = tl.load(b_tile)
        inside = None
    else:
        there = outer < (BATCHES)
        x = tl.load(a_tile, mask=there & (rows < m) & (left < k), other=0.0)
        y = tl.load(b_tile, mask=there & (right < k) & (cols < n), other=0.0)
        inside = there & (rows < m) & (cols < n)
    if TOGETHER == 1:
        x = tl.reshape(x, (BLOCK_M, BLOCK_K))
        y = tl.reshape(y, (BLOCK_K, BLOCK_N))
    acc = tl.dot(ROUNDED(x), ROUNDED(y), input_precision=PRECISION, out_dtype=SUMS)
    if TOGETHER == 1:
        acc = tl.reshape(acc, (1, BLOCK_M, BLOCK_N))
    if ALPHA != 1.0:
        acc = acc * ALPHA
    EPILOGUE
    if STORES:
        tl.store(c_matrix + (rows * C_ROW + cols * C_COL), RESULT, mask=inside)
'''


def kernels(p: MatmulProblem, config: MatmulConfig, name: str = "matmul", target: Target = HOPPER,
            any_size: bool = False) -> list[TemplateKernel]:
    """The launches of a product, in order: more than one where the sum is split or `pack_operands`.

    With `any_size` sizes of a class have the same kernels: edges are always masked, and a size is
    known as a multiple of 16 only where the width of loads depends on it.
    """
    if config.together:
        return [_small(p, config, name, any_size)]
    before = pack_operands(p, f"{name}_turned") if config.is_packed else PackedMatmul((), p)
    p = before.problem
    tiles = -(-p.m // config.block_m) * -(-p.n // config.block_n) * p.batches
    programs = tiles * config.splits
    batched = p.batches > 1
    descriptors = config.descriptors and p.has_descriptors and p.contracted > 0
    stores = not p.epilogue.lines or p.epilogue.result is not None
    stores_descriptor = (config.descriptors and stores and p.c.has_descriptor and config.splits == 1
                         and p.c.along == "row" and not _stores_from_registers(p, config))
    constants = _constants(p, config, any_size) | {
        "TILES_M": Expression("tl.cdiv(m, BLOCK_M)"), "TILES_N": Expression("tl.cdiv(n, BLOCK_N)"),
        "STEPS": Expression("tl.cdiv(k, BLOCK_K)"), "TERMS": len(p.terms),
        "HALVES": Expression("(BLOCK_M, 2, BLOCK_N // 2)"),
        "FLATTENED": config.flat and config.splits == 1, "PERSISTENT": config.persistent,
        "EXACT_AFTER": min(p.exact_after, config.block_k),
        "DESCRIPTORS": descriptors, "GROUP": config.group, "SPLITS": config.splits,
        "LAST_COMBINES": config.last_combines,
        "PARTS": config.parts if config.splits == 1 else 1, "STORES_DESCRIPTOR": stores_descriptor,
        "OUTER": Expression(f"{config.splits} * {_batches(p)}" if batched else str(config.splits))}
    x = DescriptorTiles(p.a, "a", ("m", "k"), ("BLOCK_M", "BLOCK_K"), p.batch)
    y = DescriptorTiles(p.b, "b", ("k", "n"), ("BLOCK_K", "BLOCK_N"), p.batch)
    z = DescriptorTiles(p.c, "c", ("m", "n"), ("BLOCK_M", "BLOCK_N // PARTS"), p.batch)
    described = rounding([x.described, y.described] * descriptors, p.rounds)
    blocks: dict[str, Iterable[str]] = {
        "DESCRIBE": [*["fm.products_by_warps()"] * config.by_warps, *before.lines,
                     *([] if p.more else described),
                     *[z.described] * stores_descriptor],
        "FIND_OPERANDS": [FIND_OPERANDS], "MULTIPLY": [MULTIPLY],
        "PLACE": [PLACE], "SUM": [SUM], "STORE": [STORE_PARTS], "ADD_SPLITS": [PARTIALS],
        "PLACE_OF_SUMS": [PLACE_OF_SUMS], "ADD_MANY": [ADD_MANY],
        "NEXT_PART": ["col += BLOCK_N // 2"],
        "STORE_SPLIT": [STORE_SPLIT], "FINISH": [FINISH],
        "LOAD": [f"x = {x.load('row', 'step * BLOCK_K')}",
                 f"y = {y.load('step * BLOCK_K', 'col')}"] if descriptors else [LOAD],
        "EPILOGUE": p.epilogue.lines, "STORE_TILE": [z.store("row", "col", "RESULT")]}
    sizes = _sizes(p, config.splits, any_size)
    strides = [s for q, op in zip("abc", (p.a, p.b, p.c)) for s in _strides(q, op, batched)]
    batch = [integer("batch0", p.batch[0]), integer("batch1", p.batch[1])] * batched
    inputs = [pointer(q, op.dtype, op.aligned) for q, op in (("a", p.a), ("b", p.b))
              if q not in before.places]
    inputs += before.arguments
    numbers = [*sizes, *batch, *strides]
    if p.more:
        terms = TermArguments([_of_term(t, batched) for t in p.terms])
        inputs = terms.pointers
        numbers = [*sizes[:2], *batch, *terms.numbers, *_strides("c", p.c, batched)]
        constants |= {"STEPS": Expression(terms.steps),
                      "FIRST_TERM": Expression(terms.begun("first >=")),
                      "LAST_TERM": Expression(f"1 + {terms.begun('last >')}")}
        blocks |= {"SUM": [SUM_OF_TERMS], "BEGIN_TERMS": terms.begins,
                   "CHOOSE_TERM": terms.chosen, "DESCRIBE_TERM": described}
    end = [pointer("c", p.c.dtype, p.c.aligned), *p.epilogue.arguments]
    workspace = before.nbytes
    if config.splits > 1:
        workspace = config.splits * p.batches * p.m * p.n * BYTES[p.sums]
        shared = [pointer("workspace", p.sums)]
        end = [*shared, arrivals(), *end] if config.last_combines else shared
    arguments = (*inputs, *end, *numbers)
    grid = min(programs, target.multiprocessors) if config.persistent else programs
    text = expand(FRAME, name, arguments, constants, blocks)
    made = [*before.kernels, TemplateKernel(name, text, arguments, (grid, 1, 1), config.warps,
                                            config.stages, workspace,
                                            arrivals=tiles * config.last_combines)]
    if config.splits > 1 and not config.last_combines:
        made.append(_combine(p, config, f"{name}_combine", constants, blocks, sizes + batch,
                             workspace, target, any_size))
    return made


def _combine(p: MatmulProblem, config: MatmulConfig, name: str, constants: dict[str, object],
             blocks: dict[str, Iterable[str]], sizes: list[Argument], workspace: int,
             target: Target, any_size: bool) -> TemplateKernel:
    """The launch that adds split sums up, of tiles that are small enough for all multiprocessors.

    Four programs read 128 sums of 64 x 64 at 3 % of the bandwidth of an H100.
    """
    block_n = next(n for n in (32, 64, 128) if p.n <= n or n == 128)
    across = -(-p.n // block_n) * p.batches
    block_m = next((n for n in (8, 4, 2) if -(-p.m // n) * across >= target.multiprocessors), 1)
    warps = max(1, block_m * block_n // 256)
    loads = 128 * 32 * warps // (block_m * block_n)  # which 128 registers of a thread wait for
    here = {"BLOCK_M": block_m, "BLOCK_N": block_n, "SPLITS": Expression("splits"),
            "LOADS": at_once(config.splits, loads),
            "EVEN_M": not any_size and p.m % block_m == 0,
            "EVEN_N": not any_size and p.n % block_n == 0, "PARTS": 1, "STORES_DESCRIPTOR": False}
    arguments = (pointer("workspace", p.sums), pointer("c", p.c.dtype, p.c.aligned),
                 *p.epilogue.arguments, *sizes, *_strides("c", p.c, p.batches > 1),
                 replace(integer("splits", config.splits), divisible=False))
    tiles = -(-p.m // block_m) * across
    return TemplateKernel(name, expand(COMBINE, name, arguments, constants | here, blocks),
                          arguments, (tiles, 1, 1), warps, 1, workspace)


def _small(p: MatmulProblem, config: MatmulConfig, name: str, any_size: bool) -> TemplateKernel:
    constants = _constants(p, config, any_size) | {
        "TOGETHER": config.together, "EVEN_BATCH": p.batches % config.together == 0}
    batched = p.batches > 1
    arguments = (
        pointer("a", p.a.dtype, p.a.aligned), pointer("b", p.b.dtype, p.b.aligned),
        pointer("c", p.c.dtype, p.c.aligned), *p.epilogue.arguments,
        *_sizes(p, 1, any_size),
        *[integer("batch0", p.batch[0]), integer("batch1", p.batch[1])] * batched,
        *[s for q, op in zip("abc", (p.a, p.b, p.c)) for s in _strides(q, op, batched)])
    text = expand(SMALL, name, arguments, constants, {"EPILOGUE": p.epilogue.lines})
    return TemplateKernel(name, text, arguments, (-(-p.batches // config.together), 1, 1),
                          config.warps,
                          config.stages)


def _sizes(p: MatmulProblem, splits: int, any_size: bool) -> list[Argument]:
    """The sizes of a product; how wide loads are depends on those along which memory goes."""
    along = {"m": 1 in (p.a.row, p.c.row), "n": splits > 1 or 1 in (p.b.col, p.c.col),
             "k": 1 in (p.a.col, p.b.row)}
    found = [integer(name, getattr(p, name)) for name in along]
    return [replace(a, divisible=a.divisible and (along[a.name] or not any_size)) for a in found]


def _of_term(t: MatmulTerm, batched: bool) -> list[Argument]:
    return [pointer("a", t.a.dtype, t.a.aligned), pointer("b", t.b.dtype, t.b.aligned),
            integer("k", t.k), *_strides("a", t.a, batched), *_strides("b", t.b, batched)]


def _constants(p: MatmulProblem, config: MatmulConfig, any_size: bool) -> dict[str, object]:
    far = max(rows * abs(op.row) + cols * abs(op.col) for t in p.terms for op, rows, cols in (
        (t.a, p.m + config.block_m, t.k + config.block_k),
        (t.b, t.k + config.block_k, p.n + config.block_n),
        (p.c, p.m + config.block_m, p.n + config.block_n)))
    return {
        "BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k,
        "EVEN_M": not any_size and p.m % config.block_m == 0,
        "EVEN_N": not any_size and p.n % config.block_n == 0,
        "EVEN_K": all(t.k % config.block_k == 0 for t in p.terms), "BATCHED": p.batches > 1,
        "BATCHES": Expression(_batches(p)), "ALPHA": p.alpha, "PRECISION": p.precision,
        "SUMS": Expression(TYPES[p.sums]), "STORES": p.epilogue.result is not None,
        "RESULT": stored_as(p.epilogue, p.c.dtype),
        "WIDE": far > INT_MAX, "ROUNDS": p.rounds,
    } | {f"{q.upper()}_{d.upper()}": Expression("1" if getattr(op, d) == 1 else f"{q}_{d}")
         for q, op in zip("abc", (p.a, p.b, p.c)) for d in ("row", "col")}


def _batches(p: MatmulProblem) -> str:
    return "batch0 * batch1" if p.batches > 1 else "1"


def _strides(name: str, op: MatmulOperand, batched: bool) -> list[Argument]:
    return [*[integer(f"{name}_batch{k}", op.batch[k]) for k in (0, 1) if batched],
            *[integer(f"{name}_{d}", step) for d, step in (("row", op.row), ("col", op.col))
              if step != 1]]


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
        return tuple(_small_configs(p))
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
engine they would take the shared memory of two stages of four."""


def _stores_from_registers(p: MatmulProblem, config: MatmulConfig) -> bool:
    return p.a.dtype == "fp32" and not config.persistent \
        and config.block_m * config.block_n > STAGED_TILE


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


def _small_configs(p: MatmulProblem) -> list[MatmulConfig]:
    m, n = power_of_two(p.m), power_of_two(p.n)
    k = power_of_two(p.k, 32 if BYTES[p.a.dtype] == 1 else 16)
    area = m * n + (m + n) * k
    found = [MatmulConfig(m, n, k, warps, 1, descriptors=False, together=together)
             for together, warps in ((1, 1), (1, 2), (2, 2), (4, 4), (8, 4), (8, 8))
             if area * together <= 8 * 4096 * warps // 2 and together <= p.batches]
    return found or [MatmulConfig(m, n, k, 4, 1, descriptors=False, together=1)]
