"""A folder of programs, a file each, one source for several libraries."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


def folder_at(place: str) -> Folder:
    """The `FOLDER` of a package of programs: one of this folder by its name, another by its path.

    Raises ImportError where another package has the name of the folder already.
    """
    path = Path(place)
    if path.name == place:
        return importlib.import_module(place).FOLDER  # type: ignore[no-any-return]
    path = path.resolve()
    sys.path.insert(0, str(path.parent))
    try:
        found = importlib.import_module(path.name)
    finally:
        sys.path.remove(str(path.parent))
    if found.__file__ is None or Path(found.__file__).resolve().parent != path:
        raise ImportError(f"{path} is a folder of programs if it has an __init__.py, as that of "
                          "benchmarks/programs/, and no imported package has its name.")
    return found.FOLDER  # type: ignore[no-any-return]


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

    def make(self, name: str, lib: Any,
             size: str | Mapping[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The step of a program and its arguments, for one of the libraries.

        `size` is one of the program's own, or says the sizes themselves.
        """
        program = self.load(name)
        sizes = program.SIZES[size] if isinstance(size, str) else size
        step, arguments = program.make(lib, **sizes)
        return step, arguments

    def tolerance(self, name: str, device: str) -> float:
        """How far a result of a program may be from another library's, on "cpu" or "gpu"."""
        own = getattr(self.load(name), "TOLERANCE", {})
        own = own if isinstance(own, Mapping) else {"cpu": own, "gpu": own}
        return float(own.get(device, self.tolerances[device]))
