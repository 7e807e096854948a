"""Products of matrices that one program computes, as a phase of a loop.

Few rows are computed as columns, so that tensor cores multiply 8 of them at once and not 16. Of a
second matrix that is constant, parts stay in registers and in shared memory for the whole loop: a
multiprocessor reads 100 bytes a nanosecond from the second-level cache, and 220 from its own.
"""

from __future__ import annotations

from functrans.lowering.triton.templates import matmul
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    TYPES,
    Argument,
    Expression,
    TemplateKernel,
    expand,
    pointer,
    power_of_two,
    stored_as,
)
from functrans.lowering.triton.templates.matmul import MatmulConfig, MatmulProblem

__all__ = ["HELD_BYTES", "HELD_REGISTERS", "MOST_COLUMNS", "kernels", "single_program_config"]

STAGED_BYTES = 96 << 10  # of shared memory, of the tiles that are on their way
HELD_REGISTERS, HELD_SHARED = 128 << 10, 128 << 10  # bytes of what is held, at most
HELD_BYTES = HELD_REGISTERS + HELD_SHARED
OTHER_SHARED = 20 << 10  # bytes for rows and results that change their layout
MOST_ROWS, MOST_COLUMNS = 32, 256
BLOCK_K = 64  # places of the sum in a tile
WARPS = 8
TENSOR_CORE_ROWS = 16

TRANSPOSED = '''
@triton.jit
def NAME():
    at_m = tl.arange(0, BLOCK_M)
    at_n = tl.arange(0, BLOCK_N)
    at_k = tl.arange(0, BLOCK_K)
    rows = at_m[None, :]
    cols = at_n[:, None]
    x_tile = a + (at_k[:, None] * A_COL + rows * A_ROW)
    y_tile = b + (at_k[None, :] * B_ROW + cols * B_COL)
    LOAD_PARTS
    ADD_PARTS
    for step in range(HELD, STEPS):
        done = step * BLOCK_K
        LOAD_X
        if EVEN_N and EVEN_K:
            y = tl.load(y_tile + done * B_ROW)
        else:
            y = tl.load(y_tile + done * B_ROW, other=0,
                        mask=(cols < n) & (done + at_k < k)[None, :])
        y = ROUNDED(y)
        acc = tl.dot(y, x, acc, input_precision=PRECISION, out_dtype=SUMS)
    if EVEN_M and EVEN_N:
        inside = None
    else:
        inside = (rows < m) & (cols < n)
    b0 = 0
    b1 = 0
    EPILOGUE
    if STORES:
        tl.store(c + (rows * C_ROW + cols * C_COL), RESULT, mask=inside)
'''

LOAD_X = '''
if EVEN_M and EVEN_K:
    x = tl.load(x_tile + done * A_COL)
else:
    x = tl.load(x_tile + done * A_COL, mask=(rows < m) & (done + at_k < k)[:, None], other=0)
x = ROUNDED(x)
'''

# all are on their way before the first is waited for
LOAD_PART = '''
done = {part} * BLOCK_K
LOAD_X
x{part} = x
'''

# what a loop keeps of the second matrix
HOLD = '''
@triton.jit
def NAME():
    at_k = tl.arange(0, BLOCK_K) + part * BLOCK_K
    cols = tl.arange(0, BLOCK_N)[:, None]
    if EVEN_N and EVEN_K:
        x = tl.load(b + (at_k[None, :] * B_ROW + cols * B_COL))
    else:
        x = tl.load(b + (at_k[None, :] * B_ROW + cols * B_COL), other=0,
                    mask=(cols < n) & (at_k < k)[None, :])
    return (fm.tf32(x) if part < KEPT else fm.tf32_once(x)) if ROUNDS else x
'''

# a use behind the loop: a value with one use, in the loop, would be moved there, from shared memory
RELEASE = '''
@triton.jit
def NAME():
    x = tl.full((BLOCK_K, BLOCK_M), 0, A_TYPE) + tl.program_id(0).to(A_TYPE)
    acc = tl.dot(held, x, input_precision=PRECISION, out_dtype=SUMS)
    at = tl.arange(0, BLOCK_N)[:, None] + tl.arange(0, BLOCK_M)[None, :]
    tl.store(b + at, acc.to(A_TYPE), mask=at + tl.program_id(0) < 0)
'''


