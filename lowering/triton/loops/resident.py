"""Loops inside one kernel: a program walks all iterations, and the steps of the body are phases.

Values stay where the caches of one multiprocessor have them, and a barrier takes the place of a
launch. Where rows do not mix, many programs walk the loop, each with rows of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.analysis import cost_of
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import ScanLoop, WhileLoop
from functrans.lowering.passes.separable import SeparableRows, is_pointwise, rows_of
from functrans.lowering.schedule.forms import Form
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.kernels.writer import TILE
from functrans.lowering.triton.libraries.small_systems import Times, is_small, times_of
from functrans.lowering.triton.loops.loop_kernel import LoopScope, LoopWriter
from functrans.lowering.triton.loops.tile_loops import scan_in_registers, while_in_registers
from functrans.lowering.triton.steps.spec import Launch, Step
from functrans.lowering.triton.templates.single_program import HELD_BYTES, MOST_COLUMNS
from functrans.primitives.dot import dot_general_p

__all__ = ["launched_seconds", "mapped_scan", "resident_loop"]

TOGETHER = 4  # programs on a multiprocessor; one with products, which takes all registers
PRODUCT_ROWS = 8  # that tensor cores multiply at least
MAP_BYTES = 1 << 25  # of the workspaces of programs that each compute an iteration: in the cache
LEAST_TILE = 128  # elements of a program that has them in registers


def resident_loop(call: ScanLoop | WhileLoop,
                  scope: LoopScope) -> tuple[Form[Launches], float]:
    """A loop in one kernel, and what it takes as launches; with a predicate, each iteration.

    Raises UnsupportedKernel where its body is not small.
    """
    return _resident_scan(call, scope) if isinstance(call, ScanLoop) \
        else _resident_while(call, scope)


def _resident_scan(call: ScanLoop, scope: LoopScope) -> tuple[Form[Launches], float]:
    """A scan in one kernel, whose body is small or falls into rows, and seconds if launched.

    Raises UnsupportedKernel for another one.
    """
    if not isinstance(call.length, int) or call.length == 0 or call.has_effect:
        raise UnsupportedKernel("it has no iterations, or effects")
    length = call.length
    target = scope.target
    rows, count = _cut(call.body, rows_of(call.body, call.num_consts, call.num_carry), target)
    jaxpr, programs = call.body, 1
    if rows is not None:
        narrowed = rows.narrowed(count)
        assert narrowed is not None
        jaxpr, programs = narrowed, rows.count // count
    _check_small(jaxpr, target)
    body, source = scope.apart(jaxpr)
    steps = len(body.steps)

    def write() -> Launches:
        w = LoopWriter(scope, rows, count)
        if not scan_in_registers(w, call, length, body, source):
            w.scan(call, length, body, source)
        return w.launches(programs)

    seconds = 1e-9 * length * (_resident_time(jaxpr, programs, steps, target)
                               + _turns_time(body.steps, target))
    launched = 1e-9 * length * _launched_time(call.body, steps, target)
    return Form("one kernel", seconds, write), launched


def mapped_scan(call: ScanLoop, scope: LoopScope) -> Form[Launches]:
    """A scan without a carry, whose iterations know nothing of each other: a program for each.

    Raises UnsupportedKernel for another one.
    """
    if not isinstance(call.length, int) or call.length == 0 or call.num_carry or call.has_effect:
        raise UnsupportedKernel("it has a carry, no iterations, or effects")
    length, target = call.length, scope.target
    body, source = scope.apart(call.body)

    def write() -> Launches:
        w = LoopWriter(scope)
        return w.launches(w.map(call, length, body, source, MAP_BYTES))

    return Form("a program an iteration", write=write,
                seconds=1e-9 * _resident_time(call.body, length, len(body.steps), target))


def _resident_while(call: WhileLoop, scope: LoopScope) -> tuple[Form[Launches], float]:
    """A loop with a predicate in one kernel, and seconds of an iteration if launched.

    Raises UnsupportedKernel for one that is not small.
    """
    if call.has_effect or call.record is not None:
        raise UnsupportedKernel("it has effects, or records each iteration")
    parts = (call.predicate, call.body)
    for jaxpr in parts:
        _check_small(jaxpr, scope.target)
    seconds = sum([_alone_time(part, scope.target) for part in parts])
    holds, body = map(scope.apart, parts)
    launched = sum([_launched_time(part, len(apart.steps), scope.target)
                    for part, (apart, _) in zip(parts, (holds, body), strict=True)])

    def write() -> Launches:
        w = LoopWriter(scope)
        if not while_in_registers(w, call, holds, body):
            w.while_loop(call, holds, body)
        return w.launches(1)

    waits = 2 * scope.target.measured.phase  # one of the body, one of the predicate
    return Form("one kernel", 1e-9 * (seconds + waits), write), 1e-9 * launched


def launched_seconds(call: ScanLoop | WhileLoop, target: Target) -> float:
    """What a loop takes at least as launches; of one with a predicate an iteration."""
    if isinstance(call, ScanLoop):
        length = call.length if isinstance(call.length, int) else 1
        return 1e-9 * length * _launched_time(call.body, 1, target)
    return 1e-9 * sum([_launched_time(part, 1, target) for part in (call.predicate, call.body)])


# ------------------------------------------------------------------------------- whether it pays


def _cut(body: Jaxpr, rows: SeparableRows | None,
         target: Target) -> tuple[SeparableRows | None, int]:
    """How many rows each program takes; no rows where all of them are better together."""
    best: tuple[SeparableRows | None, int] = (None, 1)
    least = math.inf
    if rows is not None and is_pointwise(body) and (
            count := _rows_of_tile(rows, target)) < rows.count:
        return rows, count
    if rows is None:
        return best
    for count in _divisors(rows.count):
        narrowed = rows.narrowed(count)
        if narrowed is None:
            return None, 1
        has_products = any(e.primitive is dot_general_p for e in narrowed.eqns)
        columns = math.ceil(count / PRODUCT_ROWS) if has_products else 1
        time = columns * _resident_time(narrowed, rows.count // count, len(narrowed.eqns),
                                        target)
        if time < least:
            best, least = (rows if count < rows.count else None, count), time
    return best


def _rows_of_tile(rows: SeparableRows, target: Target) -> int:
    """How many rows make a tile that stays in registers, where each element is by itself."""
    total = max(v.aval.size for v in rows.body.invars)
    assert isinstance(total, int)
    tile = min(TILE, max(LEAST_TILE, total // (target.multiprocessors * TOGETHER)))
    return max((n for n in _divisors(rows.count) if n * total <= tile * rows.count), default=1)


def _divisors(n: int) -> list[int]:
    """Divisors of a number, the largest first, each at most two thirds of the one before."""
    found: list[int] = []
    for d in sorted({d for k in range(1, math.isqrt(n) + 1) if n % k == 0 for d in (k, n // k)},
                    reverse=True):
        if not found or d * 3 <= found[-1] * 2:
            found.append(d)
    return found


def _resident_time(jaxpr: Jaxpr, programs: int, phases: int, target: Target) -> float:
    """Nanoseconds of an iteration of a loop in one kernel."""
    figures, (flops, moved) = target.measured, _cost(jaxpr)
    products = [eqn for eqn in jaxpr.eqns if eqn.primitive is dot_general_p]
    held = [nbytes for eqn in products if (nbytes := _held_bytes(eqn, jaxpr))]
    alone = max((moved - max(held, default=0)) / figures.one_bandwidth, flops / figures.one_rate)
    alone += sum(times.alone for times in _systems(jaxpr, target))
    at_once = target.multiprocessors * (1 if products else TOGETHER)
    waves = math.ceil(programs / at_once)
    shared = math.ceil(programs / target.multiprocessors)
    return max(figures.phase * phases * waves + alone * shared,
               programs * (moved - max(held, default=0)) / figures.shared_bandwidth)


def _turns_time(steps: Sequence[Step], target: Target) -> float:
    """Nanoseconds of the turns of phases: a program takes the tiles of a launch one by one."""
    turns = sum(math.prod(step.grid) - 1 for step in steps if isinstance(step, Launch))
    return target.measured.turn * turns


def _held_bytes(eqn: Equation, body: Jaxpr) -> int:
    """Bytes of a constant matrix that stays with a program through the loop; 0: none does."""
    x, w = eqn.invars
    if w not in body.invars or w.aval.ndim != 2 or x.aval.ndim != 2:
        return 0
    nbytes = w.aval.nbytes
    columns = eqn.outvars[0].aval.shape[-1]
    fits = isinstance(nbytes, int) and nbytes <= HELD_BYTES and columns <= MOST_COLUMNS
    return nbytes if fits else 0  # type: ignore[return-value]


def _check_small(jaxpr: Jaxpr, target: Target) -> None:
    """Raise UnsupportedKernel unless one program may compute it between its launches.

    It is written to know how many there are.
    """
    if _alone_time(jaxpr, target) >= _launches_time(jaxpr, target):
        raise UnsupportedKernel("its body is more than one program computes in time")


def _alone_time(jaxpr: Jaxpr, target: Target) -> float:
    """Nanoseconds of one program for the work of a body."""
    figures, (flops, moved) = target.measured, _cost(jaxpr)
    return max(moved / figures.one_bandwidth, flops / figures.one_rate) \
        + sum(times.alone for times in _systems(jaxpr, target))


def _launches_time(jaxpr: Jaxpr, target: Target) -> float:
    """Nanoseconds of as many launches as a body could have, each of which waits for another."""
    return 2 * target.measured.launch * max(len(jaxpr.eqns), 1)


def _launched_time(jaxpr: Jaxpr, steps: int, target: Target) -> float:
    """Nanoseconds of an iteration of so many launches on the whole GPU."""
    figures, (flops, moved) = target.measured, _cost(jaxpr)
    return figures.launch * max(steps, 1) + max(moved / figures.all_bandwidth,
                                                flops / figures.all_rate) \
        + sum(times.launched for times in _systems(jaxpr, target))


def _systems(jaxpr: Jaxpr, target: Target) -> list[Times]:
    """What the systems of small matrices take, whose columns wait for each other."""
    return [times_of(eqn, target) for eqn in jaxpr.eqns if is_small(eqn)]


def _cost(jaxpr: Jaxpr) -> tuple[float, float]:
    cost = cost_of(jaxpr)
    flops, moved = cost["flops"], cost["bytes accessed"]
    if not isinstance(flops, (int, float)) or not isinstance(moved, (int, float)):
        raise UnsupportedKernel("a size that is not known")
    return float(flops), float(moved)
