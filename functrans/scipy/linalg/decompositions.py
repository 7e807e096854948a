"""Factorizations: singular values, QR, eigenvalues, the polar decomposition, and bases."""

from __future__ import annotations

from typing import Any, Literal, cast, overload

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.lax.qdwh import polar_tangents
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg import qr as _qr
from functrans.numpy.linalg import solve as _solve
from functrans.numpy.linalg import svd as _svd
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import linalg, matrix, spectral
from functrans.primitives.solve import triangular_solve
from functrans.scipy.linalg.banded import dense_of, selected_eigh
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike


@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
        ) -> tuple[Array, Array, Array]: ...


@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
        ) -> Array: ...


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
        ) -> Array | tuple[Array, ...]:
    """U, s and Vh with a = U diag(s) Vh, or s alone.

    >>> u, s, vh = ft.scipy.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> s.round(4)
    Array([3., 2.], dtype=float32)
    """
    if not compute_uv:
        return _svd(a, full_matrices, compute_uv=False)
    return tuple(_svd(a, full_matrices))


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: object = None,
       mode: Literal["full", "economic", "r"] = "full", pivoting: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """Q and R with Q R = a; mode "full", "economic", or "r" for (R,).

    With `pivoting` also P, with Q R = a[:, P] and a diagonal of R that falls in size.
    Raises ArgumentError for another mode.

    >>> q, r = ft.scipy.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> (q @ r).round(4)
    Array([[3., 1.],
           [4., 2.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f"functrans.scipy.linalg.qr: there is no mode {mode!r}.",
                            where=user_source(), fix="'full', 'economic' or 'r'")
    if pivoting:
        q, r, order = lax.linalg.qr(matrices("qr", a), pivoting=True,
                                    full_matrices=mode != "economic")
        return (r, order) if mode == "r" else (q, r, order)
    q, r = _qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


@overload
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True,
         eigvals_only: Literal[False] = False, overwrite_a: bool = False,
         overwrite_b: bool = False, turbo: bool = True, eigvals: tuple[int, int] | None = None,
         type: int = 1, check_finite: bool = True) -> tuple[Array, Array]: ...


@overload
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, *,
         eigvals_only: Literal[True], overwrite_a: bool = False, overwrite_b: bool = False,
         turbo: bool = True, eigvals: tuple[int, int] | None = None, type: int = 1,
         check_finite: bool = True) -> Array: ...


def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: tuple[int, int] | None = None, type: int = 1, check_finite: bool = True
         ) -> Array | tuple[Array, Array]:
    """Eigenvalues w and vectors v of Hermitian a: a v = v diag(w), or a v = b v diag(w).

    With `eigvals_only` w alone; `eigvals=(i, j)` are the numbers of the first and the last that are
    wanted. b is Hermitian positive definite; then v* b v = 1. `type` 2 is a b v = v diag(w), and 3
    b a v = v diag(w), then with v* inv(b) v = 1.

    >>> ft.scipy.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True).round(4)
    Array([1., 3.], dtype=float32)
    """
    if type not in (1, 2, 3):
        raise ArgumentError(f"functrans.scipy.linalg.eigh: type is 1, 2 or 3, and not {type}.",
                            where=user_source())
    if eigvals is not None:
        wanted = (eigvals[0], eigvals[1] + 1)
        if eigvals_only:
            return spectral.subset_of(eigh(a, b, lower, eigvals_only=True, type=type), wanted)
        w, v = eigh(a, b, lower, type=type)
        return spectral.subset_of(w, wanted), spectral.subset_of(v, wanted)
    x = matrices("eigh", a, True)
    factor = None
    if b is not None:
        x, other = promote_dtypes_inexact("linalg.eigh", x, matrices("eigh", b, True))
        factor = linalg.cholesky(other)
        x = linalg.symmetrize(x)
        if type == 1:
            half = triangular_solve(factor, x, left_side=True, lower=True)
            x = triangular_solve(factor, half, lower=True, transpose_a=True, conjugate_a=True)
        else:  # b = L L*: L* a L has the eigenvalues of a b and of b a
            x = jnp.matmul(matrix.adjoint(factor), jnp.matmul(x, factor))
    if eigvals_only:
        return spectral.eigvalsh(x, lower=lower)
    v, w = spectral.eigh(x, lower=lower)
    if factor is not None and type == 3:
        v = jnp.matmul(factor, v)
    elif factor is not None:
        v = triangular_solve(factor, v, left_side=True, lower=True, transpose_a=True,
                             conjugate_a=True)
    return w, v


def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Array, ...]:
    """c Q and R of a = Q R, with `mode="left"` Q c and R; with `pivoting` also P.

    Q has min(m, n) columns; c is (..., p, m), with "left" (..., min(m, n), p), or a vector. With
    `conjugate` conj(Q) in place of Q. Raises ArgumentError for another mode, ShapeError when shapes
    do not fit.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> c, r = ft.scipy.linalg.qr_multiply(2.0 * jnp.eye(2), jnp.array([1.0, 3.0]))
    >>> abs(c).tolist()
    [1.0, 3.0]
    """
    if mode not in ("left", "right"):
        raise ArgumentError(f"functrans.scipy.linalg.qr_multiply: mode={mode!r}.",
                            where=user_source(), fix="mode='left' or 'right'")
    a, c = promote_dtypes_inexact("linalg.qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    vector = c.ndim == 1
    if vector:
        c = lax.expand_dims(c, (1,) if mode == "left" else (0,))
    wanted = q.shape[-1] if mode == "left" else q.shape[-2]
    if c.ndim < 2 or c.shape[-2 if mode == "left" else -1] != wanted:
        raise ShapeError(f"functrans.scipy.linalg.qr_multiply: Q of shape {q.shape} does not fit c "
                         f"of shape {c.shape}.", where=user_source(),
                         why=f"c has {wanted} {'rows' if mode == 'left' else 'columns'}.")
    q = matrix.conjugate(q) if conjugate else q
    out = jnp.matmul(q, c) if mode == "left" else jnp.matmul(c, q)
    return (jnp.ravel(out) if vector else out, *rest)


def svdvals(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The singular values of matrices (..., m, n), decreasing.

    >>> import functrans as ft
    >>> ft.scipy.linalg.svdvals(ft.numpy.diag(ft.numpy.array([1.0, 2.0]))).tolist()
    [2.0, 1.0]
    """
    return svd(a, compute_uv=False)


