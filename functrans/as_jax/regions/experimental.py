"""jax.experimental."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

_PARTS: Final = "functrans.as_jax.parts"

_KERNELS: Final = "kernels are made of operations: jax.jit compiles them to C and Triton"

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax.experimental": ModuleEntry(("functrans.experimental",), {
        "cur_qdd": f"{_PARTS}.hijax:cur_qdd"}),
    "jax.experimental.checkify": ModuleEntry(("functrans.experimental.checkify",)),
    "jax.experimental.jet": ModuleEntry(("functrans.experimental.jet",)),
    # libraries import them for one device and ask for a name only there
    "jax.experimental.pallas": ModuleEntry((), refused=dict.fromkeys(
        ("ANY", "BlockSpec", "BoundedSlice", "CompilerParams", "CostEstimate", "Element",
         "GridSpec", "MemorySpace", "Squeezed", "cdiv", "core_map", "debug_print", "delay", "ds",
         "dslice", "empty", "kernel", "loop", "multiple_of", "num_programs", "pallas_call",
         "program_id", "reciprocal", "run_scoped", "semaphore_signal", "semaphore_wait",
         "squeezed", "when"),
        _KERNELS)),
    "jax.experimental.pallas.triton": ModuleEntry((), refused=dict.fromkeys(
        ("CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
         "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot",
         "elementwise_inline_asm", "load", "store"), _KERNELS)),
    "jax.experimental.ode": ModuleEntry(("functrans.experimental.ode",)),
    "jax.experimental.sparse": ModuleEntry(("functrans.experimental.sparse",)),
    **{f"jax.experimental.sparse.{name}": ModuleEntry((f"functrans.experimental.sparse.{name}",))
       for name in ("ad", "api", "bcoo", "bcsr", "coo", "csr", "random", "transform", "util")},
    "jax.experimental.sparse.linalg": ModuleEntry(("functrans.sparse.linalg",)),
    "jax.experimental.hijax": ModuleEntry((f"{_PARTS}.hijax",), hidden=frozenset({"hitypes"})),
    "jax.experimental.layout": ModuleEntry(("functrans.experimental.layout",)),
    "jax.experimental.pjit": ModuleEntry((), {"pjit": "functrans.experimental.pjit:pjit"}),
    "jax.experimental.compilation_cache": ModuleEntry(),
    "jax.experimental.compilation_cache.compilation_cache": ModuleEntry((), {
        "set_cache_dir": f"{_PARTS}.settings:set_cache_dir"}),
})
