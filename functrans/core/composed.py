"""Names of JAX's primitives for operations that are composed of others here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["ComposedPrimitive"]


class ComposedPrimitive:
    """What stands for a primitive of JAX's whose operation is a composition here.

    `bind` computes it, in the trace there is; no equation of a program has it.

    >>> import functrans as ft
    >>> ft.lax.square_p.bind(3.0).item(), ft.lax.square_p
    (9.0, square)
    """

    multiple_results: Final = False

    def __init__(self, name: str, fun: Callable[..., Any]) -> None:
        self.name = name
        self._fun = fun

    def bind(self, *args: Any, **params: Any) -> Any:
        """The operation on arrays, or on tracers, with the parameters of its function."""
        return self._fun(*args, **params)

    def __repr__(self) -> str:
        return self.name
