"""Loops are split around contractions: what does not take part in the recurrence leaves it.

A step of a recurrent network multiplies matrices with vectors, and its gradient adds up outer
products: each reads or writes a whole matrix per step. Over all steps at once the same work is one
product of matrices. Only sums are regrouped (a zero that they start from is left out). What has to
be stacked for it is limited to what the loop reads and writes in any case, or to `FEW` bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.lowering.passes.contractions import is_narrow
from functrans.lowering.passes.movement import transpose
from functrans.lowering.passes.reductions import reduce_sum
from functrans.lowering.passes.rewrite import Results, Rewriter, Table, count_uses
from functrans.primitives.arithmetic import add_p, mul_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.control_flow.bodies import counted
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.dot import dot_general_p

__all__ = ["RECURRENCES"]

RECURRENCES = Table("recurrences")
rule = RECURRENCES.rule

FEW = 1 << 20  # bytes
SHORTEST = 8  # iterations
WIDEST = 8  # times that a product may be larger than the vector that it is of, to be stacked


class Loop(NamedTuple):
    """A scan taken apart."""

    consts: list[Atom]
    carry: list[Atom]
    xs: list[Atom]
    v_consts: list[Var]
    v_carry: list[Var]
    v_xs: list[Var]
    out_carry: list[Atom]
    out_ys: list[Atom]
    makers: dict[Atom, Equation]
    uses: dict[Atom, int]

    @staticmethod
    def of(eqn: Equation) -> Loop:
        p = eqn.params
        nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
        consts, carry, xs = counted(eqn.invars, nc, nk)
        v_consts, v_carry, v_xs = counted(body.invars, nc, nk)
        out_carry, out_ys = counted(body.outvars, nk)
        makers: dict[Atom, Equation] = {v: e for e in body.eqns for v in e.outvars}
        return Loop(consts, carry, xs, v_consts, v_carry, v_xs, out_carry, out_ys, makers,
                    count_uses(body))

    def has_room(self, eqn: Equation, stacked: Sequence[Atom]) -> bool:
        """Whether to stack such values, one for each iteration."""
        length = eqn.params["length"]
        sizes = [x.aval.nbytes for x in (*self.xs, *eqn.outvars[len(self.carry):], *stacked)]
        if not isinstance(length, int) or length < SHORTEST \
                or not all(isinstance(s, int) for s in sizes):
            return False
        new: Any = sum(sizes[len(sizes) - len(stacked):])
        return bool(new * length <= max(FEW, sum(sizes) - new))


def _rebuilt(r: Rewriter, eqn: Equation, loop: Loop, eqns: Sequence[Equation],
             outvars: Sequence[Var]) -> tuple[Atom, ...]:
    """The scan with the parts of `loop`."""
    body = eqn.params["jaxpr"]
    jaxpr = Jaxpr((), (*loop.v_consts, *loop.v_carry, *loop.v_xs), tuple(eqns),
                  (*loop.out_carry, *loop.out_ys), name=body.name)
    params = {**eqn.params, "jaxpr": jaxpr, "num_consts": len(loop.consts),
              "num_carry": len(loop.carry)}
    return r.emit(Equation(scan_p, (*loop.consts, *loop.carry, *loop.xs), tuple(outvars), params,
                           eqn.source))


def _shifted(axes: Sequence[int]) -> list[int]:
    return [a + 1 for a in axes]


# ------------------------------------------------------------------------------- before the loop


@rule(scan_p, law="x[i] . w in each iteration i is x . w before the loop")
def products_of_elements(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = Loop.of(eqn)
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
        return _rebuilt(r, eqn, loop._replace(xs=[*loop.xs, product], v_xs=[*loop.v_xs, out]),
                        eqns, eqn.outvars)
    return None


def _is_moderate(vector: ShapedArray, product: ShapedArray) -> bool:
    n, m = math.prod(vector.shape), math.prod(product.shape)
    return isinstance(n, int) and isinstance(m, int) and 1 < m <= WIDEST * n


# ------------------------------------------------------------------------------- after the loop


@rule(scan_p, law="a stack of products x[i] . w is x . w after the loop")
def stacked_products(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = Loop.of(eqn)
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
        outvars[nk + i] = _stack(eqn, x)
        eqns = [other for other in eqn.params["jaxpr"].eqns if other is not e]
        news = _rebuilt(r, eqn, loop._replace(out_ys=ys), eqns, outvars)
        dims = ((tuple(_shifted(cx)), cy) if left else (cx, tuple(_shifted(cy))), ((), ()))
        pair = (news[nk + i], consts[w]) if left else (consts[w], news[nk + i])
        product = r(dot_general_p, *pair, **{**e.params, "dimension_numbers": dims})
        if not left:
            n = len(w.aval.shape) - len(cx)
            rest = [d for d in range(len(product.aval.shape)) if d != n]
            product = transpose(r, product, [n, *rest])
        return (*news[:nk + i], product, *news[nk + i + 1:])
    return None


def _stack(eqn: Equation, x: Atom) -> Var:
    return Var(ShapedArray((eqn.params["length"], *x.aval.shape), x.aval.dtype))


class Factors(NamedTuple):
    """A product of two values of an iteration, and which axes are contracted and shared.

    `order` is the place of each axis (shared, then those of x, then of y) in the product.
    """

    x: Atom
    y: Atom
    contracted: tuple[list[int], list[int]]
    shared: tuple[list[int], list[int]]
    order: list[int]


@rule(scan_p, law="a carried sum of products x[i] . y[i] is x . y after the loop")
def carried_products(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = Loop.of(eqn)
    for k in range(len(loop.carry)):
        term = _carried_term(loop, k)
        factors = None if term is None else _factors(loop, term)
        if factors is None:
            continue
        there = {*loop.v_xs, *loop.out_ys}
        new = [x for x in {factors.x: 0, factors.y: 0} if x not in there]
        if loop.has_room(eqn, new):
            results, stacks = _without_carry(r, eqn, loop, k, new)
            total = _total(r, factors, stacks[factors.x], stacks[factors.y])
            return (*results[:k], _started(r, loop.carry[k], total), *results[k:])
    return None


@rule(scan_p, law="a carried sum of values that are stacked is their sum after the loop")
def carried_sums(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    loop = Loop.of(eqn)
    for k in range(len(loop.carry)):
        term = _carried_term(loop, k)
        if term is None or term not in (*loop.v_xs, *loop.out_ys) or is_narrow(term) \
                or not loop.has_room(eqn, []):
            continue
        results, stacks = _without_carry(r, eqn, loop, k, [])
        total = reduce_sum(r, stacks[term], (0,))
        return (*results[:k], _started(r, loop.carry[k], total), *results[k:])
    return None


def _carried_term(loop: Loop, k: int) -> Atom | None:
    """What each iteration adds to a carried value that it does not read otherwise."""
    carry, out = loop.v_carry[k], loop.out_carry[k]
    e = loop.makers.get(out)
    if e is None or e.primitive is not add_p or carry not in e.invars \
            or loop.uses[carry] != 1 or loop.uses[out] != 1:
        return None
    term = e.invars[1] if e.invars[0] is carry else e.invars[0]
    return term if term.aval.shape == carry.aval.shape else None


def _without_carry(r: Rewriter, eqn: Equation, loop: Loop, k: int, new: Sequence[Atom]
                   ) -> tuple[tuple[Atom, ...], dict[Atom, Atom]]:
    """The scan that does not carry value k, and stacks `new` values besides: its results but for
    these, and where the values of all iterations are."""
    gone = loop.makers[loop.out_carry[k]]
    outvars = [*eqn.outvars[:k], *eqn.outvars[k + 1:], *(_stack(eqn, x) for x in new)]
    without = loop._replace(
        carry=[x for i, x in enumerate(loop.carry) if i != k],
        v_carry=[v for i, v in enumerate(loop.v_carry) if i != k],
        out_carry=[x for i, x in enumerate(loop.out_carry) if i != k],
        out_ys=[*loop.out_ys, *new])
    news = _rebuilt(r, eqn, without, [e for e in eqn.params["jaxpr"].eqns if e is not gone],
                    outvars)
    nk = len(without.carry)
    stacks: dict[Atom, Atom] = dict(zip(loop.v_xs, loop.xs, strict=True))
    stacks.update(zip(without.out_ys, news[nk:], strict=True))
    return news[:len(news) - len(new)], stacks


def _started(r: Rewriter, start: Atom, total: Atom) -> Atom:
    value = r.constant(start)
    return total if value is not None and value == 0 else r(add_p, start, total)


def _factors(loop: Loop, term: Atom) -> Factors | None:
    e = loop.makers.get(term)
    if e is None or loop.uses[term] != 1 or is_narrow(term) \
            or dtypes.kind(term.aval.dtype) not in "fc":
        return None
    if e.primitive is dot_general_p:
        x, y = e.invars
        (cx, cy), (bx, by) = e.params["dimension_numbers"]
        if x.aval.dtype != term.aval.dtype:
            return None
        found = Factors(x, y, (list(cx), list(cy)), (list(bx), list(by)),
                        list(range(len(term.aval.shape))))
    elif e.primitive is mul_p:
        makers = [loop.makers.get(a) for a in e.invars]
        if any(m is None or m.primitive is not broadcast_in_dim_p for m in makers):
            return None
        a, b = [m for m in makers if m is not None]
        da, db = a.params["broadcast_dimensions"], b.params["broadcast_dimensions"]
        shared = [d for d in da if d in db]
        rows, cols = [d for d in da if d not in db], [d for d in db if d not in da]
        if not rows or not cols or len(rows + cols + shared) != len(term.aval.shape):
            return None
        found = Factors(a.invars[0], b.invars[0], ([], []),
                        ([da.index(d) for d in shared], [db.index(d) for d in shared]),
                        shared + rows + cols)
    else:
        return None
    if any(not isinstance(x, Var) or x in loop.v_consts for x in (found.x, found.y)):
        return None
    return found


def _total(r: Rewriter, factors: Factors, x: Atom, y: Atom) -> Atom:
    """The sum over all iterations of the products, from the stacks of both factors."""
    (cx, cy), (bx, by) = factors.contracted, factors.shared
    dims = (((0, *_shifted(cx)), (0, *_shifted(cy))),
            (tuple(_shifted(bx)), tuple(_shifted(by))))
    out = r(dot_general_p, x, y, dimension_numbers=dims)
    order = factors.order
    return transpose(r, out, [order.index(d) for d in range(len(order))])
