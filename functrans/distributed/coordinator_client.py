"""What one of several processes tells the coordinator of itself, and hears of the others."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final

from functrans import _runtime
from functrans.core.errors import CollectiveError
from functrans.core.source import is_internal, user_source

__all__ = ["CoordinatorClient"]

BEAT: Final = 0.5
_LIBRARY: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_KINDS: Final = ("a barrier", "all_gather", "all_to_all", "ppermute", "a broadcast", "psum",
                 "psum_scatter")
"""How csrc/mpi_communicator.cpp numbers what a process waits in."""
_COMPILING: Final = frozenset(("stage", "compile", "compile_for", "compile_for_mesh", "partition",
                               "compile_for_sizes"))
"""Functions of the package within which a process is slow and not lost."""


class CoordinatorClient:
    """The connection to the coordinator, and a thread that hears and tells."""

    def __init__(self, address: tuple[str, int], rank: int, count: int, seconds: float,
                 heartbeat_timeout: float) -> None:
        self.rank = rank
        self.failure = ""
        self.on_failure: list[Callable[[], None]] = [_runtime.mpi_abort]
        """Called once, in the watching thread, when a process failed."""
        self._heartbeat = heartbeat_timeout
        self._program, self._run = "no program", 0
        self._waits_in = ""
        self._asked_since = 0.0
        self._results: dict[str, list[str]] = {}
        self._keys: dict[tuple[int, ...], int] = {}
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._main = threading.main_thread().ident
        self._hook = sys.excepthook
        self._ended = ""
        self._leaving = self._left = False
        self._sock = _connected(address, seconds)
        self._first = (f"process 0 (coordinator at {address[0]}:{address[1]})")
        self._tell({"hello": rank, "pid": os.getpid(), "host": socket.gethostname()})
        self._thread = threading.Thread(target=self._listen, name="functrans watch", daemon=True)
        self._thread.start()
        # a child that outlived this process would keep the connection open
        os.register_at_fork(after_in_child=self._sock.close)
        sys.excepthook = self._uncaught

    # --- what this process does

    def begin(self, program: str) -> None:
        """A program of several processes begins."""
        self._program = program
        self._run += 1

    def raised(self, error: BaseException) -> None:
        """The program that runs raised, here alone perhaps."""
        self._tell({"raised": _words(error), "run": self._run})

    def wait_for_end(self, count: int) -> None:
        """Return once all processes are at their end; raises CollectiveError where one failed."""
        self._leaving = True
        self._program = "its program"
        self.all_gather(b"", range(count), "the end")

    def end(self) -> None:
        """Take leave."""
        self._left = True
        self._tell({"ended": self._ended})
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook

    def wait_for_others(self, seconds: float) -> None:
        """Wait until the coordinator is over, which it is when all have taken their leave."""
        self._thread.join(seconds)

    @property
    def is_ending(self) -> bool:
        """Whether the process ends by an exception."""
        return bool(self._ended)

    def check(self) -> None:
        """Raise CollectiveError where a process failed."""
        if self.failure:
            raise self.error()

    def error(self) -> CollectiveError:
        """What to raise where a collective did not come about."""
        end = time.monotonic() + 5.0
        while not self.failure and time.monotonic() < end:
            time.sleep(0.01)  # the library noticed before the coordinator told
        code = _runtime.mpi_state()[3]
        what = self.failure or f"a collective failed with the error {code} of MPI."
        return CollectiveError(
            what, where=user_source(),
            why="the processes of a program run it together, and this one cannot go on alone.",
            fix="start all of them anew, from the last checkpoint; "
                "initialize(collective_timeout_seconds=...) where one may take longer")

    # --- small messages

    def all_gather(self, value: bytes, ranks: Sequence[int], what: str) -> list[bytes]:
        """The bytes that each of some processes gave, in their order."""
        self.check()
        place = tuple(ranks)
        if place == (self.rank,):
            return [value]
        self._keys[place] = number = self._keys.get(place, 0) + 1
        key = f"{','.join(map(str, place))}:{number}"
        self._waits_in = what
        self._asked_since = time.monotonic()
        self._tell({"put": base64.b64encode(value).decode(), "key": key, "ranks": list(place)})
        with self._news:
            self._news.wait_for(lambda: key in self._results or self.failure)
        self._asked_since = 0.0
        if key not in self._results:
            raise self.error()
        return [base64.b64decode(v) for v in self._results.pop(key)]

    # --- the thread

    def _listen(self) -> None:
        unread = b""
        heard = told = time.monotonic()
        self._sock.settimeout(BEAT / 2)
        while True:
            try:
                data = self._sock.recv(1 << 20)
                if not data:
                    break
                unread += data
                heard = time.monotonic()
            except TimeoutError:
                pass
            except OSError:
                break
            *lines, unread = unread.split(b"\n")
            for line in lines:
                self._take(json.loads(line))
            now = time.monotonic()
            if now - told >= BEAT:
                told = now
                self._tell({"state": self._state()})
            if now - heard > self._heartbeat:
                self._fail(f"{self._first} was not heard of for {now - heard:.0f} s: it was "
                           "stopped, or its host is gone.")
        if self.failure and not self._left:
            # the others are over, and this one did not come to hear why
            print(f"functrans: {self.failure}", file=sys.stderr, flush=True)
            os._exit(1)
        if not self._left:
            self._fail(f"{self._first} died: its connection was closed without a word.")

    def _take(self, message: dict[str, Any]) -> None:
        if "failed" in message:
            self._fail(message["failed"])
        elif "welcome" in message:
            _, host, pid = message["welcome"]
            self._first = f"process 0 (pid {pid} on {host})" if pid else self._first
        elif "all" in message:
            with self._news:
                self._results[message["key"]] = message["all"]
                self._news.notify_all()

    def _fail(self, what: str) -> None:
        if self.failure:
            return
        with self._news:
            self.failure = what
            self._news.notify_all()
        for stop in self.on_failure:
            stop()

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            with self._sending:
                self._sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the listening thread finds out

    def _state(self) -> dict[str, Any]:
        waited, calls, kind, _ = _runtime.mpi_state()
        waits_in = _KINDS[kind]
        if self._asked_since:
            waited, waits_in = time.monotonic() - self._asked_since, self._waits_in
        frame = sys._current_frames().get(self._main or 0)
        place, compiling = _place(frame)
        return {"program": self._program, "run": self._run, "calls": calls,
                "waited": waited, "waits_in": waits_in, "place": place,
                "compiling": compiling, "leaving": self._leaving}

    def _uncaught(self, kind: type[BaseException], error: BaseException,
                  trace: TracebackType | None) -> None:
        self._ended = _words(error)
        self._hook(kind, error, trace)
        sys.stderr.flush()


def _connected(address: tuple[str, int], seconds: float) -> socket.socket:
    """A connection to the coordinator, which may come up later than this process."""
    end = time.monotonic() + seconds
    while True:
        try:
            sock = socket.create_connection(address, timeout=min(10.0, seconds))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError(f"{address[0]}:{address[1]}: {error}") from None
            time.sleep(0.05)


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


def _place(frame: FrameType | None) -> tuple[str, bool]:
    """Where a thread is in the user's code, in words, and whether the package compiles there."""
    compiling = False
    while frame is not None:
        code = frame.f_code
        if is_internal(code.co_filename):
            compiling = compiling or code.co_name in _COMPILING
        elif "site-packages" in code.co_filename \
                or not code.co_filename.startswith((*_LIBRARY, "<frozen")):
            name = os.path.basename(code.co_filename)
            return f"at {name}:{frame.f_lineno} in {code.co_name}", compiling
        frame = frame.f_back
    return "at its end", compiling
