"""Some eigenvalues and singular values of large matrices, by Krylov spaces with restarts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.dtypes import complex_dtype, finfo, kind, result_type
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, one_of, random_key, refused
from functrans.scipy.linalg import lu_factor, lu_solve
from functrans.scipy.sparse.maps import (
    LinearOperator,
    Matrix,
    Product,
    aslinearoperator,
    square_map,
)
from functrans.sparse.base import JAXSparse
from functrans.sparse.linalg import lobpcg_standard
from functrans.typing import Array, ArrayLike

# what is wanted comes first: keys by which eigenvalues are sorted, the largest first
_KEYS: Final[Mapping[str, Callable[[Array], Array]]] = MappingProxyType({
    "LM": jnp.abs, "SM": lambda w: -jnp.abs(w), "LA": jnp.real, "SA": lambda w: -jnp.real(w),
    "LR": jnp.real, "SR": lambda w: -jnp.real(w), "LI": lambda w: jnp.abs(jnp.imag(w)),
    "SI": lambda w: -jnp.abs(jnp.imag(w))})


def _product(u: Array, v: Array) -> Array:
    return jnp.matmul(u, v, precision="highest")


def _wanted(apply: Product, start: Array, k: int, m: int, which: str, tol: float, maxiter: int,
            hermitian: bool) -> tuple[Array, Array, Array]:
    """k eigenvalues, their vectors of length 1, and the number of restarts.

    A space of m vectors that is orthonormal, made by products with the newest one; of its
    eigenvectors the wanted ones are kept, and the space is made anew from these.
    Source: Stewart, A Krylov-Schur algorithm, SIAM J. Matrix Anal. Appl. 23 (2001).
    """
    n, dtype = start.shape[0], start.dtype
    eps = float(finfo(dtype).eps)
    kept = min(k + max((m - k) // 2, 1), m - 1)
    limit = max(tol, 2 * eps)
    key = random.key(7)

    def unit(v: Array) -> Array:
        return v / jnp.linalg.norm(v)

    def expand(j: Any, state: Any) -> Any:
        basis, s = state
        v = basis[:, j]
        w = apply(v).astype(dtype)
        size = jnp.linalg.norm(w)
        seen = basis * (jnp.arange(m + 1) <= j)
        h = jnp.zeros(m + 1, dtype)
        for _ in range(2):
            part = _product(seen.conj().T, w)
            w, h = w - _product(seen, part), h + part
        rest = jnp.linalg.norm(w)
        # a space that the map does not leave goes on in any direction outside
        ended = rest <= 10 * eps * size
        other = random.normal(random.fold_in(key, j), (n,), jnp.real(w).dtype).astype(dtype)
        for _ in range(2):
            other = other - _product(seen, _product(seen.conj().T, other))
        w = jnp.where(ended, unit(other), w / jnp.where(ended, 1, rest))
        return basis.at[:, j + 1].set(w), s.at[:, j].set(
            h.at[j + 1].set(jnp.where(ended, 0, rest).astype(dtype)))

    def spectrum(s: Array) -> tuple[Array, Array, Array]:
        inner = s[:m]
        w, y = jnp.linalg.eigh(0.5 * (inner + inner.conj().T)) if hermitian else \
            jnp.linalg.eig(inner)
        order = jnp.argsort(-_KEYS[which](w))
        w, y = w[order], y[:, order]
        return w, y, jnp.abs(s[m, m - 1]) * jnp.abs(y[m - 1])

    def done(w: Array, left: Array) -> Array:
        size = jnp.maximum(jnp.abs(w[:k]), eps ** (2 / 3))
        return jnp.all(left[:k] <= limit * size)

    def built(basis: Array, s: Array, first: int) -> tuple[Array, Array]:
        found: tuple[Array, Array] = lax.fori_loop(first, m, expand, (basis, s))
        return found

    def unfinished(state: Any) -> Any:
        _, _, ended, count = state
        return ~ended & (count < maxiter)

    def improve(state: Any) -> Any:
        basis, s, _, count = state
        w, y, _ = spectrum(s)
        q, _ = jnp.linalg.qr(y[:, :kept].astype(dtype))
        inner = _product(q.conj().T, _product(s[:m], q))
        new = jnp.zeros_like(basis).at[:, :kept].set(_product(basis[:, :m], q)).at[:, kept].set(
            basis[:, m])
        small = jnp.zeros_like(s).at[:kept, :kept].set(inner).at[kept, :kept].set(
            s[m, m - 1] * q[m - 1])
        basis, s = built(new, small, kept)
        w, _, left = spectrum(s)
        return basis, s, done(w, left), count + 1

    first = jnp.zeros((n, m + 1), dtype).at[:, 0].set(unit(start))
    basis, s = built(first, jnp.zeros((m + 1, m), dtype), 0)
    w, _, left = spectrum(s)
    basis, s, _, count = lax.while_loop(unfinished, improve, (basis, s, done(w, left),
                                                              jnp.asarray(0)))
    w, y, _ = spectrum(s)
    v = _product(basis[:, :m].astype(y.dtype), y[:, :k])
    return w[:k], v / jnp.linalg.norm(v, axis=0), count


def _searched(name: str, A: Any, k: int, sigma: Any, which: str, v0: ArrayLike | None,
              ncv: int | None, maxiter: int | None, tol: float, OPinv: Any, hermitian: bool,
              rng: Array | int | None) -> tuple[Array, Array]:
    op = square_map(name, A)
    n = op.shape[0]
    count = known_size(f"sparse.linalg.{name}", "k", k)
    most = n - 1 if hermitian else n - 2
    if count > most:
        raise ArgumentError(f"functrans.scipy.sparse.linalg.{name}: k is {k} of {n} eigenvalues.",
                            where=user_source(), why=f"k is at most {most}.",
                            fix="functrans.numpy.linalg." + ("eigh(A)" if hermitian else "eig(A)"))
    m = min(n, max(2 * count + 1, 20) if ncv is None else max(ncv, count + 2))
    dtype = op.dtype if hermitian else complex_dtype(op.dtype)
    start = jnp.asarray(v0) if v0 is not None else random.normal(
        random_key(f"sparse.linalg.{name}", rng), (n,), jnp.zeros((), op.dtype).real.dtype)
    apply: Product = op.matvec
    if sigma is not None:
        apply = _inverse(name, A, op, sigma, OPinv, dtype)

    def search(x: Array) -> tuple[Array, Array]:
        limit = 10 * n if maxiter is None else maxiter
        if not hermitian and kind(op.dtype) != "c" and sigma is None:
            both = lambda v: lax.complex(op.matvec(v.real), op.matvec(v.imag))
            w, v, _ = _wanted(both, x, count, m, which, tol, limit, hermitian)
        else:
            w, v, _ = _wanted(apply, x, count, m, which, tol, limit, hermitian)
        return w, v

    w, v = lax.stop_gradient(search(start.astype(dtype)))
    return op_quotients(op, v) if hermitian else (w if sigma is None else sigma + 1 / w), v


def op_quotients(op: LinearOperator, v: Array) -> Array:
    """Rayleigh's quotients of columns of length 1: eigenvalues, with their derivatives."""
    return jnp.real(jnp.sum(v.conj() * op.matmat(v), axis=0))


