"""Krylov methods for A x = b, with the names that JAX has of them.

`A` is a matrix, dense or sparse, or a function of x; x and b are arrays or trees of arrays.
Derivatives are those of the solution, by another solve: they are as exact as both are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Literal, TypeVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.avals import get_aval
from functrans.core.dtypes import default_float, finfo, kind, result_type
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.tree import check_same_structure, tree_leaves, tree_map
from functrans.sparse.base import JAXSparse
from functrans.sparse.bcsr import BCSR
from functrans.sparse.direct import solve_rows
from functrans.sparse.operators import as_bcoo
from functrans.transforms.staged import eval_shape
from functrans.typing import Array, ArrayLike

T = TypeVar("T")
LinearMap = Callable[[Any], Any]

__all__ = ["bicgstab", "cg", "gmres", "spsolve"]


def cg(A: ArrayLike | JAXSparse | LinearMap, b: T, x0: T | None = None, *, tol: ArrayLike = 1e-5,
       atol: ArrayLike = 0.0, maxiter: int | None = None,
       M: ArrayLike | JAXSparse | LinearMap | None = None, rtol: ArrayLike | None = None
       ) -> tuple[T, None]:
    """x with A x = b by conjugate gradients, and None; A is Hermitian and positive definite.

    Ends when the residual's norm is at most max(tol |b|, atol), or after `maxiter` iterations (10
    times the size of b). `M` is a preconditioner, near to the inverse of A, and `x0` the start.
    `rtol` is SciPy's name of `tol`.
    Raises TreeMismatchError and ShapeError where A, b and x0 do not fit.

    >>> import functrans as ft
    >>> x, _ = ft.scipy.sparse.linalg.cg(lambda x: 4.0 * x, ft.numpy.array([2.0, 6.0]))
    >>> x.tolist()
    [0.5, 1.5]
    """
    symmetric = all(kind(get_aval(x).dtype) != "c" for x in tree_leaves(b))
    return _solution("cg", _conjugate_gradients, A, b, x0,
                     tol if rtol is None else rtol, atol, maxiter, M, symmetric), None


def bicgstab(A: ArrayLike | JAXSparse | LinearMap, b: T, x0: T | None = None, *,
             tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0, maxiter: int | None = None,
             M: ArrayLike | JAXSparse | LinearMap | None = None, rtol: ArrayLike | None = None
             ) -> tuple[T, None]:
    """x with A x = b by the stabilised method of biconjugate gradients, and None; A is any matrix.

    See `cg` for the arguments.

    >>> import functrans as ft
    >>> x, _ = ft.scipy.sparse.linalg.bicgstab(ft.numpy.array([[2.0, 1.0], [0.0, 1.0]]),
    ...                                        ft.numpy.array([4.0, 2.0]))
    >>> x.round(4).tolist()
    [1.0, 2.0]
    """
    return _solution("bicgstab", _stabilised, A, b, x0, tol if rtol is None else rtol, atol,
                     maxiter, M, False), None


def gmres(A: ArrayLike | JAXSparse | LinearMap, b: T, x0: T | None = None, *, tol: ArrayLike = 1e-5,
          atol: ArrayLike = 0.0, restart: int = 20, maxiter: int | None = None,
          M: ArrayLike | JAXSparse | LinearMap | None = None,
          solve_method: Literal["batched", "incremental"] = "batched",
          rtol: ArrayLike | None = None) -> tuple[T, Array]:
    """x with A x = b by the method of least residuals, and 0 (-1 where it is NaN); A is any matrix.

    The least residual is sought among `restart` products with A at a time, `maxiter` times at most.
    `solve_method` is accepted: the small problem is always solved by QR. See `cg` for the others.

    >>> import functrans as ft
    >>> x, _ = ft.scipy.sparse.linalg.gmres(ft.numpy.array([[2.0, 1.0], [0.0, 1.0]]),
    ...                                     ft.numpy.array([4.0, 2.0]))
    >>> x.round(4).tolist()
    [1.0, 2.0]
    """
    if solve_method not in ("batched", "incremental"):
        raise ArgumentError(f"gmres: solve_method is 'batched' or 'incremental', not "
                            f"{solve_method!r}.", where=user_source())
    method = partial(_least_residuals, restart=min(restart, _size(b)))
    x = _solution("gmres", method, A, b, x0, tol if rtol is None else rtol, atol, maxiter, M,
                  False)
    return x, jnp.where(jnp.isnan(_squared(x)), -1, 0)


def spsolve(A: JAXSparse, b: ArrayLike | JAXSparse, permc_spec: str | None = None,
            use_umfpack: bool = True) -> Array:
    """x of A x = b by sparse LU factors, for a square sparse matrix; see `sparse.linalg.spsolve`.

    b is a vector or columns; a sparse one becomes dense, as x is. `permc_spec` and `use_umfpack`
    are accepted.

    >>> import functrans as ft
    >>> from functrans.experimental import sparse
    >>> ft.scipy.sparse.linalg.spsolve(2 * sparse.eye(2), ft.numpy.array([2.0, 6.0])).tolist()
    [1.0, 3.0]
    """
    if not isinstance(A, JAXSparse):
        raise ArgumentError("spsolve: A is no sparse matrix.", where=user_source(),
                            fix="functrans.numpy.linalg.solve(A, b)")
    if A.ndim != 2:
        raise ShapeError(f"spsolve: A has shape {A.shape}.", where=user_source(),
                         why="a matrix has two axes.")
    rows = BCSR.from_bcoo(as_bcoo(A))
    right = b.todense() if isinstance(b, JAXSparse) else jnp.asarray(b)
    return solve_rows(rows.data, rows.indices, rows.indptr, right)


def _solution(name: str, method: Callable[..., Any], A: Any, b: Any, x0: Any, tol: Any, atol: Any,
              maxiter: int | None, M: Any, symmetric: bool) -> Any:
    b = tree_map(jnp.asarray, b)
    x0 = tree_map(jnp.zeros_like if x0 is None else jnp.asarray, b if x0 is None else x0)
    check_same_structure(b, x0, f"{name}: x0")
    for x, y in zip(tree_leaves(x0), tree_leaves(b), strict=True):
        if x.shape != y.shape:
            raise ShapeError(f"{name}: x0 has shape {x.shape}, b {y.shape}.", where=user_source())
    dtype = _common_dtype(A, b, x0)
    b = tree_map(lambda x: x.astype(dtype), b)
    iterate = partial(method, x0=tree_map(lambda x: x.astype(dtype), x0), tol=tol, atol=atol,
                      maxiter=10 * _size(b) if maxiter is None else maxiter,
                      precondition=_product(name, M) if M is not None else lambda x: x)
    return lax.custom_linear_solve(_product(name, A), b, iterate, iterate, symmetric=symmetric)


def _common_dtype(A: Any, b: Any, x0: Any) -> np.dtype[Any]:
    """The floating or complex dtype of all, and of what A gives."""
    dtypes = [x.dtype for x in tree_leaves((b, x0))]
    if hasattr(A, "dtype"):
        dtypes.append(A.dtype)
    elif callable(A):
        dtypes += [x.dtype for x in tree_leaves(eval_shape(A, b))]
    found = result_type(*dtypes)
    return found if kind(found) in "fc" else default_float()


def _product(name: str, matrix: Any) -> LinearMap:
    """The function that multiplies by a matrix, which may be one already."""
    if callable(matrix):
        found: LinearMap = matrix
        return found
    is_sparse = isinstance(matrix, JAXSparse)
    shape = matrix.shape if is_sparse else jnp.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"{name}: the matrix has shape {shape}.", where=user_source(),
                         why="it is square.", fix="an (n, n) array, or a function")
    if is_sparse:
        return partial(operator.matmul, matrix)
    return partial(jnp.matmul, matrix, precision="highest")


def _conjugate_gradients(A: LinearMap, b: Any, *, x0: Any, tol: Any, atol: Any, maxiter: int,
                         precondition: LinearMap) -> Any:
    """Hestenes and Stiefel, Methods of conjugate gradients, J. Res. NBS 49 (1952)."""
    limit = _limit(b, tol, atol)

    def unfinished(state: Any) -> Any:
        _, r, _, _, count = state
        return (_squared(r) > limit) & (count < maxiter)

    def improve(state: Any) -> Any:
        x, r, p, rho, count = state
        q = A(p)
        alpha = rho / _dot(p, q).real
        x, r = _add(x, alpha, p), _add(r, -alpha, q)
        z = precondition(r)
        after = _dot(r, z).real
        return x, r, _add(z, after / rho, p), after, count + 1

    r = _subtract(b, A(x0))
    z = precondition(r)
    return lax.while_loop(unfinished, improve, (x0, r, z, _dot(r, z).real, 0))[0]


def _stabilised(A: LinearMap, b: Any, *, x0: Any, tol: Any, atol: Any, maxiter: int,
                precondition: LinearMap) -> Any:
    """van der Vorst, Bi-CGSTAB, SISSC 13 (1992); ends where one of its quotients has no value."""
    limit = _limit(b, tol, atol)

    def unfinished(state: Any) -> Any:
        _, r, *_, broken, count = state
        return (_squared(r) > limit) & (count < maxiter) & ~broken

    def improve(state: Any) -> Any:
        x, r, p, q, rho, alpha, omega, _, count = state
        after = _dot(shadow, r)
        p = _add(r, after / rho * alpha / omega, _add(p, -omega, q))
        p_hat = precondition(p)
        q = A(p_hat)
        alpha = after / _dot(shadow, q)
        s = _add(r, -alpha, q)
        half = _squared(s) <= limit  # the first half of the step is enough
        s_hat = precondition(s)
        t = A(s_hat)
        omega = jnp.where(half, 0, _dot(t, s) / jnp.where(half, 1, _dot(t, t)))
        x = _add(_add(x, alpha, p_hat), omega, s_hat)
        broken = (after == 0) | (alpha == 0) | ((omega == 0) & ~half)
        return x, _add(s, -omega, t), p, q, after, alpha, omega, broken, count + 1

    shadow = r = _subtract(b, A(x0))
    one = jnp.ones((), result_type(*tree_leaves(b)))
    start = (x0, r, r, r, one, one, one, jnp.array(False), 0)
    return lax.while_loop(unfinished, improve, start)[0]


def _least_residuals(A: LinearMap, b: Any, *, x0: Any, tol: Any, atol: Any, maxiter: int,
                     precondition: LinearMap, restart: int) -> Any:
    """Saad and Schultz, GMRES, SISSC 7 (1986), by Gram and Schmidt's method twice."""
    limit = _limit(b, tol, atol)
    dtype = result_type(*tree_leaves(b))
    least = finfo(dtype).eps

    def residual(x: Any) -> Any:
        return _subtract(b, A(x))

    def unfinished(state: Any) -> Any:
        _, r, count = state
        return (_squared(r) > limit) & (count < maxiter)

    def improve(state: Any) -> Any:
        x, r, count = state
        z = precondition(r)
        size = _norm(z)
        basis = tree_map(lambda v: jnp.zeros((restart + 1, *v.shape), dtype).at[0].set(
            v / jnp.where(size == 0, 1, size)), z)

        def expand(k: Any, state: Any) -> Any:
            basis, h = state
            w = precondition(A(tree_map(lambda v: v[k], basis)))
            before = _norm(w)
            column = jnp.zeros(restart + 1, dtype)
            for _ in range(2):
                overlap = reduce(operator.add, tree_leaves(tree_map(_overlaps, basis, w)))
                w = tree_map(lambda v, y, c=overlap: y - jnp.tensordot(
                    c, v, 1, precision="highest"), basis, w)
                column = column + overlap
            rest = _norm(w)
            rest = jnp.where(rest > least * before, rest, 0)  # else the space has no more
            basis = tree_map(lambda v, y: v.at[k + 1].set(
                jnp.where(rest == 0, 0, y / jnp.where(rest == 0, 1, rest))), basis, w)
            return basis, h.at[:, k].set(column.at[k + 1].set(rest.astype(dtype)))

        start = (basis, jnp.zeros((restart + 1, restart), dtype))
        basis, h = lax.fori_loop(0, restart, expand, start)
        # columns of a space that ended early are zero, and so are their coefficients
        empty = jnp.sum(jnp.abs(h), axis=0) == 0
        h = jnp.concatenate([h, jnp.diag(empty.astype(dtype))])
        q, triangle = jnp.linalg.qr(h)
        y = jnp.linalg.solve(triangle, q[0].conj() * size.astype(dtype))
        x = tree_map(lambda x, v: x + jnp.tensordot(y, v[:-1], 1, precision="highest"), x, basis)
        return x, residual(x), count + 1

    return lax.while_loop(unfinished, improve, (x0, residual(x0), 0))[0]


def _overlaps(basis: Array, w: Array) -> Array:
    rows = basis.reshape(basis.shape[0], -1).conj()
    return jnp.matmul(rows, w.reshape(-1), precision="highest")


def _limit(b: Any, tol: Any, atol: Any) -> Any:
    return jnp.maximum(jnp.square(tol) * _squared(b), jnp.square(atol))


def _dot(x: Any, y: Any) -> Any:
    parts = tree_map(partial(jnp.vdot, precision="highest"), x, y)
    return reduce(operator.add, tree_leaves(parts))


def _squared(x: Any) -> Any:
    return reduce(operator.add, [jnp.sum(jnp.real(v) ** 2 + jnp.imag(v) ** 2)
                                 for v in tree_leaves(x)])


def _norm(x: Any) -> Any:
    return jnp.sqrt(_squared(x))


def _add(x: Any, factor: Any, y: Any) -> Any:
    return tree_map(lambda u, v: u + (factor * v).astype(u.dtype), x, y)


def _subtract(x: Any, y: Any) -> Any:
    return tree_map(operator.sub, x, y)


def _size(b: Any) -> int:
    return sum(jnp.size(x) for x in tree_leaves(b))
