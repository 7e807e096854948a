"""Values that a kernel of attention has in registers alone: scores, weights, and what makes these.

To a plan of what is kept they are of no size, and are computed again as a whole or not at all. They
are found by the shape of a program, not proved: what is no attention costs a worse plan, and
no wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import reduce_max_p
from functrans.primitives.shape import reshape_p, rev_p, slice_p
from functrans.primitives.transcendental import exp_p

__all__ = ["hidden_values"]

AMONG_SCORES = frozenset({
    select_n_p, convert_element_type_p, clamp_p, add_any_p, broadcast_in_dim_p, reduce_sum_p,
    reduce_max_p, reshape_p, transpose_p, slice_p, rev_p, full_p})


def hidden_values(jaxpr: Jaxpr) -> frozenset[Var]:
    """The values between products of which the first gives scores, whose softmax others weight."""
    readers: dict[Atom, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        for a in eqn.invars:
            if not isinstance(a, Literal):
                readers.setdefault(a, []).append(eqn)
    results = {a for a in jaxpr.outvars if isinstance(a, Var)}
    hidden: set[Var] = set()
    products = [eqn for eqn in jaxpr.eqns if eqn.primitive is dot_general_p]
    for eqn in products:
        found, made_by = _from_scores(eqn, readers, results)
        if {exp_p, reduce_sum_p, dot_general_p} <= made_by:
            hidden |= found
    weights = frozenset(hidden)
    for eqn in products if hidden else ():  # the gradient of the scores reads the weights
        found, made_by = _from_scores(eqn, readers, results)
        if dot_general_p in made_by and any(a in weights for v in found
                                            for e in readers.get(v, ()) for a in e.invars
                                            if e.primitive is not dot_general_p):
            hidden |= found
    return frozenset(hidden)


def _from_scores(scores: Equation, readers: dict[Atom, list[Equation]],
                 results: Iterable[Var]) -> tuple[set[Var], set[Primitive]]:
    """The values from scores to the products that read what becomes of them, and all readers."""
    found = set(scores.outvars)
    waiting = list(scores.outvars)
    made_by: set[Primitive] = set()
    while waiting:
        v = waiting.pop()
        if v in results:
            return set(), set()
        for eqn in readers.get(v, ()):
            if eqn.primitive is dot_general_p:
                made_by.add(dot_general_p)
                continue
            if not (isinstance(eqn.primitive, Elementwise) or eqn.primitive in AMONG_SCORES):
                return set(), set()
            made_by.add(eqn.primitive)
            new = [out for out in eqn.outvars if out not in found]
            found.update(new)
            waiting += new
    return found, made_by
