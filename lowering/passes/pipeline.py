"""All passes, in order, until none of them changes the program."""

from __future__ import annotations

from functools import partial

from functrans.core import config
from functrans.core.errors import FunctransError
from functrans.core.jaxpr import Jaxpr
from functrans.core.prune import prune_jaxpr
from functrans.lowering.defects import is_defect, warn_of_fallback
from functrans.lowering.passes.algebra import ALGEBRA, CONSTANT_FOLDING, DECOMPOSE
from functrans.lowering.passes.components import COMPONENTS
from functrans.lowering.passes.compositions import composed
from functrans.lowering.passes.contractions import CONTRACTIONS
from functrans.lowering.passes.forward_accumulation import accumulate_forward
from functrans.lowering.passes.gathered_rows import GATHERED_ROWS
from functrans.lowering.passes.loops import LOOPS
from functrans.lowering.passes.movement import MOVEMENT, MOVEMENT_SINKING
from functrans.lowering.passes.networks.algebra import Decision, contract_networks
from functrans.lowering.passes.pass_log import in_body, recorded
from functrans.lowering.passes.records import record_less
from functrans.lowering.passes.recurrences import RECURRENCES
from functrans.lowering.passes.reductions import REDUCTIONS
from functrans.lowering.passes.rewrite import (
    Change,
    Dispatch,
    Rewriter,
    RewriteTable,
    equation_text,
)
from functrans.lowering.passes.systems import SYSTEMS, share_systems

__all__ = ["ALL_RULES", "TABLES", "simplify", "simplify_with"]

TABLES: tuple[RewriteTable, ...] = (
    DECOMPOSE, CONSTANT_FOLDING, ALGEBRA, MOVEMENT, MOVEMENT_SINKING, REDUCTIONS, CONTRACTIONS,
    GATHERED_ROWS, SYSTEMS, LOOPS, RECURRENCES)
MAX_SWEEPS = 12  # a chain of rewrites that each wait for the last one's dead code; 4 is usual

ALL_RULES = Dispatch(TABLES)
IN_COMPONENTS = Dispatch((*TABLES, COMPONENTS))


def simplify(jaxpr: Jaxpr, log: list[Change] | None = None, algebra: str | None = None,
             decisions: list[Decision] | None = None, atomic: bool = False) -> Jaxpr:
    """A program that computes the same with less work; `jaxpr` itself when there is none.

    Inputs and outputs keep their number, order and types. Each change is appended to `log`, what
    was contracted and what was not to `decisions`. `algebra` is as in `Config`, its own if None;
    `atomic` says that the target scatters by atomic operations, which wait for each other.
    """
    algebra = config.current().algebra if algebra is None else algebra
    # first: sums of products are moved out of backward loops, which then have stacks as results
    jaxpr = recorded(log, "compositions", jaxpr, composed)
    before = simplify_with(ALL_RULES, _accumulated_forward(jaxpr, log), log)
    shared = recorded(log, "equal systems", before, partial(share_systems, log=log))
    if shared is not before:
        before = simplify_with(ALL_RULES, shared, log)
    if algebra == "off":
        return before
    try:
        after = recorded(log, "contraction of networks", before, lambda program: contract_networks(
            program, algebra == "always", decisions, atomic))
    except Exception as error:
        if not is_defect(error):
            raise
        warn_of_fallback(jaxpr.name, "its products and sums stay as they are", error, None)
        after = before
    if after is not before:
        after = simplify_with(ALL_RULES, after, log)
    if not after.calls:  # the laws of components are of loops, and all others have been tried
        return after
    # last: products of short vectors have been contracted
    after = simplify_with(IN_COMPONENTS, after, log)
    for _ in range(MAX_SWEEPS):
        before, after = after, recorded(log, "records of loops", _accumulated_forward(after, log),
                                        partial(record_less, log=log))
        if after is before:
            break
        after = simplify_with(IN_COMPONENTS, after, log)
    return after


def _accumulated_forward(jaxpr: Jaxpr, log: list[Change] | None) -> Jaxpr:
    try:
        return recorded(log, "sums out of backward loops", jaxpr,
                        partial(accumulate_forward, log=log))
    except Exception as error:
        if not is_defect(error) and not isinstance(error, FunctransError):  # of a rule, say
            raise
        warn_of_fallback(jaxpr.name, "its gradients of loops run backwards", error, None)
        return jaxpr


def simplify_with(rules: Dispatch, jaxpr: Jaxpr, log: list[Change] | None = None) -> Jaxpr:
    """`simplify` by some of the tables."""
    bodies: dict[Jaxpr, Jaxpr] = {}

    def simplify_body(body: Jaxpr) -> Jaxpr:
        found = bodies.get(body)
        if found is None:
            with in_body(log):
                found = bodies[body] = simplify_with(rules, body, log)
            bodies[found] = found
        return found

    rewriter = Rewriter(rules, simplify_body, log)
    for _ in range(MAX_SWEEPS):
        before = jaxpr
        jaxpr = recorded(log, "dead code", jaxpr, partial(_without_dead_code, log=log))
        jaxpr = recorded(log, "rewrites", jaxpr, rewriter.sweep)
        if jaxpr is before:
            break
    return jaxpr


def _without_dead_code(jaxpr: Jaxpr, log: list[Change] | None) -> Jaxpr:
    pruned = prune_jaxpr(jaxpr)
    if log is not None and pruned is not jaxpr:
        kept = set(pruned.eqns)
        log.extend(Change("dead code", "nothing reads it", eqn.source, equation_text(eqn), "",
                          eqn.outvars)
                   for eqn in jaxpr.eqns if eqn not in kept)
    return pruned
