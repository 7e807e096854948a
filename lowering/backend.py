"""The protocol of a backend, and the registry through which `jit` finds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from functrans.core.dims import Size
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Jaxpr

__all__ = ["Backend", "Executable", "get_backend", "register_backend"]

ENTRY_POINTS = "functrans.backends"


class Executable(Protocol):
    """A compiled program: arrays in, arrays out, and what is known of it."""

    run: Callable[[Sequence[np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]
    """Runs on the inputs of the jaxpr, as NumPy arrays; what `jit` calls, with nothing between."""

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

    def compile(self, jaxpr: Jaxpr) -> Executable:
        """Make `jaxpr` ready to run; raises BackendError where it cannot."""
        ...


_backends: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Make a backend known under its name; a later one of the same name replaces it."""
    _backends[backend.name] = backend


def get_backend(name: str = "reference") -> Backend:
    """The backend of that name, registered here or by an entry point of another distribution.

    Raises BackendError when there is none.
    """
    if name not in _backends:
        # lazy: an eighth of the time of `import functrans`, for those who ask for another backend
        from importlib.metadata import entry_points  # noqa: PLC0415

        for entry in entry_points(group=ENTRY_POINTS, name=name):
            register_backend(entry.load()())
    if name not in _backends:
        known = ", ".join(sorted(_backends))
        raise BackendError(f"there is no backend {name!r} (known: {known}).",
                           fix=f"register one through the entry point group {ENTRY_POINTS!r}")
    return _backends[name]
