"""LU factors of sparse matrices by SciPy's SuperLU, where SciPy is installed."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.callbacks import pure_callback
from functrans.core.dtypes import default_float, kind
from functrans.core.errors import ArgumentError, BackendError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.arithmetic import CLASSES, SparseArithmetic, bcoo_of, is_sparse
from functrans.scipy.sparse.compressed import csc_array
from functrans.sparse.base import JAXSparse
from functrans.sparse.direct import SOLVED, solve_rows, superlu
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike


class SuperLU:
    """The factors of a square sparse matrix: `Pr A Pc = L U`; made by `splu` and `spilu`.

    `solve(rhs, trans)` solves with A ("N"), its transpose ("T") or adjoint ("H"). Derivatives are
    those of the solution, in `rhs` and, of `splu`, in the values of A. `L`, `U`, `perm_r`, `perm_c`
    and `nnz` need values that are known.

    >>> from functrans.scipy import sparse
    >>> lu = sparse.linalg.splu(sparse.csc_array([[2.0, 0.0], [1.0, 4.0]]))
    >>> lu.solve(jnp.array([2.0, 5.0])).tolist(), lu.shape
    ([1.0, 1.0], (2, 2))
    """

    def __init__(self, matrix: Any, made: Any = None, approximate: bool = False) -> None:
        self._matrix, self._made, self._approximate = matrix, made, approximate
        self.shape: tuple[int, int] = matrix.shape

    @property
    def _factors(self) -> Any:
        if self._made is None:
            raise ArgumentError("functrans.scipy.sparse.linalg.SuperLU: the factors of a matrix "
                                "that is traced.", where=user_source(),
                                why="SciPy factors it when the program runs.",
                                fix="solve(rhs), or splu outside of jit and grad")
        return self._made

    @property
    def nnz(self) -> int:
        """The number of elements that both factors store."""
        return int(self._factors.nnz)

    @cached_property
    def L(self) -> csc_array:
        """The lower factor, with ones on its diagonal."""
        return csc_array(self._factors.L)

    @cached_property
    def U(self) -> csc_array:
        """The upper factor."""
        return csc_array(self._factors.U)

    @property
    def perm_r(self) -> np.ndarray:
        """The row of L U that each row of A is."""
        return np.asarray(self._factors.perm_r)

    @property
    def perm_c(self) -> np.ndarray:
        """The column of L U that each column of A is."""
        return np.asarray(self._factors.perm_c)

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} SuperLU of {self._matrix.dtype}>"

    @cached_property
    def _product(self) -> Any:
        """The matrix whose inverse `solve` is: of incomplete factors that of their product."""
        if not self._approximate:
            return self._matrix
        # by SciPy, as a program may be traced just now
        product = (self._factors.L @ self._factors.U).tocoo()
        rows, columns = np.argsort(self.perm_r)[product.row], np.argsort(self.perm_c)[product.col]
        return csc_array(superlu().csc_matrix((product.data, (rows, columns)), self.shape))

    def solve(self, rhs: ArrayLike, trans: str = "N") -> Array:
        """x with A x = rhs, or with the transpose "T" or the adjoint "H" of A."""
        one_of("sparse.linalg.SuperLU.solve", "trans", trans, ("N", "T", "H"))
        b = jnp.asarray(rhs)
        if b.ndim not in (1, 2) or b.shape[0] != self.shape[0]:
            raise ShapeError(f"functrans.scipy.sparse.linalg.SuperLU.solve: rhs has shape "
                             f"{b.shape}, A {self.shape}.", where=user_source(),
                             why="rhs has the rows of A.")
        held = self._product
        if trans == "H":
            return jnp.conj(self.solve(jnp.conj(b), "T"))
        dtype = jnp.result_type(b.dtype, held.dtype)
        if self._made is None or np.dtype(dtype) != np.dtype(held.dtype):
            rows = (held if trans == "N" else held.T).tocsr()
            return solve_rows(rows.data, rows.indices, rows.indptr, b)
        b = b.astype(dtype)
        if not isinstance(b, Tracer):
            return jnp.asarray(self._host(trans, b))
        turned = {"N": "T", "T": "N"}[trans]
        matrix = held if trans == "N" else held.T

        def call(way: str) -> Any:
            return lambda _, y: pure_callback(partial(self._host, way),
                                              ShapeDtypeStruct(y.shape, y.dtype), y,
                                              vmap_method="sequential")

        out: Array = lax.custom_linear_solve(lambda x: matrix @ x, b, call(trans), call(turned))
        return out

    def _host(self, trans: str, b: Any) -> Any:
        values = np.asarray(b)
        if not values.size:
            return values
        return self._factors.solve(np.asfortranarray(values), trans).reshape(values.shape)


def _read(name: str, A: Any) -> Any:
    if not is_sparse(A):
        raise ArgumentError(f"functrans.scipy.sparse.linalg.{name}: A is no sparse matrix.",
                            where=user_source(), fix="csc_array(A), or functrans.scipy.linalg."
                            "lu_factor")
    found = A if isinstance(A, SparseArithmetic) else CLASSES["csc", False]._of(bcoo_of(A))
    if len(found.shape) != 2 or found.shape[0] != found.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse.linalg.{name}: A has shape {found.shape}.",
                         where=user_source(), why="it is square.")
    found = found.asformat("csc").sum_duplicates()
    if found.dtype.name not in SOLVED:
        found = found.astype(default_float() if kind(found.dtype) != "c" else "complex64")
    return found


def _made(name: str, matrix: Any, **options: Any) -> Any:
    library = superlu()
    parts = [np.asarray(p) for p in (matrix.data, matrix.indices, matrix.indptr)]
    held = library.csc_matrix(tuple(parts), shape=matrix.shape)
    try:
        return getattr(library.linalg, name)(held, **options)
    except RuntimeError as e:
        raise BackendError(f"functrans.scipy.sparse.linalg.{name}: {e}.", where=user_source(),
                           why="the matrix has no LU factors.",
                           fix="spsolve, which gives NaN, or A + shift * eye_array(n)") from None


def _is_known(matrix: Any) -> bool:
    return not any(isinstance(p, Tracer) for p in (matrix.data, matrix.indices, matrix.indptr))


def splu(A: JAXSparse, permc_spec: str | None = None, diag_pivot_thresh: float | None = None,
         relax: int | None = None, panel_size: int | None = None,
         options: dict[str, object] | None = None) -> SuperLU:
    """The LU factors of a square sparse matrix, by SciPy's SuperLU on the host.

    Options are SciPy's. Of a matrix that is traced `solve` factors it each time the program runs.
    Raises BackendError for a singular matrix and where SciPy is not installed, ShapeError for one
    that is not square. Source: Li, ACM Trans. Math. Software 31 (2005).

    >>> from functrans.scipy import sparse
    >>> lu = sparse.linalg.splu(sparse.csc_array([[2.0, 0.0], [1.0, 4.0]]))
    >>> lu.solve(jnp.array([2.0, 5.0]), "T").tolist()
    [0.375, 1.25]
    """
    matrix = _read("splu", A)
    superlu()
    if not _is_known(matrix):
        return SuperLU(matrix)
    return SuperLU(matrix, _made("splu", matrix, permc_spec=permc_spec,
                                 diag_pivot_thresh=diag_pivot_thresh, relax=relax,
                                 panel_size=panel_size, options=options or {}))


def spilu(A: JAXSparse, drop_tol: float | None = None, fill_factor: float | None = None,
          drop_rule: str | None = None, permc_spec: str | None = None,
          diag_pivot_thresh: float | None = None, relax: int | None = None,
          panel_size: int | None = None, options: dict[str, object] | None = None) -> SuperLU:
    """Incomplete LU factors of a square sparse matrix, which precondition systems with it.

    Options are SciPy's; see `splu`. Values of A have to be known, and have no derivatives.

    >>> from functrans.scipy import sparse
    >>> A = sparse.csc_array([[2.0, 0.0], [1.0, 4.0]])
    >>> lu = sparse.linalg.spilu(A)
    >>> M = sparse.linalg.LinearOperator(A.shape, lu.solve)
    >>> sparse.linalg.bicgstab(A, jnp.array([2.0, 5.0]), M=M.matvec)[0].round(3).tolist()
    [1.0, 1.0]
    """
    matrix = _read("spilu", A)
    if not _is_known(matrix):
        raise ArgumentError("functrans.scipy.sparse.linalg.spilu: A is traced.",
                            where=user_source(), why="what is dropped depends on its values.",
                            fix="spilu outside of jit and grad, or splu(A)")
    return SuperLU(matrix, _made("spilu", matrix, drop_tol=drop_tol, fill_factor=fill_factor,
                                 drop_rule=drop_rule, permc_spec=permc_spec,
                                 diag_pivot_thresh=diag_pivot_thresh, relax=relax,
                                 panel_size=panel_size, options=options or {}),
                   approximate=True)
