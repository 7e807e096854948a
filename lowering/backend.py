"""The protocol of a backend, and the registry through which `jit` finds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from functrans.core.dims import Size
from functrans.core.dtypes import float0
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.defects import reporting
from functrans.lowering.host_driven import HostDrivenProgram
from functrans.lowering.keys import has_keys, without_keys

__all__ = [
    "Backend",
    "Executable",
    "HostDrivenProgram",
    "SizedBackend",
    "backend_for",
    "compile_for",
    "compile_for_any_size",
    "get_backend",
    "register_backend",
    "reporting",
]

ENTRY_POINTS = "functrans.backends"


class Executable(Protocol):
    """A compiled program: arrays in, arrays out, and what is known of it."""

    run: Callable[[Sequence[np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]
    """Runs on the inputs of the jaxpr, as NumPy arrays; what `jit` calls, with nothing between."""

    @property
    def specialized(self) -> str:
        """Why a program of named sizes is better made for each set of them; else nothing."""
        ...

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The program for inputs of these shapes: itself, unless each set of sizes has its own."""
        ...

    def on(self, gpu: int) -> Executable:
        """The same program on the GPU of that number, for a backend that compiles for GPUs."""
        ...

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What is known of the kernels of a program for GPUs: none of others."""
        ...

    def as_text(self) -> str:
        """The program in the backend's own terms."""
        ...

    def cost_analysis(self) -> dict[str, Size]:
        """`flops` and `bytes accessed` of one run."""
        ...

    def memory_analysis(self) -> dict[str, Size]:
        """Bytes of arguments, outputs and temporaries, and at the peak."""
        ...


class Backend(Protocol):
    """Compiles jaxprs without constants."""

    name: str

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        """Make `jaxpr` ready to run; the memory of `donated` inputs may be reused.

        Raises BackendError where it cannot, and where `require_inplace` is asked for and an update
        needs a copy.
        """
        ...


class SizedBackend(Backend, Protocol):
    """One whose machine code may be that of all sizes."""

    def compile_for_sizes(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset()) -> Executable:
        """Compile a program of known sizes whose kernels are also those of other sizes."""
        ...


_backends: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Make a backend known under its name; a later one of the same name replaces it."""
    _backends[backend.name] = backend


BUILT_IN = ("c", "reference", "triton")
GPU_TARGETS = "cuda:"
"""How the names of backends begin that compile for GPUs that need not be here, as in `cuda:90`."""


def _built_in(name: str) -> Backend:
    """One of our own backends, imported by the first program that it compiles."""
    if name == "c":
        from functrans.lowering.c.backend import CBackend  # noqa: PLC0415

        return CBackend()
    if name == "triton":
        from functrans.lowering.triton.backend import TritonBackend  # noqa: PLC0415

        return TritonBackend()
    if name.startswith(GPU_TARGETS):
        from functrans.lowering.triton.backend import TritonBackend  # noqa: PLC0415
        from functrans.lowering.triton.machine.target import target_named  # noqa: PLC0415

        return TritonBackend(target_named(name))
    from functrans.lowering.reference import ReferenceBackend  # noqa: PLC0415

    return ReferenceBackend()


def compile_for(backend: Backend, jaxpr: Jaxpr, donated: frozenset[int],
                require_inplace: bool) -> Executable:
    """The compiled form of a jaxpr, which may have keys, and inputs and outputs of float0.

    No backend has. Raises DefectError where a compiler fails.
    """
    with reporting(jaxpr, backend.name):
        if has_keys(jaxpr):
            jaxpr = without_keys(jaxpr)
        if all(a.dtype != float0 for a in (*jaxpr.in_avals, *jaxpr.out_avals)):
            return backend.compile(jaxpr, donated, require_inplace)
        from functrans.lowering.float0 import compile_without_float0  # noqa: PLC0415

        return compile_without_float0(backend.compile, jaxpr, donated, require_inplace)


def compile_for_any_size(backend: SizedBackend, jaxpr: Jaxpr) -> Executable:
    """The compiled form of a jaxpr whose machine code is also that of other sizes.

    Raises DefectError where a compiler fails.
    """
    with reporting(jaxpr, backend.name):
        return backend.compile_for_sizes(without_keys(jaxpr) if has_keys(jaxpr) else jaxpr)


def backend_for(target: str) -> str:
    """The name of the backend that compiles for `cpu` or GPUs of a capability, as in `cuda:90`.

    Raises BackendError where there is none.
    """
    if target == "cuda":
        target += ":90"
    name = "c" if target == "cpu" else target
    if name != "c" and not name.startswith(GPU_TARGETS):
        raise BackendError(f"there is no target {target!r}.",
                           why='targets are "cpu" and "cuda:" with a compute capability.',
                           fix='target="cuda:90"')
    return get_backend(name).name


def get_backend(name: str = "c") -> Backend:
    """The backend of that name: ours, or registered by an entry point of another distribution.

    Raises BackendError when there is none.
    """
    if name not in _backends and (name in BUILT_IN or name.startswith(GPU_TARGETS)):
        register_backend(_built_in(name))
    if name not in _backends:
        # lazy: an eighth of the time of `import functrans`, for those who ask for another backend
        from importlib.metadata import entry_points  # noqa: PLC0415

        for entry in entry_points(group=ENTRY_POINTS, name=name):
            register_backend(entry.load()())
    if name not in _backends:
        known = ", ".join(sorted({*_backends, *BUILT_IN}))
        raise BackendError(f"there is no backend {name!r} (known: {known}).",
                           fix=f"register one through the entry point group {ENTRY_POINTS!r}")
    return _backends[name]
