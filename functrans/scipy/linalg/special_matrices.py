"""Matrices of well-known families."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes, promote_dtypes_inexact
from functrans.typing import Array, ArrayLike, DTypeLike


def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with the given matrices along its diagonal and zeros elsewhere.

    >>> import functrans as ft
    >>> ft.scipy.linalg.block_diag(ft.numpy.ones((1, 1)), ft.numpy.ones((1, 2))).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    blocks = [jnp.atleast_2d(a) for a in arrs] or [jnp.zeros((1, 0))]
    if any(b.ndim != 2 for b in blocks):
        raise ShapeError("functrans.scipy.linalg.block_diag takes matrices, and got shapes "
                         + ", ".join(str(b.shape) for b in blocks) + ".", where=user_source())
    dtype = jnp.result_type(*blocks)
    width = sum(b.shape[1] for b in blocks)
    rows, start = [], 0
    for b in blocks:
        stop = start + b.shape[1]
        rows.append(jnp.pad(b.astype(dtype), ((0, 0), (start, width - stop))))
        start = stop
    return jnp.concatenate(rows, 0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix constant along diagonals with first column c and first row r (conj(c) by default).

    Leading axes of c and r are those of a stack of matrices, and broadcast.

    >>> import functrans as ft
    >>> ft.scipy.linalg.toeplitz(ft.numpy.array([1, 2])).tolist()
    [[1, 2], [2, 1]]
    """
    column = jnp.atleast_1d(c)
    row = jnp.conj(column) if r is None else jnp.atleast_1d(r)
    m, n = column.shape[-1], row.shape[-1]
    stack = jnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column = jnp.broadcast_to(column, (*stack, m))
    row = jnp.broadcast_to(row, (*stack, n))
    line = jnp.concatenate([jnp.flip(column, -1), row[..., 1:]], -1)
    place = jnp.arange(n)[None, :] - jnp.arange(m)[:, None] + (m - 1)
    return line[..., place]


def _vector(name: str, x: ArrayLike) -> Array:
    """x with its last axis as vectors."""
    out = jnp.atleast_1d(x)
    if 0 in out.shape[-1:]:
        raise ShapeError(f"functrans.scipy.linalg.{name}: a vector of shape {out.shape} is empty.",
                         where=user_source())
    return out


def _size(name: str, n: int, least: int = 0) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < least:
        raise ArgumentError(f"functrans.scipy.linalg.{name}: n={n!r}.", where=user_source(),
                            why=f"it is an int of at least {least}.")
    return int(n)


