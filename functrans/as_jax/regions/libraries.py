"""jax.example_libraries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax.example_libraries": ModuleEntry(),
    "jax.example_libraries.optimizers": ModuleEntry(("functrans.example_libraries.optimizers",)),
    "jax.example_libraries.stax": ModuleEntry(("functrans.example_libraries.stax",)),
})
