"""Equations of functions: what rules that are written as functions put in place of an equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.source import Source
from functrans.core.staging import stage

__all__ = ["inlined", "inlined_jaxpr"]


def inlined(fun: Callable[..., Sequence[Any]], operands: Sequence[Atom], eqns: list[Equation],
            name: str, source: Source | None) -> list[Atom]:
    """The results of a flat function of some values, whose equations are added to `eqns`.

    Literals reach the function as scalars, other values as tracers.
    """
    variables = [x for x in operands if not isinstance(x, Literal)]

    def function(*given: Any) -> Sequence[Any]:
        values = iter(given)
        return fun(*[x.value if isinstance(x, Literal) else next(values) for x in operands])

    closed = stage(function, [x.aval for x in variables], name=name)
    assert not closed.consts
    env: dict[Var, Atom] = dict(zip(closed.jaxpr.invars, variables, strict=True))

    def read(x: Atom) -> Atom:
        return x if isinstance(x, Literal) else env.get(x, x)

    eqns += [eqn.replace(invars=tuple(map(read, eqn.invars)), source=source)
             for eqn in closed.jaxpr.eqns]
    return list(map(read, closed.jaxpr.outvars))


def inlined_jaxpr(branch: Jaxpr, operands: Sequence[Atom], eqns: list[Equation]) -> list[Atom]:
    """The results of a branch, whose equations are added with variables of their own."""
    env: dict[Var, Atom] = dict(zip(branch.invars, operands, strict=True))

    def read(a: Atom) -> Atom:
        return a if isinstance(a, Literal) else env[a]

    for eqn in branch.eqns:
        outs = tuple([Var(v.aval) for v in eqn.outvars])
        eqns.append(eqn.replace(invars=tuple(map(read, eqn.invars)), outvars=outs))
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in branch.outvars]
