"""`jax.experimental.hijax`: classes that libraries derive from for types of their own.

They can be defined here, so that the libraries are imported. Programs of functrans have arrays and
nothing else: to use such a type is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from functrans.core.avals import AbstractValue, ShapedArray
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal

__all__ = ["AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType",
           "ShapedArray", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
           "cur_qdd", "instantiate_zeros", "is_undefined_primal", "register_hitype"]


class HiType(AbstractValue):
    """The base of a library's types."""


class MutableHiType(HiType):
    """The base of a library's types of values that change."""


class AvalQDD:
    """A type with what is known of the state of its value."""


class AvalMutableQDD(AvalQDD):
    """The same of a value that changes."""


class HiPrimitive:
    """The base of a library's operations on types of its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        raise _no_types(f"the operation {self.name}")


class aval_method:  # a descriptor, named as JAX's
    """A method that values get from their type."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:  # the same
    """A property that values get from their type."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class _Effects:
    """The effects that loops and branches may have: here all of the package's own."""

    def add_type(self, effect: type) -> None:
        """Nothing: effects are of primitives."""


control_flow_allowed_effects: Final = _Effects()
hitypes: Final[dict[type, Callable[[Any], Any]]] = {}
"""The types that libraries have registered, by the classes of their values."""


def register_hitype(cls: type, type_of: Callable[[Any], Any]) -> None:
    """Remember the type of the values of a class."""
    hitypes[cls] = type_of


def cur_qdd(x: Any) -> Any:
    """What is known of the state of a value; raises ArgumentError, as nothing is."""
    raise _no_types("cur_qdd")


def _no_types(what: str) -> ArgumentError:
    return ArgumentError(f"{what} is of a type that a library defines.", where=user_source(),
                         why="programs of functrans have arrays, and no other types.")
