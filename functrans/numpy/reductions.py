"""Reductions over axes: sums, products, extrema, truth, positions; the same without NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import _runtime, lax
from functrans._runtime import get_trace
from functrans.core import dtypes
from functrans.core.dtypes import as_dtype, kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    broadcast_shapes,
    cast,
    converted,
    index_dtype,
    operand,
    refuse_out,
    scalar_like,
    size_of,
)
from functrans.numpy.ufunc_dispatch import truth
from functrans.numpy.ufuncs import isnan, subtract
from functrans.primitives.broadcast import reduce_sum
from functrans.typing import Array, ArrayLike, Axis, DTypeLike

Reduction = Callable[..., Array]


def keep_dims(x: Array, axes: tuple[int, ...], ndim: int) -> Array:
    """x, reduced over axes, with these axes back as axes of size 1."""
    return lax.expand_dims(x, axes) if axes else x


def _strong(x: Array) -> Array:
    """A reduction is no Python number any more, whatever it reduced: its dtype counts."""
    return lax.convert_element_type(x, x.dtype) if x.weak_type else x


def limit(dtype: np.dtype, largest: bool) -> Any:
    """The largest or smallest value of a dtype: the identity of min and max."""
    if kind(dtype) == "b":
        return largest
    if kind(dtype) in "iu":
        info = dtypes.iinfo(dtype)
        return info.max if largest else info.min
    return np.inf if largest else -np.inf


def _masked(name: str, x: Array, where: ArrayLike, identity: Any) -> Array:
    """x with the identity where `where` is false."""
    mask = truth(operand(name, where))
    shape = broadcast_shapes(x.shape, mask.shape, name=name)
    fill = broadcast(scalar_like(x, identity), shape)
    return lax.select_n(broadcast(mask, shape), fill, broadcast(x, shape))


def _reduce(
    name: str, op: Reduction, x: Array, axis: Axis, keepdims: bool, where: ArrayLike | None,
    identity: Any, initial: ArrayLike | None, combine: Callable[[Array, Array], Array],
) -> Array:
    if where is not None:
        x = _masked(name, x, where, identity)
    axes = axis_tuple(axis, x.ndim, name)
    result = _strong(op(x, axes) if axes else x)
    if initial is not None:
        start = converted(name, initial, result.dtype)
        result = combine(result, broadcast(start, result.shape))
    return keep_dims(result, axes, x.ndim) if keepdims else result


def _sum_dtype(x: Array) -> np.dtype:
    """Small integers and booleans are summed in the default integer's width."""
    default = dtypes.default_int()
    if kind(x.dtype) == "b":
        return default
    if kind(x.dtype) in "iu" and x.dtype.itemsize < default.itemsize:
        return default if kind(x.dtype) == "i" else np.dtype(f"u{default.itemsize}")
    return x.dtype


def _accumulate_into(name: str, a: ArrayLike, dtype: DTypeLike | None, promote_integers: bool
                     ) -> Array:
    x = operand(name, a)
    if dtype is not None:
        return lax.convert_element_type(x, as_dtype(dtype))
    return cast(x, _sum_dtype(x)) if promote_integers else x


