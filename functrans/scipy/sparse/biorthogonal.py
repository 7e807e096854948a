"""Krylov methods with short recurrences for matrices that are not Hermitian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, refused
from functrans.scipy.sparse.maps import LinearOperator, Matrix, square_map
from functrans.typing import Array, ArrayLike

Product = Callable[[Array], Array]


class Maps(NamedTuple):
    """The products with a matrix and its preconditioners, and with their adjoints."""

    apply: Product
    adjoint: Product
    before: Product
    before_adjoint: Product
    after: Product
    after_adjoint: Product


def _same(x: Array) -> Array:
    return x


def dot(u: Array, v: Array) -> Array:
    """The sum of conj(u) v."""
    return jnp.vdot(u, v, precision="highest")


def size_of(x: Array) -> Array:
    """The Euclidean norm."""
    return jnp.sqrt(jnp.real(dot(x, x)))


def quotient(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is 0: a recurrence ends there."""
    return jnp.where(b == 0, 0, a / jnp.where(b == 0, 1, b))


def solved(name: str, A: Matrix, b: ArrayLike, x0: ArrayLike | None, rtol: ArrayLike,
           atol: ArrayLike, maxiter: int | None, M1: Matrix | None, M2: Matrix | None,
           callback: object, search: Callable[..., Any]) -> tuple[Array, Array]:
    """x of A x = b, with the derivatives of the solution, and 0 or the number of iterations."""
    if callback is not None:
        raise refused(f"sparse.linalg.{name}", "callback", "iterations are one compiled loop.",
                      "maxiter=1 and x0=x, in a loop")
    op = square_map(name, A)
    (right,) = inexact(b)
    n = op.shape[0]
    if right.shape not in ((n,), (n, 1)):
        raise ShapeError(f"functrans.scipy.sparse.linalg.{name}: b has shape {right.shape}, A "
                         f"{op.shape}.", where=user_source(), why="b is a vector of A's rows.")
    pre = [None if m is None else square_map(name, m) for m in (M1, M2)]
    dtype = jnp.result_type(right.dtype, op.dtype, *[m.dtype for m in pre if m is not None])
    flat = right.reshape(-1).astype(dtype)
    first_guess = jnp.zeros_like(flat) if x0 is None else jnp.asarray(x0)
    start = first_guess.reshape(-1).astype(dtype)
    if start.shape != flat.shape:
        raise ShapeError(f"functrans.scipy.sparse.linalg.{name}: x0 has shape "
                         f"{first_guess.shape}.",
                         where=user_source(), why=f"b has shape {right.shape}.")
    most = 10 * n if maxiter is None else maxiter

    def finding(turned: bool) -> Callable[[Any, Array], Any]:
        maps = [_turned(m, turned) for m in (op, *pre)]

        def find(_: Any, b: Array) -> Any:
            limit = jnp.maximum(jnp.asarray(rtol) * size_of(b), jnp.asarray(atol))
            limit = limit.astype(jnp.real(b).dtype)
            first = jnp.zeros_like(b) if turned else start
            given = Maps(*(f for pair in maps for f in pair))
            x, met, count = search(given, b, first, limit, most)
            return x, (met, count)

        return find

    x, (met, count) = lax.custom_linear_solve(op.matvec, flat, finding(False), finding(True),
                                              has_aux=True)
    return x.reshape(right.shape), jnp.where(met, 0, count)


def _turned(op: LinearOperator | None, turned: bool) -> tuple[Product, Product]:
    if op is None:
        return _same, _same
    held = op.T if turned else op
    return held.matvec, held.rmatvec


def looped(improve: Callable[[Any], Any], start: dict[str, Any], limit: Array, most: int
           ) -> tuple[Array, Array, Array]:
    """Iterations on a state with "x", its residual "r", "broken" and "count"."""

    def unfinished(s: Any) -> Any:
        return (size_of(s["r"]) > limit) & (s["count"] < most) & ~s["broken"]

    end = lax.while_loop(unfinished, improve, start | {"count": jnp.asarray(0),
                                                       "broken": jnp.asarray(False)})
    return end["x"], size_of(end["r"]) <= limit, end["count"]


