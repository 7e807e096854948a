"""Reductions by reflectors and rotations: QR, Hessenberg, tridiagonal and Schur form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.errors import ArgumentError, NotDifferentiableError
from functrans.core.primitive import Cost, Sample
from functrans.core.source import user_source
from functrans.primitives import native_matrices
from functrans.primitives.arithmetic import add, neg, sub
from functrans.primitives.base import sample_array
from functrans.primitives.matrix import MatrixPrimitive, adjoint, is_complex, matmul, triu
from functrans.primitives.shape import rev
from functrans.primitives.sylvester import triangular_sylvester_p

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["hessenberg", "hessenberg_p", "reflected_qr", "reflected_qr_p", "schur", "schur_p",
           "tridiagonal", "tridiagonal_p"]


class Reflectors(MatrixPrimitive, abstract=True):
    """Householder reflectors that bring a matrix to a simpler form; without derivative."""

    multiple_results = True
    finite_differences = False
    instead: ClassVar[str]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise NotDifferentiableError(f"{self.name} has no derivative.", where=user_source(),
                                     why="reflectors are a means to other decompositions.",
                                     fix=self.instead)


class Hessenberg(Reflectors):
    """The Hessenberg form H = Q* a Q, with reflectors below its first subdiagonal, and their taus.

    Q = H_0 H_1 ... with H_i = 1 - taus[i] v v*, where v is zero up to row i, one in row i + 1, and
    below it what column i has there.
    """

    instead = ("differentiate what is computed of it (eigenvalues, a solution, a function of the "
           "matrix), or stop_gradient the matrix")

    def type(self, a: ShapedArray) -> list[ShapedArray]:
        self.check(a)
        *lead, n, _ = a.shape
        return [a.strong(), ShapedArray((*lead, _one_less(n)), a.dtype)]

    def evaluate(self, a: Any) -> list[np.ndarray[Any, Any]]:
        *lead, n, _ = a.shape
        return native_matrices.call("hessenberg", [a], [(a.shape, a.dtype),
                                                        ((*lead, _one_less(n)), a.dtype)])

    def cost(self, a: ShapedArray) -> Cost:
        return Cost(10 * a.size * a.shape[-1] // 3, 2 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(4, 4),))
        yield Sample((sample_array(2, 3, 3, dtype=np.complex64),))


def _one_less(n: Any) -> Any:
    return n - 1 if n != 0 else 0


class ReflectedQr(Reflectors):
    """R of a = Q R, with the reflectors of Q below its diagonal, and their taus.

    Q = H_0 H_1 ... with H_i = 1 - taus[i] v v*, v zero up to row i - 1, one in row i, and below it
    what column i has there.
    """

    square = False
    instead = "differentiate ft.lax.linalg.qr, or stop_gradient the matrix"

    def type(self, a: ShapedArray) -> list[ShapedArray]:
        self.check(a)
        return [a.strong(), ShapedArray((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]

    def evaluate(self, a: Any) -> list[np.ndarray[Any, Any]]:
        *lead, m, n = a.shape
        return native_matrices.call("reflected_qr", [a],
                                    [(a.shape, a.dtype), ((*lead, min(m, n)), a.dtype)],
                                    sizes=(m, n))

    def cost(self, a: ShapedArray) -> Cost:
        return Cost(2 * a.size * min(a.shape[-2:]), 2 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(4, 3),))
        yield Sample((sample_array(2, 2, 3, dtype=np.complex64),))


class Tridiagonal(Reflectors):
    """Reflectors and the diagonals d and e of the tridiagonal form Q* a Q of Hermitian a.

    The lower triangle of a is read. The results are [reflectors, d, e, taus]: reflectors as those
    of `Hessenberg`, below the first subdiagonal; d and e are real.
    """

    instead = "differentiate ft.lax.linalg.eigh, or stop_gradient the matrix"

    def type(self, a: ShapedArray) -> list[ShapedArray]:
        self.check(a)
        *lead, n, _ = a.shape
        real = dtypes.real_dtype(a.dtype)
        return [a.strong(), ShapedArray((*lead, n), real),
                ShapedArray((*lead, _one_less(n)), real),
                ShapedArray((*lead, _one_less(n)), a.dtype)]

    def evaluate(self, a: Any) -> list[np.ndarray[Any, Any]]:
        *lead, n, _ = a.shape
        real, less = dtypes.real_dtype(a.dtype), (*lead, _one_less(n))
        return native_matrices.call(
            "tridiagonal", [a],
            [(a.shape, a.dtype), ((*lead, n), real), (less, real), (less, a.dtype)])

    def cost(self, a: ShapedArray) -> Cost:
        return Cost(4 * a.size * a.shape[-1] // 3, 2 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        x = sample_array(4, 4)
        yield Sample((x + x.mT,))
        z = sample_array(2, 3, 3, dtype=np.complex64)
        yield Sample((z + z.conj().mT,))


class Schur(MatrixPrimitive):
    """The Schur form t of a and, with `vectors`, unitary z with a = z t z*.

    t is an upper triangle where a is complex; where a is real it has blocks of 2 x 2 along its
    diagonal for complex pairs of eigenvalues. NaN where the iteration does not converge.

    Derivative, of complex forms: with m = z* da z and z* dz = w antihermitian, dt = m + t w - w t
    is an upper triangle, so that the lower part of w solves a triangular Sylvester equation; the
    diagonal of w is zero, a choice of phases. It needs distinct eigenvalues.
    """

    multiple_results = True
    finite_differences = False  # of phases, which the iteration chooses in its own way

    def type(self, a: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
        self.check(a)
        return [a.strong()] * (1 + vectors)

    def evaluate(self, a: Any, *, vectors: bool) -> list[np.ndarray[Any, Any]]:
        return native_matrices.call("schur", [a], [(a.shape, a.dtype)] * (1 + vectors),
                                    missing=1 - vectors)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, vectors: bool) -> Any:
        (a,), (da,) = primals, tangents
        if not is_complex(a):
            raise NotDifferentiableError(
                "the real Schur form has no derivative.", where=user_source(),
                why="its 2 x 2 blocks come and go with complex pairs of eigenvalues.",
                fix='the complex one has: ft.scipy.linalg.schur(a, output="complex")')
        t, z = self.bind(a, vectors=True)
        m = matmul(adjoint(z), matmul(da, z))
        low = triangular_sylvester_p.bind(t, neg(t), neg(m), transposed=False, strict=True)
        turn = sub(low, adjoint(low))
        change = triu(add(m, sub(matmul(t, turn), matmul(turn, t))))
        return ([t, z], [change, matmul(z, turn)]) if vectors else ([t], [change])

    def cost(self, a: ShapedArray, *, vectors: bool) -> Cost:
        return Cost((25 if vectors else 10) * a.size * a.shape[-1], 3 * a.nbytes)

    def samples(self) -> Iterator[Sample]:
        z = sample_array(3, 3, dtype=np.complex64) + np.diag([0, 2, 4]).astype(np.complex64)
        yield Sample((z,), {"vectors": False})
        yield Sample((np.stack([z, 2 * z]),), {"vectors": True})


hessenberg_p, tridiagonal_p, schur_p = Hessenberg(), Tridiagonal(), Schur()
reflected_qr_p = ReflectedQr()


def reflected_qr(a: ArrayLike) -> tuple[Array, Array]:
    """R with the reflectors of Q below its diagonal, and taus, as LAPACK's geqrf has them."""
    r, taus = reflected_qr_p.bind(a)
    return r, taus


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The Hessenberg form of square matrices with the reflectors that make it below, and taus.

    Shapes (..., n, n) give (..., n, n) and (..., n - 1). The upper triangle and first subdiagonal
    of the first result are H = Q* a Q; `householder_product` of what is below gives Q. Without
    derivative. Raises ShapeError when matrices are not square.

    >>> import functrans as ft
    >>> h, taus = ft.lax.linalg.hessenberg(ft.numpy.eye(3))
    >>> taus.tolist()
    [0.0, 0.0]
    """
    h, taus = hessenberg_p.bind(a)
    return h, taus


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reflectors, diagonal d, off-diagonal e and taus of the tridiagonal form of Hermitian a.

    Shapes (..., n, n) give (..., n, n), (..., n), (..., n - 1) and (..., n - 1). The triangle that
    `lower` names is read, and has the reflectors beyond its first off-diagonal, as LAPACK's sytrd.
    Without derivative. Raises ShapeError when matrices are not square.

    >>> import functrans as ft
    >>> a, d, e, taus = ft.lax.linalg.tridiagonal(ft.numpy.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> d.tolist(), e.tolist()
    ([2.0, 3.0], [1.0])
    """
    if lower:
        out, d, e, taus = tridiagonal_p.bind(a)
        return out, d, e, taus
    # in the opposite order of rows and columns the upper triangle is a lower one
    x: Any = a
    flipped = tridiagonal_p.bind(rev(x, (x.ndim - 2, x.ndim - 1)))
    out, d, e, taus = flipped
    return (rev(out, (out.ndim - 2, out.ndim - 1)),
            *(rev(y, (y.ndim - 1,)) for y in (d, e, taus)))  # type: ignore[return-value]


def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """The Schur form T and, if asked, the unitary Z of square matrices, with x = Z T Z*.

    T of complex x is upper triangular; that of real x has blocks of 2 x 2 for complex pairs of
    eigenvalues, and no derivative. NaN where x is not finite. Raises ArgumentError for
    `sort_eig_vals` and `select_callable`, which are not there, and ShapeError when matrices are not
    square.

    >>> import functrans as ft
    >>> t, z = ft.lax.linalg.schur(ft.numpy.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if sort_eig_vals or select_callable is not None:
        raise ArgumentError("schur does not sort eigenvalues.", where=user_source(),
                            fix="leave sort_eig_vals and select_callable out")
    return list(schur_p.bind(x, vectors=bool(compute_schur_vectors)))
