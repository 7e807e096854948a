"""If-conversion: all branches of a cheap cond are computed, and their results selected.

Otherwise the device would wait for the host to choose a branch. An expensive branch becomes a loop
of at most one iteration, which runs on the device as other loops do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.analysis import cost_of
from functrans.lowering.passes.inline import inlined, inlined_jaxpr
from functrans.primitives.base import zeros
from functrans.primitives.compare import eq, select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p

__all__ = ["convert_conds_to_selects"]

# A step of the host costs 50 us and the copies of its operands at 10 GB/s; in 50 us an H100 moves
# 128 MB or computes 1 GFLOP in float32.
MOST_BYTES, MOST_FLOPS = 128e6, 1e9
MOST_ITERATIONS = 100  # of loops in a branch: a small one takes 0.2 to 0.5 us each


def convert_conds_to_selects(jaxpr: Jaxpr) -> Jaxpr:
    """A program in which cheap branches are equations, and `select_n` chooses between results."""
    if not any(eqn.primitive is cond_p for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is cond_p:
            _select(eqn, eqns)
        else:
            eqns.append(eqn)
    return convert_conds_to_selects(Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars,
                                          name=jaxpr.name))


def _cheap(branches: Sequence[Jaxpr]) -> list[bool]:
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
        if is_short and len(known) == len(cost) and flops + cost["flops"] <= MOST_FLOPS \
                and nbytes + cost["bytes accessed"] <= MOST_BYTES:
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


def _select(choice: Equation, eqns: list[Equation]) -> None:
    which, *operands = choice.invars
    branches: Sequence[Jaxpr] = choice.params["branches"]
    found = [inlined_jaxpr(branch, operands, eqns) if is_cheap
             else _once(k, branch, choice, eqns)
             for k, (branch, is_cheap) in enumerate(zip(branches, _cheap(branches), strict=True))]
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
