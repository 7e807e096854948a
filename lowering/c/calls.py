"""The C text of calls: products and their chains, host and library functions; `bodies` has loops.

`prepare_call` runs before memory is planned: it writes the bodies of loops and says how much memory
a call needs besides its operands. `write_call` writes the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Dim, Size
from functrans.core.record import Record
from functrans.lowering.c.expressions import (
    C_TYPES,
    CodeScope,
    ExprWriter,
    KernelText,
    Scratch,
    ctype,
    size_text,
)
from functrans.lowering.c.interface import CONV, GEMM
from functrans.lowering.c.kernel import CKernelWriter, write_kernel
from functrans.lowering.c.row_reductions import RowReduction
from functrans.lowering.loops.expr import Expr, Range
from functrans.lowering.loops.index import Index, unflatten
from functrans.lowering.loops.tensor import (
    ITEM_SIZES,
    Call,
    CLibraryCall,
    Conv,
    Gemm,
    HostCall,
    Tensor,
    item_size,
)
from functrans.lowering.memory.arena import Block, plan_arena
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel, Member

if TYPE_CHECKING:
    from functrans.lowering.c.prelude import Prelude
    from functrans.lowering.c.program import CModule, FunctionWriter
    from functrans.lowering.schedule.group import Schedule

__all__ = ["GEMM_TYPES", "ChainText", "declare_gemm", "gemm_lines", "gemm_work", "prepare_call",
           "suits_unrolling", "write_call", "write_chain", "write_epilogue", "write_unrolled"]


# --- The C text of matrix products, and of their epilogues
#
# An epilogue is a kernel over one tile of a product: it has the arguments that the library gives
# (csrc/gemm.h) instead of a range of rows, and reads the sums from the tile.

GEMM_TYPES = ("f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def declare_gemm(module: CModule) -> str:
    """Make the library's function known; its name in C."""
    module.declare(GEMM)
    return f"((int (*)(const ft_gemm *)){module.library('gemm')})"


def gemm_work(call: Gemm) -> Size:
    """The multiply-adds of a product."""
    f = call.fields
    return f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"]


def gemm_lines(call: Gemm, module: CModule, pointers: Callable[[Tensor], str],
               sizes: Mapping[str, Size], epilogue: KernelText | None = None, batch: str = "0",
               row: str = "0", failure: str = "return 2;") -> list[str]:
    """The statements of a product, or of a part of one.

    `pointers` gives where a tensor is, `sizes` replace those of the product. `batch` and `row` are
    the C expressions of where the part begins, if it does not begin at the beginning.
    """
    run = declare_gemm(module)
    f = {**call.fields, **sizes}
    names = module.sizes
    fields = [f".{name} = {size_text(n, names)}" for name, n in f.items()]
    lines = []
    a, b = call.operands[:2]
    parts = [("a", a, call.a_offset, True), ("b", b, call.b_offset, False)]
    if epilogue is None:
        parts.append(("c", call.results[0], 0, True))
    for name, t, offset, by_row in parts:
        place = f"(({C_TYPES[t.dtype]} *){pointers(t)}) + {size_text(offset, names)}"
        if batch != "0":
            outer, inner = f[f"{name}_batch0"], f[f"{name}_batch1"]
            count = size_text(call.fields["batch1"], names)
            place += f" + ({batch}) / {count} * {size_text(outer, names)}" \
                     f" + ({batch}) % {count} * {size_text(inner, names)}"
        if by_row and row != "0":
            place += f" + ({row}) * {size_text(f[f'{name}_row'], names)}"
        fields.append(f".{name} = {place}")
    fields.append(f".in_type = {GEMM_TYPES.index(a.dtype)}, .alpha = 1.0")
    out = call.product if isinstance(call, FusedGemm) else call.results[0]
    fields.append(f".out_type = {GEMM_TYPES.index(out.dtype)}")
    if epilogue is not None:
        first = f"({batch}) * {size_text(call.fields['m'], names)} + ({row})"
        lines.append(f"const i64 first = {first};")
        inputs = [t for t in epilogue.operands if isinstance(t, Tensor)]
        assert len(inputs) == len(epilogue.operands)  # no scratch: it reduces nothing
        given = ", ".join([*map(pointers, inputs), "(void *)z", "(void *)&first"])
        lines.append(f"void *e[] = {{{given}}};")
        name = module.kernel_name(epilogue.text)
        fields.append(f".epilogue = {name}, .epilogue_arg = e")
    lines.append(f"const ft_gemm m = {{{', '.join(fields)}}};")
    lines.append(f"if ({run}(&m)) {failure}")
    return lines


