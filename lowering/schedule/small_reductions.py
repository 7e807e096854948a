"""Kernels over little memory: reductions along rows and over columns are quicker apart."""

from __future__ import annotations

from dataclasses import replace

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, Member
from functrans.lowering.schedule.target import HOPPER, Target

__all__ = ["split_small_reductions"]

MOST_ROWS = 2048
"""Rows that one program reduces as quickly as many programs and a second launch."""

MOST_PARTIALS = 4096
"""Partials of columns that the last program combines."""

TILE = 1024


def split_small_reductions(schedule: Schedule, target: Target = HOPPER) -> Schedule:
    """The schedule with reductions over columns in kernels of their own, where these are small.

    Beside reductions along rows each program has all columns to fold, and another launch folds what
    they found. Apart a program has a few columns of all rows: two launches either way, which wait
    less for each other. Of 256 x 256 on an H100 they took 2.2 and 1.4 us in one kernel, and
    take 1.3 and 1.3 us apart.
    """
    steps: list[Step] = []
    stored = set(schedule.stored)
    for step in schedule.steps:
        columns = _columns(step, target.measured.small) if isinstance(step, Kernel) else []
        if not isinstance(step, Kernel) or not columns:
            steps.append(step)
            continue
        rows = Kernel(step.domain, [m for m in step.members if m not in columns])
        apart = Kernel(step.domain, columns)
        along = {m.tensor for m in rows.members if m.role == "reduce_row"}

        def is_stored(t: Tensor, along: set[Tensor] = along) -> bool:
            return t in along or schedule.is_stored(t)

        stored |= along & set(apart.loads(apart.builder(is_stored)))
        steps += [rows, apart]
    return replace(schedule, steps=steps, stored=stored)


def _columns(kernel: Kernel, small: int) -> list[Member]:
    """The column reductions that are faster in another kernel than the row reductions."""
    d = kernel.domain
    roles = {m.role for m in kernel.members}
    if not isinstance(d.rows, int) or not isinstance(d.row, int) or not isinstance(d.parts, int):
        return []
    size = d.rows * d.row
    if "reduce_row" not in roles or size > small or d.rows // d.parts > MOST_ROWS \
            or size // TILE * d.row // d.parts <= MOST_PARTIALS:
        return []
    return [m for m in kernel.members if m.role == "reduce_column"]
