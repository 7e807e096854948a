"""Programs that travel: with their machine code in files, or as C that is built without Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.dims import Dim, Size
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.core.source import Source

__all__ = ["LibraryCall", "NotPortableError", "PortableKernel", "PortableProgram",
           "StandaloneProgram"]


class PortableKernel(Record):
    """One kernel: its name, its source and machine code, and for a GPU its PTX.

    For the CPU a program is one kernel, whose machine code is a shared object. `resources` are the
    texts and integers that its backend needs to launch it; None where it needs none.

    >>> exported = ft.export.export(jnp.sin, targets=["cpu"])(ft.ShapeDtypeStruct((3,), "float32"))
    >>> [isinstance(kernel, ft.export.Kernel) for kernel in exported.kernels["cpu"]]
    [True]
    """

    name: str
    source: str
    ptx: str = ""
    code: bytes = b""
    resources: tuple[str | int, ...] | None = None

    def __repr__(self) -> str:
        # users know it as functrans.export.Kernel
        return (f"Kernel(name={self.name!r}, source={self.source!r}, ptx={self.ptx!r}, "
                f"code={self.code!r})")


class PortableProgram(ABC):
    """A compiled program without its kernels, as its backend reads it again."""

    @abstractmethod
    def to_plain(self) -> Any:
        """What it is as plain values, without arrays and kernels; None where a part of it is
        Python's."""

    @abstractmethod
    def arrays(self) -> Sequence[np.ndarray[Any, Any]]:
        """Its constants."""


class NotPortableError(BackendError):
    """A program has no kernels that can travel; `why` says what it has instead."""

    def __init__(self, why: str) -> None:
        super().__init__("this program has no kernels that can be exported.", where=None, why=why)


class LibraryCall(Record):
    """A call of a function of the backend's library, and the line that asks for it."""

    function: str
    is_complex: bool
    source: Source | None


class StandaloneProgram(Record, eq=False, repr=False):
    """A program as C that is built and run without Python, beside a runtime that it is given."""

    text: str
    """The C of `ft_program`."""
    sizes: Sequence[Dim]
    """The named sizes, in the order in which it takes them."""
    constants: Sequence[np.ndarray[Any, Any]]
    arena_bytes: int
    """Bytes of memory that it needs; with named sizes `ft_shapes` tells them."""
    library: Sequence[str]
    """The functions of the library that it is given, in order."""
    library_calls: Sequence[LibraryCall]
    host_equations: Sequence[Equation]
    """What Python would evaluate."""
    product_types: Mapping[int, str]
    """The element types of its products and convolutions, by the codes that it passes."""
    headers: Mapping[str, str]
    """The texts that a runtime has in common with it, by the names of headers."""
    flags: Sequence[str]
    """Compiler flags under which its results are those of the backend."""
    isa_flags: Sequence[str]
    """Compiler flags of its instruction set."""
    size_text: Callable[[Size, dict[str, str]], str]
    """A size as a C expression, where every named size has one."""