def write_epilogue(call: FusedGemm, schedule: Schedule, prelude: Prelude,
                   sizes: dict[str, str]) -> KernelText:
    """The C text of the epilogue of a product."""
    return _EpilogueWriter(call, schedule, prelude, sizes).write()


def sum_type(dtype: str) -> str:
    """The type of the sums in a tile."""
    if dtype in ("f32", "f64"):
        return dtype
    if dtype in ("f16", "bf16"):
        return "f32"
    return "i64" if dtype in ("i64", "u64") else "i32"


class _ProductTileWriter(ExprWriter):
    """Reads the product from the tile; rows and columns have the numbers of the whole matrix."""

    def __init__(self, owner: _EpilogueWriter) -> None:
        super().__init__(owner)
        self.product = owner.call.product
        self.sums = sum_type(self.product.dtype)
        self.is_kept = self.product in owner.call.results

    def _load(self, t: Tensor, place: Index, loop: CodeScope) -> str:
        if t is not self.product:
            return super()._load(t, place, loop)
        text = self.prelude.load(self.sums, self.lanes, f"sums + {self.i_text}", self.count)
        if self.sums != t.compute:
            text = self.prelude.convert(self.sums, t.compute, text, self.lanes)
        if self.is_kept:  # as others read it
            text = self.prelude.convert(t.compute, t.dtype, text, self.lanes)
        return text


