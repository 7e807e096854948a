"""Sets of equations that other ones can stand for."""

from __future__ import annotations

from collections.abc import Container, Iterable

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var

__all__ = ["in_place_of", "is_convex"]


def is_convex(jaxpr: Jaxpr, members: Container[Equation]) -> bool:
    """Whether no other equation reads of members and is read by members, directly or not."""
    inside: set[Atom] = set()
    between: set[Atom] = set()
    for eqn in jaxpr.eqns:
        reads = [a for a in eqn.invars if isinstance(a, Var)]
        if eqn in members:
            if any(a in between for a in reads):
                return False
            inside.update(eqn.outvars)
        elif any(a in inside or a in between for a in reads):
            between.update(eqn.outvars)
    return True


def in_place_of(jaxpr: Jaxpr, members: Container[Equation], new: Iterable[Equation]) -> Jaxpr:
    """The program with other equations for a convex set; what reads its results comes after."""
    others = [eqn for eqn in jaxpr.eqns if eqn not in members]
    after = _dependent(others, {v for eqn in jaxpr.eqns if eqn in members for v in eqn.outvars})
    return Jaxpr(jaxpr.constvars, jaxpr.invars, (*(e for e in others if e not in after), *new,
                                                 *(e for e in others if e in after)),
                 jaxpr.outvars, name=jaxpr.name)


def _dependent(eqns: Iterable[Equation], values: Iterable[Atom]) -> set[Equation]:
    """The equations that read some values, directly or not."""
    made = set(values)
    found: set[Equation] = set()
    for eqn in eqns:
        if any(a in made for a in eqn.invars if isinstance(a, Var)):
            found.add(eqn)
            made.update(eqn.outvars)
    return found
