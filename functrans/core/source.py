"""Where in the user's code an operation was asked for.

Capturing is on the tracing hot path: it keeps a code object and an instruction offset and finds
the line only when someone asks.
"""

from __future__ import annotations

import linecache
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, TracebackType
from typing import NamedTuple

import numpy as np
import optree

from functrans import _runtime

GENERATED = "<functrans>"
"""The file name of Python code that the package generates."""

_PACKAGE = Path(__file__).resolve().parent.parent
# In a wheel all is below functrans/; in an editable install two packages lie beside it.
_BESIDE = [] if (_PACKAGE / "primitives").is_dir() else ["primitives", "lowering"]
_LIBRARIES = [np, optree]  # which call back into the package
_INTERNAL = (
    GENERATED, f"{_PACKAGE}/", *(f"{_PACKAGE.parent / name}/" for name in _BESIDE),
    *(f"{Path(str(library.__file__)).parent}/" for library in _LIBRARIES))
_runtime.set_internal_prefixes(_INTERNAL)

_MAX_LINES = 4
_new = tuple.__new__
_user_frames = _runtime.user_frames


def is_internal(filename: str) -> bool:
    """Whether code of that file is the package's, or of a library that calls back into it."""
    return filename.startswith(_INTERNAL)


class Source(NamedTuple):
    """A place in the user's code; `backward` where it is that of the operation which a step of a
    backward pass differentiates.
    """

    code: CodeType
    offset: int
    scope: str = ""
    backward: bool = False

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line of the expression."""
        positions = list(self.code.co_positions())
        first, last, *_ = positions[min(max(self.offset // 2, 0), len(positions) - 1)]
        first = first or self.code.co_firstlineno
        return first, max(first, last or first)

    @property
    def line(self) -> int:
        return self.lines[0]

    @property
    def text(self) -> str:
        """The source of the expression's lines, at most four; empty where there is no file."""
        first, last = self.lines
        shown = [linecache.getline(self.filename, n).rstrip()
                 for n in range(first, min(last, first + _MAX_LINES - 1) + 1)]
        if last - first >= _MAX_LINES:
            shown.append("...")
        return textwrap.dedent("\n".join(shown)).strip()

    @property
    def place(self) -> str:
        """`/path/file.py:12`, or `cell:12` in a notebook."""
        return f"{shown_file(self.filename)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}, in {self.function}"


def user_source(scope: str = "") -> Source | None:
    """The innermost place outside the package, or None when there is none."""
    frames = _user_frames(1)
    # 0.1 us less than Source(...), whose arguments go through Python
    return _new(Source, (*frames[0], scope, False)) if frames else None


class _Interpreted(threading.local):
    """Whose equation an interpreter of a recorded program is at, and whether it runs backwards."""

    source: Source | None = None
    backward: bool = False


interpreted = _Interpreted()


def operation_source(scope: str = "") -> Source | None:
    """The place of the operation that is being applied: of what is recorded, where that was."""
    source = interpreted.source
    if source is None:
        return user_source(scope)
    if interpreted.backward and not source.backward:
        return Source(source.code, source.offset, source.scope, True)
    return source


@contextmanager
def own_lines() -> Iterator[None]:
    """The user's code that runs inside, a custom rule say, is the place of what it does."""
    outer = interpreted.source, interpreted.backward
    interpreted.source, interpreted.backward = None, False
    try:
        yield
    finally:
        interpreted.source, interpreted.backward = outer


def describe_source(source: Source | None) -> str:
    """`at file.py:12 (y = x + z)`, inside a sentence; empty when unknown."""
    if source is None:
        return ""
    text, *more = source.text.splitlines() or [""]
    code = f" ({text}{' ...' if more else ''})" if text else ""
    return f"at {source.place}{code}"


def shown_file(path: str) -> str:
    """What to call a file: those of notebooks' cells have numbers that tell nobody anything."""
    return "cell" if Path(path).parent.name.startswith("ipykernel_") else path


def is_internal_module(name: str) -> bool:
    """Whether a module (by its dotted name) is part of the package, by whatever path it lies."""
    return name == "functrans" or name.startswith("functrans.")


CALLED_LIBRARIES = frozenset({"numpy", "optree", "ml_dtypes", "sympy", "inspect", "contextlib"})
"""Whose frames are ours where the package called them."""


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """The same chain of frames less those of the package; None where nothing is left."""
    kept: list[TracebackType] = []
    inside = False
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        inside = is_internal_module(module) or (
            inside and module.partition(".")[0] in CALLED_LIBRARIES)
        if not inside:
            kept.append(traceback)
        traceback = traceback.tb_next
    chain: TracebackType | None = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain
