"""Functions of sparse matrices, what their pattern says, and the names of warnings and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float, finfo, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.linalg import expm as dense_expm
from functrans.scipy.sparse.arithmetic import CLASSES, SparseArithmetic, bcoo_of, is_sparse
from functrans.scipy.sparse.arithmetic import matrix_power as power_of
from functrans.scipy.sparse.augmented import _arnoldi
from functrans.scipy.sparse.biorthogonal import size_of
from functrans.scipy.sparse.construction import eye_array, square
from functrans.scipy.sparse.krylov import spsolve
from functrans.scipy.sparse.maps import Matrix, square_map
from functrans.scipy.sparse.places import columns_of, known_places, summed, values_known
from functrans.sparse.base import JAXSparse
from functrans.sparse.bcoo import BCOO
from functrans.typing import Array, ArrayLike


class MatrixRankWarning(UserWarning):
    """A matrix that is singular; never given, as singular systems here give NaN.

    >>> from functrans.scipy.sparse import linalg
    >>> issubclass(linalg.MatrixRankWarning, UserWarning)
    True
    """


class ArpackError(RuntimeError):
    """A failure of ARPACK; never raised, as eigenvalues here do not come from it.

    >>> from functrans.scipy.sparse import linalg
    >>> issubclass(linalg.ArpackError, RuntimeError)
    True
    """


class ArpackNoConvergence(ArpackError):
    """Eigenvalues that were not found; never raised: those of `eigsh` are as good as they get.

    >>> from functrans.scipy.sparse import linalg
    >>> issubclass(linalg.ArpackNoConvergence, linalg.ArpackError)
    True
    """

    def __init__(self, msg: str, eigenvalues: Array, eigenvectors: Array) -> None:
        super().__init__(msg)
        self.eigenvalues, self.eigenvectors = eigenvalues, eigenvectors


def use_solver(**kwargs: bool) -> None:
    """Choose the library of factors: there is SuperLU alone, so nothing changes.

    `useUmfpack` and `assumeSortedIndices` are accepted. Raises ArgumentError for others.

    >>> from functrans.scipy.sparse import linalg
    >>> linalg.use_solver(useUmfpack=False)
    """
    unknown = set(kwargs) - {"useUmfpack", "assumeSortedIndices"}
    if unknown:
        raise ArgumentError(f"functrans.scipy.sparse.linalg.use_solver: {sorted(unknown)}.",
                            where=user_source(), fix="useUmfpack or assumeSortedIndices")


def _array_of(name: str, A: JAXSparse) -> SparseArithmetic:
    """A square sparse matrix in one of SciPy's formats."""
    if not is_sparse(A):
        raise ArgumentError(f"functrans.scipy.sparse.linalg.{name}: A is no sparse matrix.",
                            where=user_source(), fix="csr_array(A), or functrans.scipy.linalg")
    found = A if isinstance(A, SparseArithmetic) else CLASSES["csr", False]._of(bcoo_of(A))
    square(f"linalg.{name}", found)
    made: SparseArithmetic = found
    return made


def _sparse(x: Array, like: SparseArithmetic) -> SparseArithmetic:
    """A dense matrix in the format of another."""
    nse = x.size if is_traced(x) else None
    made: SparseArithmetic = like._like(BCOO.fromdense(x, nse=nse), like._rows)
    return made


def expm(A: JAXSparse) -> SparseArithmetic:
    """The exponential of a square sparse matrix, a sparse one.

    Of known values by Taylor's series of A / 2^s with sparse products, and s squares; of traced
    ones it is that of the dense matrix, whose elements are all stored.

    >>> from functrans.scipy import sparse
    >>> sparse.linalg.expm(sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])).toarray().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    x = _array_of("expm", A)
    if kind(x.dtype) not in "fc":
        x = x.astype(default_float())
    if not values_known(x.data):
        return _sparse(dense_expm(x.todense()), x)
    n = x.shape[0]
    size = float(jnp.max(abs(x).sum(axis=0), initial=0))
    if not np.isfinite(size):
        return _sparse(dense_expm(x.todense()), x)
    halves = max(0, int(np.ceil(np.log2(size))) + 1) if size > 0 else 0
    scaled = x.asformat("csr") * 2.0**-halves
    one = eye_array(n, dtype=x.dtype, format="csr")
    found, eps = one, float(finfo(x.dtype).eps)
    # terms of |A| <= 1/2 until they are roundoff, the last ones first
    terms = next(k for k in range(1, 40) if 0.5**k / float(_factorial(k)) < eps / 4)
    for k in range(terms, 0, -1):
        found = one + (scaled @ found) * (1.0 / k)
    for _ in range(halves):
        found = found @ found
    made: SparseArithmetic = x._like(found.to_bcoo(), x._rows)
    return made


def _factorial(k: int) -> int:
    out = 1
    for i in range(2, k + 1):
        out *= i
    return out


def inv(A: JAXSparse) -> SparseArithmetic:
    """The inverse of a square sparse matrix, a sparse one, by its factors; see `spsolve`.

    A singular matrix gives NaN.

    >>> from functrans.scipy import sparse
    >>> sparse.linalg.inv(sparse.csc_array([[2.0, 0.0], [1.0, 1.0]])).toarray().tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    x = _array_of("inv", A)
    dtype = x.dtype if kind(x.dtype) in "fc" else default_float()
    return _sparse(spsolve(x.astype(dtype), jnp.eye(x.shape[0], dtype=dtype)), x)