def diagsvd(s: ArrayLike, M: int, N: int) -> Array:
    """The matrix (..., M, N) with the singular values s on its diagonal.

    >>> import functrans as ft
    >>> ft.scipy.linalg.diagsvd(ft.numpy.array([2.0, 1.0]), 2, 3).tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    x = jnp.asarray(s)
    if not x.ndim or x.shape[-1] != min(M, N):
        raise ShapeError(f"functrans.scipy.linalg.diagsvd: {x.shape} singular values of a matrix "
                         f"of shape {(M, N)}.", where=user_source(), why="it has min(M, N).")
    rows = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, M - x.shape[-1])])
    return jnp.where(jnp.eye(M, N, dtype=bool), rows[..., :, None], 0)


def eigvalsh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True,
             overwrite_a: bool = False, overwrite_b: bool = False, type: int = 1,
             check_finite: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, increasing; with b of a v = b v diag(w), see `eigh`.

    >>> import functrans as ft
    >>> ft.scipy.linalg.eigvalsh(ft.numpy.diag(ft.numpy.array([2.0, 1.0]))).tolist()
    [1.0, 2.0]
    """
    return eigh(a, b, lower, eigvals_only=True, type=type)


def eig(a: ArrayLike, b: ArrayLike | None = None, left: bool = False, right: bool = True,
        overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True
        ) -> Array | tuple[Array, ...]:
    """Complex eigenvalues w of square matrices, then as asked left and right vectors, as columns.

    a v = v diag(w) and vl* a = diag(w) vl*; with an invertible b a v = b v diag(w). Columns have
    norm 1. Derivatives need distinct eigenvalues, and keep norms and phases.

    >>> import functrans as ft
    >>> w, v = ft.scipy.linalg.eig(ft.numpy.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> sorted(w.imag.tolist())
    [-1.0, 1.0]
    """
    x = matrices("eig", a, True)
    if b is not None:
        x, other = promote_dtypes_inexact("linalg.eig", x, matrices("eig", b, True))
        x = _solve(other, x)
    w, *vectors = lax.linalg.eig(x, compute_left_eigenvectors=left,
                                 compute_right_eigenvectors=right)
    if b is not None and left:  # of b^-1 a: u* b^-1 a = w u*, so that b^-* u is the one of (a, b)
        u = _solve(matrix.adjoint(lax.convert_element_type(other, w.dtype)), vectors[0])
        vectors[0] = u / jnp.linalg.norm(u, axis=-2, keepdims=True)
    return (w, *vectors) if vectors else w


