"""A process that compiles kernels for another: units come through a pipe, and machine code goes
back.

It ends when its pipe closes, or when nobody asks for long.
"""

from __future__ import annotations

import gc
import os
import select
import traceback
from contextlib import suppress
from typing import Final

from functrans.lowering.triton.machine.compile import SharedMemoryExceeded, compile_unit
from functrans.lowering.triton.machine.messages import (
    COMPILED,
    FAILED,
    READY,
    TOO_LARGE,
    read_message,
    write_message,
)
from functrans.lowering.triton.machine.unit import Unit

__all__ = ["main"]

IDLE_SECONDS: Final = 300.0

FIRST: Final = Unit("""\
import triton
import triton.language as tl

from functrans.lowering.triton.kernels import device_math as fm


@triton.jit
def first(x, y):
    at = tl.arange(0, 128)
    tl.store(y + at, fm.exp(tl.load(x + at)))
""", "first", ("*fp32", "*fp32"), (True, True), 4, 1, False, 90, 227 << 10)
"""What a process compiles first takes 0.15 s longer: this one does while a program is lowered."""


def main() -> None:
    requests, answers = 0, os.dup(1)
    os.dup2(2, 1)  # what Triton prints is no message
    gc.freeze()  # the modules are no garbage: to look through them took a fifth of Triton's parser
    with suppress(EOFError, BrokenPipeError):  # whom it works for is gone
        write_message(answers, READY)
        _answer(FIRST.encode())
        while select.select([requests], [], [], IDLE_SECONDS)[0]:
            write_message(answers, _answer(read_message(requests)))


def _answer(request: bytes) -> bytes:
    try:
        return COMPILED + compile_unit(Unit.decode(request)).encode()
    except SharedMemoryExceeded as error:
        return TOO_LARGE + str(error).encode()
    except Exception:
        return FAILED + traceback.format_exc(chain=False).encode()
