"""Convex quadratic programs by an interior-point method."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.products import matmul, precise, vdot
from functrans.typing import Array


@precise
def quadratic_program(hessian: Array, c: Array, g: Array, h: Array, z: Array, limit: int = 60
                      ) -> tuple[Array, Array]:
    """z with the least z @ hessian @ z / 2 + c @ z where g @ z + h >= 0, and the multipliers.

    The program has an interior. Source: Mehrotra's predictor and corrector, as in Nocedal and
    Wright (2006), algorithm 16.4.
    """
    eps = float(finfo(c.dtype).eps)
    m = h.size

    def residuals(z: Array, s: Array, y: Array) -> tuple[Array, Array]:
        return matmul(hessian, z) + c - matmul(g.T, y), matmul(g, z) + h - s

    size = 1 + jnp.max(jnp.abs(c)) + jnp.max(jnp.abs(h))

    def error(z: Array, s: Array, y: Array) -> Array:
        """How far from a solution this is; NaN counts as infinitely far."""
        dual, primal = (jnp.max(jnp.abs(v)) for v in residuals(z, s, y))
        largest = jnp.maximum(jnp.maximum(vdot(s, y) / m, primal), dual / jnp.maximum(
            1, jnp.max(jnp.abs(y))))
        return jnp.where(jnp.isnan(largest), jnp.inf, largest / size)

    def unfinished(state: Any) -> Any:
        *_, count, done = state
        return ~done & (count < limit)

    def improve(state: Any) -> Any:
        z, s, y, best, count, _ = state
        dual, primal = residuals(z, s, y)
        mu = vdot(s, y) / m
        # one factorization serves both systems. Weights y / s grow without bound: the matrix is
        # scaled to a diagonal of ones first, and factored as a positive definite one
        matrix = hessian + matmul(g.T * (y / s), g)
        scale = lax.rsqrt(jnp.diagonal(matrix))
        root = jnp.linalg.cholesky(matrix * scale * scale[:, None] + eps * jnp.eye(z.size))

        def solve(right: Array) -> Array:
            half = solve_triangular(root, right * scale, lower=True)
            return scale * solve_triangular(root, half, lower=True, trans=1)

        def direction(target: Array) -> tuple[Array, Array, Array]:
            right = -dual + matmul(g.T, (target - y * primal) / s - y)
            dz = solve(right)
            dz = dz + solve(right - matmul(matrix, dz))
            ds = matmul(g, dz) + primal
            return dz, ds, (target - y * ds) / s - y

        dz, ds, dy = direction(jnp.zeros_like(s))
        alpha = jnp.minimum(_longest(s, ds), _longest(y, dy))
        after = vdot(s + alpha * ds, y + alpha * dy) / m
        center = (after / mu) ** 3
        dz, ds, dy = direction(center * mu - ds * dy)
        alpha = 0.995 * jnp.minimum(_longest(s, ds), _longest(y, dy))
        z, s, y = z + alpha * dz, s + alpha * ds, y + alpha * dy
        # beyond the best point that roundoff allows the weights overflow and points get worse
        now = error(z, s, y)
        better = now < best[0]
        best = tuple(jnp.where(better, new, old) for new, old in zip((now, z, y), best))
        spent = ~jnp.isfinite(now) | (vdot(s, y) / m <= eps * eps * size)
        return z, s, y, best, count + 1, (now <= 50 * eps) | spent

    slack = jnp.maximum(matmul(g, z) + h, 1)
    one = jnp.ones_like(h)
    start = z, slack, one, (error(z, slack, one), z, one), jnp.array(0), jnp.array(False)
    _, _, _, (_, z, y), _, _ = lax.while_loop(unfinished, improve, start)
    return z, y


def _longest(x: Array, d: Array) -> Array:
    """The longest step up to 1 that keeps x positive."""
    falling = d < 0
    return jnp.minimum(1, jnp.min(jnp.where(falling, -x / jnp.where(falling, d, -1), jnp.inf)))
