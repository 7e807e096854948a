"""The few names of jax._src that libraries use, which no version of JAX promises to keep."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

_PARTS: Final = "functrans.as_jax.parts"

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax._src": ModuleEntry(),
    "jax._src.api_util": ModuleEntry((f"{_PARTS}.api_util",)),
    "jax._src.pjit": ModuleEntry((), {"jit_p": "functrans.extend.core.primitives:jit_p"}),
    "jax._src.ad_util": ModuleEntry((), {
        "stop_gradient_p": f"{_PARTS}.stand_ins:stop_gradient_p",
        "Zero": "functrans.interpreters.ad:Zero"}),
    "jax._src.checkify": ModuleEntry(("functrans.experimental.checkify",), {
        "Out": "builtins:tuple", "JaxException": "functrans.errors:FunctransError"}),
    "jax._src.compiler": ModuleEntry((f"{_PARTS}.backend",)),
    "jax._src.core": ModuleEntry(("functrans.core", "functrans.extend.core"), {
        "DropVar": "functrans.extend.core:DropVar",
        "physical_aval": f"{_PARTS}.stand_ins:physical_aval",
        "trace_state_clean": f"{_PARTS}.stand_ins:trace_state_clean"}),
    "jax._src.dispatch": ModuleEntry((), {"wait_for_tokens": "functrans:effects_barrier"}),
    "jax._src.dtypes": ModuleEntry(("functrans.dtypes",), {
        "DType": "numpy:dtype", "ExtendedDType": f"{_PARTS}.stand_ins:ExtendedDType",
        "supports_inf": f"{_PARTS}.stand_ins:supports_inf"}),
    "jax._src.earray": ModuleEntry((), {"EArray": f"{_PARTS}.stand_ins:EArray"}),
    "jax._src.flatten_util": ModuleEntry(("functrans.flatten_util",)),
    "jax._src.interpreters": ModuleEntry(("functrans.interpreters",), hidden=frozenset({"tables"})),
    "jax._src.interpreters.pxla": ModuleEntry((), {
        "global_result_handlers": f"{_PARTS}.stand_ins:global_result_handlers"}),
    "jax._src.literals": ModuleEntry((), {name: f"{_PARTS}.stand_ins:{name}" for name in (
        "TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray")}),
    "jax._src.state": ModuleEntry(),
    "jax._src.state.types": ModuleEntry((), {"AbstractRef": f"{_PARTS}.stand_ins:AbstractRef"}),
    "jax._src.traceback_util": ModuleEntry((f"{_PARTS}.tracebacks",), {
        "_exclude_paths": f"{_PARTS}.tracebacks:excluded_paths"}),
    "jax._src.tree_util": ModuleEntry(("functrans.tree_util",), {
        "_registry": f"{_PARTS}.stand_ins:tree_registry"}),
    "jax._src.xla_bridge": ModuleEntry((f"{_PARTS}.backend",), {
        "_backends": f"{_PARTS}.backend:known_backends"}),
})
