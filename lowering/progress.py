"""A line on stderr for what takes long: rewritten in place on a terminal, cleared in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, TextIO

from functrans.core import config

__all__ = ["Progress", "watched"]

ON_GPU_AFTER: Final = 2.0
"""Seconds; kernels for GPUs that take one are nothing to wait for."""
AFTER: Final = 1.0
IN_FILE_AFTER: Final = 10.0
"""Who reads a file later sees one line for what took this long."""
INTERVAL: Final = 0.25
"""Seconds after which to show it again."""
CLEAR: Final = "\r\x1b[K"


class Progress:
    """A context in which `show` tells what is being done, once it has taken long enough.

    Only a terminal can take a line back. A notebook, and whatever else is no terminal, gets one
    plain line: interactive sessions as early as a terminal, others where it takes very long.
    """

    def __init__(self, after: float = ON_GPU_AFTER, stream: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream  # pythonw has none
        self._is_terminal = self._stream is not None and is_terminal(self._stream)
        self._after = after if self._is_terminal or is_interactive() else IN_FILE_AFTER
        self._silent = self._stream is None or not config.current().progress
        self._clock = clock
        self._begin = clock()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown and self._is_terminal:
            self._write(CLEAR)

    def show(self, doing: str) -> None:
        if self._silent or (self._shown and not self._is_terminal):
            return
        seconds = self._clock() - self._begin
        if seconds >= self._after:
            self._shown = True
            line = f"functrans: {doing}, {seconds:.0f} s"
            self._write(CLEAR + line if self._is_terminal else line + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed by whoever redirected it
            self._silent = True


class Watch:
    """What is under way, in words, for whoever shows it."""

    def __init__(self, doing: str) -> None:
        self.doing = doing


@contextmanager
def watched(doing: str) -> Iterator[Watch]:
    """A block that a thread tells of once it takes longer than AFTER; the thread costs 0.1 ms.

    The block may change `doing`, and need not come back to say that it still runs.
    """
    watch, over = Watch(doing), Event()
    with Progress(AFTER) as progress:

        def tell() -> None:
            wait = AFTER
            while not over.wait(wait):
                progress.show(watch.doing)
                wait = INTERVAL

        thread = Thread(target=tell, name="functrans progress", daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            over.set()
            thread.join()


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def is_interactive() -> bool:
    """Whether somebody waits for each line: at a prompt of Python, or in a notebook."""
    return "ps1" in vars(sys)
