"""Starting a program in several processes, by mpiexec or by environment variables alone."""

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 150


@dataclass
class Ended:
    """How one process ended."""

    code: int
    output: str
    seconds: float


def environment(**more):
    """Of a process that has one thread and is of no other job."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "FUNCTRANS"))}
    paths = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(ROOT)]
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1",
            "PYTHONFAULTHANDLER": "1", **more}


@functools.cache
def mpiexec():
    """The launcher beside this python, else that of the system, with what it needs; None without.

    Open MPI counts cores and refuses root unless it is told otherwise.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        return None
    return [found, *["--allow-run-as-root", "--oversubscribe"] * is_open_mpi(found)]


@functools.cache
def is_open_mpi(launcher):
    told = subprocess.run([launcher, "--version"], capture_output=True, text=True)
    return "Open MPI" in told.stdout or "OpenRTE" in told.stdout


def run_by_mpiexec(count, *command, **more):
    """The output of all processes of a program that has to succeed."""
    done = subprocess.run([*mpiexec(), "-n", str(count), sys.executable, *command], cwd=ROOT,
                          env=environment(**more), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_by_environment(count, *command, give_up=SECONDS, stopped=()):
    """How each process of a program ended; those in `stopped` are killed in the end."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    begin = time.monotonic()
    processes = [subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment(
            FUNCTRANS_COORDINATOR_ADDRESS=address, FUNCTRANS_NUM_PROCESSES=str(count),
            FUNCTRANS_PROCESS_ID=str(rank))) for rank in range(count)]
    ended = []
    try:
        for rank in [*[r for r in range(count) if r not in stopped], *stopped]:
            if rank in stopped:
                processes[rank].send_signal(signal.SIGKILL)
            output, _ = processes[rank].communicate(timeout=give_up)
            ended.append((rank, Ended(processes[rank].returncode, output,
                                      time.monotonic() - begin)))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return [e for _, e in sorted(ended, key=lambda pair: pair[0])]
