"""Forms of the functions of a program: how their steps are computed, and how where that fails.

A step that cannot be written is computed in a plainer form: its values apart from others, then with
all that they read in memory, in the end by NumPy, equation by equation. Every change is told, by a
warning at the user's line and by a note that `explain` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.source import Source
from functrans.lowering.defects import is_defect, warn_of_fallback
from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.rules.graph import Graph, graph_of
from functrans.lowering.schedule.chains import tensors_of
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.plan import plan_of
from functrans.lowering.schedule.unfused import UnfusedValues

__all__ = ["FunctionForms", "StepFailed"]

T = TypeVar("T")


class StepFailed(Exception):
    """A step of a function could not be written, or, without a step, the function as a whole."""

    def __init__(self, function: object, step: Step | None, error: Exception) -> None:
        super().__init__(str(error))
        self.function = function
        self.step = step
        self.error = error


@dataclass(eq=False)
class _FunctionForm:
    """How a function is computed."""

    graph: Graph
    plain: UnfusedValues = field(default_factory=UnfusedValues)
    on_host: frozenset[Equation] = frozenset()
    notes: list[tuple[Source | None, str]] = field(default_factory=list)


class FunctionForms:
    """The forms of the functions of a program: of the main one, None, and of bodies."""

    def __init__(self, main: Graph, plain: bool = False) -> None:
        self._forms: dict[object, _FunctionForm] = {}
        self._plain = plain
        self._add(None, main)

    @property
    def changed(self) -> bool:
        """Whether something is not computed as planned."""
        return self._plain or any(form.notes for form in self._forms.values())

    def graph(self, function: object, jaxpr: Jaxpr | None = None) -> Graph:
        """The graph of a function, the same each time until NumPy takes some of its equations."""
        if function not in self._forms:
            assert jaxpr is not None
            self._add(function, graph_of(jaxpr))
        return self._forms[function].graph

    def schedule(self, function: object) -> Schedule:
        """The plan of a function. Raises Failed."""
        form = self._forms[function]
        schedule = self.written(function, None, lambda: plan_of(form.graph, form.plain))
        first = next(iter(form.graph.outputs), None)
        if first is None:
            return schedule
        notes = [FusionNote(first, source, text) for source, text in form.notes]
        return replace(schedule, notes=[*notes, *schedule.notes])

    def written(self, function: object, step: Step | None, write: Callable[[], T]) -> T:
        """What `write` makes of a step. Raises Failed where it fails."""
        try:
            return write()
        except StepFailed:
            raise
        except Exception as error:
            if not is_defect(error):
                raise
            raise StepFailed(function, step, error) from error

    def take_next(self, failed: StepFailed) -> None:
        """Take a plainer form of what failed. Raises its error where there is none."""
        form = self._forms[failed.function]
        what, source = _describe_step(failed.step)
        if failed.step is None:
            if form.plain.whole:
                raise failed.error
            self._forms[failed.function] = form = replace(form, plain=_all_materialized(form.graph))
            instead = "each of its values has a kernel of its own"
        else:
            instead = self._next(form, failed.step, failed)
        form.notes.append((source, f"{what}: {instead}, since the compiler failed on it "
                                   f"({type(failed.error).__name__}: {failed.error})"))
        warn_of_fallback(what, instead, failed.error, source)

    def _next(self, form: _FunctionForm, step: Step, failed: StepFailed) -> str:
        plain, made = form.plain, frozenset(tensors_of(step))
        if not made <= plain.apart:
            form.plain = replace(plain, apart=plain.apart | made)
            return "its values are computed apart"
        if isinstance(step, Kernel) and not made <= plain.bare:
            form.plain = replace(plain, bare=plain.bare | made)
            return "what it reads is computed before and kept in memory"
        eqns = _origins(form.graph, step, made) - form.on_host
        if not eqns or form.graph.jaxpr is None:
            raise failed.error
        form.on_host |= eqns
        form.graph = graph_of(form.graph.jaxpr, on_host=form.on_host)
        form.plain = _all_materialized(form.graph) if plain.whole else UnfusedValues()
        return "NumPy evaluates it"

    def _add(self, function: object, graph: Graph) -> None:
        self._forms[function] = _FunctionForm(graph, _all_materialized(graph) if self._plain
                                              else UnfusedValues())


def _all_materialized(graph: Graph) -> UnfusedValues:
    """Every value apart, and all that it reads in memory."""
    values = [t for item in graph.items
              for t in (item.results if isinstance(item, Call) else [item])]
    return UnfusedValues(frozenset(values), frozenset(values), whole=True)


def _origins(graph: Graph, step: Step, made: frozenset[Tensor]) -> frozenset[Equation]:
    """The equations of the values of a step; of values between equations, those that read them."""
    if isinstance(step, Call) and step in graph.origins:
        return frozenset([graph.origins[step]])
    found = set()
    for t in made:
        waiting: Sequence[Any] = [t]
        while waiting and not any(x in graph.origins for x in waiting):
            waiting = [x for x in graph.items if not set(waiting).isdisjoint(x.operands)]
        found |= {graph.origins[x] for x in waiting if x in graph.origins}
    return frozenset(found)


def _describe_step(step: Step | None) -> tuple[str, Source | None]:
    """What a step is in a message, and the user's line."""
    if step is None:
        return "a function", None
    values = tensors_of(step)
    name = step.name if isinstance(step, Call) else "a kernel"
    shown = ", ".join(map(str, values[:3])) + (", ..." if len(values) > 3 else "")
    lines = [t.source for t in values if t.source is not None]
    return f"{name} of {shown}" if values else name, lines[0] if lines else None
