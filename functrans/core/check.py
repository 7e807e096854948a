"""`check_jaxpr`: every rule of a well-formed jaxpr, checked after every pass in the tests."""

from __future__ import annotations

from functrans.core.errors import JaxprError, shown
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var, subjaxprs

__all__ = ["check_jaxpr", "check_types"]


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise JaxprError unless variables are defined once, before use, with the types of the rules.

    >>> import functrans as ft
    >>> check_jaxpr(ft.make_jaxpr(ft.numpy.sin)(1.0))
    """
    if isinstance(jaxpr, ClosedJaxpr):
        if len(jaxpr.consts) != len(jaxpr.jaxpr.constvars):
            raise JaxprError(f"{len(jaxpr.jaxpr.constvars)} constant variables, but "
                             f"{len(jaxpr.consts)} constants.")
        jaxpr = jaxpr.jaxpr
    if not isinstance(jaxpr, Jaxpr):
        raise JaxprError(f"check_jaxpr takes a jaxpr, got {shown(jaxpr)}.",
                         fix="check_jaxpr(make_jaxpr(fun)(*args))")
    defined: set[Var] = set()
    for var in (*jaxpr.constvars, *jaxpr.invars):
        _define(var, defined, "the inputs")
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if not isinstance(atom, Literal) and atom not in defined:
                raise JaxprError(f"{eqn.primitive.name} reads a variable of type {atom.aval} that "
                                 "is not defined before it.", where=eqn.source)
        check_types(eqn)
        for var in eqn.outvars:
            _define(var, defined, eqn.primitive.name)
        for body in subjaxprs(eqn):
            check_jaxpr(body)
    for atom in jaxpr.outvars:
        if isinstance(atom, Var) and atom not in defined:
            raise JaxprError(f"an output of type {atom.aval} is not defined.")


def _define(var: Var, defined: set[Var], by: str) -> None:
    if var in defined:
        raise JaxprError(f"a variable of type {var.aval} is defined twice, last by {by}.")
    defined.add(var)


def check_types(eqn: Equation) -> None:
    """Raise JaxprError unless the results of an equation have the types of its primitive's rule."""
    expected = eqn.primitive.type(*(a.aval for a in eqn.invars), **eqn.params)
    expected = list(expected) if eqn.primitive.multiple_results else [expected]
    actual = [v.aval for v in eqn.outvars]
    if len(expected) != len(actual):
        raise JaxprError(f"{eqn.primitive.name} has {len(expected)} results, the equation binds "
                         f"{len(actual)}.", where=eqn.source)
    for e, a in zip(expected, actual, strict=True):
        if not e.matches(a):
            raise JaxprError(f"{eqn.primitive.name} gives {e}, the equation says {a}.",
                             where=eqn.source)
