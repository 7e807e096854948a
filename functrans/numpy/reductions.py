"""Reductions over axes: sums, products, extrema, truth, moments and their NaN-skipping variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import _runtime, lax
from functrans._runtime import get_trace
from functrans.core import dtypes
from functrans.core.dtypes import as_dtype, kind, real_dtype
from functrans.core.errors import ArgumentError, DTypeError
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
    promote,
    promote_dtypes_inexact,
    refuse_out,
    scalar_like,
    size_of,
)
from functrans.numpy.ufuncs import divide, isnan, multiply, sqrt, square, subtract, truth
from functrans.numpy.ufuncs import true_divide as _divide
from functrans.primitives.broadcast import reduce_sum
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, Axis, DTypeLike

Reduction = Callable[..., Array]


def keep_dims(x: Array, axes: tuple[int, ...], ndim: int) -> Array:
    """x, reduced over axes, with these axes back as axes of size 1."""
    return lax.expand_dims(x, axes) if axes else x


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
    result = op(x, axes) if axes else x
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
        result = (lax.reduce_max if largest else lax.reduce_min)(x, axes)
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


# moments -------------------------------------------------------------------------------------


def _computation(x: Array) -> Array:
    """Halves are averaged in float32: their sums overflow and lose digits."""
    return cast(x, dtypes.computed_dtype(x.dtype))


def _mean_operand(name: str, a: ArrayLike, dtype: DTypeLike | None) -> tuple[Array, np.dtype]:
    """The operand in the dtype to compute in, and the dtype of the result."""
    x = operand(name, a)
    dtype = dtypes.to_inexact_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    return _computation(cast(x, dtype)), dtype


def _count(x: Array, axes: tuple[int, ...], where: ArrayLike | None, name: str) -> Any:
    """The number of elements that a reduction takes: a size, or an array if it depends on where."""
    if where is None:
        return size_of(x, axes)
    mask = truth(operand(name, where))
    mask = broadcast(mask, broadcast_shapes(x.shape, mask.shape, name=name))
    return sum(mask, axes, real_dtype(x.dtype))


def _over(total: Array, count: Any) -> Array:
    """total / count, with a static count as a constant (NaN for none)."""
    if isinstance(count, int):
        return lax.div(total, scalar_like(total, count))
    return _divide(total, count)


def _over_size(total: Array, count: Any) -> Array:
    """As _over, the count of a floating mean staying a number."""
    if isinstance(count, int) and total.dtype.kind == "f":
        return lax.div(total, float(count))
    return _over(total, count)


def mean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, *, where: ArrayLike | None = None,
) -> Array:
    """Arithmetic mean over axes (all by default); float16 and bfloat16 are summed in float32.

    The shape is a's without the axes, or with size 1 there with `keepdims`.

    >>> import functrans.numpy as jnp
    >>> jnp.mean(jnp.asarray([1, 2])).tolist()
    1.5
    """
    refuse_out("mean", out)
    x, dtype = _mean_operand("mean", a, dtype)
    axes = axis_tuple(axis, x.ndim, "mean")
    result = _over_size(sum(x, axes, where=where), _count(x, axes, where, "mean"))
    result = cast(result, dtype)
    return keep_dims(result, axes, x.ndim) if keepdims else result


def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Variance over axes: the mean squared distance from the mean, over N - ddof.

    >>> jnp.var(jnp.array([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    Array([1., 0.], dtype=float32)
    """
    refuse_out("var", out)
    if correction is not None:
        if ddof:
            raise ArgumentError("functrans.numpy.var: ddof and correction are one argument; give "
                                "one of them.", where=user_source())
        ddof = correction
    wanted = None if dtype is None else as_dtype(dtype)
    a = operand("var", a)
    if wanted is not None and kind(a.dtype) == "c" and kind(wanted) != "c":
        raise DTypeError(f"functrans.numpy.var of {a.dtype} does not take dtype={wanted}.",
                         where=user_source(), why="it would drop the imaginary parts.",
                         fix="var(x).astype(...), or var(x.real)")
    x, dtype = _mean_operand("var", a, dtype)
    axes = axis_tuple(axis, x.ndim, "var")
    centre = _mean(x, axes, keepdims=True, where=where) if mean is None else mean
    residual = subtract(x, centre)
    if kind(residual.dtype) == "c":
        squares = lax.add(square(lax.real(residual)), square(lax.imag(residual)))
    else:
        squares = square(residual)
    count = _count(squares, axes, where, "var")
    total = sum(squares, axes, where=where)
    if ddof:
        count = _positive_or_nan(count, ddof)
    result = cast(_over_degrees(total, count), wanted or real_dtype(dtype))
    return keep_dims(result, axes, x.ndim) if keepdims else result


