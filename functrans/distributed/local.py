"""The virtual devices of the CPU, connected within one process: a thread for each device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakSet

import numpy as np

from functrans._runtime import Meeting, Rendezvous
from functrans.core import dtypes
from functrans.core.communicator import (
    OPS,
    TYPES,
    Broken,
    Connection,
    Engine,
    Group,
    MeshMember,
    ReduceOp,
)
from functrans.core.mesh import Mesh
from functrans.distributed.crews import Crew, run_on_crew

__all__ = ["MeetingGroup", "ThreadsEngine"]

R = TypeVar("R")

class MeetingGroup(Group):
    """A member of a group that meets in the runtime."""

    def __init__(self, meeting: Meeting, index: int, size: int) -> None:
        self.meeting = meeting
        self.index = index
        self.size = size

    def all_reduce(self, x: Any, out: Any, op: ReduceOp) -> None:
        _reduced(x, out, lambda a, b, number: self.meeting.all_reduce(
            self.index, a, b, OPS[op], number))

    def reduce_scatter(self, x: Any, out: Any, op: ReduceOp) -> None:
        _reduced(x, out, lambda a, b, number: self.meeting.reduce_scatter(
            self.index, a, b, OPS[op], number))

    def all_gather(self, x: Any, out: Any) -> None:
        _whole(self.meeting.all_gather(self.index, _plain(x), out))

    def all_to_all(self, x: Any, out: Any) -> None:
        _whole(self.meeting.all_to_all(self.index, _plain(x), out))

    def permute(self, x: Any, out: Any, pairs: Sequence[tuple[int, int]]) -> None:
        source = next((s for s, d in pairs if d == self.index), -1)
        destination = next((d for s, d in pairs if s == self.index), -1)
        _whole(self.meeting.permute(self.index, _plain(x), out, source, destination))

    def broadcast(self, x: Any, out: Any, source: int) -> None:
        _whole(self.meeting.broadcast(self.index, _plain(x), out, source))

    def barrier(self) -> None:
        _whole(self.meeting.barrier(self.index))


def _plain(x: Any) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x).reshape(np.shape(x))


def _reduced(x: Any, out: Any, reduce: Callable[[Any, Any, int], bool]) -> None:
    number = TYPES.get(out.dtype)
    if number is not None:
        _whole(reduce(_plain(x), out, number))
        return
    # floats of 8 bits, integers of 4 and complex numbers of two halves
    wide = dtypes.wide_dtype(out.dtype)
    found = np.empty(out.shape, wide)
    _whole(reduce(_plain(x.astype(wide)), found, TYPES[wide]))
    out[...] = found.astype(out.dtype)


def _whole(met: bool) -> None:
    if not met:
        raise Broken


class ThreadsMember(MeshMember):
    def __init__(self, crew: _Crew, mesh: Mesh, rank: int) -> None:
        self.mesh = mesh
        self.rank = rank
        self._crew = crew
        self._groups: dict[tuple[str, ...], MeetingGroup] = {}

    def group(self, axes: tuple[str, ...]) -> Group:
        return self._member_of(axes)

    def step_group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        group = self._member_of(axes)
        return group.meeting, group.index, group.size

    def _member_of(self, axes: tuple[str, ...]) -> MeetingGroup:
        found = self._groups.get(axes)
        if found is None:
            ranks = self.mesh.group(self.rank, axes)
            found = self._groups[axes] = MeetingGroup(
                self._crew.meeting(ranks), ranks.index(self.rank), len(ranks))
        return found


class _Crew(Crew):
    """Threads and meeting places for one run at a time."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh, [ThreadsMember(self, mesh, r) for r in range(mesh.size)])
        self.is_broken = False
        self._meetings: dict[tuple[int, ...], Rendezvous] = {}
        self._lock = threading.Lock()

    def meeting(self, ranks: tuple[int, ...]) -> Rendezvous:
        """Where these ranks meet: all of them agree on the one that came first."""
        with self._lock:
            found = self._meetings.get(ranks)
            if found is None:
                found = self._meetings[ranks] = Rendezvous(len(ranks))
                for rank in self.finished:
                    if rank in ranks:
                        found.leave()
                if self.is_broken:
                    found.break_up()
            return found

    def leave(self, rank: int) -> None:
        with self._lock:
            self.finished.append(rank)
            for ranks, meeting in self._meetings.items():
                if rank in ranks:
                    meeting.leave()

    def break_up(self) -> None:
        with self._lock:
            self.is_broken = True
            for meeting in self._meetings.values():
                meeting.break_up()

    def reset(self) -> None:
        self.finished.clear()
        self.is_broken = False
        for meeting in self._meetings.values():
            meeting.reset()


_connections: Final[WeakSet[ThreadsConnection]] = WeakSet()


def _forget_crews() -> None:
    """In the child of a fork: none of the threads came along."""
    for connection in list(_connections):
        connection._idle.clear()


os.register_at_fork(after_in_child=_forget_crews)


class ThreadsConnection(Connection):
    """Runs the programs of all devices in this process; the first one in the caller's thread."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        # runs of several callers, and runs within runs, have crews of their own
        self._idle: list[_Crew] = []
        _connections.add(self)

    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        try:
            crew = self._idle.pop()
        except IndexError:
            crew = _Crew(self.mesh)
        run = run_on_crew(crew, program)
        crew.reset()
        self._idle.append(crew)
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
