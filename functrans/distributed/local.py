"""The virtual devices of the CPU, connected within one process: a thread for each device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakSet

from functrans._runtime import Communicator, Rendezvous
from functrans.core.communicator import Connection, Engine, MeshMember
from functrans.core.mesh import Mesh
from functrans.distributed.groups import CommunicatorMember
from functrans.distributed.thread_teams import ThreadTeam, run_on_team

__all__ = ["ThreadsEngine"]

R = TypeVar("R")


class ThreadsMember(CommunicatorMember):
    """A virtual device while it runs a program on a thread of its own."""

    def __init__(self, team: _LocalTeam, mesh: Mesh, rank: int) -> None:
        super().__init__(mesh, rank)
        self._team = team

    def communicator(self, ranks: tuple[int, ...], axes: tuple[str, ...]) -> Communicator:
        return self._team.rendezvous(ranks)


class _LocalTeam(ThreadTeam):
    """Threads, and the rendezvous of each group of ranks, for one run at a time."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh, [ThreadsMember(self, mesh, r) for r in range(mesh.size)])
        self.is_aborted = False
        self._rendezvous: dict[tuple[int, ...], Rendezvous] = {}
        self._lock = threading.Lock()

    def rendezvous(self, ranks: tuple[int, ...]) -> Rendezvous:
        """The rendezvous of these ranks: all of them agree on the one that came first."""
        with self._lock:
            found = self._rendezvous.get(ranks)
            if found is None:
                found = self._rendezvous[ranks] = Rendezvous(len(ranks))
                for rank in self.finished:
                    if rank in ranks:
                        found.leave()
                if self.is_aborted:
                    found.abort()
            return found

    def leave(self, rank: int) -> None:
        with self._lock:
            self.finished.append(rank)
            for ranks, found in self._rendezvous.items():
                if rank in ranks:
                    found.leave()

    def abort(self) -> None:
        with self._lock:
            self.is_aborted = True
            for found in self._rendezvous.values():
                found.abort()

    def reset(self) -> None:
        self.finished.clear()
        self.is_aborted = False
        for found in self._rendezvous.values():
            found.reset()


_connections: Final[WeakSet[ThreadsConnection]] = WeakSet()


def _forget_teams() -> None:
    """In the child of a fork: none of the threads came along."""
    for connection in list(_connections):
        connection._idle.clear()


os.register_at_fork(after_in_child=_forget_teams)


class ThreadsConnection(Connection):
    """Runs the programs of all devices in this process; the first one in the caller's thread."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        # runs of several callers, and runs within runs, have teams of their own
        self._idle: list[_LocalTeam] = []
        _connections.add(self)

    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        try:
            team = self._idle.pop()
        except IndexError:
            team = _LocalTeam(self.mesh)
        run = run_on_team(team, program)
        team.reset()
        self._idle.append(team)
        return run.outcome()


class ThreadsEngine(Engine):
    """Virtual devices of the CPU."""

    name = "threads"

    def __init__(self) -> None:
        self._connections: dict[Mesh, ThreadsConnection] = {}

    def takes(self, mesh: Mesh) -> bool:
        return all(d.platform == "cpu" and d.is_local for d in mesh.ranks)

    def connect(self, mesh: Mesh) -> Connection:
        found = self._connections.get(mesh)
        if found is None:
            found = self._connections.setdefault(mesh, ThreadsConnection(mesh))
        return found
