"""How jitted functions are pickled: by their name, or as the function and what `jit` was told."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

__all__ = ["reduce_jitted"]


def reduce_jitted(jit: Callable[..., Any], fun: Callable[..., Any], options: Mapping[str, Any],
                  call: Any) -> Any:
    """What `__reduce__` of a jitted function gives.

    One that a module has under its name is pickled by it, as functions are. cloudpickle takes what
    is in `__main__` by value, since other processes have another one; and what has no name is made
    again from the function within.
    """
    name = call.__qualname__
    found: Any = sys.modules.get(call.__module__)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is call and not (call.__module__ == "__main__" and _is_by_value()):
        return name
    told = {k: v for k, v in options.items() if v is not None and v is not False}
    return functools.partial(jit, **told), (fun,)


def _is_by_value() -> bool:
    """Whether cloudpickle, or a copy of it in Ray or joblib, is at work."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if "cloudpickle" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False