def bicg(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
         atol: ArrayLike = 0.0, maxiter: int | None = None, M: Matrix | None = None,
         callback: None = None) -> tuple[Array, Array]:
    """x of A x = b by biconjugate gradients, and 0 or the number of iterations that did not do.

    Ends when the residual's norm is at most max(rtol |b|, atol). `M` is a preconditioner, near to
    the inverse of A. Derivatives are those of the solution. Raises ShapeError where A and b do not
    fit, ArgumentError for a callback. Source: Fletcher, Lecture Notes in Mathematics 506 (1976).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.bicg(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        def improve(s: Any) -> Any:
            z, w = maps.before(s["r"]), maps.before_adjoint(s["shadow"])
            rho = dot(s["shadow"], z)
            beta = jnp.where(s["count"] > 0, quotient(rho, s["rho"]), 0)
            p, q = z + beta * s["p"], w + jnp.conj(beta) * s["q"]
            image, back = maps.apply(p), maps.adjoint(q)
            weight = dot(q, image)
            alpha = quotient(rho, weight)
            return {"x": s["x"] + alpha * p, "r": s["r"] - alpha * image, "p": p, "q": q,
                    "shadow": s["shadow"] - jnp.conj(alpha) * back, "rho": rho,
                    "broken": (rho == 0) | (weight == 0), "count": s["count"] + 1}

        r = b - maps.apply(x)
        none = jnp.zeros_like(r)
        return looped(improve, {"x": x, "r": r, "shadow": r, "p": none, "q": none,
                                "rho": jnp.ones((), r.dtype)}, limit, most)

    return solved("bicg", A, b, x0, rtol, atol, maxiter, M, None, callback, search)


def cgs(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
        atol: ArrayLike = 0.0, maxiter: int | None = None, M: Matrix | None = None,
        callback: None = None) -> tuple[Array, Array]:
    """x of A x = b by squared conjugate gradients, without products with the adjoint; see `bicg`.

    Source: Sonneveld, SIAM J. Sci. Stat. Comput. 10 (1989).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.cgs(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        shadow = b - maps.apply(x)

        def improve(s: Any) -> Any:
            rho = dot(shadow, s["r"])
            beta = jnp.where(s["count"] > 0, quotient(rho, s["rho"]), 0)
            u = s["r"] + beta * s["q"]
            p = u + beta * (s["q"] + beta * s["p"])
            v = maps.apply(maps.before(p))
            weight = dot(shadow, v)
            alpha = quotient(rho, weight)
            q = u - alpha * v
            step = maps.before(u + q)
            return {"x": s["x"] + alpha * step, "r": s["r"] - alpha * maps.apply(step), "p": p,
                    "q": q, "rho": rho, "broken": (rho == 0) | (weight == 0),
                    "count": s["count"] + 1}

        none = jnp.zeros_like(shadow)
        return looped(improve, {"x": x, "r": shadow, "p": none, "q": none,
                                "rho": jnp.ones((), shadow.dtype)}, limit, most)

    return solved("cgs", A, b, x0, rtol, atol, maxiter, M, None, callback, search)


def qmr(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
        atol: ArrayLike = 0.0, maxiter: int | None = None, M1: Matrix | None = None,
        M2: Matrix | None = None, callback: None = None) -> tuple[Array, Array]:
    """x of A x = b by quasi-minimal residuals, with preconditioners on the left and the right.

    M2 M1 is near to the inverse of A. See `bicg`.
    Source: Freund and Nachtigal, Numer. Math. 60 (1991); without look-ahead.

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.qmr(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        r = b - maps.apply(x)
        one = jnp.ones((), r.dtype)

        def improve(s: Any) -> Any:
            rho, xi = size_of(s["y"]), size_of(s["z"])
            v, y = quotient(s["v"], rho), quotient(s["y"], rho)
            w, z = quotient(s["w"], xi), quotient(s["z"], xi)
            delta = dot(z, y)
            later = s["count"] > 0
            old = jnp.where(later, quotient(delta, s["epsilon"]), 0)
            p = maps.after(y) - xi * old * s["p"]
            q = maps.before_adjoint(z) - jnp.conj(rho * old) * s["q"]
            image = maps.apply(p)
            epsilon = dot(q, image)
            beta = quotient(epsilon, delta)
            v = image - beta * v
            y = maps.before(v)
            w = maps.adjoint(q) - jnp.conj(beta) * w
            theta = quotient(size_of(y), s["gamma"] * jnp.abs(beta))
            gamma = 1 / jnp.sqrt(1 + theta**2)
            eta = -s["eta"] * quotient(rho, beta) * (gamma / s["gamma"]) ** 2
            kept = jnp.where(later, (s["theta"] * gamma) ** 2, 0)
            d, step = eta * p + kept * s["d"], eta * image + kept * s["s"]
            return {"x": s["x"] + d, "r": s["r"] - step, "v": v, "y": y, "w": w,
                    "z": maps.after_adjoint(w), "p": p, "q": q, "d": d, "s": step,
                    "epsilon": epsilon, "theta": theta, "gamma": gamma, "eta": eta,
                    "broken": (rho == 0) | (xi == 0) | (delta == 0) | (epsilon == 0),
                    "count": s["count"] + 1}

        none, real = jnp.zeros_like(r), jnp.real(one)
        return looped(improve, {"x": x, "r": r, "v": r, "y": maps.before(r), "w": r,
                                "z": maps.after_adjoint(r), "p": none, "q": none, "d": none,
                                "s": none, "epsilon": one, "theta": 0 * real, "gamma": real,
                                "eta": -one}, limit, most)

    return solved("qmr", A, b, x0, rtol, atol, maxiter, M1, M2, callback, search)


def tfqmr(A: Matrix, b: ArrayLike, x0: ArrayLike | None = None, *, rtol: ArrayLike = 1e-5,
          atol: ArrayLike = 0.0, maxiter: int | None = None, M: Matrix | None = None,
          callback: None = None, show: bool = False) -> tuple[Array, Array]:
    """x of A x = b by quasi-minimal residuals without products with the adjoint; see `bicg`.

    Preconditioned from the right. `show` is accepted.
    Source: Freund, SIAM J. Sci. Comput. 14 (1993).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[4.0, 1.0], [0.0, 2.0]])
    >>> ft.scipy.sparse.linalg.tfqmr(A, ft.numpy.array([6.0, 4.0]))[0].round(3).tolist()
    [1.0, 2.0]
    """

    def search(maps: Maps, b: Array, x: Array, limit: Array, most: int) -> Any:
        def image(v: Array) -> Array:
            return maps.apply(maps.before(v))

        shadow = b - maps.apply(x)
        tiny = float(finfo(shadow.dtype).tiny)

        def half(s: Any, alpha: Array, u: Array, uhat: Array) -> Any:
            w = s["w"] - alpha * uhat
            d = u + quotient(s["theta"] ** 2 * s["eta"], alpha) * s["d"]
            theta = quotient(size_of(w), s["tau"])
            c = 1 / jnp.sqrt(1 + theta**2)
            eta = c**2 * alpha
            return s | {"w": w, "d": d, "theta": theta, "tau": s["tau"] * theta * c, "eta": eta,
                        "y": s["y"] + eta * d}

        def improve(s: Any) -> Any:
            weight = dot(shadow, s["v"])
            alpha = quotient(s["rho"], weight)
            after = s["u"] - alpha * s["v"]
            second = image(after)
            s = half(half(s, alpha, s["u"], s["uhat"]), alpha, after, second)
            rho = dot(shadow, s["w"])
            beta = quotient(rho, s["rho"])
            u = s["w"] + beta * after
            uhat = image(u)
            found = x + maps.before(s["y"])
            return s | {"x": found, "r": b - maps.apply(found), "u": u, "uhat": uhat, "rho": rho,
                        "v": uhat + beta * (second + beta * s["v"]),
                        "broken": (weight == 0) | (s["tau"] <= tiny) | (rho == 0),
                        "count": s["count"] + 2}

        first, none = image(shadow), jnp.zeros_like(shadow)
        zero = jnp.zeros((), jnp.real(shadow).dtype)
        return looped(improve, {
            "x": x, "r": shadow, "y": none, "u": shadow, "w": shadow, "v": first, "uhat": first,
            "d": none, "theta": zero, "eta": jnp.zeros((), shadow.dtype), "tau": size_of(shadow),
            "rho": dot(shadow, shadow)}, limit, most)

    return solved("tfqmr", A, b, x0, rtol, atol, maxiter, M, None, callback, search)

