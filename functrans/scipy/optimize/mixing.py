"""How the next step of a system of equations is found: approximate inverses of the Jacobian.

Each is a pair of functions of a state, a tuple of arrays: `start(x, f)` makes it, `solve(state,
f)` is the inverse of the Jacobian times f, and `update(state, x, f, dx, df)` takes a step in.
Sources: Broyden, Math. Comp. 19 (1965); Eyert, J. Comput. Phys. 124 (1996); van der Rotten and
Verduyn Lunel (2003).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import numpy as jnp
from functrans.scipy.optimize.quasi_newton import scaled_start
from functrans.scipy.products import matmul, vdot
from functrans.typing import Array

State = Any


class JacobianModel(NamedTuple):
    """The three functions of an approximation."""

    start: Callable[[Array, Array], State]
    solve: Callable[[State, Array], Array]
    update: Callable[[State, Array, Array, Array, Array], State]


def _alpha(alpha: Any, x: Array, f: Array) -> Array:
    return scaled_start(x, f) if alpha is None else jnp.asarray(alpha).astype(x.dtype)


def _quotient(x: Array, y: Array) -> Array:
    found: Array = jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))
    return found


def broyden(good: bool, alpha: Any, max_rank: float | None) -> JacobianModel:
    """Broyden's first ("good") and second method; after `max_rank` updates it begins anew."""
    def start(x: Array, f: Array) -> State:
        scale = _alpha(alpha, x, f)
        return -scale * jnp.eye(x.size, dtype=x.dtype), scale, jnp.array(0)

    def solve(state: State, f: Array) -> Array:
        return matmul(state[0], f)

    def update(state: State, x: Array, f: Array, dx: Array, df: Array) -> State:
        inverse, scale, rank = state
        if max_rank is not None:
            full = rank >= max_rank
            inverse = jnp.where(full, -scale * jnp.eye(x.size, dtype=x.dtype), inverse)
            rank = jnp.where(full, 0, rank)
        rest = dx - matmul(inverse, df)
        row = matmul(dx, inverse) if good else df
        divisor = vdot(df, row)
        return inverse + jnp.outer(rest, _quotient(row, divisor)), scale, rank + 1

    return JacobianModel(start, solve, update)


def of_last_steps(alpha: Any, w0: float, memory: int) -> JacobianModel:
    """Anderson's mixing of the last `memory` steps."""
    def start(x: Array, f: Array) -> State:
        none = jnp.zeros((memory, x.size), x.dtype)
        return none, none, _alpha(alpha, x, f), jnp.array(0)

    def solve(state: State, f: Array) -> Array:
        dx, df, scale, count = state
        step: Array = -scale * f
        if not memory:
            return step
        used = jnp.arange(memory) < count
        products = matmul(df, df.T)
        system = products * (1 + w0**2 * jnp.eye(memory, dtype=f.dtype))
        system = jnp.where(used[:, None] & used[None], system, jnp.eye(memory, dtype=f.dtype))
        right = jnp.where(used, matmul(df, f), 0)
        # a history without independent steps is not used
        weights = jnp.linalg.solve(system, right)
        weights = jnp.where(jnp.all(jnp.isfinite(weights)), weights, 0)
        return step + matmul(weights, dx + scale * df)

    def update(state: State, x: Array, f: Array, dx: Array, df: Array) -> State:
        xs, fs, scale, count = state
        if not memory:
            return state
        place = count % memory
        return xs.at[place].set(dx), fs.at[place].set(df), scale, count + 1

    return JacobianModel(start, solve, update)


def diagonal(alpha: Any) -> JacobianModel:
    """Broyden's update of the diagonal of the Jacobian."""
    def start(x: Array, f: Array) -> State:
        return jnp.full_like(x, 1) / _alpha(alpha, x, f)

    def update(state: State, x: Array, f: Array, dx: Array, df: Array) -> State:
        return state - _quotient((df + state * dx) * dx, vdot(dx, dx))

    return JacobianModel(start, lambda state, f: -f / state, update)


def linear(alpha: Any) -> JacobianModel:
    """A number."""
    return JacobianModel(lambda x, f: _alpha(alpha, x, f), lambda state, f: -f * state,
                         lambda state, x, f, dx, df: state)


def exciting(alpha: Any, alphamax: float) -> JacobianModel:
    """A number for each unknown, which grows while its equation keeps its sign."""
    def start(x: Array, f: Array) -> State:
        scale = _alpha(alpha, x, f)
        return jnp.broadcast_to(scale, x.shape), scale

    def update(state: State, x: Array, f: Array, dx: Array, df: Array) -> State:
        beta, scale = state
        grown = jnp.where(f * (f - df) > 0, beta + scale, scale)
        return jnp.clip(grown, 0, alphamax), scale

    return JacobianModel(start, lambda state, f: -f * state[0], update)
