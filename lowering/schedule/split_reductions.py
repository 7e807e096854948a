"""Reductions in kernels of their own, and kernels that transpose what they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from functrans.lowering.loops.expr import Expr, ExprBuilder, reachable_expressions
from functrans.lowering.loops.steps import step_along
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import (
    Kernel,
    Member,
    Reads,
    accesses,
    preferred_loop_nest,
    roles_in,
)
from functrans.lowering.schedule.memory_steps import has_transposed_reads
from functrans.lowering.schedule.target import HOPPER, Target

__all__ = ["fuse_transposed_column_sums", "reduces_transposed_tiles",
           "split_row_sums", "split_scattered_reads", "split_small_reductions",
           "split_transposed_reads"]


# --- Kernels with transposed reads: tiles are transposed in shared memory, whole rows cannot be

TRANSPOSABLE_ROWS = range(65, 4097)
"""Lengths of rows whose transposed tiles are reduced as they are read; the last program of a row of
tiles combines up to 64 partials."""


def _has_transposed_reads(kernel: Kernel, s: ExprBuilder) -> bool:
    """Whether a loop of a CPU reads some operand along its columns."""
    return any(t is not None and index.coefficient(kernel.o) == 1
               and index.coefficient(kernel.i) not in (0, 1)
               for t, index in accesses(kernel.all_expressions(s)))


def reduces_transposed_tiles(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> bool:
    """Whether a kernel transposes tiles and reduces rows of few tiles, which no member reads."""
    d = kernel.domain
    return d.total is None and d.parts == 1 and d.row in TRANSPOSABLE_ROWS and (
        not isinstance(d.rows, int) or d.rows >= 32) and _is_mixed(kernel, is_stored)


def split_transposed_reads(schedule: Schedule, in_tiles: bool = True) -> Schedule:
    """The schedule with reductions in other kernels than elements with transposed reads.

    Each is computed over the matrix that suits it: the gradient of a bias beside a transposed copy
    (4096 x 512 on an H100) takes 7 us so, and 30 in one kernel that has whole rows. Where rows are
    short they stay together, `in_tiles`.
    """
    steps: list[Step] = []
    for step in schedule.steps:
        if not isinstance(step, Kernel) or not _is_mixed(step, schedule.is_stored) or (
                in_tiles and reduces_transposed_tiles(step, schedule.is_stored)):
            steps.append(step)
            continue
        folds = [m.tensor for m in step.members if m.role == "reduce_row"]
        steps.append(Kernel(step.domain, [m for m in step.members if m.role != "reduce_row"]))
        steps += [_alone(t, schedule.is_stored) for t in folds]
    return replace(schedule, steps=steps)


def _alone(t: Tensor, is_stored: Callable[[Tensor], bool], in_any_order: bool = False) -> Kernel:
    """A kernel of one value, over the matrix that suits it."""
    preferred = preferred_loop_nest(t, is_stored, in_any_order)
    return Kernel(preferred.domain, [preferred.member(t)])


SMALL_OPERAND = 1 << 14
"""Elements that the first-level cache holds, which may be read in any order."""


def split_scattered_reads(schedule: Schedule, small: int) -> Schedule:
    """The schedule with members apart that read across memory in the kernel of others, not alone.

    A transposed copy joined the sums over the columns of what it copies, whose tiles are read in
    order: the copy's are not. 262,144 x 256 took 1.95 ms on an H100 so, and 0.3 apart.
    """
    steps: list[Step] = []
    for step in schedule.steps:
        apart: list[Kernel] = []
        if isinstance(step, Kernel) and len(step.members) > 1 and not (
                isinstance(step.domain.size, int) and step.domain.size <= small):
            step, apart = _apart(step, schedule.is_stored)
        steps += [step, *apart]
    return replace(schedule, steps=steps)


def _apart(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> tuple[Kernel, list[Kernel]]:
    """A kernel without the members that read in order in kernels of their own, and these."""
    s = kernel.builder(is_stored)
    elements = {m: kernel.element(s, m) for m in kernel.members}
    local = {m: {e.aux for e in reachable_expressions([e]) if e.op == "local"}
             for m, e in elements.items()}
    left: list[Member] = []
    apart: list[Kernel] = []
    for m, e in elements.items():
        if m.role in ("full", "reduce_row", "reduce_column", "reduce_all") \
                and _is_scattered(kernel, m.role, [e]) and all(map(is_stored, local[m])) \
                and not any(m.tensor in found for found in local.values()):
            alone = _alone(m.tensor, is_stored, in_any_order=True)
            if not _is_scattered(alone, alone.members[0].role,
                                 alone.all_expressions(alone.builder(is_stored))):
                apart.append(alone)
                continue
        left.append(m)
    if not apart or not left:
        return kernel, []
    return Kernel(kernel.domain, left), apart


def _is_scattered(kernel: Kernel, role: str, exprs: list[Expr]) -> bool:
    """Whether large operands are read across memory, and not by tiles that are transposed."""
    for t, index in accesses(exprs):
        if t is None or (isinstance(t.size, int) and t.size <= SMALL_OPERAND):
            continue
        step = step_along(index, kernel.i)
        if step not in (0, 1, None) and not (
                role == "full" and step_along(index, kernel.o) == 1):
            return True
    return False


def split_row_sums(schedule: Schedule) -> Schedule:
    """The schedule with sums over rows in other kernels than stored values with transposed reads.

    A loop that sums rows cannot transpose tiles: of 1000 x 1000, x.T + x and whether all of it is
    finite take 330 us in one kernel of a CPU, 120 us apart.
    """
    steps: list[Step] = []
    for step in schedule.steps:
        sums = _sums_of_stored(step, schedule.is_stored) if isinstance(step, Kernel) else []
        if not isinstance(step, Kernel) or not sums:
            steps.append(step)
            continue
        steps.append(Kernel(step.domain, [m for m in step.members if m.tensor not in sums]))
        steps += [_alone(t, schedule.is_stored) for t in sums]
    return replace(schedule, steps=steps)


def _sums_of_stored(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> list[Tensor]:
    """The sums over rows of a kernel with transposed reads, if they read what it stores."""
    if {m.role for m in kernel.members} not in ({"full", "reduce_all"}, {"full", "reduce_column"}):
        return []
    s = kernel.builder(is_stored)
    sums = [m for m in kernel.members if m.role != "full"]
    for m in sums:
        inside = reachable_expressions([kernel.element(s, m)])
        if any(e.op == "load" for e in inside) or not all(
                is_stored(e.aux) for e in inside if e.op == "local"):
            return []
    return [m.tensor for m in sums] if _has_transposed_reads(kernel, s) else []


def fuse_transposed_column_sums(schedule: Schedule, reads: Reads) -> Schedule:
    """The schedule with column sums of a matrix in the kernel that transposes it.

    Such a sum is a kernel by itself where the epilogue of a product has made the matrix.
    """
    steps = list(schedule.steps)
    folds = [s for s in steps if isinstance(s, Kernel) and [m.role for m in s.members]
             == ["reduce_column"]]
    for fold in folds:
        first, (sum_,) = steps.index(fold), fold.members
        operands = reads.of(fold, schedule.is_stored)
        for k, step in enumerate(steps[first + 1:], first + 1):
            near = reads.of(step, schedule.is_stored)
            if sum_.tensor in near:
                break
            if not isinstance(step, Kernel) or not operands & near \
                    or (step.domain.rows, step.domain.row) != (fold.domain.row, fold.domain.rows):
                continue
            along = Member(sum_.tensor, "reduce_row")
            joined = Kernel(step.domain, [*step.members, along])
            if along in roles_in(sum_.tensor, step.domain) \
                    and reduces_transposed_tiles(joined, schedule.is_stored):
                steps[k] = joined
                del steps[first]
                break
    return replace(schedule, steps=steps)


def _is_mixed(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> bool:
    """Whether a kernel has transposed reads, and row reductions that its elements do not read."""
    if {m.role for m in kernel.members} - {"any_flag"} != {"full", "reduce_row"}:
        return False
    s = kernel.builder(is_stored)
    folded = {m.tensor for m in kernel.members if m.role == "reduce_row"}
    for m in kernel.members:
        inside = reachable_expressions([kernel.element(s, m)])
        if folded & {e.aux for e in inside if e.op == "local"}:
            return False
    return has_transposed_reads(kernel, s)


# --- Kernels over little memory: reductions along rows and over columns are quicker apart

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
