"""What is raised where a library asks for something of JAX that is not here."""

from __future__ import annotations

import sys
from types import FrameType

from functrans.core.errors import FunctransError

__all__ = ["AsJaxError", "MissingInJax", "MissingJaxModule", "MissingJaxName", "asking",
           "missing_module", "missing_name"]


class AsJaxError(FunctransError, RuntimeError):
    """functrans cannot answer for JAX here."""


class MissingInJax(AttributeError):
    """A name of JAX that functrans does not answer for, asked for as an attribute."""


class MissingJaxName(ImportError):
    """The same, asked for by `from jax import name`."""


class MissingJaxModule(ModuleNotFoundError):
    """A module of JAX that functrans does not answer for."""


def asking(frame: FrameType | None) -> str:
    """The library, module and line that ask, as text: the first frame outside of this machinery."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module and not module.startswith(("importlib", __package__)):
            return f"{module.partition('.')[0]} ({module}, line {frame.f_lineno})"
        frame = frame.f_back
    return "a program"


def missing_name(module: str, name: str, why: str, frame: FrameType,
                 imported: bool) -> Exception:
    """The error for a name of a module; `imported` where a `from` import asks for it."""
    text = f"{asking(frame)} asks for {module}.{name}, which functrans does not have"
    text += f": {why}" if why else "."
    if imported:
        return MissingJaxName(text, name=module)
    return MissingInJax(text, name=name)


def missing_module(module: str, why: str) -> Exception:
    """The error for a module."""
    text = f"{asking(sys._getframe(1))} imports {module}, which functrans does not have"
    return MissingJaxModule(text + (f": {why}" if why else "."), name=module)
