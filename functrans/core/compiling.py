"""Whether what is being traced will be compiled: rules with two forms choose by it.

A loop over lanes costs a compiled program nothing, and NumPy one Python call after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["compiling", "for_compiler"]

_compiling: ContextVar[bool] = ContextVar("functrans_compiling", default=False)

compiling = _compiling.get


@contextmanager
def for_compiler(compiled: bool) -> Iterator[None]:
    """Trace what is inside for a backend that compiles, or for one that evaluates."""
    token = _compiling.set(compiled)
    try:
        yield
    finally:
        _compiling.reset(token)
