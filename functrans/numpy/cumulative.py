"""Running sums and products, differences and the integrals and gradients built from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dtypes import as_dtype, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    cast,
    converted,
    filled,
    operand,
    promote_dtypes,
    promote_dtypes_inexact,
    refuse_out,
    slice_axis,
)
from functrans.numpy.reductions import _sum_dtype, sum
from functrans.numpy.ufuncs import divide, isnan, multiply, not_equal, subtract
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, DTypeLike


def _cumulate(
    name: str, op: Callable[..., Array], a: ArrayLike, axis: int | None, dtype: DTypeLike | None
) -> Array:
    x = operand(name, a)
    x = cast(x, _sum_dtype(x) if dtype is None else as_dtype(dtype))
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    if kind(x.dtype) == "b":
        raise ArgumentError(f"functrans.numpy.{name} does not accumulate into booleans.",
                            where=user_source(), fix="dtype=int")
    if not x.ndim:
        x, axis = lax.reshape(x, (1,)), 0
    return op(x, axis=axis_index(axis, x.ndim, name))


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """Running sum along axis, or over the flattened array.

    The shape is a's, or (a.size,) without an axis.

    >>> import functrans.numpy as jnp
    >>> jnp.cumsum(jnp.asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    refuse_out("cumsum", out)
    return _cumulate("cumsum", lax.cumsum, a, axis, dtype)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
            out: None = None) -> Array:
    """Running product along axis, or over the flattened array.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    refuse_out("cumprod", out)
    return _cumulate("cumprod", lax.cumprod, a, axis, dtype)


def _without_nan(name: str, a: ArrayLike, value: float) -> Array:
    x = operand(name, a)
    if kind(x.dtype) not in "fc":
        return x
    return lax.select_n(isnan(x), x, lax.full_like(x, value))


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: None = None) -> Array:
    """Running sum with NaN counted as 0.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    refuse_out("nancumsum", out)
    return cumsum(_without_nan("nancumsum", a, 0), axis, dtype)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:
    """Running product with NaN counted as 1.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    refuse_out("nancumprod", out)
    return cumprod(_without_nan("nancumprod", a, 1), axis, dtype)


def _with_initial(name: str, cumulate: Callable[..., Array], x: ArrayLike, axis: int | None,
                  dtype: DTypeLike | None, include_initial: bool, initial: int) -> Array:
    x = operand(name, x)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"functrans.numpy.{name}: an array of {x.ndim} dimensions needs "
                                "axis=.", where=user_source())
        axis = 0
    axis = axis_index(axis, x.ndim, name)
    result = cumulate(x, axis, dtype)
    if not include_initial:
        return result
    shape = tuple(1 if i == axis else s for i, s in enumerate(result.shape))
    return lax.concatenate([filled(shape, initial, result.dtype), result], axis)


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                   include_initial: bool = False) -> Array:
    """Running sum along axis, with a leading 0 if include_initial.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _with_initial("cumulative_sum", cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                    include_initial: bool = False) -> Array:
    """Running product along axis, with a leading 1 if include_initial.

    >>> jnp.cumulative_prod(jnp.array([2, 3, 4]), include_initial=True)
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _with_initial("cumulative_prod", cumprod, x, axis, dtype, include_initial, 1)


def _edge(name: str, value: ArrayLike, x: Array, axis: int) -> Array:
    value = operand(name, value)
    shape = tuple(1 if i == axis else s for i, s in enumerate(x.shape))
    return broadcast(value, shape) if not value.ndim else value


@composite
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """n-th difference between neighbours along axis, after joining prepend and append.

    The size along the axis is n smaller.

    >>> import functrans.numpy as jnp
    >>> jnp.diff(jnp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    x = operand("diff", a)
    if n < 0:
        raise ArgumentError(f"functrans.numpy.diff: the order n={n} is negative.",
                            where=user_source())
    if not n:
        return x
    if not x.ndim:
        raise ShapeError("functrans.numpy.diff takes arrays of at least one dimension.",
                         where=user_source())
    axis = axis_index(axis, x.ndim, "diff")
    parts = [x]
    if prepend is not None:
        parts.insert(0, _edge("diff", prepend, x, axis))
    if append is not None:
        parts.append(_edge("diff", append, x, axis))
    if len(parts) > 1:
        x = lax.concatenate(promote_dtypes("diff", *parts), axis)
    op = not_equal if kind(x.dtype) == "b" else subtract
    for _ in range(n):
        size = x.shape[axis]
        x = op(slice_axis(x, 1, size, axis), slice_axis(x, 0, size - 1, axis))
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
            ) -> Array:
    """Differences between neighbours of the flattened array, with values put around them.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=jnp.array([0]))
    Array([3, 5, 0], dtype=int32)
    """
    x = operand("ediff1d", ary)
    result = diff(lax.reshape(x, (x.size,)))
    parts = [result]
    for value, front in ((to_begin, True), (to_end, False)):
        if value is not None:
            value = converted("ediff1d", value, result.dtype)
            value = lax.reshape(value, (value.size,))
            parts.insert(0, value) if front else parts.append(value)
    return lax.concatenate(parts, 0) if len(parts) > 1 else result


