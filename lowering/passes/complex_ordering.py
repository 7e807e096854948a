"""What orders and joins complex numbers, as programs of pairs: extrema, sorting, products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.dims import static_shape
from functrans.core.primitive import Primitive
from functrans.lowering.passes import complex_math as m
from functrans.lowering.passes.complex_math import Pair
from functrans.lowering.passes.indexing import rows_of_updates
from functrans.primitives.arithmetic import add, max_p, min_p, mul
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    eq,
    gt,
    lt,
    ne,
    where,
)
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import GatherDimensionNumbers, gather
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.reduce import (
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
)
from functrans.primitives.scatter import scatter
from functrans.primitives.shape import (
    concatenate,
    iota,
    reshape,
    slice_in_dim,
)
from functrans.primitives.sort import sort, sort_p

__all__ = ["EXTREMA", "scattered_product", "sorted_pairs"]


def _extremum(before: Callable[..., Any]) -> Callable[[Pair, Pair], Pair]:
    """Of two numbers the one that is not `before` the other; a NaN, the first one, if there is."""
    def rule(x: Pair, y: Pair) -> Pair:
        x, y = _of_one_shape(x, y)
        after = bitwise_or(before(x.re, y.re),
                           bitwise_and(eq(x.re, y.re), before(x.im, y.im)))
        other = bitwise_and(bitwise_or(after, _is_nan(y)), bitwise_not(_is_nan(x)))
        return Pair(where(other, y.re, x.re), where(other, y.im, x.im))
    return rule


def _of_one_shape(x: Pair, y: Pair) -> tuple[Pair, Pair]:
    """Both, of which one may be a scalar."""
    shape = get_aval(x.re).shape or get_aval(y.re).shape

    def spread(z: Pair) -> Pair:
        if get_aval(z.re).shape == shape:
            return z
        return Pair(broadcast_in_dim(z.re, shape, ()), broadcast_in_dim(z.im, shape, ()))

    return spread(x), spread(y)


def _reduce_extremum(reduce: Callable[..., Any], limit: float) -> Callable[..., Pair]:
    """The extremum of the real parts, and of the imaginary parts where the real ones tie."""
    def rule(x: Pair, *, axes: tuple[int, ...]) -> Pair:
        shape = get_aval(x.re).shape
        nan = _is_nan(x)
        re = reduce(where(nan, limit, x.re), axes)
        kept = tuple(d for d in range(len(shape)) if d not in axes)
        tie = bitwise_and(eq(x.re, broadcast_in_dim(re, shape, kept)), bitwise_not(nan))
        im = reduce(where(tie, x.im, limit), axes)
        unknown = reduce_or(nan, axes)
        return Pair(where(unknown, math.nan, re), where(unknown, math.nan, im))
    return rule


def _is_nan(x: Pair) -> Any:
    return bitwise_or(ne(x.re, x.re), ne(x.im, x.im))


EXTREMA: dict[Primitive, Callable[..., Pair]] = {
    max_p: _extremum(lt), min_p: _extremum(gt),
    reduce_max_p: _reduce_extremum(reduce_max, -math.inf),
    reduce_min_p: _reduce_extremum(reduce_min, math.inf)}
"""In the order of real and then of imaginary parts."""


def sorted_pairs(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    """Sorted by real and then by imaginary parts, numbers with NaN behind all others, as by NumPy.

    Those with NaN in the imaginary part come before those that have it in the real one.
    """
    flat: list[Any] = []
    keys = 0
    for k, x in enumerate(operands):
        if isinstance(x, Pair) and k < num_keys:
            nans = [convert_element_type(ne(part, part), np.uint8) for part in x]
            flat.append(add(mul(nans[0], np.uint8(2)), nans[1]))
        flat += x if isinstance(x, Pair) else [x]
        keys = len(flat) if k < num_keys else keys
    found = iter(sort_p.bind(*flat, dimension=dimension, is_stable=is_stable, num_keys=keys))
    outs: list[Any] = []
    for k, x in enumerate(operands):
        if isinstance(x, Pair) and k < num_keys:
            next(found)
        outs.append(Pair(next(found), next(found)) if isinstance(x, Pair) else next(found))
    return outs


def scattered_product(base: Pair, indices: Any, updates: Pair, **params: Any) -> Pair:
    """The base with updates multiplied into it: those of a row are side by side once sorted.

    Their products are found by doubling: after step k, each is that of the last 2^k of its row.
    """
    shape, dtype = get_aval(base.re).shape, get_aval(base.re).dtype
    if 0 in (*shape, *get_aval(updates.re).shape):
        return base
    keys, width = rows_of_updates(indices, shape, get_aval(updates.re).shape, params)
    count, rows = keys.shape[0], math.prod(static_shape(shape)) // width
    keys, order = sort((keys, iota(np.int32, count)), num_keys=1)
    whole = GatherDimensionNumbers((1,), (0,), (0,))
    out = Pair(*[gather(reshape(part, (count, width)), reshape(order, (count, 1)), whole,
                        (1, width), mode="clip") for part in updates])
    step = 1
    while step < count:
        before = [concatenate([full((step, width), one, dtype),
                               slice_in_dim(part, 0, count - step)], 0)
                  for one, part in zip((1, 0), out, strict=True)]
        same = concatenate([full((step,), False, np.bool_), eq(
            slice_in_dim(keys, step, count), slice_in_dim(keys, 0, count - step))], 0)
        same = broadcast_in_dim(same, (count, width), (0,))
        joined = m.product(Pair(*before), out)
        out = Pair(*optimization_barrier([where(same, new, old)
                                          for new, old in zip(joined, out, strict=True)]))
        step *= 2
    last = concatenate([ne(slice_in_dim(keys, 1, count), slice_in_dim(keys, 0, count - 1)),
                        full((1,), True, np.bool_)], 0)
    places = reshape(where(last, keys, np.int32(rows)), (count, 1))

    def put(start: Any, rows_of: Any, numbers: ScatterDimensionNumbers) -> Any:
        return scatter(start, places, rows_of, numbers, mode=GatherScatterMode.FILL_OR_DROP,
                       unique_indices=True)

    in_rows = ScatterDimensionNumbers((1,), (0,), (0,))
    factor = Pair(*[put(full((rows, width), 0, dtype), part, in_rows) for part in out])
    touched = put(full((rows,), False, np.bool_), full((count,), True, np.bool_),
                  ScatterDimensionNumbers((), (0,), (0,)))
    touched = broadcast_in_dim(touched, (rows, width), (0,))
    start = Pair(*[reshape(part, (rows, width)) for part in base])
    made = m.product(start, factor)
    return Pair(*[reshape(where(touched, new, old), shape)
                  for new, old in zip(made, start, strict=True)])
