"""jax.experimental."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import Module

__all__ = ["MODULES"]

_PARTS: Final = "functrans.as_jax.parts"

MODULES: Final[Mapping[str, Module]] = MappingProxyType({
    "jax.experimental": Module(("functrans.experimental",), {
        "io_callback": "functrans:io_callback",
        "cur_qdd": f"{_PARTS}.hijax:cur_qdd",
        "enable_x64": "functrans:enable_x64",
        "disable_x64": f"{_PARTS}.settings:disable_x64"}),
    "jax.experimental.checkify": Module(("functrans.experimental.checkify",), {
        "ErrorCategory": "builtins:type"}),
    "jax.experimental.jet": Module(("functrans.experimental.jet",)),
    "jax.experimental.ode": Module(("functrans.experimental.ode",)),
    "jax.experimental.sparse": Module(("functrans.experimental.sparse",)),
    "jax.experimental.sparse.linalg": Module(("functrans.sparse.linalg",)),
    "jax.experimental.hijax": Module((f"{_PARTS}.hijax",), hidden=frozenset({"hitypes"})),
    "jax.experimental.layout": Module(("functrans.as_jax.parts.layout",)),
    "jax.experimental.pjit": Module((), {"pjit": "functrans:jit"}),
    "jax.experimental.compilation_cache": Module(),
    "jax.experimental.compilation_cache.compilation_cache": Module((), {
        "set_cache_dir": f"{_PARTS}.settings:set_cache_dir"}),
})
