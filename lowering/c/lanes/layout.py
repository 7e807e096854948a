"""How the lanes of a loop are in vectors: along which axes, and how many vectors side by side."""

from __future__ import annotations

import math
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr, subjaxprs
from functrans.lowering.loops.index import strides_of
from functrans.lowering.passes.lanes import LaneProgram
from functrans.lowering.rules.lanes import LaneLoop
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import gather_p
from functrans.primitives.random import threefry2x32_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_max_p,
    reduce_min_p,
    reduce_prod_p,
)
from functrans.primitives.shape import concatenate_p, reshape_p, rev_p, slice_p

__all__ = ["joined_axes", "lanes_and_vectors", "vector_axis"]

SIDE_BY_SIDE: Final = ((4, 320), (2, 800))  # vectors, where a step computes so many numbers
MOST_STACKED: Final = 3 << 19  # bytes that vectors side by side record: they stay in a cache
MOST_TEXT: Final = 2048  # numbers that are computed once, of all vectors
MOST_WRITTEN: Final = 2000
"""Instructions of a step of vectors side by side: gcc takes 0.1 to 0.3 ms for each.

Walks through eight trees at once, 48 gathers a step, took it 1.8 s in four vectors, 0.4 in one.
"""
MOST_OF_FOUR: Final = 200
"""Instructions of a step of four vectors: more have no registers, and wait for little.

A Dormand-Prince step of 216 takes 0.147 ms in four vectors and 0.144 in two, a march along rays of
215 7.9 and 6.5; gcc takes 0.46 and 0.22 s for the first. One of 152 is 5 % slower in two.
"""
GATHERED: Final = 32  # instructions of a gather: indices are taken out of a vector, numbers put in
HASHED: Final = 50  # of a number of random bits: twenty rounds. They count in the whole text alone
CHOSEN: Final = 6  # of an operand of an extreme value whose place is asked for
MOST_CARRIED: Final = 64  # numbers of a lane; more are on the stack, whatever waits for what
BODIES: Final = (scan_p, while_p, cond_p)
MOVEMENTS: Final = (broadcast_in_dim_p, concatenate_p, reshape_p, rev_p, slice_p, transpose_p)
SUMS: Final = (reduce_sum_p, reduce_max_p, reduce_min_p, reduce_prod_p)


def vector_axis(call: LaneLoop) -> int:
    """The axis of lanes along which vectors are: long, and next to each other in memory."""
    program = call.program
    values = [*zip(call.operands, program.inputs, strict=True),
              *zip(call.results, program.outputs, strict=True)]

    def distance(axis: int) -> int:
        return sum(min(16, int(stride)) for t, layout in values
                   for a, stride in zip(layout.axes, strides_of(t.shape), strict=True) if a == axis)

    long = [k for k, n in enumerate(program.sizes) if n >= 16]
    if not long:
        return max(range(len(program.sizes)), key=program.sizes.__getitem__)
    return min(long, key=lambda k: (distance(k), -program.sizes[k]))


def joined_axes(call: LaneLoop, axis: int) -> set[int]:
    """The axes of lanes that are one with that of vectors: in memory they go on where it ends."""
    program = call.program
    values = [*zip(call.operands, program.inputs, strict=True),
              *zip(call.results, program.outputs, strict=True)]
    strides = [dict(zip(layout.axes, strides_of(t.shape), strict=True)) for t, layout in values]
    found, size = {axis}, program.sizes[axis]
    while True:
        more = [k for k in range(len(program.sizes)) if k not in found and all(
            of.get(k) == (of[axis] * size if axis in of else None) for of in strides)]
        if not more:
            return found
        found.add(more[0])
        size *= program.sizes[more[0]]


def lanes_and_vectors(program: LaneProgram, vector_bytes: int, size: int) -> tuple[int, int]:
    """Lanes of a vector, and how many vectors are worked at side by side.

    Steps that wait for each other leave units idle; many numbers a lane do not stay in registers.
    """
    widest, count, written, whole, once, carried, stacked = 4, 0, 0, 0, 0, 0, 0
    is_loop = any(True for eqn in program.body.eqns for _ in subjaxprs(eqn))
    for body in _bodies(program.body):
        stacked += sum(math.prod([int(n) for n in v.aval.shape]) for eqn in body.eqns
                       if eqn.primitive is scan_p for v in eqn.outvars[eqn.params["num_carry"]:])
        carried = max([carried, *(_carried(eqn) for eqn in body.eqns)])
        widest = max([widest, *(v.aval.dtype.itemsize for eqn in body.eqns for v in eqn.outvars
                                if v.aval.dtype.kind == "f")])
        made = sum(math.prod([int(n) for n in v.aval.shape]) for eqn in body.eqns
                   if eqn.primitive not in BODIES for v in eqn.outvars)
        text = sum(map(_written, body.eqns))
        whole += text + HASHED * sum(_size(v) for eqn in body.eqns for v in eqn.outvars
                                     if eqn.primitive is threefry2x32_p)
        if body is program.body and is_loop:
            once = made  # costs text, and little time
        else:
            count = max(count, made)
            written = max(written, text)
    lanes = vector_bytes // widest
    while lanes > size:
        lanes //= 2
    if lanes < 4:
        return 1, 1
    vectors = next((u for u, most in SIDE_BY_SIDE if count <= most), 1) \
        if carried <= MOST_CARRIED else 1
    while vectors * lanes > size or (vectors > 1 and (
            (vectors > 2 and written > MOST_OF_FOUR)
            or vectors * once > MOST_TEXT or vectors * written > MOST_WRITTEN
            or vectors * whole > MOST_TEXT + MOST_WRITTEN
            or vectors * lanes * widest * stacked > MOST_STACKED)):
        vectors //= 2
    return lanes, vectors


def _written(eqn: Equation) -> int:
    """The instructions of an equation for a vector of lanes."""
    if eqn.primitive in BODIES or eqn.primitive in MOVEMENTS:
        return 0
    made = sum(_size(v) for v in eqn.outvars)
    if eqn.primitive is gather_p:
        return GATHERED * made
    if eqn.primitive is dot_general_p:
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return made * math.prod([int(eqn.invars[0].aval.shape[k]) for k in contracted])
    if eqn.primitive in (argmax_p, argmin_p):
        return CHOSEN * _size(eqn.invars[0])
    return _size(eqn.invars[0]) if eqn.primitive in SUMS else made


def _size(a: Atom) -> int:
    return math.prod([int(n) for n in a.aval.shape])


def _carried(eqn: Equation) -> int:
    """The numbers that a loop carries from step to step."""
    if eqn.primitive not in (scan_p, while_p):
        return 0
    carry = eqn.outvars[:eqn.params["num_carry"]] if eqn.primitive is scan_p else eqn.outvars
    return sum(math.prod([int(n) for n in v.aval.shape]) for v in carry)


def _bodies(body: Jaxpr) -> list[Jaxpr]:
    return [body, *(inner for eqn in body.eqns for b in subjaxprs(eqn) for inner in _bodies(b))]
