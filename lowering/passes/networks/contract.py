"""The operations of a contracted network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dtypes import is_half
from functrans.core.jaxpr import Atom
from functrans.lowering.passes.movement import broadcast, reshape, transpose
from functrans.lowering.passes.networks.network import (
    Choice,
    Group,
    NetworkArray,
    NetworkIndex,
    Part,
    SumOfNetworks,
    flat,
)
from functrans.lowering.passes.networks.paths import Path
from functrans.lowering.passes.networks.selections import Dense, flattened
from functrans.lowering.passes.reductions import reduce_sum
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import add_p, max_p, mul_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.precision import Precision
from functrans.primitives.shape import pad_p

__all__ = ["Plan", "contracted", "kept_indices"]

Named = tuple[Atom, list[NetworkIndex]]
Plan = tuple[Dense, Path | None]
"""A term to contract, and how; a term without arrays is a number."""


def contracted(r: Rewriter, form: SumOfNetworks, plans: Sequence[Plan]) -> Atom:
    """The value of a form, whose terms are contracted by `plans`."""
    inner = np.dtype(np.float32) if is_half(form.dtype) else form.dtype
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


def _term(r: Rewriter, dense: Dense, path: Path | None, form: SumOfNetworks,
          inner: np.dtype[Any]) -> Atom:
    outputs = flat(form.axes)
    named: Named = (r.scalar(dense.coefficient, inner), [])
    if path is not None:
        first = dense.placed[0] if dense.placed else None
        lead = () if first is None else first.inner if isinstance(first, Part) else first.where
        order = {i: k for k, i in enumerate(dict.fromkeys((*lead, *outputs)))}
        x, names = _result(r, dense.arrays, path, inner, order, form.precision)
        named = (_at_dtype(r, x, inner), names)
    for k, selection in enumerate(dense.placed):
        named = _placed(r, named, selection, kept_indices(dense.placed[k + 1:], outputs))
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
    """Where the first axis that an array has alone stands in the result."""
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


# ------------------------------------------------------------------------------- placing


def kept_indices(placed: Sequence[Choice | Part], outputs: Group) -> Group:
    """The indices that a result needs before it is placed."""
    inner = [i for f in placed for i in (f.inner if isinstance(f, Part) else f.where)]
    return tuple(dict.fromkeys([*outputs, *inner]))


def _placed(r: Rewriter, named: Named, selection: Choice | Part, kept: Group) -> Named:
    return _padded(r, named, selection) if isinstance(selection, Part) else \
        _scattered(r, named, selection, kept)


def _spread(r: Rewriter, named: Named, needed: Group) -> Named:
    """An array repeated along the indices that it lacks."""
    x, names = named
    missing = [i for i in needed if i not in names]
    if not missing:
        return named
    names = [*missing, *names]
    shape = tuple([i.size for i in names])
    return broadcast(r, x, shape, range(len(missing), len(names))), names


def _padded(r: Rewriter, named: Named, part: Part) -> Named:
    x, names = _spread(r, named, part.inner)
    rest = [i for i in names if i not in part.inner]
    x = transpose(r, x, [names.index(i) for i in (*rest, *part.inner)])
    x = reshape(r, x, (*[i.size for i in rest], part.length))
    size = part.outer.size
    assert isinstance(size, int)
    high = size - part.start - (part.length - 1) * part.step - 1
    padding = (*[(0, 0, 0)] * len(rest), (part.start, high, part.step - 1))
    x = r(pad_p, x, r.scalar(0, x.aval.dtype), padding_config=padding)
    return x, [*rest, part.outer]


def _scattered(r: Rewriter, named: Named, choice: Choice, outputs: Group) -> Named:
    """Rows added at their places. Places that vary over an output are paired with it."""
    x, names = _spread(r, named, choice.where)
    batch = [i for i in choice.where if i in outputs]
    summed = [i for i in choice.where if i not in outputs]
    rest = [i for i in names if i not in choice.where]
    x = transpose(r, x, [names.index(i) for i in (*batch, *summed, *rest)])
    places = reshape(r, choice.places, tuple([i.size for i in choice.where]))
    places = transpose(r, places, [choice.where.index(i) for i in (*batch, *summed)])
    places = reshape(r, places, (*places.aval.shape, 1))
    nb, ns, nr = len(batch), len(summed), len(rest)
    numbers = ScatterDimensionNumbers(
        tuple(range(nb + ns, nb + ns + nr)), (nb,), (nb,), tuple(range(nb)), tuple(range(nb)))
    shape = (*[i.size for i in batch], choice.index.size, *[i.size for i in rest])
    zeros = r.full(0, ShapedArray(shape, x.aval.dtype))
    mode = GatherScatterMode.CLIP if choice.clips else GatherScatterMode.FILL_OR_DROP
    out = r(scatter_add_p, zeros, places, x, dimension_numbers=numbers, mode=mode,
            indices_are_sorted=False, unique_indices=False)
    return out, [*batch, choice.index, *rest]
