"""Programs within the memory that they may need, which batches in chunks may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans.core import config
from functrans.core.chunking import default_limit
from functrans.core.cuda import gpu_of
from functrans.core.errors import MemoryLimitError
from functrans.lowering.backend import Executable
from functrans.transforms.jit.executables import executable_of, limits_memory

if TYPE_CHECKING:
    from functrans.transforms.jit.calls import Jitted, TraceOutcome

__all__ = ["fitted", "in_fewer", "limits_of"]

MOST_CHUNKS: Final = 1 << 24


def limits_of(jitted: Jitted, traced: TraceOutcome, values: Sequence[Any] = ()) -> dict[str, Any]:
    """The settings of the memory of a program.

    Where a batch asks to be chunked and nobody set a limit, it is half of the free memory, besides
    what the arguments take.
    """
    if not traced.asks_chunks:
        limit = jitted.memory_limit
        return {} if limit is None else {"memory_limit": limit}
    limit = jitted.memory_limit or config.current().memory_limit
    if limit is None and limits_memory(values):
        given = sum([a.nbytes for a in traced.jaxpr.in_avals if isinstance(a.nbytes, int)])
        limit = default_limit(gpu_of(values)) + given
    return {"memory_limit": limit, "chunks_batches": True}


def fitted(jitted: Jitted, traced: TraceOutcome, values: Sequence[Any] = ()
           ) -> tuple[TraceOutcome, Executable]:
    """A trace and its program, which fits the memory that it may need.

    Where batches ask to be chunked and the compiler cannot cut them, the function is traced again
    with more and more chunks. Raises MemoryLimitError where nothing fits a limit that was asked
    for.
    """
    def compiled(one: TraceOutcome, **limits: Any) -> Executable:
        with config.scope(**limits):
            return executable_of(one.jaxpr, one.donated, jitted.require_inplace, values)

    limits = limits_of(jitted, traced, values)
    try:
        return traced, compiled(traced, **limits)
    except MemoryLimitError:
        given = sum([a.nbytes for a in (*traced.jaxpr.in_avals, *traced.jaxpr.out_avals)], start=0)
        can_help = traced.asks_chunks and isinstance(given, int) and given < limits["memory_limit"]
        for smaller in in_fewer(traced) if can_help else ():
            try:
                return smaller, compiled(smaller, **limits)
            except MemoryLimitError:
                continue
        if traced.asks_chunks and jitted.memory_limit is None \
                and config.current().memory_limit is None:
            return traced, compiled(traced)  # what was free was not asked for
        raise


def in_fewer(traced: TraceOutcome) -> Iterator[TraceOutcome]:
    """The function traced with batches in more and more chunks, until they are no smaller."""
    chunks, before = 2, traced.jaxpr
    while chunks < MOST_CHUNKS:
        found = traced.in_chunks(chunks)
        if str(found.jaxpr) == str(before):
            return
        yield found
        before = found.jaxpr
        chunks *= 2


