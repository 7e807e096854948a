"""jax itself, its version, its settings, and jaxlib."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES", "VERSION", "VERSION_INFO"]

VERSION: Final = "0.10.2"
"""Of JAX whose names these are."""
VERSION_INFO: Final = tuple(map(int, VERSION.split(".")))

_SETTINGS: Final = "functrans.as_jax.parts.settings"
_HERE: Final = "functrans.as_jax.regions.top_level"

# of functrans alone
_OURS: Final = frozenset({
    "Dim", "array", "as_jax", "at", "check", "check_shapes", "checked", "checkpoint_name",
    "concretize", "default_dtypes", "device", "dim", "draw", "environment", "explain",
    "explain_retrace", "foreign", "hvp", "inspect", "io_callback", "lower", "methods",
    "mixed_precision", "mutable", "numpy_alternatives", "numpy_code", "operators", "optim",
    "per_sample", "placement", "primitives", "profile", "protocol", "quantize", "settings",
    "sparse", "stop_gradient", "third_parties", "transforms", "weights", "callbacks",
    "lowering", "missing_attribute", "publish"})

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax": ModuleEntry(
        ("functrans",), {
            "__version__": f"{_HERE}:VERSION", "__version_info__": f"{_HERE}:VERSION_INFO",
            "jit": "functrans.as_jax.parts.compiled:jit",
            "devices": "functrans.as_jax.parts.backend:jax_devices",
            "make_jaxpr": "functrans.as_jax.parts.jaxprs:make_jaxpr",
            "vmap": "functrans.as_jax.parts.mapped:vmap",
            "config": f"{_SETTINGS}:jax_config",
            "pmap": "functrans.as_jax.parts.pmap:pmap"},
        hidden=_OURS),
    "jax.version": ModuleEntry((), {"__version__": f"{_HERE}:VERSION",
                               "__version_info__": f"{_HERE}:VERSION_INFO"}),
    "jax.lib": ModuleEntry((), {"__version__": f"{_HERE}:VERSION"}),
    "jax.monitoring": ModuleEntry(("functrans.as_jax.parts.monitoring",)),
    "jaxlib": ModuleEntry((), {"__version__": f"{_HERE}:VERSION"}),
    "jaxlib.xla_client": ModuleEntry((), {
        "Device": "functrans.device:Device", "XlaRuntimeError": "functrans.errors:FunctransError"}),
    "jaxlib._jax": ModuleEntry((), {"PjitFunction": "functrans._runtime:JitFunction"}),
    "jaxlib.version": ModuleEntry((), {"__version__": f"{_HERE}:VERSION"}),
})
