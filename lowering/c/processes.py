"""Child processes of the compiler: started without fork, and gone when the compilation is left.

`os.posix_spawn` starts /bin/true in 0.75 ms in a process of 2 GB (fork: 9.9 ms) and needs no
`subprocess`, whose import takes 3.3 ms of the first result of a fresh process.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["Children"]


class Children:
    """Processes that are killed, with all that they started, at the end of a `with` block.

    Each leads a process group: Ctrl-C in a terminal reaches this process alone, which then kills
    the group of a compiler driver and so the passes that the driver runs.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._running: set[int] = set()

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        for pid in self._running:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self._running:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        self._running.clear()

    def start(self, command: Sequence[str], errors: Path, stdin: int | None = None,
              stdout: int | None = None) -> int:
        """Start a command whose first word is a path; its stderr is appended to a file.

        Raises OSError where it cannot be started.
        """
        appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin is None
            else (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0) if stdout is None
            else (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(errors), appended, 0o600),
        ]
        # a Ctrl-C between the start and the note of it would leave a process that nobody ends
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            pid = os.posix_spawn(command[0], list(command), self._environment,
                                 file_actions=actions, setpgroup=0, setsigmask=before,
                                 setsigdef=[signal.SIGINT, signal.SIGPIPE])
            self._running.add(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def wait(self, pid: int) -> int:
        """The exit status of a process, negative where a signal ended it."""
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # somebody else waits for all children: the files will tell
            status = 0
        self._running.discard(pid)
        return status

    def run(self, command: Sequence[str], errors: Path, stdout: int | None = None) -> int:
        return self.wait(self.start(command, errors, stdout=stdout))
