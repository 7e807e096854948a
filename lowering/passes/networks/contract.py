"""The operations of a contracted network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dtypes import computed_dtype
from functrans.core.jaxpr import Atom
from functrans.lowering.passes.movement import broadcast, reshape, transpose
from functrans.lowering.passes.networks.network import (
    Group,
    NetworkArray,
    NetworkIndex,
    OneHot,
    StridedSlice,
    SumOfNetworks,
    flat,
)
from functrans.lowering.passes.networks.paths import Path
from functrans.lowering.passes.networks.selections import (
    DenseNetwork,
    flattened,
    index_vectors,
    mode_of,
)
from functrans.lowering.passes.reductions import reduce_sum
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import add_p, max_p, mul_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import ScatterDimensionNumbers
from functrans.primitives.precision import Precision
from functrans.primitives.shape import pad_p

__all__ = ["Plan", "contracted", "kept_indices", "together"]

Named = tuple[Atom, list[NetworkIndex]]
Plan = tuple[DenseNetwork, Path | None]
"""A term to contract, and how; a term without arrays is a number."""


def contracted(r: Rewriter, form: SumOfNetworks, plans: Sequence[Plan]) -> Atom:
    """The value of a form, whose terms are contracted by `plans`."""
    inner = computed_dtype(form.dtype)
    total: Atom | None = None
    for dense, path in plans:
        x = _term(r, dense, path, form, inner)
        total = x if total is None else r(add_p, total, x)
    shape = form.shape
    if total is None:
        total = r.full(0, ShapedArray(shape, inner))
    if form.is_square and len(plans) > 1:  # differences of large numbers round below zero
        total = r(max_p, total, r.scalar(0, inner))
    return _at_dtype(r, total, form.dtype)


def _at_dtype(r: Rewriter, x: Atom, dtype: np.dtype[Any]) -> Atom:
    return x if x.aval.dtype == dtype else r(convert_element_type_p, x, new_dtype=dtype)


def _term(r: Rewriter, dense: DenseNetwork, path: Path | None, form: SumOfNetworks,
          inner: np.dtype[Any]) -> Atom:
    outputs = flat(form.axes)
    named: Named = (r.scalar(dense.coefficient, inner), [])
    if path is not None:
        first = dense.placed[0] if dense.placed else None
        lead = () if first is None else \
            first.inner if isinstance(first, StridedSlice) else first.where
        order = {i: k for k, i in enumerate(dict.fromkeys((*lead, *outputs)))}
        x, names = _result(r, dense.arrays, path, inner, order, form.precision)
        named = (_at_dtype(r, x, inner), names)
    for selections, kept in together(dense.placed, outputs):
        named = _placed(r, named, selections, kept)
    order = {i: k for k, i in enumerate(outputs)}
    for array in dense.after:
        named = _elementwise(r, named, (flattened(r, array), list(array.indices)), inner, order)
    x, names = named
    if path is not None and dense.coefficient != 1.0:
        x = r(mul_p, x, r.scalar(dense.coefficient, inner))
    there = [i for i in outputs if i in names]
    x = transpose(r, x, [names.index(i) for i in there])
    if len(there) != len(outputs):
        x = broadcast(r, x, tuple([i.size for i in outputs]),
                      [k for k, i in enumerate(outputs) if i in names])
    return reshape(r, x, form.shape)


# ------------------------------------------------------------------------------- products


def _result(r: Rewriter, arrays: Sequence[NetworkArray], path: Path, inner: np.dtype[Any],
            order: Mapping[NetworkIndex, int], precision: Precision | None) -> Named:
    if path.pair is None:
        array = arrays[path.leaf]
        x, names = flattened(r, array), list(array.indices)
        gone = tuple([d for d, i in enumerate(names) if i not in path.kept])
        if gone:
            x = reduce_sum(r, _at_dtype(r, x, inner), gone)
        return x, [i for i in names if i in path.kept]
    first, second = (_result(r, arrays, p, inner, order, precision) for p in path.pair)
    if _place(second, first, order) < _place(first, second, order):
        first, second = second, first
    return _multiplied(r, first, second, path.kept, inner, order, precision)


def _place(named: Named, other: Named, order: Mapping[NetworkIndex, int]) -> int:
    """The position in the result of the first axis that an array has alone."""
    return min((order.get(i, len(order)) for i in named[1] if i not in other[1]),
               default=len(order))


def _multiplied(r: Rewriter, first: Named, second: Named, kept: frozenset[NetworkIndex],
                inner: np.dtype[Any], order: Mapping[NetworkIndex, int],
                precision: Precision | None) -> Named:
    (x, xs), (y, ys) = first, second
    shared = [i for i in xs if i in ys and i in kept]
    summed = [i for i in xs if i in ys and i not in kept]
    if not summed:
        return _elementwise(r, first, second, inner, order)
    if set(xs) == set(ys):
        x, names = _elementwise(r, first, second, inner, order)
        return reduce_sum(r, x, tuple([d for d, i in enumerate(names) if i in summed])), \
            [i for i in names if i in kept]
    if x.aval.dtype != y.aval.dtype:
        x, y = _at_dtype(r, x, inner), _at_dtype(r, y, inner)
    dims = ((tuple(map(xs.index, summed)), tuple(map(ys.index, summed))),
            (tuple(map(xs.index, shared)), tuple(map(ys.index, shared))))
    params: dict[str, Any] = {} if precision is None else {"precision": precision}
    if x.aval.dtype != inner:
        params["preferred_element_type"] = inner
    out = r(dot_general_p, x, y, dimension_numbers=dims, **params)
    return out, [*shared, *[i for i in xs if i not in ys], *[i for i in ys if i not in xs]]


def _elementwise(r: Rewriter, first: Named, second: Named, inner: np.dtype[Any],
                 order: Mapping[NetworkIndex, int]) -> Named:
    names = [*first[1], *[i for i in second[1] if i not in first[1]]]
    if all(i in order for i in names):
        names.sort(key=order.__getitem__)
    shape = tuple([i.size for i in names])
    sides = []
    for x, own in (first, second):
        at = [names.index(i) for i in own]
        x = transpose(r, _at_dtype(r, x, inner), sorted(range(len(at)), key=at.__getitem__))
        sides.append(broadcast(r, x, shape, sorted(at)))
    return r(mul_p, *sides), names


# ------------------------------------------------------------------------------- pad, scatter


def kept_indices(placed: Sequence[OneHot | StridedSlice], outputs: Group) -> Group:
    """The indices that a result needs before it is padded or scattered."""
    inner = [i for f in placed for i in (f.inner if isinstance(f, StridedSlice) else f.where)]
    return tuple(dict.fromkeys([*outputs, *inner]))


def together(placed: Sequence[OneHot | StridedSlice], outputs: Group
             ) -> Iterator[tuple[list[OneHot | StridedSlice], Group]]:
    """Runs of selections that place a result at once, and what the result needs after each.

    One-hot factors that have something summed in common are scattered by their vectors of places.
    """
    start = 0
    for k in range(1, len(placed) + 1):
        if k < len(placed) and _scatter_at_once(placed[start:k], placed[k], outputs):
            continue
        yield list(placed[start:k]), kept_indices(placed[k:], outputs)
        start = k


def _scatter_at_once(some: Sequence[OneHot | StridedSlice], other: OneHot | StridedSlice,
                     outputs: Group) -> bool:
    return isinstance(other, OneHot) and any(
        isinstance(f, OneHot) and f.clips == other.clips
        and set(f.where) & set(other.where) - set(outputs) for f in some) \
        and not any(other.outer in f.indices or (isinstance(f, OneHot) and f.outer in other.where)
                    for f in some)


def _placed(r: Rewriter, named: Named, selections: Sequence[OneHot | StridedSlice],
            kept: Group) -> Named:
    if isinstance(selections[0], StridedSlice):
        return _padded(r, named, selections[0])
    return _scattered(r, named, [f for f in selections if isinstance(f, OneHot)], kept)


def _spread(r: Rewriter, named: Named, needed: Group) -> Named:
    """An array repeated along the indices that it lacks."""
    x, names = named
    missing = [i for i in needed if i not in names]
    if not missing:
        return named
    names = [*missing, *names]
    shape = tuple([i.size for i in names])
    return broadcast(r, x, shape, range(len(missing), len(names))), names


def _padded(r: Rewriter, named: Named, strided: StridedSlice) -> Named:
    x, names = _spread(r, named, strided.inner)
    rest = [i for i in names if i not in strided.inner]
    x = transpose(r, x, [names.index(i) for i in (*rest, *strided.inner)])
    x = reshape(r, x, (*[i.size for i in rest], strided.length))
    size = strided.outer.size
    assert isinstance(size, int)
    high = size - strided.start - (strided.length - 1) * strided.step - 1
    padding = (*[(0, 0, 0)] * len(rest), (strided.start, high, strided.step - 1))
    x = r(pad_p, x, r.scalar(0, x.aval.dtype), padding_config=padding)
    return x, [*rest, strided.outer]


def _scattered(r: Rewriter, named: Named, one_hots: Sequence[OneHot], outputs: Group) -> Named:
    """Rows added at their places; an output index that places vary over is a batch axis."""
    one_hots = sorted(one_hots, key=lambda h: outputs.index(h.outer) if h.outer in outputs
                      else len(outputs))
    where = tuple(dict.fromkeys(i for h in one_hots for i in h.where))
    x, names = _spread(r, named, where)
    batch = [i for i in where if i in outputs]
    summed = [i for i in where if i not in outputs]
    rest = [i for i in names if i not in where]
    x = transpose(r, x, [names.index(i) for i in (*batch, *summed, *rest)])
    places = index_vectors(r, one_hots, (*batch, *summed))
    nb, ns, nr = len(batch), len(summed), len(rest)
    along = tuple(range(nb, nb + len(one_hots)))
    numbers = ScatterDimensionNumbers(
        tuple(range(nb + ns, nb + ns + nr)), along, along, tuple(range(nb)), tuple(range(nb)))
    outers = [h.outer for h in one_hots]
    shape = tuple([i.size for i in (*batch, *outers, *rest)])
    zeros = r.full(0, ShapedArray(shape, x.aval.dtype))
    out = r(scatter_add_p, zeros, places, x, dimension_numbers=numbers, mode=mode_of(one_hots),
            indices_are_sorted=False, unique_indices=False)
    return out, [*batch, *outers, *rest]
