"""Minima under constraints, by a sequence of quadratic programs."""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.optimize.constraints import Sides
from functrans.scipy.optimize.line_search import ValueAndGrad
from functrans.scipy.optimize.quadratic import quadratic_program
from functrans.scipy.products import matmul, vdot
from functrans.transforms.derivatives import jacrev
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp
from functrans.transforms.vmap import vmap
from functrans.typing import Array

_HARDEST = 1e6  # the largest penalty of a constraint that is missed
_CHEAPER = 30  # steps after which prices do not fall: from then on the merit is one function
_LEAST = 1e-4  # the least eigenvalue, which bounds steps where neither curvature nor limits do


class Constrained(NamedTuple):
    """The state of a search: the point, its multipliers, and the price of what is missed."""

    x: Array
    equal: Array
    above: Array
    value: Array
    gradient: Array
    penalty: Array
    nit: Array
    nfev: Array
    converged: Array
    failed: Array


def sqp(fun: ValueAndGrad, sides: Sides, limits: tuple[Array, Array], x: Array, ftol: float,
        maxiter: int) -> Constrained:
    """Steps of programs whose constraints may be missed at a price that grows.

    Their Hessian is that of the Lagrangian with the signs of negative eigenvalues changed; the
    merit is the value and the price of what is missed.
    Source: Nocedal and Wright (2006), ch. 18.4 and eq. 18.50.
    """
    lower, upper = limits
    eps = float(finfo(x.dtype).eps)
    tolerance = max(ftol, 4 * eps)
    n = x.size

    def missed(x: Array) -> Array:
        return jnp.sum(jnp.abs(sides.equal(x))) + jnp.sum(jnp.maximum(-sides.above(x), 0))

    def curvature(x: Array, ye: Array, ya: Array) -> Array:
        def slope(z: Array) -> Array:
            return _slope(fun, sides, z, ye, ya)

        rows: Array = vmap(lambda v: jvp(slope, (x,), (v,))[1])(jnp.eye(n, dtype=x.dtype))
        return 0.5 * (rows + rows.T)

    def unfinished(s: Constrained) -> Any:
        return ~s.converged & ~s.failed & (s.nit < maxiter)

    def improve(s: Constrained) -> Constrained:
        ce, ca = sides.equal(s.x), sides.above(s.x)
        je, ja = jacrev(sides.equal)(s.x), jacrev(sides.above)(s.x)
        hessian = _convex(curvature(s.x, s.equal, s.above), jnp.concatenate(
            [je, ja * (s.above > 1e-6 * (1 + jnp.max(jnp.abs(s.above), initial=0)))[:, None]]))
        p, ye, ya = _program(s, hessian, ce, ca, je, ja, lower, upper)
        # a price above the multipliers makes the minimum of the merit that under constraints
        most = jnp.max(jnp.abs(jnp.concatenate([ye, ya])), initial=0)
        before = missed(s.x)
        predicted = jnp.sum(jnp.abs(ce + matmul(je, p))) + jnp.sum(
            jnp.maximum(-(ca + matmul(ja, p)), 0))
        hard = predicted > jnp.maximum(0.1 * before, 1e-3 * tolerance)
        dear = hard | (most > 0.5 * s.penalty)
        # a price that early multipliers made too high cuts steps along curved constraints short
        cheaper = jnp.maximum(0.3 * s.penalty, jnp.maximum(2.5 * most, 1))
        kept = jnp.where(s.nit < _CHEAPER, jnp.minimum(s.penalty, cheaper), s.penalty)
        penalty = jnp.where(dear, jnp.minimum(4 * s.penalty, _HARDEST), kept)
        merit = s.value + penalty * before
        slope = vdot(s.gradient, p) - penalty * (before - predicted)
        # what the merit changes by where x is rounded: constraints are differences of large terms
        moved = vdot(jnp.abs(s.gradient), jnp.abs(s.x)) + penalty * (
            jnp.sum(matmul(jnp.abs(je), jnp.abs(s.x))) + jnp.sum(matmul(jnp.abs(ja), jnp.abs(s.x))))
        noise = 8 * eps * (jnp.abs(merit) + 1) + 2 * eps * moved

        def too_high(inner: Any) -> Any:
            t, _, now, tries = inner
            return ~(now <= merit + 1e-4 * t * jnp.minimum(slope, 0) + noise) & (tries < 30)

        def shorter(inner: Any) -> Any:
            t, _, _, tries = inner
            t = 0.5 * t
            point = jnp.clip(s.x + t * p, lower, upper)
            return t, point, fun(point)[0] + penalty * missed(point), tries + 1

        # where the full step is refused for the curvature of constraints, it is bent along them
        whole = jnp.clip(s.x + p, lower, upper)
        normal = jnp.concatenate([je, ja])
        active = jnp.concatenate([jnp.ones_like(ce), (ya > 1e-3 * jnp.max(
            ya, initial=0)).astype(x.dtype)])
        rows = normal * active[:, None]
        left = jnp.concatenate([sides.equal(whole), sides.above(whole)]) * active
        gram = matmul(rows, rows.T)
        gram = gram + jnp.diag(1 - active + eps * (1 + jnp.trace(gram)))
        bent = jnp.clip(whole - matmul(rows.T, jnp.linalg.solve(gram, left)), lower, upper)
        at_whole, at_bent = (fun(v)[0] + penalty * missed(v) for v in (whole, bent))
        goal = merit + 1e-4 * jnp.minimum(slope, 0) + noise
        use_bent = ~(at_whole <= goal) & (at_bent <= goal)
        start = (jnp.ones_like(merit), jnp.where(use_bent, bent, whole),
                 jnp.where(use_bent, at_bent, at_whole), jnp.array(0))
        _, point, now, tries = lax.while_loop(too_high, shorter, start)
        found = now <= merit + noise
        point = jnp.where(found, point, s.x)
        value, gradient = fun(point)

        left_over = missed(point)
        still = jnp.abs(value - s.value) <= tolerance * jnp.maximum(1, jnp.abs(value))
        short = jnp.linalg.norm(p) <= jnp.sqrt(tolerance) * 0.1 * jnp.maximum(
            1, jnp.linalg.norm(point))
        held = left_over <= 10 * jnp.sqrt(tolerance) * tolerance**0.25
        tiny = -slope <= tolerance * jnp.maximum(1, jnp.abs(s.value))
        converged = held & (tiny | still) & short & jnp.isfinite(value)
        stuck = (~found | (tries >= 30) | ((penalty >= _HARDEST) & (predicted > 0.5 * before))) \
            & ~converged
        return Constrained(point, ye, ya, value, gradient, penalty, s.nit + 1,
                           s.nfev + tries + 3, converged, stuck)

    x = jnp.clip(x, lower, upper)
    value, gradient = fun(x)
    start = Constrained(
        x, jnp.zeros_like(sides.equal(x)), jnp.zeros_like(sides.above(x)), value, gradient,
        jnp.asarray(10.0, x.dtype), jnp.array(0), jnp.array(1),
        jnp.array(False), ~jnp.isfinite(value))
    return lax.while_loop(unfinished, improve, start)


