"""What a loop stacks, computed after it from stacks of less.

The gradient of a weight is a product of two values of an iteration, its factors, and often larger
than both: always in a gradient per sample. A stack of products is a product of the stacks of the
factors, which share the axis of iterations. `Cuts` finds the factors; `After` makes the product by
the batching rules of the primitives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.lowering.passes.movement import broadcast
from functrans.lowering.passes.rewrite import Rewriter
from functrans.lowering.passes.scans import ScanParts, nbytes
from functrans.primitives.arithmetic import add_p, mul_p, neg_p, sub_p
from functrans.primitives.broadcast import broadcast_in_dim_p, move_axis, transpose_p
from functrans.primitives.control_flow.bodies import stage_body
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_update_slice_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import concatenate_p, iota_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["MOVES", "After", "Cuts", "repeated", "widened"]

PRODUCTS: frozenset[Primitive] = frozenset((
    dot_general_p, conv_general_dilated_p, scatter_add_p, scatter_p, dynamic_update_slice_p))
MOVES: frozenset[Primitive] = frozenset((
    broadcast_in_dim_p, transpose_p, reshape_p, slice_p, rev_p, pad_p, concatenate_p, iota_p,
    convert_element_type_p))
LIFTED = PRODUCTS | MOVES | frozenset((add_p, sub_p, mul_p, neg_p))


def widened(aval: ShapedArray) -> ShapedArray:
    """The type in which values of a type are added up."""
    dtype = dtypes.computed_dtype(aval.dtype)
    return aval if dtype == aval.dtype else aval.with_dtype(dtype)


class Cut(NamedTuple):
    """The values of an iteration that are to be stacked for another one, with their bytes."""

    leaves: dict[Atom, int]
    varies: bool  # between iterations
    product: bool  # whether a product is on the way

class Cuts:
    """From which values of a loop, that are less to stack, others follow after the loop."""

    def __init__(self, loop: ScanParts) -> None:
        self.loop = loop
        self._known: dict[Atom, Cut] = dict.fromkeys(loop.v_consts, Cut({}, False, False))
        self._known.update(dict.fromkeys((*loop.v_xs, *loop.out_ys), Cut({}, True, False)))

    def of(self, v: Atom) -> Cut:
        """v itself, or what makes it where that is less."""
        if isinstance(v, Literal):
            return Cut({}, False, False)
        waiting = [v]
        while waiting:  # operands first: bodies may be chains of thousands
            x = waiting[-1]
            inside = [] if x in self._known else [
                a for a in self._lifted(x) if not isinstance(a, Literal) and a not in self._known]
            if inside:
                waiting += inside
                continue
            waiting.pop()
            if x not in self._known:
                self._known[x] = self.within(x) or Cut({x: nbytes(x)}, True, False)
        return self._known[v]

    def _lifted(self, v: Atom) -> Sequence[Atom]:
        """The operands of what makes v, where it can be computed behind the loop."""
        e = self.loop.makers.get(v)
        if e is None or e.primitive not in LIFTED \
                or (self.loop.uses[v] != 1 and e.primitive not in MOVES):
            return ()
        return e.invars

    def within(self, v: Atom) -> Cut | None:
        """What makes v, where that is less to stack and nothing else needs v to be computed."""
        operands = self._lifted(v)
        if not operands:
            return None
        e = self.loop.makers[v]
        cuts = [self.of(a) for a in operands]
        leaves = {v: n for cut in cuts for v, n in cut.leaves.items()}
        found = Cut(leaves, any(cut.varies for cut in cuts),
                    any(cut.product for cut in cuts) or self._is_product(e))
        own, new = nbytes(v), sum(leaves.values())
        return found if new < own or (new == own and e.primitive is reshape_p) else None

    def _is_product(self, e: Equation) -> bool:
        if e.primitive is not mul_p:
            return e.primitive in PRODUCTS
        return all(repeated(self.loop, a) is not None for a in e.invars)


def repeated(loop: ScanParts, v: Atom) -> Equation | None:
    """The equation that repeats an array to make v."""
    e = loop.makers.get(v)
    return e if e is not None and e.primitive is broadcast_in_dim_p and e.invars[0].aval.shape \
        else None


class After:
    """Values of all iterations at once: `stacks` and `sums` of some, from which others follow."""

    def __init__(self, r: Rewriter, loop: ScanParts, stacks: dict[Atom, Atom],
                 sums: dict[Atom, Atom]) -> None:
        self.r = r
        self.sums = sums
        self._makers = loop.makers
        self._known: dict[Atom, tuple[Atom, bool]] = {
            v: (x, False) for v, x in zip(loop.v_consts, loop.consts, strict=True)}
        self._known.update((v, (x, True)) for v, x in stacks.items())

    def value(self, v: Atom) -> tuple[Atom, bool]:
        """v, and whether it is stacked, or is the same in all iterations."""
        if isinstance(v, Literal):
            return v, False
        found = self._known.get(v)
        if found is None:
            e = self._makers[v]
            found = self._known[v] = self._lifted(e, [self.value(a) for a in e.invars])
        return found

    def stack(self, v: Atom, length: Any) -> Atom:
        x, stacked = self.value(v)
        shape = (length, *v.aval.shape)
        return x if stacked else broadcast(self.r, x, shape, range(1, len(shape)))

    def _lifted(self, e: Equation, operands: Sequence[tuple[Atom, bool]]) -> tuple[Atom, bool]:
        atoms = [x for x, _ in operands]
        axes = [0 if stacked else None for _, stacked in operands]
        if not any(stacked for _, stacked in operands):
            return self.again(e, atoms), False
        variables = [x for x in atoms if isinstance(x, Var)]

        def batched(*values: Any) -> list[Any]:
            given = iter(values)
            out, axis = e.primitive.batch(
                [x.value if isinstance(x, Literal) else next(given) for x in atoms], axes,
                **e.params)
            return [move_axis(out, axis, 0)]

        staged = stage_body(batched, [x.aval for x in variables], e.primitive.name)
        body = Jaxpr((), staged.invars, tuple([f.replace(source=e.source) for f in staged.eqns]),
                     staged.outvars, name=staged.name)
        return self.r.inline(body, variables, e.source)[0], True

    def again(self, e: Equation, operands: Sequence[Atom],
              params: Mapping[str, Any] | None = None) -> Atom:
        """An equation on other operands."""
        params = e.params if params is None else params
        aval = e.primitive.type(*[x.aval for x in operands], **params)
        return self.r.emit(Equation(e.primitive, tuple(operands), (Var(aval),), params,
                                    e.source))[0]

    def wide(self, x: Atom) -> Atom:
        """x in a dtype to add up in."""
        return self.converted(x, widened(x.aval).dtype)

    def converted(self, x: Atom, dtype: np.dtype[Any]) -> Atom:
        return x if x.aval.dtype == dtype else \
            self.r(convert_element_type_p, x, new_dtype=dtype, weak_type=False)
