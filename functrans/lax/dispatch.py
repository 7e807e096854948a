"""Programs that differ by platform, and operations with a name of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError
from functrans.core.scope import named_scope
from functrans.core.source import user_source
from functrans.core.tree import tree_map
from functrans.device import current_device
from functrans.typing import PyTree

__all__ = ["composite", "platform_dependent"]

T = TypeVar("T")
_GPU = ("cuda", "gpu")


def platform_dependent(*args: PyTree, default: Callable[..., T] | None = None,
                       **per_platform: Callable[..., T]) -> T:
    """The result of the function for the platform, `cpu` or `cuda`, or else of `default`.

    The platform is that of the default device while the function is traced; a program that is to
    run elsewhere is traced under `ft.config.default_device` of that place. Raises ArgumentError
    where there is no function for it.

    >>> import functrans as ft
    >>> with ft.config.default_device("cpu"):
    ...     ft.lax.platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: x).item()
    3.0
    """
    names = _GPU if current_device().platform == "gpu" else ("cpu",)
    found = next((per_platform[n] for n in names if n in per_platform), default)
    if found is None:
        raise ArgumentError(f"platform_dependent: nothing for {names[0]}, and no default.",
                            where=user_source(), fix="default=fun")
    return found(*tree_map(lambda x: to_array(x, "platform_dependent"), args))


def composite(decomposition: Callable[..., T], name: str, version: int = 0) -> Callable[..., T]:
    """The function itself, under a name in printed programs and messages.

    In JAX a compiler may take an operation of its own for such a name and version; kernels are
    fused from what a function is made of here. Keywords are static.

    >>> import functrans as ft
    >>> f = ft.lax.composite(lambda x, *, k: x * k, name="my.scale")
    >>> f(3.0, k=2.0).item()
    6.0
    """
    @wraps(decomposition)
    def call(*args: Any, **kwargs: Any) -> T:
        with named_scope(name):
            return decomposition(*tree_map(lambda x: to_array(x, name), args), **kwargs)

    return call
