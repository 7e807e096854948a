"""The module finder that answers `import jax`, and the modules that it gives."""

from __future__ import annotations

import dis
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from functrans.as_jax.errors import missing_module, missing_name
from functrans.as_jax.table import ABSENT, ModuleEntry

__all__ = ["JaxFinder", "JaxModule", "is_jax"]

_IMPORT_FROM: Final = dis.opmap["IMPORT_FROM"]


def is_jax(name: str) -> bool:
    """Whether a module is JAX or of it."""
    return name.partition(".")[0] in ("jax", "jaxlib")


class JaxModule(ModuleType):
    """A module of JAX, whose names are looked up in the table when they are first used."""

    def __init__(self, name: str, entry: ModuleEntry, finder: JaxFinder) -> None:
        super().__init__(name, f"{name}, answered by functrans.")
        self._entry = entry
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(n for n in self._entry.public() if not n.startswith("_"))
        if name.startswith("__") and name not in self._entry.names:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name,
                                 obj=self)
        child = f"{self.__name__}.{name}"
        found = ABSENT
        if name in self._entry.names or child not in self._finder.table:
            found = self._entry.find(name)
            if isinstance(found, ModuleType):
                found = self._finder.stand_in(found)
        if found is ABSENT and child in self._finder.table:
            found = importlib.import_module(child)
        if found is ABSENT:
            frame = sys._getframe(1)
            raise missing_name(self.__name__, name, self._entry.why_absent(name), frame,
                               _imports(frame))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        inner = f"{self.__name__}."
        children = {n[len(inner):] for n in self._finder.table if n.startswith(inner)}
        return sorted(self._entry.public() | {c for c in children if "." not in c})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} of functrans.as_jax>"


def _imports(frame: FrameType) -> bool:
    """Whether a frame asks for a name by `from module import name`.

    Python makes its own ImportError of an AttributeError there, and drops the text.
    """
    at = frame.f_lasti
    return at >= 0 and frame.f_code.co_code[at] == _IMPORT_FROM


class _TableLoader(Loader):
    def __init__(self, entry: ModuleEntry, finder: JaxFinder) -> None:
        self._entry = entry
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return JaxModule(spec.name, self._entry, self._finder)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: names are looked up when they are used."""


class _JaxDistribution(Distribution):
    """What `importlib.metadata` is told of jax and jaxlib."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(__file__).parent / path


class JaxFinder(DistributionFinder):
    """Finds the modules of a table, and the distributions that libraries ask the version of."""

    def __init__(self, table: Mapping[str, ModuleEntry], version: str) -> None:
        self.table = table
        self._version = version
        self._names = {source: name for name, entry in reversed([*table.items()])
                       for source in entry.sources[:1] if not name.startswith("jax._src")}

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if not is_jax(fullname):
            return None
        entry = self.table.get(fullname)
        if entry is None:
            parent, _, name = fullname.rpartition(".")
            above = self.table.get(parent)
            raise missing_module(fullname, above.why_absent(name) if above else "")
        return ModuleSpec(fullname, _TableLoader(entry, self), origin="functrans.as_jax",
                          is_package=True)

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        wanted = getattr(context, "name", None)
        for name in ("jax", "jaxlib"):
            if wanted in (None, name):
                yield _JaxDistribution(name, self._version)

    def stand_in(self, module: ModuleType) -> ModuleType:
        """The module of JAX for one of ours that is in the table, else the module itself."""
        name = self._names.get(module.__name__)
        return module if name is None else importlib.import_module(name)
