"""BCOO: batched coordinates, with dense trailing axes, and what makes dense arrays of it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import concrete, shape_tuple
from functrans.numpy.updates import UPDATES, update
from functrans.sparse.base import (
    OPERATIONS,
    JAXSparse,
    check_index_dtype,
    index_dtype_for,
    mismatch,
    per_lane,
)
from functrans.tree_util import register_pytree_node_class
from functrans.typing import Array, ArrayLike

__all__ = ["BCOO", "bcoo_fromdense", "bcoo_todense"]


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array of batched coordinates: `BCOO((data, indices), shape=shape)`.

    An array of shape (*batch, *sparse, *dense) stores `nse` elements for each element of the batch:
    `indices` (*batch, nse, len(sparse)) are their places and `data` (*batch, nse, *dense) what
    stands there. Places that occur twice are added up, places out of bounds count for nothing. A
    batch axis may have size 1 in one of both. Indices are int32 or int64, others are converted.
    `indices_sorted` and `unique_indices` promise what they say. Raises ShapeError where the parts
    do not fit, and ArgumentError for indices that are no integers.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([2.0, 5.0]), jnp.array([[0, 1], [1, 0]])), shape=(2, 2))
    >>> m, (m @ jnp.array([1.0, 10.0])).tolist()
    (BCOO(float32[2,2], nse=2), [20.0, 5.0])
    >>> dense = m.todense()
    >>> sparse.BCOO.fromdense(dense).nse, m.transpose().todense().tolist()
    (2, [[0.0, 5.0], [2.0, 0.0]])
    >>> m.with_data(jnp.ones(2)).sort_indices().sum_duplicates().todense()
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    >>> m.update_layout(n_dense=1, on_inefficient=None).n_dense
    1
    >>> import scipy.sparse
    >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.coo_array(np.eye(3))).shape
    (3, 3)
    """

    indices: Array
    _parts: tuple[Array, Array, tuple[tuple[Array, ...], ...]] | None = None  # see sums.py

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[Any],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        data, indices = map(jnp.asarray, args)
        check_index_dtype("BCOO", indices)
        shape = shape_tuple(shape, "BCOO")
        indices = indices.astype(index_dtype_for(indices.dtype, shape))
        n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim else 0
        n_dense = data.ndim - n_batch - 1
        if n_batch < 0 or n_dense < 0 or n_batch + n_sparse + n_dense != len(shape):
            raise mismatch("BCOO", f"data {data.shape} and indices {indices.shape} are no array "
                           f"of shape {shape}.", "data of shape (*batch, nse, *dense) and indices "
                           "of shape (*batch, nse, n_sparse)")
        batch, dense = shape[:n_batch], shape[n_batch + n_sparse:]
        if (data.shape[n_batch] != indices.shape[n_batch] or data.shape[n_batch + 1:] != dense
                or not _fits(data.shape, batch) or not _fits(indices.shape, batch)):
            raise mismatch("BCOO", f"data {data.shape} and indices {indices.shape} are not those "
                           f"of shape {shape}.")
        if any(max(a, b) != n for a, b, n in zip(data.shape, indices.shape, batch)) or 0 in batch:
            data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
        self.data, self.indices = data, indices
        self._sizes = shape[n_batch:n_batch + n_sparse]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return len(self._sizes)

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def nse(self) -> int:
        """The number of stored elements, of each element of a batch."""
        return self.indices.shape[-2]

    @property
    def batch_shape(self) -> tuple[Any, ...]:
        """The sizes of the batch axes."""
        return tuple(b if a == 1 else a for a, b in
                     zip(self.data.shape[:self.n_batch], self.indices.shape[:self.n_batch]))

    @property
    def sparse_shape(self) -> tuple[Any, ...]:
        """The sizes of the sparse axes."""
        return self._sizes

    @property
    def dense_shape(self) -> tuple[Any, ...]:
        """The sizes of the dense axes."""
        return tuple(self.data.shape[self.n_batch + 1:])

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""
        # from the leaves, so that vmap and scan need not know of batch axes
        return (*self.batch_shape, *self._sizes, *self.dense_shape)

    def with_data(self, data: Any) -> BCOO:
        """An array with other values at the same places."""
        return self._replace(data, self.indices)

    def _replace(self, data: Any, indices: Any) -> BCOO:
        return BCOO.tree_unflatten((self._sizes, self.indices_sorted, self.unique_indices),
                                   (data, indices))

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        """Data and indices, and what is static."""
        return (self.data, self.indices), (self._sizes, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Any) -> BCOO:
        """The array of `tree_flatten`."""
        found = object.__new__(cls)
        found.data, found.indices = children
        found._sizes, found.indices_sorted, found.unique_indices = aux
        return found

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The elements of a dense array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """The array of a SciPy sparse matrix of any format."""
        if n_dense or n_batch:
            raise ArgumentError("BCOO.from_scipy_sparse: n_dense and n_batch are 0.",
                                where=user_source(), fix="x.update_layout(n_batch=, n_dense=)")
        coo = mat.tocoo()
        columns = getattr(coo, "coords", None) or (coo.row, coo.col)
        dtype = index_dtype_for(index_dtype or np.int32, coo.shape)
        return cls((coo.data, np.stack(columns, axis=-1).astype(dtype)), shape=coo.shape)

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[Any] | None = None) -> BCOO:
        """The array with its axes in another order."""
        out: BCOO = OPERATIONS["transpose"](self, axes)
        return out

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = "error") -> BCOO:
        """The array with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        out: BCOO = OPERATIONS["update_layout"](self, n_batch=n_batch, n_dense=n_dense,
                                                on_inefficient=on_inefficient)
        return out

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with each place once, in order; `nse` is needed where indices are traced."""
        out: BCOO = OPERATIONS["eliminate_zeros" if remove_zeros else "sum_duplicates"](self, nse)
        return out

    def sort_indices(self) -> BCOO:
        """The array with its places in row-major order."""
        out: BCOO = OPERATIONS["sort_indices"](self)
        return out


