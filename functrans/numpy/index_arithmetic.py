"""Index arithmetic: flat and per-axis indices, those of triangles and diagonals, open grids."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.dtypes import as_dtype, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    cast,
    concrete,
    filled,
    index_dtype,
    operand,
    shape_tuple,
    wrap,
)
from functrans.numpy.creation import asarray
from functrans.numpy.elementwise import clip
from functrans.numpy.searching import flatnonzero, index_operand, nonzero, normal_index
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """Flat indices as one index for each axis; out of bounds is clipped, negative counts back.

    >>> jnp.unravel_index(jnp.array([2, 4]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 1], dtype=int32))
    """
    index = index_operand("unravel_index", indices)
    sizes = shape_tuple(shape, "unravel_index")
    total = math.prod(sizes)
    index = clip(normal_index("unravel_index", index, total, None)[0], 0, max(total - 1, 0))
    result = []
    for size in reversed(sizes):
        n = lax.full_like(index, size)
        result.append(lax.rem(index, n))
        index = lax.div(index, n)
    return tuple(reversed(result))


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: DTypeLike | None = None) -> Array:
    """Indices for each axis as flat indices; under tracing give mode 'clip' or 'wrap'.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3))
    Array([2, 4], dtype=int32)
    """
    indices = [index_operand("ravel_multi_index", i) for i in multi_index]
    sizes = [operator.index(d) for d in dims]
    if len(indices) != len(sizes):
        raise ArgumentError(f"functrans.numpy.ravel_multi_index: {len(indices)} indices for "
                            f"{len(sizes)} sizes.", where=user_source())
    if mode == "raise":
        for i, n in zip(indices, sizes, strict=True):
            value = concrete("ravel_multi_index", i, "multi_index", "mode='clip'")
            if value.size and (value.min() < 0 or value.max() >= n):
                raise ArgumentError("functrans.numpy.ravel_multi_index: an index is out of bounds.",
                                    where=user_source(), fix="mode='clip'")
    elif mode == "clip":
        indices = [clip(i, 0, n - 1) for i, n in zip(indices, sizes, strict=True)]
    else:
        indices = [normal_index("ravel_multi_index", i, n, "wrap")[0]
                   for i, n in zip(indices, sizes, strict=True)]
    strides, stride = [], 1
    for n in reversed(sizes) if order == "C" else sizes:
        strides.append(stride)
        stride *= n
    if order == "C":
        strides.reverse()
    wanted = index_dtype(stride) if dtype is None else as_dtype(dtype)
    result = cast(indices[0], wanted) * strides[0]
    for i, s in zip(indices[1:], strides[1:], strict=True):
        result = result + cast(i, wanted) * s
    return result


def _places(mask: np.ndarray) -> tuple[Array, Array]:
    rows, columns = np.nonzero(mask)
    return wrap(rows.astype(index_dtype())), wrap(columns.astype(index_dtype()))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices at and below diagonal k of an n x m matrix.

    >>> jnp.arange(4).reshape(2, 2)[jnp.tril_indices(2)]
    Array([0, 2, 3], dtype=int32)
    """
    return _places(np.tri(n, n if m is None else m, k, dtype=bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices at and above diagonal k of an n x m matrix.

    >>> jnp.arange(4).reshape(2, 2)[jnp.triu_indices(2)]
    Array([0, 1, 3], dtype=int32)
    """
    return _places(~np.tri(n, n if m is None else m, k - 1, dtype=bool))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """tril_indices of arr's shape.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)), k=-1)
    (Array([1], dtype=int32), Array([0], dtype=int32))
    """
    rows, columns = operand("tril_indices_from", arr).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """triu_indices of arr's shape.

    >>> jnp.triu_indices_from(jnp.ones((2, 3)), k=1)
    (Array([0, 0, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    rows, columns = operand("triu_indices_from", arr).shape
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Array], k: int = 0, *, size: int | None = None
                 ) -> tuple[Array, ...]:
    """The indices of an n x n matrix where mask_func(ones, k) is not zero, `size` of them.

    >>> jnp.arange(9).reshape(3, 3)[jnp.mask_indices(3, jnp.triu, 1)]
    Array([1, 2, 5], dtype=int32)
    """
    return nonzero(mask_func(filled((n, n), 1, dtypes.default_float()), k), size=size)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of ndim axes of size n.

    >>> x = jnp.zeros((2, 2), int)
    >>> x.at[jnp.diag_indices(2)].set(1)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return (lax.iota(index_dtype(n), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """diag_indices of arr's shape, whose sizes must agree.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = operand("diag_indices_from", arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(f"functrans.numpy.diag_indices_from takes square arrays, and got shape "
                         f"{x.shape}.", where=user_source())
    return diag_indices(x.shape[0], x.ndim)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors shaped to index the grid they span; booleans as the places where they hold.

    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    result = []
    for n, a in enumerate(args):
        x = asarray(a)
        if x.ndim != 1:
            raise ShapeError("functrans.numpy.ix_ takes vectors.", where=user_source())
        if kind(x.dtype) == "b":
            x = flatnonzero(x)
        elif x.size == 0:
            x = cast(x, index_dtype())
        result.append(lax.expand_dims(x, tuple(i for i in range(len(args)) if i != n)))
    return tuple(result)
