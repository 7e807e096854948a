"""Loops of known length: the steps of the body once for every iteration, at its places.

Nothing waits for the host, and the whole loop is part of one graph of the driver. The carry moves
between two places, or stays in one that the body updates, or is where a result collects it, from
before or after each iteration: it is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from functrans.core.jaxpr import Equation, Jaxpr, Literal
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import HostCall, ScanLoop, Tensor, WhileLoop, item_size
from functrans.lowering.memory.arena import Block
from functrans.lowering.rules.graph import results_of
from functrans.lowering.schedule.group import FusionNote, Schedule
from functrans.lowering.triton.kernels.kernel_source import PartialResults
from functrans.lowering.triton.steps.spec import (
    BufferSide,
    CollectiveSteps,
    CopyStep,
    DoubleBufferedSteps,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    WaitStep,
)

__all__ = [
    "LaunchedScan",
    "ProgramBody",
    "ScanCall",
    "WhileCall",
    "WriteBody",
    "after",
    "bytes_of",
    "carry_placements",
    "launched_scan",
    "moved",
    "numbers_of",
    "relocated",
    "save_of",
    "scan_rule",
    "stack_of",
    "while_rule",
]

# A step costs 10 us to describe and 1 us to replay: so many take 0.2 s once, 20 ms every time.
MOST_STEPS = 20_000
LEAST_ROUNDS = 6  # iterations, of which the two after the first show how places go on
ALIGNMENT = 256


class ScanCall(ScanLoop):
    """A scan that may go to the host after all: with its equation."""

    def __init__(self, eqn: Equation, operands: Sequence[Tensor]) -> None:
        super().__init__(eqn, operands, results_of(eqn))
        self.eqn = eqn

    def on_host(self) -> HostCall:
        return HostCall(self.eqn, self.operands, self.results)


class WhileCall(WhileLoop):
    """A loop with a predicate that may go to the host after all: with its equation."""

    def __init__(self, eqn: Equation, operands: Sequence[Tensor]) -> None:
        super().__init__(eqn, operands, results_of(eqn))
        self.eqn = eqn

    def on_host(self) -> HostCall:
        return HostCall(self.eqn, self.operands, self.results)


def while_rule(eqn: Equation, xs: list[Tensor]) -> WhileCall:
    return WhileCall(eqn, xs)


def scan_rule(eqn: Equation, xs: list[Tensor]) -> ScanCall | None:
    return ScanCall(eqn, xs) if isinstance(eqn.params["length"], int) else None


class ProgramBody(Record, frozen=False, eq=False):
    """The steps of a program inside another: their places are its own inputs, outputs and arena.

    `updated`: the inputs that the output with this number may share its memory with. `apart`: why
    values are not computed where they are read. `kept`: what is in memory between steps, and the
    steps that read it. `arguments`: its inputs as values. `again` makes its schedule once more, for
    a log, and `places` has where values are.
    """

    steps: list[Step]
    arena_bytes: int
    updated: dict[int, int]
    notes: list[str]
    blocks: list[Block[Any]] = field(default_factory=list)
    apart: list[FusionNote] = field(default_factory=list)
    kept: list[tuple[Tensor, list[Step]]] = field(default_factory=list)
    arguments: Sequence[Tensor] = ()
    again: Callable[[Any], Schedule] | None = None
    places: Mapping[Tensor, Pointer] = field(default_factory=dict)


WriteBody = Callable[[Jaxpr, frozenset[int], frozenset[int]], ProgramBody]
"""The body of a jaxpr; some inputs and outputs, by number, are at places of no alignment."""


class LaunchedScan(Record, frozen=False, eq=False):
    """A scan on the device: where its carry is, and the memory that it needs beside results."""

    call: ScanCall
    body: ProgramBody | None  # None of a loop without iterations
    ways: list[str]  # of each value of the carry: fixed, updated, stacked, saved or alternate
    offsets: list[int]  # of the second places of the carry in the workspace, and of the arena
    workspace: PartialResults

    def steps(self, where: Callable[[Tensor | PartialResults], Pointer]) -> list[Step]:
        """The steps of all iterations."""
        call, n = self.call, self.call.num_carry
        consts = [where(t) for t in call.operands[:call.num_consts]]
        starts = [where(t) for t in call.operands[call.num_consts:call.num_consts + n]]
        xs = call.operands[call.num_consts + n:]
        ends, ys = [where(r) for r in call.results[:n]], call.results[n:]
        sizes = [bytes_of(r.shape, r.dtype) for r in call.results[:n]]
        if self.body is None:
            return moved(ends, starts, sizes)
        room = where(self.workspace)
        *seconds, arena = [after(room, offset) for offset in self.offsets]
        made: list[Step] = []
        now = list(starts)
        length: int = call.length  # type: ignore[assignment]

        def element(t: Tensor, i: int) -> Pointer:
            """What iteration i reads of xs or writes of ys."""
            return after(where(t), (length - 1 - i if call.reverse else i) * slice_bytes(t))

        def result(k: int, way: str, i: int) -> Pointer:
            """Where iteration i leaves a value of the carry."""
            if way == "stacked":
                return element(ys[stack_of(call, k)], i)
            if way == "saved" and i < length - 1:
                return element(ys[save_of(call, k)], i + 1)
            if way == "saved" or (way == "alternate" and (length - 1 - i) % 2 == 0):
                return ends[k]
            return seconds[k] if way == "alternate" else now[k]

        for k, way in enumerate(self.ways):
            if way in ("updated", "saved"):
                now[k] = ends[k] if way == "updated" else element(ys[save_of(call, k)], 0)
                made += moved([now[k]], [starts[k]], [sizes[k]])
        body = self.body

        def iterations(begin: int, end: int) -> list[Step]:
            nonlocal now
            made: list[Step] = []
            for i in range(begin, end):
                slices = [element(t, i) for t in (*xs, *ys)]
                then = [result(k, way, i) for k, way in enumerate(self.ways)]
                ins, outs = [*consts, *now, *slices[:len(xs)]], [*then, *slices[len(xs):]]
                for step in body.steps:
                    made += relocated(step, ins, outs, arena)
                now = then
            return made

        if length * len(body.steps) <= MOST_STEPS or length < LEAST_ROUNDS:
            made += iterations(0, length)
        else:  # the first and the last are different; two places of the carry take turns
            count = (length - 2) // 2
            made += iterations(0, 1)
            made.append(RepeatedSteps(_going_on(iterations(1, 3), iterations(3, 5)), count))
            now = [result(k, way, 2 * count) for k, way in enumerate(self.ways)]
            made += iterations(2 * count + 1, length)
        return made + moved(ends, now, sizes)


def launched_scan(call: ScanCall, write_body: WriteBody,
                  is_unaligned: Callable[[Tensor], bool]) -> LaunchedScan:
    """The loop of a scan on the device. Raises UnsupportedKernel where the host is faster."""
    length, first, n = call.length, call.num_consts, call.num_carry
    if length == 0:
        return LaunchedScan(call, None, [], [], PartialResults(1, 1, "i32"))
    carry, jaxpr = call.operands[first:first + n], call.body

    def uneven(t: Tensor) -> bool:
        return is_unaligned(t) or slice_bytes(t) % 16 != 0

    unaligned = [is_unaligned(t) or is_unaligned(r) for t, r in zip(carry, call.results)]
    for k, way in enumerate(carry_placements(call, {})):
        if way in ("stacked", "saved"):
            j = stack_of(call, k) if way == "stacked" else save_of(call, k)
            unaligned[k] = unaligned[k] or uneven(call.results[n + j])
    ins = [*map(is_unaligned, call.operands[:first]), *unaligned,
           *map(uneven, call.operands[first + n:])]
    outs = [*unaligned, *map(uneven, call.results[n:])]
    body = write_body(jaxpr, numbers_of(ins), numbers_of(outs))
    assert isinstance(length, int)
    if length * len(body.steps) > MOST_STEPS and (length < LEAST_ROUNDS or any(
            not isinstance(s, (Launch, CopyStep, LibraryStep)) for s in body.steps)):
        raise UnsupportedKernel("it has more steps than a program may")
    if body.steps and not any(isinstance(s, Launch) for s in body.steps) \
            and any(type(s) is HostStep for s in body.steps):
        raise UnsupportedKernel("the host computes its body")
    ways = carry_placements(call, body.updated)
    offsets, total = [], 0
    for k, way in enumerate(ways):
        offsets.append(total)
        if way == "alternate":
            total += _rounded(bytes_of(call.results[k].shape, call.results[k].dtype))
    offsets.append(total)
    total += body.arena_bytes
    return LaunchedScan(call, body, ways, offsets, PartialResults(1, max(1, -(-total // 4)), "i32"))


def carry_placements(call: ScanLoop, updated: Mapping[int, int]) -> list[str]:
    """Where values of the carry are: fixed, stacked, saved, updated, or alternate between places.

    `updated` is that of the body.
    """
    first, jaxpr = call.num_consts, call.body
    return ["fixed" if jaxpr.outvars[k] is jaxpr.invars[first + k]
            else "stacked" if stack_of(call, k) >= 0 else "saved" if save_of(call, k) >= 0
            else "updated" if updated.get(k) == first + k else "alternate"
            for k in range(call.num_carry)]


def after(at: Pointer, nbytes: int) -> Pointer:
    return Pointer(at.kind, at.index, at.offset + nbytes)


def slice_bytes(t: Tensor) -> int:
    """Bytes of one element along the first axis."""
    return bytes_of(t.shape[1:], t.dtype)


def bytes_of(shape: Sequence[Any], dtype: str) -> int:
    total = item_size(dtype)
    for n in shape:
        if not isinstance(n, int):
            raise UnsupportedKernel("a loop over values of a size that is not known")
        total *= n
    return total


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def numbers_of(flags: Sequence[bool]) -> frozenset[int]:
    return frozenset(k for k, flag in enumerate(flags) if flag)


def stack_of(call: ScanLoop, k: int) -> int:
    """Which of the stacked results collects a value of the carry; -1: none."""
    outs, n = call.body.outvars, call.num_carry
    if not isinstance(outs[k], Literal) and outs[k] not in call.body.invars:
        for j, v in enumerate(outs[n:]):
            if v is outs[k]:
                return j
    return -1


def save_of(call: ScanLoop, k: int) -> int:
    """Which of the stacked results collects what a value of the carry was before; -1: none."""
    n = call.num_carry
    for j, v in enumerate(call.body.outvars[n:]):
        if v is call.body.invars[call.num_consts + k]:
            return j
    return -1


def moved(targets: Sequence[Pointer], sources: Sequence[Pointer],
           sizes: Sequence[int]) -> list[Step]:
    return [CopyStep(t, s, nbytes) for t, s, nbytes in zip(targets, sources, sizes, strict=True)
            if t != s and nbytes]


def _going_on(first: Sequence[Step], second: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of a round, whose pointers go on to those of the next."""
    def on(p: Pointer, q: Pointer) -> Pointer:
        return replace(p, stride=q.offset - p.offset)

    found: list[Step] = []
    for a, b in zip(first, second, strict=True):
        if isinstance(a, Launch):
            assert isinstance(b, Launch)
            found.append(replace(a, arguments=tuple([
                on(x, y) if isinstance(x, Pointer) and isinstance(y, Pointer) else x
                for x, y in zip(a.arguments, b.arguments, strict=True)])))
        elif isinstance(a, LibraryStep):
            assert isinstance(b, LibraryStep)
            found.append(replace(a, inputs=tuple(map(on, a.inputs, b.inputs)),
                                 outputs=tuple(map(on, a.outputs, b.outputs))))
        else:
            assert isinstance(a, CopyStep)
            assert isinstance(b, CopyStep)
            found.append(CopyStep(on(a.target, b.target), on(a.source, b.source), a.nbytes))
    return tuple(found)


