"""What a cubin says of its kernel: registers, and memory for what does not fit them.

A cubin is an ELF file of 64 bits, and its section `.nv.info` a list of records: kind, attribute,
size or value. Those of registers and stack are of the number of a function and the value, as
`cuobjdump --dump-elf` prints them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["resources"]

HEADER: Final = struct.Struct("<40xQ10xHHH")  # of the file: table of sections, size, count, names
SECTION: Final = struct.Struct("<I20xQQ24x")  # name, offset, size
SIZED: Final = 4
"""The kind of records that are followed by as many bytes as they say; others have 2 bytes."""
REGISTERS: Final = 0x2f
FRAME_SIZE: Final = 0x11


def resources(cubin: bytes) -> tuple[int, int]:
    """The most registers of a thread of its kernels, and the most bytes of a thread's stack."""
    found = {REGISTERS: 0, FRAME_SIZE: 0}
    for attribute, value in _records(_section(cubin, b".nv.info")):
        if attribute in found:
            found[attribute] = max(found[attribute], int.from_bytes(value[4:], "little"))
    return found[REGISTERS], found[FRAME_SIZE]


def _section(cubin: bytes, name: bytes) -> bytes:
    table, size, count, names = HEADER.unpack_from(cubin)
    sections = [SECTION.unpack_from(cubin, table + size * k) for k in range(count)]
    texts = sections[names][1]
    return next((cubin[offset:offset + length] for at, offset, length in sections
                 if cubin.startswith(name + b"\0", texts + at)), b"")


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(content):
        kind, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if kind == SIZED:
            yield attribute, content[at:at + size]
            at += size
