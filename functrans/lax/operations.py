"""jax.lax's names that are small compositions of primitives."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim
from functrans.core.tree import tree_map
from functrans.primitives import base
from functrans.primitives.arithmetic import abs as abs_
from functrans.primitives.arithmetic import add, div, floor, integer_pow, mul, rint, sign, sub
from functrans.primitives.barrier import stop_gradient_p
from functrans.primitives.broadcast import broadcast_in_dim, size_array
from functrans.primitives.compare import ge, lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dot import dot_general
from functrans.typing import Array, ArrayLike, DotDimensionNumbers, DTypeLike, PrecisionLike, Shape

T = TypeVar("T")

__all__ = ["batch_matmul", "broadcast", "dot", "full", "full_like",
           "reciprocal", "round", "square", "stop_gradient", "zeros_like_array"]


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
    """An array of the shape and dtype of x, unless given, filled with one value."""
    aval = get_aval(x)
    out = full(aval.shape if shape is None else shape, fill_value,
               aval.dtype if dtype is None else dtype)
    return convert_element_type(out, aval.dtype, True) if dtype is None and aval.weak_type else out


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of the shape and dtype of x."""
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
    """x * x, elementwise."""
    return integer_pow(x, 2)


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise."""
    return div(1.0, x)


def round(x: ArrayLike, rounding_method: int = 0) -> Array:
    """The nearest integer: ties away from zero (method 0) or to even (method 1)."""
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
    """
    if dimension_numbers is None:
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Array, rhs: Array, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, for each index of the leading ones."""
    batch = tuple(range(lhs.ndim - 2))
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (rhs.ndim - 2,)), (batch, batch)), precision)

