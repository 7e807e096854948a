"""Calls of functions with rules of their own, as traces see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from functrans._runtime import ArrayBase, JitFunction
from functrans.core.jaxpr import Jaxpr
from functrans.core.trace import Trace, Tracer, run_in

__all__ = ["CustomCall", "WithRules", "captured_tracers"]


P = ParamSpec("P")
R = TypeVar("R", covariant=True)
S = TypeVar("S")
Q = ParamSpec("Q")


class WithRules(Generic[P, R]):
    """A function that users gave rules of its own; `user_functions` are it and the rules."""

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        raise TypeError(f"{type(self).__name__} names no functions")

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...

    @overload
    def __get__(self: WithRules[Concatenate[S, Q], R], instance: S, owner: Any = None
                ) -> Callable[Q, R]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise TypeError(f"{type(self).__name__} is not called")


class CustomCall:
    """A flat function that is to be differentiated by a rule instead of through its operations."""

    __slots__ = ("_captured", "fun", "user_values")

    def __init__(self, fun: Callable[..., Sequence[Any]], user_values: Sequence[Any]) -> None:
        self.fun = fun
        self.user_values = user_values
        self._captured: list[Tracer] | None = None

    def closes_over(self, is_mine: Callable[[Any], bool]) -> bool:
        """Whether the user's function or rules can reach a tracer for which `is_mine`.

        A call none of whose arguments takes part in a transform may still depend on it that way.
        """
        if self._captured is None:
            self._captured = captured_tracers(self.user_values)
        return any(map(is_mine, self._captured))

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

    def stage(self, trace: Any, args: Sequence[Any]) -> list[Any]:
        """Write the call down as an equation of the staging trace."""
        raise TypeError(f"{type(self).__name__} has no staging rule")


_MOST_OBJECTS = 5000
"""How many objects are looked at in search of tracers: what holds more is data, not a closure."""
_PLAIN = (ModuleType, type, CodeType, ArrayBase, np.ndarray, np.generic, Jaxpr, Trace, str, bytes,
          int, float, complex)
"""What holds no tracers, or none that belong to a rule."""


def captured_tracers(functions: Iterable[Any]) -> list[Tracer]:
    """The tracers that functions can reach without being passed any.

    They are looked for in closures, defaults, partial arguments, containers, the attributes of
    bound and callable objects, and in functions found there.
    """
    found: list[Tracer] = []
    seen: set[int] = set()
    rest = list(functions)
    while rest and len(seen) < _MOST_OBJECTS:
        value = rest.pop()
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if isinstance(value, Tracer):
            found.append(value)
            rest.extend(value.inside)
        else:
            rest.extend(_parts(value))
    return found


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        return (*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    if isinstance(value, JitFunction):
        return (value.__wrapped__,)
    if isinstance(value, WithRules):
        return value.user_functions
    slots = [name for cls in type(value).__mro__ for name in _slots_of(cls)]
    attributes = [getattr(value, name, None) for name in slots]
    return (*attributes, *getattr(value, "__dict__", {}).values())


def _slots_of(cls: type) -> tuple[str, ...]:
    if cls.__module__ == "builtins":
        return ()
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  a cell that is not yet assigned raises
    except ValueError:
        return False
    return True
