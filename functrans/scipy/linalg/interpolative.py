"""Interpolative decompositions, with the names of scipy.linalg.interpolative.

A matrix of low rank is some of its columns times what interpolates the others. Matrices are arrays,
or operators with `shape` and `matvec`, which are multiplied out: decompositions are those of
pivoted QR, and random numbers are not needed for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import is_traced
from functrans.primitives import matrix
from functrans.scipy.arguments import inexact, of_rank
from functrans.scipy.linalg.decompositions import qr
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["estimate_rank", "estimate_spectral_norm", "estimate_spectral_norm_diff", "id_to_svd",
           "interp_decomp", "reconstruct_interp_matrix", "reconstruct_matrix_from_id",
           "reconstruct_skel_matrix", "svd"]


def _dense(name: str, A: Any) -> Array:
    if hasattr(A, "matvec"):
        columns = vmap(A.matvec)(jnp.eye(A.shape[1], dtype=A.dtype))
        return of_rank(f"linalg.interpolative.{name}", "A", columns.T, 2)
    return of_rank(f"linalg.interpolative.{name}", "A", inexact(A)[0], 2)


def _rank(name: str, eps_or_k: Any, sizes: Array, most: int) -> int:
    """The rank that is given, or the number of sizes above a relative precision."""
    if isinstance(eps_or_k, (int, np.integer)) or eps_or_k >= 1:
        k = int(eps_or_k)
        if not 0 < k <= most:
            raise ArgumentError(f"functrans.scipy.linalg.interpolative.{name}: the rank is {k}.",
                                where=user_source(), why=f"it is from 1 to {most}.")
        return k
    known = lax.stop_gradient(sizes) if isinstance(sizes, Tracer) else sizes
    if is_traced(known):
        raise ArgumentError(f"functrans.scipy.linalg.interpolative.{name}: the rank depends on "
                            "traced values.", where=user_source(),
                            fix=f"{name}(A, k) with a rank that is known")
    value = np.asarray(known)
    return max(int((value > float(eps_or_k) * value.max(initial=0)).sum()), 1)


def interp_decomp(A: Any, eps_or_k: float, rand: bool = True, rng: Any = None
                  ) -> tuple[Array, Array] | tuple[int, Array, Array]:
    """idx and proj: A[:, idx[:k]] times [1, proj] is A[:, idx], of rank k.

    With a precision `eps_or_k` below 1 also k, before them: the least rank whose relative error is
    about it. With a rank k it runs under `jit` and has derivatives. `rand` and `rng` are accepted.
    Source: Cheng, Gimbutas, Martinsson and Rokhlin, SIAM J. Sci. Comput. 26 (2005).

    >>> import functrans as ft
    >>> A = ft.numpy.outer(ft.numpy.arange(1.0, 4.0), ft.numpy.array([1.0, 2.0, 4.0]))
    >>> k, idx, proj = ft.scipy.linalg.interpolative.interp_decomp(A, 1e-4)
    >>> k, idx[:1].tolist(), sorted(proj[0].round(3).tolist())
    (1, [2], [0.25, 0.5])
    """
    a = _dense("interp_decomp", A)
    _, r, order = qr(a, mode="economic", pivoting=True)
    k = _rank("interp_decomp", eps_or_k, jnp.abs(jnp.diag(r)), min(a.shape))
    proj = lax.linalg.triangular_solve(r[:k, :k], r[:k, k:], left_side=True, lower=False)
    by_rank = isinstance(eps_or_k, (int, np.integer)) or eps_or_k >= 1
    return (order, proj) if by_rank else (k, order, proj)


def reconstruct_interp_matrix(idx: ArrayLike, proj: ArrayLike) -> Array:
    """P with A = B P, of the columns B of an interpolative decomposition.

    >>> import functrans as ft
    >>> ft.scipy.linalg.interpolative.reconstruct_interp_matrix([1, 0], [[0.5]]).tolist()
    [[0.5, 1.0]]
    """
    order, (rest,) = jnp.asarray(idx), inexact(proj)
    k = rest.shape[0]
    whole = jnp.concatenate([jnp.eye(k, dtype=rest.dtype), rest], axis=1)
    if whole.shape[1] != order.shape[0]:
        raise ShapeError("functrans.scipy.linalg.interpolative.reconstruct_interp_matrix: idx has "
                         f"shape {order.shape}, proj {rest.shape}.", where=user_source(),
                         why="proj is (k, len(idx) - k).")
    return jnp.zeros_like(whole).at[:, order].set(whole)


def reconstruct_matrix_from_id(B: ArrayLike, idx: ArrayLike, proj: ArrayLike) -> Array:
    """The matrix of its columns B, their numbers, and what interpolates the others.

    >>> import functrans as ft
    >>> interpolative = ft.scipy.linalg.interpolative
    >>> interpolative.reconstruct_matrix_from_id([[2.0]], [1, 0], [[0.5]]).tolist()
    [[1.0, 2.0]]
    """
    b, rest = inexact(B, proj)
    return matrix.matmul(b, reconstruct_interp_matrix(idx, rest))


def reconstruct_skel_matrix(A: Any, k: int, idx: ArrayLike) -> Array:
    """The first k columns of A in the order idx.

    >>> import functrans as ft
    >>> interpolative = ft.scipy.linalg.interpolative
    >>> interpolative.reconstruct_skel_matrix(ft.numpy.eye(2), 1, ft.numpy.array([1, 0])).tolist()
    [[0.0], [1.0]]
    """
    found: Array = _dense("reconstruct_skel_matrix", A)[:, jnp.asarray(idx)[:int(k)]]
    return found


def _svd(a: Array, k: int) -> tuple[Array, Array, Array]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return u[:, :k], s[:k], matrix.adjoint(vh[:k])


def id_to_svd(B: ArrayLike, idx: ArrayLike, proj: ArrayLike) -> tuple[Array, Array, Array]:
    """U, S and V with A = U diag(S) V*, of an interpolative decomposition.

    >>> import functrans as ft
    >>> from functrans.scipy.linalg.interpolative import id_to_svd
    >>> u, s, v = id_to_svd([[3.0], [4.0]], [0], ft.numpy.zeros((1, 0)))
    >>> s.round(3).tolist()
    [5.0]
    """
    b, rest = inexact(B, proj)
    return _svd(reconstruct_matrix_from_id(b, idx, rest), b.shape[1])


def svd(A: Any, eps_or_k: float, rand: bool = True, rng: Any = None
        ) -> tuple[Array, Array, Array]:
    """U, S and V with A about U diag(S) V*, of a rank, or of a relative precision below 1.

    >>> import functrans as ft
    >>> u, s, v = ft.scipy.linalg.interpolative.svd(ft.numpy.diag(ft.numpy.array([3.0, 1.0])), 1)
    >>> s.tolist(), u.shape, v.shape
    ([3.0], (2, 1), (2, 1))
    """
    a = _dense("svd", A)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    k = _rank("svd", eps_or_k, s, min(a.shape))
    return u[:, :k], s[:k], matrix.adjoint(vh[:k])


def estimate_rank(A: Any, eps: float, rng: Any = None) -> int:
    """The number of singular values above eps times the largest; values are known.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.array([3.0, 1.0, 1e-6]))
    >>> ft.scipy.linalg.interpolative.estimate_rank(A, 1e-3)
    2
    """
    a = _dense("estimate_rank", A)
    return _rank("estimate_rank", min(float(eps), 0.999), jnp.linalg.svd(a, compute_uv=False),
                 min(a.shape))


def _norm(forward: Any, back: Any, size: int, dtype: Any, its: int, rng: Any) -> Array:
    """By powers of A* A, from a random vector."""
    key = random.key(0 if rng is None else int(rng)) \
        if rng is None or isinstance(rng, (int, np.integer)) else rng
    start = random.normal(key, (size,), jnp.real(jnp.zeros(0, dtype)).dtype).astype(dtype)
    start = start / jnp.linalg.norm(start)

    def step(_: Any, state: Any) -> Any:
        v, _ = state
        w = back(forward(v))
        length = jnp.linalg.norm(w)
        return w / jnp.where(length > 0, length, 1), jnp.sqrt(length)

    zero = jnp.zeros((), jnp.real(start).dtype)
    found: Array = lax.fori_loop(0, int(its), step, (start, zero))[1]
    return found


def _maps(name: str, A: Any) -> tuple[Any, Any, int, Any]:
    if hasattr(A, "rmatvec") and hasattr(A, "matvec"):
        return A.matvec, A.rmatvec, A.shape[1], A.dtype
    a = _dense(name, A)
    return (lambda v: matrix.matmul(a, v)), (lambda v: matrix.matmul(matrix.adjoint(a), v)), \
        a.shape[1], a.dtype


def estimate_spectral_norm(A: Any, its: int = 20, rng: Any = None) -> Array:
    """The largest singular value, by `its` powers of A* A from a random vector; `rng` is a key.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.array([3.0, 1.0]))
    >>> round(float(ft.scipy.linalg.interpolative.estimate_spectral_norm(A)), 3)
    3.0
    """
    forward, back, size, dtype = _maps("estimate_spectral_norm", A)
    return _norm(forward, back, size, dtype, its, rng)


def estimate_spectral_norm_diff(A: Any, B: Any, its: int = 20, rng: Any = None) -> Array:
    """The largest singular value of A - B; see `estimate_spectral_norm`.

    >>> import functrans as ft
    >>> A = ft.numpy.diag(ft.numpy.array([3.0, 1.0]))
    >>> estimate = ft.scipy.linalg.interpolative.estimate_spectral_norm_diff
    >>> round(float(estimate(A, ft.numpy.eye(2))), 3)
    2.0
    """
    f, b, size, dtype = _maps("estimate_spectral_norm_diff", A)
    g, c, _, _ = _maps("estimate_spectral_norm_diff", B)
    return _norm(lambda v: f(v) - g(v), lambda v: b(v) - c(v), size, dtype, its, rng)


publish(globals(), __all__)
