"""Linear systems: triangular and general solves, and determinants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import DTypeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives import lapack
from functrans.primitives.arithmetic import mul, neg, sub
from functrans.primitives.base import sample_array, shapes_differ
from functrans.primitives.broadcast import broadcast_in_dim, move_axis, reduce_sum
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import add_any
from functrans.primitives.matrix import (
    MatrixPrimitive,
    conjugate,
    diagonal,
    eye,
    is_complex,
    matmul,
    real_part,
    swap_last,
    trace_of_product,
    tril,
    triu,
)
from functrans.primitives.shape import expand_dims, reshape, squeeze

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["adjugate", "adjugate_p", "det", "det_p", "inv", "slogdet", "slogdet_p", "solve",
           "solve_p", "triangular_solve", "triangular_solve_p"]


def _sample_matrix(*lead: int, n: int = 3, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Well-conditioned matrices."""
    return sample_array(*lead, n, n, seed=seed, dtype=dtype) + 3 * np.eye(n, dtype=dtype)


class System(MatrixPrimitive, abstract=True):
    """Solves linear systems with the matrix `a`; linear in the right-hand side b."""

    def check_system(self, a: ShapedArray, b: ShapedArray, left_side: bool) -> ShapedArray:
        """The type of the solution: that of b."""
        self.check(a)
        if a.dtype != b.dtype:
            raise DTypeError(f"{self.name} needs operands of one dtype, got {a} and {b}.",
                             where=user_source(), fix=f"b.astype({a.dtype.name!r})")
        side = -2 if left_side else -1
        if b.ndim != a.ndim or a.shape[:-2] != b.shape[:-2] or b.shape[side] != a.shape[-1]:
            raise shapes_differ(self.name, (a, b), f"the {'rows' if left_side else 'columns'} of "
                                "the right-hand side are as many as the matrix has, and leading "
                                "axes are equal.")
        return b.strong()

    def system_cost(self, a: ShapedArray, b: ShapedArray, flops: Any) -> Cost:
        return Cost(flops, a.nbytes + b.nbytes + b.nbytes)


