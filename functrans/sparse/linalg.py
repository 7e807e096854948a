"""Linear algebra of sparse matrices, with the names of jax.experimental.sparse.linalg."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, explain_missing_names, publish
from functrans.core.source import user_source
from functrans.sparse.base import mismatch
from functrans.sparse.direct import solve_rows
from functrans.typing import Array, ArrayLike

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike,
            tol: float = 1e-6, reorder: int = 1) -> Array:
    """x of `A x = b` by sparse LU factors, for a square matrix of compressed rows.

    SciPy factors the matrix on the host; `pip install functrans[sparse]` installs it. `tol` and
    `reorder` are accepted. b is a vector, or a matrix of columns. A singular matrix gives NaN.
    Derivatives in `data` and b are those of the solution. Raises BackendError without SciPy,
    ShapeError where the parts do not fit, and DTypeError for dtypes that SuperLU does not have.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[2.0, 1.0], [0.0, 4.0]]))
    >>> sparse.linalg.spsolve(m.data, m.indices, m.indptr, jnp.array([5.0, 4.0])).tolist()
    [2.0, 1.0]
    """
    del tol, reorder
    return solve_rows(*map(jnp.asarray, (data, indices, indptr, b)))


def lobpcg_standard(A: Any, X: ArrayLike, m: int = 100,
                    tol: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a Hermitian matrix, their eigenvectors, and the iterations.

    `A` is an (n, n) matrix, dense or sparse, or a function that multiplies (n, k) columns by it; X
    (n, k) are columns to start from, with 0 < 5 k < n. Ends after `m` iterations, or when each
    residual is at most `tol` (by default the dtype's epsilon) times 10 n (eigenvalue + |A v|).
    Raises ShapeError and ArgumentError where sizes do not fit. Source: Knyazev, SISC 23 (2001);
    the basis of each step is made orthonormal (Duersch et al., SISC 40, 2018).

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1.0, 9.0)))
    >>> values, vectors, _ = sparse.linalg.lobpcg_standard(m, jnp.ones((8, 1)))
    >>> values.round(3).tolist()
    [8.0]
    """
    x = jnp.asarray(X)
    if x.ndim != 2:
        raise mismatch("lobpcg_standard", f"X has shape {x.shape}, not (n, k).")
    n, k = x.shape
    if not 0 < 5 * k < n:
        raise ArgumentError(f"lobpcg_standard: {k} columns of {n}.", where=user_source(),
                            why="0 < 5 k < n for k eigenvalues.", fix="functrans.numpy.linalg.eigh")
    if not callable(A) and A.shape != (n, n):
        raise mismatch("lobpcg_standard", f"A has shape {A.shape}, X {x.shape}.")
    limit: Any = finfo(x.dtype).eps if tol is None else tol

    def multiply(v: Array) -> Array:
        out: Array = A(v) if callable(A) else A @ v
        if out.shape != v.shape:
            raise mismatch("lobpcg_standard", f"A maps {v.shape} to {out.shape}.")
        return out.astype(x.dtype)

    def product(u: Array, v: Array) -> Array:
        return jnp.matmul(u, v, precision="highest")

    def ritz(basis: Array) -> tuple[Array, Array, Array]:
        """Eigenvalues in a space, largest first, their vectors, and these in the basis."""
        q, _ = jnp.linalg.qr(basis)
        values, turn = jnp.linalg.eigh(product(q.conj().T, multiply(q)))
        turn = turn[:, ::-1][:, :k]
        # what the new vectors have outside of the old ones: the direction of the last step
        return values[::-1][:k], product(q, turn), product(q[:, k:], turn[k:])

    def state_of(values: Array, x: Array, step: Array, count: Any) -> Any:
        image = multiply(x)
        residual = image - x * values
        sizes = jnp.linalg.norm(residual, axis=0)
        bound = limit * 10 * n * (values + jnp.linalg.norm(image, axis=0))
        return x, residual, step, values, jnp.all(sizes < bound), count

    def unfinished(state: Any) -> Any:
        *_, done, count = state
        return ~done & (count < m)

    def improve(state: Any) -> Any:
        x, residual, step, _, _, count = state
        values, x, step = ritz(jnp.concatenate([x, residual, step], axis=1))
        return state_of(values, x, step, count + 1)

    values, x, _ = ritz(x)
    x, _, _, values, _, count = lax.while_loop(
        unfinished, improve, state_of(values, x, jnp.zeros_like(x), jnp.asarray(0)))
    return values, x, count


explain_missing_names(globals())
publish(globals(), __all__)