def relocated(step: Step, ins: Sequence[Pointer], outs: Sequence[Pointer],
               arena: Pointer) -> list[Step]:
    """A step of the body at the places of an iteration; none if it moves nothing there."""
    def at(p: Pointer) -> Pointer:
        if p.kind in ("constant", "tickets"):
            return p
        base = arena if p.kind == "arena" else (ins if p.kind == "input" else outs)[p.index]
        return replace(after(base, p.offset), stride=p.stride)

    def inner(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple([made for step in steps for made in relocated(step, ins, outs, arena)])

    if isinstance(step, Launch):
        return [replace(step, arguments=tuple([at(x) if isinstance(x, Pointer) else x
                                               for x in step.arguments]))]
    if isinstance(step, RepeatedSteps):
        return [RepeatedSteps(inner(step.steps), step.count)]
    if isinstance(step, DoubleBufferedSteps):
        first, second = (BufferSide(at(s.flag), inner(s.holds), inner(s.body), inner(s.ends))
                         for s in step.sides)
        return [DoubleBufferedSteps((first, second), step.ahead)]
    if isinstance(step, CollectiveSteps):
        return [replace(step, parts=tuple([s for s in inner(step.parts)
                                           if isinstance(s, LibraryStep)]))]
    if isinstance(step, WaitStep):
        return [step]
    if isinstance(step, HostStep):
        return [replace(step, inputs=tuple(map(at, step.inputs)),
                        outputs=tuple(map(at, step.outputs)))]
    return moved([at(step.target)], [at(step.source)], [step.nbytes])
