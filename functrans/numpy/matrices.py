"""Matrices of a pattern: the identity, triangles, and powers of a vector."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError, shown
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import broadcast, filled, operand, shape_tuple
from functrans.numpy.creation import float_dtype, on_device
from functrans.numpy.ufuncs import power
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, DeviceLike, DTypeLike


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *,
        device: DeviceLike | None = None) -> Array:
    """An N x M matrix of zeros with ones on diagonal k.

    >>> import functrans.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = shape_tuple(N, "eye")[0]
    columns = rows if M is None else shape_tuple(M, "eye")[0]
    return on_device(lax.convert_element_type(_band(rows, columns, _diagonal("eye", k), lax.eq),
                                              float_dtype(dtype)), device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix of size n.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def _diagonal(name: str, k: Any) -> Any:
    """The number of a diagonal: an int, or an integer array of shape (), which may be traced."""
    if isinstance(k, ARRAYS) and kind(k.dtype) in "iu" and not k.ndim:
        return lax.convert_element_type(k, np.int32)
    try:
        return operator.index(k)
    except TypeError:
        raise ArgumentError(f"functrans.numpy.{name}: k must be an integer, and is {shown(k)}.",
                            where=user_source()) from None


def _band(rows: Any, columns: Any, k: Any, compare: Callable[..., Array]) -> Array:
    """compare(i + k, j) for row i and column j, as booleans."""
    integer = np.dtype(np.int32)
    i = lax.broadcasted_iota(integer, (rows, columns), 0)
    j = lax.broadcasted_iota(integer, (rows, columns), 1)
    return compare(lax.add(i, lax.full_like(i, k)), j)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """An N x M matrix of ones at and below diagonal k, zeros above.

    >>> jnp.tri(2, 3, k=1)
    Array([[1., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    rows = shape_tuple(N, "tri")[0]
    columns = rows if M is None else shape_tuple(M, "tri")[0]
    return lax.convert_element_type(_band(rows, columns, _diagonal("tri", k), lax.ge),
                                    float_dtype(dtype))


def _triangle(name: str, m: ArrayLike, k: int, lower: bool) -> Array:
    x = operand(name, m)
    if x.ndim < 2:
        raise ArgumentError(f"functrans.numpy.{name} takes matrices, and got shape {x.shape}.",
                            where=user_source())
    k = _diagonal(name, k)
    rows, columns = x.shape[-2:]
    mask = _band(rows, columns, k, lax.ge) if lower else _band(rows, columns, k - 1, lax.lt)
    return lax.select_n(broadcast(mask, x.shape), lax.full_like(x, 0), x)


@composite
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrices m with zeros above diagonal k.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@composite
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrices m with zeros below diagonal k.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]), k=1)
    Array([[0, 2],
           [0, 0]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of the vector x as columns, from the highest down unless increasing.

    >>> jnp.vander(jnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = operand("vander", x)
    if x.ndim != 1:
        raise ArgumentError(f"functrans.numpy.vander takes a vector, and got shape {x.shape}.",
                            where=user_source())
    n = x.shape[0] if N is None else N
    exponents = range(n) if increasing else range(n - 1, -1, -1)
    columns = [lax.expand_dims(power(x, e), (1,)) for e in exponents]
    return lax.concatenate(columns, 1) if columns else filled((x.shape[0], 0), 0, x.dtype)
