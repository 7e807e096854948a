"""Programs without what only transforms read: types that vary, and the operations that say so."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from functrans.core.avals import SAME
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.staging import stage
from functrans.primitives.collective import pvary_p

__all__ = ["plain_jaxpr", "plain_params"]

_plain: WeakKeyDictionary[Jaxpr, Jaxpr] = WeakKeyDictionary()


def plain_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program of types that say nothing of how values vary between devices."""
    found = _plain.get(jaxpr)
    if found is None:
        found = _plain[jaxpr] = _restaged(jaxpr) if _says_varying(jaxpr) else jaxpr
    return found


def plain_params(params: Any) -> dict[str, Any]:
    """The parameters of an operation, with plain programs among them."""
    return {k: plain_jaxpr(v) if isinstance(v, Jaxpr) else
            tuple([plain_jaxpr(b) if isinstance(b, Jaxpr) else b for b in v])
            if type(v) is tuple else v for k, v in params.items()}


def _says_varying(jaxpr: Jaxpr) -> bool:
    return any(v.aval.varying for v in (*jaxpr.invars, *jaxpr.outvars)) or any(
        e.primitive is pvary_p or any(v.aval.varying for v in e.outvars)
        or plain_params(e.params) != dict(e.params) for e in jaxpr.eqns)


def _restaged(jaxpr: Jaxpr) -> Jaxpr:
    inner = Jaxpr((), jaxpr.invars, tuple([
        Equation(e.primitive, e.invars, e.outvars, plain_params(e.params), e.source)
        for e in _without_pvary(jaxpr).eqns]), _without_pvary(jaxpr).outvars, name=jaxpr.name)
    avals = [v.aval.varying_along(SAME) for v in jaxpr.invars]
    return stage(lambda *xs: eval_jaxpr(inner, (), *xs), avals, name=jaxpr.name).jaxpr


def _without_pvary(jaxpr: Jaxpr) -> Jaxpr:
    names: dict[Var, Any] = {}
    eqns = []

    def of(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else names.get(atom, atom)

    for e in jaxpr.eqns:
        if e.primitive is pvary_p:
            names[e.outvars[0]] = of(e.invars[0])
        else:
            eqns.append(e.replace(invars=tuple(map(of, e.invars))))
    return jaxpr.replace(eqns=tuple(eqns), outvars=tuple(map(of, jaxpr.outvars)))
