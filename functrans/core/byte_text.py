"""Numbers of bytes as people write them: `4GB`, `512 MiB`."""

from __future__ import annotations

import re
from typing import Final

from functrans.core.dims import Size

__all__ = ["byte_text", "bytes_of", "count_text"]

_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
                 "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(text: str | int) -> int:
    """A number of bytes. Raises ValueError for a text that is none, and below 0.

    >>> bytes_of("4GB"), bytes_of("1.5 KiB"), bytes_of(100)
    (4000000000, 1536, 100)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(text), re.IGNORECASE)
    unit = _UNITS.get(found[2].upper() or "B") if found else None
    if found is None or unit is None or isinstance(text, bool):
        raise ValueError(f"a number of bytes is '4GB', '512MiB' or an integer, not {text!r}")
    return int(float(found[1]) * unit)


def byte_text(n: Size) -> str:
    """A number of bytes in three digits: `1.05 MB`."""
    return count_text(n, "B")


def count_text(n: Size, unit: str) -> str:
    """A number in three digits: `8.39 MFLOP`."""
    if not isinstance(n, int):
        return f"({n}) {unit}"
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= scale:
            return f"{n / scale:.3g} {prefix}{unit}"
    return f"{n} {unit}"
