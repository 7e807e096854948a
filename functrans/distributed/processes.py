"""The processes that run a program together, once `initialize` has connected them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from functrans.core.errors import BackendError
from functrans.core.source import user_source
from functrans.distributed.coordinator_client import CoordinatorClient

__all__ = ["Processes", "all_gather_bytes", "broadcast_bytes", "current", "is_initialized",
           "on_failure", "set_current"]


@dataclass(frozen=True, eq=False)
class Processes:
    """What this process knows of all of them."""

    index: int
    count: int
    watch: CoordinatorClient
    mpi: Any
    """The module mpi4py.MPI, or None where there is no MPI among these processes."""
    why_no_mpi: str = ""
    ends_mpi: bool = False
    """Whether `initialize` started MPI, so that it ends with the program."""


_current: Final[list[Processes]] = []


def set_current(found: Processes | None) -> None:
    """Note the processes that were connected, or that they are no more."""
    _current[:] = [] if found is None else [found]


def is_initialized() -> bool:
    """Whether this process is connected to others by `initialize`.

    >>> import functrans as ft
    >>> ft.distributed.is_initialized()
    False
    """
    return bool(_current)


def current() -> Processes:
    """The connected processes; raises BackendError where `initialize` was not called."""
    if not _current:
        raise BackendError("this process is not connected to others.", where=user_source(),
                           why="devices of other processes are reached once they are.",
                           fix="ft.distributed.initialize()  # first thing, in each process")
    return _current[0]


def all_gather_bytes(value: bytes, ranks: Sequence[int] | None = None,
                     what: str = "an exchange of bytes") -> list[bytes]:
    """The bytes that each of some processes gave, by default of all; all of them call it.

    It is for what sets up a connection, such as the unique id of NCCL: it goes through process 0 as
    text. Raises CollectiveError where one of them failed.
    """
    here = current()
    return here.watch.all_gather(value, range(here.count) if ranks is None else ranks, what)


def broadcast_bytes(value: bytes, source: int = 0, ranks: Sequence[int] | None = None) -> bytes:
    """The bytes that the process `source` gave, in all of them; the others' are not looked at."""
    asked = list(range(current().count) if ranks is None else ranks)
    mine = value if current().index == source else b""
    return all_gather_bytes(mine, asked, "a broadcast of bytes")[asked.index(source)]


def on_failure(stop: Callable[[], None]) -> None:
    """Call a function, in a thread, once a process has failed: to wake who waits for it."""
    current().watch.on_failure.append(stop)
