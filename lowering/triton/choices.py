"""Branches that are cheap are computed all, and their results selected.

The host would have to be asked which one to run, and be waited for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.analysis import cost_of
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p

__all__ = ["inlined", "without_choices"]

# A step of the host costs 50 us and the copies of its operands at 10 GB/s; in 50 us an H100 moves
# 128 MB or computes 1 GFLOP in float32.
MOST_BYTES, MOST_FLOPS = 128e6, 1e9
MOST_ITERATIONS = 100  # of loops in a branch: a small one takes 0.2 to 0.5 us each


def without_choices(jaxpr: Jaxpr) -> Jaxpr:
    """A program in which cheap branches are equations, and `select_n` chooses between results."""
    if not any(_is_cheap(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if _is_cheap(eqn):
            _select(eqn, eqns)
        else:
            eqns.append(eqn)
    return without_choices(Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars,
                                 name=jaxpr.name))


def _is_cheap(eqn: Equation) -> bool:
    """Whether all branches of a choice together cost less than to ask the host for it."""
    if eqn.primitive is not cond_p:
        return False
    branches: Sequence[Jaxpr] = eqn.params["branches"]
    total = {"flops": 0.0, "bytes accessed": 0.0}
    for branch in branches:
        for inner in branch.eqns:
            if has_effects(inner) or _iterations(inner) > MOST_ITERATIONS:
                return False
        for name, cost in cost_of(branch).items():
            if not isinstance(cost, (int, float)):
                return False
            total[name] += cost
    return total["bytes accessed"] <= MOST_BYTES and total["flops"] <= MOST_FLOPS


def _iterations(eqn: Equation) -> float:
    """How often the bodies of loops in an equation run; without an end where that is not known."""
    inner = sum(_iterations(e) for body in subjaxprs(eqn) for e in body.eqns)
    if eqn.primitive is scan_p:
        length = eqn.params["length"]
        return length * (1 + inner) if isinstance(length, int) else math.inf
    return inner if eqn.primitive is cond_p or not any(subjaxprs(eqn)) else math.inf


def _select(choice: Equation, eqns: list[Equation]) -> None:
    which, *operands = choice.invars
    found = [inlined(branch, operands, eqns) for branch in choice.params["branches"]]
    for k, out in enumerate(choice.outvars):
        cases = tuple([outs[k] for outs in found])
        eqns.append(Equation(select_n_p, (which, *cases), (out,), {}, choice.source))


def inlined(branch: Jaxpr, operands: Sequence[Atom], eqns: list[Equation]) -> list[Atom]:
    """The results of a branch, whose equations are added with variables of their own."""
    env: dict[Var, Atom] = dict(zip(branch.invars, operands, strict=True))

    def read(a: Atom) -> Atom:
        return a if isinstance(a, Literal) else env[a]

    for eqn in branch.eqns:
        outs = tuple([Var(v.aval) for v in eqn.outvars])
        eqns.append(eqn.replace(invars=tuple(map(read, eqn.invars)), outvars=outs))
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in branch.outvars]