class TriangularSolve(System):
    """x with op(a) x = b, or x op(a) = b, for a triangle of a; the other one is not read.

    op(a) is a, transposed when `transpose_a`, conjugated when `conjugate_a`; the diagonal counts as
    ones when `unit_diagonal`.
    """

    def type(self, a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool,
             transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> ShapedArray:
        return self.check_system(a, b, left_side)

    def evaluate(self, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                 conjugate_a: bool, unit_diagonal: bool) -> np.ndarray[Any, Any]:
        a, b = np.asarray(a), np.asarray(b)
        if conjugate_a:
            a = a.conj()
        if unit_diagonal:
            a = a.copy()
            index = np.arange(a.shape[-1])
            a[..., index, index] = 1
        if transpose_a:
            a, lower = a.mT, not lower
        if left_side:
            return lapack.solve_triangular(a, b, lower)
        return lapack.solve_triangular(a.mT, b.mT, not lower).mT

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, left_side: bool,
            lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> Any:
        (a, b), (ta, tb) = primals, tangents
        params = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                  "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}
        x = self.bind(a, b, **params)
        rhs = tb
        if ta is not None:
            ta = tril(ta, -int(unit_diagonal)) if lower else triu(ta, int(unit_diagonal))
            ta = conjugate(ta) if conjugate_a else ta
            ta = swap_last(ta) if transpose_a else ta
            moved = neg(matmul(ta, x) if left_side else matmul(x, ta))
            rhs = moved if rhs is None else add_any(rhs, moved)
        return x, self.bind(a, rhs, **params)

    def transpose(self, ct: Any, a: Any, b: Linear, *, left_side: bool, lower: bool,
                  transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> tuple[None, Any]:
        return None, self.bind(a, ct, left_side=left_side, lower=lower,
                               transpose_a=not transpose_a, conjugate_a=conjugate_a,
                               unit_diagonal=unit_diagonal)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        if axes[0] is not None:
            return super().batch(operands, axes, **params)
        (a, b), axis = operands, axes[1]
        return _lanes_as_sides(self, a, b, axis, params["left_side"], **params)

    def cost(self, a: ShapedArray, b: ShapedArray, **params: Any) -> Cost:
        return self.system_cost(a, b, b.size * a.shape[-1])

    def samples(self) -> Iterator[Sample]:
        plain = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
                 "unit_diagonal": False}
        a, b = _sample_matrix(), sample_array(3, 2, seed=1)
        yield Sample((a, b), plain)
        yield Sample((a, b), {**plain, "lower": False, "transpose_a": True})
        yield Sample((a, b), {**plain, "transpose_a": True, "unit_diagonal": True})
        yield Sample((_sample_matrix(2), sample_array(2, 4, 3, seed=1)),
                     {**plain, "left_side": False, "lower": False})
        yield Sample((_sample_matrix(dtype=np.complex64), sample_array(3, 2, dtype=np.complex64)),
                     {**plain, "conjugate_a": True, "transpose_a": True})


class Solve(System):
    """x with a x = b for square matrices a; infinities or NaN where one is singular."""

    def type(self, a: ShapedArray, b: ShapedArray) -> ShapedArray:
        return self.check_system(a, b, True)

    def evaluate(self, a: Any, b: Any) -> np.ndarray[Any, Any]:
        return lapack.solve(np.asarray(a), np.asarray(b))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a, b), (ta, tb) = primals, tangents
        x = self.bind(a, b)
        if ta is None:
            return x, self.bind(a, tb)
        moved = neg(matmul(ta, x))
        return x, self.bind(a, moved if tb is None else add_any(tb, moved))

    def transpose(self, ct: Any, a: Any, b: Linear) -> tuple[None, Any]:
        return None, self.bind(swap_last(a), ct)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        if axes[0] is not None:
            return super().batch(operands, axes)
        (a, b), axis = operands, axes[1]
        return _lanes_as_sides(self, a, b, axis, True)

    def cost(self, a: ShapedArray, b: ShapedArray, **params: Any) -> Cost:
        n = a.shape[-1]
        return self.system_cost(a, b, a.size * n * 2 // 3 + 2 * b.size * n)

    def samples(self) -> Iterator[Sample]:
        yield Sample((_sample_matrix(), sample_array(3, 2, seed=1)))
        yield Sample((_sample_matrix(2), sample_array(2, 3, 1, seed=1)))
        yield Sample((_sample_matrix(dtype=np.complex64), sample_array(3, 2, dtype=np.complex64)))


def _lanes_as_sides(primitive: System, a: Any, b: Any, axis: int | None, left: bool,
                    **params: Any) -> tuple[Any, int]:
    """One matrix for all lanes of b: the lanes become further right-hand sides."""
    assert axis is not None
    at = b.ndim - 1 if left else b.ndim - 3
    b = move_axis(b, axis, at)
    *lead, i, j, k = b.shape
    flat = reshape(b, (*lead, i, j * k) if left else (*lead, i * j, k))
    return reshape(primitive.bind(a, flat, **params), b.shape), at


class Determinant(MatrixPrimitive, abstract=True):
    """A function of square matrices whose results are scalars."""

    def cost(self, a: ShapedArray, **params: Any) -> Cost:
        return Cost(a.size * a.shape[-1] * 2 // 3, a.nbytes)

    def samples(self) -> Iterator[Sample]:
        for n in (1, 2, 4):
            yield Sample((_sample_matrix(n=n),))
        yield Sample((_sample_matrix(2),))
        yield Sample((_sample_matrix(n=4, dtype=np.complex64),))


class Det(Determinant):
    """The determinant. Its first derivative is right where the matrix is singular."""

    def type(self, a: ShapedArray) -> ShapedArray:
        self.check(a)
        return ShapedArray(a.shape[:-2], a.dtype)

    def evaluate(self, a: Any) -> np.ndarray[Any, Any]:
        return np.asarray(np.linalg.det(a))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a,), (t,) = primals, tangents
        return self.bind(a), trace_of_product(adjugate(a), t)  # Jacobi's formula


class Slogdet(Determinant):
    """The sign of the determinant (a complex number of modulus 1) and the log of its modulus.

    The derivative is infinite or NaN where the matrix is singular.
    """

    multiple_results = True

    def type(self, a: ShapedArray) -> list[ShapedArray]:
        self.check(a)
        lead = a.shape[:-2]
        return [ShapedArray(lead, a.dtype), ShapedArray(lead, dtypes.real_dtype(a.dtype))]

    def evaluate(self, a: Any) -> list[np.ndarray[Any, Any]]:
        sign, logabsdet = np.linalg.slogdet(a)
        return [np.asarray(sign), np.asarray(logabsdet)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a,), (t,) = primals, tangents
        sign, logabsdet = self.bind(a)
        change = trace_of_product(inv(a), t)
        real_change = real_part(change)
        if not is_complex(a):
            return [sign, logabsdet], [None, real_change]
        turn = sub(change, convert_element_type(real_change, a.dtype))
        return [sign, logabsdet], [mul(sign, turn), real_change]


class Adjugate(Determinant):
    """The transposed matrix of cofactors, det(a) inv(a), which exists for singular a too.

    From the singular value decomposition U S V: det(U) det(V) V* adj(S) U*. Its own derivative
    needs a matrix that is not singular.
    """

    def type(self, a: ShapedArray) -> ShapedArray:
        self.check(a)
        return a.strong()

    def evaluate(self, a: Any) -> np.ndarray[Any, Any]:
        u, s, vh = lapack.or_nan(np.linalg.svd, np.asarray(a))
        n = s.shape[-1]
        others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1, dtype=s.dtype)
        sign = np.linalg.det(u) * np.linalg.det(vh)
        return np.asarray(sign[..., None, None]
                          * ((vh.conj().mT * others[..., None, :]) @ u.conj().mT))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a,), (t,) = primals, tangents
        out, inverse = self.bind(a), inv(a)
        change = _scale(trace_of_product(inverse, t), out)
        return out, sub(change, matmul(matmul(inverse, t), out))

    def samples(self) -> Iterator[Sample]:
        yield Sample((_sample_matrix(n=4),))
        yield Sample((_sample_matrix(2),))
        yield Sample((_sample_matrix(n=4, dtype=np.complex64),))