def eigvals(a: ArrayLike, b: ArrayLike | None = None, overwrite_a: bool = False,
            check_finite: bool = True) -> Array:
    """The complex eigenvalues of square matrices, in no particular order.

    >>> import functrans as ft
    >>> ft.scipy.linalg.eigvals(ft.numpy.eye(2)).real.tolist()
    [1.0, 1.0]
    """
    return cast("Array", eig(a, b, left=False, right=False))


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, check_finite: bool = True,
                     tol: float | None = None, lapack_driver: str = "auto",
                     key: Array | None = None) -> Array | tuple[Array, Array]:
    """Eigenvalues w, increasing, and vectors v of Hermitian tridiagonal matrices, or w alone.

    d (..., n) is the real diagonal and e (..., n - 1) the one below it. As of the whole matrix, so
    that `tol`, `key` and `lapack_driver` are not needed. `select="i"` keeps the eigenvalues of
    numbers select_range[0] to select_range[1]. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> d, e = ft.numpy.array([2.0, 2.0]), ft.numpy.array([1.0])
    >>> ft.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True).round(4).tolist()
    [1.0, 3.0]
    """
    d, e = promote_dtypes_inexact("linalg.eigh_tridiagonal", d, e)
    if not d.ndim or e.shape != (*d.shape[:-1], max(d.shape[-1] - 1, 0)):
        raise ShapeError(f"functrans.scipy.linalg.eigh_tridiagonal: d has shape {d.shape}, e "
                         f"{e.shape}.", where=user_source(), why="they are (..., n), (..., n - 1).")
    pad = [(0, 0)] * (d.ndim - 1)
    zero = min(d.shape[-1], 1)
    low = jnp.pad(e, [*pad, (zero, 0)])
    up = jnp.pad(matrix.conjugate(e), [*pad, (0, zero)])
    whole = dense_of(jnp.stack([low, d, up], -1), 1)
    found: Array | tuple[Array, Array] = selected_eigh(
        "eigh_tridiagonal", whole, eigvals_only, select, select_range)
    return found


