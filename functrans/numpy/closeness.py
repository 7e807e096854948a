"""Whether arrays are equal, close, or real; how far the next number is."""

from __future__ import annotations

import numpy as np

from functrans import lax
from functrans.core.dims import same_shape
from functrans.core.dtypes import kind
from functrans.numpy.common import (
    broadcast_all,
    broadcast_shapes,
    converted,
    filled,
    operand,
    promote,
    promote_dtypes,
    promote_inexact,
)
from functrans.numpy.reductions import all as _all
from functrans.numpy.ufunc_dispatch import unary
from functrans.numpy.ufuncs import isfinite, isnan
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike


@composite
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol |b|, elementwise; infinities are close to themselves.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0 + 1e-7, 2.1]))
    Array([ True, False], dtype=bool)
    """
    x, y = broadcast_all("isclose", *promote_dtypes("isclose", a, b))
    if kind(x.dtype) not in "fc":
        if kind(x.dtype) == "b":
            return lax.eq(x, y)
        x, y = promote_inexact("isclose", x, y)
    magnitude = lax.abs(y)
    dtype = magnitude.dtype
    tolerance = converted("isclose", atol, dtype) + converted("isclose", rtol, dtype) * magnitude
    close = lax.le(lax.abs(lax.sub(x, y)), tolerance)
    close = lax.bitwise_and(close, lax.bitwise_and(isfinite(x), isfinite(y)))
    close = lax.bitwise_or(close, lax.eq(x, y))
    if equal_nan:
        close = lax.bitwise_or(close, lax.bitwise_and(isnan(x), isnan(y)))
    return close


@composite
def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether all elements are close, as isclose tells.

    >>> import functrans.numpy as jnp
    >>> bool(jnp.allclose(jnp.ones(3), 1.0))
    True
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1.0, 2.0])).item()
    True
    """
    x, y = (operand("array_equal", np.asarray(v) if isinstance(v, (list, tuple)) else v)
            for v in (a1, a2))
    if not same_shape(x.shape, y.shape):
        return filled((), False, bool)
    x, y = promote("array_equal", x, y)
    same = lax.eq(x, y)
    if equal_nan and kind(x.dtype) in "fc":
        same = lax.bitwise_or(same, lax.bitwise_and(isnan(x), isnan(y)))
    return _all(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements.

    >>> jnp.array_equiv(jnp.array([1, 2]), jnp.array([[1, 2], [1, 2]])).item()
    True
    """
    x, y = (operand("array_equiv", v) for v in (a1, a2))
    try:
        broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return filled((), False, bool)
    return _all(lax.eq(*broadcast_all("array_equiv", *promote_dtypes("array_equiv", x, y))))


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero, elementwise.

    >>> jnp.iscomplex(jnp.array([1 + 1j, 2 + 0j]))
    Array([ True, False], dtype=bool)
    """
    x = operand("iscomplex", x)
    if kind(x.dtype) != "c":
        return filled(x.shape, False, bool)
    imaginary = lax.imag(x)
    return lax.ne(imaginary, lax.full_like(imaginary, 0))


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero, elementwise.

    >>> jnp.isreal(jnp.array([1 + 1j, 2 + 0j]))
    Array([False,  True], dtype=bool)
    """
    return lax.bitwise_not(iscomplex(x))


def _spacing(x: Array) -> Array:
    x = lax.stop_gradient(x)  # a step function
    away = lax.full_like(x, np.inf)
    if x.dtype == np.float16:
        return lax.sub(lax.nextafter(x, away), x)
    away = lax.select_n(lax.lt(x, lax.full_like(x, 0)), away, lax.neg(away))
    return lax.sub(lax.nextafter(x, away), x)


spacing = unary("spacing", _spacing, """The next number away from zero less x.

    >>> import functrans.numpy as jnp
    >>> float(jnp.spacing(1.0)) == float(jnp.finfo("float32").eps)
    True
    """, None, kinds="f")
