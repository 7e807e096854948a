"""Regions over lanes: small products, what is computed from them, and sums over all lanes of it.

The gradient of a small network over many samples is such a region: every sample goes through the
same matrices, and the gradients of these are sums over samples. One kernel can compute it for a
tile of lanes after the other, so that nothing between the samples and the sums goes to memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.lowering.passes.separable import ELEMENTWISE, AxisClasses
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import reduce_max_p, reduce_min_p
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, slice_p

__all__ = ["form_tile_regions", "is_lane_sum", "tile_region_p"]

LEAST_LANES: Final = 1024
LEAST_PRODUCTS: Final = 3
"""Of which one is a sum over lanes."""
MOST_COMPONENTS: Final = 128
MOST_SHARED: Final = 128 * 128
"""Elements of a matrix that lanes share."""
MOST_SUMMED: Final = 64 * 64
"""Elements of a sum, and twice as many of all: programs have them in registers."""
ALLOWED: Final = frozenset({
    broadcast_in_dim_p, reduce_sum_p, transpose_p, select_n_p, dot_general_p, reduce_max_p,
    reduce_min_p, concatenate_p, pad_p, reshape_p, slice_p, full_p}) | ELEMENTWISE
MOVEMENTS: Final = frozenset({broadcast_in_dim_p, transpose_p, reshape_p, full_p})


class TileRegion(Primitive):
    """The results of a program over lanes. `lanes` are the axes of its values that are lanes."""

    name = "tile_region"
    multiple_results = True
    required_rules = ("type", "evaluate")

    def type(self, *avals: ShapedArray, jaxpr: Jaxpr, count: int,
             lanes: Mapping[Var, int]) -> list[ShapedArray]:
        return [v.aval for v in jaxpr.outvars]

    def evaluate(self, *arrays: np.ndarray[Any, Any], jaxpr: Jaxpr, count: int,
                 lanes: Mapping[Var, int]) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(x) for x in interpret(jaxpr, list(arrays))]


tile_region_p = TileRegion()


def form_tile_regions(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its largest region over lanes as one equation, if there is one."""
    counts = Counter(n for eqn in jaxpr.eqns if (n := _lanes_of_product(eqn)))
    for count, products in counts.most_common():
        if products >= 2 and (found := _TileRegion(jaxpr, count).formed()) is not None:
            return found
    return jaxpr


def is_lane_sum(eqn: Equation, lanes: Mapping[Var, int]) -> bool:
    """Whether an equation adds up what all lanes have, or products of it."""
    if any(x.aval.dtype != np.float32 or not isinstance(x.aval.size, int)
           for x in (*eqn.invars, *eqn.outvars)):
        return False
    size = eqn.outvars[0].aval.size
    if not isinstance(size, int) or size > MOST_SUMMED:
        return False
    if eqn.primitive is reduce_sum_p:
        (x,) = eqn.invars
        axes = eqn.params["axes"]
        return isinstance(x, Var) and lanes.get(x) in axes and len(axes) in (1, x.aval.ndim) \
            and x.aval.size <= MOST_COMPONENTS * _size(x, lanes[x])
    if eqn.primitive is not dot_general_p:
        return False
    contract, batch = eqn.params["dimension_numbers"]
    return not any(batch) and all(
        isinstance(x, Var) and tuple(own) == (lanes.get(x),) and x.aval.ndim <= 2
        and x.aval.size <= MOST_COMPONENTS * _size(x, lanes[x])
        for x, own in zip(eqn.invars, contract, strict=True))


def _size(x: Atom, axis: int) -> int:
    n = x.aval.shape[axis]
    assert isinstance(n, int)
    return n


def _seed(eqn: Equation) -> tuple[Var, int] | None:
    """The operand of a product with a shared matrix that has lanes, and their axis."""
    if eqn.primitive is not dot_general_p:
        return None
    contract, batch = eqn.params["dimension_numbers"]
    if any(batch):
        return None
    for x, own, other in zip(eqn.invars, contract, reversed(eqn.invars), strict=True):
        if x.aval.ndim == 2 and len(own) == 1 and isinstance(x, Var) \
                and isinstance(other.aval.size, int) and other.aval.size <= MOST_SHARED:
            axis = 1 - own[0]
            n = x.aval.shape[axis]
            if isinstance(n, int) and n >= LEAST_LANES and n not in other.aval.shape:
                return x, axis
    return None


def _lanes_of_product(eqn: Equation) -> int:
    seed = _seed(eqn)
    return 0 if seed is None else _size(*seed)


