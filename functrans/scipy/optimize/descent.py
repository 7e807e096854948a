"""Minima along descent directions: BFGS, L-BFGS, conjugate gradients and Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.optimize.line_search import ValueAndGrad, projected, wolfe
from functrans.scipy.products import matmul, vdot
from functrans.transforms.forward import jvp
from functrans.typing import Array

MAXITER_REACHED, NO_LOWER_POINT = 1, 3


class Minimum(NamedTuple):
    """The state of a search."""

    x: Array
    value: Array
    gradient: Array
    nit: Array
    nfev: Array
    converged: Array
    failed: Array
    memory: Any
    previous: Any = 0.0  # the value before the last step

    @property
    def status(self) -> Array:
        """0 where it converged."""
        ended = jnp.where(self.failed, NO_LOWER_POINT, MAXITER_REACHED)
        return jnp.where(self.converged, 0, ended)


Direction = Callable[[Minimum], Array]
Remember = Callable[[Any, Array, Array, Minimum], Any]


def descend(fun: ValueAndGrad, x: Array, memory: Any, direction: Direction, remember: Remember,
            is_small: Callable[[Array], Array], maxiter: int, c2: float = 0.9,
            line_search_maxiter: int = 20, ftol: float = -1.0, scaled: bool = True) -> Minimum:
    """Steps along `direction(state)` until the gradient is small; `remember` updates the memory.

    Directions that are not `scaled` say nothing of the length of a step: the last decrease does.
    """
    value, gradient = fun(x)

    def unfinished(state: Minimum) -> Any:
        return ~state.converged & ~state.failed & (state.nit < maxiter)

    def improve(state: Minimum) -> Minimum:
        p = direction(state)
        slope = vdot(state.gradient, p)
        p = jnp.where(slope < 0, p, -state.gradient)
        # the first step goes a distance of 1 at most; later ones have their scale
        first = jnp.where(state.nit == 0, jnp.minimum(
            1, 1 / jnp.maximum(jnp.linalg.norm(p), float(finfo(p.dtype).tiny))), 1)
        if not scaled:
            guess = 2.02 * (state.value - state.previous) / vdot(state.gradient, p)
            first = jnp.where((state.nit > 0) & (guess > 0), jnp.minimum(guess, 1), first)
        step = wolfe(fun, state.x, state.value, state.gradient, p, first, c2=c2,
                     maxiter=line_search_maxiter)
        s = step.size * p
        y = step.gradient - state.gradient
        small = jnp.abs(step.value - state.value) <= ftol * jnp.maximum(
            1, jnp.maximum(jnp.abs(step.value), jnp.abs(state.value)))
        converged = is_small(step.gradient) | (small & step.found)
        return Minimum(state.x + s, step.value, step.gradient, state.nit + 1,
                       state.nfev + step.evaluations, converged, ~step.found & ~converged,
                       remember(state.memory, s, y, state), state.value)

    start = Minimum(x, value, gradient, jnp.array(0), jnp.array(1), is_small(gradient),
                    ~jnp.isfinite(value), memory, value)
    return lax.while_loop(unfinished, improve, start)


def bfgs(fun: ValueAndGrad, x: Array, is_small: Any, maxiter: int, line_search_maxiter: int
         ) -> Minimum:
    """Nocedal and Wright (2006), algorithm 6.1; the memory is the inverse of the Hessian."""
    size = x.size

    def remember(inverse: Array, s: Array, y: Array, state: Minimum) -> Array:
        product = vdot(y, s)
        usable = product > float(finfo(s.dtype).eps) * jnp.linalg.norm(y) * jnp.linalg.norm(s)
        rho = 1 / jnp.where(usable, product, 1)
        scale = jnp.where(state.nit == 0, product / jnp.where(usable, vdot(y, y), 1), 1)
        inverse = inverse * jnp.where(usable, scale, 1)
        hy = matmul(inverse, y)
        updated = inverse - rho * (jnp.outer(s, hy) + jnp.outer(hy, s)) \
            + rho * (1 + rho * vdot(y, hy)) * jnp.outer(s, s)
        return jnp.where(usable, updated, inverse)

    return descend(fun, x, jnp.eye(size, dtype=x.dtype), lambda m: -matmul(m.memory, m.gradient),
                   remember, is_small, maxiter, line_search_maxiter=line_search_maxiter)


class _Pairs(NamedTuple):
    """The last steps and changes of the gradient, the newest last; rho is 0 where there is none."""

    s: Array
    y: Array
    rho: Array


def _no_pairs(x: Array, count: int) -> _Pairs:
    return _Pairs(jnp.zeros((count, x.size), x.dtype), jnp.zeros((count, x.size), x.dtype),
                  jnp.zeros(count, x.dtype))


def _two_loops(pairs: _Pairs, gradient: Array) -> Array:
    """The inverse of the Hessian times a vector: Nocedal and Wright (2006), algorithm 7.4."""
    count = pairs.rho.shape[0]

    def back(q: Array, pair: _Pairs) -> tuple[Array, Array]:
        alpha = pair.rho * vdot(pair.s, q)
        return q - alpha * pair.y, alpha

    def forth(r: Array, pair: tuple[_Pairs, Array]) -> tuple[Array, None]:
        (s, y, rho), alpha = pair
        return r + s * (alpha - rho * vdot(y, r)), None

    q, alphas = lax.scan(back, gradient, pairs, reverse=True, length=count)
    last_y, last_rho = pairs.y[-1], pairs.rho[-1]
    some = last_rho > 0
    gamma = jnp.where(some, 1 / jnp.where(some, last_rho * vdot(last_y, last_y), 1), 1)
    return lax.scan(forth, gamma * q, (pairs, alphas))[0]


def _with_pair(pairs: _Pairs, s: Array, y: Array) -> _Pairs:
    product = vdot(s, y)
    usable = product > float(finfo(s.dtype).eps) * vdot(y, y)
    rho = 1 / jnp.where(usable, product, 1)
    added = _Pairs(*(jnp.concatenate([old[1:], jnp.asarray(new)[None]]) for old, new in
                     zip(pairs, (s, y, rho))))
    return _Pairs(*(jnp.where(usable, new, old) for new, old in zip(added, pairs)))


def lbfgs(fun: ValueAndGrad, x: Array, is_small: Any, maxiter: int, maxcor: int, ftol: float,
          line_search_maxiter: int) -> Minimum:
    """BFGS of limited memory."""
    return descend(fun, x, _no_pairs(x, maxcor),
                   lambda m: -_two_loops(m.memory, m.gradient),
                   lambda pairs, s, y, _: _with_pair(pairs, s, y), is_small, maxiter,
                   line_search_maxiter=line_search_maxiter, ftol=ftol)


def lbfgs_in_bounds(fun: ValueAndGrad, x: Array, gtol: float, maxiter: int, maxcor: int,
                    ftol: float, lower: Array, upper: Array) -> Minimum:
    """BFGS of limited memory among the variables that are not at a bound that holds them."""
    def direction(state: Minimum, free: Array) -> Array:
        return -_two_loops(state.memory, free)

    return _projected_descent(fun, x, _no_pairs(x, maxcor), direction, _with_pair, gtol, maxiter,
                              ftol, lower, upper)


def newton_in_bounds(fun: ValueAndGrad, x: Array, gtol: float, maxiter: int, ftol: float,
                     lower: Array, upper: Array) -> Minimum:
    """Newton's method with truncated conjugate gradients among the variables that are free."""
    def direction(state: Minimum, free: Array) -> Array:
        return _truncated(fun, state.x, free, free != 0)

    return _projected_descent(fun, x, (), direction, lambda memory, s, y: memory, gtol, maxiter,
                              ftol, lower, upper)


