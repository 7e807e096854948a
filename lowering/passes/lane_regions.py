"""What is computed around a loop over lanes, in one loop with it.

A lane that makes its own initial state, and its own results of the last one, keeps them in
registers: alone, each is a kernel that writes what the next one reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.passes.convex import in_place_of, is_convex
from functrans.lowering.passes.lane_classes import classes_of_lanes
from functrans.lowering.passes.lanes import LaneLayout, LaneProgram, is_region
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.shape import reshape_p, rev_p, slice_p

__all__ = ["LaneProgramOf", "as_one_loop", "grow_loops", "with_tests"]

LaneProgramOf = Callable[[Equation], LaneProgram | None]
"""The program of a lane of a loop, None where it is no kernel of lanes."""
MOST: Final = 80
MOST_AFTER: Final = 32
"""Elements of a value of a lane that is computed before loops, or reads what they stack: each of
them is text of its own."""
MOST_COPIED: Final = 4
MOST_LATER: Final = 16
"""Elements that are written as they are, and in another order: before loops, and after them."""
MOST_FUNCTIONS: Final = 16
"""Elements of which a function of many instructions is taken: 128 of `tanh` compiled for 2.6 s."""
MOST_OF_TEST: Final = 24
FIRST: Final = Literal(np.int32(0), ShapedArray((), np.dtype(np.int32)))
MOVEMENT: Final = frozenset({broadcast_in_dim_p, reshape_p, transpose_p, slice_p, rev_p})


def as_one_loop(jaxpr: Jaxpr, members: Iterable[Equation]) -> tuple[Jaxpr, Equation]:
    """The program with some equations as a branch that is always taken, and the branch.

    No equation that is not a member may stand between two of them.
    """
    inside = set(members)
    eqns = [inner for eqn in jaxpr.eqns if eqn in inside for inner in _members_of(eqn)]
    made = {v for eqn in eqns for v in eqn.outvars}
    read = {a for eqn in jaxpr.eqns if eqn not in inside for a in eqn.invars} | set(jaxpr.outvars)
    outs = [v for eqn in eqns for v in eqn.outvars if v in read]
    operands = tuple(dict.fromkeys([a for eqn in eqns for a in eqn.invars
                                    if isinstance(a, Var) and a not in made]))
    body = Jaxpr((), operands, tuple(eqns), tuple(outs), name="lanes")
    group = Equation(cond_p, (FIRST, *operands), tuple(outs), {"branches": (body,)},
                     eqns[0].source)
    return in_place_of(jaxpr, inside, [group]), group


def with_tests(jaxpr: Jaxpr, is_kernel: Callable[[Equation], bool]) -> Jaxpr:
    """The program with loops that are kernels of lanes if it is known what makes their tests.

    That a lane which is done stays so is seen where its first test is computed.
    """
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for loop in jaxpr.eqns:
        if not any(map(_has_lanes, (loop, *_inside(loop)))) or is_kernel(loop):
            continue
        members: dict[Equation, None] = {loop: None}
        waiting: list[Atom] = [*loop.invars]
        while waiting and len(members) < MOST_OF_TEST:
            made = makers.get(waiting.pop())
            if made is not None and made not in members and (
                    made.primitive in MOVEMENT or isinstance(made.primitive, Elementwise)):
                members[made] = None
                waiting += made.invars
        if len(members) > 1 and is_convex(jaxpr, members):
            found, region = as_one_loop(jaxpr, members)
            if is_kernel(region):
                return with_tests(found, is_kernel)
    return jaxpr


def _has_lanes(eqn: Equation) -> bool:
    return bool(eqn.primitive is while_p and eqn.params.get("masked"))


def _inside(eqn: Equation) -> Iterator[Equation]:
    for body in subjaxprs(eqn):
        for inner in body.eqns:
            yield inner
            yield from _inside(inner)


def grow_loops(jaxpr: Jaxpr, program_of: LaneProgramOf,
               has_rule: Callable[[Equation], bool],
               is_function: Callable[[Equation], bool] = lambda eqn: False) -> Jaxpr:
    """The program with each loop over lanes and what is around it as one.

    `has_rule` tells whether an equation can be in the kernel of a lane, `is_function` whether an
    element of it takes many instructions.
    """
    tried: set[Equation] = set()
    while True:
        loop = next((eqn for eqn in jaxpr.eqns if eqn not in tried
                     and (program := program_of(eqn)) is not None), None)
        if loop is None:
            return jaxpr
        tried.add(loop)
        program = program_of(loop)
        assert program is not None
        seed = _members_of(loop)
        whole = Jaxpr((), jaxpr.invars, tuple([inner for eqn in jaxpr.eqns for inner in (
            seed if eqn is loop else (eqn,))]), jaxpr.outvars, name=jaxpr.name)
        for before, after in ((True, True), (True, False), (False, True)):
            members = _Region(whole, seed, loop, program, program_of, has_rule,
                              is_function).grown(before, after)
            if len(members) > len(seed):
                grown, group = as_one_loop(whole, members)
                if program_of(group) is not None:
                    tried.add(group)
                    jaxpr = grown
                    break


def _members_of(region: Equation) -> tuple[Equation, ...]:
    """The equations that a region stands for; a loop is one by itself."""
    if not is_region(region):
        return (region,)
    body = region.params["branches"][0]
    made = {v for eqn in body.eqns for v in eqn.outvars}
    if len(set(body.outvars)) < len(body.outvars) or not made.issuperset(body.outvars):
        return (region,)
    env: dict[Atom, Atom] = dict(zip((*body.invars, *body.outvars),
                                     (*region.invars[1:], *region.outvars), strict=True))

    def renamed(eqn: Equation) -> Equation:
        return eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]),
                           outvars=tuple([env.get(v, v) for v in eqn.outvars]))

    return tuple(map(renamed, body.eqns))


class _Region:
    """A loop over lanes, and equations around it: which dimension of a value is which axis."""

    def __init__(self, jaxpr: Jaxpr, seed: Sequence[Equation], loop: Equation,
                 program: LaneProgram, program_of: LaneProgramOf,
                 has_rule: Callable[[Equation], bool],
                 is_function: Callable[[Equation], bool]) -> None:
        self.jaxpr = jaxpr
        self.axes = [k for k, n in enumerate(program.sizes) if n > 1]
        self.program_of = program_of
        self.has_rule = has_rule
        self.is_function = is_function
        self.members = set(seed)
        self.dims: dict[Atom, dict[int, int]] = {}
        self.readers: dict[Atom, list[Equation | None]] = {a: [None] for a in jaxpr.outvars}
        for eqn in jaxpr.eqns:
            for a in eqn.invars:
                self.readers.setdefault(a, []).append(eqn)
        for v, layout in (*zip(program.operands, program.inputs, strict=True),
                          *zip(loop.outvars, program.outputs, strict=True)):
            self.dims[v] = self._dims_of(layout)

    def _dims_of(self, layout: LaneLayout) -> dict[int, int]:
        return {a: k for k, a in enumerate(layout.axes) if a is not None and a in self.axes}

    def grown(self, before: bool, after: bool) -> set[Equation]:
        """The equations of the region: those that read of it, and those that it reads."""
        if after:
            seed = frozenset(self.members)
            self._grow_after()
            self._drop_spread(seed)
        if before:
            self._grow_before()
        return self.members

    def _grow_after(self) -> None:
        made = {v for eqn in self.members for v in eqn.outvars}
        others: set[Atom] = set()  # what depends on the region and is not in it
        for eqn in self.jaxpr.eqns:
            if eqn in self.members or not any(
                    a in made or a in others for a in eqn.invars if isinstance(a, Var)):
                continue
            if not any(a in others for a in eqn.invars if isinstance(a, Var)) \
                    and self._takes(eqn, MOST_AFTER):
                made.update(eqn.outvars)
            else:
                others.update(eqn.outvars)

    def _drop_spread(self, seed: frozenset[Equation]) -> None:
        """Leave out what repeats a result and is read outside alone: its readers repeat it free."""
        spread: set[Atom] = set()
        for eqn in self.jaxpr.eqns:
            if eqn not in self.members or eqn in seed or eqn.primitive not in MOVEMENT:
                continue
            (y,), x = eqn.outvars, eqn.invars[0]
            is_spread = x in spread or (eqn.primitive is broadcast_in_dim_p and _own_size(
                y, self.dims[y]) > _own_size(x, self.dims.get(x, {})))
            if is_spread:
                spread.add(y)
        for eqn in reversed(self.jaxpr.eqns):
            if eqn in self.members and eqn.outvars[0] in spread and self.members.isdisjoint(
                    [r for r in self.readers.get(eqn.outvars[0], ()) if r is not None]):
                self.members.remove(eqn)

    def _grow_before(self) -> None:
        read = {a for eqn in self.members for a in eqn.invars if isinstance(a, Var)}
        made = {v for eqn in self.members for v in eqn.outvars}
        others: set[Atom] = set()  # what is read for the region outside of it
        for eqn in reversed(self.jaxpr.eqns):
            if eqn in self.members:
                continue
            is_read = any(v in read for v in eqn.outvars)
            outside = any(v in others for v in eqn.outvars)
            if not is_read and not outside:
                continue
            if outside or any(a in made for a in eqn.invars if isinstance(a, Var)) \
                    or not self._takes(eqn, MOST):
                others.update(a for a in eqn.invars if isinstance(a, Var))
            else:
                read.update(a for a in eqn.invars if isinstance(a, Var))

    def _takes(self, eqn: Equation, most: int) -> bool:
        """Whether an equation is one of lanes, and then a member."""
        if has_effects(eqn) or not self.has_rule(eqn) or not all(
                isinstance(n, int) and n > 0 for v in (*eqn.invars, *eqn.outvars)
                for n in v.aval.shape):
            return False
        found = self._dims_in(eqn)
        if found is None or any(set(found[v]) != set(self.axes) for v in eqn.outvars):
            return False
        values = [v for v in (*eqn.invars, *eqn.outvars) if isinstance(v, Var)]
        if self.is_function(eqn):
            most = MOST_FUNCTIONS
        size = max([_own_size(v, found[v]) for v in values])
        if eqn.primitive in MOVEMENT:
            if self._is_copied(eqn, size):
                return False
        elif size > most and not _has_body(eqn):
            return False
        self.dims.update(found)
        self.members.add(eqn)
        return True

    def _is_copied(self, eqn: Equation, size: int) -> bool:
        """Whether a value would be written by the kernel as it is, and in another order.

        What reads a result later may yet be a member: only long ones are looked at.
        """
        made = eqn.invars[0]
        inside = any(made in member.outvars for member in self.members)
        if inside:
            return size > MOST_LATER and any(reader is not eqn and reader not in self.members
                                             for reader in self.readers.get(made, ()))
        return size > MOST_COPIED and any(
            reader not in self.members for reader in self.readers.get(eqn.outvars[0], ()))

    def _dims_in(self, eqn: Equation) -> dict[Atom, dict[int, int]] | None:
        """The axes of the values of an equation; None if it mixes lanes."""
        values = dict.fromkeys([v for v in (*eqn.invars, *eqn.outvars) if isinstance(v, Var)])
        found: dict[Atom, dict[int, int]] = {v: {} for v in values}
        if isinstance(eqn.primitive, Elementwise):  # all of a shape, or scalars
            shaped = [v for v in values if v.aval.ndim]
            known = next((self.dims[v] for v in shaped if v in self.dims), None)
            if known is None or any(self.dims.get(v, known) != known for v in shaped):
                return None
            return found | dict.fromkeys(shaped, known)
        if _has_body(eqn):
            return self._dims_in_loop(eqn)
        classes = classes_of_lanes(Jaxpr((), tuple([v for v in values if v not in eqn.outvars]),
                                         (eqn,), eqn.outvars, name="one"))
        for axis in self.axes:
            start = next(((v, self.dims[v][axis]) for v in values
                          if isinstance(v, Var) and axis in self.dims.get(v, {})), None)
            whole = classes.whole(start) if start is not None else None
            if whole is None:
                return None
            for v in values:
                at = [k for k in range(v.aval.ndim) if (v, k) in whole]
                if len(at) > 1:
                    return None
                if at:
                    found[v][axis] = at[0]
        if any(v in self.dims and self.dims[v] != dims for v, dims in found.items()):
            return None
        return found

    def _dims_in_loop(self, eqn: Equation) -> dict[Atom, dict[int, int]] | None:
        """The axes of the values of another loop over lanes, if those are the same."""
        program = self.program_of(eqn)
        if program is None:
            return None
        layouts = [*zip(program.operands, program.inputs, strict=True),
                   *zip(eqn.outvars, program.outputs, strict=True)]
        own: dict[int, int] = {}  # axes of the other loop, and of this one
        for v, layout in layouts:
            for axis, k in self.dims.get(v, {}).items():
                theirs = layout.axes[k]
                if theirs is None or own.setdefault(theirs, axis) != axis:
                    return None
        if sorted(own.values()) != self.axes:
            return None
        found: dict[Atom, dict[int, int]] = {}
        for v, layout in layouts:
            found[v] = {own[a]: k for k, a in enumerate(layout.axes) if a in own}
            if self.dims.get(v, found[v]) != found[v]:
                return None
        return found


def _own_size(v: Atom, dims: dict[int, int]) -> int:
    lanes = set(dims.values())
    return math.prod([int(n) for k, n in enumerate(v.aval.shape) if k not in lanes])


def _has_body(eqn: Equation) -> bool:
    return any(isinstance(p, Jaxpr) or (isinstance(p, tuple) and any(
        isinstance(b, Jaxpr) for b in p)) for p in eqn.params.values())
