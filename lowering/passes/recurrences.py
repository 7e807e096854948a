"""Loops are split around contractions: what does not take part in the recurrence leaves it.

A step of a recurrent network multiplies matrices with vectors, and its gradient adds up outer
products: each reads or writes a whole matrix per step. Over all steps at once the same work is one
product of matrices. Only sums are regrouped (a zero that they start from is left out). What has to
be stacked for it is limited (`ScanParts.has_room`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Var
from functrans.lowering.passes.movement import transpose
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.lowering.passes.scans import ScanParts, nbytes, rebuilt, stack_of
from functrans.lowering.passes.stacks import After, Cuts, widened
from functrans.lowering.passes.sums import planned
from functrans.primitives.arithmetic import add_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p

__all__ = ["RECURRENCES"]

RECURRENCES = RewriteTable("recurrences")
rule = RECURRENCES.rule

WIDEST = 8  # times that a product may be larger than the vector that it is of, to be stacked


def _shifted(axes: Sequence[int]) -> list[int]:
    return [a + 1 for a in axes]


# ------------------------------------------------------------------------------- before the loop


@rule(scan_p, law="x[i] . w in each iteration i is x . w before the loop")
def products_of_elements(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = ScanParts.of(eqn)
    elements = dict(zip(loop.v_xs, loop.xs, strict=True))
    consts = dict(zip(loop.v_consts, loop.consts, strict=True))
    for e in eqn.params["jaxpr"].eqns:
        if e.primitive is not dot_general_p:
            continue
        x, y = e.invars
        left = x in elements and y in consts
        if not left and not (x in consts and y in elements):
            continue
        vector = x if left else y
        (cx, cy), (bx, _) = e.params["dimension_numbers"]
        out = e.outvars[0]
        if bx or not _is_moderate(vector.aval, out.aval) or not loop.has_room(eqn, [out]):
            continue
        dims = ((tuple(_shifted(cx)), cy) if left else (cx, tuple(_shifted(cy))), ((), ()))
        product = r(dot_general_p, elements[x] if left else consts[x],
                    consts[y] if left else elements[y],
                    **{**e.params, "dimension_numbers": dims})
        if not left:  # the axes of w come before that of the iterations
            n = len(x.aval.shape) - len(cx)
            rest = [d for d in range(len(product.aval.shape)) if d != n]
            product = transpose(r, product, [n, *rest])
        eqns = [other for other in eqn.params["jaxpr"].eqns if other is not e]
        return rebuilt(r, eqn, loop._replace(xs=[*loop.xs, product], v_xs=[*loop.v_xs, out]),
                        eqns, eqn.outvars)
    return None


def _is_moderate(vector: ShapedArray, product: ShapedArray) -> bool:
    n, m = math.prod(vector.shape), math.prod(product.shape)
    return isinstance(n, int) and isinstance(m, int) and 1 < m <= WIDEST * n


# ------------------------------------------------------------------------------- after the loop


@rule(scan_p, law="a stack of products x[i] . w is x . w after the loop")
def stacked_products(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = ScanParts.of(eqn)
    consts = dict(zip(loop.v_consts, loop.consts, strict=True))
    for i, y in enumerate(loop.out_ys):
        e = loop.makers.get(y)
        if e is None or e.primitive is not dot_general_p or loop.uses[y] != 1:
            continue
        left = e.invars[1] in consts
        x, w = e.invars if left else e.invars[::-1]
        (cx, cy), (bx, _) = e.params["dimension_numbers"]
        if bx or w not in consts or x in consts or not isinstance(x, Var) \
                or not _is_moderate(y.aval, x.aval):
            continue
        if not loop.has_room(eqn, [x]):
            continue
        ys = [*loop.out_ys]
        ys[i] = x
        nk = len(loop.carry)
        outvars = list(eqn.outvars)
        outvars[nk + i] = stack_of(eqn, x)
        eqns = [other for other in eqn.params["jaxpr"].eqns if other is not e]
        news = rebuilt(r, eqn, loop._replace(out_ys=ys), eqns, outvars)
        dims = ((tuple(_shifted(cx)), cy) if left else (cx, tuple(_shifted(cy))), ((), ()))
        pair = (news[nk + i], consts[w]) if left else (consts[w], news[nk + i])
        product = r(dot_general_p, *pair, **{**e.params, "dimension_numbers": dims})
        if not left:
            n = len(w.aval.shape) - len(cx)
            rest = [d for d in range(len(product.aval.shape)) if d != n]
            product = transpose(r, product, [n, *rest])
        return (*news[:nk + i], product, *news[nk + i + 1:])
    return None


@rule(scan_p, law="a stack of products is a product of stacks")
def products_of_stacks(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = ScanParts.of(eqn)
    length = eqn.params["length"]
    cuts = Cuts(loop)
    leaves: dict[Atom, int] = {}
    moved = set()
    for i, y in enumerate(loop.out_ys):
        cut = cuts.within(y) if loop.uses[y] == 1 else None
        if cut is not None and cut.product and length != 0:
            moved.add(i)
            leaves.update(cut.leaves)
    if not moved:
        return None
    nk = len(loop.carry)
    kept = [i for i in range(len(loop.out_ys)) if i not in moved]
    ys = [*(loop.out_ys[i] for i in kept), *leaves]
    news = rebuilt(r, eqn, loop._replace(out_ys=ys), eqn.params["jaxpr"].eqns,
                   [*eqn.outvars[:nk], *(eqn.outvars[nk + i] for i in kept),
                    *(stack_of(eqn, x) for x in leaves)])
    after = After(r, loop, _stacks(loop, ys, news[nk:]), {})
    return (*news[:nk], *(after.stack(y, length) for y in loop.out_ys))


@rule(scan_p, law="a carried sum of products x[i] . y[i] is x . y after the loop")
def carried_sums(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = ScanParts.of(eqn)
    length = eqn.params["length"]
    cuts = Cuts(loop)
    totals = {}
    stacked: dict[Atom, int] = {}
    added: dict[Atom, Var] = {}
    for k, carry in enumerate(loop.v_carry):
        plan = planned(loop, cuts, k, length)
        if plan is None or sum(plan.added.values()) >= nbytes(carry):
            continue
        if loop.has_room(eqn, [*{**stacked, **plan.stacked}],
                         nbytes(carry) if plan.product else 0):
            totals[k] = plan.total
            stacked.update(plan.stacked)
            added.update((v, Var(widened(v.aval))) for v in plan.added)
    if not totals:
        return None
    eqns, sums = [*eqn.params["jaxpr"].eqns], []
    for v, carry in added.items():
        if v.aval.dtype != carry.aval.dtype:
            wide = Var(carry.aval)
            eqns.append(Equation(convert_element_type_p, (v,), (wide,),
                                 {"new_dtype": wide.aval.dtype, "weak_type": False}, eqn.source))
            v = wide
        sums.append(Var(carry.aval))
        eqns.append(Equation(add_p, (carry, v), (sums[-1],), {}, eqn.source))
    kept = [k for k in range(len(loop.carry)) if k not in totals]
    without = loop._replace(
        carry=[*(loop.carry[k] for k in kept), *(r.full(0, v.aval) for v in added.values())],
        v_carry=[*(loop.v_carry[k] for k in kept), *added.values()],
        out_carry=[*(loop.out_carry[k] for k in kept), *sums],
        out_ys=[*loop.out_ys, *stacked])
    nk = len(loop.carry)
    news = rebuilt(r, eqn, without, eqns, [
        *(eqn.outvars[k] for k in kept), *(Var(v.aval) for v in sums), *eqn.outvars[nk:],
        *(stack_of(eqn, x) for x in stacked)])
    first = len(without.carry)
    after = After(r, loop, _stacks(loop, without.out_ys, news[first:]),
                  dict(zip(added, news[len(kept):first], strict=True)))
    carried = dict(zip(kept, news, strict=False))
    return (*(totals[k](after) if k in totals else carried[k] for k in range(nk)),
            *news[first:len(news) - len(stacked)])


def _stacks(loop: ScanParts, ys: Sequence[Atom], results: Sequence[Atom]) -> dict[Atom, Atom]:
    """Where the values of all iterations are."""
    return {**dict(zip(loop.v_xs, loop.xs, strict=True)), **dict(zip(ys, results, strict=True))}
