"""Least squares and further systems by Krylov spaces, exponentials, norms and triangles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.sparse.krylov import cg, spsolve
from functrans.scipy.sparse.maps import LinearOperator, Matrix, aslinearoperator, square_map
from functrans.scipy.sparse.places import summed
from functrans.sparse.base import JAXSparse
from functrans.sparse.operators import as_bcoo
from functrans.typing import Array, ArrayLike


def _size(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(jnp.real(x) ** 2 + jnp.imag(x) ** 2))


def _unit(x: Array) -> tuple[Array, Array]:
    size = _size(x)
    return x / jnp.where(size == 0, 1, size), size


def _least(name: str, A: Any, b: ArrayLike, damp: ArrayLike, x0: ArrayLike | None,
           search: Callable[..., Any]) -> tuple[Array, Any, LinearOperator, Array]:
    """x with the least |A x - b|^2 + damp^2 |x|^2, with the derivatives of that minimum."""
    op = aslinearoperator(A)
    (right,) = inexact(b)
    right = right.reshape(-1) if right.ndim == 2 and right.shape[1] == 1 else right
    if right.shape != op.shape[:1]:
        raise ShapeError(f"functrans.scipy.sparse.linalg.{name}: b has shape {right.shape}, A "
                         f"{op.shape}.", where=user_source(), why="b has the rows of A.")
    dtype = jnp.result_type(right.dtype, op.dtype)
    right = right.astype(dtype)
    start = jnp.zeros(op.shape[1], dtype) if x0 is None else jnp.asarray(x0).astype(dtype)
    price = jnp.asarray(damp).astype(jnp.real(right).dtype)

    def slope(x: Array) -> Array:
        return op.rmatvec(op.matvec(x) - right) + price**2 * x

    def tangent(linear: Callable[[Array], Array], y: Array) -> Array:
        x, _ = cg(linear, y, tol=4 * float(finfo(dtype).eps), maxiter=10 * y.size)
        return x

    x, aux = lax.custom_root(slope, start, lambda _, x: search(op, right, price, x), tangent,
                             has_aux=True)
    return x, aux, op, right


def lsqr(A: Matrix, b: ArrayLike, damp: ArrayLike = 0.0, atol: float = 1e-6, btol: float = 1e-6,
         conlim: float = 1e8, iter_lim: int | None = None, show: bool = False,
         calc_var: bool = False, x0: ArrayLike | None = None) -> tuple[Array, ...]:
    """x with the least |A x - b|^2 + damp^2 |x|^2, of an (m, n) matrix or map, and how it ended.

    (x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var) as SciPy has them: istop is 1
    where A x = b to the tolerances, 2 where the least squares are met, 3 where the condition passes
    `conlim` and 7 after `iter_lim` iterations (2 n); var is zeros. x is differentiated in A, b and
    damp, by another solve. Raises ArgumentError for `calc_var`.
    Source: Paige and Saunders, ACM Trans. Math. Software 8 (1982).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.lsqr(A, ft.numpy.array([1.0, 3.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """
    if calc_var:
        raise ArgumentError("functrans.scipy.sparse.linalg.lsqr: calc_var=True.",
                            where=user_source(), why="variances are those of the inverse of A* A.",
                            fix="functrans.numpy.linalg.inv(A.T @ A)")
    x, (stop, count, residual, size, cond, gradient), _, _ = _least(
        "lsqr", A, b, damp, x0, partial(_bidiagonal, atol=atol, btol=btol, conlim=conlim,
                                        limit=iter_lim))
    damped = jnp.sqrt(residual**2 + (jnp.asarray(damp) * _size(x)) ** 2)
    return (x, stop, count, residual, damped, size, cond, gradient, _size(x),
            jnp.zeros_like(jnp.real(x)))


def lsmr(A: Matrix, b: ArrayLike, damp: ArrayLike = 0.0, atol: float = 1e-6, btol: float = 1e-6,
         conlim: float = 1e8, maxiter: int | None = None, show: bool = False,
         x0: ArrayLike | None = None) -> tuple[Array, ...]:
    """x with the least |A x - b|^2 + damp^2 |x|^2, of an (m, n) matrix or map, and how it ended.

    (x, istop, itn, normr, normar, norma, conda, normx); see `lsqr`, whose iterations these are.

    >>> import functrans as ft
    >>> A = ft.numpy.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.lsmr(A, ft.numpy.array([1.0, 3.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """
    x, (stop, count, residual, size, cond, gradient), _, _ = _least(
        "lsmr", A, b, damp, x0, partial(_bidiagonal, atol=atol, btol=btol, conlim=conlim,
                                        limit=maxiter))
    return x, stop, count, residual, gradient, size, cond, _size(x)


def _bidiagonal(op: LinearOperator, b: Array, damp: Array, x: Array, atol: float, btol: float,
                conlim: float, limit: int | None) -> tuple[Array, Any]:
    """Golub and Kahan's bidiagonalization, and rotations that keep the triangle."""
    most = 2 * op.shape[1] if limit is None else limit
    size_b = _size(b)
    u, beta = _unit(b - op.matvec(x))
    v, alpha = _unit(op.rmatvec(u))

    def unfinished(state: Any) -> Any:
        return (state["stop"] == 0) & (state["count"] < most)

    def improve(s: Any) -> Any:
        u, beta = _unit(op.matvec(s["v"]) - s["alpha"] * s["u"])
        v, alpha = _unit(op.rmatvec(u) - beta * s["v"])
        # the damping is a row below, turned away first
        turned = jnp.sqrt(s["rhobar"] ** 2 + damp**2)
        safe = jnp.where(turned == 0, 1, turned)
        cosine, lost = s["rhobar"] / safe, damp / safe * s["phibar"]
        phibar = cosine * s["phibar"]
        rho = jnp.sqrt(turned**2 + beta**2)
        rho_safe = jnp.where(rho == 0, 1, rho)
        c, sn = turned / rho_safe, beta / rho_safe
        theta, phi, after = sn * alpha, c * phibar, sn * phibar
        step = s["w"] / rho_safe
        x = s["x"] + phi * step
        size = jnp.sqrt(s["size"] ** 2 + s["alpha"] ** 2 + beta**2 + damp**2)
        inverse = jnp.sqrt(s["inverse"] ** 2 + jnp.sum(jnp.abs(step) ** 2))
        lost = jnp.sqrt(s["lost"] ** 2 + lost**2)
        damped = jnp.sqrt(after**2 + lost**2)
        gradient = alpha * jnp.abs(sn * phi)
        share = damped / jnp.where(size_b == 0, 1, size_b)
        of_x = size * _size(x) / jnp.where(size_b == 0, 1, size_b)
        flat = gradient <= atol * size * damped + jnp.finfo(rho.dtype).tiny
        stop = jnp.where(share <= btol + atol * of_x, 1, jnp.where(
            flat, 2, jnp.where((conlim > 0) & (size * inverse >= conlim), 3, 0)))
        return {"x": x, "u": u, "v": v, "alpha": alpha, "w": v - theta / rho_safe * s["w"],
                "rhobar": -c * alpha, "phibar": after, "size": size, "inverse": inverse,
                "lost": lost, "gradient": gradient, "residual": damped, "stop": stop,
                "count": s["count"] + 1}

    zero = jnp.zeros_like(beta)
    start = {"x": x, "u": u, "v": v, "alpha": alpha, "w": v, "rhobar": alpha, "phibar": beta,
             "size": zero, "inverse": zero, "lost": zero, "gradient": alpha * beta,
             "residual": beta, "stop": jnp.where(alpha * beta == 0, 1, 0),
             "count": jnp.asarray(0)}
    end = lax.while_loop(unfinished, improve, start)
    stop = jnp.where(end["stop"] == 0, 7, end["stop"])
    return end["x"], (stop, end["count"], _size(b - op.matvec(end["x"])), end["size"],
                      end["size"] * end["inverse"], end["gradient"])


def minres(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: float = 1e-5,
           shift: ArrayLike = 0.0, maxiter: int | None = None, M: Matrix | None = None,
           callback: None = None, show: bool = False, check: bool = False) -> tuple[Array, Array]:
    """x with (A - shift) x = b of least residual for Hermitian A, and 0 or the number of steps.

    A may be indefinite. M is a positive definite preconditioner, near to the inverse. Derivatives
    are those of the solution. Source: Paige and Saunders, SIAM J. Numer. Anal. 12 (1975).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[1.0, 2.0], [2.0, 1.0]])
    >>> ft.scipy.sparse.linalg.minres(A, ft.numpy.array([3.0, 3.0]))[0].round(3).tolist()
    [1.0, 1.0]
    """
    op = square_map("minres", A)
    (right,) = inexact(b)
    dtype = jnp.result_type(right.dtype, op.dtype)
    right = right.astype(dtype)
    most = 5 * op.shape[0] if maxiter is None else maxiter
    before: Any = (lambda v: v) if M is None else aslinearoperator(M).matvec

    def apply(v: Array) -> Array:
        return op.matvec(v) - jnp.asarray(shift).astype(dtype) * v

    def dot(u: Array, v: Array) -> Array:
        return jnp.real(jnp.vdot(u, v, precision="highest"))

    def search(product: Any, b: Array, start: Array) -> tuple[Array, Array, Array]:
        r = b - product(start)
        z = before(r)
        beta = jnp.sqrt(jnp.maximum(dot(r, z), 0))
        limit = rtol * jnp.sqrt(jnp.maximum(dot(b, before(b)), 0))

        def unfinished(s: Any) -> Any:
            return (jnp.abs(s["phi"]) > limit) & (s["count"] < most) & (s["beta"] > 0)

        def improve(s: Any) -> Any:
            v = s["z"] / s["beta"]
            w = product(v)
            w = w - jnp.where(s["count"] > 0, s["beta"] / s["last"], 0) * s["old"]
            alpha = dot(v, w)
            w = w - alpha / s["beta"] * s["r"]
            z = before(w)
            beta = jnp.sqrt(jnp.maximum(dot(w, z), 0))
            low, bar = s["cs"] * s["dbar"] + s["sn"] * alpha, s["sn"] * s["dbar"] - s["cs"] * alpha
            gamma = jnp.sqrt(bar**2 + beta**2)
            safe = jnp.where(gamma == 0, 1, gamma)
            cs, sn = bar / safe, beta / safe
            direction = (v - s["epsilon"] * s["d2"] - low * s["d1"]) / safe
            return {"x": s["x"] + cs * s["phi"] * direction, "old": s["r"], "r": w, "z": z,
                    "last": s["beta"], "beta": beta, "cs": cs, "sn": sn,
                    "dbar": -s["cs"] * beta, "epsilon": s["sn"] * beta,
                    "phi": sn * s["phi"], "d2": s["d1"], "d1": direction,
                    "count": s["count"] + 1}

        none, zero = jnp.zeros_like(r), jnp.zeros_like(beta)
        # the first direction has none before it: the signs of the first rotation are -1 and 0
        end = lax.while_loop(unfinished, improve, {
            "x": start, "old": none, "r": r, "z": z, "last": zero + 1, "beta": beta,
            "cs": zero - 1, "sn": zero, "dbar": zero, "epsilon": zero, "phi": beta, "d2": none,
            "d1": none, "count": jnp.asarray(0)})
        return end["x"], jnp.abs(end["phi"]) <= limit, end["count"]

    start = jnp.zeros_like(right) if x0 is None else jnp.asarray(x0).astype(dtype)
    x, (met, count) = lax.custom_linear_solve(
        apply, right, lambda product, b: (lambda f: (f[0], (f[1], f[2])))(
            search(product, b, start)), symmetric=True, has_aux=True)
    return x, jnp.where(met, 0, count)


def expm_multiply(A: Matrix, B: ArrayLike, start: float | None = None,
                  stop: float | None = None, num: int | None = None,
                  endpoint: bool | None = None, traceA: complex | None = None
                  ) -> Array:
    """expm(A) B for a square matrix or map A and a vector or columns B, without expm(A).

    With `start`, `stop` and `num` expm(t A) B at num times between, stacked. By Taylor's series of
    parts of A whose norm is at most 1; of a map the norm is found by its product with one.
    Differentiated in all. Source: Al-Mohy and Higham, SIAM J. Sci. Comput. 33 (2011).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[0.0, 1.0], [0.0, 0.0]])
    >>> ft.scipy.sparse.linalg.expm_multiply(A, ft.numpy.array([1.0, 2.0])).tolist()
    [3.0, 2.0]
    """
    op = square_map("expm_multiply", A)
    (given,) = inexact(B)
    if given.ndim not in (1, 2) or given.shape[0] != op.shape[0]:
        raise ShapeError(f"functrans.scipy.sparse.linalg.expm_multiply: B has shape {given.shape}, "
                         f"A {op.shape}.", where=user_source(), why="B has the rows of A.")
    given = given.astype(jnp.result_type(given.dtype, op.dtype))
    size = lax.stop_gradient(onenormest(A))
    eps = float(finfo(given.dtype).eps)

    def advance(t: Array, b: Array) -> Array:
        parts = jnp.maximum(jnp.ceil(jnp.abs(t) * size), 1)
        h = (t / parts).astype(b.dtype)

        def part(state: Any) -> Any:
            k, b = state

            def more(s: Any) -> Any:
                _, term, total, j = s
                return (jnp.max(jnp.abs(term)) > 0.1 * eps * jnp.max(jnp.abs(total))) & (j < 60)

            def add(s: Any) -> Any:
                _, term, total, j = s
                term = h / j * op.dot(term)
                return 0, term, total + term, j + 1

            one = jnp.ones((), jnp.real(b).dtype)
            return k + 1, lax.while_loop(more, add, (0, b, b, one))[2]

        out: Array = lax.while_loop(lambda s: s[0] < parts, part, (jnp.zeros_like(parts), b))[1]
        return out

    if start is None and stop is None and num is None:
        return advance(jnp.ones((), jnp.real(given).dtype), given)
    times = jnp.linspace(0.0 if start is None else start, 1.0 if stop is None else stop,
                         50 if num is None else num, endpoint=endpoint is not False,
                         dtype=jnp.real(given).dtype)
    first = advance(times[0], given)

    def walk(b: Array, h: Array) -> tuple[Array, Array]:
        new = advance(h, b)
        return new, new

    _, rest = lax.scan(walk, first, jnp.diff(times))
    return jnp.concatenate([first[None], rest])


def onenormest(A: Matrix, t: int = 2, itmax: int = 5, compute_v: bool = False,
               compute_w: bool = False) -> Array:
    """The 1-norm of a matrix or map, exactly: of a map by its product with one.

    Raises ArgumentError for `compute_v` and `compute_w`.

    >>> import functrans as ft
    >>> float(ft.scipy.sparse.linalg.onenormest(ft.numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    6.0
    """
    if compute_v or compute_w:
        raise ArgumentError("functrans.scipy.sparse.linalg.onenormest: compute_v or compute_w.",
                            where=user_source(), why="the norm is no estimate.",
                            fix="functrans.numpy.linalg.norm(A, 1)")
    if isinstance(A, LinearOperator):
        return jnp.linalg.norm(A.todense(), 1)
    return norm(A, 1) if isinstance(A, JAXSparse) else jnp.linalg.norm(jnp.asarray(A), 1)


def norm(x: JAXSparse, ord: float | str | None = None, axis: int | None = None) -> Array:
    """A norm of a sparse matrix: "fro" (the default), 1, inf, -1 or -inf; of rows or columns: axis.

    Raises ArgumentError for others, and for arrays that are not sparse.

    >>> import functrans as ft
    >>> from functrans.experimental import sparse
    >>> float(ft.scipy.sparse.linalg.norm(sparse.BCOO.fromdense(3.0 * ft.numpy.eye(2)), 1))
    3.0
    """
    if not isinstance(x, JAXSparse):
        raise ArgumentError("functrans.scipy.sparse.linalg.norm: x is no sparse matrix.",
                            where=user_source(), fix="functrans.numpy.linalg.norm(x)")
    if axis is not None:
        if ord not in (None, 1, 2):
            raise ArgumentError(f"functrans.scipy.sparse.linalg.norm: ord={ord!r} of vectors.",
                                where=user_source(), fix="ord=1 or 2")
        size = as_bcoo(abs(x))
        if ord == 1:
            total: Array = _dense(size.sum(axis))
            return total
        squares: Array = _dense((size * size).sum(axis))
        return jnp.sqrt(squares)
    if ord in (None, "fro", "f"):
        return _size(summed(as_bcoo(x)).data)
    if isinstance(ord, str) or ord not in (1, -1, jnp.inf, -jnp.inf):
        raise ArgumentError(f"functrans.scipy.sparse.linalg.norm: ord={ord!r}.",
                            where=user_source(), fix="'fro', 1, -1, inf or -inf")
    sums = _dense(as_bcoo(abs(x)).sum(0 if abs(ord) == 1 else 1))
    return jnp.max(sums) if ord > 0 else jnp.min(sums)


def _dense(x: Any) -> Array:
    out: Array = x.todense() if isinstance(x, JAXSparse) else x
    return out


def spsolve_triangular(A: ArrayLike | JAXSparse, b: ArrayLike, lower: bool = True,
                       overwrite_A: bool = False, overwrite_b: bool = False,
                       unit_diagonal: bool = False) -> Array:
    """x with A x = b for a triangular matrix, which becomes a dense one.

    >>> import functrans as ft
    >>> from functrans.experimental import sparse
    >>> A = sparse.BCOO.fromdense(ft.numpy.array([[2.0, 0.0], [1.0, 1.0]]))
    >>> ft.scipy.sparse.linalg.spsolve_triangular(A, ft.numpy.array([2.0, 3.0])).tolist()
    [1.0, 2.0]
    """
    dense = A.todense() if isinstance(A, JAXSparse) else jnp.asarray(A)
    out: Array = solve_triangular(dense, b, lower=lower, unit_diagonal=unit_diagonal)
    return out


def factorized(A: JAXSparse) -> Callable[[ArrayLike], Array]:
    """The function that solves A x = b; see `spsolve`, which each call is.

    >>> import functrans as ft
    >>> from functrans.experimental import sparse
    >>> solve = ft.scipy.sparse.linalg.factorized(2 * sparse.eye(2))
    >>> solve(ft.numpy.array([2.0, 6.0])).tolist()
    [1.0, 3.0]
    """
    return partial(spsolve, A)
