"""The table from modules and names of JAX to ours, one file a region."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.regions import (
    experimental,
    extending,
    libraries,
    private,
    programs,
    scientific,
    sharding,
    top_level,
)
from functrans.as_jax.table import ModuleEntry

__all__ = ["TABLE"]

TABLE: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    **top_level.MODULES, **scientific.MODULES, **programs.MODULES, **extending.MODULES,
    **sharding.MODULES, **experimental.MODULES, **libraries.MODULES, **private.MODULES})
"""Every module that `import` finds while functrans answers for JAX."""
