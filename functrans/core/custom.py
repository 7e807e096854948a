"""Calls of functions with rules of their own, as traces see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from functrans.core.trace import Trace, Tracer, run_in

__all__ = ["CustomCall"]


class CustomCall:
    """A flat function that is to be differentiated by a rule instead of through its operations."""

    __slots__ = ("fun", "user_functions")

    def __init__(self, fun: Callable[..., Sequence[Any]],
                 user_functions: Sequence[Callable[..., Any]]) -> None:
        self.fun = fun
        self.user_functions = user_functions

    def closes_over(self, is_mine: Callable[[Any], bool]) -> bool:
        """Whether the user's function or rules have a tracer for which `is_mine` in a closure.

        A call none of whose arguments takes part in a transform may still depend on it that way.
        """
        return any(_closes_over(f, is_mine, 3) for f in self.user_functions)

    def apply(self, trace: Trace | None, args: Sequence[Any]) -> list[Any]:
        """Interpret the call in `trace`, or run the function when there is none."""
        if trace is None:
            return list(run_in(None, self.fun, *args))
        return trace.process_custom(self, args)

    def differentiate(self, trace: Any, primals: list[Any], tangents: list[Any]) -> list[Any]:
        """Outputs as tracers of the JVPTrace `trace`, with tangents by the custom rule."""
        raise TypeError(f"{type(self).__name__} has no derivative rule")

    def batch(self, trace: Any, values: list[Any], axes: list[int | None]) -> list[Any]:
        """Outputs as tracers of the BatchTrace `trace`: the rule is mapped with the function."""
        raise TypeError(f"{type(self).__name__} has no batching rule")

    def stage(self, trace: Trace, args: Sequence[Any]) -> list[Any]:
        """Write the call down as an equation of the staging trace."""
        raise TypeError(f"{type(self).__name__} has no staging rule")


def _closes_over(value: Any, is_mine: Callable[[Any], bool], depth: int) -> bool:
    if isinstance(value, Tracer):
        return is_mine(value) or any(_closes_over(v, is_mine, depth) for v in value.inside)
    if depth == 0:
        return False
    if isinstance(value, (tuple, list)):
        return any(_closes_over(v, is_mine, depth - 1) for v in value)
    if isinstance(value, dict):
        return any(_closes_over(v, is_mine, depth - 1) for v in value.values())
    if isinstance(value, partial):
        return _closes_over((value.func, value.args, value.keywords), is_mine, depth)
    if isinstance(value, MethodType):
        return _closes_over(value.__func__, is_mine, depth)
    if isinstance(value, FunctionType):
        return any(_closes_over(cell.cell_contents, is_mine, depth - 1)
                   for cell in value.__closure__ or () if _is_filled(cell))
    return False


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  a cell that is not yet assigned raises
    except ValueError:
        return False
    return True
