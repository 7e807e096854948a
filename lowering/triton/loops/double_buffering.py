"""While loops with a large carry: two buffers hold the carry of even and of odd iterations.

The host enqueues an iteration before it knows the predicate, which is copied back on another stream
meanwhile, so that the device does not wait for the host. An iteration too many has written to the
other buffer alone. Where it could have another effect, or has loops or steps of the host in it, the
host waits for the predicate first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from functrans.core.jaxpr import Jaxpr, Literal, subjaxprs
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import Tensor, WhileLoop
from functrans.lowering.triton.kernels.kernel_source import PartialResults
from functrans.lowering.triton.loops.iterations import (
    ALIGNMENT,
    MOST_STEPS,
    ProgramBody,
    WriteBody,
    after,
    bytes_of,
    moved,
    numbers_of,
    relocated,
)
from functrans.lowering.triton.steps.spec import (
    BufferSide,
    DoubleBufferedSteps,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
)
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["DoubleBufferedWhile", "double_buffered_while"]


class DoubleBufferedWhile(Record, frozen=False, eq=False):
    """A loop with a predicate on the device, and the memory that it needs beside results."""

    call: WhileLoop
    holds: ProgramBody
    body: ProgramBody
    fixed: list[bool]  # which values of the carry never change
    offsets: list[tuple[int, int]]  # of the two places of the others
    flags: tuple[int, int]
    arena: int
    workspace: PartialResults

    def steps(self, where: Callable[[Tensor | PartialResults], Pointer]) -> list[Step]:
        """The copies before the loop, and the loop."""
        call = self.call
        room = where(self.workspace)
        first, second = call.predicate_consts, call.predicate_consts + call.body_consts
        inputs = [where(t) for t in call.operands]
        ends = [where(r) for r in call.results]
        sizes = [bytes_of(r.shape, r.dtype) for r in call.results]
        places = iter(self.offsets)
        held = [(start, start) if fixed else tuple([after(room, n) for n in next(places)])
                for start, fixed in zip(inputs[second:], self.fixed, strict=True)]
        here, there = ([pair[k] for pair in held] for k in (0, 1))
        arena = after(room, self.arena)
        sides = []
        for k, (now, then) in enumerate(((here, there), (there, here))):
            flag = after(room, self.flags[k])
            sides.append(BufferSide(
                flag, _all(self.holds, [*inputs[:first], *now], [flag], arena),
                _all(self.body, [*inputs[first:second], *now], then, arena),
                tuple(moved(ends, now, sizes))))
        return [*moved(here, inputs[second:], sizes),
                DoubleBufferedSteps((sides[0], sides[1]), self._may_run_ahead())]

    def _may_run_ahead(self) -> bool:
        """Whether an iteration may begin before the predicate is known: it has no effect."""
        return not (_ends_itself(self.call) or self.call.has_effect
                    or any(_whiles(self.call.body))
                    or any(isinstance(s, (HostStep, RepeatedSteps,
                                          DoubleBufferedSteps)) and not isinstance(
                        s, LibraryStep) for s in (*self.holds.steps, *self.body.steps)))


def double_buffered_while(call: WhileLoop, write_body: WriteBody,
                          is_unaligned: Callable[[Tensor], bool]) -> DoubleBufferedWhile:
    """The loop on the device. Raises UnsupportedKernel where the host is faster."""
    if call.record is not None:
        raise UnsupportedKernel("it records each iteration")
    first, second = call.predicate_consts, call.predicate_consts + call.body_consts
    carry = call.operands[second:]
    fixed = [v is x for v, x in zip(call.body.outvars, call.body.invars[call.body_consts:],
                                    strict=True)]
    unaligned = [f and is_unaligned(t) for f, t in zip(fixed, carry, strict=True)]
    holds, body = (write_body(jaxpr, numbers_of([*map(is_unaligned, consts), *unaligned]),
                              frozenset())
                   for jaxpr, consts in ((call.predicate, call.operands[:first]),
                                         (call.body, call.operands[first:second])))
    sizes = [bytes_of(t.shape, t.dtype) for t, f in zip(carry, fixed, strict=True) if not f]
    steps = [*holds.steps, *body.steps]
    if len(steps) > MOST_STEPS or not any(isinstance(s, (Launch, LibraryStep, RepeatedSteps,
                                                         DoubleBufferedSteps))
                                          for s in body.steps):
        raise UnsupportedKernel("the host computes its body")
    total = 0
    found = []
    for nbytes in [n for size in (*sizes, 1) for n in (size, size)]:
        found.append(total)
        total += -(-nbytes // ALIGNMENT) * ALIGNMENT
    pairs = list(zip(found[::2], found[1::2], strict=True))
    workspace = PartialResults(1, -(-(total + max(holds.arena_bytes, body.arena_bytes)) // 4),
                               "i32")
    return DoubleBufferedWhile(call, holds, body, fixed, pairs[:-1], pairs[-1], total, workspace)


def _all(body: ProgramBody, ins: Sequence[Pointer], outs: Sequence[Pointer],
         arena: Pointer) -> tuple[Step, ...]:
    return tuple([made for step in body.steps for made in relocated(step, ins, outs, arena)])


def _ends_itself(call: WhileLoop) -> bool:
    """Whether the predicate is a value of the carry that the first iteration sets to False."""
    asked = call.predicate.outvars[0]
    places = call.predicate.invars[call.predicate_consts:]
    return any(v is asked and isinstance(out, Literal) and not out.value
               for v, out in zip(places, call.body.outvars, strict=True))


def _whiles(jaxpr: Jaxpr) -> Iterator[bool]:
    """The loops with predicates in a program: one may not end from values that none should see."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is while_p:
            yield True
        for body in subjaxprs(eqn):
            yield from _whiles(body)
