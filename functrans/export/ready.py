"""Programs that run as they came, on a machine that has what they were compiled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from functrans.core.avals import ShapedArray
from functrans.core.errors import ExportError
from functrans.core.jaxpr import Jaxpr
from functrans.export.kernels import CPU, TargetProgram, settings_now
from functrans.lowering.backend import Executable, get_backend
from functrans.lowering.c.cache import program_cache
from functrans.lowering.c.portable import PortableCProgram as CpuProgram
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.machine.target import device_target
from functrans.lowering.triton.portable import PortableTritonProgram as GpuProgram
from functrans.lowering.triton.sized import SizedExecutable

__all__ = ["ReadyPrograms"]


class ReadyPrograms:
    """The trusted programs of a file: what `executable_of` asks before it compiles."""

    def __init__(self, name: str, targets: Mapping[str, Sequence[TargetProgram]]) -> None:
        self.name = name
        self.targets = targets

    def __call__(self, jaxpr: Jaxpr, backend: str) -> Executable | None:
        """What runs a jaxpr by a backend now; None where that is to be compiled."""
        if backend == "c":
            return self._on_cpu(jaxpr)
        return self._on_gpu(jaxpr) if backend == "triton" else None

    def _on_cpu(self, jaxpr: Jaxpr) -> Executable | None:
        for program in self._of(CPU):
            if isinstance(program.portable, CpuProgram) and program.portable.runs_here:
                try:
                    return program.portable.executable(jaxpr, program_cache())
                except (OSError, LookupError) as error:
                    raise ExportError(f"the kernels of {self.name} for the CPU do not load.",
                                      where=None, why=f"{error}.",
                                      fix="load it without trust_kernels=True") from None
        return None

    def _on_gpu(self, jaxpr: Jaxpr) -> Executable | None:
        here = device_target(0)
        programs = [] if here is None else [
            p for p in self._of(here.name)
            if isinstance(p.portable, GpuProgram) and p.portable.has_libraries]
        if not programs:
            return None
        if not jaxpr.size_names:
            return self._ready(programs[0], jaxpr)
        return cast("Executable", SizedExecutable(jaxpr, jaxpr, [],
                                                  partial(self._for_sizes, programs)))

    def _for_sizes(self, programs: Sequence[TargetProgram], jaxpr: Jaxpr) -> Executable:
        """The program for the sizes of a jaxpr: one that came along, or one compiled now."""
        for program in programs:
            assert isinstance(program.portable, GpuProgram)
            if _shapes(program.portable.program.inputs) == _shapes(jaxpr.in_avals):
                return self._ready(program, jaxpr)
        return get_backend("triton").compile(jaxpr)

    def _ready(self, program: TargetProgram, jaxpr: Jaxpr) -> Executable:
        assert isinstance(program.portable, GpuProgram)
        target = program.portable.target
        make = partial(lower, jaxpr, frozenset(), False, False, target, None)
        return program.portable.executable(make, self.name)

    def _of(self, target: str) -> list[TargetProgram]:
        """The programs for a target that the settings of now would compile."""
        return [p for p in self.targets.get(target, ()) if p.settings == settings_now()]


def _shapes(avals: Sequence[ShapedArray]) -> list[Any]:
    return [a.shape for a in avals]
