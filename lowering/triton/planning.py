"""The plan of a program for a GPU, and the same once more for who wants to know its decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.forms import Form, StepForms, choose
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.plans import Plan
from functrans.lowering.schedule.target import Target

if TYPE_CHECKING:
    from functrans.lowering.schedule.schedule_log import ScheduleLog

__all__ = ["planned", "planned_again"]


def planned(plan: Plan, forms: StepForms, target: Target,
            log: ScheduleLog | None = None) -> tuple[Graph, Schedule]:
    """The plan of a graph: with attention where there is some, and results in either layout.

    Its readers say where results are; where kernels cannot write one there, the program does.
    """
    def form(name: str, rank: int, plan: Plan) -> Form[tuple[Graph, Schedule]]:
        def write() -> tuple[Graph, Schedule]:
            if log is not None:
                log.begin()
            return plan.schedule(forms.graph, forms.unfused, target, log)

        return Form(name, rank, write)

    attention = [form("attention", 0, p) for p in (plan, plan.with_attention_in_place())]
    products = form("products", 1, plan.without("attention"))
    return choose([*attention * forms.attention, products]).written


def planned_again(plan: Plan, forms: StepForms, target: Target,
                  final: Schedule) -> Callable[[Any], Schedule]:
    """Makes a plan once more for a log, and gives the schedule that was written in the end."""
    # without the expressions of kernels, which nothing reads again
    steps = [s.anew() if isinstance(s, Kernel) else s for s in final.steps]
    return partial(_again, plan, forms, target, replace(final, steps=steps))


def _again(plan: Plan, forms: StepForms, target: Target, final: Schedule,
           log: ScheduleLog) -> Schedule:
    _, schedule = planned(plan, forms, target, log)
    final = replace(final, notes=schedule.notes)
    log.changed_schedule("the order of launches, small kernels side by side", schedule, final)
    return final
