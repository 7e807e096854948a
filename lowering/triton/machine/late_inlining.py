"""Functions of a kernel stay functions until Triton has chosen how their memory is accessed.

For each access the pass that chooses (TritonGPUCoalesce) looks at all operations of its function
that are connected with it, through constants too: its time grows with the square of a function.
Kernels that share a launch, and phases of a loop, are functions of their own, which Triton would
inline before. 8 kernels of 15 accesses each took 0.7 s of this pass in one function, and take 0.06;
their machine code is the same.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from types import FunctionType
from typing import Any, Final

from triton._C.libtriton import ir, passes
from triton.backends.nvidia.compiler import CUDABackend

__all__ = ["coalesced_before_inlining", "keep_functions"]

FIRST: Final = frozenset(("add_convert_to_ttgpuir", "add_coalesce"))
"""The passes that run before functions are inlined: Triton begins with them."""


def keep_functions(module: Any) -> list[str]:
    """Mark the functions that are inlined late, by name: called once, on pointers and numbers.

    One that is called in several places is known by what all of them have in common.
    """
    calls: Counter[str] = Counter()

    def see(operation: Any) -> None:
        if operation.get_name() == "tt.call":
            name = operation.get_flat_symbol_ref_attr("callee")
            calls[name] += 2 if operation.get_num_results() else 1

    module.walk(see)
    kept = [name for name, count in calls.items()
            if count == 1 and _is_of_memory(module.get_function(name))]
    if len(kept) < 2 or _others() is None:
        return []
    _mark(module, kept, True)
    return kept


def coalesced_before_inlining(module: Any, kept: list[str], options: Any,
                              metadata: dict[str, Any], capability: int) -> Any:
    """What Triton's stage "ttgir" makes of a module, some of whose functions were kept."""
    manager = ir.pass_manager(module.context)
    passes.ttir.add_convert_to_ttgpuir(manager, f"cuda:{capability}", options.num_warps, 32,
                                       options.num_ctas)
    passes.ttgpuir.add_coalesce(manager)
    manager.run(module, "coalesce")
    _mark(module, kept, False)
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    others = _others()
    assert others is not None
    return others(module, metadata, options, capability)


def _is_of_memory(function: Any) -> bool:
    types = [str(function.args(k).get_type()) for k in range(function.get_num_args())]
    return any(t.startswith("!tt.ptr") for t in types) and not any("tensor" in t for t in types)


def _mark(module: Any, names: list[str], value: bool) -> None:
    attribute = ir.builder(module.context).get_bool_attr(value)
    for name in names:
        module.get_function(name).set_attr("noinline", attribute)


class _Without:
    """Triton's passes, of which some add nothing."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        if name in FIRST:
            return lambda *args: None
        found = getattr(self._found, name)
        return found if callable(found) else _Without(found)


@cache
def _others() -> Any:
    """Triton's function of the stage without its first passes; None where it is another one."""
    found = CUDABackend.make_ttgir
    if not {"passes", *FIRST} <= set(found.__code__.co_names):
        return None
    return FunctionType(found.__code__, {**found.__globals__, "passes": _Without(passes)},
                        found.__name__, found.__defaults__, found.__closure__)
