"""What is about programs: trees, types, errors, derivatives, stages, profiles, export."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import Module

__all__ = ["MODULES"]

_SAME: Final = ("ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dlpack",
                "errors", "export", "flatten_util", "profiler", "stages",
                "tree", "tree_util", "typing")
_PARTS: Final = "functrans.as_jax.parts"

MODULES: Final[Mapping[str, Module]] = MappingProxyType({
    **{f"jax.{name}": Module((f"functrans.{name}",)) for name in _SAME},
    "jax.dtypes": Module(("functrans.dtypes",), {"bfloat16": "ml_dtypes:bfloat16"}),
    "jax.test_util": Module((f"{_PARTS}.test_util",), hidden=frozenset({"EPS", "test_util"})),
    "jax.api_util": Module((f"{_PARTS}.api_util",)),
    "jax.core": Module(("functrans.core",), {
        "DropVar": f"{_PARTS}.stand_ins:DropVar",
        "find_top_trace": "functrans.extend.core:find_top_trace",
        "get_opaque_trace_state": "functrans.extend.core:get_opaque_trace_state"}),
})
