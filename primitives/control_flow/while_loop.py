"""while: a loop that runs as long as a predicate of the carried values holds.

For reverse mode the loop records: its body has further outputs, which are stacked along a leading
axis whose size (`record`, a symbolic one) the run decides. The linear part is then a scan over the
stacks. The first `num_active` of them say whether the iteration took place: always, until a vmap
lets lanes stop at different times. Then the loop runs until all lanes are done, and lanes that are
done keep their carry and record that the iteration did not take place; the linear scan, which
hands its tangents on where that is so, batches and differentiates like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import SAME, ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cost import Cost, jaxpr_cost, total_cost
from functrans.core.dims import Dim
from functrans.core.errors import JaxprError, NotDifferentiableError
from functrans.core.evaluate import eval_jaxpr, program_of
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import HigherOrder, Linear
from functrans.core.prune import prune_jaxpr, used_inputs
from functrans.core.sizes import known_sizes
from functrans.primitives.broadcast import broadcast_batch, broadcast_in_dim, move_axis
from functrans.primitives.compare import bitwise_and
from functrans.primitives.control_flow.bodies import (
    TRUE,
    Split,
    check_operands,
    counted,
    depends,
    filled,
    invariant_carry,
    ones_like,
    pick,
    rearranged,
    select_lanes,
    split_body,
    stage_body,
)
from functrans.primitives.control_flow.lanes import block_of_lanes, map_blocks
from functrans.primitives.control_flow.scan import interleaved, scan_p, split_by
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_or

__all__ = ["while_p"]


class While(HigherOrder):
    """Runs `body_jaxpr` (consts, carry) -> (carry, *records) while `cond_jaxpr` holds of the carry.

    Operands are the predicate's constants, the body's constants, the initial carry; results the
    last carry and the stacked records, of which there are none unless `record` names their number.
    A `masked` loop runs while any of its lanes goes on, and a lane that is done stays as it is.
    """

    name = "while"

    def type(self, *avals: ShapedArray, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
             body_nconsts: int, record: Dim | None = None, num_active: int = 0,
             masked: bool = False) -> list[ShapedArray]:
        cond, body, init = counted(avals, cond_nconsts, body_nconsts)
        check_operands("while (predicate)", cond_jaxpr.in_avals, [*cond, *init])
        check_operands("while", body_jaxpr.in_avals, [*body, *init])
        if [a.varying_along(SAME) for a in cond_jaxpr.out_avals] != [
                ShapedArray((), np.dtype(np.bool_))]:
            raise JaxprError(f"the predicate of while returns {cond_jaxpr.out_avals}.")
        carry, records = counted(body_jaxpr.out_avals, len(init))
        for before, after in zip(init, carry, strict=True):
            if not before.matches(after):
                raise JaxprError(f"while carries a {before}, the body makes it a {after}.")
        if (record is None) != (not records) or len(records) < num_active:
            raise JaxprError(f"while records {record} has {len(records)} records, {num_active} of "
                             "them predicates.")
        carry = [after.varying_along(before.varying | after.varying)
                 for before, after in zip(init, carry, strict=True)]
        return [*carry, *(a.with_shape((record, *a.shape)) for a in records)]

    def decided_sizes(self, params: Mapping[str, Any]) -> frozenset[str]:
        record = params.get("record")
        return frozenset() if record is None else frozenset((record.name,))

    def bind(self, *args: Any, **params: Any) -> Any:
        if params.get("record") is not None:  # every loop decides a size of its own
            params["record"] = Dim.fresh("n")
        return super().bind(*args, **params)

    def evaluate(self, *args: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
                 body_nconsts: int, record: Dim | None = None, num_active: int = 0,
                 masked: bool = False) -> list[np.ndarray[Any, Any]]:
        cond_consts, consts, carry = counted(args, cond_nconsts, body_nconsts)
        holds, run = program_of(cond_jaxpr).run, program_of(body_jaxpr).run
        n = len(carry)
        shapes = [np.shape(a) for a in (*consts, *carry)]
        records: list[list[Any]] = []
        while holds([*cond_consts, *carry])[0]:
            outs = run([*consts, *carry])
            carry = outs[:n]
            if record is not None:
                records.append(outs[n:])
        if record is None:
            return carry
        if records:
            return [*carry, *(np.stack(column) for column in zip(*records, strict=True))]
        sizes = known_sizes(body_jaxpr.in_avals, shapes)
        empty = [a.substitute(sizes) for a in body_jaxpr.out_avals[n:]]
        return [*carry, *(np.empty((0, *a.shape), a.dtype) for a in empty)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int,
            **params: Any) -> Any:
        cond_consts, operands = counted(primals, cond_nconsts)
        tangents = tangents[cond_nconsts:]
        num_carry = len(operands) - body_nconsts
        num_records = len(body_jaxpr.outvars) - num_carry
        active = [t is not None for t in tangents]
        while True:
            body, nonzero = jvp_jaxpr(body_jaxpr, active,
                                      [*active[body_nconsts:], *(False,) * num_records])
            if list(nonzero[:num_carry]) == active[body_nconsts:]:
                break
            active[body_nconsts:] = nonzero[:num_carry]
        joint = interleaved(body, active, nonzero, body_nconsts, num_carry)
        tconsts, tcarry, _ = split_by(filled(tangents, operands, active), active, body_nconsts,
                                      num_carry)
        unused = [Var(get_aval(t)) for t in tcarry]
        cond = rearranged(cond_jaxpr, [*cond_jaxpr.invars, *unused], cond_jaxpr.outvars)
        outs = while_p.bind(*cond_consts, *operands[:body_nconsts], *tconsts,
                            *operands[body_nconsts:], *tcarry, cond_jaxpr=cond, body_jaxpr=joint,
                            cond_nconsts=cond_nconsts, body_nconsts=body_nconsts + len(tconsts),
                            **params)
        carry, out_tcarry, records, trecords = counted(outs, num_carry, len(tcarry), num_records)
        given = iter([*out_tcarry, *trecords])
        return [*carry, *records], [next(given) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int,
                  record: Dim | None = None, num_active: int = 0, masked: bool = False) -> Any:
        operands, tangents = primals[cond_nconsts:], tangents[cond_nconsts:]
        params = {"cond_jaxpr": cond_jaxpr, "cond_nconsts": cond_nconsts,
                  "body_nconsts": body_nconsts}
        num_carry = len(operands) - body_nconsts
        split, carried = split_body(body_jaxpr, body_nconsts, num_carry,
                                    [t is not None for t in tangents], linearize_jaxpr)
        if not any(split.nonzero):
            outs = while_p.bind(*primals, body_jaxpr=body_jaxpr, record=record,
                                num_active=num_active, **params)
            return outs, [None] * len(outs)
        recording, at, new = _recording(split, len(body_jaxpr.outvars), num_carry, num_active)
        outs = while_p.bind(*primals, body_jaxpr=recording, record=record or Dim.fresh("n"),
                            num_active=num_active + new, **params)
        happened = outs[num_carry + at]
        if new:
            del outs[num_carry]
        outs, stacks = counted(outs, len(body_jaxpr.outvars))
        tconsts = [t for t in tangents[:body_nconsts] if t is not None]
        tcarry = filled(tangents[body_nconsts:], operands[body_nconsts:], carried)
        shared = split.invariants(operands)
        linear = _masked(split.linear, len(shared) + len(tconsts), len(tcarry))
        results = iter(scan_p.bind(*shared, *tconsts, *tcarry, happened, *stacks, jaxpr=linear,
                                   length=happened.shape[0], reverse=False, unroll=1,
                                   num_consts=len(shared) + len(tconsts), num_carry=len(tcarry)))
        return outs, [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any,
                  cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int,
                  record: Dim | None = None, num_active: int = 0,
                  masked: bool = False) -> list[Any]:
        """Of a loop that is linear in some carries: the others run first and are recorded."""
        tests, consts, init = counted(operands, cond_nconsts, body_nconsts)
        linear = [isinstance(x, Linear) for x in (*consts, *init)]
        while True:
            becomes = depends(body_jaxpr, linear)[:len(init)]
            becomes = [a or b for a, b in zip(linear[body_nconsts:], becomes, strict=True)]
            if becomes == linear[body_nconsts:]:
                break
            linear[body_nconsts:] = becomes
        carried = linear[body_nconsts:]
        others = [not is_linear for is_linear in carried]
        reads = used_inputs(cond_jaxpr)[cond_nconsts:]
        if record is not None or any(a and b for a, b in zip(reads, carried, strict=True)):
            raise NotDifferentiableError(
                "a while loop whose number of iterations depends on a linear value was transposed.",
                why="it is not linear in that value.", fix="use vjp or grad instead")
        in_consts, in_carry = counted(body_jaxpr.invars, body_nconsts)
        plain = [not is_linear for is_linear in linear[:body_nconsts]]
        forward = prune_jaxpr(rearranged(
            body_jaxpr, [*pick(in_consts, plain), *pick(in_carry, others)],
            [*pick(body_jaxpr.outvars, others), TRUE, *pick(in_carry, others)]))
        test_consts, test_carry = counted(cond_jaxpr.invars, cond_nconsts)
        outs = while_p.bind(
            *tests, *pick(consts, plain), *pick(init, others), body_jaxpr=forward,
            cond_jaxpr=rearranged(cond_jaxpr, [*test_consts, *pick(test_carry, others)],
                                  cond_jaxpr.outvars),
            cond_nconsts=cond_nconsts, body_nconsts=sum(plain), record=Dim.fresh("n"), num_active=1)
        happened, *history = outs[sum(others):]
        once = rearranged(body_jaxpr, [*in_consts, *pick(in_carry, carried),
                                       *pick(in_carry, others)],
                          pick(body_jaxpr.outvars, carried))
        grads = scan_p.transpose(
            pick(cts, carried), *consts, *pick(init, carried), happened, *history,
            transpose_jaxpr=transpose_jaxpr, jaxpr=_masked(once, body_nconsts, sum(carried)),
            num_consts=body_nconsts, num_carry=sum(carried), length=happened.shape[0],
            reverse=False, unroll=1)
        given = iter(grads[body_nconsts:])
        return [*(None for _ in tests), *grads[:body_nconsts],
                *(next(given) if is_linear else None for is_linear in carried)]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
              body_nconsts: int, **params: Any) -> Any:
        flags = [a is not None for a in axes]
        for_cond, consts, carry = counted(flags, cond_nconsts, body_nconsts)
        unchanged = invariant_carry(body_jaxpr, body_nconsts, len(carry))
        records = [False] * (len(body_jaxpr.outvars) - len(carry))
        while True:
            body, outs_batched = batch_jaxpr(body_jaxpr, axis, [*consts, *carry],
                                             [*carry, *records])
            after = list(outs_batched[:len(carry)])
            cond, (cond_batched,) = batch_jaxpr(cond_jaxpr, axis, [*for_cond, *after])
            if cond_batched:
                after = [b or not same for b, same in zip(after, unchanged, strict=True)]
            if after == carry:
                break
            carry = after
        batched = [*for_cond, *consts, *carry]
        moved = []
        for x, a, b in zip(operands, axes, batched, strict=True):
            if a is not None:
                x = move_axis(x, a, 0)
            elif b:
                x = broadcast_batch(x, axis.size)
            moved.append(x)
        block = None
        if cond_batched and params.get("record") is None:
            # what lanes record has one length, that of the longest
            block = block_of_lanes((cond_jaxpr, body_jaxpr), axis)
        if block is not None:
            outs_batched = [True] * len(carry)
            outs = _bind_by_block(moved, batched, axis, block, batch_jaxpr, cond_jaxpr=cond_jaxpr,
                                  body_jaxpr=body_jaxpr, cond_nconsts=cond_nconsts,
                                  body_nconsts=body_nconsts, **params)
        elif cond_batched:
            outs = _bind_by_lane(moved, cond, body, outs_batched, cond_nconsts, body_nconsts,
                                 **params)
            num_active = params.get("num_active", 0)
            outs_batched = [b or len(carry) <= i < len(carry) + num_active
                            for i, b in enumerate(outs_batched)]
        else:
            outs = while_p.bind(*moved, cond_jaxpr=cond, body_jaxpr=body,
                                cond_nconsts=cond_nconsts, body_nconsts=body_nconsts, **params)
        weak = [a.weak_type for a in body_jaxpr.out_avals]
        outs = [convert_element_type(o, o.dtype, True) if w and not get_aval(o).weak_type else o
                for o, w in zip(outs, weak, strict=True)]
        return outs, [(0 if i < len(carry) else 1) if b else None
                      for i, b in enumerate(outs_batched)]

    def prune(self, eqn: Equation, used: Sequence[bool]) -> Equation:
        """The loop without carries that neither the predicate nor a `used` result needs."""
        params = dict(eqn.params)
        cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
        cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
        num_carry = len(eqn.invars) - cond_nconsts - body_nconsts
        tests = used_inputs(prune_jaxpr(cond_jaxpr))
        live = [a or b for a, b in zip(used[:num_carry], tests[cond_nconsts:], strict=True)]
        # predicates stay: they are small, and the number of iterations is read off them
        records = [u or i < params.get("num_active", 0) for i, u in enumerate(used[num_carry:])]
        while True:
            body = prune_jaxpr(rearranged(body_jaxpr, body_jaxpr.invars,
                                          pick(body_jaxpr.outvars, [*live, *records])))
            needed = used_inputs(body)
            carry = [a or b for a, b in zip(live, needed[body_nconsts:], strict=True)]
            if carry == live:
                break
            live = carry
        kept = [*tests[:cond_nconsts], *needed[:body_nconsts], *live]
        if all(kept) and all(records):
            return eqn
        params["cond_jaxpr"] = rearranged(
            cond_jaxpr, pick(cond_jaxpr.invars, [*tests[:cond_nconsts], *live]),
            cond_jaxpr.outvars)
        params["body_jaxpr"] = rearranged(
            body, pick(body.invars, [*needed[:body_nconsts], *live]), body.outvars)
        params["cond_nconsts"] = sum(tests[:cond_nconsts])
        params["body_nconsts"] = sum(needed[:body_nconsts])
        return Equation(self, tuple(pick(eqn.invars, kept)),
                        tuple(pick(eqn.outvars, [*live, *records])), params, eqn.source)

    def cost(self, *avals: ShapedArray, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr,
             **params: Any) -> Cost:
        """Of one iteration: how many there are is not known."""
        return total_cost([jaxpr_cost(cond_jaxpr), jaxpr_cost(body_jaxpr)])


def _recording(split: Split, num_outs: int, num_carry: int,
               num_active: int) -> tuple[Jaxpr, int, bool]:
    """The primal body with a record of whether the iteration took place, as a scalar.

    Also: which of the records that is, and whether it is a new one (then it is the first).
    """
    body = split.primal
    carry, active, others = counted(body.outvars, num_carry, num_active)
    for i, atom in enumerate(active):
        if atom.aval.shape == ():
            return body, i, False
    return rearranged(body, body.invars, [*carry, TRUE, *active, *others]), 0, True


def _masked(linear: Jaxpr, num_consts: int, num_carry: int) -> Jaxpr:
    """The linear body with a predicate as its first x; where that is false nothing changes."""
    def body(*args: Any) -> list[Any]:
        consts, carry, (happened, *stacks) = counted(args, num_consts, num_carry)
        outs = eval_jaxpr(linear, (), *consts, *carry, *stacks)
        after, records = counted(outs, num_carry)
        return [*(select_lanes(happened, a, b) for a, b in zip(after, carry, strict=True)),
                *records]

    before, stacks = counted(linear.in_avals, num_consts + num_carry)
    return stage_body(body, [*before, TRUE.aval, *stacks], linear.name)


def _bind_by_block(operands: Sequence[Any], batched: Sequence[bool], axis: MappedAxis, block: int,
                   batch_jaxpr: Any, **params: Any) -> list[Any]:
    """The loop over lanes that stop at different times, so many lanes at a time."""
    within = MappedAxis(block, axis.name)

    def loop(*args: Any) -> list[Any]:
        if block == 1:
            return while_p.bind(*args, **params)  # type: ignore[no-any-return]
        outs, axes = while_p.batch(args, [0 if b else None for b in batched], axis=within,
                                   batch_jaxpr=batch_jaxpr, **params)
        return [broadcast_batch(x, block) if a is None else move_axis(x, a, 0)
                for x, a in zip(outs, axes, strict=True)]

    return map_blocks(loop, operands, batched, axis.size, block, "lanes")


def _bind_by_lane(operands: Sequence[Any], cond: Jaxpr, body: Jaxpr, outs_batched: Sequence[bool],
                  cond_nconsts: int, body_nconsts: int, **params: Any) -> list[Any]:
    """The loop over lanes that stop at different times: it runs while any lane does.

    The predicates of all lanes are carried along, so that they are computed once an iteration.
    """
    num_carry = len(operands) - cond_nconsts - body_nconsts
    num_active = params.get("num_active", 0)
    cond_consts, consts, init = counted(operands, cond_nconsts, body_nconsts)

    def any_lane(running: Any, *carry: Any) -> list[Any]:
        return [reduce_or(running, (0,))]

    def iteration(*args: Any) -> list[Any]:
        tests, consts, (running, *carry) = counted(args, cond_nconsts, body_nconsts)
        outs = eval_jaxpr(body, (), *consts, *carry)
        after = [select_lanes(running, a, b) for a, b in zip(outs, carry, strict=False)]
        still = eval_jaxpr(cond, (), *tests, *after)
        records = []
        for i, (r, batched) in enumerate(zip(outs[num_carry:], outs_batched[num_carry:],
                                             strict=True)):
            if i < num_active:
                r = r if batched else broadcast_batch(r, running.shape[0])
                r = bitwise_and(r, broadcast_in_dim(running, r.shape, (0,)))
            elif batched and dtypes.kind(r.dtype) in "fc":
                # what a finished lane records is not used, but must not make 0 * inf
                r = select_lanes(running, r, ones_like(r))
            records.append(r)
        return [*still, *after, *records]

    running = eval_jaxpr(cond, (), *cond_consts, *init)
    carry = [*running, *init]
    avals = [get_aval(x).strong() for x in (*operands[:-num_carry or None], *carry)]
    outs = while_p.bind(
        *cond_consts, *consts, *carry,
        cond_jaxpr=stage_body(any_lane, avals[cond_nconsts + body_nconsts:], cond.name),
        body_jaxpr=stage_body(iteration, avals, body.name),
        cond_nconsts=0, body_nconsts=cond_nconsts + body_nconsts, **{**params, "masked": True})
    return list(outs[1:])


while_p = While()
