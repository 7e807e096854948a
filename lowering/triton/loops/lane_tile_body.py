"""What a tile of lanes computes: the text of a program, its loops and its branches.

Values that change with a loop are tiles in variables of the kernel; all others are expressions,
written where they are used first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar, flatten, unflatten
from functrans.lowering.loops.lane_reader import (
    CrossesLanes,
    LaneArray,
    LaneView,
    Place,
    TensorInLane,
)
from functrans.lowering.loops.lane_tile_reader import (
    MOST_COMPONENTS,
    WRITTEN_OUT,
    HeldTile,
    LaneTileReader,
    inner_sizes,
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
from functrans.lowering.rules.graph import CALLS, CallRule, graph_of, live_items
from functrans.lowering.rules.memory import memory
from functrans.lowering.rules.reduce import SUMMED_CONTRACTIONS, summed_dot_general
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.axis_calls import module_text
from functrans.lowering.triton.kernels.kernel_source import MEMORY, KernelOperand, PartialResults
from functrans.lowering.triton.loops.lane_tile_writer import LaneTileWriter
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.lowering.triton.templates.notes import KernelNotes, named_values
from functrans.primitives.arithmetic import add_p, sub_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.reduce import reduce_or_p

__all__ = ["LaneTileBody", "in_order"]

WIDE_TILE: Final = 1024  # elements of a tile from which on eight warps compute it

ADDITIONS: Final = frozenset((add_p, sub_p, add_any_p))
INT32_LIMIT: Final = 2**31
MOST_WORKSPACE: Final = 1 << 30  # bytes of what loops inside collect
def _product(eqn: Equation, xs: list[Tensor]) -> Tensor:
    """The rule of a contraction in a program over tiles of lanes."""
    plain = summed_dot_general(eqn, xs, WRITTEN_OUT)

    def define(s: ExprBuilder, index: Place) -> Expr:
        assert isinstance(s, LaneTileReader)
        return s.product(eqn, xs, plain, index)

    return Tensor(plain.shape, plain.dtype, xs, eqn.source, define)


RULES: Final[dict[Any, CallRule]] = {
    **{p: CALLS[p] for p in (scan_p, while_p, cond_p)}, **SUMMED_CONTRACTIONS,
    dot_general_p: _product}


def in_order(body: Jaxpr, count: int) -> list[int | Var]:
    """The results of a body by number, and the sums on the way to them, as they are computed.

    What is added to a sum is then needed no longer: registers have what is still needed.
    """
    makers: dict[Atom, tuple[int, Equation | None]] = {
        v: (number, eqn) for number, eqn in enumerate(body.eqns) for v in eqn.outvars}
    found: list[tuple[int, int | Var]] = []
    for k, v in enumerate(body.outvars):
        number, eqn = makers.get(v, (-1, None))
        found.append((number, k))
        while k < count and eqn is not None and eqn.primitive in ADDITIONS:
            number, eqn = makers.get(eqn.invars[0], (-1, None))
            if eqn is not None:
                found.append((number, eqn.outvars[0]))
    return [x for _, x in sorted(found, key=lambda item: item[0])]


class LaneTileBody:
    """Writes what a program computes for its `block` of `count` lanes.

    `axis_of` tells which axis of a variable is that of lanes; values without one are the same for
    all lanes, unless lanes are `implicit`. `constant` puts an array into the program.
    """

    def __init__(self, memory: Iterable[Tensor], count: int, block: int, target: Target,
                 axis_of: Callable[[Var], int | None],
                 constant: Callable[[np.ndarray[Any, Any]], Tensor] | None = None,
                 implicit: bool = False) -> None:
        self.count, self.block, self.target = count, block, target
        self.axis_of, self.constant, self.implicit = axis_of, constant, implicit
        self.lane = LoopVar("lane", count)
        self.reader = LaneTileReader(memory, self.lane)
        self.w = LaneTileWriter(self.reader, block, count % block != 0, target)
        self.made: dict[Var, Tensor] = {}
        self.workspaces: dict[Tensor, PartialResults] = {}
        self.makers: dict[Any, Equation] = {}
        self.origins: dict[Tensor | Call, Equation] = {}

    @property
    def warps(self) -> int:
        """Of a program."""
        known = self.reader
        widest = max([self.w.extent(v) for v in (*known.components.values(), *known.wide)],
                     default=1)
        return 8 if self.block * widest >= WIDE_TILE else 4

    # --------------------------------------------------------------------------- the kernel

    def numbers(self) -> list[str]:
        """The lines that number the lanes of a program, of which the `first` is known."""
        lines = [f"    lane = first + tl.arange(0, {self.block})[None, :]"]
        if self.count % self.block:
            lines.append(f"    in_lane = lane < {self.count}")
        return lines

    def kernel(self, name: str, head: Sequence[str], programs: int, row: int = 0
               ) -> TemplateKernel:
        """The kernel of what has been written; each program has a row of a workspace."""
        arguments = [pointer(f"p{k}", MEMORY[t.dtype]) for k, t in enumerate(self.w.operands)]
        arguments += [pointer("workspace", "fp32")] * bool(row)
        names = ", ".join(a.name for a in arguments)
        text = "\n".join(["@triton.jit", f"def {name}({names}):", "    fm.products_by_warps()",
                          *head, *self.w.numbers(), *self.w.block.lines, ""])
        reads = [(t, e) for (t, _), e in self.reader.reads().items()]
        notes = KernelNotes([*named_values(self.w.named, reads)],
                            {"lane": self.block, "lanes": self.count}, origins=self.origins)
        return TemplateKernel(name, module_text(text), tuple(arguments), (programs, 1, 1),
                              self.warps, 1, workspace=4 * programs * row, notes=notes)

    def places(self) -> dict[str, tuple[KernelOperand, int]]:
        """What the arguments of the kernel are."""
        return {f"p{k}": (self.workspaces.get(t, t), 0) for k, t in enumerate(self.w.operands)}

    # --------------------------------------------------------------------------- values

    def axis(self, v: Any) -> int | None:
        """The axis of lanes of a variable of the program."""
        return self.axis_of(v) if isinstance(v, Var) else None

    def place(self, t: Tensor, axis: int | None) -> tuple[tuple[Index, ...], LoopVar | None]:
        """The place of an element of a tile in a value, and what numbers its components."""
        sizes = inner_sizes(t.shape, axis)
        component = self.reader.component(math.prod(sizes))
        inner = list(unflatten(component, sizes))
        if axis is not None:
            inner.insert(axis, Index.of(self.lane))
        (v,) = component.terms or (None,)
        assert v is None or isinstance(v, LoopVar)
        return tuple(inner), v

    def tile(self, t: Tensor, v: Any) -> str:
        """All of a value of the lanes of the program, with the digits that memory has."""
        axis = self.axis(v)
        at, components = self.place(t, axis)
        e = self.reader.read(t, at)
        lanes = self.block if axis is not None or self.implicit else 1
        if lanes == 1 and self.lane in e.variables:
            raise CrossesLanes("what lanes share is computed by one of them")
        text = self.w.as_stored(self.w.expression(e), t)
        return self.w.name(f"tl.broadcast_to({text}, {self.w.shape(components, lanes)})")

    def _kept(self, t: Tensor, v: Any, name: str, loop: LoopVar | None) -> HeldTile:
        axis = self.axis(v)
        self.w.locals[name, loop] = name
        return HeldTile(t, name, axis, axis is not None or self.implicit, loop)

    def store(self, t: Tensor, at: Sequence[Index], e: Expr) -> None:
        """Store an element of every lane; of what lanes share the first program does."""
        place = flatten(at, t.shape)
        if self.lane in place.variables():
            self.w.store_tile(t, place, e)
            return
        if self.lane in e.variables:
            raise CrossesLanes("what lanes share is computed by one of them")
        self.w.store_tile(t, place, e, "(first == 0)")

    def store_all(self, t: Tensor, v: Any, before: Sequence[Index], y: Tensor,
                  stack: LaneArray | None = None) -> None:
        """Store a value of the body behind some first indices of a result, or of a stack."""
        axis = self.axis(v)
        sizes = inner_sizes(t.shape, axis)
        if math.prod(sizes) <= MOST_COMPONENTS:
            at, _ = self.place(t, axis)
            wide = None
        else:
            wide, _ = self.reader.along(math.prod(sizes))
            inner = list(unflatten(Index.of(wide), sizes))
            if axis is not None:
                inner.insert(axis, Index.of(self.lane))
            at = tuple(inner)
        place = (*before, *at) if stack is None else stack.place((*before, *at))
        with nullcontext() if wide is None else self.w.blocks(wide):
            self.store(y, place, self.reader.read(t, at))

    def program(self, jaxpr: Jaxpr, inputs: Sequence[TensorInLane]) -> list[Tensor]:
        """The results of a body, after its loops have been written."""
        graph = graph_of(jaxpr, rules=RULES, memory=memory)
        self.origins.update(graph.origins)
        self.reader.values.update(zip(graph.inputs, inputs, strict=True))
        self.makers.update({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars})
        self.made.update({eqn.outvars[0]: t for t, eqn in graph.origins.items()
                          if isinstance(t, Tensor) and len(eqn.outvars) == 1})
        for t, array in graph.constants:
            if self.constant is None:
                raise UnsupportedKernel("it has constants")
            self.reader.values[t] = LaneView(self.constant(array))
        for item in live_items(graph.items, graph.outputs):
            if isinstance(item, Call):
                self._call(item, graph.origins[item])
        return graph.outputs

    def _call(self, call: Call, eqn: Equation) -> None:
        ends: list[TensorInLane]
        if isinstance(call, ScanLoop):
            n = call.num_carry
            stacks = [self._collected(t, v) for t, v in zip(
                call.results[n:], eqn.outvars[n:], strict=True)]
            if stacks:  # other threads read what these write
                self.w.emit("tl.debug_barrier()")
            ends = [*self.scan(call, [*call.results[:n], *[x.memory for x in stacks]], stacks),
                    *stacks]
            if stacks:
                self.w.emit("tl.debug_barrier()")
        elif isinstance(call, WhileLoop):
            ends = self.while_loop(call)
        elif isinstance(call, Branch):
            ends = self._branch(call, eqn)
        else:
            raise UnsupportedKernel(f"a tile does not compute a {call.name}")
        self.reader.values.update(zip(call.results, ends, strict=True))

    def _collected(self, t: Tensor, v: Var) -> LaneArray:
        """Where a loop inside collects a result: in memory in which neighbours are other lanes."""
        axis = self.axis(v)
        if axis is None:
            raise UnsupportedKernel("lanes collect the same")
        memory = Stored((*[n for k, n in enumerate(t.shape) if k != axis], self.count), t.dtype, ())
        assert isinstance(memory.size, int)
        room = self.workspaces[memory] = PartialResults(memory.size, 1, t.dtype)
        if room.nbytes > MOST_WORKSPACE:
            raise UnsupportedKernel("loops inside collect more than fits")
        return LaneArray(memory, {axis: self.lane}, self.w.variables(), last=True)

    # --------------------------------------------------------------------------- loops

    def _begin(self, tensors: Sequence[Tensor], variables: Sequence[Any]) -> list[str]:
        """Variables for a carry, which begin with tensors."""
        names = []
        for t, v in zip(tensors, variables, strict=True):
            text = self.tile(t, v)
            names.append(self.w.fresh())
            self.w.emit(f"{names[-1]} = {text}")
        return names

    def scan(self, call: ScanLoop, results: Sequence[Tensor],
             stacks: Sequence[LaneArray] = ()) -> list[TensorInLane]:
        """Write a loop of known length, which collects its further results; what it carries.

        They are results of the kernel, or `stacks`.
        """
        if not isinstance(call.length, int):
            raise UnsupportedKernel("a loop of unknown length")
        first, n, body = call.num_consts, call.num_carry, call.body
        carried = call.operands[first:first + n]
        moving = [k for k in range(n) if body.outvars[k] is not body.invars[first + k]]
        invars = [body.invars[first + k] for k in moving]
        names = self._begin([carried[k] for k in moving], invars)
        outer = self.w.variables()
        t = LoopVar(self.w.fresh(), call.length)
        self.w.trips[t] = call.length
        at = Index.of(call.length - 1) - Index.of(t) if call.reverse else Index.of(t)
        with self.w.nested(f"for {t.name}_ in range(0, {call.length}):", t):
            self.w.emit(f"{t.name} = tl.cast({t.name}_, tl.int32)")  # the interpreter's are ints
            kept = {k: self._kept(carried[k], v, name, t)
                    for k, v, name in zip(moving, invars, names, strict=True)}
            outs = self.program(body, [
                *map(LaneView, call.operands[:first]),
                *[kept.get(k, LaneView(carried[k])) for k in range(n)],
                *[LaneView(x, (at,)) for x in call.operands[first + n:]]])
            texts = dict.fromkeys(moving, "")
            for k in in_order(body, n):
                if isinstance(k, Var):
                    if k in self.made:
                        self.tile(self.made[k], k)
                elif k in texts:
                    texts[k] = self.tile(outs[k], body.outvars[k])
                elif k >= n:
                    self.store_all(outs[k], body.outvars[k], (at,), results[k],
                                   stacks[k - n] if stacks else None)
            self._assign(names, list(texts.values()))
        ends = {k: self._kept(carried[k], v, name, outer)
                for k, v, name in zip(moving, invars, names, strict=True)}
        return [ends.get(k, LaneView(carried[k])) for k in range(n)]

    def _assign(self, names: Sequence[str], texts: Sequence[str]) -> None:
        if names:
            self.w.emit(f"{', '.join(names)} = {', '.join(texts)}")

    def while_loop(self, call: WhileLoop) -> list[TensorInLane]:
        """Write a loop with a predicate, until the last lane is done; what it carries at last."""
        if call.record is not None:
            raise UnsupportedKernel("it records each iteration")
        first, second, body = call.predicate_consts, call.body_consts, call.body
        carried = call.operands[first + second:]
        n = len(carried)
        consts = [*map(LaneView, call.operands[first:first + second])]
        moving = [k for k in range(n) if body.outvars[k] is not body.invars[second + k]]
        invars = [body.invars[second + k] for k in moving]
        flag = self._flag(call)
        names = self._begin([carried[k] for k in moving], invars)
        wants, varies = self._wants(call, flag, [LaneView(x) for x in carried])
        going = self.w.fresh()
        self.w.emit(f"{going} = {wants}")
        outer = self.w.variables()
        marker = LoopVar(self.w.fresh(), INT32_LIMIT)
        with self.w.nested(f"while tl.max({going}.to(tl.int32)) != 0:", marker):
            kept = {k: self._kept(carried[k], v, name, marker)
                    for k, v, name in zip(moving, invars, names, strict=True)}
            now: list[TensorInLane] = [kept.get(k, LaneView(x)) for k, x in enumerate(carried)]
            outs = self.program(body, [*consts, *now])
            texts = [self.tile(outs[k], body.outvars[k]) for k in moving]
            if varies and flag is None:  # each lane ends on its own, and stays as it is
                texts = [self.w.name(f"tl.where({going}, {x}, {name})")
                         for x, name in zip(texts, names, strict=True)]
            wants, _ = self._wants(call, flag, [
                LaneView(outs[k]) if k in kept else LaneView(carried[k]) for k in range(n)])
            if varies:
                wants = self.w.name(f"{going} & {wants}")
            self._assign([*names, going], [*texts, wants])
        ends = {k: self._kept(carried[k], v, name, outer)
                for k, v, name in zip(moving, invars, names, strict=True)}
        return [ends.get(k, LaneView(carried[k])) for k in range(n)]

    def _branch(self, call: Branch, eqn: Equation) -> list[TensorInLane]:
        """Write a choice that all lanes of the program make together.

        What a lane computes that did not want it is not read.
        """
        index = call.operands[0]
        if call.masked and isinstance(index, Reduce):
            (asked,) = self.makers[eqn.invars[0]].invars
            axis = self.axis(asked)
            sizes = inner_sizes(asked.aval.shape, axis)
            if axis is None or math.prod(sizes) > 1:
                raise UnsupportedKernel("what a lane chooses depends on others")
            e = index.element(self.reader, tuple(
                [Index.of(self.lane) if k == axis else ZERO for k in range(asked.aval.ndim)]))
        else:
            e = self.reader.read(index, ())
            if self.lane in e.variables:
                raise UnsupportedKernel("lanes choose differently")
        wants = self.w.whole(e, None)
        if self.lane in e.variables and (inside := self.w.mask([self.lane])):
            wants = self.w.name(f"{wants} & {inside}")
        chosen = self.w.name(f"tl.max({wants}.to(tl.int32))")
        names = [self.w.fresh() for _ in call.results]
        outer, last = self.w.variables(), len(call.branches) - 1
        for k, branch in enumerate(call.branches):
            test = f"{chosen} <= 0" if k == 0 else f"{chosen} == {k}"
            head = "else:" if k == last else f"{'if' if k == 0 else 'elif'} {test}:"
            with self.w.nested(head, None):
                outs = self.program(branch, [*map(LaneView, call.operands[1:])])
                self._assign(names, [self.tile(t, v) for t, v in zip(
                    outs, eqn.outvars, strict=True)])
        return [self._kept(t, v, name, outer)
                for t, v, name in zip(call.results, eqn.outvars, names, strict=True)]

    def _flag(self, call: WhileLoop) -> int | None:
        """Which of the carry says of each lane whether it goes on, where any keeps all going."""
        (out,), test = call.predicate.outvars, call.predicate
        eqn = next((e for e in test.eqns if out in e.outvars), None)
        if eqn is None or eqn.primitive is not reduce_or_p:
            return None
        carry: tuple[Var, ...] = test.invars[call.predicate_consts:]
        x = eqn.invars[0]
        if not call.masked or not isinstance(x, Var) or x not in carry \
                or self.axis(x) is None or math.prod(inner_sizes(x.aval.shape, self.axis(x))) > 1:
            raise UnsupportedKernel("whether a lane goes on depends on others")
        return carry.index(x)

    def _wants(self, call: WhileLoop, flag: int | None,
               carry: Sequence[TensorInLane]) -> tuple[str, bool]:
        """Which lanes go on, as a tile of one component, and whether lanes differ."""
        if flag is None:
            outs = self.program(call.predicate, [
                *map(LaneView, call.operands[:call.predicate_consts]), *carry])
            e = self.reader.read(outs[0], ())
        else:
            v = call.body.invars[call.body_consts + flag]
            axis = self.axis(v)
            e = carry[flag].element(self.reader, tuple(
                [Index.of(self.lane) if k == axis else ZERO for k in range(v.aval.ndim)]))
        varies = self.lane in e.variables
        text = self.w.whole(e, None)
        if varies and (inside := self.w.mask([self.lane])):
            text = self.w.name(f"{text} & {inside}")
        return text, varies
