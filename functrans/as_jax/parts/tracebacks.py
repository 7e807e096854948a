"""`jax._src.traceback_util`: which frames errors leave out; functrans leaves out its own alone."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

__all__ = ["api_boundary", "excluded_paths", "include_frame", "register_exclusion"]

_F = TypeVar("_F", bound=Callable[..., Any])
excluded_paths: Final[list[str]] = []
"""Of files whose frames libraries ask to leave out; libraries append to it."""


def register_exclusion(path: str) -> None:
    """Remember a file whose frames a library asks to leave out."""
    excluded_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is not of a file that was to be left out."""
    return not frame.f_code.co_filename.startswith(tuple(excluded_paths))


def api_boundary(fun: _F, **how: Any) -> _F:
    """The function itself."""
    return fun