def _fits(shape: tuple[Any, ...], batch: tuple[Any, ...]) -> bool:
    return all(n in (1, m) for n, m in zip(shape, batch))


def full_batch(mat: BCOO) -> BCOO:
    """The array with both parts of the whole batch."""
    n, batch = mat.n_batch, mat.batch_shape
    if mat.data.shape[:n] == batch and mat.indices.shape[:n] == batch:
        return mat
    return mat._replace(jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[n:])),
                        jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[n:])))


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a BCOO array.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_todense(sparse.BCOO((jnp.array([4.0]), jnp.array([[1]])), shape=(3,))).tolist()
    [0.0, 4.0, 0.0]
    """
    sizes = mat.sparse_shape

    def lane(data: Array, indices: Array) -> Array:
        if not sizes:
            return data.sum(axis=0).astype(data.dtype)
        out = jnp.zeros((*sizes, *data.shape[1:]), data.dtype)
        return add_at(out, indices, data, mat.indices_sorted)

    mat = full_batch(mat)
    out: Array = per_lane(lane, mat.n_batch)(mat.data, mat.indices)
    return out


def add_at(out: Array, indices: Array, rows: Array, is_sorted: bool = False) -> Array:
    """`out` with rows added at index vectors; those out of bounds are left out."""
    columns = tuple([indices[:, k] for k in range(indices.shape[1])])
    if not columns:
        return out + rows.sum(axis=0).astype(out.dtype)
    return update(out, columns, rows, UPDATES["add"], mode="drop", indices_are_sorted=is_sorted,
                  wrap_negative_indices=False)


def read_at(x: Array, indices: Array) -> Array:
    """The rows of x at index vectors over its leading axes; 0 where these are out of bounds."""
    columns = tuple([indices[:, k] for k in range(indices.shape[1])])
    if not columns:
        return jnp.broadcast_to(x, (indices.shape[0], *x.shape))
    return x.at[columns].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:
    """The BCOO array of a dense one: what is not zero, of `nse` places in each element of a batch.

    `nse` is the largest number of places that are not zero unless given, which needs values that
    are known: give it under jit. The last `n_dense` axes are stored as they are. Raises
    ArgumentError where there are fewer axes than n_batch + n_dense.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.eye(3)).indices.tolist()
    [[0, 0], [1, 1], [2, 2]]
    """
    x = jnp.asarray(mat)
    check_index_dtype("bcoo_fromdense", np.zeros((), index_dtype))
    index_dtype = index_dtype_for(index_dtype, x.shape)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > x.ndim:
        raise ArgumentError(f"bcoo_fromdense: an array of {x.ndim} axes has no n_batch={n_batch} "
                            f"and n_dense={n_dense}.", where=user_source())
    sizes = tuple(x.shape[n_batch:x.ndim - n_dense])
    mask = jnp.any(x != 0, axis=tuple(range(x.ndim - n_dense, x.ndim)))
    if nse is None:
        counts = jnp.sum(mask, axis=tuple(range(n_batch, mask.ndim)))
        nse = int(concrete("bcoo_fromdense", counts, "nse", "bcoo_fromdense(x, nse=n)")
                  .max(initial=0))
    count = operator.index(nse)
    if count < 0:
        raise ArgumentError(f"bcoo_fromdense: nse={count}.", where=user_source(),
                            fix="the number of elements to store")

    def lane(x: Array, mask: Array) -> tuple[Array, Array]:
        if not sizes:
            rows = jnp.zeros((count, *x.shape), x.dtype)
            return (rows.at[0].set(x) if count else rows), jnp.zeros((count, 0), index_dtype)
        columns = jnp.nonzero(mask, size=count, fill_value=sizes)
        indices = jnp.stack(columns, axis=-1).astype(index_dtype)
        return read_at(x, indices), indices

    data, indices = per_lane(lane, n_batch)(x, mask)
    return BCOO((data, indices), shape=x.shape, indices_sorted=True, unique_indices=True)


publish(globals(), __all__)