class _TileRegion:
    """The equations of a program that are over lanes of a number."""

    def __init__(self, jaxpr: Jaxpr, count: int) -> None:
        self.jaxpr, self.count = jaxpr, count
        self.lanes: dict[Var, int] = {}
        self.members: list[Equation] = []
        self.inside: set[Var] = set()
        self.sums: set[Var] = set()
        self.behind: list[Equation] = []
        self.before: list[Equation] = []
        after: set[Var] = set()
        for eqn in jaxpr.eqns:
            ins = {x for x in eqn.invars if isinstance(x, Var)}
            if not ins.isdisjoint(after) or not ins.isdisjoint(self.sums):
                after.update(eqn.outvars)
                self.behind.append(eqn)
            elif self._joins(eqn, ins):
                self.members.append(eqn)
            elif ins.isdisjoint(self.inside):
                self.before.append(eqn)
            else:
                after.update(eqn.outvars)
                self.behind.append(eqn)

    def _joins(self, eqn: Equation, ins: set[Var]) -> bool:
        """Whether an equation is in the region, which then has its results."""
        known = {v: self.lanes[v] for v in ins if v in self.lanes}
        is_inside = not ins.isdisjoint(self.inside)
        if not is_inside:
            seed = _seed(eqn)
            if seed is None or _size(*seed) != self.count:
                return False
            known[seed[0]] = seed[1]
        found = self._through(eqn, known)
        if found is not None:
            self.lanes.update(found)
            self.inside.update(eqn.outvars)
            return True
        if not is_inside:
            return False
        lanes = dict(self.lanes)
        if eqn.primitive is dot_general_p:  # an operand from before the region may be contracted
            for x, own in zip(eqn.invars, eqn.params["dimension_numbers"][0], strict=True):
                if isinstance(x, Var) and x not in lanes and len(own) == 1 \
                        and x.aval.shape[own[0]] == self.count:
                    lanes[x] = own[0]
        if not is_lane_sum(eqn, lanes):
            return False
        self.lanes = lanes
        self.sums.update(eqn.outvars)
        return True

    def _through(self, eqn: Equation, known: Mapping[Var, int]) -> dict[Var, int] | None:
        """The axes of lanes of all values of an equation; None if it mixes lanes."""
        p = eqn.primitive
        if not (isinstance(p, Elementwise) or p in ALLOWED) or any(
                not isinstance(v.aval.size, int) or v.aval.size > MOST_COMPONENTS * self.count
                for v in (*eqn.invars, *eqn.outvars)):
            return None
        classes = AxisClasses()
        classes.join(Jaxpr((), (), (eqn,), ()))
        roots = {classes.root((v, k)) for v, k in known.items()}
        if len(roots) != 1 or not roots.isdisjoint(classes.mixed):
            return None
        (root,) = roots
        found: dict[Var, int] = {}
        for v in (*eqn.invars, *eqn.outvars):
            own = [k for k in range(v.aval.ndim) if isinstance(v, Var)
                   and classes.root((v, k)) == root]
            if not isinstance(v, Var) or not own:
                continue
            if len(own) > 1 or self.lanes.get(v, own[0]) != own[0] \
                    or _size(v, own[0]) != self.count:
                return None
            found[v] = own[0]
        return found if all(v in found for v in eqn.outvars) else None

    def formed(self) -> Jaxpr | None:
        """The program with the region as one equation; None where that is too little."""
        products = [e for e in self.members if e.primitive is dot_general_p]
        if len(products) < LEAST_PRODUCTS or not any(
                e.outvars[0] in self.sums for e in products) or sum(
                int(v.aval.size) for v in self.sums) > 2 * MOST_SUMMED:
            return None
        members = [*self._moved(), *self.members]
        made = {v for e in members for v in e.outvars}
        read = dict.fromkeys([x for e in members for x in e.invars
                              if isinstance(x, Var) and x not in made])
        wanted = {x for e in self.behind for x in e.invars} | set(self.jaxpr.outvars)
        outs = [v for e in self.members for v in e.outvars if v in wanted]
        inner = Jaxpr((), tuple(read), tuple(members), tuple(outs), name="region")
        eqn = Equation(tile_region_p, tuple(read), tuple(outs),
                       {"jaxpr": inner, "count": self.count, "lanes": dict(self.lanes)},
                       products[0].source)
        return Jaxpr(self.jaxpr.constvars, self.jaxpr.invars,
                     (*self.before, eqn, *self.behind), self.jaxpr.outvars, name=self.jaxpr.name)

    def _moved(self) -> list[Equation]:
        """The equations before the region that only move what it reads: it does so itself."""
        read = {x for e in self.members for x in e.invars}
        found = []
        for eqn in reversed(self.before):
            if eqn.primitive in MOVEMENTS and not read.isdisjoint(eqn.outvars):
                found.append(eqn)
                read.update(eqn.invars)
        return found[::-1]
