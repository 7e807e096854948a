"""Programs in C to look at: nothing of them is compiled before that is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.c.lower import LoweredToC, lower
from functrans.lowering.c.portable import portable
from functrans.lowering.c.report import report_of
from functrans.lowering.c.timed import time_steps
from functrans.lowering.executable import Executable, report_without_code
from functrans.lowering.passes.pass_log import PassLog
from functrans.lowering.portable import NotPortableError, PortableKernel, PortableProgram
from functrans.lowering.report import Report, TracedProgram
from functrans.lowering.store.cache import program_cache
from functrans.lowering.timing import StepTimes

__all__ = ["InspectedCProgram"]


class InspectedCProgram(Executable):
    """A jaxpr as a C program, or as one that NumPy evaluates; `compiled` makes it ready to run."""

    def __init__(self, jaxpr: Jaxpr, donated: frozenset[int],
                 compiled: Callable[[], Executable]) -> None:
        self.jaxpr = jaxpr
        self.donated = donated
        self.log = PassLog()
        self._compiled = compiled

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        return self._compiled().run(arrays)

    @cached_property
    def lowered(self) -> LoweredToC | None:
        """The program as text; None where NumPy evaluates it."""
        return lower(self.jaxpr, self.donated, log=self.log)

    def as_text(self) -> str:
        return str(self.jaxpr) if self.lowered is None else self.lowered.as_text()

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.jaxpr) if self.lowered is None else self.lowered.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return memory_of(self.jaxpr) if self.lowered is None else self.lowered.memory_analysis()

    def report(self, traced: TracedProgram) -> Report:
        if self.lowered is None:
            return report_without_code(traced, is_sized=False)
        return report_of(self.lowered, traced, self.log)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        return time_steps(self.jaxpr, inputs)

    def portable(self, name: str) -> tuple[PortableProgram, tuple[PortableKernel, ...]]:
        made = portable(self.jaxpr, program_cache())
        if made is None:
            raise NotPortableError("it computes nothing, decides the sizes of its results, or "
                                   "needs Python for a part of it.")
        program, text = made
        return program, (PortableKernel(name, text, "", program.shared_object),)
