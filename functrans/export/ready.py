"""Programs that run as they came, on a machine that has what they were compiled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functrans.core.errors import ExportError
from functrans.core.jaxpr import Jaxpr
from functrans.export.kernels import TargetProgram, settings_now
from functrans.lowering.backend import Executable, get_backend

__all__ = ["ReadyPrograms"]


class ReadyPrograms:
    """The trusted programs of a file: what `executable_of` asks before it compiles."""

    def __init__(self, name: str, targets: Mapping[str, Sequence[TargetProgram]]) -> None:
        self.name = name
        self.targets = targets

    def __call__(self, jaxpr: Jaxpr, backend: str) -> Executable | None:
        """What runs a jaxpr by a backend now; None where that is to be compiled."""
        compiler = get_backend(backend)
        target = compiler.target
        programs = [p.portable for p in self.targets.get(target, ())
                    if p.portable is not None and p.settings == settings_now()]
        if not programs:
            return None
        try:
            return compiler.load(programs, jaxpr, self.name)
        except (OSError, LookupError) as error:
            machines = "the CPU" if target == "cpu" else target
            raise ExportError(f"the kernels of {self.name} for {machines} do not load.",
                              where=None, why=f"{error}.",
                              fix="load it without trust_kernels=True") from None
