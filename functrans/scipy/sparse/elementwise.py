"""Elementwise operations of sparse arrays, on the coordinates that they have."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.places import (
    beside,
    columns_of,
    flat_keys,
    index_math,
    of_columns,
    summed,
    without_zeros,
)
from functrans.sparse.base import SparseEfficiencyWarning, mismatch
from functrans.sparse.bcoo import BCOO, bcoo_fromdense
from functrans.sparse.movement import bcoo_broadcast_in_dim
from functrans.sparse.products import bcoo_multiply_sparse, read_places
from functrans.typing import Array

COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
               ">": operator.gt, ">=": operator.ge}


def broadcast(mat: BCOO, shape: tuple[Any, ...]) -> BCOO:
    """A sparse array repeated to a shape."""
    if mat.shape == shape:
        return mat
    sizes, fits = mat.shape, len(mat.shape) <= len(shape)
    if not fits or any(n not in (1, m) for n, m in zip(sizes[::-1], shape[::-1])):
        raise mismatch("functrans.scipy.sparse", f"shape {sizes} does not broadcast to {shape}.")
    if any(map(is_traced, (mat.indices,))):
        wide = mat if len(sizes) == len(shape) else _with_ones(mat, len(shape))
        out: BCOO = bcoo_broadcast_in_dim(wide, shape=shape,
                                          broadcast_dimensions=range(len(shape)))
        return out
    mat = _with_ones(mat, len(shape))
    at, count = np.asarray(mat.indices), mat.nse
    numbers = np.arange(count)
    for axis, (n, m) in enumerate(zip(mat.shape, shape)):
        if n != m:
            numbers, at = np.repeat(numbers, m), np.repeat(at, m, axis=0)
            at[:, axis] = np.tile(np.arange(m), at.shape[0] // m if m else 0)
    return BCOO.tree_unflatten((shape, False, mat.unique_indices),
                               (mat.data[numbers], jnp.asarray(at)))


def _with_ones(mat: BCOO, count: int) -> BCOO:
    """The array with axes of size 1 before its own."""
    more = count - len(mat.shape)
    if not more:
        return mat
    indices = index_math(lambda xp, at: xp.concatenate(
        [xp.zeros((at.shape[0], more), at.dtype), at], axis=-1), mat.indices)
    # out of bounds stays so: one index of each vector is
    return BCOO.tree_unflatten(((1,) * more + mat.shape, mat.indices_sorted, mat.unique_indices),
                               (mat.data, indices))


def common(x: BCOO, y: BCOO) -> tuple[BCOO, BCOO]:
    """Two arrays in the shape to which both broadcast."""
    if x.shape == y.shape:
        return x, y
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    return broadcast(x, shape), broadcast(y, shape)


def pairwise(x: BCOO, y: BCOO, fun: Callable[[Array, Array], Array]) -> BCOO:
    """`fun` of the elements of two arrays at each place, where `fun(0, 0)` is 0."""
    both = beside(*common(x, y))
    return without_zeros(both.with_data(fun(both.data[:, 0], both.data[:, 1])))


def added(x: BCOO, y: BCOO, sign: int = 1) -> BCOO:
    """The sum or the difference of two arrays of one shape."""
    if x.shape != y.shape:
        raise mismatch("functrans.scipy.sparse", f"a sum of shapes {x.shape} and {y.shape}.")
    dtype = jnp.result_type(x.data, y.data)
    if kind(dtype) == "b":
        if sign < 0:
            raise ArgumentError("functrans.scipy.sparse: a difference of booleans.",
                                where=user_source(), fix="a != b")
        return pairwise(x, y, operator.or_)
    other = y.data.astype(dtype)
    data = jnp.concatenate([x.data.astype(dtype), other if sign > 0 else -other])
    indices = index_math(lambda xp, a, b: xp.concatenate([a, b]), x.indices, y.indices)
    return without_zeros(BCOO.tree_unflatten((x.sparse_shape, False, False), (data, indices)))


def multiplied(x: BCOO, y: BCOO) -> BCOO:
    """The elementwise product of two arrays, at the places that both store."""
    x, y = common(x, y)
    x, y = summed(x), summed(y)
    countable = math.prod(x.shape) < 2**63
    if countable and not any(map(is_traced, (x.indices, y.indices))):
        mine, other = (flat_keys(np.asarray(m.indices), m.shape) for m in (x, y))
        _, left, right = np.intersect1d(mine, other, assume_unique=True, return_indices=True)
        indices = jnp.asarray(np.asarray(x.indices)[left])
        out = BCOO.tree_unflatten((x.sparse_shape, True, True),
                                  (x.data[left] * y.data[right], indices))
        return without_zeros(out)
    return bcoo_multiply_sparse(x, y)


def with_dense(x: BCOO, y: Array, combine: Callable[[Any, Any], Any]) -> BCOO:
    """The stored values combined with a dense array's at their places."""
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    x = broadcast(x, shape)
    return x.with_data(combine(x.data, read_places(x, y, "functrans.scipy.sparse")))


