"""Conditions on any element of an array: any-flags, where a program has several conditions.

A reduction over all elements makes programs wait for each other, and a product could not compute
the condition in its epilogue. A flag costs its condition, and one launch clears all flags.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import AnyFlag, Tensor
from functrans.lowering.passes.any_conditions import decide_arrays, is_condition
from functrans.lowering.rules.calls import CallRule
from functrans.lowering.rules.reduce import RULES as FOLDS
from functrans.primitives.reduce import reduce_or_p

__all__ = ["any_flag_rules"]

LEAST = 2
"""Conditions of a program that has flags; a single one is reduced, and no launch clears flags."""
FEW = 1024
"""Elements; one program reduces fewer, and goes on with the result, where arrays need that."""


def any_flag_rules(jaxpr: Jaxpr) -> dict[Primitive, CallRule]:
    """The rules that make any-flags; none where the launch that clears them would not pay."""
    count = sum(map(is_condition, jaxpr.eqns))
    if count < LEAST:
        return {}
    return {reduce_or_p: partial(_any, few=FEW if decide_arrays(jaxpr) else 0)}


def _any(eqn: Equation, xs: list[Tensor], few: int) -> Any:
    (x,) = xs
    if not is_condition(eqn) or not isinstance(x.size, int) or x.size == 0:
        found = FOLDS[reduce_or_p](eqn, xs)
        return found[0] if found else None
    return AnyFlag(x.shape, xs, x.at, is_few=x.size <= few, source=eqn.source)
