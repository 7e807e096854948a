"""Loops over lanes as one kernel, a lane a thread: state in registers, each to its own end.

A lane is what stands at one place along the axes that no operation of the body mixes: a row of the
carry, or an iteration of a loop without a carry (the blocks that vmap makes of a loop with a
predicate). Its values are scalars, and small vectors and matrices by their elements. Tables that
lanes share are read where they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, TooManyExpressions
from functrans.lowering.loops.index import Index, LoopVar, flatten, strides_of
from functrans.lowering.loops.lane_reader import (
    InOwnLane,
    LaneArray,
    LaneComponents,
    LaneReader,
    LaneView,
    OwnElements,
    TensorInLane,
)
from functrans.lowering.loops.tensor import (
    Branch,
    Call,
    Reduce,
    ScanLoop,
    Stored,
    Tensor,
    WhileLoop,
)
from functrans.lowering.passes.lane_axes import LaneAxes, lane_axes
from functrans.lowering.passes.lanes import Layout
from functrans.lowering.passes.small_sorts import write_out_sorts
from functrans.lowering.passes.small_systems import write_out_systems
from functrans.lowering.rules.graph import CALLS, CallRule, graph_of, live_items
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.rules.reduce import SUMMED_CONTRACTIONS
from functrans.lowering.schedule.forms import Form
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.complex_memory import memory
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.lowering.triton.loops.thread_writer import ReadAhead, ThreadWriter
from functrans.lowering.triton.steps.spec import LANES
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.reduce import reduce_or_p

__all__ = ["THREADS", "lanes_in_threads", "region_in_threads"]

THREADS: Final = "a lane a thread"
BLOCK: Final = 128  # threads of a program, and a warp where there are few lanes
MOST_HELD: Final = 160  # numbers of a carry: registers of a thread are 255
MOST_WORKSPACE: Final = 1 << 30  # bytes of what loops inside collect
MOST_EXPRESSIONS: Final = 12_000  # of a kernel
FEW_LANES: Final = 1 << 17  # more hide how long memory takes to answer
INT32_LIMIT: Final = 2**31
SECTOR: Final = 32  # bytes that memory moves at once

RULES: Final[Mapping[Primitive, CallRule]] = {
    **{p: CALLS[p] for p in (scan_p, while_p, cond_p)}, **SUMMED_CONTRACTIONS}


def lanes_in_threads(call: ScanLoop | WhileLoop, scope: LoopScope) -> Form[Launches]:
    """A loop as one kernel of a thread for each lane; with a predicate, each iteration's seconds.

    Raises UnsupportedKernel where lanes mix, or have too many numbers.
    """
    writer = _LaneLoop(scope, scope.memory_of(call))
    try:
        with writer.reader.at_most(MOST_EXPRESSIONS):
            launches = writer.launches(call)
    except TooManyExpressions:
        raise UnsupportedKernel("a lane computes too many numbers") from None
    count = call.length if isinstance(call, ScanLoop) and call.num_carry else 1
    assert isinstance(count, int)
    return Form(THREADS, 1e-9 * count * writer.nanoseconds(scope.target), lambda: launches)


def region_in_threads(call: LaneLoop, scope: LoopScope) -> Launches:
    """A region of loops over lanes, and of what is around them, as one kernel of such threads.

    Raises UnsupportedKernel where a lane has too many numbers.
    """
    writer = _LaneLoop(scope, scope.memory_of(call))
    try:
        with writer.reader.at_most(MOST_EXPRESSIONS):
            return writer.region(call)
    except TooManyExpressions:
        raise UnsupportedKernel("a lane computes too many numbers") from None


class _LaneLoop:
    """Writes a loop for one lane."""

    def __init__(self, scope: LoopScope, memory: Iterable[Tensor]) -> None:
        self.scope = scope
        self.reader = LaneReader(memory)
        self.w = ThreadWriter()
        self.axes = LaneAxes((), {})
        self.variables: list[LoopVar] = []
        self.coordinates: list[LoopVar] = []  # those of axes
        self.held = 0
        self.lanes = 0
        self.is_alone = False  # the program is that of one lane
        self.makers: dict[Any, Equation] = {}
        self.workspaces: dict[Tensor, PartialResults] = {}
        self.stored: dict[Tensor, LaneArray | OwnElements] = {}
        """Where a loop collects results, which loops inside may write there."""
        self.written: dict[Tensor, LaneArray | OwnElements] = {}
        """Those that did."""

    # --------------------------------------------------------------------------- the kernel

    def launches(self, call: ScanLoop | WhileLoop) -> Launches:
        call = copy(call)
        call.body = body = write_out_sorts(write_out_systems(call.body))
        if self.scope.is_phase:
            raise UnsupportedKernel("its threads belong to a loop around it")
        if call.has_effect:
            raise UnsupportedKernel("it has effects")
        if isinstance(call, ScanLoop):
            if not isinstance(call.length, int) or call.length == 0:
                raise UnsupportedKernel("it has no iterations, or as many as are not known")
            first, carried = call.num_consts, call.num_carry
            is_map = carried == 0
        else:
            first, carried, is_map = call.body_consts, len(call.results), False
        tested = zip(call.predicate.invars[call.predicate_consts:], body.invars[first:],
                     strict=True) if isinstance(call, WhileLoop) else ()
        self.axes = lane_axes(body, first, carried, tested)
        sizes = list(self.axes.sizes)
        if is_map:
            assert isinstance(call, ScanLoop)
            sizes.insert(0, call.length)  # type: ignore[arg-type]
        self.variables = variables = [LoopVar(f"lane{k}", n) for k, n in enumerate(sizes)]
        self.coordinates = variables[is_map:]
        self.lanes = math.prod(sizes)
        if is_map:
            assert isinstance(call, ScanLoop)
            self._iteration(call, variables[0])
        elif isinstance(call, ScanLoop):
            outs = [LaneArray(y, {k + 1: lane for k, lane in self._lanes(v).items()}, None)
                    for y, v in zip(call.results[carried:], body.outvars[carried:], strict=True)]
            self._results(call.results[:carried], body, self._scan(call, outs))
        else:
            self._results(call.results, body, self._while(call))
        return self._kernel(self.lanes, variables)

    def region(self, call: LaneLoop) -> Launches:
        """The kernel of the program of a lane, which knows of no other."""
        program = call.program
        values = [*zip(call.operands, program.inputs, strict=True),
                  *zip(call.results, program.outputs, strict=True)]
        order = sorted(range(len(program.sizes)), key=lambda a: -_distance(values, a))
        own = [LoopVar(f"lane{k}", n) for k, n in enumerate(program.sizes)]
        self.variables = [own[k] for k in order]  # neighbours in memory are neighbours
        self.lanes = math.prod(program.sizes)
        self.is_alone = True

        def lane_of(t: Tensor, layout: Layout) -> OwnElements:
            axes = tuple([None if a is None else Index.of(own[a]) for a in layout.axes])
            return OwnElements(t, axes, layout.kept)

        inputs, outputs = ([lane_of(t, layout) for t, layout in zip(tensors, layouts, strict=True)]
                           for tensors, layouts in ((call.operands, program.inputs),
                                                    (call.results, program.outputs)))
        outputs = [replace(y, shape=tuple(v.aval.shape)) for y, v in zip(
            outputs, program.body.outvars, strict=True)]
        outs = self._program(program.body, inputs, outputs)
        for y, t in zip(outputs, outs, strict=True):
            if self.written.get(t) is not y:
                for _, at in self._components(t, None).places():
                    self._store(y.memory, y.place(at), self.reader.read(t, at))
        return self._kernel(self.lanes, self.variables)

    def _kernel(self, lanes: int, variables: Sequence[LoopVar]) -> Launches:
        threads = BLOCK if lanes >= 8 * BLOCK else 32
        if lanes >= INT32_LIMIT - BLOCK:
            raise UnsupportedKernel("more lanes than numbers of 32 bits")
        head, below = [], lanes
        for v in variables:
            assert isinstance(v.high, int)
            below //= v.high
            text = "lane" if below == 1 else f"lane // {below}"
            head.append(f"        {v.name} = {text}" + (
                f" % {v.high}" if v is not variables[0] else ""))
        arguments = [pointer(f"p{k}", MEMORY[t.dtype]) for k, t in enumerate(self.w.operands)]
        names = ", ".join(a.name for a in arguments)
        text = "\n".join([
            "@triton.jit", f"def lanes({names}):",
            f"    lane = tl.program_id(0) * {threads} + fm.thread_index({threads})",
            f"    if lane < {lanes}:", *head, *self.w.block.lines, ""])
        places: dict[str, tuple[KernelOperand, int]] = {
            f"p{k}": (self.workspaces.get(t, t), 0) for k, t in enumerate(self.w.operands)}
        kernel = TemplateKernel(LANES, HEAD + text, tuple(arguments),
                                (-(-lanes // threads), 1, 1), threads // 32, 1)
        return Launches([kernel], places)

    def nanoseconds(self, target: Target) -> float:
        """What an iteration takes: a thread waits for itself, or a multiprocessor has no more.

        What lanes store apart from each other is a sector of memory each.
        """
        known, each = target.measured, -(-self.lanes // target.multiprocessors)
        return self.w.repeated * max(known.thread_step, each / known.thread_rate) \
            + self.w.apart * self.lanes * SECTOR / known.all_bandwidth

    # --------------------------------------------------------------------------- values

    def _components(self, t: Tensor, v: Any) -> LaneComponents:
        """The components of a value, whose lanes are those of a variable of the program."""
        return LaneComponents(t, self._lanes(v))

    def _lanes(self, v: Any) -> dict[int, LoopVar]:
        """The coordinates along the axes of a variable of the program."""
        found = self.axes.of(v) if isinstance(v, Var) else {}
        return {k: self.coordinates[c] for k, c in found.items()}

    def _read_all(self, t: Tensor, v: Any) -> list[Expr]:
        return [self.reader.read(t, at) for _, at in self._components(t, v).places()]

    def _kept(self, tensors: Sequence[Tensor], variables: Sequence[Any],
              names: Sequence[Sequence[str]], loop: LoopVar | None) -> list[LaneComponents]:
        """Values in variables of the kernel, which change with a loop."""
        found = []
        for t, v, own in zip(tensors, variables, names, strict=True):
            value = self._components(t, v)
            for (numbers, _), name in zip(value.places(), own, strict=True):
                key = (t, numbers, name, loop)
                self.w.locals[key] = name
                value.parts[numbers] = self.reader.leaf(key, t.compute, loop)
            found.append(value)
        return found

    def _text(self, e: Expr, t: Tensor) -> str:
        """An expression as a value that is kept, with the digits that memory has."""
        return self.w.as_stored(self.w.expression(e), t)

    def _results(self, results: Sequence[Tensor], body: Jaxpr,
                 values: Sequence[TensorInLane]) -> None:
        """Store what a loop ends with."""
        for t, v, value in zip(results, body.outvars, values, strict=False):
            for _, at in self._components(t, v).places():
                self._store(t, at, value.element(self.reader, at))

    def _store(self, t: Tensor, at: Sequence[Index], e: Expr) -> None:
        """Store an element; of what lanes share the first of them does."""
        value = self.w.stored(self.w.expression(e), t)
        line = self.w.store(t, flatten(at, t.shape), value, self.variables)
        own = frozenset[LoopVar]().union(*[i.variables() for i in at])
        shared = [f"({v.name} == 0)" for v in self.variables if v not in own]
        if not shared:
            self.w.emit(line)
            return
        with self.w.nested(f"if {' & '.join(shared)}:", None):
            self.w.emit(line)

    def _program(self, jaxpr: Jaxpr, inputs: Sequence[TensorInLane],
                 stored: Sequence[LaneArray | OwnElements] = ()) -> list[Tensor]:
        """The results of a body, after its loops and branches have been written.

        Where the last of them are `stored` is known, to loops inside that compute them.
        """
        graph = graph_of(jaxpr, rules=RULES, memory=memory)
        self.stored.update(zip(reversed(graph.outputs), reversed(stored), strict=False))
        self.reader.values.update(zip(graph.inputs, inputs, strict=True))
        self.makers.update({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars})
        for t, array in graph.constants:
            constant = self.scope.with_constant(array)
            constant.known = t.known
            self.reader.values[t] = LaneView(constant)
        for item in live_items(graph.items, graph.outputs):
            if isinstance(item, Call):
                self._call(item, graph.origins[item])
        return graph.outputs

    def _call(self, call: Call, eqn: Equation) -> None:
        if isinstance(call, ScanLoop):
            n = call.num_carry
            if n == 0 and not self.is_alone \
                    and (found := self._lane_of(eqn.outvars)) is not None:
                self._inner_map(call, found)
                return
            outs = [self._collected(t, v) for t, v in zip(call.results[n:], eqn.outvars[n:],
                                                          strict=True)]
            ends: Sequence[TensorInLane] = [*self._scan(call, outs), *outs]
        elif isinstance(call, WhileLoop):
            ends = self._while(call)
        elif isinstance(call, Branch):
            ends = self._branch(call, eqn)
        else:
            raise UnsupportedKernel(f"a lane does not compute a {call.name}")
        self.reader.values.update(zip(call.results, ends, strict=True))

    def _collected(self, t: Tensor, v: Var) -> LaneArray | OwnElements:
        """Where a loop inside collects a result: where the loop around it does, or in memory of
        the lane."""
        if self.is_alone:
            return self._collected_alone(t)
        lanes = self._lanes(v)
        if t in self.stored and len(lanes) == len(self.variables):
            self.written[t] = self.stored[t]
            return self.stored[t]
        own = [n for k, n in enumerate(t.shape) if k not in lanes]
        workspace = Stored((*own, *[x.high for x in lanes.values()]), t.dtype, ())
        if len(lanes) < len(self.variables):
            raise UnsupportedKernel("lanes collect the same")
        assert isinstance(workspace.size, int)
        self.workspaces[workspace] = PartialResults(workspace.size, 1, t.dtype)
        if self.workspaces[workspace].nbytes > MOST_WORKSPACE:
            raise UnsupportedKernel("loops inside collect more than fits")
        return LaneArray(workspace, lanes, self.w.variables(), last=True)

    def _collected_alone(self, t: Tensor) -> OwnElements:
        found = self.stored.get(t)
        if found is not None:
            assert isinstance(found, OwnElements)
            self.written[t] = found
            return found
        workspace = Stored((*t.shape, *[x.high for x in self.variables]), t.dtype, ())
        assert isinstance(workspace.size, int)
        room = self.workspaces[workspace] = PartialResults(workspace.size, 1, t.dtype)
        if room.nbytes > MOST_WORKSPACE:
            raise UnsupportedKernel("loops inside collect more than fits")
        axes = (*[None] * len(t.shape), *map(Index.of, self.variables))
        return OwnElements(workspace, axes, loop=self.w.variables() or self.variables[0])

    def _lane_of(self, outs: Sequence[Var]) -> LoopVar | None:
        """The coordinate along the first axis of the results of a loop without a carry."""
        numbers = {self.axes.of(v).get(0) for v in outs}
        number = numbers.pop() if len(numbers) == 1 else None
        return None if number is None else self.coordinates[number]

    # --------------------------------------------------------------------------- loops

    def _iteration(self, call: ScanLoop, at: LoopVar) -> None:
        """The kernel of a loop without a carry: an iteration for each lane."""
        first = call.num_consts
        here = (Index.of(at),)
        outs = self._program(call.body, [*map(LaneView, call.operands[:first]),
                                         *[LaneView(x, here) for x in call.operands[first:]]])
        for t, out, v in zip(call.results, outs, call.body.outvars, strict=True):
            for _, place in self._components(out, v).places():
                self._store(t, (*here, *place), self.reader.read(out, place))

    def _inner_map(self, call: ScanLoop, at: LoopVar) -> None:
        first = call.num_consts
        outs = self._program(call.body, [
            *map(LaneView, call.operands[:first]),
            *[LaneView(x, (Index.of(at),)) for x in call.operands[first:]]])
        self.reader.values.update({t: InOwnLane(out, at)
                                   for t, out in zip(call.results, outs, strict=True)})

    def _begin(self, tensors: Sequence[Tensor], variables: Sequence[Var]) -> list[list[str]]:
        """Variables for a carry, which begin with tensors."""
        found = []
        for t, v in zip(tensors, variables, strict=True):
            names = []
            for e in self._read_all(t, v):
                text = self._text(e, t)
                names.append(self.w.fresh())
                self.w.emit(f"{names[-1]} = {text}")
            found.append(names)
        self.held += sum(map(len, found))
        if self.held > MOST_HELD:
            raise UnsupportedKernel(f"a lane has {self.held} numbers")
        return found

    def _step(self, names: Sequence[Sequence[str]], outs: Sequence[Tensor],
              variables: Sequence[Any]) -> list[list[str]]:
        """The texts of the next values of a carry, in place of the last."""
        return [[self._text(e, t) for e in self._read_all(t, v)]
                for t, v in zip(outs, variables, strict=True)]

    def _assign(self, names: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> None:
        left = [n for own in names for n in own]
        right = [x for own in texts for x in own]
        if left:
            self.w.emit(f"{', '.join(left)} = {', '.join(right)}")

    def _scan(self, call: ScanLoop,
              collected: Sequence[LaneArray | OwnElements]) -> list[TensorInLane]:
        """Write a loop of known length, which collects some results; what it carries at last."""
        if not isinstance(call.length, int):
            raise UnsupportedKernel("a loop of unknown length")
        first, n, body = call.num_consts, call.num_carry, call.body
        carried = call.operands[first:first + n]
        moving = [k for k in range(n) if body.outvars[k] is not body.invars[first + k]]
        invars = [body.invars[first + k] for k in moving]
        names = self._begin([carried[k] for k in moving], invars)
        outer = self.w.variables()
        t = LoopVar(self.w.fresh(), call.length)
        at = Index.of(call.length - 1) - Index.of(t) if call.reverse else Index.of(t)
        parts = [y.part(at) for y in collected]
        may_wait = self.lanes <= FEW_LANES and call.length > ReadAhead.BY
        ahead = {x: ReadAhead(x, self.w, t, at, frozenset(self.variables))
                 for x in call.operands[first + n:] if may_wait and self._is_in_memory(x)}
        with self.w.nested(f"for {t.name}_ in range(0, {call.length}):", t):
            self.w.emit(f"{t.name} = tl.cast({t.name}_, tl.int32)")  # the interpreter's are ints
            kept = dict(zip(moving, self._kept(
                [carried[k] for k in moving], invars, names, t), strict=True))
            outs = self._program(body, [
                *map(LaneView, call.operands[:first]),
                *[kept[k] if k in kept else LaneView(carried[k]) for k in range(n)],
                *[ahead.get(x, LaneView(x, (at,))) for x in call.operands[first + n:]]],
                parts)
            for y, out, v in zip(parts, outs[n:], body.outvars[n:], strict=True):
                if self.written.get(out) is not y:
                    for _, place in self._components(out, v).places():
                        self._store(y.memory, y.place(place), self.reader.read(out, place))
            self._assign(names, self._step(names, [outs[k] for k in moving],
                                           [body.outvars[k] for k in moving]))
            for x in ahead.values():
                x.write(self.reader, call.length, call.reverse)
        ends = dict(zip(moving, self._kept([carried[k] for k in moving], invars, names, outer),
                        strict=True))
        return [ends[k] if k in ends else LaneView(carried[k]) for k in range(n)]

    def _is_in_memory(self, x: Tensor) -> bool:
        """Whether elements of a value are read where they are; they do not change in a loop."""
        return self.reader.is_operand(x) or isinstance(self.reader.values.get(x), OwnElements)

    def _while(self, call: WhileLoop) -> list[TensorInLane]:
        """Write a loop with a predicate; what it carries at last."""
        if call.record is not None:
            raise UnsupportedKernel("it records each iteration")
        first, second, body = call.predicate_consts, call.body_consts, call.body
        carried = call.operands[first + second:]
        n = len(carried)
        consts = [*map(LaneView, call.operands[first:first + second])]
        moving = [k for k in range(n) if body.outvars[k] is not body.invars[second + k]]
        invars = [body.invars[second + k] for k in moving]
        flag = self._flag(call)
        going = self.w.fresh()
        self.w.emit(f"{going} = {self._holds(call, flag, [LaneView(x) for x in carried])}")
        names = self._begin([carried[k] for k in moving], invars)
        outer = self.w.variables()
        marker = LoopVar(self.w.fresh(), INT32_LIMIT)
        with self.w.nested(f"while {going}:", marker):
            kept = dict(zip(moving, self._kept(
                [carried[k] for k in moving], invars, names, marker), strict=True))
            now: list[TensorInLane] = [kept[k] if k in kept else LaneView(x)
                                    for k, x in enumerate(carried)]
            if flag is not None:
                self._check_masked(call, consts, now, kept, flag)
                now[flag] = self._constant(kept[flag], True)
            outs = self._program(body, [*consts, *now])
            texts = self._step(names, [outs[k] for k in moving],
                               [body.outvars[k] for k in moving])
            after: list[TensorInLane] = [LaneView(outs[k]) if k in kept else LaneView(carried[k])
                                  for k in range(n)]
            holds = self._holds(call, flag, after)
            self._assign([*names, [going]], [*texts, [holds]])
        ends = dict(zip(moving, self._kept([carried[k] for k in moving], invars, names, outer),
                        strict=True))
        return [ends[k] if k in ends else LaneView(carried[k]) for k in range(n)]

    def _flag(self, call: WhileLoop) -> int | None:
        """Which of the carry says of each lane whether it goes on, where any keeps all going."""
        (out,), test = call.predicate.outvars, call.predicate
        eqn = next((e for e in test.eqns if out in e.outvars), None)
        if eqn is None or eqn.primitive is not reduce_or_p or self.is_alone:
            return None
        carry: tuple[Var, ...] = test.invars[call.predicate_consts:]
        x = eqn.invars[0]
        if not call.masked or not isinstance(x, Var) or x not in carry \
                or len(self.axes.of(x)) < sum(n != 1 for n in x.aval.shape):
            raise UnsupportedKernel("whether a lane goes on depends on others")
        return carry.index(x)

    def _holds(self, call: WhileLoop, flag: int | None, carry: Sequence[TensorInLane]) -> str:
        """The predicate of a lane."""
        if flag is None:
            outs = self._program(call.predicate, [
                *map(LaneView, call.operands[:call.predicate_consts]), *carry])
            return self.w.expression(self.reader.read(outs[0], ()))
        v = call.body.invars[call.body_consts + flag]
        t = Stored(v.aval.shape, "bool", ())
        (_, at), = self._components(t, v).places()
        return self.w.expression(carry[flag].element(self.reader, at))

    def _check_masked(self, call: WhileLoop, consts: Sequence[TensorInLane],
                      now: Sequence[TensorInLane], kept: Mapping[int, LaneComponents],
                      flag: int) -> None:
        """Raise UnsupportedKernel unless a lane that is done stays as it is."""
        done = [*now]
        done[flag] = self._constant(kept[flag], False)
        outs = self._program(call.body, [*consts, *done])
        for k, value in kept.items():
            v = call.body.outvars[k]
            parts = self._read_all(outs[k], v)
            if k != flag and any(a is not b for a, b in zip(
                    parts, value.parts.values(), strict=True)):
                raise UnsupportedKernel("a lane that is done changes with the others")

    def _constant(self, like: LaneComponents, value: bool) -> LaneComponents:
        found = LaneComponents(Stored(like.shape, "bool", ()), like.lanes)
        found.parts = dict.fromkeys(like.parts, self.reader.const(np.bool_(value), "bool"))
        return found

    def _branch(self, call: Branch, eqn: Equation) -> list[TensorInLane]:
        """Write a choice; only the branch that is chosen runs."""
        index = call.operands[0]
        if call.masked and isinstance(index, Reduce) and not self.is_alone:
            own = self._lanes(self.makers[eqn.invars[0]].invars[0])
            if len(own) < len(index.sizes):
                raise UnsupportedKernel("what a lane chooses depends on others")
            wants = index.element(self.reader, tuple([Index.of(own[k]) for k in sorted(own)]))
        else:
            wants = self.reader.read(index, ())
        which = self.w.expression(wants)
        names = [[self.w.fresh() for _ in self._components(t, v).places()]
                 for t, v in zip(call.results, eqn.outvars, strict=True)]
        outer = self.w.variables()
        chosen = f"{which}.to(tl.int32)"
        last = len(call.branches) - 1
        for k, branch in enumerate(call.branches):
            test = f"{chosen} <= 0" if k == 0 else f"{chosen} == {k}"
            head = "else:" if k == last else f"{'if' if k == 0 else 'elif'} {test}:"
            with self.w.nested(head, None):
                outs = self._program(branch, [*map(LaneView, call.operands[1:])])
                self._assign(names, self._step(names, outs, eqn.outvars))
        return list(self._kept(call.results, eqn.outvars, names, outer))


def _distance(values: Iterable[tuple[Tensor, Layout]], axis: int) -> int:
    """How far neighbours along an axis of lanes are from each other in memory, in all."""
    return sum(min(32, int(stride)) for t, layout in values
               for a, stride in zip(layout.axes, strides_of(t.shape), strict=True) if a == axis)


HEAD: Final = """\
import triton
import triton.language as tl

from functrans.lowering.triton.kernels import device_math as fm


"""
