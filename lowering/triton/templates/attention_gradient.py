"""The gradient of attention: scores are computed again from the sums that `forward` kept.

Two launches. The first gives dq by blocks of queries, and for each row the product of dout and out
(`products`), which the second needs; that gives dk and dv by blocks of keys. Nothing is added by
two programs: the result does not depend on their order.

`backward_in_one` computes the scores once, five products instead of seven, and adds to dq from all
blocks of keys: the last bits of dq differ from run to run.
"""

from __future__ import annotations

from dataclasses import replace

from functrans.core.record import Record
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.attention import (
    QUERY_BLOCK,
    SCORES,
    SPANS,
    WALK,
    AttentionConfig,
    AttentionProblem,
    AttentionTile,
    Heads,
    any_flag_pointers,
    bounded_configs,
    constants,
    extra_pointers,
    launch,
    loops_over_keys,
    set_any_flags,
    source,
    tile,
)
from functrans.lowering.triton.templates.kernel import (
    TYPES,
    Argument,
    Expression,
    TemplateKernel,
    pointer,
)

__all__ = ["AttentionGradientProblem", "backward", "backward_in_one", "dk_dv_configs", "dq_configs",
           "in_one_configs"]


class AttentionGradientProblem(Record):
    """The tensors of a gradient, all but q, k, v and out, which `attention` has.

    dbias, if it is asked for, has all of (batch, heads, queries, keys): sum what is broadcast. What
    causality leaves out is not written: fill it with 0 before. The scales of dq and dk are that of
    the scores where they are not given. So many `any_flags` become 1 where dq is not finite.
    """

    attention: AttentionProblem
    dout: Heads
    dq: Heads
    dk: Heads
    dv: Heads
    dbias: Heads | None = None
    dq_scale: float | None = None
    dk_scale: float | None = None
    any_flags: int = 0

    def scaled(self, name: str, value: str) -> str:
        """The text of dq or dk from that of a sum."""
        scale = getattr(self, f"{name}_scale")
        return f"{value} * {self.attention.scale if scale is None else scale}"


SHORT = 1024
"""Rows of queries up to which a loop of its own costs more than the tests that it saves: dk and dv
of 8 x 16 x 1024 x 64 take 101 us in one loop, 108 in two; out 63 and 60, dq 71 and 69."""
LOW = -1e8
"""Scores below are those of keys that are not to be seen."""

DQ = QUERY_BLOCK + '''BASES
x = ROUNDED(LOAD_Q)
dy = LOAD_DOUT
first_row = tl.cast(b * heads + head, tl.int64) * queries
product = tl.sum(dy.to(tl.float32) * LOAD_OUT.to(tl.float32), 1)
tl.store(products + first_row + rows, product, mask=rows < queries)
dy = ROUNDED(dy)
sum_of_row = tl.load(sums + first_row + rows, mask=rows < queries, other=float('inf'))
if EMPTY_ROWS:
    sum_of_row = tl.where(sum_of_row == float('-inf'), EMPTY_SUM, sum_of_row)
acc = tl.full((BLOCK_M, SIZE), 0, dtype=tl.float32)
''' + WALK + '''STORE_DQ
MARKS
'''

DQ_STEP = '''
y = ROUNDED(LOAD_K)
s = tl.dot(x, y, input_precision=PRECISION)
dp = tl.dot(dy, ROUNDED(LOAD_V), input_precision=PRECISION)
SCORES
if FOLDED:
    p = tl.exp2(s * (SCALE * LOG2_E) - sum_of_row[:, None])
else:
    p = tl.exp2(s - sum_of_row[:, None])
if HAS_LOW_ROWS:
    p = tl.where((sum_of_row < LOW)[:, None], 1 / keys, p)
ds = p * (dp - product[:, None])
if HIDES:
    ds = tl.where(seen, ds, 0)
if BIAS_GRADIENT:
    STORE_DBIAS
acc = tl.dot(ROUNDED(ds.to(K_TYPE)), tl.trans(y), acc, input_precision=PRECISION)
'''

