"""Loops that only one side of a choice reads, in a branch: they run where that side is chosen.

Programs of lanes cannot branch, so they compute both sides and choose: the shadow of a pixel that
sees the sky, the steps of a particle that has left. As the program of one lane they can. Values
are the same, and nothing is computed that is not read. Nor is a condition, where both sides are
the same number: what faces away from a lamp is dark, whether the ray to it is free or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import has_effects
from functrans.lowering.passes.convex import in_place_of, is_convex
from functrans.lowering.passes.loops import substituted
from functrans.lowering.passes.rewrite import with_bodies
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.compare import ne_p, or_p, select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import bitcast_convert_type_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.shape import reshape_p

__all__ = ["with_lazy_choices"]

DIFFERING: Final = "where sides differ"
"""The name of a branch in which a condition has been found to matter."""


def with_lazy_choices(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a lane with such loops in branches, in bodies too."""
    for choices in reversed(_by_condition(jaxpr)):
        found = _with_branch(jaxpr, choices)
        if found is None and jaxpr.name != DIFFERING:
            found = _without_condition(jaxpr, choices)
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
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    condition = _number(choices[0].invars[0], makers)
    assert condition is not None
    which = Var(ShapedArray((), condition.aval.dtype))
    source = choices[0].source
    return in_place_of(jaxpr, members, [
        Equation(reshape_p, (condition,), (which,), {"new_sizes": ()}, source),
        _branch(jaxpr, which, choices, [(eqns, _chosen(choices, k))
                                        for k, eqns in enumerate(sides, 1)])])


def _without_condition(jaxpr: Jaxpr, choices: Sequence[Equation]) -> Jaxpr | None:
    """The program where a condition with a loop is computed where sides differ, else None.

    One side is a constant: that others are the same is no accident.
    """
    made = {v for c in choices for v in c.outvars}
    numbers = {eqn.outvars[0] for eqn in jaxpr.eqns if _is_number(eqn)}
    for c in choices:
        has_number = any(isinstance(a, Literal) or a in numbers for a in c.invars[1:])
        if len(c.invars) != 3 or not has_number or any(a in made for a in c.invars):
            return None
    condition = _read_by_side(jaxpr, choices, 0)
    members = {*choices, *condition}
    if not any(map(_is_loop, condition)) or not is_convex(jaxpr, members):
        return None
    results = {c.outvars[0]: Var(c.outvars[0].aval) for c in choices}
    eqns = [eqn.replace(outvars=(results[eqn.outvars[0]],)) if eqn in choices else eqn
            for eqn in jaxpr.eqns if eqn in members]
    tests: list[Equation] = []
    which = _differ(choices, tests)
    return in_place_of(jaxpr, members, [*tests, _branch(
        jaxpr, which, choices, [((), _chosen(choices, 2)), (eqns, results)], DIFFERING)])


def _is_number(eqn: Equation) -> bool:
    """Whether a value is a number of the program everywhere."""
    return eqn.primitive is broadcast_in_dim_p and isinstance(eqn.invars[0], Literal)


def _differ(choices: Iterable[Equation], eqns: list[Equation]) -> Var:
    """Whether sides of some choices have different bits, by equations that are added."""
    def emit(primitive: Primitive, *operands: Atom, **params: Any) -> Var:
        out = Var(primitive.type(*[a.aval for a in operands], **params))
        eqns.append(Equation(primitive, operands, (out,), params))
        return out

    found: Var | None = None
    for c in choices:
        a, b = c.invars[1:]
        if a.aval.dtype.kind == "f":
            bits = np.dtype(f"u{a.aval.dtype.itemsize}")
            a, b = (emit(bitcast_convert_type_p, x, new_dtype=bits) for x in (a, b))
        one = emit(ne_p, a, b)
        if one.aval.shape:
            one = emit(reduce_or_p, one, axes=tuple(range(one.aval.ndim)))
        found = one if found is None else emit(or_p, found, one)
    assert found is not None
    return found


def _chosen(choices: Iterable[Equation], side: int) -> dict[Var, Atom]:
    """What choices are where a side is chosen; they may read each other."""
    found: dict[Var, Atom] = {}
    for c in choices:
        value = c.invars[side]
        found[c.outvars[0]] = found.get(value, value) if isinstance(value, Var) else value
    return found


def _branch(jaxpr: Jaxpr, which: Var, choices: Iterable[Equation],
            bodies: Sequence[tuple[Sequence[Equation], Mapping[Var, Atom]]],
            name: str = "side") -> Equation:
    """The equation of a branch; each body has equations, and what the choices are."""
    outs = tuple([c.outvars[0] for c in choices])
    read: dict[Atom, None] = {}
    for eqns, values in bodies:
        made = {v for eqn in eqns for v in eqn.outvars}
        used = [values.get(a, a) for eqn in eqns for a in eqn.invars if isinstance(a, Var)]
        read |= dict.fromkeys([a for a in (*used, *map(values.__getitem__, outs))
                               if isinstance(a, Var) and a not in made])
    numbers = [eqn for eqn in jaxpr.eqns if _is_number(eqn) and eqn.outvars[0] in read]
    known = {eqn.outvars[0] for eqn in numbers}
    operands = tuple([a for a in read if isinstance(a, Var) and a not in known])
    branches = []
    for eqns, values in bodies:
        own: dict[Atom, Var] = {v: Var(v.aval) for v in known}
        first = [eqn.replace(outvars=(own[eqn.outvars[0]],)) for eqn in numbers]
        env: dict[Atom, Atom] = {v: own.get(a, a) for v, a in values.items()}
        env.update(own)
        body = Jaxpr((), operands, tuple(eqns), outs, name=name)
        branches.append(substituted(body, env, operands, first))
    return Equation(cond_p, (which, *operands), outs, {"branches": tuple(branches)},
                    next(iter(choices)).source)


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
