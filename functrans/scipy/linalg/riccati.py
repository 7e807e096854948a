"""Riccati's equations, further factors, and what is known of the form of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives.matrix import adjoint
from functrans.scipy.linalg.decompositions import eigh_tridiagonal
from functrans.scipy.linalg.equations import solve_continuous_lyapunov, solve_discrete_lyapunov
from functrans.scipy.linalg.functions import expm
from functrans.transforms.derivatives import jacfwd
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

_LIMIT = 100  # doublings: each squares what is left


def _product(*factors: Array) -> Array:
    found = factors[0]
    for factor in factors[1:]:
        found = jnp.matmul(found, factor, precision="highest")
    return found


def _system(name: str, a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike,
            e: ArrayLike | None, s: ArrayLike | None) -> list[Array]:
    """A, B, Q, R and S in one dtype, in the variables in which E is one."""
    given = [jnp.atleast_2d(v) for v in promote_dtypes_inexact(
        f"linalg.{name}", a, b, q, r, *(v for v in (e, s) if v is not None))]
    a, b, q, r = given[:4]
    n, m = b.shape
    rest = given[4:]
    e = rest.pop(0) if e is not None else None
    s = rest.pop(0) if s is not None else jnp.zeros((n, m), a.dtype)
    shapes = {"a": (a, (n, n)), "q": (q, (n, n)), "r": (r, (m, m)), "s": (s, (n, m)),
              "e": (a if e is None else e, (n, n))}
    for argument, (value, shape) in shapes.items():
        if value.shape != shape:
            raise ShapeError(f"functrans.scipy.linalg.{name}: {argument} has shape {value.shape}.",
                             where=user_source(), why=f"b has shape {b.shape}, so that it is "
                             f"{shape}.")
    if e is not None:
        a, q, s = _over(a, e), _over(adjoint(_over(adjoint(q), e)), e), adjoint(
            _over(adjoint(s), e))
    return [a, b, q, r, s]


def _over(x: Array, e: Array) -> Array:
    """x e^-1."""
    return adjoint(jnp.linalg.solve(adjoint(e), adjoint(x)))


def _doubled(a: Array, g: Array, h: Array) -> Array:
    """The limit of the structured doubling algorithm: x = a* x (1 + g x)^-1 a + h.

    Source: Chu, Fan and Lin, Linear Algebra Appl. 396 (2005).
    """
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    eps = float(finfo(a.dtype).eps)

    def unfinished(state: Any) -> Any:
        _, _, h, moved, count = state
        return (moved > 4 * eps * jnp.linalg.norm(h)) & (count < _LIMIT)

    def improve(state: Any) -> Any:
        a, g, h, _, count = state
        w = eye + _product(g, h)
        left, right = jnp.linalg.solve(w, a), jnp.linalg.solve(w, g)
        more = _product(adjoint(a), h, left)
        g = g + _product(a, right, adjoint(a))
        new = h + more
        return (_product(a, left), 0.5 * (g + adjoint(g)), 0.5 * (new + adjoint(new)),
                jnp.linalg.norm(more), count + 1)

    start = (a, g, h, jnp.asarray(jnp.inf, jnp.real(h).dtype), jnp.asarray(0))
    found: Array = lax.while_loop(unfinished, improve, start)[2]
    return found


def _root(residual: Callable[[Array], Array], like: Array, found: Callable[[], Array]) -> Array:
    """The matrix that is found, with the derivatives of a root."""
    shape = like.shape

    def parts(x: Array) -> Array:
        """A linear equation of real numbers: conjugates make it one of no complex ones."""
        flat = x.reshape(-1)
        return jnp.concatenate([flat.real, flat.imag]) if jnp.iscomplexobj(x) else flat

    def whole(v: Array) -> Array:
        n = v.size // 2
        flat = lax.complex(v[:n], v[n:]) if jnp.iscomplexobj(like) else v
        return flat.reshape(shape)

    def tangent(linear: Callable[[Array], Array], y: Array) -> Array:
        matrix = vmap(linear)(jnp.eye(y.size, dtype=y.dtype)).T
        return jnp.linalg.solve(matrix, y)

    x: Array = lax.custom_root(lambda v: parts(residual(whole(v))), parts(jnp.zeros_like(like)),
                               lambda _, __: parts(found()), tangent)
    return whole(x)


def solve_continuous_are(a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike,
                         e: ArrayLike | None = None, s: ArrayLike | None = None,
                         balanced: bool = True) -> Array:
    """The stabilizing x of a* x e + e* x a - (e* x b + s) r^-1 (b* x e + s*) + q = 0.

    Of matrices (n, n), (n, m), (n, n) and (m, m), with e = 1 and s = 0 by default; differentiated
    as a solution. `balanced` is accepted. NaN or far from a solution where no stabilizing one
    exists. Raises ShapeError where shapes do not fit.
    Source: structured doubling (Chu, Fan and Lin, 2005), and two steps of Newton's method.

    >>> import functrans as ft
    >>> ft.scipy.linalg.solve_continuous_are(1.0, 1.0, 3.0, 1.0).round(4).tolist()
    [[3.0]]
    """
    a, b, q, r, s = _system("solve_continuous_are", a, b, q, r, e, s)

    def gain(x: Array) -> Array:
        return jnp.linalg.solve(r, _product(adjoint(b), x) + adjoint(s))

    def residual(x: Array) -> Array:
        k = gain(x)
        half = _product(adjoint(a), x)
        return half + adjoint(half) - _product(_product(x, b) + s, k) + q

    def found() -> Array:
        n = a.shape[0]
        eye = jnp.eye(n, dtype=a.dtype)
        free = a - _product(b, jnp.linalg.solve(r, adjoint(s)))
        g = _product(b, jnp.linalg.solve(r, adjoint(b)))
        h = q - _product(s, jnp.linalg.solve(r, adjoint(s)))
        # Cayley's transform, about a circle that the eigenvalues are near to
        size = jnp.sqrt(jnp.linalg.norm(free) ** 2 + jnp.linalg.norm(g) * jnp.linalg.norm(h))
        gamma = jnp.where(size > 0, 1.1 * size, 1).astype(a.dtype)
        shifted = free - gamma * eye
        w = adjoint(shifted) + _product(h, jnp.linalg.solve(shifted, g))
        first = eye + 2 * gamma * adjoint(jnp.linalg.inv(w))
        g0 = 2 * gamma * _over(jnp.linalg.solve(shifted, g), w)
        h0 = 2 * gamma * _over(jnp.linalg.solve(w, h), shifted)
        x = _doubled(first, g0, h0)
        for _ in range(2):
            closed = a - _product(b, gain(x))
            x = x + solve_continuous_lyapunov(adjoint(closed), -residual(x))
            x = 0.5 * (x + adjoint(x))
        return x

    return _root(residual, a, found)


def solve_discrete_are(a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike,
                       e: ArrayLike | None = None, s: ArrayLike | None = None,
                       balanced: bool = True) -> Array:
    """The stabilizing x of a* x a - e* x e - (a* x b + s) (r + b* x b)^-1 (b* x a + s*) + q = 0.

    Of matrices (n, n), (n, m), (n, n) and (m, m), with e = 1 and s = 0 by default; differentiated
    as a solution. `balanced` is accepted. NaN or far from a solution where no stabilizing one
    exists. Raises ShapeError where shapes do not fit.
    Source: structured doubling (Chu, Fan and Lin, 2005), and a step of Newton's method.

    >>> import functrans as ft
    >>> ft.scipy.linalg.solve_discrete_are(1.0, 1.0, 0.5, 1.0).round(4).tolist()
    [[1.0]]
    """
    a, b, q, r, s = _system("solve_discrete_are", a, b, q, r, e, s)

    def gain(x: Array) -> Array:
        return jnp.linalg.solve(r + _product(adjoint(b), x, b), _product(adjoint(b), x, a)
                                + adjoint(s))

    def residual(x: Array) -> Array:
        return _product(adjoint(a), x, a) - x - _product(_product(adjoint(a), x, b) + s,
                                                         gain(x)) + q

    def found() -> Array:
        free = a - _product(b, jnp.linalg.solve(r, adjoint(s)))
        g = _product(b, jnp.linalg.solve(r, adjoint(b)))
        x = _doubled(free, g, q - _product(s, jnp.linalg.solve(r, adjoint(s))))
        closed = a - _product(b, gain(x))
        x = x + solve_discrete_lyapunov(adjoint(closed), residual(x))
        return 0.5 * (x + adjoint(x))

    return _root(residual, a, found)


def rq(a: ArrayLike, overwrite_a: bool = False, lwork: object = None, mode: str = "full",
       check_finite: bool = True) -> Array | tuple[Array, Array]:
    """Upper triangular R and unitary Q with a = R Q, for matrices (..., m, n).

    `mode` is "full", "economic" (of the smaller size), or "r" (R alone, of the full size).
    Raises ArgumentError for another.

    >>> import functrans as ft
    >>> R, Q = ft.scipy.linalg.rq(ft.numpy.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> ft.numpy.abs(R).tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f"functrans.scipy.linalg.rq: mode={mode!r}.", where=user_source(),
                            fix="mode='full', 'economic' or 'r'")
    x = matrices("rq", a)
    m, n = x.shape[-2:]
    q, r = jnp.linalg.qr(adjoint(x[..., ::-1, :]), mode="complete")
    # of more columns than rows the zeros of R come first
    r, q = adjoint(r)[..., ::-1, ::-1], adjoint(q)[..., ::-1, :]
    if mode == "economic" and m < n:
        r, q = r[..., n - m:], q[..., n - m:, :]
    return r if mode == "r" else (r, q)


