"""Direct solution of sparse systems by SciPy's SuperLU, where SciPy is installed."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.callbacks import pure_callback
from functrans.core.errors import BackendError, DTypeError
from functrans.core.source import user_source
from functrans.sparse.base import check_index_dtype, mismatch
from functrans.sparse.rows import csr_matmul
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array

__all__ = ["solve_rows"]

SOLVED = ("float32", "float64", "complex64", "complex128")


def superlu() -> Any:
    try:
        import scipy.sparse.linalg  # noqa: PLC0415  # may be absent
    except ImportError:
        raise BackendError("spsolve needs SciPy, which is not installed.", where=user_source(),
                           why="sparse systems are factored by its SuperLU.",
                           fix="pip install 'functrans[sparse]', or functrans.scipy.sparse.linalg."
                               "cg, gmres and bicgstab, which need no factors") from None
    return scipy.sparse


def _solved(data: Any, indices: Any, indptr: Any, b: Any, transpose: bool) -> Any:
    library = superlu()
    n = len(indptr) - 1
    if not n or not b.size:
        return np.zeros_like(b)
    kind = library.csr_matrix if transpose else library.csc_matrix
    matrix = library.csr_matrix((np.asarray(data), np.asarray(indices), np.asarray(indptr)),
                                shape=(n, n))
    matrix = kind(matrix.T if transpose else matrix).tocsc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a singular matrix gives NaN
        out = library.linalg.spsolve(matrix, np.asarray(b))
    return np.asarray(out, b.dtype).reshape(b.shape)


def solve_rows(data: Array, indices: Array, indptr: Array, b: Array) -> Array:
    """x of `A x = b` for compressed rows and a vector or the columns of a matrix.

    Derivatives are those of the solution: by another solve, and by one of the transposed system.
    """
    for part in (indices, indptr):
        check_index_dtype("spsolve", part)
    n = indptr.shape[0] - 1
    if not data.ndim == indices.ndim == indptr.ndim == 1 or data.shape != indices.shape or \
            b.ndim not in (1, 2) or b.shape[0] != n:
        raise mismatch("spsolve", f"data {data.shape}, indices {indices.shape}, indptr "
                       f"{indptr.shape} and b {b.shape} are no square system.")
    dtype = jnp.result_type(data, b)
    if dtype.name not in SOLVED:
        raise DTypeError(f"spsolve of a system of dtype {dtype}.", where=user_source(),
                         fix="float32, float64, complex64 or complex128")
    superlu()
    data, b = data.astype(dtype), b.astype(dtype)

    def by_callback(transpose: bool) -> Any:
        def solve(_: Any, b: Any) -> Any:
            return pure_callback(partial(_solved, transpose=transpose),
                                 ShapeDtypeStruct(b.shape, b.dtype), lax.stop_gradient(data),
                                 indices, indptr, b, vmap_method="sequential")

        return solve

    def product(x: Array) -> Array:
        return csr_matmul(data, indices, indptr, x)

    out: Array = lax.custom_linear_solve(product, b, by_callback(False), by_callback(True))
    return out
