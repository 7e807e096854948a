"""Products of matrices: c[b0, b1] = epilogue(alpha * a[b0, b1] @ b[b0, b1])."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
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
    stored_as,
)
from functrans.lowering.triton.templates.matmul_configs import stores_from_registers
from functrans.lowering.triton.templates.matmul_problem import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    MatmulTerm,
)
from functrans.lowering.triton.templates.matmul_terms import SUM_OF_TERMS, TermArguments
from functrans.lowering.triton.templates.pack import (
    PackedMatmul,
    pack_operands,
)
from functrans.lowering.triton.templates.tiles import (
    ADD_MANY,
    ADD_SPLITS,
    FRAME,
    SPAN,
    STORE_PARTS,
    TILE,
    at_once,
    rounding,
)

__all__ = [
    "MatmulConfig",
    "MatmulOperand",
    "MatmulProblem",
    "MatmulTerm",
    "kernels",
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
                         and p.c.along == "row" and not stores_from_registers(p, config))
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
        "LOAD": [*([f"x = {x.load('row', 'step * BLOCK_K')}",
                    f"y = {y.load('step * BLOCK_K', 'col')}"] if descriptors else [LOAD]),
                 # weights of 8 bits, which 16 bits have exactly
                 *[f"y = y.to({TYPES[p.a.dtype]})"] * (p.b.dtype != p.a.dtype)],
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
                                            arrivals=tiles * config.last_combines,
                                            walkers=int(grid == target.multiprocessors
                                                        and config.persistent))]
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
