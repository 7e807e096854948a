"""Dead-code elimination: the equations that the outputs do not need are dropped."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.core.jaxpr import Equation, Jaxpr, Var, decided_names, size_names, subjaxprs

__all__ = ["has_effects", "prune_jaxpr", "used_inputs"]


def has_effects(eqn: Equation) -> bool:
    """True when the equation, or one in its bodies, acts on the world outside the program."""
    if eqn.primitive.has_effect or not eqn.primitive.higher_order:
        return eqn.primitive.has_effect
    return any(has_effects(inner) for body in subjaxprs(eqn) for inner in body.eqns)


def prune_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the equations that neither an output nor an effect needs.

    An equation of which some results are not needed becomes, by its primitive's rule `prune`, one
    that does not compute them. One that decides a symbolic size stays while that size is used.
    """
    live: set[Var] = {v for v in jaxpr.outvars if isinstance(v, Var)}
    symbolic = bool(jaxpr.decided_names)
    sizes: set[str] = set()
    for v in live:
        sizes |= size_names(v.aval)
    kept: list[Equation] = []
    changed = False
    for eqn in reversed(jaxpr.eqns):
        if not symbolic and len(eqn.outvars) == 1 and eqn.outvars[0] in live:  # nearly all
            kept.append(eqn)
            live.update([v for v in eqn.invars if type(v) is Var])
            continue
        used = [v in live for v in eqn.outvars]
        decides = symbolic and not sizes.isdisjoint(decided_names(eqn))
        if not any(used) and not decides and not has_effects(eqn):
            changed = True
            continue
        if not all(used) and eqn.primitive.prune is not None:
            smaller = eqn.primitive.prune(eqn, used)
            changed = changed or smaller is not eqn
            eqn = smaller
        kept.append(eqn)
        live.update(v for v in eqn.invars if isinstance(v, Var))
        if symbolic:
            sizes |= size_names((*(v.aval for v in eqn.outvars), *eqn.params.values()))
    if not changed:
        return jaxpr
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(reversed(kept)), jaxpr.outvars,
                 name=jaxpr.name)


def used_inputs(jaxpr: Jaxpr, extra: Sequence[Var] = ()) -> list[bool]:
    """For each input, whether an equation or an output reads it."""
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
    used.update(v for v in (*jaxpr.outvars, *extra) if isinstance(v, Var))
    return [v in used for v in jaxpr.invars]
