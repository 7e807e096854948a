"""What a jaxpr costs, from the cost rules of its primitives and the lifetimes of its values."""

from __future__ import annotations

from functrans.core.cost import jaxpr_cost
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.lifetimes import live_bytes

__all__ = ["cost_of", "memory_of"]


def cost_of(jaxpr: Jaxpr) -> dict[str, Size]:
    """`flops` and `bytes accessed` of all equations; bodies of loops count for each iteration."""
    cost = jaxpr_cost(jaxpr)
    return {"flops": cost.flops, "bytes accessed": cost.bytes}


def memory_of(jaxpr: Jaxpr) -> dict[str, Size]:
    """Bytes of arguments, outputs, temporaries, and of all that lives at once at the peak."""
    args = sum((v.aval.nbytes for v in jaxpr.invars), start=0)
    outs = sum((v.aval.nbytes for v in jaxpr.outvars), start=0)
    peak = live_bytes(jaxpr)
    return {"arguments": args, "outputs": outs, "temporaries": peak, "peak": args + peak}
