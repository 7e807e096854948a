"""jax.extend and jax.interpreters: operations of a library's own, and programs as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

_PARTS: Final = "functrans.as_jax.parts"
_MLIR: Final = "programs become C and Triton; mlir.lower_fun(f) says what an operation is"

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax.extend": ModuleEntry(("functrans.extend",),
                              hidden=frozenset({"programs", "user_primitive"})),
    "jax.extend.core": ModuleEntry(("functrans.extend.core",),
                              {"DropVar": "functrans.extend.core:DropVar"}),
    "jax.extend.core.primitives": ModuleEntry(("functrans.extend.core.primitives",), {
        "call_p": f"{_PARTS}.stand_ins:call_p",
        "closed_call_p": f"{_PARTS}.stand_ins:closed_call_p"}),
    "jax.extend.linear_util": ModuleEntry(("functrans.extend.linear_util",)),
    "jax.extend.backend": ModuleEntry((f"{_PARTS}.backend",)),
    "jax.extend.random": ModuleEntry((), refused=dict.fromkeys(
        ("PRNGImpl", "define_prng_impl", "rbg_prng_impl", "threefry_prng_impl",
         "unsafe_rbg_prng_impl"),
        "generators are named: jax.random.key(seed, impl=\"threefry2x32\")")),
    "jax.extend.source_info_util": ModuleEntry((), {
        "register_exclusion": f"{_PARTS}.tracebacks:register_exclusion"}),
    "jax.interpreters": ModuleEntry(("functrans.interpreters",), hidden=frozenset({"tables"})),
    "jax.interpreters.ad": ModuleEntry(("functrans.interpreters.ad",)),
    "jax.interpreters.batching": ModuleEntry(("functrans.interpreters.batching",)),
    "jax.interpreters.mlir": ModuleEntry(("functrans.interpreters.mlir",), {
        "register_lowering": f"{_PARTS}.lowering:register_lowering"}, refused=dict.fromkeys(
        ("emit_python_callback", "ir", "ir_constant", "aval_to_ir_type", "dtype_to_ir_type",
         "LoweringRuleContext", "ModuleContext", "make_ir_context", "module_to_string"), _MLIR)),
    "jax.interpreters.partial_eval": ModuleEntry(
        ("functrans.interpreters.partial_eval", f"{_PARTS}.partial_values")),
    "jax.interpreters.pxla": ModuleEntry((), refused={
        "create_compile_options": "programs become C and Triton, not XLA's"}),
    "jax.interpreters.xla": ModuleEntry(("functrans.interpreters.xla",)),
})
