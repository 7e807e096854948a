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

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import ArgumentError, LeakedTracerError
from functrans.core.source import user_source
from functrans.core.trace import Trace, Tracer, get_trace

__all__ = ["CellScope", "FrameKind", "RefArray", "RefCell", "TokenCell", "cells_in_use", "framed",
           "has_tokens", "is_lifted", "lifting", "own_cells", "run_scoped", "touched_by",
           "written_outside"]

R = TypeVar("R")


class FrameKind(Enum):
    """What a frame does with cells from outside of it."""

    PROGRAM = "is kept: what it reads is an argument, and what it writes a result"
    BODY = "is run by a loop or a branch: what it writes is carried"
    SEALED = "is written down for others: it may read"
    RULE = "is given some cells by their values, and sees all others as they are"


class _Frame:
    """A staged function that runs, and what is now in the cells that are arguments of it."""

    __slots__ = ("kind", "name", "owner", "trace", "values")

    def __init__(self, kind: FrameKind, owner: object, name: str,
                 values: dict[RefCell, Any]) -> None:
        self.kind, self.owner, self.name, self.values = kind, owner, name, values
        self.trace = get_trace()


class CellScope:
    """A run of a function in a trace that ends before its derivative is computed.

    A cell that is made in it ends with it. What backward rules find in such a cell is what is there
    in the end: `end(tokens, results)` gives the results, with which the backward part begins.
    """

    __slots__ = ("end", "tokens", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.tokens: list[TokenCell] = []
        self.end: Callable[[Sequence[TokenCell], Sequence[Any]], Sequence[Any]] | None = None

    def __enter__(self) -> CellScope:
        _frames.scopes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _frames.scopes.pop()

    def ended(self, outs: Sequence[Any]) -> Sequence[Any]:
        """The results of the function that runs, through the end of the cells it made."""
        return outs if self.end is None else self.trace.run(self.end, self.tokens, outs)


class _Frames(threading.local):
    """The frames of a thread, from the outermost, and whether there has been a cell at all."""

    any_cell = False

    def __init__(self) -> None:
        self.running: list[_Frame] = []
        self.lifted: list[object] = []
        self.scopes: list[CellScope] = []


_frames = _Frames()


def cells_in_use() -> bool:
    """Whether functions may touch cells: there are none until a user makes one."""
    return _frames.any_cell


class _Touched(BaseException):
    """Raised through the user's function that is staged, which is staged again then."""

    def __init__(self, cell: RefCell, owner: object) -> None:
        super().__init__()
        self.cell, self.owner = cell, owner


class RefArray(ShapedArray):
    """The type of a cell: that of what is in it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RefArray) and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((RefArray, super().__hash__()))

    def __str__(self) -> str:
        return f"Ref{{{super().__str__()}}}"


class RefCell:
    """A value that may be replaced by another of its type."""

    __slots__ = ("_frame", "_trace", "_value", "scope", "token")

    def __init__(self, value: Any) -> None:
        _Frames.any_cell = True
        self._value = value
        self._trace: Trace | None = get_trace()
        self._frame = _frames.running[-1] if _frames.running else None
        self.scope = _frames.scopes[-1] if _frames.scopes else None
        # what backward rules that write into the cell are ordered by, when there is one
        self.token: TokenCell | None = None

    @property
    def value(self) -> Any:
        """What is in the cell now."""
        return self._read(touch=True)

    @value.setter
    def value(self, new: Any) -> None:
        for frame in reversed(_frames.running):
            if frame is self._frame:
                break
            if not self._is_closed_over(frame):
                frame.values[self] = _kept(new, frame.trace)
                return
        self._value = _kept(new, self._trace)

    def _is_closed_over(self, frame: _Frame) -> bool:
        """Whether a function that writes the cell leaves that to those around it."""
        if self in frame.values:
            return False
        if frame.kind is FrameKind.SEALED:
            raise ArgumentError(
                f"{frame.name} writes into a reference from outside of it.", where=user_source(),
                why="it is written down, to be run later or more than once, and a program is pure.",
                fix="make the reference inside, give it as an argument, or return the value")
        if frame.kind is not FrameKind.RULE:
            raise _Touched(self, frame.owner)
        return True

    @property
    def home(self) -> Trace | None:
        """The trace that the cell was made in."""
        return self._trace

    @property
    def left(self) -> Any:
        """What is in the cell where it was made, whatever runs there now."""
        return self._value

    @property
    def type(self) -> RefArray:
        """The type of the cell."""
        aval = get_aval(self.shown)
        return RefArray(aval.shape, aval.dtype)

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


class TokenCell(RefCell):
    """Zeros in the place of a cell, which go through the calls whose backward rules write into it.

    The cotangent of a token is what is in the cell: the backward part begins with its value, each
    rule takes and gives it on, and what comes out at the first call is in the cell afterwards.
    A `grad` has a token of its own for each cell (`Trace.has_tokens`). Elsewhere it is a cell as
    others are: programs, loops and branches have it as an argument and a result. The token of a
    cell that ends with a scope has a value, and the backward part begins where the scope ends.
    """

    __slots__ = ("of",)

    def __init__(self, of: RefCell, value: Any = None) -> None:
        super().__init__(value)
        self.of = of
        self._trace, self._frame, self.scope = of._trace, of._frame, of.scope

    @property
    def aval(self) -> ShapedArray:
        """Its type, which has cotangents: integers are float64."""
        cell = self.of.type
        if dtypes.kind(cell.dtype) in "fc":
            return ShapedArray(cell.shape, cell.dtype)
        if cell.dtype.itemsize > 4 or cell.dtype in dtypes.KEY_DTYPES:
            raise ArgumentError(
                f"a backward rule is given a reference to {cell.dtype}.", where=user_source(),
                why="its states are carried as float64, which does not hold all of these.",
                fix='a reference to "int32" or floats')
        return ShapedArray(cell.shape, np.dtype(np.float64))

    @property
    def value(self) -> Any:
        """The token of the innermost trace that has one."""
        trace = get_trace()
        for frame in reversed(_frames.running):
            if (home := _with_tokens(trace, frame.trace, self._trace)) is not None:
                return home.token(self)
            if frame is self._frame:
                break
            if self in frame.values:
                return frame.values[self]
            if frame.kind is FrameKind.PROGRAM:
                raise _Touched(self, frame.owner)
            trace = frame.trace
        home = _with_tokens(trace, None, self._trace)
        if home is not None:
            return home.token(self)
        return np.zeros(self.aval.shape, self.aval.dtype) if self._value is None else self._value

    @value.setter
    def value(self, new: Any) -> None:
        trace = get_trace()
        for frame in reversed(_frames.running):
            if (home := _with_tokens(trace, frame.trace, self._trace)) is not None:
                home.set_token(self, _kept(new, home))
                return
            if frame is self._frame:
                break
            if not self._is_closed_over(frame):
                frame.values[self] = _kept(new, frame.trace)
                return
            trace = frame.trace
        home = _with_tokens(trace, None, self._trace)
        if home is not None:
            home.set_token(self, _kept(new, home))
        elif self._value is not None:
            self._value = _kept(new, self._trace)


def _with_tokens(trace: Trace | None, end: Trace | None = None,
                 own: Trace | None = None) -> Trace | None:
    """The innermost trace with tokens from `trace` on: before `end`, and not after `own`, in which
    the cell was made."""
    while trace is not None and trace is not end:
        if trace.has_tokens:
            return trace
        if trace is own:
            break
        trace = trace.parent
    return None


def has_tokens(trace: Trace | None) -> bool:
    """Whether a trace, or one around it, has tokens of its own."""
    return _with_tokens(trace) is not None


def own_cells(kinds: Sequence[tuple[type[RefCell], int | None]], values: Sequence[Any]
              ) -> list[RefCell]:
    """New cells within a function that is given the values of others.

    Each is of a class; that of a token comes with the place of its cell among the new ones.
    """
    own: list[RefCell] = []
    for (of, place), value in zip(kinds, values, strict=True):
        if place is None:
            own.append(of(value))
        else:
            token = own[place].token = TokenCell(own[place], value)
            own.append(token)
    return own


def run_scoped(trace: Trace, fun: Callable[..., Sequence[Any]], args: Sequence[Any]
               ) -> Sequence[Any]:
    """`fun(*args)` in a trace, with an end for the cells that are made meanwhile."""
    with CellScope(trace) as scope:
        return scope.ended(trace.run(fun, *args))


def _kept(value: Any, trace: Trace | None) -> Any:
    """The value, if it lives as long as a trace does."""
    if not isinstance(value, Tracer):
        return value
    while trace is not None:
        if trace.keeps(value._trace):
            return value
        trace = trace.parent
    raise written_outside(value._trace)


def written_outside(trace: Trace) -> LeakedTracerError:
    """The error for a value of a trace that is written into a cell from outside of it."""
    return LeakedTracerError(
        f"a value of {trace.describe()}, is written into a reference from outside of it.",
        where=user_source(), why="it would stay there when the transform has ended.",
        fix="give the reference to the transformed function as an argument (of grad: one of "
            "argnums), or make it inside; "
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
