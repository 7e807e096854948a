"""What `log_compiles`, `explain_cache_misses` and `no_tracing` say of a traced function."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.errors import BackendError
from functrans.core.source import describe_source, user_source
from functrans.transforms.jit.retrace import Compilation, Retraces, reasons_of

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["before_trace", "compilation_logged", "log_reasons"]


def before_trace(name: str, avals: Sequence[ShapedArray]) -> None:
    """Log that a function is traced, or raise BackendError where that is not to happen."""
    settings = config.current()
    if not settings.no_tracing and not settings.log_compiles:
        return
    types = ", ".join(map(str, avals)) or "no arrays"
    if settings.no_tracing:
        raise BackendError(f"{name} would be traced for {types} within no_tracing.",
                           where=user_source(), why="no earlier call was of these types.",
                           fix=f"call it once before, or look at ft.explain_retrace({name})")
    _logger().warning("tracing %s for %s%s", name, types, _where())


@contextmanager
def compilation_logged(name: str, backend: str) -> Iterator[None]:
    """Context manager: log how long a compilation took, if a setting asks for it."""
    if not config.current().log_compiles:
        yield
        return
    start = time.perf_counter()
    yield
    _logger().warning("compiled %s by the backend %r in %.0f ms", name, backend,
                      (time.perf_counter() - start) * 1e3)


def log_reasons(name: str, history: Sequence[Compilation]) -> None:
    """Log why the last compilation of a function was not served by one before it."""
    last = tuple(history[-1:])
    found = Retraces(name, last, (reasons_of(history[-1], history[:-1]),))
    _logger().warning("%s", "\n".join([f"{name} was traced; programs of it now: {len(history)}",
                                       *str(found).splitlines()[1:]]))


def _logger() -> Logger:
    from logging import getLogger  # noqa: PLC0415  (2 ms)
    return getLogger("functrans")


def _where() -> str:
    where = describe_source(user_source())
    return f", called {where}" if where else ""
