"""One call of a function that writes into its arrays: who may write, and until when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from functrans._runtime import get_trace
from functrans.core.errors import ImmutableArrayError, LeakedTracerError
from functrans.core.source import describe_source, user_source

__all__ = ["AMBIGUOUS", "ARGUMENT", "CAPTURED", "CallScope", "Cell", "current_call"]

ARGUMENT = "argument"
CAPTURED = "captured"
AMBIGUOUS = "ambiguous"


class CallScope:
    """A call: its arrays are mutable while it runs, in the trace in which it was made."""

    __slots__ = ("alive", "name", "outer", "trace")

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.trace = get_trace()
        self.outer: CallScope | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """While it runs, new arrays are its own."""
        self.outer, _running.call = _running.call, self
        try:
            yield
        finally:
            _running.call = self.outer
            self.alive = False


class _Running(threading.local):
    call: CallScope | None = None


_running = _Running()


def current_call() -> CallScope | None:
    """The innermost call that runs in this thread."""
    return _running.call


class Cell:
    """The memory that an array and its views share: a value, which a write replaces.

    `kind` is ARGUMENT, CAPTURED or AMBIGUOUS where nobody may write, else empty. `shadow` is
    NumPy's array of the same memory order, None for row-major order until somebody asks; `known` is
    False where it is not known what order NumPy's array would have.
    """

    __slots__ = ("_value", "call", "kind", "known", "shadow", "source", "trace", "version")

    def __init__(self, value: Any, call: CallScope, kind: str = "", shadow: Any = None,
                 known: bool = True) -> None:
        self._value = value
        self.call = call
        self.kind = kind
        self.shadow = shadow
        self.known = known
        self.trace = get_trace()
        self.version = 0
        self.source = user_source()

    @property
    def value(self) -> Any:
        """The value of now; LeakedTracerError after the call."""
        if not self.call.alive:
            made = describe_source(self.source)
            raise LeakedTracerError(
                f"an array that numpy_code({self.call.name}) made{made and ' '}{made} is used "
                "after the call.", where=user_source(),
                why="arrays are mutable inside of the call only; those that it returns are plain.",
                fix="return the array, or keep a plain one of it outside: the result")
        return self._value

    def check_writable(self) -> None:
        """Raise ImmutableArrayError where a write would be seen outside, or lost."""
        name = self.call.name
        if self.kind == ARGUMENT:
            raise ImmutableArrayError(
                f"this writes into an argument of {name}.", where=user_source(),
                why="NumPy would change the caller's array; under numpy_code nothing outside of "
                    "the function changes.",
                fix="x = x.copy() first; or ft.numpy_code(f, copy_args=True), where each call "
                    "writes into copies of its own")
        if self.kind == CAPTURED:
            raise ImmutableArrayError(
                f"this writes into an array that {name} did not make: a global variable, or one "
                "of an enclosing function.", where=user_source(),
                why="under numpy_code nothing outside of the function changes.",
                fix="pass the array as an argument, copy it, and return the copy")
        if self.kind == AMBIGUOUS:
            raise ImmutableArrayError(
                "this writes into an array that was reshaped, or into the result of the reshape.",
                where=user_source(),
                why="whether NumPy's reshape shares memory depends on the memory order of the "
                    "array, which is not known here, so it is open whether the other one changes.",
                fix="x = np.ascontiguousarray(x) before x.reshape(...)")
        if get_trace() is not self.trace:
            raise ImmutableArrayError(
                f"this writes into an array of {name} from inside of a function that is being "
                "transformed: the body of a loop or branch of ft.lax, or one under jit, grad or "
                "vmap.", where=user_source(),
                why="such a function is traced by itself, once, and may run often or never: what "
                    "it writes has to be among its results.",
                fix="carry the array through the loop: body(i, x) returns x.at[i].set(v); or a "
                    "Python loop, which is unrolled; or make the array inside")

    def write(self, value: Any) -> None:
        """Replace the value; the cell was found writable."""
        self._value = value
        self.version += 1
