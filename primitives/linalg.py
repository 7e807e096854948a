"""Factorizations that give triangles: Cholesky, LU and QR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Size
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives import lapack
from functrans.primitives.arithmetic import add, mul, sub
from functrans.primitives.base import full, sample_array, zeros
from functrans.primitives.broadcast import move_axis
from functrans.primitives.matrix import (
    MatrixPrimitive,
    adjoint,
    antihermitian,
    block,
    columns,
    eye,
    from_lower,
    is_complex,
    matmul,
    rows,
    take_rows,
    tril,
    triu,
)
from functrans.primitives.shape import concatenate
from functrans.primitives.solve import triangular_solve

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["cholesky", "cholesky_p", "lu", "lu_p", "lu_pivots_to_permutation",
           "lu_pivots_to_permutation_p", "qr", "qr_p"]


class Cholesky(MatrixPrimitive):
    """The lower triangle L with L L* = a; NaN where a is not positive definite.

    Only the lower triangle of a is read. Derivative: I. Murray, Differentiation of the Cholesky
    decomposition, arXiv:1602.07527.
    """

    def type(self, a: ShapedArray) -> ShapedArray:
        self.check(a)
        return a.strong()

    def evaluate(self, a: Any) -> np.ndarray[Any, Any]:
        return np.tril(lapack.or_nan(lambda x: [np.linalg.cholesky(x)], np.asarray(a))[0])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a,), (t,) = primals, tangents
        factor = self.bind(a)
        # L^-1 t L^-*, of which the lower triangle counts, its diagonal by half
        half = triangular_solve(factor, from_lower(t), left_side=True, lower=True)
        inner = triangular_solve(factor, half, left_side=False, lower=True, transpose_a=True,
                                 conjugate_a=True)
        return factor, matmul(factor, mul(add(tril(inner), tril(inner, -1)), 0.5))

    def cost(self, a: ShapedArray) -> Cost:
        return Cost(a.size * a.shape[-1] // 3, a.nbytes + a.nbytes)

    def samples(self) -> Iterator[Sample]:
        for lead, dtype in (((), np.float32), ((2,), np.float32), ((), np.complex64)):
            x = sample_array(*lead, 3, 3, dtype=dtype)
            yield Sample((x @ x.conj().mT + np.eye(3, dtype=dtype),))


class Lu(MatrixPrimitive):
    """L and U in one matrix, the exchanged rows, and the permutation, with a[permutation] = L U.

    L has a unit diagonal, which is not stored; partial pivoting. The derivative needs U to be
    invertible.
    """

    square = False
    multiple_results = True

    def type(self, a: ShapedArray) -> list[ShapedArray]:
        self.check(a)
        *lead, m, n = a.shape
        index = np.dtype(np.int32)
        return [a.strong(), ShapedArray((*lead, min(m, n)), index), ShapedArray((*lead, m), index)]

    def evaluate(self, a: Any) -> list[np.ndarray[Any, Any]]:
        factors, pivots = lapack.lu_factor(np.asarray(a))
        return [factors, pivots, lapack.pivots_to_permutation(pivots, a.shape[-2])]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a,), (t,) = primals, tangents
        factors, pivots, order = self.bind(a)
        m, n = get_aval(a).shape[-2:]
        k = min(m, n)
        low, up = _square_factors(factors, m, n, k)
        # with X = L^-1 P t U^-1: dL = L tril(X, -1) and dU = triu(X) U
        inner = triangular_solve(low, take_rows(t, order), left_side=True, lower=True,
                                 unit_diagonal=True)
        inner = triangular_solve(up, inner, left_side=False, lower=False)
        change = add(matmul(low, tril(inner, -1)), matmul(triu(inner), up))
        return [factors, pivots, order], [change, None, None]

    def cost(self, a: ShapedArray) -> Cost:
        m, n = a.shape[-2:]
        k = min(m, n)
        return Cost(a.size * k - k * k * k // 3, a.nbytes + a.nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 3) + 0,))
        yield Sample((sample_array(2, 4, 3),))
        yield Sample((sample_array(2, 4, seed=3),))
        yield Sample((sample_array(3, 3, dtype=np.complex64),))


def _square_factors(factors: Any, m: Size, n: Size, k: Size) -> tuple[Any, Any]:
    """L (m, m) and U (n, n), filled up with parts of identities where a is not square."""
    dtype, lead = factors.dtype, factors.shape[:-2]
    low, up = columns(tril(factors, -1), 0, k), rows(triu(factors), 0, k)
    if m > k:
        low = concatenate([low, full((*lead, m, m - k), 0, dtype)], low.ndim - 1)
    low = add(low, eye((*lead, m, m), dtype))
    if n > k:
        bottom = concatenate([full((*lead, n - k, k), 0, dtype), eye((*lead, n - k, n - k), dtype)],
                             up.ndim - 1)
        up = concatenate([up, bottom], up.ndim - 2)
    return low, up


class LuPivotsToPermutation(Primitive):
    """The permutation of rows that exchanging row i and row pivots[i], in order, amounts to.

    A pivot outside of the rows is the nearest of them.
    """

    def type(self, pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
        if dtypes.kind(pivots.dtype) not in "iu":
            raise DTypeError(f"lu_pivots_to_permutation takes integers, got {pivots}.",
                             where=user_source())
        if pivots.ndim < 1 or pivots.shape[-1] > permutation_size:
            raise ShapeError(f"lu_pivots_to_permutation: {pivots} exchanges more rows than "
                             f"{permutation_size}.", where=user_source())
        return ShapedArray((*pivots.shape[:-1], permutation_size), np.dtype(np.int32))

    def evaluate(self, pivots: Any, *, permutation_size: int) -> np.ndarray[Any, Any]:
        return lapack.pivots_to_permutation(np.asarray(pivots), permutation_size)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None],
              **params: Any) -> tuple[Any, int]:
        return self.bind(move_axis(operands[0], axes[0] or 0, 0), **params), 0

    def samples(self) -> Iterator[Sample]:
        yield Sample((np.array([2, 1, 2], np.int32),), {"permutation_size": 4})
        yield Sample((np.array([[1, 1], [0, 1]], np.int32),), {"permutation_size": 2})


class Qr(MatrixPrimitive):
    """Orthonormal columns Q and an upper triangle R with Q R = a; all of Q when `full_matrices`.

    The derivative needs the first min(m, n) columns of a to be independent. The further columns of
    a full Q are a choice of basis: its derivative keeps them orthogonal without turning them.
    """

    square = False
    multiple_results = True

    def type(self, a: ShapedArray, *, full_matrices: bool) -> list[ShapedArray]:
        self.check(a)
        *lead, m, n = a.shape
        k = m if full_matrices else min(m, n)
        return [ShapedArray((*lead, m, k), a.dtype), ShapedArray((*lead, k, n), a.dtype)]

    def evaluate(self, a: Any, *, full_matrices: bool) -> list[np.ndarray[Any, Any]]:
        q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        return [np.asarray(q), np.asarray(r)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool) -> Any:
        (a,), (t,) = primals, tangents
        q, r = self.bind(a, full_matrices=full_matrices)
        m, n = get_aval(a).shape[-2:]
        k = min(m, n)
        whole = q.shape[-1] > k  # there are columns of Q beyond those of a
        q1 = columns(q, 0, k) if whole else q
        r1 = columns(rows(r, 0, k) if whole else r, 0, k)
        # of the first k columns: with X = Q* t R^-1, dQ = Q W + (1 - Q Q*) t R^-1, where W is
        # antihermitian and its lower triangle that of X
        t1 = triangular_solve(r1, columns(t, 0, k) if n > k else t, left_side=False, lower=False)
        x = matmul(adjoint(q1), t1)
        strict = tril(x, -1)
        turn = sub(strict, adjoint(strict))
        if is_complex(a):
            turn = add(turn, _diagonal_part(antihermitian(x)))
        if whole:
            q2 = columns(q, k, m)
            below = matmul(adjoint(q2), t1)
            corner = full((*q.shape[:-2], m - k, m - k), 0, q.dtype)
            tq = matmul(q, block(turn, _minus_adjoint(below), below, corner))
            tq1 = columns(tq, 0, k)
        else:
            tq = tq1 = add(t1, matmul(q, sub(turn, x)))
        tr = matmul(sub(x, turn), r1)
        if n > k:
            a2, t2 = columns(a, k, n), columns(t, k, n)
            right = add(matmul(adjoint(tq1), a2), matmul(adjoint(q1), t2))
            tr = concatenate([tr, right], tr.ndim - 1)
        if whole:
            tr = concatenate([tr, zeros(get_aval(rows(r, k, m)))], tr.ndim - 2)
        return [q, r], [tq, tr]

    def cost(self, a: ShapedArray, **params: Any) -> Cost:
        k = min(a.shape[-2:])
        return Cost(4 * a.size * k, 3 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 4, 3), (2, 4)):
            for whole in (False, True):
                yield Sample((sample_array(*shape),), {"full_matrices": whole})


def _diagonal_part(x: Any) -> Any:
    return sub(tril(x), tril(x, -1))


def _minus_adjoint(x: Any) -> Any:
    return mul(adjoint(x), -1.0)


cholesky_p, lu_p, qr_p = Cholesky(), Lu(), Qr()
lu_pivots_to_permutation_p = LuPivotsToPermutation()


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangle L with L L* = x for Hermitian positive definite matrices x.

    x is replaced by (x + x*) / 2 first when `symmetrize_input`, else its lower triangle is read.
    NaN where x is not positive definite. Raises ShapeError when the matrices are not square.

    >>> import functrans as ft
    >>> ft.lax.linalg.cholesky(ft.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    cholesky_p.check(get_aval(x))
    return cholesky_p.bind(symmetrize(x) if symmetrize_input else x)


def symmetrize(x: Any) -> Any:
    """(x + x*) / 2, the Hermitian part of x."""
    return mul(add(x, adjoint(x)), 0.5)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the pivots, and the permutation, with x[permutation] = L U.

    L has ones on its diagonal, which are not stored.

    >>> import functrans as ft
    >>> factors, pivots, order = ft.lax.linalg.lu(ft.numpy.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors.tolist(), pivots.tolist(), order.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
    """
    factors, pivots, order = lu_p.bind(x)
    return factors, pivots, order


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that exchanging row i and row pivots[i], one after the other, amounts to.

    >>> import functrans as ft
    >>> pivots = ft.numpy.array([2, 2], "int32")
    >>> ft.lax.linalg.lu_pivots_to_permutation(pivots, 3).tolist()
    [2, 0, 1]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=permutation_size)


def qr(x: ArrayLike, *, full_matrices: bool = True) -> tuple[Array, Array]:
    """Orthonormal columns Q and an upper triangle R with Q R = x.

    Shapes (m, n) give (m, m) and (m, n), or (m, k) and (k, n) for k = min(m, n) when not
    `full_matrices`.

    >>> import functrans as ft
    >>> q, r = ft.lax.linalg.qr(ft.numpy.ones((4, 2)), full_matrices=False)
    >>> q.shape, r.shape
    ((4, 2), (2, 2))
    """
    q, r = qr_p.bind(x, full_matrices=bool(full_matrices))
    return q, r
