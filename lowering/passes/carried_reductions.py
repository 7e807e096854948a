"""Reductions of what a loop collects, carried along by the loop: nothing is collected for them.

The likelihood of a series, the return of an episode, the mean of a trajectory are sums over what
each iteration gives. A lane that adds as it goes keeps a number, where else it would write a
thousand to memory for another kernel to read. Long sums are added up in blocks, so that their
error grows with the length of a block and the number of blocks, not with their product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.core.prune import has_effects, prune_jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.convex import in_place_of
from functrans.lowering.passes.loops import substituted
from functrans.lowering.passes.rewrite import inlined
from functrans.lowering.passes.stack_elements import Element, StackElements, results_of
from functrans.primitives.arithmetic import add, max, min
from functrans.primitives.base import full, zeros
from functrans.primitives.broadcast import broadcast_in_dim, move_axis, reduce_sum_p
from functrans.primitives.compare import bitwise_and, eq, select_n
from functrans.primitives.control_flow.bodies import counted, stage_body
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dot import dot_general_p
from functrans.primitives.reduce import reduce_max_p, reduce_min_p
from functrans.primitives.shape import expand_dims

__all__ = ["carry_reductions"]

BLOCK: Final = 64
"""Terms that are added up before their sum is added to that of others; a power of two."""
MOST_TERMS: Final = 256
"""Terms that are added up one after another."""
OPERATIONS: Final[Mapping[Primitive, Callable[..., Any]]] = {
    reduce_sum_p: add, dot_general_p: add, reduce_max_p: max, reduce_min_p: min}


def carry_reductions(jaxpr: Jaxpr, is_kernel: Callable[[Equation], bool]) -> Jaxpr:
    """The program whose loops over lanes carry what is reduced of their stacks.

    `is_kernel` tells whether the loop that does is written as a kernel of lanes.
    """
    for loop in jaxpr.eqns:
        p = loop.params
        if loop.primitive is scan_p and isinstance(p["length"], int) and p["length"] > 1 \
                and p["num_carry"] < len(loop.outvars) and not has_effects(loop):
            found = _carried(jaxpr, loop, is_kernel)
            if found is not None:
                return carry_reductions(found, is_kernel)
    return jaxpr


class _Fold(Record):
    """A reduction over the iterations of a loop: of a term of each, and then along other axes."""

    eqn: Equation
    term: Element
    aval: ShapedArray
    rest: tuple[int, ...]

    @property
    def operation(self) -> Callable[..., Any]:
        return OPERATIONS[self.eqn.primitive]

    def start(self) -> Any:
        """What changes nothing."""
        if self.operation is add:
            return zeros(self.aval)
        dtype = self.aval.dtype
        limit = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
        return full(self.aval.shape, limit if self.operation is min else least, dtype)

    def reduced(self, x: Any) -> Any:
        return self.eqn.primitive.bind(x, axes=self.rest) if self.rest else x


def _carried(jaxpr: Jaxpr, loop: Equation, is_kernel: Callable[[Equation], bool]) -> Jaxpr | None:
    """The program in which a loop carries all that can be reduced of its stacks, if something."""
    later = results_of(jaxpr, loop)
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}

    def folds(eqns: Sequence[Equation]) -> tuple[StackElements, list[_Fold]]:
        reads = StackElements(loop, later, makers)
        return reads, [fold for eqn in eqns if (fold := _fold(eqn, reads)) is not None]

    wanted = [eqn for eqn in jaxpr.eqns if eqn.primitive in OPERATIONS
              and not later.isdisjoint(eqn.invars) and folds([eqn])[1]]
    reads, found = folds(wanted)
    if not found:
        return None
    joint, last, results = _with_folds(loop, reads, found)
    changed = in_place_of(jaxpr, {loop, *[fold.eqn for fold in found]}, [*joint, *last])
    changed = prune_jaxpr(substituted(changed, results, changed.invars))
    loops = [eqn for eqn in changed.eqns if any(v in joint[-1].outvars for v in eqn.outvars)]
    return changed if all(map(is_kernel, loops)) else None


def _fold(eqn: Equation, reads: StackElements) -> _Fold | None:
    """A reduction of what follows from stacks, element by element; None if it is none."""
    (out,) = eqn.outvars
    if out.aval.dtype.kind not in "iuf" or out.aval.dtype == np.float16:  # too few digits to add up
        return None
    if eqn.primitive is dot_general_p:
        return _product(eqn, reads)
    (x,), axes = eqn.invars, eqn.params["axes"]
    for axis in axes:
        term = reads.element(x, axis)
        if term is not None:
            rest = tuple([k - (k > axis) for k in axes if k != axis])
            shape = tuple([n for k, n in enumerate(x.aval.shape) if k != axis])
            return _Fold(eqn, term, out.aval.strong().with_shape(shape), rest)
    return None


def _product(eqn: Equation, reads: StackElements) -> _Fold | None:
    """A product that is contracted along the iterations: a sum of products of elements."""
    x, y = eqn.invars
    (cx, cy), _ = eqn.params["dimension_numbers"]
    for i, k in zip(cx, cy, strict=True):
        a, b = reads.element(x, i), reads.element(y, k)
        if a is not None and b is not None:
            def term(values: dict[Any, Any], a: Element = a, b: Element = b, i: int = i,
                     k: int = k) -> Any:
                return dot_general_p.bind(expand_dims(a(values), (i,)),
                                          expand_dims(b(values), (k,)), **eqn.params)
            return _Fold(eqn, term, eqn.outvars[0].aval.strong(), ())
    return None


def _with_folds(loop: Equation, reads: StackElements,
                folds: Sequence[_Fold],
                ) -> tuple[list[Equation], list[Equation], dict[Atom, Atom]]:
    """Equations up to a loop that carries reductions, those after it, and the results."""
    p = loop.params
    consts, carry, xs = counted(loop.invars, p["num_consts"], p["num_carry"])
    in_blocks = [fold.operation is add and fold.aval.dtype.kind == "f"
                 and p["length"] > MOST_TERMS for fold in folds]
    eqns: list[Equation] = []
    walked = [inlined(lambda y, k=k: [move_axis(y, k, 0)], (x,), eqns, "stack", loop.source)[0]
              if k else x for x, k in reads.xs]

    def first() -> list[Any]:
        starts = [fold.start() for fold in folds]
        more = [fold.start() for fold, own in zip(folds, in_blocks, strict=True) if own]
        return [*starts, *more, *([np.int32(0)] if more else [])]

    start = inlined(first, (), eqns, "nothing", loop.source)
    body = _body(loop, reads, folds, in_blocks, [v.aval for v in start])
    outs = [Var(v.aval.strong()) for v in start]
    eqns.append(loop.replace(
        invars=(*consts, *reads.consts, *carry, *start, *xs, *walked),
        outvars=(*loop.outvars[:len(carry)], *outs, *loop.outvars[len(carry):]),
        params={**p, "jaxpr": body, "num_consts": len(consts) + len(reads.consts),
                "num_carry": len(carry) + len(start)}))

    def last(*values: Any) -> list[Any]:
        totals, parts, _ = counted(values, len(folds), sum(in_blocks))
        more = iter(parts)
        return [fold.reduced(add(total, next(more)) if own else total)
                for fold, total, own in zip(folds, totals, in_blocks, strict=True)]

    after: list[Equation] = []
    results = inlined(last, outs, after, "reductions", loop.source)
    return eqns, after, {fold.eqn.outvars[0]: x for fold, x in zip(folds, results, strict=True)}


def _body(loop: Equation, reads: StackElements, folds: Sequence[_Fold],
          in_blocks: Sequence[bool], carried: Sequence[ShapedArray]) -> Jaxpr:
    """The body of a loop, and after it what reductions have come to."""
    inner: Jaxpr = loop.params["jaxpr"]
    nc, nk = loop.params["num_consts"], loop.params["num_carry"]
    v_consts, v_carry, v_xs = counted(inner.invars, nc, nk)

    def step(*args: Any) -> list[Any]:
        consts, more, carry, totals, parts, count, xs, walked = counted(
            args, nc, len(reads.consts), nk, len(folds), sum(in_blocks), any(in_blocks), len(v_xs))
        outs = eval_jaxpr(inner, (), *consts, *carry, *xs)
        values: dict[Any, Any] = dict(enumerate(outs))
        values.update(zip(reads.consts, more, strict=True))
        values.update(zip(reads.xs, walked, strict=True))
        count = [add(c, np.int32(1)) for c in count]
        is_full = [eq(bitwise_and(c, np.int32(BLOCK - 1)), np.int32(0)) for c in count]
        after: list[Any] = []
        blocks: list[Any] = []
        for fold, total, own in zip(folds, totals, in_blocks, strict=True):
            term = convert_element_type(fold.term(values), fold.aval.dtype)
            if own:
                part = add(parts[len(blocks)], term)
                ends = broadcast_in_dim(is_full[0], fold.aval.shape, ())
                blocks.append(select_n(ends, part, fold.start()))
                after.append(select_n(ends, total, add(total, part)))
            else:
                after.append(fold.operation(total, term))
        return [*outs[:nk], *after, *blocks, *count, *outs[nk:]]

    return stage_body(step, [
        *[v.aval for v in v_consts], *[v.aval for v in reads.consts.values()],
        *[v.aval for v in v_carry], *carried, *[v.aval for v in v_xs],
        *[v.aval for v in reads.xs.values()]], inner.name)