DK_DV = '''
if CAUSAL and PERSISTENT:
    block = place // (key_heads * batch)
    key_head = place % key_heads
    b = place // key_heads % batch
else:
    block = place % blocks
    key_head = place // blocks % key_heads
    b = place // blocks // key_heads
start = block * BLOCK_N
cols = tl.arange(0, BLOCK_N)
lines = tl.arange(0, BLOCK_M)
KEY_BASES
x = ROUNDED(LOAD_K)
y = ROUNDED(LOAD_V)
dk_acc = tl.full((BLOCK_N, SIZE), 0, dtype=tl.float32)
dv_acc = tl.full((BLOCK_N, VALUE_SIZE), 0, dtype=tl.float32)
if CAUSAL:
    first = tl.maximum(start - offset, 0) // BLOCK_M * BLOCK_M
    free = tl.cdiv(tl.maximum(start + BLOCK_N - 1 - offset, 0), BLOCK_M) * BLOCK_M
    free = tl.maximum(tl.minimum(free, tl.cdiv(queries, BLOCK_M) * BLOCK_M), first)
else:
    first = 0
    free = 0
if SHARED > 1:
    for shared in range(SHARED):
        head = key_head * SHARED + shared
        HEAD
else:
    head = key_head
    HEAD
STORE_DK
STORE_DV
'''

# the loop with tests comes last: before the other one, ptxas runs all products one by one
HEAD = '''
QUERY_BASES
first_row = tl.cast(b * heads + head, tl.int64) * queries
if ALSO_DQ and not CAUSAL:
    # blocks start at rows of their own: they do not wait for each other to add
    rounded = tl.cdiv(queries, BLOCK_M) * BLOCK_M
    for turn in range(0, rounded, BLOCK_M):
        row = (turn + start // BLOCK_M * BLOCK_M) % rounded
        FREE_STEP
elif CAUSAL and ONE_LOOP:
    for row in range(first, queries, BLOCK_M):
        BOUND_STEP
else:
    for row in range(free, queries, BLOCK_M):
        FREE_STEP
if CAUSAL and not ONE_LOOP:
    for row in range(first, free, BLOCK_M):
        BOUND_STEP
'''

# The tile is transposed: keys by queries; rows of queries that are not there have weight 0. What is
# taken away from the columns is where sums of products start, which takes fewer registers: 165 of a
# thread, not 216, so that three programs share a multiprocessor and not two. Exponentials are taken
# while the second product runs (bfloat16, size 64: 384 TFLOP/s, not 325).
DK_DV_STEP = '''
rows = row + lines
z = ROUNDED(LOAD_Q)
dz = ROUNDED(LOAD_DOUT)
sum_of_row = tl.load(sums + first_row + rows, mask=rows < queries, other=float('inf'))
if EMPTY_ROWS:
    sum_of_row = tl.where(sum_of_row == float('-inf'), EMPTY_SUM, sum_of_row)
product = tl.load(products + first_row + rows, mask=rows < queries, other=0)
if FOLDED:
    less = tl.broadcast_to((sum_of_row * (-1 / (SCALE * LOG2_E)))[None, :], (BLOCK_N, BLOCK_M))
    s = tl.dot(x, z, less, input_precision=PRECISION)
else:
    s = tl.dot(x, z, input_precision=PRECISION)
dp = tl.dot(y, tl.trans(dz), tl.broadcast_to(-product[None, :], (BLOCK_N, BLOCK_M)),
            input_precision=PRECISION)
SCORES
if FOLDED:
    p = tl.exp2(s * (SCALE * LOG2_E))
else:
    p = tl.exp2(s - sum_of_row[None, :])
if HAS_LOW_ROWS:
    p = tl.where((sum_of_row < LOW)[None, :], 1 / keys, p)
ds = p * dp
if HIDES:
    ds = tl.where(seen, ds, 0)
dv_acc = tl.dot(ROUNDED(p.to(DOUT_TYPE)), dz, dv_acc, input_precision=PRECISION)
dk_acc = tl.dot(ROUNDED(ds.to(Q_TYPE)), tl.trans(z), dk_acc, input_precision=PRECISION)
if ALSO_DQ:
    part = tl.dot(ROUNDED(tl.trans(ds.to(K_TYPE))), x, input_precision=PRECISION)
    ADD_DQ
'''

