"""Rows of a kernel that are short: longer ones, where what they read is read in vectors then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.expr import Expr, ExprBuilder, reachable_expressions
from functrans.lowering.loops.index import ZERO, Index, LoopVar
from functrans.lowering.loops.permuted_reads import are_whole_vectors
from functrans.lowering.loops.runs import visible_run
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.cpu_target import SERVER

__all__ = ["accesses", "product", "run_size", "smaller", "with_longer_row", "with_whole_vectors"]


def accesses(exprs: Iterable[Expr], s: ExprBuilder | None = None
             ) -> list[tuple[Tensor | None, Index]]:
    """The loads (tensor, place) and the numbers made from indices (None, index) of expressions,
    those of a builder where they are asked for again."""
    found: list[tuple[Any, Index]] = []
    for e in reachable_expressions(exprs) if s is None else s.reachable(exprs):
        if e.op == "load":
            found.append(e.aux)
        elif e.op == "index":
            found.append((None, e.aux))
    return found


SHORT_ROW, WIDE_ROW, FEW_ELEMENTS = 16, 1024, 1024
"""Places of a row that a program of a GPU shares with others and of one that it does not, and
elements of an operand that the first-level cache holds, however they are read."""


def with_longer_row(runs: list[list[LoopVar]], kept: list[LoopVar], root: Tensor, s: ExprBuilder
                     ) -> list[list[LoopVar]]:
    """Runs of dimensions, the last longer where it is short and reads go on beyond it.

    Pixels of three numbers are neighbours in a patch of pictures. In rows of three loads and stores
    are of one number, and a quarter of the lanes has none. Rows of a power of two have what they
    need: neighbouring rows are neighbours in memory, which Triton sees.
    """
    short = run_size(runs[-1]) if runs else 1
    if len(runs) < 2 or not all(isinstance(v.high, int) for run in runs for v in run) \
            or not isinstance(short, int) or short >= SHORT_ROW or short & (short - 1) == 0:
        return runs
    *outer, last = [*runs[:-2], runs[-2] + runs[-1]]
    row = LoopVar("i", run_size(last))
    places = dict(zip(last, s.unflatten(Index.of(row), tuple([v.high for v in last])), strict=True))
    places |= {v: Index.of(v) for run in outer for v in run}
    index = tuple([places.get(v, ZERO) for v in kept])
    seen = [visible_run(place, row, WIDE_ROW) for t, place in accesses([root.define(s, index)])
            if t is not None and place.depends_on(row) and smaller(FEW_ELEMENTS, t.size)]
    return with_longer_row([*outer, last], kept, root, s) if min(seen, default=1) > 1 else runs


VECTOR = 16
"""Elements of a vector of a CPU. `sin(x + y[:, None])` on rows of four took 2.6 ns a row."""


def with_whole_vectors(runs: list[list[LoopVar]], kept: list[LoopVar], root: Tensor,
                       s: ExprBuilder) -> list[list[LoopVar]]:
    """Runs of dimensions, the last longer where it fills no vector of a CPU.

    Loads that repeat a number for each of two, four or eight places, or a few numbers again and
    again, are one load and a shuffle then.
    """
    short = run_size(runs[-1]) if runs else 1
    if len(runs) < 2 or not isinstance(short, int) or not 1 < short < VECTOR \
            or short & (short - 1) or not all(isinstance(v.high, int) for v in kept):
        return runs
    longer = runs
    while len(longer) > 1:
        *outer, last = [*longer[:-2], longer[-2] + longer[-1]]
        i, start = LoopVar("i", run_size(last)), ZERO
        if not outer and i.high > SERVER.chunk:  # pieces of one line
            i = LoopVar("i", SERVER.chunk)
            start = Index.of(LoopVar("o", -(-int(run_size(last)) // SERVER.chunk))) * SERVER.chunk
        places = dict(zip(last, s.unflatten(start + Index.of(i), tuple([v.high for v in last])),
                          strict=True))
        places |= {v: Index.of(v) for run in outer for v in run}
        found = root.define(s, tuple([places.get(v, ZERO) for v in kept]))
        if not all(are_whole_vectors(place, i, VECTOR) for _, place in accesses([found])):
            break
        longer = [*outer, last]
    # what is left over at the end of each row would be read an element at a time
    return longer if len(longer) == 1 or int(run_size(longer[-1])) % VECTOR == 0 else runs


def run_size(run: list[LoopVar]) -> Size:
    return product([v.high for v in run])


def product(sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for n in sizes:
        total = total * n
    return total


def smaller(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a < b