def matrix_power(A: JAXSparse, power: int) -> SparseArithmetic:
    """A square sparse matrix to an integer power from 0 on.

    >>> from functrans.scipy import sparse
    >>> sparse.linalg.matrix_power(sparse.csr_array([[1.0, 1.0], [0.0, 1.0]]), 5).toarray().tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    found: SparseArithmetic = power_of(_array_of("matrix_power", A), power)
    return found


def _places(name: str, A: JAXSparse) -> np.ndarray:
    """The columns minus the rows of stored elements."""
    if not is_sparse(A) or len(A.shape) != 2:
        raise ArgumentError(f"functrans.scipy.sparse.linalg.{name}: A is no sparse matrix.",
                            where=user_source(), fix="csr_array(A)")
    rows, columns = known_places(f"linalg.{name}", *columns_of(summed(bcoo_of(A))),
                                 why="the answer is Python's.")
    return columns.astype(np.int64) - rows


def is_sptriangular(A: JAXSparse) -> tuple[bool, bool]:
    """Whether a sparse matrix stores nothing above its diagonal, and nothing below it.

    >>> from functrans.scipy import sparse
    >>> sparse.linalg.is_sptriangular(sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]))
    (True, False)
    """
    away = _places("is_sptriangular", A)
    return bool((away <= 0).all()), bool((away >= 0).all())


def spbandwidth(A: JAXSparse) -> tuple[int, int]:
    """The numbers of diagonals below and above the main one up to the last that store something.

    >>> from functrans.scipy import sparse
    >>> sparse.linalg.spbandwidth(sparse.csr_array([[1.0, 0.0, 4.0], [2.0, 3.0, 0.0]]))
    (1, 2)
    """
    away = _places("spbandwidth", A)
    return int(max(-away.min(initial=0), 0)), int(max(away.max(initial=0), 0))


def funm_multiply_krylov(f: Callable[[Array], Array], A: Matrix, b: ArrayLike, *,
                         assume_a: str = "general", t: float = 1.0, atol: float = 0.0,
                         rtol: float = 1e-6, restart_every_m: int | None = None,
                         max_restarts: int = 20) -> Array:
    """f(t A) b for a function f of small dense matrices, as `functrans.scipy.linalg.expm` is one.

    By Krylov spaces of `restart_every_m` products (20 at most by default), until what a restart
    adds is at most max(rtol |result|, atol), or after `max_restarts` of them; of traced values as
    many as that. `assume_a` is "general" or "hermitian", which are computed alike. Raises
    ShapeError where b is no vector of A's rows.
    Source: Afanasjew, Eiermann, Ernst and Guettel, Linear Algebra Appl. 429 (2008).

    >>> import functrans as ft
    >>> A = ft.scipy.sparse.csr_array([[0.0, 1.0], [0.0, 0.0]])
    >>> expm = ft.scipy.linalg.expm
    >>> ft.scipy.sparse.linalg.funm_multiply_krylov(expm, A, [1.0, 2.0]).round(3).tolist()
    [3.0, 2.0]
    """
    one_of("sparse.linalg.funm_multiply_krylov", "assume_a", assume_a,
           ("general", "hermitian", "her", "gen"))
    op = square_map("funm_multiply_krylov", A)
    (right,) = inexact(b)
    n = op.shape[0]
    if right.shape not in ((n,), (n, 1)):
        raise ShapeError(f"functrans.scipy.sparse.linalg.funm_multiply_krylov: b has shape "
                         f"{right.shape}, A {op.shape}.", where=user_source(),
                         why="b is a vector of A's rows.")
    dtype = jnp.result_type(right.dtype, op.dtype)
    flat = right.reshape(-1).astype(dtype)
    m = min(n, 20) if restart_every_m is None else min(n, known_size(
        "sparse.linalg.funm_multiply_krylov", "restart_every_m", restart_every_m))
    size = size_of(flat)
    none = jnp.zeros((0, n), dtype)
    total, start, table = jnp.zeros(n, dtype), flat, jnp.zeros((0, 0), dtype)
    edge = jnp.zeros((), dtype)
    for count in range(max_restarts):
        basis, _, h, _ = _arnoldi(op.matvec, lambda j, basis: basis[j], start, m, none)
        old = table.shape[0]
        # of all spaces one matrix, whose blocks are joined by what goes on from one to the next
        joint = jnp.zeros((m, old), dtype)
        if old:
            joint = joint.at[0, old - 1].set(edge)
        table = jnp.block([[table, jnp.zeros((old, m), dtype)], [joint, h[:m]]])
        values = jnp.asarray(f(t * table))[old:, 0]
        step = size.astype(values.dtype) * jnp.matmul(values, basis[:m].astype(values.dtype),
                                                      precision="highest")
        total = total + step
        start, edge = basis[m], h[m, m - 1]
        if m == n:
            break
        if values_known(total, step):
            gained, reached = float(size_of(step)), float(size_of(total))
            if gained <= max(rtol * reached, atol) or not np.isfinite(gained) or \
                    (count and not float(jnp.abs(edge))):
                break
    return total.reshape(right.shape)