def _projected_descent(fun: ValueAndGrad, x: Array, memory: Any,
                       direction: Callable[[Minimum, Array], Array],
                       remember: Callable[[Any, Array, Array], Any], gtol: float, maxiter: int,
                       ftol: float, lower: Array, upper: Array) -> Minimum:
    """Steps along arcs that the bounds bend.

    Source: Bertsekas, Projected Newton methods, SIAM J. Control Optim. 20 (1982).
    """
    x = jnp.clip(x, lower, upper)
    value, gradient = fun(x)

    def is_small(x: Array, g: Array) -> Array:
        return jnp.max(jnp.abs(jnp.clip(x - g, lower, upper) - x)) <= gtol

    def unfinished(state: Minimum) -> Any:
        return ~state.converged & ~state.failed & (state.nit < maxiter)

    def improve(state: Minimum) -> Minimum:
        held = ((state.x <= lower) & (state.gradient > 0)) | (
            (state.x >= upper) & (state.gradient < 0))
        free = jnp.where(held, 0, state.gradient)
        p = jnp.where(held, 0, direction(state, free))
        p = jnp.where(vdot(p, free) < 0, p, -free)
        first = jnp.where(state.nit == 0, jnp.minimum(
            1, 1 / jnp.maximum(jnp.linalg.norm(p), float(finfo(p.dtype).tiny))), 1)
        point, step = projected(fun, state.x, state.value, state.gradient, p, first, lower, upper)
        known = remember(state.memory, point - state.x, step.gradient - state.gradient)
        change = jnp.abs(step.value - state.value)
        small = change <= ftol * jnp.maximum(1, jnp.maximum(jnp.abs(step.value),
                                                            jnp.abs(state.value)))
        converged = is_small(point, step.gradient) | (small & step.found)
        return Minimum(point, step.value, step.gradient, state.nit + 1,
                       state.nfev + step.evaluations, converged, ~step.found & ~converged, known)

    start = Minimum(x, value, gradient, jnp.array(0), jnp.array(1), is_small(x, gradient),
                    ~jnp.isfinite(value), memory)
    return lax.while_loop(unfinished, improve, start)


