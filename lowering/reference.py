"""The reference backend: every equation is one call of its primitive's NumPy evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functrans.core import config
from functrans.core.dims import Size
from functrans.core.errors import BackendError
from functrans.core.evaluate import NumPyProgram
from functrans.core.jaxpr import Jaxpr
from functrans.core.prune import prune_jaxpr
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.executable import (
    HOST_COMPUTES,
    Backend,
    Executable,
    report_without_code,
    timed_on_host,
)

if TYPE_CHECKING:
    from functrans.lowering.passes.networks.decide import Decision
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes

__all__ = ["ReferenceBackend", "ReferenceExecutable"]


class ReferenceExecutable(Executable):
    """A jaxpr that NumPy evaluates, one equation after the other."""

    why_not_portable = HOST_COMPUTES

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = prune_jaxpr(jaxpr)
        program = NumPyProgram(self._jaxpr)
        self.run = program if self._jaxpr.eqns else program.run

    @property
    def specialized(self) -> str:
        return "NumPy evaluates it"

    def as_text(self) -> str:
        return str(self._jaxpr)

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self._jaxpr)

    def memory_analysis(self) -> dict[str, Size]:
        return memory_of(self._jaxpr)

    def report(self, traced: TracedProgram) -> Report:
        return report_without_code(traced)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        return timed_on_host(self, inputs, gpu)


class ReferenceBackend(Backend):
    """Evaluates on NumPy: slow, always there, and what other backends are compared with."""

    name = "reference"
    makes_machine_code = False

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> ReferenceExecutable:
        if require_inplace:
            raise BackendError("the reference backend updates nothing in place.",
                               fix="install a C compiler: apt-get install gcc")
        return ReferenceExecutable(_contracted(jaxpr))


def _contracted(jaxpr: Jaxpr) -> Jaxpr:
    """The program without the values that contraction algebra need not materialise.

    Where there are none it stays as it was written: other backends are compared with it.
    """
    if config.current().algebra == "off":
        return jaxpr
    # later: a program without such values needs none of the passes
    from functrans.lowering.passes.pipeline import simplify  # noqa: PLC0415

    decisions: list[Decision] = []
    simplified = simplify(jaxpr, decisions=decisions)
    return simplified if any(d.is_contracted for d in decisions) else jaxpr
