"""Cells that may be written into, and functions of what is in them.

A program is pure. A function that is staged (the body of a loop, a branch, a jitted function) has a
frame while it runs; where it touches a cell from outside of it, it is staged again with the value
of that cell as a further argument and a further result, which the cell has afterwards. What runs at
once, under `grad` or `vmap` say, reads and writes cells themselves; a value of such a transform
would outlive it in a cell from outside, and is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from functrans.core.errors import ArgumentError, LeakedTracerError
from functrans.core.source import user_source
from functrans.core.trace import Trace, Tracer, get_trace

__all__ = ["FrameKind", "RefCell", "cells_in_use", "framed", "is_lifted", "lifting", "touched_by"]

R = TypeVar("R")


class FrameKind(Enum):
    """What a frame does with cells from outside of it."""

    PROGRAM = "is kept: what it reads is an argument, and what it writes a result"
    BODY = "is run by a loop or a branch: what it writes is carried"
    SEALED = "is written down for others: it may read"


class _Frame:
    """A staged function that runs, and what is now in the cells that are arguments of it."""

    __slots__ = ("kind", "name", "owner", "trace", "values")

    def __init__(self, kind: FrameKind, owner: object, name: str,
                 values: dict[RefCell, Any]) -> None:
        self.kind, self.owner, self.name, self.values = kind, owner, name, values
        self.trace = get_trace()


class _Frames(threading.local):
    """The frames of a thread, from the outermost, and whether there has been a cell at all."""

    any_cell = False

    def __init__(self) -> None:
        self.running: list[_Frame] = []
        self.lifted: list[object] = []


_frames = _Frames()


def cells_in_use() -> bool:
    """Whether functions may touch cells: there are none until a user makes one."""
    return _frames.any_cell


class _Touched(BaseException):
    """Raised through the user's function that is staged, which is staged again then."""

    def __init__(self, cell: RefCell, owner: object) -> None:
        super().__init__()
        self.cell, self.owner = cell, owner


class RefCell:
    """A value that may be replaced by another of its type."""

    __slots__ = ("_frame", "_trace", "_value")

    def __init__(self, value: Any) -> None:
        _Frames.any_cell = True
        self._value = value
        self._trace = get_trace()
        self._frame = _frames.running[-1] if _frames.running else None

    @property
    def value(self) -> Any:
        """What is in the cell now."""
        return self._read(touch=True)

    @value.setter
    def value(self, new: Any) -> None:
        frame = _frames.running[-1] if _frames.running else None
        if frame is self._frame or frame is None:
            self._value = _kept(new, self._trace)
        elif frame.kind is not FrameKind.SEALED:
            if self not in frame.values:
                raise _Touched(self, frame.owner)
            frame.values[self] = _kept(new, frame.trace)
        else:
            raise ArgumentError(
                f"{frame.name} writes into a reference from outside of it.", where=user_source(),
                why="it is written down, to be run later or more than once, and a program is pure.",
                fix="make the reference inside, or return the value")

    @property
    def shown(self) -> Any:
        """The same for messages, which are no part of a program."""
        return self._read(touch=False)

    def _read(self, touch: bool) -> Any:
        for frame in reversed(_frames.running):
            if frame is self._frame:
                break
            if self in frame.values:
                return frame.values[self]
            if touch and frame.kind is FrameKind.PROGRAM:
                raise _Touched(self, frame.owner)
        return self._value


def _kept(value: Any, trace: Trace | None) -> Any:
    """The value, if it lives as long as a trace does."""
    if not isinstance(value, Tracer):
        return value
    while trace is not None:
        if value._trace is trace:
            return value
        trace = trace.parent
    raise LeakedTracerError(
        f"a value of {value._trace.describe()}, is written into a reference from outside of it.",
        where=user_source(), why="it would stay there when the transform has ended.",
        fix="give the reference to the transformed function as an argument, or make it inside; "
            "lax.stop_gradient(x) of what is not to be differentiated")


@contextmanager
def framed(kind: FrameKind, owner: object, name: str, cells: Sequence[RefCell] = (),
           values: Sequence[Any] = ()) -> Iterator[Callable[[], list[Any]]]:
    """Run a staged function for which the values of `cells` are arguments; gives their last ones.
    """
    frame = _Frame(kind, owner, name, dict(zip(cells, values, strict=True)))
    _frames.running.append(frame)
    try:
        yield lambda: [frame.values[c] for c in cells]
    finally:
        _frames.running.remove(frame)


def is_lifted(owner: object) -> bool:
    """Whether `touched_by` waits for what functions of `owner` touch."""
    return owner in _frames.lifted


def touched_by(owner: object, run: Callable[[], R]) -> tuple[RefCell | None, R | None]:
    """The first cell that functions of `owner` touch while `run()` stages them, or its result."""
    _frames.lifted.append(owner)
    try:
        return None, run()
    except _Touched as touched:
        if touched.owner is not owner:
            raise
        return touched.cell, None
    finally:
        _frames.lifted.remove(owner)


def lifting(run: Callable[[object, tuple[Any, ...]], R]) -> R:
    """`run(owner, cells)` with the cells that the functions of `owner` touch, found by running."""
    owner, cells = object(), list[RefCell]()
    while True:
        try:
            return run(owner, tuple(cells))
        except _Touched as touched:
            if touched.owner is not owner:
                raise
            cells.append(touched.cell)
