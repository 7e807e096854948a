"""Loops over lanes that share matrices, as one kernel: a program walks the loop for some lanes.

The carry of its lanes is a tile in registers. Products with matrices that all lanes share are those
of tensor cores; the components of a lane are folded within the program. So nothing but the inputs
and results of an iteration goes to memory, and programs never wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Final

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import TooManyExpressions
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_reader import CrossesLanes, LaneView, TensorInLane
from functrans.lowering.loops.tensor import ScanLoop, Tensor, WhileLoop, item_size
from functrans.lowering.passes.lane_axes import LaneAxes, lane_axes
from functrans.lowering.passes.lane_results import changing
from functrans.lowering.schedule.forms import Form
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.loops.fused_launches import fused_seconds
from functrans.lowering.triton.loops.lane_tile_body import LaneTileBody
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.dot import dot_general_p

__all__ = ["TILES", "lanes_in_tiles"]

GAIN: Final = 0.6
"""Of the time of launches that a kernel may take by estimate: a chain of matrices took 1.9 ms,
where 0.7 were counted."""
BESIDE_ESTIMATE: Final = 1.4
"""What kernels took on an H100 of what is counted: a neural ODE 1.43, a sampler 1.35."""
TILES: Final = "a tile of lanes a program"
LEAST_LANES: Final = 32
LEAST_BLOCK, MOST_BLOCK = 8, 64  # lanes of a program; tensor cores multiply 8 at least
AT_ONCE: Final = 2  # programs on a multiprocessor
MOST_EXPRESSIONS: Final = 20_000  # of a kernel


def lanes_in_tiles(call: ScanLoop | WhileLoop, scope: LoopScope) -> Form[Launches]:
    """A loop as one kernel of a program for each block of lanes; with a predicate, each iteration's
    seconds.

    Raises UnsupportedKernel where lanes mix, share no matrices, or have too many numbers.
    """
    if scope.is_phase:
        raise UnsupportedKernel("its programs belong to a loop around it")
    if call.has_effect or (isinstance(call, ScanLoop) and (
            not isinstance(call.length, int) or call.length == 0)):
        raise UnsupportedKernel("it has effects, or no known iterations")
    if not _has_product(call.body):
        raise UnsupportedKernel("its lanes share no matrices")
    writer = _TileLoop(call, scope)
    try:
        with writer.body.reader.at_most(MOST_EXPRESSIONS):
            launches = writer.launches()
    except TooManyExpressions:
        raise UnsupportedKernel("a tile computes too many values") from None
    seconds = 1e-9 * BESIDE_ESTIMATE * writer.nanoseconds()
    if isinstance(call, ScanLoop):
        seconds += 1e-9 * _walked_bytes(call) / scope.target.measured.all_bandwidth
        if seconds > GAIN * fused_seconds(call, scope.target):
            seconds = math.inf  # its steps are faster as launches
    return Form(TILES, seconds, lambda: launches)


def _walked_bytes(call: ScanLoop) -> float:
    """Bytes that iterations read and write, one after the other."""
    walked = (*call.operands[call.num_consts + call.num_carry:], *call.results[call.num_carry:])
    return sum([t.size * item_size(t.dtype) for t in walked if isinstance(t.size, int)])


def _has_product(body: Jaxpr) -> bool:
    return any(eqn.primitive is dot_general_p for eqn in _all_equations(body))


def _all_equations(body: Jaxpr) -> Iterable[Equation]:
    for eqn in body.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Jaxpr):
                    yield from _all_equations(inner)


class _TileLoop:
    """Writes a loop for the lanes of a program."""

    def __init__(self, call: ScanLoop | WhileLoop, scope: LoopScope) -> None:
        self.call, self.target = copy(call), scope.target
        body = call.body
        if isinstance(call, ScanLoop):
            first, carried = call.num_consts, call.num_carry
        else:
            first, carried = call.body_consts, len(call.results)
        tested = zip(call.predicate.invars[call.predicate_consts:], body.invars[first:],
                     strict=True) if isinstance(call, WhileLoop) else ()
        is_map = carried == 0 and not any(
            e.primitive in (while_p, cond_p) for e in _all_equations(body))
        self.axes = LaneAxes((), {}) if is_map else lane_axes(
            changing(body, first, carried) if carried else body, first, carried, tested)
        sizes: Sequence[Any] = [call.length] if is_map and isinstance(call, ScanLoop) \
            else self.axes.sizes
        if not sizes or (count := max(sizes)) < LEAST_LANES:
            raise UnsupportedKernel("it has few lanes")
        self.item: LoopVar | None = None
        """The iteration of a loop without a carry whose lanes are inside of each."""
        if carried == 0 and not is_map and isinstance(call, ScanLoop):
            self.item = LoopVar("item", call.length)
        self.number, block = sizes.index(count), LEAST_BLOCK
        while block < MOST_BLOCK and count >= 2 * block * AT_ONCE * self.target.multiprocessors:
            block *= 2
        self.body = LaneTileBody(scope.memory_of(call), count, block, self.target, self._axis_of,
                             scope.with_constant, is_map)
        self.each = -(-int(count) // block)  # programs of an iteration, or of the loop

    def _axis_of(self, v: Var) -> int | None:
        """The axis of lanes of a variable of the program."""
        found = [k for k, number in self.axes.of(v).items() if number == self.number]
        if len(found) > 1:
            raise CrossesLanes("a value has lanes along two axes")
        return found[0] if found else None

    def launches(self) -> Launches:
        """The kernel."""
        call, body = self.call, self.body
        if isinstance(call, ScanLoop):
            if call.num_carry == 0:
                self._iteration(call, self.item or body.lane)
            else:
                self._results(call.results, call.body.outvars, body.scan(call, call.results))
        else:
            self._results(call.results, call.body.outvars, body.while_loop(call))
        head = [f"    first = tl.program_id(0) % {self.each} * {body.block}", *body.numbers()]
        if self.item is not None:
            head.insert(0, f"    item = tl.program_id(0) // {self.each}")
        return Launches([body.kernel("lane_tiles", head, self.programs)], body.places())

    @property
    def programs(self) -> int:
        """How many programs there are."""
        items = 1 if self.item is None else self.item.high
        assert isinstance(items, int)
        return items * self.each

    def nanoseconds(self) -> float:
        """What it takes: programs wait for themselves, or a multiprocessor has no more."""
        w, known = self.body.w, self.target
        return max(w.nanoseconds * -(-self.programs // (known.multiprocessors * AT_ONCE)),
                   w.busy * -(-self.programs // known.multiprocessors)) \
            + known.measured.launch * isinstance(self.call, ScanLoop)  # else it is an iteration

    def _results(self, results: Sequence[Tensor], variables: Sequence[Any],
                 values: Sequence[TensorInLane]) -> None:
        """Store what a loop ends with."""
        body = self.body
        for t, v, value in zip(results, variables, values, strict=False):
            at, _ = body.place(t, body.axis(v))
            body.store(t, at, value.element(body.reader, at))

    def _iteration(self, call: ScanLoop, at: LoopVar) -> None:
        """The kernel of a loop without a carry: an iteration is a lane, or has lanes inside."""
        first, here = call.num_consts, (Index.of(at),)
        outs = self.body.program(call.body, [
            *map(LaneView, call.operands[:first]),
            *[LaneView(x, here) for x in call.operands[first:]]])
        for y, out, v in zip(call.results, outs, call.body.outvars, strict=True):
            self.body.store_all(out, v, here, y)
