"""What compiled programs run in place of an operation that a user defines.

Programs become C and Triton, by way of jaxprs: of `jax.interpreters.mlir` there is what says that
an operation is a function of arrays, and nothing that writes MLIR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.errors import ArgumentError, publish, shown
from functrans.core.source import user_source
from functrans.extend.user_primitive import LoweredFunction
from functrans.interpreters.tables import user_primitive
from functrans.transforms.flat import check_callable

__all__ = ["lower_fun", "register_lowering"]

PLATFORMS = ("cpu", "cuda", "gpu")


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """The rule that runs `fun(*arrays, **params)`, made of functions of functrans, in programs.

    With `multiple_results` it returns a sequence, else one array.
    """
    check_callable(fun, "lower_fun")
    return LoweredFunction(fun, multiple_results)


def register_lowering(prim: Any, rule: LoweredFunction, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> None:
    """Let compiled programs run a function in place of a primitive, on one platform or on all.

    Platforms are cpu and cuda (or gpu): that of the default device, as in `platform_dependent`.
    The function is always a part of the program around it. Raises ArgumentError for a rule that is
    not of `lower_fun`.
    """
    primitive = user_primitive(prim, "register_lowering")
    if not isinstance(rule, LoweredFunction):
        raise ArgumentError(f"register_lowering: the rule of {primitive.name} is {shown(rule)}.",
                            where=user_source(),
                            why="there is no MLIR here: programs become C and Triton.",
                            fix="mlir.lower_fun(f), where f is made of functions of functrans")
    if platform is not None and platform not in PLATFORMS:
        raise ArgumentError(f"register_lowering: there is no platform {platform!r}.",
                            where=user_source(), fix="one of " + ", ".join(PLATFORMS))
    primitive.def_lowering(rule, platform)


publish(globals(), __all__)
