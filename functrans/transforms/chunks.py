"""Mapping a few elements at a time: a scan over chunks, checkpointed to keep gradients small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.staging import stage
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.shape import concatenate, reshape, slice_in_dim
from functrans.transforms.checkpoint import checkpoint_p

__all__ = ["map_chunks"]

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
