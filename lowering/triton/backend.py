"""The GPU backend: a jaxpr becomes Triton kernels.

Where there is no GPU, Triton's interpreter runs them on NumPy arrays: slow, and good for tests. A
program with a part that is not written in Triton yet runs on the CPU backend as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.c.backend import CBackend
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.device import binaries, device_program
from functrans.lowering.triton.expressions import UnsupportedKernel
from functrans.lowering.triton.libraries.files import is_there
from functrans.lowering.triton.libraries.replace import with_libraries
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.records import KernelRecord, records
from functrans.lowering.triton.sized import SizedExecutable
from functrans.lowering.triton.spec import Program
from functrans.lowering.triton.target import HOPPER, Elsewhere, Target, device_target
from functrans.lowering.triton.tuning import chooser_for
from functrans.lowering.updates import copies_needed

if TYPE_CHECKING:
    from functrans.lowering.backend import Executable

__all__ = ["TritonBackend", "TritonExecutable"]


class TritonExecutable:
    """A program of Triton kernels: on a GPU, or interpreted where there is none."""

    def __init__(self, simplified: Jaxpr, program: Program, decisions: list[Decision],
                 donated: frozenset[int], gpu: int = 0, target: Target | None = None) -> None:
        self.simplified = simplified
        self.program = program
        self.decisions = decisions
        self.donated = donated
        self.run: Callable[[Sequence[np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]
        here = device_target(gpu)
        self.target = target or here or HOPPER
        if here is not None and self.target.capability == here.capability:
            self.run = device_program(program, gpu, here, donated, simplified.name)
        elif target is not None:
            binaries(program, target)  # they are kept on disk
            self.run = Elsewhere(target, here)
        else:
            # later: it imports Triton
            from functrans.lowering.triton.interpret import InterpretedProgram  # noqa: PLC0415

            self.run = InterpretedProgram(program)

    @property
    def kernels(self) -> tuple[KernelRecord, ...]:
        """What is known of its kernels; where there is no GPU they are compiled for Hopper."""
        return records(self.program, binaries(self.program, self.target))

    def on(self, gpu: int) -> TritonExecutable:
        """The same program on another GPU; machine code is compiled once for GPUs of a kind."""
        return TritonExecutable(self.simplified, self.program, self.decisions, self.donated, gpu)

    def as_text(self) -> str:
        """The simplified jaxpr, what was materialised and fused and why, and the Triton source."""
        return "\n".join([str(self.simplified), "", *map(str, self.decisions), "",
                          *self.program.notes, "", *self.program.sources])

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.simplified)

    def memory_analysis(self) -> dict[str, Size]:
        known = memory_of(self.simplified)
        args, outs = known["arguments"], known["outputs"]
        temporaries = self.program.arena_bytes
        shared = sum([self.program.outputs[j].nbytes for j in self.program.given.inputs], start=0)
        return {"arguments": args, "outputs": outs, "temporaries": temporaries, "donated": shared,
                "peak": args + outs + temporaries - shared}


def _for_device(jaxpr: Jaxpr) -> Jaxpr:
    """The program with functions of the libraries; where there is no GPU, as it is."""
    return with_libraries(jaxpr, is_there) if _runtime.cuda_open() else jaxpr


class TritonBackend:
    """Compiles to Triton kernels: for the GPUs that are here, or a target that need not be."""

    name = "triton"

    def __init__(self, target: Target | None = None) -> None:
        self._cpu = CBackend()
        self._target = target
        if target is not None:
            self.name = target.name

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        if jaxpr.decided_names:  # the host makes room for results once it knows their sizes
            return self._cpu.compile(jaxpr, donated, require_inplace)
        if jaxpr.size_names:
            decisions: list[Decision] = []
            return SizedExecutable(simplify(jaxpr, decisions=decisions), decisions,
                                   partial(self.compile_for_sizes, donated=donated))
        return self._compiled(jaxpr, donated, require_inplace, any_size=False)

    def compile_for_sizes(self, jaxpr: Jaxpr,
                          donated: frozenset[int] = frozenset()) -> Executable:
        """Compile a program of known sizes whose kernels are also those of other sizes."""
        return self._compiled(jaxpr, donated, False, any_size=True)

    def _compiled(self, jaxpr: Jaxpr, donated: frozenset[int], require_inplace: bool,
                  any_size: bool) -> Executable:
        decisions: list[Decision] = []
        simplified = simplify(jaxpr, decisions=decisions)
        here = device_target(0)
        is_here = here is not None and self._target is None
        # nobody waits for measurements of what is computed once, or of each size
        choose = chooser_for(self._target or here or HOPPER, 0 if is_here else None, not any_size)
        try:
            program = write_program(_for_device(simplified), any_size, donated, choose)
            if choose.tune():
                program = write_program(_for_device(simplified), any_size, donated, choose)
        except UnsupportedKernel:
            return self._cpu.compile(jaxpr, donated, require_inplace)
        if require_inplace and program.given.copied:
            raise copies_needed(*program.given.copied[0])
        return TritonExecutable(simplified, program, decisions, donated, target=self._target)
