"""Compiled kernels on disk: in the cache of compiled programs, each under the hash of its unit.

Where all are there nothing of Triton is imported: 26 kernels of a transformer's gradient take
10 ms, through Triton's own cache 700.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.machine.unit import Binary, Unit

__all__ = ["RecentKernels", "compiled_units", "kept"]

MOST_RECENT: Final = 256
"""Kernels that are kept in memory, of 60 KB each."""


class RecentKernels:
    """Kernels that were used last, so that programs which share them read them once (0.2 ms)."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Cache, Unit], Binary] = OrderedDict()

    def compiled(self, units: Sequence[Unit], cache: Cache) -> list[Binary]:
        """As `compiled_units`."""
        found = {u: known for u in units if (known := self._known.get((cache, u))) is not None}
        missing = [u for u in units if u not in found]
        found |= zip(missing, compiled_units(missing, cache), strict=True)
        for u, binary in found.items():
            self._known.pop((cache, u), None)
            self._known[cache, u] = binary
        while len(self._known) > MOST_RECENT:
            self._known.popitem(last=False)
        return [found[u] for u in units]


def compiled_units(units: Sequence[Unit], cache: Cache) -> list[Binary]:
    """The machine code of kernels, from the disk or compiled now.

    Raises KernelError for one that Triton cannot compile, or that takes too much shared memory.
    """
    known = {u: found for u in dict.fromkeys(units) if (found := kept(u, cache)) is not None}
    missing = [u for u in dict.fromkeys(units) if u not in known]
    if missing:
        # later: it imports Triton
        from functrans.lowering.triton.machine.pool import compile_all  # noqa: PLC0415

        def keep(k: int, binary: Binary) -> None:
            known[missing[k]] = binary
            cache.keep(_name(missing[k]), binary.encode())

        compile_all(missing, keep)
    return [known[u] for u in units]


def kept(unit: Unit, cache: Cache) -> Binary | None:
    """The machine code of a kernel, if it is there, whole, and ours."""
    data = cache.read(_name(unit))
    return None if data is None else Binary.decode(data)


def _name(unit: Unit) -> str:
    return f"{unit.key}.kernel"
