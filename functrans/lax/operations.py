"""jax.lax's names that are small compositions of primitives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Size
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.core.tree import tree_map
from functrans.primitives import base
from functrans.primitives.arithmetic import abs as abs_
from functrans.primitives.arithmetic import add, div, floor, integer_pow, mul, rint, sign, sub
from functrans.primitives.barrier import stop_gradient_p
from functrans.primitives.broadcast import broadcast_in_dim, size_array
from functrans.primitives.compare import ge, lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dot import dot_general
from functrans.primitives.shape import reshape, slice_in_dim
from functrans.primitives.sort import sort
from functrans.typing import Array, ArrayLike, DotDimensionNumbers, DTypeLike, PrecisionLike, Shape

T = TypeVar("T")

__all__ = ["batch_matmul", "broadcast", "collapse", "dot", "full", "full_like", "reciprocal",
           "round", "select", "sort_key_val", "split", "square", "stop_gradient",
           "zeros_like_array"]


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` filled with one value, weakly typed as a Python number is.

    >>> import functrans as ft
    >>> ft.lax.full((2,), 7.0).tolist()
    [7.0, 7.0]
    """
    if isinstance(fill_value, (bool, int, float, complex)) and \
            (dtype is not None or isinstance(fill_value, bool)):
        return base.full(shape, fill_value, np.bool_ if dtype is None else dtypes.as_dtype(dtype))
    value = size_array(fill_value, dtypes.default_int()) if isinstance(fill_value, Dim) \
        else to_array(fill_value)
    value = value if dtype is None else value.astype(dtype)
    return broadcast_in_dim(value, tuple(shape), ()) if len(shape) else value


def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Shape | None = None) -> Array:
    """An array of the shape and dtype of x, unless given, filled with one value.

    >>> lax.full_like(jnp.ones(2), 7, shape=(3,))
    Array([7., 7., 7.], dtype=float32)
    """
    aval = get_aval(x)
    if dtype is None and isinstance(fill_value, (bool, int, float, complex)):
        # the dtype of x as it is, which one that is asked for by name need not be
        out = base.full(aval.shape if shape is None else shape, fill_value, aval.dtype)
        return convert_element_type(out, aval.dtype, True) if aval.weak_type else out
    out = full(aval.shape if shape is None else shape, fill_value,
               aval.dtype if dtype is None else dtype)
    return convert_element_type(out, aval.dtype, True) if dtype is None and aval.weak_type else out


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of the shape and dtype of x.

    >>> lax.zeros_like_array(jnp.array([1.5, 2.5]))
    Array([0., 0.], dtype=float32)
    """
    return base.zeros(get_aval(x))


def stop_gradient(x: T) -> T:
    """A pytree of the same values whose derivative is zero.

    >>> import functrans as ft
    >>> float(ft.grad(lambda x: x * ft.lax.stop_gradient(x))(3.0))
    3.0
    """
    stopped: T = tree_map(lambda leaf: stop_gradient_p.bind(to_array(leaf)), x)
    return stopped


def square(x: ArrayLike) -> Array:
    """x * x, elementwise.

    >>> lax.square(jnp.array([3, -4]))
    Array([ 9, 16], dtype=int32)
    """
    return integer_pow(x, 2)


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise.

    >>> lax.reciprocal(jnp.array([2.0, -4.0]))
    Array([ 0.5 , -0.25], dtype=float32)
    """
    return div(1.0, x)


def round(x: ArrayLike, rounding_method: int = 0) -> Array:
    """The nearest integer: ties away from zero (method 0) or to even (method 1).

    >>> lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    if rounding_method == 1:
        return rint(x)
    size = abs_(x)
    whole = floor(size)
    up = select_n(ge(sub(size, whole), 0.5), whole, add(whole, 1.0))
    return select_n(lt(size, 4503599627370496.0), x, mul(sign(x), up))


def broadcast(operand: ArrayLike, sizes: Shape) -> Array:
    """The operand repeated along new leading axes of `sizes`.

    >>> import functrans as ft
    >>> ft.lax.broadcast(1.0, (2,)).tolist()
    [1.0, 1.0]
    """
    operand = to_array(operand, "broadcast: the operand")
    return broadcast_in_dim(operand, (*sizes, *operand.shape),
                            range(len(sizes), len(sizes) + operand.ndim))


def dot(lhs: Array, rhs: Array, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product over the last axis of lhs and the first of rhs, or over `dimension_numbers`.

    `dimension_numbers` and `precision` are as in dot_general.

    >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    if dimension_numbers is None:
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Array, rhs: Array, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, for each index of the leading ones.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    batch = tuple(range(lhs.ndim - 2))
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (rhs.ndim - 2,)), (batch, batch)), precision)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred` holds, else `on_false`; all have one shape, or `pred` is a scalar.

    >>> import functrans as ft
    >>> ft.lax.select(ft.numpy.array([True, False]), ft.numpy.ones(2), ft.numpy.zeros(2)).tolist()
    [1.0, 0.0]
    """
    if type(pred) in (bool, np.bool_):  # a number beside arrays would take their dtype
        pred = to_array(np.asarray(pred))
    return select_n(pred, on_false, on_true)


def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """The keys sorted along `dimension`, and the values in the order of their keys.

    >>> import functrans as ft
    >>> ft.lax.sort_key_val(ft.numpy.array([3, 1]), ft.numpy.array([0.0, 1.0]))[1].tolist()
    [1.0, 0.0]
    """
    found, moved = sort((keys, values), dimension, is_stable)
    return found, moved


def split(operand: ArrayLike, sizes: Sequence[Size], axis: int = 0) -> list[Array]:
    """The parts of `operand` along `axis` that have the sizes, one after the other.

    Raises ShapeError unless the sizes add up to that of the axis.

    >>> import functrans as ft
    >>> [x.tolist() for x in ft.lax.split(ft.numpy.arange(3), (1, 2))]
    [[0], [1, 2]]
    """
    x = to_array(operand)
    axis = axis + x.ndim if axis < 0 else axis
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(f"split: the sizes {tuple(sizes)} of an axis of {x.shape[axis]}.",
                         where=user_source())
    parts, start = [], 0
    for size in sizes:
        parts.append(slice_in_dim(x, start, start + size, axis=axis))
        start += size
    return parts


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """`operand` with the axes from `start_dimension` up to `stop_dimension` as one.

    >>> import functrans as ft
    >>> ft.lax.collapse(ft.numpy.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = to_array(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(x.ndim)
    if start > stop:
        raise ShapeError(f"collapse: axes {start_dimension} to {stop_dimension} of {x.ndim}.",
                         where=user_source())
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))
