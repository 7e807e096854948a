"""Equations by number, and which steps compute them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.source import Source

__all__ = ["numbers_of_steps", "sources_of"]


def numbers_of_steps(jaxpr: Jaxpr, steps: Sequence[Iterable[Equation]]) -> list[tuple[int, ...]]:
    """The numbers of the equations of each step.

    Equations of no step, movements that became index arithmetic, go to the steps of their readers.
    """
    numbers = {eqn: k for k, eqn in enumerate(jaxpr.eqns)}
    owners: dict[int, set[int]] = {}
    for k, equations in enumerate(steps):
        for eqn in equations:
            if eqn in numbers:
                owners.setdefault(numbers[eqn], set()).add(k)
    readers: dict[Var, set[int]] = {}
    for number in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[number]
        if number not in owners:
            owners[number] = set().union(*[readers.get(v, set()) for v in eqn.outvars])
        for v in eqn.invars:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(owners[number])
    return [tuple(sorted(e for e, at in owners.items() if k in at)) for k in range(len(steps))]


def sources_of(jaxpr: Jaxpr, equations: Iterable[int]) -> list[Source]:
    """Where the user asked for some equations, in order, each once."""
    found = [jaxpr.eqns[e].source for e in equations]
    return list(dict.fromkeys([s for s in found if s is not None]))
