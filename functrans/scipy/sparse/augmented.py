"""Methods of least residuals that keep directions of earlier restarts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.arguments import known_size, one_of
from functrans.scipy.sparse.biorthogonal import Maps, quotient, size_of, solved
from functrans.scipy.sparse.maps import Matrix
from functrans.typing import Array, ArrayLike


def _product(u: Array, v: Array) -> Array:
    return jnp.matmul(u, v, precision="highest")


def _arnoldi(apply: Callable[[Array], Array], direction: Callable[[Any, Array], Array], r: Array,
             count: int, outside: Array) -> tuple[Array, ...]:
    """A flexible Krylov space: A Z = C B + V H, for rows Z that `direction` chooses.

    V (count + 1, n) is orthonormal, from r on, and orthogonal to the rows C `outside`; a space that
    ends early goes on with zeros.
    """
    dtype, n = r.dtype, r.shape[0]
    eps = float(finfo(dtype).eps)
    basis = jnp.zeros((count + 1, n), dtype).at[0].set(quotient(r, size_of(r).astype(dtype)))

    def expand(j: Any, state: Any) -> Any:
        basis, chosen, h, b = state
        z = direction(j, basis)
        w = apply(z)
        before = size_of(w)
        column, part = jnp.zeros(count + 1, dtype), jnp.zeros(outside.shape[0], dtype)
        for _ in range(2):
            away = _product(outside.conj(), w)
            w, part = w - _product(away, outside), part + away
            along = _product(basis.conj(), w)
            w, column = w - _product(along, basis), column + along
        rest = size_of(w)
        rest = jnp.where(rest > 10 * eps * before, rest, 0).astype(dtype)
        return (basis.at[j + 1].set(jnp.where(rest == 0, 0, w / jnp.where(rest == 0, 1, rest))),
                chosen.at[j].set(z), h.at[:, j].set(column.at[j + 1].set(rest)),
                b.at[:, j].set(part))

    out: tuple[Array, ...] = lax.fori_loop(0, count, expand, (
        basis, jnp.zeros((count, n), dtype), jnp.zeros((count + 1, count), dtype),
        jnp.zeros((outside.shape[0], count), dtype)))
    return out


def _least(h: Array, size: Array) -> tuple[Array, Array]:
    """y with the least |size e_1 - H y|, 0 for columns that are empty, and the triangle of H."""
    scale = jnp.max(jnp.abs(h), initial=0)
    empty = jnp.sum(jnp.abs(h), axis=0) <= float(finfo(h.dtype).eps) * scale
    q, triangle = jnp.linalg.qr(jnp.concatenate([h, jnp.diag(jnp.where(
        empty, jnp.maximum(scale, 1), 0).astype(h.dtype))]))
    # columns that others make up, as directions that came back: without a share
    edge = jnp.diagonal(triangle)
    lost = jnp.abs(edge) <= 100 * float(finfo(h.dtype).eps) * scale
    safe = triangle + jnp.diag(jnp.where(lost, jnp.maximum(scale, 1), 0).astype(h.dtype))
    y = jnp.linalg.solve(safe, jnp.where(lost, 0, q[0].conj() * size.astype(h.dtype)))
    return y, safe


def _restarted(step: Callable[[Any], Any], start: Any, limit: Array, most: int) -> Any:
    def unfinished(s: Any) -> Any:
        return (size_of(s["r"]) > limit) & (s["count"] < most) & ~s["stuck"]

    end = lax.while_loop(unfinished, step, start | {"count": jnp.asarray(0),
                                                    "stuck": jnp.asarray(False)})
    return end["x"], size_of(end["r"]) <= limit, end["count"]


def _stuck(before: Array, after: Array) -> Array:
    """Whether a restart gained nothing, by which roundoff or a singular matrix show."""
    old, new = size_of(before), size_of(after)
    return ~(new < old * (1 - 1e-3 * float(finfo(old.dtype).eps)))


def lgmres(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
           atol: ArrayLike = 0.0, maxiter: int = 1000, M: Matrix | None = None,
           callback: None = None, inner_m: int = 30, outer_k: int = 3,
           outer_v: Sequence[tuple[ArrayLike, ArrayLike | None]] | None = None,
           store_outer_Av: bool = True, prepend_outer_v: bool = False) -> tuple[Array, Array]:
    """x of A x = b by least residuals, where restarts keep the corrections of those before them.

    A restart has `inner_m` products with new directions and `outer_k` with the last corrections;
    `outer_v` are pairs whose first members are corrections to begin with. `M` is a preconditioner.
    Returns 0, or the number of restarts that did not do. `store_outer_Av` is accepted. See `bicg`.
    Source: Baker, Jessup and Manteuffel, SIAM J. Matrix Anal. Appl. 26 (2005).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.lgmres(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """
    m = known_size("sparse.linalg.lgmres", "inner_m", inner_m)
    k = known_size("sparse.linalg.lgmres", "outer_k", outer_k, 0)
    given = [jnp.asarray(v) for v, _ in outer_v or ()][-k:] if k else []

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        n, new = b.shape[0], min(m, b.shape[0])
        none = jnp.zeros((0, n), b.dtype)
        kept = jnp.zeros((k, n), b.dtype)
        for i, v in enumerate(given):
            kept = kept.at[i].set(quotient(v, size_of(v)).astype(b.dtype))

        def step(s: Any) -> Any:
            def direction(j: Any, basis: Array) -> Array:
                if not k:
                    return basis[j]
                old = j if prepend_outer_v else j - new
                is_old = (j < k) if prepend_outer_v else (j >= new)
                # the first new direction is the residual, also after old ones
                fresh = basis[jnp.where(is_old | ((j == k) if prepend_outer_v else False), 0, j)]
                return jnp.where(is_old, s["kept"][jnp.clip(old, 0, k - 1)], fresh)

            r = maps.before(s["r"])
            _, chosen, h, _ = _arnoldi(lambda v: maps.before(maps.apply(v)), direction, r,
                                       new + k, none)
            y, _ = _least(h, size_of(r))
            change = _product(y, chosen)
            x = s["x"] + change
            after = b - maps.apply(x)
            kept = s["kept"]
            if k:
                kept = jnp.roll(kept, 1, axis=0).at[0].set(
                    quotient(change, size_of(change).astype(b.dtype)))
            return {"x": x, "r": after, "kept": kept, "stuck": _stuck(s["r"], after),
                    "count": s["count"] + 1}

        return _restarted(step, {"x": x, "r": b - maps.apply(x), "kept": kept}, limit, most)

    return solved("lgmres", A, b, x0, rtol, atol, maxiter, M, None, callback, search)


def gcrotmk(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
            atol: ArrayLike = 0.0, maxiter: int = 1000, M: Matrix | None = None,
            callback: None = None, m: int = 20, k: int | None = None,
            CU: Sequence[tuple[ArrayLike | None, ArrayLike]] | None = None,
            discard_C: bool = False, truncate: str = "oldest") -> tuple[Array, Array]:
    """x of A x = b by least residuals, where restarts keep `k` (m) directions and their images.

    A restart has `m` products. `CU` are pairs of images and directions to begin with; with
    `discard_C`, or None for one, images are computed. `truncate` says which directions are dropped:
    the "oldest", or those along which the residuals gain least ("smallest"). `M` is a
    preconditioner from the right. Returns 0, or the number of restarts that did not do. See `bicg`.
    Source: Hicken and Zingg, SIAM J. Sci. Comput. 32 (2010); de Sturler, SIAM J. Numer. Anal. 36
    (1999).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.gcrotmk(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """
    one_of("sparse.linalg.gcrotmk", "truncate", truncate, ("oldest", "smallest"))
    steps = known_size("sparse.linalg.gcrotmk", "m", m)
    room = known_size("sparse.linalg.gcrotmk", "k", m if k is None else k)
    given = [jnp.asarray(u) for _, u in CU or ()][-room:]

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        n, count = b.shape[0], min(steps, b.shape[0])
        images, sources = (jnp.zeros((room, n), b.dtype) for _ in range(2))
        r = b - maps.apply(x)
        for i, u in enumerate(given):  # images are made orthonormal, and directions follow them
            u = u.astype(b.dtype)
            c = maps.apply(u)
            before = size_of(c)
            for _ in range(2):
                share = _product(images.conj(), c)
                c, u = c - _product(share, images), u - _product(share, sources)
            size = size_of(c)
            size = jnp.where(size > 1e3 * float(finfo(c.dtype).eps) * before, size, 0)
            c, u = (quotient(v, size.astype(b.dtype)) for v in (c, u))
            gain = jnp.vdot(c, r, precision="highest")
            x, r = x + gain * u, r - gain * c
            images, sources = images.at[i].set(c), sources.at[i].set(u)

        def step(s: Any) -> Any:
            images, sources, r = s["images"], s["sources"], s["r"]
            for_all = _product(images.conj(), r)  # what roundoff left along the images
            x, r = s["x"] + _product(for_all, sources), r - _product(for_all, images)
            basis, chosen, h, part = _arnoldi(
                maps.apply, lambda j, basis: maps.before(basis[j]), r, count, images)
            y, triangle = _least(h, size_of(r))
            u = _product(y, chosen) - _product(_product(part, y), sources)
            c = _product(_product(h, y), basis)
            size = size_of(c).astype(b.dtype)
            c, u = quotient(c, size), quotient(u, size)
            gain = jnp.vdot(c, r, precision="highest")
            x = x + gain * u
            after = b - maps.apply(x)
            if truncate == "smallest" and room > 1:
                turn, _, _ = jnp.linalg.svd(jnp.linalg.solve(triangle.T, part.T).T)
                images, sources = (_product(turn.T, v) for v in (images, sources))
            images, sources = (jnp.roll(v, 1, axis=0).at[0].set(w)
                               for v, w in ((images, c), (sources, u)))
            return {"x": x, "r": after, "images": images, "sources": sources,
                    "stuck": _stuck(s["r"], after), "count": s["count"] + 1}

        return _restarted(step, {"x": x, "r": r, "images": images, "sources": sources}, limit,
                          most)

    return solved("gcrotmk", A, b, x0, rtol, atol, maxiter, M, None, callback, search)
