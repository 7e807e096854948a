"""COO, CSR and CSC: matrices without batches, as thin classes with the names of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import publish
from functrans.numpy.common import axis_tuple, shape_tuple
from functrans.sparse.base import JAXSparse, check_index_dtype, index_dtype_for, mismatch
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR
from functrans.tree_util import register_pytree_node_class
from functrans.typing import Array, ArrayLike

__all__ = ["COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
           "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]


class _Matrix(JAXSparse):
    """A matrix of three parts, which computes as the batched array that it is."""

    _shape: tuple[Any, ...]
    _parts: tuple[str, ...]

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[Any]) -> None:
        self._shape = shape_tuple(shape, type(self).__name__)
        parts = tuple(map(jnp.asarray, args))
        if len(self._shape) != 2 or len(parts) != 3 or any(p.ndim != 1 for p in parts):
            raise mismatch(type(self).__name__, "a matrix has two axes and three parts of one.")
        for name, part in zip(self._parts, parts, strict=True):
            if name != "data":
                check_index_dtype(type(self).__name__, part)
                part = part.astype(index_dtype_for(part.dtype, self._shape))
            setattr(self, name, part)
        self.batched()

    def batched(self) -> Any:
        """The same matrix as BCOO or BCSR, or the transpose of one."""
        raise TypeError("a matrix must say which batched array it is")

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the dense matrix."""
        return self._shape

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.shape[0]

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The three parts, and the shape."""
        return tuple([getattr(self, name) for name in self._parts]), self._shape

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Any) -> Any:
        """The matrix of `tree_flatten`."""
        found = object.__new__(cls)
        for name, part in zip(cls._parts, children, strict=True):
            setattr(found, name, part)
        found._shape = aux
        return found

    def with_data(self, data: Any) -> Any:
        """A matrix with other values at the same places."""
        parts, aux = self.tree_flatten()
        return type(self).tree_unflatten(aux, (data, *parts[1:]))

    def todense(self) -> Array:
        """The dense matrix."""
        out: Array = self.batched().todense()
        return out

    def transpose(self, axes: Any = None) -> Any:
        """The transposed matrix; of compressed rows as compressed columns, and of these as rows."""
        name = f"{type(self).__name__}.transpose"
        order = (1, 0) if axes is None else axis_tuple(tuple(axes), 2, name)
        if len(order) != 2:
            raise mismatch(name, f"{axes} is no permutation of 2 axes.")
        return self if order == (0, 1) else self._turned()

    def _turned(self) -> Any:
        raise TypeError("a matrix must say what its transpose is")


def _starts(numbers: Array, count: Any) -> Array:
    """Where each number begins among sorted ones, those out of bounds before or behind all."""
    found: Array = jnp.searchsorted(numbers, jnp.arange(count + 1, dtype=numbers.dtype))
    return found.astype(numbers.dtype)


@register_pytree_node_class
class COO(_Matrix):
    """A matrix by coordinates: `COO((data, row, col), shape=shape)`.

    `rows_sorted` promises that row numbers do not decrease, `cols_sorted` that column numbers do
    not: products go row by row then, as those of compressed rows.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.COO.fromdense(jnp.eye(2)).row.tolist()
    [0, 1]
    >>> m = sparse.COO.fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> m.batched(), m.compressed()
    (BCOO(float32[2,2], nse=1), BCSR(float32[2,2], nse=1))
    >>> m.todense()[0], m.transpose().shape, m.with_data(-m.data).data
    (Array([0., 2.], dtype=float32), (2, 2), Array([-2.], dtype=float32))
    >>> sparse.COO.from_bcoo(sparse.BCOO.fromdense(jnp.eye(3))).nse
    3
    >>> import scipy.sparse
    >>> sparse.COO.from_scipy_sparse(scipy.sparse.coo_array(np.eye(3))).shape
    (3, 3)
    """

    _parts = ("data", "row", "col")
    row: Array
    col: Array

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[Any],
                 rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The three parts, and what is static."""
        return ((self.data, self.row, self.col),
                (self._shape, self._rows_sorted, self._cols_sorted))

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Any) -> COO:
        """The matrix of `tree_flatten`."""
        found: COO = super().tree_unflatten(aux[0], children)
        _, found._rows_sorted, found._cols_sorted = aux
        return found

    def compressed(self) -> BCSR | CSC | None:
        """The same matrix with compressed rows or columns, where these are sorted."""
        if self._rows_sorted:
            return BCSR((self.data, self.col, _starts(self.row, self._shape[0])),
                        shape=self._shape)
        if self._cols_sorted:
            return CSC((self.data, self.row, _starts(self.col, self._shape[1])),
                       shape=self._shape)
        return None

    def batched(self) -> BCOO:
        """The same matrix as BCOO."""
        return BCOO((self.data, jnp.stack([self.row, self.col], axis=-1)), shape=self._shape)

    def _turned(self) -> COO:
        return COO.tree_unflatten((self._shape[::-1], self._cols_sorted, self._rows_sorted),
                                  (self.data, self.col, self.row))

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: Any = np.int32) -> COO:
        """The elements of a dense matrix that are not zero."""
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> COO:
        """The matrix of batched coordinates."""
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape,
                   rows_sorted=mat.indices_sorted)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> COO:
        """The matrix of a SciPy sparse matrix."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))


@register_pytree_node_class
class CSR(_Matrix):
    """A matrix of compressed rows: `CSR((data, indices, indptr), shape=shape)`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.CSR.fromdense(jnp.eye(2)).indptr.tolist()
    [0, 1, 2]
    >>> m = sparse.CSR.fromdense(jnp.eye(2))
    >>> m.todense()[1], m.batched().shape, m.transpose().shape, m.with_data(-m.data).data
    (Array([0., 1.], dtype=float32), (2, 2), (2, 2), Array([-1., -1.], dtype=float32))
    >>> import scipy.sparse
    >>> sparse.CSR.from_scipy_sparse(scipy.sparse.csr_array(np.eye(3))).shape
    (3, 3)
    """

    _parts = ("data", "indices", "indptr")
    indices: Array
    indptr: Array

    def batched(self) -> BCSR:
        """The same matrix as BCSR."""
        return BCSR((self.data, self.indices, self.indptr), shape=self._shape)

    def _turned(self) -> CSC:
        out: CSC = CSC.tree_unflatten(self._shape[::-1], self.tree_flatten()[0])
        return out

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: Any = np.int32) -> CSR:
        """The elements of a dense matrix that are not zero."""
        m = BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype)
        return cls((m.data, m.indices, m.indptr), shape=m.shape)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> CSR:
        """The matrix of a SciPy sparse matrix."""
        m = BCSR.from_scipy_sparse(mat, index_dtype=index_dtype)
        return cls((m.data, m.indices, m.indptr), shape=m.shape)


@register_pytree_node_class
class CSC(_Matrix):
    """A matrix of compressed columns: `CSC((data, indices, indptr), shape=shape)`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.CSC.fromdense(jnp.array([[0.0, 1.0], [0.0, 2.0]])).indptr.tolist()
    [0, 0, 2]
    >>> m = sparse.CSC.fromdense(jnp.array([[0.0, 1.0], [0.0, 2.0]]))
    >>> m.todense()[1], m.batched().shape, m.transpose().shape, m.with_data(-m.data).data
    (Array([0., 2.], dtype=float32), (2, 2), (2, 2), Array([-1., -2.], dtype=float32))
    >>> import scipy.sparse
    >>> sparse.CSC.from_scipy_sparse(scipy.sparse.csc_array(np.eye(3))).shape
    (3, 3)
    """

    _parts = ("data", "indices", "indptr")
    indices: Array
    indptr: Array

    def batched(self) -> Any:
        """The transpose of the matrix, as BCSR: compressed columns are its rows."""
        return BCSR((self.data, self.indices, self.indptr), shape=self._shape[::-1])

    def todense(self) -> Array:
        """The dense matrix."""
        out: Array = self.batched().todense().T
        return out

    def _turned(self) -> CSR:
        out: CSR = CSR.tree_unflatten(self._shape[::-1], self.tree_flatten()[0])
        return out

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: Any = np.int32) -> Any:
        """The elements of a dense matrix that are not zero."""
        return CSR.fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> Any:
        """The matrix of a SciPy sparse matrix."""
        return CSR.from_scipy_sparse(mat.T, index_dtype=index_dtype).transpose()


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """The COO matrix of a dense one.

    >>> from functrans.experimental import sparse
    >>> sparse.coo_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).data
    Array([2., 1.], dtype=float32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """The CSR matrix of a dense one.

    >>> from functrans.experimental import sparse
    >>> sparse.csr_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Array:
    """The dense matrix of a COO matrix.

    >>> from functrans.experimental import sparse
    >>> sparse.coo_todense(sparse.coo_fromdense(jnp.array([[0.0, 2.0]])))
    Array([[0., 2.]], dtype=float32)
    """
    return mat.todense()


def csr_todense(mat: CSR) -> Array:
    """The dense matrix of a CSR matrix.

    >>> from functrans.experimental import sparse
    >>> sparse.csr_todense(sparse.csr_fromdense(jnp.array([[0.0, 2.0]])))
    Array([[0., 2.]], dtype=float32)
    """
    return mat.todense()


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a vector.

    >>> from functrans.experimental import sparse
    >>> m = sparse.coo_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> sparse.coo_matvec(m, jnp.array([1.0, 10.0]))
    Array([20.,  1.], dtype=float32)
    """
    out: Array = (mat.T if transpose else mat) @ jnp.asarray(v)
    return out


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or of its transpose, with a vector.

    >>> from functrans.experimental import sparse
    >>> m = sparse.csr_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> sparse.csr_matvec(m, jnp.array([1.0, 10.0]))
    Array([20.,  1.], dtype=float32)
    """
    out: Array = (mat.T if transpose else mat) @ jnp.asarray(v)
    return out


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a dense matrix.

    >>> from functrans.experimental import sparse
    >>> m = sparse.coo_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> sparse.coo_matmat(m, jnp.eye(2))
    Array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    out: Array = (mat.T if transpose else mat) @ jnp.asarray(B)
    return out


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or of its transpose, with a dense matrix.

    >>> from functrans.experimental import sparse
    >>> m = sparse.csr_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> sparse.csr_matmat(m, jnp.eye(2))
    Array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    out: Array = (mat.T if transpose else mat) @ jnp.asarray(B)
    return out


publish(globals(), __all__)
