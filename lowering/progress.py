"""A line for what takes long, rewritten and cleared in the end: on stderr, or in a notebook."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, TextIO

from functrans.core import config
from functrans.core.frontends import notebook_display

__all__ = ["NotebookLine", "Progress", "watched"]

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

    Terminals and notebooks take a line back; in a notebook it is an output of its cell, and no
    message of errors. Whatever else gets one plain line: interactive sessions as early as a
    terminal, others where it takes very long.
    """

    def __init__(self, after: float = ON_GPU_AFTER, stream: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._display: Any = notebook_display() if stream is None else None
        self._handle: Any = None
        self._stream = sys.stderr if stream is None else stream  # pythonw has none
        self._is_terminal = self._stream is not None and is_terminal(self._stream)
        self._after = after if self._is_terminal or is_interactive() or self._display is not None \
            else IN_FILE_AFTER
        self._silent = (self._stream is None and self._display is None) \
            or not config.current().progress
        self._clock = clock
        self._begin = clock()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            self._handle.update(NotebookLine(""))
        elif self._shown and self._is_terminal:
            self._write(CLEAR)

    def show(self, doing: str) -> None:
        if self._silent or (self._shown and not self._is_terminal and self._display is None):
            return
        seconds = self._clock() - self._begin
        if seconds >= self._after:
            self._shown = True
            line = f"functrans: {doing}, {seconds:.0f} s"
            if self._display is not None:
                self._show_in_notebook(NotebookLine(line))
                return
            self._write(CLEAR + fitted(line, columns_of(self._stream)) if self._is_terminal
                        else line + "\n")

    def _show_in_notebook(self, line: NotebookLine) -> None:
        if self._handle is None:
            self._handle = self._display.display(line, display_id=True)
        else:
            self._handle.update(line)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed by whoever redirected it
            self._silent = True


class NotebookLine:
    """A line of progress as an output of a cell; an empty one takes it back."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415  (3 ms)
        return f'<span style="opacity:.7">{escape(self._text)}</span>' if self._text else ""


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


def columns_of(stream: TextIO) -> int:
    """The width of a terminal; 80 where it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def fitted(line: str, columns: int) -> str:
    """A line that does not wrap, with the time at its end: what wraps is not taken back whole."""
    if len(line) < columns:
        return line
    text, comma, seconds = line.rpartition(",")
    return f"{text[:max(columns - len(seconds) - 5, 0)]}...{comma}{seconds}"[:columns - 1]


def is_interactive() -> bool:
    """Whether somebody waits for each line: at a prompt of Python, or in a notebook."""
    return "ps1" in vars(sys)
