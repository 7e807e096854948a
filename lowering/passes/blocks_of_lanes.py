"""Maps over blocks of lanes that do not mix, as one block of all lanes.

Blocks are how `vmap` makes a loop whose lanes end at different times: those of a block go on
together. A lane that walks to its own end needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.lowering.passes.lane_classes import classes_of_lanes
from functrans.lowering.passes.loops import LOOPS
from functrans.lowering.passes.movement import reshape as reshaped
from functrans.lowering.passes.pipeline import TABLES, simplify_with
from functrans.lowering.passes.recurrences import RECURRENCES
from functrans.lowering.passes.rewrite import (
    Dispatch,
    Results,
    Rewriter,
    RewriteTable,
    with_functions,
)
from functrans.lowering.passes.separable import SeparableRows
from functrans.primitives.broadcast import transpose, transpose_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.shape import concatenate_p, reshape, reshape_p, slice_p

__all__ = ["all_at_once", "without_blocks"]

BLOCKS: Final = RewriteTable("blocks of lanes")


def all_at_once(eqn: Equation, block_axis: int = 0,
                 as_region: bool = False) -> Callable[..., Sequence[Any]] | None:
    """A map over blocks of rows that do not mix, for all rows: an axis of the first operand."""
    p = eqn.params
    if eqn.primitive is not scan_p or p["num_carry"] or p["length"] == 1:
        return None
    body, first, length = p["jaxpr"], p["num_consts"], p["length"]
    if len(body.invars) == first or body.invars[first].aval.ndim <= block_axis:
        return None
    count = body.invars[first].aval.shape[block_axis]
    axes = classes_of_lanes(body).whole((body.invars[first], block_axis))
    if axes is None or any((v, k) in axes for v in body.invars[:first]
                           for k in range(v.aval.ndim)):
        return None
    places = [[k for k in range(v.aval.ndim) if (v, k) in axes] if isinstance(v, Var) else []
              for v in (*body.invars[first:], *body.outvars)]
    if any(len(found) != 1 for found in places):
        return None
    whole = SeparableRows(body, count, axes, frozenset(), frozenset()).narrowed(length * count)
    if whole is None:
        return None
    at = [found[0] for found in places]

    def run(*operands: Any) -> Sequence[Any]:
        rows = [_merged(x, k) for x, k in zip(operands[first:], at, strict=False)]
        given = (*operands[:first], *rows)
        outs = cond_p.bind(np.int32(0), *given, branches=(whole,)) if as_region else \
            eval_jaxpr(whole, (), *given)
        return [_in_blocks(y, k, length) for y, k in zip(outs, at[len(rows):], strict=True)]

    return run


def _merged(x: Any, k: int) -> Any:
    """Blocks, along the first axis, side by side along another."""
    length, *shape = get_aval(x).shape
    axes = (*range(1, k + 1), 0, *range(k + 1, len(shape) + 1))
    return reshape(transpose(x, axes) if k else x,
                   (*shape[:k], length * shape[k], *shape[k + 1:]))


def _in_blocks(y: Any, k: int, length: int) -> Any:
    """What stands side by side along an axis as blocks along the first one."""
    shape = get_aval(y).shape
    split = reshape(y, (*shape[:k], length, shape[k] // length, *shape[k + 1:]))
    return transpose(split, (k, *(a for a in range(len(shape) + 1) if a != k))) if k else split


def without_blocks(jaxpr: Jaxpr, is_kernel: Callable[[Equation], bool]) -> Jaxpr:
    """The program with maps over blocks of lanes that are kernels of lanes as regions of all lanes.

    What is around them has the lanes along one axis.
    """
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    joined = {eqn.outvars: run for eqn in jaxpr.eqns if eqn.primitive is scan_p
              and not eqn.params["num_carry"] and is_kernel(eqn)
              and (run := all_at_once(eqn, _axis_of_blocks(eqn, makers), as_region=True))}
    if not joined:
        return jaxpr
    return simplify_with(AROUND, with_functions(jaxpr, lambda eqn: joined.get(eqn.outvars)))


def _axis_of_blocks(eqn: Equation, makers: dict[Atom, Equation]) -> int:
    """Along which axis of an operand of the body, by what made it, blocks are side by side."""
    operands = eqn.invars[eqn.params["num_consts"]:]
    made = makers.get(operands[0]) if operands else None
    if made is None or made.primitive is not transpose_p:
        return 0
    order = made.params["permutation"]
    return order.index(order[0] + 1) - 1 if order[0] + 1 < len(order) else 0


# ------------------------------------------------------------------------------- around them


@BLOCKS.rule(slice_p, of=reshape_p, law="a part of each block is that part of each lane")
def part_of_blocks(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    made = r.made(x, reshape_p)
    assert made is not None
    lanes, p = made.invars[0], eqn.params
    count = _common(lanes.aval.shape, x.aval.shape)
    first = len(x.aval.shape) - count
    if not count or eqn.outvars[0].aval.shape[:first] != x.aval.shape[:first]:
        return None
    shape = lanes.aval.shape[:-count]
    part = r(slice_p, lanes, start_indices=(*(0 for _ in shape), *p["start_indices"][first:]),
             limit_indices=(*shape, *p["limit_indices"][first:]),
             strides=(*(1 for _ in shape), *p["strides"][first:]))
    return reshaped(r, part, eqn.outvars[0].aval.shape)


@BLOCKS.rule(reshape_p, of=concatenate_p, law="blocks side by side are lanes side by side")
def joined_blocks(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    made = r.made(x, concatenate_p)
    assert made is not None
    shape, axis = eqn.params["new_sizes"], made.params["dimension"]
    count = _common(shape, x.aval.shape)
    if count < len(x.aval.shape) - axis or not any(r.made(a, reshape_p) for a in made.invars):
        return None
    lanes = shape[:len(shape) - len(x.aval.shape) + axis]
    return r(concatenate_p, *[reshaped(r, a, (*lanes, *a.aval.shape[axis:])) for a in made.invars],
             dimension=len(lanes))


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """How many of the last sizes two shapes have in common."""
    same = [x == y for x, y in zip(reversed(a), reversed(b), strict=False)]
    return next((k for k, equal in enumerate(same) if not equal), len(same))


AROUND: Final = Dispatch([BLOCKS, *(t for t in TABLES if t not in (LOOPS, RECURRENCES))])