def _scale(s: Any, x: Any) -> Any:
    """s x for one number s per matrix."""
    return mul(broadcast_in_dim(s, x.shape, range(x.ndim - 2)), x)


triangular_solve_p, solve_p = TriangularSolve(), Solve()
det_p, slogdet_p, adjugate_p = Det(), Slogdet(), Adjugate()


def triangular_solve(a: Array, b: Array, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """x with op(a) x = b when `left_side`, else x op(a) = b, for triangular matrices a.

    Only the triangle that `lower` names is read; op(a) is a, transposed and conjugated as asked;
    the diagonal counts as ones when `unit_diagonal`. b may be a vector per matrix.
    A zero on the diagonal gives infinities or NaN. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> a, b = ft.numpy.array([[2.0, 0.0], [1.0, 1.0]]), ft.numpy.array([[2.0], [3.0]])
    >>> ft.lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
    [[1.0], [2.0]]
    """
    a_ndim, b_ndim = get_aval(a).ndim, get_aval(b).ndim
    vector = b_ndim == a_ndim - 1
    at = b_ndim if left_side else b_ndim - 1
    x = triangular_solve_p.bind(
        a, expand_dims(b, (at,)) if vector else b, left_side=bool(left_side), lower=bool(lower),
        transpose_a=bool(transpose_a), conjugate_a=bool(conjugate_a) and is_complex(a),
        unit_diagonal=bool(unit_diagonal))
    return squeeze(x, (at,)) if vector else x


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b for stacks of square matrices a and of right-hand sides b."""
    return solve_p.bind(a, b)


def inv(a: ArrayLike) -> Array:
    """The inverse matrices; infinities or NaN where one is singular."""
    return solve_p.bind(a, eye(get_aval(a).shape, get_aval(a).dtype))


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices."""
    return det_p.bind(a)


def slogdet(a: Any) -> tuple[Any, Any]:
    """The signs of the determinants and the logarithms of their absolute values."""
    sign, logabsdet = slogdet_p.bind(a)
    return sign, logabsdet


def adjugate(a: Any) -> Any:
    """det(a) inv(a), also for singular a.

    Up to 3 x 3 it is a polynomial in a (Cayley and Hamilton), right in every derivative.
    """
    aval = get_aval(a)
    n = aval.shape[-1]
    if n not in (1, 2, 3):
        return adjugate_p.bind(a)
    identity = eye(aval.shape, aval.dtype)
    if n == 1:
        return identity
    trace = reduce_sum(diagonal(a), (a.ndim - 2,))
    if n == 2:
        return sub(_scale(trace, identity), a)
    square = matmul(a, a)
    minors = mul(sub(mul(trace, trace), reduce_sum(diagonal(square), (a.ndim - 2,))), 0.5)
    return add_any(sub(square, _scale(trace, a)), _scale(minors, identity))
