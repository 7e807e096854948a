"""Kernels of dense linear algebra on NumPy arrays: what NumPy has not, and what it refuses.

All take stacks of matrices and never raise: a matrix that cannot be factored gives NaN, a division
by a zero pivot infinities, as in LAPACK's own results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["lu_factor", "or_nan", "pivots_to_permutation", "solve", "solve_triangular"]

Matrix = np.ndarray[Any, Any]

# Substitution is split down to blocks of this size, which LAPACK solves. float32, one core: 1024
# rows and one right-hand side take 2.3 ms with 32, 2.2 with 64, 3.0 with 128, 8.4 with 256, and
# 38 by np.linalg.solve on the whole triangle; with 1024 right-hand sides 57 to 77 and 140.
TRIANGLE_BLOCK = 64
# Columns that a panel of the LU factorization eliminates one by one; 16 to 64 take the same time.
PANEL = 32


def or_nan(function: Callable[[Matrix], Sequence[Matrix]], a: Matrix) -> list[Matrix]:
    """The results of `function` on a stack, NaN for the matrices on which NumPy raises."""
    try:
        return list(function(a))
    except np.linalg.LinAlgError:
        pass
    healthy = function(np.eye(*a.shape[-2:], dtype=a.dtype))
    lead = a.shape[:-2]
    outs = [np.full((*lead, *h.shape), np.nan, h.dtype) for h in healthy]
    for index in np.ndindex(*lead):
        try:
            for out, value in zip(outs, function(a[index]), strict=True):
                out[index] = value
        except np.linalg.LinAlgError:
            continue
    return outs


def solve_triangular(a: Matrix, b: Matrix, lower: bool) -> Matrix:
    """x with a x = b, where only one triangle of a is read."""
    if lower:  # in the opposite order of rows and columns it is an upper one
        return _substitute(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]
    return _substitute(a, b)


def _substitute(u: Matrix, b: Matrix) -> Matrix:
    n = u.shape[-1]
    if n <= TRIANGLE_BLOCK:
        return _solve_block(u, b)
    half = n // 2
    low = _substitute(u[..., half:, half:], b[..., half:, :])
    high = _substitute(u[..., :half, :half], b[..., :half, :] - u[..., :half, half:] @ low)
    return np.concatenate([high, low], -2)


def _solve_block(u: Matrix, b: Matrix) -> Matrix:
    """Elimination of an upper triangle has nothing to do, so this is back substitution."""
    u = np.triu(u)
    try:
        return np.asarray(np.linalg.solve(u, b))
    except np.linalg.LinAlgError:
        return _divide_back(u, b)


def _divide_back(u: Matrix, b: Matrix) -> Matrix:
    """Back substitution row by row, where zeros on the diagonal give infinities."""
    x = np.array(b)
    for i in reversed(range(u.shape[-1])):
        x[..., i, :] /= u[..., i, i, None]
        x[..., :i, :] -= u[..., :i, i, None] * x[..., i, None, :]
    return x


def solve(a: Matrix, b: Matrix) -> Matrix:
    """x with a x = b; infinities and NaN where a is singular."""
    try:
        return np.asarray(np.linalg.solve(a, b))
    except np.linalg.LinAlgError:
        pass
    out = np.empty(b.shape, b.dtype)
    for index in np.ndindex(*a.shape[:-2]):
        try:
            out[index] = np.linalg.solve(a[index], b[index])
        except np.linalg.LinAlgError:
            lu, pivots = lu_factor(a[index])
            unit = np.tril(lu, -1) + np.eye(lu.shape[-1], dtype=lu.dtype)
            rows = b[index][pivots_to_permutation(pivots, lu.shape[-1])]
            out[index] = _divide_back(np.triu(lu), solve_triangular(unit, rows, True))
    return out


def lu_factor(a: Matrix) -> tuple[Matrix, Matrix]:
    """L (unit diagonal, below) and U (above) in one matrix, and the rows exchanged, from 0.

    Right-looking and blocked, with partial pivoting (Golub & Van Loan, algorithm 3.4.1); the
    matrices of a stack are eliminated together.
    """
    *lead, m, n = a.shape
    k = min(m, n)
    x = np.array(a, order="C").reshape(math.prod(lead), m, n)
    pivots = np.zeros((x.shape[0], k), np.int32)
    every = np.arange(x.shape[0])
    for start in range(0, k, PANEL):
        stop = min(start + PANEL, k)
        for j in range(start, stop):
            chosen = j + np.argmax(_size(x[:, j:, j]), -1) if x.shape[0] else every
            pivots[:, j] = chosen
            _exchange(x, every, j, chosen)
            pivot = x[:, j, j]
            x[:, j + 1:, j] /= np.where(pivot == 0, 1, pivot)[:, None]
            x[:, j + 1:, j + 1:stop] -= x[:, j + 1:, j, None] * x[:, j, None, j + 1:stop]
        if stop < n:
            unit = np.tril(x[:, start:stop, start:stop], -1)
            unit[:, range(stop - start), range(stop - start)] = 1
            x[:, start:stop, stop:] = solve_triangular(unit, x[:, start:stop, stop:], True)
            x[:, stop:, stop:] -= x[:, stop:, start:stop] @ x[:, start:stop, stop:]
    return x.reshape(*lead, m, n), pivots.reshape(*lead, k)


def _size(x: Matrix) -> Matrix:
    """What LAPACK compares: of a complex number the sum of the sizes of its parts."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _exchange(x: Matrix, every: Matrix, j: int, chosen: Matrix) -> None:
    """Exchange row j and row chosen[i] of each matrix i."""
    if len(every) == 1:
        i = int(chosen[0])
        if i != j:
            x[0, [j, i]] = x[0, [i, j]]
        return
    kept = x[every, chosen]
    x[every, chosen] = x[:, j]
    x[:, j] = kept


def pivots_to_permutation(pivots: Matrix, size: int) -> Matrix:
    """The permutation of `size` rows that the exchanges, one after the other, amount to.

    Exchanges with rows that are not there are with the first or the last one.
    """
    lead, k = pivots.shape[:-1], pivots.shape[-1]
    flat = np.clip(pivots.reshape(math.prod(lead), k), 0, max(size - 1, 0))
    order = np.broadcast_to(np.arange(size, dtype=np.int32), (flat.shape[0], size)).copy()
    every = np.arange(flat.shape[0])
    for j in range(k):
        kept = order[every, flat[:, j]]
        order[every, flat[:, j]] = order[:, j]
        order[:, j] = kept
    return order.reshape(*lead, size)
