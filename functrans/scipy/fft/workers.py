"""The number of workers of a transform, and backends: what SciPy's settings are here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import refused

_WORKERS: Final[ContextVar[int]] = ContextVar("workers", default=1)


@contextmanager
def set_workers(workers: int) -> Iterator[None]:
    """A scope in which `get_workers` gives this number; transforms take the threads that they need.

    Raises ArgumentError for 0.

    >>> import functrans as ft
    >>> with ft.scipy.fft.set_workers(4):
    ...     ft.scipy.fft.get_workers()
    4
    """
    try:
        count = int(workers)
        known = count == workers and count != 0
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ArgumentError(f"functrans.scipy.fft.set_workers: workers is {workers!r}.",
                            where=user_source(), why="it is a number of threads, or a negative one "
                            "for all but so many.", fix="set_workers(4)")
    before = _WORKERS.set(count)
    try:
        yield
    finally:
        _WORKERS.reset(before)


def get_workers() -> int:
    """The number of `set_workers`, 1 outside of it.

    >>> import functrans as ft
    >>> ft.scipy.fft.get_workers()
    1
    """
    return _WORKERS.get()


def _backends(name: str) -> NoReturn:
    raise refused(f"fft.{name}", "a backend of uarray", "a program is compiled with its own "
                  "transforms.", "scipy.fft on np.asarray(x)")


def set_backend(backend: Any, coerce: bool = False, only: bool = False) -> NoReturn:
    """Refused: transforms are those of the program; see `ArgumentError`.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.fft.set_backend("scipy")
    ... except ft.errors.ArgumentError as error:
    ...     print(str(error).splitlines()[0])
    functrans.scipy.fft.set_backend does not take a backend of uarray.
    """
    _backends("set_backend")


def skip_backend(backend: Any) -> NoReturn:
    """Refused; see `set_backend`.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.fft.skip_backend("scipy")
    ... except ft.errors.ArgumentError as error:
    ...     print(str(error).splitlines()[0])
    functrans.scipy.fft.skip_backend does not take a backend of uarray.
    """
    _backends("skip_backend")


def set_global_backend(backend: Any, coerce: bool = False, only: bool = False,
                       try_last: bool = False) -> NoReturn:
    """Refused; see `set_backend`.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.fft.set_global_backend("scipy")
    ... except ft.errors.ArgumentError as error:
    ...     print(str(error).splitlines()[0])
    functrans.scipy.fft.set_global_backend does not take a backend of uarray.
    """
    _backends("set_global_backend")


def register_backend(backend: Any) -> NoReturn:
    """Refused; see `set_backend`.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.fft.register_backend("scipy")
    ... except ft.errors.ArgumentError as error:
    ...     print(str(error).splitlines()[0])
    functrans.scipy.fft.register_backend does not take a backend of uarray.
    """
    _backends("register_backend")