def _inverse(name: str, A: Any, op: LinearOperator, sigma: Any, OPinv: Any, dtype: Any) -> Product:
    """The product with (A - sigma)^-1."""
    if OPinv is not None:
        inverse = aslinearoperator(OPinv)
        return lambda v: lax.complex(inverse.matvec(v.real), inverse.matvec(v.imag)) \
            if kind(v.dtype) == "c" and kind(inverse.dtype) != "c" else inverse.matvec(v)
    if isinstance(A, LinearOperator):
        raise ArgumentError(f"functrans.scipy.sparse.linalg.{name}: sigma={sigma!r} of an "
                            "operator.", where=user_source(), why="A - sigma has to be inverted.",
                            fix="OPinv=LinearOperator(A.shape, lambda b: ...)")
    matrix = A.todense() if isinstance(A, JAXSparse) else jnp.asarray(A)
    whole = result_type(matrix.dtype, dtype)
    factors = lu_factor(lax.stop_gradient(matrix).astype(whole) - sigma * jnp.eye(
        op.shape[0], dtype=whole))
    return lambda v: lu_solve(factors, v.astype(whole)).astype(v.dtype)


def eigsh(A: Matrix, k: int = 6, M: None = None, sigma: complex | None = None, which: str = "LM",
          v0: ArrayLike | None = None, ncv: int | None = None, maxiter: int | None = None,
          tol: float = 0, return_eigenvectors: bool = True, Minv: None = None,
          OPinv: Matrix | None = None, mode: str = "normal",
          rng: Array | int | None = None) -> Array | tuple[Array, Array]:
    """k eigenvalues, increasing, and vectors of a Hermitian matrix (n, n), dense, sparse or a map.

    `which` is "LM" and "SM" (largest and smallest size), "LA" and "SA" (largest and smallest) or
    "BE" (both ends); with `sigma` those nearest to it, by LU factors of the dense matrix, or
    `OPinv`. `ncv` is the size of the space, `maxiter` the number of restarts, and `rng` a key or a
    seed of the start, which `v0` gives as well. Eigenvalues are
    differentiated in A, vectors are not. Raises ArgumentError for `M` and k >= n.
    Source: Krylov spaces with restarts (Stewart, 2001).

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.arange(1.0, 41.0))
    >>> ft.scipy.sparse.linalg.eigsh(A, 2)[0].round(2).tolist()
    [39.0, 40.0]
    """
    one_of("sparse.linalg.eigsh", "which", which, ("LM", "SM", "LA", "SA", "BE"))
    _standard("eigsh", M, Minv, mode)
    if which == "BE":
        one_end = partial(eigsh, A, v0=v0, ncv=ncv, maxiter=maxiter, tol=tol, rng=rng)
        low = one_end(k // 2, which="SA") if k > 1 else None
        high = one_end(k - k // 2, which="LA")
        both = [high] if low is None else [low, high]
        w, v = (jnp.concatenate(parts, axis=-1) for parts in zip(*both))
    else:
        w, v = _searched("eigsh", A, k, sigma, which, v0, ncv, maxiter, tol, OPinv, True,
                         rng)
    order = jnp.argsort(lax.stop_gradient(w))
    return (w[order], v[:, order]) if return_eigenvectors else w[order]


def _standard(name: str, M: Any, Minv: Any, mode: str) -> None:
    if M is not None or Minv is not None or mode != "normal":
        raise refused(f"sparse.linalg.{name}", "M, Minv and mode", "the problem is A v = v w.",
                      "the operator of L^-1 A L^-*, with M = L L*")


def eigs(A: Matrix, k: int = 6, M: None = None, sigma: complex | None = None, which: str = "LM",
         v0: ArrayLike | None = None, ncv: int | None = None, maxiter: int | None = None,
         tol: float = 0, return_eigenvectors: bool = True, Minv: None = None,
         OPinv: Matrix | None = None, OPpart: None = None,
         rng: Array | int | None = None) -> Array | tuple[Array, Array]:
    """k eigenvalues and vectors of a square matrix, dense, sparse or a map, in complex dtypes.

    `which` is "LM", "SM", "LR", "SR", "LI" or "SI": largest or smallest size, real or imaginary
    part; with `sigma` those nearest to it. What is wanted most comes first. Without derivatives.
    See `eigsh` for the arguments.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.arange(1.0, 41.0))
    >>> ft.scipy.sparse.linalg.eigs(A, 2)[0].real.round(2).tolist()
    [40.0, 39.0]
    """
    one_of("sparse.linalg.eigs", "which", which, ("LM", "SM", "LR", "SR", "LI", "SI"))
    _standard("eigs", M, Minv, "normal")
    w, v = _searched("eigs", A, k, sigma, which, v0, ncv, maxiter, tol, OPinv, False, rng)
    return (w, v) if return_eigenvectors else w


def svds(A: Matrix, k: int = 6, ncv: int | None = None, tol: float = 0, which: str = "LM",
         v0: ArrayLike | None = None, maxiter: int | None = None,
         return_singular_vectors: bool | str = True, solver: str = "arpack",
         rng: Array | int | None = None, options: None = None, *,
         random_state: Array | int | None = None
         ) -> Array | tuple[Array | None, Array, Array | None]:
    """k singular values of a matrix (m, n), increasing, between their left and right vectors.

    U (m, k), s and V* (k, n), or s alone, or with "u" and "vh" the ones that are named. `which` is
    "LM" or "SM". By `eigsh` of A* A or A A*, the smaller: singular values below the root of the
    dtype's epsilon times the largest are lost. Values are differentiated in A, vectors are not.
    `rng` is that of `eigsh`; `solver` and `options` are accepted.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.arange(1.0, 41.0))[:, :30]
    >>> ft.scipy.sparse.linalg.svds(A, 2)[1].round(2).tolist()
    [29.0, 30.0]
    """
    one_of("sparse.linalg.svds", "which", which, ("LM", "SM"))
    op = aslinearoperator(A)
    tall = op.shape[0] >= op.shape[1]
    gram = op.H.dot(op) if tall else op.dot(op.H)
    _, v = eigsh(gram, k, which=which.replace("M", "A"), v0=v0, ncv=ncv, maxiter=maxiter, tol=tol,
                 rng=rng if random_state is None else random_state)
    v = lax.stop_gradient(v)
    image = op.matmat(v) if tall else op.rmatmat(v)
    sizes = lax.stop_gradient(jnp.linalg.norm(image, axis=0))
    other = lax.stop_gradient(image) / jnp.where(sizes > 0, sizes, 1)
    u, right = (other, v) if tall else (v, other)
    s = jnp.real(jnp.sum(u.conj() * op.matmat(right), axis=0))
    if return_singular_vectors is False:
        return s
    return (None if return_singular_vectors == "vh" else u, s,
            None if return_singular_vectors == "u" else right.conj().T)


def lobpcg(A: Matrix, X: ArrayLike, B: None = None, M: None = None, Y: None = None,
           tol: float | None = None, maxiter: int | None = None, largest: bool = True,
           verbosityLevel: int = 0, retLambdaHistory: bool = False,
           retResidualNormsHistory: bool = False, restartControl: int = 20
           ) -> tuple[Array, Array]:
    """The largest or smallest eigenvalues of a Hermitian matrix and their vectors, from columns X.

    See `functrans.experimental.sparse.linalg.lobpcg_standard`. Raises ArgumentError for `B`, `M`,
    `Y` and histories.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.arange(1.0, 21.0))
    >>> ft.scipy.sparse.linalg.lobpcg(A, ft.numpy.eye(20, 2) + 0.1)[0].round(2).tolist()
    [20.0, 19.0]
    """
    if not (B is None and M is None and Y is None) or retLambdaHistory or retResidualNormsHistory:
        raise refused("sparse.linalg.lobpcg", "B, M, Y and histories", "the problem is A v = v w.")
    op = aslinearoperator(A)
    sign = 1.0 if largest else -1.0
    # a shift by the size of A keeps eigenvalues of the negative one above 0
    given = jnp.asarray(X)
    shift = 0.0 if largest else jnp.linalg.norm(lax.stop_gradient(op.matmat(given))) * 2
    w, v, _ = lobpcg_standard(lambda x: sign * op.matmat(x) + shift * x, given,
                              100 if maxiter is None else maxiter, tol)
    return sign * (w - shift), v
