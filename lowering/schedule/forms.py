"""The forms of the regions of a program, and which of them computes each: the choice, in one place.

A region, a step of a schedule or a loop, can be computed in several ways: its forms. `choose` takes
the one that is estimated to take the least time on the target, of those that can be had.

A step has these forms. Each after the first one is plainer and slower, and is taken where the one
before cannot be had: its writer fails, or its kernel does not compile.

1. as planned;
2. without the epilogue of a product, which is a kernel of its own; a tile program as smaller ones,
   and then as its steps;
3. each value of a kernel in a kernel of its own;
4. with the values in memory that such a kernel would compute on the way;
5. in other operations: attention as its products, a product as a sum of products;
6. by the host, which evaluates the equations of the step. This form can always be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.defects import UnsupportedKernel, warn_of_fallback
from functrans.lowering.loops.tensor import Call, Conv, Gemm, Map, Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.chains import Chain, tensors_of
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.tile_programs import TileProgram
from functrans.lowering.schedule.unfused import UnfusedValues

__all__ = ["Choice", "Form", "StepFailed", "StepForms", "choose", "preferring", "with_notes"]

T = TypeVar("T")

MOST_STORED: Final = 1 << 28
"""Elements of a value that is stored so that the kernel which reads it is plainer."""
ON_HOST: Final = "it runs on the host"


# --------------------------------------------------------------------------- regions


class Form(NamedTuple, Generic[T]):
    """A way to compute a region; `write` raises UnsupportedKernel where it cannot be had."""

    name: str
    seconds: float
    """What it is estimated to take on the target; infinite for the last resort."""
    write: Callable[[], T]


class Choice(NamedTuple, Generic[T]):
    """The form that computes a region, what was written, and why no faster form does."""

    form: Form[T]
    written: T
    refused: list[str]


@contextmanager
def preferring(*names: str) -> Iterator[None]:
    """Within, `choose` takes forms of these names where they can be had: to compare forms."""
    token = _PREFERRED.set(frozenset(names))
    try:
        yield
    finally:
        _PREFERRED.reset(token)


_PREFERRED: ContextVar[frozenset[str]] = ContextVar("preferred forms", default=frozenset())


def choose(forms: Iterable[Form[T]]) -> Choice[T]:
    """The fastest form of a region that can be had; the first of equal ones.

    Raises UnsupportedKernel where there is none.
    """
    refused: list[str] = []
    preferred = _PREFERRED.get()
    for form in sorted(forms, key=lambda form: (form.name not in preferred, form.seconds)):
        try:
            return Choice(form, form.write(), refused)
        except UnsupportedKernel as error:
            refused.append(f"{form.name}: {error}")
    raise UnsupportedKernel("; ".join(refused))


# --------------------------------------------------------------------------- steps


class StepFailed(UnsupportedKernel):
    """Steps of a function that cannot be written in their forms, and why."""

    def __init__(self, function: object, steps: Sequence[tuple[Step | None, Exception]]) -> None:
        super().__init__("; ".join(dict.fromkeys(str(error) for _, error in steps)))
        self.function = function
        self.steps = steps


class StepForms(Record, frozen=False, eq=False):
    """The forms of the steps of a function; all are as planned until one fails.

    `make` makes the graph of the function anew where its equations have other forms: those that are
    `hosted`, `sums` of products that no template computes, no `attention`, no kernels of `lanes`,
    literals in memory.
    """

    make: Callable[[StepForms], Graph]
    unfused: UnfusedValues = field(default_factory=UnfusedValues)
    attention: bool = True
    lanes: bool = True
    stores_literals: bool = False
    sums: dict[Equation, str] = field(default_factory=dict)
    hosted: dict[Equation, str] = field(default_factory=dict)
    notes: list[tuple[Source | None, str]] = field(default_factory=list)
    _graph: Graph | None = None
    _considered: set[Tensor] = field(default_factory=set)

    @property
    def graph(self) -> Graph:
        """The same each time, until equations have other forms."""
        if self._graph is None:
            self._graph = self.make(self)
        return self._graph

    @property
    def texts(self) -> list[str]:
        """What was done, with the user's lines."""
        return [f"{source or 'somewhere'}: {text}" for source, text in self.notes]

    def fall_back(self, failed: StepFailed, schedule: Schedule | None, in_graph: bool = False,
                  reason: Callable[[Exception], str] | None = None) -> None:
        """Give each step that failed, or the whole function, its next form.

        Raises the failure where there is none, or none `in_graph` as it is.
        """
        graph = self.graph
        for step, error in failed.steps:
            why = reason(error) if reason is not None else str(error) or type(error).__name__
            if step is None or schedule is None:
                instead = self._unfuse_all()
            else:
                instead = self._next_in_graph(step, schedule, why)
                if instead is None and not in_graph:
                    instead = self._next_of_equations(graph, step, why)
            if instead is None:
                raise failed
            what, source = _described(step)
            self.notes.append((source, f"{what}: {instead}, since {why}"))
            if not isinstance(error, UnsupportedKernel) or instead == ON_HOST:
                warn_of_fallback(what, instead, error, source)

    def _unfuse_all(self) -> str | None:
        if self.unfused.whole:
            return None
        self.unfused = replace(self.unfused, whole=True)
        return "each of its values has a kernel of its own"

    def _next_in_graph(self, step: Step, schedule: Schedule, why: str) -> str | None:
        known, made = self.unfused, tensors_of(step)
        if isinstance(step, WithEpilogue) and step.product not in known.products:
            # the same values behind another product that they read would fail next
            read = {*step.operands[len(step.multiplied):]}
            others = [p for s in schedule.steps if isinstance(s, (Gemm, Conv)) and (
                p := s.product if isinstance(s, WithEpilogue) else s.results[0]) in read]
            self.unfused = replace(known, products={
                **known.products, **dict.fromkeys((step.product, *others), why)})
            return "its epilogue is a kernel of its own"
        if type(step) is Gemm and step.terms:
            self.unfused = replace(known, apart={**known.apart, step.results[0]: why})
            return "its products are computed apart"
        if isinstance(step, TileProgram):
            failures = 1 + max(known.tiled.get(t, 0) for t in made)
            self.unfused = replace(known, tiled={**known.tiled, **dict.fromkeys(made, failures)})
            return "its steps are in smaller programs, or launches"
        new = [t for t in made if t not in known.apart]
        if new and isinstance(step, (Kernel, Chain)):
            self.unfused = replace(known, apart={**known.apart, **dict.fromkeys(new, why)})
            return "its values are computed apart"
        if isinstance(step, Kernel) and (on_the_way := self._computed_on_the_way(step, schedule)):
            stored = {**known.stored, **dict.fromkeys(on_the_way, why)}
            self.unfused = replace(known, stored=stored)
            return "what it reads is computed before and kept in memory"
        return None

    def _computed_on_the_way(self, step: Kernel, schedule: Schedule) -> list[Tensor]:
        """What a kernel of one value computes inside, where storing that is possible."""
        found: list[Tensor] = []
        waiting = [t for m in step.members for t in m.tensor.operands]
        while waiting:
            t = waiting.pop()
            if schedule.is_stored(t) or t in self.unfused.stored or t in self._considered:
                continue
            self._considered.add(t)
            if isinstance(t, Map) and t.operands and _can_be_stored(t):
                found.append(t)
            waiting += t.operands
        return found

    def _next_of_equations(self, graph: Graph, step: Step, why: str) -> str | None:
        """No form of this graph is left: its equations become others."""
        rest = [e for e in _origins(graph, step) if e not in self.hosted]
        if isinstance(step, Call) and step.is_composed and self.attention:
            self.attention, instead = False, "it is computed as products"
        elif isinstance(step, Call) and step.over_lanes and self.lanes:
            self.lanes, instead = False, "its lanes take each step together"
        elif isinstance(step, (Gemm, Conv)) and (plain := [e for e in rest if e not in self.sums]):
            self.sums.update(dict.fromkeys(plain, why))
            instead = "its products are added up without a template"
        elif rest:
            self.hosted.update(dict.fromkeys(rest, why))
            instead = ON_HOST
        elif not self.stores_literals:
            self.stores_literals, instead = True, "its numbers are in memory"
        else:
            return None
        self._graph = None  # another graph has other tensors
        self.unfused = UnfusedValues(whole=self.unfused.whole)
        self._considered.clear()
        return instead


