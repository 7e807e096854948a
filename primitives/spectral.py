"""Eigenvalues and singular values.

Where two eigenvalues (singular values) are equal, the vectors are a choice of basis and have no
derivative: theirs is infinite or NaN. The derivative of the values is right everywhere the values
are differentiable; the second derivative of the values contains that of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import ArgumentError
from functrans.core.primitive import Cost, Sample
from functrans.core.source import user_source
from functrans.primitives import lapack
from functrans.primitives.algorithms import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    check_hint,
)
from functrans.primitives.arithmetic import add, conj, div, mul, sub
from functrans.primitives.base import full, sample_array
from functrans.primitives.broadcast import broadcast_in_dim, reduce_sum
from functrans.primitives.convert import convert_element_type
from functrans.primitives.linalg import symmetrize
from functrans.primitives.matrix import (
    MatrixPrimitive,
    adjoint,
    antihermitian,
    block,
    columns,
    diagonal,
    eye,
    from_lower,
    inverse_differences,
    is_complex,
    matmul,
    real_part,
    rows,
    scale_columns,
    scale_rows,
)
from functrans.primitives.shape import slice_in_dim
from functrans.primitives.solve import inv, solve
from functrans.primitives.transcendental import sqrt

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["eig", "eig_p", "eigh", "eigh_p", "eigvalsh", "svd", "svd_p"]


class Eigh(MatrixPrimitive):
    """Eigenvalues w, in increasing order, and with `vectors` orthonormal v with a v = v diag(w).

    a is Hermitian, and only its lower triangle is read. The derivative of complex vectors is the
    one without rotation of their phases.
    """

    multiple_results = True

    def type(self, a: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
        self.check(a)
        values = ShapedArray(a.shape[:-1], dtypes.real_dtype(a.dtype))
        return [values, a.strong()] if vectors else [values]

    def evaluate(self, a: Any, *, vectors: bool) -> list[np.ndarray[Any, Any]]:
        a = np.asarray(a)
        if not vectors:
            return lapack.or_nan(lambda x: [np.linalg.eigvalsh(x)], a)
        return lapack.or_nan(np.linalg.eigh, a)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, vectors: bool) -> Any:
        (a,), (t,) = primals, tangents
        w, v = self.bind(a, vectors=True)
        t = matmul(adjoint(v), matmul(from_lower(t), v))
        tw = real_part(diagonal(t))
        if not vectors:
            return [w], [tw]
        gaps = convert_element_type(inverse_differences(w), v.dtype)
        return [w, v], [tw, matmul(v, mul(gaps, t))]

    def cost(self, a: ShapedArray, *, vectors: bool) -> Cost:
        return Cost((9 if vectors else 2) * a.size * a.shape[-1], 2 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        for x in (sample_array(3, 3), sample_array(2, 3, 3, seed=1)):
            for vectors in (True, False):
                yield Sample(((x + x.mT) / 2,), {"vectors": vectors})
        z = sample_array(3, 3, dtype=np.complex64)
        yield Sample(((z + z.conj().mT) / 2,), {"vectors": False})


class Eig(MatrixPrimitive):
    """Complex eigenvalues w of a and, with `vectors`, v of unit columns with a v = v diag(w).

    The derivative of the vectors keeps their norms and does not rotate their phases.
    """

    multiple_results = True

    def type(self, a: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
        self.check(a)
        dtype = dtypes.complex_dtype(a.dtype)
        values = ShapedArray(a.shape[:-1], dtype)
        return [values, ShapedArray(a.shape, dtype)] if vectors else [values]

    def evaluate(self, a: Any, *, vectors: bool) -> list[np.ndarray[Any, Any]]:
        a = np.asarray(a)
        a = a.astype(dtypes.complex_dtype(a.dtype)) if not a.size else a
        dtype = dtypes.complex_dtype(a.dtype)

        def factor(x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            found = np.linalg.eig(x) if vectors else [np.linalg.eigvals(x)]
            return [np.asarray(y).astype(dtype, copy=False) for y in found]

        return lapack.or_nan(factor, a)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, vectors: bool) -> Any:
        (a,), (t,) = primals, tangents
        w, v = self.bind(a, vectors=True)
        t = solve(v, matmul(convert_element_type(t, v.dtype), v))
        tw = diagonal(t)
        if not vectors:
            return [w], [tw]
        tv = matmul(v, mul(inverse_differences(w), t))
        along = reduce_sum(mul(conj(v), tv), (tv.ndim - 2,))
        return [w, v], [tw, sub(tv, scale_columns(v, along))]

    def cost(self, a: ShapedArray, *, vectors: bool) -> Cost:
        return Cost((25 if vectors else 10) * a.size * a.shape[-1], 2 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        for dtype in (np.float32, np.complex64):
            yield Sample((sample_array(3, 3, dtype=dtype),), {"vectors": False})
        yield Sample((sample_array(2, 3, 3),), {"vectors": False})


class Svd(MatrixPrimitive):
    """Singular values s in decreasing order, and with `compute_uv` u and vh: a = u diag(s) vh.

    The results are [s, u, vh] or [s]. `full_matrices` fills u and vh up to square matrices; the
    derivative keeps what is filled in orthogonal without turning it. Derivatives of u and vh of
    matrices that are not square, or complex, need s > 0. Source: J. Townsend, Differentiating the
    singular value decomposition (2016).
    """

    square = False
    multiple_results = True

    def type(self, a: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> list[ShapedArray]:
        self.check(a)
        *lead, m, n = a.shape
        k = min(m, n)
        s = ShapedArray((*lead, k), dtypes.real_dtype(a.dtype))
        if not compute_uv:
            return [s]
        left, right = (m, n) if full_matrices else (k, k)
        return [s, ShapedArray((*lead, m, left), a.dtype), ShapedArray((*lead, right, n), a.dtype)]

    def evaluate(self, a: Any, *, full_matrices: bool,
                 compute_uv: bool) -> list[np.ndarray[Any, Any]]:
        a = np.asarray(a)
        if not compute_uv:
            return lapack.or_nan(lambda x: [np.linalg.svd(x, compute_uv=False)], a)
        u, s, vh = lapack.or_nan(lambda x: np.linalg.svd(x, full_matrices), a)
        return [s, u, vh]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool,
            compute_uv: bool) -> Any:
        (a,), (t,) = primals, tangents
        m, n = get_aval(a).shape[-2:]
        k = min(m, n)
        whole = full_matrices and compute_uv and m != n
        s, u, vh = self.bind(a, full_matrices=whole, compute_uv=True)
        u1, v1 = columns(u, 0, k), adjoint(rows(vh, 0, k))
        inner = matmul(adjoint(u1), matmul(t, v1))
        ts = real_part(diagonal(inner))
        if not compute_uv:
            return [s], [ts]
        gaps = convert_element_type(inverse_differences(mul(s, s)), u.dtype)
        s_u = convert_element_type(s, u.dtype)
        left = mul(gaps, mul(symmetrize(scale_columns(inner, s_u)), 2.0))
        right = mul(gaps, mul(symmetrize(scale_rows(s_u, inner)), 2.0))
        inverse = div(full(s.shape, 1, u.dtype), s_u)
        if is_complex(a):  # what is left of the phases of both goes into u
            skew = antihermitian(inner)
            phase = mul(diagonal(skew), inverse)
            left = add(left, mul(_identity_like(left), _as_columns(phase, left)))
        tu = _turned(u, u1, left, t, v1, inverse, whole) if m > k else matmul(u1, left)
        if n > k:
            v = adjoint(vh)
            tv = _turned(v, v1, right, adjoint(t), u1, inverse, whole)
        else:
            tv = matmul(v1, right)
        return [s, u, vh], [ts, tu, adjoint(tv)]

    def cost(self, a: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> Cost:
        k = min(a.shape[-2:])
        return Cost((20 if compute_uv else 4) * a.size * k, 3 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        # at most one vector is filled in: more of them could turn among each other
        for shape in ((3, 3), (2, 4, 3), (2, 3)):
            for whole, vectors in ((False, True), (True, True), (False, False)):
                yield Sample((sample_array(*shape, seed=2),),
                             {"full_matrices": whole, "compute_uv": vectors})
        yield Sample((sample_array(3, 2, dtype=np.complex64),),
                     {"full_matrices": False, "compute_uv": False})


def _identity_like(x: Any) -> Any:
    return eye(x.shape, x.dtype)


def _as_columns(s: Any, x: Any) -> Any:
    return broadcast_in_dim(s, x.shape, (*range(x.ndim - 2), x.ndim - 1))


def _turned(u: Any, u1: Any, turn: Any, t: Any, v1: Any, inverse: Any, whole: bool) -> Any:
    """The tangent of the left vectors of a matrix with more rows than singular values.

    `turn` is how the first ones, u1, turn among each other; the part of t v1 / s that is orthogonal
    to all of them turns them out of their space, and the further ones of a `whole` u into it.
    """
    moved = scale_columns(matmul(t, v1), inverse)
    if not whole:
        return add(matmul(u1, turn), sub(moved, matmul(u1, matmul(adjoint(u1), moved))))
    m, k = u.shape[-1], u1.shape[-1]
    below = matmul(adjoint(columns(u, k, m)), moved)
    corner = full((*u.shape[:-2], m - k, m - k), 0, u.dtype)
    return matmul(u, block(turn, mul(adjoint(below), -1.0), below, corner))


eigh_p, eig_p, svd_p = Eigh(), Eig(), Svd()


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """Eigenvectors v and increasing eigenvalues w of Hermitian matrices, with x v = v diag(w).

    x is replaced by (x + x*) / 2 when `symmetrize_input`, else the triangle that `lower` names is
    read. Eigenvalues are sorted in any case; `subset_by_index=(i, j)` keeps i to j - 1 of them.
    `implementation` is a hint.
    Raises ShapeError when matrices are not square.

    >>> import functrans as ft
    >>> v, w = ft.lax.linalg.eigh(ft.numpy.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    check_hint("eigh", implementation, EighImplementation)
    w, v = eigh_p.bind(hermitian(x, lower, symmetrize_input), vectors=True)
    if subset_by_index is None:
        return v, w
    return subset_of(v, subset_by_index), subset_of(w, subset_by_index)


def subset_of(x: Array, subset: tuple[int, int], axis: int = -1) -> Array:
    """The values (or vectors) i to j - 1 along an axis, for `subset` (i, j)."""
    first, last = subset
    size = x.shape[axis]
    if not 0 <= first < last <= size:
        raise ArgumentError(f"subset_by_index={subset} is no range of {size} values.",
                            where=user_source(), fix=f"subset_by_index=(0, {size})")
    return slice_in_dim(x, first, last, axis=axis)


def singular_subset(u: Array, s: Array, vh: Array, subset: tuple[int, int]
                    ) -> tuple[Array, Array, Array]:
    """u, s and vh for some of the singular values."""
    return subset_of(u, subset), subset_of(s, subset), subset_of(vh, subset, -2)


def eigvalsh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices in increasing order."""
    (w,) = eigh_p.bind(hermitian(x, lower, symmetrize_input), vectors=False)
    return w


def hermitian(x: Any, lower: bool, symmetrize_input: bool) -> Any:
    """x with the matrix that is meant in its lower triangle."""
    eigh_p.check(get_aval(x))
    if symmetrize_input:
        return symmetrize(x)
    return x if lower else adjoint(x)


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None, use_magma: bool | None = None
        ) -> list[Array]:
    """Complex eigenvalues w, then as asked the left and the right eigenvectors, of unit columns.

    x v = v diag(w) and vl* x = diag(w) vl*. Vectors have derivatives with and without
    `enable_eigvec_derivs`; `implementation` and `use_magma` are hints. Raises ShapeError when
    matrices are not square.

    >>> import functrans as ft
    >>> w, v = ft.lax.linalg.eig(ft.numpy.array([[0.0, 1.0], [-1.0, 0.0]]),
    ...                          compute_left_eigenvectors=False)
    >>> sorted(w.imag.tolist())
    [-1.0, 1.0]
    """
    check_hint("eig", implementation, EigImplementation)
    if not (compute_left_eigenvectors or compute_right_eigenvectors):
        return list(eig_p.bind(x, vectors=False))
    w, v = eig_p.bind(x, vectors=True)
    results = [w]
    if compute_left_eigenvectors:
        results.append(_left_vectors(v))
    if compute_right_eigenvectors:
        results.append(v)
    return results


def _left_vectors(v: Any) -> Any:
    left = adjoint(inv(v))
    norms = sqrt(reduce_sum(real_part(mul(conj(left), left)), (left.ndim - 2,)))
    return div(left, convert_element_type(_as_columns(norms, left), left.dtype))


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> tuple[Array, Array, Array]: ...


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False],
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Array: ...


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Array | tuple[Array, Array, Array]:
    """u, s and vh with x = u diag(s) vh and s decreasing; s alone when not `compute_uv`.

    Shapes (m, n) give (m, m), (k,), (n, n) for k = min(m, n), and (m, k), (k,), (k, n) when not
    `full_matrices`. NaN where x is not finite. `subset_by_index=(i, j)` keeps the singular values i
    to j - 1 and their vectors. `algorithm` is a hint.

    >>> import functrans as ft
    >>> u, s, vh = ft.lax.linalg.svd(ft.numpy.ones((4, 2)), full_matrices=False)
    >>> u.shape, s.shape, vh.shape
    ((4, 2), (2,), (2, 2))
    """
    check_hint("svd", algorithm, SvdAlgorithm)
    if not compute_uv:
        (s,) = svd_p.bind(x, full_matrices=False, compute_uv=False)
        return s if subset_by_index is None else subset_of(s, subset_by_index)
    s, u, vh = svd_p.bind(x, full_matrices=bool(full_matrices) and not subset_by_index,
                         compute_uv=True)
    return (u, s, vh) if subset_by_index is None else singular_subset(u, s, vh, subset_by_index)
