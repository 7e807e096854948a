"""A line on stderr for what takes long: rewritten in place on a terminal, cleared in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from functrans.core import config

__all__ = ["Progress"]

ON_TERMINAL_AFTER: Final = 2.0
"""Seconds; who sees a file sees one line after SAID_AFTER."""
SAID_AFTER: Final = 10.0
CLEAR: Final = "\r\x1b[K"


class Progress:
    """A context in which `show` tells how far it is, once it has taken long enough."""

    interval: Final = 0.25
    """Seconds after which to show it again."""

    def __init__(self, verb: str, noun: str, total: int, stream: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.verb, self.noun, self.total = verb, noun, total
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._begin = clock()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown and self._is_terminal:
            self._write(CLEAR)

    @property
    def _is_terminal(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def show(self, done: int) -> None:
        if not config.current().progress or self._stream is None:  # pythonw has no stderr
            return
        seconds = self._clock() - self._begin
        line = (f"functrans: {self.verb} {min(done + 1, self.total)} of {self.total} {self.noun}, "
                f"{seconds:.0f} s")
        if self._is_terminal:
            if seconds >= ON_TERMINAL_AFTER:
                self._shown = True
                self._write(CLEAR + line)
        elif seconds >= SAID_AFTER and not self._shown:
            self._shown = True
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed by whoever redirected it
            self._shown = True
