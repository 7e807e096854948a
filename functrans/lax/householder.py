"""Products of Householder reflectors, in the compact form of Schreiber and Van Loan (1989).

H_1 ... H_k = 1 - V T V*, with the reflectors as the columns of V and T an upper triangle: products
of matrices in place of k updates of rank one.
"""

from __future__ import annotations

from functrans.core.convert import to_array
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, sub
from functrans.primitives.matrix import (
    adjoint,
    columns,
    eye,
    matmul,
    rows,
    scale_columns,
    tril,
    triu,
)
from functrans.primitives.solve import triangular_solve_p
from functrans.typing import Array

__all__ = ["householder_product", "ormqr"]


def _factors(name: str, a: Array, taus: Array) -> tuple[Array, Array]:
    """V and T of the reflectors in the columns of a."""
    *lead, m, n = a.shape
    k = taus.shape[-1]
    if k > min(m, n) or taus.shape[:-1] != tuple(lead):
        raise ShapeError(f"{name}: a has shape {a.shape}, taus {taus.shape}.",
                         where=user_source(), why="there are at most as many taus as rows and as "
                                                  "columns, and leading axes are equal.")
    v = columns(a, 0, k)
    v = add(tril(v, -1), eye(v.shape, v.dtype))
    # T = D (1 + S D)^-1, D = diag(taus), S the part of V* V above its diagonal: right for any taus
    gram = scale_columns(triu(matmul(adjoint(v), v), 1), taus)
    identity = eye(gram.shape, gram.dtype)
    diagonal = scale_columns(identity, taus)
    t = triangular_solve_p.bind(gram, diagonal, left_side=False, lower=False, transpose_a=False,
                                conjugate_a=False, unit_diagonal=True)
    return v, t


def householder_product(a: Array, taus: Array) -> Array:
    """The first n columns of H_1 ... H_k, H_i = 1 - taus[i] v_i v_i*, of shape (..., m, n) as a.

    v_i is zero above row i, one there, and column i of a below. Raises ShapeError when m < n or
    there are more taus than columns.

    >>> import functrans as ft
    >>> a = ft.numpy.zeros((2, 2))
    >>> ft.lax.linalg.householder_product(a, ft.numpy.array([2.0, 0.0])).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    a, taus = to_array(a), to_array(taus)
    if a.ndim < 2 or a.shape[-2] < a.shape[-1]:
        raise ShapeError(f"householder_product: a has shape {a.shape}, taus {taus.shape}.",
                         where=user_source(), why="there must be at least as many rows as columns, "
                                                  "and as columns as taus.")
    v, t = _factors("householder_product", a, taus)
    return sub(eye(a.shape, a.dtype), matmul(v, matmul(t, adjoint(rows(v, 0, a.shape[-1])))))


def ormqr(a: Array, taus: Array, c: Array, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c for Q = H_1 ... H_k of reflectors as in `householder_product`, which is not made.

    c Q when not `left`; Q* in place of Q when `transpose`. a is (..., m, n), c (..., m, p), or
    (..., p, m) when not `left`. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> a, taus = jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="raw")
    >>> ft.lax.linalg.ormqr(a.mT, taus, jnp.array([[3.0], [4.0]]), transpose=True).round(4).tolist()
    [[-5.0], [0.0]]
    """
    a, taus, c = to_array(a), to_array(taus), to_array(c)
    if a.ndim < 2 or c.ndim != a.ndim or c.shape[-2 if left else -1] != a.shape[-2] \
            or c.shape[:-2] != a.shape[:-2]:
        raise ShapeError(f"ormqr: reflectors of shape {a.shape} do not fit c of shape {c.shape}.",
                         where=user_source(), why=f"c has as many {'rows' if left else 'columns'} "
                                                  "as a has rows, and leading axes are equal.")
    v, t = _factors("ormqr", a, taus)
    t = adjoint(t) if transpose else t
    if left:
        return sub(c, matmul(v, matmul(t, matmul(adjoint(v), c))))
    return sub(c, matmul(matmul(matmul(c, v), t), adjoint(v)))
