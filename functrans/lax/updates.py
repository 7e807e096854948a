"""Updates of matrices of rank one and of rank k."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.convert import to_array
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.lax.loops import scan
from functrans.primitives.arithmetic import add, div, mul, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, move_axis
from functrans.primitives.compare import eq, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dynamic_slice import dynamic_index_in_dim
from functrans.primitives.matrix import conjugate, matmul, real_part, swap_last, tril, triu
from functrans.primitives.shape import iota
from functrans.primitives.transcendental import sqrt
from functrans.typing import Array, ArrayLike

__all__ = ["cholesky_update", "symmetric_product"]


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangle S with S* S = R* R + w w*, for an upper triangle R, in O(n^2).

    R has shape (..., n, n), w (..., n); S has a positive diagonal where that of R is positive.
    Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> ft.lax.linalg.cholesky_update(3.0 * jnp.eye(2), jnp.array([4.0, 0.0])).tolist()
    [[5.0, 0.0], [0.0, 3.0]]
    """
    r, w = to_array(r_matrix), to_array(w_vector)
    if r.ndim < 2 or r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
        raise ShapeError(f"cholesky_update: a triangle of shape {r.shape} and a vector of shape "
                         f"{w.shape}.", where=user_source(),
                         why="they have shapes (..., n, n) and (..., n).")
    n, axis = r.shape[-1], r.ndim - 2
    if n == 0:
        return r

    def rotate(rest: Any, item: Any) -> Any:
        """One rotation turns what is left of w* into row i, so that its element i is zero."""
        row, i = item
        x = dynamic_index_in_dim(row, i, row.ndim - 1)
        y = dynamic_index_in_dim(rest, i, rest.ndim - 1)
        size = sqrt(add(_squared(x), _squared(y)))
        none = eq(size, full(size.shape, 0, size.dtype))
        safe = convert_element_type(select_n(none, size, full(size.shape, 1, size.dtype)), x.dtype)
        c = select_n(none, div(x, safe), full(x.shape, 1, x.dtype))
        s = div(y, safe)
        c, s, bc, bs = (broadcast_in_dim(v, row.shape, range(row.ndim))
                        for v in (c, s, conjugate(c), conjugate(s)))
        return sub(mul(c, rest), mul(s, row)), add(mul(bc, row), mul(bs, rest))

    rows = move_axis(triu(r), axis, 0)
    _, out = scan(rotate, conjugate(w), (rows, iota(np.int32, n)))
    result: Array = triu(move_axis(out, 0, axis))
    return result


def _squared(x: Any) -> Any:
    return real_part(mul(conjugate(x), x))


def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0,
                      beta: float = 0.0, symmetrize_output: bool = False) -> Array:
    """alpha A A^T + beta C, for A of shape (..., m, n) and symmetric C of shape (..., m, m).

    With `symmetrize_output` the upper triangle is that below it, transposed; else what C has there.
    Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> a = ft.numpy.array([[1.0], [2.0]])
    >>> ft.lax.linalg.symmetric_product(a, ft.numpy.eye(2), beta=3.0).tolist()
    [[4.0, 2.0], [2.0, 7.0]]
    """
    a, c = to_array(a_matrix), to_array(c_matrix)
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ShapeError(f"symmetric_product: A has shape {a.shape}, C {c.shape}.",
                         where=user_source(), why="they have shapes (..., m, n) and (..., m, m).")
    out = add(mul(matmul(a, swap_last(a)), alpha), mul(c, beta))
    return add(tril(out), swap_last(tril(out, -1))) if symmetrize_output else out
