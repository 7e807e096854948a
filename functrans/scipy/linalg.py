"""Linear algebra with the names of scipy.linalg; matrices are the last two axes.

Arguments that only concern SciPy's memory (`overwrite_a`, `check_finite`, ...) are accepted.
"""

from __future__ import annotations

import math
from typing import Literal, overload

from functrans import lax
from functrans import numpy as fnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.numpy.linalg import det as _det
from functrans.numpy.linalg import inv as _inv
from functrans.numpy.linalg import qr as _qr
from functrans.numpy.linalg import solve as _solve
from functrans.numpy.linalg import svd as _svd
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import linalg, matrix, spectral
from functrans.primitives.solve import triangular_solve
from functrans.transforms.forward import jvp
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "expm",
    "expm_frechet",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "polar",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "toeplitz",
]


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
    """The Cholesky factor of a and whether it is the lower one, for cho_solve."""
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
    lead = fnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = fnp.broadcast_to(a, (*lead, *a.shape[-2:]))
    b = fnp.broadcast_to(b, (*lead, *b.shape[-2:]))
    x = triangular_solve(a, b, left_side=True, lower=lower, transpose_a=trans not in (0, "N"),
                         conjugate_a=trans in (2, "C"), unit_diagonal=unit_diagonal)
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """x with a x = b; by Cholesky when `assume_a` is "pos". Triangles: see solve_triangular.

    Raises ArgumentError for an unknown `assume_a`.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ArgumentError(f"functrans.scipy.linalg.solve: assume_a={assume_a!r}.",
                            where=user_source(), fix="'gen', 'sym', 'her' or 'pos'")
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return _solve(a, b)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a."""
    return _inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of a."""
    return _det(a)


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
    """U, s and Vh with a = U diag(s) Vh, or s alone."""
    if not compute_uv:
        return _svd(a, full_matrices, compute_uv=False)
    return tuple(_svd(a, full_matrices))


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: object = None,
       mode: Literal["full", "economic", "r"] = "full", pivoting: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """Q and R with Q R = a; mode "full", "economic", or "r" for (R,).

    With `pivoting` also P, with Q R = a[:, P] and a diagonal of R that falls in size.
    Raises ArgumentError for another mode.
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
            x = fnp.matmul(matrix.adjoint(factor), fnp.matmul(x, factor))
    if eigvals_only:
        return spectral.eigvalsh(x, lower=lower)
    v, w = spectral.eigh(x, lower=lower)
    if factor is not None and type == 3:
        v = fnp.matmul(factor, v)
    elif factor is not None:
        v = triangular_solve(factor, v, left_side=True, lower=True, transpose_a=True,
                             conjugate_a=True)
    return w, v


# LU ------------------------------------------------------------------------------------------


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:
    """L and U in one matrix, and the pivots, for lu_solve."""
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
        x = matrix.take_rows(x, fnp.argsort(order))
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
        return fnp.matmul(lax.convert_element_type(permutation, low.dtype), low), up
    return permutation, low, up


# Functions of matrices -----------------------------------------------------------------------

