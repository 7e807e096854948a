"""The pass: what is cheaper from factors is contracted, in a program and its loops."""

from __future__ import annotations

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.passes.networks.contract import contracted
from functrans.lowering.passes.networks.cost_estimate import COLLISION
from functrans.lowering.passes.networks.decide import Decision, decide
from functrans.lowering.passes.networks.forms import analysis_of
from functrans.lowering.passes.rewrite import Dispatch, Rewriter, with_bodies
from functrans.primitives.shape import reshape_p

__all__ = ["Decision", "contract_networks"]


def contract_networks(jaxpr: Jaxpr, eager: bool = False,
                      decisions: list[Decision] | None = None, atomic: bool = False) -> Jaxpr:
    """A program that does not materialise what is cheaper to contract; itself where nothing is.

    Each decision is appended to `decisions`. `eager` contracts all that can be, whatever it costs.
    `atomic` says that the target adds rows by atomic operations, which wait for each other.
    """
    jaxpr = with_bodies(jaxpr, lambda body: contract_networks(body, eager, decisions,
                                                                  atomic))
    found = analysis_of(jaxpr, eager)
    if not found.contractions:
        return jaxpr
    replacements, made = decide(found, eager, COLLISION if atomic else 0.0)
    if decisions is not None:
        decisions += made
    if not replacements:
        return jaxpr
    plans = {r.contraction.eqn: r for r in replacements}
    r = Rewriter(Dispatch(()), lambda body: body)
    for eqn in jaxpr.eqns:
        replacement = plans.get(eqn)
        if replacement is None:
            r.keep(eqn)
            continue
        r.at(eqn.source)
        value = contracted(r, replacement.contraction.form, replacement.plans)
        # under the name that it had: later networks know it by that
        r.keep(Equation(reshape_p, (value,), eqn.outvars, {"new_sizes": value.aval.shape},
                        eqn.source))
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(r.eqns), jaxpr.outvars, name=jaxpr.name)