def conjugate_gradients(fun: ValueAndGrad, x: Array, is_small: Any, maxiter: int) -> Minimum:
    """Directions by Polak and Ribiere, with a restart where they would not descend."""
    def direction(state: Minimum) -> Array:
        last, beta = state.memory
        found: Array = beta * last - state.gradient
        return found

    def remember(memory: Any, s: Array, y: Array, state: Minimum) -> Any:
        after = state.gradient + y
        beta = jnp.maximum(0, vdot(after, y) / vdot(state.gradient, state.gradient))
        p = direction(state)
        p = jnp.where(vdot(p, state.gradient) < 0, p, -state.gradient)
        return p, beta

    memory = (jnp.zeros_like(x), jnp.zeros((), x.dtype))
    return descend(fun, x, memory, direction, remember, is_small, maxiter, c2=0.4,
                   scaled=False)


def newton_cg(fun: ValueAndGrad, x: Array, is_small: Any, maxiter: int) -> Minimum:
    """Newton's method with truncated conjugate gradients."""
    def direction(state: Minimum) -> Array:
        return _truncated(fun, state.x, state.gradient, None)

    return descend(fun, x, (), direction, lambda memory, *_: memory, is_small, maxiter)


def _truncated(fun: ValueAndGrad, x: Array, g: Array, free: Array | None) -> Array:
    """Newton's step among the free variables: Nocedal and Wright (2006), algorithm 7.1."""
    size = jnp.linalg.norm(g)
    limit = jnp.minimum(0.5, jnp.sqrt(size)) * size

    def times(v: Array) -> Array:
        found: Array = jvp(lambda z: fun(z)[1], (x,), (v,))[1]
        return found if free is None else jnp.where(free, found, 0)

    def unfinished(inner: Any) -> Any:
        _, r, _, count, done = inner
        return ~done & (jnp.linalg.norm(r) > limit) & (count < 2 * g.size + 10)

    def improve(inner: Any) -> Any:
        z, r, d, count, _ = inner
        hd = times(d)
        curvature = vdot(d, hd)
        bad = curvature <= float(finfo(g.dtype).eps) * vdot(d, d)
        rr = vdot(r, r)
        alpha = rr / jnp.where(bad, 1, curvature)
        after = r + alpha * hd
        # where the function is not convex, what was found so far, or the gradient
        z = jnp.where(bad, jnp.where(count == 0, d, z), z + alpha * d)
        return (z, jnp.where(bad, r, after),
                jnp.where(bad, d, vdot(after, after) / rr * d - after), count + 1, bad)

    start = (jnp.zeros_like(g), g, -g, jnp.array(0), jnp.array(False))
    step: Array = lax.while_loop(unfinished, improve, start)[0]
    return step
