"""Entries of the table from JAX's modules to ours, and how a name is looked up in one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Final

from functrans.core.foreign_names import FUNCTIONS, MODULE_NAMES

__all__ = ["ABSENT", "ModuleEntry", "load"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
ABSENT: Final = object()
"""What is found where there is no such name."""


def _nothing() -> Mapping[str, str]:
    return _NOTHING


@dataclass(frozen=True)
class ModuleEntry:
    """What stands for one module of JAX.

    `sources` are modules of functrans of which all public names are its own, in the order in which
    they are asked; `names` are of names that are elsewhere or called otherwise, as
    "functrans.module:name", or "functrans.module" for a module; `hidden` are names of the sources
    that JAX does not have; `refused` says why a name, which JAX has, cannot be. `wraps` names a
    function, as "module:function", that makes what JAX has of what is found.
    """

    sources: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=_nothing)
    hidden: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=_nothing)
    wraps: Mapping[str, str] = field(default_factory=_nothing)

    def find(self, name: str) -> Any:
        """The object by a name; ABSENT where there is none."""
        found = self._find(name)
        if found is ABSENT or name not in self.wraps:
            return found
        return load(self.wraps[name])(found)

    def _find(self, name: str) -> Any:
        place = self.names.get(name)
        if place is not None:
            return load(place)
        if name.startswith("_") or name in self.hidden or name in self.refused:
            return ABSENT
        for source in self.sources:
            found = getattr(importlib.import_module(source), name, ABSENT)
            if found is not ABSENT:
                return found
        return ABSENT

    def public(self) -> set[str]:
        """The names that are known without looking each up."""
        of_sources = {name for source in self.sources
                      for name in dir(importlib.import_module(source))
                      if not name.startswith("_")}
        return (of_sources - self.hidden - set(self.refused)) | set(self.names)

    def why_absent(self, name: str) -> str:
        """What to write in place of a name that is not here, or why it cannot be; or nothing."""
        if name in self.refused:
            return self.refused[name]
        for source in self.sources:
            known = MODULE_NAMES.get(source, _NOTHING).get(name)
            if known is not None:
                return known
        return FUNCTIONS.get(name, "")


def load(place: str) -> Any:
    """The object at "module:name", or the module."""
    module, _, name = place.partition(":")
    found: ModuleType = importlib.import_module(module)
    return getattr(found, name) if name else found
