"""Attention: softmax(scale * query key^T + bias) value, without the matrix of scores in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from functrans.core.record import Record
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    INT_MAX,
    TYPES,
    Argument,
    Expression,
    TemplateKernel,
    expand,
    integer,
    pointer,
    power_of_two,
)
from functrans.lowering.triton.templates.written_out import written_out

__all__ = [
    "QUERY_BLOCK",
    "SCORES",
    "SPANS",
    "WALK",
    "AttentionConfig",
    "AttentionProblem",
    "AttentionTile",
    "Heads",
    "any_flag_pointers",
    "bounded_configs",
    "configs",
    "constants",
    "extra_pointers",
    "forward",
    "launch",
    "loops_over_keys",
    "set_any_flags",
    "source",
    "tile",
]

LOG2_E = 1 / math.log(2)


class Heads(Record):
    """A tensor (batch, head, row, column) by strides in elements, 0 along what it is broadcast."""

    dtype: str
    batch: int
    head: int
    row: int
    col: int = 1
    aligned: bool = True

    def has_descriptor(self, batch: int, heads: int) -> bool:
        steps = [self.row, *[self.batch] * (batch > 1), *[self.head] * (heads > 1)]
        return self.col == 1 and self.aligned and all(
            s > 0 and s * BYTES[self.dtype] % 16 == 0 for s in steps)


class AttentionProblem(Record):
    """`heads` are those of the queries; each `key_heads` is shared by heads // key_heads of them.

    Query r sees keys up to r + offset if causal, and those for which the mask (bytes) is not 0;
    the scores of others are `fill`, before the bias is added if that is a number, and their
    gradients are 0 if it is `selected` and not added.
    The logarithms of the sums (`sums`, float32, contiguous (batch, heads, queries)) are to base 2;
    rows that see no key have -inf there, and are 0, or NaN unless `empty_is_zero`. `precision` is
    that of products of float32. So many `any_flags`, bytes, become 1 where scores are not finite.
    """

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    size: int
    value_size: int
    q: Heads
    k: Heads
    v: Heads
    out: Heads
    scale: float
    causal: bool = False
    offset: int = 0
    bias: Heads | None = None
    mask: Heads | None = None
    fill: float = -math.inf
    selected: bool = True
    precision: str = "ieee"
    empty_is_zero: bool = True
    any_flags: int = 0

    @property
    def is_filled(self) -> bool:
        """Whether what is not seen has a score."""
        return self.mask is not None and self.fill != -math.inf

    @property
    def rounds(self) -> bool:
        """Whether operands are rounded before tensor cores read them, who cut bits off."""
        return self.q.dtype == "fp32" and self.precision == "tf32"

    @property
    def width(self) -> int:
        """The columns of the widest tiles."""
        return max(power_of_two(self.size), power_of_two(self.value_size))

    def written_out(self, config: AttentionConfig, of_keys: int, of_values: int, loops: int,
                    target: Target) -> float:
        """The multiply-adds of a thread in the text of so many products, in each of some loops."""
        step = of_keys * power_of_two(self.size) + of_values * power_of_two(self.value_size)
        return written_out(self.q.dtype, self.precision,
                           loops * config.block_m * config.block_n * step, config.warps, target)

    def flops(self, of_keys: int, of_values: int) -> int:
        """The arithmetic of so many products along keys and along values, of what queries see."""
        seen = self.queries * self.keys
        if self.causal:
            seen = int(np.clip(np.arange(self.queries) + self.offset + 1, 0, self.keys).sum())
        size = of_keys * self.size + of_values * self.value_size
        return 2 * self.batch * self.heads * seen * size


class AttentionConfig(Record):
    """`block_m` queries and `block_n` keys at a time; `persistent`: programs of a multiprocessor.

    With descriptors, tiles come through the copy engine. `one_loop`: all blocks of scores are
    tested, which short rows prefer to a loop of a block or two behind the other, and long texts.
    """

    block_m: int
    block_n: int
    warps: int
    stages: int
    descriptors: bool = False
    persistent: int = 0
    one_loop: bool = False


LAUNCH = '''
@triton.jit
def NAME():
    blocks = tl.cdiv(LENGTH, BLOCK)
    DESCRIBE
    if PERSISTENT:
        for place in tl.range(tl.program_id(0), blocks * PLACES * batch, tl.num_programs(0)):
            BODY
    else:
        place = tl.program_id(0)
        BODY
'''

# the longest rows of a causal block come first; programs that stay take blocks of all lengths
QUERY_BLOCK = '''
if CAUSAL and PERSISTENT:
    block = blocks - 1 - place // (heads * batch)
    head = place % heads
    b = place // heads % batch
else:
    block = place % blocks
    if CAUSAL:
        block = blocks - 1 - block
    head = place // blocks % heads
    b = place // blocks // heads
key_head = head // SHARED
row = block * BLOCK_M
rows = row + tl.arange(0, BLOCK_M)
cols = tl.arange(0, BLOCK_N)
'''

WALK = '''SPANS
if ONE_LOOP and (CAUSAL or not KEYS_EVEN):
    for start in range(0, end, BLOCK_N):
        BOUND_STEP
else:
    for start in range(0, free, BLOCK_N):
        FREE_STEP
    if not (KEYS_EVEN and not CAUSAL):
        for start in range(free, end, BLOCK_N):
            BOUND_STEP
'''

BODY = QUERY_BLOCK + '''BASES
x = ROUNDED(LOAD_Q)
highest = tl.full((BLOCK_M,), float('-inf'), dtype=tl.float32)
total = tl.full((BLOCK_M, 8) if EIGHTHS else (BLOCK_M,), 0, dtype=tl.float32)
acc = tl.full((BLOCK_M, VALUE_SIZE), 0, dtype=tl.float32)
''' + WALK + '''if EIGHTHS:
    total = tl.sum(total, 1)
if EMPTY_ROWS:
    acc = acc / tl.where(total == 0, EMPTY_TOTAL, total)[:, None]
else:
    acc = acc / total[:, None]
STORE_OUT
first_row = tl.cast(b * heads + head, tl.int64) * queries
kept = highest + tl.log2(total)
tl.store(sums + first_row + rows, kept, mask=rows < queries)
MARKS
'''

# columns before `free` are seen by all rows of the block, those from `end` on by none
SPANS = '''
if CAUSAL:
    end = tl.maximum(tl.minimum(keys, row + BLOCK_M + offset), 0)
    free = tl.maximum(tl.minimum(keys, row + 1 + offset), 0) // BLOCK_N * BLOCK_N
else:
    end = keys
    free = keys // BLOCK_N * BLOCK_N
'''

# scores to base 2 (`s`) of rows and start + cols, which have the shapes of a column and a row or,
# where the tile is transposed, of a row and a column
SCORES = '''
if not FOLDED:
    s = s * (SCALE * LOG2_E)
if MASKED:
    place_in = WIDE(ROWS) * mask_row + WIDE(start + COLS) * MASK_COL
    if BOUND:
        there = (ROWS < queries) & (start + COLS < keys)
    else:
        there = ROWS < queries
    seen = tl.load(mask_head_base + place_in, mask=there, other=0) != 0
    if FILLED:
        s = tl.where(seen, s, FILL * LOG2_E)
if BIASED:
    place_in = WIDE(ROWS) * bias_row + WIDE(start + COLS) * BIAS_COL
    if BOUND:
        there = (ROWS < queries) & (start + COLS < keys)
    else:
        there = ROWS < queries
    s += tl.load(bias_head_base + place_in, mask=there, other=0).to(tl.float32) * LOG2_E
if MASKED and not FILLED:
    s = tl.where(seen, s, float('-inf'))
if BOUND:
    if CAUSAL and KEYS_EVEN:
        s = tl.where(start + COLS <= ROWS + offset, s, float('-inf'))
    elif CAUSAL:
        s = tl.where((start + COLS < keys) & (start + COLS <= ROWS + offset), s, float('-inf'))
    else:
        s = tl.where(start + COLS < keys, s, float('-inf'))
'''

# in a tile of scores, every eighth column of a row is in the same thread: threads add what they
# have, and their sums come together once, at the end
STEP = '''
s = tl.dot(x, ROUNDED(LOAD_K), input_precision=PRECISION)
SCORES
if FOLDED:
    new = tl.maximum(highest, tl.max(s, 1) * (SCALE * LOG2_E))
else:
    new = tl.maximum(highest, tl.max(s, 1))
if EMPTY_ROWS:
    base = tl.where(new == float('-inf'), 0, new)
else:
    base = new
if FOLDED:
    p = tl.exp2(s * (SCALE * LOG2_E) - base[:, None])
else:
    p = tl.exp2(s - base[:, None])
rest = tl.exp2(highest - base)
if EIGHTHS:
    total = total * rest[:, None] + tl.sum(tl.reshape(p, (BLOCK_M, BLOCK_N // 8, 8)), 1)
else:
    total = total * rest + tl.sum(p, 1)
acc = acc * rest[:, None]
acc = tl.dot(ROUNDED(p.to(V_TYPE)), ROUNDED(LOAD_V), acc, input_precision=PRECISION)
highest = new
'''


class AttentionTile(Record):
    """The text that reads and writes rows of a tensor."""

    name: str
    heads: Heads
    block: str      # the rows of a tile
    width: str      # its columns, a power of two
    size: str       # the columns that there are
    count: str      # the rows that there are
    shared: bool    # whether it has heads of keys
    whole: bool     # whether there are as many columns as a tile has
    descriptor: bool

    @property
    def head(self) -> str:
        return "key_head" if self.shared else "head"

    @property
    def described(self) -> str:
        n = self.name
        number = "key_heads" if self.shared else "heads"
        return (f"{n}_tiles = tl.make_tensor_descriptor({n}, [batch, {number}, {self.count}, "
                f"{self.size}], [{n}_batch, {n}_head, {n}_row, 1], [1, 1, {self.block}, "
                f"{self.width}])")

    @property
    def based(self) -> str:
        n = self.name
        return (f"{n}_base = {n} + tl.cast(b, tl.int64) * {n}_batch + "
                f"tl.cast({self.head}, tl.int64) * {n}_head")

    def _column(self) -> str:
        return f"tl.arange(0, {self.width})"

    def _place(self, rows: str, transposed: bool) -> str:
        step = "" if self.heads.col == 1 else f" * {self.name}_col"
        column = f"{self._column()}{'[:, None]' if transposed else '[None, :]'}{step}"
        row = f"(WIDE({rows}) * {self.name}_row){'[None, :]' if transposed else '[:, None]'}"
        return f"{self.name}_base + ({row} + {column})"

    def _mask(self, rows: str, bound: bool, transposed: bool) -> str | None:
        tests = []
        if bound:
            tests.append(f"({rows} < {self.count}){'[None, :]' if transposed else '[:, None]'}")
        if not self.whole:
            axes = "[:, None]" if transposed else "[None, :]"
            tests.append(f"({self._column()} < {self.size}){axes}")
        return " & ".join(tests) or None

    def load(self, start: str, rows: str, bound: bool, transposed: bool = False) -> str:
        """Rows from `start` on, which are `rows`; bound: some may not be there and are 0."""
        if self.descriptor:
            tile = (f"tl.reshape({self.name}_tiles.load([b, {self.head}, {start}, 0]), "
                    f"({self.block}, {self.width}))")
            return f"tl.trans({tile})" if transposed else tile
        mask = self._mask(rows, bound, transposed)
        masked = f", mask={mask}, other=0" if mask else ""
        return f"tl.load({self._place(rows, transposed)}{masked})"

    def store(self, start: str, rows: str, value: str) -> str:
        value = f"({value}).to({TYPES[self.heads.dtype]})"
        if self.descriptor:
            return (f"{self.name}_tiles.store([b, {self.head}, {start}, 0], "
                    f"tl.reshape({value}, (1, 1, {self.block}, {self.width})))")
        return (f"tl.store({self._place(rows, False)}, {value}, "
                f"mask={self._mask(rows, True, False)})")

    def add(self, start: str, rows: str, value: str) -> str:
        """Add to what is there, whoever else does."""
        if self.descriptor:
            return (f"{self.name}_tiles.atomic_add([b, {self.head}, {start}, 0], "
                    f"tl.reshape({value}, (1, 1, {self.block}, {self.width})))")
        return (f"tl.atomic_add({self._place(rows, False)}, {value}, "
                f"mask={self._mask(rows, True, False)}, sem='relaxed')")

    @property
    def strides(self) -> list[Argument]:
        h, n = self.heads, self.name
        return [integer(f"{n}_batch", h.batch), integer(f"{n}_head", h.head),
                integer(f"{n}_row", h.row), *[integer(f"{n}_col", h.col)] * (h.col != 1)]


def tile(p: AttentionProblem, name: str, heads: Heads, block: str,
         config: AttentionConfig) -> AttentionTile:
    """The tile of a tensor whose name is that of a part of attention, or d and that."""
    part = name.removeprefix("d") if name != "dout" else "out"
    keyed = part in ("k", "v")
    size = p.size if part in ("q", "k") else p.value_size
    return AttentionTile(name, heads, block, "SIZE" if part in ("q", "k") else "VALUE_SIZE",
                 "size" if part in ("q", "k") else "value_size", "keys" if keyed else "queries",
                 keyed, size == power_of_two(size),
                 config.descriptors and heads.has_descriptor(p.batch, p.key_heads if keyed
                                                             else p.heads))


def constants(p: AttentionProblem, config: AttentionConfig) -> dict[str, object]:
    tensors = [h for h in (p.q, p.k, p.v, p.out, p.bias, p.mask) if h is not None]
    far = max(max(p.queries, p.keys) * abs(h.row) + max(p.size, p.value_size, p.keys) * abs(h.col)
              for h in tensors)
    return {
        "BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "SIZE": power_of_two(p.size),
        "VALUE_SIZE": power_of_two(p.value_size), "SHARED": p.heads // p.key_heads,
        "PERSISTENT": config.persistent > 0, "ONE_LOOP": config.one_loop,
        "CAUSAL": p.causal, "BIASED": p.bias is not None,
        "MASKED": p.mask is not None, "KEYS_EVEN": p.keys % config.block_n == 0,
        "QUERIES_EVEN": p.queries % config.block_m == 0,
        "EMPTY_ROWS": p.mask is not None or p.bias is not None or (p.causal and p.offset < 0),
        "EIGHTHS": p.q.dtype != "fp32" or p.precision != "ieee",
        "FOLDED": p.bias is None and p.scale > 0 and not p.is_filled,
        "FILLED": p.is_filled, "FILL": p.fill if p.is_filled else 0.0,
        "SCALE": p.scale, "LOG2_E": LOG2_E,
        "PRECISION": p.precision, "ROUNDS": p.rounds, "V_TYPE": Expression(TYPES[p.v.dtype]),
        "K_TYPE": Expression(TYPES[p.k.dtype]), "Q_TYPE": Expression(TYPES[p.q.dtype]),
        "BIAS_COL": Expression("1" if p.bias and p.bias.col == 1 else "bias_col"),
        "MASK_COL": Expression("1" if p.mask and p.mask.col == 1 else "mask_col"),
        "WIDE": far > INT_MAX}


def source(p: AttentionProblem, tiles: list[AttentionTile]) -> tuple[list[Argument], list[str]]:
    """The numbers that kernels get, and the lines that find the head of a program."""
    extras = [AttentionTile(n, h, "", "", "", "", False, True, False)
              for n, h in (("bias", p.bias), ("mask", p.mask)) if h is not None]
    numbers = [integer("batch", p.batch), integer("heads", p.heads),
               integer("key_heads", p.key_heads), integer("queries", p.queries),
               integer("keys", p.keys), integer("size", p.size),
               integer("value_size", p.value_size), *[integer("offset", p.offset)] * p.causal]
    numbers += [a for t in [*tiles, *extras] for a in t.strides]
    lines = [t.based for t in tiles if not t.descriptor]
    lines += [t.based.replace("_base =", "_head_base =", 1) for t in extras]
    return numbers, lines


def extra_pointers(p: AttentionProblem) -> list[Argument]:
    return [pointer(n, h.dtype, h.aligned)
            for n, h in (("bias", p.bias), ("mask", p.mask)) if h is not None]


def any_flag_pointers(count: int) -> list[Argument]:
    return [pointer(f"mark{k}", "u8", False) for k in range(count)]


def set_any_flags(count: int, places: str, condition: str) -> list[str]:
    """The lines that store where a condition holds."""
    return [f"tl.store(mark{k} + {places}, 1, mask={condition})" for k in range(count)]


def _wrong(p: AttentionProblem) -> str:
    """Where the logarithms of sums say that scores are not finite, or that a row sees nothing."""
    sees_all = p.mask is None and p.bias is None and not (p.causal and p.offset < 0)
    finite = "tl.abs(kept)" if sees_all or not p.empty_is_zero else "kept"
    return f"(({finite} < float('inf')) == 0)"


def launch(name: str, arguments: tuple[Argument, ...], values: dict[str, object],
           blocks: dict[str, list[str]], programs: int, config: AttentionConfig, target: Target,
           flops: int = 0) -> TemplateKernel:
    """A kernel whose programs take one block each, or stay until all are taken."""
    if config.persistent:
        programs = min(programs, config.persistent * target.multiprocessors)
    text = expand(LAUNCH, name, arguments, values, blocks)
    return TemplateKernel(name, text, arguments, (programs, 1, 1), config.warps, config.stages,
                          flops=flops)


def forward(p: AttentionProblem, config: AttentionConfig, name: str = "attention",
            target: Target = HOPPER) -> list[TemplateKernel]:
    q = tile(p, "q", p.q, "BLOCK_M", config)
    k = tile(p, "k", p.k, "BLOCK_N", config)
    v = tile(p, "v", p.v, "BLOCK_N", config)
    out = tile(p, "out", p.out, "BLOCK_M", config)
    tiles = [q, k, v, out]
    numbers, bases = source(p, tiles)
    arguments = (pointer("q", p.q.dtype, p.q.aligned), pointer("k", p.k.dtype, p.k.aligned),
                 pointer("v", p.v.dtype, p.v.aligned), *extra_pointers(p),
                 pointer("out", p.out.dtype, p.out.aligned), pointer("sums", "fp32"),
                 *any_flag_pointers(p.any_flags), *numbers)
    values = constants(p, config) | {
        "ROWS": Expression("rows[:, None]"), "COLS": Expression("cols[None, :]"),
        "EMPTY_TOTAL": Expression("1" if p.empty_is_zero else "float('nan')"),
        "LENGTH": Expression("queries"), "BLOCK": config.block_m, "PLACES": Expression("heads")}

    def step(bound: bool) -> list[str]:
        cut = bound and not values["KEYS_EVEN"]
        text = STEP.replace("LOAD_K", k.load("start", "(start + cols)", cut, True))
        text = text.replace("LOAD_V", v.load("start", "(start + cols)", cut))
        return [text.replace("SCORES", SCORES.strip("\n")).replace("BOUND", str(bound))]

    blocks = {"DESCRIBE": [t.described for t in tiles if t.descriptor],
              "BODY": [BODY.replace("LOAD_Q", q.load("row", "rows",
                                                     p.queries % config.block_m != 0))],
              "BASES": bases, "SPANS": [SPANS], "FREE_STEP": step(False), "BOUND_STEP": step(True),
              "STORE_OUT": [out.store("row", "rows", "acc")],
              "MARKS": set_any_flags(p.any_flags, "rows * 0", f"(rows < queries) & {_wrong(p)}")}
    programs = -(-p.queries // config.block_m) * p.heads * p.batch
    return [launch(name, arguments, values, blocks, programs, config, target, p.flops(1, 1))]


MOST_WARPS = 16


def bounded_configs(configs: Iterable[AttentionConfig],
                    length: Callable[[AttentionConfig], float],
                    target: Target) -> list[AttentionConfig]:
    """The configurations, with one loop or more warps where their text would be too long.

    `length` is what `AttentionProblem.written_out` says of one. Tests of all blocks are nothing
    beside products of that length, and of the warps each has fewer numbers.
    """
    found: dict[AttentionConfig, None] = {}
    for c in configs:
        others = [c, *[replace(c, one_loop=True, warps=w) for w in (
            c.warps, 2 * c.warps, 4 * c.warps) if w <= MOST_WARPS]]
        fitting = [o for o in others if length(o) <= target.measured.written_out]
        found |= dict.fromkeys(fitting[:1])
    return list(found)


def loops_over_keys(p: AttentionProblem, config: AttentionConfig) -> int:
    """How often the text has the products of a block of keys."""
    return 1 if config.one_loop or (p.keys % config.block_n == 0 and not p.causal) else 2


def configs(p: AttentionProblem, count: int = 6, target: Target = HOPPER) -> list[AttentionConfig]:
    """Configurations of `forward` worth trying, the likely best first."""
    width = p.width
    if p.q.dtype == "fp32" and p.precision != "tf32" and width > 128:
        found = [AttentionConfig(16, 32, 8, 2, one_loop=True),
                 AttentionConfig(16, 16, 8, 2, one_loop=True)]
    elif p.q.dtype == "fp32":
        block = 64 if width <= 64 else 32
        found = [AttentionConfig(block, block, 8, 2), AttentionConfig(block, 32, 4, 2),
                 AttentionConfig(32, 32, 4, 2)]
    elif width <= 64:
        found = [AttentionConfig(64, 64, 4, 3), AttentionConfig(128, 64, 8, 3),
                 AttentionConfig(128, 64, 4, 3),
                 AttentionConfig(128, 128, 8, 2), AttentionConfig(64, 64, 4, 2, True, 4),
                 AttentionConfig(64, 128, 4, 2),
                 AttentionConfig(64, 64, 4, 2)]
    elif width <= 128:
        found = [AttentionConfig(128, 64, 8, 3), AttentionConfig(128, 128, 8, 3),
                 AttentionConfig(64, 64, 4, 3),
                 AttentionConfig(128, 128, 8, 2, True, 1), AttentionConfig(64, 64, 4, 2, True, 2),
                 AttentionConfig(128, 64, 4, 2)]
    else:
        found = [AttentionConfig(128, 64, 8, 2), AttentionConfig(64, 64, 4, 2),
                 AttentionConfig(64, 32, 4, 2),
                 AttentionConfig(128, 64, 8, 2, True, 1)]
    short = [c for c in found if c.block_m <= power_of_two(p.queries, 64)]
    return bounded_configs(short or found[-1:], lambda c: p.written_out(
        c, 1, 1, loops_over_keys(p, c), target), target)[:count]
