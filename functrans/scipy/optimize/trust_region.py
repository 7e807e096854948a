"""Minima by quadratic models in regions of trust: Nocedal and Wright (2006), ch. 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.optimize.descent import Minimum
from functrans.scipy.optimize.line_search import ValueAndGrad
from functrans.scipy.products import matmul, precise, vdot
from functrans.transforms.forward import jvp
from functrans.transforms.vmap import vmap
from functrans.typing import Array

_KRYLOV = 40  # the most vectors of a Krylov space
METHODS = ("trust-ncg", "trust-krylov", "trust-exact", "dogleg")


class Model(NamedTuple):
    """The gradient at a point, and the Hessian there times a vector."""

    gradient: Array
    times: Callable[[Array], Array]

    def decrease(self, p: Array) -> Array:
        """How much lower the model is after a step."""
        return -(vdot(self.gradient, p) + 0.5 * vdot(p, self.times(p)))

    def hessian(self) -> Array:
        """The Hessian as a matrix."""
        n = self.gradient.size
        rows: Array = vmap(self.times)(jnp.eye(n, dtype=self.gradient.dtype))
        return 0.5 * (rows + rows.T)


Step = Callable[[Model, Array], Array]


def trust_region(how: str, fun: ValueAndGrad, x: Array, is_small: Callable[[Array], Array],
                 maxiter: int, initial: float, largest: float, eta: float) -> Minimum:
    """Steps within a radius that grows where the model is right: algorithm 4.1."""
    step_of = _STEPS[how]
    value, gradient = fun(x)
    eps = float(finfo(x.dtype).eps)

    def unfinished(state: Minimum) -> Any:
        return ~state.converged & ~state.failed & (state.nit < maxiter)

    def improve(state: Minimum) -> Minimum:
        radius = state.memory
        model = Model(state.gradient,
                      lambda v: jvp(lambda z: fun(z)[1], (state.x,), (v,))[1])
        p = step_of(model, radius)
        length = jnp.linalg.norm(p)
        expected = model.decrease(p)
        now, slope = fun(state.x + p)
        noise = 4 * eps * jnp.abs(state.value)
        ratio = (state.value - now + noise) / (expected + noise)
        ratio = jnp.where(jnp.isfinite(ratio), ratio, -1)
        # a step to the edge is to it within roundoff
        grown = jnp.minimum(2 * radius, largest)
        radius = jnp.where(ratio < 0.25, 0.25 * length, jnp.where(
            (ratio > 0.75) & (length > 0.99 * radius), grown, radius))
        accepted = (ratio > eta) & (expected >= 0)
        point, now, slope = (jnp.where(accepted, u, v) for u, v in (
            (state.x + p, state.x), (now, state.value), (slope, state.gradient)))
        converged = is_small(slope)
        stuck = radius <= eps * jnp.maximum(1, jnp.linalg.norm(point))
        return Minimum(point, now, slope, state.nit + 1, state.nfev + 1, converged,
                       stuck & ~converged, radius)

    start = Minimum(x, value, gradient, jnp.array(0), jnp.array(1), is_small(gradient),
                    ~jnp.isfinite(value), jnp.asarray(initial, x.dtype))
    return lax.while_loop(unfinished, improve, start)


def _to_edge(z: Array, d: Array, radius: Array) -> Array:
    """t >= 0 where z + t d has the length of the radius."""
    a, b, c = vdot(d, d), vdot(z, d), vdot(z, z) - radius**2
    root = jnp.sqrt(jnp.maximum(b * b - a * c, 0))
    # of both forms of the root the one without cancellation
    return jnp.where(b > 0, -c / jnp.where(b > 0, b + root, 1), (root - b) / jnp.where(
        a > 0, a, 1))


def _steihaug(model: Model, radius: Array) -> Array:
    """Conjugate gradients, up to the edge or a direction of negative curvature: algorithm 7.2."""
    g = model.gradient
    size = jnp.linalg.norm(g)
    limit = jnp.minimum(0.5, jnp.sqrt(size)) * size

    def unfinished(state: Any) -> Any:
        _, r, _, count, done = state
        return ~done & (jnp.linalg.norm(r) > limit) & (count < 2 * g.size + 10)

    def improve(state: Any) -> Any:
        z, r, d, count, _ = state
        hd = model.times(d)
        curvature, rr = vdot(d, hd), vdot(r, r)
        alpha = rr / jnp.where(curvature > 0, curvature, 1)
        ends = (curvature <= 0) | (jnp.linalg.norm(z + alpha * d) >= radius)
        after = r + alpha * hd
        z = z + jnp.where(ends, _to_edge(z, d, radius), alpha) * d
        return z, after, vdot(after, after) / rr * d - after, count + 1, ends

    start = (jnp.zeros_like(g), g, -g, jnp.array(0), jnp.array(False))
    step: Array = lax.while_loop(unfinished, improve, start)[0]
    return step


@precise
def _exact(model: Model, radius: Array) -> Array:
    """The minimum of the model within the radius, from the eigenvalues of the Hessian."""
    values, vectors = jnp.linalg.eigh(model.hessian())
    return matmul(vectors, _diagonal(values, matmul(vectors.T, model.gradient), radius))


def _diagonal(values: Array, a: Array, radius: Array) -> Array:
    """The minimum of a @ p + p @ (values * p) / 2 within the radius; values grow.

    Source: Moré and Sorensen, SIAM J. Sci. Stat. Comput. 4 (1983).
    """
    eps = float(finfo(a.dtype).eps)
    scale = jnp.maximum(jnp.max(jnp.abs(values)), jnp.linalg.norm(a) / radius)
    least = jnp.maximum(0, -values[0])

    def at(shift: Array) -> Array:
        divisor = values + shift
        tiny = divisor <= eps * scale
        return jnp.where(tiny, 0, -a / jnp.where(tiny, 1, divisor))

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        long = jnp.linalg.norm(at(middle)) > radius
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    top = least + jnp.linalg.norm(a) / radius + eps * scale
    _, shift = lax.fori_loop(0, 60, halve, (least, top))
    inside = (values[0] > eps * scale) & (jnp.linalg.norm(at(jnp.zeros_like(least))) <= radius)
    p = at(jnp.where(inside, 0, shift))
    # the hard case: the gradient has no part along the direction of the most negative curvature
    lacking = jnp.sqrt(jnp.maximum(radius**2 - vdot(p, p), 0))
    hard = ~inside & (values[0] < 0)
    sign = jnp.where(a[0] > 0, -1.0, 1.0).astype(a.dtype)
    return p.at[0].add(jnp.where(hard, sign * lacking, 0))


@precise
def _krylov(model: Model, radius: Array) -> Array:
    """The minimum of the model in the space of Lanczos's vectors.

    Source: Gould, Lucidi, Roma and Toint, SIAM J. Optim. 9 (1999).
    """
    g = model.gradient
    n, size = min(g.size, _KRYLOV), jnp.linalg.norm(g)
    eps = float(finfo(g.dtype).eps)
    basis = jnp.zeros((n, g.size), g.dtype).at[0].set(g / jnp.where(size > 0, size, 1))

    def extend(k: Any, state: Any) -> Any:
        basis, images = state
        q = basis[k]
        image = model.times(q)
        rest = image
        for _ in range(2):  # twice is enough: Parlett, The Symmetric Eigenvalue Problem (1980)
            rest = rest - matmul(basis.T, matmul(basis, rest))
        length = jnp.linalg.norm(rest)
        usable = length > 10 * eps * jnp.linalg.norm(image)
        follows = jnp.where(usable, rest / jnp.where(usable, length, 1), 0)
        last = jnp.minimum(k + 1, n - 1)
        basis = basis.at[last].set(jnp.where(k + 1 < n, follows, basis[last]))
        return basis, images.at[k].set(image)

    basis, images = lax.fori_loop(0, n, extend, (basis, jnp.zeros_like(basis)))
    inner = matmul(basis, images.T)
    # vectors after the space is exhausted are 0: their curvature keeps them out of the step
    empty = jnp.sum(basis**2, axis=1) < 0.5
    largest = jnp.max(jnp.abs(inner)) + 1
    inner = 0.5 * (inner + inner.T) + jnp.diag(jnp.where(empty, largest, 0))
    values, vectors = jnp.linalg.eigh(inner)
    a = matmul(vectors.T, matmul(basis, g))
    return matmul(basis.T, matmul(vectors, _diagonal(values, a, radius)))


@precise
def _dogleg(model: Model, radius: Array) -> Array:
    """To the minimum along the gradient, and from there towards that of the model.

    Where the Hessian is not positive definite, to the edge along the gradient, or to that minimum.
    """
    g, hessian = model.gradient, model.hessian()
    gg, curvature = vdot(g, g), vdot(g, matmul(hessian, g))
    size = jnp.sqrt(gg)
    convex = curvature > 0
    cauchy = -g * jnp.where(convex, gg / jnp.where(convex, curvature, 1),
                            radius / jnp.where(size > 0, size, 1))
    length = jnp.linalg.norm(cauchy)
    cauchy = cauchy * jnp.minimum(1, radius / jnp.where(length > 0, length, 1))
    factor = jnp.linalg.cholesky(hessian)
    definite = jnp.all(jnp.isfinite(factor)) & (length < radius) & convex
    newton = -jnp.linalg.solve(jnp.where(definite, hessian, jnp.eye(g.size, dtype=g.dtype)), g)
    way = newton - cauchy
    part = jnp.minimum(1, _to_edge(cauchy, way, radius))
    return jnp.where(definite, cauchy + part * way, cauchy)


_STEPS: dict[str, Step] = {"trust-ncg": _steihaug, "trust-krylov": _krylov,
                           "trust-exact": _exact, "dogleg": _dogleg}