def issymmetric(a: ArrayLike, atol: float | None = None, rtol: float | None = None) -> Array:
    """Whether matrices (..., n, n) are equal to their transposes, or close with a tolerance.

    >>> import functrans as ft
    >>> bool(ft.scipy.linalg.issymmetric([[1.0, 2.0], [2.0, 1.0]]))
    True
    """
    return _equal("issymmetric", a, lambda x: jnp.swapaxes(x, -1, -2), atol, rtol)


def ishermitian(a: ArrayLike, atol: float | None = None, rtol: float | None = None) -> Array:
    """Whether matrices (..., n, n) are equal to their conjugate transposes, or close.

    >>> import functrans as ft
    >>> bool(ft.scipy.linalg.ishermitian([[1.0, 2.0j], [-2.0j, 1.0]]))
    True
    """
    return _equal("ishermitian", a, lambda x: jnp.conj(jnp.swapaxes(x, -1, -2)), atol, rtol)


def _equal(name: str, a: ArrayLike, other: Callable[[Array], Array], atol: float | None,
           rtol: float | None) -> Array:
    x = jnp.asarray(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"functrans.scipy.linalg.{name}: a has shape {x.shape}.",
                         where=user_source(), why="it is (..., n, n).")
    if atol is None and rtol is None:
        return jnp.all(x == other(x), axis=(-2, -1))
    return jnp.all(jnp.isclose(x, other(x), atol=atol or 0.0, rtol=rtol or 0.0), axis=(-2, -1))


