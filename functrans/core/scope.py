"""`named_scope`: names that a program's equations carry for those who read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_scope: ContextVar[str] = ContextVar("functrans_scope", default="")

current_scope = _scope.get


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Name the operations traced inside, for printed programs, profiles and explanations.

    Raises TypeError when `name` is not a string.

    >>> import functrans as ft
    >>> with ft.named_scope("encoder"):
    ...     pass
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string, got {type(name).__name__}")
    outer = _scope.get()
    token = _scope.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        _scope.reset(token)