def sum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum over axes (all by default), of elements where `where` holds, plus `initial`.

    The shape is a's without the axes, or with size 1 there with `keepdims`.

    >>> import functrans.numpy as jnp
    >>> jnp.sum(jnp.ones((2, 3)), axis=0).tolist()
    [2.0, 2.0, 2.0]
    """
    if (isinstance(a, ARRAYS) and a.dtype.kind in "fc" and dtype is None and where is None
            and initial is None and out is None):
        axes = axis_tuple(axis, a.ndim, "sum")
        result = _runtime.sum_over(a, axes) if get_trace() is None else NotImplemented
        if result is NotImplemented:
            result = reduce_sum(a, axes) if axes else a
        result = _strong(result)
        return keep_dims(result, axes, a.ndim) if keepdims else result
    refuse_out("sum", out)
    x = _accumulate_into("sum", a, dtype, promote_integers)
    op = _reduce_any if kind(x.dtype) == "b" else lax.reduce_sum
    return _reduce("sum", op, x, axis, keepdims, where, 0, initial, lax.add)


def prod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Product over axes (all by default), of elements where `where` holds, times `initial`.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    refuse_out("prod", out)
    x = _accumulate_into("prod", a, dtype, promote_integers)
    op = _reduce_all if kind(x.dtype) == "b" else lax.reduce_prod
    return _reduce("prod", op, x, axis, keepdims, where, 1, initial, lax.mul)


def _reduce_any(x: Array, axes: tuple[int, ...]) -> Array:
    return lax.reduce_or(x, axes)


def _reduce_all(x: Array, axes: tuple[int, ...]) -> Array:
    return lax.reduce_and(x, axes)


def _extremum(
    name: str, a: ArrayLike, axis: Axis, out: None, keepdims: bool, initial: ArrayLike | None,
    where: ArrayLike | None, largest: bool,
) -> Array:
    refuse_out(name, out)
    x = operand(name, a)
    axes = axis_tuple(axis, x.ndim, name)
    if initial is None and where is None and not _isint0(size_of(x, axes)) and axes:
        result = _strong((lax.reduce_max if largest else lax.reduce_min)(x, axes))
        return keep_dims(result, axes, x.ndim) if keepdims else result
    if initial is None:
        if where is not None:
            raise ArgumentError(f"functrans.numpy.{name} with where= needs initial=.",
                                where=user_source(),
                                why="where= may leave nothing over, whose extremum is undefined.",
                                fix=f"{name}(x, where=..., initial=0)")
        if _isint0(size_of(x, axes)):
            raise ArgumentError(
                f"functrans.numpy.{name} of no elements: the shape is {x.shape}, axis {axis}.",
                where=user_source(), fix=f"{name}(x, initial=0)")
    op = lax.reduce_max if largest else lax.reduce_min
    combine = lax.max if largest else lax.min
    identity = limit(x.dtype, not largest)
    return _reduce(name, op, x, axes, keepdims, where, identity, initial, combine)


def _isint0(size: Any) -> bool:
    return isinstance(size, int) and size == 0


def max(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Maximum over axes (all by default); NaN if there is one.

    The shape is a's without the axes, or with size 1 there with `keepdims`.

    >>> import functrans.numpy as jnp
    >>> jnp.max(jnp.asarray([[1, 5], [7, 2]]), axis=1).tolist()
    [5, 7]
    """
    return _extremum("max", a, axis, out, keepdims, initial, where, True)


