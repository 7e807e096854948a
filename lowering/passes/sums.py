"""What a loop adds up, computed after it.

A sum of products over all iterations is one product of the stacks of their factors, in which the
axis of iterations is contracted. Where a factor is the same in all iterations, or the terms are
repeated or padded, the loop adds up something smaller instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.core.primitive import Primitive
from functrans.lowering.passes.contractions import is_narrow
from functrans.lowering.passes.movement import reshape, transpose
from functrans.lowering.passes.reductions import reduce_sum
from functrans.lowering.passes.scans import ScanParts, nbytes
from functrans.lowering.passes.stacks import MOVES, After, Cuts, repeated, widened
from functrans.primitives.arithmetic import add_p, mul_p, neg_p, sub_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_update_slice_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, rev_p

__all__ = ["SumPlan", "Total", "planned"]

# linear in any one operand
LINEAR: frozenset[Primitive] = frozenset((
    broadcast_in_dim_p, transpose_p, reshape_p, rev_p, pad_p, convert_element_type_p, mul_p, neg_p,
    dot_general_p, conv_general_dilated_p))

Total = Callable[[After], Atom]


class SumPlan(NamedTuple):
    """How a carried value follows after the loop, and what must be there for it."""

    total: Total
    stacked: dict[Atom, int]  # to be stacked, with their bytes
    added: dict[Atom, int]  # to be added up in the loop
    product: bool  # whether there is a product, or something smaller to be added up


def planned(loop: ScanParts, cuts: Cuts, k: int, length: Any) -> SumPlan | None:
    """The plan for carried value k, to which iterations do nothing but add."""
    carry, out = loop.v_carry[k], loop.out_carry[k]
    if loop.uses.get(carry) != 1:
        return None
    terms = _terms(loop, carry, out, False)
    if not terms or any(v.aval.shape != carry.aval.shape for v, _ in terms):
        return None
    sums = _Sums(loop, cuts, length)
    totals = [(sums.of(v), minus) for v, minus in terms]
    start = loop.carry[k]

    def total(after: After) -> Atom:
        r = after.r
        value = r.constant(start)
        acc = start if value is None or value != 0 else None
        for term, minus in totals:
            x = after.converted(term(after), carry.aval.dtype)
            if acc is None:
                acc = r(neg_p, x) if minus else x
            else:
                acc = r(sub_p if minus else add_p, acc, x)
        assert acc is not None
        return acc

    return SumPlan(total, sums.stacked, sums.added, sums.product)


def _terms(loop: ScanParts, carry: Atom, out: Atom, minus: bool) -> list[tuple[Atom, bool]] | None:
    """What is added to a carried value, and whether it is subtracted; None if it is not."""
    e = loop.makers.get(out)
    if e is None or e.primitive not in (add_p, sub_p) or loop.uses[out] != 1:
        return None
    x, y = e.invars
    taken = minus != (e.primitive is sub_p)
    if x is carry:
        return [(y, taken)]
    if y is carry and e.primitive is add_p:
        return [(x, minus)]
    terms = _terms(loop, carry, x, minus)
    if terms is not None:
        return [*terms, (y, taken)]
    terms = _terms(loop, carry, y, minus) if e.primitive is add_p else None
    return None if terms is None else [*terms, (x, minus)]


class _Sums:
    """How the sums of values over all iterations follow; what they need is gathered.

    A sum has a dtype at least as wide as that of the values: narrow ones are added up in float32,
    which rounds less often than the loop does.
    """

    def __init__(self, loop: ScanParts, cuts: Cuts, length: Any) -> None:
        self.loop = loop
        self.cuts = cuts
        self.length = length
        self.stacked: dict[Atom, int] = {}
        self.added: dict[Atom, int] = {}
        self.product = False

    def of(self, v: Atom) -> Total:
        if v in self.loop.v_xs or v in self.loop.out_ys:
            return lambda after: reduce_sum(after.r, after.wide(after.stack(v, self.length)), (0,))
        e = self.loop.makers.get(v)
        if e is not None and (self.loop.uses[v] == 1 or e.primitive in MOVES):
            total = self._of_equation(e)
            if total is not None:
                return total
        self.product = True
        self.added[v] = nbytes(Var(widened(v.aval)))
        return lambda after: after.sums[v]

    def _of_equation(self, e: Equation) -> Total | None:
        if e.primitive is concatenate_p or (e.primitive in (add_p, sub_p) and all(
                a.aval.shape == e.outvars[0].aval.shape for a in e.invars)):
            return self._of_all(e)
        varying = [i for i, a in enumerate(e.invars) if self.cuts.of(a).varies]
        if len(varying) == 1 and _is_linear(e, varying[0]):
            return self._of_linear(e, varying[0])
        found = None
        if len(varying) > 1 and dtypes.kind(e.outvars[0].aval.dtype) in "fc":
            found = _factors(self.loop, e)
        if found is None:
            return None
        factors, product = found
        leaves = {v: n for a in factors for v, n in self.cuts.of(a).leaves.items()}
        # many small products are slower than a large one, convolutions are not
        if e.primitive is conv_general_dilated_p and sum(leaves.values()) >= nbytes(e.outvars[0]):
            return None
        self.product = True
        self.stacked.update(leaves)
        return lambda after: product(after, [after.stack(v, self.length) for v in factors])

    def _of_all(self, e: Equation) -> Total:
        totals = [self.of(a) for a in e.invars]

        def total(after: After) -> Atom:
            xs = [make(after) for make in totals]
            if len({x.aval.dtype for x in xs}) > 1:
                xs = [after.wide(x) for x in xs]
            return after.again(e, xs)

        return total

    def _of_linear(self, e: Equation, i: int) -> Total:
        inner = self.of(e.invars[i])
        self.product = self.product or nbytes(e.invars[i]) < nbytes(e.outvars[0])

        def total(after: After) -> Atom:
            x = inner(after)
            if e.primitive is convert_element_type_p:  # what is wide stays so to the end
                return x if is_narrow(e.outvars[0]) else after.converted(x, e.params["new_dtype"])
            operands = [x if j == i else after.value(a)[0] for j, a in enumerate(e.invars)]
            if x.aval.dtype == e.invars[i].aval.dtype:
                return after.again(e, operands)
            operands = [after.wide(a) for a in operands]
            kept = {k: v for k, v in e.params.items() if k != "preferred_element_type"}
            return after.again(e, operands, kept)

        return total


def _is_linear(e: Equation, i: int) -> bool:
    """Whether an equation is linear in operand i while the others are fixed."""
    if e.primitive is pad_p:
        return i == 0 and isinstance(e.invars[1], Literal) and bool(e.invars[1].value == 0)
    if e.primitive is convert_element_type_p:
        kinds = dtypes.kind(e.invars[0].aval.dtype) + dtypes.kind(e.outvars[0].aval.dtype)
        return kinds in ("ff", "cc")
    return e.primitive in LINEAR


# ------------------------------------------------------------------------------- products

Product = Callable[[After, Sequence[Atom]], Atom]


def _factors(loop: ScanParts, e: Equation) -> tuple[Sequence[Atom], Product] | None:
    """The values of which e is a product, and the sum of the products from stacks of these."""
    if e.primitive is dot_general_p:
        return e.invars, partial(_sum_of_dots, e)
    if e.primitive is conv_general_dilated_p:
        return e.invars, partial(_sum_of_convolutions, e)
    if e.primitive is mul_p:
        makers = [m for m in (repeated(loop, a) for a in e.invars) if m is not None]
        if len(makers) < 2:
            return None
        axes = [m.params["broadcast_dimensions"] for m in makers]
        a, b = map(set, axes)
        if a <= b or b <= a or len(a | b) < len(e.outvars[0].aval.shape):
            return None
        return [m.invars[0] for m in makers], partial(_sum_of_outer_products, *axes)
    if e.primitive is scatter_add_p or (e.primitive is scatter_p and e.params["unique_indices"]):
        product = partial(_sum_of_scatters, e)
    elif e.primitive is dynamic_update_slice_p:
        product = partial(_sum_of_updates, e)
    else:
        return None
    base = loop.makers.get(e.invars[0])
    if base is None or base.primitive is not broadcast_in_dim_p \
            or not isinstance(base.invars[0], Literal) or base.invars[0].value != 0:
        return None
    return e.invars[1:], product


def _shifted(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([a + 1 for a in axes])


def _sum_of_dots(e: Equation, after: After, stacks: Sequence[Atom]) -> Atom:
    (cx, cy), (bx, by) = e.params["dimension_numbers"]
    dims = ((0, *_shifted(cx)), (0, *_shifted(cy))), (_shifted(bx), _shifted(by))
    return after.again(e, stacks, {**_wide_params(e), "dimension_numbers": dims})


def _wide_params(e: Equation) -> dict[str, Any]:
    return {**e.params, **_preferred(e.outvars[0])}


def _preferred(x: Atom) -> dict[str, Any]:
    """The parameter of a product of values as narrow as x, which is added up in a wider dtype."""
    dtype = x.aval.dtype
    return {"preferred_element_type": dtypes.computed_dtype(dtype)} if is_narrow(x) else {}


def _sum_of_outer_products(da: Sequence[int], db: Sequence[int], after: After,
                           stacks: Sequence[Atom]) -> Atom:
    """The axes of the factors are the axes `da` and `db` of their product."""
    r, (x, y) = after.r, stacks
    shared = [d for d in da if d in db]
    order = [*shared, *(d for d in da if d not in db), *(d for d in db if d not in da)]
    dims = ((0,), (0,)), (_shifted([da.index(d) for d in shared]),
                          _shifted([db.index(d) for d in shared]))
    out = r(dot_general_p, x, y, dimension_numbers=dims, **_preferred(x))
    return transpose(r, out, [order.index(d) for d in range(len(order))])


def _sum_of_convolutions(e: Equation, after: After, stacks: Sequence[Atom]) -> Atom:
    """Iterations are further features, over which a convolution sums."""
    xs, ws, _ = e.params["dimension_numbers"]
    operands = []
    for x, axis in zip(stacks, (xs[1], ws[1]), strict=True):
        rest = list(range(1, len(x.aval.shape)))
        x = transpose(after.r, x, [*rest[:axis], 0, *rest[axis:]])
        shape = x.aval.shape
        merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2:])
        operands.append(reshape(after.r, x, merged))
    return after.again(e, operands, _wide_params(e))


def _sum_of_scatters(e: Equation, after: After, stacks: Sequence[Atom]) -> Atom:
    """Iterations are a further axis of index vectors."""
    indices, updates = stacks
    numbers = e.params["dimension_numbers"]
    numbers = ScatterDimensionNumbers(
        _shifted(numbers.update_window_dims), numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims,
        _shifted(numbers.scatter_indices_batching_dims))
    return _scattered(after, e, indices, updates, numbers, e.params["mode"])


def _sum_of_updates(e: Equation, after: After, stacks: Sequence[Atom]) -> Atom:
    """Windows at other places in each iteration; those that cover an axis need no index there."""
    updates, *starts = stacks
    r, shape = after.r, e.outvars[0].aval.shape
    length, *window = updates.aval.shape
    placed = [d for d, (n, w) in enumerate(zip(shape, window, strict=True)) if n != w]
    rows = [d for d in placed if window[d] == 1]
    indices = [reshape(r, starts[d], (length, 1)) for d in placed]
    updates = reshape(r, updates, (length, *(w for d, w in enumerate(window) if d not in rows)))
    numbers = ScatterDimensionNumbers(tuple(range(1, len(updates.aval.shape))), tuple(rows),
                                      tuple(placed))
    indices = [after.converted(x, indices[0].aval.dtype) for x in indices]
    joined = r(concatenate_p, *indices, dimension=1) if len(indices) > 1 else indices[0]
    return _scattered(after, e, joined, updates, numbers, GatherScatterMode.CLIP)


def _scattered(after: After, e: Equation, indices: Atom, updates: Atom,
               numbers: ScatterDimensionNumbers, mode: GatherScatterMode) -> Atom:
    updates = after.wide(updates)
    zeros = after.r.full(0, e.outvars[0].aval.with_dtype(updates.aval.dtype))
    return after.r(scatter_add_p, zeros, indices, updates, dimension_numbers=numbers, mode=mode,
                   unique_indices=False, indices_are_sorted=False)
