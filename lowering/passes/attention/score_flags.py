"""Any-flags on scores or their gradient, which the kernels of attention set.

A checked program looks for NaN and infinities among scores and in what a softmax makes of them: all
is finite where the logarithm of the sum of a row is, which the kernel has. The gradient of scores
is finite where that of queries is.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar
from functrans.lowering.loops.tensor import AnyFlag, Map, Stored, Tensor
from functrans.lowering.passes.attention.reindexed import NotSoftmax
from functrans.lowering.rules.graph import Graph

__all__ = ["ScoreFlags", "score_flags"]


class ScoreFlags(Record):
    """The flags on scores, and those on what the gradient computes of scores."""

    forward: tuple[AnyFlag, ...] = ()
    backward: tuple[AnyFlag, ...] = ()


def score_flags(graph: Graph, scores: Tensor, cotangents: Collection[Tensor]) -> ScoreFlags:
    """The flags on a product and on its cotangents.

    Raises NotSoftmax where one looks for something else than NaN and infinities.
    """
    forward: list[AnyFlag] = []
    backward: list[AnyFlag] = []
    for any_flag in graph.items:
        if not isinstance(any_flag, AnyFlag):
            continue
        read = _read(any_flag)
        if read.isdisjoint(cotangents) and scores not in read:
            continue
        if not _is_test(_condition(any_flag)):
            raise NotSoftmax("something else is asked of the scores")
        (forward if read.isdisjoint(cotangents) else backward).append(any_flag)
    return ScoreFlags(tuple(forward), tuple(backward))


def _read(any_flag: AnyFlag) -> set[Tensor]:
    """The tensors in memory that the condition of a flag depends on."""
    found: set[Tensor] = set()
    waiting = list(any_flag.operands)
    seen: set[Tensor] = set()
    while waiting:
        t = waiting.pop()
        if t in seen:
            continue
        seen.add(t)
        if isinstance(t, Stored):
            found.add(t)
        else:
            waiting += t.operands
    return found


def _condition(any_flag: AnyFlag) -> Expr:
    s = ExprBuilder(lambda t: not isinstance(t, Map))
    index = [Index.of(LoopVar(f"m{k}", n)) if n != 1 else ZERO for k,
             n in enumerate(any_flag.sizes)]
    return any_flag.element(s, tuple(index))


def _is_test(e: Expr) -> bool:
    """Whether a condition holds of NaN or infinities alone."""
    if e.op == "or":
        return all(map(_is_test, e.args))
    if e.op == "not":
        return e.args[0].op == "is_finite"
    if e.op == "ne":
        return e.args[0] is e.args[1]
    return e.op == "eq" and any(
        x.op == "const" and math.isinf(x.aux) for x in e.args)
