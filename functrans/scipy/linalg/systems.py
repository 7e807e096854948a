"""Linear systems: triangles, Cholesky, LU, structured matrices, least squares and norms."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.numpy.linalg import det as _det
from functrans.numpy.linalg import inv as _inv
from functrans.numpy.linalg import lstsq as _lstsq
from functrans.numpy.linalg import norm as _norm
from functrans.numpy.linalg import pinv as _pinv
from functrans.numpy.linalg import solve as _solve
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import linalg, matrix
from functrans.primitives.solve import triangular_solve
from functrans.scipy.linalg.special_matrices import toeplitz
from functrans.typing import Array, ArrayLike


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:
    """The upper triangle U with U* U = a, or with `lower` the lower triangle L with L L* = a.

    >>> import functrans as ft
    >>> ft.scipy.linalg.cholesky(ft.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    factor = linalg.cholesky(matrices("cholesky", a, True))
    return factor if lower else matrix.adjoint(factor)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """The Cholesky factor of a and whether it is the lower one, for cho_solve.

    >>> c, lower = ft.scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> c[0, 0].item(), lower
    (2.0, False)
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """x with a x = b for the a whose cho_factor is given; b is (n,) or (..., n, k).

    >>> import functrans as ft
    >>> factor = ft.scipy.linalg.cho_factor(4.0 * ft.numpy.eye(2))
    >>> ft.scipy.linalg.cho_solve(factor, ft.numpy.ones(2)).tolist()
    [0.25, 0.25]
    """
    factor, lower = c_and_lower
    half = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, half, trans=2 if lower else 0, lower=lower)


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: object = None,
                     check_finite: bool = True) -> Array:
    """x with op(a) x = b for a triangle of a; op is none ("N", 0), a^T ("T", 1) or a* ("C", 2).

    b is (n,) or (..., n, k). Raises ArgumentError for another `trans`.

    >>> import functrans as ft
    >>> a = ft.numpy.array([[2.0, 0.0], [1.0, 1.0]])
    >>> ft.scipy.linalg.solve_triangular(a, ft.numpy.array([2.0, 3.0]), lower=True).tolist()
    [1.0, 2.0]
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(f"functrans.scipy.linalg.solve_triangular: trans={trans!r}.",
                            where=user_source(), fix="trans=0, 1 or 2")
    a, b = promote_dtypes_inexact("linalg.solve_triangular", a, b)
    a = matrices("solve_triangular", a, True)
    vector = b.ndim == 1
    b = lax.expand_dims(b, (1,)) if vector else b
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*lead, *a.shape[-2:]))
    b = jnp.broadcast_to(b, (*lead, *b.shape[-2:]))
    x = triangular_solve(a, b, left_side=True, lower=lower, transpose_a=trans not in (0, "N"),
                         conjugate_a=trans in (2, "C"), unit_diagonal=unit_diagonal)
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """x with a x = b; by Cholesky when `assume_a` is "pos". Triangles: see solve_triangular.

    Raises ArgumentError for an unknown `assume_a`.

    >>> ft.scipy.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
    Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ArgumentError(f"functrans.scipy.linalg.solve: assume_a={assume_a!r}.",
                            where=user_source(), fix="'gen', 'sym', 'her' or 'pos'")
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return _solve(a, b)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a.

    >>> ft.scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of a.

    >>> ft.scipy.linalg.det(jnp.array([[2.0, 1.0], [0.0, 3.0]])).round(4)
    Array(6., dtype=float32)
    """
    return _det(a)


# LU ------------------------------------------------------------------------------------------


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:
    """L and U in one matrix, and the pivots, for lu_solve.

    >>> lu, pivots = ft.scipy.linalg.lu_factor(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> lu, pivots
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    factors, pivots, _ = linalg.lu(matrices("lu_factor", a))
    return factors, pivots


def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0,
             overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x with op(a) x = b for the a whose lu_factor is given; b is (n,) or (n, k).

    >>> import functrans as ft
    >>> factor = ft.scipy.linalg.lu_factor(ft.numpy.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> ft.scipy.linalg.lu_solve(factor, ft.numpy.array([4.0, 3.0])).tolist()
    [3.0, 2.0]
    """
    factors, pivots = lu_and_piv
    factors, b = promote_dtypes_inexact("linalg.lu_solve", factors, b)
    if b.shape[0 if b.ndim == 1 else -2] != factors.shape[-1]:
        raise ShapeError(f"functrans.scipy.linalg.lu_solve: factors of shape {factors.shape} do "
                         f"not fit b of shape {b.shape}.", where=user_source())
    order = linalg.lu_pivots_to_permutation(operand("lu_solve", pivots), factors.shape[-1])
    x = lax.expand_dims(b, (1,)) if b.ndim == 1 else b
    if trans == 0:
        x = matrix.take_rows(x, order)
        x = triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)
        x = triangular_solve(factors, x, left_side=True)
    else:
        flags = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
        x = triangular_solve(factors, x, **flags)
        x = triangular_solve(factors, x, lower=True, unit_diagonal=True, **flags)
        x = matrix.take_rows(x, jnp.argsort(order))
    return lax.squeeze(x, (x.ndim - 1,)) if b.ndim == 1 else x