# The polar decomposition ---------------------------------------------------------------------


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """U with orthonormal columns (or rows) and P positive semidefinite: a = U P, or P U if "left".

    By singular values; `method`, `eps` and `max_iterations` are of JAX's iteration, for which there
    is functrans.lax.linalg.qdwh. The derivative needs full rank; of a P that is larger than the
    rank can be (wide a on the right, tall a on the left), distinct singular values too. Raises
    ArgumentError for another side or method.

    >>> import functrans as ft
    >>> u, p = ft.scipy.linalg.polar(ft.numpy.array([[0.0, 2.0], [-1.0, 0.0]]))
    >>> p.round(5).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if side not in ("right", "left"):
        raise ArgumentError(f"functrans.scipy.linalg.polar: side={side!r}.", where=user_source(),
                            fix="side='right' or 'left'")
    if method not in ("qdwh", "svd"):
        raise ArgumentError(f"functrans.scipy.linalg.polar: method={method!r}.",
                            where=user_source(), fix="method='qdwh' or 'svd'")
    x = matrices("polar", a)
    m, n = x.shape[-2:]
    if side == "right":
        u, p = _tall_polar(x) if m >= n else _polar(x)
        return u, p
    flipped = matrix.adjoint(x)
    u, p = _tall_polar(flipped) if n >= m else _polar(flipped)
    return matrix.adjoint(u), p


def _polar(x: Any) -> tuple[Any, Any]:
    u, s, vh = spectral.svd(x, full_matrices=False)
    s = lax.convert_element_type(s, u.dtype)
    return matrix.matmul(u, vh), matrix.matmul(matrix.adjoint(vh), matrix.scale_rows(s, vh))


@custom_jvp
def _tall_polar(x: Any) -> tuple[Any, Any]:
    return _polar(x)


@_tall_polar.defjvp
def _tall_polar_jvp(primals: Any, tangents: Any) -> Any:
    u, p = _tall_polar(*primals)
    return (u, p), polar_tangents(u, p, *tangents)


def orthogonal_procrustes(A: ArrayLike, B: ArrayLike, check_finite: bool = True
                          ) -> tuple[Array, Array]:
    """The unitary R that brings A R nearest to B, and the sum of the singular values of A* B.

    Raises ShapeError when A and B are not matrices of one shape.

    >>> import functrans as ft
    >>> a = ft.numpy.array([[2.0, 0.0], [0.0, 1.0]])
    >>> r, scale = ft.scipy.linalg.orthogonal_procrustes(a, a)
    >>> r.round(4).tolist(), float(scale)
    ([[1.0, 0.0], [0.0, 1.0]], 5.0)
    """
    a, b = promote_dtypes_inexact("linalg.orthogonal_procrustes", A, B)
    if a.ndim < 2 or a.shape != b.shape:
        raise ShapeError(f"functrans.scipy.linalg.orthogonal_procrustes: A has shape {a.shape}, B "
                         f"{b.shape}.", where=user_source(), why="they are matrices of one shape.")
    u, p = _tall_polar(jnp.matmul(matrix.adjoint(a), b))
    return u, matrix.real_part(jnp.trace(p, axis1=-2, axis2=-1))


# Bases of spaces -----------------------------------------------------------------------------


def _rank(name: str, s: Array, shape: tuple[int, ...], rcond: float | None) -> int:
    """How many singular values count, the largest of a stack; the matrices must be known."""
    if rcond is None:
        rcond = float(dtypes.finfo(s.dtype).eps) * max(shape[-2:])
    if 0 in s.shape:
        return 0
    counts = jnp.sum(s > rcond * jnp.max(s, -1, keepdims=True), -1)
    return int(jnp.max(counts))


def orth(A: ArrayLike, rcond: float | None = None) -> Array:
    """Orthonormal columns that span the columns of A; as many as its rank.

    Singular values up to `rcond` (max(m, n) eps) times the largest count as zero. The shape depends
    on the values, so that A must be known: not within jit. Of a stack the largest rank counts.

    >>> import functrans as ft
    >>> ft.scipy.linalg.orth(ft.numpy.ones((3, 2))).shape
    (3, 1)
    """
    x = matrices("orth", A)
    u, s, _ = spectral.svd(x, full_matrices=False)
    return u[..., :_rank("orth", s, x.shape, rcond)]


def null_space(A: ArrayLike, rcond: float | None = None, *, overwrite_a: bool = False,
               check_finite: bool = True, lapack_driver: str = "gesdd") -> Array:
    """Orthonormal columns that span what A maps to zero; n less the rank of them.

    See `orth`: A must be known.

    >>> import functrans as ft
    >>> ft.scipy.linalg.null_space(ft.numpy.ones((1, 3))).shape
    (3, 2)
    """
    x = matrices("null_space", A)
    _, s, vh = spectral.svd(x, full_matrices=True)
    return matrix.adjoint(vh)[..., _rank("null_space", s, x.shape, rcond):]


def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """The angles between the spaces of the columns of A and B, decreasing; columns independent.

    By sines for small angles and cosines for large ones: A. Bjorck and G. Golub, Numerical methods
    for computing angles between linear subspaces, Math. Comp. 27 (1973). Raises ShapeError when the
    matrices have not equally many rows.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> a, b = jnp.array([[1.0], [0.0]]), jnp.array([[0.0], [1.0]])
    >>> round(float(ft.scipy.linalg.subspace_angles(a, b)[0]), 4)
    1.5708
    """
    a, b = promote_dtypes_inexact("linalg.subspace_angles", A, B)
    a, b = matrices("subspace_angles", a), matrices("subspace_angles", b)
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(f"functrans.scipy.linalg.subspace_angles: A has shape {a.shape}, B "
                         f"{b.shape}.", where=user_source(), why="they have equally many rows.")
    qa, qb = (spectral.svd(x, full_matrices=False)[0] for x in (a, b))
    inner = jnp.matmul(matrix.adjoint(qa), qb)
    cosines = spectral.svd(inner, compute_uv=False)
    if qa.shape[-1] >= qb.shape[-1]:
        outside = qb - jnp.matmul(qa, inner)
    else:
        outside = qa - jnp.matmul(qb, matrix.adjoint(inner))
    sines = jnp.clip(spectral.svd(outside, compute_uv=False), -1.0, 1.0)
    k = cosines.shape[-1]
    cosines = jnp.flip(jnp.clip(cosines, -1.0, 1.0), -1)
    small = cosines * cosines >= 0.5
    by_sine = jnp.arcsin(jnp.where(small, sines[..., :k], 0))
    return jnp.where(small, by_sine, jnp.arccos(jnp.where(small, 0, cosines)))
