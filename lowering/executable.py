"""The interface of a backend: what compiles jaxprs, and what it makes of them.

`explain`, `draw`, `profile` and `export` ask these classes, whatever the backend. A backend gives
the abstract methods; the others have defaults that are right for a program about which nothing more
is known (docs/internals/adding_a_backend.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from functrans.core.dims import Size
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Jaxpr

if TYPE_CHECKING:
    from functrans.lowering.portable import PortableKernel, PortableProgram, StandaloneProgram
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes

__all__ = ["HOST_COMPUTES", "Backend", "Executable", "WrapperExecutable", "not_kernels_of_gpus",
           "report_without_code", "timed_on_host"]


class Executable(ABC):
    """A compiled program: arrays in, arrays out, and what is known of it."""

    run: Callable[[Sequence[Any]], list[Any]]
    """Runs on the inputs of the jaxpr, as NumPy arrays; what `jit` calls, with nothing between."""

    @property
    def specialized(self) -> str:
        """Why a program of named sizes is better made for each set of them; else nothing."""
        return ""

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The program for inputs of these shapes: itself, unless each set of sizes has its own."""
        return self

    def on(self, gpu: int) -> Executable:
        """The same program on the GPU of that number, for a backend that compiles for GPUs."""
        return self

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What is known of the kernels of a program for GPUs: none of others."""
        return ()

    @abstractmethod
    def as_text(self) -> str:
        """The program in the backend's own terms."""

    @abstractmethod
    def cost_analysis(self) -> dict[str, Size]:
        """`flops` and `bytes accessed` of one run."""

    @abstractmethod
    def memory_analysis(self) -> dict[str, Size]:
        """Bytes of arguments, outputs and temporaries, and at the peak."""

    def report(self, traced: TracedProgram) -> Report:
        """What the compiler did with a program: as a whole, unless the backend knows its steps."""
        # later: only who explains a program needs it, and it imports the passes
        from functrans.lowering.report_parts import report_as_a_whole  # noqa: PLC0415

        return report_as_a_whole(traced, self)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        """Seconds of the steps of `report`: of a whole run, unless the backend knows its steps.

        The inputs are arrays on a GPU, or on the host. Raises BackendError where nothing can be
        timed.
        """
        # later: only who profiles a program needs it
        from functrans.lowering.timing import time_as_a_whole  # noqa: PLC0415

        return time_as_a_whole(self.run, inputs)

    def portable(self, name: str) -> tuple[PortableProgram, tuple[PortableKernel, ...]]:
        """The program of that name to be written to a file, and its kernels.

        Raises NotPortableError where it runs in this process alone.
        """
        # later: only who exports a program needs it
        from functrans.lowering.portable import NotPortableError  # noqa: PLC0415

        raise NotPortableError(self.why_not_portable)

    why_not_portable = "its backend makes programs that run in this process alone."
    """Why it is not portable."""


def report_without_code(traced: TracedProgram, is_sized: bool = True) -> Report:
    """The report of a program that has no code of its own.

    One that `is_sized` is compiled for each set of its sizes.
    """
    # later: as in Executable.report
    from functrans.lowering import report_parts  # noqa: PLC0415

    return report_parts.report_without_code(traced, is_sized)


def timed_on_host(executable: Executable, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
    """The times of a program that has no steps for GPUs; raises BackendError on one."""
    if gpu is not None:
        raise not_kernels_of_gpus()
    return Executable.timed_steps(executable, inputs, gpu)


def not_kernels_of_gpus() -> BackendError:
    """The error of who times the kernels for GPUs of a program that does not consist of them."""
    return BackendError("the steps of this program cannot be timed.",
                        why="it is not one program of GPU kernels: the CPU computes a part of it, "
                            "or there are checks in it.",
                        fix="profile it on the CPU, functrans.device_put(x, \"cpu\"), or a "
                            "function in it")


HOST_COMPUTES: Final = "the host computes all of it, or it decides sizes as it runs."
"""Why a program for a GPU that is no program of kernels is not portable."""


class WrapperExecutable(Executable):
    """An executable that runs another one, of a jaxpr that is not quite the same."""

    why_not_portable = HOST_COMPUTES

    @property
    @abstractmethod
    def inner(self) -> Executable:
        """What it runs, as it is now."""

    @property
    def specialized(self) -> str:
        return self.inner.specialized

    @property
    def kernels(self) -> tuple[Any, ...]:
        return self.inner.kernels

    def as_text(self) -> str:
        return self.inner.as_text()

    def cost_analysis(self) -> dict[str, Size]:
        return self.inner.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return self.inner.memory_analysis()

    def report(self, traced: TracedProgram) -> Report:
        """Without kernels, which are of the jaxpr of the other."""
        return report_without_code(traced)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        return timed_on_host(self, inputs, gpu)


class Backend(ABC):
    """Compiles jaxprs without constants."""

    name: str
    """What `use_backend` calls it."""

    devices: tuple[str, ...] = ("cpu",)
    """The kinds of devices whose arrays its programs take as they are: `cpu`, `gpu`."""

    exports_numbers = False
    """Whether a portable program is for given numbers as its symbolic sizes, and not for all."""

    limits_memory = False
    """Whether programs are planned so that they need no more memory than the settings say."""

    makes_machine_code = True
    """Whether a program is worth compiling for all sizes: not where an interpreter runs it."""

    @abstractmethod
    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        """Make `jaxpr` ready to run; the memory of `donated` inputs may be reused.

        Raises BackendError where it cannot, and where `require_inplace` is asked for and an update
        needs a copy.
        """

    def compile_for_sizes(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset()) -> Executable:
        """Compile a program of known sizes, whose kernels are those of other sizes where they can
        be."""
        return self.compile(jaxpr, donated)

    def inspectable(self, jaxpr: Jaxpr, donated: frozenset[int],
                    compiled: Callable[[], Executable]) -> Executable:
        """The program for who looks at it and may never call it: by default `compiled()`.

        Another object where a report needs less than compiling.
        """
        return compiled()

    @property
    def target(self) -> str:
        """What files call the machines that its portable programs are for."""
        return self.name

    instruction_sets: tuple[str, ...] = ()
    """The names of those that `standalone` writes programs for."""

    def standalone(self, jaxpr: Jaxpr, isa: str) -> StandaloneProgram | None:
        """The program of a jaxpr as C that needs no Python, for an instruction set.

        None where there is none: the jaxpr computes nothing, or decides the sizes of its results.
        """
        return None

    def read_portable(self, plain: Any, kernels: Sequence[PortableKernel],
                      constants: list[np.ndarray[Any, Any]], jaxpr: Jaxpr,
                      sizes: Mapping[str, int]) -> PortableProgram:
        """The portable program of a jaxpr with such sizes that a file has, as plain values.

        Raises ValueError where its parts do not fit: a file may hold anything.
        """
        raise ValueError(f"{self.name} reads no programs")

    def load(self, programs: Sequence[PortableProgram], jaxpr: Jaxpr,
             name: str) -> Executable | None:
        """What runs a jaxpr by programs that came along; None where none of them runs here.

        Raises OSError and LookupError for machine code that does not load.
        """
        return None
