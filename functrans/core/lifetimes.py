"""How long the values of a program are needed, and what they take meanwhile."""

from __future__ import annotations

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr, Var, subjaxprs

__all__ = ["live_bytes"]


def live_bytes(jaxpr: Jaxpr) -> Size:
    """The most bytes that values, but the inputs, take at once: each until its last reader."""
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
        inner = max((live_bytes(body) for body in subjaxprs(eqn)), default=0)
        live = live + sum((v.aval.nbytes for v in eqn.outvars), start=0)
        if not isinstance(live + inner, int) or not isinstance(peak, int):
            peak = live + inner
        else:
            peak = max(peak, live + inner)
        done = {v for v in (*eqn.invars, *eqn.outvars)
                if isinstance(v, Var) and last[v] == i and v not in kept and v not in inputs}
        live = live - sum((v.aval.nbytes for v in done), start=0)
    return peak
