"""Kernels are compiled side by side, in threads of this process and in worker processes.

Triton holds Python's lock for a sixth of its time, and a worker takes 0.6 s to start. On 16 cores
(kernels of a transformer's gradient, in seconds):

    kernels                      26    52    104
    8 threads                    1.4   2.7   6.2
    4 threads and 12 workers     1.7   2.1   3.4
    the same, already there      0.6   0.9   2.1

On two cores threads and processes take the same. So workers are started while a program of many
equations is lowered (`workers.py`), or else for many kernels; threads compile already meanwhile,
and both take from one queue. Workers stay for later programs, and end with this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Final

from functrans.core.errors import BackendError
from functrans.lowering.garbage import collector_paused
from functrans.lowering.progress import INTERVAL, Progress
from functrans.lowering.triton.machine.compile import SharedMemoryExceeded, compile_unit
from functrans.lowering.triton.machine.unit import Binary, KernelError, Unit
from functrans.lowering.triton.machine.workers import (
    POOL,
    Pool,
    Worker,
    WorkerDied,
    threads_beside,
    workers_of,
)

__all__ = ["compile_all", "split_work"]

MANY: Final = 40
"""So many kernels are worth the start of workers."""
MOST_THREADS: Final = 8


def compile_all(units: Sequence[Unit], done: Callable[[int, Binary], None],
                pool: Pool = POOL, split: tuple[int, int] | None = None) -> None:
    """Compile all, in any order; `done` is told of each by its number, one at a time.

    `split` is how many threads and workers do, which is decided here otherwise. Raises KernelError
    for the first that cannot be compiled. Triton's trees are cycles, which are garbage only when a
    kernel is done: looking for them took a third of its parser's time beside a large program.
    """
    num_threads, num_workers = split or split_work(len(units), len(os.sched_getaffinity(0)),
                                                   pool.idle, pool.ready)
    with collector_paused():
        _CompileQueue(units, done, pool).run(num_threads, num_workers)


def split_work(count: int, cores: int, idle: int, ready: int | None = None) -> tuple[int, int]:
    """How many threads and workers compile so many kernels where `idle` workers wait.

    Those that are not `ready` will be late for few kernels: threads do not count on them.
    """
    most = workers_of(cores) if count >= MANY else min(idle, workers_of(cores))
    # those that have started are there for one kernel each, others for three
    there = idle if ready is None else ready
    num_workers = max(0, min(most, cores - 1, max(count // 3, min(there, count - 1))))
    has_help = num_workers and (count >= MANY or ready is None or ready >= num_workers)
    threads = threads_beside(cores) if has_help else MOST_THREADS
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
                    progress.show(f"compiling kernel {done + 1} of {len(self.units)} for a GPU; "
                                  "they stay on the disk")
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
