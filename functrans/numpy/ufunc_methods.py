"""The methods of ufuncs, as `add.reduce(x)`: reduce, accumulate, reduceat, outer and at.

A ufunc that is no reduction of its own is applied to halves or to one slice after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy import reductions, ufuncs
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    is_traced,
    move_last,
    operand,
    refuse_out,
    slice_axis,
    static,
)
from functrans.numpy.cumulative import cumprod, cumsum
from functrans.numpy.elementwise import logaddexp, logaddexp2
from functrans.numpy.indexing import getitem
from functrans.numpy.joining import stack, unstack
from functrans.numpy.searching import take
from functrans.numpy.ufuncs import astype
from functrans.numpy.updates import UPDATES, update, update_by_function
from functrans.typing import Array, ArrayLike

__all__ = ["accumulate", "at", "outer", "reduce", "reduceat"]

Function = Callable[..., Array]

_REDUCTIONS: dict[Function, Callable[..., Array]] = {
    ufuncs.add: reductions.sum, ufuncs.multiply: reductions.prod, ufuncs.maximum: reductions.max,
    ufuncs.minimum: reductions.min, ufuncs.logical_and: reductions.all,
    ufuncs.logical_or: reductions.any}
_ACCUMULATIONS: dict[Function, Callable[..., Array]] = {
    ufuncs.add: cumsum, ufuncs.multiply: cumprod}
_UPDATES: dict[Function, str] = {
    ufuncs.add: "add", ufuncs.subtract: "subtract", ufuncs.multiply: "multiply",
    ufuncs.divide: "divide", ufuncs.power: "power", ufuncs.maximum: "max", ufuncs.minimum: "min"}
_UNROLLED = 32  # steps of a function without a reduction of its own that are written out


def _typed(name: str, a: ArrayLike, dtype: Any) -> Array:
    x = operand(name, a)
    return x if dtype is None else astype(x, as_dtype(dtype))


def reduce(function: Function, a: ArrayLike, axis: Any = 0, dtype: Any = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
           ) -> Array:
    """All elements along axes combined into one."""
    name = f"{function.__name__}.reduce"
    refuse_out(name, out)
    reduction = _REDUCTIONS.get(function)
    if reduction in (reductions.all, reductions.any) and initial is not None:
        reduction = None
    if reduction is not None:
        options = {} if initial is None else {"initial": initial}
        if where is not None:
            options["where"] = where
        if dtype is not None and reduction in (reductions.sum, reductions.prod):
            options["dtype"] = dtype
            dtype = None
        return reduction(_typed(name, a, dtype), axis, keepdims=keepdims, **options)
    x = _typed(name, a, dtype)
    axes = sorted(axis_tuple(axis, x.ndim, name), reverse=True)
    if where is not None:
        return _reduce_where(function, name, x, axes, keepdims, initial, where)
    for axis in axes:
        x = _fold(function, name, x, axis, initial if axis == axes[-1] else None)
        if keepdims:
            x = lax.expand_dims(x, (axis,))
    return x


def _fold(function: Function, name: str, x: Array, axis: int, initial: ArrayLike | None) -> Array:
    """`function` over all slices along an axis; in order unless it is known to be associative."""
    if function not in (logaddexp, logaddexp2) and _is_long(x.shape[axis]):
        return _fold_in_loop(function, name, x, axis, initial)
    slices: Sequence[Array] = unstack(x, axis=axis)
    if initial is not None:
        slices = [broadcast(astype(operand(name, initial), x.dtype),
                            x.shape[:axis] + x.shape[axis + 1:]), *slices]
    if not slices:
        raise ShapeError(f"functrans.numpy.{name} of an axis without elements.",
                         where=user_source(), why="the ufunc has no value that changes nothing.",
                         fix="initial=...")
    if function in (logaddexp, logaddexp2):
        while len(slices) > 1:
            pairs = [function(a, b) for a, b in zip(slices[::2], slices[1::2], strict=False)]
            slices = (*pairs, *slices[len(slices) - len(slices) % 2:])
        return slices[0]
    result = slices[0]
    for part in slices[1:]:
        result = function(result, part)
    return result


def _is_long(size: Any) -> bool:
    return not isinstance(size, int) or size > _UNROLLED


def _fold_in_loop(function: Function, name: str, x: Array, axis: int, initial: ArrayLike | None
                  ) -> Array:
    """The same, by a loop after a first step, which decides on the dtype."""
    rows = lax.transpose(x, (axis, *(d for d in range(x.ndim) if d != axis)))
    start = 0 if initial is not None else 1
    first = _row(rows, 0) if initial is None else \
        broadcast(astype(operand(name, initial), x.dtype), rows.shape[1:])
    result = function(first, _row(rows, start))
    rest = slice_axis(rows, start + 1, rows.shape[0], 0)
    return lax.scan(lambda y, row: (astype(function(y, row), y.dtype), None), result, rest)[0]


def _row(rows: Array, i: int) -> Array:
    return lax.squeeze(slice_axis(rows, i, i + 1, 0), (0,))


def _reduce_where(function: Function, name: str, x: Array, axes: Sequence[int], keepdims: bool,
                  initial: ArrayLike | None, where: ArrayLike) -> Array:
    if initial is None:
        raise ArgumentError(f"functrans.numpy.{name} with where= needs initial=.",
                            where=user_source(), why="the ufunc has no value that changes nothing.")
    mask = broadcast(operand(name, where), x.shape)
    kept = [d for d in range(x.ndim) if d not in axes]
    order = (*sorted(axes), *kept)
    count = int(np.prod([x.shape[a] for a in axes]))
    rest = tuple(x.shape[d] for d in kept)
    x, mask = (lax.reshape(lax.transpose(v, order), (count, *rest)) for v in (x, mask))
    result = broadcast(astype(operand(name, initial), x.dtype), rest)
    for part, keep in zip(unstack(x), unstack(mask), strict=True):
        result = lax.select_n(keep, result, astype(function(result, part), x.dtype))
    return lax.expand_dims(result, tuple(sorted(axes))) if keepdims else result


def accumulate(function: Function, a: ArrayLike, axis: int = 0, dtype: Any = None,
               out: None = None) -> Array:
    """The results of combining the first 1, 2, ..., n elements along an axis."""
    name = f"{function.__name__}.accumulate"
    refuse_out(name, out)
    x = _typed(name, a, dtype)
    axis = axis_index(axis, x.ndim, name)
    if function in _ACCUMULATIONS:
        return _ACCUMULATIONS[function](x, axis, dtype=dtype)
    if function in (ufuncs.maximum, ufuncs.minimum):
        return (lax.cummax if function is ufuncs.maximum else lax.cummin)(x, axis=axis)
    if _is_long(x.shape[axis]):
        return _accumulate_in_loop(function, x, axis)
    slices = unstack(x, axis=axis)
    results = list(slices[:1])
    for part in slices[1:]:
        results.append(function(results[-1], part))
    return stack(results, axis=axis) if results else x


def _accumulate_in_loop(function: Function, x: Array, axis: int) -> Array:
    rows = lax.transpose(x, (axis, *(d for d in range(x.ndim) if d != axis)))
    second = function(_row(rows, 0), _row(rows, 1))

    def step(y: Array, row: Array) -> tuple[Array, Array]:
        following = astype(function(y, row), y.dtype)
        return following, following

    rest = lax.scan(step, second, slice_axis(rows, 2, rows.shape[0], 0))[1]
    lead = [lax.expand_dims(astype(v, second.dtype), (0,)) for v in (_row(rows, 0), second)]
    whole = lax.concatenate([*lead, rest], 0)
    return lax.transpose(whole, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def reduceat(function: Function, a: ArrayLike, indices: ArrayLike, axis: int = 0,
             dtype: Any = None, out: None = None) -> Array:
    """The elements from each index to the next combined; one element where the next is no later.

    The indices of a ufunc other than add, multiply, maximum, minimum and the logical ones must be
    known while the program is traced.
    """
    name = f"{function.__name__}.reduceat"
    refuse_out(name, out)
    x = _typed(name, a, dtype)
    axis = axis_index(axis, x.ndim, name)
    reduction = _REDUCTIONS.get(function)
    if reduction is None or not is_traced(indices):
        starts = static(name, indices, "indices").astype(np.int64)
        size = x.shape[axis]
        if ((starts < 0) | (starts >= size)).any():
            raise ArgumentError(f"functrans.numpy.{name}: an index is out of bounds for {size} "
                                "elements.", where=user_source())
        stops = np.append(starts[1:], size)
        parts = [slice_axis(x, int(i), int(j) if j > i else int(i) + 1, axis)
                 for i, j in zip(starts, stops, strict=True)]
        return stack([reduce(function, part, axis) for part in parts], axis=axis)
    start = operand(name, indices)
    size = x.shape[axis]
    stop = lax.concatenate([lax.slice_in_dim(start, 1, start.shape[0]),
                            lax.full((1,), size, start.dtype)], 0)
    position = lax.broadcasted_iota(start.dtype, (start.shape[0], size), 1)
    first, last = (broadcast(lax.expand_dims(v, (1,)), position.shape) for v in (start, stop))
    within = lax.bitwise_and(lax.ge(position, first), lax.lt(position, last))
    within = lax.bitwise_or(within, lax.eq(position, first))
    rows = move_last(x, axis)
    shape = (start.shape[0], *rows.shape)
    mask = lax.broadcast_in_dim(within, shape, (0, len(shape) - 1))
    options = {"initial": reductions.limit(x.dtype, function is ufuncs.minimum)} \
        if function in (ufuncs.maximum, ufuncs.minimum) else {}
    first_axis = reduction(broadcast(rows, shape), -1, where=mask, **options)
    return lax.transpose(first_axis, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def outer(function: Function, a: ArrayLike, b: ArrayLike, /, **options: Any) -> Any:
    """`function` of every pair of an element of a and one of b."""
    name = f"{function.__name__}.outer"
    x, y = operand(name, a), operand(name, b)
    return function(lax.expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), y, **options)


def at(function: Function, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
       inplace: bool = True) -> Array:
    """a with its elements at an index combined with b, repeated indices once for each.

    Raises ArgumentError unless inplace=False says that a itself stays as it is.
    """
    name = f"{function.__name__}.at"
    if inplace:
        raise ArgumentError(f"functrans.numpy.{name} cannot change an array.",
                            where=user_source(), why="arrays are immutable.",
                            fix=f"x = functrans.numpy.{name}(x, i, y, inplace=False), or "
                                "x = x.at[i].add(y)")
    x = operand(name, a)
    if b is None:
        return update_by_function(x, indices, function)
    kind = _UPDATES.get(function)
    if kind is not None:
        return update(x, indices, b, UPDATES[kind])
    flat = getitem(lax.reshape(lax.iota(np.int32, x.size), x.shape), indices)
    values = broadcast(operand(name, b), flat.shape)
    places, parts = lax.reshape(flat, (flat.size,)), lax.reshape(values, (flat.size,))
    out, _ = lax.scan(lambda y, iv: (update(y, iv[0], astype(
        function(take(y, iv[0]), iv[1]), y.dtype), UPDATES["set"]), None),
        lax.reshape(x, (x.size,)), (places, parts))
    return lax.reshape(out, x.shape)


# ufuncs of two operands in the namespace, by their names there
_BINARY = (
    "add", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal",
    "floor_divide", "fmod", "greater", "greater_equal", "left_shift", "less", "less_equal",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter",
    "not_equal", "power", "remainder", "right_shift", "subtract")
_IDENTITIES = {"add": 0, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "multiply": 1,
               "logical_and": True, "logical_or": False, "logical_xor": False,
               "logaddexp": -np.inf, "logaddexp2": -np.inf}
for _function in (*(getattr(ufuncs, name) for name in _BINARY), logaddexp, logaddexp2):
    for _method in (reduce, accumulate, reduceat, outer, at):
        setattr(_function, _method.__name__, partial(_method, _function))
    _function.nin, _function.nout, _function.nargs = 2, 1, 2
    _function.identity = _IDENTITIES.get(_function.__name__)
for _name, _value in (("at", partial(at, ufuncs.negative)), ("nin", 1), ("nout", 1), ("nargs", 1),
                      ("identity", None)):
    setattr(ufuncs.negative, _name, _value)
