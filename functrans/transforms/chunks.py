"""Mapping a few elements at a time: a scan over chunks, checkpointed to keep gradients small.

How many are mapped at a time may be chosen by the memory that all would need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans._runtime import get_trace
from functrans.core import config
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.chunking import chunking, default_limit
from functrans.core.cuda import gpu_of
from functrans.core.errors import FunctransError
from functrans.core.lifetimes import live_bytes
from functrans.core.staging import stage
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.shape import concatenate, reshape, slice_in_dim
from functrans.transforms.batching import batch_flat
from functrans.transforms.checkpoint import checkpoint_p

__all__ = ["auto_chunk", "map_chunks"]

Run = Callable[[int, Sequence[Any]], list[Any]]


def map_chunks(run: Run, mapped: Sequence[Any], size: int, chunk_size: int) -> list[Any]:
    """The outputs of `run(count, parts)` over chunks of `mapped`, joined along axis 0.

    `run` maps `count` elements, the leading axis of each part and of each output.
    """
    count, rest = divmod(size, chunk_size)
    whole = count * chunk_size
    stacks = [reshape(slice_in_dim(x, 0, whole), (count, chunk_size, *x.shape[1:]))
              for x in mapped]
    chunks = [ShapedArray((chunk_size, *x.shape[1:]), get_aval(x).dtype, get_aval(x).weak_type)
              for x in mapped]
    inner = stage(lambda *parts: run(chunk_size, parts), chunks, name="chunk")
    jaxpr = inner.jaxpr.hoist_consts()
    body = stage(lambda *xs: checkpoint_p.bind(*xs, jaxpr=jaxpr, prevent_cse=False, policy=None),
                 jaxpr.in_avals, name="chunk")
    outs = scan_p.bind(*inner.consts, *stacks, jaxpr=body.jaxpr, length=count, reverse=False,
                       unroll=1, num_consts=len(inner.consts), num_carry=0)
    outs = [reshape(y, (whole, *y.shape[2:])) for y in outs]
    if not rest:
        return outs
    last = run(rest, [slice_in_dim(x, whole, size) for x in mapped])
    return [concatenate([a, b], 0) for a, b in zip(outs, last, strict=True)]


def auto_chunk(flat: Callable[..., Sequence[Any]], axis: MappedAxis, leaves: Sequence[Any],
               axes: Sequence[int | None]) -> int:
    """How many elements are mapped at a time: all where they fit, or where a compiler decides."""
    size = axis.size
    assert isinstance(size, int)
    asked = chunking()
    if asked is not None:  # a part of a program that is compiled
        asked.asked = True
        return max(1, -(-size // asked.chunks))
    limit = config.current().memory_limit or default_limit(gpu_of(leaves))
    needed, kept = _estimated(flat, axis, leaves, axes)
    if needed <= limit:
        return size
    return max(1, min(size, int(size * max(limit - kept, 0) // max(needed - kept, 1))))


def _estimated(flat: Callable[..., Sequence[Any]], axis: MappedAxis, leaves: Sequence[Any],
               axes: Sequence[int | None]) -> tuple[int, int]:
    """The bytes that all elements need at once, and those of results; zeros where that is not
    known before they are computed.

    Where a gradient is taken every value may be kept.
    """
    avals = [get_aval(x) for x, a in zip(leaves, axes, strict=True) if a is not None]

    def run(*mapped: Any) -> list[Any]:
        rest = iter(mapped)
        values = [x if a is None else next(rest) for x, a in zip(leaves, axes, strict=True)]
        return batch_flat(flat, axis, values, axes)[0]

    outer = get_trace()
    try:
        jaxpr = stage(run, avals, name="chunk").jaxpr
    except FunctransError:  # of a function that looks at numbers
        return 0, 0
    made = [v.aval.nbytes for eqn in jaxpr.eqns for v in eqn.outvars]
    outs = sum([v.aval.nbytes for v in jaxpr.outvars], start=0)
    needed = live_bytes(jaxpr) if outer is None else sum(made, start=0)
    return (needed, outs) if isinstance(needed, int) and isinstance(outs, int) else (0, 0)
