"""The C text of calls: the host and library functions; `bodies` has loops and branches.

`prepare_call` runs before memory is planned: it writes the bodies of loops and says how much memory
a call needs besides its operands. `write_call` writes the statements.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Size
from functrans.lowering.c.chains import write_chain
from functrans.lowering.c.interface import CONV
from functrans.lowering.c.names import C_TYPES
from functrans.lowering.c.products import GEMM_TYPES, gemm_lines, gemm_work, write_epilogue
from functrans.lowering.c.small_products import suits_unrolling, write_unrolled
from functrans.lowering.loops.call import Call, CLibraryCall, Conv, Gemm, HostCall
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["prepare_call", "write_call"]


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
        text = f"{{{', '.join(map(out.size, n))}}}" if isinstance(n, list) else out.size(n)
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