def _of_zeros(compare: Callable[[Any, Any], Any], y: Any) -> bool | None:
    """Whether a comparison holds between 0 and a number; None where that is not known."""
    if is_traced(y):
        return None
    return bool(compare(0, np.asarray(y)))


def compared(name: str, x: BCOO, y: Any) -> BCOO:
    """The booleans of a comparison with a number, or with a sparse array of the same shape."""
    compare = COMPARISONS[name]
    sparse = isinstance(y, BCOO)
    if sparse and x.shape != y.shape:
        raise mismatch("functrans.scipy.sparse", f"{name} of shapes {x.shape} and {y.shape}.")
    holds = bool(compare(0, 0)) if sparse else _of_zeros(compare, y)
    if holds is False:
        if sparse:
            return pairwise(x, y, compare)
        mat = summed(x)
        # a place out of bounds, as indices that are traced have, holds a zero
        return without_zeros(mat.with_data(compare(mat.data, jnp.asarray(y))))
    dense = compare(x.todense(), y.todense() if sparse else jnp.asarray(y))
    return _mostly_stored(f"{name} with a number", dense, 5)


def extreme(x: BCOO, y: Any, largest: bool) -> Any:
    """The larger or the smaller of each element and a number, an array or another sparse array."""
    fun = jnp.maximum if largest else jnp.minimum
    if isinstance(y, BCOO):
        return pairwise(x, y, fun)
    y = jnp.asarray(y)
    if y.ndim == 0 and not is_traced(y):
        keeps = bool(np.asarray(y) <= 0) if largest else bool(np.asarray(y) >= 0)
        if keeps:
            mat = summed(x)
            return without_zeros(mat.with_data(fun(mat.data, y)))
    dense = fun(x.todense(), y)
    return dense if y.ndim else _mostly_stored("an extreme with a number", dense, 5)


def _mostly_stored(what: str, dense: Array, level: int) -> BCOO:
    """A dense result as a sparse one, with a warning."""
    warnings.warn(f"{what} that zeros change stores most elements.", SparseEfficiencyWarning,
                  stacklevel=level)
    return bcoo_fromdense(dense, nse=dense.size if is_traced(dense) else None)


def diagonal(mat: BCOO, k: int) -> Array:
    """The elements on diagonal `k` of a matrix."""
    rows, columns = mat.shape
    length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    if k <= -rows or k >= columns:
        length = 0
    r, c = columns_of(mat)
    at = index_math(lambda xp, r, c: xp.where(c - r == k, r + min(k, 0), length), r, c)
    kept = np.int32 if kind(mat.dtype) == "b" else mat.dtype
    out = jnp.zeros(length, kept).at[at].add(mat.data.astype(kept), mode="drop")
    return out.astype(mat.dtype)


def with_diagonal(mat: BCOO, values: Any, k: int) -> BCOO:
    """A matrix with other values on diagonal `k`: one for all, or as many as are given."""
    rows, columns = mat.shape
    if k <= -rows or k >= columns:
        raise ArgumentError(f"functrans.scipy.sparse: setdiag of diagonal {k}.",
                            where=user_source(), why=f"the matrix is {rows} by {columns}.")
    length = min(rows + min(k, 0), columns - max(k, 0))
    new = jnp.asarray(values).astype(mat.dtype)
    if new.ndim > 1:
        raise mismatch("functrans.scipy.sparse", f"setdiag of values of shape {new.shape}.")
    count = length if new.ndim == 0 else min(length, new.shape[0])
    new = jnp.broadcast_to(new, (count,)) if new.ndim == 0 else new[:count]
    r, c = columns_of(mat)
    first = max(-k, 0)

    def replaced(xp: Any, r: Any, c: Any) -> Any:
        return (c - r == k) & (r < first + count)

    at = np.arange(count) + first
    if not is_traced(r):
        kept = np.flatnonzero(~replaced(np, np.asarray(r), np.asarray(c)))
        data, r, c = mat.data[kept], np.asarray(r)[kept], np.asarray(c)[kept]
    else:
        data, r = mat.data, jnp.where(replaced(jnp, r, c), rows, r)
    join = lambda xp, a, b: xp.concatenate([a, b.astype(a.dtype)])
    return of_columns([index_math(join, r, at), index_math(join, c, at + k)],
                      jnp.concatenate([data, new]), mat.shape)
