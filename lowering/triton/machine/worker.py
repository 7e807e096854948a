"""A process that compiles kernels for another: units come through a pipe, and machine code goes
back.

Messages are a length of 8 bytes and as many bytes. The first says that the process is ready; an
answer begins with COMPILED, FAILED or TOO_LARGE. It ends when its pipe closes, or when nobody asks
for long.
"""

from __future__ import annotations

import os
import select
import struct
import traceback
from contextlib import suppress
from typing import Final

from functrans.lowering.triton.machine.compile import SharedMemoryExceeded, compile_unit
from functrans.lowering.triton.machine.unit import Unit

__all__ = ["COMPILED", "FAILED", "READY", "TOO_LARGE", "main", "read_message", "write_message"]

READY: Final = b"ready"
COMPILED: Final = b"+"
FAILED: Final = b"-"
TOO_LARGE: Final = b">"
IDLE_SECONDS: Final = 300.0
LENGTH: Final = struct.Struct("<q")


def main() -> None:
    requests, answers = 0, os.dup(1)
    os.dup2(2, 1)  # what Triton prints is no message
    with suppress(EOFError, BrokenPipeError):  # whom it works for is gone
        write_message(answers, READY)
        while select.select([requests], [], [], IDLE_SECONDS)[0]:
            write_message(answers, _answer(read_message(requests)))


def _answer(request: bytes) -> bytes:
    try:
        return COMPILED + compile_unit(Unit.decode(request)).encode()
    except SharedMemoryExceeded as error:
        return TOO_LARGE + str(error).encode()
    except Exception:
        return FAILED + traceback.format_exc(chain=False).encode()


def read_message(file: int) -> bytes:
    """The next message. Raises EOFError where the other side is gone."""
    (length,) = LENGTH.unpack(_read(file, LENGTH.size))
    return _read(file, length)


def _read(file: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = os.read(file, count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def write_message(file: int, data: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(file, rest):]
