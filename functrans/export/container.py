"""The file: a header, a table of sections with their checksums, and the sections, aligned."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Final

from functrans.core.errors import ExportError
from functrans.export.plain import damaged

__all__ = ["ALIGNMENT", "FORMAT_VERSION", "pack", "unpack"]

FORMAT_VERSION: Final = 2
ALIGNMENT: Final = 64
"""Of every section, and of every array in the section of constants."""

MAGIC: Final = b"\x89FTX\r\n\x1a\n"  # as PNG's: a transfer that changes line ends is noticed
SECTIONS: Final = (b"PROG", b"DATA", b"KERN")
_HEADER = struct.Struct("<8sII32s")
_ENTRY = struct.Struct("<4s4xQQ32s")


def aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def pack(sections: Mapping[bytes, bytes]) -> bytes:
    """The file with these sections."""
    table = b""
    start = aligned(_HEADER.size + _ENTRY.size * len(SECTIONS))
    body = bytearray()
    for name in SECTIONS:
        data = sections[name]
        body += bytes(aligned(len(body)) - len(body))
        table += _ENTRY.pack(name, start + len(body), len(data), hashlib.sha256(data).digest())
        body += data
    head = _HEADER.pack(MAGIC, FORMAT_VERSION, len(SECTIONS), hashlib.sha256(table).digest())
    return (head + table).ljust(start, b"\0") + bytes(body)


def unpack(data: bytes) -> dict[bytes, bytes]:
    """The sections of a file; raises ExportError unless every byte is where and what it must be."""
    if len(data) < _HEADER.size:
        raise damaged(f"it has {len(data)} bytes, the header alone {_HEADER.size}")
    magic, version, count, digest = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise damaged("it does not begin as an exported program does")
    if version != FORMAT_VERSION:
        raise ExportError(
            f"the exported program has format {version}, and this functrans reads format "
            f"{FORMAT_VERSION}.", where=None, fix="export it again, or load it with the functrans "
            "that wrote it")
    end = _HEADER.size + _ENTRY.size * len(SECTIONS)
    if count != len(SECTIONS) or len(data) < end:
        raise damaged("its table of sections is not whole")
    if hashlib.sha256(data[_HEADER.size:end]).digest() != digest:
        raise damaged("the checksum of its table of sections is wrong")
    found = {}
    for k, expected in enumerate(SECTIONS):
        name, start, length, checksum = _ENTRY.unpack_from(data, _HEADER.size + k * _ENTRY.size)
        title = expected.decode()
        if name != expected:
            raise damaged(f"section {k} is {name!r}, not {title}")
        if start != aligned(end) or length > len(data) - start:
            raise damaged(f"section {title} is not where it must be")
        if any(data[end:start]):
            raise damaged(f"there is something before section {title}")
        end = start + length
        found[name] = data[start:end]
        if hashlib.sha256(found[name]).digest() != checksum:
            raise damaged(f"the checksum of section {title} is wrong")
    if end != len(data):
        raise damaged(f"{len(data) - end} bytes follow its last section")
    return found
