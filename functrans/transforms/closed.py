"""Staging the bodies of higher-order primitives, which have no constants of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.errors import LeakedTracerError
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.primitives.base import Constant, constant_p

__all__ = ["stage_closed", "without_consts"]


def stage_closed(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], *,
                 name: str) -> Jaxpr:
    """The jaxpr of a flat function that closes over arrays at most, which become equations."""
    return without_consts(stage(fun, in_avals, name=name))


def without_consts(closed: ClosedJaxpr) -> Jaxpr:
    """The jaxpr with its constants as equations; raises LeakedTracerError where one is traced."""
    jaxpr = closed.jaxpr
    if not closed.consts:
        return jaxpr
    for const in closed.consts:
        if isinstance(const, Tracer):
            raise LeakedTracerError(f"{jaxpr.name} closes over a traced {const.aval}.",
                                    fix="pass it as an argument")
    eqns = tuple(Equation(constant_p, (), (var,), {"value": Constant(value)})
                 for var, value in zip(jaxpr.constvars, closed.consts, strict=True))
    return Jaxpr((), jaxpr.invars, eqns + jaxpr.eqns, jaxpr.outvars, name=jaxpr.name)
