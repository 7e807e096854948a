"""Conditions on any element of small results: one reduction computes all of them.

A checked program tests whether every result is finite, and most results are small: one launch
reduces the conditions on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal
from functrans.core.prune import has_effects
from functrans.lowering.passes.inline import inlined
from functrans.primitives.arithmetic import mul
from functrans.primitives.compare import bitwise_and, eq_p, is_finite_p, ne, ne_p, not_p, or_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_or, reduce_or_p
from functrans.primitives.shape import concatenate, reshape

__all__ = ["decide_arrays", "is_condition", "merge_small_conditions"]

SMALL, MOST, BITS = 2048, 8192, 31
"""Elements of a small result, of all that one program reduces, and the number of conditions."""
TESTS = frozenset((is_finite_p, not_p, ne_p, eq_p, or_p))
"""What a condition on the elements of a result is made of."""


def is_condition(eqn: Equation) -> bool:
    """Whether an equation reduces an array of booleans by `any`."""
    if eqn.primitive is not reduce_or_p:
        return False
    (x,), (found,) = eqn.invars, eqn.outvars
    return bool(x.aval.dtype == np.bool_ and x.aval.shape) and not found.aval.shape


def decide_arrays(jaxpr: Jaxpr) -> bool:
    """Whether more than numbers depends on conditions."""
    late: set[Atom] = set()
    for eqn in jaxpr.eqns:
        if is_condition(eqn):
            late.update(eqn.outvars)
        elif any(x in late for x in eqn.invars):
            if any(v.aval.shape for v in eqn.outvars):
                return True
            late.update(eqn.outvars)
    return False


def merge_small_conditions(jaxpr: Jaxpr) -> Jaxpr:
    """A program in which conditions on small results are bits of one number.

    What depends on them, which are numbers, comes after the last of them.
    """
    small = _on_small_results(jaxpr)
    if len(small) < 2 or any(map(has_effects, jaxpr.eqns)) or decide_arrays(jaxpr):
        return jaxpr
    before: list[Equation] = []
    after: list[Equation] = []
    late: set[Atom] = {eqn.outvars[0] for eqn in small}
    for eqn in jaxpr.eqns:
        if any(x in late for x in eqn.invars):
            late.update(eqn.outvars)
            after.append(eqn)
        elif late.isdisjoint(eqn.outvars):
            before.append(eqn)
    folded: dict[Atom, Atom] = {}
    for group in _groups(small):
        source = group[0].source
        found = inlined(_bits, [eqn.invars[0] for eqn in group], before, "conditions", source)
        folded.update(zip([eqn.outvars[0] for eqn in group], found, strict=True))

    def read(x: Atom) -> Atom:
        return x if isinstance(x, Literal) else folded.get(x, x)

    eqns = [*before, *[eqn.replace(invars=tuple(map(read, eqn.invars))) for eqn in after]]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), tuple(map(read, jaxpr.outvars)),
                 name=jaxpr.name)


def _on_small_results(jaxpr: Jaxpr) -> list[Equation]:
    """The conditions on elements of small results of a program, which are in memory anyway."""
    results = {v for v in jaxpr.outvars if v.aval.is_static and 0 < v.aval.size <= SMALL}
    of_results: set[Atom] = set()  # and what is computed element by element of one of them
    found = []
    for eqn in jaxpr.eqns:
        if any(x in results or x in of_results for x in eqn.invars):
            if is_condition(eqn):
                found.append(eqn)
            elif eqn.primitive in TESTS:
                of_results.update(eqn.outvars)
    return found


def _groups(small: Sequence[Equation]) -> list[list[Equation]]:
    """Conditions in order, in groups that one program reduces."""
    groups: list[list[Equation]] = []
    total: Any = 0
    for eqn in small:
        size = eqn.invars[0].aval.size
        if not groups or len(groups[-1]) == BITS or total + size > MOST:
            groups.append([])
            total = 0
        groups[-1].append(eqn)
        total += size
    return groups


def _bits(*conditions: Any) -> list[Any]:
    """Whether any element of each of some arrays is true."""
    codes = [mul(convert_element_type(reshape(x, (-1,)), np.int32), np.int32(1 << k))
             for k, x in enumerate(conditions)]
    found = reduce_or(concatenate(codes, 0), (0,))
    return [ne(bitwise_and(found, np.int32(1 << k)), np.int32(0)) for k in range(len(codes))]
