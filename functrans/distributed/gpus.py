"""The GPUs of a mesh, connected by NCCL: those of this process, or of several.

Collectives of compiled programs are steps that the runtime gives to the devices; this module makes
the communicators that they need, and runs what has to wait for Python on a thread for each GPU.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar
from weakref import WeakSet

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, CudaProgram, NcclCommunicator, place_array, wrap
from functrans.core import dtypes
from functrans.core.communicator import (
    OPS,
    TYPES,
    Connection,
    Engine,
    Group,
    MeshMember,
    ReduceOp,
    acting_member,
)
from functrans.core.cuda_libraries import loaded
from functrans.core.errors import BackendError, CollectiveError
from functrans.core.mesh import Mesh
from functrans.core.source import user_source
from functrans.distributed.thread_teams import ThreadTeam, run_on_team

__all__ = ["FEW_PROGRAMS", "PROGRAMS_BESIDE", "Broadcast", "NcclConnection", "NcclEngine",
           "NcclGroup", "OnFailure"]

R = TypeVar("R")
Broadcast = Callable[[bytes, int, Sequence[int]], bytes]
"""What a process gave: of (own bytes, the number of that process, all processes that call it)."""
OnFailure = Callable[[Callable[[], None]], None]
"""Takes what is to be called once another process has failed."""

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast"]
KINDS: Final[dict[Kind, int]] = {"all_reduce": 0, "all_gather": 1, "reduce_scatter": 2,
                                 "all_to_all": 3, "permute": 4, "broadcast": 5}
BYTES: Final = TYPES[np.dtype(np.uint8)]
PROGRAMS_BESIDE: Final = 4
"""Multiprocessors that collectives beside kernels take: products of 128 tiles have one each of the
132 of an H100 then."""
FEW_PROGRAMS: Final = 1 << 32
"""Added to the number of a group: its members that take no more (csrc/cuda/nccl.h)."""
NOT_ADDED: Final = frozenset(("int16", "uint16"))
"""Dtypes with a number that NCCL has no reductions of."""


class NcclGroup(Group):
    """A member of a group, on its GPU; NumPy arrays are copied there and back."""

    def __init__(self, communicator: NcclCommunicator) -> None:
        self.communicator = communicator
        self.index = communicator.rank
        self.size = communicator.size

    def all_reduce(self, x: Any, out: Any, op: ReduceOp) -> None:
        self._reduce("all_reduce", x, out, op)

    def reduce_scatter(self, x: Any, out: Any, op: ReduceOp) -> None:
        self._reduce("reduce_scatter", x, out, op)

    def all_gather(self, x: Any, out: Any) -> None:
        self._move("all_gather", x, out, x.nbytes)

    def all_to_all(self, x: Any, out: Any) -> None:
        self._move("all_to_all", x, out, x.nbytes // self.size)

    def permute(self, x: Any, out: Any, pairs: Sequence[tuple[int, int]]) -> None:
        self._move("permute", x, out, x.nbytes, [end for pair in pairs for end in pair])

    def broadcast(self, x: Any, out: Any, source: int) -> None:
        self._move("broadcast", x, out, x.nbytes, [source])

    def barrier(self) -> None:
        found = np.zeros((), np.int32)
        self.all_reduce(np.zeros((), np.int32), found, "sum")

    def _move(self, kind: Kind, x: Any, out: Any, count: int, rest: Sequence[int] = ()) -> None:
        self._run((KINDS[kind], 0, 0, BYTES, count, *rest), x, out)

    def _reduce(self, kind: Kind, x: Any, out: Any, op: ReduceOp) -> None:
        dtype = np.dtype(out.dtype)
        is_pair = dtype.kind == "c"
        if dtype in TYPES and dtype.name not in NOT_ADDED and (op == "sum" or not is_pair):
            self._run((KINDS[kind], 0, OPS[op], TYPES[dtype], out.size), x, out)
            return
        wide = np.dtype(np.int32) if dtype.name in NOT_ADDED else dtypes.wide_dtype(dtype)
        if wide != dtype and (op == "sum" or wide.kind != "c"):
            found = np.empty(np.shape(out), wide)
            self._reduce(kind, np.asarray(x).astype(wide), found, op)
            _put(out, found.astype(dtype))
            return
        raise CollectiveError(f"{kind} of {dtype.name} with {op!r} is not defined.",
                              where=user_source(), why="complex numbers have no order, and NCCL "
                              "does not multiply them.", fix="their real and imaginary parts")

    def _run(self, numbers: tuple[int, ...], x: Any, out: Any) -> None:
        gpu = self.communicator.device
        if isinstance(out, ArrayBase):
            self.communicator.run(numbers, x if isinstance(x, ArrayBase) else _on(gpu, x), out)
            return
        found = _runtime.cuda_empty(np.shape(out), out.dtype, gpu)
        self.communicator.run(numbers, _on(gpu, x), found)
        _put(out, np.asarray(found))


def _on(gpu: int, x: Any) -> Any:
    array = x if isinstance(x, ArrayBase) else wrap(np.array(x))
    return place_array(array, gpu + 1)


def _put(out: Any, value: Any) -> None:
    out[...] = value


class NcclMember(MeshMember):
    def __init__(self, connection: NcclConnection, rank: int) -> None:
        self.mesh = connection.mesh
        self.rank = rank
        self._connection = connection

    def group(self, axes: tuple[str, ...]) -> Group:
        return NcclGroup(self._communicator(axes))

    def step_group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        found = self._communicator(axes)
        return found, found.rank, found.size

    def _communicator(self, axes: tuple[str, ...]) -> NcclCommunicator:
        return self._connection.communicators(axes)[self.rank]


class _NcclTeam(ThreadTeam):
    """A thread for each GPU of this process, for programs that wait for Python."""

    def __init__(self, connection: NcclConnection) -> None:
        mesh = connection.mesh
        super().__init__(mesh, [NcclMember(connection, r) for r in mesh.local_ranks])
        self._connection = connection

    def leave(self, rank: int) -> None:
        """What others wait for was enqueued, or never is: that only they can know."""

    def abort(self) -> None:
        self._connection.give_up()


_one_at_a_time: Final = threading.Lock()
"""Two runs must not give collectives to their GPUs in different orders."""
_connections: Final[WeakSet[NcclConnection]] = WeakSet()


def _forget() -> None:
    """In the child of a fork: neither the threads nor the GPUs came along."""
    for connection in list(_connections):
        connection.forget()


os.register_at_fork(after_in_child=_forget)


class NcclConnection(Connection):
    """The GPUs of a mesh; communicators are made for the axes that programs ask for."""

    def __init__(self, mesh: Mesh, broadcast: Broadcast | None) -> None:
        self.mesh = mesh
        self._broadcast = broadcast
        self._communicators: dict[tuple[int, ...], dict[int, NcclCommunicator]] = {}
        self._by_axes: dict[tuple[tuple[str, ...], bool], dict[int, NcclCommunicator]] = {}
        self._others: list[NcclCommunicator] = []
        self._tables: dict[tuple[int, ...], list[Any]] = {}
        self._team: _NcclTeam | None = None
        self._making = threading.RLock()
        _connections.add(self)

    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        self._refuse_within_a_run()
        with _one_at_a_time:
            team = self._team
            if team is None:
                team = self._team = _NcclTeam(self)
            try:
                return run_on_team(team, program).outcome()
            except BaseException:
                self._team = None  # members know the communicators that were given up
                raise

    def run_compiled(self, programs: Sequence[Any], arguments: Sequence[Sequence[Any]],
                     axes: Mapping[int, tuple[str, ...]]) -> list[list[Any]] | None:
        if not all(type(p) is CudaProgram and p.only_enqueues for p in programs):
            return None
        self._refuse_within_a_run()
        with _one_at_a_time:
            keys = tuple(programs[0].collective_keys)
            tables = self._tables.get(keys)
            if tables is None:
                tables = self._tables[keys] = self._tables_of(keys, axes)
            try:
                return _runtime.cuda_run_together(list(programs), list(arguments), tables)
            except BaseException:
                if any(c.aborted for c in self._all()):  # and not before anything was given
                    self.give_up()
                raise

    def _tables_of(self, keys: Sequence[int], axes: Mapping[int, tuple[str, ...]]) -> list[Any]:
        """For each device of this process the groups that programs know by these numbers."""
        groups = {k: self.communicators(axes[k % FEW_PROGRAMS], k >= FEW_PROGRAMS) for k in keys}
        return [_runtime.group_table([(k, of[r], of[r].rank, of[r].size)
                                      for k, of in groups.items()])
                for r in self.mesh.local_ranks]

    def communicators(self, axes: tuple[str, ...],
                      few_programs: bool = False) -> dict[int, NcclCommunicator]:
        """By rank, those of the members of this process of the groups along some axes.

        Made when they are first asked for: all processes do that in the same order.
        """
        key = (axes, few_programs)
        found = self._by_axes.get(key)
        if found is None:
            with self._making:
                found = self._by_axes.get(key)
                if found is None:
                    found = self._narrow(self.communicators(axes)) if few_programs \
                        else self._groups_along(axes)
                    self._by_axes[key] = found
        return found

    def _narrow(self, groups: Mapping[int, NcclCommunicator]) -> dict[int, NcclCommunicator]:
        """The same groups, whose collectives leave most multiprocessors to kernels."""
        local = self.mesh.local_ranks
        made = _runtime.nccl_split([groups[r] for r in local], [0] * len(local),
                                   [groups[r].rank for r in local], PROGRAMS_BESIDE)
        self._others += made
        return dict(zip(local, made, strict=True))

    def _groups_along(self, axes: tuple[str, ...]) -> dict[int, NcclCommunicator]:
        mesh = self.mesh
        everyone = tuple(range(mesh.size))
        groups = {r: mesh.group(r, axes) for r in everyone}
        key = tuple(r for rank in everyone for r in groups[rank])
        if key not in self._communicators:
            if groups[0] == everyone:
                self._communicators[key] = self._connected()
            else:
                whole = self.communicators(tuple(mesh.axis_names))
                local = mesh.local_ranks
                made = _runtime.nccl_split([whole[r] for r in local],
                                           [min(groups[r]) for r in local],
                                           [groups[r].index(r) for r in local])
                self._communicators[key] = dict(zip(local, made, strict=True))
        return self._communicators[key]

    def _connected(self) -> dict[int, NcclCommunicator]:
        """The communicators of the group of all ranks."""
        _require_nccl()
        mesh = self.mesh
        first = mesh.ranks[0]
        identity = _runtime.nccl_unique_id() if first.is_local else b""
        if mesh.is_multi_process:
            if self._broadcast is None:
                raise BackendError(
                    f"the GPUs of {mesh!r} are in several processes.", where=user_source(),
                    why="no engine tells their processes of each other.",
                    fix="functrans.distributed.initialize()  # in each process")
            everyone = sorted({d.process_index for d in mesh.ranks})
            identity = self._broadcast(identity, first.process_index, everyone)
        local = mesh.local_ranks
        made = _runtime.nccl_connect(identity, mesh.size, [(r, mesh.ranks[r].id) for r in local])
        return dict(zip(local, made, strict=True))

    def _all(self) -> list[NcclCommunicator]:
        return [*self._others, *[c for of in self._communicators.values() for c in of.values()]]

    def give_up(self) -> None:
        """A program failed: those that wait for it go on, and later runs connect anew."""
        with self._making:
            given_up = self._all()
            self.forget()
        for communicator in given_up:
            communicator.abort()

    def forget(self) -> None:
        """Begin anew with the next run."""
        self._communicators, self._by_axes, self._others = {}, {}, []
        self._tables, self._team = {}, None

    def _refuse_within_a_run(self) -> None:
        outer = acting_member()
        if isinstance(outer, NcclMember):
            raise CollectiveError(
                f"a program of {self.mesh!r} was called by a callback of a program of "
                f"{outer.mesh!r}.", where=user_source(),
                why="GPUs of a mesh run one program at a time: collectives of two would wait for "
                    "each other.",
                fix="call it outside of pure_callback and io_callback")


def _require_nccl() -> None:
    why = loaded("nccl")
    if why is not None:
        raise BackendError("NCCL, which connects GPUs, cannot be loaded.", where=user_source(),
                           why=f"{why}.", fix='pip install "functrans[gpu-libraries]"  # or '
                           "nvidia-nccl-cu13, nvidia-nccl-cu12, the system's libnccl2")


class NcclEngine(Engine):
    """GPUs, of this process or of several.

    `broadcast(data, source, processes)` is called in all processes that have GPUs of a mesh, when
    these are connected: it gives what process `source` gave. `on_failure(stop)` has `stop` called
    once another process failed, so that the GPUs of this one do not wait for it.
    """

    name = "nccl"

    def __init__(self, broadcast: Broadcast | None = None,
                 on_failure: OnFailure | None = None) -> None:
        self._broadcast = broadcast
        self._on_failure = on_failure
        self._connections: dict[Mesh, NcclConnection] = {}

    def takes(self, mesh: Mesh) -> bool:
        return all(d.platform == "gpu" for d in mesh.ranks)

    def connect(self, mesh: Mesh) -> Connection:
        found = self._connections.get(mesh)
        if found is None:
            found = self._connections.setdefault(mesh, NcclConnection(mesh, self._broadcast))
            if self._on_failure is not None and mesh.is_multi_process:
                self._on_failure(found.give_up)
        return found
