"""The few names of jax._src that libraries use, which no version of JAX promises to keep."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import Module

__all__ = ["MODULES"]

_PARTS: Final = "functrans.as_jax.parts"

MODULES: Final[Mapping[str, Module]] = MappingProxyType({
    "jax._src": Module(),
    "jax._src.ad_util": Module((), {
        "stop_gradient_p": f"{_PARTS}.stand_ins:stop_gradient_p",
        "Zero": "functrans.interpreters.ad:Zero"}),
    "jax._src.checkify": Module(("functrans.experimental.checkify",), {
        "Out": "builtins:tuple", "JaxException": "functrans.errors:FunctransError"}),
    "jax._src.compiler": Module((f"{_PARTS}.backend",)),
    "jax._src.core": Module(("functrans.core", "functrans.extend.core"), {
        "DropVar": f"{_PARTS}.stand_ins:DropVar",
        "physical_aval": f"{_PARTS}.stand_ins:physical_aval",
        "trace_state_clean": f"{_PARTS}.stand_ins:trace_state_clean"}),
    "jax._src.dispatch": Module((), {"wait_for_tokens": "functrans:effects_barrier"}),
    "jax._src.dtypes": Module(("functrans.dtypes",), {
        "DType": "numpy:dtype", "ExtendedDType": f"{_PARTS}.stand_ins:ExtendedDType",
        "supports_inf": f"{_PARTS}.stand_ins:supports_inf"}),
    "jax._src.earray": Module((), {"EArray": f"{_PARTS}.stand_ins:EArray"}),
    "jax._src.flatten_util": Module(("functrans.flatten_util",)),
    "jax._src.interpreters": Module(("functrans.interpreters",), hidden=frozenset({"tables"})),
    "jax._src.interpreters.pxla": Module((), {
        "global_result_handlers": f"{_PARTS}.stand_ins:global_result_handlers"}),
    "jax._src.literals": Module((), {"TypedNdArray": f"{_PARTS}.stand_ins:TypedNdArray"}),
    "jax._src.state": Module(),
    "jax._src.state.types": Module((), {"AbstractRef": f"{_PARTS}.stand_ins:AbstractRef"}),
    "jax._src.traceback_util": Module((f"{_PARTS}.tracebacks",), {
        "_exclude_paths": f"{_PARTS}.tracebacks:excluded_paths"}),
    "jax._src.tree_util": Module(("functrans.tree_util",), {
        "_registry": f"{_PARTS}.stand_ins:tree_registry"}),
    "jax._src.xla_bridge": Module((f"{_PARTS}.backend",), {
        "_backends": f"{_PARTS}.backend:known_backends"}),
})