def _floats(x: Any) -> Array:
    return jnp.asarray(x, dtypes.default_float())


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix constant along anti-diagonals with first column c and last row r (zeros).

    r[0] is not read. Leading axes of c and r are those of a stack of matrices, and broadcast.

    >>> import functrans as ft
    >>> ft.scipy.linalg.hankel(ft.numpy.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    column = jnp.atleast_1d(c)
    row = jnp.zeros_like(column) if r is None else jnp.atleast_1d(r)
    column, row = promote_dtypes("linalg.hankel", column, row)
    m, n = column.shape[-1], row.shape[-1]
    stack = jnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    line = jnp.concatenate([jnp.broadcast_to(column, (*stack, m)),
                            jnp.broadcast_to(row, (*stack, n))[..., 1:]], -1)
    return line[..., np.arange(m)[:, None] + np.arange(n)[None, :]]


def circulant(c: ArrayLike) -> Array:
    """The matrices (..., n, n) whose columns are c (..., n), each turned on by one element.

    >>> import functrans as ft
    >>> ft.scipy.linalg.circulant(ft.numpy.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    x = _vector("circulant", c)
    place = np.arange(x.shape[-1])
    return x[..., (place[:, None] - place[None, :]) % x.shape[-1]]


def companion(a: ArrayLike) -> Array:
    """The companion matrices (..., n - 1, n - 1) of polynomials a (..., n), highest power first.

    a[0] must not be zero. Raises ShapeError for fewer than two coefficients.

    >>> import functrans as ft
    >>> ft.scipy.linalg.companion(ft.numpy.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    (x,) = promote_dtypes_inexact("linalg.companion", jnp.atleast_1d(a))
    n = x.shape[-1]
    if n < 2:
        raise ShapeError(f"functrans.scipy.linalg.companion: a polynomial of shape {x.shape}.",
                         where=user_source(), why="it has at least two coefficients.")
    first = -x[..., 1:] / x[..., :1]
    rest = jnp.broadcast_to(jnp.eye(n - 2, n - 1, dtype=x.dtype), (*x.shape[:-1], n - 2, n - 1))
    return jnp.concatenate([first[..., None, :], rest], -2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with v (n,) is the convolution of a (..., m) and v.

    `mode` is that of functrans.numpy.convolve: "full", "same" or "valid". Raises ArgumentError for
    another.

    >>> import functrans as ft
    >>> ft.scipy.linalg.convolution_matrix(ft.numpy.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    n = _size("convolution_matrix", n, 1)
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"functrans.scipy.linalg.convolution_matrix: mode={mode!r}.",
                            where=user_source(), fix="mode='full', 'same' or 'valid'")
    x = _vector("convolution_matrix", a)
    m = x.shape[-1]
    place = np.arange(m + n - 1)[:, None] - np.arange(n)[None, :]
    inside = (place >= 0) & (place < m)
    full = jnp.where(inside, x[..., np.clip(place, 0, m - 1)], 0)
    if mode == "full":
        return full
    rows = max(m, n) if mode == "same" else abs(m - n) + 1
    first = (min(m, n) - 1) // 2 if mode == "same" else min(m, n) - 1
    return full[..., first:first + rows, :]


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix (n, n) of the discrete Fourier transform, divided by n or sqrt(n) if asked.

    `scale` is None, "n" or "sqrtn". Raises ArgumentError for another.

    >>> import functrans as ft
    >>> ft.scipy.linalg.dft(2).real.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    n = _size("dft", n)
    if scale not in (None, "n", "sqrtn"):
        raise ArgumentError(f"functrans.scipy.linalg.dft: scale={scale!r}.", where=user_source(),
                            fix="scale=None, 'n' or 'sqrtn'")
    numbers = np.arange(n)
    out = np.exp(-2j * np.pi * (np.outer(numbers, numbers) % max(n, 1)) / max(n, 1))
    out = out / {None: 1, "n": max(n, 1), "sqrtn": math.sqrt(max(n, 1))}[scale]
    return jnp.asarray(out, dtypes.complex_dtype(dtypes.default_float()) if dtype is None
                       else dtype)


def fiedler(a: ArrayLike) -> Array:
    """The symmetric matrices (..., n, n) of the distances |a_i - a_j|.

    >>> import functrans as ft
    >>> ft.scipy.linalg.fiedler(ft.numpy.array([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    x = jnp.atleast_1d(a)
    return jnp.abs(x[..., :, None] - x[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler's pentadiagonal companion matrices of polynomials a (..., n), highest power first.

    Source: M. Fiedler, A note on companion matrices, Linear Algebra Appl. 372 (2003). Empty for
    fewer than two coefficients.

    >>> import functrans as ft
    >>> ft.scipy.linalg.fiedler_companion(ft.numpy.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    (x,) = promote_dtypes_inexact("linalg.fiedler_companion", jnp.atleast_1d(a))
    lead, n = x.shape[:-1], x.shape[-1] - 1
    if n < 1:
        return jnp.zeros((*lead, 0, 0), x.dtype)
    x = x / x[..., :1]
    if n == 1:
        return -x[..., 1:, None]
    if n == 2:
        return companion(x)
    # element (i, j): a coefficient, negated, or one
    number, ones = np.zeros((n, n), int), np.zeros((n, n), int)
    number[0, 0] = 1
    ones[1, 0] = 1
    for i in range(0, n - 1, 2):
        number[i, i + 1] = i + 2
        if i + 2 < n:
            ones[i, i + 2] = 1
    for i in range(2, n, 2):
        number[i, i - 1] = i + 1
        if i + 1 < n:
            ones[i + 1, i - 1] = 1
    return jnp.where(number > 0, -x[..., number], jnp.asarray(ones, x.dtype))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix (n, n) in Sylvester's construction, of elements 1 and -1.

    Raises ArgumentError where n is no power of two.

    >>> import functrans as ft
    >>> ft.scipy.linalg.hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    n = _size("hadamard", n, 1)
    if n & (n - 1):
        raise ArgumentError(f"functrans.scipy.linalg.hadamard: n={n} is no power of two.",
                            where=user_source())
    out = np.ones((1, 1), int)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return jnp.asarray(out, dtypes.default_int() if dtype is int else dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix (n - 1, n), whose rows are orthonormal contrasts; with `full` (n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.helmert(2).round(4)
    Array([[ 0.7071, -0.7071]], dtype=float32)
    """
    n = _size("helmert", n)
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    sizes = np.arange(n) * np.arange(1, n + 1)
    if n:
        out[0] = 1
        sizes[0] = n
    out = out / np.sqrt(sizes)[:, None]
    return _floats(out if full else out[1:])


def hilbert(n: int) -> Array:
    """Hilbert's matrix (n, n) of 1 / (i + j + 1).

    >>> import functrans as ft
    >>> ft.scipy.linalg.hilbert(2)[0].tolist()
    [1.0, 0.5]
    """
    numbers = np.arange(_size("hilbert", n))
    return _floats(1 / (numbers[:, None] + numbers + 1))


def invhilbert(n: int, exact: bool = False) -> Array:
    """The inverse of Hilbert's matrix, whose elements are integers; with `exact` in int64.

    Raises ArgumentError for `exact` where n > 14, which int64 does not hold.

    >>> import functrans as ft
    >>> ft.scipy.linalg.invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    """
    n = _size("invhilbert", n)
    if exact and n > 14:
        raise ArgumentError(f"functrans.scipy.linalg.invhilbert: n={n} overflows int64.",
                            where=user_source(), fix="exact=False")

    def element(i: int, j: int) -> int:
        return (int((-1) ** (i + j)) * (i + j + 1) * math.comb(n + i, n - j - 1)
                * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2)

    out = [[element(i, j) for j in range(n)] for i in range(n)]
    if exact:
        return jnp.asarray(np.array(out, np.int64).reshape(n, n))
    return _floats(np.array([[float(x) for x in row] for row in out]).reshape(n, n))


def _pascal(n: int, kind: str | None, name: str, default: str) -> tuple[np.ndarray[Any, Any], str]:
    kind = default if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ArgumentError(f"functrans.scipy.linalg.{name}: kind={kind!r}.", where=user_source(),
                            fix="kind='symmetric', 'lower' or 'upper'")
    n = _size(name, n)
    low = np.array([[float(math.comb(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n)
    return low, kind


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's matrix (n, n) of binomial coefficients: "symmetric" (default), "lower" or "upper".

    In the default float dtype, as JAX has it. Raises ArgumentError for another kind.

    >>> import functrans as ft
    >>> ft.scipy.linalg.pascal(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    """
    low, kind = _pascal(n, kind, "pascal", "symmetric")
    return _floats({"lower": low, "upper": low.T}.get(kind, low @ low.T))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of Pascal's matrix, see `pascal`.

    >>> import functrans as ft
    >>> ft.scipy.linalg.invpascal(2).tolist()
    [[2.0, -1.0], [-1.0, 1.0]]
    """
    low, kind = _pascal(n, kind, "invpascal", "symmetric")
    sign = (-1.0) ** np.arange(len(low))
    inverse = sign[:, None] * low * sign
    return _floats({"lower": inverse, "upper": inverse.T}.get(kind, inverse.T @ inverse))


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrices (..., n, n) of fecundities f (..., n) and survivals s (..., n - 1).

    Raises ShapeError when lengths do not fit.

    >>> import functrans as ft
    >>> ft.scipy.linalg.leslie(ft.numpy.array([1.0, 2.0]), ft.numpy.array([0.5])).tolist()
    [[1.0, 2.0], [0.5, 0.0]]
    """
    f, s = promote_dtypes("linalg.leslie", jnp.atleast_1d(f), jnp.atleast_1d(s))
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ShapeError(f"functrans.scipy.linalg.leslie: f has shape {f.shape}, s {s.shape}.",
                         where=user_source(), why="they are (..., n) and (..., n - 1), n >= 2.")
    lead = jnp.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    f, s = jnp.broadcast_to(f, (*lead, n)), jnp.broadcast_to(s, (*lead, n - 1))
    below = jnp.where(np.eye(n - 1, n, dtype=bool), s[..., :, None], 0)
    return jnp.concatenate([f[..., None, :], below], -2)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The matrix (N, M) of ones up to diagonal k, and zeros above.

    >>> import functrans as ft
    >>> ft.scipy.linalg.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return jnp.tri(N, M, k, dtype)


def khatri_rao(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker products of the columns of a (..., m, n) and b (..., k, n): (..., m k, n).

    Raises ShapeError when columns differ in number.

    >>> import functrans as ft
    >>> a, b = ft.numpy.array([[1, 2]]), ft.numpy.array([[3, 4], [5, 6]])
    >>> ft.scipy.linalg.khatri_rao(a, b).tolist()
    [[3, 8], [5, 12]]
    """
    x, y = promote_dtypes("linalg.khatri_rao", a, b)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"functrans.scipy.linalg.khatri_rao: a has shape {x.shape}, b {y.shape}.",
                         where=user_source(), why="they are matrices of equally many columns.")
    out = x[..., :, None, :] * y[..., None, :, :]
    return jnp.reshape(out, (*out.shape[:-3], out.shape[-3] * out.shape[-2], out.shape[-1]))
