"""The kernel of a loop over lanes: a function over vectors of lanes, each in its own loops.

State is in variables, and ends where the last lane of the vector is done: what becomes of a lane
that is done is kept only where something reads it later. What a loop stacks and another one reads
is memory of the thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from functrans.lowering.c.expressions import C_TYPES, CodeScope, operation_text
from functrans.lowering.c.lanes.arrays import LaneArrays
from functrans.lowering.c.lanes.expressions import LaneExprWriter, side_by_side
from functrans.lowering.c.lanes.layout import joined_axes, lanes_and_vectors, vector_axis
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, values_of_names
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_values import (
    Defined,
    Element,
    InMemory,
    InOtherShape,
    LaneBuilder,
    LaneValue,
    OnStack,
    ReadInLoop,
    Registers,
    elements_of,
    is_long,
)
from functrans.lowering.loops.tensor import (
    Branch,
    Call,
    Map,
    ScanLoop,
    Stored,
    Tensor,
    WhileLoop,
)
from functrans.lowering.passes.lanes import LaneLayout
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.rules.graph import Graph, graph_of
from functrans.lowering.rules.lanes import CALLS_OF_LANES, LaneLoop

__all__ = ["LaneText", "write_lanes"]

MOST_WORK: Final = 1 << 30  # of a vector that is told: it is much
OFTEN: Final = 1 << 12  # iterations after which a loop looks whether it is to end
MOST_ELEMENTS: Final = 128  # of a value in registers
WHILE_ITERATIONS: Final = 16  # that a while is taken to have


class LaneText:
    """A kernel of lanes: `text` with NAME for its name, over `count` blocks of lanes.

    `single` computes the same, one vector after another instead of several side by side.
    """

    def __init__(self, text: str, single: str, operands: list[Tensor], count: int, work: int,
                 held: int, about: str, values: dict[str, tuple[Tensor, ...]],
                 origins: dict[Tensor | Call, Equation]) -> None:
        self.text = text
        self.single = single
        self.operands = operands
        self.count = count
        self.work = work
        """Of a vector."""
        self.about = about
        self.held = held
        """The values of a vector that a loop carries, or reads in each step."""
        self.values, self.origins = values, origins
        """Those that variables of the text are of, and the equations that values come from."""


def write_lanes(call: LaneLoop, prelude: Prelude) -> LaneText:
    """The kernel of a loop over lanes. Raises UnsupportedKernel."""
    return _KernelWriter(call, prelude).write()


class _KernelWriter(LaneArrays):
    def __init__(self, call: LaneLoop, prelude: Prelude) -> None:
        self.call = call
        self.program = call.program
        self.prelude = prelude
        self.axis = vector_axis(call)
        joined = joined_axes(call, self.axis)
        size = math.prod([n for k, n in enumerate(self.program.sizes) if k in joined])
        self.size = size
        self.lanes, self.vectors = lanes_and_vectors(self.program, prelude.isa.vector_bytes, size)
        self.at_once = self.lanes * self.vectors
        self.blocks = -(-size // self.at_once)
        self.lane = LoopVar("i_@", size)
        self.others = {k: LoopVar(f"o{k}", n) for k, n in enumerate(self.program.sizes)
                       if k not in joined}
        self.axes = [Index.of(self.others[k]) if k in self.others else
                     Index.of(self.lane) if k == self.axis else Index({})
                     for k in range(len(self.program.sizes))]
        self.operands: list[Tensor] = [*dict.fromkeys((*call.operands, *call.results))]
        self.s = LaneBuilder(self.lane)
        self.out = LaneExprWriter(prelude, self.lanes, self.s, self.operands)
        self.mask: Expr | None = None
        self.head: list[str] = []
        self.frees: list[str] = []
        self.written: set[Tensor] = set()
        self.read: set[Tensor] = set()
        self.trips = 1
        self.origins: dict[Tensor | Call, Equation] = {}
        self.work = 0
        self.held = 0

    def write(self) -> LaneText:
        call, program = self.call, self.program
        inputs = [_stored(v, x) for v, x in zip(program.body.invars, call.operands, strict=True)]
        for t, x, layout in zip(inputs, call.operands, program.inputs, strict=True):
            self.s.values[t] = self._in_memory(x, layout)
        graph = graph_of(program.body, inputs, CALLS_OF_LANES)
        self.results = dict(zip(graph.outputs, zip(call.results, program.outputs, strict=True),
                                strict=False))
        self._run(graph)
        for y, result, layout in zip(graph.outputs, call.results, program.outputs, strict=True):
            if result not in self.written:
                self._write_result(y, self._result(y, result, layout))
        return self._text()

    def _text(self) -> LaneText:
        others = math.prod(self.program.sizes) // self.size
        text = self._function(self.vectors)
        single = self._function(1) if self.vectors > 1 else text
        return LaneText(text, single, self.operands, self.blocks * others,
                        min(max(self.work, 1), MOST_WORK), self.held, self._about(),
                        self._values(), self.origins)

    def _values(self) -> dict[str, tuple[Tensor, ...]]:
        """What the variables of the text are elements of."""
        made = [(t, e) for (t, _), e in self.s.reads().items()]
        return {**values_of_names(self.out.named, made),
                **{f"p{k}": (t,) for k, t in enumerate(self.operands)}}

    def _function(self, vectors: int) -> str:
        """The text of the kernel with so many vectors side by side."""
        program = self.program
        pointers = "".join(f"  {C_TYPES[t.dtype]} *p{k} = a[{k}];\n"
                           for k, t in enumerate(self.operands))
        code = CodeScope("  ")
        code.line("for (i64 b = begin; b < end; b++) {")
        inner = code.nested()
        rest = f"b / {self.blocks}"
        for k, var in reversed(self.others.items()):
            n = program.sizes[k]
            inner.line(f"const i64 {var.name} = {rest} % {n};")
            inner.line(f"(void){var.name};")
            rest = f"{rest} / {n}"
        last = self.size - self.at_once
        inner.line(f"const i64 i = ft_min(b % {self.blocks} * {self.at_once}, {last});")
        if vectors < self.vectors:
            inner.line(f"for (i64 i_0 = i; i_0 < i + {self.at_once}; i_0 += {self.lanes}) {{")
        else:
            for u in range(vectors):
                inner.line(f"const i64 i_{u} = i + {u * self.lanes};\n    (void)i_{u};")
        code.take(inner)
        code.take(self.out.scopes[0].code)
        code.line("}}" if vectors < self.vectors else "}")
        n = len(self.operands)
        stopped = "  done:\n" if "goto done" in code.text() else ""
        return side_by_side(
            "static void NAME(void *arg, i64 begin, i64 end) {\n  void *const *a = arg;\n"
            f"  void *ctx = a[{n}];\n  volatile i64 *failed = a[{n + 1}];\n"
            "  (void)ctx; (void)failed;\n"
            f"{pointers}{''.join(self.head)}{code.text()}{stopped}{''.join(self.frees)}"
            "  ft_clear_upper();\n}\n", vectors)

    def _about(self) -> str:
        lanes = math.prod(self.program.sizes)
        wide = f"{self.vectors} vectors of {self.lanes} lanes" if self.vectors > 1 else \
            f"a vector of {self.lanes} lanes"
        return f"one kernel of {lanes} lanes, {wide} at once; threads take blocks of them"

    def _in_memory(self, t: Tensor, layout: LaneLayout) -> InMemory:
        return InMemory(t, [None if a is None else self.axes[a] for a in layout.axes], layout.kept)

    def _result(self, t: Tensor, result: Tensor, layout: LaneLayout) -> InMemory:
        """Where a value of the lane is written, which it may have in another shape."""
        there = self._in_memory(result, layout)
        return there if t.shape == there.shape else InOtherShape(there, t.shape)

    # --- programs

    def _run(self, graph: Graph) -> None:
        """Write the loops of a program, in order; what they read is written where it is read."""
        self.read |= {t for item in graph.items for t in item.operands} | set(graph.outputs)
        self.origins.update(graph.origins)
        for item in graph.items:
            if isinstance(item, ScanLoop):
                self._scan(item)
            elif isinstance(item, WhileLoop):
                self._while(item)
            elif isinstance(item, Branch):
                self._branch(item)
            elif isinstance(item, Call):
                raise UnsupportedKernel(f"a lane has a {item.name}")
            elif isinstance(item.size, int) and item.size <= MOST_ELEMENTS \
                    and not self._is_view(item) and not (self.out.level == 0 and is_long(item)):
                self.s.values.setdefault(item, Registers(elements_of(self.s, item), item.shape))

    def _elements(self, t: Tensor) -> list[Expr]:
        return elements_of(self.s, t)

    def _value(self, t: Tensor) -> LaneValue:
        """A value that a loop reads: as it is where it is in memory, else its elements."""
        found = self.s.values.get(t)
        if found is None:
            found = Defined(t)
            if isinstance(t.size, int) and t.size <= MOST_ELEMENTS and not self._is_view(t):
                found = self._packed(found, t.shape, t.compute) if is_long(t) \
                    else Registers(self._elements(t), t.shape)
            self.s.values[t] = found
        return found

    def _is_view(self, t: Tensor) -> bool:
        """Whether the elements of a value are those of one in memory, in another order."""
        while isinstance(t, Map) and t.weight == 0 and len(t.operands) == 1 \
                and t not in self.s.values:
            t = t.operands[0]
        return isinstance(self.s.values.get(t), (InMemory, ReadInLoop))

    def _varies(self, value: LaneValue) -> bool:
        if isinstance(value, Registers):
            return any(map(self.out.varies, value.elements))
        if isinstance(value, InMemory):
            return any(a is not None and a.depends_on(self.lane) for a in value.axes)
        if isinstance(value, Defined):
            return any(self._varies(self._value(t)) for t in value.tensor.operands)
        if isinstance(value, Element):
            return self._varies(value.of)
        if isinstance(value, ReadInLoop):
            return self._varies(value.of)
        assert isinstance(value, OnStack)
        return value.varies

    def _weigh_each(self, exprs: Sequence[Expr]) -> None:
        for x in exprs:
            self._weigh([x])

    def _weigh(self, exprs: Sequence[Expr]) -> None:
        """Count what some results cost."""
        seen: set[Expr] = set()
        waiting = list(exprs)
        while waiting:
            e = waiting.pop()
            if e not in seen:
                seen.add(e)
                if e.op not in ("const", "local", "index"):
                    self.work += self.trips * self.at_once * ELEMENTWISE.weight(e.op)
                waiting += e.args

    def _variables(self, shapes: Sequence[tuple[Any, str, int]],
                   varies: Sequence[bool]) -> list[Registers]:
        """Values whose elements are variables of the innermost scope."""
        found = []
        for (shape, dtype, count), many in zip(shapes, varies, strict=True):
            names = [self.out.name("c", many) for _ in range(count)]
            for name in names:
                self.out.levels[name] = self.out.level
            found.append(Registers([self.s._make(
                "local", (), dtype, name, frozenset((self.lane,)) if many else frozenset())
                for name in names], shape))
        return found

    def _begin(self, values: Sequence[Registers], initial: Sequence[Sequence[Expr] | None],
               varies: Sequence[bool]) -> None:
        """Declare the variables of values."""
        for value, first, many in zip(values, initial, varies, strict=True):
            for k, e in enumerate(value.elements):
                kind = self.out.type(e.dtype, many)
                start = self.out.value(first[k], many) if first is not None else \
                    self.prelude.broadcast(e.dtype, self.lanes, self._zero(e.dtype)) \
                    if many else self._zero(e.dtype)
                self.out.line(f"{kind} {e.aux} = {start};")

    def _hold(self, given: Sequence[LaneValue], state: Sequence[Registers],
              many: Sequence[bool]) -> None:
        """Count the values that a loop needs in each step."""
        elements = {e for x in given if isinstance(x, Registers) for e in x.elements
                    if self.out.varies(e)}
        read = sum(isinstance(x, (InMemory, ReadInLoop)) and self._varies(x) for x in given)
        carried = sum(len(x.elements) for x, varies in zip(state, many, strict=True) if varies)
        self.held = max(self.held, len(elements) + read + carried)

    def _zero(self, dtype: str) -> str:
        return self.prelude.literal(0, dtype)

    def _assign(self, values: Sequence[Registers], new: Sequence[Sequence[Expr]],
                varies: Sequence[bool], masks: Sequence[Expr | None]) -> None:
        """Give variables their next values, where their mask holds.

        Each as soon as nothing reads the value before: of many variables copies would be spilled.
        """
        changed: list[tuple[str, Expr, bool]] = []
        own = {e.aux for value in values for e in value.elements}
        for value, after, many, mask in zip(values, new, varies, masks, strict=True):
            for e, x in zip(value.elements, after, strict=True):
                if e is not x:
                    if mask is not None and many:
                        x = self.s.op("select", mask, x, e, dtype=e.dtype)
                    changed.append((str(e.aux), x, many))
        self._weigh_each([x for _, x, _ in changed])
        order, last = self.out.order_of([x for _, x, _ in changed])
        waiting: list[tuple[str, str]] = []
        for at, k in enumerate(order):
            name, x, many = changed[k]
            text = self.out.value(x, many)
            if text in own:  # it has another value by then
                copy = self.out.name("v", many)
                self.out.line(f"const {self.out.type(x.dtype, many)} {copy} = {text};")
                text = copy
            waiting.append((name, text))
            ready = [w for w in waiting if last.get(w[0], -1) <= at]
            for name, text in ready:
                self.out.line(f"{name} = {text};")
            waiting = [w for w in waiting if w not in ready]

    # --- loops

    def _scan(self, call: ScanLoop) -> None:
        s, out = self.s, self.out
        nc, nk, length = call.num_consts, call.num_carry, int(call.length)
        given = [self._value(t) for t in call.operands]
        varies = [self._varies(v) for v in given]
        while True:
            after = _varying(call.body, varies)[:nk]
            if all(a <= b for a, b in zip(after, varies[nc:nc + nk], strict=True)):
                break
            varies[nc:nc + nk] = [a or b for a, b in zip(after, varies[nc:nc + nk], strict=True)]
        stacked = _varying(call.body, varies)[nk:]
        initial = [self._elements(t) for t in call.operands[nc:nc + nk]]
        many = varies[nc:nc + nk]
        state = self._variables([(t.shape, t.compute, len(e)) for t, e in zip(
            call.operands[nc:nc + nk], initial, strict=True)], many)
        self._begin(state, initial, many)
        self._hold(given[:nc], state, many)
        stacks = [self._stack(t, length, v) for t, v in zip(
            call.results[nk:], stacked, strict=True)]
        counter = LoopVar(out.name("t"), length)
        out.push()
        for value in state:
            for e in value.elements:
                out.levels[e.aux] = out.level
        out.levels[counter] = out.level
        number = Index.of(counter) if not call.reverse else Index({counter: -1}, length - 1)
        inputs = [_stored(v, t) for v, t in zip(call.body.invars, call.operands, strict=True)]
        s.values.update(zip(inputs, [*map(self._read_in_loop, given[:nc]), *state, *(
            Element(x, number) for x in given[nc + nk:])], strict=True))
        graph = graph_of(call.body, inputs, CALLS_OF_LANES)
        often = max(1, OFTEN >> _iterations(call.body).bit_length())
        if length > often:
            self._look(f"({counter.name} & {often - 1}) == {often - 1}")
        trips, self.trips = self.trips, self.trips * length
        self._run(graph)
        for y, to in zip(graph.outputs[nk:], stacks, strict=True):
            self._store_all(to, self._elements(y), number)
        self._assign(state, [self._elements(y) for y in graph.outputs[:nk]], many, [None] * nk)
        self.trips = trips
        name = counter.name
        out.pop(f"for (i64 {name} = 0; {name} < {length}; {name}++) {{")
        self._finish(call.results, [*self._after(state), *stacks])

    def _after(self, state: Sequence[Registers]) -> list[Registers]:
        """The variables of a loop once it is done, at the depth around it."""
        found = []
        for value in state:
            elements = []
            for e in value.elements:
                name = f"r{e.aux}"
                self.out.line(f"const {self.out.type(e.dtype, self.out.varies(e))} {name} = "
                              f"{e.aux};")
                self.out.levels[name] = self.out.level
                elements.append(self.s._make("local", (), e.dtype, name, e.variables))
            found.append(Registers(elements, value.shape))
        return found

    def _finish(self, results: Sequence[Tensor], values: Sequence[LaneValue]) -> None:
        self.s.values.update(zip(results, values, strict=True))

    def _stack(self, t: Tensor, length: int, varies: bool) -> LaneValue:
        """Where the results of iterations go: to a result of the kernel, or on the stack."""
        if t in self.results and self.out.level == 0:
            result, layout = self.results[t]
            there = self._result(t, result, layout)
            if varies or not self._varies(there):
                self.written.add(result)
                return there
        return self._array(t.shape, t.compute, varies)

    def _store_all(self, stack: LaneValue, elements: Sequence[Expr], number: Index) -> None:
        """Store the elements of an iteration."""
        for k, e in enumerate(elements):
            if isinstance(stack, OnStack):
                place = number * len(elements) + k
                text = self.out.value(e, stack.varies)
                self.out.line(f"{stack.name}[{self.out.index(place)}] = {text};")
            else:
                assert isinstance(stack, InMemory)
                self._store(stack, stack.place((number, *_unraveled(k, stack.shape[1:]))), e)

    def _store(self, to: InMemory, place: Index, e: Expr) -> None:
        p, out, t = self.prelude, self.out, to.tensor
        self._weigh([e])
        base = f"{out.pointer(t)} + ({out.index(place)})"
        stride = place.coefficient(self.lane)
        if stride == 0:
            out.line(f"{p.store_scalar(t.dtype, base, out.value(e, False))};")
            return
        value = out.value(e, True)
        if stride == 1:
            out.line(f"{p.store(t.dtype, self.lanes, base, value)};")
            return
        name = out.name("m", True)
        out.line(f"{C_TYPES[t.dtype]} {name}[{self.lanes}];")
        out.line(f"{p.store(t.dtype, self.lanes, name, value)};")
        out.line(f"for (i64 l = 0; l < {self.lanes}; l++) ({base})[l * {stride}] = {name}[l];")

    def _write_result(self, t: Tensor, to: InMemory) -> None:
        if is_long(t) and t not in self.s.values:
            return self._each(t.shape, lambda index: self._store(
                to, to.place(index), self.s.read(t, index)))
        for k, e in enumerate(self._elements(t)):
            index = tuple(_unraveled(k, t.shape))
            self._store(to, to.place(index), e)

    def _while(self, call: WhileLoop) -> None:
        s, out = self.s, self.out
        nt, nc = call.predicate_consts, call.body_consts
        given = [self._value(t) for t in call.operands]
        varies = [self._varies(v) for v in given]
        while True:
            after = _varying(call.body, varies[nt:])
            asked = _varying(call.predicate, [*varies[:nt], *varies[nt + nc:]])[0]
            after = [a or b or asked for a, b in zip(after, varies[nt + nc:], strict=True)]
            if after == varies[nt + nc:]:
                break
            varies[nt + nc:] = after
        many = varies[nt + nc:]
        initial = [self._elements(t) for t in call.operands[nt + nc:]]
        state = self._variables([(t.shape, t.compute, len(e)) for t, e in zip(
            call.operands[nt + nc:], initial, strict=True)], many)
        self._begin(state, initial, many)
        self._hold(given[:nt + nc], state, many)
        count = out.name("n")
        out.line(f"i64 {count} = 0;")
        going = out.name("g", True)
        kind = out.type("bool", True)
        first = out.value(self.mask, True) if self.mask is not None else \
            self.prelude.broadcast("bool", self.lanes, "1")
        out.line(f"{kind} {going} = {first};")
        out.line(f"(void){going};")
        out.push()
        for value in state:
            for e in value.elements:
                out.levels[e.aux] = out.level
        tests = [_stored(v, t) for v, t in zip(
            call.predicate.invars, [*call.operands[:nt], *call.operands[nt + nc:]], strict=True)]
        s.values.update(zip(tests, [*given[:nt], *state], strict=True))
        graph = graph_of(call.predicate, tests, CALLS_OF_LANES)
        trips, self.trips = self.trips, self.trips * WHILE_ITERATIONS
        self._run(graph)
        (holds,) = self._elements(graph.outputs[0])
        mask = self.mask
        masks: list[Expr | None] = [None] * len(state)
        if out.varies(holds):
            self.mask = self._going_on(holds, going)
            # what nothing reads may be anything once the lane is done
            masks = [self.mask if t in self.read else None for t in call.results]
        else:
            out.line(f"if (!{out.value(holds, False)}) break;")
        self._look(f"(++{count} & {OFTEN - 1}) == 0")
        inputs = [_stored(v, t) for v, t in zip(call.body.invars, call.operands[nt:], strict=True)]
        s.values.update(zip(inputs, [*map(self._read_in_loop, given[nt:nt + nc]), *state],
                            strict=True))
        graph = graph_of(call.body, inputs, CALLS_OF_LANES)
        self._run(graph)
        self._assign(state, [self._elements(y) for y in graph.outputs], many, masks)
        self.mask, self.trips = mask, trips
        out.pop("for (;;) {")
        self._finish(call.results, self._after(state))

    def _look(self, when: str) -> None:
        """Look now and then whether the program is to end."""
        self.out.line(f"if ({when} && ft_stops(ctx)) {{ *failed = 1; goto done; }}")

    def _going_on(self, holds: Expr, going: str) -> Expr:
        """The lanes that go on: those that did, and for which the test holds."""
        s, out = self.s, self.out
        before = s._make("local", (), "bool", going, frozenset((self.lane,)))
        out.levels[going] = out.level
        text = operation_text(self.prelude, s.op("and", before, holds),
                              [going, out.value(holds, True)], self.lanes)
        out.line(f"{going} = {text};")
        out.line(f"if (!{out.any(going)}) break;")
        return before

    # --- branches

    def _branch(self, call: Branch) -> None:
        s, out = self.s, self.out
        index, *operands = call.operands
        (which,) = self._elements(index)
        given = [self._value(t) for t in operands]
        flags = [self._varies(v) for v in given]
        of_lanes = out.varies(which)
        each = [_varying(b, flags) for b in call.branches]
        many = [of_lanes or any(b[k] for b in each) for k in range(len(call.results))]
        counts = [math.prod([int(n) for n in t.shape]) for t in call.results]
        state = self._variables([(t.shape, t.compute, n) for t, n in zip(
            call.results, counts, strict=True)], many)
        self._begin(state, [None] * len(state), many)
        mask = self.mask
        for k, branch in enumerate(call.branches):
            here = self._is_taken(which, k, len(call.branches))
            if of_lanes and mask is not None:
                here = s.op("and", here, mask)
            test = out.value(here, of_lanes)
            if of_lanes:
                test = out.any(test)
            inputs = [_stored(v, t) for v, t in zip(branch.invars, operands, strict=True)]
            s.values.update(zip(inputs, given, strict=True))
            graph = graph_of(branch, inputs, CALLS_OF_LANES)
            out.push()
            self.mask = here if of_lanes else mask
            self._run(graph)
            self._assign(state, [self._elements(y) for y in graph.outputs], many,
                         [here if of_lanes else None] * len(state))
            out.pop(f"if ({test}) {{")
        self.mask = mask
        self._finish(call.results, self._after(state))

    def _is_taken(self, which: Expr, k: int, count: int) -> Expr:
        s = self.s
        if which.dtype == "bool":
            return which if k else s.op("not", which)
        one = s.const(np.int32(k), which.dtype)
        op = "le" if k == 0 else "ge" if k == count - 1 else "eq"
        return s.op(op, which, one, dtype="bool")


def _stored(v: Atom, like: Tensor) -> Stored:
    return Stored(v.aval.shape, like.dtype, ())


def _unraveled(k: int, shape: Sequence[Any]) -> list[Index]:
    found = []
    for n in reversed(shape):
        k, rest = divmod(k, int(n))
        found.append(Index.of(rest))
    return found[::-1]


def _iterations(body: Jaxpr) -> int:
    """The iterations of the loops in a body, as far as their number is known."""
    return max([1, *(int(eqn.params.get("length", 1)) * _iterations(b) for eqn in body.eqns
                     for b in subjaxprs(eqn))])


def _varying(body: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """Which results of a body may differ from lane to lane, given which inputs do."""
    marked: set[Atom] = {v for v, varies in zip(body.invars, flags, strict=True) if varies}
    for eqn in body.eqns:
        if any(a in marked for a in eqn.invars if isinstance(a, Var)):
            marked.update(eqn.outvars)
    return [isinstance(a, Var) and a in marked for a in body.outvars]
