"""The C text of chains: one function over blocks, which runs the steps on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from functrans.lowering.c.expressions import CodeScope
from functrans.lowering.c.kernel import write_kernel
from functrans.lowering.c.kernel_text import KernelText
from functrans.lowering.c.products import gemm_lines, gemm_work, write_epilogue
from functrans.lowering.loops.call import Gemm
from functrans.lowering.loops.tensor import Tensor, item_size
from functrans.lowering.memory.arena import Block, plan_arena
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["ChainText", "write_chain"]


@dataclass(frozen=True)
class ChainText:
    """The function of a chain, and the memory that its argument points to."""

    name: str
    operands: tuple[Tensor, ...]
    work: int
    grain: int


def write_chain(chain: Chain, out: FunctionWriter) -> ChainText:
    """Write the function `name(arg, begin, end)` over the blocks of a chain."""
    module = out.module
    texts = [_text(step, out) for step in chain.steps]
    operands = tuple(dict.fromkeys((*chain.operands, *chain.results)))
    places, nbytes = _scratch(chain, texts)
    where = {t: f"(char *)a[{k}]" for k, t in enumerate(operands)}
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
            work += gemm_work(step) // 8  # type: ignore[operator]
        else:
            assert isinstance(step, Kernel) and text is not None
            pointers = ", ".join([*[where[t] for t in text.operands], "(void *)z"])
            rows = step.domain.rows // chain.count
            inner.line(f"void *k[] = {{{pointers}}};")
            inner.line(f"{module.kernel_name(text.text)}(k, t * {rows}, (t + 1) * {rows});")
        if text is not None:
            module.kernels.append(text)
            work += text.size * (2 + text.weight)  # type: ignore[operator]
        body.take(inner)
        body.line("}")
    name = module.kernel_name(
        "static void NAME(void *arg, i64 begin, i64 end) {\n"
        f"  void *const *a = arg;\n  const i64 *z = a[{len(operands)}];\n  (void)z;\n"
        f"  char *s = ft->allocate({nbytes});\n  if (!s) {{ {failure} return; }}\n"
        f"  for (i64 t = begin; t < end; t++) {{\n{body.text()}  }}\n  ft->release(s);\n}}\n")
    return ChainText(name, operands, work, max(1, SERVER.grain_work * chain.count // max(work, 1)))


def _text(step: Step, out: FunctionWriter) -> KernelText | None:
    """The kernel of a step, or its epilogue."""
    if isinstance(step, Kernel):
        return write_kernel(step, out.schedule, out.prelude, out.sizes)
    if isinstance(step, FusedGemm):
        return write_epilogue(step, out.schedule, out.prelude, out.sizes)
    return None


def _product(gemm: Gemm, chain: Chain, where: dict[Tensor, str], epilogue: KernelText | None,
             failure: str, out: FunctionWriter) -> list[str]:
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
