"""Generalized Schur forms of two matrices, and balanced matrices: on known values, or the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.callbacks import pure_callback
from functrans.core import dtypes
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg.factorizations import matrices
from functrans.scipy.arguments import of_rank, one_of, refused
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike

Matrix = np.ndarray[Any, Any]
_SORTS = ("lhp", "rhp", "iuc", "ouc")


def _on_host(function: Callable[..., Any], shapes: Any, *given: Array) -> Any:
    """What a function of NumPy's arrays returns; under transforms it is called by the program."""
    def quiet(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(np.asarray, arrays))

    return pure_callback(quiet, shapes, *(lax.stop_gradient(x) for x in given),
                         vmap_method="sequential")


def _like(shape: tuple[int, ...], dtype: Any) -> Any:
    return ShapeDtypeStruct(shape, dtype)


def _pair(name: str, A: ArrayLike, B: ArrayLike, output: str) -> tuple[Array, Array]:
    one_of(f"linalg.{name}", "output", output, ("real", "complex", "r", "c"))
    a, b = promote_dtypes_inexact(f"linalg.{name}", A, B)
    a, b = (of_rank(f"linalg.{name}", "A", matrices(name, x, True), 2) for x in (a, b))
    if a.shape != b.shape:
        raise ShapeError(f"functrans.scipy.linalg.{name}: A has shape {a.shape}, B {b.shape}.",
                         where=user_source(), why="they are square and of one size.")
    if output in ("complex", "c"):
        dtype = dtypes.complex_dtype(a.dtype)
        a, b = (lax.convert_element_type(x, dtype) for x in (a, b))
    return a, b


def qz(A: ArrayLike, B: ArrayLike, output: str = "real", lwork: object = None, sort: None = None,
       overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True
       ) -> tuple[Array, Array, Array, Array]:
    """S, T and unitary Q and Z with A = Q S Z* and B = Q T Z*, T upper triangular.

    S is upper triangular for complex matrices and `output="complex"`; that of real ones has blocks
    of 2 x 2 for complex pairs of eigenvalues, where T is diagonal. It is computed on the host, by
    one eigenvalue after the other, in a time of n**4. Without derivative. NaN where A - x B is
    singular for all x. Raises ArgumentError for `sort`: `ordqz` does that.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> a, b = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[2.0, 0.0], [1.0, 1.0]])
    >>> s, t, q, z = ft.scipy.linalg.qz(a, b)
    >>> print((q @ s @ z.T).round(3), abs(t[1, 0]) < 1e-6)
    [[1. 2.]
     [3. 4.]] True
    """
    if sort is not None:
        raise refused("linalg.qz", "sort", "the order is that of ordqz.",
                      "functrans.scipy.linalg.ordqz(A, B, sort)")
    a, b = _pair("qz", A, B, output)
    kind = _like(a.shape, a.dtype)
    found: tuple[Array, Array, Array, Array] = _on_host(
        lambda a, b: tuple(v.astype(a.dtype) for v in _schur(a, b, None)),
        (kind,) * 4, a, b)
    return found


def ordqz(A: ArrayLike, B: ArrayLike, sort: str | Callable[..., Any] = "lhp", output: str = "real",
          overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True
          ) -> tuple[Array, Array, Array, Array, Array, Array]:
    """S, T, alpha, beta, Q and Z as of `qz`, with chosen eigenvalues alpha / beta first.

    `sort` is "lhp" (of negative real part), "rhp", "iuc" (within the unit circle), "ouc", or a
    function of the vectors alpha and beta that returns which are first. alpha is complex.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> a, b = jnp.diag(jnp.array([2.0, -1.0])), jnp.eye(2)
    >>> s, t, alpha, beta, q, z = ft.scipy.linalg.ordqz(a, b, "lhp")
    >>> print((alpha / beta).real.round(3))
    [-1.  2.]
    """
    if not callable(sort):
        one_of("linalg.ordqz", "sort", sort, _SORTS)
    a, b = _pair("ordqz", A, B, output)
    n = a.shape[0]
    kind = _like(a.shape, a.dtype)
    pairs = dtypes.complex_dtype(a.dtype)

    def ordered(a: Any, b: Any) -> Any:
        s, t, q, z = _schur(a, b, sort)
        alpha, beta = _ratios(s, t)
        return (s.astype(a.dtype), t.astype(a.dtype), alpha.astype(pairs), beta.astype(a.dtype),
                q.astype(a.dtype), z.astype(a.dtype))

    found: tuple[Array, Array, Array, Array, Array, Array] = _on_host(
        ordered, (kind, kind, _like((n,), pairs), _like((n,), a.dtype), kind, kind), a, b)
    return found


