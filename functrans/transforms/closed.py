"""Staging the bodies of higher-order primitives, which have no constants of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core.avals import ShapedArray
from functrans.core.errors import LeakedTracerError
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.primitives.base import Constant, constant_p

__all__ = ["stage_closed", "with_small_consts_inside", "without_consts"]

MOST_INSIDE: Final = 256
"""Elements of an array that a program is compiled for."""


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
    eqns = tuple(map(_constant, jaxpr.constvars, closed.consts))
    return Jaxpr((), jaxpr.invars, eqns + jaxpr.eqns, jaxpr.outvars, name=jaxpr.name)


def with_small_consts_inside(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with its small constants as equations, of which compilers know the values.

    Tables of indices and coefficients are such constants. Those that were put on a device stay.
    """
    jaxpr = closed.jaxpr
    kept, inside = [], []
    for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
        if _is_small(value):
            inside.append(_constant(var, np.array(value)))
        else:
            kept.append((var, value))
    if not inside:
        return closed
    inner = Jaxpr(tuple([var for var, _ in kept]), jaxpr.invars, (*inside, *jaxpr.eqns),
                  jaxpr.outvars, name=jaxpr.name)
    return ClosedJaxpr(inner, tuple([value for _, value in kept]))


def _is_small(value: Any) -> bool:
    is_placed = isinstance(value, ArrayBase) and value._place != 0
    return not isinstance(value, Tracer) and not is_placed and value.dtype.kind in "biuf" \
        and 0 < value.size <= MOST_INSIDE


def _constant(var: Var, value: Any) -> Equation:
    return Equation(constant_p, (), (var,), {"value": Constant(value)})