def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
       ) -> tuple[Array, ...]:
    """P, L and U with a = P L U, or P L and U when `permute_l`.

    >>> import functrans as ft
    >>> p, l, u = ft.scipy.linalg.lu(ft.numpy.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> (p @ l @ u).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    x = matrices("lu", a)
    factors, _, order = linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    low = matrix.tril(matrix.columns(factors, 0, k), -1)
    low = lax.add(low, matrix.eye(low.shape, low.dtype))
    up = matrix.triu(matrix.rows(factors, 0, k))
    permutation = matrix.swap_last(matrix.take_rows(
        matrix.eye((*x.shape[:-2], m, m), dtypes.real_dtype(x.dtype)), order))
    if permute_l:
        return jnp.matmul(lax.convert_element_type(permutation, low.dtype), low), up
    return permutation, low, up


# Structured matrices -------------------------------------------------------------------------


def _pair(c_or_cr: Any) -> tuple[Any, Any]:
    return c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)


def solve_toeplitz(c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], b: ArrayLike,
                   check_finite: bool = True) -> Array:
    """x with toeplitz(c, r) x = b, for c or (c, r); b is (n,) or (..., n, k).

    By LU of the whole matrix, which is stable where Levinson's recursion is not.

    >>> import functrans as ft
    >>> c = ft.numpy.array([2.0, 1.0])
    >>> ft.scipy.linalg.solve_toeplitz(c, ft.numpy.array([3.0, 3.0])).round(5).tolist()
    [1.0, 1.0]
    """
    c, r = _pair(c_or_cr)
    return _solve(toeplitz(c, r), b)


def matmul_toeplitz(c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], x: ArrayLike,
                    check_finite: bool = False, workers: int | None = None) -> Array:
    """toeplitz(c, r) x by Fourier transforms, for c or (c, r); x is (n,) or (..., n, k).

    Raises ShapeError when x has not as many rows as the matrix has columns.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> ft.scipy.linalg.matmul_toeplitz(jnp.array([2.0, 1.0]), jnp.ones(2)).round(4).tolist()
    [3.0, 3.0]
    """
    c, r = _pair(c_or_cr)
    c, r, x = promote_dtypes_inexact("linalg.matmul_toeplitz", c,
                                     jnp.conj(jnp.asarray(c)) if r is None else r, x)
    vector = x.ndim == 1
    x = lax.expand_dims(x, (1,)) if vector else x
    m, n = c.shape[-1], r.shape[-1]
    if x.shape[-2] != n:
        raise ShapeError(f"functrans.scipy.linalg.matmul_toeplitz: x of shape {x.shape} does not "
                         f"fit a matrix of {n} columns.", where=user_source())
    size = m + n - 1
    line = jnp.concatenate([c, jnp.flip(r[..., 1:], -1)], -1)
    product = jnp.fft.fft(line)[..., None] * jnp.fft.fft(x, size, axis=-2)
    out = jnp.fft.ifft(product, axis=-2)[..., :m, :]
    out = out if dtypes.kind(x.dtype) == "c" else out.real
    return lax.squeeze(out, (out.ndim - 1,)) if vector else out


def solve_circulant(c: ArrayLike, b: ArrayLike, singular: str = "raise", tol: float | None = None,
                    caxis: int = -1, baxis: int = 0, outaxis: int = 0) -> Array:
    """x with circulant(c) x = b, by Fourier transforms along `caxis` and `baxis`.

    With `singular="lstsq"` frequencies of at most `tol` (n eps times the largest) count as zero, so
    that x is the least-squares solution of least norm; with "raise" nothing is looked for, as a
    traced value cannot raise, and x of a singular matrix is infinite or NaN. Raises ArgumentError
    for another `singular`, ShapeError when lengths differ.

    >>> import functrans as ft
    >>> c, b = ft.numpy.array([2.0, 1.0]), ft.numpy.array([3.0, 3.0])
    >>> ft.scipy.linalg.solve_circulant(c, b).round(4).tolist()
    [1.0, 1.0]
    """
    if singular not in ("raise", "lstsq"):
        raise ArgumentError(f"functrans.scipy.linalg.solve_circulant: singular={singular!r}.",
                            where=user_source(), fix="singular='raise' or 'lstsq'")
    c, b = promote_dtypes_inexact("linalg.solve_circulant", jnp.atleast_1d(c), jnp.atleast_1d(b))
    c, b = jnp.moveaxis(c, caxis, -1), jnp.moveaxis(b, baxis, -1)
    if c.shape[-1] != b.shape[-1]:
        raise ShapeError(f"functrans.scipy.linalg.solve_circulant: c of {c.shape[-1]} and b of "
                         f"{b.shape[-1]} elements.", where=user_source())
    frequencies, right = jnp.fft.fft(c), jnp.fft.fft(b)
    sizes = jnp.abs(frequencies)
    if singular == "lstsq":
        eps = float(dtypes.finfo(sizes.dtype).eps)
        limit = jnp.max(sizes, -1, keepdims=True) * sizes.shape[-1] * eps if tol is None else tol
        zero = sizes <= limit
        quotient = jnp.where(zero, 0, right / jnp.where(zero, 1, frequencies))
    else:
        quotient = right / frequencies
    x = jnp.fft.ifft(quotient)
    return jnp.moveaxis(x if dtypes.kind(b.dtype) == "c" else x.real, -1, outaxis)


# Least squares -------------------------------------------------------------------------------


def lstsq(a: ArrayLike, b: ArrayLike, cond: float | None = None, overwrite_a: bool = False,
          overwrite_b: bool = False, check_finite: bool = True, lapack_driver: str | None = None
          ) -> tuple[Array, Array, Array, Array]:
    """The x of least norm that minimises |b - a x|, residuals, the rank and singular values.

    See functrans.numpy.linalg.lstsq, whose rcond is `cond`, by default eps.

    >>> import functrans as ft
    >>> x = ft.scipy.linalg.lstsq(ft.numpy.array([[1.0], [1.0]]), ft.numpy.array([1.0, 3.0]))[0]
    >>> round(float(x[0]), 4)
    2.0
    """
    (x,) = promote_dtypes_inexact("linalg.lstsq", a)
    return _lstsq(a, b, float(dtypes.finfo(x.dtype).eps) if cond is None else cond)


def pinv(a: ArrayLike, *, atol: float | None = None, rtol: float | None = None,
         return_rank: bool = False, check_finite: bool = True
          ) -> Array | tuple[Array, Array]:
    """The pseudo-inverses of matrices (..., m, n), and with `return_rank` their ranks.

    Singular values up to atol (0) + rtol (max(m, n) eps) times the largest count as zero.

    >>> import functrans as ft
    >>> ft.scipy.linalg.pinv(ft.numpy.array([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    x = matrices("pinv", a)
    s = lax.stop_gradient(jnp.linalg.svdvals(x))
    share = _share(s, max(x.shape[-2:]), atol, rtol)
    out = _pinv(x, share)
    if not return_rank:
        return out
    return out, jnp.sum(s > share[..., None] * jnp.max(s, -1, keepdims=True, initial=0), -1)


def _share(s: Array, size: int, atol: float | None, rtol: float | None) -> Array:
    """What counts as zero, relative to the largest value."""
    eps = float(dtypes.finfo(s.dtype).eps)
    relative = (size * eps if atol is None else 0.0) if rtol is None else rtol
    largest = jnp.max(s, -1, initial=0)
    return relative + (atol or 0.0) / jnp.where(largest == 0, 1, largest)


def pinvh(a: ArrayLike, atol: float | None = None, rtol: float | None = None, lower: bool = True,
          return_rank: bool = False, check_finite: bool = True
          ) -> Array | tuple[Array, Array]:
    """The pseudo-inverses of Hermitian matrices, of which one triangle is read; see `pinv`.

    >>> import functrans as ft
    >>> ft.scipy.linalg.pinvh(ft.numpy.diag(ft.numpy.array([2.0, 0.0]))).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = matrices("pinvh", a, True)
    low = x if lower else matrix.adjoint(x)
    return pinv(matrix.from_lower(low), atol=atol, rtol=rtol, return_rank=return_rank)


def norm(a: ArrayLike, ord: int | float | str | None = None,
         axis: int | tuple[int, int] | None = None, keepdims: bool = False,
         check_finite: bool = True) -> Array:
    """Norms of vectors or matrices, as functrans.numpy.linalg.norm.

    >>> import functrans as ft
    >>> float(ft.scipy.linalg.norm(ft.numpy.array([3.0, 4.0])))
    5.0
    """
    return _norm(a, ord, axis, keepdims)
