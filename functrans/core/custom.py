"""Calls of functions with rules of their own, as traces see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functrans.core.trace import Trace, run_in

if TYPE_CHECKING:
    from functrans.transforms.batching import BatchTrace
    from functrans.transforms.jvp import JVPTrace

__all__ = ["CustomCall"]


class CustomCall:
    """A flat function that is to be differentiated by a rule instead of through its operations."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Sequence[Any]]) -> None:
        self.fun = fun

    def apply(self, trace: Trace | None, args: Sequence[Any]) -> list[Any]:
        """Interpret the call in `trace`, or run the function when there is none."""
        if trace is None:
            return list(run_in(None, self.fun, *args))
        return trace.process_custom(self, args)

    def differentiate(self, trace: JVPTrace, primals: list[Any],
                      tangents: list[Any]) -> list[Any]:
        """Outputs as tracers of `trace`, with tangents by the custom rule."""
        raise TypeError(f"{type(self).__name__} has no derivative rule")

    def batch(self, trace: BatchTrace, values: list[Any], axes: list[int | None]) -> list[Any]:
        """Outputs as tracers of `trace`: the rule is mapped along with the function."""
        raise TypeError(f"{type(self).__name__} has no batching rule")

    def stage(self, trace: Trace, args: Sequence[Any]) -> list[Any]:
        """Write the call down as an equation of the staging trace."""
        raise TypeError(f"{type(self).__name__} has no staging rule")
