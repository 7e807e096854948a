"""The worker processes of this one: those that compile now, and those that wait for work.

Triton is not imported here: workers import it while a program is lowered, for which they start.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import sys
from threading import Lock, Thread
from typing import Final

from functrans.lowering.triton.machine.messages import (
    COMPILED,
    TOO_LARGE,
    read_message,
    write_message,
)
from functrans.lowering.triton.machine.unit import Binary, KernelError, Unit

__all__ = ["POOL", "Pool", "Worker", "WorkerDied", "start_workers", "threads_beside",
           "workers_of"]

MOST_WORKERS: Final = 12  # of 200 MB each
MOST_THREADS_BESIDE: Final = 4
MANY_EQUATIONS, EQUATIONS_OF_WORKER = 80, 20
"""Programs of so many equations have 10 kernels and more, in the suite of benchmarks; and a worker
more for each so many. 14 kernels take 1.7 s in 8 threads, in one and 3 workers 1.0, on 4 cores."""
FIRST_WORKERS: Final = 4
"""Workers of a process whose programs run on a GPU, from the first that is compiled: the 13
kernels of the next take 0.5 s with them, in eight threads 0.8 (on 4 cores)."""
ALONE: Final = {"MLIR_DISABLE_MULTITHREADING": "1"}
"""A worker has a processor for itself: threads for each kernel took a tenth more of all."""
WORKER: Final = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


class WorkerDied(Exception):
    """A worker is gone."""


class Worker:
    """A process that compiles what it is sent, one unit at a time."""

    def __init__(self) -> None:
        code = WORKER.format(path=sys.path, module=f"{__package__}.worker")
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | ALONE
        # in a session of its own, so that Ctrl-C in a terminal reaches this process alone
        self._process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, bufsize=0, env=environment,
                                         start_new_session=True)
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether it has started."""
        assert self._process.stdout is not None
        return self._ready or bool(select.select([self._process.stdout], [], [], 0)[0])

    def wait_until_ready(self) -> None:
        """Raises Died where it cannot start."""
        if not self._ready:
            self._read()
            self._ready = True

    def compile(self, unit: Unit) -> Binary:
        """Raises Died, and KernelError for what Triton cannot compile."""
        assert self._process.stdin is not None
        try:
            write_message(self._process.stdin.fileno(), unit.encode())
        except OSError as error:
            raise WorkerDied from error
        answer = self._read()
        found = Binary.decode(answer[1:]) if answer[:1] == COMPILED else None
        if found is None:
            raise KernelError(unit, answer[1:].decode(), answer[:1] == TOO_LARGE)
        return found

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        try:
            return read_message(self._process.stdout.fileno())
        except (EOFError, OSError) as error:
            raise WorkerDied from error

    def kill(self) -> None:
        """End it at once, whatever it does; who waits for an answer is told that it died."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def wait(self) -> None:
        """Until it has ended."""
        self._process.wait()

    def close(self) -> None:
        """End it, when nobody waits for an answer."""
        self.kill()
        self.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class Pool:
    """Workers that wait for work. A fork of the process has none of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    @property
    def idle(self) -> int:
        """How many wait."""
        return len(self._idle)

    @property
    def ready(self) -> int:
        """How many of them have started."""
        with self._lock:
            return sum(worker.is_ready for worker in self._idle)

    def take(self) -> Worker:
        """One that waits, or a new one. Raises Died where none can be started."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                self._all.discard(worker)
                worker.close()
            if self._closed:
                raise WorkerDied
            try:
                worker = Worker()
            except OSError as error:
                raise WorkerDied from error
            self._all.add(worker)
            return worker

    def start(self, count: int) -> None:
        """Start workers until there are so many, which come after those that are ready."""
        while True:
            with self._lock:
                if self._closed or len(self._all) >= count:
                    return
                try:
                    worker = Worker()
                except OSError:  # compiled without
                    return
                self._all.add(worker)
                self._idle.insert(0, worker)

    def give(self, worker: Worker) -> None:
        with self._lock:
            if worker in self._all:
                self._idle.append(worker)
                return
        worker.close()  # the pool was closed meanwhile

    def end(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            workers, idle = self._all, self._idle
            self._all, self._idle = set(), []
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()
        for worker in idle:
            worker.close()

    def _forget(self) -> None:
        self._lock, self._idle, self._all = Lock(), [], set()


POOL: Final = Pool()


def workers_of(cores: int) -> int:
    """How many workers so many cores have, beside a thread of this process for each fourth core.

    Threads wait for Python's lock: 27 kernels took 15 to 20 s in 4 threads, and 8 to 10 in one
    and 3 workers. On two cores both take the same.
    """
    return 0 if cores <= 2 else min(MOST_WORKERS, cores - threads_beside(cores))


def threads_beside(cores: int) -> int:
    """How many threads of this process compile beside workers."""
    return max(1, min(MOST_THREADS_BESIDE, cores // 4))


def start_workers(equations: int, runs: bool = False) -> None:
    """Start the workers that a program of so many equations will have work for, and do not wait.

    One that runs here is hardly the last of its process.
    """
    wanted = equations // EQUATIONS_OF_WORKER if equations >= MANY_EQUATIONS else 0
    count = min(workers_of(len(os.sched_getaffinity(0))), max(wanted, FIRST_WORKERS * runs))
    if count > 0:
        Thread(target=POOL.start, args=(count,), daemon=True).start()
