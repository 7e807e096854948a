"""A folder of programs, a file each, one source for several libraries."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Folder:
    """The programs of a package. `tolerances` are for "cpu" and "gpu", unless a program says."""

    package: str
    path: Iterable[str]
    tolerances: Mapping[str, float]

    def names(self) -> list[str]:
        """The programs, in alphabetical order."""
        return sorted(module.name for module in pkgutil.iter_modules(self.path))

    def load(self, name: str) -> ModuleType:
        """The file of a program."""
        return importlib.import_module(f"{self.package}.{name}")

    def make(self, name: str, lib: Any, size: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The step of a program and its arguments, for one of the libraries."""
        program = self.load(name)
        step, arguments = program.make(lib, **program.SIZES[size])
        return step, arguments

    def tolerance(self, name: str, device: str) -> float:
        """How far a result of a program may be from another library's, on "cpu" or "gpu"."""
        own = getattr(self.load(name), "TOLERANCE", {})
        own = own if isinstance(own, Mapping) else {"cpu": own, "gpu": own}
        return float(own.get(device, self.tolerances[device]))
