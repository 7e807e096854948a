"""Compiled kernels on disk: in the cache of compiled programs, each under the hash of its unit.

Where all are there nothing of Triton is imported: 26 kernels of a transformer's gradient take
10 ms, through Triton's own cache 700.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.lowering.c.cache import Cache
from functrans.lowering.triton.machine.unit import Binary, Unit

__all__ = ["compiled_units", "kept"]


def compiled_units(units: Sequence[Unit], cache: Cache) -> list[Binary]:
    """The machine code of kernels, from the disk or compiled now.

    Raises BackendError for a kernel that Triton cannot compile.
    """
    known = {u: found for u in dict.fromkeys(units) if (found := kept(u, cache)) is not None}
    missing = [u for u in dict.fromkeys(units) if u not in known]
    if missing:
        # later: it imports Triton
        from functrans.lowering.triton.machine.pool import compile_all  # noqa: PLC0415

        def keep(k: int, binary: Binary) -> None:
            known[missing[k]] = binary
            cache.write(_name(missing[k]), binary.encode())

        compile_all(missing, keep)
    return [known[u] for u in units]


def kept(unit: Unit, cache: Cache) -> Binary | None:
    """The machine code of a kernel, if it is there, whole, and ours."""
    data = cache.read(_name(unit))
    return None if data is None else Binary.decode(data)


def _name(unit: Unit) -> str:
    return f"{unit.key}.kernel"