def min(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Minimum over axes (all by default); NaN if there is one.

    The shape is a's without the axes, or with size 1 there with `keepdims`.

    >>> jnp.min(jnp.array([[3, 1], [2, 5]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extremum("min", a, axis, out, keepdims, initial, where, False)


amax, amin = max, min


def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements along axes are true.

    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    refuse_out("all", out)
    x = truth(operand("all", a))
    return _reduce("all", _reduce_all, x, axis, keepdims, where, True, None, lax.bitwise_and)


def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element along axes is true.

    >>> jnp.any(jnp.array([[False, False], [False, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    refuse_out("any", out)
    x = truth(operand("any", a))
    return _reduce("any", _reduce_any, x, axis, keepdims, where, False, None, lax.bitwise_or)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Number of elements along axes that are not zero.

    >>> jnp.count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    x = operand("count_nonzero", a)
    return sum(truth(x), axis, index_dtype(x.size), keepdims=keepdims)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Maximum minus minimum along axes.

    >>> jnp.ptp(jnp.array([3, 9, 4]))
    Array(6, dtype=int32)
    """
    refuse_out("ptp", out)
    return subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# positions -----------------------------------------------------------------------------------


def _arg(
    name: str, op: Callable[..., Array], a: ArrayLike, axis: int | None, keepdims: bool | None
) -> Array:
    x = operand(name, a)
    if axis is None:
        result = op(lax.reshape(x, (x.size,)), 0, index_dtype(x.size))
        return lax.expand_dims(result, tuple(range(x.ndim))) if keepdims else result
    axis = axis_index(axis, x.ndim, name)
    if _isint0(x.shape[axis]):
        raise ArgumentError(f"functrans.numpy.{name} of no elements: the shape is {x.shape}.",
                            where=user_source())
    result = op(x, axis, index_dtype(x.shape[axis]))
    return lax.expand_dims(result, (axis,)) if keepdims else result


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first maximum along axis, or in the flattened array; NaN counts as largest.

    The shape is a's without the axis, or with size 1 there with `keepdims`.

    >>> import functrans.numpy as jnp
    >>> jnp.argmax(jnp.asarray([1, 9, 3])).tolist()
    1
    """
    refuse_out("argmax", out)
    return _arg("argmax", lax.argmax, a, axis, keepdims)


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first minimum along axis, or in the flattened array; NaN counts as smallest.

    >>> jnp.argmin(jnp.array([3.0, 1.0, 2.0]))
    Array(1, dtype=int32)
    """
    refuse_out("argmin", out)
    return _arg("argmin", lax.argmin, a, axis, keepdims)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first maximum other than NaN; -1 where all are NaN.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2, dtype=int32)
    """
    refuse_out("nanargmax", out)
    return _nan_arg("nanargmax", argmax, a, axis, keepdims, False)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first minimum other than NaN; -1 where all are NaN.

    >>> jnp.nanargmin(jnp.array([2.0, jnp.nan, 1.0]))
    Array(2, dtype=int32)
    """
    refuse_out("nanargmin", out)
    return _nan_arg("nanargmin", argmin, a, axis, keepdims, True)


def _nan_arg(
    name: str, find: Callable[..., Array], a: ArrayLike, axis: int | None, keepdims: bool | None,
    largest: bool,
) -> Array:
    x = operand(name, a)
    if kind(x.dtype) not in "fc":
        return find(x, axis, keepdims=keepdims)
    nan = isnan(x)
    found = find(replace_where(x, nan, limit(x.dtype, largest)), axis, keepdims=keepdims)
    empty = all(nan, axis, keepdims=bool(keepdims))
    return lax.select_n(empty, found, lax.full_like(found, -1))


# skipping NaN --------------------------------------------------------------------------------


def replace_where(x: Array, where: Array, value: Any) -> Array:
    return lax.select_n(where, x, lax.full_like(x, value))


def _nan_reduce(
    name: str, reduce: Reduction, a: ArrayLike, axis: Axis, keepdims: bool, where: ArrayLike | None,
    identity: Any, empty_is_nan: bool, **options: Any,
) -> Array:
    x = operand(name, a)
    if where is not None:
        options["where"] = where
    if kind(x.dtype) not in "fc":
        return reduce(x, axis, keepdims=keepdims, **options)
    nan = isnan(x)
    result = reduce(replace_where(x, nan, identity), axis, keepdims=keepdims, **options)
    if not empty_is_nan or options.get("initial") is not None:
        return result
    return replace_where(result, all(nan, axis, keepdims=keepdims, where=where), np.nan)


def nansum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Sum over axes with NaN counted as 0.

    >>> jnp.nansum(jnp.array([[1.0, jnp.nan], [3.0, 4.0]]), axis=0)
    Array([4., 4.], dtype=float32)
    """
    refuse_out("nansum", out)
    return _nan_reduce("nansum", sum, a, axis, keepdims, where, 0, False, dtype=dtype,
                       initial=initial)


def nanprod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Product over axes with NaN counted as 1.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)
    """
    refuse_out("nanprod", out)
    return _nan_reduce("nanprod", prod, a, axis, keepdims, where, 1, False, dtype=dtype,
                       initial=initial)


def nanmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Maximum over axes without NaN; NaN where all are.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(3., dtype=float32)
    """
    refuse_out("nanmax", out)
    return _nan_reduce("nanmax", max, a, axis, keepdims, where, -np.inf, True, initial=initial)


def nanmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:
    """Minimum over axes without NaN; NaN where all are.

    >>> jnp.nanmin(jnp.array([2.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    refuse_out("nanmin", out)
    return _nan_reduce("nanmin", min, a, axis, keepdims, where, np.inf, True, initial=initial)
