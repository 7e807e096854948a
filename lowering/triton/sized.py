"""Programs of named sizes: the steps are written for each set of sizes, of kernels of all sizes.

Passes and steps know the sizes: networks are contracted in the order that is best for them, grids,
places in memory and copies are numbers, and a CUDA graph replays one set of sizes. The machine code
of kernels is made once for sizes of a class (`kernel_source.py`); where a loop would be one
kernel, for each set of sizes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Size, is_static
from functrans.core.errors import ShapeError
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import known_sizes, substitute_jaxpr
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.executable import (
    HOST_COMPUTES,
    Executable,
    report_without_code,
    timed_on_host,
)
from functrans.lowering.passes.networks.decide import Decision

if TYPE_CHECKING:
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes

__all__ = ["SizedExecutable", "SizedProgram"]

KEPT = 256
"""Sets of sizes whose programs are kept: those that were used last."""

Compile = Callable[[Jaxpr], Executable]


class SizedProgram:
    """Runs a program of named sizes on arrays, which tell the sizes."""

    def __init__(self, jaxpr: Jaxpr, compile_: Compile) -> None:
        self.jaxpr = jaxpr
        self._compile = compile_
        self._avals = jaxpr.in_avals
        self._sized = [k for k, a in enumerate(self._avals) if not is_static(a.shape)]
        self._known: OrderedDict[tuple[Any, ...], Executable] = OrderedDict()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        return self.at([x.shape for x in arrays]).run(arrays)

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The program for inputs of these shapes."""
        key = tuple([shapes[k] for k in self._sized])
        found = self._known.pop(key, None)
        if found is None:
            found = self._compile(substitute_jaxpr(self.jaxpr, self._sizes(shapes)))
        self._known[key] = found
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return found

    @property
    def known(self) -> list[Executable]:
        return list(self._known.values())

    def _sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        sizes = known_sizes(self._avals, shapes)
        for k in self._sized:
            if self._avals[k].substitute(sizes).shape != tuple(shapes[k]):
                raise ShapeError(
                    f"input {k} of the program has shape {tuple(shapes[k])}, and its type is "
                    f"{self._avals[k]}.",
                    why=", ".join(f"{n} is {v} here" for n, v in sorted(sizes.items())) + ".",
                    fix="arguments whose sizes have one name must agree in them")
        return sizes


class SizedExecutable(Executable):
    """A program of named sizes as jit knows it."""

    why_not_portable = HOST_COMPUTES
    run: SizedProgram

    def __init__(self, jaxpr: Jaxpr, simplified: Jaxpr, decisions: list[Decision],
                 compile_: Compile) -> None:
        self.jaxpr = jaxpr
        self.simplified = simplified
        self.decisions = decisions
        self._compile = compile_
        self.run = SizedProgram(jaxpr, compile_)

    def on(self, gpu: int) -> SizedExecutable:
        """The same program on another GPU."""
        return SizedExecutable(self.jaxpr, self.simplified, self.decisions,
                               lambda jaxpr: self._compile(jaxpr).on(gpu))

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The program for inputs of these shapes."""
        return self.run.at(shapes)

    @property
    def specialized(self) -> str:
        """Why sets of sizes that were met have kernels of their own."""
        return "; ".join(dict.fromkeys(e.specialized for e in self.run.known if e.specialized))

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Those of the sets of sizes that were met."""
        return tuple([kernel for e in self.run.known for kernel in e.kernels])

    def as_text(self) -> str:
        """The simplified jaxpr, and the program for each set of sizes that was met."""
        return "\n".join([str(self.simplified), "", *map(str, self.decisions),
                          *["\n" + e.as_text() for e in self.run.known]])

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.simplified)

    def memory_analysis(self) -> dict[str, Size]:
        return memory_of(self.simplified)

    def report(self, traced: TracedProgram) -> Report:
        """Without kernels: each set of sizes has its own."""
        return report_without_code(traced)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        return timed_on_host(self, inputs, gpu)
