"""The C text of calls: of the host, and of library functions."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from functrans.lowering.loops.call import Call, HostCall

__all__ = ["CallWriter", "write_call"]


class CallWriter:
    """What the text of a call needs of the program around it."""

    def __init__(self, program: Any, number: int) -> None:
        self.program = program
        self.number = number

    def line(self, text: str) -> None:
        self.program.lines.append(f"  {text}\n")

    def place(self, t: Any) -> str:
        return self.program.where[t]


@singledispatch
def write_call(call: Call, out: CallWriter) -> None:
    """Append the C statements of a call."""
    raise AssertionError(f"no C text for {call!r}")


@write_call.register
def _(call: HostCall, out: CallWriter) -> None:
    out.program.host(call)
