"""Conditions: branches as selections of their results, conditions on any element as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.analysis import cost_of
from functrans.lowering.passes.rewrite import inlined, inlined_jaxpr
from functrans.primitives.arithmetic import mul
from functrans.primitives.base import zeros
from functrans.primitives.compare import (
    bitwise_and,
    eq,
    eq_p,
    is_finite_p,
    ne,
    ne_p,
    not_p,
    or_p,
    select_n_p,
)
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_or, reduce_or_p
from functrans.primitives.shape import concatenate, reshape

__all__ = ["convert_conds_to_selects", "decide_arrays", "is_condition", "merge_small_conditions"]


# --- Conditions on any element of small results: one reduction computes all of them
#
# A checked program tests whether every result is finite, and most results are small: one launch
# reduces the conditions on all of them.

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


# --- If-conversion: all branches of a cheap cond are computed, and their results selected
#
# Otherwise the device would wait for the host to choose a branch. An expensive branch becomes a
# loop of at most one iteration, which runs on the device as other loops do.

MOST_ITERATIONS = 100  # of loops in a branch: a small one takes 0.2 to 0.5 us each


def convert_conds_to_selects(jaxpr: Jaxpr, most_flops: float, most_bytes: float) -> Jaxpr:
    """A program in which cheap branches are equations, and `select_n` chooses between results.

    All branches of a choice compute and move no more than what is given.
    """
    if not any(eqn.primitive is cond_p for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is cond_p:
            _select(eqn, eqns, most_flops, most_bytes)
        else:
            eqns.append(eqn)
    converted = Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)
    return convert_conds_to_selects(converted, most_flops, most_bytes)


def _cheap(branches: Sequence[Jaxpr], most_flops: float, most_bytes: float) -> list[bool]:
    """Which branches of a choice are computed in any case: all of them together cost little.

    One with effects is not, which happen where it is chosen.
    """
    found = []
    flops = nbytes = 0.0
    for branch in branches:
        cost = cost_of(branch)
        known = [n for n in cost.values() if isinstance(n, (int, float))]
        is_short = not any(has_effects(eqn) or _iterations(eqn) > MOST_ITERATIONS
                           for eqn in branch.eqns)
        if is_short and len(known) == len(cost) and flops + cost["flops"] <= most_flops \
                and nbytes + cost["bytes accessed"] <= most_bytes:
            flops, nbytes = flops + cost["flops"], nbytes + cost["bytes accessed"]
            found.append(True)
        else:
            found.append(False)
    return found


def _iterations(eqn: Equation) -> float:
    """How often the bodies of loops in an equation run; without an end where that is not known."""
    inner = sum(_iterations(e) for body in subjaxprs(eqn) for e in body.eqns)
    if eqn.primitive is scan_p:
        length = eqn.params["length"]
        return length * (1 + inner) if isinstance(length, int) else math.inf
    return inner if eqn.primitive is cond_p or not any(subjaxprs(eqn)) else math.inf


def _select(choice: Equation, eqns: list[Equation], most_flops: float,
            most_bytes: float) -> None:
    which, *operands = choice.invars
    branches: Sequence[Jaxpr] = choice.params["branches"]
    cheap = _cheap(branches, most_flops, most_bytes)
    found = [inlined_jaxpr(branch, operands, eqns) if is_cheap
             else _once(k, branch, choice, eqns)
             for k, (branch, is_cheap) in enumerate(zip(branches, cheap, strict=True))]
    for k, out in enumerate(choice.outvars):
        cases = tuple([outs[k] for outs in found])
        eqns.append(Equation(select_n_p, (which, *cases), (out,), {}, choice.source))


def _once(number: int, branch: Jaxpr, choice: Equation, eqns: list[Equation]) -> list[Atom]:
    """The results of a branch as those of a loop, which runs if the branch is chosen."""
    def begin(which: Any) -> list[Any]:
        chosen = eq(which, choice.invars[0].aval.dtype.type(number))
        return [chosen, *[zeros(a.strong()) for a in branch.out_avals]]

    start = inlined(begin, choice.invars[:1], eqns, "cond", choice.source)
    carry = [Var(x.aval) for x in start]
    done = Literal(np.bool_(False), start[0].aval)
    body = Jaxpr((), (*branch.invars, *carry), branch.eqns, (done, *branch.outvars),
                 name=branch.name)
    test = [Var(x.aval) for x in start]
    outs = tuple([Var(x.aval) for x in start])
    params = {"cond_jaxpr": Jaxpr((), tuple(test), (), (test[0],), name="chosen"),
              "body_jaxpr": body, "cond_nconsts": 0, "body_nconsts": len(branch.invars)}
    eqns.append(Equation(while_p, (*choice.invars[1:], *start), outs, params, choice.source))
    return list(outs[1:])
