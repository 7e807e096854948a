"""The GPU backend: a jaxpr becomes Triton kernels.

Where there is no GPU, Triton's interpreter runs them on NumPy arrays: slow, and good for tests. A
part for which no kernel can be had runs on the host, with a warning. A program that the disk knows
is launched without a look at the passes, the templates and Triton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core import config
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import substitute
from functrans.lowering.executable import Backend, Executable
from functrans.lowering.schedule.target import HOPPER, Target, device_target
from functrans.lowering.store.cache import program_cache
from functrans.lowering.triton.machine.device import MissingDeviceProgram, binaries, device_program
from functrans.lowering.triton.machine.kernel_cache import RecentKernels
from functrans.lowering.triton.machine.unit import Binary
from functrans.lowering.triton.saved import SavedProgram
from functrans.lowering.triton.steps.spec import GPUProgram

if TYPE_CHECKING:
    from functrans.lowering.portable import PortableKernel, PortableProgram
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes
    from functrans.lowering.triton.lower import LoweredToTriton
    from functrans.lowering.triton.portable import PortableTritonProgram

__all__ = ["TritonBackend", "TritonExecutable"]


MachineCode = Callable[[GPUProgram, Target], Mapping[tuple[Any, ...], Binary]]


class TritonExecutable(Executable):
    """A program of Triton kernels: on a GPU, or interpreted where there is none.

    `lower` makes anew what the program came from, for who asks.
    """

    def __init__(self, program: GPUProgram, lower: Callable[[], LoweredToTriton | None], name: str,
                 donated: frozenset[int], gpu: int = 0, target: Target | None = None,
                 machine_code: MachineCode = binaries) -> None:
        self.program = program
        self._machine_code = machine_code
        self.name = name
        self.donated = donated
        self._lower = lower
        self._settings = config.current()
        here = device_target(gpu)
        self.target = target or here or HOPPER
        if here is not None and self.target.capability == here.capability:
            self.run = device_program(program, gpu, here, donated, name,
                                      machine_code(program, here))
        elif target is not None:
            machine_code(program, target)  # they are kept on disk
            self.run = MissingDeviceProgram(target, here)
        else:
            # later: it imports Triton
            from functrans.lowering.triton.emulator.interpret import InterpretedProgram  # noqa: PLC0415

            self.run = InterpretedProgram(program)

    @property
    def specialized(self) -> str:
        """Why its kernels are for its sizes alone, where those of all sizes were asked for."""
        return self.program.specialized

    @cached_property
    def lowered(self) -> LoweredToTriton:
        """What the program was made from, made again for a program from the disk."""
        settings = {f.name: getattr(self._settings, f.name) for f in fields(self._settings)
                    if f.init}
        with config.scope(**settings):
            found = self._lower()
        assert found is not None
        return found

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What is known of its kernels; where there is no GPU they are compiled for Hopper."""
        return self.lowered.kernels(self.target)

    def on(self, gpu: int) -> TritonExecutable:
        """The same program on another GPU; machine code is compiled once for GPUs of a kind."""
        return TritonExecutable(self.program, self._lower, self.name, self.donated, gpu,
                                machine_code=self._machine_code)

    def as_text(self) -> str:
        """The simplified jaxpr, what was materialised and fused and why, and the Triton source."""
        return self.lowered.as_text()

    def cost_analysis(self) -> dict[str, Size]:
        return self.lowered.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return self.lowered.memory_analysis()

    def report(self, traced: TracedProgram) -> Report:
        # later: only who explains a program needs it
        from functrans.lowering.triton.report import report_of  # noqa: PLC0415

        return report_of(self.lowered, self.target, traced)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        # later: only who profiles a program needs it
        from functrans.lowering.triton.step_times import step_times  # noqa: PLC0415

        return step_times(self.lowered.program, self.target, inputs, gpu or 0)

    def portable(self, name: str) -> tuple[PortableProgram, tuple[PortableKernel, ...]]:
        # later: only who exports a program needs it
        from functrans.lowering.triton.portable import portable  # noqa: PLC0415

        found = portable(self.program, self.target)
        return found, found.exported


