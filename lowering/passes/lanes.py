"""Loops over lanes that know nothing of each other, as the program of one lane.

The axes of lanes are those of maps (loops without a carry) and classes of axes that no operation of
a loop mixes. Without them a program is left in which values are as small as they are for a lane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from functrans.core.dims import static_shape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.core.record import Record
from functrans.lowering.passes.blocks_of_lanes import all_at_once
from functrans.lowering.passes.lane_classes import (
    SCATTERS,
    classes_of_lanes,
    learn_makers,
    running_of,
)
from functrans.lowering.passes.lazy_choices import with_lazy_choices
from functrans.lowering.passes.loops import substituted
from functrans.lowering.passes.pipeline import ALL_RULES, simplify_with
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.lowering.passes.separable import SeparableRows
from functrans.lowering.passes.small_scans import write_out_scans
from functrans.lowering.passes.small_sorts import write_out_sorts
from functrans.lowering.passes.small_systems import write_out_systems
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.bodies import TRUE
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.shape import reshape_p, rev_p, slice_p

__all__ = [
    "IN_VECTORS",
    "LaneLayout",
    "LaneLimits",
    "LaneProgram",
    "is_read_in_place",
    "is_region",
    "lane_program",
    "lane_program_or_reason",
]

UPDATES: Final = (*SCATTERS, dynamic_update_slice_p)
IN_PLACE: Final = frozenset({broadcast_in_dim_p, convert_element_type_p, select_n_p, reshape_p,
                             slice_p, transpose_p, rev_p, add_any_p})


class LaneLimits(Record):
    """What a lane may be where lanes are in vectors, and what a target has otherwise."""

    elements: int = 128
    """Of a value of a lane: what is wider fills vectors and threads by itself."""
    of_one: int = 256
    """Multiply-adds of a product, and comparisons of an update, that are written out."""
    operations: int = 2000
    fewest: int = 16
    """Lanes of an axis that is taken where values of a lane are small."""
    long: int = 64
    step: int = 12
    """Operations of a step, for each number that loops of more than `long` steps write to memory
    or read: all lanes step by step go through memory in order."""
    repeated: tuple[float, float] = (math.inf, 4.0)
    """How often lanes together may compute what they share, along the first axis and others. A
    vector of a further axis walks a loop that the axis has no part in by itself: a bisection in
    each row of 256 x 256, spread over its row, took 15.9 ms, now 0.08."""
    is_alone: bool = False
    """Whether a single lane is worth a kernel, and lanes that are fewer than their numbers."""
    believes_masks: bool = False
    """Whether lanes that are done are believed to stay so where `vmap` says it."""


IN_VECTORS: Final = LaneLimits()
FEW_REPEATED: Final = 64
"""Numbers that each lane may compute again in any case: the covariance of a Kalman filter."""


class LaneProgram(Record, eq=False):
    """What a loop does for one lane.

    `sizes` are those of the axes of lanes. The inputs of `body` are one lane of `operands`, whose
    dimensions `inputs` has: the axis of lanes that each is, or None where it is the lane's own. Of
    the dimensions that are axes of lanes those in `kept` have the size 1 in the body, others are
    not in it. So it is with the results and `outputs`.
    """

    sizes: tuple[int, ...]
    body: Jaxpr
    operands: tuple[Var, ...]
    inputs: tuple[LaneLayout, ...]
    outputs: tuple[LaneLayout, ...]


class LaneLayout(Record):
    """The axis of lanes that each dimension of a value is, if it is one; those that are `kept`."""

    axes: tuple[int | None, ...]
    kept: frozenset[int] = frozenset()

    def mapped(self, axis: int) -> LaneLayout:
        """The layout with a dimension in front that is an axis of lanes."""
        return LaneLayout((axis, *self.axes), frozenset(k + 1 for k in self.kept))

    def split(self, dim: int, axis: int) -> LaneLayout:
        """The layout where a dimension of the body is an axis of lanes, too."""
        at = [k for k, a in enumerate(self.axes) if a is None or k in self.kept][dim]
        axes = list(self.axes)
        axes[at] = axis
        return LaneLayout(tuple(axes), self.kept | {at})


def lane_program(eqn: Equation, limits: LaneLimits = IN_VECTORS) -> LaneProgram | None:
    """The program of a lane of a loop; None where lanes mix, or have large values."""
    found = lane_program_or_reason(eqn, limits)
    return found if isinstance(found, LaneProgram) else None


def lane_program_or_reason(eqn: Equation,
                           limits: LaneLimits = IN_VECTORS) -> LaneProgram | str:
    """The program of a lane of a loop, or why there is none."""
    found = _lanes_of(eqn, limits)
    if isinstance(found, str):
        return found
    why = _reason_against(found, limits)
    if why is not None:
        return why
    alone = _of_one(found.body, limits)
    for write_out in (write_out_systems, write_out_sorts, write_out_scans):
        alone = write_out(alone)
    return replace(found, body=with_lazy_choices(simplify_with(ALL_RULES, alone)))


def _lanes_of(eqn: Equation, limits: LaneLimits) -> LaneProgram | str:
    """The axes of lanes of a loop, and a body for one of them that is not simplified yet."""
    if not (eqn.primitive in (scan_p, while_p) or is_region(eqn)):
        return "it is no loop"
    if has_effects(eqn):
        return "it has effects"
    if not _is_static(eqn):
        return "it has no iterations, or sizes that are known only when it runs"
    operands = tuple(dict.fromkeys([a for a in eqn.invars if isinstance(a, Var)]))
    body = _region_body(eqn) if is_region(eqn) else \
        Jaxpr((), operands, (eqn,), eqn.outvars, name=eqn.primitive.name)
    found = LaneProgram((), body, operands, tuple([_whole(v) for v in body.invars]),
                        tuple([_whole(v) for v in body.outvars]))
    while (inner := _without_map(found)) is not None:
        found = inner
    joined = with_bodies(found.body, _joined)
    if joined is not found.body:
        found = replace(found, body=simplify_with(ALL_RULES, joined))
    while (inner := _narrowed(found, limits)) is not None:
        found = inner
    return _with_stacks(found)


def _reason_against(program: LaneProgram, limits: LaneLimits) -> str | None:
    """Why a program is not written for a lane, if it is not."""
    body, widest = program.body, _widest(program.body)
    if not (program.sizes or limits.is_alone):
        return "no axis is of lanes that do not mix"
    if not program.sizes and any(eqn.primitive is while_p and any(
            test.primitive is reduce_or_p for test in eqn.params["cond_jaxpr"].eqns)
            for eqn in body.eqns):
        return "whether a lane goes on depends on others"
    if widest > limits.elements:
        return f"a lane has {widest} elements of a value"
    if _has_large_results(body, limits):
        return "a lane has a large result that is not written step by step"
    if _is_bound_by_memory(body, limits):
        return "its steps write and read more than they compute"
    if not _has_small_operations(body, limits):
        return "a lane has a large product or update"
    if (count := _operations(body, 1)) > limits.operations:
        return f"a lane computes {count} numbers"
    if not limits.is_alone and math.prod(program.sizes) < widest:
        return f"a lane has {widest} elements of a value, and lanes are fewer"
    return None


def is_region(eqn: Equation) -> bool:
    """Whether an equation stands for several around a loop, which are its only branch."""
    return eqn.primitive is cond_p and len(eqn.params["branches"]) == 1


def _region_body(region: Equation) -> Jaxpr:
    """What a region computes, as a function of its operands, each once."""
    body = region.params["branches"][0]
    first: dict[Atom, Var] = {}
    env: dict[Atom, Atom] = {}
    for x, v in zip(region.invars[1:], body.invars, strict=True):
        env[v] = x if isinstance(x, Literal) else first.setdefault(x, v)
    found = substituted(body, {v: x for v, x in env.items() if v is not x}, tuple(first.values()))
    return Jaxpr((), found.invars, found.eqns, tuple([
        env.get(v, v) if isinstance(v, Var) else v for v in body.outvars]), name=body.name)


def _of_one(body: Jaxpr, limits: LaneLimits) -> Jaxpr:
    """A body in which the lane runs: of one lane alone no iteration takes place once it is done."""
    known: dict[Atom, Equation] = {}
    learn_makers(body, known)

    def alone(eqn: Equation) -> Equation:
        params: dict[str, Any] = {
            k: _of_one(v, limits) if isinstance(v, Jaxpr) else tuple([
                _of_one(b, limits) for b in v])
            if isinstance(v, tuple) and v and isinstance(v[0], Jaxpr) else v
            for k, v in eqn.params.items()}
        running = running_of(eqn, known, limits.believes_masks) \
            if eqn.primitive is while_p else None
        if running is not None:
            inner: Any = params["body_jaxpr"]
            v = inner.invars[params["body_nconsts"] + running]
            goes_on = Var(v.aval)
            first = Equation(broadcast_in_dim_p, (TRUE,), (goes_on,),
                             {"shape": v.aval.shape, "broadcast_dimensions": ()}, eqn.source)
            params["body_jaxpr"] = substituted(inner, {v: goes_on}, inner.invars, [first])
        return eqn.replace(params=params)

    return Jaxpr((), body.invars, tuple(map(alone, body.eqns)), body.outvars, name=body.name)


def _joined(body: Jaxpr) -> Jaxpr:
    """A body with maps over blocks of lanes as one block of all."""
    return with_functions(with_bodies(body, _joined), all_at_once)


def _is_static(eqn: Equation) -> bool:
    return all(isinstance(n, int) and n > 0 for v in (*eqn.invars, *eqn.outvars)
               for n in v.aval.shape) and all(
        _is_static(e) for body in subjaxprs(eqn) for e in body.eqns)


def _whole(v: Atom) -> LaneLayout:
    return LaneLayout((None,) * v.aval.ndim)


def _without_map(program: LaneProgram) -> LaneProgram | None:
    """The program of an iteration, where all of it is a map."""
    body = program.body
    if len(body.eqns) != 1:
        return None
    (eqn,) = body.eqns
    p = eqn.params
    if eqn.primitive is not scan_p or p["num_carry"] or any(
            v not in eqn.outvars for v in body.outvars):
        return None
    axis, first = len(program.sizes), p["num_consts"]
    layouts = dict(zip(body.invars, zip(program.operands, program.inputs, strict=True),
                       strict=True))
    env: dict[Atom, Atom] = {}
    invars, operands, inputs = [], [], []
    for k, (x, v) in enumerate(zip(eqn.invars, p["jaxpr"].invars, strict=True)):
        if isinstance(x, Literal):
            env[v] = x
            continue
        operand, layout = layouts[x]
        invars.append(v)
        operands.append(operand)
        inputs.append(layout if k < first else _mapped_first(layout, axis))
    made = dict(zip(eqn.outvars, p["jaxpr"].outvars, strict=True))
    inner = substituted(p["jaxpr"], env, invars)
    inner = Jaxpr((), inner.invars, inner.eqns, tuple([
        env.get(made[v], made[v]) for v in body.outvars if isinstance(v, Var)]), name=inner.name)
    return LaneProgram((*program.sizes, p["length"]), inner, tuple(operands), tuple(inputs),
                       tuple([_mapped_first(y, axis) for y in program.outputs]))


def _mapped_first(layout: LaneLayout, axis: int) -> LaneLayout:
    """The layout where the first dimension of the body is an axis of lanes, and no longer there."""
    at = next(k for k, a in enumerate(layout.axes) if a is None or k in layout.kept)
    axes = list(layout.axes)
    axes[at] = axis
    return LaneLayout(tuple(axes), layout.kept)


def _narrowed(program: LaneProgram, limits: LaneLimits) -> LaneProgram | None:
    """The program of one row of a class of axes; None where no class is to be taken."""
    body = program.body
    classes = classes_of_lanes(body, limits.believes_masks)
    is_first = not program.sizes
    least = 2 if is_first or _widest(body) > limits.elements else limits.fewest
    axes = sorted([(n, -k, v) for v in body.outvars if isinstance(v, Var)
                   for k, n in enumerate(static_shape(v.aval.shape)) if n >= least],
                  key=lambda a: a[:2], reverse=True)
    for size, k, v in axes:
        found = classes.whole((v, -k))
        if found is None:
            continue
        layouts = [_split(values, layouts, found, len(program.sizes)) for values, layouts in (
            (body.invars, program.inputs), (body.outvars, program.outputs))]
        inputs, outputs = layouts
        if inputs is None or outputs is None:
            continue
        one = SeparableRows(body, size, found, frozenset(), frozenset()).narrowed(1)
        if one is not None and _is_worthwhile(body, one, size, is_first, limits):
            return LaneProgram((*program.sizes, size), one, program.operands, inputs, outputs)
    return None


def _is_worthwhile(body: Jaxpr, one: Jaxpr, size: int, is_first: bool, limits: LaneLimits) -> bool:
    """Whether lanes of a further axis do not compute too much of what they share."""
    repeated = limits.repeated[0 if is_first else 1]
    if repeated == math.inf:
        return True
    before, after = _elements_of_step(body), size * _elements_of_step(one)
    return after <= repeated * before or (is_first and after - before <= FEW_REPEATED * size)


def _elements_of_step(body: Jaxpr) -> int:
    """How many elements the operations of a body have, of a step of loops and of all of maps."""
    def of(eqn: Equation) -> int:
        inner = sum(map(_elements_of_step, subjaxprs(eqn)))
        is_map = eqn.primitive is scan_p and not eqn.params["num_carry"]
        return inner * (eqn.params["length"] if is_map else 1) or sum(map(_size, eqn.outvars))

    return sum(map(of, body.eqns))


def _split(values: Sequence[Atom], layouts: Sequence[LaneLayout], axes: frozenset[tuple[Var, int]],
           axis: int) -> tuple[LaneLayout, ...] | None:
    found = []
    for v, layout in zip(values, layouts, strict=True):
        has = [k for k in range(v.aval.ndim) if (v, k) in axes] if isinstance(v, Var) else []
        if len(has) > 1:
            return None
        found.append(layout.split(has[0], axis) if has else layout)
    return tuple(found)


def _widest(body: Jaxpr) -> int:
    """The elements of the largest value that a lane computes in a step."""
    return max([1, *(_widest_of(eqn) for eqn in body.eqns)])


def _widest_of(eqn: Equation) -> int:
    inner = [_widest(b) for b in subjaxprs(eqn)]
    if is_read_in_place(eqn):
        return 1
    stacked = eqn.params["num_carry"] if eqn.primitive is scan_p else len(eqn.outvars)
    return max([*inner, *(_size(v) for v in eqn.outvars[:stacked])], default=1)


def is_read_in_place(eqn: Equation) -> bool:
    """Whether each element of a result is a few operations on elements of the operands."""
    p = eqn.primitive
    return isinstance(p, Elementwise) or p in IN_PLACE


def _has_large_results(body: Jaxpr, limits: LaneLimits) -> bool:
    """Whether a result of many elements is not written by a loop as it goes."""
    stacks = {v for eqn in body.eqns if eqn.primitive is scan_p
              for v in eqn.outvars[eqn.params["num_carry"]:]}
    return any(_size(v) > limits.elements and v not in stacks
               for v in body.outvars if isinstance(v, Var))


def _with_stacks(program: LaneProgram) -> LaneProgram:
    """The program with what loops stack as results, where these are the same in another shape.

    Of one lane a transposition that moves the axis of lanes moves nothing.
    """
    makers = {v: eqn for eqn in program.body.eqns for v in eqn.outvars}
    outs = list(program.body.outvars)
    for k, (out, layout) in enumerate(zip(outs, program.outputs, strict=True)):
        stack = out
        while isinstance(stack, Var) and (made := makers.get(stack)) is not None \
                and _keeps_order(made):
            stack = made.invars[0]
        made = makers.get(stack) if isinstance(stack, Var) else None
        if made is None or made.primitive is not scan_p or stack in outs or stack not in \
                made.outvars[made.params["num_carry"]:]:
            continue
        there = [a for at, a in enumerate(layout.axes) if a is None or at in layout.kept]
        own = [n for a, n in zip(there, static_shape(out.aval.shape), strict=True) if a is None]
        if own and own[0] == made.params["length"] and math.prod(own) == _size(stack):
            outs[k] = stack
    body = program.body
    return replace(program, body=Jaxpr((), body.invars, body.eqns, tuple(outs), name=body.name))


def _keeps_order(eqn: Equation) -> bool:
    """Whether a result has the elements of the operand one after another, in another shape."""
    if eqn.primitive is transpose_p:
        shape = eqn.invars[0].aval.shape
        order = [k for k in eqn.params["permutation"] if shape[k] != 1]
        return order == sorted(order)
    return eqn.primitive is reshape_p


def _is_bound_by_memory(body: Jaxpr, limits: LaneLimits) -> bool:
    """Whether steps write and read more than they compute, a step of a lane far from the next."""
    for eqn in body.eqns:
        if eqn.primitive is scan_p and eqn.params["length"] >= limits.long:
            p = eqn.params
            outside = {*body.invars, *body.outvars}
            first = p["num_consts"] + p["num_carry"]
            moved = sum(_size(v) // p["length"] for v in (
                *eqn.invars[first:], *eqn.outvars[p["num_carry"]:]) if v in outside)
            if moved * limits.step > _operations(p["jaxpr"]):
                return True
    return False


def _operations(body: Jaxpr, inner: int = 4) -> int:
    """About how many numbers a body computes; iterations of loops in it count `inner` times."""
    return sum(_operations_of(eqn) + inner * sum(_operations(b, inner) for b in subjaxprs(eqn))
               for eqn in body.eqns)


def _operations_of(eqn: Equation) -> int:
    if any(True for _ in subjaxprs(eqn)):
        return 0
    made = sum(map(_size, eqn.outvars))
    if eqn.primitive is dot_general_p:
        summed = eqn.params["dimension_numbers"][0][0]
        shape = static_shape(eqn.invars[0].aval.shape)
        return made * math.prod([int(shape[k]) for k in summed])
    if eqn.primitive in UPDATES:
        return made * _size(eqn.invars[2 if eqn.primitive is not dynamic_update_slice_p else 1])
    return 0 if is_read_in_place(eqn) and made > IN_VECTORS.elements else made


def _has_small_operations(body: Jaxpr, limits: LaneLimits) -> bool:
    """Whether products and updates are small enough to be written out.

    Products of larger matrices, and updates of a few of many elements, are better done for all.
    """
    return all(_operations_of(eqn) <= limits.of_one or eqn.primitive not in (
        dot_general_p, *UPDATES) for eqn in body.eqns) and all(
        _has_small_operations(b, limits) for eqn in body.eqns for b in subjaxprs(eqn))


def _size(v: Atom) -> int:
    return math.prod([n for n in v.aval.shape if isinstance(n, int)])
