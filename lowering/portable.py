"""Programs with their machine code, which travel in files: what a backend gives and takes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from functrans.core.errors import BackendError

__all__ = ["Kernel", "NotPortableError", "PortableProgram"]


@dataclass(frozen=True)
class Kernel:
    """One kernel: its name, its source and machine code, and for a GPU its PTX.

    For the CPU a program is one kernel, whose machine code is a shared object. `resources` are the
    texts and integers that its backend needs to launch it; None where it needs none.
    """

    name: str
    source: str
    ptx: str = ""
    code: bytes = b""
    resources: tuple[str | int, ...] | None = field(default=None, repr=False)


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
