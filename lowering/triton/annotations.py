"""What is known of the launches of a step: the lines, the equations and the work that they are."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.triton.kernels.kernel_source import KernelSource
from functrans.lowering.triton.records import sources_of
from functrans.lowering.triton.steps.spec import Launch
from functrans.lowering.triton.templates.kernel import TemplateKernel
from functrans.lowering.triton.templates.notes import NamedValue

__all__ = ["annotated"]


def annotated(launches: Sequence[Launch], written: Sequence[KernelSource | TemplateKernel],
              places: Sequence[Mapping[str, object]], computed: Sequence[Kernel | Call],
              schedule: Schedule, graph: Graph,
              equations: Mapping[int, tuple[Equation, ...]]) -> list[Launch]:
    """The launches that compute a step, or several together, with what is known of these.

    `places` tell what the pointers of each are by name, `equations` those of a step by its `id`.
    The arithmetic of the steps is that of the first launch which does not say its own.
    """
    sources = tuple(dict.fromkeys(
        [s for step in computed for s in sources_of(step, schedule.is_stored)]))
    whole: Size = sum([flops_of(step, schedule.is_stored) for step in computed], start=0)
    all_equations = tuple(dict.fromkeys([e for step in computed for e in equations[id(step)]]))
    flops = [w.flops for w in written]
    if None in flops:
        flops[flops.index(None)] = whole if isinstance(whole, int) else 0
    steps = [step.anew() if isinstance(step, Kernel) else step for step in computed]
    return [replace(
        launch, sources=sources, equations=all_equations, flops=n or 0,
        notes=replace(w.notes, steps=steps, stored=schedule.stored,
                      origins=ChainMap({}, dict(w.notes.origins), graph.origins),
                      values=[*w.notes.values, *[NamedValue("", name, (t,))
                                                 for name, t in pointers.items()
                                                 if isinstance(t, Tensor)]]))
            for launch, w, pointers, n in zip(launches, written, places, flops, strict=True)]
