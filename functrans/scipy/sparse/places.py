"""Where the elements of sparse arrays stand: on the host where places are known, else traced.

Under `jit` an operation on known indices would be recorded, and sizes that follow from it would be
unknown. What is computed of places alone is therefore NumPy's wherever these are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import kind
from functrans.core.errors import ConcretizationError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import concrete_value, is_traced, staged
from functrans.sparse.base import index_dtype_for, keys, outside
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR
from functrans.sparse.layout import bcoo_sum_duplicates
from functrans.typing import Array

NDArray = np.ndarray[Any, Any]


def index_math(fun: Callable[..., Any], *indices: Any) -> Any:
    """`fun(np, ...)` of known indices as arrays; `fun(jnp, ...)` where one is traced."""
    if any(map(is_traced, indices)):
        return fun(jnp, *indices)
    found = fun(np, *map(_value, indices))
    return tuple(map(jnp.asarray, found)) if isinstance(found, tuple) else jnp.asarray(found)


def _value(x: Any) -> NDArray:
    return np.asarray(concrete_value(x) if isinstance(x, Tracer) else x)


def known_places(name: str, *indices: Any, why: str = "", fix: str = "") -> list[NDArray]:
    """The values of indices; ConcretizationError where they are traced."""
    if any(map(is_traced, indices)):
        raise ConcretizationError(
            f"functrans.scipy.sparse.{name} needs indices that are known, and these are traced.",
            where=user_source(),
            why=why or "how much the result stores depends on where elements are.",
            fix=fix or "make the array outside of jit, and pass values alone: m.with_data(data)")
    return [_value(x) for x in indices]


def values_known(*xs: Any) -> bool:
    """Whether values are known, and no derivative is taken in them."""
    return not any(isinstance(x, Tracer) for x in xs)


def of_columns(columns: Sequence[Any], data: Any, sizes: tuple[Any, ...], is_sorted: bool = False,
               is_unique: bool = False) -> BCOO:
    """The coordinates of elements whose index vectors are given column by column."""
    dtype = index_dtype_for(np.int32, sizes)
    if columns:
        indices = index_math(lambda xp, *c: xp.stack(c, axis=-1).astype(dtype), *columns)
    else:
        indices = jnp.asarray(np.zeros((data.shape[0], 0), dtype))
    return BCOO.tree_unflatten((tuple(sizes), is_sorted, is_unique), (data, indices))


def columns_of(mat: BCOO) -> list[Any]:
    """The index vectors of elements, column by column."""
    count = len(mat.sparse_shape)
    if not count:
        return []
    found = index_math(lambda xp, at: tuple(at[..., k] for k in range(count)), mat.indices)
    return list(found)


def compact(mat: BCOO) -> BCOO:
    """The array without elements out of bounds, where indices are known."""
    if is_traced(mat.indices):
        return mat
    at = np.asarray(mat.indices)
    if not at.size or all(column.min() >= 0 and column.max() < n
                          for column, n in zip(at.T, mat.sparse_shape)):
        return mat
    inside = ((at >= 0) & (at < np.asarray(mat.sparse_shape, at.dtype))).all(axis=-1)
    return chosen(mat, np.flatnonzero(inside))


def chosen(mat: BCOO, numbers: NDArray) -> BCOO:
    """The array of some of the elements, in order, where indices are known."""
    return BCOO.tree_unflatten((mat.sparse_shape, mat.indices_sorted, mat.unique_indices),
                               (mat.data[numbers], jnp.asarray(np.asarray(mat.indices)[numbers])))


def summed(mat: BCOO) -> BCOO:
    """The array with each place once and in order, exactly where indices are known.

    Traced ones have room for all that was stored: what is left over is zeros out of bounds.
    """
    if mat.unique_indices and mat.indices_sorted:
        return mat
    if is_traced(mat.indices):
        return bcoo_sum_duplicates(mat, nse=mat.nse)
    mat = compact(mat)
    if not mat.nse or not mat.sparse_shape:
        flags = (mat.sparse_shape, True, mat.nse < 2)
        return BCOO.tree_unflatten(flags, (mat.data, mat.indices))
    at = np.asarray(mat.indices)
    key = flat_keys(at, mat.sparse_shape)
    if (key[1:] > key[:-1]).all():
        return BCOO.tree_unflatten((mat.sparse_shape, True, True), (mat.data, mat.indices))
    if not staged(mat.data, mat.indices) and mat.data.ndim == 1:
        return bcoo_sum_duplicates(mat)
    order = np.argsort(key, kind="stable")  # two sorted runs are merged
    key, ordered = key[order], at[order]
    first = np.r_[True, key[1:] != key[:-1]]
    number = np.cumsum(first) - 1
    data = mat.data[order]
    if not first.all():
        zeros = jnp.zeros((int(number[-1]) + 1, *data.shape[1:]),
                          np.int32 if kind(data.dtype) == "b" else data.dtype)
        data = zeros.at[number].add(data.astype(zeros.dtype)).astype(data.dtype)
    return BCOO.tree_unflatten((mat.sparse_shape, True, True), (data, jnp.asarray(ordered[first])))


def elements_of(lines: NDArray, pointers: NDArray) -> tuple[NDArray, NDArray]:
    """The numbers of the elements of some rows, one row after the other, and pointers into them."""
    first, counts = pointers[lines], pointers[lines + 1] - pointers[lines]
    starts = np.r_[0, np.cumsum(counts)]
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], counts), starts


def flat_keys(at: NDArray, sizes: tuple[Any, ...]) -> NDArray:
    """Numbers in the order of index vectors that are in bounds, equal where these are."""
    if math.prod(sizes) > np.iinfo(np.int64).max:
        _, number = np.unique(at, axis=0, return_inverse=True)
        return np.reshape(number, -1)
    key = np.zeros(at.shape[0], np.int64)
    for k, n in enumerate(sizes):
        key *= n
        key += at[:, k]
    return key


def without_zeros(mat: BCOO) -> BCOO:
    """The array with each place once and no zeros stored, where values are known."""
    mat = summed(mat)
    if is_traced(mat.indices) or not values_known(mat.data):
        return mat
    kept = np.asarray(mat.data) != 0
    return mat if kept.all() else chosen(mat, np.flatnonzero(kept))


def beside(x: BCOO, y: BCOO) -> BCOO:
    """The places of two arrays of one shape, each with both values: data of shape (nse, 2)."""
    dtype = jnp.result_type(x.data, y.data)
    parts = []
    for k, mat in enumerate((x, y)):
        data = mat.data.astype(dtype)
        pair = [data, jnp.zeros_like(data)]
        parts.append(jnp.stack(pair if k == 0 else pair[::-1], axis=-1))
    indices = index_math(lambda xp, a, b: xp.concatenate([a, b]), x.indices, y.indices)
    return summed(BCOO.tree_unflatten((x.sparse_shape, False, False),
                                      (jnp.concatenate(parts), indices)))


def values_at(mat: BCOO, columns: Sequence[Any]) -> Array:
    """The elements at index vectors, which are in bounds."""
    mat = summed(mat)
    sizes = mat.sparse_shape
    wanted = jnp.stack([jnp.asarray(c).astype(mat.indices.dtype) for c in columns], axis=-1)
    if not mat.nse:
        return jnp.zeros(wanted.shape[:-1], mat.dtype)
    (stored, sought), _ = keys(sizes, mat.indices, wanted.reshape(-1, len(sizes)))
    at = jnp.minimum(jnp.searchsorted(stored, sought), mat.nse - 1)
    found = jnp.where(stored[at] == sought, mat.data[at], jnp.zeros((), mat.dtype))
    return found.reshape(wanted.shape[:-1])


def compressed(mat: BCOO) -> tuple[Any, Any, Any]:
    """Data, columns and pointers of the rows of a matrix, whose duplicates stay."""
    rows, columns = mat.sparse_shape
    if is_traced(mat.indices):
        from_traced = _traced_rows(mat)
        return from_traced
    mat = compact(mat)
    if not staged(mat.data, mat.indices):
        m = BCSR.from_bcoo(mat)
        return m.data, m.indices, m.indptr
    at, data = np.asarray(mat.indices), mat.data
    if not mat.indices_sorted:
        order = np.argsort(flat_keys(at, mat.sparse_shape), kind="stable")
        at, data = at[order], data[order]
    index = index_dtype_for(at.dtype, (rows, columns, mat.nse))
    starts = np.zeros(rows + 1, index)
    np.cumsum(np.bincount(at[:, 0], minlength=rows)[:rows], out=starts[1:])
    return data, jnp.asarray(at[:, 1].astype(index)), jnp.asarray(starts)


def _traced_rows(mat: BCOO) -> tuple[Any, Any, Any]:
    sizes = mat.sparse_shape
    beyond = outside(mat.indices, sizes)
    (at,), _ = keys(sizes, mat.indices)
    order = jnp.argsort(at, stable=True)
    # what is out of bounds stands last, in no row
    rows = jnp.where(beyond, sizes[0], mat.indices[:, 0])[order]
    starts = jnp.searchsorted(rows, jnp.arange(sizes[0] + 1, dtype=rows.dtype))
    index = mat.indices.dtype
    return mat.data[order], mat.indices[:, 1][order].astype(index), starts.astype(index)


def is_inside(mat: BCOO) -> Any:
    """Whether each element is in bounds; None where all are known to be."""
    return None if not is_traced(mat.indices) else ~outside(mat.indices, mat.sparse_shape)

