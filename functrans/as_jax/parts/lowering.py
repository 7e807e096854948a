"""`mlir.register_lowering` for libraries, which may give a rule that writes MLIR.

Such a rule cannot be used. What it stands for is what the operation's `def_impl` does to arrays:
that function is traced into programs, or, where it asks for values, called while they run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.callbacks import pure_callback
from functrans.core.avals import get_aval
from functrans.core.errors import ConcretizationError, MissingRuleError
from functrans.core.source import user_source
from functrans.extend.user_primitive import LoweredFunction, UserPrimitive
from functrans.interpreters import mlir
from functrans.interpreters.xla import apply_primitive
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape

__all__ = ["register_lowering"]


def register_lowering(prim: Any, rule: Any, platform: str | None = None, inline: bool = True,
                      cacheable: bool = True) -> None:
    """`mlir.register_lowering`, of a rule that writes MLIR too; see this module.

    A rule for a platform that functrans does not know is left out.
    """
    if platform is not None and platform not in mlir.PLATFORMS:
        return
    if isinstance(prim, UserPrimitive) and not isinstance(rule, LoweredFunction):
        rule = LoweredFunction(functools.partial(_as_evaluated, prim), prim.multiple_results)
    mlir.register_lowering(prim, rule, platform, inline, cacheable)


def _as_evaluated(prim: UserPrimitive, *args: Any, **params: Any) -> Any:
    impl = prim.rules.get("impl")
    if impl is None or _applies(impl):
        raise MissingRuleError(
            f"the primitive {prim.name} is lowered by MLIR alone.", where=user_source(),
            why="programs become C and Triton, and it has no def_impl of functions of arrays.",
            fix=f"mlir.register_lowering({prim.name}_p, mlir.lower_fun(fun))")
    try:
        eval_shape(lambda *xs: impl(*xs, **params), *args)
    except ConcretizationError:
        return pure_callback(lambda *xs: impl(*xs, **params), _types(prim, args, params), *args)
    return impl(*args, **params)


def _applies(impl: Callable[..., Any]) -> bool:
    """Whether evaluation is by the lowering, so that it says nothing of its own."""
    return isinstance(impl, functools.partial) and impl.func is apply_primitive


def _types(prim: UserPrimitive, args: Any, params: Any) -> Any:
    found = prim.type(*map(get_aval, args), **params)
    if not prim.multiple_results:
        return ShapeDtypeStruct(found.shape, found.dtype)
    return [ShapeDtypeStruct(a.shape, a.dtype) for a in found]
