"""Sums over lanes that a loop carries are taken after the loop: each lane adds up its own.

The gradient of a parameter that lanes share is such a sum: every iteration adds what all lanes
contribute, so that they wait for each other. Where nothing else mixes them, the loop with a sum for
each lane is one of lanes that know nothing of each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.record import Record
from functrans.lowering.passes.lane_axes import lane_axes
from functrans.lowering.passes.rewrite import inlined, with_bodies, with_equations
from functrans.primitives.arithmetic import add, add_p, mul, mul_p, sub, sub_p
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import (
    broadcast_in_dim,
    reduce_sum,
    reduce_sum_p,
    transpose,
)
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p

__all__ = ["sum_lanes_after_loops"]

LEAST_LANES: Final = 64
MOST_COMPONENTS: Final = 48
"""Numbers that a lane adds up, in registers."""
MOST_IN_TILES: Final = 256
"""The same where lanes multiply what they share, so that a program has a tile of them."""


class _Term(Record):
    """A sum over some axes, with its sign, and what it is multiplied by, if by something.

    What is summed is a value of the body, or the products of two along their first axes. `last` is
    the equation that computes the term.
    """

    sign: int
    fold: Equation
    factor: Atom | None
    last: Equation

    @property
    def operands(self) -> list[Atom]:
        """What it is computed from."""
        return [*self.fold.invars, *(() if self.factor is None else (self.factor,))]


class _Sum(Record):
    """A value of the carry, by number, to which every iteration adds terms.

    `gone` are the equations of the terms and of their addition.
    """

    carry: int
    terms: tuple[_Term, ...]
    gone: tuple[Equation, ...]
    summed: ShapedArray
    axes: tuple[int, ...]


def sum_lanes_after_loops(jaxpr: Jaxpr) -> Jaxpr:
    """The program in whose loops lanes add up their own, where that keeps them apart."""
    return with_equations(with_bodies(jaxpr, sum_lanes_after_loops), _apart)


def _apart(eqn: Equation) -> list[Equation] | None:
    """A loop whose lanes add up their own, and the sums; None of another one."""
    if eqn.primitive is not scan_p:
        return None
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    sums = _sums(body, first, n)
    if not sums:
        return None
    changed = _with_own(body, first, sums)
    if not _is_of_lanes(changed, first, n, sums):
        return None
    eqns: list[Equation] = []
    operands = list(eqn.invars)
    outs = list(eqn.outvars)
    for s in sums:
        (operands[first + s.carry],) = inlined(
            lambda s=s: [zeros(s.summed.strong())], (), eqns, "lanes", eqn.source)
        outs[s.carry] = Var(s.summed)
    eqns.append(eqn.replace(invars=tuple(operands), outvars=tuple(outs),
                            params={**eqn.params, "jaxpr": changed}))
    for s in sums:
        made = inlined(lambda own, before, s=s: [add(before, reduce_sum(own, s.axes))],
                       (outs[s.carry], eqn.invars[first + s.carry]), eqns, "lanes", eqn.source)
        last = eqns[-1]
        assert last.outvars == tuple(made)
        eqns[-1] = last.replace(outvars=(eqn.outvars[s.carry],))
    return eqns


def _sums(body: Jaxpr, first: int, n: int) -> list[_Sum]:
    uses: Counter[Atom] = Counter(x for e in body.eqns for x in e.invars)
    uses.update(body.outvars)
    makers: dict[Atom, Equation] = {v: e for e in body.eqns for v in e.outvars}
    found = []
    for k in range(n):
        before, after = body.invars[first + k], body.outvars[k]
        if uses[before] != 1:
            continue
        terms: list[tuple[int, Atom]] = []
        gone: list[Equation] = []
        _flatten(after, 1, makers, uses, terms, gone)
        terms = [(sign, x) for sign, x in terms if not _is_zero(x)]
        if not gone or (1, before) not in terms:
            continue
        terms.remove((1, before))
        own = [_term(sign, x, makers, uses, gone) for sign, x in terms]
        known = tuple([term for term in own if term is not None])
        kinds = {_summed(term.fold) for term in known}
        kind = kinds.pop() if len(kinds) == 1 and len(known) == len(terms) else None
        if kind is not None:
            found.append(_Sum(k, known, tuple(dict.fromkeys(gone)), *kind))
    return _read_by_sums_alone(found, body)


def _read_by_sums_alone(sums: list[_Sum], body: Jaxpr) -> list[_Sum]:
    """Those of some sums that nothing but these reads."""
    while True:
        gone = {eqn for s in sums for eqn in s.gone}
        read = {x for eqn in body.eqns if eqn not in gone for x in eqn.invars}
        last = {body.outvars[s.carry] for s in sums}
        read.update(x for k, x in enumerate(body.outvars) if x not in last)
        kept = [s for s in sums if read.isdisjoint(v for eqn in s.gone for v in eqn.outvars)]
        if len(kept) == len(sums):
            return kept
        sums = kept


def _term(sign: int, x: Atom, makers: Mapping[Atom, Equation], uses: Counter[Atom],
          gone: list[Equation]) -> _Term | None:
    """A term of a sum, whose equations are gone, too; a sum over axes may be in several of them."""
    eqn = makers.get(x)
    if eqn is None:
        return None
    if _summed(eqn) is not None:
        gone.append(eqn)
        return _Term(sign, eqn, None, eqn)
    if eqn.primitive is mul_p and uses[x] == 1:
        for a, b in (eqn.invars, eqn.invars[::-1]):
            fold = makers.get(a)
            if fold is not None and _summed(fold) is not None and b.aval.shape in (
                    (), a.aval.shape):
                gone += [eqn, fold]
                return _Term(sign, fold, b, eqn)
    return None


def _flatten(x: Atom, sign: int, makers: Mapping[Atom, Equation], uses: Counter[Atom],
             terms: list[tuple[int, Atom]], gone: list[Equation]) -> None:
    """The terms of a sum with their signs, and the equations that add them."""
    eqn = makers.get(x)
    if eqn is None or uses[x] != 1 or eqn.primitive not in (add_p, add_any_p, sub_p):
        terms.append((sign, x))
        return
    gone.append(eqn)
    signs = (sign, -sign if eqn.primitive is sub_p else sign)
    for own, operand in zip(signs, eqn.invars, strict=True):
        _flatten(operand, own, makers, uses, terms, gone)


def _is_zero(x: Atom) -> bool:
    return isinstance(x, Literal) and not x.aval.ndim and bool(x.value == 0)


def _summed(fold: Equation) -> tuple[ShapedArray, tuple[int, ...]] | None:
    """What is summed, and along which axes; None of another operation."""
    if fold.primitive is reduce_sum_p:
        return fold.invars[0].aval.strong(), tuple(fold.params["axes"])
    if fold.primitive is not dot_general_p:
        return None
    (cx, _), (bx, _) = fold.params["dimension_numbers"]
    x, y = (a.aval for a in fold.invars)
    if len(cx) != 1 or bx or x.dtype != fold.outvars[0].aval.dtype or x.dtype != y.dtype:
        return None
    return x.strong().with_shape((x.shape[cx[0]], *fold.outvars[0].aval.shape)), (0,)


def _added(term: _Term, axes: Sequence[int]) -> Callable[..., list[Any]]:
    """What a lane has with a term, as a function of that so far and of the operands of the term."""
    def added(total: Any, *operands: Any) -> list[Any]:
        own = _product(term.fold, *operands[:2]) if term.fold.primitive is dot_general_p \
            else operands[0]
        if term.factor is not None:
            by = operands[-1]
            kept = [k for k in range(own.ndim) if k not in axes] if by.ndim else []
            own = mul(own, broadcast_in_dim(by, own.shape, tuple(kept)))
        return [add(total, own) if term.sign > 0 else sub(total, own)]

    return added


def _product(fold: Equation, x: Any, y: Any) -> Any:
    """The products that a contraction along one axis adds up, along their first axis."""
    (cx, cy), _ = fold.params["dimension_numbers"]
    (i,), (j,) = cx, cy
    nx = x.ndim - 1
    shape = (x.shape[i], *[n for k, n in enumerate(x.shape) if k != i],
             *[n for k, n in enumerate(y.shape) if k != j])
    of_x = [0 if k == i else 1 + k - (k > i) for k in range(x.ndim)]
    of_y = [0 if k == j else 1 + nx + k - (k > j) for k in range(y.ndim)]
    return mul(_placed(x, shape, of_x), _placed(y, shape, of_y))


def _placed(x: Any, shape: Sequence[Any], axes: Sequence[int]) -> Any:
    """A value whose axes stand at some axes of a shape, in any order."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return broadcast_in_dim(transpose(x, order), tuple(shape), tuple([axes[k] for k in order]))


