"""What a loop tells of all lanes together in each iteration is computed after it, from stacks.

Means over chains, moments and losses are results of every iteration that no later one reads. In the
loop they would make lanes wait for each other; behind it, a loop without a carry computes them.
"""

from __future__ import annotations

import math
from typing import Final

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.prune import has_effects
from functrans.lowering.passes.lane_axes import LaneAxes, lane_axes
from functrans.lowering.passes.rewrite import with_bodies, with_equations
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.dot import dot_general_p

__all__ = ["changing", "take_lanes_together_after_loops"]

LEAST_LANES: Final = 64
MOST_COMPONENTS: Final = 256
"""Of what a lane carries, in registers."""
LOOPS: Final = (scan_p, while_p)
"""With loops inside launches are faster than tiles of lanes: a sampler took 4.6 ms, and 3.8."""
MOST_BYTES: Final = 1 << 28
"""Of what is stacked."""


def changing(body: Jaxpr, first: int, count: int) -> Jaxpr:
    """The equations of a body that depend on the carry: what others compute any lane can read."""
    known = set(body.invars[first:first + count])
    kept = []
    for eqn in body.eqns:
        if not known.isdisjoint([x for x in eqn.invars if isinstance(x, Var)]):
            known.update(eqn.outvars)
            kept.append(eqn)
    return Jaxpr(body.constvars, body.invars, tuple(kept), body.outvars, name=body.name)


def take_lanes_together_after_loops(jaxpr: Jaxpr) -> Jaxpr:
    """The program whose loops over lanes that share matrices leave sums over them for later."""
    return with_equations(with_bodies(jaxpr, take_lanes_together_after_loops), _apart)


def _apart(eqn: Equation) -> list[Equation] | None:
    """A loop without what takes lanes together, and the loop that does; None of another one."""
    if eqn.primitive is not scan_p or not isinstance(eqn.params["length"], int):
        return None
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    if n == 0 or n == len(body.outvars) or not _has_product(body) or has_effects(eqn) \
            or any(e.primitive in LOOPS for e in body.eqns):
        return None
    later = _later(body, first, n)
    if not later:
        return None
    kept = tuple([e for e in body.eqns if e not in later])
    moved = tuple([e for e in body.eqns if e in later])
    made = {v for e in moved for v in e.outvars}
    read = dict.fromkeys([x for e in moved for x in e.invars
                          if isinstance(x, Var) and x not in made])
    consts = [v for v in read if v in body.invars[:first]]
    walked = [v for v in read if v in body.invars[first + n:]]
    stacked = [v for v in read if v not in consts and v not in walked]
    length: int = eqn.params["length"]
    sizes = [v.aval.size for v in stacked]
    if not all(isinstance(size, int) for size in sizes) or length * sum(
            v.aval.dtype.itemsize * int(v.aval.size) for v in stacked) > MOST_BYTES:
        return None
    here = [k for k in range(n, len(body.outvars)) if body.outvars[k] not in made]
    there = [k for k in range(n, len(body.outvars)) if body.outvars[k] in made]
    stacks = [Var(ShapedArray((length, *v.aval.shape), v.aval.dtype)) for v in stacked]
    before = Jaxpr((), body.invars, kept, (*body.outvars[:n], *[body.outvars[k] for k in here],
                                           *stacked), name=body.name)
    after = Jaxpr((), (*consts, *walked, *stacked), moved,
                  tuple([body.outvars[k] for k in there]), name=body.name)
    outside = dict(zip(body.invars, eqn.invars, strict=True))
    operands: list[Atom] = [*[outside[v] for v in consts], *[outside[v] for v in walked], *stacks]
    return [
        eqn.replace(outvars=(*eqn.outvars[:n], *[eqn.outvars[k] for k in here], *stacks),
                    params={**eqn.params, "jaxpr": before}),
        Equation(scan_p, tuple(operands), tuple([eqn.outvars[k] for k in there]),
                 {**eqn.params, "jaxpr": after, "num_consts": len(consts), "num_carry": 0,
                  "reverse": False}, eqn.source)]


def _has_product(body: Jaxpr) -> bool:
    return any(eqn.primitive is dot_general_p or any(map(_has_product, subjaxprs(eqn)))
               for eqn in body.eqns)


def _later(body: Jaxpr, first: int, n: int) -> set[Equation]:
    """The equations that take lanes together, and those that read them: no iteration needs them."""
    needed = {x for x in body.outvars[:n] if isinstance(x, Var)}
    free: set[Equation] = set()
    for eqn in reversed(body.eqns):
        if needed.isdisjoint(eqn.outvars):
            free.add(eqn)
        else:
            needed.update(x for x in eqn.invars if isinstance(x, Var))
    candidates = {e for e in free if _folded(e)}
    if not candidates:
        return set()
    lanes = _lanes(body, first, n, _with_readers(body, candidates))
    if not lanes.sizes or max(lanes.sizes) < LEAST_LANES:
        return set()
    number = lanes.sizes.index(max(lanes.sizes))
    if any(v.aval.size > MOST_COMPONENTS * lanes.sizes[number]
           for v in body.invars[first:first + n] if isinstance(v.aval.size, int)):
        return set()
    together = {e for e in candidates if any(
        isinstance(x, Var) and lanes.of(x).get(k) == number for x, axes in _folded(e)
        for k in axes)}
    later = _with_readers(body, together)
    left = _lanes(body, first, n, later)
    return later if math.prod(left.sizes) >= max(lanes.sizes) else set()


def _folded(eqn: Equation) -> list[tuple[Atom, tuple[int, ...]]]:
    """What an equation takes together along some axes."""
    if eqn.primitive is dot_general_p:
        return list(zip(eqn.invars, eqn.params["dimension_numbers"][0], strict=True))
    if eqn.primitive.name.startswith("reduce_"):
        return [(eqn.invars[0], tuple(eqn.params["axes"]))]
    return []


def _with_readers(body: Jaxpr, eqns: set[Equation]) -> set[Equation]:
    """Some equations, and those that need their results."""
    found, made = set(eqns), {v for e in eqns for v in e.outvars}
    for eqn in body.eqns:
        if not made.isdisjoint([x for x in eqn.invars if not isinstance(x, Literal)]):
            found.add(eqn)
            made.update(eqn.outvars)
    return found


def _lanes(body: Jaxpr, first: int, n: int, without: set[Equation]) -> LaneAxes:
    """The lanes of a body without some equations."""
    rest = tuple([e for e in body.eqns if e not in without])
    return lane_axes(changing(Jaxpr((), body.invars, rest, body.outvars[:n]), first, n), first, n)