class TritonBackend(Backend):
    """Compiles to Triton kernels: for the GPUs that are here, or a target that need not be.

    What the host computes, `cpu` compiles.
    """

    name = "triton"
    devices: tuple[str, ...] = ("gpu",)
    exports_numbers = True
    limits_memory = True

    def __init__(self, cpu: Backend, target: Target | None = None) -> None:
        self._cpu = cpu
        self._target = target
        self._machine_code = partial(binaries, compiled=RecentKernels().compiled)
        if target is not None:
            self.name = target.name
            self.devices = ()  # its programs are to look at, wherever arguments are

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        if jaxpr.decided_names:
            # later: see the head of this file
            from functrans.lowering.triton.capacity_retry import capacity_retry_program  # noqa: PLC0415

            found = None if require_inplace else capacity_retry_program(jaxpr, self.compile)
            return found or self._cpu.compile(jaxpr, donated, require_inplace)
        if jaxpr.size_names:
            # later: see the head of this file
            from functrans.lowering.triton.lower import sized  # noqa: PLC0415

            return sized(jaxpr, partial(self._compiled, donated=donated,
                                        require_inplace=require_inplace, any_size=True))
        return self._compiled(jaxpr, donated, require_inplace, any_size=False)

    def compile_for_sizes(self, jaxpr: Jaxpr,
                          donated: frozenset[int] = frozenset()) -> Executable:
        """Compile a program of known sizes whose kernels are also those of other sizes.

        Loops that are one kernel are for these sizes alone.
        """
        return self._compiled(jaxpr, donated, False, any_size=True)

    @property
    def target(self) -> str:
        """The GPUs that it compiles for; nothing where there are none."""
        target = self._target or device_target(0)
        return "" if target is None else target.name

    def read_portable(self, plain: Any, kernels: Sequence[PortableKernel],
                      constants: list[np.ndarray[Any, Any]], jaxpr: Jaxpr,
                      sizes: Mapping[str, int]) -> PortableProgram:
        # later: only who reads files needs it
        from functrans.lowering.triton.portable import PortableTritonProgram  # noqa: PLC0415

        inputs, outputs = ([substitute(a, sizes) for a in avals]
                           for avals in (jaxpr.in_avals, jaxpr.out_avals))
        return PortableTritonProgram.read(plain, kernels, constants, inputs, outputs,
                                          self._target or HOPPER)

    def load(self, programs: Sequence[PortableProgram], jaxpr: Jaxpr,
             name: str) -> Executable | None:
        # later: as in read_portable
        from functrans.lowering.triton.portable import PortableTritonProgram  # noqa: PLC0415
        from functrans.lowering.triton.sized import SizedExecutable  # noqa: PLC0415

        ready = [p for p in programs if isinstance(p, PortableTritonProgram) and p.has_libraries]
        if self._target is not None or device_target(0) is None or not ready:
            return None
        if not jaxpr.size_names:
            return _ready(ready[0], jaxpr, name)

        def for_sizes(sized: Jaxpr) -> Executable:
            """The program for the sizes of a jaxpr: one that came along, or one compiled now."""
            for program in ready:
                if [a.shape for a in program.program.inputs] == [a.shape for a in sized.in_avals]:
                    return _ready(program, sized, name)
            return self.compile(sized)

        return SizedExecutable(jaxpr, jaxpr, [], for_sizes)

    def _compiled(self, jaxpr: Jaxpr, donated: frozenset[int], require_inplace: bool,
                  any_size: bool) -> Executable:
        here = device_target(0)
        target = self._target or here or HOPPER
        gpu = 0 if here is not None and self._target is None else None
        device = "" if gpu is None else _runtime.cuda_devices()[gpu][0]
        runs = here is not None or self._target is not None
        make = partial(_lowered, jaxpr, donated, require_inplace, any_size, target, gpu,
                       self._machine_code if runs else None)
        saved = SavedProgram(jaxpr, program_cache(), donated, any_size, target, device)
        program = None if require_inplace else saved.read()
        if program is not None:
            return TritonExecutable(program, make, jaxpr.name, donated, target=self._target,
                                    machine_code=self._machine_code)
        lowered = make()
        if lowered is None:
            return self._cpu.compile(jaxpr, donated, require_inplace)
        executable = TritonExecutable(lowered.program, make, jaxpr.name, donated,
                                      target=self._target, machine_code=self._machine_code)
        executable.lowered = lowered
        if not require_inplace:
            saved.write(lowered.program)
        return executable


def _ready(portable: PortableTritonProgram, jaxpr: Jaxpr, name: str) -> TritonExecutable:
    """What runs a program that came along, on the first GPU."""
    make = partial(_lowered, jaxpr, frozenset(), False, False, portable.target, None)
    return TritonExecutable(portable.program, make, name, frozenset(),
                            machine_code=portable.machine_code)


def _lowered(*args: Any) -> LoweredToTriton | None:
    # later: see the head of this file
    from functrans.lowering.triton.lower import lower  # noqa: PLC0415

    return lower(*args)