def _eigenvalues(a: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    """alpha and beta of a pencil, from the inverse at a point between eigenvalues."""
    size = max(float(np.linalg.norm(a)), 1e-300) / max(float(np.linalg.norm(b)), 1e-300)
    best, shift = np.inf, 0.0
    for trial in (0.37, -0.61, 1.13, -1.71, 0.083):
        condition = np.linalg.cond(a - trial * size * b)
        if condition < best:
            best, shift = condition, trial * size
    if not np.isfinite(best) or best > 1 / np.finfo(float).eps:
        return np.full(len(a), np.nan), np.ones(len(a))
    mu = np.linalg.eigvals(np.linalg.solve(a - shift * b, b))
    alpha, beta = 1 + shift * mu, mu.astype(complex)
    norm = np.sqrt(np.abs(alpha) ** 2 + np.abs(beta) ** 2)
    # beta is positive, as LAPACK has it
    phase = np.where(np.abs(beta) > 0, beta.conj() / np.where(beta == 0, 1, np.abs(beta)), 1)
    beta = np.abs(beta) / norm
    return alpha * phase / norm, np.where(beta < 1e-14, 0, beta)


def _first(alpha: Matrix, beta: Matrix, sort: Any) -> Matrix:
    if callable(sort):
        return np.asarray(sort(alpha, beta), bool)
    if sort in ("lhp", "rhp"):
        real = np.real(alpha)
        return np.asarray(((real < 0) if sort == "lhp" else (real > 0)) & (beta != 0))
    inside = np.abs(alpha) < np.abs(beta)
    return inside if sort == "iuc" else (np.abs(alpha) > np.abs(beta)) | (beta == 0)


def _null(a: Matrix, b: Matrix, alpha: Any, beta: Any) -> Matrix:
    """The vector that beta a - alpha b takes nearest to zero; better eigenvalues are tried."""
    best, least = np.zeros(len(a)), np.inf
    for _ in range(4):
        u, values, vh = np.linalg.svd(beta * a - alpha * b)
        if not values[-1] < least:
            break
        best, least = vh[-1].conj(), values[-1]
        left = u[:, -1].conj()
        new = np.array([left @ a @ best, left @ b @ best])
        norm = np.linalg.norm(new)
        if not norm > 0:
            break
        alpha, beta = new / norm
    return best


def _schur(a: Matrix, b: Matrix, sort: Any) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Deflate one eigenvalue after the other, or two of a complex pair."""
    real = not np.iscomplexobj(a)
    work = np.float64 if real else np.complex128
    a, b = a.astype(work), b.astype(work)
    n = len(a)
    q, z = np.eye(n, dtype=work), np.eye(n, dtype=work)
    s, t = a.copy(), b.copy()
    k = 0
    while k < n:
        sub_s, sub_t = s[k:, k:], t[k:, k:]
        alpha, beta = _eigenvalues(sub_s, sub_t)
        if not np.isfinite(alpha).all():
            return tuple(np.full((n, n), np.nan) for _ in range(4))  # type: ignore[return-value]
        place = 0
        if sort is not None:
            chosen = np.flatnonzero(_first(alpha, beta, sort))
            place = int(chosen[0]) if len(chosen) else 0
        small = 10 * np.sqrt(np.finfo(float).eps)
        pair = real and abs(alpha[place].imag) > 1e-14 and n - k > 1
        if pair and abs(alpha[place].imag) < small * max(abs(alpha[place]), 1e-300):
            pair = not _is_real(sub_s, sub_t, alpha[place], beta[place])
        v = _null(sub_s, sub_t, alpha[place] if pair or not real else alpha[place].real,
                  beta[place])
        basis = np.stack([v.real, v.imag], axis=1) if pair else v[:, None]
        basis = basis.real if real else basis
        width = basis.shape[1]
        right = np.linalg.qr(basis, mode="complete")[0]
        images = np.concatenate([sub_s @ right[:, :width], sub_t @ right[:, :width]], axis=1)
        left = np.linalg.svd(images)[0]
        s[:, k:], t[:, k:], z[:, k:] = (x[:, k:] @ right for x in (s, t, z))
        s[k:], t[k:] = (left.conj().T @ x[k:] for x in (s, t))
        q[:, k:] = q[:, k:] @ left
        s[k + width:, k:k + width], t[k + width:, k:k + width] = 0, 0
        _standard(s, t, q, z, k, width)
        k += width
    return s, t, q, z


def _is_real(a: Matrix, b: Matrix, alpha: Any, beta: Any) -> bool:
    """Whether the real part of an eigenvalue is as good as the pair."""
    rest = np.linalg.svd(beta * a - alpha.real * b, compute_uv=False)
    return bool(rest[-1] <= 10 * len(a) * np.finfo(float).eps * rest[0])


def _standard(s: Matrix, t: Matrix, q: Matrix, z: Matrix, k: int, width: int) -> None:
    """A diagonal of T that is not negative, and is all of it in a block of two."""
    span = slice(k, k + width)
    if width == 2:
        u, values, vh = np.linalg.svd(t[span, span])
        s[span], t[span] = u.T @ s[span], u.T @ t[span]
        q[:, span] = q[:, span] @ u
        s[:, span], t[:, span], z[:, span] = (x[:, span] @ vh.T for x in (s, t, z))
        t[span, span] = np.diag(values)
        return
    value = t[k, k]
    if value != 0:
        phase = np.conj(value) / abs(value)
        s[k], t[k] = s[k] * phase, t[k] * phase
        q[:, k] = q[:, k] * np.conj(phase)
        t[k, k] = abs(value)


def _ratios(s: Matrix, t: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues alpha / beta in the order of the diagonal."""
    n = len(s)
    alpha, beta = np.diag(s).astype(complex), np.diag(t).copy()
    k = 0
    while k < n - 1:
        if s[k + 1, k] != 0:
            one, two = _eigenvalues(s[k:k + 2, k:k + 2], t[k:k + 2, k:k + 2])
            order = np.argsort(-one.imag)
            alpha[k:k + 2], beta[k:k + 2] = one[order], two[order].real
            k += 1
        k += 1
    return alpha, beta


def matrix_balance(A: ArrayLike, permute: bool = True, scale: bool = True, separate: bool = False,
                   overwrite_a: bool = False
                   ) -> tuple[Array, Array] | tuple[Array, tuple[Array, Array]]:
    """B and T with B = T**-1 A T, whose rows and columns have norms that are alike.

    T is a permutation (with `permute`), which brings isolated eigenvalues to the corners, times
    powers of two (with `scale`); with `separate` it is (scaling, permutation). It is computed on
    the host, without derivative. Raises ShapeError for a matrix that is not square.
    Source: James, Langou and Lowery, On matrix balancing and eigenvector computation (2014).

    >>> import functrans as ft
    >>> b, t = ft.scipy.linalg.matrix_balance(ft.numpy.array([[1.0, 64.0], [1.0, 1.0]]))
    >>> print(b, ft.numpy.diag(t))
    [[1. 8.]
     [8. 1.]] [8. 1.]
    """
    a = of_rank("linalg.matrix_balance", "A", matrices("matrix_balance", A, True), 2)
    n = a.shape[0]
    real = dtypes.real_dtype(a.dtype)

    def host(x: Any) -> Any:
        b, scaling, order = _balanced(np.array(x), permute, scale)
        return b, scaling.astype(real), order.astype(np.int32)

    b, scaling, order = _on_host(host, (_like(a.shape, a.dtype), _like((n,), real),
                                        _like((n,), np.int32)), a)
    if separate:
        return b, (scaling, order)
    rows = jnp.zeros((n, n), real).at[order, jnp.arange(n)].set(scaling)
    return b, rows


def _balanced(a: Matrix, permute: bool, scale: bool) -> tuple[Matrix, Matrix, Matrix]:
    """The matrix, the scaling of each of its rows, and the order."""
    n = len(a)
    order, factors = np.arange(n), np.ones(n)
    low, high = 0, n - 1

    def exchange(i: int, j: int) -> None:
        if i != j:
            a[:, [i, j]] = a[:, [j, i]]
            a[[i, j]] = a[[j, i]]
            order[[i, j]] = order[[j, i]]

    def isolated(by_row: bool) -> int | None:
        span = range(high, low - 1, -1) if by_row else range(low, high + 1)
        for i in span:
            line = a[i, low:high + 1] if by_row else a[low:high + 1, i]
            if not np.delete(line, i - low).any():
                return i
        return None

    while permute and high > low and (i := isolated(True)) is not None:
        exchange(i, high)
        high -= 1
    while permute and low < high and (i := isolated(False)) is not None:
        exchange(i, low)
        low += 1
    again = scale
    while again:
        again = False
        for i in range(low, high + 1):
            c, r = (float(np.linalg.norm(v)) for v in (a[low:high + 1, i], a[i, low:high + 1]))
            if not c or not r or not np.isfinite(c + r):
                continue
            g, f, total = r / 2, 1.0, c + r
            while c < g:
                f, c, r, g = 2 * f, 2 * c, r / 2, g / 2
            g = c / 2
            while g >= r:
                f, c, g, r = f / 2, c / 2, g / 2, 2 * r
            if c + r < 0.95 * total and np.isfinite(factors[i] * f):
                factors[i] *= f
                a[i, low:] /= f
                a[:high + 1, i] *= f
                again = True
    return a, factors, order
