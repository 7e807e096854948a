"""Linear programs by an interior-point method, and least squares without negative variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, of_rank, one_of
from functrans.scipy.optimize.implicit import option, solution
from functrans.scipy.optimize.results import LinprogResults
from functrans.scipy.products import precise
from functrans.typing import Array, ArrayLike


@precise
def linprog(c: ArrayLike, A_ub: ArrayLike | None = None, b_ub: ArrayLike | None = None,
            A_eq: ArrayLike | None = None, b_eq: ArrayLike | None = None, bounds: Any = (0, None),
            method: str = "highs", *, options: Mapping[str, Any] | None = None) -> LinprogResults:
    """x with the least c @ x, where A_ub @ x <= b_ub, A_eq @ x = b_eq and x is within `bounds`.

    `bounds` are a pair for all variables or one for each, of numbers that are known; None is no
    bound. All names of `method` run Mehrotra's predictor and corrector. Options are `maxiter`
    (100) and `tol`. `success` is False where the program has no solution, or none was found. The
    solution is differentiated in c, A and b where it is a single vertex.
    Source: Mehrotra, SIAM J. Optim. 2 (1992).

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.linprog([-1.0, -2.0], [[1.0, 1.0]], [4.0], bounds=(0, 3))
    >>> found.x.round(3).tolist()
    [1.0, 3.0]
    """
    one_of("optimize.linprog", "method", method, ("highs", "highs-ds", "highs-ipm",
                                                  "interior-point"))
    missing = [v is None for v in (A_ub, b_ub, A_eq, b_eq)]
    if missing[0] != missing[1] or missing[2] != missing[3]:
        raise ArgumentError("functrans.scipy.optimize.linprog: a matrix comes with its right side.",
                            where=user_source(), fix="A_ub=..., b_ub=...")
    given = [v for v in (A_ub, b_ub, A_eq, b_eq) if v is not None]
    cost, *others = inexact(c, *given)
    of_rank("optimize.linprog", "c", cost, 1)
    n = cost.shape[0]
    none = jnp.zeros((0, n), cost.dtype), jnp.zeros(0, cost.dtype)
    upper_a, upper_b = none if missing[0] else (others[0], others[1])
    equal_a, equal_b = none if missing[2] else (others[-2], others[-1])
    for name, a, b in (("A_ub", upper_a, upper_b), ("A_eq", equal_a, equal_b)):
        if a.shape != (b.shape[0], n) or b.ndim != 1:
            raise ShapeError(f"functrans.scipy.optimize.linprog: {name} has shape {a.shape}, its "
                             f"right side {b.shape}, c {cost.shape}.", where=user_source())
    matrix, shift, rows, right = _variables(bounds, n, cost.dtype)
    # A z = b with slack variables, z >= 0, where x = matrix z + shift
    upper_a, upper_b = (jnp.concatenate([upper_a @ matrix, rows]),
                        jnp.concatenate([upper_b - upper_a @ shift, right]))
    m, k = upper_a.shape[0], equal_a.shape[0]
    a = jnp.concatenate([
        jnp.concatenate([upper_a, jnp.eye(m, dtype=cost.dtype)], axis=1),
        jnp.concatenate([equal_a @ matrix, jnp.zeros((k, m), cost.dtype)], axis=1)])
    b = jnp.concatenate([upper_b, equal_b - equal_a @ shift])
    costs = jnp.concatenate([matrix.T @ cost, jnp.zeros(m, cost.dtype)])
    known = option("linprog", dict(options or {}), {
        "maxiter": 100, "tol": max(1e-9, 100 * float(finfo(cost.dtype).eps)), "presolve": True})
    z, (success, nit) = _interior_point(a, b, costs, known["maxiter"], known["tol"])
    x = matrix @ z[:matrix.shape[1]] + shift
    free = upper_a.shape[0] - rows.shape[0]
    slack = upper_b[:free] - upper_a[:free] @ z[:matrix.shape[1]]
    con = equal_b - equal_a @ x
    return LinprogResults(x, cost @ x, slack, con, success, jnp.where(success, 0, 4), nit)


def _variables(bounds: Any, n: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """The matrix and shift from variables that are not negative, and rows for upper bounds."""
    pairs = list(bounds) if bounds is not None else [(None, None)]
    if len(pairs) == 2 and not any(isinstance(p, (list, tuple)) for p in pairs):
        pairs = [tuple(pairs)]
    pairs = pairs * n if len(pairs) == 1 else pairs
    if len(pairs) != n:
        raise ShapeError(f"functrans.scipy.optimize.linprog: there are {len(pairs)} bounds for "
                         f"{n} variables.", where=user_source())
    columns, shift, rows, right = [], np.zeros(n), [], []
    for i, (low, high) in enumerate(pairs):
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
        unit = np.eye(n)[i]
        if low > -math.inf:
            columns.append(unit)
            shift[i] = low
            if high < math.inf:
                rows.append(len(columns) - 1)
                right.append(high - low)
        elif high < math.inf:
            columns.append(-unit)
            shift[i] = high
        else:
            columns += [unit, -unit]
    count = len(columns)
    matrix = np.stack(columns, axis=1) if columns else np.zeros((n, 0))
    return tuple(jnp.asarray(v).astype(dtype) for v in (  # type: ignore[return-value]
        matrix, shift, np.eye(count)[rows].reshape(len(rows), count), np.array(right)))


def _interior_point(a: Array, b: Array, c: Array, limit: int, tol: float) -> tuple[Array, Any]:
    m, n = a.shape
    eps = float(finfo(a.dtype).eps)

    def split(v: Array) -> tuple[Array, Array, Array]:
        return v[:n], v[n:n + m], v[n + m:]

    def residuals(v: Array) -> Array:
        x, y, s = split(v)
        return jnp.concatenate([a @ x - b, a.T @ y + s - c, x * s])

    def solve(factor: Any, x: Array, s: Array, rp: Array, rd: Array, rc: Array) -> Any:
        d = x / s
        y = factor(-rp - a @ (d * rd) + a @ (rc / s))
        ds = -rd - a.T @ y
        return -(rc + x * ds) / s, y, ds

    def longest(v: Array, dv: Array) -> Array:
        ratio = jnp.where(dv < 0, -v / jnp.where(dv < 0, dv, 1), math.inf)
        return jnp.minimum(1, jnp.min(ratio, initial=math.inf))

    def error(x: Array, y: Array, s: Array) -> Array:
        primal = jnp.linalg.norm(a @ x - b) / (1 + jnp.linalg.norm(b))
        dual = jnp.linalg.norm(a.T @ y + s - c) / (1 + jnp.linalg.norm(c))
        gap = jnp.abs(c @ x - b @ y) / (1 + jnp.abs(c @ x))
        return jnp.maximum(jnp.maximum(primal, dual), gap)

    def unfinished(state: Any) -> Any:
        x, y, s, count = state
        e = error(x, y, s)
        return (e > tol) & (count < limit) & jnp.isfinite(e)

    def improve(state: Any) -> Any:
        x, y, s, count = state
        normal = (a * (x / s)) @ a.T
        normal = normal + jnp.diag(eps * (1 + jnp.diagonal(normal)))
        low = jnp.linalg.cholesky(normal)

        def factor(v: Array) -> Array:
            half = lax.linalg.triangular_solve(low, v[:, None], left_side=True, lower=True)
            found = lax.linalg.triangular_solve(low, half, left_side=True, lower=True,
                                                transpose_a=True)
            return found[:, 0]

        rp, rd, rc = a @ x - b, a.T @ y + s - c, x * s
        dx, _, ds = solve(factor, x, s, rp, rd, rc)
        mu = jnp.mean(rc)
        after = jnp.mean((x + longest(x, dx) * dx) * (s + longest(s, ds) * ds))
        center = (after / mu) ** 3
        dx, dy, ds = solve(factor, x, s, rp, rd, rc + dx * ds - center * mu)
        tp, td = 0.995 * longest(x, dx), 0.995 * longest(s, ds)
        return x + tp * dx, y + td * dy, s + td * ds, count + 1

    def search(v: Array) -> tuple[Array, Any]:
        x, y, s = split(v)
        x, y, s, count = lax.while_loop(unfinished, improve, (x, y, s, 0))
        return jnp.concatenate([x, y, s]), (error(x, y, s) <= tol, count)

    # Mehrotra's start: least squares, moved to positive numbers
    normal = a @ a.T + jnp.diag(jnp.full(m, eps, a.dtype)) * (1 + jnp.trace(a @ a.T))
    x = a.T @ jnp.linalg.solve(normal, b) if m else jnp.zeros(n, a.dtype)
    y = jnp.linalg.solve(normal, a @ c) if m else jnp.zeros(0, a.dtype)
    s = c - a.T @ y
    x = x + jnp.maximum(-1.5 * jnp.min(x, initial=0), 0)
    s = s + jnp.maximum(-1.5 * jnp.min(s, initial=0), 0)
    dot = jnp.vdot(x, s)
    x = x + 0.5 * dot / jnp.maximum(jnp.sum(s), eps) + eps**0.5
    s = s + 0.5 * dot / jnp.maximum(jnp.sum(x), eps) + eps**0.5
    start = lax.stop_gradient(jnp.concatenate([x, y, s]))
    end, aux = solution(residuals, start, search)
    return split(end)[0], aux


@precise
def nnls(A: ArrayLike, b: ArrayLike, maxiter: int | None = None) -> tuple[Array, Array]:
    """x >= 0 with the least norm of A x - b, and that norm; NaN where it is not found.

    x is differentiated in A and b where no variable is about to leave 0.
    Source: Lawson and Hanson, Solving Least Squares Problems (1974).

    >>> import functrans as ft
    >>> x, norm = ft.scipy.optimize.nnls([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0])
    >>> x.tolist(), float(norm)
    ([2.0, 0.0], 1.0)
    """
    a, right = inexact(A, b)
    of_rank("optimize.nnls", "A", a, 2)
    if right.shape != (a.shape[0],):
        raise ShapeError(f"functrans.scipy.optimize.nnls: A has shape {a.shape}, b {right.shape}.",
                         where=user_source())
    n = a.shape[1]
    limit = 3 * n if maxiter is None else int(maxiter)
    tolerance = 10 * max(a.shape) * float(finfo(a.dtype).eps)

    def gradient(x: Array) -> Array:
        return a.T @ (right - a @ x)

    def among(free: Array) -> Array:
        """The least squares over the free variables."""
        found = jnp.linalg.lstsq(jnp.where(free, a, 0), right)[0]
        return jnp.where(free, found, 0)

    def unfinished(state: Any) -> Any:
        x, free, count, scale = state
        slope = jnp.where(free, -math.inf, gradient(x))
        return (jnp.max(slope) > tolerance * scale) & (count < limit)

    def improve(state: Any) -> Any:
        x, free, count, scale = state
        free = free.at[jnp.argmax(jnp.where(free, -math.inf, gradient(x)))].set(True)

        def leaves(inner: Any) -> Any:
            _, free, s, tries = inner
            return jnp.any(free & (s <= 0)) & (tries < limit)

        def shorten(inner: Any) -> Any:
            x, free, s, tries = inner
            out = free & (s <= 0)
            ratio = jnp.where(out, x / jnp.where(out, x - s, 1), math.inf)
            x = x + jnp.min(ratio) * (s - x)
            free = free & (x > tolerance * jnp.max(jnp.abs(x))) & ~(out & (
                ratio <= jnp.min(ratio)))
            return jnp.where(free, x, 0), free, among(free), tries + 1

        _, free, s, _ = lax.while_loop(leaves, shorten, (x, free, among(free), 0))
        return jnp.where(free, s, 0), free, count + 1, scale

    def search(x: Array) -> tuple[Array, Any]:
        scale = jnp.max(jnp.abs(gradient(x)))
        x, free, _, _ = lax.while_loop(unfinished, improve, (x, x > 0, 0, scale))
        slope = jnp.where(free, -math.inf, gradient(x))
        return x, jnp.max(slope) <= tolerance * scale

    def stationary(x: Array) -> Array:
        return x - jnp.maximum(0, x + gradient(x))

    x, found = solution(stationary, jnp.zeros(n, a.dtype), search)
    x = jnp.where(found, x, math.nan)
    rest = a @ x - right
    square = jnp.sum(rest * rest)
    return x, jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), square)