def bandwidth(a: ArrayLike) -> tuple[Array, Array]:
    """How far below and above the diagonal a matrix (..., m, n) is not 0.

    >>> import functrans as ft
    >>> [int(v) for v in ft.scipy.linalg.bandwidth([[1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])]
    [1, 2]
    """
    x = jnp.asarray(a)
    if x.ndim < 2:
        raise ShapeError(f"functrans.scipy.linalg.bandwidth: a has shape {x.shape}.",
                         where=user_source(), why="a matrix has two axes.")
    off = np.subtract.outer(np.arange(x.shape[-2]), np.arange(x.shape[-1]))
    some = x != 0
    return (jnp.max(jnp.where(some, off, 0), axis=(-2, -1), initial=0),
            jnp.max(jnp.where(some, -off, 0), axis=(-2, -1), initial=0))


def eigvalsh_tridiagonal(d: ArrayLike, e: ArrayLike, select: str = "a",
                         select_range: tuple[float, float] | None = None,
                         check_finite: bool = True, tol: float = 0.0, lapack_driver: str = "auto"
                         ) -> Array:
    """Eigenvalues of the symmetric matrix of diagonal d and off-diagonal e; see `eigh_tridiagonal`.

    >>> import functrans as ft
    >>> ft.scipy.linalg.eigvalsh_tridiagonal([1.0, 1.0], [1.0]).round(4).tolist()
    [0.0, 2.0]
    """
    found: Any = eigh_tridiagonal(jnp.asarray(d), jnp.asarray(e), True, select, select_range,
                                  tol=tol or None)
    return found  # type: ignore[no-any-return]


