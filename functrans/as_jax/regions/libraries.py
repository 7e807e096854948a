"""jax.example_libraries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import Module

__all__ = ["MODULES"]

MODULES: Final[Mapping[str, Module]] = MappingProxyType({
    "jax.example_libraries": Module(),
    "jax.example_libraries.optimizers": Module(("functrans.as_jax.parts.optimizers",)),
    "jax.example_libraries.stax": Module(("functrans.as_jax.parts.stax",)),
})