BLOCK_OF_ROWS = '''
block = place % blocks
head = place // blocks % heads
b = place // blocks // heads
row = block * BLOCK_M
rows = row + tl.arange(0, BLOCK_M)
BASES
'''

PREPARE = BLOCK_OF_ROWS + '''product = tl.sum(LOAD_DOUT.to(tl.float32) * LOAD_OUT.to(tl.float32), 1)
first_row = tl.cast(b * heads + head, tl.int64) * queries
tl.store(products + first_row + rows, product, mask=rows < queries)
STORE_ZERO
'''

ROUND = BLOCK_OF_ROWS + '''STORE_DQ
'''


def backward(g: AttentionGradientProblem, dq: AttentionConfig, dk_dv: AttentionConfig,
             name: str = "attention_gradient",
             target: Target = HOPPER) -> list[TemplateKernel]:
    """The launches; `products` is float32 like `sums`, written by the first."""
    return [_dq(g, dq, f"{name}_q", target), _dk_dv(g, dk_dv, f"{name}_kv", target)]


def backward_in_one(g: AttentionGradientProblem, config: AttentionConfig,
                    name: str = "attention_gradient",
                    target: Target = HOPPER) -> list[TemplateKernel]:
    """Three launches that share `dq_sums`, float32, contiguous (batch, heads, queries, size)."""
    p = g.attention
    assert g.dbias is None
    sums = _dq_sums(p, config)
    rows = AttentionConfig(64, 64, 4, 1)
    dout, out, dq = (tile(p, n, h, "BLOCK_M", rows) for n, h in (
        ("dout", g.dout), ("out", p.out), ("dq", g.dq)))
    bound = p.queries % rows.block_m != 0
    values = constants(p, rows) | {"LENGTH": Expression("queries"), "BLOCK": rows.block_m,
                                   "PLACES": Expression("heads")}
    programs = -(-p.queries // rows.block_m) * p.heads * p.batch
    plain = replace(sums, descriptor=False)
    made = []
    for k, (body, tiles, pointers) in enumerate((
            (PREPARE, [dout, out, plain], [
                *_pointers(g, "dout", "out"), pointer("products", "fp32"),
                pointer("dq_sums", "fp32")]),
            (ROUND, [plain, dq], [pointer("dq_sums", "fp32"), *_pointers(g, "dq")]))):
        numbers, bases = source(replace(p, bias=None, mask=None), tiles)
        for line, reads in (("LOAD_DOUT", dout), ("LOAD_OUT", out)):
            body = body.replace(line, reads.load("row", "rows", bound))
        zero = "tl.full((BLOCK_M, SIZE), 0, dtype=tl.float32)"
        rounded = g.scaled("dq", plain.load("row", "rows", bound))
        blocks = {"DESCRIBE": [], "BODY": [body], "BASES": bases,
                  "STORE_ZERO": [plain.store("row", "rows", zero)],
                  "STORE_DQ": [dq.store("row", "rows", rounded)]}
        made.append(launch(f"{name}_{('prepared', 'rounded')[k]}", (*pointers, *numbers), values,
                            blocks, programs, rows, target))
    return [made[0], _dk_dv(g, config, f"{name}_all", target, True), made[1]]


def _dq_sums(p: AttentionProblem, config: AttentionConfig) -> AttentionTile:
    heads = Heads("fp32", p.heads * p.queries * p.size, p.queries * p.size, p.size)
    made = tile(p, "q", heads, "BLOCK_M", config)
    return replace(made, name="dq_sums")


def _dq(g: AttentionGradientProblem, config: AttentionConfig, name: str,
        target: Target) -> TemplateKernel:
    p = g.attention
    q, k, v, out, dout, dq = (tile(p, n, h, block, config) for n, h, block in (
        ("q", p.q, "BLOCK_M"), ("k", p.k, "BLOCK_N"), ("v", p.v, "BLOCK_N"),
        ("out", p.out, "BLOCK_M"), ("dout", g.dout, "BLOCK_M"), ("dq", g.dq, "BLOCK_M")))
    # what is read once a block needs no descriptor
    out, dq = replace(out, descriptor=False), replace(dq, descriptor=False)
    tiles = [q, k, v, out, dout, dq]
    numbers, bases = source(p, tiles)
    dbias = None
    if g.dbias is not None:
        dbias = AttentionTile("dbias", g.dbias, "BLOCK_M", "BLOCK_N", "keys", "queries", False,
                              False, False)
        numbers += dbias.strides
        bases.append(dbias.based)
    arguments = (*_pointers(g, "q", "k", "v"), *extra_pointers(p), *_pointers(g, "out", "dout"),
                 pointer("sums", "fp32"), pointer("products", "fp32"), *_pointers(g, "dq"),
                 *([pointer("dbias", g.dbias.dtype)] if g.dbias is not None else []),
                 *any_flag_pointers(g.any_flags), *numbers)
    values = constants(p, config) | _of_low_rows(p) | {
        "ROWS": Expression("rows[:, None]"), "COLS": Expression("cols[None, :]"),
        "BIAS_GRADIENT": dbias is not None, "LENGTH": Expression("queries"),
        "BLOCK": config.block_m, "PLACES": Expression("heads")}
    bound_rows = p.queries % config.block_m != 0

    def step(bound: bool) -> list[str]:
        cut = bound and not values["KEYS_EVEN"]
        text = DQ_STEP.replace("LOAD_K", k.load("start", "(start + cols)", cut, True))
        text = text.replace("LOAD_V", v.load("start", "(start + cols)", cut, True))
        if g.dbias is not None:
            col = "start + cols" if g.dbias.col == 1 else "(start + cols) * dbias_col"
            text = text.replace("STORE_DBIAS", (
                f"tl.store(dbias_base + (WIDE(rows) * dbias_row)[:, None] + ({col})[None, :], "
                f"ds.to({TYPES[g.dbias.dtype]}), "
                f"mask=(rows < queries)[:, None] & (start + cols < keys)[None, :])"))
        return [text.replace("SCORES", SCORES.strip("\n")).replace("BOUND", str(bound))]

    body = DQ.replace("LOAD_Q", q.load("row", "rows", bound_rows))
    body = body.replace("LOAD_DOUT", dout.load("row", "rows", bound_rows))
    body = body.replace("LOAD_OUT", out.load("row", "rows", bound_rows))
    blocks = {"DESCRIBE": [t.described for t in tiles if t.descriptor], "BODY": [body],
              "BASES": bases, "SPANS": [SPANS], "FREE_STEP": step(False), "BOUND_STEP": step(True),
              "STORE_DQ": [dq.store("row", "rows", g.scaled("dq", "acc"))],
              "MARKS": set_any_flags(
                  g.any_flags, "(rows * 0)[:, None] + tl.arange(0, SIZE)[None, :] * 0",
                  "(rows < queries)[:, None] & ((tl.abs(acc) < float('inf')) == 0)")}
    programs = -(-p.queries // config.block_m) * p.heads * p.batch
    return launch(name, arguments, values, blocks, programs, config, target, p.flops(2, 1))


def _dk_dv(g: AttentionGradientProblem, config: AttentionConfig, name: str, target: Target,
           also_dq: bool = False) -> TemplateKernel:
    p = g.attention
    q, k, v, dout, dk, dv = (tile(p, n, h, block, config) for n, h, block in (
        ("q", p.q, "BLOCK_M"), ("k", p.k, "BLOCK_N"), ("v", p.v, "BLOCK_N"),
        ("dout", g.dout, "BLOCK_M"), ("dk", g.dk, "BLOCK_N"), ("dv", g.dv, "BLOCK_N")))
    dk, dv = replace(dk, descriptor=False), replace(dv, descriptor=False)
    sums = _dq_sums(p, config)
    tiles = [q, k, v, dout, dk, dv, *[sums] * also_dq]
    numbers, bases = source(p, tiles)
    keyed = [t.based for t in tiles if t.shared and not t.descriptor]
    arguments = (*_pointers(g, "q", "k", "v"), *extra_pointers(p), *_pointers(g, "dout"),
                 pointer("sums", "fp32"), pointer("products", "fp32"),
                 *_pointers(g, "dk", "dv"), *[pointer("dq_sums", "fp32")] * also_dq, *numbers)
    values = constants(p, config) | _of_low_rows(p) | {
        "ROWS": Expression("rows[None, :]"), "COLS": Expression("cols[:, None]"),
        "DOUT_TYPE": Expression(TYPES[g.dout.dtype]), "LENGTH": Expression("keys"),
        "BLOCK": config.block_n, "PLACES": Expression("key_heads"), "ALSO_DQ": also_dq}

    def step(bound: bool) -> list[str]:
        text = DK_DV_STEP.replace("LOAD_Q", q.load("row", "rows", p.queries % config.block_m != 0,
                                                   True))
        text = text.replace("LOAD_DOUT", dout.load("row", "rows", p.queries % config.block_m != 0))
        # keys that are not there have rows of their own, which are not stored
        scores = SCORES.replace("(start + COLS < keys) & (start + COLS <=", "(start + COLS <=")
        edge = not constants(p, config)["KEYS_EVEN"]
        scores = scores.replace("there = ROWS < queries", (
            "there = (ROWS < queries) & (start + COLS < keys)" if edge else
            "there = ROWS < queries"))
        return [text.replace("SCORES", scores.strip("\n")).replace("BOUND", str(bound))]

    bound_keys = p.keys % config.block_n != 0
    body = DK_DV.replace("LOAD_K", k.load("start", "(start + cols)", bound_keys))
    body = body.replace("LOAD_V", v.load("start", "(start + cols)", bound_keys))
    blocks = {"DESCRIBE": [t.described for t in tiles if t.descriptor], "BODY": [body],
              "HEAD": [HEAD], "KEY_BASES": keyed, "ADD_DQ": [sums.add("row", "rows", "part")],
              "QUERY_BASES": [line for line in bases if line not in keyed],
              "FREE_STEP": step(False), "BOUND_STEP": step(True),
              "STORE_DK": [dk.store("start", "(start + cols)", g.scaled("dk", "dk_acc"))],
              "STORE_DV": [dv.store("start", "(start + cols)", "dv_acc")]}
    programs = -(-p.keys // config.block_n) * p.key_heads * p.batch
    return launch(name, arguments, values, blocks, programs, config, target,
                  p.flops(2 + also_dq, 2))


def _of_low_rows(p: AttentionProblem) -> dict[str, object]:
    """What rows need that see nothing, or only keys whose scores are very low.

    The logarithm of their sum is that score: nothing is left of the number of keys, which all have
    one weight.
    """
    return {"EMPTY_SUM": Expression("float('inf')" if p.empty_is_zero else "float('nan')"),
            "HAS_LOW_ROWS": p.is_filled or p.bias is not None, "LOW": LOW,
            "HIDES": p.mask is not None and p.selected and (
                p.is_filled or not p.empty_is_zero)}


def _pointers(g: AttentionGradientProblem, *names: str) -> list[Argument]:
    of = {"q": g.attention.q, "k": g.attention.k, "v": g.attention.v, "out": g.attention.out,
          "dout": g.dout, "dq": g.dq, "dk": g.dk, "dv": g.dv}
    return [pointer(n, of[n].dtype, of[n].aligned) for n in names]


def dq_configs(g: AttentionGradientProblem, count: int = 6,
               target: Target = HOPPER) -> list[AttentionConfig]:
    p = g.attention
    return bounded_configs(_configs(g, False), lambda c: p.written_out(
        c, 2, 1, loops_over_keys(p, c), target), target)[:count]


def dk_dv_configs(g: AttentionGradientProblem, count: int = 6,
                  target: Target = HOPPER) -> list[AttentionConfig]:
    p = g.attention
    return bounded_configs(_configs(g, True), lambda c: p.written_out(
        c, 2, 2, 2 if p.causal and not c.one_loop else 1, target), target)[:count]


def in_one_configs(g: AttentionGradientProblem, count: int = 6) -> list[AttentionConfig]:
    """Configurations of `backward_in_one`, for float16 and bfloat16."""
    if max(g.attention.size, g.attention.value_size) <= 64:
        found = [AttentionConfig(64, 128, 8, 2, True), AttentionConfig(64, 128, 8, 2),
                 AttentionConfig(64, 64, 4, 2, True),
                 AttentionConfig(64, 64, 4, 2), AttentionConfig(128, 64, 8, 2, True),
                 AttentionConfig(64, 128, 8, 2, True, 1)]
    else:
        found = [AttentionConfig(64, 64, 8, 2, True), AttentionConfig(64, 64, 8, 2),
                 AttentionConfig(32, 128, 8, 2, True),
                 AttentionConfig(64, 128, 8, 2, True)]
    return found[:count]


def _configs(g: AttentionGradientProblem, keys: bool) -> list[AttentionConfig]:
    p = g.attention
    width = p.width
    if p.q.dtype == "fp32" and p.precision != "tf32" and width > 128:
        # of 168 features at "highest" and 32 x 32 threads of 8 warps keep 376 numbers in memory
        # for dq, of 16 x 16 52; for dk and dv of 16 x 32 none
        found = [AttentionConfig(16, 32, 8, 1, one_loop=True),
                 AttentionConfig(16, 16, 8, 1, one_loop=True)]
        if not keys and p.precision == "ieee":
            found.reverse()
    elif p.q.dtype == "fp32":
        found = [AttentionConfig(32, 32, 4, 1),
                 AttentionConfig(32, 64, 8, 1) if keys else AttentionConfig(64, 32, 8, 1)]
        if width <= 64 and p.precision != "ieee":
            found = [AttentionConfig(64, 64, 8, 1), *reversed(found)]
    elif width <= 64:
        found = [AttentionConfig(64, 64, 4, 3), AttentionConfig(32, 64, 4, 3),
                 AttentionConfig(64, 64, 4, 2),
                 AttentionConfig(64, 128, 8, 2), AttentionConfig(32, 128, 8, 3),
                 AttentionConfig(64, 64, 4, 2, True)]
        if not keys:
            found = [AttentionConfig(64, 64, 4, 3), AttentionConfig(128, 64, 8, 3),
                     AttentionConfig(64, 32, 4, 3),
                     AttentionConfig(64, 64, 4, 2), AttentionConfig(128, 64, 8, 2),
                     AttentionConfig(64, 64, 4, 2, True)]
        elif p.causal and p.queries <= SHORT:
            found = [AttentionConfig(32, 64, 4, 3, one_loop=True),
                     AttentionConfig(64, 64, 4, 3, one_loop=True), *found]
    elif width <= 128:
        found = [AttentionConfig(64, 128, 8, 3), AttentionConfig(64, 64, 4, 2),
                 AttentionConfig(32, 64, 4, 3),
                 AttentionConfig(64, 128, 8, 2)]
        if not keys:
            found = [AttentionConfig(128, 64, 8, 3), AttentionConfig(64, 64, 4, 2),
                     AttentionConfig(64, 32, 4, 3),
                     AttentionConfig(128, 64, 8, 2)]
    else:
        found = [AttentionConfig(32, 64, 8, 1), AttentionConfig(64, 64, 8, 1)] if keys else [
            AttentionConfig(64, 32, 8, 1), AttentionConfig(64, 64, 8, 1)]
    return found
