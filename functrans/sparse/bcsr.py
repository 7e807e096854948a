"""BCSR: batched compressed rows, with dense trailing axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans._runtime import csr_times_csr, rows_of_coordinates
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import concrete, is_traced, shape_tuple
from functrans.sparse.base import (
    JAXSparse,
    check_index_dtype,
    index_dtype_for,
    mismatch,
    outside,
    per_lane,
)
from functrans.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_todense
from functrans.sparse.layout import bcoo_sort_indices
from functrans.sparse.movement import bcoo_broadcast_in_dim, bcoo_concatenate
from functrans.sparse.products import DotDimensionNumbers, bcoo_dot_general, bcoo_extract
from functrans.sparse.rows import coordinates, csr_matmul, csr_matmul_transposed, pointers
from functrans.sparse.sums import Part, made_of, sum_of_parts, without_zeros
from functrans.tree_util import register_pytree_node_class
from functrans.typing import Array, ArrayLike

__all__ = ["BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general",
           "bcsr_extract", "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense"]


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array of batched compressed rows: `BCSR((data, indices, indptr), shape=shape)`.

    An array of shape (*batch, rows, columns, *dense) stores the elements of a row side by side:
    row i of a batch has the elements from `indptr[i]` to before `indptr[i + 1]` of `data`
    (*batch, nse, *dense), in the columns `indices` (*batch, nse). Elements before the first pointer
    and behind the last belong to no row; a pointer that is less than one before it is as large as
    that. Indices are int32 or int64, others are converted. Raises ShapeError where the parts do
    not fit, and ArgumentError for indices that are no integers.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0], [5.0, 0.0]]))
    >>> m.indptr.tolist(), (m @ jnp.array([1.0, 10.0])).tolist()
    ([0, 1, 1, 2], [20.0, 0.0, 5.0])
    >>> m.to_bcoo(), sparse.BCSR.from_bcoo(m.to_bcoo())
    (BCOO(float32[3,2], nse=2), BCSR(float32[3,2], nse=2))
    >>> m.transpose().shape, m.todense()[2]
    ((2, 3), Array([5., 0.], dtype=float32))
    >>> m.with_data(jnp.ones(2)).sum_duplicates().todense()[0]
    Array([0., 1.], dtype=float32)
    >>> import scipy.sparse
    >>> sparse.BCSR.from_scipy_sparse(scipy.sparse.csr_array(np.eye(3))).shape
    (3, 3)
    """

    indices: Array
    indptr: Array

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[Any],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        data, indices, indptr = map(jnp.asarray, args)
        for part in (indices, indptr):
            check_index_dtype("BCSR", part)
        sizes = shape_tuple(shape, "BCSR")
        indices, indptr = (p.astype(index_dtype_for(p.dtype, sizes)) for p in (indices, indptr))
        n = indices.ndim - 1
        n_dense = data.ndim - n - 1
        if n < 0 or n_dense < 0 or n + 2 + n_dense != len(sizes) or indptr.ndim != n + 1:
            raise mismatch("BCSR", f"data {data.shape}, indices {indices.shape} and indptr "
                           f"{indptr.shape} are no array of shape {sizes}.",
                           "data of shape (*batch, nse, *dense), indices of shape (*batch, nse), "
                           "indptr of shape (*batch, rows + 1)")
        wanted = ((*sizes[:n], indices.shape[-1], *sizes[n + 2:]), (*sizes[:n], indices.shape[-1]),
                  (*sizes[:n], sizes[n] + 1))
        parts = []
        for x, full in zip((data, indices, indptr), wanted, strict=True):
            if len(x.shape) != len(full) or x.shape[n:] != full[n:] or \
                    any(a not in (1, b) for a, b in zip(x.shape, full)):
                raise mismatch("BCSR", f"data {data.shape}, indices {indices.shape} and indptr "
                               f"{indptr.shape} are not those of shape {sizes}.")
            parts.append(jnp.broadcast_to(x, full))
        self.data, self.indices, self.indptr = parts
        self._columns = sizes[n + 1]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indptr.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, which is 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def nse(self) -> int:
        """The number of stored elements, of each element of a batch."""
        return self.indices.shape[-1]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense array."""
        n = self.n_batch
        return (*self.indptr.shape[:n], self.indptr.shape[-1] - 1, self._columns,
                *self.data.shape[n + 1:])

    def with_data(self, data: Any) -> BCSR:
        """An array with other values at the same places."""
        return BCSR.tree_unflatten(self.tree_flatten()[1], (data, self.indices, self.indptr))

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The three parts, and what is static."""
        return ((self.data, self.indices, self.indptr),
                (self._columns, self.indices_sorted, self.unique_indices))

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Any) -> BCSR:
        """The array of `tree_flatten`."""
        found = object.__new__(cls)
        found.data, found.indices, found.indptr = children
        found._columns, found.indices_sorted, found.unique_indices = aux
        return found

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The elements of a dense array that are not zero; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """The array of a SciPy sparse matrix of any format."""
        if n_dense or n_batch:
            raise mismatch("BCSR.from_scipy_sparse", "n_dense and n_batch are 0.")
        csr = mat.tocsr()
        dtype = index_dtype_for(index_dtype or np.int32, (*csr.shape, csr.nnz))
        return cls((csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype)),
                   shape=csr.shape, indices_sorted=bool(csr.has_sorted_indices),
                   unique_indices=bool(csr.has_canonical_format))

    def to_bcoo(self) -> BCOO:
        """The same array as batched coordinates."""
        sizes = (self.indptr.shape[-1] - 1, self._columns)
        indices = coordinates([self.indices], [self.indptr])
        found = BCOO.tree_unflatten((sizes, self.indices_sorted, self.unique_indices),
                                    (self.data, indices))
        return made_of(found, [(self.data, self.indices, self.indptr)])

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array of batched coordinates with two sparse axes."""
        if arr.n_sparse != 2:
            raise mismatch("BCSR.from_bcoo", f"{arr!r} has {arr.n_sparse} sparse axes, not 2.",
                           "x.update_layout(n_batch=, n_dense=)")
        rows, columns = arr.sparse_shape
        at_once = rows_of_coordinates(arr.data, arr.indices, rows, columns, arr.indices_sorted)
        if at_once is not NotImplemented:
            data, indices, indptr, order = at_once
            data = data if order is None else data[order]
            return cls.tree_unflatten((columns, True, arr.unique_indices), (data, indices, indptr))
        arr = bcoo_sort_indices(arr)
        # of size 1 along a batch axis: the whole batch, as each lane has pointers
        batch = arr.batch_shape
        indices = jnp.broadcast_to(arr.indices, (*batch, arr.nse, 2))
        data = jnp.broadcast_to(arr.data, (*batch, *arr.data.shape[arr.n_batch:]))
        # places out of bounds stand last where we have sorted, and anywhere where the caller has:
        # they stay in the row of the one before them, in no column
        beyond = outside(indices, arr.sparse_shape)
        number = lax.cummax(jnp.where(beyond, 0, indices[..., 0]), axis=arr.n_batch)
        dtype = index_dtype_for(indices.dtype, (arr.nse,))
        indptr = per_lane(lambda r: pointers(r, rows, dtype), arr.n_batch)(number)
        return cls.tree_unflatten((columns, True, arr.unique_indices), (
            data, jnp.where(beyond, columns, indices[..., 1]).astype(dtype), indptr))

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self.to_bcoo())

    def transpose(self, axes: Sequence[Any] | None = None) -> Any:
        """The array with its axes in another order."""
        out = self.to_bcoo().transpose(axes)
        return BCSR.from_bcoo(out) if out.n_sparse == 2 else out

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with each place once, in order; `nse` is needed where indices are traced."""
        if self.unique_indices and self.indices_sorted and not remove_zeros and \
                nse in (None, self.nse):
            return self
        part = self.data, self.indices, self.indptr
        return _sum_of([without_zeros(part, self.shape[self.n_batch:self.n_batch + 2])
                        if remove_zeros else part], self, self.dtype, nse)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCSR:
    """The BCSR array of a dense one; see `bcoo_fromdense` for the arguments.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.eye(3)).indptr.tolist()
    [0, 1, 2, 3]
    """
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                         index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a BCSR array.

    >>> from functrans.experimental import sparse
    >>> sparse.bcsr_todense(sparse.eye(2, sparse_format="bcsr")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with each place once, in order; see `bcoo_sum_duplicates`.

    >>> from functrans.experimental import sparse
    >>> sparse.bcsr_sum_duplicates(sparse.eye(2, sparse_format="bcsr"), 3).nse
    3
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def sum_of_rows(mats: Sequence[BCSR]) -> BCSR:
    """The sum of arrays of one layout, with room for all that is stored unless it is known."""
    parts = [(m.data, m.indices, m.indptr) for m in mats]
    nse = sum(m.nse for m in mats) if any(map(is_traced, [x for p in parts for x in p])) else None
    return _sum_of(parts, mats[0], jnp.result_type(*[m.data for m in mats]), nse)


def _sum_of(parts: Sequence[Part], mat: BCSR, dtype: Any, nse: int | None) -> BCSR:
    """The sum of parts of arrays like `mat`, with the room that it needs if `nse` is not given."""
    n = mat.n_batch
    room = sum(p[1].shape[-1] for p in parts) if nse is None else operator.index(nse)
    if room < 0:
        raise ArgumentError(f"BCSR.sum_duplicates: nse={room}.", where=user_source(),
                            fix="the number of places to store")
    data, indices, indptr = sum_of_parts(parts, mat.shape[n:n + 2], room, dtype, to_rows=True)
    if nse is None:
        count = int(concrete("BCSR.sum_duplicates", indptr[..., -1], "nse",
                             "x.sum_duplicates(nse=n)").max(initial=0))
        data, indices = (jnp.moveaxis(jnp.moveaxis(x, n, 0)[:count], 0, n)
                         for x in (data, indices))
    return BCSR.tree_unflatten((mat._columns, True, True), (data, indices, indptr))


def bcsr_extract(sparr: BCSR, arr: ArrayLike) -> BCSR:
    """The elements of a dense array at the places of a sparse one, as a sparse array.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_extract(m, jnp.array([[1.0, 2.0], [3.0, 4.0]])).data.tolist()
    [1.0, 4.0]
    """
    return sparr.with_data(bcoo_extract(sparr.to_bcoo(), arr).data)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays of one layout one after the other along an axis; see `bcoo_concatenate`.

    >>> from functrans.experimental import sparse
    >>> m = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_concatenate([m, m], dimension=0).shape
    (4, 2)
    """
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[Any],
                          broadcast_dimensions: Sequence[Any]) -> BCSR:
    """The array repeated to `shape`; see `bcoo_broadcast_in_dim`.

    >>> from functrans.experimental import sparse
    >>> m = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_broadcast_in_dim(m, shape=(3, 2, 2), broadcast_dimensions=(1, 2)).shape
    (3, 2, 2)
    """
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape,
                                                broadcast_dimensions=broadcast_dimensions))


def rows_times_rows(x: BCSR, y: BCSR) -> Any:
    """The product of two matrices on known arrays of one dtype; else NotImplemented."""
    if x.ndim != 2 or y.ndim != 2 or x._columns != y.indptr.shape[0] - 1:
        return NotImplemented
    out = csr_times_csr(x.data, x.indices, x.indptr, y.data, y.indices, y.indptr, y._columns)
    return out if out is NotImplemented else BCSR.tree_unflatten((y._columns, True, True), out)


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: DotDimensionNumbers,
                     precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of `lax.dot_general` with compressed rows; see `bcoo_dot_general`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_dot_general(m, jnp.array([3.0, 4.0]),
    ...                         dimension_numbers=(((1,), (0,)), ((), ()))).tolist()
    [3.0, 4.0]
    """
    (lc, rc), (lb, rb) = [[tuple(d) for d in pair] for pair in dimension_numbers]
    plain = not lb and not rb and preferred_element_type is None and len(lc) == len(rc) == 1
    for mat, x, axis, other, first in ((lhs, rhs, lc, rc, True), (rhs, lhs, rc, lc, False)):
        if plain and isinstance(mat, BCSR) and not isinstance(x, JAXSparse) and mat.ndim == 2 and \
                0 < jnp.ndim(x) <= 2 and mat.shape[axis[0]] == jnp.shape(x)[other[0]]:
            x = jnp.asarray(x)
            x = x if other[0] == 0 else x.T
            parts = mat.data, mat.indices, mat.indptr
            out = csr_matmul(*parts, x) if axis[0] == 1 else \
                csr_matmul_transposed(*parts, x, mat.shape[1])
            return out if first or out.ndim == 1 else out.T
    left, right = (m.to_bcoo() if isinstance(m, BCSR) else m for m in (lhs, rhs))
    out = bcoo_dot_general(left, right, dimension_numbers=dimension_numbers, precision=precision,
                           preferred_element_type=preferred_element_type)
    return BCSR.from_bcoo(out) if isinstance(out, BCOO) and out.n_sparse == 2 else out


publish(globals(), __all__)
