"""Factorizations of matrices; the last two axes are rows and columns, all others are mapped over.

Where eigenvalues or singular values repeat, the vectors have no derivative (it is infinite or NaN),
while that of the values is right.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast, overload

from functrans import lax
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.primitives import linalg, matrix, spectral
from functrans.primitives.schur import reflected_qr
from functrans.typing import Array, ArrayLike


class EigResult(NamedTuple):
    """Eigenvalues (..., n) and eigenvectors (..., n, n), as columns.

    >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.round(4)
    Array([ 1., -1.], dtype=float32)
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Real eigenvalues (..., n), increasing, and orthonormal eigenvectors (..., n, n), columns.

    >>> result = jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> result.eigenvalues
    Array([1., 2.], dtype=float32)
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns Q and an upper triangle R.

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0], [4.0]]))
    >>> abs(r).round(4)
    Array([[5.]], dtype=float32)
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left vectors U (columns), singular values S (decreasing) and right vectors Vh (rows).

    >>> jnp.linalg.svd(jnp.diag(jnp.array([3.0, 2.0]))).S.round(4)
    Array([3., 2.], dtype=float32)
    """

    U: Array
    S: Array
    Vh: Array


def matrices(name: str, a: ArrayLike, square: bool = False) -> Array:
    """a in a floating or complex dtype, at least of two dimensions."""
    (x,) = promote_dtypes_inexact(f"linalg.{name}", a)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(
            f"functrans.numpy.linalg.{name} takes {'square ' if square else ''}matrices, and got "
            f"an array of shape {x.shape}.", where=user_source(),
            why="the last two axes are rows and columns.")
    return x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangle L with L L* = a, or with `upper` the upper triangle U with U* U = a.

    a: Hermitian positive definite (..., n, n); where it is not, the result is NaN. Raises
    ShapeError when matrices are not square.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = matrices("cholesky", a, True)
    if upper and not symmetrize_input:
        x = matrix.adjoint(x)
    factor = linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return matrix.adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "full"] = "reduced") -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...


@overload
def qr(a: ArrayLike, mode: Literal["raw"]) -> tuple[Array, Array]: ...


def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult | tuple[Array, Array]:
    """Orthonormal columns Q and an upper triangle R with Q R = a, of shape (..., m, n).

    mode: "reduced" for Q (..., m, k), k = min(m, n), "complete" for Q (..., m, m), "r" for R alone,
    "raw" for R with the reflectors of Q below it, transposed (..., n, m), and taus (..., k), which
    have no derivative: see functrans.lax.linalg.ormqr. Raises ArgumentError for any other mode.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.qr(jnp.ones((3, 2)), mode="r").shape
    (2, 2)
    """
    x = matrices("qr", a)
    if mode == "raw":
        packed, taus = reflected_qr(x)
        return matrix.swap_last(packed), taus
    if mode not in ("reduced", "complete", "r", "full"):
        raise ArgumentError(f"functrans.numpy.linalg.qr: there is no mode {mode!r}.",
                            where=user_source(), fix="mode='reduced', 'complete', 'r' or 'raw'")
    q, r = linalg.qr(x, full_matrices=mode in ("complete", "full"))
    return r if mode == "r" else QRResult(q, r)


def _lower(name: str, uplo: str | None) -> bool:
    if uplo not in (None, "L", "U", "l", "u"):
        raise ArgumentError(f"functrans.numpy.linalg.{name}: UPLO is 'L' or 'U', and not {uplo!r}.",
                            where=user_source())
    return uplo is None or uplo.upper() == "L"


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, increasing, and orthonormal eigenvectors of Hermitian matrices (..., n, n).

    a is replaced by (a + a*) / 2, or when not `symmetrize_input` the triangle UPLO is read.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 3.0]
    """
    x = matrices("eigh", a, True)
    v, w = spectral.eigh(x, lower=_lower("eigh", UPLO), symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices (..., n, n), increasing.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.eye(2)).tolist()
    [1.0, 1.0]
    """
    x = matrices("eigvalsh", a, True)
    return spectral.eigvalsh(x, lower=_lower("eigvalsh", UPLO), symmetrize_input=symmetrize_input)


def eig(a: ArrayLike) -> EigResult:
    """Complex eigenvalues and eigenvectors of unit norm of square matrices (..., n, n).

    >>> import functrans.numpy as jnp
    >>> w, v = jnp.linalg.eig(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> sorted(w.real.tolist())
    [-1.0, 1.0]
    """
    w, v = spectral.eig_p.bind(matrices("eig", a, True), vectors=True)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """The complex eigenvalues of square matrices (..., n, n), in no particular order.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.eye(2)).real.tolist()
    [1.0, 1.0]
    """
    return spectral.eig_p.bind(matrices("eigvals", a, True), vectors=False)[0]


@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True,
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
        ) -> SVDResult: ...


@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Array: ...


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
        ) -> Array | SVDResult:
    """U, S and Vh with a = U diag(S) Vh and S decreasing; S alone when not `compute_uv`.

    a: (..., m, n); U: (..., m, m), Vh: (..., n, n), or (..., m, k) and (..., k, n) with
    k = min(m, n) when not `full_matrices`. `hermitian` matrices go through eigh.
    `subset_by_index=(i, j)` keeps the singular values i to j - 1 and their vectors.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.svd(jnp.diag(jnp.array([1.0, 2.0]))).S.tolist()
    [2.0, 1.0]
    """
    x = matrices("svd", a, hermitian)
    if hermitian:
        found = _hermitian_svd(x, compute_uv)
        if subset_by_index is None:
            return cast("Array | SVDResult", found)
        if not compute_uv:
            return spectral.subset_of(found, subset_by_index)
        return SVDResult(*spectral.singular_subset(found.U, found.S, found.Vh, subset_by_index))
    if not compute_uv:
        return spectral.svd(x, compute_uv=False, subset_by_index=subset_by_index)
    return SVDResult(*spectral.svd(x, full_matrices=full_matrices,
                                   subset_by_index=subset_by_index))


def _hermitian_svd(x: Array, compute_uv: bool) -> Any:
    v, w = spectral.eigh(x)
    places = lax.broadcasted_iota("int32", w.shape, w.ndim - 1)
    # of equal sizes the last comes first, as in NumPy, which reverses the increasing order
    w, places = (lax.rev(x, (w.ndim - 1,)) for x in (w, places))
    sizes, signs, places = lax.sort((lax.neg(lax.abs(w)), lax.sign(w), places), num_keys=1)
    if not compute_uv:
        return lax.neg(sizes)
    rows = matrix.take_rows(matrix.swap_last(v), places)  # the vectors, in the order of sizes
    vh = matrix.conjugate(rows)
    return SVDResult(matrix.swap_last(rows), lax.neg(sizes),
                     matrix.scale_rows(lax.convert_element_type(signs, vh.dtype), vh))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices (..., m, n), decreasing.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.ones((2, 2))).shape
    (2,)
    """
    return spectral.svd(matrices("svdvals", x), compute_uv=False)
