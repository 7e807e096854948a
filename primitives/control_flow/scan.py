"""scan: a loop of known length that carries values, reads one of xs and writes one of ys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis
from functrans.core.cost import Cost, jaxpr_cost
from functrans.core.dims import Size
from functrans.core.errors import AxisSizeError, JaxprError
from functrans.core.evaluate import eval_jaxpr, program_of
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import HigherOrder, Linear
from functrans.core.prune import prune_jaxpr, used_inputs
from functrans.core.sizes import known_sizes
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.primitives.control_flow.bodies import (
    check_operands,
    counted,
    depends,
    filled,
    pick,
    rearranged,
    split_body,
    stage_body,
)
from functrans.primitives.differentiable import add_any

__all__ = ["scan_p"]


class Scan(HigherOrder):
    """Runs `jaxpr`: (consts, carry, x) -> (carry, y) for x along the first axis of each of xs.

    Operands are consts, initial carry, xs; results the last carry and the stacked ys. `reverse`
    goes from the last element to the first; `unroll` is a hint for code generators.
    """

    def type(self, *avals: ShapedArray, jaxpr: Jaxpr, length: Size, reverse: bool, unroll: int,
             num_consts: int, num_carry: int) -> list[ShapedArray]:
        first, xs = avals[:num_consts + num_carry], avals[num_consts + num_carry:]
        for x in xs:
            if not x.shape or x.shape[0] != length:
                raise AxisSizeError(f"scan of length {length} over an operand of type {x}.")
        check_operands("scan", jaxpr.in_avals, [*first, *(x.with_shape(x.shape[1:]) for x in xs)])
        carry, ys = counted(jaxpr.out_avals, num_carry)
        init = avals[num_consts:num_consts + num_carry]
        for before, after in zip(init, carry, strict=True):
            if not before.matches(after):
                raise JaxprError(f"scan carries a {before}, the body makes it a {after}.")
        carry = [after.varying_along(before.varying | after.varying)
                 for before, after in zip(init, carry, strict=True)]
        return [*carry, *(y.with_shape((length, *y.shape)) for y in ys)]

    def evaluate(self, *args: Any, jaxpr: Jaxpr, length: int, reverse: bool, unroll: int,
                 num_consts: int, num_carry: int) -> list[np.ndarray[Any, Any]]:
        consts, carry, xs = counted(args, num_consts, num_carry)
        run = program_of(jaxpr).run
        ys: list[np.ndarray[Any, Any]] = []
        order = range(length - 1, -1, -1) if reverse else range(length)
        for i in order:
            outs = run([*consts, *carry, *[x[i, ...] for x in xs]])
            carry = outs[:num_carry]
            if not ys:
                ys = [np.empty((length, *y.shape), y.dtype) for y in outs[num_carry:]]
            for stack, y in zip(ys, outs[num_carry:], strict=True):
                stack[i] = y
        if length == 0:
            shapes = [a.shape for a in (*consts, *carry)] + [x.shape[1:] for x in xs]
            sizes = known_sizes(jaxpr.in_avals, shapes)
            types = [y.substitute(sizes) for y in jaxpr.out_avals[num_carry:]]
            ys = [np.empty((0, *y.shape), y.dtype) for y in types]
        return [*carry, *ys]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        active = [t is not None for t in tangents]
        carried = slice(num_consts, num_consts + num_carry)
        rest = [False] * (len(jaxpr.outvars) - num_carry)
        while True:
            body, nonzero = jvp_jaxpr(jaxpr, active, [*active[carried], *rest])
            if list(nonzero[:num_carry]) == active[carried]:
                break
            active[carried] = nonzero[:num_carry]
        joint = interleaved(body, active, nonzero, num_consts, num_carry)
        filled_tangents = filled(tangents, primals, active)
        groups = zip(counted(primals, num_consts, num_carry),
                     split_by(filled_tangents, active, num_consts, num_carry), strict=True)
        operands = [x for p, t in groups for x in (*p, *t)]
        num_tangents = sum(active[carried])
        outs = scan_p.bind(*operands, jaxpr=joint, num_consts=num_consts + sum(active[:num_consts]),
                           num_carry=num_carry + num_tangents, **params)
        carry, tcarry, ys, tys = counted(outs, num_carry, num_tangents, len(rest))
        given = iter([*tcarry, *tys])
        return [*carry, *ys], [next(given) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, num_consts: int, num_carry: int, length: Size, reverse: bool,
                  unroll: int) -> Any:
        params = {"length": length, "reverse": reverse, "unroll": unroll}
        active = [t is not None for t in tangents]
        split, carried = split_body(jaxpr, num_consts, num_carry, active, linearize_jaxpr)
        outs = scan_p.bind(*primals, jaxpr=split.primal, num_consts=num_consts,
                           num_carry=num_carry, **params)
        outs, stacks = counted(outs, len(jaxpr.outvars))
        if not any(split.nonzero):
            return outs, [None] * len(outs)
        consts, carry, xs = counted(tangents, num_consts, num_carry)
        consts = [t for t in consts if t is not None]
        carry = filled(carry, primals[num_consts:num_consts + num_carry], carried)
        xs = [t for t in xs if t is not None]
        shared = split.invariants(primals)
        sliced = [primals[i] for i in split.sliced]
        results = iter(scan_p.bind(*shared, *consts, *carry, *stacks, *sliced, *xs,
                                   jaxpr=split.linear, num_consts=len(shared) + len(consts),
                                   num_carry=len(carry), **params))
        return outs, [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  num_consts: int, num_carry: int, length: Size, reverse: bool,
                  unroll: int) -> list[Any]:
        params = {"length": length, "unroll": unroll}
        linear = [isinstance(x, Linear) for x in operands]
        carried = slice(num_consts, num_consts + num_carry)
        while True:  # a carried value is linear if it starts or becomes so
            outs_linear = depends(jaxpr, linear)
            become = [a or b for a, b in zip(linear[carried], outs_linear[:num_carry], strict=True)]
            if become == linear[carried]:
                break
            linear[carried] = become
        jaxpr, history = self._without_nonlinear_carry(
            jaxpr, operands, linear, num_consts, num_carry, reverse, params)
        # now inputs: consts, linear carry, xs, history of the others; outputs: linear carry, ys
        flags = [*linear[:num_consts], *pick(linear[carried], linear[carried]),
                 *linear[num_consts + num_carry:], *(False for _ in history)]
        num_linear = sum(linear[carried])
        ct_carry = [ct for ct, is_linear in zip(cts[:num_carry], linear[carried], strict=True)
                    if is_linear]
        ct_carry = [zeros(jaxpr.in_avals[num_consts + i].strong()) if ct is None else ct
                    for i, ct in enumerate(ct_carry)]
        ct_ys = [ct if is_linear else None
                 for ct, is_linear in zip(cts[num_carry:], outs_linear[num_carry:], strict=True)]
        nonzero = [True] * num_linear + [ct is not None for ct in ct_ys]
        backward = transpose_jaxpr(jaxpr, flags, nonzero)
        lin_consts = sum(linear[:num_consts])
        consts = [x for x in operands[:num_consts] if not isinstance(x, Linear)]
        xs = [x for x in operands[num_consts + num_carry:] if not isinstance(x, Linear)]
        given = [ct for ct in ct_ys if ct is not None]
        const_avals = pick(jaxpr.in_avals[:num_consts], linear[:num_consts])
        accumulating = _accumulating(backward, const_avals, len(consts), num_linear,
                                     len(xs) + len(history))
        results = scan_p.bind(*consts, *[zeros(a.strong()) for a in const_avals], *ct_carry,
                              *xs, *history, *given, jaxpr=accumulating, num_consts=len(consts),
                              num_carry=lin_consts + num_linear, reverse=not reverse, **params)
        ct_consts, ct_init, ct_xs = map(iter, counted(results, lin_consts, num_linear))
        grads = [next(ct_consts) if is_linear else None for is_linear in linear[:num_consts]]
        for x, is_linear in zip(operands[carried], linear[carried], strict=True):
            ct = next(ct_init) if is_linear else None
            grads.append(ct if isinstance(x, Linear) else None)
        return grads + [next(ct_xs) if f else None for f in linear[num_consts + num_carry:]]

    def _without_nonlinear_carry(self, jaxpr: Jaxpr, operands: Sequence[Any],
                                 linear: Sequence[bool], num_consts: int, num_carry: int,
                                 reverse: bool, params: Any) -> tuple[Jaxpr, list[Any]]:
        """The body with carried values that are not linear as elements of xs, which are computed.

        A counter beside linear values runs forward once; the transposed loop reads its history.
        """
        others = [not is_linear for is_linear in linear[num_consts:num_consts + num_carry]]
        consts, carry, xs = counted(jaxpr.invars, num_consts, num_carry)
        kept = [not other for other in others]
        outs = [*pick(jaxpr.outvars[:num_carry], kept), *jaxpr.outvars[num_carry:]]
        inner = rearranged(jaxpr, [*consts, *pick(carry, kept), *xs, *pick(carry, others)], outs)
        if not any(others):
            return inner, []
        plain = [not is_linear for is_linear in linear]
        p_consts, _, p_xs = counted(plain, num_consts, num_carry)
        forward = prune_jaxpr(rearranged(
            jaxpr, [*pick(consts, p_consts), *pick(carry, others), *pick(xs, p_xs)],
            [*pick(jaxpr.outvars[:num_carry], others), *pick(carry, others)]))
        values = pick(operands, plain)
        count = sum(others)
        outs = scan_p.bind(*values, jaxpr=forward, num_consts=sum(p_consts), num_carry=count,
                           reverse=reverse, **params)
        return inner, list(outs[count:])

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, num_consts: int, num_carry: int,
              **params: Any) -> Any:
        batched = [a is not None for a in axes]
        carried = slice(num_consts, num_consts + num_carry)
        rest = [False] * (len(jaxpr.outvars) - num_carry)
        while True:
            body, outs_batched = batch_jaxpr(jaxpr, axis, batched, [*batched[carried], *rest])
            if list(outs_batched[:num_carry]) == batched[carried]:
                break
            batched[carried] = outs_batched[:num_carry]
        moved = []
        for i, (x, a) in enumerate(zip(operands, axes, strict=True)):
            if a is not None:
                x = move_axis(x, a, 1 if i >= num_consts + num_carry else 0)
            elif batched[i]:
                x = broadcast_batch(x, axis.size)
            moved.append(x)
        outs = scan_p.bind(*moved, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
        return outs, [(0 if i < num_carry else 1) if b else None
                      for i, b in enumerate(outs_batched)]

    def prune(self, eqn: Equation, used: Sequence[bool]) -> Equation:
        """The loop without the ys that are not `used`, and the carries that only they need."""
        jaxpr, num_consts = eqn.params["jaxpr"], eqn.params["num_consts"]
        num_carry = eqn.params["num_carry"]
        live = list(used[:num_carry])
        ys = list(used[num_carry:])
        while True:
            body = prune_jaxpr(rearranged(jaxpr, jaxpr.invars,
                                          pick(jaxpr.outvars, [*live, *ys])))
            needed = used_inputs(body)
            carry = needed[num_consts:num_consts + num_carry]
            if not any(c and not was for c, was in zip(carry, live, strict=True)):
                break
            live = [c or was for c, was in zip(carry, live, strict=True)]
        needed[num_consts:num_consts + num_carry] = live
        if all(needed) and all(live) and all(ys):
            return eqn
        body = rearranged(body, pick(body.invars, needed), body.outvars)
        params = {**eqn.params, "jaxpr": body, "num_consts": sum(needed[:num_consts]),
                  "num_carry": sum(live)}
        return Equation(self, tuple(pick(eqn.invars, needed)),
                        tuple(pick(eqn.outvars, [*live, *ys])), params, eqn.source)

    def cost(self, *avals: ShapedArray, jaxpr: Jaxpr, length: Size, **params: Any) -> Cost:
        return jaxpr_cost(jaxpr).times(length)


def split_by(tangents: Sequence[Any], active: Sequence[bool], num_consts: int,
             num_carry: int) -> list[list[Any]]:
    """The given tangents cut at the ends of consts and carry."""
    return counted(tangents, sum(active[:num_consts]),
                   sum(active[num_consts:num_consts + num_carry]))


def interleaved(body: Jaxpr, active: Sequence[bool], nonzero: Sequence[bool], num_consts: int,
                num_carry: int) -> Jaxpr:
    """(primals, tangents) -> (outs, tangents) with tangents next to the primals of each group."""
    n = len(active)
    ins = zip(counted(body.invars[:n], num_consts, num_carry),
              split_by(body.invars[n:], active, num_consts, num_carry), strict=True)
    carry, ys, tcarry, tys = counted(body.outvars, num_carry, len(nonzero) - num_carry,
                                     sum(nonzero[:num_carry]))
    return rearranged(body, [v for p, t in ins for v in (*p, *t)], [*carry, *tcarry, *ys, *tys])


def _accumulating(backward: Jaxpr, const_avals: Sequence[ShapedArray], num_consts: int,
                  num_carry: int, num_xs: int) -> Jaxpr:
    """The body of a transposed scan.

    `backward` maps (consts, xs, cotangents of carry and ys) to cotangents of (linear consts,
    carry, linear xs); those of the constants are summed up in the carry.
    """
    consts, xs, carry, ys = counted(backward.in_avals, num_consts, num_xs, num_carry)

    def body(*args: Any) -> list[Any]:
        cs, sums, ct_carry, elements, ct_ys = counted(args, num_consts, len(const_avals), num_carry,
                                                      num_xs)
        outs = eval_jaxpr(backward, (), *cs, *elements, *ct_carry, *ct_ys)
        terms, others = counted(outs, len(const_avals))
        return [*(add_any(s, t) for s, t in zip(sums, terms, strict=True)), *others]

    avals = [*consts, *(a.strong() for a in const_avals), *carry, *xs, *ys]
    return stage_body(body, avals, backward.name)


scan_p = Scan()
