"""Convex quadratic programs by an interior-point method."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
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

    def unfinished(state: Any) -> Any:
        *_, count, done = state
        return ~done & (count < limit)

    def improve(state: Any) -> Any:
        z, s, y, count, _ = state
        dual, primal = residuals(z, s, y)
        mu = vdot(s, y) / m
        # one factorization serves both systems
        matrix = hessian + matmul(g.T * (y / s), g)
        matrix = matrix + jnp.diag(jnp.full(z.size, eps * jnp.max(jnp.abs(jnp.diagonal(matrix)))))
        factor = jnp.linalg.inv(matrix)

        def direction(target: Array) -> tuple[Array, Array, Array]:
            right = -dual + matmul(g.T, (target - y * primal) / s - y)
            dz = matmul(factor, right)
            dz = dz + matmul(factor, right - matmul(matrix, dz))
            ds = matmul(g, dz) + primal
            return dz, ds, (target - y * ds) / s - y

        dz, ds, dy = direction(jnp.zeros_like(s))
        alpha = jnp.minimum(_longest(s, ds), _longest(y, dy))
        after = vdot(s + alpha * ds, y + alpha * dy) / m
        center = (after / mu) ** 3
        dz, ds, dy = direction(center * mu - ds * dy)
        alpha = 0.995 * jnp.minimum(_longest(s, ds), _longest(y, dy))
        z2, s2, y2 = z + alpha * dz, s + alpha * ds, y + alpha * dy
        good = jnp.all(jnp.isfinite(z2)) & jnp.all(jnp.isfinite(y2))
        z2, s2, y2 = (jnp.where(good, new, old) for new, old in ((z2, z), (s2, s), (y2, y)))
        dual, primal = residuals(z2, s2, y2)
        size = 1 + jnp.max(jnp.abs(c)) + jnp.max(jnp.abs(h))
        small = (vdot(s2, y2) / m <= 50 * eps * size) & (
            jnp.max(jnp.abs(primal)) <= 50 * eps * size) & (
            jnp.max(jnp.abs(dual)) <= 50 * eps * size * jnp.maximum(1, jnp.max(jnp.abs(y2))))
        return z2, s2, y2, count + 1, small | ~good

    slack = jnp.maximum(matmul(g, z) + h, 1)
    start = (z, slack, jnp.ones_like(h), jnp.array(0), jnp.array(False))
    z, _, y, _, _ = lax.while_loop(unfinished, improve, start)
    return z, y


def _longest(x: Array, d: Array) -> Array:
    """The longest step up to 1 that keeps x positive."""
    falling = d < 0
    return jnp.minimum(1, jnp.min(jnp.where(falling, -x / jnp.where(falling, d, -1), jnp.inf)))
