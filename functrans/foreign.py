"""Attributes that arrays of other libraries have: asked for, they say what does the same here."""

from __future__ import annotations

from typing import Any, NoReturn

from functrans.core.errors import MissingNameError
from functrans.core.foreign_names import METHODS

__all__ = ["install_foreign_attributes"]


class ForeignAttribute:
    """A place in a class that raises MissingNameError when it is read.

    A `__getattr__` would do the same, and make every attribute of arrays and tracers slower.
    """

    __slots__ = ("fix", "name")

    def __init__(self, name: str, fix: str) -> None:
        self.name = name
        self.fix = fix

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        if instance is None:  # of the class, as tools that list its members ask
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        raise MissingNameError(f"arrays have no attribute {self.name!r}.", fix=self.fix)


def _own_names(self: Any) -> list[str]:
    """What consoles complete: neither the names of others nor those that are the package's."""
    cls = type(self)
    return [name for name in object.__dir__(self)
            if (not name.startswith("_") or name.endswith("_"))
            and not isinstance(_in_class(cls, name), ForeignAttribute)]


def _in_class(cls: type, name: str) -> Any:
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)


def install_foreign_attributes(cls: type) -> None:
    """Let the instances of a class explain the attributes of other libraries that they lack."""
    for name, fix in METHODS.items():
        if _in_class(cls, name) is None:
            setattr(cls, name, ForeignAttribute(name, fix))
    # of a class that is known at run time alone
    cls.__dir__ = _own_names  # type: ignore[method-assign, assignment]
