"""cond: one of several programs on the same operands, chosen by an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cost import Cost, highest_cost, jaxpr_cost
from functrans.core.errors import JaxprError
from functrans.core.evaluate import eval_jaxpr, program_of
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import HigherOrder, Linear
from functrans.core.prune import prune_jaxpr, used_inputs
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import broadcast_batch, broadcast_in_dim, move_axis
from functrans.primitives.compare import eq, select_n
from functrans.primitives.control_flow.bodies import (
    check_operands,
    leaves_unsized,
    pick,
    rearranged,
    rematerialized,
    stage_body,
)
from functrans.primitives.control_flow.lanes import block_of_lanes, map_blocks
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_or

__all__ = ["cond_p"]

Branches = tuple[Jaxpr, ...]


class Cond(HigherOrder):
    """branches[index] applied to the operands; `index` is a boolean or int32 scalar in range.

    A `masked` one asks whether any lane wants its second branch; others leave the results unread.
    """

    def type(self, index: ShapedArray, *avals: ShapedArray, branches: Branches,
             masked: bool = False) -> list[ShapedArray]:
        if index.shape or (dtypes.kind(index.dtype) != "b" and index.dtype != np.int32):
            raise JaxprError(f"cond: the index is {index}, not a boolean or int32 scalar.")
        first = branches[0]
        for branch in branches:
            check_operands("cond", branch.in_avals, avals)
            if len(branch.outvars) != len(first.outvars) or not all(
                    a.matches(b) for a, b in zip(branch.out_avals, first.out_avals, strict=True)):
                raise JaxprError(f"cond: branches return {first.out_avals} and "
                                 f"{branch.out_avals}.")
        return [ShapedArray(outs[0].shape, outs[0].dtype, all(a.weak_type for a in outs),
                            index.varying.union(*[a.varying for a in outs]))
                for outs in zip(*(b.out_avals for b in branches), strict=True)]

    def evaluate(self, index: Any, *operands: Any, branches: Branches,
                 masked: bool = False) -> list[np.ndarray[Any, Any]]:
        return program_of(branches[int(index)]).run(operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            branches: Branches, **params: Any) -> Any:
        (index, *operands), tangents = primals, tangents[1:]
        active = [t is not None for t in tangents]
        each = [jvp_jaxpr(b, active)[1] for b in branches]
        nonzero = [any(flags) for flags in zip(*each, strict=True)]
        joint = tuple(jvp_jaxpr(b, active, nonzero)[0] for b in branches)
        outs = cond_p.bind(index, *operands, *pick(tangents, active), branches=joint, **params)
        given = iter(outs[len(nonzero):])
        return outs[:len(nonzero)], [next(given) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  branches: Branches, masked: bool = False) -> Any:
        (index, *operands), tangents = primals, tangents[1:]
        active = [t is not None for t in tangents]
        each = [linearize_jaxpr(b, active).nonzero for b in branches]
        nonzero = [any(flags) for flags in zip(*each, strict=True)]
        if not any(nonzero):
            outs = cond_p.bind(index, *operands, branches=branches)
            return outs, [None] * len(outs)
        parts = []
        for branch in branches:
            split = linearize_jaxpr(branch, active, nonzero)
            if leaves_unsized(split.primal, split.primal.outvars[len(nonzero):]):
                split = rematerialized(branch, split, active)
            parts.append(split)
        slots, places = _shared_slots([_saved(p) for p in parts])
        primal = tuple(_filling(p.primal, len(nonzero), slots, at)
                       for p, at in zip(parts, places, strict=True))
        read = sorted({f for p in parts for f in p.forwarded if f is not None})
        tangent_avals = [get_aval(t) for t in tangents if t is not None]
        avals = [*(branches[0].in_avals[i] for i in read), *slots, *tangent_avals]
        linear = tuple(_reading(p, read, at, len(slots), avals)
                       for p, at in zip(parts, places, strict=True))
        outs = cond_p.bind(index, *operands, branches=primal)
        outs, saved = outs[:len(nonzero)], outs[len(nonzero):]
        results = iter(cond_p.bind(index, *(operands[i] for i in read), *saved,
                                   *pick(tangents, active), branches=linear))
        return outs, [next(results) if nz else None for nz in nonzero]

    def transpose(self, cts: Sequence[Any], index: Any, *operands: Any, transpose_jaxpr: Any,
                  branches: Branches, masked: bool = False) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        nonzero = [ct is not None for ct in cts]
        backward = tuple(transpose_jaxpr(b, linear, nonzero) for b in branches)
        others = [x for x in operands if not isinstance(x, Linear)]
        given = [ct for ct in cts if ct is not None]
        results = iter(cond_p.bind(index, *others, *given, branches=backward))
        return [None, *(next(results) if is_linear else None for is_linear in linear)]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, branches: Branches, masked: bool = False) -> Any:
        index, *rest = operands
        moved = [x if a is None else move_axis(x, a, 0)
                 for x, a in zip(rest, axes[1:], strict=True)]
        flags = [a is not None for a in axes[1:]]
        if axes[0] is None:
            each = [batch_jaxpr(b, axis, flags)[1] for b in branches]
            wanted = [any(out) for out in zip(*each, strict=True)]
            batched = tuple(batch_jaxpr(b, axis, flags, wanted)[0] for b in branches)
            params = {"masked": True} if masked else {}
            outs = cond_p.bind(index, *moved, branches=batched, **params)
            return outs, [0 if w else None for w in wanted]
        index = move_axis(index, axes[0], 0)
        block = block_of_lanes(branches, axis, is_expensive(branches))
        if block is not None:
            outs = _by_block(index, moved, flags, axis, block, batch_jaxpr, branches)
            return outs, [0] * len(outs)
        results = []
        for branch in branches:
            body, outs_batched = batch_jaxpr(branch, axis, flags)
            outs = eval_jaxpr(body, (), *moved)
            results.append([out if b else broadcast_batch(out, axis.size)
                            for out, b in zip(outs, outs_batched, strict=True)])
        outs = [_select(index, cases) for cases in zip(*results, strict=True)]
        return outs, [0] * len(outs)

    def prune(self, eqn: Equation, used: Sequence[bool]) -> Equation:
        """The choice without results that are not `used` and operands that only they need."""
        index, *operands = eqn.invars
        branches = [prune_jaxpr(rearranged(b, b.invars, pick(b.outvars, used)))
                    for b in eqn.params["branches"]]
        needed = [any(flags) for flags in zip(*map(used_inputs, branches), strict=True)]
        if all(needed) and all(used):
            return eqn
        params = {**eqn.params, "branches": tuple(rearranged(b, pick(b.invars, needed), b.outvars)
                                                  for b in branches)}
        return Equation(self, (index, *pick(operands, needed)), tuple(pick(eqn.outvars, used)),
                        params, eqn.source)

    def cost(self, *avals: ShapedArray, branches: Branches, masked: bool = False) -> Cost:
        """Of the most expensive branch: which one is taken is not known."""
        return highest_cost([jaxpr_cost(b) for b in branches])


# Additions for one lane: what costs less is computed for all lanes, with vectors across them.
EXPENSIVE_FLOPS = 64


def is_expensive(branches: Branches) -> bool:
    """Whether it pays to compute only the branches that are taken."""
    flops = [jaxpr_cost(b).flops for b in branches]
    return not all(isinstance(n, (int, float)) and n < EXPENSIVE_FLOPS for n in flops)


def _by_block(index: Any, operands: Sequence[Any], flags: Sequence[bool], axis: MappedAxis,
              block: int, batch_jaxpr: Any, branches: Branches) -> list[Any]:
    """The choice for so many lanes at a time: of a block, the branches that any lane takes."""
    within = MappedAxis(block, axis.name)

    def choose(index: Any, *args: Any) -> list[Any]:
        if block == 1:
            return cond_p.bind(index, *args, branches=branches)  # type: ignore[no-any-return]
        number = convert_element_type(index, np.dtype(np.int32))
        results = []
        for k, branch in enumerate(branches):
            body, _ = batch_jaxpr(branch, within, flags, True)
            avals = [a.strong() for a in body.out_avals]
            nothing = stage_body(lambda *xs, avals=avals: [zeros(a) for a in avals],
                                 body.in_avals, branch.name)
            results.append(cond_p.bind(reduce_or(eq(number, np.int32(k)), (0,)), *args,
                                       branches=(nothing, body), masked=True))
        return [_select(index, cases) for cases in zip(*results, strict=True)]

    return map_blocks(choose, [index, *operands], [True, *flags], axis.size, block, "lanes")


def _saved(parts: Any) -> list[ShapedArray]:
    """The types of the residuals that a branch saves besides its operands."""
    count = sum(f is None for f in parts.forwarded)
    return [a.strong() for a in parts.primal.out_avals[len(parts.primal.outvars) - count:]]


def _shared_slots(saved: Sequence[Sequence[ShapedArray]]) -> tuple[list[ShapedArray],
                                                                   list[list[int]]]:
    """Places for the residuals of all branches, and the place of each one.

    Branches share places, since one of them is taken: as many of a type as one branch needs.
    """
    slots: list[ShapedArray] = []
    places = []
    for avals in saved:
        free = list(range(len(slots)))
        mine = []
        for aval in avals:
            at = next((i for i in free if slots[i] == aval), None)
            if at is None:
                at = len(slots)
                slots.append(aval)
            else:
                free.remove(at)
            mine.append(at)
        places.append(mine)
    return slots, places


def _filling(primal: Jaxpr, num_outs: int, slots: Sequence[ShapedArray],
             places: Sequence[int]) -> Jaxpr:
    """A branch that returns its outputs and then all slots, zeros in those that it does not use."""
    def branch(*args: Any) -> list[Any]:
        outs = eval_jaxpr(primal, (), *args)
        given = dict(zip(places, outs[num_outs:], strict=True))
        return outs[:num_outs] + [given[i] if i in given else zeros(slot)
                                  for i, slot in enumerate(slots)]

    return stage_body(branch, primal.in_avals, primal.name)


def _reading(parts: Any, read: Sequence[int], places: Sequence[int], num_slots: int,
             avals: Sequence[ShapedArray]) -> Jaxpr:
    """The linear part of a branch on (operands that any branch reads, slots, tangents)."""
    def branch(*args: Any) -> list[Any]:
        inputs = dict(zip(read, args[:len(read)], strict=True))
        slots = args[len(read):len(read) + num_slots]
        saved = (slots[i] for i in places)
        residuals = [next(saved) if f is None else inputs[f] for f in parts.forwarded]
        return eval_jaxpr(parts.linear, (), *residuals, *args[len(read) + num_slots:])

    return stage_body(branch, avals, parts.linear.name)


def _select(index: Any, cases: Sequence[Any]) -> Any:
    if len(cases) == 1:
        return cases[0]
    shape = get_aval(cases[0]).shape
    if len(shape) > 1:
        index = broadcast_in_dim(index, shape, (0,))
    return select_n(index, *cases)


cond_p = Cond()
