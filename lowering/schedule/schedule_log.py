"""The decisions of a schedule one by one, for who steps through them; nobody else has a log.

A log is filled by making the schedule again: what is compiled is made without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

from functrans.core.jaxpr import Atom
from functrans.core.record import Record
from functrans.lowering.loops.tensor import Call, Gemm, Reduce, ScatterTensor, Tensor
from functrans.lowering.report import (
    NAME,
    ScheduleDecision,
    ScheduleLine,
    ScheduleRun,
    bytes_text,
    line_of,
)
from functrans.lowering.rules.graph import Graph, live_items
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import domain_text, nbytes_of, tensor_text

__all__ = ["ScheduleLog"]


class _Text(Record, frozen=False, eq=False):
    """Lines, where each value is among them, and what kind of step computes it."""

    lines: list[ScheduleLine] = field(default_factory=list)
    where: dict[Tensor, int] = field(default_factory=dict)
    kinds: dict[Tensor, str] = field(default_factory=dict)

    def rows(self, tensors: Iterable[Tensor]) -> tuple[int, ...]:
        return tuple(sorted({self.where[t] for t in tensors if t in self.where}))


class ScheduleLog:
    """The steps from a graph to a schedule, in order, as lines before and after."""

    def __init__(self) -> None:
        self.runs: list[ScheduleRun] = []
        self._vars: dict[Tensor, Atom] = {}
        self._ops: dict[Tensor, str] = {}

    # --- what passes tell

    def begin(self) -> None:
        """Forget an attempt that came to nothing."""
        self.runs.clear()

    def knows(self, graph: Graph) -> None:
        """Learn what the values of a graph are called in its program."""
        for t, eqn in graph.origins.items():
            if isinstance(t, Tensor):
                self._ops.setdefault(t, eqn.primitive.name)
            if isinstance(t, Call):
                for r, v in zip(t.results, eqn.outvars, strict=False):
                    self._vars[r] = v
            elif t not in self._vars and eqn.outvars:
                self._vars[t] = eqn.outvars[0]
        if graph.jaxpr is not None:
            self._vars.update(zip(graph.inputs, graph.jaxpr.invars, strict=True))

    def changed_graph(self, name: str, before: Graph, after: Graph) -> None:
        """A pass over the graph has run."""
        if not self._vars:
            self.knows(before)
        self.knows(after)
        if after is not before:
            old, new = (self._items(live_items(g.items, g.outputs)) for g in (before, after))
            self._add(name, old, new, [])

    def chose(self, items: Sequence[Tensor | Call], why: Mapping[Tensor, str]) -> None:
        """The values that are computed once, and why each is; others are where they are read."""
        before = self._items(items)
        after = self._items(items, lambda t: f": computed once: {why[t]}" if t in why
                            else ": inlined where it is read")
        self._add("values that are computed once", before, after, [
            self._decision("once", t, f"{NAME} is computed once", reason, before, after)
            for t, reason in why.items()])

    def grouped(self, alone: Sequence[Step], schedule: Schedule,
                told: Sequence[tuple[str, Tensor, Tensor | None, str]]) -> None:
        """Values have become kernels; what was `told` of each, with the kernel it was tried in."""
        before = self._steps(alone, schedule.is_stored)
        after = self._steps(schedule.steps, schedule.is_stored)
        words = {"fused": f"{NAME} joins the kernel of {NAME}",
                 "refused": f"{NAME} is not computed in the kernel of {NAME}",
                 "alone": f"{NAME} begins a kernel"}
        decisions = []
        for kind, t, other, reason in told:
            of = [t] if other is None else [t, other]
            decisions.append(self._decision(kind, t, words[kind], reason, before, after, of))
        self._add("fusion", before, after, decisions)

    def changed_schedule(self, name: str, before: Schedule, after: Schedule) -> None:
        """A pass over the schedule has run."""
        old = self._steps(before.steps, before.is_stored)
        new = self._steps(after.steps, after.is_stored)
        known = {id(n) for n in before.notes}
        decisions = [self._moved(t, old, new) for t, kind in old.kinds.items()
                     if new.kinds.get(t) != kind]
        decisions += [self._refusal(n, old, new) for n in after.notes if id(n) not in known]
        self._add(name, old, new, decisions)

    def placed(self, schedule: Schedule, places: Mapping[Tensor, str],
               told: Iterable[tuple[Tensor, str]]) -> None:
        """Values have places in memory; what was `told` of some of them."""
        before = self._steps(schedule.steps, schedule.is_stored)
        after = self._steps(schedule.steps, schedule.is_stored, places)
        decisions = [self._decision("placed", t, f"{NAME}: {bytes_text(nbytes_of(t))} at {place}",
                                    "", before, after)
                     for t, place in places.items() if t in after.where]
        decisions += [self._decision("placed", t, NAME, reason, before, after)
                      for t, reason in told]
        self._add("memory", before, after, decisions)

    # --- as lines

    def _add(self, name: str, before: _Text, after: _Text,
             decisions: list[ScheduleDecision]) -> None:
        if decisions or before.lines != after.lines:
            self.runs.append(ScheduleRun(name, tuple(before.lines), tuple(after.lines),
                                         tuple(decisions)))

    def _decision(self, kind: str, t: Tensor, text: str, reason: str, before: _Text,
                  after: _Text, of: Sequence[Tensor] | None = None) -> ScheduleDecision:
        of = [t] if of is None else of
        return ScheduleDecision(kind, ScheduleLine(text, tuple(map(self._name, of))), reason,
                                line_of(t.source), before.rows(of), after.rows(of))

    def _moved(self, t: Tensor, old: _Text, new: _Text) -> ScheduleDecision:
        text = f"{NAME}: {old.kinds[t]} -> {new.kinds.get(t, 'no value of a step any more')}"
        return self._decision("changed", t, text, "", old, new)

    def _refusal(self, note: FusionNote, old: _Text, new: _Text) -> ScheduleDecision:
        return self._decision("refused", note.tensor, f"{NAME} is computed apart", note.reason,
                              old, new)

    def _name(self, t: Tensor) -> Atom | str:
        return self._vars.get(t) or tensor_text(t)

    def _op(self, t: Tensor) -> str:
        """What makes a value."""
        if isinstance(t, ScatterTensor):
            return f"scatter_{t.op}"
        return self._ops.get(t) or (f"reduce_{t.op}" if isinstance(t, Reduce) else "expression")

    def _value(self, t: Tensor) -> str:
        return f"{NAME}:{t.dtype}[{','.join(map(str, t.shape))}]"

    def _items(self, items: Sequence[Tensor | Call],
               more: Callable[[Tensor], str] = lambda t: "") -> _Text:
        found = _Text()
        for item in items:
            if isinstance(item, Call):
                self._call(item, "", found)
            else:
                self._line(found, item, f"{self._value(item)} = {self._op(item)}{more(item)}")
        return found

    def _steps(self, steps: Sequence[Step], is_stored: Callable[[Tensor], bool],
               places: Mapping[Tensor, str] | None = None, indent: str = "",
               found: _Text | None = None) -> _Text:
        found = _Text() if found is None else found
        for step in steps:
            if isinstance(step, Kernel):
                found.lines.append(ScheduleLine(f"{indent}kernel: {domain_text(step)}"))
                self._members(step, is_stored, places, f"{indent}  ", found, "kernel")
                continue
            self._call(step, indent, found, places)
            if isinstance(step, Chain):
                inner = {*step.inner}
                self._steps(step.steps, partial(_outside, is_stored, inner), places,
                            f"{indent}  ", found)
                for s in step.steps:
                    of = [m.tensor for m in s.members] if isinstance(s, Kernel) else s.results
                    found.kinds.update(dict.fromkeys(of, "chain of blocks"))
            elif isinstance(step, WithEpilogue):
                self._members(step.kernel, is_stored, places, f"{indent}  ", found,
                              "product's epilogue")
        return found

    def _members(self, kernel: Kernel, is_stored: Callable[[Tensor], bool],
                 places: Mapping[Tensor, str] | None, indent: str, found: _Text,
                 kind: str) -> None:
        for m in kernel.members:
            t = m.tensor
            kept = "" if not is_stored(t) else ", in memory"
            place = f" at {places[t]}" if places is not None and t in places else ""
            self._line(found, t, f"{indent}{self._value(t)} = {self._op(t)} "
                       f"({m.role}{kept}{place})", kind)

    def _call(self, call: Call, indent: str, found: _Text,
              places: Mapping[Tensor, str] | None = None) -> None:
        of = list(dict.fromkeys([*_made(call), *call.results]))
        values = []
        for t in of:
            place = f" at {places[t]}" if places is not None and t in places else ""
            values.append(f"{self._value(t)}{place}")
            found.where.setdefault(t, len(found.lines))
            found.kinds.setdefault(t, call.name)
        sizes = ""
        if isinstance(call, Gemm):
            f = call.fields
            sizes = f" [{f['m']}, {f['k']}] @ [{f['k']}, {f['n']}]"
        found.lines.append(ScheduleLine(f"{indent}{call.name}{sizes}: {', '.join(values)}",
                                        tuple(map(self._name, of)), line_of(call.source)))

    def _line(self, found: _Text, t: Tensor, text: str, kind: str = "value") -> None:
        found.where[t] = len(found.lines)
        found.kinds[t] = kind
        found.lines.append(ScheduleLine(text, (self._name(t),), line_of(t.source)))


def _outside(is_stored: Callable[[Tensor], bool], inner: Collection[Tensor], t: Tensor) -> bool:
    """Whether a value is in memory, and not only within a chain."""
    return is_stored(t) and t not in inner


def _made(call: Call) -> list[Tensor]:
    return [call.product] if isinstance(call, WithEpilogue) else []


