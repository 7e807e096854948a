"""Threads that run one program on several devices of a process, each on a thread of its own."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from functrans._runtime import (
    get_num_threads,
    set_thread_share,
)
from functrans.core.communicator import Broken, MeshMember, acting_as
from functrans.core.errors import CollectiveError
from functrans.core.mesh import Mesh

__all__ = ["TeamRun", "ThreadTeam", "run_on_team"]

R = TypeVar("R")


class _Worker:
    """A thread that runs what it is given, one after the other."""

    def __init__(self, name: str) -> None:
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while True:
            self.jobs.get()()


class ThreadTeam(ABC):
    """The members of a mesh that this process has, and a thread for each but the first.

    It is for one run at a time.
    """

    def __init__(self, mesh: Mesh, members: Sequence[MeshMember]) -> None:
        self.mesh = mesh
        self.members = list(members)
        self.workers = [_Worker(f"functrans {mesh.ranks[m.rank]!r}") for m in self.members[1:]]
        self.finished: list[int] = []

    @abstractmethod
    def leave(self, rank: int) -> None:
        """A program is over: who waits for it waits in vain."""

    @abstractmethod
    def abort(self) -> None:
        """A program failed: whoever waits in a collective goes on, with `Broken`."""


def run_on_team(team: ThreadTeam, program: Callable[[MeshMember], R]) -> TeamRun:
    """The run of a program on each member, the first of which runs in this thread; once it is over.

    Of a team whose run is interrupted nothing else is to be asked.
    """
    run = TeamRun(team, program)
    for k, worker in enumerate(team.workers, start=1):
        worker.jobs.put(_DeviceJob(run, k, copy_context()))
    run.on_device(0)
    run.done.acquire()
    return run


class _DeviceJob:
    """The part of a run that one worker does."""

    __slots__ = ("context", "number", "run")

    def __init__(self, run: TeamRun, number: int, context: Context) -> None:
        self.run, self.number, self.context = run, number, context

    def __call__(self) -> None:
        self.context.run(self.run.on_device, self.number)


class TeamRun:
    """One program on all members."""

    def __init__(self, team: ThreadTeam, program: Callable[[MeshMember], Any]) -> None:
        self.team = team
        self.program = program
        size = len(team.members)
        self.results: list[Any] = [None] * size
        self.error: BaseException | None = None
        self.threads = max(1, get_num_threads() // size)
        self._left = size
        self._lock = threading.Lock()
        self.done = threading.Lock()
        self.done.acquire()

    def outcome(self) -> list[Any]:
        """The results of all members; raises the first error of any of them."""
        if self.error is not None:
            raise self.error
        return self.results

    def on_device(self, number: int) -> None:
        before = set_thread_share(self.threads)
        member = self.team.members[number]
        try:
            with acting_as(member):
                self.results[number] = self.program(member)
            self.team.leave(member.rank)
        except Broken:
            self._failed(member.rank, None)
        except BaseException as error:  # the caller raises it
            self._failed(member.rank, error)
            self.team.abort()
        finally:
            set_thread_share(before)
            with self._lock:
                self._left -= 1
                left = self._left
            if left == 0:
                self.done.release()

    def _failed(self, rank: int, error: BaseException | None) -> None:
        """Keep the first error, which says where it was; None where others came no more."""
        mesh = self.team.mesh
        with self._lock:
            if self.error is not None:
                return
            if error is None:
                over = ", ".join(repr(mesh.ranks[r]) for r in self.team.finished)
                self.error = CollectiveError(
                    f"{mesh.ranks[rank]!r} waits for {over or 'a device'} in a collective, and the "
                    "program there is over.", where=None,  # a thread has no line of the user's
                    why="all devices of a group take part in a collective, in the same order.",
                    fix="no collective in a branch or a loop that differs between devices")
                return
            error.add_note(f"On {mesh.ranks[rank]!r}, rank {rank} of {mesh!r}; the programs of "
                           "the other devices were stopped.")
            self.error = error
