"""cossin: the four blocks of a unitary matrix as cosines and sines of angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import matrix
from functrans.scipy.arguments import known_size, of_rank
from functrans.typing import Array, ArrayLike


def cossin(X: ArrayLike | Sequence[ArrayLike], p: int | None = None, q: int | None = None,
           separate: bool = False, swap_sign: bool = False, compute_u: bool = True,
           compute_vh: bool = True
           ) -> tuple[Array | None, Array, Array | None] | tuple[
               tuple[Array, Array] | None, Array, tuple[Array, Array] | None]:
    """U, CS and V* of a unitary matrix X = U CS V*, where U and V have two blocks on the diagonal.

    X is (m, m) with blocks of p rows and q columns, or the four blocks (x11, x12, x21, x22). CS has
    cosines in its diagonal blocks and sines in the others, those above with a minus sign, or with
    `swap_sign` those below. With `separate` (u1, u2), angles theta and (v1h, v2h). Angles rise.
    Factors that are not computed are None. Without derivative where angles are 0 or equal.
    Raises ShapeError where p and q do not fit.
    Source: Golub and Van Loan, Matrix Computations (2013), 2.5.4.

    >>> import functrans as ft
    >>> x = ft.numpy.array([[0.6, -0.8], [0.8, 0.6]])
    >>> u, cs, vh = ft.scipy.linalg.cossin(x, 1, 1)
    >>> print((u @ cs @ vh).round(4))
    [[ 0.6 -0.8]
     [ 0.8  0.6]]
    """
    if isinstance(X, (tuple, list)) and len(X) == 4 and jnp.ndim(X[0]) == 2:
        blocks = [jnp.asarray(x) for x in X]
        p, q = blocks[0].shape
        x: Any = jnp.concatenate([jnp.concatenate(blocks[:2], axis=1),
                             jnp.concatenate(blocks[2:], axis=1)])
    else:
        x = X
    x = of_rank("linalg.cossin", "X", matrices("cossin", x, True), 2)
    m = x.shape[0]
    if p is None or q is None:
        raise ShapeError("functrans.scipy.linalg.cossin: p and q are not given.",
                         where=user_source(), why="they are the rows and columns of the first "
                         "block.", fix="cossin(X, p=..., q=...)")
    rows, columns = (known_size("linalg.cossin", name, v) for name, v in (("p", p), ("q", q)))
    if rows >= m or columns >= m:
        raise ShapeError(f"functrans.scipy.linalg.cossin: p={p}, q={q} of {m}.",
                         where=user_source(), why="each of the four blocks has elements.")
    r = min(rows, columns, m - rows, m - columns)
    n11 = min(rows, columns) - r
    n12 = min(rows, m - columns) - r
    n21 = min(m - rows, columns) - r
    n22 = min(m - rows, m - columns) - r
    u1, c, v1h = jnp.linalg.svd(x[:rows, :columns], full_matrices=True)
    # the second block's columns are orthogonal: the longest first, which the others may trust
    below = matrix.matmul(x[rows:, :columns], matrix.adjoint(v1h))[:, n11:][:, ::-1]
    full, upper = jnp.linalg.qr(below, mode="complete")
    size = n21 + r
    edge = jnp.diag(upper)[:size]
    lengths = jnp.abs(edge)
    phases = jnp.where(lengths > 0, edge / jnp.where(lengths > 0, lengths, 1), 1)
    turned = (full[:, :size] * phases)[:, ::-1]
    u2 = jnp.concatenate([full[:, size:], turned], axis=1)
    sines, cosines = lengths[::-1][:r], c[n11:n11 + r]
    theta = jnp.arctan2(sines, cosines)
    cs = _middle(theta, (m, rows, columns), (n11, n12, n21, n22), x.dtype)
    u = _diagonal(u1, u2)
    v2h = matrix.matmul(matrix.adjoint(cs[:, columns:]),
                        matrix.matmul(matrix.adjoint(u), x[:, columns:]))
    if swap_sign:  # the other half of both factors with the other sign
        cs = cs.at[:rows, columns:].multiply(-1).at[rows:, :columns].multiply(-1)
        u2, v2h = -u2, -v2h
        u = _diagonal(u1, u2)
    if separate:
        return ((u1, u2) if compute_u else None, theta, (v1h, v2h) if compute_vh else None)
    return u if compute_u else None, cs, _diagonal(v1h, v2h) if compute_vh else None


def _diagonal(a: Array, b: Array) -> Array:
    whole = jnp.zeros((a.shape[0] + b.shape[0],) * 2, a.dtype)
    return whole.at[:a.shape[0], :a.shape[0]].set(a).at[a.shape[0]:, a.shape[0]:].set(b)


def _middle(theta: Array, shape: tuple[int, int, int], parts: tuple[int, int, int, int],
            dtype: Any) -> Array:
    m, p, q = shape
    n11, n12, n21, n22 = parts
    r = theta.size
    cosines, sines = jnp.diag(jnp.cos(theta)), jnp.diag(jnp.sin(theta))

    def put(cs: Array, row: int, column: int, block: Array) -> Array:
        found: Array = cs.at[row:row + block.shape[0], column:column + block.shape[1]].set(
            block.astype(dtype))
        return found

    def ones(size: int) -> Array:
        return jnp.eye(size, dtype=theta.dtype)

    cs = jnp.zeros((m, m), dtype)
    cs = put(put(cs, 0, 0, ones(n11)), n11, n11, cosines)
    cs = put(put(cs, n11, q + n22, -sines), n11 + r, q + n22 + r, -ones(n12))
    cs = put(put(cs, p + n22, n11, sines), p + n22 + r, n11 + r, ones(n21))
    return put(put(cs, p, q, ones(n22)), p + n22, q + n22, cosines)