@composite
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
              ) -> Array:
    """Integral of samples y along axis by the trapezoidal rule, at points x or spaced by dx.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    """
    if x is None:
        (y,) = promote_dtypes_inexact("trapezoid", y)
        widths: Any = dx
    else:
        y, points = promote_dtypes_inexact("trapezoid", y, x)
        widths = diff(points) if points.ndim == 1 else diff(points, axis=axis)
        if points.ndim == 1:
            after = y.ndim - axis_index(axis, y.ndim, "trapezoid") - 1
            widths = lax.expand_dims(widths, tuple(range(1, after + 1)))
    n = y.shape[axis]
    pairs = multiply(slice_axis(y, 1, n, axis) + slice_axis(y, 0, n - 1, axis), widths)
    return multiply(sum(pairs, axis), 0.5)


def _gradient_along(f: Array, axis: int, spacing: ArrayLike, edge_order: int) -> Array:
    n = f.shape[axis]
    if isinstance(n, int) and n < edge_order + 1:
        raise ShapeError(f"functrans.numpy.gradient needs {edge_order + 1} points along each axis, "
                         f"and axis {axis} of shape {f.shape} has {n}.", where=user_source())

    def part(start: Any, stop: Any) -> Array:
        return slice_axis(f, start, stop, axis)

    h = operand("gradient", spacing)
    if not h.ndim:
        first = divide(subtract(part(1, 2), part(0, 1)), h)
        last = divide(subtract(part(n - 1, n), part(n - 2, n - 1)), h)
        inner = divide(subtract(part(2, n), part(0, n - 2)), multiply(h, 2))
        if edge_order == 2:
            first = divide(-1.5 * part(0, 1) + 2.0 * part(1, 2) - 0.5 * part(2, 3), h)
            last = divide(0.5 * part(n - 3, n - 2) - 2.0 * part(n - 2, n - 1)
                          + 1.5 * part(n - 1, n), h)
        return lax.concatenate([cast(v, f.dtype) for v in (first, inner, last)], axis)
    (h,) = promote_dtypes_inexact("gradient", h)
    if h.ndim != 1 or h.shape[0] != n:
        raise ShapeError(f"functrans.numpy.gradient: coordinates of shape {h.shape} do not fit "
                         f"axis {axis} of {f.shape}.", where=user_source())
    steps = lax.expand_dims(cast(diff(h), f.dtype), tuple(a for a in range(f.ndim) if a != axis))

    def step(start: Any, stop: Any) -> Array:
        return slice_axis(steps, start, stop, axis)

    left, right = step(0, n - 2), step(1, n - 1)
    inner = (-right / (left * (left + right)) * part(0, n - 2)
             + (right - left) / (left * right) * part(1, n - 1)
             + left / (right * (left + right)) * part(2, n))
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / step(0, 1)
        last = (part(n - 1, n) - part(n - 2, n - 1)) / step(n - 2, n - 1)
    else:
        p, q = step(0, 1), step(1, 2)
        first = (-(2.0 * p + q) / (p * (p + q)) * part(0, 1) + (p + q) / (p * q) * part(1, 2)
                 - p / (q * (p + q)) * part(2, 3))
        p, q = step(n - 3, n - 2), step(n - 2, n - 1)
        last = (q / (p * (p + q)) * part(n - 3, n - 2) - (p + q) / (p * q) * part(n - 2, n - 1)
                + (2.0 * q + p) / (q * (p + q)) * part(n - 1, n))
    return lax.concatenate([first, inner, last], axis)


@composite
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Array | list[Array]:
    """Derivative along each axis by central differences, one-sided at the edges.

    varargs: one spacing for all axes, or one spacing or coordinate vector for each.

    >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
    Array([1., 2., 4., 5.], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("gradient", f)
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ArgumentError(f"functrans.numpy.gradient: edge_order is 1 or 2, and not {order}.",
                            where=user_source())
    axes = axis_tuple(axis, x.ndim, "gradient")
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(f"functrans.numpy.gradient: {len(varargs)} spacings for {len(axes)} "
                            "axes.", where=user_source())
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    spacings = [np.asarray(s) if isinstance(s, (list, tuple)) else s for s in spacings]
    result = [_gradient_along(x, a, h, order) for a, h in zip(axes, spacings, strict=True)]
    return result[0] if len(axes) == 1 else result
