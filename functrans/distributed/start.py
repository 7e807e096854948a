"""`initialize`: connecting the processes of a run, by `mpiexec` or environment variables."""

from __future__ import annotations

import atexit
import json
import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from functrans import _runtime
from functrans.core.communicator import ProcessDevices, set_processes
from functrans.core.cpu_devices import cpu_device_count
from functrans.core.errors import ArgumentError, BackendError, CollectiveError
from functrans.distributed.coordinator import listen, split_address, start_coordinator
from functrans.distributed.coordinator_client import CoordinatorClient
from functrans.distributed.engines import register_engine
from functrans.distributed.gpus import NcclEngine
from functrans.distributed.mpi import HANDLES
from functrans.distributed.processes import (
    Processes,
    broadcast_bytes,
    current,
    is_initialized,
    on_failure,
    set_current,
)

__all__ = ["initialize", "shutdown"]

ADDRESS: Final = "FUNCTRANS_COORDINATOR_ADDRESS"
COUNT: Final = "FUNCTRANS_NUM_PROCESSES"
RANK: Final = "FUNCTRANS_PROCESS_ID"
_LAUNCHERS: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")
LAST_WORDS: Final = 5.0
"""Seconds that a process which failed gives the others to say what they have to."""


@dataclass(frozen=True)
class _Launch:
    """Which process of how many this is, and where process 0 listens; None under MPI's launcher."""

    address: str
    count: int
    rank: int


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               initialization_timeout: float = 300, heartbeat_timeout_seconds: float = 25,
               collective_timeout_seconds: float = 25) -> None:
    """Connect this process to those that run the same program; first thing, in each of them.

    Started by `mpiexec -n N python ...` it takes no arguments: mpi4py says which process this is.
    Without a launcher the arguments do, or the environment variables FUNCTRANS_COORDINATOR_ADDRESS
    ("host:port", where process 0 listens), FUNCTRANS_NUM_PROCESSES and FUNCTRANS_PROCESS_ID; CPUs
    then need the MPI of the wheel `mpich`. `ft.devices()` has the devices of all processes from
    then on. `local_device_ids` are the GPUs of this process; by default those of a host are divided
    evenly over its processes.

    A process that dies, raises, hangs or stops is named by a CollectiveError in the others: after
    `collective_timeout_seconds` if a collective waits for it, and it does not compile, and after
    `heartbeat_timeout_seconds` if nothing is heard of it. Raises ArgumentError for arguments that
    do not go together, BackendError for an MPI that is not there, CollectiveError where processes
    do not come within `initialization_timeout` seconds.
    """
    if is_initialized():
        raise ArgumentError("initialize: this process is connected to others already.",
                            fix="call it once, or ft.distributed.shutdown() before")
    place = _place(coordinator_address, num_processes, process_id, os.environ)
    ends_mpi = "mpi4py.MPI" not in sys.modules  # who imports it has it finalized
    timeouts = (collective_timeout_seconds, heartbeat_timeout_seconds)
    for seconds in (*timeouts, initialization_timeout):
        if not seconds > 0:
            raise ArgumentError(f"initialize: a timeout of {seconds!r} seconds.",
                                fix="collective_timeout_seconds=600  # to wait for long")
    if place is None:
        mpi = _mpi()
        if mpi is None:
            raise BackendError(
                "initialize: nothing says which processes there are.", why=_why_no_mpi(),
                fix="pip install 'functrans[distributed]' and mpiexec -n N python ..., or "
                    'initialize("host:port", num_processes=N, process_id=k)')
        _check_launcher(mpi)
        address, rank, count = _meet_by_mpi(mpi, (*timeouts, initialization_timeout))
    else:
        mpi, address = None, split_address(place.address)
        rank, count = place.rank, place.count
        if rank == 0:
            start_coordinator(_listening(place.address), count, *timeouts, initialization_timeout)
    try:
        watch = CoordinatorClient(address, rank, count, initialization_timeout,
                             heartbeat_timeout_seconds)
    except TimeoutError as error:
        raise CollectiveError(
            f"initialize: process {rank} does not reach process 0: {error}.",
            why=f"process 0 listens at {address[0]}:{address[1]} and was not there for "
                f"{initialization_timeout:.0f} s.",
            fix="start process 0, with an address that the other hosts reach") from None
    # all are here, or the coordinator tells who is not
    told = watch.all_gather(json.dumps({
        "host": socket.gethostname(), "mpi": _can_be_mpich() if mpi is None else True,
        "cpus": cpu_device_count(), "gpus": _gpu_count(), "ids": local_device_ids,
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version()}).encode(), range(count), "initialize")
    known = [json.loads(t) for t in told]
    why_not = ""
    if place is not None:
        why_not = next((f"process {k}: {k_['mpi']}" for k, k_ in enumerate(known)
                        if k_["mpi"] is not True), "")
        if not why_not:
            mpi, why = _mpi_by_coordinator(address, rank, count)
            whys = watch.all_gather(why.encode(), range(count), "initialize")
            why_not = next((f"process {k}: {w.decode()}" for k, w in enumerate(whys) if w), "")
            mpi = None if why_not else mpi
    cores = len(known[rank]["cores"])
    mates = sum((k["host"], k["cores"]) == (known[rank]["host"], known[rank]["cores"])
                for k in known)
    if mates > 1:
        _runtime.set_num_threads(max(1, min(_runtime.get_num_threads(), cores // mates)))
    if mpi is not None:
        _open(mpi, crowded=mates > cores)
    set_current(Processes(rank, count, watch, mpi, why_not, ends_mpi))
    set_processes(rank, count, _divided(known))
    register_engine(NcclEngine(broadcast_bytes, on_failure))
    atexit.register(_at_exit)


def shutdown() -> None:
    """Take leave of the other processes; at the end of the program it happens by itself.

    All processes do it, where none has failed, and it waits for all of them. MPI stays up.
    """
    if is_initialized():
        _leave()
        atexit.unregister(_at_exit)
        set_processes(0, 1)


def _leave() -> bool:
    """Disconnect; whether all processes came to their end."""
    here = current()
    watch = here.watch
    well = not watch.failure and not watch.is_ending
    if well:
        try:
            watch.wait_for_end(here.count)
        except CollectiveError as error:
            well = False
            print(f"functrans: {error.what}", file=sys.stderr)
    watch.end()
    set_current(None)
    return well


def _at_exit() -> None:
    """Before the interpreter ends; after an error of the program, too."""
    here = current()
    well = _leave()
    if here.mpi is None:
        return
    if well:
        if here.ends_mpi and not here.mpi.Is_finalized():
            here.mpi.Finalize()
        return
    # MPI would wait for who comes no more; the others are to say what they know before
    here.watch.wait_for_others(LAST_WORDS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _place(address: str | None, count: int | None, rank: int | None,
           environment: Mapping[str, str]) -> _Launch | None:
    """What arguments and environment variables say, or None where they say nothing."""
    def number(given: int | None, name: str) -> int | None:
        text = environment.get(name)
        if given is not None or text is None:
            return given
        if not text.isdecimal():
            raise ArgumentError(f"initialize: {name} is {text!r}.", why="it is a number.")
        return int(text)

    address = address or environment.get(ADDRESS) or None
    count, rank = number(count, COUNT), number(rank, RANK)
    if address is None and count is None and rank is None:
        return None
    missing = [f"{argument} ({name})" for argument, name, given in
               (("coordinator_address", ADDRESS, address), ("num_processes", COUNT, count),
                ("process_id", RANK, rank)) if given is None]
    if missing:
        raise ArgumentError(f"initialize: {' and '.join(missing)} is missing.",
                            why="without mpiexec they say where process 0 is, how many processes "
                                "there are, and which one this is.",
                            fix='initialize("10.0.0.1:8476", num_processes=4, process_id=0)')
    assert address is not None and count is not None and rank is not None
    try:
        split_address(address)
    except ValueError:
        raise ArgumentError(f"initialize: the coordinator_address is {address!r}.",
                            why='it is "host:port", the place where process 0 listens.',
                            fix='coordinator_address="10.0.0.1:8476"') from None
    if count < 1 or not 0 <= rank < count:
        raise ArgumentError(f"initialize: process_id is {rank} and num_processes {count}.",
                            why="processes are numbered from 0.",
                            fix=f"process_id=0 to {max(count, 1) - 1}")
    return _Launch(address, count, rank)


def _listening(address: str) -> socket.socket:
    host, port = split_address(address)
    try:
        return listen((host, port))
    except OSError:
        pass
    try:  # the name may be that of another interface, as behind a load balancer
        return listen(("0.0.0.0", port))
    except OSError as error:
        raise BackendError(f"initialize: process 0 cannot listen at {address}: {error}.",
                           why="another program does, or an earlier run is not over.",
                           fix="another port, the same for all processes") from None


# --- MPI

def _mpi() -> Any:
    """The module mpi4py.MPI, which starts MPI when it is first imported; None where it is not."""
    if find_spec("mpi4py") is None:
        return None
    import mpi4py  # noqa: PLC0415  as below

    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI  # noqa: PLC0415  it is an extra, and starts MPI
    except (ImportError, RuntimeError):
        return None
    return MPI


def _why_no_mpi() -> str:
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed."
    try:
        from mpi4py import MPI  # noqa: F401, PLC0415  it is tried again for what it says
    except (ImportError, RuntimeError) as error:
        return f"mpi4py finds no MPI library: {error}."
    return ""


def _library(mpi: Any) -> str:
    return str(mpi.Get_library_version()).split("\n")[0].split(",")[0].strip()


def _check_launcher(mpi: Any) -> None:
    """Raise where a launcher started several processes, and the library takes this one for all."""
    if mpi.COMM_WORLD.Get_size() > 1:
        return
    for name in _LAUNCHERS:
        if int(os.environ.get(name) or 1) > 1:
            raise BackendError(
                f"initialize: {name} is {os.environ[name]}, and MPI knows of one process.",
                why=f"the launcher is of another MPI than the library of mpi4py, {_library(mpi)}.",
                fix="the mpiexec beside python: $(dirname $(which python))/mpiexec -n 4 python ...")


def _meet_by_mpi(mpi: Any, timeouts: tuple[float, ...]) -> tuple[tuple[str, int], int, int]:
    """Where the coordinator is, which process this is, and of how many."""
    world = mpi.COMM_WORLD
    rank, count = world.Get_rank(), world.Get_size()
    here = world.Split_type(mpi.COMM_TYPE_SHARED)
    alone = here.Get_size() == count
    here.Free()
    address = None
    if rank == 0:
        sock = listen(("127.0.0.1" if alone else "0.0.0.0", 0))
        address = ("127.0.0.1" if alone else _own_address(), sock.getsockname()[1])
        start_coordinator(sock, count, *timeouts)
    return tuple(world.bcast(address)), rank, count


def _own_address() -> str:
    """The address of the interface by which this host reaches others; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostbyname(socket.gethostname())


def _can_be_mpich() -> bool | str:
    """True where MPI can come up without a launcher, or why it cannot."""
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed."
    if "mpi4py.MPI" in sys.modules:
        return "mpi4py.MPI was imported before initialize(), and took this process for all."
    return True


def _mpi_by_coordinator(address: tuple[str, int], rank: int, count: int) -> tuple[Any, str]:
    """MPICH, for which the coordinator is the process manager; or None and why not.

    Open MPI is not started: each process would be alone. GPUs do without.
    """
    import mpi4py  # noqa: PLC0415  as in _mpi

    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI  # noqa: PLC0415  as in _mpi
    except (ImportError, RuntimeError) as error:
        return None, f"mpi4py finds no MPI library: {error}."
    if not MPI.Is_initialized():
        if MPI.get_vendor()[0] == "Open MPI":
            return None, (f"without a launcher MPI has to be MPICH, and here is {_library(MPI)}; "
                          "mpiexec -n N python ... and initialize() start both.")
        # they stay: the library reads them again at its end
        os.environ.update(PMI_PORT=f"{address[0]}:{address[1]}", PMI_ID=str(rank))
        MPI.Init_thread()
    if MPI.COMM_WORLD.Get_size() != count:
        return None, f"{_library(MPI)} does not come up without a launcher."
    return MPI, ""


def _open(mpi: Any, crowded: bool) -> None:
    """Let the runtime call the library by itself."""
    def handle(name: str) -> int:
        return int(mpi._handleof(getattr(mpi, name))) if name else 0

    _runtime.mpi_open(mpi.__file__, tuple([handle(n) for n in HANDLES]),
                      tuple([handle(n) for n in ("SUM", "MAX", "MIN", "PROD")]), crowded)


# --- devices

def _gpu_count() -> int:
    return len(_runtime.cuda_devices()) if _runtime.cuda_open() else 0


def _divided(known: Sequence[Mapping[str, Any]]) -> list[ProcessDevices]:
    """The devices of each process: GPUs of a host are divided over its processes."""
    found = []
    for rank, one in enumerate(known):
        ids, count = one["ids"], int(one["gpus"])
        if ids is not None:
            gpus = (ids,) if isinstance(ids, int) else tuple(ids)
            if lacking := [i for i in gpus if i not in range(count)]:
                raise ArgumentError(f"initialize: process {rank} has no GPU {lacking[0]}.",
                                    why=f"its host shows it {count}.")
        else:
            mates = [k for k, other in enumerate(known) if other["host"] == one["host"]]
            at, of = mates.index(rank), len(mates)
            gpus = tuple(range(at * count // of, (at + 1) * count // of)) if count >= of \
                else tuple(range(count))
        found.append(ProcessDevices(int(one["cpus"]), gpus))
    return found
