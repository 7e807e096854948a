"""What a step of a schedule computes and moves, for who looks at a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.call import Call, Conv, Gemm
from functrans.lowering.loops.tensor import Reduce, Tensor, item_size
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel, reachable_expressions

__all__ = ["flops_of", "nbytes_of"]

NO_WORK = frozenset({"bitcast", "const", "convert", "index", "load", "local", "round_to",
                     "select"})


def flops_of(step: Step, is_stored: Callable[[Tensor], bool]) -> Size:
    """The arithmetic of a step: each function of an element counts as one, a fold as one more.

    0 of calls whose work is not known.
    """
    if isinstance(step, Kernel):
        return _of_kernel(step, is_stored)
    if isinstance(step, Chain):
        total: Size = 0
        inner = {*step.inner}
        for s in step.steps:
            total = total + flops_of(s, lambda t: is_stored(t) or t in inner)
        return total
    if isinstance(step, Gemm):
        f = step.fields
        product = 2 * f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"]
        return product + (_of_kernel(step.kernel, is_stored) if isinstance(step, FusedGemm) else 0)
    return _of_call(step)


def _of_call(call: Call) -> Size:
    if not isinstance(call, Conv):
        return 0
    per_output: Any = call.fields["in_features"]
    for n in call.fields["window"]:  # type: ignore[union-attr]
        per_output = per_output * n
    flops: Size = 2 * call.results[0].size * per_output
    return flops


def _of_kernel(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> Size:
    s = kernel.shared(is_stored)
    d = kernel.domain
    rows = d.rows if d.total is None else -(-d.total // d.row)
    counts = {True: 0, False: 0}
    for e in reachable_expressions([kernel.element(s, m) for m in kernel.members]):
        counts[e.depends_on(kernel.i)] += e.op not in NO_WORK
    counts[True] += sum(isinstance(m.tensor, Reduce) for m in kernel.members)
    return counts[True] * d.size + counts[False] * rows


def nbytes_of(t: Tensor) -> Size:
    """The bytes of a tensor in memory."""
    return t.size * item_size(t.dtype)
