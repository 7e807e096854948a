"""Loops over lanes as one kernel, a lane a thread: state in registers, each to its own end.

What a lane does is a program of its own (`passes/lanes.py`). Its values are scalars, and small
vectors and matrices by their elements. Operands are read where they are, tables that lanes share,
too; results are written as they come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, TooManyExpressions
from functrans.lowering.loops.index import Index, LoopVar, flatten, strides_of, unflatten
from functrans.lowering.loops.lane_values import (
    Defined,
    Element,
    InMemory,
    LaneValue,
    Registers,
    elements_of,
)
from functrans.lowering.loops.tensor import Branch, Call, ScanLoop, Stored, Tensor, WhileLoop
from functrans.lowering.passes.lanes import LaneLayout, LaneProgram, lane_program_or_reason
from functrans.lowering.rules.graph import graph_of, live_items
from functrans.lowering.rules.lanes import CALLS_OF_LANES, LaneLoop
from functrans.lowering.rules.memory import memory
from functrans.lowering.schedule.forms import Form
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.loops.iterations import ScanCall, WhileCall
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.lowering.triton.loops.thread_values import (
    InPlaces,
    Place,
    Same,
    ThreadBuilder,
    Written,
    in_workspace,
)
from functrans.lowering.triton.loops.thread_writer import MOST_AHEAD, ReadAhead, ThreadWriter
from functrans.lowering.triton.steps.spec import LANES
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.lowering.triton.templates.notes import KernelNotes, named_values

__all__ = ["THREADS", "coordinates", "lanes_in_threads", "region_in_threads"]

THREADS: Final = "a lane a thread"
BLOCK: Final = 128  # threads of a program, and a warp where there are few lanes
MOST_HELD: Final = 160  # numbers of a carry: registers of a thread are 255
MOST_WORKSPACE: Final = 1 << 30  # bytes of what loops inside collect
MOST_EXPRESSIONS: Final = 12_000  # of a kernel
FEW_LANES: Final = 1 << 17  # more hide how long memory takes to answer
INT32_LIMIT: Final = 2**31
ROWS, COLUMNS = 4, 8  # of the patch of a warp: a sector of memory is a row of numbers
SECTOR: Final = 32  # bytes that memory moves at once
FAR: Final = 16  # elements: neighbours that are further apart are in other sectors


def lanes_in_threads(call: ScanCall | WhileCall, scope: LoopScope) -> Form[Launches]:
    """A loop as one kernel of a thread for each lane; with a predicate, each iteration's seconds.

    Raises UnsupportedKernel where lanes mix, or have too many numbers.
    """
    if scope.is_phase:
        raise UnsupportedKernel("its threads belong to a loop around it")
    program = lane_program_or_reason(call.eqn, scope.target.measured.lanes)
    if isinstance(program, str):
        raise UnsupportedKernel(program)
    tensors = dict(zip(call.eqn.invars, call.operands, strict=True))
    writer = _ThreadsWriter(call, program, [tensors[v] for v in program.operands], scope)
    launches = writer.launches()
    count = call.length if isinstance(call, ScanLoop) and call.num_carry else 1
    assert isinstance(count, int)
    return Form(THREADS, 1e-9 * count * writer.nanoseconds(scope.target), lambda: launches)


def region_in_threads(call: LaneLoop, scope: LoopScope) -> Launches:
    """Loops over lanes, and what is around them, as one kernel of such threads.

    Raises UnsupportedKernel where a lane has too many numbers.
    """
    return _ThreadsWriter(call, call.program, call.operands, scope).launches()


class _ThreadsWriter:
    """Writes the program of a lane."""

    def __init__(self, call: Call, program: LaneProgram, operands: Sequence[Tensor],
                 scope: LoopScope) -> None:
        self.call = call
        self.program = program
        self.scope = scope
        self.operands = operands
        self.s = ThreadBuilder()
        self.w = ThreadWriter()
        self.lanes = math.prod(program.sizes)
        self.lane = LoopVar("lane", self.lanes)
        self.axes = [LoopVar(f"lane{k}", n) for k, n in enumerate(program.sizes)]
        self.variables = [self.axes[k] for k in self._from_far_to_near()]
        """Threads side by side differ in the last."""
        self.held = 0
        self.diverges = False
        """Whether lanes go their own ways."""
        self.workspaces: dict[Tensor, PartialResults] = {}
        self.goals: dict[Tensor, Written] = {}
        """Where a loop collects results, which loops inside may write there."""
        self.written: dict[Tensor, Written] = {}
        """Those that did."""
        self.origins: dict[Tensor | Call, Equation] = {}
        """Of the values of all bodies."""

    # --------------------------------------------------------------------------- the kernel

    def launches(self) -> Launches:
        try:
            with self.s.at_most(MOST_EXPRESSIONS):
                return self._launches()
        except TooManyExpressions:
            raise UnsupportedKernel("a lane computes too many numbers") from None

    def _launches(self) -> Launches:
        call, program = self.call, self.program
        for t in self.scope.memory_of(call):
            self.s.values[t] = InMemory(t, (None,) * len(t.shape), frozenset())
        waiting = list(self.operands)
        while waiting:
            t = waiting.pop()
            if t not in self.s.values:
                self.s.values[t] = Defined(t)
                waiting += t.operands
        goals = [self._result(t, layout, v) for t, layout, v in zip(
            call.results, program.outputs, program.body.outvars, strict=True)]
        outs = self._run(program.body, [InPlaces(t, self._places(layout), layout.kept) for t, layout
                                        in zip(self.operands, program.inputs, strict=True)], goals)
        self._write_results(outs, goals)
        return self._kernel()

    def _result(self, t: Tensor, layout: LaneLayout, out: Atom) -> Written:
        """A result of the lane, which it may have in another shape."""
        there = InMemory(t, self._places(layout), layout.kept)
        own = tuple([n if a is None else 1 for k, (n, a) in enumerate(
            zip(t.shape, layout.axes, strict=True)) if a is None or k in layout.kept])
        shape = out.aval.shape
        return Written(t, there.place if shape == own else lambda index: there.place(
            unflatten(flatten(index, shape), own)), None)

    def _places(self, layout: LaneLayout) -> list[Index | None]:
        return [None if a is None else Index.of(self.axes[a]) for a in layout.axes]

    def _from_far_to_near(self) -> list[int]:
        """The axes of lanes, the last that along which lanes are nearest in memory."""
        program = self.program
        values = [*zip(self.operands, program.inputs, strict=True),
                  *zip(self.call.results, program.outputs, strict=True)]

        def distance(axis: int) -> int:
            return sum(min(FAR, int(stride)) for t, layout in values for a, stride in zip(
                layout.axes, strides_of(t.shape), strict=True) if a == axis)

        return sorted(range(len(program.sizes)), key=distance, reverse=True)

    def _kernel(self) -> Launches:
        lanes = self.lanes
        threads = BLOCK if lanes >= 8 * BLOCK else 32
        if lanes >= INT32_LIMIT - BLOCK:
            raise UnsupportedKernel("more lanes than numbers of 32 bits")
        sizes = [int(v.high) for v in self.variables]
        head = [f"        {v.name} = {text}" for v, text in zip(
            self.variables, coordinates(sizes, self.diverges), strict=True)]
        arguments = [pointer(f"p{k}", MEMORY[t.dtype]) for k, t in enumerate(self.w.operands)]
        names = ", ".join(a.name for a in arguments)
        text = "\n".join([
            "@triton.jit", f"def lanes({names}):",
            f"    lane = tl.program_id(0) * {threads} + fm.thread_index({threads})",
            f"    if lane < {lanes}:", *head, *self.w.block.lines, ""])
        places: dict[str, tuple[KernelOperand, int]] = {
            f"p{k}": (self.workspaces.get(t, t), 0) for k, t in enumerate(self.w.operands)}
        reads = [(t, e) for (t, _), e in self.s.reads().items()]
        notes = KernelNotes([*named_values(self.w.named, reads)], {"lane": threads, "lanes": lanes},
                            origins=self.origins)
        kernel = TemplateKernel(LANES, HEAD + text, tuple(arguments),
                                (-(-lanes // threads), 1, 1), threads // 32, 1, notes=notes)
        return Launches([kernel], places)

    def nanoseconds(self, target: Target) -> float:
        """What an iteration takes: a thread waits for itself, or a multiprocessor has no more.

        What lanes store apart from each other is a sector of memory each.
        """
        known, each = target.measured, -(-self.lanes // target.multiprocessors)
        return self.w.repeated * max(known.thread_step, each / known.thread_rate) \
            + self.w.apart * self.lanes * SECTOR / known.all_bandwidth

    # --------------------------------------------------------------------------- values

    def _kept(self, tensors: Sequence[Tensor], names: Sequence[Sequence[str]],
              loop: LoopVar | None) -> list[Registers]:
        """Values in variables of the kernel, which change with a loop."""
        found = []
        for t, own in zip(tensors, names, strict=True):
            for name in own:
                self.w.locals[name, loop] = name
            found.append(Registers([self.s.number((name, loop), t.compute, loop) for name in own],
                                   t.shape))
        return found

    def _text(self, e: Expr, t: Tensor) -> str:
        """An expression as a value that is kept, with the digits that memory has."""
        return self.w.as_stored(self.w.expression(e), t)

    def _write_results(self, tensors: Sequence[Tensor], goals: Sequence[Written]) -> None:
        """Store values, unless loops inside did."""
        for t, goal in zip(tensors, goals, strict=True):
            if self.written.get(t) is not goal:
                for e, at in zip(elements_of(self.s, t), _places_of(t), strict=True):
                    self._store(goal.tensor, goal.place(at), e)

    def _store(self, t: Tensor, at: Index, e: Expr) -> None:
        """Store an element; of what lanes share the first of them does."""
        value = self.w.stored(self.w.expression(e), t)
        line = self.w.store(t, at, value, self.variables)
        shared = [f"({v.name} == 0)" for v in self.variables if not self._is_along(v, at)]
        if not shared:
            self.w.emit(line)
            return
        with self.w.nested(f"if {' & '.join(shared)}:", None):
            self.w.emit(line)

    def _is_along(self, axis: LoopVar, place: Index) -> bool:
        """Whether lanes along an axis have places of their own."""
        found = place.variables()
        return axis in found or self.lane in found

    def _run(self, jaxpr: Jaxpr, inputs: Sequence[LaneValue],
             goals: Sequence[Written] = ()) -> list[Tensor]:
        """The results of a body, after its loops and branches have been written.

        The last of them have `goals` in memory, which loops inside that compute them know.
        """
        graph = graph_of(jaxpr, rules=CALLS_OF_LANES, memory=memory)
        self.origins.update(graph.origins)
        items = live_items(graph.items, graph.outputs)
        read = {t for item in items for t in item.operands}
        for t, goal in zip(reversed(graph.outputs), reversed(goals), strict=False):
            place = goal.place((Index({}),) * len(t.shape))
            if t not in read or all(self._is_along(v, place) for v in self.variables):
                self.goals[t] = goal
        self.s.values.update(zip(graph.inputs, inputs, strict=True))
        for t, array in graph.constants:
            constant = self.scope.with_constant(array)
            constant.known = t.known
            self.s.values[t] = InMemory(constant, (None,) * len(t.shape), frozenset())
        for item in items:
            if isinstance(item, ScanLoop):
                self._scan(item)
            elif isinstance(item, WhileLoop):
                self._while(item)
            elif isinstance(item, Branch):
                self._branch(item)
            elif isinstance(item, Call):
                raise UnsupportedKernel(f"a lane does not compute a {item.name}")
        return graph.outputs

    def _collected(self, t: Tensor) -> Written:
        """Where a loop inside collects a result: where the loop around it does, or in memory of
        the lane."""
        if t in self.goals:
            found = self.written[t] = self.goals[t]
            return found
        assert isinstance(t.size, int)
        workspace = Stored((t.size, self.lanes), t.dtype, ())
        self.workspaces[workspace] = PartialResults(t.size * self.lanes, 1, t.dtype)
        if self.workspaces[workspace].nbytes > MOST_WORKSPACE:
            raise UnsupportedKernel("loops inside collect more than fits")
        return in_workspace(workspace, t.shape, self.lane, self.w.variables())

    # --------------------------------------------------------------------------- loops

    def _begin(self, tensors: Sequence[Tensor]) -> list[list[str]]:
        """Variables for a carry, which begin with tensors."""
        found = []
        for t in tensors:
            names = []
            for e in elements_of(self.s, t):
                text = self._text(e, t)
                names.append(self.w.fresh())
                self.w.emit(f"{names[-1]} = {text}")
            found.append(names)
        self.held += sum(map(len, found))
        if self.held > MOST_HELD:
            raise UnsupportedKernel(f"a lane has {self.held} numbers")
        return found

    def _step(self, outs: Sequence[Tensor]) -> list[list[str]]:
        """The texts of the next values of a carry."""
        return [[self._text(e, t) for e in elements_of(self.s, t)] for t in outs]

    def _assign(self, names: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> None:
        left = [n for own in names for n in own]
        right = [x for own in texts for x in own]
        if left:
            self.w.emit(f"{', '.join(left)} = {', '.join(right)}")

    def _scan(self, call: ScanLoop) -> None:
        """Write a loop of known length, which collects some results."""
        if not isinstance(call.length, int):
            raise UnsupportedKernel("a loop of unknown length")
        first, n, body = call.num_consts, call.num_carry, call.body
        goals = [self._collected(t) for t in call.results[n:]]
        carried, stacked = call.operands[first:first + n], call.operands[first + n:]
        moving = [k for k in range(n) if body.outvars[k] is not body.invars[first + k]]
        names = self._begin([carried[k] for k in moving])
        outer = self.w.variables()
        t = LoopVar(self.w.fresh(), call.length)
        at = Index.of(call.length - 1) - Index.of(t) if call.reverse else Index.of(t)
        parts = [goal.part(at) for goal in goals]
        may_wait = self.lanes <= FEW_LANES and call.length > MOST_AHEAD
        operations = sum(math.prod(v.aval.shape) for eqn in body.eqns for v in eqn.outvars)
        ahead = {x: ReadAhead(x, self.w, t, at, frozenset(self.variables), operations)
                 for x in stacked if may_wait and self._is_in_memory(x)}
        with self.w.nested(f"for {t.name}_ in range(0, {call.length}):", t):
            self.w.emit(f"{t.name} = tl.cast({t.name}_, tl.int32)")  # the interpreter's are ints
            kept = self._state(carried, moving, names, t)
            outs = self._run(body, [
                *map(Same, call.operands[:first]), *kept,
                *[ahead.get(x) or Element(Same(x), at) for x in stacked]], parts)
            self._write_results(outs[n:], parts)
            self._assign(names, self._step([outs[k] for k in moving]))
            for x in ahead.values():
                x.write(self.s, call.length, call.reverse)
        self.s.values.update(zip(call.results, [
            *self._state(carried, moving, names, outer), *goals], strict=True))

    def _state(self, carried: Sequence[Tensor], moving: Sequence[int],
               names: Sequence[Sequence[str]], loop: LoopVar | None) -> list[LaneValue]:
        """What a loop carries, of which some is `moving`: in variables that a loop changes."""
        kept = dict(zip(moving, self._kept([carried[k] for k in moving], names, loop),
                        strict=True))
        return [kept[k] if k in kept else Same(t) for k, t in enumerate(carried)]

    def _is_in_memory(self, t: Tensor) -> bool:
        """Whether a value is an operand, or what a loop has collected."""
        value = self.s.values.get(t)
        if isinstance(value, (Same, InPlaces)):
            return self._is_in_memory(value.tensor)
        return isinstance(value, (InMemory, Written))

    def _while(self, call: WhileLoop) -> None:
        """Write a loop with a predicate."""
        if call.record is not None:
            raise UnsupportedKernel("it records each iteration")
        self.diverges = True
        first, second, body = call.predicate_consts, call.body_consts, call.body
        carried = call.operands[first + second:]
        moving = [k for k in range(len(carried))
                  if body.outvars[k] is not body.invars[second + k]]
        going = self.w.fresh()
        self.w.emit(f"{going} = {self._holds(call, [*map(Same, carried)])}")
        names = self._begin([carried[k] for k in moving])
        outer = self.w.variables()
        marker = LoopVar(self.w.fresh(), INT32_LIMIT)
        with self.w.nested(f"while {going}:", marker):
            kept = self._state(carried, moving, names, marker)
            outs = self._run(body, [*map(Same, call.operands[first:first + second]), *kept])
            texts = self._step([outs[k] for k in moving])
            holds = self._holds(call, [Same(outs[k]) if k in moving else Same(t)
                                       for k, t in enumerate(carried)])
            self._assign([*names, [going]], [*texts, [holds]])
        self.s.values.update(zip(call.results, self._state(carried, moving, names, outer),
                                 strict=True))

    def _holds(self, call: WhileLoop, carry: Sequence[LaneValue]) -> str:
        """The predicate of a lane."""
        (out,) = self._run(call.predicate, [*map(Same, call.operands[:call.predicate_consts]),
                                            *carry])
        return self.w.expression(self.s.read(out, ()))

    def _branch(self, call: Branch) -> None:
        """Write a choice; only the branch that is chosen runs."""
        self.diverges = True
        index, *operands = call.operands
        which = self.w.expression(self.s.read(index, ()))
        names = [[self.w.fresh() for _ in _places_of(t)] for t in call.results]
        outer = self.w.variables()
        chosen = f"{which}.to(tl.int32)"
        last = len(call.branches) - 1
        for k, branch in enumerate(call.branches):
            test = f"{chosen} <= 0" if k == 0 else f"{chosen} == {k}"
            head = "else:" if k == last else f"{'if' if k == 0 else 'elif'} {test}:"
            with self.w.nested(head, None):
                self._assign(names, self._step(self._run(branch, [*map(Same, operands)])))
        self.s.values.update(zip(call.results, self._kept(call.results, names, outer),
                                 strict=True))


def coordinates(sizes: Sequence[int], as_patches: bool) -> list[str]:
    """Where the lane of a thread is along axes of some sizes.

    Lanes of a warp may be a patch along the last two: the rays of a patch of an image go alike.
    """
    if not as_patches or len(sizes) < 2 or sizes[-2] % ROWS or sizes[-1] % COLUMNS:
        return _digits("lane", sizes)
    *far, row, column = _digits(f"lane // {ROWS * COLUMNS}", [
        *sizes[:-2], sizes[-2] // ROWS, sizes[-1] // COLUMNS])
    return [*far, f"({row}) * {ROWS} + lane // {COLUMNS} % {ROWS}",
            f"({column}) * {COLUMNS} + lane % {COLUMNS}"]


def _digits(number: str, sizes: Sequence[int]) -> list[str]:
    """The places of a number along axes of some sizes."""
    below, found = math.prod(sizes), []
    for k, n in enumerate(sizes):
        below //= n
        text = number if below == 1 else f"{number} // {below}"
        found.append(f"{text} % {n}" if k else text)
    return found


def _places_of(t: Tensor) -> list[Place]:
    """The places of the elements of a value, in order."""
    found: list[Place] = [()]
    for n in t.shape:
        assert isinstance(n, int)
        found = [(*at, Index.of(k)) for at in found for k in range(n)]
    return found


HEAD: Final = """\
import triton
import triton.language as tl

from functrans.lowering.triton.kernels import device_math as fm


"""
