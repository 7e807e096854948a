"""How far apart in memory neighbours are read: along the rows of a kernel, and from row to row.

A GPU reads 32 bytes at least. Lanes along which neighbours are next to each other in memory read
all of them; others read eight times as much, and wait for the first-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import Atom, Index, LoopVar, Remainder
from functrans.lowering.loops.steps import step_along
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.kernel import Kernel, accesses

__all__ = ["has_transposed_reads", "run_of_rows", "transposed_reads"]

SHORTEST_RUN = 8
"""Neighbours in memory that are worth a transposed load: 32 bytes of float32."""

ALIGNED = 8
"""Runs of rows that Triton sees by itself: it knows how far those of a tile go on."""


def transposed_reads(kernel: Kernel, s: ExprBuilder) -> list[tuple[Tensor, Index]]:
    """The reads whose neighbours in memory are in neighbouring rows, in runs that are worth it."""
    return [(t, index) for t, index in accesses(kernel.all_expressions(s))
            if t is not None and step_along(index, kernel.o) == 1
            and step_along(index, kernel.i) not in (0, 1)
            and min(_runs(index.terms, kernel.o), default=SHORTEST_RUN) >= SHORTEST_RUN]


def has_transposed_reads(kernel: Kernel, s: ExprBuilder) -> bool:
    """Whether a kernel reads some operand along its columns."""
    return bool(transposed_reads(kernel, s))


def run_of_rows(kernel: Kernel, s: ExprBuilder) -> int | None:
    """The length of the runs of rows which tiles must not leave, so that Triton sees them.

    It knows that `o % 64` of 64 rows goes on, and not that `o % 257` does.
    """
    found = {run for _, index in transposed_reads(kernel, s) for run in _runs(index.terms, kernel.o)
             if math.gcd(run, 64) < ALIGNED}
    rows = kernel.domain.rows
    run = found.pop() if len(found) == 1 else 0
    return run if run and isinstance(rows, int) and rows % run == 0 else None


def _runs(atoms: Iterable[Atom], v: LoopVar) -> list[int]:
    """The divisors of remainders of a variable."""
    return [atom.divisor for atom in atoms
            if isinstance(atom, Remainder) and isinstance(atom.divisor, int)
            and step_along(atom.index, v)]
