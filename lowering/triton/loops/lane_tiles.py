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
from functrans.lowering.loops.expr import Expr, TooManyExpressions
from functrans.lowering.loops.index import ZERO, Index, LoopVar, flatten, unflatten
from functrans.lowering.loops.lane_reader import CrossesLanes, LaneView, TensorInLane
from functrans.lowering.loops.lane_tile_reader import (
    MOST_COMPONENTS,
    HeldTile,
    LaneTileReader,
    inner_sizes,
    product_in_tiles,
)
from functrans.lowering.loops.tensor import Branch, Call, Reduce, ScanLoop, Tensor, WhileLoop
from functrans.lowering.passes.lane_axes import LaneAxes, lane_axes
from functrans.lowering.passes.lane_results import changing
from functrans.lowering.rules.graph import CALLS, CallRule, graph_of, live_items
from functrans.lowering.rules.reduce import SUMMED_CONTRACTIONS
from functrans.lowering.schedule.forms import Form
from functrans.lowering.triton.kernels.axis_calls import module_text
from functrans.lowering.triton.kernels.complex_memory import memory
from functrans.lowering.triton.kernels.kernel_source import MEMORY, KernelOperand, Launches
from functrans.lowering.triton.loops.lane_tile_writer import LaneTileWriter
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.primitives.arithmetic import add_p, sub_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.reduce import reduce_or_p

__all__ = ["TILES", "lanes_in_tiles"]

TILES: Final = "a tile of lanes a program"
LEAST_LANES: Final = 32
LEAST_BLOCK, MOST_BLOCK = 8, 64  # lanes of a program; tensor cores multiply 8 at least
AT_ONCE: Final = 2  # programs on a multiprocessor
WIDE_TILE: Final = 1024  # elements of a tile from which on eight warps compute it
MOST_EXPRESSIONS: Final = 20_000  # of a kernel
INT32_LIMIT: Final = 2**31

ADDITIONS: Final = frozenset((add_p, sub_p, add_any_p))
RULES: Final[dict[Any, CallRule]] = {
    **{p: CALLS[p] for p in (scan_p, while_p, cond_p)}, **SUMMED_CONTRACTIONS,
    dot_general_p: product_in_tiles}


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
        with writer.reader.at_most(MOST_EXPRESSIONS):
            launches = writer.launches()
    except TooManyExpressions:
        raise UnsupportedKernel("a tile computes too many values") from None
    return Form(TILES, 1e-9 * writer.nanoseconds(), lambda: launches)


def _has_product(body: Jaxpr) -> bool:
    return any(eqn.primitive is dot_general_p for eqn in _all_equations(body))


def _all_equations(body: Jaxpr) -> Iterable[Equation]:
    for eqn in body.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Jaxpr):
                    yield from _all_equations(inner)


def _in_order(body: Jaxpr, count: int) -> list[int | Var]:
    """The results of a body by number, and the sums on the way to them, as they are computed.

    What is added to a sum is then needed no longer: registers have what is still needed.
    """
    makers = {v: (number, eqn) for number, eqn in enumerate(body.eqns) for v in eqn.outvars}
    found: list[tuple[int, int | Var]] = []
    for k, v in enumerate(body.outvars):
        number, eqn = makers.get(v, (-1, None))  # type: ignore[arg-type]
        found.append((number, k))
        while k < count and eqn is not None and eqn.primitive in ADDITIONS:
            number, eqn = makers.get(eqn.invars[0], (-1, None))  # type: ignore[arg-type]
            if eqn is not None:
                found.append((number, eqn.outvars[0]))
    return [x for _, x in sorted(found, key=lambda item: item[0])]


