"""Laws of reductions.

Sums may be taken in another order, as every backend may, and a sum of n equal terms is one product
with n: at most as many roundings as the sum had. The other laws hold exactly.
"""

from __future__ import annotations

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation
from functrans.core.primitive import Primitive
from functrans.lowering.passes.movement import (
    axes_of_size,
    broadcast,
    reshape,
    transpose,
    without_units,
)
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.arithmetic import mul_p, neg_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.reduce import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from functrans.primitives.shape import reshape_p

__all__ = ["REDUCTIONS", "reduce_sum"]

REDUCTIONS = RewriteTable("reductions")
rule = REDUCTIONS.rule

IDEMPOTENT: tuple[Primitive, ...] = (reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p)
ALL: tuple[Primitive, ...] = (reduce_sum_p, reduce_prod_p, reduce_xor_p, *IDEMPOTENT)


def reduce_sum(r: Rewriter, x: Atom, axes: tuple[int, ...]) -> Atom:
    return r(reduce_sum_p, x, axes=axes) if axes else x


def _rest(ndim: int, axes: tuple[int, ...]) -> list[int]:
    return [d for d in range(ndim) if d not in axes]


@rule(*ALL, law="a reduction over axes of size 1 is a reshape")
def single_elements(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    axes, shape = eqn.params["axes"], x.aval.shape
    kept = tuple(d for d in axes if shape[d] != 1)
    if len(kept) == len(axes) and axes:
        return None
    if not kept:
        return reshape(r, x, eqn.outvars[0].aval.shape)
    units = [d for d in axes if d not in kept]
    x = reshape(r, x, tuple([s for d, s in enumerate(shape) if d not in units]))
    return r(eqn.primitive, x, axes=tuple([d - sum(u < d for u in units) for d in kept]))


@rule(*ALL, of=ALL, law="sum(sum(x)) = sum(x)")
def two_reductions(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, eqn.primitive)
    if inner is None or not r.once(x):
        return None
    source, first = inner.invars[0], inner.params["axes"]
    kept = _rest(len(source.aval.shape), first)
    axes = sorted([*first, *(kept[d] for d in eqn.params["axes"])])
    return r(eqn.primitive, source, axes=tuple(axes))


@rule(*IDEMPOTENT, of=broadcast_in_dim_p, law="max(broadcast(x)) = broadcast(max(x))")
def extremum_of_broadcast(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None or any(x.aval.shape[d] == 0 for d in eqn.params["axes"]):
        return None
    return _of_broadcast(r, eqn, inner)


@rule(reduce_sum_p, of=broadcast_in_dim_p, law="sum(broadcast(x)) = broadcast(sum(x)) * n")
def sum_of_broadcast(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None:
        return None
    dims = inner.params["broadcast_dimensions"]
    count = 1
    for d in eqn.params["axes"]:
        if d not in dims:
            if not isinstance(x.aval.shape[d], int):
                return None
            count *= x.aval.shape[d]
    if not _fits(count, x):
        return None
    if not set(eqn.params["axes"]) - set(dims):  # nothing that is repeated is summed
        return _of_broadcast(r, eqn, inner)
    axes = eqn.params["axes"]
    total = reduce_sum(r, inner.invars[0], tuple([i for i, d in enumerate(dims) if d in axes]))
    total = r(mul_p, total, r.scalar(count, x.aval.dtype))
    kept = _rest(len(x.aval.shape), axes)
    return broadcast(r, total, eqn.outvars[0].aval.shape,
                     [kept.index(d) for d in dims if d not in axes])


def _fits(count: int, x: Atom) -> bool:
    """Whether the dtype of x has the number; that integers wrap agrees with their sums."""
    if dtypes.kind(x.aval.dtype) in "iu":
        return count < 1 << (8 * x.aval.dtype.itemsize - 1)
    digits = {1: 0, 2: 8}.get(x.aval.dtype.itemsize, 24)
    return 0 < count <= 1 << digits  # 0 times infinity would be NaN


def _of_broadcast(r: Rewriter, eqn: Equation, inner: Equation) -> Atom:
    """The operand of a broadcast reduced over its own axes, and repeated along those kept."""
    source, dims = inner.invars[0], inner.params["broadcast_dimensions"]
    axes = eqn.params["axes"]
    own = tuple([i for i, d in enumerate(dims) if d in axes])
    if own:
        source = r(eqn.primitive, source, axes=own)
    kept = _rest(len(inner.params["shape"]), axes)
    return broadcast(r, source, eqn.outvars[0].aval.shape,
                     [kept.index(d) for d in dims if d not in axes])


@rule(*ALL, of=transpose_p, law="sum(transpose(x)) = transpose(sum(x))")
def reduced_transpose(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, transpose_p)
    if inner is None:
        return None
    order, axes = inner.params["permutation"], eqn.params["axes"]
    out = r(eqn.primitive, inner.invars[0], axes=tuple(sorted(order[d] for d in axes)))
    kept = [order[d] for d in _rest(len(order), axes)]
    return transpose(r, out, [sorted(kept).index(d) for d in kept])


@rule(*ALL, of=reshape_p,
      law="sum(reshape(x)) = reshape(sum(x)) for axes of size 1, or over all axes")
def reduced_reshape(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, reshape_p)
    if inner is None:
        return None
    source, shape = inner.invars[0], x.aval.shape
    axes = [d for d in eqn.params["axes"] if shape[d] != 1]
    if without_units(source.aval.shape) == without_units(shape):
        place = dict(zip(axes_of_size(shape), axes_of_size(source.aval.shape), strict=True))
        own = tuple([place[d] for d in axes])
    elif len(axes) == len(axes_of_size(shape)):
        own = tuple(range(len(source.aval.shape)))
    else:
        return None
    return reshape(r, r(eqn.primitive, source, axes=own), eqn.outvars[0].aval.shape)


@rule(reduce_sum_p, of=neg_p, law="sum(-x) = -sum(x)")
def sum_of_negatives(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, neg_p)
    if inner is None or not r.once(x) or dtypes.kind(x.aval.dtype) not in "if":
        return None
    return r(neg_p, reduce_sum(r, inner.invars[0], eqn.params["axes"]))


@rule(cumsum_p, cumprod_p, cummax_p, cummin_p, law="one element accumulates nothing")
def accumulated_unit(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x if x.aval.shape[eqn.params["axis"]] == 1 else None
