"""Where in the user's code an operation was asked for.

Capturing is on the tracing hot path: it keeps a code object and an instruction offset and finds
the line only when someone asks.
"""

from __future__ import annotations

import linecache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from functrans import _runtime

GENERATED = "<functrans>"
"""The file name of Python code that the package generates."""

_PACKAGE = Path(__file__).resolve().parent.parent
_runtime.set_internal_prefixes([
    GENERATED, f"{_PACKAGE}/", f"{_PACKAGE.parent / 'primitives'}/",
    f"{_PACKAGE.parent / 'lowering'}/"])


class Source(NamedTuple):
    """A place in the user's code."""

    code: CodeType
    offset: int
    scope: str = ""

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def line(self) -> int:
        positions = list(self.code.co_positions())
        index = min(max(self.offset // 2, 0), len(positions) - 1)
        return positions[index][0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}, in {self.function}"


def user_source(scope: str = "") -> Source | None:
    """The innermost place outside the package, or None when there is none."""
    frames = _runtime.user_frames(1)
    return Source(*frames[0], scope) if frames else None


def describe_source(source: Source | None) -> str:
    """`at file.py:12 (y = x + z)`, inside a sentence; empty when unknown."""
    if source is None:
        return ""
    return f"at {source.filename}:{source.line} ({source.text})"
