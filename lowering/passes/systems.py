"""Laws of linear systems, which are linear in their right-hand sides; and systems that share work.

A program asks for several systems with one matrix: a likelihood and its gradient, a filter that
solves for a gain and for a residual. `share_systems` joins the right-hand sides of those that do
not wait for each other, and factors a matrix of more than `SMALL` rows once for all its systems,
transposed ones included, and for its determinant. Smaller ones are cheaper to factor again than to
keep apart from their factors, in launches and in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr
from functrans.core.prune import has_effects
from functrans.lowering.passes.movement import reshape, transpose
from functrans.lowering.passes.rewrite import (
    Change,
    Results,
    Rewriter,
    RewriteTable,
    equation_text,
    inlined,
    key_of,
    with_bodies,
)
from functrans.primitives.arithmetic import abs, div_p, log, mul, mul_p, neg_p, sign
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.base import full
from functrans.primitives.broadcast import reduce_sum, transpose_p
from functrans.primitives.compare import bitwise_and, eq, ne, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.linalg import lu_p
from functrans.primitives.matrix import diagonal, take_rows
from functrans.primitives.reduce import reduce_prod
from functrans.primitives.shape import broadcasted_iota, concatenate, reshape_p, slice
from functrans.primitives.solve import (
    det_p,
    slogdet_p,
    solve_p,
    triangular_solve,
    triangular_solve_p,
)
from functrans.primitives.sort import sort

__all__ = ["SMALL", "SYSTEMS", "det_of_factors", "share_systems", "slogdet_of_factors"]

SMALL: Final = 64
"""Rows up to which the systems of a matrix are solved without factors of their own."""

NARROW: Final = 128
"""Right-hand sides from which on a system is not joined with others: it fills a processor alone."""

SYSTEMS = RewriteTable("systems")
rule = SYSTEMS.rule
SOLVES: Final = (triangular_solve_p, solve_p)
FACTORED: Final = (solve_p, det_p, slogdet_p)

INT = np.dtype(np.int32)

# --------------------------------------------------------------------------- laws


@rule(*SOLVES, of=(mul_p, div_p, neg_p, reshape_p),
      law="solve(a, b * c) = solve(a, b) * c for a scalar c")
def scaled_sides(r: Rewriter, eqn: Equation, a: Atom, b: Atom) -> Results:
    moved = r.made(b, reshape_p)
    made = r.made(moved.invars[0] if moved else b, mul_p, div_p, neg_p)
    if made is None:
        return None
    x, *scale = made.invars
    if scale and scale[0].aval.shape:
        x, scale = scale[0], [x]
        if made.primitive is div_p or scale[0].aval.shape:
            return None
    if not x.aval.shape:
        return None
    out = r(eqn.primitive, a, reshape(r, x, b.aval.shape), **eqn.params)
    return r(made.primitive, out, *scale)


@rule(triangular_solve_p, law="x op(a) = b is op(a)^T x^T = b^T for one row b")
def row_on_the_right(r: Rewriter, eqn: Equation, a: Atom, b: Atom) -> Results:
    if eqn.params["left_side"] or b.aval.shape[-2] != 1 or b.aval.shape[-1] == 1:
        return None
    *lead, k, n = b.aval.shape
    out = r(triangular_solve_p, a, reshape(r, b, (*lead, n, k)), **_on_other_side(eqn))
    return reshape(r, out, b.aval.shape)


@rule(triangular_solve_p, of=transpose_p,
      law="x op(a) = b^T is op(a)^T x^T = b")
def transposed_sides(r: Rewriter, eqn: Equation, a: Atom, b: Atom) -> Results:
    made = r.made(b, transpose_p)
    if eqn.params["left_side"] or made is None or not is_matrix_transpose(made):
        return None
    out = r(triangular_solve_p, a, made.invars[0], **_on_other_side(eqn))
    return transpose(r, out, made.params["permutation"])


def _on_other_side(eqn: Equation) -> dict[str, Any]:
    return {**eqn.params, "left_side": not eqn.params["left_side"],
            "transpose_a": not eqn.params["transpose_a"]}


def is_matrix_transpose(eqn: Equation) -> bool:
    """Whether an equation exchanges rows and columns, and nothing else."""
    order = eqn.params["permutation"]
    n = len(order)
    return bool(n >= 2 and tuple(order) == (*range(n - 2), n - 1, n - 2))


# --------------------------------------------------------------------------- shared work


def share_systems(jaxpr: Jaxpr, log: list[Change] | None = None) -> Jaxpr:
    """The program with systems of one matrix solved together; itself where there are none."""
    log = [] if log is None else log
    jaxpr = with_bodies(jaxpr, lambda body: share_systems(body, log))
    if jaxpr.primitives.isdisjoint(SOLVES):
        return jaxpr
    jaxpr = _with_shared_factors(jaxpr, log)
    while (joined := _with_joined_sides(jaxpr, log)) is not None:
        jaxpr = joined
    return jaxpr


# --- One factorization for all systems of a matrix, and its determinant


def _with_shared_factors(jaxpr: Jaxpr, log: list[Change]) -> Jaxpr:
    roots: dict[Atom, tuple[Atom, bool]] = {}  # of matrices: what they are, or are transposes of
    groups: dict[Atom, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is transpose_p and is_matrix_transpose(eqn):
            root, transposed = roots.get(eqn.invars[0], (eqn.invars[0], False))
            roots[eqn.outvars[0]] = root, not transposed
        elif eqn.primitive in FACTORED and _is_large(eqn.invars[0]):
            root, _ = roots.get(eqn.invars[0], (eqn.invars[0], False))
            groups.setdefault(root, []).append(eqn)
    shared = {id(eqn): root for root, group in groups.items() if len(group) > 1 for eqn in group}
    if not shared:
        return jaxpr
    log += [Change(SYSTEMS.name, "one factorization for all that need it", eqn.source,
                   equation_text(eqn), "by factors") for eqn in jaxpr.eqns if id(eqn) in shared]
    env: dict[Atom, Atom] = {}
    known: dict[Any, list[Atom]] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        eqn_id = id(eqn)
        if any(a in env for a in eqn.invars):
            eqn = eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]))
        if eqn_id not in shared:
            eqns.append(eqn)
            continue
        root = shared[eqn_id]
        transposed = roots.get(eqn.invars[0], (root, False))[1]
        outs = _of_factors(eqn, env.get(root, root), transposed, known, eqns)
        env.update(zip(eqn.outvars, outs, strict=True))
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns),
                 tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)


def _is_large(a: Atom) -> bool:
    n = a.aval.shape[-1]
    return isinstance(n, int) and n > SMALL


def _of_factors(eqn: Equation, root: Atom, transposed: bool, known: dict[Any, list[Atom]],
                eqns: list[Equation]) -> list[Atom]:
    """The results of an equation by the factors of its matrix, computed the first time."""
    def once(key: Any, fun: Callable[..., Sequence[Any]], *operands: Atom) -> list[Atom]:
        if key not in known:
            known[key] = inlined(fun, operands, eqns, eqn.primitive.name, eqn.source)
        return known[key]

    factors, pivots, order = once(root, lambda a: [*lu_p.bind(a)], root)
    if eqn.primitive is slogdet_p:
        return inlined(slogdet_of_factors, [factors, pivots], eqns, "slogdet", eqn.source)
    if eqn.primitive is det_p:
        return inlined(lambda *x: [det_of_factors(*x)], [factors, pivots], eqns, "det", eqn.source)
    if transposed:
        (order,) = once((root, "inverse"), _inverse_order, order)
    return inlined(partial(_solve_by_factors, transposed), [factors, order, eqn.invars[1]], eqns,
                   "solve", eqn.source)


def _inverse_order(order: Any) -> list[Any]:
    last = order.ndim - 1
    place = broadcasted_iota(INT, order.shape, last)
    return [sort((order, place), dimension=last, num_keys=1)[1]]


def _solve_by_factors(transposed: bool, factors: Any, order: Any, b: Any) -> list[Any]:
    """x with a x = b for a[order] = L U, or a^T x = b with the inverse order."""
    low = partial(triangular_solve, factors, left_side=True, lower=True, unit_diagonal=True)
    up = partial(triangular_solve, factors, left_side=True, lower=False)
    if transposed:
        return [take_rows(low(up(b, transpose_a=True), transpose_a=True), order)]
    return [up(low(take_rows(b, order)))]


def _parity(pivots: Any, dtype: Any) -> Any:
    """-1 for an odd number of exchanges, else 1."""
    last = pivots.ndim - 1
    moved = ne(pivots, broadcasted_iota(INT, pivots.shape, last))
    odd = eq(bitwise_and(reduce_sum(convert_element_type(moved, INT), (last,)), 1), 1)
    return where(odd, full(odd.shape, -1, dtype), full(odd.shape, 1, dtype))


def det_of_factors(factors: Any, pivots: Any) -> Any:
    """The determinants of matrices whose LU factors and exchanges, from 0, are given."""
    return mul(reduce_prod(diagonal(factors), (factors.ndim - 2,)), _parity(pivots, factors.dtype))


def slogdet_of_factors(factors: Any, pivots: Any) -> list[Any]:
    """The signs of their determinants, and the logarithms of the absolute values."""
    pivot = diagonal(factors)
    signs = mul(reduce_prod(sign(pivot), (factors.ndim - 2,)), _parity(pivots, factors.dtype))
    return [signs, reduce_sum(log(abs(pivot)), (factors.ndim - 2,))]


# --- Right-hand sides next to each other


def _with_joined_sides(jaxpr: Jaxpr, log: list[Change]) -> Jaxpr | None:
    """The program with the first systems joined that can be; None where none can."""
    bits: dict[Atom, int] = {}  # of a variable, the systems that it waits for
    groups: dict[Any, list[tuple[int, Equation]]] = {}
    for k, eqn in enumerate(jaxpr.eqns):
        waits = 0
        for a in eqn.invars:
            waits |= bits.get(a, 0)
        if eqn.primitive in SOLVES and _is_narrow(eqn):
            group = groups.setdefault(_system_of(eqn), [])
            if not any(waits >> other & 1 for other, _ in group):
                group.append((k, eqn))
            waits |= 1 << k
        if waits:
            bits.update(dict.fromkeys(eqn.outvars, waits))
    for group in groups.values():
        if len(group) > 1 and (joined := _joined(jaxpr, dict(group))) is not None:
            log += [Change(SYSTEMS.name, "systems of one matrix are one", eqn.source,
                           equation_text(eqn), f"one of {len(group)}") for _, eqn in group]
            return joined
    return None


def _axis_of_sides(eqn: Equation) -> int:
    return len(eqn.invars[1].aval.shape) - (1 if eqn.params.get("left_side", True) else 2)


def _is_narrow(eqn: Equation) -> bool:
    width = eqn.invars[1].aval.shape[_axis_of_sides(eqn)]
    return isinstance(width, int) and width < NARROW


def _system_of(eqn: Equation) -> Any:
    """Equal for systems that differ in their right-hand sides alone."""
    a, b = eqn.invars
    return key_of(eqn.replace(invars=(a, a))), b.aval.shape[:-2], b.aval.dtype


def _joined(jaxpr: Jaxpr, group: dict[int, Equation]) -> Jaxpr | None:
    """The program with systems of a group, which do not wait for each other, as one.

    What reads the first ones moves behind the last one. None where that would move an effect.
    """
    last = max(group)
    late: set[Atom] = set()
    before: list[Equation] = []
    delayed: list[Equation] = []
    for k, eqn in enumerate(jaxpr.eqns[:last]):
        if k in group:
            late.update(eqn.outvars)
        elif late and not late.isdisjoint(eqn.invars):
            if eqn.primitive is optimization_barrier_p or eqn.primitive.has_effect \
                    or (eqn.primitive.higher_order and has_effects(eqn)):
                return None
            late.update(eqn.outvars)
            delayed.append(eqn)
        else:
            before.append(eqn)
    eqn, solves = group[last], list(group.values())
    axis, sides = _axis_of_sides(eqn), [s.invars[1] for s in solves]

    def solve_all(a: Any, *bs: Any) -> Iterator[Any]:
        x = eqn.primitive.bind(a, concatenate(bs, axis), **eqn.params)
        start = 0
        for b in bs:
            low, high = [0] * x.ndim, list(x.shape)
            low[axis], high[axis] = start, start + b.shape[axis]
            yield slice(x, low, high)
            start = high[axis]

    outs = inlined(lambda *xs: list(solve_all(*xs)), [eqn.invars[0], *sides], before,
                   eqn.primitive.name, eqn.source)
    env: dict[Atom, Atom] = {s.outvars[0]: x for s, x in zip(solves, outs, strict=True)}
    after = [e.replace(invars=tuple([env.get(a, a) for a in e.invars]))
             for e in (*delayed, *jaxpr.eqns[last + 1:])]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, (*before, *after),
                 tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)