def expm_cond(A: ArrayLike, check_finite: bool = True) -> Array:
    """The relative condition of the exponential of a matrix (n, n), by its derivative of n^4.

    Source: Al-Mohy and Higham, SIAM J. Matrix Anal. Appl. 30 (2009).

    >>> import functrans as ft
    >>> round(float(ft.scipy.linalg.expm_cond([[2.0]])), 4)
    2.0
    """
    x = matrices("expm_cond", jnp.asarray(A), True)
    if x.ndim != 2 or dtypes.kind(x.dtype) == "c":
        raise ShapeError(f"functrans.scipy.linalg.expm_cond: A is {x.dtype}{list(x.shape)}.",
                         where=user_source(), why="it is one real matrix.",
                         fix="ft.vmap(ft.scipy.linalg.expm_cond)(A)")
    slopes: Any = jacfwd(expm)(x)
    slopes = slopes.reshape(x.size, x.size)
    return jnp.linalg.norm(slopes, 2) * jnp.linalg.norm(x) / jnp.linalg.norm(expm(x))


def cdf2rdf(w: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues and vectors in conjugated pairs as real blocks and real vectors.

    Pairs stand behind each other, as those of `eig` do: under `jit` too, and (..., n) of them.

    >>> import functrans as ft
    >>> w, v = ft.scipy.linalg.eig(ft.numpy.array([[0.0, 1.0], [-4.0, 0.0]]))
    >>> ft.scipy.linalg.cdf2rdf(w, v)[0].round(4).tolist()
    [[0.0, 2.0], [-2.0, 0.0]]
    """
    values, vectors = jnp.asarray(w), jnp.asarray(v)
    n = values.shape[-1]
    if vectors.shape[-2:] != (n, n):
        raise ShapeError(f"functrans.scipy.linalg.cdf2rdf: w has shape {values.shape}, v "
                         f"{vectors.shape}.", where=user_source(), why="v is (..., n, n).")
    imag, paired = jnp.imag(values), jnp.imag(values) != 0
    # a pair begins where as many of a pair are before as are whole pairs
    before = jnp.cumsum(paired, axis=-1) - paired
    first = paired & (before % 2 == 0)
    up = jnp.where(first, imag, 0)[..., :-1]
    blocks = _diagonal(jnp.real(values)) + _diagonal(up, 1) - _diagonal(up, -1)
    real = jnp.where(first[..., None, :], -jnp.imag(vectors), jnp.real(vectors))
    return blocks, real


def _diagonal(x: Array, k: int = 0) -> Array:
    """Matrices (..., n, n) with the diagonals (..., n - |k|)."""
    n = x.shape[-1] + abs(k)
    eye = np.eye(n, k=k, dtype=bool)
    rows = np.clip(np.arange(n) + min(k, 0), 0, max(x.shape[-1] - 1, 0))
    return jnp.where(eye, x[..., rows, None], 0) if x.shape[-1] else jnp.zeros(
        (*x.shape[:-1], n, n), x.dtype)


def clarkson_woodruff_transform(input_matrix: ArrayLike, sketch_size: int,
                                rng: Array | int | None = None, *,
                                seed: Array | int | None = None) -> Array:
    """A sketch (sketch_size, n) of a matrix (m, n): its rows added with random signs at random.

    `rng` is a key or a seed (0 by default). Source: Clarkson and Woodruff, STOC (2013).

    >>> import functrans as ft
    >>> ft.scipy.linalg.clarkson_woodruff_transform(ft.numpy.ones((9, 2)), 3).shape
    (3, 2)
    """
    (x,) = promote_dtypes_inexact("linalg.clarkson_woodruff_transform", input_matrix)
    given = seed if rng is None else rng
    key = random.key(given or 0) if given is None or isinstance(given, int) else given
    one, two = random.split(key)
    to = random.randint(one, (x.shape[0],), 0, sketch_size)
    signs = random.rademacher(two, (x.shape[0], 1), x.dtype)
    return jnp.zeros((sketch_size, *x.shape[1:]), x.dtype).at[to].add(signs * x)
