"""Many products of small matrices, of sizes that are known: unrolled, a row of c to a vector.

The library is told the sizes when it runs, and finds its way for every product. Measured in one
thread, ns for one product of float32 (library, unrolled): 2 x 2: 12, 1.5; 4 x 4: 20, 3.9; 8 x 8:
16, 7; 8 x 8 with the second one transposed: 58, 12; 16 x 16: no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functrans.lowering.c.expressions import CodeScope, ctype
from functrans.lowering.loops.call import Gemm
from functrans.lowering.loops.tensor import ITEM_SIZES
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.epilogues import FusedGemm

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["suits_unrolling", "write_unrolled"]

# Sizes of the matrices, and how many there must be: code for fewer would not pay for its compiling.
MOST, LEAST_BATCH = 16, 64
MOST_STEPS = 128  # multiply-adds of vectors: longer code is no faster than the library's loops


def suits_unrolling(call: Gemm, out: FunctionWriter) -> bool:
    """Whether a product is a batch of small ones that vectors can read row by row."""
    f, isa = call.fields, out.prelude.isa
    a, b, c = (*call.operands[:2], call.results[0])
    if isinstance(call, FusedGemm) or not isa.fma or a.dtype not in ("f32", "f64") or not (
            a.dtype == b.dtype == c.dtype):
        return False
    if not all(isinstance(n, int) for n in f.values()):
        return False
    m, n, k = f["m"], f["n"], f["k"]
    by_rows = f["b_col"] == 1 or (f["b_row"] == 1 and k <= lanes_for(n))
    return (2 <= n <= MOST and 1 <= m <= MOST and 1 <= k <= MOST and m * k <= MOST_STEPS
            and lanes_for(n) * ITEM_SIZES[a.dtype] <= isa.vector_bytes
            and by_rows and f["c_col"] == 1 and f["batch0"] * f["batch1"] >= LEAST_BATCH)


def lanes_for(n: int) -> int:
    """Lanes of the narrowest vector that holds a row of n elements."""
    return next((w for w in (4, 8) if w >= n), 16)


def write_unrolled(call: Gemm, out: FunctionWriter) -> None:
    """Write the function of a batch of products, and its call."""
    p, f = out.prelude, call.fields
    a, b, c = (*call.operands[:2], call.results[0])
    dtype, m, n, k = a.dtype, f["m"], f["n"], f["k"]
    lanes = lanes_for(n)
    count = None if lanes == n else str(n)
    vector, scalar = p.vtype(dtype, lanes), ctype(dtype)
    fma = p.function("fma", dtype, lanes)
    body = CodeScope("    ")
    for name, kind in (("a", f"const {scalar}"), ("b", f"const {scalar}"), ("c", scalar)):
        at = f"t / {f['batch1']} * {f[f'{name}_batch0']} + t % {f['batch1']} * " \
             f"{f[f'{name}_batch1']}" if f["batch0"] != 1 else f"t * {f[f'{name}_batch1']}"
        body.line(f"{kind} *{name} = ({kind} *)p[{'abc'.index(name)}] + {at};")
    step, by_column = f["b_row"], f["b_col"] != 1
    if by_column:
        step = lanes
        body.line(f"{scalar} turned[{lanes * lanes}] __attribute__((aligned(64)));")
        full = n == k == lanes
        sizes = "" if full else f", {n}, {k}"
        body.line(f"{p.transpose(dtype, lanes, not full)}(b, {f['b_col']}, turned, {lanes}"
                  f"{sizes});")
    for row in range(k):
        text = p.load(dtype, lanes, f"{'turned' if by_column else 'b'} + {row * step}", count)
        body.line(f"const {vector} b{row} = {text};")
    for i in range(m):
        spread = [p.broadcast(dtype, lanes, f"a[{i * f['a_row'] + j * f['a_col']}]")
                  for j in range(k)]
        total = p.op("mul", (dtype, dtype), (spread[0], "b0"), lanes)
        body.line(f"{vector} c{i} = {total};")
        for j in range(1, k):
            body.line(f"c{i} = {fma}({spread[j]}, b{j}, c{i});")
        body.line(p.store(dtype, lanes, f"c + {i * f['c_row']}", f"c{i}", count) + ";")
    name = out.module.kernel_name(
        "static void NAME(void *arg, i64 begin, i64 end) {\n  void *const *p = arg;\n"
        f"  for (i64 t = begin; t < end; t++) {{\n{body.text()}  }}\n}}\n")
    batch = f["batch0"] * f["batch1"]
    one = m * (k + 2) * lanes // 4
    places = [f"({scalar} *){out.where[t]} + {out.size(offset)}"
              for t, offset in ((a, call.a_offset), (b, call.b_offset), (c, 0))]
    out.line(f"{{ void *p[] = {{{', '.join(places)}}}; if (ft_run(ctx, {name}, p, {batch}, "
             f"{max(1, SERVER.grain_work // one)}, {batch * one})) return 1; }}")
    out.work += batch * one
