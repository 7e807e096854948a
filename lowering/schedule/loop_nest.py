"""The loops of a step, for who looks at a program: what is read, computed and written in each.

Backends say how a loop is done: in parallel, in vectors, in tiles, one iteration after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, reachable_expressions
from functrans.lowering.loops.index import Index, LoopVar, Quotient, Remainder
from functrans.lowering.loops.tensor import (
    Branch,
    Call,
    Conv,
    Gemm,
    Reduce,
    ScanLoop,
    ScatterTensor,
    Tensor,
    WhileLoop,
)
from functrans.lowering.passes.attention.calls import Attend, AttendGradient
from functrans.lowering.report import CodeValue, LoopLine
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of
from functrans.lowering.schedule.show import moved_bytes, nbytes_of, tensor_text
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["LoopNotes", "call_nest", "equations_nest", "index_text", "kernel_nest", "nest_of"]

MOST_LINES = 400
"""Lines of the loops of one kernel that are told."""
IN_SEQUENCE = "one after another"
OPEN = "until its condition fails"
AS_REDUCTION = "a reduction"


class LoopNotes(Record):
    """What a backend knows: what values are, what is in memory, and how loops are done.

    `how` has the words for a variable; `equation` is the value of an equation of a body.
    """

    value: Callable[[Tensor], CodeValue]
    is_stored: Callable[[Tensor], bool]
    how: Mapping[str, str] = field(default_factory=dict)
    equation: Callable[[Equation], CodeValue] | None = None

    def loop(self, depth: int, variable: str, size: Size, otherwise: str = "") -> LoopLine:
        return LoopLine(depth, "loop", "", self.how.get(variable, otherwise), variable, size)


def nest_of(step: Step, notes: LoopNotes, depth: int = 0) -> list[LoopLine]:
    """The loops of a step of a schedule."""
    found = kernel_nest(step, notes, depth) if isinstance(step, Kernel) else \
        call_nest(step, notes, depth)
    if len(found) <= MOST_LINES:
        return found
    left = len(found) - MOST_LINES
    return [*found[:MOST_LINES], LoopLine(depth, "note", f"and {left} lines more")]


def index_text(index: Index) -> str:
    """An index as text; what the program computes is a `?`."""
    parts = []
    for atom, c in index.terms.items():
        if isinstance(atom, (Quotient, Remainder)):
            sign = "//" if isinstance(atom, Quotient) else "%"
            text = f"({index_text(atom.index)}) {sign} {atom.divisor}"
            text = f"({text})" if c != 1 else text
        else:
            text = atom.name if isinstance(atom, LoopVar) else "?"
        parts.append(text if c == 1 else f"{text}*{c}")
    if index.const != 0 or not parts:
        parts.append(str(index.const))
    return " + ".join(parts)


# --- Kernels: a matrix of elements, in stages along its rows

def kernel_nest(kernel: Kernel, notes: LoopNotes, depth: int = 0) -> list[LoopLine]:
    """The loops over rows and places of a kernel."""
    return _KernelNest(kernel, notes).lines(depth)


class _KernelNest:
    def __init__(self, kernel: Kernel, notes: LoopNotes, product: Tensor | None = None) -> None:
        self.kernel, self.notes, self.product = kernel, notes, product
        self.s = kernel.anew().builder(notes.is_stored)
        self.elements = {m.tensor: kernel.element(self.s, m) for m in kernel.members}
        self.of: dict[Expr, list[Tensor]] = {}
        for (t, _), e in self.s.reads().items():
            self.of.setdefault(e, []).append(t)
        self.moved = moved_bytes([kernel.anew()], notes.is_stored)
        self.told: set[Expr] = set()

    def lines(self, depth: int) -> list[LoopLine]:
        d, notes = self.kernel.domain, self.notes
        rows = d.rows if d.total is None else -(-d.total // d.row)
        found = list(self._new(self.elements.values(), (), depth))
        if not _is_one(rows):
            found.append(notes.loop(depth, "o", rows))
            depth += 1
        stages = stages_of(self.kernel, self.elements)
        for stage in range(1 + max(stages.values(), default=0)):
            members = [m for m in self.kernel.members if stages[m.tensor] == stage]
            found += self._stage(members, depth)
        ends = [m for m in self.kernel.members if m.role in ("reduce_column", "reduce_all")]
        return [*found, *[self._store(m.tensor, max(depth - 1, 0)) for m in ends
                          if notes.is_stored(m.tensor)]]

    def _stage(self, members: Sequence[Member], depth: int) -> Iterator[LoopLine]:
        rows = [m for m in members if m.role in ("row", "any_flag_row")]
        wide = [m for m in members if m not in rows]
        yield from self._new([self.elements[m.tensor] for m in members], (self.kernel.o,), depth)
        for m in rows:
            yield from self._member(m, depth)
        if not wide:
            return
        inner = depth
        if not _is_one(self.kernel.domain.row):
            yield self.notes.loop(depth, "i", self.kernel.domain.row)
            inner += 1
        both = (self.kernel.o, self.kernel.i)
        for m in wide:
            yield from self._new([self.elements[m.tensor]], both, inner)
            yield from self._member(m, inner)
        for m in wide:
            if m.role == "reduce_row" and self.notes.is_stored(m.tensor):
                yield self._store(m.tensor, depth)

    def _new(self, roots: Iterable[Expr], variables: Sequence[LoopVar],
             depth: int) -> Iterator[LoopLine]:
        """What is read and computed at a level that has not been before."""
        for e in reachable_expressions(roots):
            if e in self.told or not e.variables <= {*variables}:
                continue
            tensors = self.of.get(e, [])
            if e.op == "load":
                t, place = e.aux
                values = tuple(map(self.notes.value, dict.fromkeys([t, *tensors])))
                is_sum = t is self.product
                self.told.add(e)
                if not is_sum:
                    yield LoopLine(depth, "load", f"[{index_text(place)}]", values=values,
                                   nbytes=self.moved.pop(t, 0))
            elif tensors and e.op not in ("const", "local"):
                self.told.add(e)
                yield LoopLine(depth, "value", e.op,
                               values=tuple(map(self.notes.value, dict.fromkeys(tensors))))

    def _member(self, m: Member, depth: int) -> Iterator[LoopLine]:
        """What is left to say of a member whose expressions have been told."""
        e, value = self.elements[m.tensor], self.notes.value(m.tensor)
        if isinstance(m.tensor, Reduce):
            self.told.add(e)
            yield LoopLine(depth, "reduce", m.tensor.op, values=(value,))
            if m.role in ("any_flag", "any_flag_row"):
                yield self._store(m.tensor, depth)
            return
        if e not in self.told or e not in self.of:
            self.told.add(e)
            yield LoopLine(depth, "value", e.op, values=(value,))
        if isinstance(m.tensor, ScatterTensor):
            yield self._store(m.tensor, depth, m.tensor.op)
        elif self.notes.is_stored(m.tensor):
            yield self._store(m.tensor, depth, f"[{index_text(self.kernel.places[m.role])}]")

    def _store(self, t: Tensor, depth: int, text: str = "") -> LoopLine:
        return LoopLine(depth, "store", text, values=(self.notes.value(t),), nbytes=nbytes_of(t))


# --- Calls

def call_nest(call: Call, notes: LoopNotes, depth: int = 0) -> list[LoopLine]:
    """The loops of a call: of a product and what follows it, of attention, of a loop itself."""
    if isinstance(call, Chain):
        inner = {*call.inner}
        within = LoopNotes(notes.value, lambda t: notes.is_stored(t) or t in inner, notes.how,
                           notes.equation)
        head = notes.loop(depth, "block", call.count, "blocks of rows, over threads")
        return [head, *[line for s in call.steps for line in nest_of(s, within, depth + 1)]]
    if isinstance(call, Gemm):
        return _product(call, notes, depth)
    if isinstance(call, Conv):
        return _convolution(call, notes, depth)
    if isinstance(call, (Attend, AttendGradient)):
        return _attention(call, notes, depth)
    eqn = getattr(call, "eqn", None)
    if isinstance(call, (ScanLoop, WhileLoop, Branch)) or (eqn is not None and call.over_lanes):
        return _loop(call, eqn, notes, depth)
    results = ", ".join(map(tensor_text, call.results)) or "no results"
    return [LoopLine(depth, "note", f"{call.name}: {results}"),
            *_moved("load", call.operands, notes, depth),
            *_moved("store", call.results, notes, depth)]


def _moved(kind: str, tensors: Iterable[Tensor], notes: LoopNotes, depth: int) -> list[LoopLine]:
    return [LoopLine(depth, kind, "", values=(notes.value(t),), nbytes=nbytes_of(t))
            for t in dict.fromkeys(tensors)]


def _product(call: Gemm, notes: LoopNotes, depth: int) -> list[LoopLine]:
    found, f = [], call.fields
    batch = f["batch0"] * f["batch1"]
    for variable, size in (("b", batch), ("m", f["m"]), ("n", f["n"])):
        if not _is_one(size):
            found.append(notes.loop(depth, variable, size))
            depth += 1
    for term in (call, *call.terms):
        found.append(notes.loop(depth, "k", term.fields["k"], AS_REDUCTION))
        where = "" if _is_one(batch) else "b, "
        found += [LoopLine(depth + 1, "load", f"[{where}{axes}]", values=(notes.value(t),),
                           nbytes=nbytes_of(t)) for t, axes in ((term.a, "m, k"), (term.b, "k, n"))]
        found.append(LoopLine(depth + 1, "reduce", "add", values=(notes.value(_sums(call)),)))
    return [*found, *_after_sums(call, notes, depth)]


def _sums(call: Gemm | Conv) -> Tensor:
    """What a call adds up."""
    return call.product if isinstance(call, WithEpilogue) else call.results[0]


def _after_sums(call: Gemm | Conv, notes: LoopNotes, depth: int) -> list[LoopLine]:
    """What is computed of each sum, and what is stored."""
    if not isinstance(call, WithEpilogue):
        return _moved("store", call.results, notes, depth)
    nest = _KernelNest(call.kernel, notes, call.product)
    inner = call.kernel.members
    found = [*nest._new([nest.elements[m.tensor] for m in inner], (call.kernel.o, call.kernel.i),
                        depth)]
    for m in inner:
        found += nest._member(m, depth)
    return [*found, *_moved("store", [t for t in call.results if t is call.product], notes, depth)]


def _convolution(call: Conv, notes: LoopNotes, depth: int) -> list[LoopLine]:
    f: Mapping[str, Any] = call.fields
    found = []
    for variable, size in (("image", f["batch"]), ("group", f["groups"]),
                           *[(f"at{k}", n) for k, n in enumerate(f["out_size"])],
                           ("feature", f["out_features"])):
        if not _is_one(size):
            found.append(notes.loop(depth, variable, size))
            depth += 1
    outside = depth
    for variable, size in (*[(f"tap{k}", n) for k, n in enumerate(f["window"])],
                           ("c", f["in_features"])):
        if not _is_one(size):
            found.append(notes.loop(depth, variable, size, AS_REDUCTION))
            depth += 1
    return [*found, *_moved("load", call.operands[:2], notes, depth),
            LoopLine(depth, "reduce", "add", values=(notes.value(_sums(call)),)),
            *_after_sums(call, notes, outside)]


def _attention(call: Attend | AttendGradient, notes: LoopNotes, depth: int) -> list[LoopLine]:
    layout = (call if isinstance(call, Attend) else call.attend).layout
    found = []
    for variable, axes in (("batch", [layout.batch]), ("head", [layout.head, layout.shared]),
                           ("query", [layout.row])):
        size = 1
        for axis in axes:
            size *= layout.size(axis)
        if not _is_one(size):
            found.append(notes.loop(depth, variable, size))
            depth += 1
    found.append(notes.loop(depth, "key", layout.size(layout.key), AS_REDUCTION))
    results = tuple(map(notes.value, call.results))
    return [*found, *_moved("load", call.operands, notes, depth + 1),
            LoopLine(depth + 1, "value", "scores, their exponentials and sums", values=results),
            LoopLine(depth + 1, "reduce", "add", values=results),
            *_moved("store", call.results, notes, depth)]


def _loop(call: Call, eqn: Equation | None, notes: LoopNotes, depth: int) -> list[LoopLine]:
    """A loop by the equations of its body; lanes are a loop around it."""
    found = []
    if call.over_lanes and (program := getattr(call, "program", None)) is not None:
        size: Size = 1
        for n in program.sizes:
            size = size * n
        found.append(notes.loop(depth, "lane", size, "in parallel"))
        depth += 1
        body = equations_nest(program.body, notes, depth)
    elif eqn is not None:
        body = _equation(eqn, notes, depth)
    elif isinstance(call, ScanLoop):
        body = [notes.loop(depth, "t", call.length, IN_SEQUENCE),
                *equations_nest(call.body, notes, depth + 1)]
    elif isinstance(call, WhileLoop):
        body = [LoopLine(depth, "loop", "", OPEN, "t"),
                *equations_nest(call.predicate, notes, depth + 1),
                *equations_nest(call.body, notes, depth + 1)]
    else:
        body = [LoopLine(depth, "note", call.name)]
    return [*found, *_moved("load", call.operands, notes, depth), *body,
            *_moved("store", call.results, notes, depth)]


def equations_nest(jaxpr: Jaxpr, notes: LoopNotes, depth: int) -> list[LoopLine]:
    """The equations of a body in order, with the loops among them."""
    return [line for eqn in jaxpr.eqns for line in _equation(eqn, notes, depth)]


def _equation(eqn: Equation, notes: LoopNotes, depth: int) -> list[LoopLine]:
    values = () if notes.equation is None else (notes.equation(eqn),)
    if eqn.primitive is scan_p:
        head = LoopLine(depth, "loop", "", IN_SEQUENCE, "t", eqn.params["length"], values)
        return [head, *equations_nest(eqn.params["jaxpr"], notes, depth + 1)]
    if eqn.primitive is while_p:
        head = LoopLine(depth, "loop", "", OPEN, "t", None, values)
        return [head, *equations_nest(eqn.params["cond_jaxpr"], notes, depth + 1),
                *equations_nest(eqn.params["body_jaxpr"], notes, depth + 1)]
    if eqn.primitive is cond_p and len(eqn.params["branches"]) > 1:
        found = []
        for k, branch in enumerate(eqn.params["branches"]):
            found += [LoopLine(depth, "note", f"branch {k}", values=values),
                      *equations_nest(branch, notes, depth + 1)]
        return found
    if eqn.primitive is cond_p:
        return equations_nest(eqn.params["branches"][0], notes, depth)
    return [LoopLine(depth, "value", eqn.primitive.name, values=values)]


def _is_one(n: Size | None) -> bool:
    return isinstance(n, int) and n == 1
