"""Loops that only one side of a choice reads, in a branch: they run where that side is chosen.

Programs of lanes cannot branch, so they compute both sides and choose: the shadow of a pixel that
sees the sky, the steps of a particle that has left. As the program of one lane they can. Values
are the same, and nothing is computed that is not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.passes.convex import in_place_of, is_convex
from functrans.lowering.passes.loops import substituted
from functrans.lowering.passes.rewrite import with_bodies
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.shape import reshape_p

__all__ = ["with_lazy_choices"]

def with_lazy_choices(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a lane with such loops in branches, in bodies too."""
    for choices in reversed(_by_condition(jaxpr)):
        found = _with_branch(jaxpr, choices)
        if found is not None:
            return with_lazy_choices(found)
    return with_bodies(jaxpr, with_lazy_choices)


def _by_condition(jaxpr: Jaxpr) -> list[list[Equation]]:
    """The choices of a program that one number decides, together."""
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    found: dict[Atom, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is select_n_p:
            condition = _number(eqn.invars[0], makers)
            if condition is not None:
                found.setdefault(condition, []).append(eqn)
    return list(found.values())


def _number(condition: Atom, makers: dict[Atom, Equation]) -> Var | None:
    """The number that a condition is everywhere, if it is one."""
    while math.prod(condition.aval.shape) != 1 and (made := makers.get(condition)) is not None \
            and made.primitive is broadcast_in_dim_p:
        condition = made.invars[0]
    is_one = math.prod(condition.aval.shape) == 1
    return condition if isinstance(condition, Var) and is_one else None


def _with_branch(jaxpr: Jaxpr, choices: Sequence[Equation]) -> Jaxpr | None:
    """The program with choices, and what only they read, as a branch; None without a loop in it."""
    sides = [_read_by_side(jaxpr, choices, side) for side in range(1, len(choices[0].invars))]
    if not any(map(_is_loop, (eqn for side in sides for eqn in side))):
        return None
    members = {*choices, *(eqn for side in sides for eqn in side)}
    if not is_convex(jaxpr, members):
        return _with_branch(jaxpr, choices[-1:]) if len(choices) > 1 else None
    made = {v for eqn in members for v in eqn.outvars}
    operands = tuple(dict.fromkeys([
        a for eqn in jaxpr.eqns if eqn in members for a in eqn.invars[
            eqn.primitive is select_n_p and eqn in choices:]
        if isinstance(a, Var) and a not in made]))
    branches = tuple([_side(choices, k, operands, eqns) for k, eqns in enumerate(sides, 1)])
    outs = tuple([v for c in choices for v in c.outvars])
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    condition = _number(choices[0].invars[0], makers)
    assert condition is not None
    which = Var(ShapedArray((), condition.aval.dtype))
    source = choices[0].source
    return in_place_of(jaxpr, members, [
        Equation(reshape_p, (condition,), (which,), {"new_sizes": ()}, source),
        Equation(cond_p, (which, *operands), outs, {"branches": branches}, source)])


def _side(choices: Sequence[Equation], side: int, operands: Sequence[Var],
          eqns: Sequence[Equation]) -> Jaxpr:
    """What is computed where a side is chosen; choices may read each other."""
    chosen: dict[Atom, Atom] = {}
    for c in choices:
        value = c.invars[side]
        chosen[c.outvars[0]] = chosen.get(value, value)
    body = Jaxpr((), tuple(operands), tuple(eqns), tuple([c.outvars[0] for c in choices]),
                 name="side")
    return substituted(body, chosen, operands)


def _read_by_side(jaxpr: Jaxpr, choices: Sequence[Equation], side: int) -> list[Equation]:
    """The equations that nothing reads but one side of choices, directly or not."""
    others = {a for c in choices for k, a in enumerate(c.invars) if k != side} | {*jaxpr.outvars}
    wanted = {c.invars[side] for c in choices}
    found: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn in choices:
            continue
        if not has_effects(eqn) and any(v in wanted for v in eqn.outvars) \
                and not any(v in others for v in eqn.outvars):
            wanted.update(eqn.invars)
            found.append(eqn)
        else:
            others.update(eqn.invars)
    return found[::-1]


def _is_loop(eqn: Equation) -> bool:
    return eqn.primitive in (scan_p, while_p) or any(
        _is_loop(inner) for body in subjaxprs(eqn) for inner in body.eqns)