def _with_own(body: Jaxpr, first: int, sums: Sequence[_Sum]) -> Jaxpr:
    """The body in which each lane adds up its own, as soon as it has computed it."""
    invars, outvars = list(body.invars), list(body.outvars)
    gone = {eqn for s in sums for eqn in s.gone}
    terms: dict[Equation, list[tuple[_Sum, _Term]]] = {}
    for s in sums:
        invars[first + s.carry] = outvars[s.carry] = Var(s.summed)
        for term in s.terms:
            terms.setdefault(term.last, []).append((s, term))
    eqns: list[Equation] = []
    for eqn in body.eqns:
        if eqn not in gone:
            eqns.append(eqn)
        for s, term in terms.get(eqn, ()):
            (outvars[s.carry],) = inlined(_added(term, s.axes),
                                          (outvars[s.carry], *term.operands), eqns, "lanes",
                                          eqn.source)
    return Jaxpr(body.constvars, tuple(invars), tuple(eqns), tuple(outvars), name=body.name)


def _is_of_lanes(body: Jaxpr, first: int, n: int, sums: Sequence[_Sum]) -> bool:
    """Whether lanes do not mix, and each adds up few numbers."""
    axes = lane_axes(body, first, n)
    if math.prod(axes.sizes) < LEAST_LANES:
        return False
    most = MOST_IN_TILES if any(eqn.primitive is dot_general_p for eqn in body.eqns) \
        else MOST_COMPONENTS
    for s in sums:
        v = body.outvars[s.carry]
        if isinstance(v, Literal) or not isinstance(v.aval.size, int):
            return False
        lanes = math.prod([axes.sizes[c] for c in axes.of(v).values()])
        if lanes < LEAST_LANES or v.aval.size > most * lanes:
            return False
    return True
