"""From a jaxpr to a program of kernels, and what is known of it.

Imported by the first program that the disk does not know, or to look at one: the passes, the
schedule and the templates take 80 ms to import.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, Final

from functrans import _runtime
from functrans.core.cuda_libraries import is_there
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.record import Record
from functrans.lowering.analysis import cost_of
from functrans.lowering.defects import UnsupportedKernel, warn_of_fallback
from functrans.lowering.garbage import collector_paused
from functrans.lowering.memory.aliasing import copies_needed
from functrans.lowering.passes.known_dtypes import FLOAT8
from functrans.lowering.passes.narrow_numbers import NARROW, in_bytes
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pass_log import PassLog, recorded
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.plans import GPU
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.host_steps import check_host_steps, leave_to_host
from functrans.lowering.triton.kernels.source import RejectedKernels
from functrans.lowering.triton.libraries.replace import replace_by_library_calls
from functrans.lowering.triton.machine.device import binaries, unit_of
from functrans.lowering.triton.machine.tuning import chooser_for
from functrans.lowering.triton.machine.unit import Binary, KernelError
from functrans.lowering.triton.machine.workers import start_workers
from functrans.lowering.triton.memory_plans import KeptForLater, memory_of_program, plan_memory_of
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.records import KernelRecord, records
from functrans.lowering.triton.sized import Compile, SizedExecutable
from functrans.lowering.triton.steps.spec import GPUProgram, launch_key, launches_in

__all__ = ["LoweredToTriton", "lower", "passes_log", "sized"]


class LoweredToTriton(Record, frozen=False, eq=False, repr=False):
    """A simplified jaxpr, its program, and what the passes decided."""

    simplified: Jaxpr
    program: GPUProgram
    decisions: list[Decision]
    plan: KeptForLater

    def as_text(self) -> str:
        """The simplified jaxpr, what was materialised and fused and why, and the Triton source."""
        return "\n".join([str(self.simplified), "", *map(str, self.decisions),
                          self.plan.said, *map(str, self.program.apart), *self.program.notes, "",
                          *self.program.sources])

    def kernels(self, target: Target) -> tuple[KernelRecord, ...]:
        """What is known of the kernels, as they are compiled for a target."""
        return records(self.program, binaries(self.program, target))

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.simplified)

    def memory_analysis(self) -> dict[str, Size]:
        return memory_of_program(self.simplified, self.program)


def equation_count(jaxpr: Jaxpr) -> int:
    """How many equations a program has, with those of its loops, branches and calls."""
    return len(jaxpr.eqns) + sum(equation_count(j) for e in jaxpr.eqns for j in subjaxprs(e))


def _assumed(library: str) -> bool:
    """Whether a GPU that is elsewhere has a library."""
    return True


MOST_SAID: Final = 200
"""Characters of why a kernel does not compile."""

IN_BYTES = NARROW.difference(FLOAT8)
"""The names of dtypes whose numbers are bytes: tensor cores have the others."""
MachineCode = Callable[[GPUProgram, Target], Mapping[tuple[Any, ...], Binary]]


def lower(jaxpr: Jaxpr, donated: frozenset[int], require_inplace: bool, any_size: bool,
          target: Target, gpu: int | None, machine_code: MachineCode | None = None
          ) -> LoweredToTriton | None:
    """The program of a jaxpr for a target; None, with a warning, where the CPU has to compute it.

    With `any_size` its kernels are those of other sizes too, unless kernels for its sizes alone are
    faster. On a `gpu` that is here kernels are chosen by timing. With `machine_code`, which
    compiles, all kernels compile and fit the target: where one does not, another form is taken.
    Tells of what the host computes, or raises HostStepError, as `config.host_steps` says. Raises
    BackendError where `require_inplace` is asked for and an update needs a copy.
    """
    decisions: list[Decision] = []
    here = _runtime.cuda_open()
    if machine_code is not None:
        start_workers(equation_count(jaxpr), gpu is not None)
    with collector_paused():
        simplified = simplify(in_bytes(jaxpr, IN_BYTES), decisions=decisions, atomic=True)
    is_compiled = machine_code is not None  # for a GPU, which is here or not
    found = is_there if here else _assumed
    if is_compiled and not found("cublas"):
        simplified = GPU.simplified(simplified, _by_itself(target))
    elif not any_size:  # an operation outside of jit would wait for a dozen kernels to compile
        simplified = GPU.simplified(simplified, target)
    written = replace_by_library_calls(simplified, found, target) if is_compiled else simplified
    plan = plan_memory_of(written, donated, any_size, target)
    if plan.jaxpr is not written:
        simplified = written = plan.jaxpr
    writer = _RetryingWriter(written, donated, target, gpu, machine_code, plan.written)
    program = writer.of_all_sizes() if any_size else None
    if program is None or program.specialized:
        reason = "" if program is None else program.specialized
        program = writer.of_its_sizes()
        if program is None:
            return None
        program.specialized = reason
    program.inputs, program.outputs = list(jaxpr.in_avals), list(jaxpr.out_avals)  # not as bytes
    check_host_steps(program.steps, warns=is_compiled)
    if require_inplace and program.aliases.copied:
        raise copies_needed(*program.aliases.copied[0])
    return LoweredToTriton(simplified, program, decisions, replace(plan, written=None))


def passes_log(jaxpr: Jaxpr, target: Target) -> PassLog:
    """What the passes do with a program for a target, by running them again."""
    log = PassLog()
    in_words = recorded(log, "narrow numbers as bytes", jaxpr, lambda p: in_bytes(p, IN_BYTES))
    simplified = simplify(in_words, log, atomic=True)
    recorded(log, "systems as products", simplified, lambda p: GPU.simplified(p, target))
    return log


def _by_itself(target: Target) -> Target:
    """A target without the library that solves triangular systems."""
    return replace(target, measured=replace(target.measured, triangular_row=math.inf))


class _RetryingWriter(Record, frozen=False, eq=False):
    """Writes the program of a jaxpr, without the kernels that are found not to compile.

    `known` is what a model chooses, where that was written before: seconds of a long program.
    """

    jaxpr: Jaxpr
    donated: frozenset[int]
    target: Target
    gpu: int | None
    machine_code: MachineCode | None
    known: GPUProgram | None
    rejected: RejectedKernels = field(default_factory=RejectedKernels)

    def of_all_sizes(self) -> GPUProgram | None:
        """A program of kernels of all sizes: nobody waits for measurements of each."""
        choose = chooser_for(self.target, self.gpu, may_time=False, rejected=self.rejected)
        try:
            return self._compiled(partial(self._written, True, choose))
        except UnsupportedKernel:
            return None

    def of_its_sizes(self) -> GPUProgram | None:
        """A program for its sizes alone."""
        choose = chooser_for(self.target, self.gpu, rejected=self.rejected)

        def write() -> GPUProgram:
            program = self._written(False, choose)
            return write() if choose.tune(program) else program

        try:
            return self._compiled(write)
        except UnsupportedKernel as error:
            source = next((e.source for e in self.jaxpr.eqns if e.source is not None), None)
            leave_to_host("the whole program", str(error), source)
            warn_of_fallback(self.jaxpr.name or "a program", "the CPU computes all of it", error,
                             source)
            return None

    def _written(self, any_size: bool, choose: Chooser) -> GPUProgram:
        known, self.known = self.known, None
        if known is not None and not any_size and type(choose) is Chooser:
            return known
        with collector_paused():
            return write_program(self.jaxpr, any_size, self.donated, choose)

    def _compiled(self, write: Callable[[], GPUProgram]) -> GPUProgram:
        """A program all of whose kernels compile; others are rejected, with a warning."""
        while True:
            program = write()
            if self.machine_code is None:
                return program
            try:
                compiled = self.machine_code(program, self.target)
            except KernelError as error:
                launch = next((step for step in launches_in(program.steps)
                               if unit_of(program, step, self.target) == error.unit), None)
                why = " ".join(error.reason.split())[-MOST_SAID:]  # Triton's head is the source
                if launch is None or not self.rejected.add(program, launch, why):
                    raise
                if not error.too_large:
                    warn_of_fallback(f"the kernel {error.unit.name}", "it is written in another "
                                     "form", UnsupportedKernel(why),
                                     launch.sources[0] if launch.sources else None)
            else:
                if not self._spills(program, compiled):
                    return program

    def _spills(self, program: GPUProgram, compiled: Mapping[tuple[Any, ...], Binary]) -> bool:
        """Whether kernels that have other forms are found to spill registers."""
        found = False
        for launch in launches_in(program.steps):
            spills = compiled[launch_key(launch)].spills
            measured = self.target.measured
            if launch.module and spills > (
                    measured.product_spills if launch.fuses else measured.spills):
                found |= self.rejected.add_spilling(program, launch, spills)
        return found


def sized(jaxpr: Jaxpr, compile_: Compile) -> SizedExecutable:
    """A program of named sizes, compiled for each set of them."""
    decisions: list[Decision] = []
    simplified = simplify(in_bytes(jaxpr, IN_BYTES), decisions=decisions, atomic=True)
    return SizedExecutable(jaxpr, simplified, decisions, compile_)
