"""Linear algebra composed of the primitives: reflectors and tridiagonal systems."""

from __future__ import annotations

from typing import Any

from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.lax.loops import scan
from functrans.primitives.arithmetic import add, div, mul, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, move_axis
from functrans.primitives.matrix import adjoint, columns, eye, matmul, tril
from functrans.primitives.shape import concatenate, slice_in_dim
from functrans.typing import Array

__all__ = ["householder_product", "tridiagonal_solve"]


def householder_product(a: Array, taus: Array) -> Array:
    """The first n columns of H_1 ... H_k, H_i = 1 - taus[i] v_i v_i*, of shape (..., m, n) as a.

    v_i is zero above row i, one there, and column i of a below. Raises ShapeError when m < n or
    there are more taus than columns.

    >>> import functrans as ft
    >>> a = ft.numpy.zeros((2, 2))
    >>> ft.lax.linalg.householder_product(a, ft.numpy.array([2.0, 0.0])).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    *lead, m, n = a.shape
    k = taus.shape[-1]
    if m < n or k > n:
        raise ShapeError(f"householder_product: a has shape {a.shape}, taus {taus.shape}.",
                         where=user_source(), why="there must be at least as many rows as columns, "
                                                  "and as columns as taus.")
    reflectors = add(tril(a, -1), eye(a.shape, a.dtype))
    out = eye((*lead, m, n), a.dtype)
    for i in reversed(range(k)):
        v = columns(reflectors, i, i + 1)
        tau = slice_in_dim(taus, i, i + 1, axis=-1)
        scaled = mul(v, broadcast_in_dim(tau, v.shape, (*range(v.ndim - 2), v.ndim - 1)))
        out = sub(out, matmul(scaled, matmul(adjoint(v), out)))
    return out


def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array) -> Array:
    """x with A x = b for A with diagonals dl (below, dl[0] unused), d and du (above, last unused).

    Diagonals have shape (..., n), b (..., n, k). Without pivoting (Thomas), in n steps: A should be
    diagonally dominant or positive definite. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> fnp = ft.numpy
    >>> d, off = fnp.full(3, 2.0), fnp.zeros(3)
    >>> ft.lax.linalg.tridiagonal_solve(off, d, off, fnp.ones((3, 1))).tolist()
    [[0.5], [0.5], [0.5]]
    """
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise ShapeError(f"tridiagonal_solve: diagonals of shapes {dl.shape}, {d.shape} and "
                         f"{du.shape} do not fit right-hand sides of shape {b.shape}.",
                         where=user_source(), why="diagonals have shape (..., n), b (..., n, k).")
    axis = d.ndim - 1
    dl, d, du, b = (move_axis(x, axis, 0) for x in (dl, d, du, b))

    def wide(x: Any) -> Any:
        return broadcast_in_dim(x, b.shape[1:], range(len(b.shape) - 2))

    def eliminate(carry: Any, row: Any) -> Any:
        ratio, solved = carry
        low, middle, up, right = row
        pivot = sub(middle, mul(low, ratio))
        ratio = div(up, pivot)
        solved = div(sub(right, mul(wide(low), solved)), wide(pivot))
        return (ratio, solved), (ratio, solved)

    def substitute(below: Any, row: Any) -> Any:
        ratio, solved = row
        x = sub(solved, mul(wide(ratio), below))
        return x, x

    first = full(d.shape[1:], 0, d.dtype), full(b.shape[1:], 0, b.dtype)
    low = concatenate([full((1, *dl.shape[1:]), 0, dl.dtype), slice_in_dim(dl, 1, dl.shape[0])], 0)
    _, rows = scan(eliminate, first, (low, d, du, b))
    _, x = scan(substitute, first[1], rows, reverse=True)
    return move_axis(x, 0, axis)