def _can_be_stored(t: Tensor) -> bool:
    return not isinstance(t.size, int) or 0 < t.size <= MOST_STORED


def _origins(graph: Graph, step: Step) -> list[Equation]:
    """The equations of the values of a step; of values between equations, those that read them."""
    if isinstance(step, Call) and step in graph.origins:
        return [graph.origins[step]]
    found: dict[Equation, None] = {}
    for t in tensors_of(step):
        waiting: Sequence[Any] = [t]
        while waiting and not any(x in graph.origins for x in waiting):
            waiting = [x for x in graph.items if not set(waiting).isdisjoint(x.operands)]
        found.update((graph.origins[x], None) for x in waiting if x in graph.origins)
    return list(found)


def _described(step: Step | None) -> tuple[str, Source | None]:
    """What a step is in a message, and the user's line."""
    if step is None:
        return "a function", None
    values = tensors_of(step)
    name = step.name if isinstance(step, Call) else "a kernel"
    shown = ", ".join(map(str, values[:3])) + (", ..." if len(values) > 3 else "")
    lines = [t.source for t in values if t.source is not None]
    return f"{name} of {shown}" if values else name, lines[0] if lines else None


def with_notes(schedule: Schedule, forms: StepForms) -> Schedule:
    """The schedule with what is told of the forms of its steps."""
    first = next(iter(forms.graph.outputs), None)
    if first is None or not forms.notes:
        return schedule
    notes = [FusionNote(first, source, text) for source, text in forms.notes]
    return replace(schedule, notes=[*notes, *schedule.notes])
