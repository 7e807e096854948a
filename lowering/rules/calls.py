"""Primitives that are calls: of library functions, and of bodies of control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.core.table import merged
from functrans.lowering.loops.call import Branch, Call, ScanLoop, WhileLoop
from functrans.lowering.loops.tensor import Stored, Tensor, dtype_name
from functrans.lowering.rules import contraction, library
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["RULES", "results_of"]

CallRule = Callable[[Equation, list[Tensor]],
                    "Call | Tensor | tuple[Call, Sequence[Tensor]] | None"]
"""A call whose results are those of the equation, or a call and the results; or a tensor."""


def results_of(eqn: Equation) -> list[Stored]:
    """New tensors in memory for the results of an equation whose dtypes are known."""
    return [Stored(v.aval.shape, dtype_name(v.aval.dtype) or "", (), eqn.source)
            for v in eqn.outvars]


def _scan(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return ScanLoop(eqn, xs, results_of(eqn))


def _while(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return WhileLoop(eqn, xs, results_of(eqn))


def _cond(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return Branch(eqn, xs, results_of(eqn))


RULES: dict[Primitive, CallRule] = merged(
    {scan_p: _scan, while_p: _while, cond_p: _cond}, contraction.RULES, library.RULES)