def _program(s: Constrained, hessian_of_x: Array, ce: Array, ca: Array, je: Array, ja: Array,
             lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """The step and the multipliers of a program with a variable for each miss, at its price."""
    n, me, ma = s.x.size, ce.size, ca.size
    dtype = s.x.dtype

    def block(rows: Array, of_equal: Any, of_above: Any) -> Array:
        count = rows.shape[0]
        parts = [rows, jnp.zeros((count, me), dtype) if of_equal is None else of_equal,
                 jnp.zeros((count, ma), dtype) if of_above is None else of_above]
        return jnp.concatenate(parts, axis=1)

    one_e, one_a, none = jnp.eye(me, dtype=dtype), jnp.eye(ma, dtype=dtype), jnp.zeros
    has_low, has_high = jnp.isfinite(lower), jnp.isfinite(upper)
    eye = jnp.eye(n, dtype=dtype)
    rows = [block(je, one_e, None), block(-je, one_e, None), block(none((me, n), dtype), one_e,
            None), block(ja, None, one_a), block(none((ma, n), dtype), None, one_a),
            block(eye * has_low[:, None], None, None), block(-eye * has_high[:, None], None, None)]
    right = [ce, -ce, jnp.zeros_like(ce), ca, jnp.zeros_like(ca),
             jnp.where(has_low, s.x - jnp.where(has_low, lower, 0), 1),
             jnp.where(has_high, jnp.where(has_high, upper, 0) - s.x, 1)]
    size = n + me + ma
    hessian = jnp.zeros((size, size), dtype).at[:n, :n].set(hessian_of_x)
    c = jnp.concatenate([s.gradient, jnp.full(me + ma, s.penalty)])
    first = jnp.concatenate([jnp.zeros(n, dtype), jnp.abs(ce) + 1, jnp.maximum(-ca, 0) + 1])
    # in float64, for steps to the last bit: in float32 minima are off by 1e-4
    wide = [v.astype(jnp.float64) for v in (
        hessian, c, jnp.concatenate(rows), jnp.concatenate(right), first)]
    z, y = (v.astype(dtype) for v in quadratic_program(
        wide[0], wide[1], wide[2], wide[3], wide[4]))
    return z[:n], y[:me] - y[me:2 * me], y[3 * me:3 * me + ma]


def _convex(hessian: Array, rows: Array) -> Array:
    """A positive definite matrix, with the curvature along constraints where that is positive.

    Across constraints, where steps do not go, curvature is added; then eigenvalues that are still
    negative change their signs. Source: Nocedal and Wright (2006), ch. 18.2, eq. 18.15.
    """
    squares = jnp.sum(rows**2, axis=1)
    size = jnp.linalg.norm(hessian)
    scale = 10 * size * (squares > 0) / jnp.where(squares > 0, squares, 1)
    lowest = jnp.linalg.eigvalsh(hessian)[0]
    added = hessian + jnp.where(lowest < 0, 1, 0) * matmul(rows.T * scale, rows)
    values, vectors = jnp.linalg.eigh(added)
    values = jnp.maximum(jnp.abs(values), _LEAST)
    return matmul(vectors * values, vectors.T)


def _slope(fun: ValueAndGrad, sides: Sides, x: Array, ye: Array, ya: Array) -> Array:
    """The gradient of the Lagrangian."""
    ce, of_equal = vjp(sides.equal, x)
    ca, of_above = vjp(sides.above, x)
    return fun(x)[1] - of_equal(ye.astype(ce.dtype))[0] - of_above(ya.astype(ca.dtype))[0]


def conditions(fun: Any, sides: Sides, limits: tuple[Array, Array], z: Array, n: int, me: int
               ) -> Array:
    """What is 0 at a minimum under constraints: of the point and its multipliers."""
    x, ye, ya = z[:n], z[n:n + me], z[n + me:]
    ce, ca = sides.equal(x), sides.above(x)
    slope = _slope(fun, sides, x, ye, ya)
    return jnp.concatenate([x - jnp.clip(x - slope, *limits), ce, ya - jnp.maximum(0, ya - ca)])
