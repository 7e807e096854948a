"""Kernels are compiled side by side, in threads of this process and in worker processes.

Triton holds Python's lock for a sixth of its time, and a worker takes 0.6 s to start. On 16 cores
(kernels of a transformer's gradient, in seconds):

    kernels                      26    52    104
    8 threads                    1.4   2.7   6.2
    4 threads and 12 workers     1.7   2.1   3.4
    the same, already there      0.6   0.9   2.1

On two cores threads and processes take the same. So workers are started for many kernels, while
threads compile already, and both take from one queue; those that are there are used for few, too.
They stay for later programs, and end with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Condition, Lock, Thread
from typing import Final

from functrans.core.errors import BackendError
from functrans.lowering.progress import INTERVAL, Progress
from functrans.lowering.triton.machine.compile import SharedMemoryExceeded, compile_unit
from functrans.lowering.triton.machine.unit import Binary, KernelError, Unit
from functrans.lowering.triton.machine.worker import (
    COMPILED,
    TOO_LARGE,
    read_message,
    write_message,
)

__all__ = ["Pool", "compile_all"]

MANY: Final = 40
"""So many kernels are worth the start of workers."""
MOST_WORKERS: Final = 12  # of 200 MB each
MOST_THREADS, THREADS_BESIDE_WORKERS = 8, 4
WORKER: Final = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


class WorkerDied(Exception):
    """A worker is gone."""


class Worker:
    """A process that compiles what it is sent, one unit at a time."""

    def __init__(self) -> None:
        code = WORKER.format(path=sys.path, module=f"{__package__}.worker")
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
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


_pool = Pool()


def compile_all(units: Sequence[Unit], done: Callable[[int, Binary], None],
                pool: Pool = _pool, split: tuple[int, int] | None = None) -> None:
    """Compile all, in any order; `done` is told of each by its number, one at a time.

    `split` is how many threads and workers do, which is decided here otherwise. Raises KernelError
    for the first that cannot be compiled.
    """
    num_threads, num_workers = split or split_work(len(units), len(os.sched_getaffinity(0)),
                                                   pool.idle)
    _CompileQueue(units, done, pool).run(num_threads, num_workers)


def split_work(count: int, cores: int, idle: int) -> tuple[int, int]:
    """How many threads and workers compile so many kernels where `idle` workers wait."""
    most = cores - THREADS_BESIDE_WORKERS if count >= MANY else idle
    num_workers = max(0, min(most, cores - 1, count // 3, MOST_WORKERS))
    threads = THREADS_BESIDE_WORKERS if num_workers else MOST_THREADS
    return max(1, min(cores - num_workers, count, threads)), num_workers


def _compile_here(unit: Unit) -> Binary:
    try:
        return compile_unit(unit)
    except Exception as error:
        raise KernelError(unit, str(error), isinstance(error, SharedMemoryExceeded)) from error


class _CompileQueue:
    """Units that threads take from one queue."""

    def __init__(self, units: Sequence[Unit], done: Callable[[int, Binary], None],
                 pool: Pool) -> None:
        self.units, self.done, self.pool = units, done, pool
        # the longest first: products, attention, and then by their length
        self.queue = sorted(range(len(units)), key=lambda k: (units[k].fuses, len(units[k].source)))
        self.left = len(units)
        self.busy: set[Worker] = set()
        self.error: BaseException | None = None
        self.changed = Condition()

    def run(self, num_threads: int, num_workers: int) -> None:
        threads = [Thread(target=self._guarded,
                          args=(self._compile_in_thread,)) for _ in range(num_threads)]
        others = [Thread(target=self._guarded, args=(self._compile_in_worker,), daemon=True)
                  for _ in range(num_workers)]
        try:
            for thread in (*others, *threads):
                thread.start()
            with Progress() as progress, self.changed:
                while self.left and self.error is None:
                    done = len(self.units) - self.left
                    progress.show(f"compiling {done + 1} of {len(self.units)} kernels")
                    self.changed.wait(INTERVAL)
        except BaseException:  # Ctrl-C
            with self.changed:
                for worker in self.busy:
                    worker.kill()
            raise
        finally:  # no thread is within Triton when the process ends
            with self.changed:
                self.queue.clear()
                self.left = 0
                self.changed.notify_all()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if self.error is not None:
            raise self.error

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            with self.changed:
                self.error = self.error or error
                self.changed.notify_all()

    def _compile_in_thread(self) -> None:
        """Compiles while there is something left: what a worker leaves undone, too."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.queue or not self.left or self.error)
                if not self.queue or self.error:
                    return
                k = self.queue.pop()
            self._finish(k, _compile_here(self.units[k]))

    def _compile_in_worker(self) -> None:
        try:
            worker = self.pool.take()
        except WorkerDied:
            return
        k = None
        try:
            worker.wait_until_ready()
            while (k := self._next(worker)) is not None:
                self._finish(k, worker.compile(self.units[k]))
        except WorkerDied:
            self.pool.end(worker)
            self._requeue(k)
        except BackendError:  # of the kernel: the worker goes on
            self.pool.give(worker)
            raise
        else:
            self.pool.give(worker)
        finally:
            with self.changed:
                self.busy.discard(worker)

    def _next(self, worker: Worker) -> int | None:
        with self.changed:
            if not self.queue or self.error:
                return None
            self.busy.add(worker)
            return self.queue.pop()

    def _requeue(self, k: int | None) -> None:
        """What a worker did not finish is compiled by a thread."""
        with self.changed:
            if k is not None and self.left:
                self.queue.append(k)
                self.changed.notify_all()

    def _finish(self, k: int, binary: Binary) -> None:
        with self.changed:
            if self.left:
                self.done(k, binary)
                self.left -= 1
                self.changed.notify_all()