def _sums(parts: list[str]) -> list[str]:
    """The products of what is held, as two sums: each waits for the term before."""
    dot = "tl.dot({name}, x{k}, {so_far}input_precision=PRECISION, out_dtype=SUMS)"
    names = ["acc", "more"][:max(1, len(parts))]
    lines = [] if parts else ["acc = tl.full((BLOCK_N, BLOCK_M), 0, dtype=SUMS)"]
    for k, part in enumerate(parts):
        name = names[k % 2]
        so_far = f"{name}, " if k > 1 else ""
        lines.append(f"{name} = {dot.format(name=part, k=k, so_far=so_far)}")
    return [*lines, *["acc += more"] * (len(parts) > 1)]


def single_program_config(p: MatmulProblem) -> MatmulConfig:
    """The configuration of a product that one program computes."""
    if _needs_transpose(p):
        size = BYTES[p.a.dtype]
        block_k = min(BLOCK_K * 4 // size, power_of_two(p.k))
        stage = power_of_two(p.n) * block_k * size
        return MatmulConfig(power_of_two(p.m, 8), power_of_two(p.n), block_k, WARPS,
                            max(1, min(3, STAGED_BYTES // stage)), descriptors=False)
    block_m = min(power_of_two(p.m), 64)
    block_n = min(power_of_two(p.n), 4096 // block_m)
    block_k = min(power_of_two(p.k, 32), 128 // BYTES[p.a.dtype])
    stage = (block_m + block_n) * block_k * BYTES[p.a.dtype]
    warps = 8 if block_n >= 128 else 4
    return MatmulConfig(block_m, block_n, block_k, warps, max(1, min(4, STAGED_BYTES // stage)),
                        descriptors=False)


def _needs_transpose(p: MatmulProblem) -> bool:
    exact = p.a.dtype == "fp64" or (p.a.dtype == "fp32" and p.precision != "tf32")
    return p.batches == 1 and p.m <= MOST_ROWS and p.n <= MOST_COLUMNS and p.k > 0 and not exact


def kernels(p: MatmulProblem, config: MatmulConfig, shared: int) -> list[TemplateKernel]:
    """The launch of a product in one program, which has so many bytes of shared memory."""
    if not _needs_transpose(p):
        return matmul.kernels(p, config)
    steps = -(-p.k // config.block_k)
    tile = config.block_n * config.block_k * BYTES[p.a.dtype]
    # a warp has 16 rows at least: warps beside those that have all of them hold the same again
    spread = config.warps * max(config.block_n // config.warps, TENSOR_CORE_ROWS)
    kept = HELD_REGISTERS // (spread * config.block_k * BYTES[p.a.dtype])
    room = min(HELD_SHARED, shared - OTHER_SHARED)
    held = min(steps, kept + room // tile)
    if held < steps:  # the tiles that are on their way are in shared memory, too
        held = kept + max(0, room - config.stages * tile) // tile
    constants: dict[str, object] = {
        "BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k,
        "EVEN_M": p.m == config.block_m, "EVEN_N": p.n == config.block_n,
        "EVEN_K": p.k % config.block_k == 0, "HELD": held, "STEPS": steps,
        "KEPT": kept,
        "PRECISION": p.precision, "ROUNDS": p.rounds, "SUMS": Expression(TYPES[p.sums]),
        "A_TYPE": Expression(TYPES[p.a.dtype]),
        "RESULT": stored_as(p.epilogue, p.c.dtype),
        "STORES": p.epilogue.result is not None, "m": p.m, "n": p.n, "k": p.k,
        **{f"{q.upper()}_{d.upper()}": getattr(op, d)
           for q, op in zip("abc", (p.a, p.b, p.c)) for d in ("row", "col")}}
    arguments = (pointer("a", p.a.dtype, p.a.aligned), pointer("b", p.b.dtype, p.b.aligned),
                 pointer("c", p.c.dtype, p.c.aligned), *p.epilogue.arguments)
    parts = tuple([Argument(f"{'kept' if part < kept else 'held'}{part}", "")
                   for part in range(held)])
    blocks = {"LOAD_PARTS": [LOAD_PART.format(part=k) for k in range(held)],
              "ADD_PARTS": _sums([x.name for x in parts]),
              "LOAD_X": [LOAD_X], "EPILOGUE": p.epilogue.lines}
    text = expand(TRANSPOSED, "product", (*arguments, *parts), constants, blocks)
    for template, name, first in ((HOLD, "hold", "part"), (RELEASE, "release", "held")):
        more = expand(template, name, (Argument("b", ""), Argument(first, "")), constants)
        text += "\n\n" + more[more.index("@triton.jit"):]
    return [TemplateKernel("product", text, arguments, (1, 1, 1), config.warps, config.stages)]
