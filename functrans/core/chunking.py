"""What `vmap(chunk_size="auto")` asks of the program that it is traced into, and what it is told.

A compiler chooses how many elements a batch takes at a time by the memory of the whole program;
where it cannot, the function is traced again with so many chunks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from functrans import _runtime
from functrans.core.record import Record

__all__ = ["Chunking", "chunking", "default_limit", "traced_in_chunks"]

FRACTION: Final = 2
"""Of the free memory a program may need one part in so many where nobody said."""
UNKNOWN: Final = 1 << 32
"""Bytes that are thought to be free where the system does not say."""


class Chunking(Record, frozen=False, eq=False):
    """Into how many `chunks` batches are cut while a function is traced: 1 leaves that to the
    compiler, and then it is noted that somebody `asked`."""

    chunks: int = 1
    asked: bool = False


_chunking: ContextVar[Chunking | None] = ContextVar("functrans_chunking", default=None)

chunking = _chunking.get
"""What the trace for a compiler is told; None where nothing is compiled as a whole."""


@contextmanager
def traced_in_chunks(chunks: int = 1) -> Iterator[Chunking]:
    """Trace what is inside for a program with batches in so many chunks."""
    found = Chunking(chunks)
    token = _chunking.set(found)
    try:
        yield found
    finally:
        _chunking.reset(token)


def default_limit(gpu: int | None) -> int:
    """What a program may need besides its arguments on a GPU, or the CPU, where nobody said.

    A power of two, so that programs are not compiled again whenever a little more is free.
    """
    free = _free_on_host() if gpu is None else int(
        _runtime.cuda_memory_stats(gpu).get("bytes_free_on_device", 0) or UNKNOWN)
    return 1 << max(free // FRACTION, 1).bit_length() - 1


def _free_on_host() -> int:
    """What the system says that new programs may take, within the limits of a container."""
    found = UNKNOWN
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
            found = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        most = int(Path("/sys/fs/cgroup/memory.max").read_text())
        return min(found, most - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return found
