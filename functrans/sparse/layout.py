"""BCOO arrays in another order or layout: sorted, without duplicates, with other batch axes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

from functrans import numpy as jnp
from functrans._runtime import sum_coordinates
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import axis_tuple, concrete
from functrans.sparse.base import (
    OPERATIONS,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    index_dtype_for,
    keys,
    mismatch,
    per_lane,
)
from functrans.sparse.bcoo import BCOO, full_batch
from functrans.sparse.sums import Part, made_of, parts_of, sum_of_parts, without_zeros
from functrans.typing import Array

__all__ = ["bcoo_eliminate_zeros", "bcoo_sort_indices", "bcoo_sum_duplicates", "bcoo_transpose",
           "bcoo_update_layout"]


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its places in row-major order, those out of bounds last.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))
    >>> sparse.bcoo_sort_indices(m).data.tolist()
    [2.0, 1.0]
    """
    if mat.indices_sorted:
        return mat
    sizes = mat.sparse_shape
    mat = full_batch(mat)

    def lane(data: Array, indices: Array) -> tuple[Array, Array]:
        (at,), _ = keys(sizes, indices)
        order = jnp.argsort(at, stable=True)
        return data[order], indices[order]

    data, indices = per_lane(lane, mat.n_batch)(mat.data, mat.indices)
    return BCOO.tree_unflatten((sizes, True, mat.unique_indices), (data, indices))


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with each place once, in order, what stood at equal places added up.

    `nse` is the number of places that the result has room for, the largest that is needed unless
    given; places beyond it are lost. Raises ConcretizationError for traced indices without `nse`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1.0, 2.0, 4.0]), jnp.array([[3], [0], [3]])), shape=(4,))
    >>> sparse.bcoo_sum_duplicates(m).data.tolist()
    [2.0, 5.0]
    """
    sizes = mat.sparse_shape
    if mat.unique_indices and mat.indices_sorted and nse in (None, mat.nse):
        return mat
    if not mat.n_batch and len(sizes) == 2:  # known: by the runtime
        at_once = sum_coordinates(mat.data, mat.indices, *sizes,
                                  None if nse is None else operator.index(nse))
        if at_once is not NotImplemented:
            return BCOO.tree_unflatten((sizes, True, True), at_once)
    return _with_sums(mat, parts_of(mat), nse)


def _with_sums(mat: BCOO, parts: Sequence[Part], nse: int | None) -> BCOO:
    """The sum of the parts of `mat`."""
    sizes, n = mat.sparse_shape, mat.n_batch
    room = mat.nse if nse is None else operator.index(nse)
    if room < 0:
        raise ArgumentError(f"bcoo_sum_duplicates: nse={room}.", where=user_source(),
                            fix="the number of places to store")
    data, indices = sum_of_parts(parts, sizes, room, mat.dtype)
    if nse is None:
        counts = jnp.sum(indices[..., 0] < sizes[0], axis=n) if sizes else jnp.asarray(min(1, room))
        most = int(concrete("bcoo_sum_duplicates", counts, "nse", "x.sum_duplicates(nse=n)")
                   .max(initial=0))
        data, indices = (jnp.moveaxis(jnp.moveaxis(x, n, 0)[:most], 0, n) for x in (data, indices))
    return BCOO.tree_unflatten((sizes, True, True), (data, indices))


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array without the places that store zeros, each place once; see `bcoo_sum_duplicates`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([0.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))
    >>> sparse.bcoo_eliminate_zeros(m).indices.tolist()
    [[0]]
    """
    sizes, parts = mat.sparse_shape, parts_of(mat)
    mat = full_batch(mat)
    found = BCOO.tree_unflatten((sizes, False, False),
                                without_zeros((mat.data, mat.indices), sizes))
    return bcoo_sum_duplicates(made_of(found, [without_zeros(p, sizes) for p in parts]), nse)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The array with other numbers of batch and dense axes.

    Sparse axes that become dense or batch axes store zeros. `on_inefficient` says what happens
    then: "error", "warn" or None. Raises SparseEfficiencyError, or ArgumentError where there are
    not as many axes.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_update_layout(sparse.eye(3), n_dense=1, on_inefficient=None).data.shape
    (3, 3)
    """
    if on_inefficient not in ("error", "warn", None):
        raise ArgumentError(f"bcoo_update_layout: on_inefficient is 'error', 'warn' or None, not "
                            f"{on_inefficient!r}.", where=user_source())
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ArgumentError(f"bcoo_update_layout: an array of {mat.ndim} axes has no n_batch="
                            f"{n_batch} and n_dense={n_dense}.", where=user_source())
    shape = mat.shape
    stored = (*shape[mat.n_batch:n_batch], *shape[mat.ndim - n_dense:mat.ndim - mat.n_dense])
    if any(n > 1 for n in stored):
        what = (f"bcoo_update_layout: sparse axes of sizes {stored} that become batch or dense "
                "axes store zeros.")
        if on_inefficient == "error":
            raise SparseEfficiencyError(what, where=user_source(),
                                        fix="on_inefficient='warn' or None")
        if on_inefficient == "warn":
            warnings.warn(what, SparseEfficiencyWarning, stacklevel=3)
    mat = full_batch(mat)
    for _ in range(mat.n_dense - n_dense):
        mat = _dense_to_sparse(mat)
    for _ in range(mat.n_batch - n_batch):
        mat = _batch_to_sparse(mat)
    for _ in range(n_dense - mat.n_dense):
        mat = _sparse_to_dense(mat)
    for _ in range(n_batch - mat.n_batch):
        mat = _sparse_to_batch(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense axis becomes the last sparse one."""
    k, nse = mat.dense_shape[0], mat.nse
    batch = mat.batch_shape
    data = mat.data.reshape(*batch, nse * k, *mat.dense_shape[1:])
    old = mat.indices.astype(index_dtype_for(mat.indices.dtype, (k,)))
    old = jnp.broadcast_to(old[..., None, :], (*batch, nse, k, mat.n_sparse))
    new = jnp.broadcast_to(jnp.arange(k, dtype=old.dtype)[:, None], (*batch, nse, k, 1))
    indices = jnp.concatenate([old, new], axis=-1).reshape(*batch, nse * k, mat.n_sparse + 1)
    return BCOO.tree_unflatten(((*mat.sparse_shape, k), mat.indices_sorted, mat.unique_indices),
                               (data, indices))


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch axis becomes the first sparse one."""
    *batch, k = mat.batch_shape
    nse = mat.nse
    data = mat.data.reshape(*batch, k * nse, *mat.dense_shape)
    old = mat.indices.astype(index_dtype_for(mat.indices.dtype, (k,)))
    new = jnp.broadcast_to(jnp.arange(k, dtype=old.dtype)[:, None, None], (*batch, k, nse, 1))
    indices = jnp.concatenate([new, old], axis=-1)
    # padding stands behind the places of its lane, which are not in order then
    return BCOO.tree_unflatten(((k, *mat.sparse_shape), False, mat.unique_indices),
                               (data, indices.reshape(*batch, k * nse, mat.n_sparse + 1)))


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """The last sparse axis becomes the first dense one."""
    n, k = mat.n_batch, mat.sparse_shape[-1]
    at = mat.indices[..., -1]
    here = at[..., None] == jnp.arange(k, dtype=at.dtype)
    rows = jnp.expand_dims(mat.data, n + 1)
    here = here.reshape(*here.shape, *[1] * mat.n_dense)
    data = jnp.where(here, rows, jnp.zeros((), mat.dtype))
    return BCOO.tree_unflatten((mat.sparse_shape[:-1], False, False), (data, mat.indices[..., :-1]))


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """The first sparse axis becomes the last batch one; each lane has room for all places."""
    n, k = mat.n_batch, mat.sparse_shape[0]
    at = jnp.expand_dims(mat.indices[..., 0], n)
    here = at == jnp.arange(k, dtype=at.dtype)[:, None]  # (*batch, k, nse)
    outside = jnp.asarray(mat.sparse_shape[1:], dtype=at.dtype)
    indices = jnp.where(here[..., None], jnp.expand_dims(mat.indices[..., 1:], n), outside)
    data = jnp.where(here.reshape(*here.shape, *[1] * mat.n_dense), jnp.expand_dims(mat.data, n),
                     jnp.zeros((), mat.dtype))
    return BCOO.tree_unflatten((mat.sparse_shape[1:], False, mat.unique_indices), (data, indices))


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[Any]) -> BCOO:
    """The array with axis `permutation[i]` as axis i.

    Batch, sparse and dense axes stay among themselves; where the permutation mixes them the result
    has sparse axes alone. Raises ShapeError where it is no permutation.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([2.0]), jnp.array([[0, 1]])), shape=(2, 3))
    >>> sparse.bcoo_transpose(m, permutation=(1, 0)).todense().tolist()
    [[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]
    """
    order = tuple(operator.index(a) for a in permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise mismatch("bcoo_transpose", f"{order} is no permutation of {mat.ndim} axes.")
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    groups = order[:n], order[n:end], order[end:]
    if sorted(groups[0]) != list(range(n)) or sorted(groups[1]) != list(range(n, end)):
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
        groups, n = ((), order, ()), 0
        end = mat.ndim
    columns = [a - n for a in groups[1]]
    indices = mat.indices if columns == list(range(len(columns))) else jnp.stack(
        [mat.indices[..., c] for c in columns], axis=-1)
    indices = jnp.transpose(indices, (*groups[0], n, n + 1))
    data = jnp.transpose(mat.data, (*groups[0], n, *[a - end + n + 1 for a in groups[2]]))
    sizes = tuple([mat.sparse_shape[c] for c in columns])
    is_sorted = mat.indices_sorted and columns == list(range(len(columns)))
    return BCOO.tree_unflatten((sizes, is_sorted, mat.unique_indices), (data, indices))


def _transposed(mat: BCOO, axes: Sequence[Any] | None) -> BCOO:
    order = tuple(range(mat.ndim)[::-1]) if axes is None else \
        axis_tuple(tuple(axes), mat.ndim, "transpose")
    return bcoo_transpose(mat, permutation=order)


OPERATIONS.update(transpose=_transposed, update_layout=bcoo_update_layout,
                  sum_duplicates=bcoo_sum_duplicates, eliminate_zeros=bcoo_eliminate_zeros,
                  sort_indices=bcoo_sort_indices)
publish(globals(), __all__)
