"""Equations whose unknown is a matrix: Sylvester's and Lyapunov's."""

from __future__ import annotations

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg import solve
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import matrix
from functrans.primitives.sylvester import sylvester
from functrans.typing import Array, ArrayLike


def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """x with a x + x b = q, for a of shape (..., m, m), b (..., n, n) and q (..., m, n).

    By complex Schur forms (Bartels and Stewart, 1972), differentiated as a solution. Infinite or
    NaN where a and -b have a common eigenvalue. `method` and `tol` are for JAX's other method,
    which needs matrices that can be diagonalised; this one does not. Raises ShapeError when shapes
    do not fit, ArgumentError for an unknown method.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> ft.scipy.linalg.solve_sylvester(2.0 * jnp.eye(2), jnp.eye(2), 3.0 * jnp.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if method not in ("schur", "eigen"):
        raise ArgumentError(f"functrans.scipy.linalg.solve_sylvester: method={method!r}.",
                            where=user_source(), fix="method='schur' or 'eigen'")
    a, b, q = promote_dtypes_inexact("linalg.solve_sylvester", a, b, q)
    matrices("solve_sylvester", a, True), matrices("solve_sylvester", b, True)
    if q.ndim < 2 or q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ShapeError(f"functrans.scipy.linalg.solve_sylvester: q of shape {q.shape} does not "
                         f"fit a of shape {a.shape} and b of shape {b.shape}.",
                         where=user_source(), why="it has the rows of a and the columns of b.")
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], q.shape[:-2])
    return sylvester(*(jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, q)))


def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """x with a x + x a* = q, for square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.solve_continuous_lyapunov(ft.numpy.eye(2), 2.0 * ft.numpy.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = matrices("solve_continuous_lyapunov", a, True)
    return solve_sylvester(x, matrix.adjoint(x), q)


solve_lyapunov = solve_continuous_lyapunov


def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """x with a x a* - x + q = 0, for square matrices (..., n, n).

    `method` is "direct", a system of n^2 equations, which is the default below n = 10, or
    "bilinear", a continuous equation of (a* - 1)^-1 (a* + 1), which needs that -1 and 1 are no
    eigenvalues. Raises ArgumentError for another.

    >>> import functrans as ft
    >>> a, q = 0.5 * ft.numpy.eye(2), 0.75 * ft.numpy.eye(2)
    >>> ft.scipy.linalg.solve_discrete_lyapunov(a, q).round(5).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if method not in (None, "direct", "bilinear"):
        raise ArgumentError(f"functrans.scipy.linalg.solve_discrete_lyapunov: method={method!r}.",
                            where=user_source(), fix="method='direct' or 'bilinear'")
    a, q = promote_dtypes_inexact("linalg.solve_discrete_lyapunov", a, q)
    a = matrices("solve_discrete_lyapunov", a, True)
    if q.ndim < 2 or q.shape[-2:] != a.shape[-2:]:
        raise ShapeError(f"functrans.scipy.linalg.solve_discrete_lyapunov: a of shape {a.shape}, q "
                         f"of shape {q.shape}.", where=user_source(), why="they are alike.")
    lead = jnp.broadcast_shapes(a.shape[:-2], q.shape[:-2])
    a, q = (jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, q))
    n = a.shape[-1]
    if method == "direct" or (method is None and n < 10):
        # row-major vec(a x a*) = (a kron conj(a)) vec(x)
        left = lax.reshape(a, (*lead, n, 1, n, 1))
        right = lax.reshape(matrix.conjugate(a), (*lead, 1, n, 1, n))
        operator = lax.reshape(left * right, (*lead, n * n, n * n))
        identity = matrix.eye(operator.shape, a.dtype)
        return lax.reshape(solve(identity - operator, lax.reshape(q, (*lead, n * n, 1))), q.shape)
    h = matrix.adjoint(a)
    identity = matrix.eye(a.shape, a.dtype)
    apart = h + identity
    b = solve(matrix.swap_last(apart), matrix.swap_last(h - identity))
    b = matrix.swap_last(b)  # (a* - 1) (a* + 1)^-1
    # c = 2 (a + 1)^-1 q (a* + 1)^-1
    c = solve(a + identity, q)
    c = 2.0 * matrix.swap_last(solve(matrix.swap_last(apart), matrix.swap_last(c)))
    return solve_sylvester(matrix.adjoint(b), b, -c)
