"""The functions of a program, the main one and bodies of loops and branches, and their plans.

A step that cannot be written is a defect: the next form of it computes the same, a warning at the
user's line says so, and so does a note that `explain` shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.defects import is_defect, warn_of_fallback
from functrans.lowering.loops.tensor import FunctionCall, Tensor
from functrans.lowering.passes.blocks_of_lanes import without_blocks
from functrans.lowering.passes.carried_reductions import carry_reductions
from functrans.lowering.passes.lane_groups import group_loops
from functrans.lowering.passes.lane_regions import grow_loops, with_tests
from functrans.lowering.passes.rematerialize import Prices, Residual, rematerialize
from functrans.lowering.passes.repeats import Repeats, call_repeats
from functrans.lowering.rules import linalg
from functrans.lowering.rules.complex_memory import PAIRS
from functrans.lowering.rules.graph import (
    CALLS,
    CallRule,
    Graph,
    graph_of,
    with_results_as_outputs,
)
from functrans.lowering.rules.lanes import LaneKernels, has_rule, is_function
from functrans.lowering.rules.memory import in_memory
from functrans.lowering.schedule import plans
from functrans.lowering.schedule.forms import StepFailed, StepForms, with_notes
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.recomputation_prices import CPU_PRICES
from functrans.lowering.schedule.unfused import UnfusedValues
from functrans.primitives.control_flow.cond import cond_p

if TYPE_CHECKING:
    from functrans.lowering.schedule.schedule_log import ScheduleLog

__all__ = ["FunctionForms", "graph_with_lanes"]

T = TypeVar("T")
OF_ANY_DTYPE = frozenset({*linalg.RULES, *PAIRS})


def graph_with_lanes(jaxpr: Jaxpr, forms: StepForms | None = None,
                     prices: Prices = CPU_PRICES) -> Graph:
    """The graph of a program, whose loops over lanes are kernels until one cannot be written.

    What it keeps for later and what it computes again is planned by `prices`.
    """
    make = partial(graph_of, memory=in_memory, of_any_dtype=OF_ANY_DTYPE,
                   on_host=forms.hosted if forms is not None else {})
    if forms is not None and not forms.lanes:
        return make(planned(jaxpr, prices, []), rules={**CALLS, **PAIRS})
    kernels = LaneKernels()
    is_kernel = kernels.__contains__
    grouped = group_loops(carry_reductions(without_blocks(
        with_tests(jaxpr, is_kernel), is_kernel), is_kernel), is_kernel)
    grouped = grow_loops(grouped, kernels.program_of, has_rule, is_function)
    residuals: list[Residual] = []
    repeats = call_repeats(planned(grouped, prices, residuals))
    rules = {**kernels.rules, **PAIRS}
    if repeats.functions:
        rules[cond_p] = partial(_call, rules[cond_p], repeats)
    graph = with_results_as_outputs(make(repeats.jaxpr, rules=rules))
    graph.residuals = residuals
    return graph


def planned(jaxpr: Jaxpr, prices: Prices, told: list[Residual]) -> Jaxpr:
    """The program that computes again what is not worth keeping."""
    try:
        return rematerialize(jaxpr, prices, told)
    except Exception as error:
        if not is_defect(error):
            raise
        warn_of_fallback(jaxpr.name, "it keeps what linearization kept", error, None)
        return jaxpr


def _call(rule: CallRule, repeats: Repeats, eqn: Equation, xs: list[Tensor]) -> Any:
    """The call of a function of what a program repeats, or what `rule` makes of a branch."""
    body = eqn.params["branches"][0]
    if body not in repeats.functions:
        return rule(eqn, xs)
    results = [in_memory(v.aval, eqn.source) for v in eqn.outvars]
    return FunctionCall(body, repeats.functions[body], xs[1:], results, eqn.source)


class FunctionForms:
    """The forms of the functions of a program: of the main one, None, and of bodies."""

    def __init__(self, main: Graph, unfused: bool = False,
                 prices: Prices = CPU_PRICES) -> None:
        self._prices = prices
        self._unfused = UnfusedValues(whole=unfused)
        self._forms: dict[object, StepForms] = {}
        self._schedules: dict[object, Schedule] = {}
        assert main.jaxpr is not None
        self._add(None, main.jaxpr, main)

    def _add(self, function: object, jaxpr: Jaxpr, graph: Graph | None = None) -> None:
        self._forms[function] = StepForms(
            lambda forms: graph_with_lanes(jaxpr, forms, self._prices), self._unfused, _graph=graph)

    @property
    def changed(self) -> bool:
        """Whether something is not computed as planned."""
        return self._unfused.whole or any(forms.notes for forms in self._forms.values())

    def graph(self, function: object, jaxpr: Jaxpr | None = None) -> Graph:
        """The graph of a function, the same each time until NumPy takes some of its equations."""
        if function not in self._forms:
            assert jaxpr is not None
            self._add(function, jaxpr)
        return self._forms[function].graph

    def schedule(self, function: object) -> Schedule:
        """The schedule of a function. Raises StepFailed."""
        forms = self._forms[function]
        _, found = self.written(function, None,
                                lambda: plans.CPU.schedule(forms.graph, forms.unfused))
        self._schedules[function] = found
        return with_notes(found, forms)

    def schedule_again(self, function: object, log: ScheduleLog) -> None:
        """Make the schedule of a function once more, for who wants to know how it came about."""
        forms = self._forms[function]
        plans.CPU.schedule(forms.graph, forms.unfused, log=log)

    def written(self, function: object, step: Step | None, write: Callable[[], T]) -> T:
        """What `write` makes of a step. Raises StepFailed where it fails."""
        try:
            return write()
        except StepFailed:
            raise
        except Exception as error:
            if not is_defect(error):
                raise
            raise StepFailed(function, [(step, error)]) from error

    def fall_back(self, failed: StepFailed) -> None:
        """Take the next forms of what failed. Raises its error where there is none."""
        try:
            self._forms[failed.function].fall_back(
                failed, self._schedules.get(failed.function), reason=lambda error:
                f"the compiler failed on it ({type(error).__name__}: {error})")
        except StepFailed:
            raise failed.steps[0][1] from None