_mean = mean


def _positive_or_nan(count: Any, ddof: float) -> Any:
    """Degrees of freedom; none or fewer give NaN or infinity by dividing by 0."""
    if isinstance(count, int):
        return float(np.maximum(count - ddof, 0))
    rest = subtract(count, ddof)
    return lax.max(rest, lax.full_like(rest, 0))


def _over_degrees(total: Array, count: Any) -> Array:
    if isinstance(count, (int, float)):
        if total.dtype.kind == "f":
            return lax.div(total, float(count))
        return lax.div(total, scalar_like(total, count))
    return divide(total, count)


def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Standard deviation over axes: the square root of var.

    >>> jnp.std(jnp.array([1.0, 3.0, 5.0, 7.0]), ddof=1).round(4)
    Array(2.582, dtype=float32)
    """
    refuse_out("std", out)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                    correction=correction))


def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Weighted mean over axes; weights have a's shape, or the shape of its reduced axes.

    >>> jnp.average(jnp.array([1.0, 2.0, 6.0]), weights=jnp.array([3, 2, 1])).round(4)
    Array(2.1667, dtype=float32)
    """
    x = operand("average", a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = size_of(x, axis_tuple(axis, x.ndim, "average"))
        total = broadcast(scalar_like(result, count), result.shape)
    else:
        x, w = promote_dtypes_inexact("average", x, weights)
        axes = axis_tuple(axis, x.ndim, "average")
        if w.shape != x.shape:
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                raise ArgumentError(
                    f"functrans.numpy.average: weights of shape {w.shape} fit neither the array's "
                    f"shape {x.shape} nor its axes {axis}.", where=user_source())
            order = np.argsort(axes)
            w = lax.transpose(w, tuple(int(i) for i in order))
            w = lax.broadcast_in_dim(w, x.shape, tuple(sorted(axes)))
        total = sum(w, axes, keepdims=keepdims)
        result = divide(sum(multiply(x, w), axes, keepdims=keepdims), total)
    return (result, total) if returned else result


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
    found = find(_replace(x, nan, limit(x.dtype, largest)), axis, keepdims=keepdims)
    empty = all(nan, axis, keepdims=bool(keepdims))
    return lax.select_n(empty, found, lax.full_like(found, -1))


# skipping NaN --------------------------------------------------------------------------------


def _replace(x: Array, where: Array, value: Any) -> Array:
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
    result = reduce(_replace(x, nan, identity), axis, keepdims=keepdims, **options)
    if not empty_is_nan or options.get("initial") is not None:
        return result
    return _replace(result, all(nan, axis, keepdims=keepdims, where=where), np.nan)


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


def _valid(name: str, x: Array, where: ArrayLike | None) -> Array:
    """Where an element counts: it is not NaN, and `where` holds."""
    valid = lax.bitwise_not(isnan(x))
    if where is None:
        return valid
    valid, where = promote(name, valid, truth(operand(name, where)))
    return lax.bitwise_and(valid, where)


@composite
def nanmean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, where: ArrayLike | None = None,
) -> Array:
    """Mean over axes of the elements that are not NaN.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    x = operand("nanmean", a)
    if kind(x.dtype) not in "fc":
        return mean(x, axis, dtype, keepdims=keepdims, where=where)
    return mean(x, axis, dtype, keepdims=keepdims, where=_valid("nanmean", x, where))


@composite
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: float = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Variance over axes of the elements that are not NaN; NaN where ddof leaves none.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 5.0]))
    Array(4., dtype=float32)
    """
    refuse_out("nanvar", out)
    x = operand("nanvar", a)
    if kind(x.dtype) not in "fc":
        return var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    valid = _valid("nanvar", x, where)
    result = var(_replace(x, isnan(x), 0), axis, dtype, None, ddof, keepdims, where=valid,
                 mean=mean)
    count = sum(valid, axis, real_dtype(result.dtype), keepdims=keepdims)
    return _replace(result, lax.le(count, lax.full_like(count, ddof)), np.nan)


@composite
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: float = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Standard deviation over axes of the elements that are not NaN.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))
