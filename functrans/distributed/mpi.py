"""CPUs of several processes, connected by MPI: compiled programs call the library themselves."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

from functrans._runtime import Communicator, MpiCommunicator, Rendezvous
from functrans.core.communicator import (
    Broken,
    Connection,
    Engine,
    MeshMember,
    acting_as,
    key_of,
)
from functrans.core.errors import BackendError, CollectiveError
from functrans.core.mesh import Mesh
from functrans.core.source import user_source
from functrans.distributed.groups import CommunicatorMember
from functrans.distributed.processes import Processes, all_gather_bytes, current

__all__ = ["HANDLES", "MpiEngine"]

R = TypeVar("R")
MOST: Final = 400
"""Programs with communicators of their own: MPICH has 2,048 in all. The others share some."""
HANDLES: Final = (
    "C_BOOL", "INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T",
    "UINT64_T", "", "", "FLOAT", "DOUBLE", "C_FLOAT_COMPLEX", "C_DOUBLE_COMPLEX")
"""MPI's names of the dtypes in csrc/communicator.h."""
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")


class MpiMember(CommunicatorMember):
    """The rank of this process while it runs programs."""

    def __init__(self, mesh: Mesh, rank: int, processes: Processes) -> None:
        super().__init__(mesh, rank)
        self._processes = processes
        self._communicators: list[Any] = []

    def communicator(self, ranks: tuple[int, ...], axes: tuple[str, ...]) -> Communicator:
        """One of these ranks alone: what other programs send does not come here."""
        if len(ranks) == 1:
            return Rendezvous(1)
        mpi = self._processes.mpi
        world = mpi.COMM_WORLD
        members = [self.mesh.ranks[r].process_index for r in ranks]
        made = world.Create_group(world.Get_group().Incl(members), key_of(axes) % 32749)
        made.Set_errhandler(mpi.ERRORS_RETURN)
        self._communicators.append(made)
        return MpiCommunicator(mpi._handleof(made), len(ranks))


class MpiConnection(Connection):
    """Runs programs on the device of this process; one after the other, in the order of calls."""

    def __init__(self, mesh: Mesh, processes: Processes) -> None:
        self.mesh = mesh
        self._processes = processes
        self._lock = threading.RLock()
        self._shared: MpiMember | None = None
        self._programs = 0

    @property
    def rank(self) -> int:
        return self.mesh.local_ranks[0]

    def for_program(self, text: str) -> Connection:
        with self._lock:
            self._programs += 1
            if self._programs <= MOST:
                return _ProgramConnection(self, MpiMember(self.mesh, self.rank, self._processes),
                                          text, agrees_once=True)
            if self._shared is None:
                self._shared = MpiMember(self.mesh, self.rank, self._processes)
            return _ProgramConnection(self, self._shared, text, agrees_once=False)

    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        with self._lock:
            if self._shared is None:
                self._shared = MpiMember(self.mesh, self.rank, self._processes)
            self._processes.watch.begin("a program")
            return self.run_as(self._shared, program)

    def run_as(self, member: MpiMember, program: Callable[[MeshMember], R]) -> list[R]:
        """What a program returns here; CollectiveError where another process failed."""
        watch = self._processes.watch
        try:
            with acting_as(member):
                return [program(member)]
        except Broken:
            raise watch.error() from None
        except BaseException as error:
            watch.raised(error)
            error.add_note(f"On {self.mesh.ranks[member.rank]!r}, rank {member.rank} of "
                           f"{self.mesh!r}; the other processes are told.")
            raise


class _ProgramConnection(Connection):
    """The runs of one program, which all processes of the mesh have."""

    def __init__(self, connection: MpiConnection, member: MpiMember, text: str, *,
                 agrees_once: bool) -> None:
        self.mesh = connection.mesh
        self._connection = connection
        self._member = member
        self._text = _ADDRESS.sub("0x", text)
        self._name = self._text.partition("\n")[0]
        self._agrees_once = agrees_once
        self._agreed = False

    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        with self._connection._lock:
            watch = current().watch
            watch.check()
            watch.begin(self._name)
            if not self._agreed:
                check_same(self._text, self.mesh)
                self._agreed = self._agrees_once
            return self._connection.run_as(self._member, program)


def check_same(text: str, mesh: Mesh) -> None:
    """Raise CollectiveError, in all processes of a mesh, where their programs differ."""
    ranks = sorted({d.process_index for d in mesh.ranks})
    digest = hashlib.sha256(text.encode()).digest()
    found = all_gather_bytes(digest, ranks, "the start")
    other = next((k for k, d in enumerate(found) if d != found[0]), None)
    if other is None:
        return
    texts = [t.decode() for t in all_gather_bytes(text.encode()[:1 << 20], ranks,
                                                  "a comparison of programs")]
    one, two = texts[0].splitlines(), texts[other].splitlines()
    line = next((k for k, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))
    first, second = [(lines[line].strip() if line < len(lines) else "nothing more")[:200]
                     for lines in (one, two)]
    where = f"; line {line} of the program is `{first}` there and `{second}` here" if line else ""
    raise CollectiveError(
        f"process {ranks[0]} runs {one[0]}, and process {ranks[other]} runs {two[0]}{where}.",
        where=user_source(),
        why="all processes of a mesh run the same programs on values of the same shapes, in the "
            "same order.",
        fix="no branch on process_index() around a program of several processes, and the same "
            "shapes and shardings in all of them")


class MpiEngine(Engine):
    """The CPUs of several processes."""

    name = "mpi"

    def __init__(self) -> None:
        self._connections: dict[Mesh, MpiConnection] = {}

    def takes(self, mesh: Mesh) -> bool:
        return mesh.is_multi_process and all(d.platform == "cpu" for d in mesh.ranks)

    def connect(self, mesh: Mesh) -> Connection:
        processes = current()
        if processes.mpi is None:
            raise BackendError(
                f"the CPUs of {mesh!r} are of several processes, and there is no MPI here.",
                where=user_source(), why=processes.why_no_mpi,
                fix="pip install 'functrans[distributed]', and start by mpiexec -n N python ...")
        if not mesh.local_ranks:
            raise BackendError(f"{mesh!r} has no device of process {processes.index}.",
                               where=user_source(), why="a program runs on devices of its own.",
                               fix="call it in the processes of the mesh alone")
        per_process = Counter(d.process_index for d in mesh.ranks)
        process, count = max(per_process.items(), key=lambda pair: pair[1])
        if count > 1:
            raise BackendError(
                f"{mesh!r} has {count} CPU devices of process {process}.", where=user_source(),
                why="between processes the CPUs of each are one device, whose loops have all of "
                    "its threads.",
                fix="no ft.config.cpu_devices(n) beside ft.distributed.initialize(); more devices "
                    "are more processes: mpiexec -n N")
        found = self._connections.get(mesh)
        if found is None:
            found = self._connections.setdefault(mesh, MpiConnection(mesh, processes))
        return found
