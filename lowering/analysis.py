"""What a jaxpr costs, from the cost rules of its primitives and the lifetimes of its values."""

from __future__ import annotations

from functrans.core.cost import jaxpr_cost
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr, Var, subjaxprs

__all__ = ["cost_of", "memory_of"]


def cost_of(jaxpr: Jaxpr) -> dict[str, Size]:
    """`flops` and `bytes accessed` of all equations; bodies of loops count for each iteration."""
    cost = jaxpr_cost(jaxpr)
    return {"flops": cost.flops, "bytes accessed": cost.bytes}


def memory_of(jaxpr: Jaxpr) -> dict[str, Size]:
    """Bytes of arguments, outputs, temporaries, and of all that lives at once at the peak."""
    args = sum((v.aval.nbytes for v in jaxpr.invars), start=0)
    outs = sum((v.aval.nbytes for v in jaxpr.outvars), start=0)
    last: dict[Var, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for v in (*eqn.invars, *eqn.outvars):
            if isinstance(v, Var):
                last[v] = i
    kept = {v for v in jaxpr.outvars if isinstance(v, Var)}
    inputs = set(jaxpr.invars)
    live: Size = 0
    peak: Size = 0
    for i, eqn in enumerate(jaxpr.eqns):
        inner = max((memory_of(body)["temporaries"] for body in subjaxprs(eqn)),
                    default=0)
        live = live + sum((v.aval.nbytes for v in eqn.outvars), start=0)
        if not isinstance(live + inner, int) or not isinstance(peak, int):
            peak = live + inner
        else:
            peak = max(peak, live + inner)
        done = {v for v in (*eqn.invars, *eqn.outvars)
                if isinstance(v, Var) and last[v] == i and v not in kept and v not in inputs}
        live = live - sum((v.aval.nbytes for v in done), start=0)
    return {"arguments": args, "outputs": outs, "temporaries": peak, "peak": args + peak}
