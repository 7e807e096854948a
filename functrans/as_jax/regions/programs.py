"""JAX's names for programs: trees, types, errors, derivatives, stages, profiles, export."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

_SAME: Final = ("ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dlpack",
                "errors", "export", "flatten_util", "profiler", "ref", "stages",
                "tree", "typing")
_PARTS: Final = "functrans.as_jax.parts"

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    **{f"jax.{name}": ModuleEntry((f"functrans.{name}",)) for name in _SAME},
    "jax.tree_util": ModuleEntry(("functrans.tree_util",), {
        "default_registry": f"{_PARTS}.stand_ins:tree_registry"}),
    "jax.dtypes": ModuleEntry(("functrans.dtypes",), {"bfloat16": "ml_dtypes:bfloat16"}),
    "jax.test_util": ModuleEntry((f"{_PARTS}.test_util",), hidden=frozenset({"EPS", "test_util"})),
    "jax.api_util": ModuleEntry((f"{_PARTS}.api_util",)),
    "jax.core": ModuleEntry(("functrans.core",), {
        "DropVar": "functrans.extend.core:DropVar",
        "find_top_trace": "functrans.extend.core:find_top_trace",
        "get_opaque_trace_state": "functrans.extend.core:get_opaque_trace_state"}),
})
