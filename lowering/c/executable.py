"""Programs in shared objects as jit knows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from functrans._runtime import Program
from functrans.core import config
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.executable import HOST_COMPUTES, Executable, not_kernels_of_gpus

if TYPE_CHECKING:
    from functrans.lowering.c.lower import LoweredToC
    from functrans.lowering.passes.pass_log import PassLog
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes

__all__ = ["CExecutable"]


class CExecutable(Executable):
    """A compiled program, and what is known of it when that is asked for."""

    why_not_portable = HOST_COMPUTES

    def __init__(self, jaxpr: Jaxpr, donated: frozenset[int], program: Program) -> None:
        self.jaxpr = jaxpr
        self.donated = donated
        self._settings = config.current()
        self.run = program

    @cached_property
    def lowered(self) -> LoweredToC:
        """What the program was made from, made again for a program from the disk cache."""
        return self._lower(None)

    def _lower(self, log: PassLog | None) -> LoweredToC:
        from functrans.lowering.c.lower import lower  # noqa: PLC0415  see backend.py

        with config.scope(algebra=self._settings.algebra,
                          memory_limit=self._settings.memory_limit):
            found = lower(self.jaxpr, self.donated, log=log)
        assert found is not None
        return found

    def as_text(self) -> str:
        """The simplified jaxpr, what was materialised and fused and why, and the C program."""
        return self.lowered.as_text()

    def cost_analysis(self) -> dict[str, Size]:
        return self.lowered.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return self.lowered.memory_analysis()

    def report(self, traced: TracedProgram) -> Report:
        # later: who explains programs
        from functrans.lowering.c.report import report_of  # noqa: PLC0415
        from functrans.lowering.passes.pass_log import PassLog  # noqa: PLC0415

        log = PassLog()
        return report_of(self._lower(log), traced, log)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        if gpu is not None:
            raise not_kernels_of_gpus()
        from functrans.lowering.c.timed import time_steps  # noqa: PLC0415  who profiles programs

        return time_steps(self.jaxpr, inputs)