# (order of the Padé approximant, largest norm for which it is exact to the dtype): Higham, The
# scaling and squaring method for the matrix exponential revisited (2005), table 2.3
_PADE = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade(a: Array, order: int) -> Array:
    """The diagonal Padé approximant of exp at a: p(a) / p(-a)."""
    b = [math.factorial(2 * order - j) // (math.factorial(order - j) * math.factorial(j))
         * math.factorial(order) / math.factorial(2 * order) for j in range(order + 1)]
    identity = matrix.eye(a.shape, a.dtype)
    square = matrix.matmul(a, a)
    even, odd = b[order - 1] * identity, b[order] * identity
    for j in range(order - 3, -1, -2):
        even = matrix.matmul(even, square) + b[j] * identity
        odd = matrix.matmul(odd, square) + b[j + 1] * identity
    odd = matrix.matmul(a, odd)
    return _solve(even - odd, even + odd)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices (..., n, n), by scaling, a Padé approximant and squaring.

    NaN where more than `max_squarings` would be needed. Differentiable in both modes.

    >>> import functrans as ft
    >>> ft.scipy.linalg.expm(ft.numpy.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = matrices("expm", A, True)
    if x.ndim > 2:
        stack: Array = vmap(lambda a: expm(a, max_squarings=max_squarings))(x)
        return stack
    order, limit = _PADE[8 if dtypes.real_dtype(x.dtype).itemsize == 8 else 4]
    size = lax.stop_gradient(fnp.max(fnp.sum(fnp.abs(x), 0), initial=0))
    squarings = fnp.maximum(0.0, fnp.ceil(fnp.log2(size / limit)))
    too_many = ~(squarings <= max_squarings)
    squarings = fnp.where(too_many, 0.0, squarings)
    scaled = x * lax.convert_element_type(fnp.exp2(-squarings), x.dtype)
    out = lax.fori_loop(0, squarings.astype("int32"), lambda _, r: matrix.matmul(r, r),
                        _pade(scaled, order))
    out = fnp.triu(out) if upper_triangular else out
    return fnp.where(too_many, math.nan, out)


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: Literal[True] = True) -> tuple[Array, Array]: ...


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: Literal[False]) -> Array: ...


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """expm(A) and its derivative in the direction E, or without `compute_expm` that alone."""
    a, e = promote_dtypes_inexact("linalg.expm_frechet", A, E)
    value, tangent = jvp(expm, (a,), (e,))
    return (value, tangent) if compute_expm else tangent


def polar(a: ArrayLike, side: str = "right") -> tuple[Array, Array]:
    """U with orthonormal columns (or rows) and P positive semidefinite: a = U P, or P U if "left".

    Raises ArgumentError for another side.
    """
    if side not in ("right", "left"):
        raise ArgumentError(f"functrans.scipy.linalg.polar: side={side!r}.", where=user_source(),
                            fix="side='right' or 'left'")
    u, s, vh = spectral.svd(matrices("polar", a), full_matrices=False)
    s = lax.convert_element_type(s, u.dtype)
    unitary = fnp.matmul(u, vh)
    if side == "right":
        return unitary, fnp.matmul(matrix.adjoint(vh), matrix.scale_rows(s, vh))
    return unitary, fnp.matmul(matrix.scale_columns(u, s), matrix.adjoint(u))


# Special matrices ----------------------------------------------------------------------------


def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with the given matrices along its diagonal and zeros elsewhere.

    >>> import functrans as ft
    >>> ft.scipy.linalg.block_diag(ft.numpy.ones((1, 1)), ft.numpy.ones((1, 2))).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    blocks = [fnp.atleast_2d(a) for a in arrs] or [fnp.zeros((1, 0))]
    if any(b.ndim != 2 for b in blocks):
        raise ShapeError("functrans.scipy.linalg.block_diag takes matrices, and got shapes "
                         + ", ".join(str(b.shape) for b in blocks) + ".", where=user_source())
    dtype = fnp.result_type(*blocks)
    width = sum(b.shape[1] for b in blocks)
    rows, start = [], 0
    for b in blocks:
        stop = start + b.shape[1]
        rows.append(fnp.pad(b.astype(dtype), ((0, 0), (start, width - stop))))
        start = stop
    return fnp.concatenate(rows, 0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix constant along diagonals with first column c and first row r (conj(c) by default).

    Leading axes of c and r are those of a stack of matrices, and broadcast.

    >>> import functrans as ft
    >>> ft.scipy.linalg.toeplitz(ft.numpy.array([1, 2])).tolist()
    [[1, 2], [2, 1]]
    """
    column = fnp.atleast_1d(c)
    row = fnp.conj(column) if r is None else fnp.atleast_1d(r)
    m, n = column.shape[-1], row.shape[-1]
    stack = fnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column = fnp.broadcast_to(column, (*stack, m))
    row = fnp.broadcast_to(row, (*stack, n))
    line = fnp.concatenate([fnp.flip(column, -1), row[..., 1:]], -1)
    place = fnp.arange(n)[None, :] - fnp.arange(m)[:, None] + (m - 1)
    return line[..., place]


publish(globals(), __all__)
