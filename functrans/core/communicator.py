"""The protocol of what connects devices: engines, connections, members of groups.

A program of several devices is the same on each of them. Its collectives call the `Group` of the
rank that runs it; how the buffers get from one device to another is the engine's (threads of one
process, NCCL, MPI). docs/guide/distributed.md says how to add one.
"""

from __future__ import annotations

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np

from functrans.core import dtypes
from functrans.core.errors import AxisNameError
from functrans.core.mesh import Mesh
from functrans.core.record import Record

__all__ = [
    "OPS",
    "TYPES",
    "Broken",
    "Connection",
    "Engine",
    "Group",
    "MeshMember",
    "ProcessDevices",
    "ReduceOp",
    "acting_as",
    "acting_member",
    "current_member",
    "devices_of_processes",
    "group_here",
    "key_of",
    "on_processes",
    "processes",
    "set_processes",
    "this_process",
]

R = TypeVar("R")
ReduceOp: TypeAlias = Literal["sum", "max", "min", "product"]
OPS: Final = {"sum": 0, "max": 1, "min": 2, "product": 3}
_NAMES: Final[tuple[Any, ...]] = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    dtypes.bfloat16, "float32", "float64", "complex64", "complex128")
TYPES: Final[dict[Any, int]] = {np.dtype(name): k for k, name in enumerate(_NAMES)}
"""The numbers of reductions and dtypes in csrc/communicator.h."""


def key_of(axes: tuple[str, ...]) -> int:
    """The number by which compiled programs know the groups along some axes."""
    return zlib.crc32(repr(axes).encode())


class Broken(Exception):
    """What a program gets in a collective that others come to no more, as one of them failed.

    It is no error of the program: the run raises what it came from.
    """


class Group(ABC):
    """One member of a group of ranks, all of which make the same calls in the same order.

    `x` and `out` are distinct buffers of the kind that programs have on the devices: contiguous
    NumPy arrays, or on GPUs what has `__cuda_array_interface__`. All dtypes of arrays are taken;
    floats of 16 bits are added up in float32. A call returns when `out` is there, or on a GPU when
    it is enqueued, and `x` may be written to again.
    """

    size: int
    """How many ranks there are."""
    index: int
    """The place of this one among them."""

    @abstractmethod
    def all_reduce(self, x: Any, out: Any, op: ReduceOp) -> None:
        """out = the sum (or another `op`) of the x of all members; of booleans sum is `or`."""

    @abstractmethod
    def all_gather(self, x: Any, out: Any) -> None:
        """out[i] = the x of member i."""

    @abstractmethod
    def reduce_scatter(self, x: Any, out: Any, op: ReduceOp) -> None:
        """out = the sum over the members of x[index], where x has `size` parts."""

    @abstractmethod
    def all_to_all(self, x: Any, out: Any) -> None:
        """out[i] = the part x[index] of member i; x and out have `size` parts."""

    @abstractmethod
    def permute(self, x: Any, out: Any, pairs: Sequence[tuple[int, int]]) -> None:
        """out = the x of member s for the pair (s, index), zeros where there is none."""

    @abstractmethod
    def broadcast(self, x: Any, out: Any, source: int) -> None:
        """out = the x of member `source`."""

    @abstractmethod
    def barrier(self) -> None:
        """Return once all members are here."""


class MeshMember(ABC):
    """One rank of a mesh while it runs a program."""

    mesh: Mesh
    rank: int

    @abstractmethod
    def group(self, axes: tuple[str, ...]) -> Group:
        """The group of the ranks that differ from this one along `axes` of the mesh alone.

        Its members are in the order of their places along these axes, the first one slowest.
        """


    def step_group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        """How steps of compiled programs reach a group: a Communicator or None, place and size.

        Where it is None they call the methods of the group.
        """
        group = self.group(axes)
        return None, group.index, group.size


class Connection(ABC):
    """The devices of one mesh, connected."""

    mesh: Mesh

    @abstractmethod
    def run(self, program: Callable[[MeshMember], R]) -> list[R]:
        """What a program returns on each device of this process, in the order of their ranks.

        Each runs on a thread of its own within `acting_as`. Where one raises, all others are woken,
        and the error is raised here, with a note that names the device.
        """

    def run_compiled(self, programs: Sequence[Any], arguments: Sequence[Sequence[Any]],
                     axes: Mapping[int, tuple[str, ...]]) -> list[list[Any]] | None:
        """What compiled programs return, one for each device of this process; None: `run` has to.

        An engine of devices that are told what to do runs them without a thread of Python for each.
        `axes` are those of the groups that the programs know by number.
        """
        return None

    def for_program(self, text: str) -> Connection:
        """The connection for the runs of one program with collectives; its first line names it.

        An engine of several processes makes sure that all of them run the same one.
        """
        return self


class Engine(ABC):
    """What connects devices of some kind."""

    name: str

    @abstractmethod
    def takes(self, mesh: Mesh) -> bool:
        """Whether it connects the devices of a mesh."""

    @abstractmethod
    def connect(self, mesh: Mesh) -> Connection:
        """The connection of a mesh, made once; in all processes that have devices of it."""


class _Here(threading.local):
    member: MeshMember | None = None


_here: Final = _Here()


class acting_as:  # a context manager
    """Context manager: collectives of this thread are those of a member."""

    def __init__(self, member: MeshMember) -> None:
        self._member = member

    def __enter__(self) -> None:
        self._outer = _here.member
        _here.member = self._member

    def __exit__(self, *error: object) -> None:
        _here.member = self._outer


def acting_member() -> MeshMember | None:
    """The rank that this thread runs, if it runs one."""
    return _here.member


def current_member(axes: Sequence[Any], what: str) -> MeshMember:
    """The rank that this thread runs; raises AxisNameError where its mesh has not these axes."""
    member = _here.member
    if member is None or not all(a in member.mesh.shape for a in axes):
        raise AxisNameError(
            f"{what} over {', '.join(map(repr, axes))} was evaluated outside of a vmap or a "
            "shard_map of that name.",
            fix=f"vmap(fun, axis_name={axes[0]!r})" if axes else "vmap(fun, axis_name='i')")
    return member


def group_here(axes: tuple[Any, ...], what: str) -> Group:
    """The group of the rank that this thread runs, along axes of its mesh."""
    return current_member(axes, what).group(axes)


# --- processes

class ProcessDevices(Record):
    """What devices a process has: how many the CPU stands for, and the driver's numbers of GPUs."""

    cpus: int
    gpus: tuple[int, ...]


_process: Final = [0, 1]
_devices: Final[list[ProcessDevices]] = []
_listeners: Final[list[Callable[[int], None]]] = []


def this_process() -> int:
    """The number of this process among those that run the same program together."""
    return _process[0]


def processes() -> int:
    """How many processes run the same program together: 1 unless an engine said otherwise."""
    return _process[1]


def devices_of_processes() -> Sequence[ProcessDevices]:
    """The devices of each process; empty where there is one process."""
    return _devices


def set_processes(index: int, count: int, devices: Sequence[ProcessDevices] = ()) -> None:
    """Say which one of several processes this is, and what devices each of them has.

    An engine that connects processes does, before arrays are made.
    """
    _process[:] = [index, count]
    _devices[:] = devices
    for listener in _listeners:
        listener(index)


def on_processes(listener: Callable[[int], None]) -> None:
    """Call a function with the number of this process whenever it is said."""
    _listeners.append(listener)