class _EpilogueWriter(CKernelWriter):
    def __init__(self, call: FusedGemm, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> None:
        self.call = call
        super().__init__(call.kernel, schedule, prelude, sizes)

    def write(self) -> KernelText:
        self.writer = _ProductTileWriter(self)
        self.head = head = CodeScope("  ")
        body = CodeScope("    ")
        rows = self.writer.size(self.call.fields["m"])
        ctype = C_TYPES[self.writer.sums]
        body.line("for (i64 r = i0; r < i1; r++) {")
        body.line(f"  const i64 o = first + batch * {rows} + r;")
        body.line(f"  const {ctype} *sums = ({ctype} *)tile + (r - i0) * tile_row - j0;")
        inner = body.nested()
        self._row(inner)
        body.take(inner)
        body.line("}")
        text = self._finish(head, body, self.domain.rows)
        text.text = text.text.replace(
            "(void *arg, i64 begin, i64 end)", "(void *arg, i64 batch, i64 i0, i64 i1, i64 j0, "
            "i64 j1, const void *tile, i64 tile_row)", 1).replace(
            "(void)z;\n", f"(void)z;\n  const i64 first = *(i64 *)a[{len(self.operands) + 1}];\n",
            1)
        return text

    def _segments(self, members: list[Member],
                  facts: dict[Range, bool]) -> list[tuple[Size, Size]]:
        return [(0, self.domain.row)]

    def _ends(self, a: Size, b: Size) -> tuple[str, str, list[Size]]:
        return "j0", "j1", [self.domain.row]  # tiles have whole vectors, but for the row's end

    def _is_in_memory(self, t: Tensor) -> bool:
        return t is not self.call.product  # its sums are in the tile

    def _member(self, m: Member, e: Expr, stage: int, loop: CodeScope, fold: RowReduction | None,
                u: int,
                s: Any) -> None:
        product = self.call.product
        if m is self.kernel.members[0] and product in self.call.results:
            place = unflatten(self.kernel.places["full"], product.shape)
            self._store(product, self.operand(product),
                        self.writer.vector(s.read(product, place), loop), loop)
        super()._member(m, e, stage, loop, fold, u, s)


# --- Many products of small matrices, of sizes that are known: unrolled, a row of c to a vector
#
# The library is told the sizes when it runs, and finds its way for every product. Measured in one
# thread, ns for one product of float32 (library, unrolled): 2 x 2: 12, 1.5; 4 x 4: 20, 3.9; 8 x 8:
# 16, 7; 8 x 8 with the second one transposed: 58, 12; 16 x 16: no difference.

# Sizes of the matrices, and how many there must be: code for fewer would not pay for its compiling.
MOST, LEAST_BATCH = 16, 64
MOST_STEPS = 128  # multiply-adds of vectors: longer code is no faster than the library's loops
MOST_GATHERED = 80  # elements of a matrix that are read one by one, not turned in registers


class _Factors(Record):
    """The factors of a product in the order in which unrolled code takes them."""

    fields: Mapping[str, Any]
    tensors: tuple[Tensor, Tensor]
    offsets: tuple[Size, Size]


def _factors(call: Gemm) -> _Factors:
    """Those of a product; of a matrix by a vector (a column) the vector as a row comes first."""
    f = call.fields
    a, b = call.operands[:2]
    if f["n"] != 1:
        return _Factors(f, (a, b), (call.a_offset, call.b_offset))
    turned = {**f, "m": 1, "n": f["m"], "c_row": f["c_col"], "c_col": f["c_row"]}
    for one, other in ("ab", "ba"):
        turned |= {f"{one}_row": f[f"{other}_col"], f"{one}_col": f[f"{other}_row"]}
        turned |= {f"{one}_batch{k}": f[f"{other}_batch{k}"] for k in range(2)}
    return _Factors(turned, (b, a), (call.b_offset, call.a_offset))


def suits_unrolling(call: Gemm, out: FunctionWriter) -> bool:
    """Whether a product is a batch of small ones that vectors can read row by row."""
    f, isa = call.fields, out.prelude.isa
    a, b, c = (*call.operands[:2], call.results[0])
    if isinstance(call, FusedGemm) or not isa.fma or a.dtype not in ("f32", "f64") or not (
            a.dtype == b.dtype == c.dtype):
        return False
    if not all(isinstance(n, int) for n in f.values()):
        return False
    f = _factors(call).fields
    m, n, k = f["m"], f["n"], f["k"]
    by_rows = f["b_col"] == 1 or (f["b_row"] == 1 and (k <= lanes_for(n) or n * k <= MOST_GATHERED))
    return (2 <= n <= MOST and 1 <= m <= MOST and 1 <= k <= MOST and m * k <= MOST_STEPS
            and lanes_for(n) * ITEM_SIZES[a.dtype] <= isa.vector_bytes
            and by_rows and f["c_col"] == 1 and f["batch0"] * f["batch1"] >= LEAST_BATCH)


def lanes_for(n: Size) -> int:
    """Lanes of the narrowest vector that holds a row of n elements."""
    return next((w for w in (4, 8) if w >= n), 16)


def write_unrolled(call: Gemm, out: FunctionWriter) -> None:
    """Write the function of a batch of products, and its call."""
    factors = _factors(call)
    p, f, c = out.prelude, factors.fields, call.results[0]
    a, b = factors.tensors
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
    step, column, turned = f["b_row"], f["b_col"], "b"
    is_full = n == k == lanes
    is_gathered = column != 1 and not is_full and (n * k <= MOST_GATHERED // 2 or k > lanes)
    if column != 1 and not is_gathered:
        step, turned = lanes, "turned"
        body.line(f"{scalar} turned[{lanes * lanes}] __attribute__((aligned(64)));")
        sizes = "" if is_full else f", {n}, {k}"
        body.line(f"{p.transpose(dtype, lanes, not is_full)}(b, {column}, turned, {lanes}"
                  f"{sizes});")
    for row in range(k):
        text = p.load(dtype, lanes, f"{turned} + {row * step}", count) if not is_gathered else \
            f"{{{', '.join([f'b[{row * step + i * column}]' for i in range(n)])}}}"
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
        f"  for (i64 t = begin; t < end; t++) {{\n{body.text()}  }}\n"
        "  ft_clear_upper();\n}\n")
    batch = f["batch0"] * f["batch1"]
    one = m * (k + 2) * lanes // 4
    places = [f"({scalar} *){out.where[t]} + {out.size(offset)}"
              for t, offset in zip((a, b, c), (*factors.offsets, 0))]
    out.line(f"{{ void *p[] = {{{', '.join(places)}}}; if (ft_run(ctx, {name}, p, {batch}, "
             f"{max(1, SERVER.grain_work // one)}, {batch * one})) return 1; }}")
    out.work += batch * one


# --- The C text of chains: one function over blocks, which runs the steps on each

class ChainText(Record):
    """The function of a chain, and the memory that its argument points to."""

    name: str
    operands: tuple[Tensor, ...]
    work: int
    grain: int
    texts: Sequence[KernelText | None] = ()


def write_chain(chain: Chain, out: FunctionWriter) -> ChainText:
    """Write the function `name(arg, begin, end)` over the blocks of a chain."""
    module = out.module
    texts = [_text(step, out) for step in chain.steps]
    operands = tuple(dict.fromkeys((*chain.operands, *chain.results)))
    places, nbytes = _scratch(chain, texts)
    where: dict[Tensor | Scratch, str] = {t: f"(char *)a[{k}]" for k, t in enumerate(operands)}
    for t, at in places.items():
        # as if all blocks were there: steps count rows from the first one
        where[t] = f"(s + {at} - t * {_block_bytes(t, chain.count)})"
    failure = f"*(volatile i64 *)a[{len(operands) + 1}] = 1;"
    body, work = CodeScope("    "), 0
    for step, text in zip(chain.steps, texts):
        body.line("{")
        inner = body.nested()
        if isinstance(step, Gemm):
            for line in _product(step, chain, where, text, failure, out):
                inner.line(line)
            work += gemm_work(step) // 8
        else:
            assert isinstance(step, Kernel) and text is not None
            pointers = ", ".join([*[where[t] for t in text.operands], "(void *)z"])
            rows = step.domain.rows // chain.count
            inner.line(f"void *k[] = {{{pointers}}};")
            inner.line(f"{module.kernel_name(text.text)}(k, t * {rows}, (t + 1) * {rows});")
        if text is not None:
            module.kernels.append(text)
            work += text.size * (2 + text.weight)
        body.take(inner)
        body.line("}")
    name = module.kernel_name(
        "static void NAME(void *arg, i64 begin, i64 end) {\n"
        f"  void *const *a = arg;\n  const i64 *z = a[{len(operands)}];\n  (void)z;\n"
        f"  char *s = ft->allocate({nbytes});\n  if (!s) {{ {failure} return; }}\n"
        f"  for (i64 t = begin; t < end; t++) {{\n{body.text()}  }}\n  ft->release(s);\n"
        "  ft_clear_upper();\n}\n")
    return ChainText(name, operands, work, max(1, SERVER.grain_work * chain.count // max(work, 1)),
                     texts)


def _text(step: Step, out: FunctionWriter) -> KernelText | None:
    """The kernel of a step, or its epilogue."""
    if isinstance(step, Kernel):
        return write_kernel(step, out.schedule, out.prelude, out.sizes)
    if isinstance(step, FusedGemm):
        return write_epilogue(step, out.schedule, out.prelude, out.sizes)
    return None


def _product(gemm: Gemm, chain: Chain, where: Mapping[Tensor | Scratch, str],
             epilogue: KernelText | None, failure: str, out: FunctionWriter) -> list[str]:
    """The statements of the part of a product that belongs to a block."""
    f = gemm.fields
    pieces = chain.count // (f["batch0"] * f["batch1"])
    rows = f["m"] // pieces
    batch, row = ("t", "0") if pieces == 1 else (f"t / {pieces}", f"t % {pieces} * {rows}")
    sizes = {"batch0": 1, "batch1": 1, "m": rows}
    return gemm_lines(gemm, out.module, where.__getitem__, sizes, epilogue, batch, row, failure)


def _scratch(chain: Chain, texts: list[KernelText | None]) -> tuple[dict[Tensor, int], int]:
    """Where the inner values of a block are, by their lifetimes; the bytes of all."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for k, (step, text) in enumerate(zip(chain.steps, texts)):
        touched = [*step.operands, *step.results] if isinstance(step, Gemm) else []
        for t in (*touched, *(text.operands if text is not None else ())):
            if t in chain.inner:
                first.setdefault(t, k)
                last[t] = k
    arena = plan_arena([Block(t, _block_bytes(t, chain.count), first[t], last[t]) for t in first])
    return arena.offsets, max(arena.nbytes, 1)


def _block_bytes(t: Tensor, count: int) -> int:
    assert isinstance(t.size, int)
    return t.size // count * item_size(t.dtype)


# --- calls by their classes

@singledispatch
def prepare_call(call: Call, out: FunctionWriter) -> None:
    """Write the bodies of a call and note the memory that it needs."""


@singledispatch
def write_call(call: Call, out: FunctionWriter, step: int) -> None:
    """Append the C statements of a call."""
    raise AssertionError(f"no C text for {call!r}")


@write_call.register(HostCall)
def _(call: HostCall, out: FunctionWriter, step: int) -> None:
    out.host(call)


@prepare_call.register(Chain)
def _(call: Chain, out: FunctionWriter) -> None:
    out.chains[call] = write_chain(call, out)


@write_call.register(Chain)
def _(call: Chain, out: FunctionWriter, step: int) -> None:
    chain = out.chains[call]
    pointers = [*[out.where[t] for t in chain.operands], "(void *)z", "&failed"]
    run = f"const int stopped = ft_run(ctx, {chain.name}, a, {call.count}, {chain.grain}, " \
          f"{chain.work})"
    out.line(f"{{ i64 failed = 0; void *a[] = {{{', '.join(pointers)}}}; {run}; "
             "if (failed || stopped) return 2; }")
    out.work += chain.work


@prepare_call.register(FusedGemm)
def _(call: FusedGemm, out: FunctionWriter) -> None:
    out.epilogues[call] = write_epilogue(call, out.schedule, out.prelude, out.sizes)


@write_call.register(Gemm)
def _(call: Gemm, out: FunctionWriter, step: int) -> None:
    if suits_unrolling(call, out):
        write_unrolled(call, out)
        return
    epilogue = out.epilogues.get(call)
    lines = gemm_lines(call, out.module, out.where.__getitem__, {}, epilogue)
    out.line(f"{{ {' '.join(lines)} }}")
    out.work += _work(gemm_work(call))
    if epilogue is not None:
        out.module.kernels.append(epilogue)


@write_call.register(Conv)
def _(call: Conv, out: FunctionWriter, step: int) -> None:
    out.module.declare(CONV)
    (x, w), (result,) = call.operands, call.results
    fields = []
    for name, n in call.fields.items():
        text = out.size(n) if isinstance(n, (int, Dim)) else f"{{{', '.join(map(out.size, n))}}}"
        fields.append(f".{name} = {text}")
    for name, t, offset in (("x", x, call.offsets[0]), ("w", w, call.offsets[1]),
                            ("out", result, 0)):
        fields.append(f".{name} = (({C_TYPES[t.dtype]} *){out.where[t]}) + {out.size(offset)}")
    fields.append(f".in_type = {GEMM_TYPES.index(x.dtype)}, .alpha = 1.0")
    fields.append(f".out_type = {GEMM_TYPES.index(result.dtype)}")
    run = f"((int (*)(const ft_conv *)){out.library('conv')})"
    out.line(f"{{ const ft_conv m = {{{', '.join(fields)}}}; if ({run}(&m)) return 2; }}")
    out.work += _work(result.size * 64)


def _work(flops: Size) -> int:
    return flops // 8 if isinstance(flops, int) else 10**6


@write_call.register(CLibraryCall)
def _(call: CLibraryCall, out: FunctionWriter, step: int) -> None:
    arguments = ", ".join(_argument(a, out) for a in call.arguments)
    run = f"((int (*)({call.signature})){out.library(call.function)})"
    out.line(f"if ({run}({arguments})) return 2;")
    out.work += sum(_work(t.size * 8) for t in call.operands)


def _argument(value: Any, out: FunctionWriter) -> str:
    if isinstance(value, Tensor):
        return f"(void *){out.where[value]}"
    if isinstance(value, (list, tuple)):
        kind = "void *const" if isinstance(value[0], Tensor) else "const i64"
        return f"({kind}[]){{{', '.join(_argument(v, out) for v in value)}}}"
    return out.size(value)
