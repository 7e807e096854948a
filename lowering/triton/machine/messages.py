"""Messages between a process and those that compile kernels for it, through pipes.

They are a length of 8 bytes and as many bytes. The first of a worker says that it is ready; an
answer begins with COMPILED, FAILED or TOO_LARGE.
"""

from __future__ import annotations

import os
import struct
from typing import Final

__all__ = ["COMPILED", "FAILED", "READY", "TOO_LARGE", "read_message", "write_message"]

READY: Final = b"ready"
COMPILED: Final = b"+"
FAILED: Final = b"-"
TOO_LARGE: Final = b">"
LENGTH: Final = struct.Struct("<q")


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