class _TileLoop:
    """Writes a loop for the lanes of a program."""

    def __init__(self, call: ScanLoop | WhileLoop, scope: LoopScope) -> None:
        self.call, self.scope = copy(call), scope
        body = call.body
        if isinstance(call, ScanLoop):
            first, carried = call.num_consts, call.num_carry
        else:
            first, carried = call.body_consts, len(call.results)
        tested = zip(call.predicate.invars[call.predicate_consts:], body.invars[first:],
                     strict=True) if isinstance(call, WhileLoop) else ()
        self.is_map = carried == 0 and not any(
            e.primitive in (while_p, cond_p) for e in _all_equations(body))
        self.axes = LaneAxes((), {}) if self.is_map else lane_axes(
            changing(body, first, carried) if carried else body, first, carried, tested)
        sizes: Sequence[Any] = [call.length] if self.is_map and isinstance(call, ScanLoop) \
            else self.axes.sizes
        if not sizes or (count := max(sizes)) < LEAST_LANES:
            raise UnsupportedKernel("it has few lanes")
        self.item: LoopVar | None = None
        """The iteration of a loop without a carry whose lanes are inside of each."""
        if carried == 0 and not self.is_map and isinstance(call, ScanLoop):
            self.item = LoopVar("item", call.length)
        self.number, self.count = sizes.index(count), count
        self.lane = LoopVar("lane", count)
        self.block = LEAST_BLOCK
        while self.block < MOST_BLOCK and count >= (
                2 * self.block * AT_ONCE * scope.target.multiprocessors):
            self.block *= 2
        self.reader = LaneTileReader(scope.memory_of(call), self.lane)
        self.w = LaneTileWriter(self.reader, self.block, count % self.block != 0, scope.target)
        self.made: dict[Var, Tensor] = {}
        self.makers: dict[Any, Equation] = {}

    # --------------------------------------------------------------------------- the kernel

    def launches(self) -> Launches:
        call = self.call
        if isinstance(call, ScanLoop):
            if call.num_carry == 0:
                self._iteration(call, self.item or self.lane)
            else:
                self._results(call.results, call.body.outvars, self._scan(call, call.results))
        else:
            self._results(call.results, call.body.outvars, self._while(call))
        w = self.w
        widest = max([w.extent(v) for v in (*self.reader.components.values(), *self.reader.wide)],
                     default=1)
        self.warps = 8 if self.block * widest >= WIDE_TILE else 4
        arguments = [pointer(f"p{k}", MEMORY[t.dtype]) for k, t in enumerate(w.operands)]
        names = ", ".join(a.name for a in arguments)
        each = -(-self.count // self.block)
        head = [f"    first = tl.program_id(0) % {each} * {self.block}",
                f"    lane = first + tl.arange(0, {self.block})[None, :]"]
        if self.item is not None:
            head.append(f"    item = tl.program_id(0) // {each}")
        if self.count % self.block:
            head.append(f"    in_lane = lane < {self.count}")
        text = "\n".join(["@triton.jit", f"def lane_tiles({names}):", "    fm.products_by_warps()",
                          *head, *w.numbers(), *w.block.lines, ""])
        places: dict[str, tuple[KernelOperand, int]] = {
            f"p{k}": (t, 0) for k, t in enumerate(w.operands)}
        kernel = TemplateKernel("lane_tiles", module_text(text), tuple(arguments),
                                (self.programs, 1, 1), self.warps, 1)
        return Launches([kernel], places)

    @property
    def programs(self) -> int:
        """How many programs there are."""
        items = 1 if self.item is None else self.item.high
        assert isinstance(items, int)
        return items * -(-int(self.count) // self.block)

    def nanoseconds(self) -> float:
        """What it takes: programs wait for themselves, or a multiprocessor has no more."""
        programs, known = self.programs, self.scope.target
        return max(self.w.nanoseconds * -(-programs // (known.multiprocessors * AT_ONCE)),
                   self.w.busy * -(-programs // known.multiprocessors)) \
            + known.measured.launch

    # --------------------------------------------------------------------------- values

    def _axis(self, v: Any) -> int | None:
        """The axis of lanes of a variable of the program."""
        if not isinstance(v, Var):
            return None
        found = [k for k, number in self.axes.of(v).items() if number == self.number]
        if len(found) > 1:
            raise CrossesLanes("a value has lanes along two axes")
        return found[0] if found else None

    def _place(self, t: Tensor, axis: int | None) -> tuple[tuple[Index, ...], LoopVar | None]:
        """The place of an element of a tile in a value, and what numbers its components."""
        sizes = inner_sizes(t.shape, axis)
        component = self.reader.component(math.prod(sizes))
        inner = list(unflatten(component, sizes))
        if axis is not None:
            inner.insert(axis, Index.of(self.lane))
        (v,) = component.terms or (None,)
        assert v is None or isinstance(v, LoopVar)
        return tuple(inner), v

    def _tile(self, t: Tensor, v: Any) -> str:
        """All of a value of the lanes of the program, with the digits that memory has."""
        axis = self._axis(v)
        at, components = self._place(t, axis)
        e = self.reader.read(t, at)
        lanes = self.block if axis is not None or self.is_map else 1
        if lanes == 1 and self.lane in e.variables:
            raise CrossesLanes("what lanes share is computed by one of them")
        text = self.w.as_stored(self.w.expression(e), t)
        return self.w.name(f"tl.broadcast_to({text}, {self.w.shape(components, lanes)})")

    def _kept(self, t: Tensor, v: Any, name: str, loop: LoopVar | None) -> HeldTile:
        axis = self._axis(v)
        self.w.locals[name, loop] = name
        return HeldTile(t, name, axis, axis is not None or self.is_map, loop)

    def _results(self, results: Sequence[Tensor], variables: Sequence[Any],
                 values: Sequence[TensorInLane]) -> None:
        """Store what a loop ends with."""
        for t, v, value in zip(results, variables, values, strict=False):
            at, _ = self._place(t, self._axis(v))
            self._store(t, at, value.element(self.reader, at))

    def _store(self, t: Tensor, at: Sequence[Index], e: Expr) -> None:
        """Store an element of every lane; of what lanes share the first program does."""
        place = flatten(at, t.shape)
        if self.lane in place.variables():
            self.w.store(t, place, e)
            return
        if self.lane in e.variables:
            raise CrossesLanes("what lanes share is computed by one of them")
        self.w.store(t, place, e, "(first == 0)")

    def _store_all(self, t: Tensor, v: Any, before: Sequence[Index], y: Tensor) -> None:
        """Store a value of the body behind some first indices of a result."""
        axis = self._axis(v)
        n = math.prod(inner_sizes(t.shape, axis))
        if n <= MOST_COMPONENTS:
            at, _ = self._place(t, axis)
            self._store(y, (*before, *at), self.reader.read(t, at))
            return
        components, _ = self.reader.along(n)
        inner = list(unflatten(Index.of(components), inner_sizes(t.shape, axis)))
        if axis is not None:
            inner.insert(axis, Index.of(self.lane))
        with self.w.blocks(components):
            self._store(y, (*before, *inner), self.reader.read(t, tuple(inner)))

    def _program(self, jaxpr: Jaxpr, inputs: Sequence[TensorInLane]) -> list[Tensor]:
        """The results of a body, after its loops have been written."""
        graph = graph_of(jaxpr, rules=RULES, memory=memory)
        self.reader.values.update(zip(graph.inputs, inputs, strict=True))
        self.makers.update({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars})
        self.made.update({eqn.outvars[0]: t for t, eqn in graph.origins.items()
                          if isinstance(t, Tensor) and len(eqn.outvars) == 1})
        for t, array in graph.constants:
            self.reader.values[t] = LaneView(self.scope.with_constant(array))
        for item in live_items(graph.items, graph.outputs):
            if isinstance(item, Call):
                self._call(item, graph.origins[item])
        return graph.outputs

    def _call(self, call: Call, eqn: Equation) -> None:
        if isinstance(call, ScanLoop) and len(call.results) == call.num_carry:
            ends = self._scan(call, call.results)
        elif isinstance(call, WhileLoop):
            ends = self._while(call)
        elif isinstance(call, Branch):
            ends = self._branch(call, eqn)
        elif isinstance(call, ScanLoop):
            raise UnsupportedKernel("a loop inside collects results")
        else:
            raise UnsupportedKernel(f"a tile does not compute a {call.name}")
        self.reader.values.update(zip(call.results, ends, strict=True))

    # --------------------------------------------------------------------------- loops

    def _iteration(self, call: ScanLoop, at: LoopVar) -> None:
        """The kernel of a loop without a carry: an iteration is a lane, or has lanes inside."""
        first, here = call.num_consts, (Index.of(at),)
        outs = self._program(call.body, [*map(LaneView, call.operands[:first]),
                                         *[LaneView(x, here) for x in call.operands[first:]]])
        for y, out, v in zip(call.results, outs, call.body.outvars, strict=True):
            self._store_all(out, v, here, y)

    def _begin(self, tensors: Sequence[Tensor], variables: Sequence[Any]) -> list[str]:
        """Variables for a carry, which begin with tensors."""
        names = []
        for t, v in zip(tensors, variables, strict=True):
            text = self._tile(t, v)
            names.append(self.w.fresh())
            self.w.emit(f"{names[-1]} = {text}")
        return names

    def _scan(self, call: ScanLoop, results: Sequence[Tensor]) -> list[TensorInLane]:
        """Write a loop of known length, which collects its further results; what it carries."""
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
            outs = self._program(body, [
                *map(LaneView, call.operands[:first]),
                *[kept.get(k, LaneView(carried[k])) for k in range(n)],
                *[LaneView(x, (at,)) for x in call.operands[first + n:]]])
            texts = dict.fromkeys(moving, "")
            for k in _in_order(body, n):
                if isinstance(k, Var):
                    if k in self.made:
                        self._tile(self.made[k], k)
                elif k in texts:
                    texts[k] = self._tile(outs[k], body.outvars[k])
                elif k >= n:
                    self._store_all(outs[k], body.outvars[k], (at,), results[k])
            self._assign(names, list(texts.values()))
        ends = {k: self._kept(carried[k], v, name, outer)
                for k, v, name in zip(moving, invars, names, strict=True)}
        return [ends.get(k, LaneView(carried[k])) for k in range(n)]

    def _assign(self, names: Sequence[str], texts: Sequence[str]) -> None:
        if names:
            self.w.emit(f"{', '.join(names)} = {', '.join(texts)}")

    def _while(self, call: WhileLoop) -> list[TensorInLane]:
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
            outs = self._program(body, [*consts, *now])
            texts = [self._tile(outs[k], body.outvars[k]) for k in moving]
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
            axis = self._axis(asked)
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
                outs = self._program(branch, [*map(LaneView, call.operands[1:])])
                self._assign(names, [self._tile(t, v) for t, v in zip(
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
                or self._axis(x) is None or math.prod(inner_sizes(x.aval.shape, self._axis(x))) > 1:
            raise UnsupportedKernel("whether a lane goes on depends on others")
        return carry.index(x)

    def _wants(self, call: WhileLoop, flag: int | None,
               carry: Sequence[TensorInLane]) -> tuple[str, bool]:
        """Which lanes go on, as a tile of one component, and whether lanes differ."""
        if flag is None:
            outs = self._program(call.predicate, [
                *map(LaneView, call.operands[:call.predicate_consts]), *carry])
            e = self.reader.read(outs[0], ())
        else:
            v = call.body.invars[call.body_consts + flag]
            axis = self._axis(v)
            e = carry[flag].element(self.reader, tuple(
                [Index.of(self.lane) if k == axis else ZERO for k in range(v.aval.ndim)]))
        varies = self.lane in e.variables
        text = self.w.whole(e, None)
        if varies and (inside := self.w.mask([self.lane])):
            text = self.w.name(f"{text} & {inside}")
        return text, varies


