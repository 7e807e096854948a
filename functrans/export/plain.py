"""Plain values as bytes: None, booleans, numbers, text, raw bytes, and lists of these.

A value is a tag of one byte and what the tag says; `docs/reference/export_format.md` has the table.
Nothing is allocated for a count that the bytes left could not hold; lists nest `DEPTH` deep at
most.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from functrans.core.errors import ExportError

__all__ = ["DEPTH", "damaged", "from_bytes", "to_bytes"]

DEPTH: Final = 32
"""How deep lists nest at most."""

_NONE, _FALSE, _TRUE, _INT, _FLOAT, _COMPLEX, _TEXT, _LIST, _BYTES = range(9)
_MOST_INT_BYTES: Final = 10  # of a varint: 64 bits and a sign
_DOUBLE, _PAIR = struct.Struct("<d"), struct.Struct("<dd")


def damaged(what: str) -> ExportError:
    """The error for bytes that are no program of ours."""
    return ExportError(f"the exported program cannot be read: {what}.", where=None,
                       why="the file is damaged, or was not written by functrans.export.",
                       fix="write it again: functrans.export.save(exported, path)")


def to_bytes(value: Any) -> bytes:
    """The bytes of a plain value; numbers that do not fit the format raise ExportError."""
    out = bytearray()
    _write(out, value, 0)
    return bytes(out)


def _write(out: bytearray, value: Any, depth: int) -> None:
    if depth > DEPTH:
        raise ExportError(f"values nest more than {DEPTH} deep.", where=None)
    if value is None:
        out.append(_NONE)
    elif value is False or value is True:
        out.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        if not -2**63 <= value < 2**64:
            raise ExportError(f"the integer {value} has more than 64 bits.", where=None)
        out.append(_INT)
        _write_count(out, 2 * value if value >= 0 else -2 * value - 1)
    elif isinstance(value, float):
        out.append(_FLOAT)
        out += _DOUBLE.pack(value)
    elif isinstance(value, complex):
        out.append(_COMPLEX)
        out += _PAIR.pack(value.real, value.imag)
    elif isinstance(value, str):
        text = value.encode("utf-8", "replace")
        out.append(_TEXT)
        _write_count(out, len(text))
        out += text
    elif isinstance(value, bytes):
        out.append(_BYTES)
        _write_count(out, len(value))
        out += value
    elif isinstance(value, (list, tuple)):
        out.append(_LIST)
        _write_count(out, len(value))
        for item in value:
            _write(out, item, depth + 1)
    else:
        raise ExportError(f"a {type(value).__name__} has no place in an exported program.",
                          where=None)


def _write_count(out: bytearray, n: int) -> None:
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)


def from_bytes(data: bytes) -> Any:
    """The plain value that the bytes are, all of them; raises ExportError for others."""
    reader = _PlainReader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise damaged(f"{len(data) - reader.at} bytes follow the last value")
    return value


class _PlainReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next bytes; an error when there are fewer."""
        if count > len(self.data) - self.at:
            raise damaged(f"{count} bytes are announced where {len(self.data) - self.at} are left")
        start, self.at = self.at, self.at + count
        return self.data[start:self.at]

    def count(self) -> int:
        n = 0
        for k in range(_MOST_INT_BYTES):
            byte = self.take(1)[0]
            n |= (byte & 127) << 7 * k
            if byte < 128:
                return n
        raise damaged("an integer is longer than 64 bits")

    def value(self, depth: int) -> Any:
        tag = self.take(1)[0]
        if tag == _INT:
            n = self.count()
            value = n >> 1 if n % 2 == 0 else -((n + 1) >> 1)
            if not -2**63 <= value < 2**64:
                raise damaged("an integer is longer than 64 bits")
            return value
        if tag == _LIST:
            if depth >= DEPTH:
                raise damaged(f"lists nest more than {DEPTH} deep")
            count = self.count()
            if count > len(self.data) - self.at:
                raise damaged(f"a list of {count} items is announced where "
                              f"{len(self.data) - self.at} bytes are left")
            return [self.value(depth + 1) for _ in range(count)]
        if tag == _TEXT:
            try:
                return self.take(self.count()).decode("utf-8")
            except UnicodeDecodeError:
                raise damaged("a text is no UTF-8") from None
        if tag == _FLOAT:
            return _DOUBLE.unpack(self.take(8))[0]
        if tag == _COMPLEX:
            return complex(*_PAIR.unpack(self.take(16)))
        if tag == _BYTES:
            return self.take(self.count())
        if tag > _BYTES:
            raise damaged(f"there is no kind of value {tag}")
        return (None, False, True)[tag]
