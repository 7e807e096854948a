"""Kernels of attention write their results in the layout of the transposes that follow.

What is rounded on the way is, too: kernels write any type.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import LoopVar
from functrans.lowering.loops.tensor import Map, Tensor
from functrans.lowering.passes.attention.calls import Attend, AttendGradient, View
from functrans.lowering.passes.attention.reindexed import NotSoftmax, split_view
from functrans.lowering.passes.attention.softmax import is_rounding
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel, Reads

__all__ = ["UnsupportedResultLayout", "absorb_attention_transposes"]

FLOATS = ("f32", "bf16", "f16")


class UnsupportedResultLayout(UnsupportedKernel):
    """A result is where kernels of attention cannot write it."""


def absorb_attention_transposes(schedule: Schedule, outputs: Collection[Tensor]) -> Schedule:
    """The schedule without kernels that only move results. Raises UnsupportedResultLayout."""
    steps, reads = list(schedule.steps), Reads()
    for call in [s for s in schedule.steps if isinstance(s, (Attend, AttendGradient))]:
        for name, view in list(call.made.items()):
            readers = [s for s in steps if view.tensor in reads.of(s, schedule.is_stored)
                       and not (isinstance(s, AttendGradient) and s.attend is call)]
            if len(readers) != 1 or view.tensor in outputs:
                continue
            kernel = readers[0]
            if not isinstance(kernel, Kernel) or len(kernel.members) != 1 or \
                    kernel.members[0].role != "full":
                continue
            try:
                call.move(name, _view_of_moved(view, kernel.members[0].tensor, call))
            except NotSoftmax:
                continue
            steps.remove(kernel)
        if not call.has_places:
            raise UnsupportedResultLayout("kernels cannot write a result where it is read")
    for step in steps:
        if isinstance(step, AttendGradient):
            step.connect()
    return replace(schedule, steps=steps)


def _view_of_moved(view: View, moved: Tensor, call: Attend | AttendGradient) -> View:
    """A view of what has the elements of another, or multiples, in another order."""
    t = view.tensor
    if not isinstance(moved, Map) or moved.size != t.size or moved.dtype not in FLOATS:
        raise NotSoftmax("more than a movement")
    e, steps = split_view(moved, ExprBuilder(lambda x: not isinstance(x, Map)))
    factor = 1.0
    while is_rounding(e) or (e.op == "mul" and e.args[1].op == "const"):
        factor *= float(e.args[1].aux) if e.op == "mul" else 1.0
        e = e.args[0]
    if e.op != "load" or e.aux[0] is not t or e.aux[1].const != 0 or not all(
            isinstance(v, LoopVar) for v in e.aux[1].terms):
        raise NotSoftmax("more than a movement")
    pieces = {int(c): (int(v.high), steps[v]) for v, c in e.aux[1].terms.items()}
    layout = (call if isinstance(call, Attend) else call.attend).layout
    dims = sorted((n, v) for v, n in view.steps.items() if n and layout.size(v) > 1)
    found = {v: _step(pieces, n, layout.size(v)) for n, v in dims}
    size = t.size // math.prod(layout.size(v) for _, v in dims)
    col = _step(pieces, view.col, int(size)) if size != 1 else 1
    if col != 1:
        raise NotSoftmax("elements go one by one")
    return View(moved, 0, found, col, factor)


def _step(pieces: dict[int, tuple[int, int]], at: int, size: int) -> int:
    """How far apart elements are that were `at` apart, `size` of them."""
    if at not in pieces:
        raise NotSoftmax("a dimension is cut")
    covered, first = pieces[at]
    while covered < size:
        if pieces.get(at * covered, (0, 0))[1] != first * covered:
            raise NotSoftmax("a dimension is cut")
        covered *= pieces[at * covered][0]
    if covered % size:
        raise NotSoftmax("a dimension is cut")
    if covered > size:
        pieces[at * size] = (covered // size, first * size)
    return first
